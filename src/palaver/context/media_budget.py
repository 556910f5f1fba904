"""The media of the history: which are sent themselves, and which as words. Pure.

First it is decided which messages are shown, as if all media were words. The tokens that are left then go to media, the
newest first: all media behind one boundary are sent themselves, all before it as words. In a window the boundary falls
on fixed message numbers (`stable_prefix`), so that a message rarely changes after it was sent.
"""

from collections.abc import Mapping, Sequence
from operator import is_

from msgspec import Struct
from msgspec.structs import replace

from palaver.context.budget import Budget
from palaver.context.stable_prefix import Marks, stable_cut
from palaver.context.values import LeftOut
from palaver.messages import Message
from palaver.parts import Media, Part
from palaver.tokens import Counter, message_tokens
from palaver.value_cache import cached

_IN_WORDS = "in words"  # the key of a message with words for its media; None: it has no media

MANY = "more media than the {allowed} that may go as they are: the others go in words"
OVER = "its media go in words: over the budget of {budget} tokens"
OLD = "its media go in words: it is not among the newest messages"

MEDIA_MARKS = Marks(low=8, high=32)  # of the newest messages, whose media are sent themselves
NEWEST_MEDIA_MARKS = Marks(low=4, high=4)  # the same in a profile that sends the newest messages behind the prefix


class MediaLimits(Struct, frozen=True, kw_only=True):
    """Limits of the media that are sent themselves: their number and their tokens."""

    media: int
    budget: int  # tokens for all that is shown
    media_tokens: int  # what is left of the budget for media, after the words
    counter: Counter

    @classmethod
    def of(cls, budget: Budget, tokens: int, *, used: int) -> "MediaLimits":
        """Return the limits of a source with a budget of *tokens*, of which words have *used* some."""
        return cls(media=budget.media, budget=tokens, media_tokens=tokens - used, counter=budget.counter)


def messages_in_words(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the messages with words for their media."""
    return tuple(
        [
            message
            if (in_words := message.__dict__.get(_IN_WORDS, False)) is None
            else in_words or message_in_words(message)
            for message in messages
        ]
    )


def window_with_newest_media(
    messages: Sequence[Message], shown: Sequence[Message], number: int, limits: MediaLimits, marks: Marks
) -> tuple[tuple[Message, ...], tuple[LeftOut, ...]]:
    """Return a window with the media of its newest messages. *shown* are the same *messages* in words.

    *number* is that of the first message in its place.
    """
    old = max(0, min(marks.start(number + len(messages)) - number, len(messages)))
    found, left, _ = with_newest_media(messages, shown, limits, old=old, number=number, step=marks.high - marks.low)
    return found, left


def with_newest_media(
    messages: Sequence[Message],
    shown: Sequence[Message],
    limits: MediaLimits,
    *,
    old: int = 0,
    number: int = 0,
    step: int = 1,
) -> tuple[tuple[Message, ...], tuple[LeftOut, ...], int]:
    """Return messages with their media behind the boundary, reports of the others, and how many more media may go.

    *shown* are the same *messages* in words. The first *old* ones stay in words. Of an album with more media than are
    allowed the first go. No more media may go before these messages if any of theirs did not.
    """
    if all(map(is_, messages, shown)):  # no media: most of the time
        return tuple(shown), (), limits.media
    media = [
        at
        for at, (one, in_words) in enumerate(zip(messages, shown, strict=True))
        if one is not in_words and not in_words.deleted
    ]
    whole, counts, costs = list(shown), [0] * len(shown), [0] * len(shown)
    for at in media:
        one = whole[at] = _within_limits(messages[at], limits)
        if count := _media_count(one):
            counts[at] = count
            extra = message_tokens(one, limits.counter) - message_tokens(shown[at], limits.counter)
            costs[at] = max(0, extra)
    many = stable_cut(counts, number, limits.media, step)
    boundary = max(old, many, stable_cut(costs, number, limits.media_tokens, step))
    found = (*shown[:boundary], *whole[boundary:])
    left = []
    for at in media:
        if _media_count(found[at]) < _media_count(messages[at]):
            why = OLD if at < old else MANY if at < many or _media_count(messages[at]) > limits.media else OVER
            reason = why.format(allowed=limits.media, budget=limits.budget)
            left.append(LeftOut(source="media", ids=(messages[at].id,), why=reason))
    return found, tuple(left), 0 if any(counts[:boundary]) else limits.media - sum(counts)


def levels_with_newest_media(
    levels: Sequence[Sequence[Message]], messages: Mapping[str, Message], limits: Sequence[MediaLimits]
) -> tuple[list[tuple[Message, ...]], tuple[LeftOut, ...]]:
    """Return the levels, given in words, with the newest media. *messages* are the originals by id."""
    media = min(one.media for one in limits)
    shown: list[tuple[Message, ...]] = []
    left: tuple[LeftOut, ...] = ()
    for level, its in zip(reversed(levels), reversed(limits), strict=True):
        whole = [messages[message.id] for message in level]
        found, unshown, media = with_newest_media(whole, level, replace(its, media=media))
        shown.append(found)
        left = unshown + left
    return shown[::-1], left


def _within_limits(message: Message, limits: MediaLimits) -> Message:
    """Return the message with as many of its media as are allowed; in words if these alone are over the budget."""
    many = _media_count(message)
    if not many:
        return message
    part = message if many <= limits.media else _with_first_media(message, limits.media)
    return part if message_tokens(part, limits.counter) <= limits.budget else message_in_words(message)


def _with_first_media(message: Message, count: int) -> Message:
    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, Media) and _is_sendable(part):
            count -= 1
            part = part if count >= 0 else _without_content(part)
        parts.append(part)
    return replace(message, parts=tuple(parts))


def message_in_words(message: Message) -> Message:
    """Return the message with words for its media; cached."""
    return cached(message, _IN_WORDS, _media_as_words) or message


def _media_as_words(message: Message) -> Message | None:
    """Return the message with words for its media; None if it has no media."""
    parts = (_without_content(part) if isinstance(part, Media) else part for part in message.parts)
    return replace(message, parts=tuple(parts)) if _media_count(message) else None


def _without_content(media: Media) -> Media:
    return replace(media, data=None, uri=None, raw=None)


def _media_count(message: Message) -> int:
    """Return how many media of a message have content to send."""
    return sum(map(_is_sendable, message.parts))


def _is_sendable(part: Part) -> bool:
    return isinstance(part, Media) and bool(part.data or part.uri)
