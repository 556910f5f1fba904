"""Rows of gryag's databases become messages of the places that the bot knows."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from tertulia.formats.gryag import SYSTEM_LINES, GryagMessages, is_gryag
from tertulia.formats.imported import EMPTY, UNREADABLE, Imported, ImportedMessage, Skipped
from tertulia.formats.telegram_export import NOT_WANTED
from tertulia.messages import Author, Message, Place, Quote
from tertulia.parts import Media, Text

BOT = "4242"
PLACE = Place(platform=f"telegram-{BOT}", id="-1001", kind="group", service="telegram")
SENT = datetime(2025, 10, 6, 12, tzinfo=UTC)
META = {"chat_id": -1001, "message_id": 7, "user_id": 5, "name": "Al", "username": "@al", "reply_to_message_id": 3}
MESSAGE = Message(
    id="7",
    place=PLACE,
    author=Author(id="5", name="Al", username="al"),
    sent_at=SENT,
    parts=(Text(text="hi"),),
    reply_to=Quote(message_id="3"),
)


def row(**changes: Any) -> dict[str, Any]:
    """Return a row of the SQLite and PostgreSQL schemas of 2025."""
    return {
        "id": 1,
        "chat_id": -1001,
        "thread_id": None,
        "user_id": 5,
        "external_message_id": "7",
        "external_user_id": "5",
        "reply_to_external_message_id": "3",
        "sender_name": "Al",
        "sender_username": "al",
        "sender_is_bot": 0,
        "role": "user",
        "text": "hi",
        "media": json.dumps({"media": [], "meta": {}}),
        "ts": int(SENT.timestamp()),
        **changes,
    }


def read(*rows: dict[str, Any], **how: Any) -> list[Imported]:
    return list(GryagMessages(bot_id=BOT, **how).read(iter(rows)))


def messages(*rows: dict[str, Any], **how: Any) -> list[Message]:
    return [item.message for item in read(*rows, **how) if isinstance(item, ImportedMessage)]


FIRST = {"id": 1, "chat_id": -1001, "thread_id": None, "user_id": 5, "role": "user", "text": "hi"}
SCHEMAS = {
    "2025": row(),
    "2025 as text": {name: None if one is None else str(one) for name, one in row().items()},
    "2025, first": {**FIRST, "media": json.dumps({"media": [], "meta": META}), "ts": int(SENT.timestamp())},
    "2025, fifth migration": {
        "message_id": 1,
        **{name: one for name, one in FIRST.items() if name != "id"},
        "media": "[]",
        "metadata": json.dumps(META),
        "created_at": int(SENT.timestamp()),
    },
    "2.0": {
        "id": 1,
        "telegram_message_id": 7,
        "chat_id": -1001,
        "user_id": 5,
        "content": "hi",
        "content_type": "text",
        "reply_to_message_id": 3,
        "is_bot_message": "f",
        "created_at": "2025-10-06 12:00:00",
    },
    "2026": {
        "id": "1",
        "chat_id": "-1001",
        "user_id": "5",
        "username": "al",
        "first_name": "Al",
        "text": "hi",
        "message_id": "7",
        "media_type": None,
        "is_bot_reply": "f",
        "created_at": "2025-10-06 12:00:00.5+00",
        "reply_to_message_id": "3",
    },
}


@pytest.mark.parametrize("schema", SCHEMAS)
def test_each_schema_gives_the_same_message(schema: str) -> None:
    (found,) = messages(SCHEMAS[schema])

    author = Author(id="5", name="5") if schema == "2.0" else MESSAGE.author
    sent_at = SENT.replace(microsecond=500_000) if schema == "2026" else SENT
    expected = Message(
        id="7", place=PLACE, author=author, sent_at=sent_at, parts=MESSAGE.parts, reply_to=MESSAGE.reply_to
    )
    assert found == expected
    assert is_gryag(SCHEMAS[schema])


@pytest.mark.parametrize("own", [{"role": "model"}, {"role": "assistant"}])
def test_what_the_bot_said_is_ours(own: dict[str, Any]) -> None:
    (found,) = read(row(**own, sender_name="gryag", user_id=None, external_user_id=None), agent="гряг")

    assert isinstance(found, ImportedMessage)
    assert (found.own, found.message.author) == (True, Author(id=BOT, name="gryag", persona="гряг"))


def test_the_replies_of_newer_versions_are_ours() -> None:
    found = read({**SCHEMAS["2026"], "is_bot_reply": "t"}, {**SCHEMAS["2.0"], "is_bot_message": True})

    assert [item.own for item in found if isinstance(item, ImportedMessage)] == [True, True]


def test_other_bots_are_agents_and_people_without_an_id_are_unknown() -> None:
    nobody = row(user_id=None, external_user_id=None, sender_name=None)

    found = messages(row(sender_is_bot=1, sender_username=None), nobody)

    assert [one.author for one in found] == [
        Author(id="5", name="Al", persona="Al"),
        Author(id="unknown", name="somebody", unknown=True),
    ]


def test_media_are_named_by_kind_and_type() -> None:
    held = [
        {"mime": "image/jpeg", "kind": "photo"},
        {"inline_data": {"mime_type": "audio/ogg", "data": "aGk="}},
        {"file_data": {"file_uri": "https://youtu.be/x"}},
    ]

    found = messages(row(media=json.dumps({"media": held, "meta": {}})), {**SCHEMAS["2026"], "media_type": "sticker"})

    assert [one.parts for one in found] == [
        (
            Media(media_kind="photo", unique_id="gryag--1001-7-0", mime="image/jpeg"),
            Media(media_kind="audio", unique_id="gryag--1001-7-1", mime="audio/ogg"),
            Text(text="hi"),
        ),
        (Media(media_kind="sticker", unique_id="gryag--1001-7-0"), Text(text="hi")),
    ]


def test_a_row_without_telegrams_id_has_one_that_no_update_has() -> None:
    (found,) = messages(row(external_message_id=None, id=12))

    assert found.id == "gryag:12"


def test_a_thread_that_a_reply_began_is_no_topic() -> None:
    found = messages(
        row(external_message_id="7"),
        row(external_message_id="8", thread_id=7),
        row(external_message_id="9", thread_id=5),
        row(external_message_id="10", thread_id=1),
    )

    assert [one.place.thread for one in found] == [None, None, "5", None]


def test_a_chat_with_a_person_is_direct() -> None:
    (found,) = messages(row(chat_id=5))

    assert (found.place.id, found.place.kind) == ("5", "direct")


def test_other_rows_are_skipped_and_counted() -> None:
    found = read(
        row(role="system"),
        row(text="", media=None),
        row(ts="soon"),
        row(chat_id="x"),
        row(chat_id=-5),
        chats=("-1001",),
    )

    reasons = (SYSTEM_LINES, EMPTY, UNREADABLE, UNREADABLE, NOT_WANTED)
    assert found == [Skipped(reason=reason) for reason in reasons]


@pytest.mark.parametrize("columns", [[], ["chat_id", "text"], ["id", "place", "text", "role"]])
def test_other_tables_are_not_gryags(columns: list[str]) -> None:
    assert not is_gryag(columns)
