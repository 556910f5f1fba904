"""Event stream: durable events from the store and ephemeral events as they happen, for any number of readers.

Each reader has a queue. Durable events enter it in the order of their commits, before the waiter of the commit
continues, so they are in order with the ephemeral ones. A full queue is emptied: its reader gets the number of
ephemeral events that it missed, and reads the durable ones from the store, up to the last one that was in the queue.
Then it gets the answers that stream as they stood when the queue was emptied, and the queue goes on from there.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress

from tertulia.engine.store_protocols import EventStore
from tertulia.errors import StoreBroken, TertuliaError, reason_of
from tertulia.events import (
    AnswerSoFar,
    Delta,
    DurableEvent,
    EphemeralEvent,
    Event,
    Missed,
    ResponseReceived,
    StoreUnavailable,
)
from tertulia.messages import Place, PlaceKey
from tertulia.parts import Text

MAX_QUEUE = 1_000  # events that wait for one reader
MAX_ANSWER = 100_000  # characters of `AnswerSoFar`


class EventStream:
    """Publishes events to its readers."""

    def __init__(self, events: EventStore) -> None:
        self._events = events
        self._readers: set[_Reader] = set()
        self._answers: dict[str, tuple[Place, list[str]]] = {}  # the text so far of each answer being written
        self._unsubscribe: Callable[[], None] | None = None
        self._is_closed = False

    @property
    def has_readers(self) -> bool:
        return bool(self._readers)

    def start(self) -> None:
        """Publish the events of each commit from now on."""
        self._is_closed = False
        loop = asyncio.get_running_loop()

        def published(events: Sequence[DurableEvent]) -> None:
            if not self._readers:  # later readers read them from the store
                return
            with suppress(RuntimeError):  # the event loop is closed
                loop.call_soon_threadsafe(self._publish, events)

        def troubled(error: TertuliaError) -> None:
            damaged = isinstance(error, StoreBroken)
            trouble = StoreUnavailable(why=reason_of(error), error=type(error).__name__, damaged=damaged)
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self.publish, trouble)

        self._unsubscribe = self._events.subscribe(published, troubled)

    def close(self) -> None:
        """End the stream: every reader, also a later one, reads what is in its queue and ends."""
        self._is_closed = True
        if self._unsubscribe:
            self._unsubscribe()
            self._unsubscribe = None
        for reader in self._readers:
            reader.end()

    def publish(self, event: EphemeralEvent) -> None:
        if isinstance(event, Delta) and isinstance(event.part, Text):
            self._answers.setdefault(event.run_id, (event.place, []))[1].append(event.part.text)
        elif isinstance(event, ResponseReceived):
            self.discard(event.run_id)
        for reader in self._readers:
            reader.put(event)

    def discard(self, run_id: str) -> None:
        """Drop the answer so far of a run: it is complete, or void."""
        self._answers.pop(run_id, None)

    async def read(
        self, *, place: Place | None = None, run_id: str | None = None, after: str | None = None
    ) -> AsyncIterator[Event]:
        """Yield events from now on, or all after a cursor; only those of a place or a run, if one is given."""
        reader = _Reader(place.key if place else None, run_id)
        self._readers.add(reader)
        so_far = self._answers_so_far(reader)  # what is written from now on is put into its queue
        if self._is_closed:
            reader.end()
        try:
            reader.last = await self._events.last() if after is None else after
            if after is not None:
                async for stored in self._stored(reader, place):
                    yield stored
            for answer in so_far:
                yield answer
            while True:
                event = await reader.next()
                if event is None:
                    return
                if isinstance(event, Missed):
                    lost, so_far = reader.take_lost(), self._answers_so_far(reader)
                    yield event
                    async for stored in self._stored(reader, place, until=lost):
                        yield stored
                    for answer in so_far:
                        yield answer
                elif reader.is_new(event):
                    yield event
        finally:
            self._readers.discard(reader)

    def _answers_so_far(self, reader: "_Reader") -> list[AnswerSoFar]:
        answers = (
            AnswerSoFar(place=place, run_id=run, text="".join(texts)[:MAX_ANSWER])
            for run, (place, texts) in self._answers.items()
        )
        return [answer for answer in answers if reader.wants(answer)]

    async def _stored(
        self, reader: "_Reader", place: Place | None, *, until: str | None = None
    ) -> AsyncIterator[Event]:
        """Yield the stored events that a reader has not read, to the end or *until* the one with that cursor."""
        while until != reader.last and until != "":
            events = await self._events.read(after=reader.last, place=place, run_id=reader.run_id)
            if not events:
                return
            for event in events:
                reader.note(event)
                yield event
                if event.cursor == until:
                    return

    def _publish(self, events: Sequence[DurableEvent]) -> None:
        for event in events:
            for reader in self._readers:
                reader.put(event)


class _Reader:
    """The queue of one reader."""

    def __init__(self, place: PlaceKey | None, run_id: str | None) -> None:
        self.run_id = run_id
        self.last = ""  # the cursor of the last durable event it has read
        self._place = place
        self._queue: deque[Event] = deque()
        self._stored: dict[str, None] = {}  # cursors of the last events read from the store
        self._news = asyncio.Event()
        self._missed = 0
        self._lost = ""  # the cursor of the last durable event among them
        self._ended = False

    def wants(self, event: Event) -> bool:
        if self.run_id is not None and getattr(event, "run_id", None) != self.run_id:
            return False
        return self._place is None or event.place is None or event.place.key == self._place

    def put(self, event: Event) -> None:
        if not self.wants(event):
            return
        if self._missed or len(self._queue) >= MAX_QUEUE:
            lost = [*self._queue, event]
            self._queue.clear()
            cursors = [cursor for one in lost if (cursor := getattr(one, "cursor", ""))]
            self._missed += len(lost) - len(cursors)  # the durable ones are read again
            self._missed = self._missed or 1
            self._lost = cursors[-1] if cursors else self._lost
        else:
            self._queue.append(event)
        self._news.set()

    def take_lost(self) -> str:
        """Return the cursor of the last durable event that was missed; empty if there is none."""
        lost, self._lost = self._lost, ""
        return lost

    def end(self) -> None:
        self._ended = True
        self._news.set()

    def is_new(self, event: Event) -> bool:
        """Return False for a durable event that the reader has already read from the store."""
        cursor = getattr(event, "cursor", "")
        if cursor in self._stored:
            return False
        self.last = cursor or self.last
        return True

    def note(self, event: DurableEvent) -> None:
        """Remember an event that was read from the store, so that its copy in the queue is skipped."""
        self.last = event.cursor
        self._stored[event.cursor] = None
        if len(self._stored) > MAX_QUEUE:
            del self._stored[next(iter(self._stored))]

    async def next(self) -> Event | None:
        """Return the next event; None at the end."""
        while True:
            if self._missed:
                missed, self._missed = self._missed, 0
                return Missed(events=missed)
            if self._queue:
                return self._queue.popleft()
            if self._ended:
                return None
            self._news.clear()
            await self._news.wait()
