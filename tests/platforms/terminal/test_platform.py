"""What a model says is on the screen once, without our markup, however it comes."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from io import StringIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from palaver.errors import KeyRefused, NotSent, SendRefused
from palaver.messages import Author, Message, Reply
from palaver.models.base import Finish, Response
from palaver.parts import Media, Text, ToolCall, ToolResult
from palaver.platform import Delivery
from palaver.platforms.terminal import platform
from palaver.platforms.terminal.platform import ME, PLACE, Terminal, person
from palaver.platforms.terminal.showing import Screen
from palaver.run.cleaner import clean
from palaver.run.journal import Run
from palaver.run.outcome import outcome
from palaver.turns import model

RUN = Run(id="r", place=PLACE, target="1", taken=("1",), began_at=datetime(2026, 1, 1, tzinfo=UTC), horizon=0)
HIDDEN = "abcd1234"
TARGET = Message(id="1", place=PLACE, author=Author(id="2", name="Alice"))
COMPLETE = Finish(outcome="complete")

words = st.sampled_from(
    [
        "Hello",
        " ",
        "\n",
        "\n\n",
        "# «send»\n",
        "# «think»\n",
        "[meta] a=1\n",
        f"[#{HIDDEN}]",
        "From: x",
        "[",
        "#",
        HIDDEN,
    ]
)
texts = st.lists(words | st.text(max_size=5), max_size=12).map("".join)
lines = st.sampled_from(
    ["", " ", "Hello.", "# «send»", "# «think»", "```", "```markdown", "~~~", "# Title", "#", "«", "`a`"]
)
fenced = st.lists(lines, max_size=8).map("\n".join)


async def at_once(show: Callable[[], None]) -> None:
    show()


class Watched:
    """A terminal and what is seen on it."""

    def __init__(self, out: StringIO | None = None) -> None:
        self._out = out or StringIO()
        screen = Screen(self._out, StringIO(), coloured=False)
        self.terminal = Terminal(screen, aside=at_once, worded=lambda error: f"{error}!", took=lambda _: None)
        self.terminal.delimiter = HIDDEN

    @property
    def seen(self) -> str:
        return self._out.getvalue()

    def watch(self, *pieces: Any, run: Run = RUN) -> None:
        with self.terminal.attended():
            for piece in pieces:
                self.terminal.watch(run, Text(text=piece) if isinstance(piece, str) else piece)

    async def send(self, text: str, *media: Media) -> str:
        return await self.terminal.send(delivered(Reply(place=PLACE, text=text, media=media)))


def delivered(reply: Reply) -> Delivery:
    return Delivery(id="k", run_id=None, kind="answer", reply=reply)


def ended(*parts: Any) -> Response:
    return Response(turn=model(*parts), finish=COMPLETE)


def pieces_of(text: str, sizes: Iterable[int]) -> list[str]:
    pieces, left = [], text
    for size in sizes:
        pieces.append(left[:size])
        left = left[size:]
    return [piece for piece in (*pieces, left) if piece]


@given(text=texts, sizes=st.lists(st.integers(1, 6), max_size=20))
async def test_what_streams_in_is_shown_as_it_is_sent_and_once(text: str, sizes: list[int]) -> None:
    screen = Watched()
    said = clean(text, delimiter=HIDDEN)

    screen.watch(*pieces_of(text, sizes), ended(text))
    await screen.send(said)

    assert screen.seen.split() == said.split()
    assert HIDDEN not in screen.seen


async def test_several_turns_of_a_run_are_one_reply_that_was_shown() -> None:
    screen = Watched()
    call = ToolCall(name="now", id="a")

    screen.watch("I look.", call, ended("I look.", call), ToolResult(name="now", id="a"), "Noon.", ended("Noon."))
    await screen.send("I look.\n\nNoon.")

    assert screen.seen == "I look.\nNoon.\n"


@pytest.mark.parametrize("text", ["Noon. And more.", "No", "Noon. Noon."])
async def test_what_differs_is_shown_whole(text: str) -> None:
    screen = Watched()

    screen.watch("Noon.", ended("Noon."))
    await screen.send(text)

    assert screen.seen == f"Noon.\n{text}\n"


async def test_what_was_said_in_another_run_is_said_again() -> None:
    screen = Watched()

    screen.watch("Noon.", ended("Noon."))
    screen.watch("Well.", ended("Well."), run=replace(RUN, id="s"))
    await screen.send("Noon.")

    assert screen.seen == "Noon.\nWell.\nNoon.\n"


async def test_what_comes_while_somebody_types_is_shown_when_it_is_whole() -> None:
    screen = Watched()

    screen.terminal.watch(RUN, Text(text="Half"))
    assert screen.seen == ""

    await screen.send("Half and half.")
    assert screen.seen == "Half and half.\n"


async def test_media_are_shown_in_words_unless_they_were() -> None:
    screen = Watched()
    photo = Media(media_kind="photo", unique_id="p")
    sticker = Media(media_kind="sticker", unique_id="s", rendered_text="a cat")

    screen.watch(photo, ended(photo))
    await screen.send("", photo)
    await screen.send("", sticker)

    assert screen.seen == "[photo]\na cat\n"


async def test_every_message_has_an_id_of_its_own() -> None:
    screen = Watched()

    assert await screen.send("a") != await screen.send("a")


async def test_an_error_is_shown_once_and_is_no_part_of_the_conversation() -> None:
    errors = StringIO()
    screen = Screen(StringIO(), errors, coloured=False)
    terminal = Terminal(screen, aside=at_once, worded=lambda error: f"{error}!", took=lambda _: None)

    line = Reply(place=PLACE, text=terminal.excuse(KeyRefused("no key")))
    with pytest.raises(SendRefused):
        await terminal.send(delivered(line))

    assert (errors.getvalue(), terminal.failed) == ("no key!\n", True)


class Gone(StringIO):
    def write(self, _: str) -> int:
        raise BrokenPipeError


async def test_what_nobody_reads_is_not_sent() -> None:
    screen = Watched(Gone())

    screen.watch("Hello.", ended("Hello."))
    assert screen.terminal.left.is_set()

    with pytest.raises(NotSent):
        await screen.send("Hello!")


@pytest.mark.parametrize(("login", "name"), [("alice", "alice"), ("palaver", "you"), ("", "you")])
def test_the_person_is_never_taken_for_the_agent(login: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "getuser", lambda: login)

    assert (person().id, person().name) == (name, name)
    assert person().id != ME.id


@given(text=fenced, sizes=st.lists(st.integers(1, 6), max_size=20))
async def test_blocks_are_never_seen_and_what_they_say_is_seen_once(text: str, sizes: list[int]) -> None:
    screen = Watched()
    turn = model(text)

    screen.watch(*pieces_of(text, sizes), Response(turn=turn, finish=COMPLETE))
    said = outcome([turn], RUN, TARGET, now=RUN.began_at, delimiter=HIDDEN)
    for reply in said.replies:
        await screen.send(reply.text)

    replies = " ".join(reply.text for reply in said.replies)
    assert screen.seen.split() == replies.split()
