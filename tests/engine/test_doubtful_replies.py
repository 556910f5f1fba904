"""A model is shown what it said, also where nobody knows whether it arrived."""

from typing import Any

import pytest

from engine.engines import DIRECT, GROUP, engine_with, said, talked
from tertulia.context.stable_prefix import BufferMarks
from tertulia.engine.run_executor import LiveText
from tertulia.messages import Place
from tertulia.models import Scripted
from tertulia.parts import Text, ToolCall, ToolResult
from tertulia.profiles import PROFILES, layered
from tertulia.prompt.render import DOUBT
from tertulia.run.cleaner import clean
from tertulia.store import Store
from tertulia.testing import RecordedPlatform
from tertulia.turns import Prompt

MARK = DOUBT.partition(" {")[0]
LINE = DOUBT.format(which="before this line")
WITH_HISTORY = [name for name in PROFILES if name != "single"]  # which shows the target alone


def booked() -> str:
    """Book a table."""
    return "table 5"


def texts(prompt: Prompt) -> list[str]:
    parts = [part for turn in prompt.turns for part in turn.parts]
    return [prompt.instruction, *(part.text for part in parts if isinstance(part, Text))]


async def talk(store: Store, profile: Any, place: Place, **named: Any) -> Scripted:
    """A reply after a tool, whose receipt is lost, and two messages after it."""
    model = Scripted(ToolCall(name="booked", args={}), "It is booked.", "Yes.", "Bye.")
    async with engine_with(
        model, RecordedPlatform(TimeoutError()), store=store, profile=profile, tools=[booked], **named
    ) as engine:
        for number, text in enumerate(("gryag, book", "gryag, and now?", "gryag, bye"), 1):
            await talked(engine, said(text, number, place=place))
    return model


@pytest.mark.parametrize("place", [DIRECT, GROUP], ids=["direct", "group"])
@pytest.mark.parametrize("profile", WITH_HISTORY)
async def test_a_doubtful_reply_is_in_the_next_prompt_with_a_mark_that_explains_itself(
    store: Store, profile: str, place: Place
) -> None:
    model = await talk(store, profile, place)
    first, _, second, third = model.prompts

    for prompt in (second, third):
        shown = "\n".join(texts(prompt))
        assert "It is booked." in shown
        assert shown.count("it is not known whether") == 1
    assert "it is not known whether" not in "\n".join(texts(first))


async def test_the_calls_of_a_doubtful_reply_are_shown_too(store: Store) -> None:
    model = await talk(store, "tail", DIRECT)

    results = [part.value for turn in model.prompts[-1].turns for part in turn.parts if isinstance(part, ToolResult)]
    assert results == ["table 5"]


async def test_the_mark_stands_behind_the_reply_and_what_is_before_it_stays(store: Store) -> None:
    model = await talk(store, "tail", DIRECT)
    _, _, second, third = model.prompts
    line = doubt_line_of(second)
    (buffered,) = [layer.turns for layer in second.layers if layer.name == "buffered"]
    (grown,) = [layer.turns for layer in third.layers if layer.name == "buffered"]

    assert [turn.text for turn in buffered[-2:]] == ["It is booked.", line]
    assert grown[: len(buffered)] == buffered


def doubt_line_of(prompt: Prompt) -> str:
    (line,) = [text for text in texts(prompt)[1:] if MARK in text]
    return line


async def test_among_old_messages_it_is_marked_too(store: Store) -> None:
    model = await talk(store, lambda context: layered(context, buffer=BufferMarks(low=0, high=1)), DIRECT)

    (old,) = [text for text in texts(model.prompts[-1])[1:] if "It is booked." in text]
    assert old.endswith(f"It is booked.\n{old.partition(' ')[0]} You — {LINE}")


async def test_once_it_is_settled_the_mark_is_gone_and_the_reply_is_there_once(store: Store) -> None:
    platform, model = RecordedPlatform(TimeoutError()), Scripted("Ok.", "Yes.")
    async with engine_with(model, platform, store=store, profile="tail") as engine:
        await talked(engine, said("hi", 1))
        (doubtful,) = await store.outbox.listed("doubtful")
        await store.outbox.decide(doubtful.id, "waiting")
    async with engine_with(model, platform, store=store, profile="tail") as engine:
        await engine.settled()
        await talked(engine, said("and now?", 2))

    shown = texts(model.prompts[-1])
    assert (shown.count("Ok."), [text for text in shown if MARK in text]) == (1, [])
    assert [(one.id, one.doubtful) for one in await store.log.read(DIRECT, 0, 9)] == [
        ("1", False),
        ("s-1", False),
        ("2", False),
        ("s-2", False),
    ]


async def test_once_it_is_dropped_it_was_never_said(store: Store) -> None:
    platform, model = RecordedPlatform(TimeoutError()), Scripted("Ok.", "Yes.")
    async with engine_with(model, platform, store=store, profile="tail") as engine:
        await talked(engine, said("hi", 1))
        (doubtful,) = await store.outbox.listed("doubtful")
        await store.outbox.decide(doubtful.id, "dropped")
        await talked(engine, said("and now?", 2))

    shown = texts(model.prompts[-1])
    assert ("Ok." in shown, [text for text in shown if MARK in text]) == (False, [])


@pytest.mark.parametrize("profile", WITH_HISTORY)
@pytest.mark.parametrize("place", [DIRECT, GROUP], ids=["direct", "group"])
async def test_the_mark_is_cut_where_a_model_repeats_it(store: Store, profile: str, place: Place) -> None:
    model = await talk(store, profile, place)
    delimiter = await store.place_settings.delimiter(place)
    (text,) = [text for text in texts(model.prompts[-1]) if MARK in text]
    line = next(line for line in text.splitlines() if MARK in line)

    assert clean(f"{line}\nHello.", delimiter=delimiter) == "Hello."
    assert "not received" not in clean(f"Hello.\n{line}", delimiter=delimiter)
    assert clean(f"You said: {line}\nHello.", delimiter=delimiter) in ("You said:Hello.", "You said: Hello.")
    live = LiveText(delimiter)
    assert "".join([*map(live.feed, f"{line}\nHello."), live.finish()]) == "Hello."
