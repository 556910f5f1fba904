"""Requests that a generator makes of the API's own description, valid and faulty ones: none of them ends in a 500."""

import asyncio
from pathlib import Path
from typing import Any

import schemathesis
from hypothesis import Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.core.result import Ok

from engine.engines import GROUP, engine_with
from inspector.evening import an_evening, doubt
from platforms.web.pages import SAME_ORIGIN, a_page
from platforms.web.room_bots import a_room_bot
from sizes import size
from tertulia.inspector import people, runs
from tertulia.inspector.places import place_key
from tertulia.models import Scripted
from tertulia.platforms.web.site import RoomLimits

EACH = size(4, full=40)  # requests of an operation, in each mode
STREAM = "/api/places/{place}/events"  # it does not end


def no_fault(context: Any, response: Any, case: Any) -> None:
    """Fail for what is our own fault; 503 says in words what the page cannot do as it stands."""
    assert response.status_code < 500 or (response.status_code == 503 and response.json()["error"]), response.text


def ask(operation: Any, url: str, headers: Any, known: dict[str, str] | None) -> None:
    """Ask for an operation with generated values; in its path with those of things that are there, if some are."""
    has_values = operation.query or operation.path_parameters or operation.body  # else nothing can be faulty
    for mode in [GenerationMode.POSITIVE, GenerationMode.NEGATIVE][: 2 if has_values else 1]:

        @settings(max_examples=EACH, phases=[Phase.generate], database=None)
        @given(case=operation.as_strategy(generation_mode=mode, path_parameters=known))
        def one(case: Any) -> None:
            case.call_and_validate(url, headers=headers, checks=[no_fault], timeout=30)

        one()


def operations_of(document: Any) -> list[Any]:
    found = schemathesis.openapi.from_dict(document).get_all_operations()
    return [one.ok() for one in found if isinstance(one, Ok)]


async def test_no_request_that_the_document_allows_or_forbids_fails(tmp_path: Path) -> None:
    async with (
        an_evening(tmp_path / "bot.db") as store,
        engine_with(Scripted(), store=store) as engine,
        a_page(tmp_path, store=store, engine=engine) as served,
    ):
        await doubt(store)
        headers = {**served.bearer(), **SAME_ORIGIN}
        document = (await served.client.get("/api/openapi.json", headers=headers)).json()
        there = {
            "place": place_key(GROUP),
            "person": (await people.people(store))[0].key,
            "run": (await runs.runs(store))[1].run.id,
            "step": "1",
            "message": "1",
        }
        operations = operations_of(document)
        asked = [one for one in operations if one.path != STREAM]
        assert len(asked) == len(operations) - 1 > 20
        for operation in asked:
            names = {parameter.name for parameter in operation.path_parameters}
            await asyncio.to_thread(ask, operation, str(served.client.base_url), headers, None)
            if names and names <= there.keys():
                known = {name: there[name] for name in names}
                await asyncio.to_thread(ask, operation, str(served.client.base_url), headers, known)
        assert (await served.client.get("/api/home", headers=headers)).status_code == 200


async def test_no_request_of_an_owner_or_a_guest_in_a_room_fails(tmp_path: Path) -> None:
    async with a_room_bot(tmp_path, Scripted(), limits=RoomLimits(writes=10**6)) as bot:
        link = await bot.open_room(people=50)
        owner = await bot.looking("owner")
        document = (await owner.client.get("/api/openapi.json")).json()
        asked = [one for one in operations_of(document) if "{room}" in one.path and not one.path.endswith("/events")]
        asked.sort(key=lambda one: one.path == "/api/rooms/{room}" and one.method == "delete")  # it ends the room
        assert len(asked) > 10
        guest, url = await bot.guest(link, "Maya"), str(bot.served.client.base_url)
        await owner.join(link, "Host")
        file = (await guest.upload(b"words")).json()["file"]
        there = {"room": guest.place.id, "message": await guest.post("hello"), "file": file}
        for operation in asked:
            names = {parameter.name for parameter in operation.path_parameters}
            known = {name: there[name] for name in names}
            for cookies in (guest.cookies, owner.cookies):
                await asyncio.to_thread(ask, operation, url, {**SAME_ORIGIN, **cookies}, known)
        listed = await owner.client.get("/api/rooms")

    assert [one["state"] for one in listed.json()] == ["revoked"]
