from typing import Any

import pytest

from engine.engines import ALICE, BOB, DIRECT, GROUP, ME, engine_with, said, shared_by, talked
from people import NOON
from store.builders import add_own
from tertulia.context.values import Persona
from tertulia.decisions import Decision, Reason
from tertulia.engine.admission import Admission
from tertulia.engine.behavior import Behavior
from tertulia.engine.confirmations import Confirmations
from tertulia.engine.rate_limit import RateLimiter
from tertulia.engine.store_protocols import WaitingMessage
from tertulia.messages import Author, Message, Quote
from tertulia.models.scripted import Scripted
from tertulia.store import Store
from tertulia.testing import RecordedPlatform

ROBO = Author(id="9", name="Robo", persona="robo")


def admission(store: Store, behavior: Behavior | None = None) -> Admission:
    shared = shared_by(store, behavior=behavior)
    return Admission(shared, RateLimiter(store.rate_limits, shared.limits, now=shared.now), Confirmations(shared))


async def decided(admission: Admission, message: Message) -> Decision:
    [found] = await admission.decide(
        WaitingMessage(message=message, since=NOON, number=0), await admission.recipients(message.place)
    )
    return await admission.apply_limits(message, found)


async def received(store: Store, *authors: Author, deleted: bool = False) -> Message:
    """Messages to us in a group, one after another; the last one."""
    for number, author in enumerate(authors):
        message = said("Gryag, go on", number, place=GROUP, author=author)
        await store.inbox.receive(message, at=NOON)
        if deleted and number < len(authors) - 1:
            await store.inbox.delete(GROUP, str(number), at=NOON)
    return message


OURS = Author(id=ME.id, name=ME.name, persona=ME.name)

ALONE: list[tuple[list[Author], int, Reason]] = [
    ([ROBO], 2, "answered"),
    ([OURS, ROBO], 2, "answered"),
    ([OURS, ROBO, OURS, ROBO], 2, "agents in a row"),
    ([ALICE, ROBO, ROBO], 2, "answered"),
    ([ALICE, ROBO, ROBO, ROBO], 2, "agents in a row"),
    ([ROBO, ROBO, ROBO, ALICE, ROBO], 2, "answered"),
    ([ROBO], 0, "agents in a row"),
    ([OURS, ROBO], 1, "agents in a row"),
    ([ROBO, ROBO, ROBO, ROBO], 9, "answered"),
    ([ROBO, ROBO, ROBO, ALICE], 2, "answered"),
]


@pytest.mark.parametrize("deleted", [False, True])
@pytest.mark.parametrize(("authors", "most", "reason"), ALONE)
async def test_agents_are_answered_until_they_are_among_themselves_also_if_they_delete_what_they_said(
    store: Store, authors: list[Author], most: int, reason: Reason, deleted: bool
) -> None:
    last = await received(store, *authors, deleted=deleted)

    found = await decided(admission(store, Behavior(agents_in_a_row=most)), last)

    assert found.reason == reason


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
    assert (await decided(admission(store), said("Gryag?", author=author))).reason == "our own"


async def test_who_is_blocked_is_blocked_on_that_platform(store: Store) -> None:
    await store.place_settings.block(platform="recorded", author_id=ALICE.id, at=NOON)
    await store.place_settings.block(platform="icq", author_id=BOB.id, at=NOON)
    made = admission(store)

    assert (await decided(made, said("hi"))).reason == "blocked"
    assert (await decided(made, said("hi", author=BOB))).reason == "answered"


async def awaited(_: Message) -> bool:
    return True


def failing(_: Message) -> bool:
    raise RecursionError("very deep")


@pytest.mark.parametrize("rule", [failing, awaited, lambda: True])
@pytest.mark.filterwarnings("ignore:coroutine 'awaited' was never awaited")
async def test_a_rule_that_fails_answers_nothing_and_does_not_stand_in_the_way_of_what_is_said_to_us(
    store: Store, rule: Any, caplog: pytest.LogCaptureFixture
) -> None:
    made = admission(store, Behavior(answer_if=rule))

    assert (await decided(made, said("hm", 5, place=GROUP))).reason == "not addressed"
    assert (await decided(made, said("Gryag?", 6, place=GROUP))).reason == "answered"
    assert (await decided(made, said("hm", 7, place=DIRECT))).reason == "answered"
    (logged,) = [record.getMessage() for record in caplog.records]
    assert logged.startswith("Behavior.answer_if failed on message 5, which is not answered: ")


async def test_a_reply_that_says_only_which_message_it_answers_is_for_whoever_wrote_that(store: Store) -> None:
    ours, theirs = said("Hello!", 1, place=GROUP, author=OURS), said("Hi!", 2, place=GROUP, author=BOB)
    await add_own(store, ours, ())
    await store.inbox.receive(theirs, at=NOON)
    replies = [said("And you?", 3 + at, place=GROUP, reply_to=Quote(message_id=one)) for at, one in enumerate("129")]

    decisions = [(await decided(admission(store), reply)).reason for reply in replies]

    assert decisions == ["answered", "not addressed", "not addressed"]


async def test_the_persona_says_what_people_call_it_also_once_it_is_another(store: Store) -> None:
    platform, model = RecordedPlatform(), Scripted("Так?", "Я!")
    async with engine_with(model, platform, store=store, persona=Persona(name_pattern="гряг*|гряже")) as engine:
        await talked(engine, said("гряже, ти тут?", 1, place=GROUP), said("Марвіне!", 2, place=GROUP))
        engine.persona = Persona(name_pattern="Марвін*")
        await talked(engine, said("спитай гряга", 3, place=GROUP), said("Марвіне!", 4, place=GROUP))

    assert platform.texts == ["Так?", "Я!"]
