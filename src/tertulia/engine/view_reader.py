"""Views of places: read from a store, and followed event by event."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import assert_never

from msgspec.structs import replace

from tertulia.engine.background import Sleep
from tertulia.engine.store_protocols import EventPosition, EventStore, OutboxItem, StoreProtocol
from tertulia.engine.view import (
    MOST,
    Change,
    Named,
    Update,
    View,
    ViewDelivery,
    ViewMessage,
    named,
    nothing,
    put,
    reduce,
    whole,
)
from tertulia.errors import StoreBroken, StoreTrouble
from tertulia.events import DurableEvent, Event
from tertulia.messages import Message, Place
from tertulia.parts import Media, Opaque, Part, Text, Thought, ToolCall, ToolResult
from tertulia.run.cleaner import clean
from tertulia.run.journal import RunProgress
from tertulia.turns import Turn

POLL_INTERVAL = 0.5  # seconds between two looks for new events

EventsAfter = Callable[[str], AsyncIterator[Event]]  # the events of a place after a cursor


async def view_updates(
    reader: "ViewReader", events: EventsAfter, *, after: View | None = None
) -> AsyncIterator[Update]:
    """Yield the view as it stands, then with each event; *after* a view, only with each event.

    While the store cannot be read, the view stays as it is; it is read anew with the next durable event.
    """
    view = after or await reader.read()
    if after is None:
        yield Update(view=view, change=whole(view))
    is_behind = False
    async for event in events(view.cursor):
        if isinstance(event, DurableEvent):
            try:
                stored = await (reader.everything() if is_behind else reader.load(event))
            except (StoreTrouble, StoreBroken):  # an event reports it
                is_behind = True
                yield Update(view=view, change=nothing(view), event=event)
                continue
            is_behind = False
            update = reduce(view, event, stored)
        else:
            update = reduce(view, event)
        view = update.view
        yield update


async def polled_events(
    events: EventStore, place: Place, after: str, *, sleep: Sleep = asyncio.sleep
) -> AsyncIterator[DurableEvent]:
    """Yield the events of a place after a cursor, also those that another process stores from now on."""
    while True:
        found = await events.read(after=after, place=place)
        for event in found:
            yield event
            after = event.cursor
        if not found:
            await sleep(POLL_INTERVAL)


class ViewReader:
    """Reads what the view of a place shows."""

    def __init__(self, store: StoreProtocol, place: Place, *, most: int = MOST) -> None:
        self._store = store
        self._place = place
        self._most = most

    async def read(self) -> View:
        """Read the view as it stands. It may be ahead of its event, which changes nothing later."""
        position = await self._store.events.position(self._place)
        view = View(place=self._place, event=position.number, cursor=position.cursor, most=self._most)
        return put(view, await self._load_everything(position))[0]

    async def everything(self) -> Change:
        """Load all that a view shows."""
        return await self._load_everything(await self._store.events.position(self._place))

    async def load(self, event: DurableEvent) -> Change | None:
        """Load the values that an event names, as they are stored by now; None if it names none."""
        names = named(event)
        if names is None:
            return None
        position = await self._store.events.position(self._place)
        return await (self._load_everything(position) if names.everything else self._load(names, position))

    async def _load_everything(self, position: EventPosition) -> Change:
        store, place, most = self._store, self._place, self._most
        found = await store.log.read(place, position.count - most, position.count)
        numbered = list(enumerate(found, max(position.count - most, 0)))
        return Change(
            event=position.number,
            anew=True,
            count=position.count,
            beginning=position.beginning,
            messages=await self._messages(numbered),
            runs=tuple(map(_shown_run, await store.runs.progress(place, most=most))),
            deliveries=tuple(map(_delivery, await store.outbox.of_place(place, most=most))),
            facts=tuple(await store.facts.listed(place=place, most=most)),
        )

    async def _load(self, names: Named, position: EventPosition) -> Change:
        store, place, most = self._store, self._place, self._most
        runs = await store.runs.progress(place, ids=names.runs, most=most) if names.runs else ()
        sent = await store.outbox.of_place(place, ids=names.deliveries, most=most) if names.deliveries else ()
        said = [*names.messages, *(item.message_id for _, item in sent if item.message_id is not None)]
        return Change(
            event=position.number,
            count=position.count,
            beginning=position.beginning,
            messages=await self._messages(await store.log.find(place, said)) if said else (),
            runs=tuple(map(_shown_run, runs)),
            deliveries=tuple(map(_delivery, sent)),
            facts=tuple(await store.facts.listed(place=place, most=most)) if names.facts else None,
        )

    async def _messages(self, numbered: Sequence[tuple[int, Message]]) -> tuple[ViewMessage, ...]:
        messages = [message for _, message in numbered]
        decisions = await self._store.inbox.decisions(self._place, [message.id for message in messages])
        turns = await self._store.log.turns(messages)
        delimiter = await self._store.place_settings.delimiter(self._place) if turns else ""
        return tuple(
            ViewMessage(
                number=number,
                message=message,
                decisions=decisions.get(message.id, ()),
                turns=tuple(_shown_turn(turn, delimiter) for turn in turns.get(message.id, ())),
            )
            for number, message in numbered
        )


def _shown_turn(turn: Turn, delimiter: str) -> Turn:
    """Return a turn without our markup, and without what only its model needs."""
    is_own = turn.role == "model"
    shown = (_shown_part(part, delimiter, is_own=is_own) for part in turn.parts if not isinstance(part, Opaque))
    return replace(turn, parts=tuple(shown))


def _shown_part(part: Part, delimiter: str, *, is_own: bool) -> Part:
    match part:
        case Text():
            return Text(text=clean(part.text, delimiter=delimiter) if is_own else part.text)
        case Thought():
            return Thought(text=part.text)
        case Media() | ToolCall():
            return replace(part, signature=None, raw=None)
        case ToolResult():
            return replace(part, raw=None)
        case Opaque():
            return part
        case _:
            assert_never(part)


def _shown_run(one: RunProgress) -> RunProgress:
    """Return a run without what changes with no event: how long and how often processes have worked on it."""
    tools = (replace(tool, call=replace(tool.call, signature=None, raw=None)) for tool in one.tools)
    return replace(one, run=replace(one.run, seconds=0.0, resumed=0), tools=tuple(tools))


def _delivery(numbered: tuple[int, OutboxItem]) -> ViewDelivery:
    """Return a reply without what changes with no event: its attempts while it waits."""
    order, item = numbered
    waits = item.status in ("waiting", "sending")
    is_message = item.message_id is not None and item.author is not None
    return ViewDelivery(
        id=item.id,
        order=order,
        kind=item.kind,
        status="waiting" if item.status == "sending" else item.status,
        made_at=item.made_at,
        text="" if is_message else item.reply.text,
        run_id=item.run,
        task_id=item.task,
        message_id=item.message_id,
        sent_at=None if waits else item.sent_at,
        why="" if waits else item.why,
    )
