"""A model proposes to forget; the person concerned confirms it by a plain yes, and nobody else by anything else."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import pytest
from msgspec.structs import replace

from engine.engines import ALICE, AT_ONCE, BOB, DIRECT, GROUP, ME, engine_with, said, talked
from memory.known import a_fact
from people import NOON, a_photo
from store.builders import a_run, begin
from tertulia.engine.behavior import Behavior, forget_question
from tertulia.engine.confirmations import confirms, is_yes
from tertulia.engine.engine import Engine
from tertulia.engine.languages.lines import ENGLISH
from tertulia.engine.store_protocols import Proposal
from tertulia.errors import KeyRefused
from tertulia.memory.values import Fact
from tertulia.messages import Message, Place, Quote
from tertulia.models.base import Response
from tertulia.models.scripted import Scripted
from tertulia.parts import Text, ToolCall
from tertulia.platform import Capabilities, Commanded, Delivery
from tertulia.store import Store
from tertulia.store.messages import text_of
from tertulia.testing import RecordedPlatform
from tertulia.tools.memory import ENOUGH, MOST_PROPOSALS, memory_tools
from tertulia.turns import Prompt

CALL = [ToolCall(id="a", name="forget", args={"fact": "is allergic to peanuts"})]
ASKED = "I would forget: “is allergic to peanuts” Say yes, and it is forgotten."


def peanuts(place: Place = DIRECT) -> Fact:
    return a_fact("is allergic to peanuts", about=ALICE, place=place, id="f1", sources=("1",))


class Slow(Scripted):
    """A model while which something is said to the engine it answers for."""

    engine: Engine


async def talk(
    store: Store, model: Scripted, messages: Sequence[Message], platform: RecordedPlatform | None = None, **changes: Any
) -> RecordedPlatform:
    """Let people talk with an agent that knows one fact about Alice, from her first message."""
    screen = platform or RecordedPlatform(capabilities=Capabilities(idempotency_window=timedelta.max))
    named: dict[str, Any] = {"tools": memory_tools(store, changes.get("now", lambda: NOON)), "now": lambda: NOON}
    async with engine_with(model, screen, store=store, **named | changes) as engine:
        if isinstance(model, Slow):
            model.engine = engine
        for message in messages:
            await talked(engine, message)
            if message.id == "1":
                await store.facts.learn([peanuts(message.place)])
    return screen


async def known(store: Store) -> list[str]:
    return [fact.id for fact in await store.facts.listed()]


BEFORE = (said("I am allergic to peanuts", 1), said("please forget that", 2))


async def test_a_model_proposes_and_the_person_confirms(store: Store) -> None:
    model = Scripted("Noted.", CALL, "As you wish.", "Hello again.")

    screen = await talk(store, model, BEFORE)
    assert (screen.texts, await known(store)) == (["Noted.", "As you wish.", ASKED], ["f1"])
    assert "not forgotten yet" in str(model.prompts[2].turns)
    await talk(store, model, [said("Yes!", 3), said("hi", 4)], screen)

    assert screen.texts == ["Noted.", "As you wish.", ASKED, ENGLISH.forgotten, "Hello again."]
    assert await known(store) == []
    assert len(model.prompts) == 4  # the yes was never asked
    assert "peanut" not in str(model.prompts[3])
    assert await store.check() == []


async def test_the_answer_to_a_command_stands_between_no_proposal_and_its_yes(store: Store) -> None:
    screen = await talk(store, Scripted("Noted.", CALL, "As you wish."), BEFORE)

    async with engine_with(Scripted(), screen, store=store, now=lambda: NOON) as engine:
        command = Commanded(message=said("/memory", 90), name="memory")
        await engine.inbox(screen.name).apply([command], key="c1")
        await engine.settled()
        await talked(engine, said("yes", 3))

    assert "peanuts" in screen.texts[3]
    assert (screen.texts[4:], await known(store)) == ([ENGLISH.forgotten], [])


async def test_the_request_and_the_yes_are_hidden_with_what_they_forget(store: Store) -> None:
    model = Scripted("Noted.", CALL, "As you wish.", "Hello again.")
    request = said("the thing with the peanuts: out with it, please", 2)

    await talk(store, model, [BEFORE[0], request, said("Yes!", 3), said("hi", 4)])

    read = await store.log.read(DIRECT, 0, 99)
    assert [text_of(message) for message in read if not message.deleted] == ["hi", "Hello again."]
    assert "peanut" not in str(model.prompts[3])
    assert "Yes!" not in str(model.prompts[3])
    assert await store.check() == []


async def test_what_others_said_to_the_run_that_proposed_stays(store: Store) -> None:
    """In a group a run may take what others said on top; that is no part of the request."""
    await store.inbox.receive(said("I am allergic to peanuts", 1, place=GROUP), at=NOON)
    await store.inbox.receive(said("drop the nut thing", 2, place=GROUP), at=NOON)
    await store.inbox.receive(said("and tea for me", 3, place=GROUP, author=BOB), at=NOON)
    await store.facts.learn([peanuts(GROUP)])
    run = a_run(id="r1", place=GROUP, target="2", taken=("2", "3"))
    await begin(store, run)
    await store.proposals.propose(run.id, "f1", now=NOON, until=NOON + timedelta(hours=1), most=9)
    await store.runs.end(replace(run, status="done", ended_at=NOON))

    await store.facts.forget(["f1"], at=NOON)

    read = await store.log.read(GROUP, 0, 99)
    assert [text_of(message) for message in read if not message.deleted] == ["and tea for me"]


async def test_it_outlasts_the_process_and_happens_once(tmp_path: Path) -> None:
    lives: list[tuple[Sequence[Message], Scripted]] = [
        (BEFORE, Scripted("Noted.", CALL, "Ok.")),
        ([said("так", 3)], Scripted()),
        ([said("yes", 4)], Scripted("Hm?")),
    ]
    for messages, model in lives:
        async with Store.open(tmp_path / "kept.db") as store:
            screen = await talk(store, model, messages)
            facts = await known(store)

    assert (screen.texts, facts) == (["Hm?"], [])


def quoting(message_id: str) -> Quote:
    return Quote(message_id=message_id, author=ME, parts=(Text(text="?"),))


OTHERS: list[tuple[str, list[Message]]] = [
    ("no", [said("no", 3)]),
    ("a question", [said("yes?", 3)]),
    ("more than a yes", [said("yes, but keep the peanuts", 3)]),
    ("something else first", [said("what time is it?", 3), said("yes", 4)]),
    ("a yes to another message", [said("yes", 3, reply_to=quoting("1"))]),
    ("a yes elsewhere", [said("yes", 3, place=replace(DIRECT, id="8"))]),
    ("a yes of somebody else", [said("yes", 3, author=BOB)]),
    ("a picture", [said("", 3, parts=(Text(text="yes"), a_photo()))]),
]


@pytest.mark.parametrize(("what", "messages"), OTHERS, ids=[what for what, _ in OTHERS])
async def test_nothing_else_confirms(store: Store, what: str, messages: list[Message]) -> None:
    model = Scripted("Noted.", CALL, "Ok.", *["What do you mean?"] * len(messages))

    screen = await talk(store, model, [*BEFORE, *messages])

    assert screen.texts[2:] == [ASKED, *["What do you mean?"] * len(messages)]
    assert await known(store) == ["f1"]


async def test_a_proposal_expires(store: Store) -> None:
    model = Scripted("Noted.", CALL, "Ok.", "Yes what?")
    await talk(store, model, BEFORE)

    await talk(store, model, [said("yes", 3)], now=lambda: NOON + timedelta(minutes=61))

    assert await known(store) == ["f1"]


async def test_what_was_never_shown_cannot_be_confirmed(store: Store) -> None:
    model = Scripted("Noted.", CALL, KeyRefused("no"), "Yes what?")

    screen = await talk(store, model, [*BEFORE, said("yes", 3)])

    assert ASKED not in screen.texts
    assert await known(store) == ["f1"]


async def test_a_yes_that_came_before_it_was_shown_is_a_yes_to_something_else(store: Store) -> None:
    class Early(Slow):
        async def respond(self, prompt: Prompt) -> Response:
            if len(self.prompts) == 2:
                await self.engine.receive(said("yes", 3))
            return await super().respond(prompt)

    model = Early("Noted.", CALL, "Ok.", "Yes what?")

    screen = await talk(store, model, BEFORE)

    assert screen.texts == ["Noted.", "Ok.", ASKED, "Yes what?"]
    assert await known(store) == ["f1"]


async def test_a_yes_to_what_the_agent_is_just_saying_confirms_nothing(store: Store) -> None:
    class Quick(RecordedPlatform):
        """Shows a question, to which somebody says yes before the engine knows that it was shown."""

        async def send(self, delivery: Delivery) -> str:
            shown = await super().send(delivery)
            if delivery.reply.text == "Do you like tea?":
                await store.inbox.receive(said("yes", 3), at=NOON)
            return shown

    later = "Ok.\n# «wait»\ndelay: 0\n# «send»\nDo you like tea?"
    model = Scripted("Noted.", CALL, later, "Then tea it is.")

    screen = await talk(store, model, BEFORE, Quick(capabilities=Capabilities(idempotency_window=timedelta.max)))
    async with engine_with(model, screen, store=store, now=lambda: NOON) as engine:
        await engine.settled()

    assert screen.texts[2:] == [ASKED, "Do you like tea?", "Then tea it is."]
    assert await known(store) == ["f1"]


@pytest.mark.parametrize("change", ["edit", "delete"])
async def test_a_yes_that_was_taken_back_confirms_nothing(store: Store, change: str) -> None:
    model = Scripted("Noted.", CALL, "Ok.")
    await talk(store, model, BEFORE)
    yes = said("yes", 3)
    await store.inbox.receive(yes, at=NOON)
    assert [one.fact.id for one in await store.proposals.candidates(yes, now=NOON)] == ["f1"]

    if change == "edit":
        await store.inbox.edit(said("no, keep it", 3), at=NOON)
    else:
        await store.inbox.delete(DIRECT, "3", at=NOON)

    assert await store.proposals.candidates(yes, now=NOON) == []


async def test_a_person_is_asked_about_few_facts_at_once(store: Store) -> None:
    texts = [f"owns a boat called {letter * 4}" for letter in ascii_lowercase[: MOST_PROPOSALS + 2]]
    calls = [ToolCall(id=str(at), name="forget", args={"fact": text}) for at, text in enumerate(texts)]
    model = Scripted("Noted.", calls, "Ok.")
    screen = RecordedPlatform(capabilities=Capabilities(idempotency_window=timedelta.max))
    tools = memory_tools(store, lambda: NOON)
    async with engine_with(model, screen, store=store, tools=tools, now=lambda: NOON) as engine:
        await talked(engine, said("I own many boats", 1))
        await store.facts.learn([replace(peanuts(), id=text, text=text) for text in texts])
        await talked(engine, said("please forget them", 2))

    assert screen.texts[-1] == forget_question([replace(peanuts(), text=text) for text in texts[:MOST_PROPOSALS]])
    assert str(model.prompts[-1].turns).count(ENOUGH) == 2


IN_A_GROUP = (said("Gryag, I am allergic to peanuts", 1, place=GROUP), said("Gryag, forget that", 2, place=GROUP))
SHOWN = 2  # the proposal, among what the agent has said


@pytest.mark.parametrize(
    ("before", "yes"), [(BEFORE, said("yes", 3)), (IN_A_GROUP, said("Gryag, yes", 3, place=GROUP))]
)
async def test_what_comes_with_a_yes_is_answered_after_it(
    store: Store, before: Sequence[Message], yes: Message
) -> None:
    model = Scripted("Noted.", CALL, "Ok.", "It is noon.")
    clock: dict[str, Any] = {"now": lambda: datetime.now(UTC)}
    screen = await talk(store, model, before, **clock)

    async with engine_with(model, screen, store=store, behavior=Behavior(debounce=0.05), **clock) as engine:
        for message in (yes, said("and what time is it?", 4, place=yes.place)):
            await engine.receive(message)
        await engine.settled()

    assert screen.texts[3:] == [ENGLISH.forgotten, "It is noon."]
    assert await known(store) == []


@pytest.mark.parametrize(
    ("message", "forgotten"),
    [
        (said("Gryag, yes", 3, place=GROUP), True),
        (said("@gryag_bot так", 3, place=GROUP), True),
        (said("yes", 3, place=GROUP, reply_to=quoting("SHOWN")), True),
        (said("yes", 3, place=GROUP, author=BOB, reply_to=quoting("SHOWN")), False),
        (said("Gryag, yes", 3, place=GROUP, author=BOB), False),
        (said("yes", 3, place=GROUP), False),
    ],
)
@pytest.mark.parametrize("rule", [None, lambda _: True])
async def test_in_a_group_the_person_says_yes_to_us(store: Store, message: Message, forgotten: bool, rule: Any) -> None:
    model = Scripted("Noted.", CALL, "Ok.", "Hm.")
    how = replace(AT_ONCE, answer_if=rule)
    screen = await talk(store, model, IN_A_GROUP, behavior=how)
    if message.reply_to:
        message = replace(message, reply_to=quoting(list(screen.shown)[SHOWN]))

    await talk(store, model, [message], screen, behavior=how)

    assert await known(store) == ([] if forgotten else ["f1"])


async def test_a_yes_is_not_taken_into_the_run_of_somebody_else(store: Store) -> None:
    class Meanwhile(Slow):
        async def respond(self, prompt: Prompt) -> Response:
            if len(self.prompts) == 3:
                quote = quoting(list(screen.shown)[SHOWN])
                await self.engine.receive(said("yes", 4, place=GROUP, reply_to=quote))
            return await super().respond(prompt)

    look = [ToolCall(id="b", name="recall", args={})]
    model = Meanwhile("Noted.", CALL, "Ok.", look, "Hello Bob.")
    how = Behavior(debounce=0.0, during_run="next_step")
    screen = await talk(store, model, IN_A_GROUP, behavior=how)

    await talk(store, model, [said("Gryag, hi", 3, place=GROUP, author=BOB)], screen, behavior=how)

    assert screen.texts[3:] == ["Hello Bob.", ENGLISH.forgotten]
    assert await known(store) == []


YES = "Yes!|ye\u200bs|\u2067Gry\u00adag, yes\u2069|yes, please|OK.|так|Так, будь ласка|да|ок|ja|Sí|はい|👍🏽|Gryag: yes"


@pytest.mark.parametrize("text", YES.split("|"))
def test_a_plain_yes_in_many_languages(text: str) -> None:
    assert is_yes(said(text), ["Gryag"])


@pytest.mark.parametrize(
    "text", "no|yes?|ні|yes and no|yesterday|not ok|ok, but why|y e s|Bob: yes|yes yes|".split("|")
)
def test_anything_more_is_none(text: str) -> None:
    assert not is_yes(said(text), ["Gryag"])


@pytest.mark.parametrize(
    ("quoted", "since", "is_last", "confirmed"),
    [
        (None, (), True, True),
        (None, (), False, False),
        (None, (BOB.id,), True, True),
        (None, (ALICE.id,), True, False),
        ("p", (), False, True),
        ("p", (ALICE.id,), False, False),
        ("q", (), True, False),
    ],
)
def test_a_yes_confirms_what_it_quotes_or_what_was_said_last(
    quoted: str | None, since: tuple[str, ...], is_last: bool, confirmed: bool
) -> None:
    proposal = Proposal(fact=peanuts(), shown_as="p", authors_since=frozenset(since), is_last=is_last)

    assert confirms(said("yes", reply_to=quoting(quoted) if quoted else None), proposal) is confirmed


def test_a_forwarded_yes_is_none() -> None:
    assert not is_yes(said("yes", forwarded_from=ALICE), ["Gryag"])


def test_several_facts_are_proposed_line_by_line() -> None:
    facts = [peanuts(), replace(peanuts(), text="likes tea")]

    assert forget_question(facts).splitlines() == [
        "I would forget:",
        "- is allergic to peanuts",
        "- likes tea",
        "Say yes, and all of it is forgotten.",
    ]
