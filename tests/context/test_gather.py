"""A context is gathered by sources, one after another."""

from datetime import datetime

import pytest

from people import GROUP, NOON, PERSONA, a_message, a_talk
from tertulia.context import Context, gather, sources
from tertulia.context.gather import InMemoryKnowledge
from tertulia.context.log import InMemoryLog
from tertulia.context.values import Background, RecalledEpisode, RelevantMessage
from tertulia.errors import InvalidValue
from tertulia.messages import Message


async def gathered(messages: list[Message], *given: sources.Source, target: Message | None = None) -> Context:
    return await gather(target or messages[-1], given, NOON)


async def test_a_context_holds_what_the_sources_know() -> None:
    talk = a_talk(3)
    known = InMemoryKnowledge(
        hits=[RelevantMessage(text="b", score=0.2), RelevantMessage(text="a", score=0.8)],
        background=Background(memories=("m",), summary="s", key_facts={"k": "v"}),
        episodes=[RecalledEpisode(topic="t", summary="u")],
    )
    scene = sources.agent_settings(persona=PERSONA, zone="Europe/Kyiv", delimiter="abcdef123456")

    context = await gathered(
        talk,
        scene,
        sources.levels(InMemoryLog(talk)),
        sources.relevant(known),
        sources.background(known),
        sources.episodic(known),
    )

    assert context == Context(
        target=talk[2],
        now=NOON,
        place=GROUP,
        zone="Europe/Kyiv",
        persona=PERSONA,
        delimiter="abcdef123456",
        immediate=(talk[0], talk[1]),
        relevant=(RelevantMessage(text="a", score=0.8), RelevantMessage(text="b", score=0.2)),
        memories=("m",),
        summary="s",
        key_facts={"k": "v"},
        episodes=(RecalledEpisode(topic="t", summary="u"),),
    )


async def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(InvalidValue, match="now is a time without a zone"):
        await gather(a_message(), [], datetime(2025, 1, 1))
