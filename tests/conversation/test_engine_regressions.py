"""What the state machine found once, told plainly."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from conversation.engine_world import Talker, World
from palaver import Conduct, Engine, Message, Place, Text
from palaver.conversation.engine import STOPPED
from palaver.tasks.values import Task
from people import ALICE, BOB, a_message

HERE = Place(platform="keyed", id="1", kind="direct")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "kept.db")
    yield made
    made.close()


def an_engine(world: World, **conduct: Any) -> Engine:
    """An engine at work in *world*."""
    model = Talker("gemini-3.8-flash", world, world.life)
    engine = Engine(
        world.store,
        model,
        world.walls.values(),
        tools=world.toolbox(),
        conduct=Conduct(burst=0.0, **conduct),
        now=world.now,
    )
    world.loop.run(engine.start())
    return engine


def said(name: str, **changes: Any) -> Message:
    return a_message(id=name, place=HERE, **changes)


def shown(world: World) -> list[str]:
    return [reply.text for _, reply, _ in world.walls["keyed"].shown]


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


@pytest.mark.parametrize("ticks", range(5, 50))
def test_a_run_that_is_stopped_ends_without_an_answer_or_with_one_that_goes_out(world: World, ticks: int) -> None:
    engine = an_engine(world)
    world.loop.run(engine.receive(said("m1")))
    world.loop.tick(ticks)

    engine.stop(HERE)
    world.loop.run(engine.settled())

    assert world.rows("SELECT outgoing_id FROM outbox WHERE status != 'sent'") == []
    ((status, why),) = world.rows("SELECT status, why FROM runs")
    assert (status, why, shown(world)) in [("failed", STOPPED, []), ("done", "", ["Answer 0."])]


@pytest.mark.parametrize("stopped", [False, True])
def test_a_run_that_ends_badly_keeps_the_messages_it_took_on_and_how_far_it_saw(world: World, stopped: bool) -> None:
    engine = an_engine(world, during="next step")
    world.script.extend(["calls", "slow" if stopped else "key"])
    world.loop.run(engine.receive(said("m1", author=ALICE)))
    world.loop.tick(60)  # the tool is under way
    world.loop.run(engine.receive(said("m2", author=BOB)))
    if stopped:
        world.loop.run(asyncio.sleep(2))
        engine.stop(HERE)

    world.loop.run(engine.settled())

    ((taken, horizon, status),) = world.rows("SELECT taken, horizon, status FROM runs")
    assert (msgspec.json.decode(taken), horizon, status) == (["m1", "m2"], 1, "failed")
    assert world.rows("SELECT DISTINCT run_id IS NULL, state FROM messages WHERE state != 'own'") == [(0, "taken")]


def test_the_rungs_that_a_run_has_climbed_are_kept_also_when_none_has_helped(world: World) -> None:
    engine = an_engine(world)
    world.script.extend(["empty"] * 12)
    world.loop.run(engine.receive(said("m1", parts=(Text(text="hm"),))))

    world.loop.run(engine.settled())

    ((status, rungs),) = world.rows("SELECT status, rungs FROM runs")
    assert (status, msgspec.json.decode(rungs)[:1]) == ("failed", ["again"])


@pytest.mark.parametrize("ticks", range(40))
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

    ((status, why),) = world.rows("SELECT status, why FROM runs")
    assert (status, why, len(shown(world))) in [("failed", STOPPED, 0), ("done", "", 1)]


def test_a_reply_whose_receipt_was_lost_is_held_once_the_platform_may_have_forgotten_its_key(world: World) -> None:
    engine = an_engine(world)
    world.walls["keyed"].faults.extend(["sent, unknown", *["not now"] * 10])
    world.loop.run(engine.receive(said("m1")))

    world.loop.run(engine.settled())

    assert shown(world) == ["Answer 0."]
    assert world.rows("SELECT status FROM outbox") == [("doubtful",)]


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
    assert world.rows("SELECT status FROM outbox") == [("doubtful",)]


@pytest.mark.parametrize("ticks", range(4))
def test_an_engine_that_is_woken_at_the_moment_it_is_closed_closes(world: World, ticks: int) -> None:
    engine = an_engine(world)
    later = Task(id="t", kind="send", place=HERE, due_at=world.now() + timedelta(seconds=90), args={"text": "hi"})
    world.loop.run(engine.schedule([later]))
    world.loop.tick(20)  # the worker is asleep until then

    engine._worker.wake()
    if ticks:
        world.loop.tick(ticks)
    world.loop.run(engine.close())

    assert engine._working is None


@pytest.mark.parametrize("ticks", range(20, 60))
def test_a_run_that_is_stopped_while_it_fails_does_not_stay_open(world: World, ticks: int) -> None:
    engine = an_engine(world)
    world.script.append("key")
    world.loop.run(engine.receive(said("m1")))
    world.loop.tick(ticks)

    engine.stop(HERE)
    world.loop.run(engine.settled())

    ((status, shown_once),) = world.rows("SELECT status, (SELECT count(*) FROM outbox WHERE status = 'sent') FROM runs")
    assert (status, shown_once) in [("failed", 0), ("failed", 1)]
