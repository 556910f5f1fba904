"""What people see while the model writes: a preview that vanishes, or a draft that the answer edits."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace

from engine.engines import DIRECT, GROUP, engine_with, said, talked, texts_of, until
from people import NOON
from stored_rows import add, on
from tertulia import Media, Prompt, Reply, Text
from tertulia.engine import answer_preview
from tertulia.engine.answer_preview import ELLIPSIS
from tertulia.engine.behavior import FAILED
from tertulia.engine.engine import Engine
from tertulia.engine.reply_parts import edit_draft
from tertulia.engine.store_protocols import OutboxItem
from tertulia.errors import InvalidValue, ModelUnavailable, NotSent, SendRefused, TertuliaError
from tertulia.messages import Place
from tertulia.models import Scripted
from tertulia.models.base import Finish, Response, Usage
from tertulia.parts import Part
from tertulia.platform import Capabilities, Delivery, PlaceMigrated
from tertulia.run.journal import Run
from tertulia.store import Store
from tertulia.store.identities import place_key
from tertulia.testing import RecordedPlatform
from tertulia.turns import model

PREVIEWS = Capabilities(previews=True, preview_interval=0.0)
DRAFTS = Capabilities(edits=True, drafts=True, preview_interval=0.0)


@pytest.fixture(autouse=True)
async def delimiter(store: Store) -> None:
    """The end of a text may be the beginning of a delimiter, and is held back then; no text here ends with a z."""
    named = {"platform": DIRECT.platform, "service": DIRECT.platform, "place_id": DIRECT.id}
    await on(store, add, "places", place_key=place_key(DIRECT), delimiter="z" * 16, **named)


class Writer:
    """A model that writes when it is told to: pieces of text, an error, or None for the end."""

    name = "writer"

    def __init__(self) -> None:
        self.pieces: asyncio.Queue[str | TertuliaError | None] = asyncio.Queue()

    async def respond(self, prompt: Prompt) -> Response:
        raise NotImplementedError

    async def stream(self, prompt: Prompt) -> AsyncIterator[Part | Response]:
        text = ""
        while (piece := await self.pieces.get()) is not None:
            if isinstance(piece, TertuliaError):
                raise piece
            text += piece
            yield Text(text=piece)
        finish = Finish(outcome="complete", reason="STOP")
        yield Response(turn=model(text, by=self.name), finish=finish, usage=Usage())

    async def write(self, *pieces: str | TertuliaError | None) -> None:
        for piece in pieces:
            await self.pieces.put(piece)


async def seen(is_so: Callable[[], bool]) -> None:
    async def condition() -> bool:
        return is_so()

    async with asyncio.timeout(10):
        await until(condition)


async def at_once(_: float) -> None:
    await asyncio.sleep(0)


async def rows(store: Store) -> list[tuple[str, str, str | None]]:
    return [(one.kind, one.status, one.edits) for one in await store.outbox.listed()]


async def log_of(store: Store) -> list[tuple[str, str]]:
    return [(one.id, "".join(texts_of([one]))) for one in await store.log.read(DIRECT, 0, 99)]


async def drafted(engine: Engine, writer: Writer, platform: RecordedPlatform) -> None:
    """A question is asked, and the beginning of its answer can be seen, if a draft can be edited."""
    await engine.receive(said("hi", 1))
    await writer.write("Now ")
    await seen(lambda: any(one.reply.text == "Now" for one in platform.deliveries))


async def test_a_preview_shows_the_answer_so_far_and_is_not_stored(store: Store) -> None:
    writer, platform = Writer(), RecordedPlatform(capabilities=PREVIEWS)
    async with engine_with(writer, platform, store=store) as engine:
        await engine.receive(said("hi", 1))
        await writer.write("Now ")
        await seen(lambda: platform.previews == [(DIRECT, "Now")])
        await writer.write("two.")
        await seen(lambda: len(platform.previews) == 2)
        await writer.write(None)
        await engine.settled()

    assert platform.previews == [(DIRECT, "Now"), (DIRECT, "Now two.")]
    assert platform.texts == ["Now two."]
    assert await rows(store) == [("answer", "sent", None)]


async def test_an_attempt_that_fails_is_in_no_later_preview(store: Store) -> None:
    writer, platform = Writer(), RecordedPlatform(capabilities=PREVIEWS)
    async with engine_with(writer, platform, store=store, sleep=at_once) as engine:
        await engine.receive(said("hi", 1))
        await writer.write("Half ")
        await seen(lambda: platform.previews == [(DIRECT, "Half")])
        await writer.write(ModelUnavailable("gone"), "Whole.")
        await seen(lambda: len(platform.previews) == 2)
        await writer.write(None)
        await engine.settled()

    assert platform.previews == [(DIRECT, "Half"), (DIRECT, "Whole.")]


async def test_what_nobody_may_see_is_in_no_preview(store: Store) -> None:
    writer, platform = Writer(), RecordedPlatform(capabilities=PREVIEWS)
    async with engine_with(writer, platform, store=store) as engine:
        await engine.receive(said("hi", 1))
        await writer.write("Shown.\n\n", "# «think»\n", "a secret\n")
        await seen(lambda: bool(platform.previews))
        await writer.write(None)
        await engine.settled()

    assert {text for _, text in platform.previews} == {"Shown."}


async def test_a_preview_that_fails_changes_nothing(store: Store) -> None:
    class Failing(RecordedPlatform):
        async def preview(self, *given: Any) -> None:
            await super().preview(*given)
            raise RuntimeError("no")

    writer, platform = Writer(), Failing(capabilities=PREVIEWS)
    async with engine_with(writer, platform, store=store) as engine:
        await engine.receive(said("hi", 1))
        await writer.write("Now ")
        await seen(lambda: bool(platform.previews))
        await writer.write(None)
        await engine.settled()

    assert platform.texts == ["Now "]


@pytest.mark.parametrize("can", [PREVIEWS, Capabilities(typing=True)])
async def test_a_preview_that_never_ends_does_not_hold_up_the_answer(
    store: Store, can: Capabilities, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Hanging(RecordedPlatform):
        async def preview(self, place: Place, run_id: str, text: str) -> None:
            self.previews.append((place, text))
            while True:
                with suppress(asyncio.CancelledError):
                    await ended.wait()
                    return

    monkeypatch.setattr(answer_preview, "PREVIEW_TIMEOUT", 0.01)
    writer, platform, ended = Writer(), Hanging(capabilities=can), asyncio.Event()
    async with engine_with(writer, platform, store=store) as engine:
        await engine.receive(said("hi", 1))
        await seen(lambda: bool(platform.previews) or can.previews)
        await writer.write("Now.")
        await seen(lambda: bool(platform.previews))
        await writer.write(None)
        await seen(lambda: platform.texts == ["Now."])
        ended.set()


async def test_that_we_write_is_shown_until_there_is_text(store: Store) -> None:
    writer, platform = Writer(), RecordedPlatform(capabilities=Capabilities(typing=True, preview_interval=0.0))
    async with engine_with(writer, platform, store=store) as engine:
        await engine.receive(said("hi", 1))
        await seen(lambda: platform.previews == [(DIRECT, "")])
        await writer.write("Now", None)
        await engine.settled()

    assert platform.previews == [(DIRECT, "")]


async def test_the_answer_edits_the_draft_and_is_one_message(store: Store) -> None:
    writer, platform = Writer(), RecordedPlatform(capabilities=DRAFTS)
    async with engine_with(writer, platform, store=store) as engine:
        await drafted(engine, writer, platform)
        logged_before = await log_of(store)
        await writer.write("two ")
        await seen(lambda: platform.texts == ["Now two"])
        await writer.write("three.", None)
        await engine.settled()

    assert logged_before == [("1", "hi")]
    assert platform.shown == {"s-0": Reply(place=DIRECT, text="Now two three.")}
    assert [one.kind for one in platform.deliveries if one.kind != "draft" or one.edits is None] == ["draft", "answer"]
    assert await rows(store) == [("draft", "sent", None), ("answer", "sent", "s-0")]
    assert await log_of(store) == [("1", "hi"), ("s-0", "Now two three.")]


async def test_the_first_part_of_a_long_answer_edits_the_draft_and_the_rest_are_new(store: Store) -> None:
    capabilities = replace(DRAFTS, length=10)
    writer, platform = Writer(), RecordedPlatform(capabilities=capabilities)
    async with engine_with(writer, platform, store=store) as engine:
        await drafted(engine, writer, platform)
        await writer.write("two three four")
        await seen(lambda: platform.texts == ["Now two t…"])
        await writer.write(None)
        await engine.settled()

    assert platform.texts == ["Now two", "three four"]
    assert await rows(store) == [("draft", "sent", None), ("answer", "sent", "s-0"), ("answer", "sent", None)]
    assert await log_of(store) == [("1", "hi"), ("s-0", "Now two three four")]


async def test_a_doubtful_draft_is_listed_and_no_second_answer_stands_beside_the_answer(store: Store) -> None:
    writer, platform = Writer(), RecordedPlatform(TimeoutError(), capabilities=DRAFTS)
    async with engine_with(writer, platform, store=store) as engine:
        await engine.receive(said("hi", 1))
        await writer.write("Now ")
        await seen(lambda: platform.texts == [ELLIPSIS])
        await writer.write("two.", None)
        await engine.settled()

    assert platform.texts == [ELLIPSIS, "Now two."]
    assert await rows(store) == [("draft", "doubtful", None), ("answer", "sent", None)]
    (draft,) = await store.outbox.listed("doubtful")
    with pytest.raises(InvalidValue, match="never sent again"):
        await store.outbox.decide(draft.id, "waiting")


@pytest.mark.parametrize("error", [NotSent("busy"), SendRefused("no")])
async def test_a_draft_that_is_not_sent_is_not_tried_again(store: Store, error: Exception) -> None:
    writer, platform = Writer(), RecordedPlatform(capabilities=DRAFTS)
    platform.fail_before = [error]
    async with engine_with(writer, platform, store=store) as engine:
        await engine.receive(said("hi", 1))
        await writer.write("Now ")
        await seen(lambda: not platform.fail_before)
        await writer.write("two.", None)
        await engine.settled()

    assert platform.texts == ["Now two."]
    assert await rows(store) == [("draft", "dropped", None), ("answer", "sent", None)]


async def test_a_stopped_run_edits_its_draft_to_a_line_that_is_no_part_of_the_conversation(store: Store) -> None:
    writer, platform = Writer(), RecordedPlatform(capabilities=DRAFTS)
    async with engine_with(writer, platform, store=store) as engine:
        await drafted(engine, writer, platform)
        engine.stop(DIRECT)
        await engine.settled()

    assert platform.texts == ["(stopped)"]
    assert await rows(store) == [("draft", "sent", None), ("notice", "sent", "s-0")]
    assert await log_of(store) == [("1", "hi")]


async def test_a_failed_run_edits_its_draft_to_the_honest_line(store: Store) -> None:
    writer, platform = Writer(), RecordedPlatform(capabilities=DRAFTS)
    async with engine_with(writer, platform, store=store) as engine:
        await drafted(engine, writer, platform)
        await writer.write(TertuliaError("no"))
        await engine.settled()

    assert platform.texts == [FAILED]
    assert await rows(store) == [("draft", "sent", None), ("error", "sent", "s-0")]


async def test_an_answer_whose_draft_is_gone_is_sent_anew(store: Store) -> None:
    class Deleting(RecordedPlatform):
        async def send(self, delivery: Delivery) -> str:
            if delivery.edits is not None:
                self.deliveries.append(delivery)
                self.shown.pop(delivery.edits, None)
                raise SendRefused("there is no such message")
            return await super().send(delivery)

    async def at_once(_: float) -> None:
        await asyncio.sleep(0)

    writer, platform = Writer(), Deleting(capabilities=DRAFTS)
    async with engine_with(writer, platform, store=store, sleep=at_once) as engine:
        await drafted(engine, writer, platform)
        await writer.write("two.", None)
        await engine.settled()

    assert platform.texts == ["Now two."]
    assert await rows(store) == [("draft", "sent", None), ("answer", "sent", None)]


async def test_an_edit_of_which_nobody_knows_whether_it_was_made_is_made_again(store: Store) -> None:
    async def at_once(_: float) -> None:
        await asyncio.sleep(0)

    writer, platform = Writer(), RecordedPlatform(capabilities=DRAFTS)
    async with engine_with(writer, platform, store=store, sleep=at_once) as engine:
        await drafted(engine, writer, platform)
        platform.fail_after = [TimeoutError(), TimeoutError(), TimeoutError()]
        await writer.write("two.", None)
        await engine.settled()

    assert platform.texts == ["Now two."]
    assert await rows(store) == [("draft", "sent", None), ("answer", "sent", "s-0")]


async def test_the_id_of_a_draft_may_be_a_number(store: Store) -> None:
    class Numbered(RecordedPlatform):
        async def send(self, delivery: Delivery) -> str:
            await super().send(delivery)
            return 7  # type: ignore[return-value]

    writer, platform = Writer(), Numbered(capabilities=DRAFTS)
    async with engine_with(writer, platform, store=store) as engine:
        await drafted(engine, writer, platform)
        await writer.write("then.", None)
        await engine.settled()

    assert await rows(store) == [("draft", "sent", None), ("answer", "sent", "7")]


async def test_a_draft_that_is_cancelled_by_its_platform_is_doubtful(store: Store) -> None:
    class Cancelled(RecordedPlatform):
        async def send(self, delivery: Delivery) -> str:
            if delivery.kind == "draft":
                raise asyncio.CancelledError
            return await super().send(delivery)

    writer, platform = Writer(), Cancelled(capabilities=DRAFTS)
    async with engine_with(writer, platform, store=store) as engine:
        await engine.receive(said("hi", 1))
        await writer.write("Now ")
        async with asyncio.timeout(10):
            await until(lambda: is_in(("draft", "doubtful", None), store))
        await writer.write("then.", None)
        await engine.settled()

    assert platform.texts == ["Now then."]
    assert await rows(store) == [("draft", "doubtful", None), ("answer", "sent", None)]


async def is_in(row: tuple[str, str, str | None], store: Store) -> bool:
    return row in await rows(store)


def a_draft(**changes: Any) -> OutboxItem:
    reply = Reply(place=DIRECT, text="Now")
    fields: dict[str, Any] = {
        "id": "r-draft", "reply": reply, "made_at": NOON, "run": "r", "kind": "draft", "status": "sent",
        "message_id": "s-0", "attempts": 1, "sent_at": NOON,
    }  # fmt: skip
    return OutboxItem(**fields | changes)


async def left_open(store: Store, draft: OutboxItem) -> None:
    """What a process leaves that was killed while the model wrote."""
    await store.inbox.receive(said("hi", 1), at=NOON)
    run = Run(id="r", place=DIRECT, target="1", taken=("1",), began_at=NOON, horizon=1, model="writer", profile="plain")
    await store.runs.begin(run, Prompt.of("hi"), at=NOON)
    await store.outbox.put(draft)


async def test_the_next_process_edits_the_draft_of_a_run_it_takes_up(store: Store) -> None:
    await left_open(store, a_draft())
    writer, platform = Writer(), RecordedPlatform(capabilities=DRAFTS)
    platform.shown["s-0"] = Reply(place=DIRECT, text="Now")
    async with engine_with(writer, platform, store=store) as engine:
        await writer.write("Anew")
        await seen(lambda: platform.texts == ["Anew"])
        await writer.write(".", None)
        await engine.settled()

    assert platform.texts == ["Anew."]
    assert await rows(store) == [("draft", "sent", None), ("answer", "sent", "s-0")]


async def test_a_draft_is_empty_until_its_id_is_known(store: Store) -> None:
    writer, platform = Writer(), RecordedPlatform(capabilities=DRAFTS)
    async with engine_with(writer, platform, store=store) as engine:
        await drafted(engine, writer, platform)
        (draft,) = await store.outbox.listed()
        await writer.write(None)
        await engine.settled()

    assert (draft.reply.text, draft.message_id) == (ELLIPSIS, "s-0")
    assert [(one.reply.text, one.edits) for one in platform.deliveries[:2]] == [(ELLIPSIS, None), ("Now", "s-0")]


async def test_a_draft_that_was_being_sent_is_listed_and_the_answer_sent_anew(store: Store) -> None:
    await left_open(store, a_draft(status="sending", message_id=None))
    writer, platform = Writer(), RecordedPlatform(capabilities=DRAFTS)
    async with engine_with(writer, platform, store=store) as engine:
        await writer.write("Anew.", None)
        await engine.settled()

    assert platform.texts == ["Anew."]
    assert await rows(store) == [("draft", "doubtful", None), ("answer", "sent", None)]


async def test_a_draft_whose_run_is_gone_is_edited_once(store: Store) -> None:
    await store.outbox.put(a_draft())
    platform = RecordedPlatform(capabilities=DRAFTS)
    for _ in range(2):
        async with engine_with(Writer(), platform, store=store) as engine:
            await engine.settled()

    assert [(one.edits, one.reply.text) for one in platform.deliveries] == [("s-0", "(stopped)")]


async def test_drafts_of_a_place_that_moves_are_edited_no_more_than_once(store: Store) -> None:
    class Strict(RecordedPlatform):
        async def send(self, delivery: Delivery) -> str:
            self.deliveries.append(delivery)
            if delivery.edits is not None:
                raise SendRefused("there is no such message")
            return f"s-{len(self.deliveries)}"

    places = [replace(GROUP, id=name) for name in ("-1", "-2", "-3")]
    ended, open_one = replace(a_draft().reply, place=places[0]), replace(a_draft().reply, place=places[0])
    await store.outbox.put(a_draft(reply=ended), a_draft(id="q-draft", run="q", reply=open_one, message_id="s-1"))
    answer = a_draft(id="r-0", reply=ended, kind="answer", message_id="s-0", edits="s-0")
    await store.outbox.put(answer)
    asked: list[list[str | None]] = []
    for number, (old, new) in enumerate([*pairwise(places), (DIRECT, DIRECT)]):
        platform = Strict(capabilities=DRAFTS)
        async with engine_with(Writer(), platform, store=store) as engine:
            await engine.settled()
            await engine.inbox("recorded").apply([PlaceMigrated(old=old, new=new)], key=str(number))
        asked.append([delivery.edits for delivery in platform.deliveries])

    assert asked == [["s-1"], [], []]


async def test_a_draft_in_a_place_that_has_moved_is_left_as_it_is(store: Store) -> None:
    old, new = replace(GROUP, id="-1"), replace(GROUP, id="-2")
    await store.outbox.put(a_draft(reply=replace(a_draft().reply, place=old)))
    async with engine_with(Writer(), store=store) as engine:
        await engine.inbox("recorded").apply([PlaceMigrated(old=old, new=new)], key="u1")
    platform = RecordedPlatform(capabilities=DRAFTS)
    async with engine_with(Writer(), platform, store=store) as engine:
        await engine.settled()

    assert platform.deliveries == []
    assert await rows(store) == [("draft", "sent", None), ("notice", "dropped", "-1:s-0")]


def test_media_go_with_a_new_message_since_a_draft_has_only_text() -> None:
    photo = Media(media_kind="photo", unique_id="p", data=b"x", mime="image/png")
    answer = OutboxItem(id="r-0", reply=Reply(place=DIRECT, text="See:", media=(photo,)), made_at=NOON)
    line = OutboxItem(id="line", reply=Reply(place=DIRECT, text="(stopped)"), made_at=NOON)

    parts = edit_draft(a_draft(), [answer], closing=line)
    silent = edit_draft(a_draft(), [replace(answer, reply=replace(answer.reply, text=""))], closing=line)

    assert [(one.id, one.reply.text, len(one.reply.media), one.edits, one.reply_id, one.part) for one in parts] == [
        ("r-0", "See:", 0, "s-0", "r-0", 0),
        ("r-0-media", "", 1, None, "r-0", 1),
    ]
    assert [(one.id, one.edits) for one in silent] == [("line", "s-0"), ("r-0", None)]


async def test_a_platform_without_either_is_asked_for_nothing(store: Store) -> None:
    platform = RecordedPlatform()
    async with engine_with(Scripted("Now."), platform, store=store) as engine:
        await talked(engine, said("hi", 1))

    assert (platform.previews, platform.texts) == ([], ["Now."])
