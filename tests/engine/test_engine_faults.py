"""Whatever goes wrong around an engine under load, every message is answered once, and the next one too."""

import asyncio
import random
from collections import Counter
from pathlib import Path
from types import UnionType
from typing import Any, get_args

import pytest

from engine.engine_child import watched
from engine.engines import DIRECT, engine_with, said, talked
from engine.scripted_service import Kind
from engine.torture import BOTH, station, told
from tertulia.engine.behavior import TOO_MANY, error_text
from tertulia.engine.engine import Engine
from tertulia.engine.limits import Limits
from tertulia.errors import TertuliaError
from tertulia.messages import Author, Message, Place
from tertulia.models import Gemini, OpenAI
from tertulia.models.base import Model
from tertulia.models.scripted import Scripted
from tertulia.sim import GeminiSim, OpenAISim, faults, gemini, openai
from tertulia.sim.behaviours import Actor
from tertulia.store import Store
from tertulia.testing import RecordedPlatform

PLACES, EACH = 16, 4
LITTLE = 500_000  # bytes that the file and its log may grow by
MANY = 30  # messages: more than that is enough for
FOR_GEMINI: list[gemini.Fault] = [
    faults.RateLimited(),
    faults.RateLimited(retry_after=0.5),
    faults.RateLimited(retry_after=3600.0),
    faults.RateLimited(daily=True),
    faults.Quota(),
    faults.ContextTooLong(),
    faults.Internal(),
    faults.Overloaded(),
    faults.Deadline(),
    faults.Hang(),
    faults.CutStream(after=0),
    faults.CutStream(after=1),
    faults.ErrorFrame(after=0),
    faults.ErrorFrame(after=1),
    faults.UsageOnlyLast(),
    faults.Empty(),
    faults.EmptyCandidates(),
    faults.MaxTokens(),
    faults.ContentFilter(),
    faults.BlockedPrompt(),
    faults.BlockedPrompt("SAFETY"),
    faults.MalformedCall(),
    faults.Finish("MAX_TOKENS"),
    faults.Finish("RECITATION"),
    faults.Finish("SOMETHING_NEW"),
]
FOR_OPENAI: list[openai.Fault] = [
    faults.RateLimited(),
    faults.RateLimited(None),
    faults.RateLimited(3600.0),
    faults.Quota(),
    faults.Internal(),
    faults.Overloaded(),
    faults.Deadline(),
    faults.ContextTooLong(),
    faults.Hang(),
    faults.CutStream(0),
    faults.CutStream(),
    faults.ErrorFrame(0),
    faults.ErrorFrame(),
    faults.Empty(),
    faults.Empty(""),
    faults.ContentFilter(),
    faults.MaxTokens(),
    faults.ModelRefusal(),
    faults.MalformedCall(),
]


async def test_one_update_from_twenty_tasks_is_one_message_with_one_answer() -> None:
    platform = RecordedPlatform()
    async with engine_with(Scripted("Hello!"), platform) as engine:
        new = await asyncio.gather(*(engine.receive(said("hi")) for _ in range(20)))
        await engine.settled()
        later = await asyncio.gather(*(engine.receive(said("hi")) for _ in range(20)))
        await engine.settled()

    assert sorted(new) == [False] * 19 + [True]
    assert later == [False] * 20
    assert platform.texts == ["Hello!"]


async def test_and_is_the_same_message_after_a_restart(tmp_path: Path) -> None:
    platform, model = RecordedPlatform(), Scripted("Hello!", "Again?")
    for number in range(3):
        async with Store.open(tmp_path / "s.db") as store, engine_with(model, platform, store=store) as engine:
            new = await asyncio.gather(*(engine.receive(said("hi")) for _ in range(20)))
            await engine.settled()
            kept = await store.log.count(DIRECT)
        assert (any(new), kept) == (number == 0, 2)

    assert platform.texts == ["Hello!"]


class Crash(BaseException):
    """Nothing after it is done."""


async def test_an_author_who_was_told_of_the_limit_is_not_answered_as_well_after_a_crash() -> None:
    def crash(point: str) -> None:
        if point == "before inbox.skip":
            raise Crash

    platform, model = RecordedPlatform(), Scripted("1", "2")
    limits = Limits(messages=1, seconds=600)
    async with Store.open(":memory:") as store:
        async with engine_with(model, platform, store=watched(store, crash), limits=limits) as engine:
            await talked(engine, said("one", 1), said("two", 2))
        async with engine_with(model, platform, store=store, limits=limits) as engine:
            await engine.settled()

    assert platform.texts == ["1", TOO_MANY]


@pytest.mark.parametrize("kind", BOTH)
async def test_an_engine_killed_while_it_waits_for_room_on_the_disk_has_lost_nothing(
    tmp_path: Path, kind: Kind
) -> None:
    async with station(tmp_path, kind, 6) as one:
        await one.die_full(LITTLE)
        accepted = one.service.acknowledged
        await one.finish()
        result = await told(one, 0.0)

    assert accepted > 0
    assert (result.faults, result.doubled, result.lost) == ((), 0, 0)
    assert accepted <= result.messages + result.asides <= accepted + 1  # the one that waited for room comes again


