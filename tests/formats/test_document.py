import asyncio
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from people import PERSONA
from tertulia.context.values import Persona
from tertulia.errors import InvalidValue
from tertulia.formats.document import read_conversation
from tertulia.messages import Author, Message, Place, Quote
from tertulia.parts import Media, Text

KYIV = timezone(timedelta(hours=2))


def a_document(**changes: Any) -> dict[str, Any]:
    said = {"id": "1", "author": {"id": "u1", "name": "Alice"}, "parts": [{"kind": "text", "text": "hi"}]}
    return {"now": "2025-01-15T14:30:00+02:00", "messages": [said]} | changes


def entries(*changes: dict[str, Any]) -> list[dict[str, Any]]:
    return [a_document()["messages"][0] | {"id": str(number)} | change for number, change in enumerate(changes, 1)]


def test_a_message_is_read_whole() -> None:
    chat = {"platform": "telegram", "id": "-1", "kind": "group", "title": "Friends", "thread": "5"}
    parts = [{"kind": "media", "media_kind": "photo", "unique_id": "p", "mime": "image/jpeg", "data": "/9j/"}]
    said = {"sent_at": "2025-01-15T14:27:10+02:00", "edited_at": "2025-01-15T14:28:00+02:00", "parts": parts}

    target = read_conversation(a_document(chat=chat, messages=entries(said))).target

    assert target == Message(
        id="1",
        place=Place(platform="telegram", id="-1", kind="group", title="Friends", thread="5"),
        author=Author(id="u1", name="Alice"),
        sent_at=datetime(2025, 1, 15, 14, 27, 10, tzinfo=KYIV),
        edited_at=datetime(2025, 1, 15, 14, 28, tzinfo=KYIV),
        parts=(Media(media_kind="photo", unique_id="p", mime="image/jpeg", data=b"\xff\xd8\xff"),),
    )


def test_a_reply_by_id_quotes_the_message() -> None:
    target = read_conversation(a_document(messages=entries({}, {"reply_to": "1"}))).target

    assert target.reply_to == Quote(message_id="1", author=Author(id="u1", name="Alice"), parts=(Text(text="hi"),))


def test_a_forward_says_whose_words_it_is_and_so_does_a_reply_to_it() -> None:
    olha = {"id": "7", "name": "Olha"}
    cited = {"message_id": "m0", "author": {"id": "u1"}, "forwarded_from": olha}
    said = entries({"forwarded_from": olha}, {"reply_to": "1"}, {"reply_to": cited})

    log = read_conversation(a_document(messages=said)).log

    origin = Author(id="7", name="Olha")
    found = asyncio.run(log.read(Place(platform="", id="", kind="direct"), 0, 3))
    assert [(one.forwarded_from, one.reply_to and one.reply_to.forwarded_from) for one in found] == [
        (origin, None),
        (None, origin),
        (None, origin),
    ]


def test_a_reply_to_a_message_that_is_not_there_knows_its_id_alone() -> None:
    target = read_conversation(a_document(messages=entries({"reply_to": "gone"}))).target

    assert target.reply_to == Quote(message_id="gone")


def test_a_reply_to_a_deleted_message_does_not_say_its_words() -> None:
    target = read_conversation(a_document(messages=entries({"deleted": True}, {"reply_to": "1"}))).target

    assert target.reply_to == Quote(message_id="1", author=Author(id="u1", name="Alice"))


def test_a_quote_may_be_given_in_full() -> None:
    quote = {"message_id": "9", "author": {"id": "u2", "name": "Bob"}, "excerpt": "this"}

    target = read_conversation(a_document(messages=entries({"reply_to": quote}))).target

    assert target.reply_to == Quote(message_id="9", author=Author(id="u2", name="Bob"), excerpt="this")


def test_an_unknown_kind_of_part_is_media_of_that_kind() -> None:
    parts = [{"kind": "poll", "question": "Tea?"}]

    target = read_conversation(a_document(messages=entries({"parts": parts}))).target

    assert target.parts == (Media(media_kind="poll", unique_id=""),)


