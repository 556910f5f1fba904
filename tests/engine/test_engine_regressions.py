"""What the state machine found once, told plainly."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from itertools import count
from typing import Any

import msgspec
import pytest

from engine.engine_world import Talker, World
from people import ALICE, BOB, a_message
from sizes import size
from tertulia import Behavior, Engine, Message, Place, Text
from tertulia.engine.background import RealClock
from tertulia.engine.limits import Limits
from tertulia.engine.place_worker import STOPPED
from tertulia.errors import StoreFull, StoreRefused
from tertulia.tasks.task import Task

EVERY = size(4, full=1)  # of the moments at which something happens
HERE = Place(platform="keyed", id="1", kind="direct")
FRIENDS = Place(platform="keyed", id="2", kind="group")


def an_engine(world: World, *, limits: Limits | None = None, **behavior: Any) -> Engine:
    """An engine at work in *world*."""
    model = Talker("gemini-3.8-flash", world, world.life)
    engine = Engine(
        world.store,
        model,
        world.walls.values(),
        tools=world.toolbox(),
        behavior=Behavior(**{"debounce": 0.0} | behavior),
        limits=limits,
        clock=RealClock(now=world.now),
    )
    world.loop.run(engine.start())
    return engine


def said(name: str, **changes: Any) -> Message:
    return a_message(id=name, place=HERE, **changes)


def shown(world: World) -> list[str]:
    return world.walls["keyed"].texts


@pytest.mark.parametrize("ticks", range(6))
def test_a_message_whose_delivery_was_given_up_half_way_is_answered_when_it_is_delivered_again(
    world: World, ticks: int
) -> None:
    engine = an_engine(world)
    delivery = world.loop.create_task(engine.receive(said("m1")))
    world.loop.tick(ticks)
    delivery.cancel()
    world.loop.tick(3)

    world.loop.run(engine.receive(said("m1")))
    world.loop.run(engine.settled())

    assert shown(world) == ["Answer 0."]


@pytest.mark.parametrize("ticks", range(5, 50, EVERY))
def test_a_run_that_is_stopped_ends_without_an_answer_or_with_one_that_goes_out(world: World, ticks: int) -> None:
    engine = an_engine(world)
    world.loop.run(engine.receive(said("m1")))
    world.loop.tick(ticks)

    engine.stop(HERE)
    world.loop.run(engine.settled())

    assert {status for (status,) in world.rows("outbox", "status")} <= {"sent"}
    ((status, why),) = world.rows("runs", "status", "why")
    assert (status, why, shown(world)) in [("failed", STOPPED, []), ("done", "", ["Answer 0."])]


@pytest.mark.parametrize("stopped", [False, True])
def test_a_run_that_ends_badly_keeps_the_messages_it_took_on_and_how_far_it_saw(world: World, stopped: bool) -> None:
    engine = an_engine(world, during_run="next_step")
    world.script.extend(["calls", "slow" if stopped else "key"])
    world.loop.run(engine.receive(said("m1", author=ALICE)))
    world.loop.tick(60)  # the tool is under way
    world.loop.run(engine.receive(said("m2", author=BOB)))
    if stopped:
        world.loop.run(asyncio.sleep(2))
        engine.stop(HERE)

    world.loop.run(engine.settled())

    ((taken, horizon, status),) = world.rows("runs", "message_ids", "horizon", "status")
    assert (msgspec.json.decode(taken), horizon, status) == (["m1", "m2"], 1, "failed")
    reasons = [(int(run is None), reason) for run, reason in world.rows("decisions", "run_id", "reason")]
    assert reasons == [(0, "answered"), (0, "joined")]


@pytest.mark.parametrize("says", ["key", "slow"])
@pytest.mark.parametrize("ticks", range(0, 40, EVERY))
def test_a_run_whose_target_was_deleted_before_it_began_ends_badly_as_it_began(
    world: World, ticks: int, says: str
) -> None:
    engine = an_engine(world, debounce=1.0)
    world.script.append(says)
    for name in ("m1", "m2"):
        world.loop.run(engine.receive(a_message("@gryag_bot well?", id=name, place=FRIENDS)))
    world.loop.run(asyncio.sleep(1))
    world.loop.tick(ticks)
    world.loop.run(engine.delete(FRIENDS, "m2"))
    if says == "slow":
        world.loop.run(asyncio.sleep(2))
        engine.stop(FRIENDS)

    world.loop.run(engine.settled())

    ((target, taken, status),) = world.rows("runs", "target", "message_ids", "status")
    lines = [] if says == "slow" else [target]
    assert (target, msgspec.json.decode(taken), status) in [
        ("m1", ["m1"], "failed"),
        ("m2", ["m1", "m2"], "failed"),
    ]
    assert [reply.reply_to for reply in world.walls["keyed"].shown.values()] == lines


def test_what_a_run_has_tried_is_kept_also_when_nothing_has_helped(world: World) -> None:
    engine = an_engine(world)
    world.script.extend(["empty"] * 12)
    world.loop.run(engine.receive(said("m1", parts=(Text(text="hm"),))))

    world.loop.run(engine.settled())

    assert world.rows("runs", "status") == [("failed",)]
    assert world.rows("prompts", "fallback")[:2] == [(None,), ("again",)]


@pytest.mark.parametrize("ticks", range(0, 40, EVERY))
def test_a_run_that_is_stopped_while_it_is_taken_up_again_does_not_stay_open(world: World, ticks: int) -> None:
    world.script.append("slow")
    world.loop.run(an_engine(world).receive(said("m1")))
    world.loop.tick(40)
    world.kill()
    world.open()
    engine = an_engine(world)
    world.loop.tick(ticks)

    engine.stop(HERE)
    world.loop.run(engine.settled())

    ((status, why),) = world.rows("runs", "status", "why")
    assert (status, why, len(shown(world))) in [("failed", STOPPED, 0), ("done", "", 1)]


def test_a_reply_whose_receipt_was_lost_is_held_once_the_platform_may_have_forgotten_its_key(world: World) -> None:
    engine = an_engine(world)
    world.walls["keyed"].faults.extend(["sent, unknown", *["not now"] * 10])
    world.loop.run(engine.receive(said("m1")))

    world.loop.run(engine.settled())

    assert shown(world) == ["Answer 0."]
    assert world.rows("outbox", "status") == [("doubtful",)]


def test_a_reply_that_is_in_doubt_stays_in_doubt_through_a_crash_though_a_later_attempt_did_not_go_out(
    world: World,
) -> None:
    engine = an_engine(world)
    world.walls["keyed"].faults.extend(["sent, unknown", *["not now"] * 3])
    world.loop.run(engine.receive(said("m1")))
    world.loop.run(asyncio.sleep(2))
    world.kill()
    world.loop.run(asyncio.sleep(700))
    world.open()

    world.loop.run(an_engine(world).settled())

    assert shown(world) == ["Answer 0."]
    assert world.rows("outbox", "status") == [("doubtful",)]


@pytest.mark.parametrize("ticks", range(4))
def test_an_engine_that_is_woken_at_the_moment_it_is_closed_closes(world: World, ticks: int) -> None:
    engine = an_engine(world)
    later = Task(id="t", kind="send", place=HERE, due_at=world.now() + timedelta(seconds=90), args={"text": "hi"})
    world.loop.run(engine.schedule([later]))
    world.loop.tick(20)  # the worker is asleep until then

    engine._parts.tasks.wake()  # noqa: SLF001 (whatever wakes it from outside takes ticks of the loop)
    if ticks:
        world.loop.tick(ticks)
    world.loop.run(engine.close())

    assert world.rows("tasks", "status") == [("pending",)]


@pytest.mark.parametrize("ticks", range(20, 60, EVERY))
def test_a_run_that_is_stopped_while_it_fails_does_not_stay_open(world: World, ticks: int) -> None:
    engine = an_engine(world)
    world.script.append("key")
    world.loop.run(engine.receive(said("m1")))
    world.loop.tick(ticks)

    engine.stop(HERE)
    world.loop.run(engine.settled())

    ((status,),), shown_once = world.rows("runs", "status"), len(world.rows("outbox", status="sent"))
    assert (status, shown_once) in [("failed", 0), ("failed", 1)]


@pytest.mark.parametrize("edited", [False, True])
def test_words_that_no_model_was_shown_are_not_shown_once_they_are_taken_back(world: World, edited: bool) -> None:
    """The author was only told that it was too much."""
    engine = an_engine(world, limits=Limits(messages=1, seconds=3600))
    for name, text in (("m1", "hello"), ("m2", "my word is aubergine")):
        world.loop.run(engine.receive(said(name, parts=(Text(text=text),))))
        world.loop.run(engine.settled())
    changed = said("m2", parts=(Text(text="never mind"),))
    world.loop.run(engine.edit(changed) if edited else engine.delete(HERE, "m2"))

    world.loop.run(engine.receive(said("m3", author=BOB)))
    world.loop.run(engine.settled())

    assert len(shown(world)) == 3
    assert not any("aubergine" in suffix for (suffix,) in world.rows("layers", "suffix"))


@pytest.mark.parametrize("ticks", range(0, 40, EVERY))
def test_what_is_deleted_before_a_run_begins_is_not_asked(world: World, ticks: int) -> None:
    engine = an_engine(world)
    world.loop.run(engine.receive(said("m1")))
    world.loop.tick(ticks)
    world.loop.run(engine.delete(HERE, "m1"))
    begun = len(world.rows("runs"))

    world.loop.run(engine.settled())

    assert len(world.rows("runs")) == begun
    assert len(shown(world)) == begun


def test_a_disk_that_is_full_for_long_does_not_use_up_the_times_a_run_is_taken_up(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is small still finds room."""
    engine = an_engine(world, max_resumes=2)
    keep, times = world.store.runs.add_record, count()

    async def kept(*what: Any, **named: Any) -> None:
        if next(times) < 20:
            raise StoreFull("there is no room left")
        await keep(*what, **named)

    monkeypatch.setattr(world.store.runs, "add_record", kept)
    world.loop.run(engine.receive(said("m1")))
    world.loop.run(engine.settled())

    assert [text.startswith("Answer") for text in shown(world)] == [True]
    assert world.rows("runs", "status", "resumes") == [("done", 1)]


