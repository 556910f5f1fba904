"""Telegram keeps the contract of platforms, with its simulator as the service."""

from platforms.telegram.world import TelegramWorld
from tertulia.testing.platform_contract import PlatformContract, PlatformWorld


class TestTelegram(PlatformContract):
    def world(self) -> PlatformWorld:
        return TelegramWorld()
