"""What other programs kept is told by its content, and becomes turns, messages or a document that can be rendered."""

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertulia.errors import InvalidValue
from tertulia.formats.document import read_conversation
from tertulia.formats.importers import (
    FORMS,
    ImportedConversation,
    as_document,
    as_messages,
    as_turns,
    import_conversation,
)
from tertulia.jsonio import dumps
from tertulia.messages import Author, Message, Place, Quote
from tertulia.parts import Text, Thought, ToolCall, ToolResult
from tertulia.turns import Turn, model, user

NOON = datetime(2025, 1, 15, 12, tzinfo=UTC)
DIRECT = Place(platform="", id="", kind="direct")
GROUP = Place(platform="", id="", kind="group")
PERSON = Author(id="person", name="person", unknown=True)
AGENT = Author(id="agent", name="agent", persona="agent")
BLOCK = {"role": "user", "parts": [{"text": '[meta] chat_id=-5 message_id=3 user_id=7 name="Al"'}, {"text": "hi"}]}


def as_bytes(found: Any) -> bytes:
    return found.encode() if isinstance(found, str) else json.dumps(found).encode()


@pytest.mark.parametrize(
    ("found", "form"),
    [
        ([], "genai"),
        ([{"role": "user", "parts": [{"text": "hi"}]}], "genai"),
        ({"contents": []}, "genai"),
        ({"contents": [{"parts": [{"text": "[metal] is music"}]}]}, "genai"),
        ([BLOCK], "meta"),
        ({"contents": [{"role": "model", "parts": ["hi"]}, BLOCK], "systemInstruction": "x"}, "meta"),
        ([{"role": "user", "content": "hi"}], "openai"),
        ({"model": "gpt-5.6", "messages": []}, "openai"),
        ([{"role": "assistant", "tool_calls": []}, {"role": "user", "content": "x"}], "openai"),
        ("Alice#1: hi", "compact"),
        ("\ufeffgryag: hi\r\nAlice#1 → gryag: hi", "compact"),
    ],
)
def test_the_format_is_found_out(found: Any, form: str) -> None:
    assert import_conversation(as_bytes(found)).form == form


