"""Views of places: read from a store, and followed event by event."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import assert_never

from msgspec.structs import replace

from tertulia.engine.background import Sleep
from tertulia.engine.inspection import Named, NumberedReply, StoredConversation
from tertulia.engine.store_protocols import EventStore, StoreProtocol
from tertulia.engine.view import (
    EVERYTHING,
    MOST,
    View,
    ViewChange,
    ViewDelivery,
    ViewMessage,
    ViewUpdate,
    named,
    named_by,
    nothing,
    put,
    reduce,
    whole,
)
from tertulia.errors import StoreBroken, StoreTrouble
from tertulia.events import DurableEvent, Event
from tertulia.messages import Place
from tertulia.parts import Media, Opaque, Part, Text, Thought, ToolCall, ToolResult
from tertulia.run.cleaner import clean
from tertulia.run.journal import RunProgress
from tertulia.turns import Turn

MOST_MISSED = 1_000  # events of a reader who comes back
POLL_INTERVAL = 0.5  # seconds between two looks for new events

EventsAfter = Callable[[str], AsyncIterator[Event]]  # the events of a place after a cursor


async def view_updates(
    reader: "ViewReader", events: EventsAfter, *, after: View | None = None
) -> AsyncIterator[ViewUpdate]:
    """Yield the view as it stands, then with each event; *after* a view, only with each event.

    While the store cannot be read, the view stays as it is; it is read anew with the next durable event.
    """
    view = after or await reader.read()
    if after is None:
        yield ViewUpdate(view=view, change=whole(view))
    is_behind = False
    async for event in events(view.cursor):
        is_durable = hasattr(event, "cursor")
        names = EVERYTHING if is_behind and is_durable else named(event)
        try:
            stored = await reader.load(names) if names else None
        except (StoreTrouble, StoreBroken):  # an event reports it
            is_behind = True
            yield ViewUpdate(view=view, change=nothing(view), event=event)
            continue
        is_behind = is_behind and not names
        update = reduce(view, event, stored)
        view = update.view
        yield update


async def change_since(reader: "ViewReader", events: EventStore, view: View, number: int) -> ViewChange:
    """Return what changed after an event of the place until *view*; all of that where the event is long ago."""
    if number == view.event:
        return nothing(view)
    cursor = await events.cursor(view.place, number) if number < view.event else None
    missed: list[Event] = []
    while cursor is not None and number + len(missed) < view.event:
        found = await events.read(after=cursor, place=view.place)
        if not found or len(missed) > MOST_MISSED:
            cursor = None
            break
        missed += found[: view.event - number - len(missed)]
        cursor = found[-1].cursor
    names = named_by(missed)
    if cursor is None or names.everything:
        return whole(view)
    return replace(await reader.load(names), event=view.event)


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
        """Read the view as it stands."""
        found = await self._store.inspection.conversation(self._place, EVERYTHING, most=self._most)
        view = View(place=self._place, event=found.event, cursor=found.cursor, most=self._most)
        return put(view, await self._change(found, anew=True))[0]

    async def load(self, names: Named) -> ViewChange:
        """Load what is named, as it is stored by now."""
        found = await self._store.inspection.conversation(self._place, names, most=self._most)
        return await self._change(found, anew=names.everything)

    async def _change(self, found: StoredConversation, *, anew: bool) -> ViewChange:
        delimiter = await self._store.place_settings.delimiter(self._place) if found.turns else ""
        return ViewChange(
            event=found.event,
            anew=anew,
            count=found.count,
            beginning=found.beginning,
            messages=tuple(
                ViewMessage(
                    number=one.number,
                    message=one.message,
                    decisions=one.decisions,
                    turns=tuple(_shown_turn(turn, delimiter) for turn in found.turns.get(one.message.id, ())),
                    reactions=one.reactions,
                )
                for one in found.messages
            ),
            runs=tuple(map(_shown_run, found.runs)),
            deliveries=tuple(map(_delivery, found.replies)),
            facts=found.facts,
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


def _delivery(reply: NumberedReply) -> ViewDelivery:
    """Return a reply without what changes with no event: its attempts while it waits."""
    item = reply.item
    waits = item.status in ("waiting", "sending")
    is_message = item.message_id is not None and item.author is not None
    return ViewDelivery(
        id=item.id,
        order=reply.order,
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
