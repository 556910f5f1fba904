"""Outbox sender: sends each item of the outbox with retries and backoff.

The files of an item are read first; where that fails nothing was sent, and it is retried. After a minute such a file
goes in words, since other replies of the place wait behind it. Then the item is stored as "sending", and after the
attempt with its outcome. The outcomes of an attempt:

- sent: the platform returned a receipt, the id of the message;
- `NotSent`: it was certainly not sent, and is retried after a backoff, or after `retry_after` where the platform asks;
- `SendRefused`: an edit of a draft becomes a new message; any other is tried in plain text at once. Where that is
  refused too, it is dropped, and the person gets a notice, stored with the drop. Where an earlier attempt may have been
  sent, the service may know its id with that content, so nothing else goes under it: it is doubtful;
- anything else, also a crash of the process: the outcome is unknown. A retry could duplicate the message. So it is
  retried only within the platform's idempotency window, or where it is an edit, since a second edit changes nothing, or
  where `Behavior.doubtful_replies` is "resend". Else it becomes "doubtful", and `tertulia outbox` lists it.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from datetime import timedelta
from itertools import count

from msgspec import Struct
from msgspec.structs import replace

from tertulia.backoff import backoff
from tertulia.engine.background import (
    BackgroundTasks,
    foreign_code,
    is_cancelled,
    log_text,
    retry_forever,
)
from tertulia.engine.shared import Shared
from tertulia.engine.store_protocols import DeliveryAttempt, OutboxItem
from tertulia.errors import InvalidValue, NotSent, SendRefused, StoreTrouble, TertuliaError, reason_of
from tertulia.messages import Place, PlaceKey, Quote, Reply
from tertulia.parts import Media, cut
from tertulia.platform import Delivery, Platform, Speaking, with_media_as_text

log = logging.getLogger(__name__)

FIRST_RETRY, LONGEST_RETRY = 1.0, 300.0  # seconds between attempts
LONGEST_RETRY_AFTER = 86_400.0  # seconds that a platform may ask to wait
SEND_TIMEOUT = 120.0  # seconds of one attempt
MAX_EDIT_RETRIES = 20  # attempts at an edit with an unknown outcome
MAX_COPIES = 5  # attempts with an unknown outcome, where `doubtful` is "resend"
MAX_WORDS = 1000  # characters in place of a file that is gone: they are added to a text that fits its platform
MAX_READS = 6  # attempts to read a file; they take a minute
GRACE = 5.0  # seconds that attempts may take to get their receipts when the engine closes
CUT_OFF = "the program stopped while it was being sent; the outcome is unknown"


class Attempt(Struct, frozen=True, kw_only=True):
    """The outcome of one attempt."""

    item: OutboxItem
    wait: float | None = None  # seconds until the next one, as the platform asks
    refused: bool = False  # for good, in a place that can be written to


def parse_message_id(given: object) -> str | None:
    """Return the message id that a platform returned, also where it is a number; None for anything else."""
    if isinstance(given, int) and not isinstance(given, bool):
        given = str(given)
    return given if isinstance(given, str) and given and given.isprintable() else None


class OutboxSender:
    """Sends outbox items: those of one place in order, places concurrently."""

    def __init__(self, shared: Shared, *, send_timeout: float = SEND_TIMEOUT, grace: float = GRACE) -> None:
        self._shared = shared
        self._outbox = shared.store.outbox
        self._platforms = shared.platforms
        self._aliases = shared.aliases
        self._now, self._sleep = shared.now, shared.sleep
        self._background = BackgroundTasks()
        self._attempts = BackgroundTasks()
        self._send_timeout = send_timeout
        self._grace = grace
        self._queues: dict[PlaceKey, deque[OutboxItem]] = {}
        self.heard: asyncio.Queue[Place] = asyncio.Queue()  # where a message was sent that waits for other agents
        self._sending: dict[PlaceKey, asyncio.Task[None]] = {}  # of each queue

    async def recover(self) -> None:
        """Enqueue the items that an earlier process left; first resolve those it was sending when it ended."""
        for item in await self._outbox.unsent():
            if item.reply.place.platform not in self._platforms:
                continue
            if item.status == "sending":
                item = self._resolve_unknown_outcome(_count_unknown_attempt(item), CUT_OFF)
                await self._outbox.change(item)
            if item.status != "doubtful":
                self.enqueue([item])

    async def enqueue_retries(self) -> None:
        """Enqueue the items that another process, as `tertulia outbox --send`, has set to be retried."""
        for item in await self._outbox.to_retry():
            if item.reply.place.platform in self._platforms:
                self.enqueue([item])

    def enqueue(self, replies: Iterable[OutboxItem]) -> None:
        """Send stored items, each after those of its place that are queued already."""
        for item in replies:
            key = item.reply.place.key
            if any(known.id == item.id for known in self._queues.get(key, ())):
                continue
            if key in self._queues:
                self._queues[key].append(item)
                continue
            self._queues[key] = deque([item])
            self._sending[key] = self._background.start(self._send_queue(key))

    def is_idle(self, place: Place) -> bool:
        """Return whether no item for a place is queued."""
        return place.key not in self._queues

    async def delivered(self, place: Place, *, within: float) -> None:
        """Wait until no item for a place is queued, at most so many seconds."""
        if sending := self._sending.get(place.key):
            await asyncio.wait([sending], timeout=within)

    @property
    def busy(self) -> bool:
        return self._background.busy

    async def done(self) -> None:
        """Wait until the queues are empty."""
        await self._background.done()
        await self.heard.join()

    async def close(self) -> None:
        """Stop; attempts that have begun have *grace* seconds to get their receipts."""
        await self._background.stop()
        await self._attempts.stop(grace=self._grace)

    async def _send_queue(self, key: PlaceKey) -> None:
        queue = self._queues[key]
        try:
            while queue:
                await self._send_with_retries(queue[0])
                queue.popleft()
        finally:
            del self._queues[key], self._sending[key]

    async def _send_with_retries(self, item: OutboxItem) -> None:
        """Send one item; retry with backoff until it is sent, dropped or doubtful."""
        platform = self._platforms[self._shared.identity.account_in(item.reply.place, item.agent)]
        for failures in count(1):
            item, wait = await asyncio.shield(self._attempts.start(self._attempt(platform, item, failures)))
            if item.status not in ("waiting", "sending"):
                return
            pause = backoff(failures, first=FIRST_RETRY, longest=LONGEST_RETRY)
            await self._sleep(wait if wait and 0 < wait <= LONGEST_RETRY_AFTER else pause)

    async def _store_status(self, item: OutboxItem) -> None:
        try:
            await retry_forever(lambda: self._outbox.change(item), sleep=self._sleep)
        except InvalidValue as error:
            if item.status != "sent":
                raise
            log.error("%s is sent but not in the log: %s", item.id, error)  # another message has its id
            await retry_forever(lambda: self._outbox.change(replace(item, author=None)), sleep=self._sleep)

    async def _attempt(self, platform: Platform, item: OutboxItem, number: int) -> tuple[OutboxItem, float | None]:
        """Make one attempt, from 1 on; none at an item that was dropped or forgotten meanwhile.

        Cancelling the sender does not cancel it.
        """
        try:
            return await self._attempt_stored(platform, item, number)
        except InvalidValue as error:
            log.info("%s", error)
            return replace(item, status="dropped"), None

    async def _attempt_stored(
        self, platform: Platform, item: OutboxItem, number: int
    ) -> tuple[OutboxItem, float | None]:
        """Make one attempt; store the item before and after."""
        if item.edits and self._is_in_former_place(item.reply.place, item.edits):
            item = _without_draft(item, "the place has migrated since")
        doubt = item.sent_at if item.status == "sending" else None  # when it may have been sent before
        if doubt:
            item = self._resolve_unknown_outcome(item, item.why)  # the idempotency window may be over
        if item.status in ("doubtful", "dropped"):
            await self._store_status(item)
            return item, None
        try:
            delivery = await self._delivery(item, waits=number <= MAX_READS)
        except NotSent as error:
            log.info("%s not sent yet: %s", item.id, error)
            item = replace(item, why=reason_of(error))
            await self._store_status(item)
            return item, None
        now = self._now()
        attempt = DeliveryAttempt(number=item.attempts + 1, begun_at=now)
        begun = replace(item, status="sending", attempts=attempt.number, sent_at=doubt or now, attempt=attempt)
        await self._store_status(begun)
        made = await self._send_once(platform, begun, delivery, is_known=self._may_be_known(item))
        attempt = replace(attempt, ended_at=self._now(), outcome=made.item.status, why=made.item.why)
        ended = replace(made.item, attempt=attempt)
        if doubt and ended.status == "waiting":
            ended = replace(ended, status="sending", sent_at=doubt)
        if made.refused and (notice := await self._refusal_notice(ended)):
            await retry_forever(lambda: self._outbox.put(ended, notice), sleep=self._sleep)
            if item.reply.place.key in self._queues:  # else the sender is closed, and the next process sends it
                self.enqueue([notice])
        else:
            await self._store_status(ended)
            if ended.waits and ended.status == "sent":
                self.heard.put_nowait(item.reply.place)
        ended = replace(ended, attempt=None)
        if ended.plain and not item.plain:  # it is stored by now in which form its id goes from here on
            return await self._attempt_stored(platform, ended, number)
        return ended, made.wait

    async def _refusal_notice(self, item: OutboxItem) -> OutboxItem | None:
        """Return the line that tells a person of a reply that cannot be sent; None for what is such a line itself."""
        if item.kind not in ("answer", "task"):
            return None
        lines = await retry_forever(lambda: self._shared.translator.lines_for_reply(item), sleep=self._sleep)
        words = lines.refused_rest if item.part else lines.refused
        reply = replace(item.reply, text=words, media=())
        return OutboxItem(
            id=f"{item.id}-refused",
            reply=reply,
            made_at=self._now(),
            run=item.run,
            task=item.task,
            agent=item.agent,
            kind="error",
        )

    async def _send_once(self, platform: Platform, item: OutboxItem, delivery: Delivery, *, is_known: bool) -> Attempt:
        """Send a delivery, which the service may know already from an earlier attempt."""
        try:
            async with asyncio.timeout(self._send_timeout):
                with foreign_code(platform.name):
                    receipt = await platform.send(delivery)
                message_id = _receipt(receipt, item)
        except NotSent as error:
            log.info("%s not sent yet: %s", item.id, error)
            unsent = replace(item, status="waiting", sent_at=None, why=reason_of(error))
            return Attempt(item=unsent, wait=error.retry_after)
        except SendRefused as error:
            log.warning("%s refused by %s: %s", item.id, platform.name, error)
            return await self._refused(item, delivery, error, is_known=is_known)
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            return self._unknown_outcome(item, delivery, "cancelled by the platform, not by shutdown")
        except Exception as error:  # noqa: BLE001 (foreign code; the outcome is unknown)
            log.warning("%s failed to send %s: %s", platform.name, item.id, log_text(error))
            why = reason_of(error) if isinstance(error, TertuliaError) else ""
            return self._unknown_outcome(item, delivery, why or f"{type(error).__name__} while sending")
        else:
            item = _as_sent(item, delivery)
            return Attempt(item=replace(item, status="sent", message_id=message_id, sent_at=self._now(), why=""))

    def _unknown_outcome(self, item: OutboxItem, delivery: Delivery, why: str) -> Attempt:
        """Return what becomes of an item where nobody knows whether its delivery was sent."""
        item = self._resolve_unknown_outcome(_count_unknown_attempt(item), why)
        return Attempt(item=_as_sent(item, delivery) if item.status == "doubtful" else item)

    async def _refused(self, item: OutboxItem, delivery: Delivery, error: SendRefused, *, is_known: bool) -> Attempt:
        """Return what becomes of an item after a refusal: it is to go in another form, or is doubtful, or dropped."""
        dropped = replace(item, status="dropped", sent_at=None, why=reason_of(error))
        if error.left and self._shared.identity.account_in(item.reply.place, item.agent) == item.reply.place.platform:
            await retry_forever(
                lambda: self._shared.store.updates.leave(item.reply.place, at=self._now()), sleep=self._sleep
            )
        if error.left:
            return Attempt(item=dropped)
        if item.edits is not None:
            return Attempt(item=_without_draft(item, reason_of(error)))
        if is_known:
            return Attempt(item=_as_sent(self._as_doubtful(item, reason_of(error)), delivery))
        if not item.plain and _in_plain_text(item.reply).text.strip():
            return Attempt(item=replace(dropped, status="waiting", plain=True))
        return Attempt(item=dropped, refused=True)

    async def _delivery(self, item: OutboxItem, *, waits: bool) -> Delivery:
        """Return the delivery of an item, with the bytes of its media; in a place that has migrated it quotes nothing.

        A file that is gone goes in words. Where one cannot be read now, raise `NotSent` if it *waits*; else words go.
        """
        reply = _in_plain_text(item.reply) if item.plain else item.reply
        media = [await self._with_bytes(one, waits=waits) for one in reply.media]
        sent = tuple(one for one in media if one.data or one.sha256 is None)
        words = [cut(one.caption, MAX_WORDS) for one in media if one not in sent]
        reply = replace(reply, text="\n\n".join(filter(None, [reply.text, *words])), media=sent)
        if reply.reply_to and self._is_in_former_place(reply.place, reply.reply_to):
            reply = replace(reply, reply_to=None)
        reply = replace(reply, place=self._aliases.current(reply.place))
        return Delivery(
            agent=self._speaking(item.agent),
            answers=await self._quote(reply),
            id=item.id,
            run_id=item.run,
            kind=item.kind,
            reply=reply,
            edits=item.edits,
            streamed=item.streamed,
            plain=item.plain,
        )

    async def _quote(self, reply: Reply) -> Quote | None:
        """Return the message that a reply answers, with its author and words."""
        found = None
        with suppress(StoreTrouble):  # the quote itself goes by its id
            found = await self._shared.store.log.get(reply.place, reply.reply_to) if reply.reply_to else None
        return Quote(message_id=found.id, author=found.author, parts=found.parts) if found else None

    def _speaking(self, name: str) -> Speaking | None:
        cast = self._shared.identity.cast
        if cast.is_single:
            return None
        agent = self._shared.identity.agent_named(name)
        return Speaking(name=agent.name, avatar=agent.avatar)

    async def _with_bytes(self, media: Media, *, waits: bool) -> Media:
        if media.sha256 is None or media.data:
            return media
        try:
            async with asyncio.timeout(self._send_timeout):
                return replace(media, data=await self._shared.store.media.read(media.sha256, at=self._now()))
        except (StoreTrouble, TimeoutError) as error:
            why = str(error) or f"it takes more than {self._send_timeout:g} seconds"
            if waits:
                raise NotSent(f"the file of a {media.kind_word} cannot be read: {why}") from error
            log.warning("the file of a %s cannot be read, and goes in words: %s", media.kind_word, why)
            return media

    def _is_in_former_place(self, place: Place, message_id: str) -> bool:
        """Return whether a message is from before the place migrated, and so cannot be quoted or edited."""
        return self._aliases.has_moved(place) or self._aliases.is_former_message(place, message_id)

    def _resolve_unknown_outcome(self, item: OutboxItem, why: str) -> OutboxItem:
        """Return the item as "sending" where a retry is safe or wanted, else as "doubtful"."""
        is_safe = self._may_be_known(item) or (item.edits is not None and item.unknown_attempts < MAX_EDIT_RETRIES)
        again = is_safe or (self._shared.behavior.doubtful_replies == "resend" and item.unknown_attempts < MAX_COPIES)
        if again and item.kind != "draft":  # the answer is sent as a new message
            return replace(item, status="sending", why=why)
        return self._as_doubtful(item, why)

    def _may_be_known(self, item: OutboxItem) -> bool:
        """Return whether an item may have been sent, and the service would know it again by its id."""
        if item.sent_at is None:
            return False
        window = self._platforms[item.reply.place.platform].capabilities.idempotency_window
        return timedelta(0) <= self._now() - item.sent_at < window  # negative where the clock was set back

    def _as_doubtful(self, item: OutboxItem, why: str) -> OutboxItem:
        log.warning("the outcome of sending %s is unknown (%s); `tertulia outbox` lists it", item.id, why)
        return replace(item, status="doubtful", why=why)


def _count_unknown_attempt(item: OutboxItem) -> OutboxItem:
    """Return the item after an attempt with an unknown outcome."""
    return replace(item, unknown_attempts=item.unknown_attempts + 1)


def _as_sent(item: OutboxItem, delivery: Delivery) -> OutboxItem:
    """Return the item with what went of its reply: words may have gone in place of media, and no quote."""
    went = {one.unique_id for one in delivery.reply.media}
    media = tuple(one for one in item.reply.media if one.unique_id in went)
    reply = replace(item.reply, text=delivery.reply.text, media=media, reply_to=delivery.reply.reply_to)
    return replace(item, reply=reply)


def _in_plain_text(reply: Reply) -> Reply:
    """Return a reply in its simplest form: its text, with words in place of media."""
    return replace(with_media_as_text(reply, frozenset()), reply_to=None)


def _without_draft(item: OutboxItem, why: str) -> OutboxItem:
    """Return the item as a new message: its draft cannot be edited. A line that only ends the draft is dropped."""
    if item.purpose == "draft end":
        return replace(item, status="dropped", sent_at=None, why=why)
    return replace(item, status="waiting", sent_at=None, edits=None, why=why)


def _receipt(given: object, item: OutboxItem) -> str:
    """Return the id of a sent message; an id of ours where the platform returned none."""
    if (message_id := parse_message_id(given)) is not None:
        return message_id
    log.warning("%s was sent, but the platform returned %r, not a message id", item.id, given)
    return item.edits or f"{item.id}-unknown"
