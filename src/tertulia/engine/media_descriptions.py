"""Media descriptions: every medium of a window gets words, made once and stored.

A run waits for the descriptions that it shows: those of media that do not go themselves, in messages that no run has
shown before. The others come in the background.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import chain
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from tertulia.context.log import Log
from tertulia.context.media_words import known_media, undescribed_ids, with_descriptions, with_known_media
from tertulia.context.values import Context
from tertulia.engine.describers import Makers, goes_itself
from tertulia.engine.description_worker import DescriptionWorker, Wanted
from tertulia.media.descriptions import Description
from tertulia.media.values import MediaOptions
from tertulia.messages import Message, Place
from tertulia.models.base import Model
from tertulia.parts import Media

MAX_FOUND = 64  # media of a window that are looked at, the newest


Find = Callable[[Collection[str], Place], Awaitable[Mapping[str, Description]]]  # descriptions by ids of media


class Waiting(Protocol):
    """A context manager around the time in which a run waits."""

    def __call__(self) -> AbstractAsyncContextManager[None]: ...


class _Shown(Struct, frozen=True, kw_only=True):
    """Media of a context that may need a description."""

    media: Media
    message: Message  # that shows them, by the person who sent them
    owner: str  # the id of the message that they belong to: it, or the one it quotes
    is_late: bool = False  # new words take effect later: a run has shown them, or they have words of another model


@asynccontextmanager
async def at_once() -> AsyncIterator[None]:
    """Wait as it is."""
    yield


class StoredDescriptions:
    """Adds to contexts the descriptions of their media that *find* finds; asks nobody for others."""

    def __init__(self, find: Find) -> None:
        self._find = find

    async def describe(
        self,
        context: Context,
        log: Log,
        models: Sequence[Model],
        *,
        beginning: int = 0,
        while_waiting: Waiting = at_once,
    ) -> Context:
        """Return the context with its media described: wait for some descriptions, and ask for others later.

        *log* has the messages as they were sent. *models* may get the context; *beginning* is how many messages of the
        place came before those that it counts.
        """
        return context

    async def add_descriptions(self, context: Context, *, beginning: int = 0) -> Context:
        """Return the context with the stored descriptions of its media that are in effect.

        *beginning* is how many messages of the place came before those that the context counts.
        """
        ids = undescribed_ids(context)
        known = await self._find(sorted(ids), context.place) if ids else {}
        return with_descriptions(context, known, beginning=beginning) if known else context


class MediaDescriber(StoredDescriptions):
    """Describes the media of contexts: `describe` asks for what is missing."""

    def __init__(
        self, makers: Makers, worker: DescriptionWorker, *, per_run: int = MediaOptions().descriptions_per_run
    ) -> None:
        super().__init__(worker.known.find)
        self.worker = worker
        self._makers = makers
        self._per_run = per_run

    async def describe(
        self,
        context: Context,
        log: Log,
        models: Sequence[Model],
        *,
        beginning: int = 0,
        while_waiting: Waiting = at_once,
    ) -> Context:
        found = await self._shown(context, beginning) if self._makers else []
        if not found:
            return context
        wanted = await self._with_content(found, log)
        needed = {
            one.media.unique_id
            for one in found
            if not one.is_late and not all(goes_itself(one.media, model) for model in models)
        }
        now = [one for one in wanted if one.media.unique_id in needed][: self._per_run]
        if now:
            async with while_waiting():
                await self.worker.describe(now)
            context = await self.add_descriptions(context, beginning=beginning)
        self.worker.enqueue(one for one in wanted if one not in now)
        return context

    async def _shown(self, context: Context, beginning: int) -> list[_Shown]:
        """Return the media that need a description, each once: the batch's and its quotes', then the newest."""
        shown = {
            one.media.unique_id: one
            for one in reversed([*_of_batch(context), *_of_history(context)])
            if self._makers(one.media) is not None
        }
        settled = await self.worker.settled(one.media for one in shown.values())
        wanted = {unique_id: one for unique_id, one in reversed(shown.items()) if unique_id not in settled}
        described = await self.worker.known.makers(wanted)
        found = [
            replace(one, is_late=unique_id in described)
            for unique_id, one in wanted.items()
            if unique_id in described or one.media.rendered_text is None  # else its platform has put it into words
        ][:MAX_FOUND]
        if context.levels or not found:
            return found
        seen = await self.worker.known.shown(context.place) - beginning
        late = {message.id for message in context.window[: max(0, min(seen - context.window_start, context.stable))]}
        return [replace(one, is_late=True) if one.message.id in late else one for one in found]

    async def _with_content(self, found: Sequence[_Shown], log: Log) -> list[Wanted]:
        """Return the media with what leads to their bytes; those of the context may have lost it."""
        bare = {one.owner for one in found if not one.media.has_content}
        place = found[0].message.place
        originals = [message for _, message in await log.find(place, sorted(bare))] if bare else []
        whole = {
            part.unique_id: part
            for message in originals
            for part in message.parts
            if isinstance(part, Media) and part.has_content
        }
        media = [one.media if one.media.has_content else whole.get(one.media.unique_id) for one in found]
        return [
            Wanted(media=replace(media, rendered_text=None), message=one.message)
            for one, media in zip(found, media, strict=True)
            if media is not None
        ]


def _of_batch(context: Context) -> Iterator[_Shown]:
    for message in context.batch:
        for media in known_media(message.parts):
            yield _Shown(media=media, message=message, owner=message.id)
    for message in context.batch:
        if quote := message.reply_to:
            sender = quote.author if quote.author and quote.author.is_person else message.author
            for media in known_media(quote.parts):
                yield _Shown(media=media, message=replace(message, author=sender), owner=quote.message_id)


def _of_history(context: Context) -> Iterator[_Shown]:
    history = chain(context.window, context.recent, context.immediate, context.newer)
    for message in reversed(with_known_media(history)):
        if not message.deleted:
            for media in known_media(message.parts):
                yield _Shown(media=media, message=message, owner=message.id)
