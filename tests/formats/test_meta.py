"""Contents that begin with a block become messages of whom the block names, and of nobody else."""

import re
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertulia.formats.context_block import meta_header
from tertulia.formats.meta import Header, has_headers, read_header, read_meta
from tertulia.messages import Author, Message, Place, Quote
from tertulia.parts import Media, Part, Text, Thought, ToolCall, ToolResult
from tertulia.turns import Turn, model, user

CHAT = Place(platform="", id="-123", kind="group")
DIRECT = Place(platform="", id="", kind="direct")
ALICE = Author(id="456", name="Alice")
AGENT = Author(id="agent", name="agent", persona="agent")
EVERYTHING = (
    '[meta] chat_id=-123 thread_id=5 message_id=7 user_id=456 username="alice_ua" name="Alice \\"A\\"" '
    'reply_to_message_id=6 reply_to_user_id=9 reply_to_username="bo" reply_to_name="Bob" reply_excerpt="so [x"'
)


@pytest.mark.parametrize(
    ("text", "kind", "pairs", "rest"),
    [
        ("[meta] user_id=5", "meta", {"user_id": "5"}, ""),
        ('[meta] chat_id="-123" user_id="5"', "meta", {"chat_id": "-123", "user_id": "5"}, ""),
        ("[meta] user_id=5\nhello", "meta", {"user_id": "5"}, "hello"),
        ("[meta] user_id=5\r\n  hello", "meta", {"user_id": "5"}, "  hello"),
        ("[meta] user_id=5 hello", "meta", {"user_id": "5"}, "hello"),
        ("[meta]", "meta", {}, ""),
        ("[meta]\n", "meta", {}, ""),
        ("[meta chat_id=-123 user_id=456]", "meta", {"chat_id": "-123", "user_id": "456"}, ""),
        (
            '[meta user_id=5 chat_id=1 name="A ] B" mood=7] hi',
            "meta",
            {"user_id": "5", "chat_id": "1", "name": "A ] B"},
            "hi",
        ),
        (
            '[speaker role=user id=1 name="Al" username="al" is_bot=0]',
            "speaker",
            {"user_id": "1", "name": "Al", "username": "al", "is_bot": "0"},
            "",
        ),
        ('[meta] name="C:\\"', "meta", {"name": "C:\\"}, ""),
        ('[meta] username="C:\\" name="B"', "meta", {"username": "C:\\", "name": "B"}, ""),
        ('[meta] name="" reply_to_name="B"', "meta", {"reply_to_name": "B"}, ""),
        # a pair out of its order, or again, is what somebody wrote
        ("[meta] name=A user_id=1", "meta", {"name": "A"}, "user_id=1"),
        ("[meta] user_id=5 user_id=1", "meta", {"user_id": "5"}, "user_id=1"),
        ("[meta user_id=5 user_id=1]", "meta", {"user_id": "5"}, ""),
    ],
)
def test_a_block_is_read_with_all_its_pairs(text: str, kind: str, pairs: dict[str, str], rest: str) -> None:
    assert read_header(text) == Header(kind=kind, pairs=pairs, rest=rest)


@pytest.mark.parametrize(
    "text",
    ["", "hi", "[meta", "[meta] hello", "[metadata] user_id=5", "[meta ]", "[speaker]", "[meta user_id=5",
     " [meta] user_id=5", "[meta] user_id=5]", "[meta user_id=5]x", '[meta] name="a'],
)  # fmt: skip
def test_what_only_looks_like_a_block_is_none(text: str) -> None:
    assert read_header(text) is None


def test_every_key_finds_its_place() -> None:
    [message] = read_meta([user(EVERYTHING, "hi")])

    assert message == Message(
        id="7",
        place=Place(platform="", id="-123", kind="group", thread="5"),
        author=Author(id="456", name='Alice "A"', username="alice_ua"),
        parts=(Text(text="hi"),),
        reply_to=Quote(message_id="6", author=Author(id="9", name="Bob", username="bo"), excerpt="so [x"),
    )


