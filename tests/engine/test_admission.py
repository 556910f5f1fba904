from types import SimpleNamespace
from typing import Any

import pytest

from engine.engines import ALICE, BOB, DIRECT, GROUP, ME, engine_with, nobody, said, talked
from palaver.context.values import Persona
from palaver.engine.admission import Admission
from palaver.engine.behavior import TOO_MANY, Behavior
from palaver.engine.builtin_tasks import BuiltinTasks
from palaver.engine.identity import Identity
from palaver.engine.triggers import Decision, RateLimit
from palaver.errors import StoreFull
from palaver.messages import Author, Message, Quote
from palaver.models.scripted import Scripted
from palaver.store import Store
from palaver.store.coordination import RateLimits
from palaver.testing import RecordedPlatform
from people import NOON

ROBO = Author(id="9", name="Robo", persona="robo")
TWICE = Behavior(burst=0.0, limit=RateLimit(messages=2, seconds=60))


@pytest.fixture
def clock(store: Store) -> SimpleNamespace:
    """The clock of the store's rate limits, which only goes forward; `clock.at` is what it says."""
    made = SimpleNamespace(at=0.0)
    store.rate_limits = RateLimits(lambda: made.at)
    return made


def judge(store: Store, behavior: Behavior | None = None) -> Admission:
    duties = BuiltinTasks(
        store.place_settings, store.facts, store.log, Behavior(), administers=nobody, now=lambda: NOON
    )
    selves = Identity(Persona(), {"recorded": RecordedPlatform()})
    return Admission(store.log, duties, selves, behavior or Behavior(), store.rate_limits)


async def received(store: Store, *authors: Author, deleted: bool = False) -> Message:
    """Messages to us in a group, one after another; the last one."""
    for number, author in enumerate(authors):
        message = said("Gryag, go on", number, place=GROUP, author=author)
        await store.inbox.receive(message, at=NOON)
        if deleted and number < len(authors) - 1:
            await store.inbox.delete(GROUP, str(number), at=NOON)
    return message


OURS = Author(id=ME.id, name=ME.name, persona=ME.name)

ALONE: list[tuple[list[Author], int, Decision]] = [
    ([ROBO], 2, "answer"),
    ([OURS, ROBO], 2, "answer"),
    ([OURS, ROBO, OURS, ROBO], 2, "an agent's turn too many"),
    ([ALICE, ROBO, ROBO], 2, "answer"),
    ([ALICE, ROBO, ROBO, ROBO], 2, "an agent's turn too many"),
    ([ROBO, ROBO, ROBO, ALICE, ROBO], 2, "answer"),
    ([ROBO], 0, "an agent's turn too many"),
    ([OURS, ROBO], 1, "an agent's turn too many"),
    ([ROBO, ROBO, ROBO, ROBO], 9, "answer"),
    ([ROBO, ROBO, ROBO, ALICE], 2, "answer"),
]


@pytest.mark.parametrize("deleted", [False, True])
@pytest.mark.parametrize(("authors", "most", "verdict"), ALONE)
async def test_agents_are_answered_until_they_are_among_themselves_also_if_they_delete_what_they_said(
    store: Store, authors: list[Author], most: int, verdict: Decision, deleted: bool
) -> None:
    last = await received(store, *authors, deleted=deleted)

    found = await (judge(store, Behavior(agents_in_a_row=most))).verdict(last)

    assert found == verdict


async def test_two_agents_that_delete_what_they_say_stop_too() -> None:
    """Each answer of ours is deleted as well, so that nothing is left of the talk but its length."""
    platform, model = RecordedPlatform(), Scripted(*["No, you."] * 20)

    async with engine_with(model, platform) as engine:
        for number in range(10):
            await talked(engine, said("Gryag, go on!", number, place=GROUP, author=ROBO))
            await engine.delete(GROUP, str(number))
            for message_id in list(platform.shown):
                await engine.delete(GROUP, message_id)

    assert len(platform.texts) <= 2


@pytest.mark.parametrize("author", [OURS, ME, Author(id=ME.id, name="renamed", persona="renamed")])
async def test_our_own_messages_are_not_answered(store: Store, author: Author) -> None:
    assert await (judge(store)).verdict(said("Gryag?", author=author)) == "our own"


async def test_who_is_blocked_is_blocked_on_that_platform(store: Store) -> None:
    await store.place_settings.block("recorded", ALICE.id, at=NOON)
    await store.place_settings.block("icq", BOB.id, at=NOON)
    made = judge(store)

    assert await made.verdict(said("hi")) == "blocked"
    assert await made.verdict(said("hi", author=BOB)) == "answer"


