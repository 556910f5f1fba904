"""Compact lines become messages: who speaks, to whom, with what."""

import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec import Struct

from tertulia.errors import InvalidValue
from tertulia.formats.compact import MARKERS, is_compact, read_compact
from tertulia.messages import Author, Message, Place, Quote
from tertulia.parts import Media, Part, Text

GROUP = Place(platform="", id="", kind="group")
DIRECT = Place(platform="", id="", kind="direct")
ALICE = Author(id="987654", name="Alice")
BOB = Author(id="111222", name="Bob")
GRYAG = Author(id="gryag", name="gryag", persona="gryag")


def a_line(number: int, author: Author, *parts: Part | str, **changes: Any) -> Message:
    made = tuple(Text(text=part) if isinstance(part, str) else part for part in parts)
    fields: dict[str, Any] = {"id": str(number), "place": GROUP, "author": author, "parts": made}
    return Message(**fields | changes)


def a_medium(uid: str, kind: str) -> Media:
    return Media(media_kind=kind, unique_id=uid)


def to(message: Message) -> Quote:
    return Quote(message_id=message.id, author=message.author, parts=message.parts)


def test_a_conversation_is_read_with_its_replies_media_and_cue() -> None:
    text = """\
Alice#987654: Хто тут?
Питаю: ще раз.

gryag: Я.
Bob#111222 → Alice#987654: [Image] дивись
Alice#987654 -> gryag: [Media]
gryag → Bob#111222: гарно

[RESPOND]
"""

    messages = read_compact(text)

    asked = a_line(1, ALICE, "Хто тут?\nПитаю: ще раз.")
    own = a_line(2, GRYAG, "Я.")
    shown = a_line(3, BOB, a_medium("3-1", "photo"), "дивись", reply_to=to(asked))
    assert messages == (
        asked,
        own,
        shown,
        a_line(4, ALICE, a_medium("4-1", "media"), reply_to=to(own)),
        a_line(5, GRYAG, "гарно", reply_to=to(shown)),
    )


@pytest.mark.parametrize(
    ("line", "author", "parts"),
    [
        ("Alice#1:", Author(id="1", name="Alice"), ()),
        ("Alice#1: ", Author(id="1", name="Alice"), ()),
        ("Alice#1:  two", Author(id="1", name="Alice"), (Text(text=" two"),)),
        ("Alice#1: x\r", Author(id="1", name="Alice"), (Text(text="x"),)),
        ("Alice#-100: x", Author(id="-100", name="Alice"), (Text(text="x"),)),
        ("Олена 😀 К.#42: x", Author(id="42", name="Олена 😀 К."), (Text(text="x"),)),
        ("C#-fan #1#7: x", Author(id="7", name="C#-fan #1"), (Text(text="x"),)),
        ("a: b → c#7: x", Author(id="7", name="a: b → c"), (Text(text="x"),)),
        ("Alice#1: see Bob#2: he knows", Author(id="1", name="Alice"), (Text(text="see Bob#2: he knows"),)),
        ("Alice#1: → Bob#2: x", Author(id="1", name="Alice"), (Text(text="→ Bob#2: x"),)),
        ("Alice#1: [Image]x", Author(id="1", name="Alice"), (Text(text="[Image]x"),)),
        ("Alice#1: x [Image]", Author(id="1", name="Alice"), (Text(text="x [Image]"),)),
        (
            "Alice#1: [Image x2] [Video] x",
            Author(id="1", name="Alice"),
            (
                a_medium("1-1", "photo"),
                a_medium("1-2", "photo"),
                a_medium("1-3", "video"),
                Text(text="x"),
            ),
        ),
        ("Alice#1: x [RESPOND]", Author(id="1", name="Alice"), (Text(text="x"),)),
    ],
)
def test_one_line(line: str, author: Author, parts: tuple[Part, ...]) -> None:
    assert read_compact(line) == (Message(id="1", place=DIRECT, author=author, parts=parts),)


@pytest.mark.parametrize(
    "line",
    ["see #5: x", "#5: x", " Alice#1: x", "Alice#1 x", "Alice#1:x", "Alice#one: x", "Alice #1: x", "A#1 → home", ""],
)
def test_a_line_that_begins_no_message_belongs_to_the_one_before(line: str) -> None:
    assert read_compact(f"Alice#987654: so\n{line}\nBob#111222: x") == (
        a_line(1, ALICE, f"so\n{line}".rstrip("\n")),
        a_line(2, BOB, "x"),
    )


@pytest.mark.parametrize(
    ("target", "author"),
    [
        ("Alice#987654321", Author(id="987654321", name="Alice")),
        ("Alice#654321", Author(id="987654321", name="Alice")),
        ("Alisa#987654321", Author(id="987654321", name="Alice")),
        ("Zoe#1000111222", None),
        ("Bob#1000111222", BOB),
        ("Zoe#654321", None),
        ("Alice#54321", None),
        ("Alice#111654321", None),
    ],
)
def test_a_reply_is_to_the_latest_message_under_the_number_or_its_end(target: str, author: Author | None) -> None:
    text = f"Alice#987654321: old\nBob#111222: one\nAlice#987654321: new\nEve#5 → {target}: x"

    *before, last = read_compact(text)

    found = next((to(message) for message in reversed(before) if message.author == author), None)
    name, _, number = target.partition("#")
    assert last.reply_to == (found or Quote(message_id="", author=Author(id=number, name=name)))


def test_two_of_one_name_stay_two_and_a_renamed_one_stays_one() -> None:
    text = "Alice#1: a\nAlice#2: b\nAlisa#1: c\nBob#3 → Alice#1: d"

    messages = read_compact(text)

    assert [message.author.id for message in messages] == ["1", "2", "1", "3"]
    assert messages[3].reply_to == to(messages[2])