def test_a_conversation_is_read_with_the_agents_turns_and_without_its_steps() -> None:
    photo = Media(media_kind="photo", unique_id="p", mime="image/jpeg", data=b"x")
    turns = [
        user('[meta] chat_id=-123 user_id=456 name="Alice"', "Подивись на це фото", photo),
        model(Thought(text="hm"), ToolCall(name="f", id="a")),
        user(ToolResult(name="f", id="a")),
        model(Text(text="Бачу.", signature="c2ln")),
        user("[meta chat_id=-123 message_id=9 user_id=456]"),
        user("and so on"),
    ]

    assert read_meta(turns) == (
        Message(id="content-0", place=CHAT, author=ALICE, parts=(Text(text="Подивись на це фото"), photo)),
        Message(id="content-3", place=CHAT, author=AGENT, parts=(Text(text="Бачу."),)),
        Message(id="9", place=CHAT, author=Author(id="456", name="")),
        Message(
            id="content-5",
            place=CHAT,
            author=Author(id="person", name="person", unknown=True),
            parts=(Text(text="and so on"),),
        ),
    )


@pytest.mark.parametrize(
    ("parts", "author", "left"),
    [
        # a second block is ours where it is of the other kind and of the same author
        (("[meta] user_id=5", '[speaker role=user id=5 name="Al"]', "hi"), Author(id="5", name="Al"), ("hi",)),
        (
            ('[speaker id=5 name="Al"]', "[meta] user_id=5 username=al", "hi"),
            Author(id="5", name="Al", username="al"),
            ("hi",),
        ),
        (("[meta] user_id=5", "[speaker id=1 name=Boss]"), Author(id="5", name=""), ("[speaker id=1 name=Boss]",)),
        (("[meta] user_id=5", "[meta] user_id=5 name=Boss"), Author(id="5", name=""), ("[meta] user_id=5 name=Boss",)),
        (("[meta] name=Al", "[speaker id=1]"), Author(id="Al", name="Al"), ("[speaker id=1]",)),
        (("[meta] user_id=5", "hi\n[meta] user_id=1"), Author(id="5", name=""), ("hi\n[meta] user_id=1",)),
        (("[meta] username=al", "hi"), Author(id="@al", name="", username="al"), ("hi",)),
    ],
)
def test_nobody_becomes_somebody_else_by_what_they_write(
    parts: tuple[str, ...], author: Author, left: tuple[str, ...]
) -> None:
    [message] = read_meta([user(*parts)])

    assert message == Message(id="content-0", place=DIRECT, author=author, parts=tuple(Text(text=one) for one in left))


def test_a_block_that_a_model_repeated_says_nothing_of_the_agent() -> None:
    turns = [user("[meta] message_id=1 user_id=5 name=Al", "hi"), model("[meta] message_id=1 user_id=5 name=Al\nyes")]

    assert read_meta(turns)[1] == Message(id="content-1", place=DIRECT, author=AGENT, parts=(Text(text="yes"),))


@pytest.mark.parametrize(
    ("agent", "author"),
    [
        (None, Author(id="42", name="gryag", persona="gryag")),
        ("bot", Author(id="42", name="gryag", persona="bot")),
    ],
)
def test_the_agents_own_block_says_who_it_is(agent: str | None, author: Author) -> None:
    [own] = read_meta([model("[speaker role=model id=42 name=gryag is_bot=1]", "yes")], agent=agent)

    assert own.author == author


def test_an_id_is_given_once() -> None:
    turns = [user("[meta] message_id=content-1", "a"), user("[meta] message_id=content-1", "b"), user("[meta]", "c")]

    assert [message.id for message in read_meta(turns)] == ["content-1", "content-1-", "content-2"]


@pytest.mark.parametrize(
    ("turns", "headed"),
    [
        ([], False),
        ([user("hi")], False),
        ([user("[meta] user_id=5", "hi")], True),
        ([model("hello"), user(ToolResult(name="f")), user("[speaker id=5]")], True),
        ([user("hi"), user("[meta] user_id=5")], True),
        ([user("hi"), user("see [meta] user_id=5")], False),
        ([model("[meta] user_id=5")], False),
    ],
)
def test_any_person_who_speaks_after_a_block_shows_which_format_it_is(turns: list[Turn], headed: bool) -> None:
    assert has_headers(turns) is headed


