"""The files of a forgotten person are on no disk; those that others sent too stay, without a trace of the person."""

from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from people import BOB, GROUP, GRYAG, NOON, a_message, a_photo
from store.builders import a_run, add_own, files_hold, prompt_sent
from stored_rows import change, on
from tertulia.media.descriptions import Description, DescriptionFailure
from tertulia.media.values import FetchFailure, FileForm, Handle, StoredFile, file_key
from tertulia.messages import Author, Message, Place, Quote
from tertulia.parts import Media, Text, ToolResult
from tertulia.store import Store
from tertulia.turns import Prompt, Turn, model, user

HER = Author(id="u777001", name="Xanthippe")
HOME = Place(platform="telegram", id="u777001", kind="direct", title="Xanthippe")
DOOR, SMALL_DOOR, CAT = b"PNG her own door", b"PNG her small door", b"PNG a cat that all know"


def digest(data: bytes) -> str:
    return sha256(data).hexdigest()


def a_picture(unique_id: str, data: bytes = DOOR, **changes: Any) -> Media:
    return Media(media_kind="photo", unique_id=unique_id, sha256=digest(data), **changes)


def a_handle(data: bytes, name: str) -> Handle:
    return Handle(sha256=digest(data), account="gemini-1f", name=name, uri=f"https://g/{name}", mime="image/png")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with Store.open(tmp_path / "s.db") as opened:
        yield opened


async def hear(store: Store, *messages: Message) -> None:
    for message in messages:
        await store.inbox.receive(message, at=NOON)


async def add(store: Store, unique_id: str, data: bytes = DOOR) -> None:
    file = StoredFile(sha256=digest(data), size=len(data), mime="image/png")
    await store.media.add(unique_id, data, file, at=NOON)


async def tables_of(store: Store) -> set[str]:
    """The tables with rows."""
    return {row["table"] async for row in store.export()}


async def test_a_file_that_only_the_person_sent_goes_with_all_that_was_made_of_it(store: Store, tmp_path: Path) -> None:
    await hear(
        store, a_message("hi", id="1", author=BOB), a_message("", id="2", author=HER, parts=(a_picture("door"),))
    )
    await add(store, "door")
    small = StoredFile(sha256="", size=0, mime="image/png")
    await store.media.add_form(digest(DOOR), "small", FileForm(file=small), data=SMALL_DOOR, at=NOON)
    await store.media.add_form(digest(DOOR), "pages", FileForm(text="written on her door"), at=NOON)
    handles = [a_handle(DOOR, "files/p-1"), a_handle(SMALL_DOOR, "files/p-2")]
    for handle in handles:
        await store.media.add_handle(handle, at=NOON)
    await store.descriptions.describe("door", "a green door", by="m", at=NOON)
    await store.descriptions.fail("door", DescriptionFailure(why="busy", failures=1, retry_at=NOON), by="n")

    report = await store.forget(platform="telegram", author_id=HER.id, at=NOON)

    assert (report.messages, report.files, report.descriptions) == (1, 2, 1)
    emptied = {"files", "media_files", "file_forms", "description_failures", "description_positions"}
    assert await tables_of(store) & emptied == set()
    assert store.media.folder.names() == set()
    assert await store.media.unwanted_handles() == handles
    for handle in handles:
        await store.media.remove_handle(handle)
    await store.vacuum()
    for words in ("her own door", "her small door", "written on her", "green door", digest(DOOR), digest(SMALL_DOOR)):
        assert not files_hold(tmp_path, words), words


async def test_media_of_hers_that_could_not_be_had_leave_nothing(store: Store, tmp_path: Path) -> None:
    await hear(store, a_message("", author=HER, parts=(a_picture("her-large-film"),)))
    await store.media.fail("her-large-film", FetchFailure(why="too large"), at=NOON)

    await store.forget(platform="telegram", author_id=HER.id, at=NOON)

    assert not files_hold(tmp_path, "her-large-film")