@pytest.mark.parametrize(
    ("agent", "own"),
    [
        (None, ["gryag"]),
        ("gryag", ["gryag"]),
        ("Note", ["Note"]),
        ("Bob", ["Bob"]),
        ("Bob#2", ["Bob"]),
        ("Alice#1", ["Alice"]),
        ("nobody", []),
    ],
)
def test_the_agent_is_who_speaks_without_a_number_most_often_or_who_is_named(agent: str | None, own: list[str]) -> None:
    text = "Alice#1: x\nNote: milk\ngryag: a\nAlice#3: y\nBob#2 → gryag: b\ngryag: c"

    messages = read_compact(text, agent=agent)

    assert list(dict.fromkeys(one.author.persona for one in messages if one.author.persona)) == own


@pytest.mark.parametrize("arrow", [" → ", " -> "])
@pytest.mark.parametrize(
    ("before", "after"),
    [("", ""), ("Alice#987654: yo\n", ""), ("Alice#987654: yo\nNote: milk\n", ""), ("", "\nB#1: x")],
)
def test_who_replies_without_a_number_is_the_agent(before: str, after: str, arrow: str) -> None:
    messages = read_compact(f"{before}gryag{arrow}Alice#987654: hi{after}")

    [own] = [one for one in messages if one.author.persona]
    assert (own.author, own.parts) == (GRYAG, (Text(text="hi"),))
    assert own.reply_to is not None
    assert own.reply_to.author == Author(id="987654", name="Alice")


def test_of_several_agents_of_one_name_the_number_is_asked_for() -> None:
    with pytest.raises(InvalidValue) as raised:
        read_compact("Alice#1: x\nAlice#3: y", agent="Alice")

    assert str(raised.value) == "several are called Alice: say which is the agent (Alice#1, Alice#3)"


def test_whoever_takes_the_agents_name_is_not_the_agent() -> None:
    messages = read_compact("gryag: a\ngryag#5: b\ngryag: c", agent="gryag")

    assert [message.author.persona for message in messages] == ["gryag", None, "gryag"]


def test_text_before_anybody_speaks_is_named_with_its_line() -> None:
    with pytest.raises(InvalidValue) as raised:
        read_compact("\n\nonce upon a time\nAlice#1: x")

    assert str(raised.value) == "line 3: nobody speaks in 'once upon a time'; a line begins with `Name#number: `"


class Said(Struct, frozen=True):
    author: Author
    text: str
    markers: tuple[str, ...] = ()
    to: Author | None = None


def write(talk: Sequence[Said]) -> str:
    return "\n".join(_line(said) for said in talk)


def _line(said: Said) -> str:
    arrow = f" → {_label(said.to)}" if said.to else ""
    return f"{_label(said.author)}{arrow}: {' '.join([*(f'[{one}]' for one in said.markers), said.text])}"


def _label(author: Author) -> str:
    return author.name if author.persona else f"{author.name}#{author.id}"


letters = st.sampled_from([*"aЇ #:→-> 1", "😀", "[", "]", '"', "\t", "\u202e", "\u2028", "x: ", "#2"])
names = st.lists(letters, min_size=1, max_size=12).map("".join).map(str.strip).filter(bool)
numbers = st.integers(0, 10**10).map(str)
texts = st.lists(letters | st.just("\n"), max_size=15).map("".join)
OPENS = re.compile(r"\S#-?\d+(:( |$)| ?(→|->))")
AGENT = Author(id="gryag", name="gryag", persona="gryag")


def is_clear(name: str) -> bool:
    """Whether a name ends where it ends: nothing in it reads as the end of one, or as the agent's."""
    return not OPENS.search(name) and not name.startswith(AGENT.name) and not name.endswith(("-", "→"))


def is_text(text: str) -> bool:
    """Whether no line of a text begins a message, and its end is not cut off."""
    later = text.split("\n")[1:]
    return not any(OPENS.search(line) for line in later) and text == text.rstrip()


people = st.builds(lambda name, number: Author(id=number, name=name), names.filter(is_clear), numbers)
talks = st.lists(
    st.builds(
        Said,
        people | st.just(AGENT),
        texts.filter(is_text).filter(bool),
        st.lists(st.sampled_from([*MARKERS]), max_size=2).map(tuple),
        st.none() | people | st.just(AGENT),
    ),
    min_size=1,
    max_size=6,
)


@given(talks)
def test_what_is_written_without_ambiguity_is_read_back(talk: list[Said]) -> None:
    assume(not any(re.match(r"\[\w+\](\s|$)", said.text) for said in talk))

    messages = read_compact(write(talk), agent=AGENT.name)

    back = [
        Said(
            message.author,
            "".join(part.text for part in message.parts if isinstance(part, Text)),
            tuple(part.media_kind for part in message.parts if isinstance(part, Media)),
        )
        for message in messages
    ]
    assert back == [Said(said.author, said.text, tuple(MARKERS[marker] for marker in said.markers)) for said in talk]
    replied = [(one.reply_to.author.id if one.reply_to and one.reply_to.author else None) for one in messages]
    assert replied == [said.to.id if said.to else None for said in talk]


@given(st.text() | st.lists(st.sampled_from(["Alice#1", "gryag", " → ", "->", ": ", "\n", "#", "x"])).map("".join))
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    ids, why = ids_or_refusal(text)

    assert ids == [str(number + 1) for number in range(len(ids))]
    assert re.fullmatch(r"(line \d+: nobody speaks in .*)?", why)
    assert is_compact(text) in (True, False)


def ids_or_refusal(text: str) -> tuple[list[str], str]:
    try:
        return [message.id for message in read_compact(text)], ""
    except InvalidValue as error:
        return [], str(error)
