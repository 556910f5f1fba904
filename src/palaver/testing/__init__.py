"""Fakes, fixtures and the platform contract, for tests of bots and platforms.

`palaver.testing.fixtures` (a pytest plugin) and `palaver.testing.platform_contract` need pytest; the rest does not.
"""

from palaver.models.scripted import Scripted
from palaver.testing.bot import bot_engine
from palaver.testing.example_service import ExampleService
from palaver.testing.fakes import Clock, HeldModel, RecordedPlatform

__all__ = ["Clock", "ExampleService", "HeldModel", "RecordedPlatform", "Scripted", "bot_engine"]