async def test_a_file_that_somebody_else_sent_too_stays(store: Store) -> None:
    elsewhere = Place(platform="telegram", id="-5", kind="group", title="Elsewhere")
    await hear(
        store,
        a_message("", id="1", author=BOB, place=elsewhere, parts=(a_picture("cat", CAT),)),
        a_message("", id="2", author=HER, parts=(a_picture("cat", CAT),)),
        a_message("", id="3", author=HER, parts=(a_picture("her copy of the cat", CAT),)),
    )
    await store.runs.begin(a_run(target="2", taken=("2",), horizon=9), Prompt.of("hi"), at=NOON)
    for unique_id in ("cat", "her copy of the cat"):
        await add(store, unique_id, CAT)
        await store.descriptions.describe(unique_id, f"seen: {unique_id}", by="m", at=NOON)
    await store.media.add_handle(a_handle(CAT, "files/p-1"), at=NOON)

    report = await store.forget(platform="telegram", author_id=HER.id, at=NOON)

    assert (report.files, report.descriptions) == (0, 1)
    assert await store.media.read(digest(CAT), at=NOON) == CAT
    assert list(await store.media.find(["cat", "her copy of the cat"])) == ["cat"]
    assert await store.media.handle(digest(CAT), "gemini-1f") == a_handle(CAT, "files/p-1")
    assert await store.descriptions.find(["cat"]) == {"cat": Description(words="seen: cat", position=0)}
    assert "description_positions" not in await tables_of(store)  # of the place where she sent it


async def test_files_of_quotes_forwards_direct_chats_and_of_answers_to_her_go(store: Store, tmp_path: Path) -> None:
    data = {name: f"PNG {name}".encode() for name in ("quoted", "forwarded", "at home", "drawn for her")}
    quote = Quote(message_id="0", author=HER, parts=(a_picture("quoted"),))
    await hear(
        store,
        a_message("ha", id="1", author=BOB, reply_to=quote),
        a_message("", id="2", author=BOB, forwarded_from=HER, parts=(a_picture("forwarded"),)),
        a_message("", id="3", author=HER, place=HOME, parts=(a_picture("at home"),)),
        a_message("draw me", id="4", author=HER),
    )
    answer = Quote(message_id="4", author=HER, parts=(Text(text="draw me"),))
    drawn = a_message("", id="5", author=GRYAG, parts=(a_picture("drawn for her"),), reply_to=answer)
    await add_own(store, drawn, [])
    for name, content in data.items():
        await add(store, name, content)

    report = await store.forget(platform="telegram", author_id=HER.id, at=NOON)

    assert report.files == len(data)
    assert store.media.folder.names() == set()
    for name in data:
        assert not files_hold(tmp_path, f"PNG {name}"), name


async def test_prompts_with_her_files_go_and_their_hashes_with_them(store: Store, tmp_path: Path) -> None:
    await hear(
        store, a_message("hi", id="1", author=BOB), a_message("", id="2", author=HER, parts=(a_picture("door"),))
    )
    await add(store, "door")
    await store.runs.begin(a_run(target="1", taken=("1",), horizon=2), Prompt.of(user(a_picture("door"))), at=NOON)
    await store.runs.begin(a_run(id="r2", target="1", taken=()), Prompt.of("hi"), at=NOON)

    report = await store.forget(platform="telegram", author_id=HER.id, at=NOON)

    assert (report.prompts, report.files) == (1, 1)
    assert await prompt_sent(store, "r1", 0) is None
    assert await prompt_sent(store, "r2", 0) == Prompt.of("hi")
    assert not files_hold(tmp_path, digest(DOOR))


async def test_files_that_a_tool_showed_the_agent_for_her_go(store: Store, tmp_path: Path) -> None:
    await hear(store, a_message("draw me", id="1", author=HER))
    await add(store, "drawn")
    shown = Turn(role="user", parts=(ToolResult(name="draw", id="a", media=(a_picture("drawn"),)),))
    quote = Quote(message_id="1", author=HER, parts=(Text(text="draw me"),))
    await add_own(store, a_message("Done.", id="2", author=GRYAG, reply_to=quote), [shown, model("Done.")])

    await store.forget(platform="telegram", author_id=HER.id, at=NOON)

    assert not files_hold(tmp_path, "her own door")
    assert not files_hold(tmp_path, digest(DOOR))


