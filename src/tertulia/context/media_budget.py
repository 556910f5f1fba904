"""The budget of media: how many go themselves, with how many tokens and bytes; the others are words. Pure.

First it is decided which messages are shown, as if all media were words. Media then have a budget of their own. Those
of the batch and its quotes come first, since they are asked about. Then come the newest of the history: all media
behind one boundary go themselves, all before it as words (`media_boundary`).

What the batch takes must not move the boundary of a window. So a quarter of the budget is always the batch's, and a
batch that needs more takes whole quarters. The same media in several messages count once (`repeated_media`).

What media need is known by their stored files. Of those that are fetched for this request only their senders' words
are known, so the choice is checked when the files are here (`fit_request`).
"""

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from operator import is_
from types import MappingProxyType
from typing import NamedTuple, Protocol

from msgspec.structs import replace

from tertulia.context.budget import Budget
from tertulia.context.values import Context, LeftOut
from tertulia.media.amounts import NOTHING, MediaAmount, amount_of
from tertulia.media.prompt_media import with_sent_media
from tertulia.media.sent_forms import with_facts
from tertulia.media.values import FetchFailure, StoredFile
from tertulia.messages import Message
from tertulia.parts import Media, Part, change_media
from tertulia.turns import Turn
from tertulia.value_cache import cached
from tertulia.wire.media_limits import MediaTaken

_IN_WORDS = "in words"  # the key of a message with words for its media; None: it has no media


def request_limits(budget: Budget) -> MediaAmount:
    """Return how many media may go in one request."""
    return MediaAmount(budget.media, budget.media_tokens, budget.media_bytes)


