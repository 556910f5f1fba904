"""What a model says is on the screen once, without our markup, however it comes."""

from collections.abc import AsyncIterator, Callable, Iterable
from datetime import UTC, datetime
from hashlib import sha256
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from tertulia.engine.run_executor import LiveText, LiveTexts, live_events
from tertulia.engine.view import View, ViewDelivery, ViewUpdate, nothing
from tertulia.errors import NotSent
from tertulia.events import Delta, Event, Missed, RunFailed, RunStarted
from tertulia.messages import Author, Message, Reply
from tertulia.models.base import Finish, Response
from tertulia.parts import Media, Text, ToolCall, ToolResult
from tertulia.platform import ALL_MEDIA, Delivery, DeliveryKind, Inbox
from tertulia.platforms.terminal import setup
from tertulia.platforms.terminal.output import Output, ScreenDisplay
from tertulia.platforms.terminal.platform import Terminal, UpdateDisplay
from tertulia.platforms.terminal.saved_files import SavedFiles
from tertulia.platforms.terminal.setup import ME, PLACE, person
from tertulia.run.cleaner import clean
from tertulia.run.journal import Run
from tertulia.run.outcome import run_outcome
from tertulia.turns import model

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


async def updates_of(view: View, events: Iterable[Event]) -> AsyncIterator[ViewUpdate]:
    for event in events:
        yield ViewUpdate(view=view, change=nothing(view), event=event)


async def at_once(show: Callable[[], None]) -> None:
    show()


async def nobody_types(_: Inbox) -> None:
    """Leave at once."""


SENDING = ViewDelivery(id="k", order=1, kind="answer", status="waiting", made_at=RUN.began_at)
VIEW = View(place=PLACE, deliveries=(SENDING,))


class Watched:
    """A terminal and what is seen on it."""

    def __init__(
        self, out: StringIO | None = None, errors: StringIO | None = None, *, files: Path | None = None
    ) -> None:
        self._out = out or StringIO()
        screen = ScreenDisplay(self._out, errors or StringIO(), coloured=False)
        self.output = Output(at_once)
        self.updates = UpdateDisplay(self.output, screen, VIEW)
        self.terminal = Terminal(self.output, screen, self.updates, talk=nobody_types, files=SavedFiles(files))

    @property
    def seen(self) -> str:
        return self._out.getvalue()

    async def watch(self, *pieces: Any, run: str = "r", began: bool = True) -> None:
        """See a run, its text as `live_events` has it."""
        with self.output.streaming():
            await self.show(*self._events(pieces, run, began))

    async def show(self, *events: Event) -> None:
        await self.updates.run(updates_of(VIEW, events))

    async def send(self, text: str, *media: Media, streamed: bool = True, run: str = "r") -> str:
        reply = Reply(place=PLACE, text=text, media=media)
        return await self.terminal.send(delivered(reply, run_id=run, streamed=streamed))

    def _events(self, pieces: Iterable[Any], run: str, began: bool) -> list[Event]:
        starts: list[Event] = [RunStarted(place=PLACE, run_id=run, message_id="1")] if began else []
        return [*starts, *seen_events(pieces, run)]


def seen_events(pieces: Iterable[Any], run: str = "r") -> list[Event]:
    """The events of a run whose model says *pieces*."""
    texts = LiveTexts(lambda: LiveText(HIDDEN))
    given = [Text(text=piece) if isinstance(piece, str) else piece for piece in pieces]
    return [event for piece in given for event in live_events(replace(RUN, id=run), piece, texts.feed(piece))]


def delivered(reply: Reply, *, kind: DeliveryKind = "answer", run_id: str = "r", streamed: bool = False) -> Delivery:
    return Delivery(id="k", run_id=run_id, kind=kind, reply=reply, streamed=streamed)


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

    await screen.watch(*pieces_of(text, sizes), ended(text))
    await screen.send(said)

    assert screen.seen.split() == said.split()
    assert HIDDEN not in screen.seen


async def test_several_turns_of_a_run_are_one_reply_that_was_shown() -> None:
    screen = Watched()
    call = ToolCall(name="now", id="a")

    await screen.watch("I look.", call, ended("I look.", call), ToolResult(name="now", id="a"), "Noon.", ended("Noon."))
    await screen.send("I look.\n\nNoon.")

    assert screen.seen == "I look.\nNoon.\n"


async def test_what_a_block_says_is_shown_though_the_same_was_said_before() -> None:
    screen = Watched()

    await screen.watch("Noon.", ended("Noon."))
    await screen.send("Noon.", streamed=False)

    assert screen.seen == "Noon.\nNoon.\n"


async def test_the_reply_of_another_run_is_shown() -> None:
    screen = Watched()

    await screen.watch("Noon.", ended("Noon."))
    await screen.watch("Well.", ended("Well."), run="s")
    await screen.send("Noon.")

    assert screen.seen == "Noon.\nWell.\nNoon.\n"


async def test_the_reply_of_a_run_that_began_in_an_earlier_process_is_shown_whole() -> None:
    screen = Watched()

    await screen.watch("Noon.", ended("Noon."), began=False)
    await screen.send("I look.\n\nNoon.")

    assert screen.seen == "Noon.\nI look.\n\nNoon.\n"


