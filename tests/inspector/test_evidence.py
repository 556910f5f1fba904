"""Under each sentence of an answer is what was in its prompt, with source and shared words."""

import pytest
from msgspec.structs import replace

from engine.engines import GROUP
from inspector.evening import NOW, an_evening
from memory.known import a_fact
from people import a_message
from store.builders import an_outgoing
from tertulia.context.values import RecalledThing
from tertulia.errors import InvalidValue
from tertulia.inspector.evidence import known
from tertulia.messages import Author, Reply
from tertulia.run.journal import Run
from tertulia.store import Store
from tertulia.turns import Prompt

ME = Author(id="bot", name="Gryag", persona="gryag")


async def test_a_sentence_has_the_tool_results_and_messages_that_share_its_words() -> None:
    async with an_evening() as store:
        hello, seat = [one.id for one in await store.log.read(GROUP, 0, 9) if one.author.id == "bot"][:2]
        found = await known(store, GROUP, seat)
        first = await known(store, GROUP, hello)
        asked = await known(store, GROUP, "2")

    assert found.sentences == ("Seat 3A is free.", "Take it.")
    one, other = found.evidence
    assert [(piece.kind, piece.text, piece.shared) for piece in one] == [
        ("tool", 'look({"seat":"3A"}) → "3A is free"', ("seat", "3a", "free")),
        ("message", "Alice: Gryag, is 3A free?", ("3a", "free")),
    ]
    assert (one[0].why, one[1].why, one[1].message_id) == ("it ran after request 1", "it was in the window", "3")
    assert [(piece.kind, piece.shared) for piece in other] == [("tool", ())]
    assert (found.window, found.why_nothing) == (4, "")
    why = "nothing was recalled for this; the model had the last 2 messages and its instruction"
    assert (first.why_nothing, asked.why_nothing) == (why, "no run of the bot wrote it")


async def test_facts_and_messages_that_were_recalled_have_score_and_source(store: Store) -> None:
    said = a_message("I keep bees in Podil", id="m1")
    await store.inbox.receive(said, at=NOW)
    fact = a_fact("keeps bees", confidence=0.9)
    await store.facts.learn([fact])
    run = Run(id="r1", place=said.place, target="m1", taken=("m1",), began_at=NOW, horizon=1)
    things = [
        RecalledThing(kind="fact", id=fact.id, why="it is known of the author"),
        RecalledThing(kind="message", id="m1", place=said.place, score=0.8, why="it says bees"),
    ]
    await store.runs.begin(run, Prompt.of("What do I keep?"), at=NOW, recalled=things)
    reply = an_outgoing(
        "You keep bees. That is all.",
        run="r1",
        author=ME,
        reply=Reply(place=said.place, text="You keep bees. That is all."),
    )
    await store.runs.end(replace(run, status="done", ended_at=NOW), replies=[reply])
    await store.outbox.put(replace(reply, status="sent", message_id="s1", sent_at=NOW))

    found = await known(store, said.place, "s1")

    assert [(one.kind, one.text, one.score, one.shared, one.message_id) for one in found.evidence[0]] == [
        ("fact", "keeps bees", 0.9, ("keep", "bees"), "m1"),
        ("message", "I keep bees in Podil", 0.8, ("keep", "bees"), "m1"),
    ]
    assert [one.source and (one.source.id, one.source.text) for one in found.evidence[0]] == [
        ("m1", "I keep bees in Podil"),
        None,
    ]
    assert [one.shared for one in found.evidence[1]] == [(), ()]
    with pytest.raises(InvalidValue, match="there is no message x in telegram"):
        await known(store, said.place, "x")
