"""What is known of a person is exported: everything that forgetting removes, and nothing of others."""

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from memory.known import a_fact, a_subject
from people import BOB, GROUP, GRYAG, NOON, a_message, a_photo, a_quote
from store.builders import a_record, a_run, a_task, a_tool_run, add_episode, add_own, an_outgoing
from tertulia import Chat
from tertulia.media.descriptions import DescriptionFailure
from tertulia.media.values import FetchFailure, FileForm, Handle, StoredFile
from tertulia.memory.values import Summary
from tertulia.messages import Author, Place, Quote
from tertulia.models.base import Usage
from tertulia.models.calls import Call
from tertulia.models.scripted import Scripted
from tertulia.parts import Text, ToolCall, ToolResult
from tertulia.platform import Commanded, Reacted
from tertulia.store import Store
from tertulia.turns import Prompt, model, user

SECRET = "my grandmother keeps the blue key under the third flowerpot"
OTHERS = "the accountant meets nobody before the ninth of never"
HER = Author(id="u777001", name="Xanthippe", username="xanthippe_of_athens")
CAROL = Author(id="u888", name="Carol")
HOME = Place(platform="telegram", id="u777001", kind="direct", title="Xanthippe")
PHOTO = a_photo(unique_id="photo-of-her-door", data=b"her own door")
WEEK = timedelta(days=7)

PLACE = {"platform": "telegram", "id": GROUP.id, "thread": None, "title": "Friends"}
AUTHOR = {"id": HER.id, "name": HER.name, "username": HER.username}
CONTENTS_OF_RUNS = {"turns", "records", "tool_runs", "layers", "prompts"}  # left out, which the export says
COUNTED = {  # sections, and how many more there are than `forget` counts: a direct chat is counted as one place
    "messages": 0, "quotes": 0, "forwards": 0, "names": 0, "descriptions": 0, "files": 0, "facts": 0, "summaries": 0,
    "answers": 0, "runs": 0, "replies": 0, "tasks": 0,
}  # fmt: skip

Row = dict[str, Any]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with Store.open(tmp_path / "s.db") as opened:
        yield opened


async def everything_about_her(store: Store) -> None:
    """A store with something of hers in every table, beside what others said."""
    quote = Quote(message_id="2", author=HER, parts=(Text(text=SECRET),))
    for message in (
        a_message(OTHERS, id="1", author=BOB),
        a_message(SECRET, id="2", author=HER),
        a_message(f"really? {OTHERS}", id="3", author=BOB, reply_to=quote),
        a_message("", id="4", author=HER, parts=(PHOTO,)),
        a_message(f"{SECRET} at home", id="1", author=HER, place=HOME),
        a_message(SECRET, id="7", author=BOB, forwarded_from=HER, reply_to=a_quote(OTHERS)),
        a_message(OTHERS, id="8", author=BOB, forwarded_from=CAROL, reply_to=quote),
    ):
        await store.inbox.receive(message, at=NOON)
    await store.inbox.edit(a_message("never mind", id="2", author=replace(HER, name="X2"), edited_at=NOON), at=NOON)
    await store.inbox.edit(a_message("oh", id="3", author=BOB, reply_to=quote, edited_at=NOON), at=NOON)
    for about, place, source, text in (
        (HER, GROUP, "2", "She keeps a key somewhere"),
        (BOB, GROUP, "3", "Bob is married to Xanthippe"),
        (HER, HOME, "1", "She lives in Athens"),
    ):
        name = f"fact-{source}-{place.kind}"
        await store.facts.learn([a_fact(text, about=about, place=place, sources=(source,), id=name)])
    for about, text in ((HER, "She has a key."), (BOB, "A friend of Xanthippe.")):
        told = Summary(subject=a_subject(about), place=GROUP, text=text, facts=1, digest="d", made_at=NOON)
        await store.facts.summarise(told)
    for name, topic, summary, people in (
        ("e1", "keys", "They talked of hiding places.", '["u777001", "u456"]'),
        ("e2", "other keys", f"About {SECRET}.", '["u456"]'),
    ):
        await add_episode(store, episode_id=name, topic=topic, summary=summary, people=people, stop=2, tags='["key"]')
    await store.place_settings.block(platform="telegram", author_id=HER.id, at=NOON, until=NOON + WEEK)
    await store.descriptions.describe(PHOTO.unique_id, "a green door", by="m", at=NOON)
    await _files(store)
    changes = [Reacted(place=GROUP, message_id="1", author=HER, emojis=("👍",), at=NOON)]
    await store.updates.apply("telegram", changes, key="u1", raw=b'{"from": "u777001"}', at=NOON, keep=WEEK)
    command = [Commanded(message=a_message("/tasks", id="9", author=HER), name="tasks", argument="")]
    await store.updates.apply("telegram", command, key="u2", raw=None, at=NOON, keep=WEEK)
    await add_own(store, a_message("You told me of a flowerpot.", id="6", author=GRYAG), [model("Noted.")])
    await _run(store, "r1", GROUP, "2")
    await _run(store, "r2", HOME, "1")
    await store.proposals.propose("r1", "fact-2-group", now=NOON, until=NOON + WEEK, most=1)
    spent = Call(model="gemini-3.8-flash", usage=Usage(input=10, output=5), money=0.25, begun_at=NOON, ended_at=NOON)
    await store.usage.add(spent, place=GROUP, author=HER)
    await store.usage.add(spent, place=GROUP, author=BOB)
    await store.usage.add_notice(a_message(author=HER), NOON.date())
    async with Chat(Scripted("Hello."), store=store, name="someone", now=lambda: NOON) as chat:
        await chat.send_message(f"A friend said: {SECRET}")


