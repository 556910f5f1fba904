"""New messages are read once, in the background."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from engine.engines import ALICE, BOB, DIRECT, GROUP, ME, said
from engine.memory.learners import STATED, Counting, a_learner, a_store, answer, hear, read, told
from store.builders import add_own, cursor
from tertulia.errors import Overloaded, TertuliaError
from tertulia.events import FactsLearned
from tertulia.memory.facts import subject_of
from tertulia.memory.verify.statements import RecalledTexts
from tertulia.messages import Place
from tertulia.models.scripted import Scripted
from tertulia.store import Store


async def told_as_learned(store: Store) -> list[list[str]]:
    """The texts of the facts of each event."""
    events = [one for one in await store.events.read(after="") if isinstance(one, FactsLearned)]
    found = [[await store.facts.get(fact_id) for fact_id in one.fact_ids] for one in events]
    return [[fact.text for fact in facts if fact] for facts in found]


async def test_what_was_said_is_learned_once() -> None:
    async with a_store() as store:
        learner = a_learner(store)
        await hear(store, said("hi", 1), said("I live in Lviv", 2), said("I love sushi", 3))
        await read(learner)
        await read(learner)

        assert await told(store) == ["Lives in Lviv.", "Loves sushi."]
        assert await told_as_learned(store) == [["Lives in Lviv.", "Loves sushi."]]
        assert await store.cursors.next_range(DIRECT) is None


async def test_what_is_said_again_or_no_longer_holds_is_not_shown_as_learnt() -> None:
    async with a_store() as store:
        learner = a_learner(store)
        for number, text in enumerate(["I live in Lviv", "I live in Lviv", "now I live in Kyiv"]):
            await hear(store, said(text, number))
            await read(learner)

        assert await told_as_learned(store) == [["Lives in Lviv."], ["Lives in Kyiv."]]


async def test_somebody_elses_word_is_no_news_while_the_persons_own_holds() -> None:
    model = Scripted(*(answer((1, f"Lives in {town}."), key="home") for town in ("Lviv", "Rome")))
    async with a_store() as store:
        learner = a_learner(store, model)
        for number, (text, author) in enumerate([("I live in Lviv", ALICE), ("Alice lives in Rome", BOB)]):
            await hear(store, said(text, number, place=GROUP, author=author))
            await read(learner, GROUP)

        assert [fact.text for fact in await store.facts.about(subject_of(ALICE, GROUP), place=GROUP)] == [
            "Lives in Lviv."
        ]
        assert await told_as_learned(store) == [["Lives in Lviv."]]


async def test_of_the_agents_own_words_alone_no_model_is_asked() -> None:
    model, me = Counting(), replace(ME, persona="Gryag")
    async with a_store() as store:
        await hear(store, said("I live in Lviv", 1, author=me), said("ok", 2, author=me))
        await read(a_learner(store, model))

        assert await store.cursors.next_range(DIRECT) is None
    assert model.prompts == []


async def test_only_new_messages_are_shown_to_the_model_as_new() -> None:
    model = Scripted(answer((1, "Lives in Lviv.")), answer((1, "Loves sushi.")), "Lives in Lviv. Loves sushi.")
    async with a_store() as store:
        learner = a_learner(store, model)
        await hear(store, said("I live in Lviv", 1))
        await read(learner)
        await hear(store, said("I love sushi", 2))
        await read(learner)

        assert await told(store) == ["Lives in Lviv.", "Loves sushi."]
    lines = [json.loads(line) for line in model.prompts[1].turns[0].parts[0].text.splitlines()]  # type: ignore[union-attr]
    assert [{key: line[key] for key in ("known", "earlier", "number", "text") if key in line} for line in lines] == [
        {"known": "Lives in Lviv."},
        {"earlier": "I live in Lviv"},
        {"number": 1, "text": "I love sushi"},
    ]


async def test_a_long_talk_is_read_in_batches() -> None:
    model = Counting()
    async with a_store() as store:
        await hear(store, *(said(f"message {number}", number) for number in range(70)))
        await read(a_learner(store, model))

        assert len(model.prompts) == 3
        assert await cursor(store, DIRECT) == 70


async def test_the_next_process_reads_what_this_one_did_not(tmp_path: Path) -> None:
    async with a_store(tmp_path / "tertulia.db") as store:
        await hear(store, said("I live in Lviv", 1), said("I'm from Odesa", 1, place=GROUP))
        learner = a_learner(store, Scripted())
        learner.wake(DIRECT)
        await learner.close()

    async with a_store(tmp_path / "tertulia.db") as store:
        learner = a_learner(store)
        await learner.start()
        await learner.done()

        assert sorted(await told(store)) == ["Is from Odesa.", "Lives in Lviv."]


async def test_what_fails_is_logged_in_one_line_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    failures: list[TertuliaError] = [Overloaded("busy"), Overloaded("busy", retry_after=30), Overloaded("busy")]
    model = Scripted(*failures, answer((1, "Lives in Lviv.")))
    async with a_store() as store:
        await hear(store, said("I live in Lviv", 1))
        with caplog.at_level(logging.WARNING):
            await read(a_learner(store, model, sleep=sleep))

        assert await told(store) == ["Lives in Lviv."]
    assert slept == [5.0, 30, 20.0]
    assert [record.getMessage() for record in caplog.records][:1] == ["learning in 7 is retried in 5 s: busy"]


class Faulty(Scripted):
    """Believes every message, and has a fault that one of them meets."""

    async def respond(self, prompt: Any) -> Any:
        lines = map(json.loads, prompt.turns[0].parts[0].text.splitlines())
        texts = {line["number"]: line["text"] for line in lines if "number" in line}
        if "boom" in texts.values():
            raise LookupError("boom")
        self._script = [answer(*((number, STATED[text]) for number, text in texts.items()))]
        return await super().respond(prompt)


async def test_a_message_that_nobody_can_read_keeps_nobody_from_the_others(caplog: pytest.LogCaptureFixture) -> None:
    async with a_store() as store:
        await hear(store, said("I love sushi", 1), said("boom", 2), said("I love jazz", 3))
        await read(a_learner(store, Faulty()))

        assert await told(store) == ["Loves sushi.", "Loves jazz."]
        assert await store.cursors.unread() == []
    first, *_, last = caplog.messages[-1].splitlines()
    assert (first, last) == (
        "1 messages in 7 cannot be read: Traceback (most recent call last):",
        "LookupError: boom",
    )


async def test_hearing_returns_at_once() -> None:
    async with a_store() as store:
        await hear(store, said("I live in Lviv", 1))
        learner = a_learner(store)

        learner.wake(DIRECT)

        assert learner.busy
        assert await told(store) == []
        await learner.done()


async def test_the_agents_own_words_and_quotes_of_them_are_not_learned() -> None:
    own = replace(said("I live in Lviv", 2), author=replace(ME, persona="Gryag"))
    async with a_store() as store:
        await hear(store, said("> I live in Lviv", 1))
        await add_own(store, own, ())
        await read(a_learner(store))

        assert await told(store) == []


async def test_what_was_recalled_is_not_learned_from_who_repeats_it() -> None:
    pasted = said("I live in Lviv, and I have worked at the port for ten years", 1, author=BOB)

    async def recalled(place: Place) -> RecalledTexts:
        return RecalledTexts(messages=(pasted,)) if place == DIRECT else RecalledTexts()

    async with a_store() as store:
        learner = a_learner(store, recalled=recalled)
        for place in (DIRECT, GROUP):
            await hear(store, replace(pasted, author=ALICE, place=place), said("I'm from Odesa", 2, place=place))
            await read(learner, place)

        assert [await told(store, place) for place in (DIRECT, GROUP)] == [
            ["Is from Odesa."],
            ["Lives in Lviv.", "Is from Odesa."],
        ]
