"""What a caller gives to an engine is told, where it has a wrong type."""

from collections.abc import Callable
from typing import Any

import pytest

from engine.engines import DIRECT, engine_with
from tertulia.engine.engine import Engine
from tertulia.errors import InvalidValue
from tertulia.models import Scripted
from tertulia.store import Store
from tertulia.testing import RecordedPlatform


def _set_limits(engine: Engine, given: Any) -> None:
    engine.limits = given


def _set_persona(engine: Engine, given: Any) -> None:
    engine.persona = given


CALLS: dict[str, Callable[[Engine, Any], Any]] = {
    "inbox": lambda engine, wrong: engine.inbox(wrong),
    "say, place": lambda engine, wrong: engine.say(wrong, "hi"),
    "say, text": lambda engine, wrong: engine.say(DIRECT, wrong),
    "receive": lambda engine, wrong: engine.receive(wrong),
    "edit": lambda engine, wrong: engine.edit(wrong),
    "delete, place": lambda engine, wrong: engine.delete(wrong, "1"),
    "delete, id": lambda engine, wrong: engine.delete(DIRECT, wrong),
    "stop": lambda engine, wrong: engine.stop(wrong),
    "clear": lambda engine, wrong: engine.clear(wrong),
    "clear, author": lambda engine, wrong: engine.clear(DIRECT, asked_by=wrong),
    "schedule": lambda engine, wrong: engine.schedule([wrong]),
    "schedule, no list": lambda engine, wrong: engine.schedule(wrong),
    "events, place": lambda engine, wrong: anext(engine.events(place=wrong)),
    "events, run": lambda engine, wrong: anext(engine.events(run=wrong, after="")),
    "events, after": lambda engine, wrong: anext(engine.events(after=wrong)),
    "limits": _set_limits,
    "persona": _set_persona,
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("wrong", [RecordedPlatform(), 7], ids=["a platform", "a number"])
async def test_a_wrong_argument_of_the_engine_is_the_callers_mistake(store: Store, name: str, wrong: Any) -> None:
    async with engine_with(Scripted(), store=store) as engine:

        async def call() -> None:
            await CALLS[name](engine, wrong)

        with pytest.raises(InvalidValue):
            await call()


async def test_the_inbox_of_a_platform_is_that_of_its_name(store: Store) -> None:
    async with engine_with(Scripted(), store=store) as engine:
        (name, platform) = next(iter(engine.platforms.items()))
        engine.inbox(name)

        with pytest.raises(InvalidValue, match=f"no platform RecordedPlatform: give its name; there are: {name}"):
            engine.inbox(platform)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["persona", "context", "settings", "behavior", "limits", "memory", "media"])
async def test_an_engine_is_not_made_with_a_wrong_argument(store: Store, name: str) -> None:
    with pytest.raises(InvalidValue, match="an engine takes a"):
        Engine(store, Scripted(), [RecordedPlatform()], **{name: "wrong"})  # type: ignore[arg-type]
