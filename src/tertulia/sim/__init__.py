"""Strict local simulators of the services: real HTTP servers that refuse what the services refuse."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tertulia.sim.gemini import GeminiSim
    from tertulia.sim.openai import OpenAISim
    from tertulia.sim.telegram import TelegramSim

__all__ = ["GeminiSim", "OpenAISim", "TelegramSim"]


def __getattr__(name: str) -> Any:
    """Import a simulator, and with it the web server, only when it is used."""
    if name == "GeminiSim":
        from tertulia.sim.gemini import GeminiSim

        return GeminiSim
    if name == "OpenAISim":
        from tertulia.sim.openai import OpenAISim

        return OpenAISim
    if name == "TelegramSim":
        from tertulia.sim.telegram import TelegramSim

        return TelegramSim
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
