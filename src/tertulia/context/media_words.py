"""Descriptions of media in a context: which are stored for it, and from when on its messages show them. Pure.

A description may come late: runs have shown the message without it, as words in the middle of the prompt. Showing it at
once would end the stable prefix there. So it waits for the next step, at which the prefix changes anyway
(`Context.stable_since`): the boundary between media and words moves, or the window is cut. With a buffer the step is
the one at which messages leave it, and what is still in the buffer always has the newest description, as has the batch.
A description that was known when the media of a message became words is not late (`Context.settled_after`).
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from msgspec.structs import replace

from tertulia.context.values import Context
from tertulia.media.descriptions import Description
from tertulia.messages import Message
from tertulia.parts import Media, Part, change_media
from tertulia.turns import Turn
from tertulia.value_cache import cached, cached_for

_KNOWN = "known media"  # the key of whether a message has some
_UNDESCRIBED = "undescribed"  # the key of the ids of a message's media that nobody has described


def known_media(parts: Iterable[Part]) -> Iterator[Media]:
    """Yield the media that are known by an id; none that only say where the same ones are shown."""
    for part in parts:
        if isinstance(part, Media) and part.unique_id and not part.same_as:
            yield part


def with_known_media(messages: Iterable[Message]) -> list[Message]:
    """Return the messages that have known media: at the others of a long history one look each is enough."""

    def find(message: Message) -> bool:
        return any(known_media(message.parts))

    return [one for one in messages if one.__dict__.get(_KNOWN, True) and cached(one, _KNOWN, find)]


def undescribed_media(parts: Iterable[Part]) -> Iterator[Media]:
    """Yield those of the known media that nobody has described."""
    return (media for media in known_media(parts) if media.rendered_text is None)


def undescribed_ids(context: Context) -> set[str]:
    """Return the unique ids of all media in a context that nobody has described."""
    messages = chain(context.batch, context.window, context.recent, context.immediate, context.newer)
    return {unique_id for one in messages if one.__dict__.get(_UNDESCRIBED, True) for unique_id in _ids(one)}


def with_descriptions(context: Context, known: Mapping[str, Description], *, beginning: int = 0) -> Context:
    """Return the context with the known descriptions of its media, by their unique ids, where they are in effect.

    The batch has them whole, the history its beginning. *beginning* is how many messages of the place came before those
    that the context counts.
    """
    brief = {unique_id: one.in_brief for unique_id, one in known.items()}

    def current(messages: Iterable[Message]) -> tuple[Message, ...]:
        return tuple(_described(message, brief) for message in messages)

    def in_window(index: int, message: Message) -> Message:
        if index >= context.stable:
            return _described(message, brief)
        step = max(context.stable_since, context.window_start + index + context.settled_after)
        return _described(message, brief, up_to=step + beginning)

    described = replace(
        context.with_batch([_described(message, known) for message in context.batch]),
        window=tuple(in_window(index, message) for index, message in enumerate(context.window)),
        recent=current(context.recent),
        immediate=current(context.immediate),
        newer=current(context.newer),
    )
    return replace(described, turns=_described_turns(described)) if context.turns else described


def _described_turns(context: Context) -> dict[str, tuple[Turn, ...]]:
    """Return the turns of own messages; media in them that are words say what those of their message say."""
    turns = dict(context.turns)
    for message in chain(context.window, context.recent, context.immediate, context.newer):
        if message.id in turns and (words := cached(message, "descriptions", _descriptions)):
            turns[message.id] = tuple(_described_turn(turn, words) for turn in turns[message.id])
    return turns


def _descriptions(message: Message) -> dict[str, str]:
    media = (part for part in message.parts if isinstance(part, Media))
    return {one.unique_id: one.rendered_text for one in media if one.unique_id and one.rendered_text}


def _described_turn(turn: Turn, words: Mapping[str, str]) -> Turn:
    def describe(media: Media) -> Media:
        is_told = media.has_content or media.rendered_text is not None or media.unique_id not in words
        return media if is_told else replace(media, rendered_text=words[media.unique_id])

    def make() -> Turn:
        parts = change_media(turn.parts, describe)
        return turn if parts is turn.parts else replace(turn, parts=parts)

    return cached_for(turn, "described", words, make)


def _ids(message: Message) -> tuple[str, ...]:
    """Return the unique ids of what is not described in a message and its quote; cached."""

    def find(one: Message) -> tuple[str, ...]:
        quoted = one.reply_to.parts if one.reply_to else ()
        return tuple(media.unique_id for media in undescribed_media((*one.parts, *quoted)))

    return cached(message, _UNDESCRIBED, find)


def _described(message: Message, known: Mapping[str, Description], *, up_to: int | None = None) -> Message:
    """Return the message with the descriptions of its media that were known *up_to* a position; cached."""
    ids = _ids(message)
    if not ids:
        return message
    found = {name: known[name] for name in ids if name in known}
    told = {name: one.words if up_to is None else one.known_at(up_to) for name, one in found.items()}
    words = {name: one for name, one in told.items() if one is not None}
    return cached_for(message, "described", words, lambda: _describe(message, words)) if words else message


def _describe(message: Message, words: Mapping[str, str]) -> Message:
    quote = message.reply_to
    return replace(
        message,
        parts=tuple(_describe_parts(message.parts, words)),
        reply_to=quote and replace(quote, parts=tuple(_describe_parts(quote.parts, words))),
    )


def _describe_parts(parts: Iterable[Part], words: Mapping[str, str]) -> Iterator[Part]:
    for part in parts:
        found = [words[one.unique_id] for one in undescribed_media([part]) if one.unique_id in words]
        yield replace(part, rendered_text=found[0]) if found else part