@pytest.mark.parametrize(
    ("data", "form", "why"),
    [
        (b"", None, "there is nothing to read: the input is empty"),
        (b"\xef\xbb\xbf \n", None, "there is nothing to read: the input is empty"),
        (b"Alice#1: a\nBob#2: \xff\n", None, "line 2: the text is not UTF-8"),
        (b"once upon a time", None, "line 1: neither JSON nor lines such as `Name#number: text`"),
        (b"Dear all: hi", None, "line 1: neither JSON nor lines such as `Name#number: text`"),
        (b'[{"role": "user",\n "parts": [}]', None, "line 2: no JSON: Expecting value at column 12"),
        (b"[" * 100_000, None, "the JSON is nested too deeply"),
        (b"{}", None, "the JSON is neither a list of contents (`parts`) nor of messages (`content`)"),
        (b"[1, 2]", None, "the JSON is neither a list of contents (`parts`) nor of messages (`content`)"),
        (b'{"a": 1}', "genai", "the object has no `contents`"),
        (b'[{"role": "user", "parts": [5]}]', None, "contents[0].parts[0]: a number, not a part"),
        (b'{"messages": [{"author": {}}]}', None, "messages[0]: no `role` in it"),
        (b"5", "openai", "a number is no list of messages"),
        (b"hello", "genai", "line 1: no JSON: Expecting value at column 1"),
        (b"hello", "compact", "line 1: nobody speaks in 'hello'; a line begins with `Name#number: `"),
        (b"[]", "xml", "'xml' is no format we read: genai, openai, compact, meta"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_line(data: bytes, form: str | None, why: str) -> None:
    with pytest.raises(InvalidValue) as raised:
        import_conversation(data, form=form)

    assert str(raised.value) == why


def test_a_list_for_a_model_becomes_messages_of_a_person_and_the_agent() -> None:
    found = ImportedConversation(
        form="genai",
        system="Be brief.",
        turns=(
            user("hi"),
            model(Thought(text="hm"), ToolCall(name="f", id="a")),
            user(ToolResult(name="f", id="a")),
            model(Text(text="yes", signature="c2ln"), Text(text="", signature="c2ln")),
        ),
    )

    assert as_messages(found) == (
        Message(id="1", place=DIRECT, author=PERSON, parts=(Text(text="hi"),)),
        Message(id="4", place=DIRECT, author=AGENT, parts=(Text(text="yes"),)),
    )


def test_names_in_a_list_are_who_speaks() -> None:
    found = import_conversation(
        as_bytes(
            [
                {"role": "user", "name": "Al", "content": "hi"},
                {"role": "user", "name": "Bo", "content": "ho"},
                {"role": "assistant", "name": "gryag", "content": "yes"},
            ]
        )
    )

    assert as_messages(found) == (
        Message(id="1", place=GROUP, author=Author(id="Al", name="Al"), parts=(Text(text="hi"),)),
        Message(id="2", place=GROUP, author=Author(id="Bo", name="Bo"), parts=(Text(text="ho"),)),
        Message(
            id="3", place=GROUP, author=Author(id="gryag", name="gryag", persona="gryag"), parts=(Text(text="yes"),)
        ),
    )


def test_among_several_people_each_turn_begins_with_who_speaks() -> None:
    found = import_conversation("Al#1: hi\ngryag: yes\nBo#2 → Al#1: ho".encode())

    assert as_turns(found) == (
        user("From: Al (1) — id: 1", "hi"),
        model("yes"),
        user("From: Bo (2) — id: 3 — reply to: 1", "ho"),
    )


def test_with_one_person_the_turns_are_what_was_said() -> None:
    assert as_turns(import_conversation(b"Al#1: hi\ngryag: yes")) == (user("hi"), model("yes"))


def test_a_document_says_all_that_is_known() -> None:
    found = import_conversation(
        as_bytes({"contents": [BLOCK, {"role": "model", "parts": ["yes"]}], "systemInstruction": "Be brief."})
    )

    assert json.loads(dumps(as_document(found, now=NOON))) == {
        "persona": "Be brief.",
        "agent": "agent",
        "now": "2025-01-15T12:00:00+00:00",
        "timezone": "UTC",
        "chat": {"platform": "", "id": "-5", "kind": "group"},
        "messages": [
            {"id": "3", "author": {"id": "7", "name": "Al"}, "parts": [{"kind": "text", "text": "hi"}]},
            {
                "id": "content-1",
                "author": {"id": "agent", "name": "agent", "persona": "agent"},
                "parts": [{"kind": "text", "text": "yes"}],
            },
        ],
    }


def test_a_document_is_of_one_chat_and_of_a_thread_only_where_all_is() -> None:
    def blocks(*heads: str) -> ImportedConversation:
        return import_conversation(
            as_bytes([{"role": "user", "parts": [{"text": f"[meta] {head}"}]} for head in heads])
        )

    with pytest.raises(InvalidValue) as raised:
        as_document(blocks("chat_id=-5", "chat_id=-6"), now=NOON)

    assert str(raised.value) == "messages of several chats (-5, -6); a conversation is of one"
    assert [
        as_document(blocks(*heads), now=NOON)["chat"]
        for heads in (
            ("chat_id=-5 thread_id=1", "chat_id=-5 thread_id=2"),
            ("chat_id=-5 thread_id=1", "chat_id=-5 thread_id=1"),
            ("user_id=5",),
        )
    ] == [
        {"platform": "", "id": "-5", "kind": "group"},
        {"platform": "", "id": "-5", "kind": "group", "thread": "1"},
        {"platform": "", "id": "", "kind": "direct"},
    ]


pieces = ["Al#1", "Bo#2", "Al#987654", "gryag", " → ", "->", ": ", "\n", "#", "x", "[Image] ", "[RESPOND]"]
texts = st.lists(st.sampled_from(pieces), max_size=30).map("".join).map(lambda text: f"Al#1: hi\n{text}\nBo#2: ho")


@given(texts)
def test_a_document_is_read_to_the_same_messages(text: str) -> None:
    found = import_conversation(text.encode())

    conversation = read_conversation(dumps(as_document(found, now=NOON)))

    kept = asyncio.run(conversation.log.read(conversation.target.place, 0, len(found.messages) + 1))
    assert tuple(kept) == found.messages
    assert (conversation.now, conversation.persona.name) == (NOON, found.agent or "")


KEYS = (
    "contents messages parts content role text name id tool_calls function arguments functionCall function_response "
    "response args inlineData data mime_type thoughtSignature thought system_instruction config model tool_call_id "
    "type image_url url"
).split()
TEXTS = [
    "user",
    "model",
    "assistant",
    "tool",
    "system",
    "text",
    "image_url",
    "{}",
    "[meta] user_id=5",
    "[speaker id=1]",
]
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(TEXTS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=20,
)
said = {"role": st.sampled_from(TEXTS[:5]), "parts": values, "content": values, "tool_calls": values, "name": values}
lists = st.lists(st.fixed_dictionaries({}, optional=said), max_size=4)


anything = (values.map(json.dumps) | lists.map(json.dumps) | st.text()).map(
    lambda text: text.encode("utf-8", "replace")
)


@given(anything | st.binary(), st.none() | st.sampled_from(FORMS), st.none() | st.text(min_size=1))
def test_whatever_it_is_it_is_read_or_refused_in_one_line(data: bytes, form: str | None, agent: str | None) -> None:
    turns, document, why = all_or_refusal(data, form, agent)

    assert len(why.splitlines()) <= 1
    assert all(isinstance(turn, Turn) for turn in turns)
    if any("persona" not in message["author"] for message in document.get("messages", ())):
        assert read_conversation(dumps(document)).now == NOON


def all_or_refusal(data: bytes, form: str | None, agent: str | None) -> tuple[tuple[Turn, ...], dict[str, Any], str]:
    try:
        found = import_conversation(data, form=form, agent=agent)
        return as_turns(found), as_document(found, now=NOON), ""
    except InvalidValue as error:
        return (), {}, str(error)


def test_a_quote_of_what_is_not_there_says_who_was_meant() -> None:
    document = as_document(import_conversation("Al#1 → Bo#2: hi".encode()), now=NOON)

    conversation = read_conversation(document)

    assert conversation.target.reply_to == Quote(message_id="", author=Author(id="2", name="Bo"))