def limits_of_window(limits: MediaAmount, used: MediaAmount, *, tokens: int) -> MediaAmount:
    """Return what a batch that *used* some of the limits leaves for the window, and at most so many *tokens*.

    These come in quarters too, since the words of a window leave fewer with each message.
    """
    left = MediaAmount(*map(_quarters_left, limits, used))
    quarter = max(1, limits.tokens // 4)
    return left.with_tokens(left.tokens if tokens >= left.tokens else tokens // quarter * quarter)


def _quarters_left(limit: int, used: int) -> int:
    quarter = limit // 4
    return max(0, limit - (max(quarter, -(-used // quarter) * quarter) if quarter else used))


class KnownFiles(Protocol):
    """The stored files of media, and which media have none."""

    @property
    def largest(self) -> int:
        """The bytes of the largest file that is fetched."""
        ...

    async def known_files(self, unique_ids: Collection[str]) -> Mapping[str, StoredFile | FetchFailure]:
        """Return the stored files by the unique ids of their media, and why others are not tried now."""
        ...


NO_FILES: Mapping[str, StoredFile | FetchFailure] = MappingProxyType({})


class MediaCounter(NamedTuple):
    """Counts what media need in a request: in the form in which the model gets them, by their stored files if known."""

    taken: MediaTaken
    known: Mapping[str, StoredFile | FetchFailure] = NO_FILES  # by unique id
    largest: int = sys.maxsize  # bytes of a file that is fetched

    def amount(self, media: Media) -> MediaAmount:
        """Return what one of the media needs. What goes as words needs nothing."""
        if media.data or media.sha256:
            return amount_of(media, self.taken)
        known = self.known.get(media.unique_id)
        if isinstance(known, StoredFile):
            return amount_of(with_facts(media, known), self.taken)
        cannot_be_had = known is not None or (media.size or 0) > self.largest
        return NOTHING if cannot_be_had else amount_of(media, self.taken)

    def key(self, media: Media) -> str:
        """Return what the same media have in common: the hash of their file if it is known, else their unique id."""
        file = self.known.get(media.unique_id)
        return media.sha256 or (file.sha256 if isinstance(file, StoredFile) else media.unique_id)

    def files(self, message: Message) -> list[StoredFile | FetchFailure | None]:
        """Return what is known of the files of a message's media."""
        return [self.known.get(part.unique_id) for part in message.parts if isinstance(part, Media)]


async def count_by_files(context: Context, history: Sequence[Message], files: KnownFiles | None) -> MediaCounter:
    """Return the counter of a context that knows the stored files of its media and of those of its *history*."""
    if files is None:
        return MediaCounter(context.taken)
    parts = [part for one in with_media(history) for part in one.parts]
    parts += (part for one in context.batch for part in (*one.parts, *(one.reply_to.parts if one.reply_to else ())))
    ids = {one.unique_id for one in parts if isinstance(one, Media) and one.has_content and not one.data} - {""}
    return MediaCounter(context.taken, await files.known_files(ids) if ids else NO_FILES, files.largest)


class MediaChoice:
    """Chooses media while they are within limits. Those that were chosen before need nothing more."""

    def __init__(self, limits: MediaAmount, counter: MediaCounter) -> None:
        self.used = NOTHING
        self.reason = ""  # why the last one was refused
        self._chosen: set[str] = set()
        self._limits = limits
        self._counter = counter

    def fit(self, message: Message) -> Message:
        """Return the message with words for the media that do not fit."""
        parts = self.fit_parts(message.parts)
        return message if parts is message.parts else replace(message, parts=parts)

    def fit_quote(self, message: Message) -> Message:
        """Return the message with words for the media of its quote that do not fit."""
        quote = message.reply_to
        parts = self.fit_parts(quote.parts) if quote else ()
        if quote is None or parts is quote.parts:
            return message
        return replace(message, reply_to=replace(quote, parts=parts))

    def fit_turns(self, turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
        """Return the turns with words for the media that do not fit."""
        return tuple(
            turn if (parts := self.fit_parts(turn.parts)) is turn.parts else replace(turn, parts=parts)
            for turn in turns
        )

    def fit_parts(self, parts: tuple[Part, ...]) -> tuple[Part, ...]:
        return change_media(parts, self._fit)

    def _fit(self, media: Media) -> Media:
        key = self._counter.key(media)
        if not media.has_content or key in self._chosen:
            return media
        used = self.used.plus(self._counter.amount(media))
        if reason := used.reason_against(self._limits):
            self.reason = reason
            return media.without_content()
        self.used = used
        self._chosen |= {key} - {""}
        return media


def fit_batch(
    context: Context, limits: MediaAmount, counter: MediaCounter | None = None
) -> tuple[Context, MediaAmount, tuple[LeftOut, ...]]:
    """Return the context with the media of its batch that fit, what they need, and reports of the others.

    First come those of the target, then those that it quotes, then the others in their order.
    """
    choice = MediaChoice(limits, counter or MediaCounter(context.taken))
    context, left = _fit_batch(context, choice)
    return context, choice.used, left


def _fit_batch(context: Context, choice: MediaChoice) -> tuple[Context, tuple[LeftOut, ...]]:
    fitted: dict[str, Message] = {}
    left: list[LeftOut] = []
    for message in (context.target, *context.earlier, *context.later):
        fitted[message.id] = choice.fit_quote(choice.fit(message))
        if fitted[message.id] is not message:
            left.append(LeftOut(source="media", ids=(message.id,), why=choice.reason))
    if left:
        context = context.with_batch([fitted[message.id] for message in context.batch])
    return context, tuple(left)


def fit_request(context: Context, limits: MediaAmount) -> Context:
    """Return the context, whose files are known now, with words for media that are over the limits after all.

    The media of the batch come first, then the newest. Most of the time all fit, and nothing changes.
    """
    choice = MediaChoice(limits, MediaCounter(context.taken))
    context, left = _fit_batch(context, choice)
    turns, reports = dict(context.turns), list(left)
    history = chain(context.newer, context.immediate, context.recent, context.window)
    with_some = {one.id for one in with_media(history)} | with_sent_media(turns).keys()

    def fit(message: Message) -> Message:
        if message.id not in with_some:
            return message
        made = turns.get(message.id, ())
        shown = message if made or message.deleted else choice.fit(message)
        fitted = choice.fit_turns(made)
        if shown is not message or not all(map(is_, fitted, made)):
            turns.update({message.id: fitted} if made else {})
            reports.append(LeftOut(source="media", ids=(message.id,), why=choice.reason))
        return shown

    names = ("newer", "immediate", "recent", "window")
    fitted = {name: tuple([fit(one) for one in reversed(getattr(context, name))])[::-1] for name in names}
    if not reports:
        return context
    return replace(context, **fitted, turns=turns, left_out=context.left_out + tuple(reports))


def with_media(messages: Iterable[Message]) -> list[Message]:
    """Return the messages that have media with content: at the others of a long history one look each is enough."""
    return [one for one in messages if one.__dict__.get(_IN_WORDS, "") is not None and message_in_words(one) is not one]


def has_media(context: Context) -> bool:
    """Return whether a message, a quote of the batch or a turn in a context has media with content."""
    messages = chain(context.batch, context.window, context.recent, context.immediate, context.newer)
    if with_media(messages) or with_sent_media(context.turns):
        return True
    quoted = (part for one in context.batch if one.reply_to for part in one.reply_to.parts)
    return any(isinstance(part, Media) and part.has_content for part in quoted)


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


def message_in_words(message: Message) -> Message:
    """Return the message with words for its media; cached."""
    return cached(message, _IN_WORDS, _media_as_words) or message


def _media_as_words(message: Message) -> Message | None:
    """Return the message with words for its media; None if it has no media to send."""
    if not any(isinstance(part, Media) and part.has_content for part in message.parts):
        return None
    return replace(
        message, parts=tuple(part.without_content() if isinstance(part, Media) else part for part in message.parts)
    )
