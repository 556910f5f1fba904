"""Messages that change are read again."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.engines import ALICE, DIRECT, said
from engine.memory.learners import STATED, Counting, a_learner, a_store, answer, hear, read, told
from people import NOON
from tertulia.memory.facts import subject_of
from tertulia.messages import Message
from tertulia.models.scripted import Scripted
from tertulia.store import Store

MESSAGES, SAYING = st.integers(0, 3), st.sampled_from(list(STATED))


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("say"), MESSAGES, SAYING),
        st.tuples(st.just("edit"), MESSAGES, SAYING),
        st.tuples(st.sampled_from(["delete", "read", "end"]), MESSAGES, st.just("")),
    ),
    max_size=14,
)


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
    async with a_store(tmp_path / "tertulia.db") as store:
        await hear(store, said("I live in Lviv", 1), said("hm", 2))
        await read(a_learner(store))
        await edit(store, said("I live in Kyiv", 1))

    async with a_store(tmp_path / "tertulia.db") as store:
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
