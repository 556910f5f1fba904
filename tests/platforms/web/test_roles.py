"""Each role asks for everything that the document describes: people, words and files of others are not there."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import httpx2
import pytest

from platforms.web.pages import SAME_ORIGIN
from platforms.web.room_bots import RoomBot, a_room_bot
from tertulia.errors import StoreBusy
from tertulia.inspector.places import person_key, place_key
from tertulia.memory.values import Subject
from tertulia.models import Scripted
from tertulia.platforms.web.page_app import UNWELL
from tertulia.platforms.web.roles import NOBODY

SECRET = "walrus"
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63606060000000040001f6178e"
    "550000000049454e44ae426082"
)
BODIES: dict[tuple[str, str], Any] = {
    ("post", "/api/rooms"): {"title": "mine"},
    ("post", "/api/rooms/{room}/join"): {"name": "Eve", "key": "guessed"},
    ("post", "/api/rooms/{room}/messages"): {"id": "k", "text": "from outside"},
    ("post", "/api/rooms/{room}/messages/{message}/edit"): {"text": "changed from outside"},
    ("post", "/api/rooms/{room}/messages/{message}/reactions"): {"emojis": ["x"]},
    ("post", "/api/orders"): {"kind": "hide message", "subject": "{message}", "place": "{place}"},
    ("post", "/api/runs/{run}/steps/{step}/replay"): {"model": "scripted"},
    ("post", "/api/texts"): {"texts": ["a *text*"]},
    ("post", "/api/session"): {"token": "guessed"},
}
LOGOUT = ("delete", "/api/session")
FOR_EVERYBODY = {("get", "/health"), ("post", "/api/session"), LOGOUT}
FOR_GUESTS = FOR_EVERYBODY | {("get", "/api/session"), ("post", "/api/texts")}
JOINS = ("post", "/api/rooms/{room}/join")


async def ask_for_all(
    bot: RoomBot,
    client: httpx2.AsyncClient,
    there: dict[str, str],
    *,
    methods: Collection[str] = ("get", "post", "delete"),
) -> dict[tuple[str, str], Any]:
    """Ask for each operation about what is *there*; return the status and the text of each answer."""
    document = (await bot.served.client.get("/api/openapi.json", headers=bot.served.bearer())).json()
    found = {}
    operations = [(method, path) for path, known in document["paths"].items() for method in known]
    operations = [one for one in operations if one[0] in methods]
    for method, path in sorted(operations, key=lambda one: one == LOGOUT):
        body = BODIES.get((method, path))
        if isinstance(body, dict):
            body = {name: one.format(**there) if isinstance(one, str) else one for name, one in body.items()}
        given: dict[str, Any] = {} if body is None else {"json": body}
        if path == "/api/rooms/{room}/files" and method == "post":
            given = {"content": PNG}
        query = {"q": SECRET, "a": there["run"] + ".1", "b": there["run"] + ".1", "place": there["place"]}
        url = path.format(**there)
        async with client.stream(method, url, params=query, headers=SAME_ORIGIN, **given) as answer:
            is_stream = answer.headers.get("content-type", "").startswith("text/event-stream")
            found[method, path] = answer.status_code, "" if is_stream else (await answer.aread()).decode("latin-1")
    return found


async def test_where_the_store_is_only_those_are_told_who_see_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_: Any, **__: Any) -> Any:
        raise StoreBusy("the store postgresql://10.0.0.7/bot: the database does not answer")

    async with a_room_bot(tmp_path, Scripted()) as bot:
        guest = await bot.guest(await bot.open_room(), "Maya")
        looking = {"guest": guest, "owner": await bot.looking("owner"), "nobody": await bot.browser()}
        monkeypatch.setattr(type(bot.store.rooms), "get", fails)
        monkeypatch.setattr(type(bot.store.events), "last", fails)
        told = {
            who: [(await one.client.get(path)).json()["error"] for path in (guest.room, "/health")]
            for who, one in looking.items()
        }

    said, unwell = str(UNWELL.why), "the store postgresql://10.0.0.7/bot: the database does not answer"
    assert told == {"guest": [said, said], "owner": [unwell, unwell], "nobody": [NOBODY.why, said]}


async def test_no_role_sees_or_changes_more_than_its_own(tmp_path: Path) -> None:
    model = Scripted("The walrus is in the pantry.", "And here is a fish.")
    async with a_room_bot(tmp_path, model) as bot:
        theirs, own = await bot.open_room(title="walrus room"), await bot.open_room()
        bob, alice = await bot.guest(theirs, "Bob Walrus"), await bot.guest(own, "Alice")
        uploaded = (await bob.upload(PNG)).json()["file"]
        message = await bob.post("Gryag, where is the walrus?", media=[{"file": uploaded, "name": "walrus.png"}])
        await alice.post("Gryag, what is there?")
        await bot.engine.settled()
        owner, reader, nobody = await bot.looking("owner"), await bot.looking("reader"), await bot.browser()
        person = Subject(platform="web", id=bob.me["person"])
        runs = (await owner.client.get("/api/runs", params={"place": place_key(bob.place)})).json()
        given = await owner.client.post(
            "/api/orders", json={"kind": "stop place", "place": place_key(bob.place)}, headers=SAME_ORIGIN
        )
        there = {
            "room": bob.place.id,
            "place": place_key(bob.place),
            "run": runs[0]["run"]["id"],
            "step": "1",
            "person": person_key(person),
            "message": message,
            "file": uploaded,
            "fact": "1",
            "order": given.json()["id"],
        }
        before = await bob.read()
        as_owner = await ask_for_all(bot, owner.client, there, methods=("get",))
        as_guest = await ask_for_all(bot, alice.client, there)
        as_nobody = await ask_for_all(bot, nobody.client, there)
        as_reader = await ask_for_all(bot, reader.client, there)
        after, rooms = await bob.read(), (await owner.client.get("/api/rooms")).json()
        orders = (await owner.client.get("/api/orders")).json()

    assert {path for (_, path), (status, _) in as_owner.items() if status != 200} == {
        "/api/facts/{fact}/plan",  # nothing was learned
        "/api/places/{place}/difference",  # and a scripted model sends no requests
        "/api/runs/{run}/steps/{step}/rendered",
        "/api/runs/{run}/steps/{step}/requests",
    }
    assert {key: one for key, one in as_guest.items() if one[0] != 404} == {key: as_guest[key] for key in FOR_GUESTS}
    assert not [key for key, (_, text) in {**as_guest, **as_nobody}.items() if SECRET in text.lower()]
    assert {key: status for key, (status, _) in as_nobody.items() if status != 401} == {
        ("get", "/health"): 200,
        LOGOUT: 204,
        JOINS: 404,
    }
    writes = {key for key in as_reader if key[0] != "get"} - FOR_EVERYBODY - {("post", "/api/texts")}
    assert {key: as_reader[key][0] for key in writes} == dict.fromkeys(writes, 403)
    assert (after, len(rooms), len(orders)) == (before, 2, 1)
