"""Defaults of the chat in the terminal: its place and people, and what suits each model."""

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from getpass import getuser
from pathlib import Path
from zoneinfo import ZoneInfo

from palaver.errors import InvalidValue
from palaver.messages import Author, Place
from palaver.models.base import Model
from palaver.platforms.terminal.model_choice import ModelChoice
from palaver.toolbox.toolbox import Function, Tool, Toolbox
from palaver.tools.calculator import calculate
from palaver.tools.clock import clock
from palaver.turns import Settings

PLACE = Place(platform="terminal", id="terminal", kind="direct")
ME = Author(id="palaver", name="palaver")
YOU = "you"
SYSTEM = (
    "You talk with somebody at a terminal. Answer in plain text without markup, briefly unless more is asked for. "
    "Use the tools for arithmetic and for what you cannot know, such as the time."
)
SMALL_SYSTEM = "You are a helpful assistant. Give short, plain answers."


def person() -> Author:
    """Return the person at the terminal, by their user name."""
    try:
        name = getuser().strip()
    except (OSError, KeyError, ImportError):
        name = ""
    name = YOU if name in ("", ME.id) else name
    return Author(id=name, name=name)


@asynccontextmanager
async def open_tools(environment: Mapping[str, str], *, weather: bool) -> AsyncIterator[list[Function]]:
    """Open the tools: calculator and clock; search and weather, which need the network, only if they are configured."""
    async with AsyncExitStack() as services:
        tools: list[Function] = [calculate, clock(lambda: datetime.now(UTC), local_zone(environment))]
        if environment.get("PALAVER_SEARXNG_URL"):
            from palaver.tools.search import SearxNG, search_tool

            searxng = await services.enter_async_context(SearxNG(environment["PALAVER_SEARXNG_URL"]))
            tools.append(search_tool(searxng))
        if weather:
            from palaver.tools.weather import OpenMeteo, weather_tool

            tools.append(weather_tool(await services.enter_async_context(OpenMeteo())))
        yield tools


def toolbox_for(choice: ModelChoice, tools: Sequence[Function | Tool]) -> Toolbox:
    """Return the tools of a model: none for the small one, which calls them at random, and where the service refuses
    them.
    """
    return Toolbox(() if choice.small or _is_plain(choice) else tools)


def memory_model_for(choice: ModelChoice) -> Model | None:
    """Return the model that extracts facts; None for models that would invent too many: patterns extract them."""
    model: Model = choice.model
    return None if choice.kind == "local" or _is_plain(choice) else model


def system_for(choice: ModelChoice) -> str:
    return SMALL_SYSTEM if choice.small else SYSTEM


def settings_for(choice: ModelChoice) -> Settings:
    return Settings(thoughts=True) if choice.kind == "gemini" else Settings()


def _is_plain(choice: ModelChoice) -> bool:
    """Return whether the service takes neither tools nor schemas for the model."""
    return choice.name.removeprefix("models/").startswith("gemma-") or "-image" in choice.name


def local_zone(environment: Mapping[str, str]) -> str:
    """Return the IANA name of the time zone of this machine; UTC if it is unknown."""
    linked = os.path.realpath("/etc/localtime").rpartition("zoneinfo/")[2]
    for name in (environment.get("TZ", "").lstrip(":"), linked):
        try:
            return ZoneInfo(name).key
        except (KeyError, ValueError, OSError):
            continue
    return "UTC"


def read_persona(file: Path) -> str:
    try:
        text = file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise InvalidValue(f"cannot read the persona {file}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InvalidValue(f"the persona {file} is no text in UTF-8") from error
    if not text:
        raise InvalidValue(f"the persona {file} is empty: write into it who the model is to be")
    return text