@pytest.mark.parametrize(
    ("now", "zone"),
    [
        ("2025-01-15T14:30:00+02:00", "UTC+02:00"),
        ("2025-01-15T14:30:00-09:30", "UTC-09:30"),
        ("2025-01-15T14:30:00Z", "UTC"),
        ("2025-01-15T14:30:00", "UTC"),
    ],
)
def test_without_a_zone_it_is_the_one_of_now(now: str, zone: str) -> None:
    assert read_conversation(a_document(now=now)).zone == zone


def test_the_words_of_an_unknown_kind_of_part_stay() -> None:
    target = read_conversation(a_document(messages=entries({"parts": [{"kind": "txt", "text": "hi"}]}))).target

    assert target.parts == (Media(media_kind="txt", unique_id="", rendered_text="hi"),)


@pytest.mark.parametrize(("word", "kind"), [("private", "direct"), ("supergroup", "group"), ("channel", "channel")])
def test_kinds_of_chats_in_telegrams_words(word: str, kind: str) -> None:
    assert read_conversation(a_document(chat={"kind": word})).target.place.kind == kind


def test_a_time_without_a_zone_is_a_local_one() -> None:
    talk = read_conversation(a_document(now="2025-01-15T14:30:00", timezone="Europe/Kyiv"))

    assert talk.now == datetime(2025, 1, 15, 14, 30, tzinfo=KYIV)


def test_the_agent_is_who_speaks_as_one() -> None:
    agent = {"author": {"id": "42", "name": "gryag", "persona": "gryag"}}

    talk = read_conversation(a_document(persona="You are gryag.", messages=entries({}, agent)))

    assert (talk.persona, talk.target.id) == (PERSONA, "1")


def test_a_persona_may_be_given_in_full() -> None:
    talk = read_conversation(a_document(persona={"name": "x", "text": "t", "role": "r"}))

    assert talk.persona == Persona(name="x", text="t", role="r")


TWO_AGENTS = entries(*({"author": {"id": name, "name": name, "persona": name}} for name in "ab"), {})


def test_of_two_agents_the_named_one_answers() -> None:
    assert read_conversation(a_document(messages=TWO_AGENTS, agent="b")).persona.name == "b"
    assert read_conversation(a_document(messages=TWO_AGENTS, agent="b"), agent="a").persona.name == "a"


def test_the_delimiter_of_a_place_is_always_the_same() -> None:
    one, other = (read_conversation(a_document(chat={"id": place})) for place in "ab")

    assert read_conversation(a_document(chat={"id": "a"})).delimiter == one.delimiter != other.delimiter


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        (a_document(messages=[{"id": 1}]), "Expected `str`, got `int` - at `$.messages[0].id`"),
        (a_document(mesages=[]), "Object contains unknown field `mesages`"),
        ({"now": "2025-01-15T14:30:00Z"}, "Object missing required field `messages`"),
        ({"messages": []}, "Object missing required field `now`"),
        (a_document(now="today"), "Invalid RFC3339 encoded datetime - at `$.now`"),
        (a_document(timezone="Mars/Base"), "no time zone is called 'Mars/Base' - at `$.timezone`"),
        (a_document(timezone="../../etc/passwd"), "no time zone is called '../../etc/passwd' - at `$.timezone`"),
        (a_document(target="9"), "no message has the id '9' - at `$.target`"),
        (a_document(messages=[]), "there is no message of others to answer - at `$.messages`"),
        (
            a_document(messages=entries({}, {"id": "1"})),
            "'1' is the id of an earlier message too - at `$.messages[1].id`",
        ),
        (a_document(messages=TWO_AGENTS), "several agents speak (a, b): say which one answers - at `$.agent`"),
        (a_document(chat={"kind": "crowd"}), "a chat is direct, group or channel, not 'crowd' - at `$.chat.kind`"),
        (a_document(tools=[{"name": "no spaces!"}]), "tool name 'no spaces!' is not one every service takes"),
        ([], "Expected `object`, got `array`"),
        (b"{", "Input data was truncated"),
        (b"\xff", "JSON is malformed"),
    ],
)
def test_what_is_wrong_is_one_line_that_names_the_field(document: Any, complaint: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        read_conversation(document)

    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


@given(
    st.recursive(
        st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_anything_else_is_refused_in_our_words(document: Any) -> None:
    with pytest.raises(InvalidValue):
        read_conversation(document)
