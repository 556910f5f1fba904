"""Orders over the page: given by the owner alone, recorded, and carried out by the bot or where no bot is needed."""

from pathlib import Path
from typing import Any

import httpx2

from engine.engines import ALICE, DIRECT, GROUP, engine_with, said, talked, until
from inspector.evening import an_evening, doubt
from platforms.web.pages import NOW, SAME_ORIGIN, Served, a_page
from tertulia.engine.order_worker import NO_BOT
from tertulia.inspector.places import place_key
from tertulia.models import Scripted
from tertulia.platforms.web.order_api import STALE
from tertulia.store import Store
from tertulia.testing import RecordedPlatform

AT = NOW.isoformat().replace("+00:00", "Z")
PLACE, PERSON = place_key(GROUP), f"recorded.{ALICE.id}"


async def give(served: Served, **order: Any) -> httpx2.Response:
    return await served.client.post("/api/orders", json=order, headers=SAME_ORIGIN)


async def test_without_a_bot_what_concerns_the_store_alone_is_done_and_the_rest_refused(tmp_path: Path) -> None:
    path = tmp_path / "bot.db"
    async with an_evening(path) as store:
        doubtful = await doubt(store)
        [failed] = await store.inspection.runs(status="failed", most=1)
    async with Store.open(path, beside=True) as store, a_page(tmp_path, store=store) as served:
        who = (await served.log_in()).json()["who"]
        asked: list[dict[str, Any]] = [
            {"kind": "send reply", "subject": doubtful.id},
            {"kind": "hide message", "subject": "1", "place": PLACE},
            {"kind": "retry run", "subject": failed.run.id},
            {"kind": "cancel task", "subject": "none"},
            {"kind": "stop place", "place": PLACE},
            {"kind": "forget person", "subject": PERSON},
        ]
        orders = [(await give(served, **one)).json() for one in asked]
        again = [(await served.client.get(f"/api/orders/{one['id']}")).json() for one in orders]
        listed = (await served.client.get("/api/orders")).json()
        replies = [one.status for one in await store.outbox.listed() if one.id == doubtful.id]

    shared = {"who": who, "at": AT, "ended_at": AT, "place_key": None, "place_title": "", "subject": "", "why": ""}
    there = {"place_key": PLACE, "place_title": "Friends"}
    assert [{name: value for name, value in one.items() if name != "id"} for one in orders] == [
        {**shared, **asked[0], "status": "done"},
        {**shared, **there, "kind": "hide message", "subject": "1", "status": "done"},
        {**shared, **asked[2], "status": "done"},
        {**shared, **asked[3], "status": "refused", "why": "there is no task 'none'"},
        {**shared, **there, "kind": "stop place", "status": "refused", "why": NO_BOT},
        {**shared, "kind": "forget person", "status": "refused", "why": NO_BOT},
    ]
    assert (again, listed) == (orders, orders[::-1])
    assert replies == ["waiting"]


async def test_the_bot_carries_out_an_order_of_its_own_page_at_once(store: Store, tmp_path: Path) -> None:
    platform = RecordedPlatform(TimeoutError())
    async with engine_with(Scripted("Hello."), platform, store=store) as engine:
        await talked(engine, said("hi"))
        [doubtful] = await store.outbox.listed("doubtful")
        async with a_page(tmp_path, store=store, engine=engine) as served:
            await served.log_in()
            sent = await give(served, kind="send reply", subject=doubtful.id)
            plan = (await served.client.get(f"/api/people/{PERSON}/plan")).json()
            forgotten = await give(served, kind="forget person", subject=PERSON, plan=plan)
            missing = await served.client.get(f"/api/people/{PERSON}")
        await engine.settled()

    assert (sent.json()["status"], forgotten.json()["status"], missing.status_code) == ("done", "done", 404)
    assert [one.status for one in await store.outbox.listed()] in ([], ["sent"])
    assert PERSON.partition(".")[2] not in [one.subject for one in await store.orders.listed(most=9)]


async def test_beside_a_running_bot_an_order_waits_until_the_bot_has_carried_it_out(tmp_path: Path) -> None:
    path, platform = tmp_path / "bot.db", RecordedPlatform(TimeoutError())
    async with Store.open(path) as own, engine_with(Scripted("Hello."), platform, store=own) as engine:
        await talked(engine, said("hi"))
        [doubtful] = await own.outbox.listed("doubtful")
        async with Store.open(path, beside=True) as beside, a_page(tmp_path, store=beside) as served:
            await served.log_in()
            given = (await give(served, kind="drop reply", subject=doubtful.id)).json()

            async def has_ended() -> bool:
                order = (await served.client.get(f"/api/orders/{given['id']}")).json()
                return bool(order["status"] == "done")

            await until(has_ended)

        assert given["status"] == "waiting"
        assert [one.status for one in await own.outbox.listed()] == ["dropped"]


async def test_what_was_not_shown_is_not_forgotten(tmp_path: Path) -> None:
    async with an_evening(tmp_path / "bot.db") as store, a_page(tmp_path, store=store) as served:
        await served.log_in()
        plan = (await served.client.get(f"/api/people/{PERSON}/plan")).json()
        stale = {**plan, "rows": {**plan["rows"], "messages": 1}}
        answers = [
            await give(served, kind="forget person", subject=PERSON, plan=stale),
            await give(served, kind="forget person", subject="recorded.99"),
            await give(served, kind="forget fact", subject="none"),
            await give(served, kind="hide message", subject="1"),
            await give(served, kind="retry run", subject="1", place=PLACE),
            await give(served, kind="stop place", place=place_key(DIRECT)),
            await give(served, kind="pay", subject="1"),
        ]
        orders = (await served.client.get("/api/orders")).json()

    assert [(one.status_code, one.json()["error"]) for one in answers] == [
        (409, STALE),
        (409, "there is no person recorded.99"),
        (409, "there is no fact none"),
        (409, "hide message: give its place"),
        (409, "retry run: it names no place"),
        (409, f"there is no place {place_key(DIRECT)}"),
        (400, "Invalid enum value 'pay' - at `$.kind`"),
    ]
    assert orders == []


async def test_a_reader_sees_orders_but_gives_none_and_exports_nobody(tmp_path: Path) -> None:
    async with an_evening(tmp_path / "bot.db") as store, a_page(tmp_path, store=store) as served:
        nobody = await served.client.get("/api/orders")
        await served.log_in("reader")
        refused = [
            await give(served, kind="drop reply", subject="1"),
            await served.client.get(f"/api/people/{PERSON}/export"),
        ]
        listed = await served.client.get("/api/orders")
        missing = await served.client.get("/api/orders/none")

    assert [nobody.status_code, *(one.status_code for one in refused)] == [401, 403, 403]
    assert (listed.status_code, listed.json(), missing.json()) == (200, [], {"error": "there is no order none"})


async def test_a_person_is_exported_as_a_file(tmp_path: Path) -> None:
    async with an_evening(tmp_path / "bot.db") as store, a_page(tmp_path, store=store) as served:
        await served.log_in()
        answered = await served.client.get(f"/api/people/{PERSON}/export")
        expected = await store.export_person(platform="recorded", author_id=ALICE.id)

    assert answered.headers["content-disposition"] == f'attachment; filename="{PERSON}.json"'
    assert answered.json().keys() == expected.keys()
    assert len(answered.json()["messages"]) == len(expected["messages"]) == 3
