"""Answer previews: show an answer while the model writes it, as a preview that vanishes or as a draft.

A draft is a message that stays and that the answer later edits. It is a row of the outbox, stored before it is sent and
with its receipt after; it is not in the log and is never sent twice. It is sent as an ellipsis, and edited to the
answer so far once its receipt is stored: a draft whose receipt is lost can never be edited again, and must not stand
beside the answer as another one. `RunCompletion` reads that row when the run ends, also in the next process after a
kill. Everything else here is best effort and lost with the process.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from msgspec.structs import replace

from tertulia.engine.background import foreign_code, is_cancelled, log_text
from tertulia.engine.outbox_sender import OutboxSender, parse_message_id
from tertulia.engine.shared import Shared
from tertulia.engine.store_protocols import OutboxItem
from tertulia.errors import NotSent, SendRefused, TertuliaError, reason_of
from tertulia.messages import Message, Place, Reply
from tertulia.platform import Delivery, Platform
from tertulia.run.journal import Run
from tertulia.run.outcome import reply_to_id

log = logging.getLogger(__name__)

PREVIEW_TIMEOUT = 10.0  # seconds of one request that shows a preview or a draft
TYPING_INTERVAL = 4.0  # seconds between two typing indicators
ELLIPSIS = "…"  # ends a text that is too long for one message; alone it is a draft whose id is not known yet
DRAFT_OUTCOME_UNKNOWN = "the outcome of sending the draft is unknown"


class AnswerPreviews:
    """Shows a preview for each run whose platform can show one."""

    def __init__(self, shared: Shared, sender: OutboxSender) -> None:
        self._shared = shared
        self._sender = sender
        self._platforms = shared.platforms

    def is_visible(self, place: Place) -> bool:
        """Return whether the platform of a place can show what is being written."""
        can = self._platforms[place.platform].capabilities_in(place)
        return can.previews or can.typing or can.drafts

    @asynccontextmanager
    async def show(self, run: Run, target: Message) -> AsyncIterator["AnswerPreview | None"]:
        """Show the answer of a run until the block ends; then wait for the last request."""
        if not self.is_visible(run.place):
            yield None
            return
        platform = self._platforms[self._shared.identity.account_in(run.place, run.agent)]
        preview = AnswerPreview()
        draft = None
        if platform.capabilities_in(run.place).drafts:
            draft = Draft(run, target, self._shared, self._sender)
        showing = asyncio.create_task(self._show(preview, draft, platform, run))
        try:
            yield preview
        finally:
            showing.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.wait([showing], timeout=PREVIEW_TIMEOUT)
            if preview.request is not None:
                if draft is None:  # a draft must get its receipt
                    preview.request.cancel()
                await asyncio.wait([preview.request], timeout=2 * PREVIEW_TIMEOUT)

    async def _show(self, preview: "AnswerPreview", draft: "Draft | None", platform: Platform, run: Run) -> None:
        """Show the text each time it changes. Cancelling this does not cancel the current request."""
        can = platform.capabilities_in(run.place)
        while can.typing and not preview.changed.is_set():
            await _send_preview(platform, run, "")
            with suppress(TimeoutError):
                async with asyncio.timeout(TYPING_INTERVAL):
                    await preview.changed.wait()
        while draft or can.previews:
            await preview.changed.wait()
            await self._shared.sleep(can.preview_interval)
            preview.changed.clear()
            text = _truncate(preview.text, can.length)
            if not text:
                continue
            shown = draft.show(text) if draft else _send_preview(platform, run, text)
            preview.request = asyncio.ensure_future(shown)
            await asyncio.shield(preview.request)


class AnswerPreview:
    """The answer of a run so far, as it may be shown."""

    def __init__(self) -> None:
        self.text = ""
        self.changed = asyncio.Event()
        self.request: asyncio.Future[None] | None = None

    def show(self, text: str) -> None:
        """Set the text to show next."""
        self.text = text
        self.changed.set()


class Draft:
    """The message that shows the answer of a run while the model writes it."""

    def __init__(self, run: Run, target: Message, shared: Shared, sender: OutboxSender) -> None:
        self._run = run
        self._target = target
        self._platform = shared.platforms[shared.identity.account_in(run.place, run.agent)]
        self._outbox = shared.store.outbox
        self._sender = sender
        self._now = shared.now
        self._row: OutboxItem | None = None
        self._shown = ""

    async def show(self, text: str) -> None:
        """Send the draft, or edit it. A failure is only logged: the answer itself still comes."""
        try:
            if self._row is None:
                self._row = await self._outbox.draft(self._run.id)
            if self._row is None and self._sender.is_idle(self._run.place):  # else it would overtake an earlier reply
                self._row = await self._send()
            if self._row is not None:
                await self._edit(self._row, text)
        except TertuliaError as error:
            log.debug("the draft of run %s is not shown: %s", self._run.id, error)

    async def _send(self) -> OutboxItem:
        """Send the draft once; store it before and after, and return its row."""
        reply = Reply(place=self._run.place, text=ELLIPSIS, reply_to=reply_to_id(self._target))
        begun = self._row = OutboxItem(
            id=f"{self._run.id}-draft",
            reply=reply,
            made_at=self._now(),
            run=self._run.id,
            agent=self._run.agent,
            kind="draft",
            status="sending",
            attempts=1,
            sent_at=self._now(),
        )
        await self._outbox.put(begun)
        try:
            message_id = await self._deliver(begun)
        except (NotSent, SendRefused) as error:
            ended = replace(begun, status="dropped", sent_at=None, why=reason_of(error))
        except (Exception, asyncio.CancelledError) as error:
            if is_cancelled():
                raise
            log.debug("the draft of run %s: %s", self._run.id, log_text(error))
            ended = replace(begun, status="doubtful", why=DRAFT_OUTCOME_UNKNOWN)
        else:
            ended = replace(begun, status="sent", message_id=message_id, sent_at=self._now())
        self._row = ended
        await self._outbox.change(ended)
        return ended

    async def _edit(self, row: OutboxItem, text: str) -> None:
        if row.message_id is None or row.status != "sent" or text == self._shown:
            return
        try:
            await self._deliver(replace(row, reply=replace(row.reply, text=text), edits=row.message_id))
            self._shown = text
        except Exception as error:  # noqa: BLE001 (best effort)
            log.debug("the draft of run %s: %s", self._run.id, log_text(error))

    async def _deliver(self, row: OutboxItem) -> str:
        delivery = Delivery(id=row.id, run_id=row.run, kind="draft", reply=row.reply, edits=row.edits)
        async with asyncio.timeout(PREVIEW_TIMEOUT):
            with foreign_code(self._platform.name):
                given = await self._platform.send(delivery)
        message_id = parse_message_id(given)
        if message_id is None:
            raise TertuliaError(f"{self._platform.name}.send returned {given!r}, not a message id")
        return message_id


async def _send_preview(platform: Platform, run: Run, text: str) -> None:
    try:
        async with asyncio.timeout(PREVIEW_TIMEOUT):
            with foreign_code(platform.name):
                await platform.preview(run.place, run.id, text)
    except Exception as error:  # noqa: BLE001 (best effort)
        log.debug("the preview of run %s: %s", run.id, log_text(error))


def _truncate(text: str, length: int | None) -> str:
    """Return *text*, cut to the length of one message."""
    whole = text.strip()
    if length is None or len(whole) <= length:
        return whole
    return whole[: max(length - len(ELLIPSIS), 0)].rstrip() + ELLIPSIS
