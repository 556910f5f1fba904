"""What the agent says by itself is in no prompt; a reminder and what `Engine.say` sends are."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from engine.engines import ALICE, AT_ONCE, DIRECT, engine_with, said, talked
from memory.known import a_fact
from people import NOON, a_photo
from tertulia.engine.engine import Engine
from tertulia.engine.languages.lines import ENGLISH
from tertulia.engine.limits import Cap, Limits
from tertulia.errors import KeyRefused
from tertulia.models.base import Response
from tertulia.models.scripted import Scripted
from tertulia.parts import ToolCall
from tertulia.platform import Commanded
from tertulia.profiles import PROFILES
from tertulia.store import Store
from tertulia.testing import Clock, RecordedPlatform
from tertulia.tools.memory import memory_tools
from tertulia.turns import Prompt, model

FORGET = [ToolCall(id="a", name="forget", args={"fact": "is allergic to peanuts"})]
PICTURES = Response(turn=model("Look.", *(a_photo(unique_id=str(n), data=b"\xff\xd8%d" % n) for n in range(13))))


def shown(prompt: Prompt) -> str:
    return repr(prompt.layers)


async def commanded(engine: Engine, platform: RecordedPlatform, text: str, number: int) -> None:
    name, _, argument = text.removeprefix("/").partition(" ")
    change = Commanded(message=said(text, number), name=name, argument=argument)
    await engine.inbox(platform.name).apply([change], key=f"c{number}")
    await engine.settled()


@pytest.mark.parametrize("profile", ["layered", "native", "headers", "plain"])
async def test_no_line_of_the_agent_itself_is_in_a_later_prompt(store: Store, profile: str) -> None:
    platform = RecordedPlatform()
    asked = Scripted("Noted.", FORGET, "Ok.", KeyRefused("no"), "# «wait»\ndelay: 5", PICTURES, "Hello again.")
    named: dict[str, Any] = {"store": store, "tools": memory_tools(store, lambda: NOON), "profile": PROFILES[profile]}
    async with engine_with(asked, platform, now=lambda: NOON, **named) as engine:
        await talked(engine, said("I am allergic to peanuts", 1))
        await store.facts.learn([a_fact("is allergic to peanuts", about=ALICE, place=DIRECT, id="f1", sources=("1",))])
        await talked(engine, said("please forget that", 2), said("yes", 3), said("are you there?", 4))
        await commanded(engine, platform, "/tasks", 50)
        await talked(engine, said("hm?", 5), said("pictures!", 6), said("hi", 7))
    limited = Limits(messages=1, seconds=600)
    async with engine_with(Scripted(), platform, store=store, limits=limited, now=lambda: NOON) as engine:
        await talked(engine, said("quick", 8))
    last = Scripted("Fine.")
    async with engine_with(last, platform, now=lambda: NOON, **named) as engine:
        await talked(engine, said("and now?", 9))

    lines = [
        ENGLISH.forget_one.format(fact="is allergic to peanuts"),
        ENGLISH.forgotten,
        ENGLISH.operator_must_act,
        ENGLISH.nothing_planned,
        ENGLISH.nothing_to_say,
        ENGLISH.more_media.format(count=3, most=10),
        ENGLISH.too_many,
    ]
    assert [text for text in platform.texts if text in lines] == lines
    assert "Hello again." in shown(last.prompts[0])
    assert [line for line in lines if line in shown(last.prompts[0])] == []
    assert {"answer", "notice", "error"} == {item.kind for item in await store.outbox.listed()}


async def test_the_notice_of_a_spend_cap_is_in_no_later_prompt(store: Store) -> None:
    platform, caps = RecordedPlatform(), Limits(total=Cap(tokens=0))
    async with engine_with(Scripted(), platform, store=store, limits=caps, now=lambda: NOON) as engine:
        await talked(engine, said("hi", 1))
    last = Scripted("Fine.")
    async with engine_with(last, platform, store=store, now=lambda: NOON) as engine:
        await talked(engine, said("and now?", 3))

    assert ENGLISH.spent in platform.texts
    assert ENGLISH.spent not in shown(last.prompts[0])


async def test_a_reminder_and_what_the_program_says_are_in_the_next_prompt(store: Store) -> None:
    clock, platform, asked = Clock(datetime(2026, 11, 20, 12, tzinfo=UTC)), RecordedPlatform(), Scripted("Fine.")
    async with Engine(store, asked, [platform], behavior=AT_ONCE, clock=clock) as engine:
        await commanded(engine, platform, "/remind in 20 minutes tea", 1)
        await clock.advance(timedelta(minutes=21).total_seconds())
        await engine.settled()
        await engine.say(DIRECT, "The kettle is on.")
        await engine.settled()
        await talked(engine, said("thanks", 2))

    reminder = ENGLISH.reminder.format(text="tea")
    assert platform.texts[1:] == [reminder, "The kettle is on.", "Fine."]
    assert reminder in shown(asked.prompts[0])
    assert "The kettle is on." in shown(asked.prompts[0])
