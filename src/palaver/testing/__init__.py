"""Fakes, fixtures and the platform contract, for tests of bots and platforms.

`palaver.testing.fixtures` (a pytest plugin) and `palaver.testing.platform_contract` need pytest; the rest does not.
"""

from palaver.models.scripted import Scripted
from palaver.testing.clock import Clock
from palaver.testing.example_service import ExampleService
from palaver.testing.held_model import HeldModel
from palaver.testing.recorded_platform import RecordedPlatform

__all__ = ["Clock", "ExampleService", "HeldModel", "RecordedPlatform", "Scripted"]
