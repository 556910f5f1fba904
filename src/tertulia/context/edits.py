"""Edits, deletions and reactions after a message was shown: the message stays, a notice tells of the change. Pure.

A change of an old message in the middle of a prompt would end the stable prefix there. So a message that a run has
shown stays in the window as it was, and a `Notice` stands where the change happened: behind the messages that the place
had then. Once the window is cut again, messages appear as they are now, without notices.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from tertulia.context.budget import FRAME_TOKENS, HEADER_TOKENS, Budget, too_large
from tertulia.context.media_budget import message_in_words
from tertulia.context.values import LeftOut, Notice, ReactionNotice
from tertulia.messages import Author, Message
from tertulia.parts import Media, Text
from tertulia.tokens import message_tokens
from tertulia.value_cache import cached_for


class MessageChange(Struct, frozen=True, kw_only=True):
    """An edit or a deletion of a message that a run has shown."""

    number: int  # of the message
    position: int  # how many messages the place had then
    before: Message  # what it was until then


class Reaction(Struct, frozen=True, kw_only=True):
    """Somebody changed their reactions to a message."""

    number: int  # of the message
    position: int  # how many messages the place had then
    author: Author
    emojis: tuple[str, ...]  # all that they show since then
    at: datetime | None = None


LogChange = MessageChange | Reaction


def shown_versions(
    messages: tuple[Message, ...], changes: Iterable[LogChange], *, start: int, stored: int, taken: Sequence[int]
) -> tuple[tuple[Message, ...], tuple[Notice, ...]]:
    """Return the messages as they were first shown, and the notices of their changes since, in order.

    *start* is the number of `messages[0]`, as if the messages of the batch did not exist. *taken* are the numbers of
    the batch, ascending. *stored* is the number of messages of the place.
    """
    shown = list(messages)
    notices: list[tuple[int, Notice]] = []
    found = list(changes)
    for number, its in sorted(_by_message(one for one in found if isinstance(one, MessageChange)).items()):
        index = _index(number, start, taken)
        if number in taken or not 0 <= index < len(messages):
            continue
        shown[index] = its[0].before
        for position, version, previous in _versions(its, messages[index]):
            if not _is_same_text(version, previous):
                place = (_index(position, start, taken), position >= stored)
                notices.append((position, _notice(version, its[0].before, f"{version.id}\0{position}", place)))
    for reaction in found:
        if isinstance(reaction, Reaction) and reaction.number not in taken:
            index = _index(reaction.number, start, taken)
            if 0 <= index < len(messages) and not shown[index].deleted:
                at = (_index(reaction.position, start, taken), reaction.position >= stored)
                notices.append((reaction.position, _reaction_notice(reaction, shown[index], at)))
    return tuple(shown), tuple(notice for _, notice in sorted(notices, key=lambda pair: pair[0]))


def fit_notices(
    notices: tuple[Notice, ...], counts: list[int], budget: Budget
) -> tuple[tuple[Notice, ...], list[int], tuple[LeftOut, ...]]:
    """Drop notices larger than the whole window. Add the tokens of the others to the message before them."""
    if not notices:
        return notices, counts, ()
    fitting: list[Notice] = []
    sums = list(counts)
    left: list[LeftOut] = []
    for notice in notices:
        frame = FRAME_TOKENS if notice.place.kind == "direct" else HEADER_TOKENS
        line = HEADER_TOKENS if isinstance(notice, ReactionNotice) else 2 * frame  # an edit quotes the old text
        tokens = message_tokens(notice, budget.counter) + line
        if tokens > budget.window:
            why = too_large(budget.window)
            left.append(LeftOut(source="window", ids=(notice.shown.id,), why=why, tokens=tokens))
            continue
        sums[min(notice.at, len(sums)) - 1] += tokens
        fitting.append(notice)
    return tuple(fitting), sums, tuple(left)


def shift_notices(notices: Iterable[Notice], cut: int) -> tuple[Notice, ...]:
    """Return the notices of a window without its first *cut* messages, at their new positions."""
    if not cut:
        return tuple(notices)
    return tuple(replace(notice, at=notice.at - cut) for notice in notices if notice.at > cut)


def _by_message(changes: Iterable[MessageChange]) -> dict[int, list[MessageChange]]:
    found: dict[int, list[MessageChange]] = {}
    for change in changes:
        found.setdefault(change.number, []).append(change)
    return found


def _index(number: int, start: int, taken: Sequence[int]) -> int:
    return number - bisect_left(taken, number) - start


def _versions(its: Sequence[MessageChange], now: Message) -> Iterable[tuple[int, Message, Message]]:
    """Return the position, the new and the old version of each change; of several at one position the last."""
    became = zip(its, [*(change.before for change in its[1:]), now], strict=True)
    latest = {change.position: version for change, version in became}
    previous = [its[0].before, *latest.values()]
    return [(position, version, old) for (position, version), old in zip(latest.items(), previous, strict=False)]


def _is_same_text(one: Message, other: Message) -> bool:
    return one.deleted == other.deleted and (one.deleted or one.parts == other.parts)


def _notice(version: Message, shown: Message, name: str, place: tuple[int, bool]) -> Notice:
    """Return the notice of an edit; cached, and rebuilt when its position changes."""
    return cached_for(version, "notice", (shown, name, place), lambda: _notice_of(version, shown, name, place))


def _notice_of(version: Message, shown: Message, name: str, place: tuple[int, bool]) -> Notice:
    said = () if version.deleted else message_in_words(version).parts
    at, late = place
    return Notice(
        id=name,
        place=version.place,
        author=shown.author,
        sent_at=None if version.deleted else version.edited_at,
        parts=tuple(part for part in said if isinstance(part, Text | Media)),
        shown=shown,
        at=at,
        is_deletion=version.deleted,
        late=late,
    )


def _reaction_notice(reaction: Reaction, shown: Message, place: tuple[int, bool]) -> ReactionNotice:
    """Return the notice of a reaction; cached on the message that it is a reaction to."""
    name = f"{shown.id}\0{reaction.position}\0{reaction.author.id}"
    at, late = place

    def make() -> ReactionNotice:
        return ReactionNotice(
            id=name,
            place=shown.place,
            author=reaction.author,
            sent_at=reaction.at,
            shown=shown,
            at=at,
            late=late,
            emojis=reaction.emojis,
        )

    return cached_for(shown, f"reaction {name}", (reaction, place), make)
