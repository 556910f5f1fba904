"""Splits replies into the messages of a service: one row of the outbox for each."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import count
from typing import Literal

from msgspec.structs import replace

from palaver.backoff import backoff
from palaver.engine.background import (
    BackgroundTasks,
    Sleep,
    error_text,
    foreign_code,
    is_cancelled,
    retry_forever,
)
from palaver.engine.place_aliases import PlaceAliases
from palaver.engine.store_protocols import OutboxItem, OutboxStore
from palaver.errors import InvalidValue, NotSent, PalaverError, SendRefused
from palaver.messages import Place, PlaceKey, Reply
from palaver.platform import Delivery, Platform, type_fault

log = logging.getLogger(__name__)

GAP = "\n"  # between two parts, where a platform has changed the text it split


def split_replies(replies: Iterable[OutboxItem], platforms: Mapping[str, Platform]) -> tuple[OutboxItem, ...]:
    """Split each reply by its platform's `split`. The parts share a reply id, which is also the id of the first."""
    return tuple(part for reply in replies for part in _parts(reply, platforms.get(reply.reply.place.platform)))


def _parts(item: OutboxItem, platform: Platform | None) -> list[OutboxItem]:
    place = item.reply.place
    parts = [replace(part, place=place) for part in _split(item.reply, platform)] if platform else [item.reply]
    if len(parts) == 1:
        return [replace(item, reply=parts[0])]
    separators = separators_in(item.reply.text, [part.text for part in parts])
    return [
        replace(
            item,
            id=f"{item.id}.{number}" if number else item.id,
            reply=part,
            turns=() if number else item.turns,
            reply_id=item.id,
            part=number,
            separator=separators[number],
        )
        for number, part in enumerate(parts)
    ]


def as_message_id(given: object) -> str | None:
    """The id of a message as its platform gave it, which may be a number; None for what is no id."""
    if isinstance(given, int) and not isinstance(given, bool):
        given = str(given)
    return given if isinstance(given, str) and given and given.isprintable() else None


def on_draft(draft: OutboxItem, deliveries: Sequence[OutboxItem], *, line: OutboxItem) -> tuple[OutboxItem, ...]:
    """Let the first of *deliveries* edit a draft that people see: its text, since media go only with a new message.

    Where no text comes, the draft is edited to the *line*.
    """
    if not deliveries or not deliveries[0].reply.text:
        return (replace(line, edits=draft.message_id), *deliveries)
    first, *rest = deliveries
    if first.reply.media:
        name = first.reply_id or first.id
        media = replace(first.reply, text="", reply_to=None)
        beside = replace(first, id=f"{first.id}-media", reply=media, turns=(), reply_id=name, part=first.part + 1)
        first = replace(first, reply=replace(first.reply, media=()), reply_id=name)
        rest = [beside, *(replace(one, part=one.part + 1) if one.reply_id == name else one for one in rest)]
    return (replace(first, edits=draft.message_id), *rest)


def _split(reply: Reply, platform: Platform) -> Sequence[Reply]:
    """Return the parts of a reply; the whole where `split` fails, or gives a part that says nothing."""
    try:
        with foreign_code(platform.name):
            parts = list(platform.split(reply))
    except Exception as error:  # noqa: BLE001 (a platform's own)
        log.error("%s cannot split a reply; it goes whole: %s", platform.name, error_text(error))
        return [reply]
    if parts == [reply] or (parts and all(map(_is_part, parts))):
        return parts
    log.error(
        "%s splits a reply into %d parts, not all of which say something; it goes whole", platform.name, len(parts)
    )
    return [reply]


def _is_part(part: Reply) -> bool:
    """Whether it is a reply that says something."""
    return type_fault(part, Reply) is None and bool(part.text.strip() or part.media)


def separators_in(text: str, parts: Sequence[str]) -> list[str]:
    """Return the white space before each part in *text*; `GAP` where the parts are not pieces of it."""
    separators: list[str] = []
    end = 0
    for part in parts:
        start = text.find(part, end)
        between = text[end:start] if start >= 0 else None
        end = end if start < 0 else start + len(part)
        separators.append(between if between is not None and not between.strip() else GAP)
    return ["", *separators[1:]]