async def _files(store: Store) -> None:
    """Her photo with what was made of it, a photo of hers that could not be had, and a photo of somebody else."""
    file = StoredFile(sha256="", size=0, mime="image/png", width=5, height=4)
    hers = await store.media.add(PHOTO.unique_id, b"her own door", file, at=NOON)
    await store.media.add_form(hers.sha256, "small", FileForm(file=file), data=b"her small door", at=NOON)
    await store.media.add_form(hers.sha256, "pages", FileForm(text="written on her door"), at=NOON)
    await store.media.add_handle(
        Handle(sha256=hers.sha256, account="gemini-1f", name="files/p-1", uri="https://g/p-1", mime="image/png"),
        at=NOON,
    )
    lost = a_photo(unique_id="her-lost-photo")
    await store.inbox.receive(a_message("", id="10", author=HER, parts=(lost,)), at=NOON)
    await store.media.fail(lost.unique_id, FetchFailure(why="too large"), at=NOON)
    await store.descriptions.fail(lost.unique_id, DescriptionFailure(why="busy", failures=1, retry_at=NOON), by="m")
    await store.media.add("his-photo", b"his own door", file, at=NOON)
    await store.inbox.receive(a_message("", id="11", author=BOB, parts=(a_photo(unique_id="his-photo"),)), at=NOON)


async def _run(store: Store, name: str, place: Place, target: str) -> None:
    run = a_run(id=name, place=place, target=target, taken=(target,))
    await store.runs.begin(run, Prompt.of(user(OTHERS), user(SECRET)), at=NOON)
    await store.runs.add_record(run, 0, a_record(turn=model(SECRET)))
    call = a_tool_run(call=ToolCall(name="note", args={"text": SECRET}), result=ToolResult(name="note", value=SECRET))
    await store.runs.begin_tool(run, call)
    outgoing = an_outgoing(id=f"o-{name}")
    replies = [replace(outgoing, reply=replace(outgoing.reply, place=place, text=f"On {SECRET}"))]
    tasks = [a_task(id=f"t-{name}", place=place, args={"text": SECRET}, run=name)]
    await store.runs.end(replace(run, status="done", ended_at=NOON), replies=replies, tasks=tasks)


def strings(value: Any) -> set[str]:
    """All texts in a value."""
    if isinstance(value, dict):
        return set().union(*map(strings, value.values()))
    if isinstance(value, list):
        return set().union(*map(strings, value))
    return {value} if isinstance(value, str) else set()


async def texts_by_table(store: Store) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    async for row in store.export():
        table = row.pop("table")
        if table == "facts":
            del row["digest"]  # of the text, which is there
        found.setdefault(table, set()).update(strings(row))
    return found


async def test_everything_that_forgetting_removes_is_in_the_export(store: Store) -> None:
    await everything_about_her(store)
    before = await texts_by_table(store)

    exported = await store.export_person(platform="telegram", author_id=HER.id)
    assert await texts_by_table(store) == before  # nothing was forgotten yet
    report = await store.forget(platform="telegram", author_id=HER.id, at=NOON)

    after = await texts_by_table(store)
    shown = strings(exported)
    missing = {table: texts - after.get(table, set()) - shown for table, texts in before.items()}
    assert {table: texts for table, texts in missing.items() if texts and table not in CONTENTS_OF_RUNS} == {
        "place_events": {"facts learned"},  # with the ids of facts, which are in the export
        "facts": {"Bob", "Bob is married to Xanthippe"},  # about others
        "summaries": {"A friend of Xanthippe.", "d"},
        "episodes": {"other keys", f"About {SECRET}.", BOB.id},
        "chat_entries": {"Hello.", f"A friend said: {SECRET}", "user", "model"},
    }
    assert {one: len(exported[one]) for one in COUNTED} == {
        one: getattr(report, one) + more for one, more in COUNTED.items()
    }


