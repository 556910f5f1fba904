"""Media in words, once for each: asked for when somebody first sends it, and known from then on."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime
from itertools import chain

from msgspec.structs import replace

from palaver.context.values import Context
from palaver.conversation.crew import foreign
from palaver.conversation.journal import Descriptions
from palaver.errors import PalaverError
from palaver.messages import Message
from palaver.models.base import Model
from palaver.parts import Media, Part
from palaver.turns import Prompt, user

log = logging.getLogger(__name__)

ASKED = "Describe this in one or two plain sentences, with any words that can be read or heard in it. Nothing else."

PATIENCE = 60.0  # seconds that one description may take

Describe = Callable[[Media], Awaitable[str]]


def by_model(model: Model) -> Describe:
    """Have a model describe what it is shown."""

    async def describe(media: Media) -> str:
        response = await model.respond(Prompt.of(user(media, ASKED)))
        return response.text.strip()

    return describe


class Describer:
    """A source: the context with the words that are known for its media."""

    def __init__(self, known: Descriptions, describe: Describe | None, *, now: Callable[[], datetime]) -> None:
        self._known = known
        self._describe = describe
        self._now = now

    async def described(self, context: Context) -> Context:
        """Those of the batch are described where they never were; a failure leaves them as they are."""
        messages = chain(context.batch, context.window, context.recent, context.immediate, context.newer)
        ids = set(chain.from_iterable(map(_undescribed, messages)))
        if not ids:
            return context
        words = dict(await self._known.described(sorted(ids)))
        for media in [media for message in context.batch for media in _bare(_parts(message))]:
            if media.unique_id not in words and (said := await self._asked(media)):
                words[media.unique_id] = said
        return _with_words(context, words) if words else context

    async def _asked(self, media: Media) -> str:
        if self._describe is None or (media.data is None and media.uri is None):
            return ""
        try:
            async with asyncio.timeout(PATIENCE):
                with foreign("whoever describes"):
                    words = await self._describe(media)
        except Exception as error:  # noqa: BLE001 (whoever describes may fail in any way)
            said = error if isinstance(error, PalaverError) else type(error).__name__
            log.warning("%s %s was not described: %s", media.media_kind, media.unique_id, said)
            return ""
        if words:
            await self._known.describe(media.unique_id, words, by=getattr(self._describe, "name", ""), at=self._now())
        return words


def _undescribed(message: Message) -> tuple[str, ...]:
    """The ids of its media that come without words; noted with the message."""
    found: tuple[str, ...] | None = message.__dict__.get("undescribed")
    if found is None:
        found = message.__dict__["undescribed"] = tuple(media.unique_id for media in _bare(_parts(message)))
    return found


def _parts(message: Message) -> Iterable[Part]:
    yield from message.parts
    if message.reply_to is not None:
        yield from message.reply_to.parts


def _bare(parts: Iterable[Part]) -> Iterable[Media]:
    return (part for part in parts if isinstance(part, Media) and part.rendered_text is None and part.unique_id)


def _with_words(context: Context, words: Mapping[str, str]) -> Context:
    def told(message: Message) -> Message:
        if not any(unique_id in words for unique_id in _undescribed(message)):
            return message
        quote = message.reply_to
        return replace(
            message,
            parts=_told(message.parts, words),
            reply_to=quote and replace(quote, parts=_told(quote.parts, words)),
        )

    return replace(
        context.with_batch([*map(told, context.batch)]),
        window=tuple(map(told, context.window)),
        recent=tuple(map(told, context.recent)),
        immediate=tuple(map(told, context.immediate)),
        newer=tuple(map(told, context.newer)),
    )


def _told(parts: Iterable[Part], words: Mapping[str, str]) -> tuple[Part, ...]:
    return tuple(
        replace(part, rendered_text=words[part.unique_id])
        if isinstance(part, Media) and part.rendered_text is None and part.unique_id in words
        else part
        for part in parts
    )
