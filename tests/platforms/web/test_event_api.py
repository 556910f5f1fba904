"""The stream of a place: nothing is missing and nothing comes twice, and it ends with the right to see it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest

from engine.engines import ALICE, BOB, DIRECT, GROUP, engine_with, said, talked, until
from engine.test_event_stream import Slow
from platforms.web.pages import NOW, SAME_ORIGIN, Served, a_page
from platforms.web.streams import Sent, Stream, listening, shown_by
from tertulia.config import WebConfig
from tertulia.decisions import Decision
from tertulia.engine.engine import Engine
from tertulia.engine.view import whole
from tertulia.engine.view_reader import ViewReader
from tertulia.inspector.places import place_key
from tertulia.inspector.views import shown_change
from tertulia.models.scripted import Scripted
from tertulia.platforms.web.page_server import serve_page
from tertulia.platforms.web.site import Site, StreamLimits
from tertulia.store import Store

PLACE = place_key(DIRECT)
EVENTS = f"/api/places/{PLACE}/events"


@asynccontextmanager
async def a_bot(
    folder: Path, model: Scripted, *, streams: StreamLimits | None = None
) -> AsyncIterator[tuple[Served, Engine]]:
    """The page of a bot that has received a message and answered nothing yet."""
    async with Store.open(folder / "bot.db") as store:
        await store.inbox.receive(said("before", 0), at=NOW)
        await store.inbox.skip(DIRECT, {"0": Decision(reason="not addressed")}, at=NOW)
        async with (
            engine_with(model, store=store) as engine,
            a_page(folder, store=store, engine=engine, streams=streams) as served,
        ):
            await served.log_in()
            yield served, engine


async def as_it_stands(store: Store) -> dict[str, list[Any]]:
    """The view of the place as a reader elsewhere shows it."""
    change = await shown_change(store, DIRECT, whole(await ViewReader(store, DIRECT).read()))
    return shown_by([Sent("change", msgspec.json.decode(msgspec.json.encode(change)))])[0]


async def test_a_stream_begins_with_the_place_as_it_stands_and_tells_each_change_once(tmp_path: Path) -> None:
    async with a_bot(tmp_path, Scripted("Hello.", "Fine.")) as (served, engine):
        async with listening(served, EVENTS) as stream:
            first = await stream.next()
            await talked(engine, said("hi", 1), said("elsewhere", 5, place=GROUP, author=BOB), said("and you?", 2))
            last = (await ViewReader(served.store, DIRECT).read()).event
            events = [first, *await stream.until_id(last)]
        stands = await as_it_stands(served.store)

    numbers = [int(one.id) for one in events if one and one.id]
    assert first
    assert (first.kind, first.data["anew"], len(first.data["messages"])) == ("change", True, 1)
    assert numbers == sorted(set(numbers))
    assert shown_by([one for one in events if one])[0] == stands
    assert [one["message"]["parts"][0]["text"] for one in stands["messages"]] == [
        "before",
        "hi",
        "Hello.",
        "and you?",
        "Fine.",
    ]


async def test_a_stream_that_was_cut_off_anywhere_goes_on_without_a_gap_or_a_double(tmp_path: Path) -> None:
    async with a_bot(tmp_path, Scripted("Hello.", "Fine.")) as (served, engine):
        async with listening(served, EVENTS) as stream:
            await stream.next()
            await talked(engine, said("hi", 1))
            last = (await ViewReader(served.store, DIRECT).read()).event
            events = await stream.until_id(last)
        await talked(engine, said("and you?", 2))
        last = (await ViewReader(served.store, DIRECT).read()).event
        stands = await as_it_stands(served.store)
        changes = [one for one in events if one.kind == "change"]
        resumed = {}
        for cut, change in enumerate(changes):
            headers = {"last-event-id": change.id or ""}
            async with listening(served, f"{EVENTS}?after=0", headers=headers) as stream:
                resumed[cut] = await stream.until_id(last)
        async with listening(served, f"{EVENTS}?after={last + 7}") as stream:  # of a store that was replaced
            strange = await stream.until_id(last)

    first = Sent("change", {"anew": True, "messages": stands["messages"][:1]})
    for cut, after in resumed.items():
        assert [(one.kind, one.id, "anew" in one.data) for one in after] == [("change", str(last), False)]
        assert shown_by([first, *changes[: cut + 1], *after])[0] == stands
    assert [one.data["anew"] for one in strange] == [True]
    assert shown_by(strange)[0] == stands


async def test_text_that_streams_comes_as_it_stands_and_then_piece_by_piece(tmp_path: Path) -> None:
    slow = Slow()
    async with a_bot(tmp_path, slow) as (served, engine), listening(served, EVENTS) as early:
        await early.next()  # somebody listens, so the answer streams
        await engine.receive(said("tell", 1))
        await slow.half.wait()
        seen = [await early.until("live")]
        async with listening(served, EVENTS) as late:
            begun = [await late.until("change"), await late.until("live")]
            slow.go_on.set()
            pieces = [await late.until("delta")]
            await late.until("change")
        seen += [await early.until("delta")]
        await engine.settled()

    run = begun[0].data["runs"][0]["run"]["id"]
    assert begun[1] == seen[0] == Sent("live", {"run_id": run, "text": "Once:"})
    assert pieces == seen[1:] == [Sent("delta", {"run_id": run, "text": " a cat."})]


async def test_a_page_beside_the_bot_tells_what_the_bot_stores(tmp_path: Path) -> None:
    path = tmp_path / "bot.db"
    async with Store.open(path) as store, engine_with(Scripted("Hello."), store=store) as engine:
        await store.inbox.receive(said("before", 0), at=NOW)
        async with Store.open(path, beside=True) as beside, a_page(tmp_path, store=beside) as served:
            await served.log_in("reader")
            async with listening(served, EVENTS) as stream:
                first = await stream.next()
                await talked(engine, said("hi", 1))
                last = (await ViewReader(store, DIRECT).read()).event
                events = await stream.until_id(last)
            stands = await as_it_stands(beside)

    assert first
    assert shown_by([first, *events])[0] == stands


@pytest.mark.parametrize("ends", ["logout", "tokens"])
async def test_a_stream_ends_when_the_right_to_see_it_does(tmp_path: Path, ends: str) -> None:
    async with a_bot(tmp_path, Scripted()) as (served, _), listening(served, EVENTS) as stream:
        await stream.next()
        if ends == "logout":
            await served.client.delete("/api/session", headers=SAME_ORIGIN)
        else:
            served.page.token_file.unlink()
        async with asyncio.timeout(10):
            assert await stream.rest() == []


async def test_streams_end_before_the_page_does(tmp_path: Path) -> None:
    async with a_bot(tmp_path, Scripted()) as (other, engine), httpx2.AsyncClient(verify=False) as client:
        site = Site(store=other.store, now=lambda: NOW, engine=engine)
        async with serve_page(site, WebConfig(port=0), store=str(tmp_path / "bot.db")) as page:
            served = Served(page, client, other.store)
            listened = listening(served, f"{page.url}{EVENTS}", headers=served.bearer())
            stream = await listened.__aenter__()
            await stream.next()
        assert await stream.rest() == []
        await listened.__aexit__(None, None, None)


async def was_kept_alive(stream: Stream) -> bool:
    return stream.comments > 0


async def opens(served: Served) -> bool:
    return (await served.client.head(EVENTS)).status_code == 200


async def test_a_silent_stream_is_kept_alive_and_there_are_only_so_many(tmp_path: Path) -> None:
    limits = StreamLimits(most=1, tick=0.01, keep_alive=0.02)
    async with a_bot(tmp_path, Scripted("Hello."), streams=limits) as (served, engine):
        async with listening(served, EVENTS) as stream:
            await stream.next()
            refused = await served.client.get(EVENTS)
            coming = asyncio.ensure_future(stream.next())
            await until(lambda: was_kept_alive(stream))
            await engine.receive(said("hi", 1, author=ALICE))
            await coming
        await until(lambda: opens(served))
        again = await served.client.head(EVENTS)

    assert (refused.status_code, list(refused.json())) == (503, ["error"])
    assert again.headers["content-type"].startswith("text/event-stream")
