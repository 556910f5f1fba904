"""What was said is read once, in the background, also by the next process, and again where it has changed."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.engines import ALICE, BOB, DIRECT, GROUP, ME, said
from palaver.engine.memory.learner import Learner
from palaver.errors import Overloaded, PalaverError
from palaver.events import FactsLearned
from palaver.memory.facts import subject_of
from palaver.memory.verify.echo import RecalledTexts
from palaver.messages import Message, Place
from palaver.models.scripted import Scripted
from palaver.store import Store
from people import NOON

STATED = {"I love sushi": "Loves sushi.", "I love jazz": "Loves jazz.", "hm": ""}
MESSAGES, SAYING = st.integers(0, 3), st.sampled_from(list(STATED))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("say"), MESSAGES, SAYING),
        st.tuples(st.just("edit"), MESSAGES, SAYING),
        st.tuples(st.sampled_from(["delete", "read", "end"]), MESSAGES, st.just("")),
    ),
    max_size=14,
)
LIKED = "love sushi;hate olives;work as a nurse;speak Polish;play the guitar;have a cat;am vegan;am from Odesa".split(
    ";"
)


@asynccontextmanager
async def a_store(path: Path | str = ":memory:") -> AsyncIterator[Store]:
    async with Store.open(path) as store:
        yield store


def a_learner(store: Store, model: Any = None, **changes: Any) -> Learner:
    fields: dict[str, Any] = {"model": model, "now": lambda: NOON}
    return Learner(store.facts, store.cursors, store.log, **fields | changes)


async def hear(store: Store, *messages: Message) -> None:
    for message in messages:
        await store.inbox.receive(message, at=NOON)


async def read(learner: Learner, place: Place = DIRECT) -> None:
    learner.wake(place)
    await learner.done()


async def told(store: Store, place: Place | None = None) -> list[str]:
    return [fact.text for fact in await store.facts.listed(place=place)]


def answer(*facts: tuple[int, str], key: str = "other") -> str:
    claims = [
        {"sources": [number], "about": ALICE.id, "key": key, "text": text, "confidence": 1} for number, text in facts
    ]
    return json.dumps({"facts": claims})


class Counting(Scripted):
    """Says nothing is worth keeping, as often as it is asked."""

    async def respond(self, prompt: Any) -> Any:
        self._script = [answer()]
        return await super().respond(prompt)


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
        assert await store.cursors.read_to(DIRECT) == 70


async def test_the_next_process_reads_what_this_one_did_not(tmp_path: Path) -> None:
    async with a_store(tmp_path / "palaver.db") as store:
        await hear(store, said("I live in Lviv", 1), said("I'm from Odesa", 1, place=GROUP))
        learner = a_learner(store, Scripted())
        learner.wake(DIRECT)
        await learner.close()

    async with a_store(tmp_path / "palaver.db") as store:
        learner = a_learner(store)
        await learner.start()
        await learner.done()

        assert sorted(await told(store)) == ["Is from Odesa.", "Lives in Lviv."]


async def test_what_fails_is_logged_in_one_line_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    failures: list[PalaverError] = [Overloaded("busy"), Overloaded("busy", retry_after=30), Overloaded("busy")]
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


async def edit(store: Store, *messages: Message) -> None:
    for message in messages:
        await store.inbox.edit(replace(message, edited_at=NOON), at=NOON)


async def test_an_edited_message_is_read_again() -> None:
    async with a_store() as store:
        learner = a_learner(store)
        await hear(store, said("I live in Lviv", 1), said("hm", 2))
        await read(learner)
        await edit(store, said("I live in Kyiv", 1), said("I love sushi", 2))
        await read(learner)

        assert sorted(await told(store)) == ["Lives in Kyiv.", "Loves sushi."]


async def test_what_was_forgotten_does_not_come_back_with_the_edit_of_an_older_message() -> None:
    async with a_store() as store:
        learner = a_learner(store)
        await hear(store, said("I love sushi", 1), said("I live in Lviv", 2), said("hm", 3))
        await read(learner)
        await store.facts.forget([fact.id for fact in await store.facts.listed() if fact.key == "home"])
        await edit(store, said("I love ramen", 1))
        await read(learner)

        assert await told(store) == ["Loves ramen."]
        await edit(store, said("I live in Kyiv", 2))
        await read(learner)
        assert await told(store) == ["Loves ramen.", "Lives in Kyiv."]


async def test_for_an_edit_a_model_is_shown_that_message_alone_as_new() -> None:
    model = Counting()
    async with a_store() as store:
        await hear(store, *(said(f"message {number}", number) for number in range(70)))
        learner = a_learner(store, model)
        await read(learner)
        await edit(store, said("I live in Kyiv", 3), said("I love sushi", 3))
        await store.inbox.delete(DIRECT, "5", at=NOON)
        await read(learner)
        await read(learner)

    asked = [json.loads(line) for line in model.prompts[-1].turns[0].parts[0].text.splitlines()]  # type: ignore[union-attr]
    assert len(model.prompts) == 4
    assert [line["text"] for line in asked if "number" in line] == ["I love sushi"]


async def test_an_edit_that_nobody_was_told_of_is_read_by_the_next_process(tmp_path: Path) -> None:
    async with a_store(tmp_path / "palaver.db") as store:
        await hear(store, said("I live in Lviv", 1), said("hm", 2))
        await read(a_learner(store))
        await edit(store, said("I live in Kyiv", 1))

    async with a_store(tmp_path / "palaver.db") as store:
        learner = a_learner(store)
        await learner.start(lambda place: place != DIRECT)
        await learner.done()
        assert await told(store) == []
        await learner.start()
        await learner.done()

        assert await told(store) == ["Lives in Kyiv."]


async def test_what_a_deleted_message_said_is_gone() -> None:
    alice = subject_of(ALICE, DIRECT)
    async with a_store() as store:
        learner = a_learner(store)
        await hear(store, said("I live in Lviv", 1), said("I love sushi", 2), said("I work as a nurse", 3))
        await read(learner)
        await store.inbox.delete(DIRECT, "1", at=NOON)
        await read(learner)
        summary = await store.facts.summary(alice, place=DIRECT)

        assert await told(store) == ["Loves sushi.", "Works as a nurse."]
    assert (summary and summary.text) == "Works as a nurse. Loves sushi."


async def test_the_agents_own_words_and_quotes_of_them_are_not_learned() -> None:
    own = replace(said("I live in Lviv", 2), author=replace(ME, persona="Gryag"))
    async with a_store() as store:
        await hear(store, said("> I live in Lviv", 1))
        await store.inbox.add_own(own, ())
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


async def test_the_summary_of_a_place_holds_only_what_may_be_heard_there() -> None:
    async with a_store() as store:
        learner = a_learner(store)
        await hear(store, said("I live in Lviv", 1), said("I'm allergic to peanuts", 2))
        await hear(store, said("I love sushi", 1, place=GROUP), said("I work as a nurse", 2, place=GROUP))
        await hear(store, said("I hate olives", 3, place=GROUP, author=BOB))
        await read(learner)
        await read(learner, GROUP)
        alice = subject_of(ALICE, DIRECT)

        summaries = [await store.facts.summary(alice, place=place) for place in (DIRECT, GROUP)]

    assert [summary and summary.text for summary in summaries] == [
        "Lives in Lviv. Is allergic to peanuts.",
        "Works as a nurse. Loves sushi.",
    ]


async def test_a_summary_is_made_anew_when_enough_has_changed() -> None:
    model = Scripted(
        answer((1, "Lives in Lviv."), (2, "Loves sushi.")), "She lives in Lviv, loves sushi.", answer(), answer()
    )
    async with a_store() as store:
        learner = a_learner(store, model)
        await hear(store, said("I live in Lviv", 1), said("I love sushi", 2))
        await read(learner)
        await hear(store, said("hm", 3))
        await read(learner)
        summary = await store.facts.summary(subject_of(ALICE, DIRECT), place=DIRECT)

    assert (summary and summary.text, len(model.prompts)) == ("She lives in Lviv, loves sushi.", 3)


async def test_a_summary_never_says_what_no_longer_holds() -> None:
    alice = subject_of(ALICE, DIRECT)
    summaries = []
    async with a_store() as store:
        learner = a_learner(store)
        await hear(store, *(said(f"I {what}", number) for number, what in enumerate(LIKED)))
        for number, town in enumerate(("Lviv", "Kyiv"), len(LIKED)):
            await hear(store, said(f"I live in {town}", number), said(f"I love {town}", f"too {number}"))
            await read(learner)
            summary = await store.facts.summary(alice, place=DIRECT)
            summaries.append(summary.text.partition(".")[0] if summary else "")

    assert summaries == ["Lives in Lviv", "Lives in Kyiv"]


async def test_who_was_spoken_of_is_summed_up_anew() -> None:
    model = Scripted(
        answer((2, "Loves sushi.")),
        answer((1, "Works as a nurse."), key="work"),
        "Loves sushi. Works as a nurse.",
        answer((1, "Works as a pilot."), key="work"),
        "Loves sushi. Works as a pilot.",
    )
    alice = subject_of(ALICE, GROUP)
    async with a_store() as store:
        learner = a_learner(store, model)
        for heard in (
            (("hi", BOB), ("I love sushi", ALICE)),
            [("Alice works as a nurse", BOB)],
            [("Alice works as a pilot", BOB)],
        ):
            for text, author in heard:
                await hear(store, said(text, text, place=GROUP, author=author))
            await read(learner, GROUP)

        summary = await store.facts.summary(alice, place=GROUP)
    assert (summary and summary.text) == "Loves sushi. Works as a pilot."


@pytest.mark.parametrize("before", [True, False])
async def test_messages_that_change_while_they_are_read_are_read_again(before: bool) -> None:
    async with a_store() as store:

        class Editing(Scripted):
            async def respond(self, prompt: Any) -> Any:
                if len(self.prompts) == (0 if before else 1):
                    await edit(store, said("I live in Kyiv", 1))
                return await super().respond(prompt)

        model = Editing(*([] if before else [answer()]), answer((1, "Lives in Lviv.")), answer((1, "Lives in Kyiv.")))
        learner = a_learner(store, model)
        await hear(store, said("I live in Lviv" if before else "hm", 1), said("ok", 2))
        if not before:
            await read(learner)
            await edit(store, said("I live in Lviv", 1))
        await read(learner)

        assert await told(store) == ["Lives in Kyiv."]


@given(STEPS)
def test_whatever_happened_what_is_known_is_what_the_messages_say_now(steps: list[tuple[str, int, str]]) -> None:
    """Readers end at any moment, and edits come in between; the last of them reads the rest."""

    async def run() -> tuple[dict[str, set[str]], dict[str, set[str]]]:
        now: dict[str, str] = {}
        async with a_store() as store:
            learner = a_learner(store)
            for step, number, text in steps:
                if step == "say":
                    await hear(store, said(text, number))
                    now.setdefault(str(number), text)
                elif step == "edit":
                    await edit(store, said(text, number))
                    now |= {str(number): text} if now.get(str(number)) else {}
                elif step == "delete":
                    await store.inbox.delete(DIRECT, str(number), at=NOON)
                    now |= {str(number): ""} if str(number) in now else {}
                elif step == "read":
                    learner.wake(DIRECT)
                else:
                    await learner.close()
            await learner.close()
            await read(a_learner(store))
            assert await store.cursors.unread() == []
            known = {fact.text: set(fact.sources) for fact in await store.facts.listed()}
        stated = {STATED[text] for text in now.values() if text} - {""}
        return known, {fact: {number for number, text in now.items() if STATED.get(text) == fact} for fact in stated}

    known, expected = asyncio.run(run())

    assert known == expected
