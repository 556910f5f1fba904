"""Descriptions of media in words, failures to make one, and the protocol of the store that has them. Pure."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from tertulia.messages import Message, Place

IMPORT, FUNCTION = "import", "function"  # who made descriptions that are good for all: nobody makes them again
MAX_BRIEF = 600  # characters of a description in the history; what a model says of a picture is never longer


class Description(Struct, frozen=True, kw_only=True):
    """What media show or say, and since when it is known in a place.

    Runs up to *position* have shown these media without their words, so an older message of the window gets the words
    only where its media change anyway: see `context.media_words`. Until then it has the words of the description that
    was there *before*, by another model.
    """

    words: str
    position: int = 0  # how many messages of the place the last run without it knew; 0: no run has shown the media
    before: "Description | None" = None

    @property
    def in_brief(self) -> "Description":
        """The description as the history shows it: the beginning of a long transcript."""
        return replace(self, words=shorten(self.words, MAX_BRIEF), before=self.before and self.before.in_brief)

    def known_at(self, position: int) -> str | None:
        """Return the words that were known at a position; None where there were none."""
        if self.position <= position:
            return self.words
        return self.before.known_at(position) if self.before else None


def is_made(makers: Collection[str], by: str) -> bool:
    """Return whether media that *makers* have described need no description by somebody else."""
    return not {by, IMPORT, FUNCTION}.isdisjoint(makers)


def shorten(words: str, longest: int) -> str:
    """Return the beginning of words that are longer than allowed."""
    return words if len(words) <= longest else f"{words[: longest - 1].rstrip()}…"


class DescriptionFailure(Struct, frozen=True, kw_only=True):
    """An attempt to describe media that gave no words."""

    why: str
    failures: int = 1  # attempts so far
    retry_at: datetime


class DescriptionStore(Protocol):
    """Descriptions by the unique ids of media, one by each model. The newest one is shown, and found by the search."""

    async def find(self, unique_ids: Collection[str], place: Place | None = None) -> Mapping[str, Description]:
        """Return the newest descriptions of media; with *place*, each with its position there."""
        ...

    async def makers(self, unique_ids: Collection[str]) -> Mapping[str, Collection[str]]:
        """Return who has described media, of those that anybody has."""
        ...

    async def shown(self, place: Place) -> int:
        """Return how many messages of a place its last run knew."""
        ...

    async def describe(
        self, unique_id: str, words: str, *, by: str, at: datetime, message: Message | None = None
    ) -> None:
        """Store a description by a model, or another maker. It has a position where a run has shown the media.

        With the *message* that shows the media, nothing is stored if that is gone: its author may be forgotten.
        """
        ...

    async def failures(self, unique_ids: Collection[str], *, by: str) -> Mapping[str, DescriptionFailure]:
        """Return the media that a model or a transcriber, named by *by*, could not describe."""
        ...

    async def fail(self, unique_id: str, failure: DescriptionFailure, *, by: str) -> None: ...
