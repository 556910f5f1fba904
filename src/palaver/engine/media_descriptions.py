"""Media descriptions: each media is described in words once, when it is first sent, and stored."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain

from msgspec.structs import replace

from palaver.context.values import Context
from palaver.engine.background import foreign_code, log_text
from palaver.engine.limits import CurrentLimits
from palaver.engine.spend_caps import MeteredModel, SpendTracker
from palaver.media.descriptions import DescriptionStore
from palaver.messages import Message
from palaver.models.base import Model
from palaver.parts import Media, Part
from palaver.turns import Prompt, user
from palaver.value_cache import cached

log = logging.getLogger(__name__)

ASKED = "Describe this in one or two plain sentences, with any words that can be read or heard in it. Nothing else."

Describe = Callable[[Media], Awaitable[str]]


class ModelDescriber:
    """Asks a model for a description: see `by_model`."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.name = model.name

    async def __call__(self, media: Media) -> str:
        response = await self.model.respond(Prompt.of(user(media, ASKED)))
        return response.text.strip()


def by_model(model: Model) -> ModelDescriber:
    """Return a describer that asks a model."""
    return ModelDescriber(model)


def models_of_describer(describe: Describe | None) -> list[Model]:
    """Return the model of a describer, where it has one."""
    return [describe.model] if isinstance(describe, ModelDescriber) else []


class MediaDescriber:
    """Describes media: `describe` asks for missing descriptions, `add_descriptions` is a source of the stored ones.

    Each request has the time of a model call. With *spend_tracker*, a model's calls count for the message's author.
    """

    def __init__(
        self,
        known: DescriptionStore,
        describe: Describe | None,
        *,
        spend_tracker: SpendTracker | None = None,
        limits: CurrentLimits | None = None,
        now: Callable[[], datetime],
    ) -> None:
        self._known = known
        self._describe = describe
        self._spend_tracker = spend_tracker
        self._limits = limits or CurrentLimits()
        self._now = now

    @property
    def is_enabled(self) -> bool:
        """Return whether there is a describer."""
        return self._describe is not None

    async def find_undescribed(self, messages: Sequence[Message]) -> dict[str, tuple[Media, Message]]:
        """Return the media of messages that have data or a URI and no description, by their ids."""
        seen = [(media, message) for message in messages for media in _undescribed_media(_parts(message))]
        found = {media.unique_id: (media, message) for media, message in reversed(seen) if media.has_content}
        known = await self._known.find(sorted(found)) if found else {}
        return {name: found[name] for name in reversed(found) if name not in known}

    async def describe(self, missing: Mapping[str, tuple[Media, Message]]) -> None:
        """Ask for all these descriptions at once, and store them. A failure leaves a media undescribed."""
        descriptions = await asyncio.gather(*(self._ask(media, message) for media, message in missing.values()))
        for name, words in zip(missing, descriptions, strict=True):
            if words:
                await self._known.describe(name, words, by=getattr(self._describe, "name", ""), at=self._now())

    async def add_descriptions(self, context: Context) -> Context:
        """Return the context with the stored descriptions of its media."""
        messages = chain(context.batch, context.window, context.recent, context.immediate, context.newer)
        ids = set(chain.from_iterable(map(_undescribed, messages)))
        found = await self._known.find(sorted(ids), context.place) if ids else {}
        words = {unique_id: one.words for unique_id, one in found.items()}
        return _with_descriptions(context, words) if words else context

    async def _ask(self, media: Media, message: Message) -> str:
        describe = self._describe
        if self._spend_tracker and isinstance(describe, ModelDescriber):
            asked = MeteredModel(
                describe.model,
                self._spend_tracker,
                message.place,
                message.author,
                timeout=self._limits.value.call_timeout,
            )
            describe = ModelDescriber(asked)
        try:
            async with asyncio.timeout(self._limits.value.call_timeout):
                with foreign_code("the describer"):
                    return await describe(media) if describe else ""
        except Exception as error:  # noqa: BLE001 (the describer is foreign code)
            log.warning("%s %s not described: %s", media.media_kind, media.unique_id, log_text(error))
            return ""


def _undescribed(message: Message) -> tuple[str, ...]:
    """Return the ids of its media without a description; cached."""
    return cached(
        message, "undescribed", lambda one: tuple(media.unique_id for media in _undescribed_media(_parts(one)))
    )


def _parts(message: Message) -> Iterable[Part]:
    yield from message.parts
    if message.reply_to is not None:
        yield from message.reply_to.parts


def _undescribed_media(parts: Iterable[Part]) -> Iterable[Media]:
    return (part for part in parts if isinstance(part, Media) and part.rendered_text is None and part.unique_id)


def _with_descriptions(context: Context, words: Mapping[str, str]) -> Context:
    def describe_message(message: Message) -> Message:
        if not any(unique_id in words for unique_id in _undescribed(message)):
            return message
        quote = message.reply_to
        return replace(
            message,
            parts=_describe_parts(message.parts, words),
            reply_to=quote and replace(quote, parts=_describe_parts(quote.parts, words)),
        )

    return replace(
        context.with_batch([*map(describe_message, context.batch)]),
        window=tuple(map(describe_message, context.window)),
        recent=tuple(map(describe_message, context.recent)),
        immediate=tuple(map(describe_message, context.immediate)),
        newer=tuple(map(describe_message, context.newer)),
    )


def _describe_parts(parts: Iterable[Part], words: Mapping[str, str]) -> tuple[Part, ...]:
    return tuple(
        replace(part, rendered_text=words[part.unique_id])
        if isinstance(part, Media) and part.rendered_text is None and part.unique_id in words
        else part
        for part in parts
    )
