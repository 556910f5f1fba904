"""`tertulia calls` lists the requests to services; `tertulia prompt --request` prints them as they were sent."""

import asyncio
import json
from hashlib import sha256
from pathlib import Path

import pytest

from cli.command import Here
from engine.engines import said
from tertulia import Behavior, Engine, Store
from tertulia.engine.background import RealClock
from tertulia.models import OpenAI, Scripted
from tertulia.sim import OpenAISim, faults
from tertulia.sim.behaviours import Script
from tertulia.testing import RecordedPlatform


async def at_once(_: float) -> None:
    await asyncio.sleep(0)


@pytest.fixture
def db(tmp_path: Path) -> str:
    """A store in which Alice was answered at the second attempt."""
    path = tmp_path / "s.db"

    async def talk() -> None:
        async with (
            OpenAISim(behaviour=Script(["Hi."])) as sim,
            OpenAI("gpt-5.6", key="k", base_url=sim.url) as model,
            Store.open(path) as store,
            Engine(
                store,
                model,
                [RecordedPlatform()],
                behavior=Behavior(debounce=0),
                clock=RealClock(sleep=at_once),
                profile="plain",
            ) as engine,
        ):
            sim.fail(faults.RateLimited(2.0))
            await engine.receive(said("Hello!"))
            await engine.settled()

    asyncio.run(talk())
    return str(path)


def test_each_attempt_is_listed_with_its_wait_and_its_error(here: Here, db: str) -> None:
    _, shown, _ = here("calls", "--db", db)
    status, failed, errors = here("calls", "--failed", "--json", "--db", db)

    head, first, second = shown.splitlines()
    assert head.split()[:3] == ["began", "for", "place"]
    assert ("failed" in first, "RateLimited" in first) == (True, True)
    assert ("2.0 s" in second, "answered" in second, "$" in second) == (True, True, True)
    (one,) = json.loads(failed)
    assert (status, errors, one["call"]["error"], one["person"]["id"]) == (0, "", "RateLimited", "1")


def test_as_json_each_call_says_what_for_which_attempt_and_what_became_of_it(here: Here, db: str) -> None:
    calls = [one["call"] for one in json.loads(here("calls", "--json", "--db", db)[1])]

    assert [(one["purpose"], one["attempt"], one["status"]) for one in calls] == [
        ("answer", 1, "failed"),
        ("answer", 2, "answered"),
    ]


def test_the_calls_of_a_run_or_a_place_are_listed_alone(here: Here, db: str) -> None:
    (run,) = {one["call"]["run"] for one in json.loads(here("calls", "--json", "--db", db)[1])}

    assert len(here("calls", "--run", run[:6], "--db", db)[1].splitlines()) == 3
    (place,) = {one["place"]["id"] for one in json.loads(here("calls", "--json", "--db", db)[1])}
    assert len(here("calls", "--place", place, "--last", "1", "--db", db)[1].splitlines()) == 2


def test_without_a_call_that_is_said(here: Here, tmp_path: Path) -> None:
    async def make() -> None:
        async with Store.open(tmp_path / "s.db"):
            pass

    asyncio.run(make())

    assert here("calls", "--db", str(tmp_path / "s.db"))[1] == "no service was called yet\n"
    assert here("calls", "--failed", "--db", str(tmp_path / "s.db"))[1] == "no call has failed\n"


def test_the_requests_of_a_run_are_printed_with_their_hashes(here: Here, db: str) -> None:
    status, bodies, said_of_them = here("prompt", "--request", "--db", db)

    lines = said_of_them.splitlines()
    digests = [sha256(body.encode()).hexdigest() for body in bodies.splitlines()]
    assert (status, lines) == (
        0,
        [f"step 0, try {number}: as it was sent, sha256 {one}" for number, one in enumerate(digests, 1)],
    )
    assert json.loads(bodies.splitlines()[0])["model"] == "gpt-5.6"


def test_a_request_whose_client_is_silent_cannot_be_printed(here: Here, tmp_path: Path) -> None:
    async def talk() -> None:
        async with (
            Store.open(tmp_path / "s.db") as store,
            Engine(store, Scripted("Hi."), [RecordedPlatform()], behavior=Behavior(debounce=0)) as engine,
        ):
            await engine.receive(said("Hello!"))
            await engine.settled()

    asyncio.run(talk())

    _, bodies, told = here("prompt", "--request", "--db", str(tmp_path / "s.db"))
    assert (bodies, told) == ("", "step 0, try 1: its client does not say what it sends\n")