def test_a_run_is_not_forgotten_when_the_store_fails_twice(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = an_engine(world)
    for name in ("add_record", "open"):  # its answer is not kept, and then nobody knows what was begun
        works, times = getattr(world.store.runs, name), count()

        async def fails_once(*what: Any, works: Any = works, times: Iterator[int] = times, **named: Any) -> Any:
            if next(times) == 0:
                raise StoreRefused("the disk is ill")
            return await works(*what, **named)

        monkeypatch.setattr(world.store.runs, name, fails_once)
    world.loop.run(engine.receive(said("m1")))

    world.loop.run(engine.settled())

    assert (len(shown(world)), world.rows("runs", "status")) == (1, [("done",)])


@pytest.mark.parametrize("seconds", [0.0, 10.0])
def test_a_run_that_is_stopped_while_nothing_can_be_kept_is_not_answered_later(world: World, seconds: float) -> None:
    engine = an_engine(world)
    world.script.append("slow")
    world.loop.run(engine.receive(said("m1")))
    world.loop.tick(40)
    world.life.room = 0
    world.loop.run(asyncio.sleep(seconds))  # in which the model answers, and that cannot be kept

    engine.stop(HERE)
    world.loop.run(asyncio.sleep(5))
    world.life.room = None
    world.loop.run(engine.settled())

    assert (shown(world), world.rows("runs", "status", "why")) == ([], [("failed", STOPPED)])


def test_what_was_deleted_before_it_was_asked_does_not_count(world: World) -> None:
    engine = an_engine(world, limits=Limits(messages=1, seconds=3600), max_runs=1)
    there = msgspec.structs.replace(HERE, id="2")
    slots = engine._parts.workers._parts.slots  # noqa: SLF001 (a run that waits for its model holds none)
    world.loop.run(slots.acquire())
    world.loop.run(engine.receive(msgspec.structs.replace(said("m2"), place=there)))
    world.loop.tick(40)  # it waits for a slot
    world.loop.run(engine.delete(there, "m2"))
    slots.release()
    world.loop.run(engine.settled())

    world.loop.run(engine.receive(said("m3")))
    world.loop.run(engine.settled())

    assert [text.startswith("Answer") for text in shown(world)] == [True]


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize(
    ("faults", "became"),
    [
        (["never", "sent, unknown"], "sent"),  # refused, and its plain form perhaps sent
        (["sent, unknown", "never"], "doubtful"),  # perhaps sent, and then refused
    ],
)
def test_what_a_service_may_know_by_its_key_goes_again_with_the_same_content(
    world: World, faults: list[str], became: str, *, killed: bool
) -> None:
    wall = world.walls["keyed"]
    wall.faults.extend(faults)
    engine = an_engine(world)
    asked = a_message("@gryag_bot well?", id="m1", place=FRIENDS)  # in a group the answer quotes it
    world.loop.run(engine.receive(asked))
    if killed:
        while not wall.made:
            world.loop.tick(1)
        world.kill()
        world.open()
        engine = an_engine(world)
    world.loop.run(engine.settled())

    assert (wall.wrong, shown(world), world.rows("outbox", "status")) == ([], ["Answer 0."], [(became,)])
