"""Shows an answer while the model writes it: as a preview that vanishes, or as a draft that the answer then edits.

A draft is a message that stays, so it is a row of the outbox, stored before it is sent and with its receipt after. It
is no part of the log and is never sent again. `RunCompletion` decides how a run ends, from that row alone: a
process that was killed finds it there. Everything else here is best effort, and lost with the process.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import datetime

from msgspec.structs import replace

from palaver.engine.background import Sleep, error_text, foreign_code, is_cancelled
from palaver.engine.outbox_sender import as_message_id
from palaver.engine.store_protocols import OutboxItem, OutboxStore
from palaver.errors import NotSent, PalaverError, SendRefused
from palaver.messages import Message, Place, Reply
from palaver.platform import Delivery, Platform
from palaver.run.journal import Run
from palaver.run.outcome import reply_to_id

log = logging.getLogger(__name__)

PATIENCE = 10.0  # seconds that a platform may take to show what there is so far
TYPING = 4.0  # seconds after which it is shown again that we write
MORE = "…"  # ends what is too long for one message
UNKNOWN = "the draft was being sent; nobody knows whether it went out"


class AnswerPreviews:
    """Makes a preview for each run in whose place one can be seen."""

    def __init__(
        self,
        platforms: Mapping[str, Platform],
        outbox: OutboxStore,
        *,
        is_idle: Callable[[Place], bool],
        now: Callable[[], datetime],
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._platforms = platforms
        self._outbox = outbox
        self._is_idle = is_idle  # whether nothing is on its way to a place
        self._now = now
        self._sleep = sleep

    def is_seen(self, place: Place) -> bool:
        """Whether somebody sees there what is being written."""
        can = self._platforms[place.platform].capabilities
        return can.previews or can.typing or can.drafts

    @asynccontextmanager
    async def of(self, run: Run, target: Message) -> AsyncIterator["AnswerPreview | None"]:
        """Show the answer of a run until the block ends; then nothing of it is under way any more."""
        if not self.is_seen(run.place):
            yield None
            return
        platform = self._platforms[run.place.platform]
        preview = AnswerPreview()
        draft = None
        if platform.capabilities.drafts:
            draft = Draft(run, target, platform, self._outbox, is_idle=self._is_idle, now=self._now)
        showing = asyncio.create_task(self._show(preview, draft, platform, run))
        try:
            yield preview
        finally:
            showing.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.wait([showing], timeout=PATIENCE)
            if preview.under_way is not None:
                if draft is None:  # nobody misses it; a draft must come to its receipt
                    preview.under_way.cancel()
                await asyncio.wait([preview.under_way], timeout=2 * PATIENCE)

    async def _show(self, preview: "AnswerPreview", draft: "Draft | None", platform: Platform, run: Run) -> None:
        """Show the text each time it changes. When this is cancelled, a request under way still comes to its end."""
        if platform.capabilities.typing:
            await self._until_text(preview, platform, run)
        while draft or platform.capabilities.previews:
            await preview.changed.wait()
            await self._sleep(platform.capabilities.preview_interval)
            preview.changed.clear()
            text = _fitting(preview.text, platform.capabilities.length)
            if not text:
                continue
            shown = draft.show(text) if draft else _previewed(platform, run, text)
            preview.under_way = asyncio.ensure_future(shown)
            await asyncio.shield(preview.under_way)

    async def _until_text(self, preview: "AnswerPreview", platform: Platform, run: Run) -> None:
        while not preview.changed.is_set():
            await _previewed(platform, run, "")
            with suppress(TimeoutError):
                async with asyncio.timeout(TYPING):
                    await preview.changed.wait()


class AnswerPreview:
    """The answer of a run, as far as it may be shown."""

    def __init__(self) -> None:
        self.text = ""
        self.changed = asyncio.Event()
        self.under_way: asyncio.Future[None] | None = None

    def show(self, text: str) -> None:
        """Show this, soon."""
        self.text = text
        self.changed.set()


class Draft:
    """The message in which the answer of a run is shown while it is being written."""

    def __init__(
        self,
        run: Run,
        target: Message,
        platform: Platform,
        outbox: OutboxStore,
        *,
        is_idle: Callable[[Place], bool],
        now: Callable[[], datetime],
    ) -> None:
        self._run = run
        self._target = target
        self._platform = platform
        self._outbox = outbox
        self._is_idle = is_idle
        self._now = now
        self._row: OutboxItem | None = None
        self._shown = ""

    async def show(self, text: str) -> None:
        """Send the draft, or edit it. A failure is only logged: the answer makes good for it."""
        try:
            if self._row is None:
                self._row = await self._outbox.draft(self._run.id)
            if self._row is not None:
                await self._edit(self._row, text)
            elif self._is_idle(self._run.place):  # else it would stand before an answer that is still to come
                await self._send(text)
        except PalaverError as error:
            log.debug("the draft of run %s is not shown: %s", self._run.id, error)

    async def _send(self, text: str) -> None:
        """Send the draft once, stored before and after."""
        reply = Reply(place=self._run.place, text=text, reply_to=reply_to_id(self._target))
        begun = self._row = OutboxItem(
            id=f"{self._run.id}-draft",
            reply=reply,
            made_at=self._now(),
            run=self._run.id,
            kind="draft",
            status="sending",
            attempts=1,
            sent_at=self._now(),
        )
        await self._outbox.put(begun)
        try:
            message_id = await self._delivered(begun)
        except (NotSent, SendRefused) as error:
            self._row = replace(begun, status="dropped", sent_at=None, why=str(error))
        except (Exception, asyncio.CancelledError) as error:
            if is_cancelled():
                raise
            log.debug("the draft of run %s: %s", self._run.id, error_text(error))
            self._row = replace(begun, status="doubtful", why=UNKNOWN)
        else:
            self._row = replace(begun, status="sent", message_id=message_id, sent_at=self._now())
            self._shown = text
        await self._outbox.change(self._row)

    async def _edit(self, row: OutboxItem, text: str) -> None:
        if row.message_id is None or row.status != "sent" or text == self._shown:
            return
        try:
            await self._delivered(replace(row, reply=replace(row.reply, text=text), edits=row.message_id))
            self._shown = text
        except Exception as error:  # noqa: BLE001 (best effort)
            log.debug("the draft of run %s: %s", self._run.id, error_text(error))

    async def _delivered(self, row: OutboxItem) -> str:
        delivery = Delivery(id=row.id, run_id=row.run, kind="draft", reply=row.reply, edits=row.edits)
        async with asyncio.timeout(PATIENCE):
            with foreign_code(self._platform.name):
                given = await self._platform.send(delivery)
        message_id = as_message_id(given)
        if message_id is None:
            raise PalaverError(f"{self._platform.name} gave {given!r} for the id of a draft")
        return message_id


async def _previewed(platform: Platform, run: Run, text: str) -> None:
    try:
        async with asyncio.timeout(PATIENCE):
            with foreign_code(platform.name):
                await platform.preview(run.place, run.id, text)
    except Exception as error:  # noqa: BLE001 (best effort)
        log.debug("the preview of run %s: %s", run.id, error_text(error))


def _fitting(text: str, length: int | None) -> str:
    """The beginning of *text* that fits into one message."""
    whole = text.strip()
    if length is None or len(whole) <= length:
        return whole
    return whole[: max(length - len(MORE), 0)].rstrip() + MORE
