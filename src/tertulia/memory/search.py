"""Search over the messages of a place: reads the index, embeds the query, ranks and explains the results."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

import numpy as np
from msgspec import Struct

from tertulia.errors import TertuliaError
from tertulia.memory.embeddings import NO_EMBEDDER, Embedder, Embedders, find_embedder
from tertulia.memory.retrieval.features import Bytes, Floats, build_columns, vector_matrix
from tertulia.memory.retrieval.index import MAX_QUERY_LENGTH, parse_query
from tertulia.memory.retrieval.ranker import PlaceIndex, Postings, ScoredCandidates, explain, look_up, name_terms
from tertulia.memory.retrieval.terms import term_prefix, words
from tertulia.memory.values import IndexReader, PlaceView, Query
from tertulia.messages import Author, Message, Place
from tertulia.seen_by import SeenBy

log = logging.getLogger(__name__)

INLINE_MESSAGES = 10_000  # a place of so many is ranked without a thread, which would take longer
MAX_CACHED_MESSAGES = 200_000  # of all places whose columns are cached
FULL_COVERAGE = 0.9  # share of a place with vectors, from which on the chosen embedder is used
MIN_COVERAGE = 0.5  # share of a place with vectors, below which an embedder is not used
EMBED_TIMEOUT = 3.0  # seconds
EMBED_RETRY_AFTER = timedelta(minutes=1)  # after a failure

_NEVER = datetime(1, 1, 1, tzinfo=UTC)


class SearchResult(Struct, frozen=True, kw_only=True):
    """A message that was found."""

    message: Message
    score: float  # probability that it answers the query, 0..1
    why: str  # what speaks for it, in a short sentence
    before: tuple[Message, ...] = ()  # its neighbour
    after: tuple[Message, ...] = ()
    in_group: bool = False  # the author's own words from a group, found in their direct chat


class Search:
    """`await Search(store.index_reader).find("where did we eat", place=place, author=author)`."""

    def __init__(
        self,
        index: IndexReader,
        *,
        embedders: Embedders = find_embedder,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._index = index
        self._embedders = embedders
        self._now = now
        self._cache: OrderedDict[tuple[int, bool, str | None], PlaceIndex] = OrderedDict()
        self._failed: dict[str, datetime] = {}  # moment of the last failure of each embedder

    async def find(
        self, query: str, *, place: Place, author: Author, limit: int = 20, seen_by: SeenBy | None = None
    ) -> list[SearchResult]:
        """Find messages of *place* that answer *query*, best first; none that *author* or the agent may not see there.

        In a direct chat of *author*, their own words in groups are found too.
        """
        query = query[:MAX_QUERY_LENGTH].encode(errors="replace").decode()
        if limit < 1 or not any(words(query)):
            return []
        embedded: dict[str, Floats | None] = {}
        here = await self._find(query, await self._index.view(place, author, seen_by=seen_by), limit, embedded)
        own = await self._find(query, await self._index.own_view(place, author, seen_by=seen_by), limit, embedded)
        return sorted([*here, *own], key=lambda one: -one.score)[:limit] if own else here

    async def _find(
        self, query: str, view: PlaceView | None, limit: int, embedded: dict[str, Floats | None]
    ) -> list[SearchResult]:
        lookup = await self.look_up(query, view, embedded) if view else None
        if view is None or lookup is None:
            return []
        scores = lookup.scores
        ranked: dict[int, tuple[float, str]] = {}
        for at in np.argsort(-scores, kind="stable")[:limit]:
            if reason := explain(lookup, int(at)):
                ranked[int(lookup.candidates[at])] = float(scores[at]), reason
        return await self._results(view, ranked)

    async def look_up(
        self, query: str, view: PlaceView, embedded: dict[str, Floats | None] | None = None
    ) -> ScoredCandidates | None:
        """Look up *query* in a view; it is embedded and its postings are read at the same time.

        *embedded* are the vectors of the query by embedder, as far as they are known; this one is added.
        """
        embedder = self._choose_embedder(view)
        vector, (index, parsed, postings) = await asyncio.gather(
            self._embed(embedder, query, {} if embedded is None else embedded),
            self._read_postings(query, view, embedder.id if embedder else None),
        )
        if not (index.columns.length >= 0).any():
            return None
        if len(index.columns) <= INLINE_MESSAGES:
            return look_up(index, parsed, postings, vector)
        return await asyncio.to_thread(look_up, index, parsed, postings, vector)

    async def _embed(self, embedder: Embedder | None, query: str, known: dict[str, Floats | None]) -> Floats | None:
        """Return the vector of the query; None without an embedder, and if it fails, times out or has failed just
        before.
        """
        if embedder is not None and embedder.id in known:
            return known[embedder.id]
        if embedder is None or self._now() - self._failed.get(embedder.id, _NEVER) < EMBED_RETRY_AFTER:
            return None
        try:
            async with asyncio.timeout(EMBED_TIMEOUT):
                vector: Floats = (await embedder.embed([query], asking=True))[0]
        except (TertuliaError, TimeoutError) as error:
            self._failed[embedder.id] = self._now()
            log.warning("searched by words alone: %s", str(error) or f"no vector within {EMBED_TIMEOUT:g} s")
            return None
        known[embedder.id] = vector
        return vector

    async def _read_postings(
        self, query: str, view: PlaceView, embedder: str | None
    ) -> tuple[PlaceIndex, Query, Postings]:
        """Return the index of the place, the parsed query, and the postings of its terms and then of the names
        in it.
        """
        index = await self._place_index(view, embedder)
        parsed = parse_query(query, names=index.names, now=self._now().date())
        wanted = [term_prefix(term) for term in parsed.terms] + [(name, True) for name in parsed.names]
        return index, parsed, await self._index.postings(view, wanted)

    def _choose_embedder(self, view: PlaceView) -> Embedder | None:
        """Return the chosen embedder if it covers the place; until then the one that covers most of it."""
        if view.embedder == NO_EMBEDDER:
            return None
        chosen = self._embedders(view.embedder)
        first = chosen.id if chosen else ""
        best = sorted(
            (name for name, count in view.embedded.items() if count >= MIN_COVERAGE * view.size),
            key=lambda name: (min(view.embedded[name], FULL_COVERAGE * view.size), name == first),
            reverse=True,
        )
        usable = (self._embedders(name) for name in best)
        return next((embedder for embedder in usable if embedder is not None), None)

    async def _place_index(self, view: PlaceView, embedder: str | None) -> PlaceIndex:
        """Return the index of a place as it is now; of a cached place only what is new is read."""
        key = (view.row, view.own is not None, view.agent)
        cached = self._cache.pop(key, None)
        if cached is not None and _version(cached.view) != _version(view):
            cached = None
        if cached is not None and (cached.view, cached.embedder) == (view, embedder):
            index = cached
        else:
            index = await self._read_place(view, embedder, cached)
        self._cache[key] = index
        while len(self._cache) > 1 and sum(len(one.columns) for one in self._cache.values()) > MAX_CACHED_MESSAGES:
            self._cache.popitem(last=False)
        return index

    async def _read_place(self, view: PlaceView, embedder: str | None, cached: PlaceIndex | None) -> PlaceIndex:
        since = max(view.first, cached.view.size if cached else 0)
        columns, names = cached.columns if cached else None, dict(cached.names) if cached else {}
        if columns is None or view.size > len(columns):
            rows = await self._index.rows(view, since)
            columns = await asyncio.to_thread(build_columns, rows, view.size, before=columns)
            names = name_terms(await self._index.names(view, since), names)
        vectors: Bytes | None = None
        if embedder is not None:
            same = cached is not None and cached.embedder == embedder and cached.vectors is not None
            before = cached.vectors if cached and same else None
            start = cached.view.embedded.get(embedder, 0) if cached and same else 0
            stored = await self._index.vectors(view, embedder, max(view.first, start))
            vectors = await asyncio.to_thread(vector_matrix, stored, view.size, before=before)
        return PlaceIndex(view=view, columns=columns, names=names, embedder=embedder, vectors=vectors)

    async def _results(self, view: PlaceView, ranked: Mapping[int, tuple[float, str]]) -> list[SearchResult]:
        in_group = view.own is not None  # whose neighbours are words of others
        reach = (0,) if in_group else (-1, 0, 1)
        around = sorted({number + by for number in ranked for by in reach if number + by >= view.first})
        messages = await self._index.messages(view, around)

        def neighbour(number: int) -> tuple[Message, ...]:
            return (messages[number],) if number in messages and not in_group else ()

        return [
            SearchResult(
                message=messages[one],
                score=score,
                why=why,
                before=neighbour(one - 1),
                after=neighbour(one + 1),
                in_group=in_group,
            )
            for one, (score, why) in ranked.items()
            if one in messages
        ]


def _version(view: PlaceView) -> object:
    """Return the version of a view; while it is the same, only new messages are added to the cached index."""
    return (view.first, view.edition, view.blocked, view.stays) if view.own is None else view
