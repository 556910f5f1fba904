"""Fakes, fixtures and the platform contract, for tests of bots and platforms.

`tertulia.testing.fixtures` (a pytest plugin) and `tertulia.testing.platform_contract` need pytest; the rest does not.
"""

from tertulia.models.scripted import Scripted
from tertulia.testing.bot import bot_engine
from tertulia.testing.example_service import ExampleService
from tertulia.testing.fakes import Clock, HeldModel, RecordedPlatform
from tertulia.testing.replay import replayed

__all__ = ["Clock", "ExampleService", "HeldModel", "RecordedPlatform", "Scripted", "bot_engine", "replayed"]
