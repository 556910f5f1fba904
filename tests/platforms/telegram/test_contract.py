"""Telegram keeps the contract of platforms, with its simulator as the service."""

from palaver.testing.platform_contract import PlatformContract, PlatformWorld
from platforms.telegram.world import TelegramWorld


class TestTelegram(PlatformContract):
    def world(self) -> PlatformWorld:
        return TelegramWorld()
