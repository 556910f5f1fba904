"""Description worker: asks for descriptions of media, several at once and each only once, and stores them.

A run waits for some of them, for a limited time; those that come later are stored all the same. The others wait in a
queue in memory, which every run fills again from its window. A failure is stored, so that nobody asks again for a
while.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime, timedelta
from itertools import islice

from msgspec import Struct

from tertulia.backoff import backoff
from tertulia.characters import is_blank, one_line
from tertulia.engine.background import BackgroundTasks, foreign_code, log_text
from tertulia.engine.limits import CurrentLimits
from tertulia.errors import MediaUnavailable, SpendCapReached, StoreTrouble, reason_of
from tertulia.media.descriptions import MAX_BRIEF, DescriptionFailure, DescriptionStore, is_made, shorten
from tertulia.messages import Message, Place
from tertulia.parts import Media

log = logging.getLogger(__name__)

WAIT = 20.0  # seconds that a run waits for the descriptions it shows
AT_ONCE = 2  # descriptions that are asked for in the background
MAX_OF_A_RUN = 32  # media of a window that one run puts in the queue
MAX_WAITING = 256  # in the queue; others come again with the next window that shows them
FIRST_RETRY, LONGEST_RETRY = timedelta(hours=1), timedelta(days=1)  # after a failure
NO_WORDS = "it gave no words"


class Wanted(Struct, frozen=True, kw_only=True):
    """Media to describe, and a message that shows them; its author is who sent them, also where it quotes them."""

    media: Media
    message: Message


class Maker(Struct, frozen=True, kw_only=True):
    """Makes descriptions: a model, a transcriber, or a function of the user's."""

    name: str
    make: Callable[[Wanted], Awaitable[str]]  # raises `MediaUnavailable` if media cannot be had, or shown to it
    longest: int = MAX_BRIEF  # characters of a description that are stored


class DescriptionWorker:
    """Asks for descriptions and stores them."""

    def __init__(
        self,
        known: DescriptionStore,
        makers: Callable[[Media], Maker | None],
        *,
        limits: CurrentLimits,
        now: Callable[[], datetime],
        described: Callable[[Place], None] = lambda _: None,
    ) -> None:
        self.known = known
        self._described = described  # is called with the place of media whose description was stored
        self._makers = makers
        self._limits = limits
        self._now = now
        self._asked: dict[str, asyncio.Task[None]] = {}  # by unique id: two places that show the same ask once
        self._waiting: OrderedDict[str, Wanted] = OrderedDict()
        self._running = 0
        self._tasks = BackgroundTasks()

    async def describe(self, wanted: Sequence[Wanted], *, seconds: float = WAIT) -> None:
        """Ask for all these at once, and wait until they are stored or the time is over."""
        if not wanted:
            return
        done, _ = await asyncio.wait([self._ask(one) for one in wanted], timeout=seconds)
        for task in done:
            if not task.cancelled() and (error := task.exception()):
                raise error

    async def settled(self, media: Iterable[Media]) -> set[str]:
        """Return the unique ids of media for which nobody is to be asked now: it was done, or failed lately."""
        ids: dict[str, list[str]] = {}
        for one in media:
            if maker := self._makers(one):
                ids.setdefault(maker.name, []).append(one.unique_id)
        settled = set[str]()
        for name, some in ids.items():
            made, failed = await self.known.makers(some), await self.known.failures(some, by=name)
            settled.update(unique_id for unique_id, makers in made.items() if is_made(makers, name))
            settled.update(unique_id for unique_id, failure in failed.items() if self._is_recent(failure))
        return settled

    def _is_recent(self, failure: DescriptionFailure) -> bool:
        """Return whether it is too early for another attempt; more than a day is the time of a clock that was wrong."""
        return timedelta() < failure.retry_at - self._now() <= LONGEST_RETRY

    def enqueue(self, wanted: Iterable[Wanted]) -> None:
        """Ask for some of these in the background, the first ones first."""
        for one in islice(wanted, MAX_OF_A_RUN):
            if one.media.unique_id not in self._asked and len(self._waiting) < MAX_WAITING:
                self._waiting.setdefault(one.media.unique_id, one)
        for _ in range(min(AT_ONCE - self._running, len(self._waiting))):
            self._running += 1
            self._tasks.start(self._run())

    @property
    def busy(self) -> bool:
        return self._tasks.busy

    async def done(self) -> None:
        """Wait until nothing is asked for."""
        await self._tasks.done()

    async def close(self) -> None:
        """Stop. What is not described is found again in the next window that shows it."""
        self._waiting.clear()
        await self._tasks.stop()

    async def _run(self) -> None:
        try:
            while self._waiting:
                _, wanted = self._waiting.popitem(last=False)
                await asyncio.wait([self._ask(wanted)])
        finally:
            self._running -= 1

    def _ask(self, wanted: Wanted) -> asyncio.Task[None]:
        unique_id = wanted.media.unique_id
        self._waiting.pop(unique_id, None)
        if unique_id not in self._asked:
            task = self._asked[unique_id] = self._tasks.start(self._describe(wanted))
            task.add_done_callback(lambda _: self._asked.pop(unique_id, None))
        return self._asked[unique_id]

    async def _describe(self, wanted: Wanted) -> None:
        """Describe media, unless that was done or tried before."""
        media, maker = wanted.media, self._makers(wanted.media)
        if maker is None or await self.settled([media]):
            return
        failures = await self.known.failures([media.unique_id], by=maker.name)
        words = await self._make(maker, wanted, failures.get(media.unique_id))
        if words:
            await self.known.describe(media.unique_id, words, by=maker.name, at=self._now(), message=wanted.message)
            self._described(wanted.message.place)

    async def _make(self, maker: Maker, wanted: Wanted, failed: DescriptionFailure | None) -> str:
        """Return the words for media; empty where there are none, which is stored as a failure."""
        timeout = self._limits.value.call_timeout
        try:
            async with asyncio.timeout(timeout):
                with foreign_code("the describer"):
                    made: object = await maker.make(wanted)
            words = shorten(one_line(made), maker.longest) if isinstance(made, str) else ""
            why = NO_WORDS
        except StoreTrouble:
            raise
        except SpendCapReached as error:  # tomorrow, perhaps
            log.info("%s not described: %s", _name(wanted.media), error)
            return ""
        except MediaUnavailable as error:
            words, why = "", reason_of(error)
            log.info("%s not described: %s", _name(wanted.media), error)
        except Exception as error:  # noqa: BLE001 (a model and a user's function are foreign code)
            words, why = "", _reason(error, timeout)
            log.warning("%s not described: %s", _name(wanted.media), log_text(error))
        if is_blank(words):
            words = ""
            count = failed.failures + 1 if failed else 1
            retry_at = self._now() + backoff(count, first=FIRST_RETRY, longest=LONGEST_RETRY)
            failure = DescriptionFailure(why=why, failures=count, retry_at=retry_at)
            await self.known.fail(wanted.media.unique_id, failure, by=maker.name)
        return words


def _name(media: Media) -> str:
    return f"{media.media_kind} {media.unique_id}"


def _reason(error: Exception, timeout: float) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {timeout:g} s"
    return one_line(reason_of(error))[:300]
