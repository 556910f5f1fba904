"""The episode writer: splits the messages of a place into episodes and summarises them, in the background."""

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

ATTEMPTS = 3  # at a place whose messages change while they are summarised
PAGES = 4  # of messages that are read together
RECENT = 1_000  # messages: episodes further back are summarised without a model when a place is first read


class EpisodeWriter(PlaceQueue):
    """Writes the episodes that have ended in each place that is woken.

    Nothing is lost when a process ends: what is not written yet is written by the next one.
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
        super().__init__(self.write, "summarising episodes", sleep=sleep)
        self._episodes = episodes
        self._messages = messages
        self._model = model
        self._metered = metered  # counts what the model is asked
        self._rules = rules or EpisodeRules()

    async def start(self, wanted: Callable[[Place], bool] = lambda _: True) -> None:
        """Wake the places with messages in no episode, as an earlier process left them."""
        for place in filter(wanted, await self._episodes.places()):
            self.wake(place)

    async def write(self, place: Place) -> int:
        """Write the episodes of *place* that have ended, and anew those that were removed; return how many."""
        return await self._write_anew(place) + await self._write_next(place)

    async def _write_next(self, place: Place) -> int:
        """Write episodes from the cursor on, as far as they have ended."""
        count = failed = 0
        while failed < ATTEMPTS and (seen := await self._episodes.cursor(place)) and seen.read < seen.count:
            messages = await self._messages.read(place, seen.read, seen.read + PAGES * self._rules.read_size)
            ends = [seen.read + end for end in await self._boundaries(messages)]
            if not ends:
                break
            for first, last in message_ranges(seen.read, ends):
                part = messages[first - seen.read : last - seen.read]
                if not await self._add(part, first, replace(seen, read=first)):
                    failed += 1
                    break
                count += 1
        return count

    async def _write_anew(self, place: Place) -> int:
        """Write episodes for messages before the cursor that are in none any more."""
        count = 0
        for start, stop in await self._episodes.missing_ranges(place):
            seen = await self._episodes.cursor(place)
            messages = await self._messages.read(place, start, stop)
            if seen is None or len(messages) < stop - start:
                break
            ends = [start + end for end in await self._boundaries(messages)]
            for first, last in message_ranges(start, [*ends, stop]):
                count += await self._add(messages[first - start : last - start], first, seen)
        return count

    async def _boundaries(self, messages: Sequence[Message]) -> list[int]:
        return await asyncio.to_thread(find_boundaries, messages, self._rules)  # too long for the event loop

    async def _add(self, messages: Sequence[Message], start: int, seen: EpisodeCursor) -> bool:
        """Store an episode of *messages*; return whether they were still as they were *seen*."""
        episode = await asyncio.to_thread(build_episode, messages, messages[-1].place, start)
        has_people = any(message.author.persona is None and not message.deleted for message in messages)
        if self._model is not None and has_people and episode.summary and seen.count - episode.stop < RECENT:
            episode = await self._summarise(episode, messages, self._model)
        return await self._episodes.add(episode, seen=seen)

    async def _summarise(self, episode: Episode, messages: Sequence[Message], model: Model) -> Episode:
        """Return the episode with a summary by the model; unchanged where that fails."""
        try:
            response = await self._metered(model, episode.place).respond(summary_prompt(messages))
        except SpendCapReached:
            raise  # retried when the cap allows it
        except PalaverError as error:
            log.warning("episode %s is summarised without a model: %s", episode.id, error)
            return episode
        return apply_summary(episode, response.text, messages) or episode
