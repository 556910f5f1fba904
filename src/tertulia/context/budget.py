"""The token budget of each source, and reports of what was left out. Pure.

Messages: the newest are taken, the oldest left out. Ranked items: the first are taken, the last left out. Every item
that is left out has a `LeftOut` that says why.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Annotated, TypeVar

from msgspec import Meta, Struct
from msgspec.structs import replace

from tertulia.context.stable_prefix import BufferMarks, keep_results_with_calls
from tertulia.context.values import LeftOut, SourceName
from tertulia.errors import InvalidValue
from tertulia.messages import Message, Quote
from tertulia.parts import Media, Part, Text, ToolResult, cut_parts, cut_results
from tertulia.tokens import ESTIMATOR, Counter, message_tokens, parts_tokens, turn_tokens
from tertulia.turns import Turn
from tertulia.value_cache import cached, cached_for

T = TypeVar("T")

HEADER_TOKENS = 40  # tokens of a header, or of the line that says whose words follow
FRAME_TOKENS = 8  # of a message without a header
DESCRIPTION_TOKENS = 80  # of the description of one medium: two sentences
EXCERPT_LENGTH = 40  # characters of an item without an id, in its report
MAX_IDS = 20  # in a merged report
OLDER = "older than what was left out"
_WORDS = "tokens with room for descriptions"
_SPOKEN = "tokens without media"
BRIEF_LENGTH = 300  # characters of a quote beside a message of the history, and of what each of its media shows


class Budget(Struct, frozen=True, kw_only=True):
    """The tokens that each source may use, the counter, and the media of a request: their number, tokens and bytes."""

    window: Annotated[int, Meta(ge=0)] = 100_000
    immediate: Annotated[int, Meta(ge=0)] = 16_000
    recent: Annotated[int, Meta(ge=0)] = 16_000
    relevant: Annotated[int, Meta(ge=0)] = 2_000
    background: Annotated[int, Meta(ge=0)] = 2_000
    episodic: Annotated[int, Meta(ge=0)] = 1_000
    past: Annotated[int, Meta(ge=0)] = 1_000
    media: Annotated[int, Meta(ge=0)] = 16
    media_tokens: Annotated[int, Meta(ge=0)] = 50_000
    media_bytes: Annotated[int, Meta(ge=0)] = 30_000_000
    counter: Counter = ESTIMATOR

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if name != "counter" and getattr(self, name) < 0:
                raise InvalidValue(f"budget.{name} is a number of tokens, media or bytes, and not less than 0")


def count_tokens(messages: Sequence[Message], turns: Mapping[str, tuple[Turn, ...]], counter: Counter) -> list[int]:
    """Return the tokens of each message, with its header; of an own message, those of its turns.

    A reply counts with its quote. Whether the quote is shown depends on the cut, and the cut on these counts. Media
    without a description count with room for one, so that the cut does not depend on whether it has come.
    """
    header = HEADER_TOKENS if messages and messages[0].place.kind != "direct" else FRAME_TOKENS
    replies = {message.id: quote_tokens(message, counter) for message in messages if message.reply_to is not None}
    if not turns and not replies:
        return [0 if message.deleted else words_tokens(message, counter) + header for message in messages]
    of_turn = turn_tokens if counter is ESTIMATOR else partial(turn_tokens, counter=counter)
    return [
        0
        if message.deleted
        else sum(map(of_turn, turns[message.id]))
        if message.id in turns
        else words_tokens(message, counter) + header + replies.get(message.id, 0)
        for message in messages
    ]


def words_tokens(message: Message, counter: Counter) -> int:
    """Return the tokens of a message, with room for the descriptions that its media may get.

    Those of the default counter are cached.
    """
    if counter is not ESTIMATOR:
        return message_tokens(message, counter) + _description_room(message)
    tokens: int | None = message.__dict__.get(_WORDS)
    return (
        cached(message, _WORDS, lambda one: message_tokens(one) + _description_room(one)) if tokens is None else tokens
    )


def spoken_tokens(message: Message, turns: Sequence[Turn] = ()) -> int:
    """Return the tokens of a message, or of the turns behind it, without media; cached.

    Media have a budget of their own, and their words may come later: what depends on this number does not depend on
    either.
    """
    if message.deleted:
        return 0
    if turns:
        return sum([cached(turn, _SPOKEN, _spoken_of_turn) for turn in turns])
    return cached(message, _SPOKEN, _spoken_of_message)


def _spoken_of_turn(turn: Turn) -> int:
    return _spoken(cut_results(turn.parts))


def _spoken_of_message(message: Message) -> int:
    return _spoken(cut_parts(message.parts))


def _spoken(parts: Iterable[Part]) -> int:
    return parts_tokens(
        (
            replace(part, media=()) if isinstance(part, ToolResult) and part.media else part
            for part in parts
            if not isinstance(part, Media)
        ),
        ESTIMATOR,
    )


def buffer_cut(
    window: Sequence[Message], first: int, turns: Mapping[str, tuple[Turn, ...]], marks: BufferMarks
) -> tuple[int, int]:
    """Return how many messages of a window, whose first has the number *first*, are before the buffer of `layered`.

    Return also how many messages there were when the buffer was cut there.
    """

    def tokens(number: int) -> int:
        message = window[number - first]
        return spoken_tokens(message, turns.get(message.id, ()))

    start, since = marks.cut(first, first + len(window), tokens)
    return keep_results_with_calls(window, max(0, start - first)), since


def _description_room(message: Message) -> int:
    return DESCRIPTION_TOKENS * sum(
        isinstance(part, Media) and part.rendered_text is None and bool(part.unique_id) for part in message.parts
    )


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
