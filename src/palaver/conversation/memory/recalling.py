"""What was said long ago and bears on a message: found by search, and shown only where it probably does."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from palaver.context.values import Hit
from palaver.memory.embedding import Embedders, known
from palaver.memory.retrieval.index import Index
from palaver.messages import Message, Place
from palaver.parts import shown_text

if TYPE_CHECKING:
    from palaver.memory.search import Found, Search

LIKELY = 0.4  # how probable it must be that a message bears on the target
OWN = 0.6  # and one of the agent's own: it mostly repeats what somebody has said
MOST = 8  # messages that are recalled
LONGEST = 600  # characters of one


class Recall:
    """`context.sources.Search` over what was said in the place of the target."""

    def __init__(
        self,
        index: Index,
        *,
        embedders: Embedders = known,
        likely: float = LIKELY,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._index = index
        self._embedders = embedders
        self._likely = likely
        self._now = now
        self._search: Search | None = None

    async def relevant(self, target: Message) -> Sequence[Hit]:
        said = shown_text(target.parts, between="\n").strip()
        if not said:
            return ()
        search = self._search or await self._made()
        found = await search.find(said, place=target.place, author=target.author, limit=3 * MOST)
        likely = [one for one in found if one.message.id != target.id and one.score >= self._least(one.message)]
        return [_hit(one, target.place) for one in likely[:MOST] if _said(one.message)]

    def _least(self, message: Message) -> float:
        return max(OWN, self._likely) if message.author.persona is not None else self._likely

    async def _made(self) -> "Search":
        """The search itself: numpy is imported for it, and the first answer does not wait for that on the loop."""
        kind = await asyncio.to_thread(_search)
        self._search = kind(self._index, embedders=self._embedders, now=self._now)
        return self._search


def _search() -> "type[Search]":
    from palaver.memory.search import Search, forest

    for vectors in (True, False):
        forest(vectors=vectors)  # read now, while nobody waits for it
    return Search


def _hit(found: "Found", place: Place) -> Hit:
    """It was said in the place of the target, whatever that was called then."""
    message = found.message
    return Hit(
        text=_said(message),
        score=found.score,
        message_id=message.id,
        place=place,
        said_by=message.author.name,
        said_at=message.sent_at,
    )


def _said(message: Message) -> str:
    said = shown_text(message.parts).strip()
    return said if len(said) <= LONGEST else said[: LONGEST - 1] + "…"