FIRST, LONGEST = 1.0, 300.0  # seconds between attempts
LONGEST_ASKED = 86_400.0  # seconds that a platform may ask to wait
PATIENCE = 120.0  # seconds that a platform may take for one reply
MOST_EDITS = 20  # attempts at an edit of which nobody knows whether it was made
MOST_COPIES = 5  # of a reply that is sent again though nobody knows whether it went out
GRACE = 5.0  # seconds in which what is being sent may come to its receipt when the program ends
CUT_OFF = "the program stopped while it was being sent; nobody knows whether it went out"


class OutboxSender:
    """Sends replies: those of one place one after another, places side by side."""

    def __init__(
        self,
        outbox: OutboxStore,
        platforms: Mapping[str, Platform],
        *,
        now: Callable[[], datetime],
        doubtful: Literal["hold", "send again"] = "hold",
        sleep: Sleep = asyncio.sleep,
        patience: float = PATIENCE,
        grace: float = GRACE,
        moved: PlaceAliases | None = None,
    ) -> None:
        self._outbox = outbox
        self._platforms = platforms
        self._background = BackgroundTasks()
        self._attempts = BackgroundTasks()
        self._grace = grace
        self._now = now
        self._doubtful = doubtful
        self._sleep = sleep
        self._patience = patience
        self._moved = PlaceAliases() if moved is None else moved
        self._bags: dict[PlaceKey, deque[OutboxItem]] = {}

    async def recover(self) -> None:
        """Send what an earlier process left. First decide about what it was sending when it ended."""
        for item in await self._outbox.unsent():
            if item.reply.place.platform not in self._platforms:
                continue
            if item.status == "sending":
                item = self._settled(_lost(item), CUT_OFF)
                await self._outbox.change(item)
            if item.status != "doubtful":
                self.take([item])

    async def look(self) -> None:
        """Send what another process, as `palaver outbox --send`, has decided to send again."""
        for item in await self._outbox.to_retry():
            if item.reply.place.platform in self._platforms:
                self.take([item])

    def take(self, replies: Iterable[OutboxItem]) -> None:
        """Send replies that are in the outbox, after those of their place that were taken before."""
        for item in replies:
            key = item.reply.place.key
            if any(known.id == item.id for known in self._bags.get(key, ())):
                continue
            if key in self._bags:
                self._bags[key].append(item)
                continue
            self._bags[key] = deque([item])
            self._background.begin(self._carry(key))

    def is_idle(self, place: Place) -> bool:
        """Whether nothing is on its way to a place."""
        return place.key not in self._bags

    @property
    def busy(self) -> bool:
        return self._background.busy

    async def done(self) -> None:
        """Wait until everything is sent, or cannot be."""
        await self._background.done()

    async def close(self) -> None:
        """Begin to send nothing more; what is being sent has a little time to come to its receipt."""
        await self._background.stop()
        await self._attempts.stop(grace=self._grace)

    async def _carry(self, key: PlaceKey) -> None:
        bag = self._bags[key]
        try:
            while bag:
                try:
                    await self._deliver(bag[0])
                except InvalidValue as error:  # somebody has decided otherwise meanwhile
                    log.info("%s", error)
                bag.popleft()
        finally:
            del self._bags[key]

    async def _deliver(self, item: OutboxItem) -> None:
        """Send one reply; retry with backoff while that is safe and may help."""
        platform = self._platforms[item.reply.place.platform]
        for failures in count(1):
            item, wait = await asyncio.shield(self._attempts.begin(self._attempt(platform, item)))
            if item.status not in ("waiting", "sending"):
                return
            pause = backoff(failures, first=FIRST, longest=LONGEST)
            await self._sleep(wait if wait and 0 < wait <= LONGEST_ASKED else pause)

    async def _keep(self, item: OutboxItem) -> None:
        try:
            await retry_forever(lambda: self._outbox.change(item), sleep=self._sleep)
        except InvalidValue as error:
            if item.status != "sent":
                raise
            log.error("%s is not part of the conversation: %s", item.id, error)  # its id is another message's
            await retry_forever(lambda: self._outbox.change(replace(item, author=None)), sleep=self._sleep)

    async def _attempt(self, platform: Platform, item: OutboxItem) -> tuple[OutboxItem, float | None]:
        """Make one attempt, stored before and after. It runs to its end also if the sender is cancelled."""
        if item.edits and self._is_elsewhere(item.reply.place, item.edits):
            item = _without_draft(item, "the place has moved since")
        doubt = item.sent_at if item.status == "sending" else None  # since when it may be out already
        if doubt:
            item = self._settled(item, item.why)  # the platform may have forgotten its key meanwhile
        if item.status in ("doubtful", "dropped"):
            await self._keep(item)
            return item, None
        begun = replace(item, status="sending", attempts=item.attempts + 1, sent_at=doubt or self._now())
        await self._keep(begun)
        ended, wait = await self._tried(platform, begun)
        if doubt and ended.status == "waiting":
            ended = replace(ended, status="sending", sent_at=doubt)
        await self._keep(ended)
        return ended, wait

    async def _tried(self, platform: Platform, item: OutboxItem) -> tuple[OutboxItem, float | None]:
        """Return the reply with the outcome of one attempt, and how long the platform asks us to wait."""
        try:
            async with asyncio.timeout(self._patience):
                with foreign_code(platform.name):
                    receipt = await platform.send(self._delivery(item))
                message_id = _receipt(receipt, item)
        except NotSent as error:
            log.info("%s not sent yet: %s", item.id, error)
            return replace(item, status="waiting", sent_at=None, why=str(error)), error.retry_after
        except SendRefused as error:
            log.warning("%s refused by %s: %s", item.id, platform.name, error)
            if item.edits is not None:
                return _without_draft(item, str(error)), None
            return replace(item, status="dropped", sent_at=None, why=str(error)), None
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            return self._settled(_lost(item), "it was cancelled from within"), None
        except Exception as error:  # noqa: BLE001 (a platform's own: nobody knows whether it was sent)
            log.warning("%s failed to send %s: %s", platform.name, item.id, error_text(error))
            return self._settled(_lost(item), _words(error)), None
        return replace(item, status="sent", message_id=message_id, sent_at=self._now(), why=""), None

    def _delivery(self, item: OutboxItem) -> Delivery:
        """The message to send; in a place that has moved it quotes nothing, since what it answers is not there."""
        reply = item.reply
        if reply.reply_to and self._is_elsewhere(reply.place, reply.reply_to):
            reply = replace(reply, reply_to=None)
        reply = replace(reply, place=self._moved.current(reply.place))
        return Delivery(
            id=item.id,
            run_id=item.run,
            kind=item.kind,
            reply=reply,
            edits=item.edits,
            streamed=item.streamed,
        )

    def _is_elsewhere(self, place: Place, message_id: str) -> bool:
        """Return whether a message is not in the place that is written to, since that has moved."""
        return self._moved.has_moved(place) or self._moved.is_former_message(place, message_id)

    def _settled(self, item: OutboxItem, why: str) -> OutboxItem:
        """Decide about a reply of unknown outcome: retry where that makes no second message, else by `doubtful`."""
        platform = self._platforms[item.reply.place.platform]
        age = None if item.sent_at is None else self._now() - item.sent_at
        window = platform.capabilities.idempotency_window
        known = age is not None and timedelta(0) <= age < window  # no clock was set back since
        known = known or (item.edits is not None and item.unknown_attempts < MOST_EDITS)  # twice is the same as once
        again = known or (self._doubtful == "send again" and item.unknown_attempts < MOST_COPIES)
        if again and item.kind != "draft":  # of which the answer is sent anew
            return replace(item, status="sending", why=why)
        log.warning("nobody knows whether %s was sent (%s); `palaver outbox` lists it", item.id, why)
        return replace(item, status="doubtful", why=why)


def _lost(item: OutboxItem) -> OutboxItem:
    """A reply after an attempt of which nobody knows whether it went out."""
    return replace(item, unknown_attempts=item.unknown_attempts + 1)


def _without_draft(item: OutboxItem, why: str) -> OutboxItem:
    """A reply whose draft cannot be edited: a new message. A line that only ends the draft is dropped."""
    if item.author is None:
        return replace(item, status="dropped", sent_at=None, why=why)
    return replace(item, status="waiting", sent_at=None, edits=None, why=why)


def _receipt(given: object, item: OutboxItem) -> str:
    """Return the service's id of a sent message; an id of ours where the platform gave none."""
    if (message_id := as_message_id(given)) is not None:
        return message_id
    log.warning("%s was sent, but its platform gave %r for the id of the message", item.id, given)
    return item.edits or f"{item.id}-unknown"


def _words(error: Exception) -> str:
    return str(error) if isinstance(error, PalaverError) and str(error) else f"{type(error).__name__} while sending"
