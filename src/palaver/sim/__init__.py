"""Strict local simulators of the services: real HTTP servers that refuse what the services refuse."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from palaver.sim.gemini import GeminiSim
    from palaver.sim.openai import OpenAISim
    from palaver.sim.telegram import TelegramSim

__all__ = ["GeminiSim", "OpenAISim", "TelegramSim"]


def __getattr__(name: str) -> Any:
    """Import a simulator, and with it the web server, only when it is used."""
    if name == "GeminiSim":
        from palaver.sim.gemini import GeminiSim

        return GeminiSim
    if name == "OpenAISim":
        from palaver.sim.openai import OpenAISim

        return OpenAISim
    if name == "TelegramSim":
        from palaver.sim.telegram import TelegramSim

        return TelegramSim
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
