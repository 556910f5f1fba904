"""The boundary in a history between media that go themselves and media in words. Pure.

**In the window of a direct chat** the boundary is found by going through its messages one by one, as they came. It
stays while the media behind it are within their limits, and the messages behind it within the high mark. The message
with which they are not moves it in one step, so far that a quarter of the limits, or the low mark of messages, is
behind it. The newest message stays behind it in any case. So the boundary depends on the messages of the window alone,
goes forward only, and moves rarely. When the window is cut it is found anew; then the whole prefix changes anyway.

**In the window of a group** most media are not for the agent, and a picture that goes costs as much as twenty messages.
So only the pictures of the newest messages go: the two marks are the same, and the boundary moves with each message.
What changes by that is at the end of the prefix. An album is one message, whatever number of messages it has. Stickers,
voices and files are words, which say what they show or hold. So are videos of YouTube in any history.

**Own messages** have the media of their turns in place of their parts (`turn_media`).

**In levels** there is no prefix to keep: the boundary leaves behind it as many of the newest media as fit.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial, reduce
from operator import is_
from typing import NamedTuple

from msgspec.structs import replace

from tertulia.context.media_budget import MediaChoice, MediaCounter
from tertulia.context.stable_prefix import Marks
from tertulia.context.values import LeftOut
from tertulia.media.amounts import NOTHING, MediaAmount
from tertulia.messages import Message, Place
from tertulia.parts import Media, change_media
from tertulia.tokens import media_mime
from tertulia.value_cache import cached_for

OLD = "its media go in words: it is not among the newest messages"
WORDS_DO = "its media go in words: of its kind only those go that are asked about"
MEDIA_MARKS = Marks(low=8, high=32)  # of the newest messages, whose media are sent themselves, in a direct chat
NEWEST_MEDIA_MARKS = Marks(low=4, high=4)  # the same in a profile that sends the newest messages behind the prefix
GROUP_MEDIA_MARKS = Marks(low=2, high=2)  # the same in groups and channels


class ShownMedia(NamedTuple):
    """The messages of a history, with media or with words for them."""

    messages: tuple[Message, ...]
    left: tuple[LeftOut, ...]  # reports of media that are words
    step: int  # how many messages there were when the boundary last moved


class _Fitted(NamedTuple):
    """A message with the first of its media, as many as fit alone."""

    message: Message
    amounts: dict[str, MediaAmount]  # by `MediaCounter.key`
    reason: str  # why others of its media are words


class _Behind:
    """The media behind the boundary; the same ones count once."""

    def __init__(self, fitted: Iterable[_Fitted] = ()) -> None:
        self.used = NOTHING
        self._ids: set[str] = set()
        for one in fitted:
            self.add(one)

    def with_media(self, fitted: _Fitted) -> MediaAmount:
        """Return what all need with those of one more message."""
        new = (amount for name, amount in fitted.amounts.items() if name not in self._ids)
        return reduce(MediaAmount.plus, new, self.used)

    def add(self, fitted: _Fitted) -> None:
        self.used = self.with_media(fitted)
        self._ids |= fitted.amounts.keys()


def media_marks_of(place: Place, *, buffered: bool) -> Marks:
    """Return the marks of media in the window of a place."""
    if place.kind != "direct":
        return GROUP_MEDIA_MARKS
    return NEWEST_MEDIA_MARKS if buffered else MEDIA_MARKS


def media_of_window(
    messages: Sequence[Message],
    in_words: Sequence[Message],
    limits: MediaAmount,
    *,
    marks: Marks,
    counter: MediaCounter,
    pictures: bool = False,
) -> ShownMedia:
    """Return the messages of a window with the media behind its boundary, or with *pictures* alone.

    *in_words* are the same messages in words.
    """
    fitted = _fit_messages(messages, in_words, limits, counter, pictures=pictures)
    if not fitted:
        steps = MEDIA_MARKS if marks.low == marks.high else marks
        return ShownMedia(tuple(in_words), (), steps.last_cut(len(messages)))
    if marks.low == marks.high:
        return _newest_of_window(messages, in_words, fitted, limits, marks)
    step = boundary = 0
    reasons = dict[int, str]()
    behind = _Behind()
    for at in range(len(messages)):
        moved, why = boundary, ""
        if one := fitted.get(at):
            behind.add(one)
            if why := behind.used.reason_against(limits):
                moved = _newest_within(fitted, boundary, at, limits.quarter)
        if at + 1 - moved > marks.high:
            moved, why = at + 1 - marks.low, OLD
        if moved > boundary:
            reasons |= {index: why for index in range(boundary, moved) if index in fitted}
            boundary, step = moved, at + 1
            behind = _Behind(fitted[index] for index in range(boundary, at + 1) if index in fitted)
    return _shown(in_words, fitted, boundary, reasons, step)


def _newest_of_window(
    messages: Sequence[Message],
    in_words: Sequence[Message],
    fitted: Mapping[int, _Fitted],
    limits: MediaAmount,
    marks: Marks,
) -> ShownMedia:
    """Return the messages with the media of the newest ones, by marks that are the same; an album is one message."""
    old = len(messages)
    for _ in range(min(marks.high, len(messages))):
        old = max(0, old - 1)
        while old and messages[old].album and messages[old].album == messages[old - 1].album:
            old -= 1
    boundary = _newest_within(fitted, old, len(messages) - 1, limits)
    over = _Behind(one for at, one in fitted.items() if at >= max(old, boundary - 1)).used.reason_against(limits)
    reasons = {at: OLD if at < old else over for at in fitted if at < boundary}
    return _shown(in_words, fitted, boundary, reasons, MEDIA_MARKS.last_cut(len(messages)))


def media_of_levels(
    levels: Sequence[Sequence[Message]],
    messages: Mapping[str, Message],
    limits: MediaAmount,
    *,
    tokens: Sequence[int],
    counter: MediaCounter,
) -> tuple[list[tuple[Message, ...]], tuple[LeftOut, ...]]:
    """Return the levels, given in words, with the newest media. *messages* are the originals by id.

    *tokens* are those that the words of each level have left. Where media of a level are words, those before it are.
    """
    shown: list[tuple[Message, ...]] = []
    left: tuple[LeftOut, ...] = ()
    for level, most in zip(reversed(levels), reversed(tokens), strict=True):
        within = limits.with_tokens(most)
        fitted = _fit_messages([messages[one.id] for one in level], level, within, counter)
        boundary = _newest_within(fitted, 0, len(level) - 1, within)
        used = _Behind(one for at, one in fitted.items() if at >= boundary).used
        whole = _Behind(one for at, one in fitted.items() if at >= max(0, boundary - 1)).used
        reasons = {at: whole.reason_against(within) for at in fitted if at < boundary}
        found = _shown(level, fitted, boundary, reasons, 0)
        limits = NOTHING if found.left else limits.minus(used)
        shown.append(found.messages)
        left = found.left + left
    return shown[::-1], left


def _fit_messages(
    messages: Sequence[Message],
    in_words: Sequence[Message],
    limits: MediaAmount,
    counter: MediaCounter,
    *,
    pictures: bool = False,
) -> dict[int, _Fitted]:
    """Return the messages with media, by their index, each with those that fit."""
    if all(map(is_, messages, in_words)):  # no media: most of the time
        return {}
    fit = partial(_fit_message, limits=limits, counter=counter, pictures=pictures)
    basis = limits, counter.taken, counter.largest, pictures
    return {
        at: cached_for(one, "fitted media", (*basis, counter.files(one)), partial(fit, one, words))
        for at, (one, words) in enumerate(zip(messages, in_words, strict=True))
        if one is not words and not words.deleted
    }


def _fit_message(
    message: Message, in_words: Message, *, limits: MediaAmount, counter: MediaCounter, pictures: bool
) -> _Fitted:
    choice = MediaChoice(limits, counter)
    wanted = change_media(message.parts, partial(_unasked, pictures=pictures))
    if wanted is not message.parts:
        choice.reason = WORDS_DO
    fitted = choice.fit(message if wanted is message.parts else replace(message, parts=wanted))
    media = [part for part in fitted.parts if isinstance(part, Media) and part.has_content]
    amounts = {counter.key(one) or f"\0{message.id} {at}": counter.amount(one) for at, one in enumerate(media)}
    return _Fitted(fitted if media else in_words, amounts, choice.reason)


def _unasked(media: Media, *, pictures: bool) -> Media:
    """Return media of a history, which nobody asks about: words for YouTube, with *pictures* for all that are none."""
    is_picture = media.media_kind != "sticker" and media_mime(media).startswith("image/")
    is_shown = is_picture if pictures else media.media_kind != "youtube"
    return media if is_shown or not media.has_content else media.without_content()


def _newest_within(fitted: Mapping[int, _Fitted], first: int, last: int, limits: MediaAmount) -> int:
    """Return the index from which on the media up to *last* are within limits; those of *last* are behind it anyway."""
    behind = _Behind()
    for at in range(last, first - 1, -1):
        if one := fitted.get(at):
            if at < last and behind.with_media(one).reason_against(limits):
                return at + 1
            behind.add(one)
    return first


def _shown(
    in_words: Sequence[Message], fitted: Mapping[int, _Fitted], boundary: int, reasons: Mapping[int, str], step: int
) -> ShownMedia:
    behind = {at: one for at, one in fitted.items() if at >= boundary}
    messages = tuple(behind[at].message if at in behind else one for at, one in enumerate(in_words))
    why = {at: reasons[at] if at < boundary else one.reason for at, one in fitted.items()}
    left = (LeftOut(source="media", ids=(in_words[at].id,), why=reason) for at, reason in why.items() if reason)
    return ShownMedia(messages, tuple(left), step)
