"""An export of Telegram Desktop becomes messages of the places that the bot will know."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from telegram_exports import NOT_INCLUDED, account, chat, message, service, value
from tertulia.formats.imported import EMPTY, UNREADABLE, Imported, ImportedMessage, ImportedReaction, Skipped
from tertulia.formats.json_stream import JsonStream
from tertulia.formats.telegram_export import (
    DELETED_ACCOUNT,
    NO_CHAT,
    NOT_WANTED,
    PERSONAL,
    SERVICE_MESSAGES,
    UNSUPPORTED,
    TelegramExport,
    is_export,
)
from tertulia.messages import Author, Message, Place, Quote
from tertulia.parts import Media, Part, Text

BOT = "4242"
PLACE = Place(platform=f"telegram-{BOT}", id="-1001234567890", kind="group", title="Friends", service="telegram")
ALICE = Author(id="11", name="Alice")
NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)


def read(export: dict[str, Any], **how: Any) -> list[Imported]:
    return list(TelegramExport(bot_id=BOT, **how).read(JsonStream([value(export).encode()])))


def read_messages(entries: Iterable[dict[str, Any]], **changes: Any) -> list[Message]:
    return [item.message for item in read(chat(entries, **changes)) if isinstance(item, ImportedMessage)]


def parts_of(entry: dict[str, Any]) -> tuple[Part, ...]:
    (found,) = read_messages([entry])
    return found.parts


def test_a_message_is_that_of_the_place_which_the_bot_knows() -> None:
    edited = NOON + timedelta(hours=1)

    found = read(chat([message(7, "Привіт\x0b!", edited_at=edited, reply_to_message_id=3)]))

    expected = Message(
        id="7",
        place=PLACE,
        author=ALICE,
        sent_at=NOON + timedelta(minutes=7),
        parts=(Text(text="Привіт\x0b!"),),
        reply_to=Quote(message_id="3"),
        edited_at=edited,
    )
    assert found == [ImportedMessage(message=expected)]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("private_supergroup", ("-1000000000007", "group")),
        ("public_supergroup", ("-1000000000007", "group")),
        ("private_channel", ("-1000000000007", "channel")),
        ("public_channel", ("-1000000000007", "channel")),
        ("private_group", ("-7", "group")),
    ],
)
def test_bare_ids_of_chats_become_those_that_bots_see(kind: str, expected: tuple[str, str]) -> None:
    (found,) = read_messages([message(1, "hi")], type=kind, id=7)

    assert (found.place.id, found.place.kind) == expected


@pytest.mark.parametrize(
    ("sender", "sender_id", "expected"),
    [
        ("Al", "user11", Author(id="11", name="Al")),
        ("Al", 11, Author(id="11", name="Al")),
        (None, "user11", Author(id="11", name="Deleted Account", unknown=True)),
        ("Friends", "channel1234567890", Author(id="-1001234567890", name="Friends")),
        ("Old", "chat9", Author(id="-9", name="Old")),
        ("Who", "other9", Author(id="unknown", name="Who", unknown=True)),
    ],
)
def test_authors_have_the_ids_that_bots_see(sender: str | None, sender_id: Any, expected: Author) -> None:
    (found,) = read_messages([message(1, "hi", sender=sender, sender_id=sender_id)])

    assert found.author == expected


def test_a_post_without_an_author_is_that_of_the_channel() -> None:
    post = message(1, "news")
    del post["from"], post["from_id"]

    (found,) = read_messages([post], type="public_channel", name="News", id=7)

    assert found.author == Author(id="-1000000000007", name="News")


def test_messages_of_our_bot_are_ours() -> None:
    entry = message(1, "hello", sender="Gryag", sender_id=f"user{BOT}")

    (named,) = read(chat([entry]))
    (given,) = read(chat([entry]), agent="гряг")

    assert isinstance(named, ImportedMessage)
    assert isinstance(given, ImportedMessage)
    assert (named.own, named.message.author) == (True, Author(id=BOT, name="Gryag", persona="Gryag"))
    assert (given.own, given.message.author) == (True, Author(id=BOT, name="Gryag", persona="гряг"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        (["a ", {"type": "bold", "text": "b"}, " c"], "a b c"),
        ([{"type": "text_link", "text": "here", "href": "https://a.b/"}], "here (https://a.b/)"),
        ([{"type": "link", "text": "https://a.b/"}], "https://a.b/"),
        ([{"type": "pre", "text": "x = 1", "language": "py"}], "x = 1"),
        ([{"type": "mention_name", "text": "Bo", "user_id": 6}, "\n"], "Bo\n"),
        ([{"type": "custom_emoji", "text": "👍", "document_id": "5"}], "👍"),
    ],
)
def test_a_text_is_a_string_or_a_list(text: Any, expected: str) -> None:
    entry = message(1, text)
    old = {key: one for key, one in entry.items() if key != "text_entities"}

    assert parts_of(entry) == parts_of(old) == (Text(text=expected),)


def sticker(**fields: Any) -> Media:
    return Media(media_kind="sticker", unique_id="export--1001234567890-1", **fields)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"photo": "photos/1.jpg", "width": 9, "height": 9}, ("photo", "image/jpeg", {"path": "photos/1.jpg"})),
        ({"photo": NOT_INCLUDED}, ("photo", "image/jpeg", None)),
        (
            {"file": "v.ogg", "media_type": "voice_message", "mime_type": "audio/ogg"},
            ("voice", "audio/ogg", {"path": "v.ogg"}),
        ),
        (
            {"file": NOT_INCLUDED, "media_type": "video_message", "mime_type": "video/mp4"},
            ("video_note", "video/mp4", None),
        ),
        ({"file": NOT_INCLUDED, "media_type": "animation", "mime_type": "video/mp4"}, ("animation", "video/mp4", None)),
        ({"file": NOT_INCLUDED, "media_type": "video_file", "mime_type": "video/mp4"}, ("video", "video/mp4", None)),
        ({"file": NOT_INCLUDED, "media_type": "audio_file", "mime_type": "audio/mpeg"}, ("audio", "audio/mpeg", None)),
        ({"file": NOT_INCLUDED, "mime_type": "application/pdf"}, ("document", "application/pdf", None)),
    ],
)
def test_media_keep_their_kind_type_and_path(fields: dict[str, Any], expected: tuple[str, str, Any]) -> None:
    found = parts_of(message(1, "caption", **fields))

    kind, mime, raw = expected
    media = Media(media_kind=kind, unique_id="export--1001234567890-1", mime=mime, raw=raw)
    assert found == (media, Text(text="caption"))


def test_a_sticker_shows_its_emoji() -> None:
    fields: dict[str, Any] = {"file": "stickers/a.webp", "media_type": "sticker", "sticker_emoji": "😀"}

    expected = sticker(mime="image/webp", label="😀", raw={"path": "stickers/a.webp"})
    assert parts_of(message(1, "", **fields)) == (expected,)


POLL: dict[str, Any] = {"question": "Tea?", "closed": False, "total_voters": 4}
ANSWERS = [{"text": "yes", "voters": 3, "chosen": False}, {"text": "no", "voters": 1, "chosen": True}]
POINT = {"latitude": 50.45, "longitude": 30.52}
CONTACT = {"first_name": "Bo", "last_name": "Li", "phone_number": "+380 1"}
RICH = {"rtl": False, "blocks": [{"type": "heading", "text": "One"}, {"type": "paragraph", "text": ["tw", "o"]}]}


def marker(kind: str, words: str = "") -> Media:
    return Media(media_kind=kind, unique_id=f"{kind}:{words}", rendered_text=words or None)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"poll": {**POLL, "answers": ANSWERS}}, (marker("poll"), Text(text="Tea?\n- yes\n- no"))),
        (
            {"poll": {**POLL, "question": ["Te", {"type": "bold", "text": "a?"}], "answers": []}},
            (marker("poll"), Text(text="Tea?")),
        ),
        (
            {"todo_list": {"title": "Buy", "answers": [{"text": "milk", "id": 1}]}},
            (marker("checklist"), Text(text="Buy\n- milk")),
        ),
        ({"contact_information": CONTACT}, (marker("contact"), Text(text="Bo Li, +380 1"))),
        ({"location_information": POINT}, (marker("location", "50.45000, 30.52000"),)),
        ({"location_information": None}, (marker("location"),)),
        (
            {"place_name": "Cafe", "address": "Main 1", "location_information": POINT},
            (marker("location"), Text(text="Cafe, Main 1")),
        ),
        ({"game_title": "Chess", "game_description": "of kings"}, (marker("event", "a game"),)),
        ({"giveaway_information": {"quantity": 1}}, (marker("event", "a giveaway"),)),
        ({"rich_message": RICH}, (Text(text="One\ntwo"),)),
    ],
)
def test_other_content_becomes_markers_and_words(fields: dict[str, Any], expected: tuple[Part, ...]) -> None:
    assert parts_of(message(1, "", **fields)) == expected


@pytest.mark.parametrize(
    ("fields", "author"),
    [
        ({"forwarded_from": "Bo", "forwarded_from_id": "user12"}, Author(id="12", name="Bo")),
        ({"forwarded_from": "News", "forwarded_from_id": "channel9"}, Author(id="-1000000000009", name="News")),
        ({"forwarded_from": None, "forwarded_from_id": "user12"}, Author(id="12", name=DELETED_ACCOUNT, unknown=True)),
        ({"forwarded_from": "Bo"}, Author(id="unknown", name="Bo", unknown=True)),
        ({"forwarded_from": None}, Author(id="unknown", name=DELETED_ACCOUNT, unknown=True)),
        ({}, None),
    ],
)
def test_a_forward_says_whose_words_it_is(fields: dict[str, Any], author: Author | None) -> None:
    (found,) = read_messages([message(1, "a", **fields)])

    assert (found.parts, found.forwarded_from) == ((Text(text="a"),), author)


def test_a_song_and_a_file_say_their_names() -> None:
    song: dict[str, Any] = {"file": NOT_INCLUDED, "media_type": "audio_file", "performer": "Him", "title": "It"}
    found = read_messages([message(1, "", **song), message(2, "", file=NOT_INCLUDED, file_name="b/a.pdf")])

    shown = [(part.media_kind, part.label) for one in found for part in one.parts if isinstance(part, Media)]
    assert shown == [("audio", "Him – It"), ("document", "a.pdf")]


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (service(1, "invite_members", members=["Bo", None, "Di"]), "joined: Bo, Di"),
        (service(1, "join_group_by_link", inviter="Bo"), "joined: Alice"),
        (service(1, "remove_members", members=["Bo"]), "left: Bo"),
        (service(1, "edit_group_title", title="New"), "the chat is now called New"),
    ],
)
def test_who_came_and_went_are_events_of_the_one_who_did_it(entry: dict[str, Any], words: str) -> None:
    (found,) = read_messages([entry])

    assert (found.id, found.author, found.parts) == ("1", ALICE, (marker("event", words),))


def test_a_signed_post_names_who_signed_it() -> None:
    (found,) = read_messages([message(1, "a", sender="News", sender_id="channel7", author="Al")])

    assert found.author == Author(id="-1000000000007", name="News (Al)")


def test_reactions_are_those_whose_authors_are_named() -> None:
    recent = [{"from": "Bo", "from_id": "user6", "date": "2024-03-01T15:01:00"}]
    reactions = [
        {"type": "emoji", "count": 3, "emoji": "👍", "recent": recent},
        {"type": "emoji", "count": 1, "emoji": "🔥", "recent": recent},
        {"type": "custom_emoji", "count": 1, "document_id": "7", "recent": recent},
        {"type": "emoji", "count": 9, "emoji": "❤"},
    ]

    (found,) = read(chat([message(1, "hi", reactions=reactions)]))

    assert isinstance(found, ImportedMessage)
    at = datetime(2024, 3, 1, 13, 1, tzinfo=UTC)
    assert found.reactions == (ImportedReaction(author=Author(id="6", name="Bo"), emojis=("👍", "🔥"), at=at),)


def test_a_reply_to_another_chat_quotes_nothing_here() -> None:
    found = read_messages(
        [
            message(1, "a", reply_to_message_id=5, reply_to_peer_id="channel99"),
            message(2, "b", reply_to_message_id=5, reply_to_peer_id="channel1234567890"),
        ]
    )

    assert [one.reply_to for one in found] == [None, Quote(message_id="5")]


def test_what_has_no_content_is_skipped_and_counted() -> None:
    found = read(
        chat(
            [
                service(1, "pin_message", message_id=5),
                {"id": 2, "type": "unsupported"},
                message(3, ""),
                {"type": "message", "text": "no id"},
                {"id": 5, "type": "message", "text": "no date", "text_entities": []},
            ]
        )
    )

    reasons = (SERVICE_MESSAGES, UNSUPPORTED, EMPTY, UNREADABLE, UNREADABLE)
    assert found == [Skipped(reason=reason) for reason in reasons]


def test_the_past_of_a_supergroup_from_before_it_was_one_keeps_its_negative_ids() -> None:
    found = read_messages(
        [
            message(-999_999_990, "old", at=NOON),
            message(-999_999_989, "reply", at=NOON, reply_to_message_id=-999_999_990),
            service(1, "migrate_from_group", title="Friends"),
            message(2, "new"),
        ]
    )

    assert [(one.id, one.place, one.reply_to) for one in found] == [
        ("-999999990", PLACE, None),
        ("-999999989", PLACE, Quote(message_id="-999999990")),
        ("2", PLACE, None),
    ]


def test_ids_that_only_the_exporting_account_knows_are_marked() -> None:
    found = read(chat([message(1, "a"), message(2, "b", reply_to_message_id=1)], type="private_group", id=7))

    assert [(item.message.id, item.has_bots_id) for item in found if isinstance(item, ImportedMessage)] == [
        ("export:1", False),
        ("export:2", False),
    ]
    assert isinstance(found[1], ImportedMessage)
    assert found[1].message.reply_to == Quote(message_id="export:1")


def test_topics_are_places_of_their_own() -> None:
    found = read_messages(
        [
            message(1, "general"),
            service(2, "topic_created", title="Tea"),
            message(3, "in the topic", reply_to_message_id=2),
            message(4, "a reply there", reply_to_message_id=3),
            message(5, "general again", reply_to_message_id=1),
        ]
    )

    assert [(one.place.thread, one.reply_to) for one in found] == [
        (None, None),
        ("2", None),
        ("2", Quote(message_id="3")),
        (None, Quote(message_id="1")),
    ]


def test_the_direct_chat_with_our_bot_is_that_of_the_person() -> None:
    entries = [
        message(1, "Hello, I am a bot", sender="Gryag", sender_id=f"user{BOT}"),
        message(2, "hi", sender="Al", sender_id="user5"),
    ]

    found = read_messages(entries, type="bot_chat", id=int(BOT), name="Gryag")

    place = Place(platform=f"telegram-{BOT}", id="5", kind="direct", title="Al", service="telegram")
    assert [(one.id, one.place, one.author.id) for one in found] == [
        ("export:1", place, BOT),
        ("export:2", place, "5"),
    ]


def test_an_account_gives_the_chats_that_a_bot_can_be_in() -> None:
    export = account(
        chat([message(1, "secret"), message(2, "more")], name="Bo", type="personal_chat", id=6),
        chat([message(1, "hi")], name="Weather", type="bot_chat", id=77),
        {"type": "saved_messages", "id": 5, "messages": [message(1, "note")]},
        chat([message(1, "here")]),
        left=[chat([message(9, "gone")], id=8, name="Left")],
    )

    found = read(export)

    assert [item for item in found if isinstance(item, Skipped)] == [
        Skipped(reason=PERSONAL, title="Bo", count=2),
        Skipped(reason=PERSONAL, title="Weather", count=1),
        Skipped(reason=PERSONAL, title="", count=1),
    ]
    imported = [item.message for item in found if isinstance(item, ImportedMessage)]
    assert [(one.place.id, one.text) for one in imported] == [("-1001234567890", "here"), ("-1000000000008", "gone")]


@pytest.mark.parametrize("wanted", ["Friends", "1234567890", "-1001234567890"])
def test_chats_are_chosen_by_title_or_id(wanted: str) -> None:
    export = account(chat([message(1, "here")]), chat([message(1, "there")], name="Others", id=8))

    first, second = read(export, chats=(wanted,))

    assert isinstance(first, ImportedMessage)
    assert second == Skipped(reason=NOT_WANTED, title="Others")


def test_a_chat_whose_id_comes_after_its_messages_is_skipped() -> None:
    assert read({"messages": [message(1, "a")], "id": 7, "type": "private_supergroup"}) == [Skipped(reason=NO_CHAT)]


def test_times_without_a_zone_are_those_of_the_machine() -> None:
    entry = {key: one for key, one in message(0, "old").items() if key != "date_unixtime"}

    (found,) = read(chat([entry]), zone=timezone(timedelta(hours=2)))

    assert isinstance(found, ImportedMessage)
    assert found.message.sent_at == NOON


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (value(chat([])), True),
        (value(chat([], name=None)), True),
        (value(chat([], name='"\\x\x0b')), True),
        (value({"type": "saved_messages", "id": 1, "messages": []}), True),
        (value(account()), True),
        ('{"messages": [{"role": "user", "content": "hi"}]}', False),
        ('{"name": "x", "type": "object"}', False),
        ('[{"role": "user", "parts": []}]', False),
        ("", False),
    ],
)
def test_an_export_is_known_by_its_start(start: str, expected: bool) -> None:
    assert is_export(start) is expected