async def test_the_name_of_her_file_is_hers(store: Store, tmp_path: Path) -> None:
    paper = Media(media_kind="document", unique_id="paper", label="divorce-zyzzyva.pdf")
    await hear(store, a_message("hi", id="1", author=BOB), a_message("", id="2", author=HER, parts=(paper,)))
    run = a_run(target="1", taken=("1",), horizon=2)
    await store.runs.begin(run, Prompt.of("[document divorce-zyzzyva.pdf]"), at=NOON)

    report = await store.forget(platform="telegram", author_id=HER.id, at=NOON)

    assert report.prompts == 1
    assert not files_hold(tmp_path, "zyzzyva")


async def test_files_that_nothing_refers_to_go_too_and_are_not_counted_as_hers(store: Store) -> None:
    await hear(store, a_message("hi", author=HER), a_message("", id="2", author=BOB, parts=(a_picture("cat", CAT),)))
    await add(store, "nobody's")
    await add(store, "cat", CAT)

    exported = await store.export_person(platform="telegram", author_id=HER.id)
    report = await store.forget(platform="telegram", author_id=HER.id, at=NOON)

    assert exported["files"] == []
    assert report.files == 0
    assert store.media.folder.names() == {digest(CAT)}


async def test_files_of_bytes_that_came_with_a_message_are_those_of_its_author(store: Store) -> None:
    for id, author, data in (("1", HER, DOOR), ("2", BOB, SMALL_DOOR)):
        photo = a_photo(unique_id=f"own-{id}", data=data)
        await hear(store, a_message("", id=id, author=author, parts=(photo,)))
        await add(store, file_key(photo), data)

    exported = await store.export_person(platform="telegram", author_id=HER.id)
    report = await store.forget(platform="telegram", author_id=HER.id, at=NOON)

    assert [row["sha256"] for row in exported["files"]] == [digest(DOOR)]
    assert report.files == 1
    assert set(await store.media.get([digest(DOOR), digest(SMALL_DOOR)])) == {digest(SMALL_DOOR)}


async def test_the_export_of_a_person_names_their_files(store: Store) -> None:
    await hear(store, a_message("", author=HER, parts=(a_picture("door"),)))
    await add(store, "door")
    await store.media.add_form(digest(DOOR), "pages", FileForm(text="written on her door"), at=NOON)
    await store.media.add_handle(a_handle(DOOR, "files/p-1"), at=NOON)

    exported = await store.export_person(platform="telegram", author_id=HER.id)

    at = NOON.isoformat()
    assert exported["files"] == [
        {
            "sha256": digest(DOOR),
            "file": f"{digest(DOOR)[:2]}/{digest(DOOR)}",
            "unique_ids": ["door"],
            "forms": [],
            "mime": "image/png",
            "size": len(DOOR),
            "width": None,
            "height": None,
            "seconds": None,
            "pages": None,
            "at": at,
            "used_at": at,
        }
    ]
    assert exported["texts_of_files"] == [{"sha256": digest(DOOR), "form": "pages", "text": "written on her door"}]
    assert exported["files_at_services"] == [
        {
            "sha256": digest(DOOR),
            "account": "gemini-1f",
            "name": "files/p-1",
            "uri": "https://g/files/p-1",
            "at": at,
            "expires_at": None,
        }
    ]
    assert await store.media.read(digest(DOOR), at=NOON) == DOOR


async def test_a_file_of_a_hidden_message_goes_at_the_next_sweep(store: Store) -> None:
    await hear(store, a_message("", author=BOB, place=GROUP, parts=(a_picture("door"),)))
    await add(store, "door")
    await on(store, change, "messages", hidden=1)

    assert await store.media.sweep(unused_since=NOON, at=NOON.replace(hour=20)) == 1
