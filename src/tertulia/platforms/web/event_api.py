"""The stream of a place: how its conversation changes, by the numbers of its events, and the text that streams.

A change has the number of its event as its id. Who comes back with the last id that it has seen, in `Last-Event-ID` or
as `after`, gets what has changed since in one change, else everything; then each change as it happens. Text that
streams has no id, since it is stored nowhere: `live` is a text as it stands, a `delta` is a piece more of it.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from functools import partial
from typing import Any, TypeVar

from msgspec import Struct
from starlette.responses import Response, StreamingResponse

from tertulia.engine.view import LiveAnswer, View, ViewChange, ViewUpdate, whole
from tertulia.engine.view_reader import ViewReader, change_since, polled_events, view_updates
from tertulia.errors import StoreBroken, StoreTrouble
from tertulia.events import Delta
from tertulia.inspector.places import find_place
from tertulia.inspector.views import shown_change
from tertulia.messages import Place
from tertulia.parts import Text
from tertulia.platforms.web.endpoints import EVENTS, MAX_NUMBER, Asked, Endpoint, Id, Number
from tertulia.platforms.web.page_app import encode, refuse
from tertulia.platforms.web.roles import Access, Refusal
from tertulia.platforms.web.site import Site, StreamLimits

T = TypeVar("T")
Shown = Callable[[ViewChange], Awaitable[Struct]]  # a change as who listens may see it

RETRY = b"retry: 1000\n\n"  # milliseconds after which a browser comes back
ALIVE = b":\n\n"
FULL = Refusal(status=503, why="too many streams are open: close other pages of this bot")


class Followed(Struct, frozen=True, kw_only=True):
    place: Id
    after: Number | None = None  # the number of the last event that was seen; `Last-Event-ID` goes before it


class LiveText(Struct, frozen=True, kw_only=True):
    """The text of an answer that streams, or a piece more of it."""

    run_id: str
    text: str


class Streams:
    """The streams that are open."""

    def __init__(self) -> None:
        self._open = Counter[Access | None]()
        self._is_ending = False

    def end(self) -> None:
        """Let all of them end, since the page does."""
        self._is_ending = True

    def _is_full(self, limits: StreamLimits, access: Access | None) -> bool:
        """Return whether somebody gets no more streams: guests leave some to the owner and to readers."""
        if access and access.guest:
            of_guests = sum(count for one, count in self._open.items() if one and one.guest)
            if self._open[access] >= limits.of_guest or of_guests >= limits.of_guests:
                return True
        return self._open.total() >= limits.most

    def respond(
        self, site: Site, asked: Asked, events: AsyncGenerator[bytes, None], beside: "Beside | None" = None
    ) -> Response:
        """Return events as a response, until who asked may not see them any more."""
        if self._is_full(site.streams, asked.access):
            return refuse(FULL)
        headers = {"x-accel-buffering": "no"}  # nginx would gather the events
        if asked.http.method == "HEAD":
            return Response(media_type=EVENTS, headers=headers)
        self._open[asked.access] += 1

        def ended() -> None:
            self._open -= Counter([asked.access])

        stream = self._stream(site.streams, asked, events, beside or Beside())
        return _Counted(ended, stream, media_type=EVENTS, headers=headers)

    async def _stream(
        self, limits: StreamLimits, asked: Asked, events: AsyncGenerator[bytes, None], beside: "Beside"
    ) -> AsyncGenerator[bytes, None]:
        clock = asyncio.get_running_loop().time
        beside.begin()
        sent_at = looked = clock()
        try:
            yield RETRY
            with suppress(StoreTrouble, StoreBroken):  # who comes back is told why
                async with aclosing(ticking(events, limits.tick)) as items:
                    async for event in items:
                        if self._is_ending:
                            return
                        told = event or b""
                        if not told or clock() - looked >= limits.tick:
                            looked = clock()
                            if not await asked.is_allowed():
                                yield await beside.farewell()
                                return
                            told = await beside.news() + told
                        if not told and clock() - sent_at >= limits.keep_alive:
                            told = ALIVE
                        if told:
                            sent_at = clock()
                            yield told
        finally:
            beside.end()


class _Counted(StreamingResponse):
    """A stream that says when it has ended, also one that never began."""

    def __init__(self, ended: Callable[[], None], *stream: Any, **options: Any) -> None:
        super().__init__(*stream, **options)
        self._ended = ended

    async def __call__(self, *connection: Any) -> None:
        try:
            await super().__call__(*connection)
        finally:
            self._ended()


class Beside:
    """What a stream tells beside its events: nothing, where it is of a place."""

    def begin(self) -> None:
        """The stream is open."""

    def end(self) -> None:
        """The stream is closed."""

    async def news(self) -> bytes:
        """Return events of what has changed meanwhile. It is called whenever the stream looks about."""
        return b""

    async def farewell(self) -> bytes:
        """Return what is told to who may not see it any more."""
        return b""


def event_endpoints(site: Site, streams: Streams) -> tuple[Endpoint, ...]:
    """Return the endpoint of the stream of a place."""

    async def follow(asked: Asked) -> Response:
        place = await find_place(site.store, asked.arguments.place)
        shown = partial(shown_change, site.store, place)
        return streams.respond(site, asked, place_events(site, place, after_of(asked), shown))

    return (
        Endpoint(
            path="/api/places/{place}/events",
            summary="What changes in a place, as server-sent events: change, live and delta",
            handle=follow,
            arguments=Followed,
            media_type=EVENTS,
        ),
    )


def after_of(asked: Asked) -> int | None:
    """Return the number of the last event that who comes back has seen."""
    seen = _number(asked.http.headers.get("last-event-id", ""))
    return asked.arguments.after if seen is None else seen


async def place_events(site: Site, place: Place, after: int | None, shown: Shown) -> AsyncGenerator[bytes, None]:
    """Yield what has changed in a place after an event, then each change and the text that streams."""
    store, engine = site.store, site.engine
    reader = ViewReader(store, place)
    with suppress(StoreTrouble, StoreBroken):  # the stream ends; who comes back is told why
        view = await reader.read()
        first = whole(view) if after is None else await change_since(reader, store.events, view, after)
        if not first.is_empty:
            yield sent("change", await shown(first), first.event)
        updates = (
            engine.view(place, after=view)
            if engine
            else view_updates(reader, partial(polled_events, store.events, place), after=view)
        )
        async for update in updates:
            if not update.change.is_empty:
                yield sent("change", await shown(update.change), update.change.event)
            elif update.view.event != view.event:
                yield f"id: {update.view.event}\n\n".encode()  # of no event: a browser takes the id alone
            for kind, live in live_texts(view, update):
                yield sent(kind, live)
            view = update.view


def live_texts(before: View, update: ViewUpdate) -> list[tuple[str, LiveText]]:
    """Return what an update adds to the texts that stream, or the texts that it changes otherwise."""
    known = {one.run_id: one for one in before.live}
    return [_live_text(known.get(one.run_id), one, update.event) for one in update.view.live if _is_new(known, one)]


def _is_new(known: dict[str, LiveAnswer], live: LiveAnswer) -> bool:
    return known.get(live.run_id) != live


def _live_text(before: LiveAnswer | None, live: LiveAnswer, event: Any) -> tuple[str, LiveText]:
    if before and before.text and isinstance(event, Delta) and isinstance(event.part, Text):
        return "delta", LiveText(run_id=live.run_id, text=event.part.text)
    return "live", LiveText(run_id=live.run_id, text=live.whole)


def sent(kind: str, value: Struct, number: int | None = None) -> bytes:
    """Return an event as it goes over the wire: JSON has no line breaks of its own."""
    numbered = "" if number is None else f"id: {number}\n"
    return f"{numbered}event: {kind}\ndata: ".encode() + encode(value) + b"\n\n"


def _number(given: str) -> int | None:
    return int(given) if given.isascii() and given.isdecimal() and len(given) <= len(str(MAX_NUMBER)) else None


async def ticking(items: AsyncGenerator[T, None], seconds: float) -> AsyncGenerator[T | None, None]:
    """Yield items as they come, and None whenever none came for so many seconds."""
    coming: asyncio.Future[T] | None = None
    try:
        while True:
            coming = coming or asyncio.ensure_future(anext(items))
            await asyncio.wait([coming], timeout=seconds)
            if not coming.done():
                yield None
                continue
            done, coming = coming, None
            try:
                item = done.result()
            except StopAsyncIteration:
                return
            yield item
    finally:
        if coming:
            coming.cancel()
            await asyncio.wait([coming])
        await items.aclose()