async def test_nothing_of_others_is_in_the_export(store: Store) -> None:
    await everything_about_her(store)

    exported = await store.export_person(platform="telegram", author_id=HER.id)

    written = json.dumps(exported)
    for words in (OTHERS, "Bob is married", "A friend of", "other keys", BOB.id, "A friend said"):
        assert words not in written
    assert [row for row in exported["facts"] if "about_others" in row] == [
        {"place": PLACE, "fact_id": "fact-3-group", "learned_at": "2025-01-15T12:00:00+00:00", "about_others": True}
    ]
    assert exported["exchanges"] == [{"chat": "someone", "about_others": True}]


async def test_what_is_hers_is_whole(store: Store) -> None:
    await everything_about_her(store)

    exported = await store.export_person(platform="telegram", author_id=HER.id)

    at = "2025-01-15T12:00:00+00:00"
    blocked = {"blocked_at": at, "blocked_until": (NOON + WEEK).isoformat()}
    assert exported["person"] == {"platform": "telegram", "id": HER.id, "language": "", **blocked}
    assert [(row["place"]["id"], row["message_id"], row["parts"][0].get("text")) for row in exported["messages"]] == [
        (GROUP.id, "2", "never mind"),
        (GROUP.id, "4", None),
        (HOME.id, "1", f"{SECRET} at home"),
        (GROUP.id, "10", None),
    ]
    assert [texts_of(row["before"]) for row in exported["earlier_versions"]] == [{SECRET}]
    assert exported["quotes"][0] == {
        "place": PLACE,
        "message_id": "3",
        "reply": {"message_id": "2", "author": AUTHOR, "parts": [{"kind": "text", "text": SECRET}]},
    }
    parts = [{"kind": "text", "text": SECRET}]
    assert exported["forwards"] == [{"place": PLACE, "message_id": "7", "forwarded_from": AUTHOR, "parts": parts}]
    assert exported["facts"][0]["sources"] == [{"message_id": "2", "text": "never mind"}]
    assert exported["reactions"] == [{"place": PLACE, "message_id": "1", "emojis": ["👍"], "at": at}]
    assert exported["usage"] == [
        {"day": "2025-01-15", "place": PLACE, "model": "gemini-3.8-flash", "calls": 1, "input": 10, "cached": 0,
         "output": 5, "thought": 0, "money": 0.25}
    ]  # fmt: skip
    assert exported["raw_updates"] == 1
    assert set(exported["left_out"]) >= {"prompts", "records", "raw updates", "rate limit"}


async def test_a_chat_with_a_name_is_exported_whole_under_its_name(store: Store) -> None:
    await everything_about_her(store)

    exported = await store.export_person(platform="chat", author_id="someone")

    said = [row["entry"] for row in exported["exchanges"]]
    assert {f"A friend said: {SECRET}", "Hello."} <= strings(said)
    assert [(row["run_id"], row["prompts"]) for row in exported["runs"]] == [(exported["runs"][0]["run_id"], 1)]
    assert exported["messages"] == []


async def test_of_somebody_whom_nobody_knows_there_is_nothing(store: Store) -> None:
    await everything_about_her(store)

    exported = await store.export_person(platform="telegram", author_id="nobody")

    assert {name: rows for name, rows in exported.items() if rows and isinstance(rows, list)} == {}


def texts_of(message: Row) -> set[str]:
    return {part["text"] for part in message["parts"]}


async def test_many_rows_are_exported_in_the_order_in_which_they_were_made(store: Store) -> None:
    texts = [f"{SECRET}, {number}" for number in range(9)]
    for number, text in enumerate(texts):
        await store.inbox.receive(a_message(text, id=f"m{number}", author=HER), at=NOON)
        await store.outbox.put(an_outgoing(text, id=f"o{number}"))

    exported = await store.export_person(platform="telegram", author_id=HER.id)

    assert [row["reply"]["text"] for row in exported["replies"]] == texts
    assert [row["decisions"] for row in exported["messages"]] == [
        [{"agent": "", "reason": "waiting", "address": None, "at": NOON.isoformat()}]
    ] * 9
