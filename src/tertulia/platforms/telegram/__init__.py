"""Telegram as a platform: `Telegram(token)`."""

from tertulia.platforms.telegram.client import Pace as Pace
from tertulia.platforms.telegram.platform import Telegram as Telegram

__all__ = ["Pace", "Telegram"]
