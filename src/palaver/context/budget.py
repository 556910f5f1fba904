"""What fits: the oldest and the least relevant go first, the newest survive, and what went is reported. Pure."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from msgspec import Struct

from palaver.context.values import LeftOut, Source
from palaver.context.window import Marks
from palaver.messages import Message
from palaver.tokens import message_tokens

T = TypeVar("T")

OVER = "over the budget of {budget} tokens"
TOO_LARGE = "alone larger than the budget of {budget} tokens"


class Budget(Struct, frozen=True, kw_only=True):
    """Tokens each source may take, and how many pictures and recordings go as they are."""

    window: int = 100_000
    immediate: int = 16_000
    recent: int = 16_000
    relevant: int = 2_000
    background: int = 2_000
    episodic: int = 1_000
    media: int = 16


def newest(messages: Sequence[Message], budget: int, source: Source) -> tuple[tuple[Message, ...], tuple[LeftOut, ...]]:
    """The newest messages that fit, and what was left out."""
    kept: list[Message] = []
    left: list[LeftOut] = []
    room = budget
    for message in reversed(messages):
        tokens = message_tokens(message)
        if tokens > budget:
            left.append(_left(source, message.id, TOO_LARGE, budget, tokens))
        elif tokens > room:
            room = -1  # what is older stays out too, so that no gap is left
            left.append(_left(source, message.id, OVER, budget, tokens))
        else:
            room -= tokens
            kept.append(message)
    return tuple(reversed(kept)), tuple(reversed(left))


def newest_in_steps(
    messages: tuple[Message, ...], start: int, budget: int, marks: Marks
) -> tuple[tuple[Message, ...], int, tuple[LeftOut, ...]]:
    """The window from where it fits, and how many of its messages were cut off.

    *start* is the number of the first message in its place. The cut falls on fixed numbers, many messages apart, so
    that the window does not lose its beginning with every message.
    """
    counts = [0 if message.deleted else message_tokens(message) for message in messages]
    total = sum(counts)
    if total <= budget:
        return messages, 0, ()
    step = max(1, (marks.high - marks.low) // 4)
    cut = 0
    while total > budget and cut < len(messages):
        following = min(len(messages), (start + cut) // step * step + step - start)
        if following == len(messages):  # the newest survive: within the last step it goes message by message
            following = cut + 1
        total -= sum(counts[cut:following])
        cut = following
    left = tuple(
        _left("window", message.id, OVER, budget, count)
        for message, count in zip(messages[:cut], counts[:cut], strict=True)
        if not message.deleted
    )
    return messages[cut:], cut, left


def first(
    items: Iterable[T], budget: int, *, count: Callable[[T], int], name: Callable[[T], str], source: Source
) -> tuple[tuple[T, ...], tuple[LeftOut, ...], int]:
    """The first items that fit, those that did not, and the room that is left: items come best first."""
    kept: list[T] = []
    left: list[LeftOut] = []
    room = budget
    for item in items:
        tokens = count(item)
        if tokens > room:
            left.append(_left(source, name(item), OVER, budget, tokens))
            continue
        room -= tokens
        kept.append(item)
    return tuple(kept), tuple(left), room


def _left(source: Source, what: str, why: str, budget: int, tokens: int) -> LeftOut:
    return LeftOut(source=source, what=what, why=why.format(budget=budget), tokens=tokens)