async def test_and_when_there_is_room_again_the_same_engine_goes_on(tmp_path: Path) -> None:
    async with station(tmp_path, "with keys", 8) as one:
        await one.finish(MANY, room=LITTLE)
        result = await told(one, 0.0)

    assert one.is_full()
    assert (result.faults, result.doubled, result.lost) == ((), 0, 0)
    assert result.messages + result.asides == MANY


@pytest.mark.parametrize(("known", "chosen"), [(gemini.Fault, FOR_GEMINI), (openai.Fault, FOR_OPENAI)])
def test_every_kind_of_fault_is_among_them(known: UnionType, chosen: list[object]) -> None:
    assert {type(fault) for fault in chosen} == set(get_args(known))


async def see(engine: Engine) -> None:
    """Read its events, and so let the model stream."""
    async for _ in engine.events():
        pass


async def at_once(seconds: float) -> None:
    """Nobody waits in a test."""
    await asyncio.sleep(0)


def place(number: int) -> Place:
    return Place(platform="recorded", id=str(number), kind="direct")


def messages_of(number: int) -> list[Message]:
    author = Author(id=f"u{number}", name="Ann")
    return [said(f"question {n}", f"m{number}-{n}", place=place(number), author=author) for n in range(EACH)]


async def ask_all(engine: Engine) -> None:
    """All places at once, in each one message after another."""

    async def ask(number: int) -> None:
        for message in messages_of(number):
            await engine.receive(message)

    await asyncio.gather(*map(ask, range(PLACES)))
    await engine.settled()


@pytest.mark.parametrize(("seed", "streaming"), [(1, False), (2, True)])
async def test_gemini_may_fail_in_every_way_under_load(seed: int, streaming: bool) -> None:
    fitting = [fault for fault in FOR_GEMINI if streaming or not isinstance(fault, faults.BROKEN_STREAMS)]
    async with (
        GeminiSim(behaviour=Actor(steps=1, parallel=2)) as sim,
        Gemini("gemini-3.8-flash", key="k", base_url=sim.url, timeout=2.0) as model,
    ):
        for fault in drawn(fitting, seed):
            sim.fail(fault)
        await answered_once(model, watched=streaming)


@pytest.mark.parametrize(("seed", "streaming"), [(1, False), (2, True)])
async def test_an_openai_service_may_fail_in_every_way_under_load(seed: int, streaming: bool) -> None:
    async with (
        OpenAISim(behaviour=Actor(steps=1, parallel=2)) as sim,
        OpenAI("gpt-5.6", key="k", base_url=sim.url, timeout=2.0) as model,
    ):
        for fault in drawn(FOR_OPENAI, seed):
            sim.fail(fault)
        await answered_once(model, watched=streaming)


def drawn(among: list[Any], seed: int) -> list[Any]:
    """Each of them, and others again, in any order; fewer than there are messages, so that each comes to pass."""
    chance = random.Random(seed)  # noqa: S311 (nothing secret)
    often = [fault for fault in among if not isinstance(fault, faults.Hang)]
    chosen = [*among, *chance.choices(often, k=PLACES * EACH - len(among) - 4)]
    chance.shuffle(chosen)
    return chosen


async def answered_once(model: Model, *, watched: bool) -> None:
    """Talk while all goes wrong, and once more when nothing does; look into everything."""
    booked: Counter[str] = Counter()

    async def book(seat: str) -> str:
        booked[seat] += 1
        return "booked"

    platform = RecordedPlatform()
    limits = Limits(messages=100)
    async with Store.open(":memory:") as store, asyncio.timeout(120):
        async with engine_with(model, platform, store=store, tools=[book], limits=limits, sleep=at_once) as engine:
            reading = asyncio.create_task(see(engine) if watched else asyncio.sleep(0))
            await ask_all(engine)
            before = await rows(store, "outbox")
            await engine.receive(said("and now?", "last", place=place(0), author=Author(id="u0", name="Ann")))
            await engine.settled()
        await reading
        kept = {table: await rows(store, table) for table in ("messages", "runs", "outbox", "tool_runs")}
        assert await store.check() == []

    asked = {message.id for number in range(PLACES) for message in messages_of(number)} | {"last"}
    assert Counter(name for run in kept["runs"] for name in run["message_ids"]) == Counter(asked)
    assert Counter(row["run_id"] for row in kept["outbox"]) == Counter(run["run_id"] for run in kept["runs"])
    assert {row["status"] for row in kept["outbox"]} == {"sent"}
    assert len(platform.shown) == len(asked)
    assert all(reply.text.strip() for reply in platform.shown.values())
    assert sum(booked.values()) == sum(not row["result"].get("failed") for row in kept["tool_runs"])
    assert (kept["runs"][-1]["message_ids"], kept["runs"][-1]["status"]) == (["last"], "done")
    assert len(before) == len(asked) - 1
    lines = {row["text"] for row in kept["outbox"] if row["run_id"] in failed(kept["runs"])}
    assert lines <= EXCUSES


def kinds_of(error: type[TertuliaError]) -> set[type[TertuliaError]]:
    return {error}.union(*map(kinds_of, error.__subclasses__()))


EXCUSES = {error_text(kind("")) for kind in kinds_of(TertuliaError)}


def failed(runs: list[dict[str, Any]]) -> set[str]:
    return {run["run_id"] for run in runs if run["status"] == "failed"}


async def rows(store: Store, table: str) -> list[dict[str, Any]]:
    return [row async for row in store.export() if row["table"] == table]