async def awaited(_: Message) -> bool:
    return True


def failing(_: Message) -> bool:
    raise RecursionError("very deep")


@pytest.mark.parametrize("rule", [failing, awaited, lambda: True])
@pytest.mark.filterwarnings("ignore:coroutine 'awaited' was never awaited")
async def test_a_rule_that_fails_answers_nothing_and_does_not_stand_in_the_way_of_what_is_said_to_us(
    store: Store, rule: Any, caplog: pytest.LogCaptureFixture
) -> None:
    made = judge(store, Behavior(rule=rule))

    assert await made.verdict(said("hm", 5, place=GROUP)) == "not addressed"
    assert await made.verdict(said("Gryag?", 6, place=GROUP)) == "answer"
    assert await made.verdict(said("hm", 7, place=DIRECT)) == "answer"
    (logged,) = [record.getMessage() for record in caplog.records]
    assert logged.startswith("the rule failed on message 5; it is not answered: ")


async def test_an_author_is_admitted_so_often_in_all_places(store: Store, clock: SimpleNamespace) -> None:
    made = judge(store, TWICE)
    here, there = said("hi"), said("Gryag?", place=GROUP)

    assert [await made.admits(here), await made.admits(there), await made.admits(here)] == [True, True, False]
    assert await made.verdict(there) == "too many"
    assert await made.verdict(said("hi", author=BOB)) == "answer"
    clock.at = 60.0
    assert await made.verdict(there) == "answer"
    assert await made.admits(there)


async def test_what_was_not_admitted_does_not_count(store: Store, clock: SimpleNamespace) -> None:
    made = judge(store, TWICE)
    for clock.at in (0.0, 10.0, 20.0, 59.0):
        await made.admits(said("hi"))

    clock.at = 60.0

    assert [await made.admits(said("hi")), await made.admits(said("hi"))] == [True, False]


async def test_an_admission_that_is_taken_back_does_not_count(store: Store, clock: SimpleNamespace) -> None:
    made = judge(store, TWICE)
    await made.admits(said("hi"))
    await made.admits(said("hi"))

    await made.take_back(said("hi"))

    assert [await made.admits(said("hi")), await made.admits(said("hi"))] == [True, False]


async def test_of_too_many_messages_there_is_one_notice_then_silence_and_a_notice_again_after_an_answer(
    store: Store, clock: SimpleNamespace
) -> None:
    platform, numbers = RecordedPlatform(), iter(range(99))
    behavior = Behavior(burst=0.0, limit=RateLimit(messages=1, seconds=60))

    async with engine_with(Scripted("1", "2", "3"), platform, store=store, behavior=behavior) as engine:
        for clock.at in (0, 1, 2, 59, 60, 61, 62, 300, 301):
            await talked(engine, said("hi", next(numbers)))

    assert platform.texts == ["1", TOO_MANY, "2", TOO_MANY, "3", TOO_MANY]


async def test_a_notice_for_which_there_was_no_room_does_not_make_room_for_an_answer(store: Store) -> None:
    """The disk is full for a while, just when the author is to be told."""

    class Runs:
        def __init__(self) -> None:
            self.full = 3

        def __getattr__(self, name: str) -> Any:
            return getattr(store.runs, name)

        async def end(self, run: Any, **changes: Any) -> None:
            if self.full and run.status == "failed":
                self.full -= 1
                raise StoreFull("there is no room left")
            await store.runs.end(run, **changes)

    async def sleep(_: float) -> None: ...

    little: Any = SimpleNamespace(**vars(store) | {"runs": Runs()})
    platform, model = RecordedPlatform(), Scripted("1", "2", "3", "4")
    async with engine_with(model, platform, store=little, behavior=TWICE, sleep=sleep) as engine:
        await talked(engine, *(said("hi", number) for number in range(6)))

    assert platform.texts == ["1", "2", TOO_MANY]


async def test_a_reply_that_says_only_which_message_it_answers_is_for_whoever_wrote_that(store: Store) -> None:
    ours, theirs = said("Hello!", 1, place=GROUP, author=OURS), said("Hi!", 2, place=GROUP, author=BOB)
    await store.inbox.own(ours, ())
    await store.inbox.receive(theirs, at=NOON)
    replies = [said("And you?", 3 + at, place=GROUP, reply_to=Quote(message_id=one)) for at, one in enumerate("129")]

    verdicts = [await judge(store).verdict(reply) for reply in replies]

    assert verdicts == ["answer", "not addressed", "not addressed"]
