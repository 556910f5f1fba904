"""What users test their bots and platforms with.

`palaver.testing.fixtures` (a pytest plugin) and `palaver.testing.platform_contract` need pytest; the rest does not.
"""

from palaver.models.scripted import Scripted
from palaver.testing.clock import Clock
from palaver.testing.example_service import ExampleService
from palaver.testing.held_model import HeldModel
from palaver.testing.recorded_platform import RecordedPlatform

__all__ = ["Clock", "ExampleService", "HeldModel", "RecordedPlatform", "Scripted"]