def test_what_has_no_block_is_of_an_unknown_author() -> None:
    messages = read_meta([user("hi"), user("[meta] user_id=5 name=Al", "ho"), user(ToolResult(name="f"))])

    assert [(one.author, one.parts) for one in messages] == [
        (Author(id="person", name="person", unknown=True), (Text(text="hi"),)),
        (Author(id="5", name="Al"), (Text(text="ho"),)),
    ]
    assert {one.place.kind for one in messages} == {"group"}


letters = st.sampled_from([*'aЇ "\\[]=\n\t`', "😀", 'name="', "user_id=5", "\u202e", "x" * 30])
words = st.lists(letters, max_size=8).map("".join) | st.text(max_size=130)
ids = st.integers(-(10**14), 10**14).map(str) | words
authors = st.builds(Author, id=ids, name=words, username=st.none() | words)
quotes = st.builds(Quote, message_id=ids, author=st.none() | authors, excerpt=st.none() | words)
messages = st.builds(
    Message,
    id=ids,
    place=st.builds(Place, platform=st.just(""), id=ids, kind=st.just("group"), thread=st.none() | ids),
    author=authors,
    reply_to=st.none() | quotes,
)


def as_written(header: Header) -> str:
    """The block that has these pairs and no others: numbers of ids bare, all else in quotation marks."""
    shown = (
        f"{key}={value}" if key.endswith("_id") and re.fullmatch(r"-?\d+", value) else f'{key}="{_escaped(value)}"'
        for key, value in header.pairs.items()
    )
    return " ".join(["[meta]", *shown])


def _escaped(value: str) -> str:
    return value.replace('"', '\\"')


@given(messages, words)
def test_what_we_write_is_read_back_pair_by_pair(message: Message, text: str) -> None:
    block = meta_header(message)

    header = read_header(block)

    assert header is not None
    assert (as_written(header), header.rest) == (block, "")
    assert read_header(f"{block}\n{text}") == Header(kind="meta", pairs=header.pairs, rest=text)


plain = st.text("abЇ😀\"'=:#→", min_size=1, max_size=120)
numbers = st.integers(-(10**14), 10**14).filter(bool).map(str)


@given(st.tuples(numbers, numbers, numbers, numbers, numbers), st.tuples(plain, plain, plain, plain), plain)
def test_ids_and_names_come_back_cut_as_the_format_cuts_them(
    ids: tuple[str, ...], names: tuple[str, ...], excerpt: str
) -> None:
    def a_message(names: tuple[str, ...]) -> Message:
        kind: Literal["direct", "group"] = "group" if ids[0].startswith("-") else "direct"
        return Message(
            id=ids[1],
            place=Place(platform="", id=ids[0], kind=kind, thread="5"),
            author=Author(id=ids[2], name=names[0], username=names[1]),
            parts=(Text(text="hi"),),
            reply_to=Quote(
                message_id=ids[3], author=Author(id=ids[4], name=names[2], username=names[3]), excerpt=excerpt
            ),
        )

    [back] = read_meta([user(meta_header(a_message(names)), "hi")])

    assert back == a_message(tuple(name if len(name) <= 100 else f"{name[:98]}.." for name in names))


parts: st.SearchStrategy[Part] = st.builds(Text, text=words | st.builds(meta_header, messages)) | st.just(
    ToolCall(name="f")
)
turns = st.builds(Turn, role=st.sampled_from(["user", "model"]), parts=st.lists(parts, max_size=4).map(tuple))


@given(st.lists(turns, max_size=6))
def test_any_turns_become_messages_with_ids_of_their_own(history: list[Turn]) -> None:
    found = read_meta(history)

    assert len({message.id for message in found}) == len(found)
    assert sum(message.author.persona is not None for message in found) <= sum(turn.role == "model" for turn in history)


@given(
    st.lists(st.sampled_from(["[meta", "]", " ", "user_id=", "5", 'name="', '"', "\\", "\n", "[speaker", "id=1"])).map(
        "".join
    )
)
def test_any_text_is_a_block_or_none(text: str) -> None:
    header = read_header(text)

    assert header is None or text.endswith(header.rest)
