"""What was imported from an export is what the bot knows: an update of the same message is no second one."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sizes import size
from telegram_exports import chat, message, service, value
from tertulia.formats.imported import ImportedMessage
from tertulia.formats.json_stream import JsonStream
from tertulia.formats.telegram_export import TelegramExport
from tertulia.messages import Author, Message, Place, Quote
from tertulia.parts import Text
from tertulia.platforms.telegram.updates import Account, changes_of
from tertulia.store import Store

BOT = 4242
ACCOUNT = Account(platform=f"telegram-{BOT}", id=BOT, username="gryag_bot")
PLACE = Place(platform=f"telegram-{BOT}", id="-1001234567890", kind="group", title="Friends", service="telegram")
NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)


def imported(export: dict[str, Any]) -> list[ImportedMessage]:
    found = TelegramExport(bot_id=str(BOT)).read(JsonStream([value(export).encode()]))
    return [item for item in found if isinstance(item, ImportedMessage)]


def update(number: int, *, text: str, **fields: Any) -> bytes:
    """Return the update that the bot gets for a message of Alice in the same group."""
    posted = {
        "message_id": number,
        "date": int((NOON + timedelta(minutes=number)).timestamp()),
        "chat": {"id": -1001234567890, "type": "supergroup", "title": "Friends"},
        "from": {"id": 11, "is_bot": False, "first_name": "Alice"},
        "text": text,
        **fields,
    }
    return json.dumps({"update_id": number, "message": posted}).encode()


async def apply(store: Store, number: int, raw: bytes) -> None:
    changes = changes_of(raw, ACCOUNT)
    await store.updates.apply(ACCOUNT.platform, changes, key=str(number), raw=raw, at=NOON, keep=timedelta(1))


async def test_a_message_that_comes_as_an_update_too_is_one() -> None:
    (past,) = imported(chat([message(7, "hi")]))

    async with Store.open(":memory:") as store:
        await store.imports.add([past])
        await apply(store, 7, update(7, text="hi"))

        assert await store.log.read(PLACE, 0, 9) == [past.message]
        assert await store.inbox.places() == []


async def test_a_live_reply_to_an_imported_message_names_it() -> None:
    async with Store.open(":memory:") as store:
        await store.imports.add(imported(chat([message(7, "hi")])))
        await apply(store, 8, update(8, text="yes", reply_to_message={"message_id": 7, "date": 1, "chat": {"id": 1}}))

        first, second = await store.log.read(PLACE, 0, 9)
        assert (first.place, second.place) == (PLACE, PLACE)
        assert second.reply_to is not None
        assert second.reply_to.message_id == first.id
        assert [one.message.id for one in (await store.inbox.snapshot(PLACE)).waiting] == ["8"]


async def test_a_topic_is_the_place_that_updates_have() -> None:
    export = chat([service(2, "topic_created", title="Tea"), message(3, "old", reply_to_message_id=2)])
    raw = update(9, text="new", message_thread_id=2, is_topic_message=True)

    async with Store.open(":memory:") as store:
        await store.imports.add(imported(export))
        await apply(store, 9, raw)

        (received,) = changes_of(raw, ACCOUNT)
        topic = received.message.place  # type: ignore[union-attr]
        assert [one.text for one in await store.log.read(topic, 0, 9)] == ["old", "new"]


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
PEOPLE = [Author(id="11", name="Аліса"), Author(id="12", name='"Bo\\x0B\x0b"')]
GONE = Author(id="13", name="Deleted Account", unknown=True)


@st.composite
def messages(draw: st.DrawFn) -> list[Message]:
    """Draw messages of one group, in order; some reply, some were edited."""
    numbers = sorted(draw(st.sets(st.integers(1, 10**9), min_size=1, max_size=8)))
    found: list[Message] = []
    for number in numbers:
        sent_at = NOON + timedelta(seconds=number)
        edited = draw(st.none() | st.integers(1, 1000))
        found.append(
            Message(
                id=str(number),
                place=PLACE,
                author=draw(st.sampled_from([*PEOPLE, GONE])),
                sent_at=sent_at,
                parts=(Text(text=draw(TEXTS)),),
                reply_to=draw(st.none() | st.sampled_from(numbers).map(lambda one: Quote(message_id=str(one)))),
                edited_at=None if edited is None else sent_at + timedelta(seconds=edited),
            )
        )
    return found


def entry_of(one: Message) -> dict[str, Any]:
    assert one.sent_at is not None
    more: dict[str, Any] = {"edited_at": one.edited_at} if one.edited_at else {}
    if one.reply_to:
        more["reply_to_message_id"] = int(one.reply_to.message_id)
    sender = None if one.author.unknown else one.author.name
    return message(int(one.id), one.text, at=one.sent_at, sender=sender, sender_id=f"user{one.author.id}", **more)


@settings(max_examples=size(20, full=50), deadline=None)
@given(said=messages())
async def test_what_was_exported_is_what_the_store_holds(said: list[Message]) -> None:
    async with Store.open(":memory:") as store:
        await store.imports.add(imported(chat([entry_of(one) for one in said])))

        assert await store.log.read(PLACE, 0, 99) == said
        assert await store.check() == []
