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
from sizes import size
from tertulia.inspector import people, runs
from tertulia.inspector.places import place_key
from tertulia.models import Scripted

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
        found = schemathesis.openapi.from_dict(document).get_all_operations()
        operations = [one.ok() for one in found if isinstance(one, Ok)]
        asked = [one for one in operations if one.path != STREAM]
        assert len(asked) == len(operations) - 1 > 20
        for operation in asked:
            names = {parameter.name for parameter in operation.path_parameters}
            await asyncio.to_thread(ask, operation, str(served.client.base_url), headers, None)
            if names and names <= there.keys():
                known = {name: there[name] for name in names}
                await asyncio.to_thread(ask, operation, str(served.client.base_url), headers, known)
        assert (await served.client.get("/api/home", headers=headers)).status_code == 200
