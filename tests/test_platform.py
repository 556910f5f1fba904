"""What a platform has without writing it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tertulia import Author, Commanded, Delivery, Inbox, Media, Message, Place, Platform, Received, Reply, Text
from tertulia.errors import InvalidValue
from tertulia.markdown import Fences, split_text
from tertulia.platform import Capabilities, split_reply, with_media_as_text

DIRECT = Place(platform="simple", id="1", kind="direct")
GROUP = Place(platform="simple", id="-1", kind="group")
ALICE = Author(id="1", name="Alice")


class Simple(Platform):
    name = "simple"
    me = Author(id="0", name="Bot")

    async def run(self, inbox: Inbox) -> None: ...

    async def send(self, delivery: Delivery) -> str:
        return delivery.id


async def test_what_is_not_written_has_a_default() -> None:
    platform = Simple()
    await platform.open()
    await platform.preview(DIRECT, "r1", "so far")

    assert platform.service == "simple"
    assert platform.capabilities == Capabilities()
    assert platform.split(Reply(place=DIRECT, text="long " * 10_000)) == (Reply(place=DIRECT, text="long " * 10_000),)
    assert [await platform.role(place, ALICE) for place in (DIRECT, GROUP)] == ["owner", "member"]


@pytest.mark.parametrize(
    ("kinds", "text", "sent"),
    [
        ([], "Look.\n\nhttps://x/cat\n\na dog\n\n[document]\n\n😀", []),
        (["photo"], "Look.\n\n[document]\n\n😀", ["cat", "dog"]),
        (["document"], "Look.\n\nhttps://x/cat\n\n😀", ["dog", "file"]),
        (["document", "photo", "sticker"], "Look.", ["cat", "dog", "file", "cats/smile"]),
    ],
)
def test_media_that_a_platform_cannot_send_are_a_link_or_words(kinds: list[str], text: str, sent: list[str]) -> None:
    media = (
        Media(media_kind="photo", unique_id="cat", uri="https://x/cat", rendered_text="a cat"),
        Media(media_kind="photo", unique_id="dog", sha256="ab", rendered_text="a dog"),
        Media(media_kind="document", unique_id="file", data=b"x", uri="file:///etc/passwd"),
        Media(media_kind="sticker", unique_id="cats/smile", rendered_text="😀"),
    )

    found = with_media_as_text(Reply(place=DIRECT, text="Look.", media=media), frozenset(kinds))

    assert (found.text, [one.unique_id for one in found.media]) == (text, sent)


@pytest.mark.parametrize(
    ("text", "name", "argument"),
    [
        ("/memory", "memory", ""),
        (" /Forget  peanuts and\nmilk ", "forget", "peanuts and\nmilk"),
        ("/stop@Gryag_bot", "stop", ""),
        ("/stop@other_bot", None, ""),
        ("/home/me is full", None, ""),
        ("/", None, ""),
        ("/2 of it", None, ""),
        ("and/or", None, ""),
        ("", None, ""),
    ],
)
def test_a_text_with_a_slash_and_a_name_is_a_command(text: str, name: str | None, argument: str) -> None:
    platform = Simple()
    platform.me = Author(id="0", name="Bot", username="gryag_bot")
    message = Message(id="1", place=DIRECT, author=ALICE, parts=(Text(text=text),))

    command = Commanded(message=message, name=name, argument=argument) if name else Received(message=message)
    assert platform.received(message) == command
    forward = replace(message, forwarded_from=ALICE)
    assert platform.received(forward) == Received(message=forward)


def test_run_and_send_must_be_written() -> None:
    class Half(Platform):
        name = "half"
        me = Author(id="0", name="Bot")

    with pytest.raises(TypeError, match=r"run.*send"):
        Half()  # type: ignore[abstract]


LINES = "\n".join(f"line {number}" for number in range(8))
SPLITS = [
    ("one two", 7, ["one two"]),
    ("one two", 5, ["one", "two"]),
    ("one two three", 8, ["one two", "three"]),
    ("the first\n\nsecond and third", 17, ["the first", "second and third"]),
    ("first line\nsecond line", 12, ["first line", "second line"]),
    ("if x:\n    return y", 12, ["if x:", "    return y"]),
    ("abcdefghij", 4, ["abcd", "efgh", "ij"]),
    ("", 4, [""]),
    ("Do:\n```py\na = 1\nb = 2\n```", 30, ["Do:\n```py\na = 1\nb = 2\n```"]),
    ("Do it in this way:\n```py\na = 1\n```\nDone.", 30, ["Do it in this way:", "```py\na = 1\n```\nDone."]),
    (
        f"Do:\n```py\n{LINES}\n```\nDone.",
        48,
        [
            "Do:\n```py\nline 0\nline 1\nline 2\nline 3\nline 4\n```",
            "```py\nline 5\nline 6\nline 7\n```\nDone.",
        ],
    ),
    (f"```py\n{LINES}\n```", 62, [f"```py\n{LINES[:48]}\n```", "```py\nline 7\n```"]),
    (f"```\n{LINES[:48]}\n```\nThe end.", 56, [f"```\n{LINES[:48]}\n```", "The end."]),
    (
        "- item\n  ~~~~\n  line one\n  line two\n  line three\n  ~~~~",
        50,
        ["- item", "  ~~~~\n  line one\n  line two\n  line three\n  ~~~~"],
    ),
    (
        "> ```\n> line one\n> line two\n> line three\n> ```",
        42,
        ["> ```\n> line one\n> line two\n> ```", "> ```\n> line three\n> ```"],
    ),
]


def test_a_text_is_split_where_people_would_split_it() -> None:
    pieces = [split_text(text, length) for text, length, _ in SPLITS]

    assert pieces == [wanted for _, _, wanted in SPLITS]


@given(st.text(alphabet="ab \n", max_size=60), st.integers(1, 12))
def test_no_letter_is_lost_or_doubled_and_no_piece_is_too_long(text: str, length: int) -> None:
    pieces = split_text(text, length)

    assert "".join("".join(pieces).split()) == "".join(text.split())
    assert all(len(piece) <= length for piece in pieces)


@given(
    st.lists(st.sampled_from(["```", "```py", "~~~", "words", "> ```", "> words", "", "- ```", "  words", "w" * 60])),
    st.integers(40, 80),
)
def test_every_piece_has_whole_code_fences(lines: list[str], length: int) -> None:
    text = "\n".join(lines)

    pieces = split_text(text, length)

    assert all(len(piece) <= length for piece in pieces)
    assert "".join(pieces).count("words") == text.count("words")
    assert [is_open_at_end(piece) for piece in pieces[:-1]] == [False] * (len(pieces) - 1)


def is_open_at_end(text: str) -> bool:
    fences = Fences()
    for line in text.split("\n"):
        fences.covers(line, 0, ended=True)
        fences.add_line(line)
    return bool(fences.covers("x", 0, ended=True))


def test_the_first_part_quotes_and_the_last_has_the_media() -> None:
    photo = Media(media_kind="photo", unique_id="p", mime="image/png", data=b"x")
    reply = Reply(place=DIRECT, text="one two three", reply_to="7", media=(photo,))

    assert split_reply(reply, 5) == (
        Reply(place=DIRECT, text="one", reply_to="7"),
        Reply(place=DIRECT, text="two"),
        Reply(place=DIRECT, text="three", media=(photo,)),
    )


def test_what_no_service_can_be_is_refused_in_one_line() -> None:
    with pytest.raises(InvalidValue, match=r"^Capabilities\(drafts=True\) needs edits=True"):
        Capabilities(drafts=True)
    with pytest.raises(InvalidValue, match=r"^Capabilities\(length=0\) must be 1 or more"):
        Capabilities(length=0)
