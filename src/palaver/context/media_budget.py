"""The budget of media: how many go themselves, with how many tokens and bytes; the others are words. Pure.

First it is decided which messages are shown, as if all media were words. Media then have a budget of their own. Those
of the batch and its quotes come first, since they are asked about. Then come the newest of the history: all media
behind one boundary go themselves, all before it as words (`media_boundary`).

What the batch takes must not move the boundary of a window. So a quarter of the budget is always the batch's, and a
batch that needs more takes whole quarters. The same media in several messages count once (`repeated_media`).
"""

from collections.abc import Sequence
from operator import is_
from typing import NamedTuple

from msgspec.structs import replace

from palaver.context.budget import Budget
from palaver.context.values import Context, LeftOut
from palaver.messages import Message
from palaver.parts import Media, Part
from palaver.tokens import count_media
from palaver.value_cache import cached
from palaver.wire.media_limits import is_untaken_recording, media_tokens

MANY = "more media than the {} that may go as they are: the others go in words"
OVER = "its media go in words: over the budget of {} tokens"
LARGE = "its media go in words: over the budget of {} bytes"

_IN_WORDS = "in words"  # the key of a message with words for its media; None: it has no media


class MediaAmount(NamedTuple):
    """A number of media, their tokens and their bytes: what some need, or how much may go."""

    number: int = 0
    tokens: int = 0
    size: int = 0

    def plus(self, other: "MediaAmount") -> "MediaAmount":
        return MediaAmount(self.number + other.number, self.tokens + other.tokens, self.size + other.size)

    def minus(self, other: "MediaAmount") -> "MediaAmount":
        """Return the rest; nothing is less than 0."""
        return MediaAmount(*(max(0, ours - theirs) for ours, theirs in zip(self, other, strict=True)))

    @property
    def quarter(self) -> "MediaAmount":
        return MediaAmount(self.number // 4, self.tokens // 4, self.size // 4)

    def with_tokens(self, most: int) -> "MediaAmount":
        """Return it with at most so many tokens."""
        return self._replace(tokens=max(0, min(self.tokens, most)))

    def reason_against(self, limits: "MediaAmount") -> str:
        """Return why it is over *limits*; empty if it is not."""
        over = (why.format(most) for why, ours, most in zip(_REASONS, self, limits, strict=True) if ours > most)
        return next(over, "")


NOTHING = MediaAmount()
_REASONS = (MANY, OVER, LARGE)  # in the order of the fields of an amount


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


def amount_of(media: Media, model: str) -> MediaAmount:
    """Return what one of the media needs in a request to a model; without a *model* by the rates that most have.

    A recording that the model does not take is words, and needs nothing. Other types are known only by their content.
    """
    if model and is_untaken_recording(media, model):
        return NOTHING
    tokens = media_tokens(media, model) if model else count_media(media)
    return MediaAmount(1, tokens, len(media.data) if media.data else media.size or 0)


class MediaChoice:
    """Chooses media while they are within limits. Those that were chosen before need nothing more."""

    def __init__(self, limits: MediaAmount, model: str) -> None:
        self.used = NOTHING
        self.reason = ""  # why the last one was refused
        self._chosen: set[str] = set()  # unique ids
        self._limits = limits
        self._model = model

    def fit(self, message: Message) -> Message:
        """Return the message with words for the media that do not fit."""
        parts = self._fit_parts(message.parts)
        return message if parts is message.parts else replace(message, parts=parts)

    def fit_quote(self, message: Message) -> Message:
        """Return the message with words for the media of its quote that do not fit."""
        quote = message.reply_to
        parts = self._fit_parts(quote.parts) if quote else ()
        if quote is None or parts is quote.parts:
            return message
        return replace(message, reply_to=replace(quote, parts=parts))

    def _fit_parts(self, parts: tuple[Part, ...]) -> tuple[Part, ...]:
        fitted = tuple(self._fit(part) if isinstance(part, Media) and part.has_content else part for part in parts)
        return parts if all(map(is_, fitted, parts)) else fitted

    def _fit(self, media: Media) -> Media:
        if media.unique_id in self._chosen:
            return media
        used = self.used.plus(amount_of(media, self._model))
        if reason := used.reason_against(self._limits):
            self.reason = reason
            return media.without_content()
        self.used = used
        self._chosen |= {media.unique_id} - {""}
        return media


def fit_batch(context: Context, limits: MediaAmount) -> tuple[Context, MediaAmount, tuple[LeftOut, ...]]:
    """Return the context with the media of its batch that fit, what they need, and reports of the others.

    First come those of the target, then those that it quotes, then the others in their order.
    """
    choice = MediaChoice(limits, context.model)
    fitted: dict[str, Message] = {}
    left: list[LeftOut] = []
    for message in (context.target, *context.earlier, *context.later):
        fitted[message.id] = choice.fit_quote(choice.fit(message))
        if fitted[message.id] is not message:
            left.append(LeftOut(source="media", ids=(message.id,), why=choice.reason))
    if left:
        context = context.with_batch([fitted[message.id] for message in context.batch])
    return context, choice.used, tuple(left)


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
