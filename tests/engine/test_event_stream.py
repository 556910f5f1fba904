"""One stream of events: in order, replayed after a cursor, and never held up by a slow reader."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from engine.engines import BOB, DIRECT, GROUP, engine_with, said, talked
from people import NOON
from tertulia.context.budget import Budget
from tertulia.context.gather import ContextOptions
from tertulia.engine.event_stream import MAX_QUEUE, EventStream
from tertulia.engine.limits import Limits
from tertulia.engine.memory import Memory
from tertulia.engine.store_protocols import OutboxItem
from tertulia.engine.task_worker import TaskHandler
from tertulia.errors import InvalidValue, KeyRefused, ModelUnavailable, SendRefused
from tertulia.events import (
    AnswerSoFar,
    Delta,
    DurableEvent,
    Event,
    MemoryBehind,
    MessageDecided,
    MessageReceived,
    Missed,
    PromptSent,
    ReplyDropped,
    ReplyQueued,
    ReplyRefused,
    ReplySent,
    RunEnded,
    RunFailed,
    RunStarted,
    TaskDone,
    TaskPlanned,
    ToolFinished,
    ToolStarted,
    Waiting,
)
from tertulia.messages import Place, Reply
from tertulia.models import Scripted
from tertulia.models.base import Response
from tertulia.parts import Media, Part, Text, ToolCall
from tertulia.platform import Capabilities
from tertulia.store import Store
from tertulia.tasks.task import Task
from tertulia.testing import RecordedPlatform
from tertulia.tokens import layer_tokens
from tertulia.toolbox.toolbox import tool
from tertulia.turns import Prompt, model


class Reader:
    """Reads events in the background."""

    def __init__(self, events: AsyncIterator[Event]) -> None:
        self.seen: list[Event] = []
        self._task = asyncio.create_task(self._read(events))

    async def _read(self, events: AsyncIterator[Event]) -> None:
        async for event in events:
            self.seen.append(event)

    async def ended(self) -> list[Event]:
        await self._task
        return self.seen


async def read_of(
    store: Store, model: Scripted, *messages: Any, platform: RecordedPlatform | None = None, **named: Any
) -> list[Event]:
    """What a reader sees while messages are answered, until the engine ends."""
    async with engine_with(model, platform, store=store, **named) as engine:
        reader = Reader(engine.events())
        await asyncio.sleep(0)
        await talked(engine, *messages)
    return await reader.ended()


async def at_once(_: float) -> None:
    await asyncio.sleep(0)


def kinds(events: Sequence[Event]) -> list[str]:
    return [str(event.__struct_config__.tag) for event in events]


def _text(events: list[Event]) -> str:
    return "".join(one.part.text for one in events if isinstance(one, Delta) and isinstance(one.part, Text))


async def test_a_turn_is_told_in_order(store: Store) -> None:
    events = await read_of(store, Scripted("Good morning."), said("hello"))

    assert kinds(events) == [
        "message received",
        "message decided",
        "run started",
        "prompt sent",
        *["delta"] * kinds(events).count("delta"),
        "response received",
        "reply queued",
        "run ended",
        "reply sent",
    ]
    assert _text(events) == "Good morning."
    run = next(one.run_id for one in events if isinstance(one, RunStarted))
    assert [type(one) for one in events if getattr(one, "run_id", None) == run][-3:] == [
        ReplyQueued,
        RunEnded,
        ReplySent,
    ]


async def test_a_block_of_a_kind_of_the_program_is_no_part_of_the_deltas(store: Store) -> None:
    async def draw(_: Task) -> None:
        """Draw nothing."""

    task_handlers = {"draw": TaskHandler(run=draw, repeatable=True, about=None)}
    events = await read_of(
        store, Scripted("Here.\n\n# «draw»\nprompt: a cat"), said("draw"), task_handlers=task_handlers
    )

    assert _text(events) == "Here."


async def test_durable_events_hold_ids_and_are_numbered_per_place(store: Store) -> None:
    model = Scripted("One.", "Two.", "Three.")
    events = await read_of(store, model, said("1", 1), said("Gryag, 2", 1, place=GROUP, author=BOB), said("3", 2))

    for place in (DIRECT, GROUP):
        numbers = [one.number for one in events if isinstance(one, DurableEvent) and one.place.key == place.key]
        assert numbers == list(range(1, len(numbers) + 1))
    received = [one for one in events if isinstance(one, MessageReceived)]
    assert [(one.place.id, one.message_id) for one in received] == [("7", "1"), ("-100", "1"), ("7", "2")]


async def test_a_prompt_that_is_sent_is_told_with_its_layers_and_what_was_left_out_of_it(store: Store) -> None:
    long = said("word " * 400, 1)
    small = ContextOptions(budget=Budget(window=100))
    events = await read_of(store, Scripted("Oh.", "Five."), long, said("How late is it?", 2), context=small)

    (_, asked) = [event for event in events if isinstance(event, PromptSent)]
    sent = await store.prompts.sent(asked.run_id, asked.step)
    assert sent is not None
    assert [layer.name for layer in sent.prompt.layers] == ["static", "dynamic", "buffered", "trigger"]
    assert sent.size.layers == tuple(map(layer_tokens, sent.prompt.layers))
    assert [(one.source, one.ids, one.why) for one in sent.left_out] == [
        ("window", ("1",), "alone larger than the budget of 100 tokens")
    ]


async def test_what_came_after_a_cursor_is_replayed_and_then_goes_on(store: Store) -> None:
    before = [one for one in await read_of(store, Scripted("One."), said("1", 1)) if isinstance(one, DurableEvent)]

    async with engine_with(Scripted("Two."), store=store) as engine:
        reader = Reader(engine.events(after=before[2].cursor))
        await asyncio.sleep(0)
        await talked(engine, said("2", 2))
    durable = [one for one in await reader.ended() if isinstance(one, DurableEvent)]

    assert durable[: len(before) - 3] == before[3:]
    assert [one.number for one in durable] == list(range(4, 4 + len(durable)))


async def test_events_of_a_place_or_a_run_alone(store: Store) -> None:
    async with engine_with(Scripted("One.", "Two."), store=store) as engine:
        group, everything = Reader(engine.events(place=GROUP)), Reader(engine.events(after=""))
        await asyncio.sleep(0)
        await talked(engine, said("1", 1), said("Gryag, 2", 1, place=GROUP))
        runs = [one.run_id for one in everything.seen if isinstance(one, RunStarted)]
        one_run = Reader(engine.events(run=runs[0], after=""))
        await asyncio.sleep(0.05)

    assert {one.place.id for one in await group.ended() if one.place} == {"-100"}
    assert {getattr(one, "run_id", None) for one in await one_run.ended()} == {runs[0]}


async def test_tools_tasks_and_fallbacks_are_told(store: Store) -> None:
    @tool
    async def look() -> str:
        """Look."""
        return "green"

    model = Scripted(ToolCall(id="c1", name="look", args={}), "", "Green.\n\n# «wait»\ndelay: 0\n\n# «send»\nReally.")
    events = await read_of(store, model, said("which colour?"), tools=[look])

    assert [type(one) for one in events if isinstance(one, ToolStarted | ToolFinished)] == [ToolStarted, ToolFinished]
    assert "fallback tried" in kinds(events)
    assert [type(one) for one in events if isinstance(one, TaskPlanned | TaskDone)] == [TaskPlanned, TaskDone]


async def test_what_is_internal_is_in_no_delta(store: Store) -> None:
    async with engine_with(Scripted("Hm."), store=store) as engine:
        await talked(engine, said("first", 1))
    delimiter = await store.place_settings.delimiter(DIRECT)

    text = f"Fine. [meta] chat_id=1 user_id=2\n{delimiter} hidden\n\n# «think»\nsecret thoughts"
    events = await read_of(store, Scripted(text), said("second", 2))

    assert "Fine." in _text(events)
    for secret in ("chat_id", delimiter, "secret thoughts"):
        assert secret not in _text(events)


class Slow(Scripted):
    """Streams the first half of an answer and waits."""

    def __init__(self) -> None:
        super().__init__()
        self.half, self.go_on = asyncio.Event(), asyncio.Event()

    async def stream(self, prompt: Prompt) -> AsyncIterator[Part | Response]:
        yield Text(text="Once: ")  # a text that ends with a letter may begin the delimiter, and is held back
        self.half.set()
        await self.go_on.wait()
        yield Text(text="a cat.")
        yield Response(turn=model("Once: a cat."), finish=(await Scripted("x").respond(prompt)).finish)


async def test_who_comes_later_gets_the_answer_so_far(store: Store) -> None:
    slow = Slow()
    async with engine_with(slow, store=store) as engine:
        first = Reader(engine.events())
        await asyncio.sleep(0)
        await engine.receive(said("tell"))
        await slow.half.wait()
        late = Reader(engine.events())
        await asyncio.sleep(0.05)
        slow.go_on.set()
        await engine.settled()

    assert _text(await first.ended()) == "Once: a cat."
    seen = await late.ended()
    (so_far,) = [one for one in seen if isinstance(one, AnswerSoFar)]
    assert so_far.text + _text(seen) == "Once: a cat."


class Breaking(Scripted):
    """Breaks off twice: the first attempt in the middle of an answer, the second before its end."""

    def __init__(self) -> None:
        super().__init__()
        self.asked_again, self.go_on = asyncio.Event(), asyncio.Event()
        self.attempts = 0

    async def stream(self, prompt: Prompt) -> AsyncIterator[Part | Response]:
        self.attempts += 1
        yield Text(
            text=f"Attempt {self.attempts}. "
        )  # a full stop: the end of a text waits if a delimiter may begin so
        if self.attempts > 1:
            self.asked_again.set()
            await self.go_on.wait()
        raise ModelUnavailable("gone", retry_after=None if self.attempts == 1 else 9999)


async def test_the_answer_so_far_is_that_of_the_attempt_under_way(store: Store) -> None:
    breaking, platform = Breaking(), RecordedPlatform(capabilities=Capabilities(previews=True, preview_interval=0.0))
    async with engine_with(breaking, platform, store=store, sleep=at_once) as engine:
        await engine.receive(said("tell"))
        await breaking.asked_again.wait()
        so_far = await anext(engine.events())
        breaking.go_on.set()
        await engine.settled()
        late = Reader(engine.events())
        await asyncio.sleep(0)

    assert isinstance(so_far, AnswerSoFar)
    assert so_far.text == "Attempt 2."
    assert [one for one in await late.ended() if isinstance(one, AnswerSoFar)] == []


async def test_who_comes_after_the_end_reads_what_is_stored_and_ends(store: Store) -> None:
    async with engine_with(Scripted("Hi."), store=store) as engine:
        await talked(engine, said("hello", 1))

    async with asyncio.timeout(10):
        seen = [type(event) async for event in engine.events(after="")]
    assert seen == [MessageReceived, MessageDecided, RunStarted, PromptSent, ReplyQueued, RunEnded, ReplySent]


async def test_a_run_that_asks_no_model_is_started_too(store: Store) -> None:
    limits = Limits(messages=1, seconds=60)
    async with engine_with(Scripted("Hello."), store=store, limits=limits) as engine:
        await talked(engine, said("one", 1), said("two", 2))

    events = await store.events.read(after="")
    started = [event.run_id for event in events if isinstance(event, RunStarted)]
    assert started == [event.run_id for event in events if isinstance(event, RunEnded)]
    decided = ["message received", "message decided"]
    assert kinds(events)[-6:] == [*decided, "run started", "reply queued", "run ended", "reply sent"]


@pytest.mark.parametrize("after", ["abc", "-1", "1.5", "²", "1 2"])
async def test_what_is_no_cursor_is_refused(store: Store, after: str) -> None:
    async with engine_with(Scripted(), store=store) as engine:
        with pytest.raises(InvalidValue, match="`after` is the cursor of an event"):
            await anext(engine.events(after=after))


@pytest.mark.parametrize("after", ["99999999", "9" * 40])
async def test_nothing_is_replayed_after_a_cursor_that_only_another_store_has(store: Store, after: str) -> None:
    async with engine_with(Scripted("Hi."), store=store) as engine:
        await talked(engine, said("hello", 1))

    assert await store.events.read(after=after) == []


async def test_what_stood_for_media_is_in_no_delta(store: Store) -> None:
    photo = Media(media_kind="photo", unique_id="p1", rendered_text="a cat")
    asked = Scripted(f"I see {photo.words} there.")
    events = await read_of(store, asked, said("look", parts=(Text(text="look"), photo)))

    assert _text(events).split() == ["I", "see", "there."]


async def test_a_slow_reader_is_told_what_it_missed_and_misses_nothing_durable(store: Store) -> None:
    async with engine_with(Scripted("One. " * MAX_QUEUE, "Two."), store=store) as engine:
        events = engine.events(after="")
        waiting = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0)
        await talked(engine, said("1", 1), said("2", 2))
        seen = [await waiting]
        for _ in range(12):
            seen.append(await anext(events))
    numbers = [one.number for one in seen if isinstance(one, DurableEvent)]

    assert any(isinstance(one, Missed) for one in seen)
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= 11


async def test_a_failed_run_and_a_refused_reply_are_told(store: Store) -> None:
    platform = RecordedPlatform()
    platform.fail_before = [SendRefused("closed")] * 2
    events = await read_of(store, Scripted(KeyRefused("no key")), said("hello"), platform=platform)

    (failed,) = [one for one in events if isinstance(one, RunFailed)]
    assert (failed.error, failed.why, failed.place.id) == ("KeyRefused", "no key", "7")
    assert [one.failed for one in events if isinstance(one, RunEnded)] == [True]
    assert [type(one) for one in events if isinstance(one, ReplyRefused | ReplySent)] == [ReplyRefused]


async def test_what_a_platform_refused_is_told_otherwise_than_what_somebody_dropped(store: Store) -> None:
    def part(number: int) -> OutboxItem:
        reply = Reply(place=DIRECT, text=f"part {number}")
        return OutboxItem(id=f"r.{number}", reply=reply, made_at=NOON, run="r", reply_id="r.0", part=number)

    other = OutboxItem(id="o", reply=Reply(place=DIRECT, text="hm"), made_at=NOON, run="o")
    await store.outbox.put(part(0), part(1), other)
    await store.outbox.change(replace(part(0), status="dropped", attempts=1, why="too long"))
    await store.outbox.decide("o", "dropped", why="not wanted")
    await store.outbox.put(replace(other, id="p"))
    await store.outbox.drop_answers(["o"], why="stopped by a request")

    ended = [one for one in await store.events.read(after="") if isinstance(one, ReplyRefused | ReplyDropped)]

    assert [(type(one), one.delivery_id, one.run_id) for one in ended] == [
        (ReplyRefused, "r.0", "r"),
        (ReplyDropped, "r.1", "r"),
        (ReplyDropped, "o", "o"),
        (ReplyDropped, "p", "o"),
    ]


async def test_waiting_for_a_model_is_told(store: Store) -> None:
    events = await read_of(store, Scripted(ModelUnavailable("busy"), "Yes."), said("hello"), sleep=at_once)

    assert [(one.seconds, one.why) for one in events if isinstance(one, Waiting)] == [(1.0, "busy")]


async def test_without_readers_a_model_is_not_asked_to_stream(store: Store) -> None:
    class Whole(Scripted):
        async def stream(self, prompt: Prompt) -> AsyncIterator[Part | Response]:
            raise AssertionError
            yield

    async with engine_with(Whole("Hi."), platform := RecordedPlatform(), store=store) as engine:
        await talked(engine, said("hello"))

    assert platform.texts == ["Hi."]


async def test_trouble_with_the_store_is_told(store: Store) -> None:
    async with engine_with(Scripted("Hi."), store=store) as engine:
        reader = Reader(engine.events())
        await asyncio.sleep(0)
        await store.writer.run(lambda database: None)
        for listener in store.writer.error_listeners:
            listener(_trouble())
        await asyncio.sleep(0)

    assert [(one.why, one.damaged) for one in await reader.ended() if kinds([one]) == ["store unavailable"]] == [  # type: ignore[union-attr]
        ("the store has no room", False)
    ]


def _trouble() -> Any:
    from tertulia.errors import StoreFull

    return StoreFull("the store has no room")


async def test_memory_that_is_behind_is_told(store: Store) -> None:
    class Behind(Memory):
        def on_behind(self, behind: Callable[[int], None]) -> None:
            self.behind = behind

    memory = Behind(store)
    async with engine_with(Scripted(), store=store, memory=memory) as engine:
        reader = Reader(engine.events())
        await asyncio.sleep(0)
        memory.behind(1_500)

    assert MemoryBehind(messages=1_500) in await reader.ended()


class OpaqueEvents:
    """Events whose cursors say nothing; the second is stored before it is published."""

    def __init__(self) -> None:
        self.made = [MessageReceived(place=DIRECT, message_id=name, number=1, cursor=name) for name in ("x", "m", "b")]
        self.published: Callable[[list[DurableEvent]], None] = lambda events: None

    def subscribe(self, published: Any, troubled: Any) -> Callable[[], None]:
        self.published = published
        return lambda: None

    async def last(self) -> str:
        return "x"

    async def cursor(self, place: Place, number: int) -> str | None:
        return None

    async def read(self, *, after: str, **_: Any) -> list[DurableEvent]:
        if after:
            return []
        self.published([self.made[1]])
        return [*self.made[:2]]


async def test_an_event_that_is_stored_and_published_meanwhile_is_read_once_whatever_its_cursor() -> None:
    events = OpaqueEvents()
    stream = EventStream(events)
    stream.start()
    reader = Reader(stream.read(after=""))
    await asyncio.sleep(0)
    events.published([events.made[2]])
    await asyncio.sleep(0)
    stream.close()

    assert await reader.ended() == events.made


class SlowEvents(OpaqueEvents):
    """Calls *meanwhile* before it says which event is the newest."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        super().__init__()
        self._meanwhile = meanwhile

    async def last(self) -> str:
        self._meanwhile()
        return await super().last()


def deltas(*texts: str, run: str = "r") -> list[Delta]:
    return [Delta(place=DIRECT, run_id=run, part=Text(text=text)) for text in texts]


async def test_a_reader_who_comes_while_an_answer_is_written_reads_each_word_once() -> None:
    once, upon = deltas("Once ", "upon ")
    stream = EventStream(SlowEvents(lambda: stream.publish(upon)))
    stream.publish(once)
    reader = stream.read()

    assert [await anext(reader), await anext(reader)] == [AnswerSoFar(place=DIRECT, run_id="r", text="Once "), upon]


async def test_an_answer_that_begins_while_a_reader_is_told_of_another_is_read_too() -> None:
    stream = EventStream(OpaqueEvents())
    for delta in deltas("One. ", run="a") + deltas("Two. ", run="b"):
        stream.publish(delta)
    reader, (three,) = stream.read(), deltas("Three. ", run="c")

    seen = [await anext(reader)]
    stream.publish(three)
    seen += [await anext(reader), await anext(reader)]

    so_far = [AnswerSoFar(place=DIRECT, run_id=run, text=text) for run, text in (("a", "One. "), ("b", "Two. "))]
    assert seen == [*so_far, three]
