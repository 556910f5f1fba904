"""Amounts of media: their number, tokens and bytes, and which of them are over what one request may have. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from tertulia.media.sent_forms import is_beside_words, media_tokens, sent_as
from tertulia.parts import Media
from tertulia.tokens import media_mime
from tertulia.turns import Role
from tertulia.wire.media_limits import MediaTaken

MANY = "more media than the {} that may go as they are: the others go in words"
OVER = "its media go in words: over the budget of {} tokens"
LARGE = "its media go in words: over the budget of {} bytes"

STEPS = 4  # in which the oldest media become words, of what a request may have


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


def amount_of(media: Media, taken: MediaTaken, role: Role = "user") -> MediaAmount:
    """Return what one of the media needs. What goes as words needs nothing; a type may be known by content only."""
    form = sent_as(media, taken, role)
    if form == "words" and media_mime(media):
        return NOTHING
    size = len(media.data) if media.data else media.size or 0
    return MediaAmount(1, media_tokens(media, taken), 0 if is_beside_words(media, form) else size)


def over_limit(weights: Sequence[int], limit: int, order: Sequence[int] | None = None) -> set[int]:
    """Return the numbers of the oldest, as many as it takes for the others to be within *limit*; a weight of 0 stays.

    How many is a number of steps from the oldest on, so that it rarely changes when one is added. *order* has the
    numbers of all if the oldest are not the first.
    """
    total, step = sum(weights), max(1, limit // STEPS)
    cut = -(-(total - limit) // step) * step if total > limit else 0
    over, before = set[int](), 0
    for number in range(len(weights)) if order is None else order:
        if before < cut and weights[number]:
            over.add(number)
        before += weights[number]
    return over
