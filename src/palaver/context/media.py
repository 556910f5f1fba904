"""Which pictures and recordings go as they are, and which in words. Pure."""

from collections.abc import Sequence

from msgspec.structs import replace

from palaver.context.values import LeftOut
from palaver.context.window import Marks
from palaver.messages import Message
from palaver.parts import Media, Part

_IN_WORDS = "in words"  # where a message keeps itself with words for its media; None: it has none

MANY = "more media than the {allowed} that may go as they are: the others go in words"
OLD = "its media go in words: it is not among the newest messages"

AS_THEY_ARE = Marks(low=8, high=32)  # messages whose media go as they are; older ones go over in one step


def old_as_words(
    messages: tuple[Message, ...], start: int, count: int, allowed: int
) -> tuple[tuple[Message, ...], tuple[LeftOut, ...]]:
    """The window with the media of its older messages in words, so that only now and then a turn of it changes."""
    boundary = max(0, min(AS_THEY_ARE.start(count) - start, len(messages)))
    older = [
        message if (kept := message.__dict__.get(_IN_WORDS, False)) is None else kept or in_words(message)
        for message in messages[:boundary]
    ]
    left = tuple(
        LeftOut(source="media", what=one.id, why=OLD)
        for one, told in zip(messages, older, strict=False)
        if told is not one and any(map(_goes_itself, one.parts))
    )
    newer, left_too = newest_as_they_are(messages[boundary:], allowed)
    return (*older, *newer), left + left_too


def newest_as_they_are(messages: Sequence[Message], allowed: int) -> tuple[tuple[Message, ...], tuple[LeftOut, ...]]:
    """The messages with media beyond the newest *allowed* in words; of an album its first go as they are."""
    shown: list[Message] = []
    left: list[LeftOut] = []
    room = allowed
    for message in reversed(messages):
        own = sum(map(_goes_itself, message.parts))
        if own > room:
            left.append(LeftOut(source="media", what=message.id, why=MANY.format(allowed=allowed)))
            message = in_words(message) if room <= 0 else _first_as_they_are(message, room)
        room = max(0, room - own)
        shown.append(message)
    return tuple(reversed(shown)), tuple(reversed(left))


def _first_as_they_are(message: Message, room: int) -> Message:
    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, Media) and _goes_itself(part):
            room -= 1
            part = part if room >= 0 else replace(part, data=None, uri=None)
        parts.append(part)
    return replace(message, parts=tuple(parts))


def in_words(message: Message) -> Message:
    """The message with words for its media; made once."""
    kept = message.__dict__
    if _IN_WORDS not in kept:
        parts = (replace(part, data=None, uri=None) if isinstance(part, Media) else part for part in message.parts)
        kept[_IN_WORDS] = replace(message, parts=tuple(parts)) if _has_media(message) else None
    return kept[_IN_WORDS] or message


def _goes_itself(part: Part) -> bool:
    return isinstance(part, Media) and bool(part.data or part.uri)


def _has_media(message: Message) -> bool:
    return any(isinstance(part, Media) for part in message.parts)
