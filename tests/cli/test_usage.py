"""`tertulia usage` shows what model calls have cost, by day, place, person and model."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cli.command import Here, tertulia
from cli.stores import held
from people import ALICE, BOB, DIRECT, GROUP, a_message
from tertulia import Author, Place, Store, Usage
from tertulia.models.calls import Call

TODAY = datetime.now(UTC)
FLASH, UNKNOWN, FREE = "gemini-3.8-flash", "llama-9-home", "smollm2"
CALLS: tuple[tuple[int, Place, Author | None, str, Usage, float], ...] = (
    (40, GROUP, ALICE, FLASH, Usage(input=1), 0.5),
    (1, GROUP, ALICE, FLASH, Usage(input=1000, cached=400, output=20, thought=5), 0.25),
    (1, GROUP, None, FREE, Usage(input=7, output=3), 0.0),
    (0, GROUP, ALICE, FLASH, Usage(input=2000, output=10), 0.5),
    (0, DIRECT, BOB, UNKNOWN, Usage(input=50, output=5), 0.0),
)


@pytest.fixture
def db(here: Here, tmp_path: Path) -> Path:
    """A store with calls of three models, on three days."""

    async def make() -> None:
        async with Store.open(tmp_path / "s.db") as store:
            await store.inbox.receive(a_message(author=ALICE), at=TODAY)
            await store.inbox.receive(a_message(author=BOB, place=DIRECT), at=TODAY)
            for ago, place, author, model, usage, money in CALLS:
                at = TODAY - timedelta(days=ago)
                call = Call(model=model, usage=usage, money=money, begun_at=at, ended_at=at)
                await store.usage.add(call, place=place, author=author)

    asyncio.run(make())
    return tmp_path / "s.db"


def shown(db: Path, *arguments: str) -> list[list[str]]:
    """The cells of each line."""
    ran = tertulia("usage", *arguments, "--db", str(db))
    assert (ran.returncode, ran.stderr) == (0, "")
    return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in ran.stdout.splitlines()]


def day(ago: int) -> str:
    return (TODAY - timedelta(days=ago)).date().isoformat()


def test_a_month_by_day_and_model(db: Path) -> None:
    with held(db):
        lines = shown(db)

    assert lines == [
        ["day", "model", "calls", "tokens in", "cached", "tokens out", "cost"],
        [day(1), FLASH, "1", "1,000", "400", "25", "$0.2500"],
        [day(1), FREE, "1", "7", "0", "3", "$0.0000"],
        [day(0), FLASH, "1", "2,000", "0", "10", "$0.5000"],
        [day(0), UNKNOWN, "1", "50", "0", "5", "?"],
        ["total", "4", "3,057", "400", "43", "$0.7500 + ?"],
        [f"?: no price was known for {UNKNOWN}; set it for later calls: behavior.prices in tertulia.toml"],
    ]


def test_by_place_and_by_person_what_costs_most_is_first(db: Path) -> None:
    places = shown(db, "--by", "place", "--since", day(0))
    people = shown(db, "--by", "person", "--since", day(60))

    assert [line[0] for line in places[1:-1]] == ["Friends (telegram)", "7 (telegram)", "total"]
    assert [(line[0], line[-1]) for line in people[1:-1]] == [
        ("Alice (u123)", "$1.2500"),
        ("Bob (u456)", "?"),
        ("(nobody, or forgotten)", "$0.0000"),
        ("total", "$1.2500 + ?"),
    ]


def test_how_many_days_are_shown_is_an_option(db: Path) -> None:
    assert [shown(db, "--by", "model", "--days", days)[-2][1] for days in ("35", "45")] == ["4", "5"]


def test_machines_get_all_numbers(db: Path) -> None:
    ran = tertulia("usage", "--by", "person", "--by", "place", "--since", day(0), "--json", "--db", str(db))

    numbers = {"calls": 1, "cached": 0, "thought": 0}
    alice = {"platform": "telegram", "id": "u123", "name": "Alice"}
    friends = {"platform": "telegram", "id": "-100123", "kind": "group", "title": "Friends"}
    assert json.loads(ran.stdout) == {
        "since": day(0),
        "by": ["person", "place"],
        "rows": [
            {**numbers, "person": alice, "place": friends, "input": 2000, "output": 10, "money": 0.5,
             "unpriced_tokens": 0},
            {**numbers, "person": {"platform": "telegram", "id": "u456", "name": "Bob"},
             "place": {"platform": "telegram", "id": "7", "kind": "direct"}, "input": 50, "output": 5, "money": 0.0,
             "unpriced_tokens": 55},
        ],
        "total": {**numbers, "calls": 2, "input": 2050, "output": 15, "money": 0.5, "unpriced_tokens": 55},
    }  # fmt: skip


def test_forgotten_people_stay_counted_without_a_name(db: Path) -> None:
    tertulia("db", "forget", "u456", "--yes", "--db", str(db))

    lines = shown(db, "--by", "person", "--by", "place", "--since", day(0))

    assert [(*line[:-4], line[-1]) for line in lines[1:-1]] == [
        ("Alice (u123)", "Friends (telegram)", "1", "$0.5000"),
        ("(nobody, or forgotten)", "(removed)", "1", "?"),
        ("total", "2", "$0.5000 + ?"),
    ]


def test_a_model_that_the_config_says_is_free_has_a_price(db: Path, tmp_path: Path) -> None:
    (tmp_path / "tertulia.toml").write_text(f'[behavior]\nprices."{UNKNOWN}" = {{ input = 0, output = 0 }}\n')

    assert [line[-1] for line in shown(db, "--by", "model", "--since", day(0))] == [
        "cost",
        "$0.5000",
        "$0.0000",
        "$0.5000",
    ]


def test_without_calls_that_is_said(db: Path) -> None:
    assert tertulia("usage", "--since", "2999-01-01", "--db", str(db)).stdout == (
        "no model was called since 2999-01-01\n"
    )
    total = json.loads(tertulia("usage", "--since", "2999-01-01", "--json", "--db", str(db)).stdout)["total"]
    assert set(total.values()) == {0}


def test_two_beginnings_are_refused(db: Path) -> None:
    ran = tertulia("usage", "--days", "3", "--since", "2025-01-01", "--db", str(db))

    assert (ran.returncode, ran.stderr) == (2, "tertulia: say --days or --since, not both\n")
