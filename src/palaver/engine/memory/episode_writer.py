"""Telling episodes in the background: what was said is read again once it is over, and never while somebody waits."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from palaver.context.log import Log
from palaver.engine.background import Sleep
from palaver.engine.memory.place_queue import Metered, PlaceQueue, unmetered
from palaver.errors import PalaverError, SpendCapReached
from palaver.memory.episode_summary import apply_summary, build_episode, summary_prompt
from palaver.memory.episodes import Episode, EpisodeCursor, EpisodeRules, Episodes, find_boundaries, message_ranges
from palaver.messages import Message, Place
from palaver.models.base import Model

log = logging.getLogger(__name__)

ATTEMPTS = 3  # at a place whose messages change while they are told
PAGES = 4  # of messages that are read at once
RECENT = 1_000  # messages: what lies further back when it is first read is told without a model


class EpisodeWriter:
    """`wake(place)` whenever something was said or has changed there; one place is read at a time.

    A process that ends in between loses nothing: what is not told yet is told by the next.
    """

    def __init__(
        self,
        episodes: Episodes,
        messages: Log,
        *,
        model: Model | None = None,
        rules: EpisodeRules | None = None,
        sleep: Sleep = asyncio.sleep,
        metered: Metered = unmetered,
    ) -> None:
        self._episodes = episodes
        self._messages = messages
        self._model = model
        self._metered = metered  # how the model is asked
        self._rules = rules or EpisodeRules()
        self._queue = PlaceQueue(self.read, "telling the episodes", sleep=sleep)

    async def start(self, wanted: Callable[[Place], bool] = lambda _: True) -> None:
        """Take up what an earlier process has not told."""
        for place in filter(wanted, await self._episodes.places()):
            self.wake(place)

    def wake(self, place: Place) -> None:
        """See in time whether something has come to an end in *place*."""
        self._queue.add(place)

    @property
    def busy(self) -> bool:
        return self._queue.busy

    async def done(self) -> None:
        """Wait until nothing is left to be told."""
        await self._queue.done()

    async def close(self) -> None:
        await self._queue.close()

    async def read(self, place: Place) -> int:
        """Tell what has come to an end in *place* and what has to be told anew; how many episodes."""
        return await self._read_anew(place) + await self._read_on(place)

    async def _read_on(self, place: Place) -> int:
        """From the mark on, as far as episodes have ended."""
        count = failed = 0
        while failed < ATTEMPTS and (seen := await self._episodes.mark(place)) and seen.read < seen.count:
            messages = await self._messages.read(place, seen.read, seen.read + PAGES * self._rules.page)
            ends = [seen.read + end for end in await self._ends(messages)]
            if not ends:
                break
            for first, last in message_ranges(seen.read, ends):
                said = messages[first - seen.read : last - seen.read]
                if not await self._tell(said, first, replace(seen, read=first)):
                    failed += 1
                    break
                count += 1
        return count

    async def _read_anew(self, place: Place) -> int:
        """What no episode tells of any more."""
        count = 0
        for start, stop in await self._episodes.untold(place):
            seen = await self._episodes.mark(place)
            messages = await self._messages.read(place, start, stop)
            if seen is None or len(messages) < stop - start:
                break
            ends = [start + end for end in await self._ends(messages)]
            for first, last in message_ranges(start, [*ends, stop]):
                count += await self._tell(messages[first - start : last - start], first, seen)
        return count

    async def _ends(self, messages: Sequence[Message]) -> list[int]:
        return await asyncio.to_thread(find_boundaries, messages, self._rules)  # it may take a while, and others wait

    async def _tell(self, messages: Sequence[Message], start: int, seen: EpisodeCursor) -> bool:
        """Keep what *messages* tell, for the place as it was then; whether they were still the same by now."""
        episode = await asyncio.to_thread(build_episode, messages, messages[-1].place, start)
        spoken = any(message.author.persona is None and not message.deleted for message in messages)
        if self._model is not None and spoken and episode.summary and seen.count - episode.stop < RECENT:
            episode = await self._asked(episode, messages, self._model)
        return await self._episodes.keep(episode, seen=seen)

    async def _asked(self, episode: Episode, messages: Sequence[Message], model: Model) -> Episode:
        """The episode as a model tells it; in its own words where that fails."""
        try:
            response = await self._metered(model, episode.place).respond(summary_prompt(messages))
        except SpendCapReached:
            raise  # it is told when it may be
        except PalaverError as error:
            log.warning("episode %s is told in its own words: %s", episode.id, error)
            return episode
        return apply_summary(episode, response.text, messages) or episode
