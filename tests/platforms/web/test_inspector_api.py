"""The JSON of the page is what the inspector reads, at the addresses that the page asks for."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from engine.engines import GROUP
from inspector.evening import an_evening, doubt
from platforms.web.pages import NOW, a_page
from tertulia.inspector import evidence, home, lists, people, places, requests, runs, search, strata
from tertulia.inspector.places import place_key

PLACE = place_key(GROUP)


async def test_each_address_answers_with_what_the_inspector_reads(tmp_path: Path) -> None:
    async with an_evening(tmp_path / "bot.db") as store:
        await doubt(store)
        found = await runs.runs(store)
        run, first = found[1].run.id, found[2].run.id
        person = (await people.people(store))[0].key
        answer = (await places.messages(store, GROUP, now=NOW)).messages[-2].message.id
        expected: dict[str, Any] = {
            "/api/home": await home.home(store, now=NOW),
            "/api/places": await places.places(store, now=NOW),
            f"/api/places/{PLACE}": await places.messages(store, GROUP, now=NOW),
            f"/api/places/{PLACE}?before=3": await places.messages(store, GROUP, before=3, now=NOW),
            f"/api/places/{PLACE}/decisions": await places.decisions(store, GROUP, now=NOW),
            f"/api/places/{PLACE}/strata": await strata.strata(store, GROUP, now=NOW),
            f"/api/places/{PLACE}/strata?day=2026-11-19": await strata.strata(store, GROUP, NOW.date(), now=NOW),
            f"/api/places/{PLACE}/difference?a={first[:8]}.0&b={run}.1": await strata.difference(
                store, f"{first}.0", f"{run}.1"
            ),
            f"/api/places/{PLACE}/memory": await people.place_memory(store, GROUP, now=NOW),
            f"/api/places/{PLACE}/messages/{answer}/known": await evidence.known(store, GROUP, answer),
            "/api/runs": found,
            f"/api/runs?status=failed&place={PLACE}&before={run}": (),
            "/api/runs?status=failed": found[:1],
            "/api/runs?fact=none": (),
            f"/api/runs/{run[:8]}": await runs.run(store, run),
            f"/api/runs/{run}/steps/1/requests": await requests.requests(store, run, 1),
            "/api/people": await people.people(store),
            f"/api/people/{person}": await people.person(store, person),
            f"/api/people/{person}/plan": await people.plan_person(store, person),
            "/api/outbox": await lists.outbox(store),
            "/api/tasks": (),
            "/api/media": (),
            "/api/usage?since=2025-01-01": await lists.usage(store, NOW.date().replace(year=2025, month=1, day=1)),
            "/api/search?q=seat": await search.search(store, "seat"),
            "/api/search": (),
        }
        async with a_page(tmp_path, store=store) as served:
            await served.log_in("reader")
            answers = {path: await served.client.get(path) for path in expected}

    assert {path: answered.status_code for path, answered in answers.items()} == dict.fromkeys(expected, 200)
    for path, answered in answers.items():
        assert answered.json() == msgspec.json.decode(msgspec.json.encode(expected[path])), path


async def test_a_request_whose_prompt_was_removed_is_not_there(tmp_path: Path) -> None:
    async with an_evening(tmp_path / "bot.db") as store, a_page(tmp_path, store=store) as served:
        run = (await runs.runs(store))[1].run.id
        assert sum([count async for count in store.prompts.remove_old(NOW, at=NOW)])
        await served.log_in("reader")
        answered = await served.client.get(f"/api/runs/{run}/steps/1/requests")

    assert answered.status_code == 404
    assert answered.json()["error"].startswith(f"the prompts of run '{run}' were removed on 2026-11-19")


async def test_a_run_that_is_removed_while_it_is_read_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with an_evening(tmp_path / "bot.db") as store, a_page(tmp_path, store=store) as served:
        run = (await runs.runs(store))[1].run.id
        read = type(store.inspection).runs

        async def removed(self: Any, **which: Any) -> Any:
            return () if which.get("ids") else await read(self, **which)

        monkeypatch.setattr(type(store.inspection), "runs", removed)
        await served.log_in("reader")
        addresses = (f"/api/runs/{run}", f"/api/places/{PLACE}/difference?a={run}.0&b={run}.1")
        answered = [await served.client.get(address) for address in addresses]

    assert [one.status_code for one in answered] == [404, 404]


async def test_what_is_not_there_is_said_in_a_line(tmp_path: Path) -> None:
    missing = {
        "/api/places/recorded.-9": "there is no place recorded.-9",
        "/api/places/a.~ED~A0~80": "there is no place a.~ED~A0~80",
        "/api/places/recorded": "there is no place recorded",
        "/api/runs/cafe": "there is no run cafe",
        f"/api/places/{PLACE}/messages/a%2Fb/known": f"there is no message a/b in {PLACE}",
        f"/api/places/{PLACE}/difference?a=x&b=y": "x names no request: give a run and its step, as in 85a6b2c1.0",
        "/api/people/recorded.9": "there is no person recorded.9",
        "/api/people/recorded.9/plan": "there is no person recorded.9",
        "/api/facts/none/plan": "there is no fact none",
    }
    async with an_evening(tmp_path / "bot.db") as store, a_page(tmp_path, store=store) as served:
        await served.log_in()
        answers = {path: await served.client.get(path) for path in missing}
        odd = {
            path: (await served.client.get(path)).status_code
            for path in (
                f"/api/places/{PLACE}?before=x",
                f"/api/places/{PLACE}?before=-1",
                f"/api/places/{PLACE}?before={2**70}",
                f"/api/places/{PLACE}/strata?day=today",
                f"/api/places/{PLACE}/difference",
                "/api/runs?status=odd",
                "/api/runs/cafe/steps/x/requests",
            )
        }

    assert {path: (one.status_code, one.json()) for path, one in answers.items()} == {
        path: (404, {"error": why}) for path, why in missing.items()
    }
    assert odd == dict.fromkeys(odd, 400)
