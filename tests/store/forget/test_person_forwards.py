"""Where somebody forwarded the words of a person who is forgotten, they are gone too."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from people import ALICE, BOB, GROUP, GRYAG, NOON, a_message, a_quote
from store.builders import a_run, begin, files_hold
from tertulia.messages import Author, Message, Place, Quote
from tertulia.parts import Text
from tertulia.store import Forgotten, Store
from tertulia.turns import Prompt, user

SECRET = "my grandmother keeps the blue key under the third flowerpot"
HER = Author(id="u777001", name="Xanthippe", username="xanthippe_of_athens")
HIDDEN = Author(id="unknown", name="Xanthippe", unknown=True)
FORWARD = a_message(SECRET, id="2", author=BOB, forwarded_from=HER)
EMPTIED = Message(id="2", place=GROUP, author=BOB, sent_at=NOON, deleted=True)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with Store.open(tmp_path / "s.db") as opened:
        yield opened


async def hear(store: Store, *messages: Message) -> None:
    for message in messages:
        await store.inbox.receive(message, at=NOON)


async def test_a_forward_of_somebody_who_never_wrote_here_is_emptied(store: Store, tmp_path: Path) -> None:
    other = a_message("hello all", id="1", author=BOB, forwarded_from=ALICE)
    await hear(store, other, FORWARD, a_message("so?", id="3", author=ALICE, reply_to=Quote(message_id="2")))

    assert await store.forget(platform="telegram", author_id=HER.id, at=NOON) == Forgotten(forwards=1)

    assert list(await store.log.read(GROUP, 0, 2)) == [other, EMPTIED]
    assert await store.check() == []
    assert not files_hold(tmp_path, "flowerpot")
    assert not files_hold(tmp_path, "Xanthippe")


async def test_quotes_of_a_forward_and_what_a_run_was_shown_go_too(store: Store, tmp_path: Path) -> None:
    quote = Quote(message_id="2", author=BOB, parts=(Text(text=SECRET),), forwarded_from=HER)
    kept = a_quote("hello", author=ALICE)
    reply = a_message("so?", id="3", author=ALICE, reply_to=quote)
    await hear(store, a_message("hello", id="1", author=ALICE), replace(FORWARD, reply_to=kept), reply)
    run = a_run(target="2", taken=("2",))
    await begin(store, run)
    await store.runs.ask(run, 0, Prompt.of(user(SECRET)), at=NOON)

    assert await store.forget(platform="telegram", author_id=HER.id, at=NOON) == Forgotten(
        forwards=1, quotes=1, runs=1, prompts=2
    )

    assert list(await store.log.read(GROUP, 0, 3))[1:] == [
        replace(EMPTIED, reply_to=kept),
        replace(reply, reply_to=Quote(message_id="2")),
    ]
    assert not files_hold(tmp_path, "flowerpot")


async def test_a_quote_of_a_forward_in_another_chat_is_reduced(store: Store, tmp_path: Path) -> None:
    quote = a_quote(SECRET, author=BOB, forwarded_from=HER)
    await hear(store, a_message("hi", id="1", author=HER), a_message("so?", id="2", author=ALICE, reply_to=quote))

    assert (await store.forget(platform="telegram", author_id=HER.id, at=NOON)).quotes == 1
    assert not files_hold(tmp_path, "flowerpot")


@pytest.mark.parametrize("origin", [HIDDEN, replace(HIDDEN, name="somebody"), GRYAG])
async def test_her_words_from_a_hidden_account_or_from_us_are_known_by_what_she_said(
    store: Store, tmp_path: Path, origin: Author
) -> None:
    hidden = replace(FORWARD, id="3", forwarded_from=origin)
    other = a_message("nothing of hers at all", id="4", author=BOB, forwarded_from=Author(id="unknown", name="Ann"))
    await hear(store, a_message(SECRET, id="1", author=HER), hidden, other)

    assert await store.forget(platform="telegram", author_id=HER.id, at=NOON) == Forgotten(
        messages=1, names=1, forwards=1
    )

    assert list(await store.log.read(GROUP, 0, 3))[1:] == [replace(EMPTIED, id="3"), other]
    assert not files_hold(tmp_path, "flowerpot")


async def test_what_she_forwarded_goes_with_her_and_stays_with_its_author(store: Store, tmp_path: Path) -> None:
    said = a_message("the accountant meets nobody", id="1", author=BOB)
    await hear(store, said, a_message("the accountant meets nobody", id="2", author=HER, forwarded_from=BOB))

    assert await store.forget(platform="telegram", author_id=HER.id, at=NOON) == Forgotten(messages=1, names=1)

    kept, emptied = await store.log.read(GROUP, 0, 2)
    assert (kept, emptied.parts, emptied.forwarded_from) == (said, (), None)
    assert not files_hold(tmp_path, "Xanthippe")


async def test_the_direct_chat_of_who_forwarded_her_stays(store: Store) -> None:
    bobs = Place(platform="telegram", id=BOB.id, kind="direct", title="Bob")
    asked = a_message("what is that?", id="1", author=BOB, place=bobs)
    await hear(store, asked, replace(FORWARD, place=bobs))

    assert await store.forget(platform="telegram", author_id=HER.id, at=NOON) == Forgotten(forwards=1)
    assert list(await store.log.read(bobs, 0, 9)) == [asked, replace(EMPTIED, place=bobs)]
