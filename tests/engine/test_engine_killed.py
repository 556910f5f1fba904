"""An engine that is killed at any moment and started again: nothing is lost, nothing twice, and doubts are told."""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import json

import postgres
from cli.command import tertulia
from engine.aftermath import Result
from engine.engine_child import POINTS
from engine.scripted_service import Kind, ScriptedService
from engine.torture import BOTH, CHILD, MESSAGES, Station, at_points, station, told, tortured
from lives import lives
from sizes import size

KILLS = size(4, full=25)  # at random moments
OF_SENDING = ("runs.end", "outbox", "tasks.end", "tasks.recover", "platform")
REACHED: dict[Kind, list[str]] = {
    "with keys": [point for point in POINTS if "doubtful" not in point][
        :: size(4, full=1)
    ],  # nothing is in doubt there
    "without keys": [point for point in POINTS if point.split(" ")[1].startswith(OF_SENDING)][:: size(3, full=1)],
}


@pytest.mark.parametrize("kind", BOTH)
async def test_an_engine_killed_at_write_points_answers_all_once(tmp_path: Path, kind: Kind) -> None:
    result = await at_points(tmp_path, kind, REACHED[kind], seed=5)

    assert result.faults == ()
    assert result.kills >= len(REACHED[kind])
    assert (result.doubtful > 0) == (kind == "without keys")
    assert_whole(result)


@pytest.mark.parametrize("kind", BOTH)
async def test_an_engine_killed_at_random_moments_answers_all_once(tmp_path: Path, kind: Kind) -> None:
    result = await tortured(tmp_path, kind, kills=KILLS, seed=7)

    assert result.faults == ()
    assert result.kills == KILLS
    assert result.resumed > 0
    assert_whole(result)


def assert_whole(result: Result) -> None:
    assert (result.doubled, result.lost, result.tool_doubles) == (0, 0, 0)
    assert result.fired > 0
    assert result.doubtful == 0 or result.kind == "without keys"
    assert 0 < result.messages - result.doubtful <= result.replies <= result.messages


async def test_a_doubtful_reply_is_sent_again_or_dropped_as_somebody_decides(tmp_path: Path) -> None:
    async with station(tmp_path, "without keys", 3) as one:
        for _ in range(2):
            await one.die_at("after platform.send")
        await one.finish()
        doubtful = [row["id"] for row in await outbox(one)]
        before = Counter(seen.key for seen in one.service.sent)
        sent = await outbox(one, "--send", doubtful[0])
        dropped = [await outbox(one, "--drop", key) for key in doubtful[1:]]
        await one.finish()
        after = Counter(seen.key for seen in one.service.sent)
        left = await outbox(one)
        everything = {row["id"]: row["status"] for row in await outbox(one, "--all")}

    assert len(doubtful) >= 2
    assert [row["status"] for row in (sent, *dropped)] == ["waiting", *["dropped"] * len(dropped)]
    again = {key: count for key, count in (after - before).items() if key in doubtful}
    assert again == {doubtful[0]: 1}  # somebody wanted that, and knew what it may lead to
    assert left == []
    assert [everything[key] for key in doubtful] == ["sent", *["dropped"] * len(dropped)]


async def outbox(one: Station, *words: str) -> Any:
    """What the command prints."""
    ran = await asyncio.to_thread(tertulia, "outbox", "--json", "--db", one.store, *words)
    assert ran.returncode == 0, ran
    return json.decode(ran.stdout)


@pytest.mark.skipif(postgres.IS_CHOSEN, reason="store/postgres/test_holder.py has this")
async def test_a_second_engine_on_one_file_is_refused_in_one_line_and_harms_nothing(tmp_path: Path) -> None:
    async with station(tmp_path, "with keys", 4) as one, second(one) as other:
        living = asyncio.create_task(one.finish(MESSAGES))
        await one.service.until(3, "asked")  # the file is open then
        with pytest.raises(AssertionError, match="ended with 1"):
            await other.finish()
        refusal = other.log()
        await living
        result = await told(one, 0.0)

    assert re.fullmatch(
        rf"error: the store {other.path}: another process has it open \(process \d+\); stop it first\n", refusal
    )
    assert result.faults == ()
    assert result.messages + result.asides == MESSAGES


@asynccontextmanager
async def second(one: Station) -> AsyncIterator[Station]:
    """One more engine for the same file."""
    folder = one.path.parent / "second"
    folder.mkdir()
    async with lives(CHILD, folder / "engine.log") as forked:
        other = Station(folder, ScriptedService("with keys", 0), forked, "http://127.0.0.1:9")
        other.path.symlink_to(one.path)
        yield other
