"""Tools that ship with Tertulia, and how they are opened by their names."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from tertulia.errors import InvalidValue

if TYPE_CHECKING:
    from tertulia.engine.store_protocols import StoreProtocol
    from tertulia.toolbox.toolbox import Function, Tool

NAMES = ("calculator", "clock", "reminders", "memory", "search", "weather")
SEARCH_URL = "TERTULIA_SEARXNG_URL"


@asynccontextmanager
async def open_tools(
    names: Iterable[str],
    *,
    store: "StoreProtocol",
    now: Callable[[], datetime],
    zone: str,
    environment: Mapping[str, str],
    load: Callable[[str], Any],
) -> AsyncIterator[list["Function | Tool"]]:
    """Open the tools of these names; *load* imports one that is named "module:function"."""
    async with AsyncExitStack() as services:
        tools: list[Function | Tool] = []
        for name in names:
            match name:
                case "calculator":
                    from tertulia.tools.calculator import calculate

                    tools.append(calculate)
                case "clock":
                    from tertulia.tools.clock import clock

                    tools.append(clock(now, zone))
                case "reminders":
                    from tertulia.tools.reminders import reminder_tool

                    tools.append(reminder_tool(store.tasks, now, zone))
                case "memory":
                    from tertulia.tools.memory import memory_tools

                    tools += memory_tools(store, now, zone)
                case "search":
                    from tertulia.tools.search import SearxNG, search_tool

                    if not (address := environment.get(SEARCH_URL)):
                        raise InvalidValue(f"the tool search needs {SEARCH_URL}: the address of a SearxNG instance")
                    tools.append(search_tool(await services.enter_async_context(SearxNG(address))))
                case "weather":
                    from tertulia.tools.weather import OpenMeteo, weather_tool

                    tools.append(weather_tool(await services.enter_async_context(OpenMeteo())))
                case _ if ":" in name:
                    tools.append(load(name))
                case _:
                    near = get_close_matches(name, NAMES, n=1)
                    meant = f", did you mean {near[0]}?" if near else "."
                    known = ", ".join(NAMES)
                    raise InvalidValue(
                        f'no tool is called {name!r}{meant} There are {known}, or your own "module:function"'
                    )
        yield tools
