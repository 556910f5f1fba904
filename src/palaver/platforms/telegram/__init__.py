"""Telegram as a platform: `Telegram(token)`."""

from palaver.platforms.telegram.client import Pace as Pace
from palaver.platforms.telegram.platform import Telegram as Telegram

__all__ = ["Pace", "Telegram"]