async def test_what_comes_while_somebody_types_is_shown_when_it_is_whole() -> None:
    screen = Watched()

    await screen.watch()
    await screen.show(Delta(place=PLACE, run_id="r", part=Text(text="Half")))
    assert screen.seen == ""
    await screen.watch(" and half.", ended("Half and half."), began=False)

    await screen.send("Half and half.")
    assert screen.seen == " and half.\nHalf and half.\n"


async def test_a_reply_of_which_pieces_were_missed_is_shown_whole() -> None:
    screen = Watched()

    await screen.watch("Half", ended("Half and half."))
    await screen.show(Missed(events=1))
    await screen.send("Half and half.")

    assert screen.seen == "Half\nHalf and half.\n"


async def test_media_are_shown_in_words_unless_they_were() -> None:
    screen = Watched()
    photo = Media(media_kind="photo", unique_id="p")
    sticker = Media(media_kind="sticker", unique_id="s", rendered_text="a cat")

    await screen.watch(photo, ended(photo))
    await screen.send("", photo)
    await screen.send("", sticker, streamed=False)

    assert screen.seen == "[photo]\na cat\n"


@pytest.mark.parametrize("kind", sorted({*ALL_MEDIA, "youtube", "unknown"}))
async def test_links_are_shown_below_the_text_that_streamed(kind: str) -> None:
    screen = Watched()
    linked = Media(media_kind=kind, unique_id="l", uri="https://e.test/b", label="named")

    await screen.watch("Look: \nhttps://e.test/c", ended("Look: \nhttps://e.test/c"))
    await screen.send("Look:\nhttps://e.test/c\n\nhttps://e.test/a", linked)

    assert screen.seen == "Look: \nhttps://e.test/c\nhttps://e.test/a\nhttps://e.test/b\n"


async def test_files_are_saved_under_safe_names_and_their_paths_shown(tmp_path: Path) -> None:
    screen = Watched(files=tmp_path / "files")
    chart = Media(media_kind="photo", unique_id="c", data=b"a chart", mime="image/png")
    hostile = Media(media_kind="document", unique_id="d", data=b"x", label="../../etc/passwd.txt")

    await screen.watch("Here.", ended("Here."))
    await screen.send("Here.", chart)
    await screen.send("", hostile, streamed=False)

    digests = [sha256(data).hexdigest()[:8] for data in (b"a chart", b"x")]
    names = [f"{digests[0]}-photo.png", f"{digests[1]}-passwd.txt"]
    assert sorted(path.name for path in (tmp_path / "files").iterdir()) == sorted(names)
    assert [line.rpartition("/")[2] for line in screen.seen.splitlines()] == ["Here.", *names]
    assert (tmp_path / "files" / names[0]).read_bytes() == b"a chart"


async def test_a_file_that_cannot_be_saved_is_said(tmp_path: Path) -> None:
    (tmp_path / "files").write_text("no folder")
    screen = Watched(files=tmp_path / "files")

    await screen.send("", Media(media_kind="photo", unique_id="c", data=b"x"), streamed=False)

    assert screen.seen == "photo, which cannot be saved: File exists\n"


async def test_every_message_has_an_id_of_its_own() -> None:
    screen = Watched()

    assert await screen.send("a") != await screen.send("a")


async def test_an_error_is_shown_once() -> None:
    errors = StringIO()
    screen = Watched(errors=errors)

    await screen.show(RunFailed(place=PLACE, run_id="r", error="KeyRefused", why="no key"))
    await screen.terminal.send(delivered(Reply(place=PLACE, text="no key!"), kind="error"))

    assert (errors.getvalue(), screen.terminal.failed) == ("no key!\n", True)


class Gone(StringIO):
    def write(self, _: str) -> int:
        raise BrokenPipeError


async def test_what_nobody_reads_is_not_sent() -> None:
    screen = Watched(Gone())

    await screen.watch("Hello.", ended("Hello."))
    assert screen.output.closed.is_set()

    with pytest.raises(NotSent):
        await screen.send("Hello!", streamed=False)


@pytest.mark.parametrize(("login", "name"), [("alice", "alice"), ("tertulia", "you"), ("", "you")])
def test_the_person_is_never_taken_for_the_agent(login: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "getuser", lambda: login)

    assert (person().id, person().name) == (name, name)
    assert person().id != ME.id


@example(text="```markdown", sizes=[])
@example(text="```markdown\n```markdown\n```\n# «send»\n```", sizes=[])
@given(text=fenced, sizes=st.lists(st.integers(1, 6), max_size=20))
async def test_blocks_are_never_seen_and_what_they_say_is_seen_once(text: str, sizes: list[int]) -> None:
    screen = Watched()
    turn = model(text)

    await screen.watch(*pieces_of(text, sizes), Response(turn=turn, finish=COMPLETE))
    said = run_outcome([turn], RUN, TARGET, now=RUN.began_at, delimiter=HIDDEN)
    for reply, streamed in zip(said.replies, said.streamed, strict=True):
        await screen.send(reply.text, streamed=streamed)

    replies = " ".join(reply.text for reply in said.replies)
    assert screen.seen.split() == replies.split()
