"""The token budget of each source and of media, and reports of what was left out. Pure.

Messages: the newest are taken, the oldest left out. Ranked items: the first are taken, the last left out. Every item
that is left out has a `LeftOut` that says why.

Media: first it is decided which messages are shown, as if all media were words. The tokens that are left then go to
media, the newest first: all media behind one boundary are sent themselves, all before it as words. In a window the
boundary falls on fixed message numbers (`stable_prefix`), so that a message rarely changes after it was sent.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from operator import is_
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from palaver.context.stable_prefix import Marks, stable_cut
from palaver.context.values import LeftOut, SourceName
from palaver.errors import InvalidValue
from palaver.messages import Message, Quote
from palaver.parts import Media, Part, Text
from palaver.tokens import ESTIMATOR, Counter, message_tokens, parts_tokens, turn_tokens
from palaver.turns import Turn
from palaver.value_cache import cached, cached_for

T = TypeVar("T")

HEADER_TOKENS = 40  # tokens of a header, or of the line that says whose words follow
FRAME_TOKENS = 8  # of a message without a header
EXCERPT_LENGTH = 40  # characters of an item without an id, in its report
MAX_IDS = 20  # in a merged report
OLDER = "older than what was left out"
BRIEF_LENGTH = 300  # characters of a quote beside a message of the history, and of what each of its media shows
MANY = "more media than the {allowed} that may go as they are: the others go in words"
OVER = "its media go in words: over the budget of {budget} tokens"
OLD = "its media go in words: it is not among the newest messages"
MEDIA_MARKS = Marks(low=8, high=32)  # of the newest messages, whose media are sent themselves
NEWEST_MEDIA_MARKS = Marks(low=4, high=4)  # the same in a profile that sends the newest messages behind the prefix

_IN_WORDS = "in words"  # the key of a message with words for its media; None: it has no media


class Budget(Struct, frozen=True, kw_only=True):
    """The tokens that each source may use, the counter, and the number of media that are sent themselves."""

    window: int = 100_000
    immediate: int = 16_000
    recent: int = 16_000
    relevant: int = 2_000
    background: int = 2_000
    episodic: int = 1_000
    past: int = 1_000
    media: int = 16
    counter: Counter = ESTIMATOR

    def __post_init__(self) -> None:
        allowed = (getattr(self, name) for name in self.__struct_fields__ if name != "counter")
        if min(allowed) < 0:
            raise InvalidValue("a budget is a number of tokens, or of media, and not less than 0")


def count_tokens(messages: Sequence[Message], turns: Mapping[str, tuple[Turn, ...]], counter: Counter) -> list[int]:
    """Return the tokens of each message, with its header; of an own message, those of its turns.

    A reply counts with its quote. Whether the quote is shown depends on the cut, and the cut on these counts.
    """
    header = HEADER_TOKENS if messages and messages[0].place.kind != "direct" else FRAME_TOKENS
    replies = {message.id: quote_tokens(message, counter) for message in messages if message.reply_to is not None}
    if not turns and not replies:
        return [0 if message.deleted else message_tokens(message, counter) + header for message in messages]
    of_turn = turn_tokens if counter is ESTIMATOR else partial(turn_tokens, counter=counter)
    return [
        0
        if message.deleted
        else sum(map(of_turn, turns[message.id]))
        if message.id in turns
        else message_tokens(message, counter) + header + replies.get(message.id, 0)
        for message in messages
    ]


def drop_oversized(
    messages: tuple[Message, ...], counts: list[int], budget: int
) -> tuple[tuple[Message, ...], list[int], tuple[LeftOut, ...]]:
    """Replace messages larger than the whole budget by deleted ones, which keep their place in the window."""
    if not counts or max(counts) <= budget:
        return messages, counts, ()
    giants = {index for index, count in enumerate(counts) if count > budget}
    left = tuple(
        LeftOut(source="window", ids=(messages[index].id,), why=too_large(budget), tokens=counts[index])
        for index in sorted(giants)
    )
    replaced = tuple(replace(one, deleted=True) if index in giants else one for index, one in enumerate(messages))
    return replaced, [0 if index in giants else count for index, count in enumerate(counts)], left


def take_newest(
    messages: Sequence[Message], counts: Sequence[int], budget: int, source: SourceName
) -> tuple[tuple[Message, ...], tuple[LeftOut, ...]]:
    """Take the newest messages that fit. A message larger than the whole budget is skipped; it does not end the scan.

    At the first message that does not fit the scan ends, so that the messages taken have no gap.
    """
    taken: list[Message] = []
    left: list[LeftOut] = []
    remaining = budget
    for message, tokens in zip(reversed(messages), reversed(counts), strict=True):
        if tokens > budget:
            left.append(LeftOut(source=source, ids=(message.id,), why=too_large(budget), tokens=tokens))
        elif tokens > remaining:
            remaining = -1
            left.append(LeftOut(source=source, ids=(message.id,), why=over_budget(budget), tokens=tokens))
        else:
            remaining -= tokens
            taken.append(message)
    return tuple(reversed(taken)), tuple(reversed(left))


def report_messages(
    messages: Sequence[Message], counts: Sequence[int], source: SourceName, why: str
) -> tuple[LeftOut, ...]:
    """Report messages that were left out for one reason."""
    return tuple(
        LeftOut(source=source, ids=(message.id,), why=why, tokens=tokens)
        for message, tokens in zip(messages, counts, strict=True)
        if not message.deleted
    )


def report_item(source: SourceName, why: str, ids: tuple[str, ...], text: str, tokens: int) -> LeftOut:
    """Report one item: by its ids, or by the beginning of its text where it has none."""
    beginning = "" if ids else text if len(text) <= EXCERPT_LENGTH else f"{text[: EXCERPT_LENGTH - 1]}…"
    return LeftOut(source=source, why=why, ids=ids, text=beginning, tokens=tokens)


def group_reports(left: Iterable[LeftOut]) -> tuple[LeftOut, ...]:
    """Merge the reports of each source and reason into one, without texts and with at most `MAX_IDS` ids."""
    groups: dict[tuple[SourceName, str], list[LeftOut]] = {}
    for one in left:
        groups.setdefault((one.source, one.why), []).append(one)
    return tuple(
        LeftOut(
            source=source,
            why=why,
            ids=tuple(islice((id for one in some for id in one.ids), MAX_IDS)),
            tokens=sum(one.tokens for one in some),
            count=sum(one.count for one in some),
        )
        for (source, why), some in groups.items()
    )


def over_budget(budget: int) -> str:
    return f"over the budget of {budget} tokens"


def too_large(budget: int) -> str:
    return f"alone larger than the budget of {budget} tokens"


def take_first(
    items: Iterable[T],
    budget: int,
    *,
    count: Callable[[T], int],
    source: SourceName,
    ids: Callable[[T], tuple[str, ...]] = lambda _: (),
    text: Callable[[T], str],
) -> tuple[tuple[T, ...], tuple[LeftOut, ...], int]:
    """Take the items that fit, the best first. Return them, the reports of the others, and the tokens that are left.

    An item is reported by its *ids*, or by its *text* where it has none.
    """
    taken: list[T] = []
    left: list[LeftOut] = []
    remaining = budget
    for item in items:
        tokens = count(item)
        if tokens > remaining:
            left.append(report_item(source, over_budget(budget), ids(item), text(item), tokens))
            continue
        remaining -= tokens
        taken.append(item)
    return tuple(taken), tuple(left), remaining


def media_in_brief(quote: Quote) -> tuple[Media, ...]:
    """Return the quoted media without their content."""
    return tuple(_in_brief(part) for part in quote.parts if isinstance(part, Media))


def quote_tokens(message: Message, counter: Counter) -> int:
    """Return the tokens of the quote of a message in brief; cached."""
    quote = message.reply_to
    if quote is None:
        return 0

    def count() -> int:
        words = max((quote.excerpt or "")[:BRIEF_LENGTH], quote.inline_text[:BRIEF_LENGTH], key=len)
        return parts_tokens((Text(text=words), *media_in_brief(quote)), counter)

    return cached_for(message, "tokens of quote", counter, count)


def _in_brief(media: Media) -> Media:
    text = media.rendered_text
    brief = text if text is None or len(text) <= BRIEF_LENGTH else f"{text[:BRIEF_LENGTH]}…"
    return replace(media.without_content(), signature=None, rendered_text=brief)


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
            part = part if count >= 0 else part.without_content()
        parts.append(part)
    return replace(message, parts=tuple(parts))


def message_in_words(message: Message) -> Message:
    """Return the message with words for its media; cached."""
    return cached(message, _IN_WORDS, _media_as_words) or message


def _media_as_words(message: Message) -> Message | None:
    """Return the message with words for its media; None if it has no media."""
    parts = (part.without_content() if isinstance(part, Media) else part for part in message.parts)
    return replace(message, parts=tuple(parts)) if _media_count(message) else None


def _media_count(message: Message) -> int:
    """Return how many media of a message have content to send."""
    return sum(map(_is_sendable, message.parts))


def _is_sendable(part: Part) -> bool:
    return isinstance(part, Media) and part.has_content
