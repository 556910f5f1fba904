"""Search over what was said: by words, by meaning, by who and when; then a closer look at the best."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files

import numpy as np
from msgspec import Struct

from palaver.errors import PalaverError
from palaver.memory.embedding import NO_EMBEDDER, Embedder, Embedders, find_embedder
from palaver.memory.retrieval.features import Matches, bm25, compute_features, first_scores, match_terms
from palaver.memory.retrieval.index import IndexReader, PlaceView, Posting
from palaver.memory.retrieval.matrix import UNIT, Bytes, Columns, Floats, Ints, build_columns, vector_matrix
from palaver.memory.retrieval.query import MAX_QUERY_LENGTH, Query, parse_query
from palaver.memory.retrieval.ranker import Forest, load_forest
from palaver.memory.retrieval.terms import term_prefix, terms, words
from palaver.messages import Author, Message, Place

log = logging.getLogger(__name__)

MAX_CANDIDATES = 100  # how many are looked at closely
INLINE_MESSAGES = 10_000  # messages of a place that is looked through at once: a thread of its own would take longer
MAX_CACHED_MESSAGES = 200_000  # messages whose columns are kept at hand
FULL_COVERAGE = 0.9  # the share of a place that an embedder must cover to be preferred to one that covers more
MIN_COVERAGE = 0.5  # and to be asked at all
VECTOR_ROWS = 512  # of vectors that are multiplied at once
EMBED_TIMEOUT = 3.0  # seconds that a question is embedded at most: somebody waits for an answer
EMBED_RETRY_AFTER = timedelta(minutes=1)  # for which an embedder that failed is not asked again


Postings = Sequence[Sequence[Posting]]
_LONG_AGO = datetime(1, 1, 1, tzinfo=UTC)


class SearchResult(Struct, frozen=True, kw_only=True):
    """A message that bears on a question."""

    message: Message
    score: float  # how probable it is that it answers, 0..1: the same in every place
    why: str  # what speaks for it, in a short sentence
    before: tuple[Message, ...] = ()  # its neighbour
    after: tuple[Message, ...] = ()

    @property
    def neighbours(self) -> tuple[Message, ...]:
        return (*self.before, *self.after)


class PlaceIndex(Struct, frozen=True, kw_only=True):
    """A place as it is searched."""

    seen: PlaceView
    columns: Columns
    names: Mapping[str, frozenset[int]]  # terms of the names people here go by
    embedder: str | None = None
    vectors: Bytes | None = None  # a row a message, zeros where there is none yet


class Lookup(Struct, frozen=True, kw_only=True):
    """A question looked up in one place, before anything is decided."""

    asked: Query
    matches: Matches
    words: Floats  # BM25 over messages and their neighbours
    cosines: Floats | None
    first: Floats
    chosen: Ints  # the best by *first*
    features: dict[str, Floats]

    @property
    def scores(self) -> Floats:
        """How probable it is that each of the chosen answers."""
        return load_ranker(vectors=self.cosines is not None).ask(self.features)


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
        self._chats: OrderedDict[int, PlaceIndex] = OrderedDict()
        self._failed: dict[str, datetime] = {}  # when each embedder did last

    async def find(self, query: str, *, place: Place, author: Author, limit: int = 20) -> list[SearchResult]:
        """What was said in *place* and bears on *query*, the best first; nothing that *author* may not see there."""
        query = query[:MAX_QUERY_LENGTH].encode(errors="replace").decode()
        seen = await self._index.seen(place, author)
        if seen is None or limit < 1 or not any(words(query)):
            return []
        look = await self.look(query, seen)
        if look is None:
            return []
        scores = look.scores
        order = np.argsort(-scores, kind="stable")[:limit]
        ranked = {
            int(look.chosen[at]): (float(scores[at]), reason) for at in order if (reason := explain(look, int(at)))
        }
        return await self._found(seen, ranked)

    async def look(self, query: str, seen: PlaceView) -> Lookup | None:
        """*query* in a place as it was seen; its words are looked up while it is embedded."""
        embedder = self._covering(seen)
        vector, (chat, what, found) = await asyncio.gather(
            self._vector(embedder, query), self._postings(query, seen, embedder.id if embedder else None)
        )
        if not (chat.columns.length >= 0).any():
            return None
        if len(chat.columns) <= INLINE_MESSAGES:
            return look_up(chat, what, found, vector)
        return await asyncio.to_thread(look_up, chat, what, found, vector)

    async def _vector(self, embedder: Embedder | None, query: str) -> Floats | None:
        """The question as a vector; none where there is no embedder, or it fails, takes too long or just did."""
        if embedder is None or self._now() - self._failed.get(embedder.id, _LONG_AGO) < EMBED_RETRY_AFTER:
            return None
        try:
            async with asyncio.timeout(EMBED_TIMEOUT):
                vector: Floats = (await embedder.embed([query], asking=True))[0]
        except (PalaverError, TimeoutError) as error:
            self._failed[embedder.id] = self._now()
            log.warning("searched by words alone: %s", str(error) or f"no vector within {EMBED_TIMEOUT:g} s")
            return None
        return vector

    async def _postings(self, query: str, seen: PlaceView, embedder: str | None) -> tuple[PlaceIndex, Query, Postings]:
        """The place, what is asked, and where its terms and then the names in it are found."""
        chat = await self._chat(seen, embedder)
        what = parse_query(query, names=chat.names, now=self._now().date())
        wanted = [term_prefix(term) for term in what.terms] + [(name, True) for name in what.names]
        return chat, what, await self._index.postings(seen.row, wanted)

    def _covering(self, seen: PlaceView) -> Embedder | None:
        """The chosen one where it covers the place; until then the one that covers most of it."""
        if seen.embedder == NO_EMBEDDER:
            return None
        chosen = self._embedders(seen.embedder)
        first = chosen.id if chosen else ""
        best = sorted(
            (name for name, count in seen.embedded.items() if count >= MIN_COVERAGE * seen.size),
            key=lambda name: (min(seen.embedded[name], FULL_COVERAGE * seen.size), name == first),
            reverse=True,
        )
        usable = (self._embedders(name) for name in best)
        return next((embedder for embedder in usable if embedder is not None), None)

    async def _chat(self, seen: PlaceView, embedder: str | None) -> PlaceIndex:
        """The place as it stands now; of one that was searched before only what is new is read."""
        held = self._chats.pop(seen.row, None)
        if held is None or _standing(held.seen) != _standing(seen):
            held = None
        chat = (
            held if held and (held.seen, held.embedder) == (seen, embedder) else await self._read(seen, embedder, held)
        )
        self._chats[seen.row] = chat
        while len(self._chats) > 1 and sum(len(one.columns) for one in self._chats.values()) > MAX_CACHED_MESSAGES:
            self._chats.popitem(last=False)
        return chat

    async def _read(self, seen: PlaceView, embedder: str | None, held: PlaceIndex | None) -> PlaceIndex:
        since = max(seen.first, held.seen.size if held else 0)
        table, names = held.columns if held else None, dict(held.names) if held else {}
        if table is None or seen.size > len(table):
            rows = await self._index.rows(seen.row, since)
            table = await asyncio.to_thread(build_columns, rows, seen.size, before=table)
            names = name_terms(await self._index.names(seen.row, since), names)
        vectors: Bytes | None = None
        if embedder is not None:
            same = held is not None and held.embedder == embedder and held.vectors is not None
            before = held.vectors if held and same else None
            start = held.seen.embedded.get(embedder, 0) if held and same else 0
            kept = await self._index.vectors(seen.row, embedder, max(seen.first, start))
            vectors = await asyncio.to_thread(vector_matrix, kept, seen.size, before=before)
        return PlaceIndex(seen=seen, columns=table, names=names, embedder=embedder, vectors=vectors)

    async def _found(self, seen: PlaceView, ranked: Mapping[int, tuple[float, str]]) -> list[SearchResult]:
        around = sorted({near for number in ranked for near in (number - 1, number, number + 1) if near >= seen.first})
        known = await self._index.messages(seen.row, around)

        def beside(number: int) -> tuple[Message, ...]:
            return (known[number],) if number in known else ()

        return [
            SearchResult(message=known[one], score=score, why=reason, before=beside(one - 1), after=beside(one + 1))
            for one, (score, reason) in ranked.items()
            if one in known
        ]


def _standing(seen: PlaceView) -> tuple[int, int, frozenset[int]]:
    """What must not have changed for a place to be read on from where it was read."""
    return seen.first, seen.edition, seen.blocked


def look_up(chat: PlaceIndex, what: Query, found: Postings, vector: Floats | None) -> Lookup:
    """The postings of a question laid out over its place: those of its terms, then those of the names in it."""
    count = len(what.terms)
    matched = match_terms(what.terms, found[:count], chat.columns)
    cosines = _cosines(chat, vector)
    around = bm25(matched)
    first = first_scores(chat.columns, what, around[1], cosines)
    chosen = top_indexes(first, MAX_CANDIDATES)
    chosen = chosen[chat.columns.length[chosen] >= 0]
    named = np.zeros(len(chat.columns), dtype=np.float32)
    named[[number for some in found[count:] for _, number, _ in some if number < len(named)]] = 1
    return Lookup(
        asked=what,
        matches=matched,
        words=around[1],
        cosines=cosines,
        first=first,
        chosen=chosen,
        features=compute_features(
            chat.columns, what, matched, around=around, first=first, chosen=chosen, named=named, cosines=cosines
        ),
    )


@cache
def load_ranker(*, vectors: bool) -> Forest:
    """What was learned of which messages answer: with vectors, and without."""
    name = "hybrid.json" if vectors else "words.json"
    return load_forest((files("palaver.memory") / "learned" / name).read_bytes())


def top_indexes(score: Floats, count: int) -> Ints:
    """Where the *count* highest are, the best first."""
    if len(score) > count:
        some = np.sort(np.argpartition(-score, count)[:count])
        return some[np.argsort(-score[some], kind="stable")]
    return np.argsort(-score, kind="stable")


def name_terms(
    names: Sequence[tuple[int, str]], before: Mapping[str, frozenset[int]] | None = None
) -> dict[str, frozenset[int]]:
    """Authors by the terms of their names, besides those there were *before*."""
    known = dict(before or {})
    for author, name in names:
        for term in terms(name):
            known[term] = known.get(term, frozenset()) | {author}
    return known


def explain(look: Lookup, at: int) -> str:
    """What speaks for the message chosen at *at*, in words; nothing where nothing does."""
    number = int(look.chosen[at])
    held = [word for word, row in zip(look.asked.words, look.matches.soft, strict=True) if row[number] > 0]
    reasons = [f"it says {', '.join(held)}"] if held else []
    if not held and look.words[number] > 0:
        reasons.append("messages beside it have the words")
    if look.features["speaker"][at] > 0:
        reasons.append("its author is named")
    if look.features["inside"][at] > 0 or look.features["said_of_it"][at] > 0:
        reasons.append("the time fits")
    if look.cosines is not None and look.features["cosine"][at] > 2:
        reasons.append("it is near in meaning")
    return "; ".join(reasons)


def _cosines(chat: PlaceIndex, vector: Floats | None) -> Floats | None:
    """How alike each message is to the question; one without a vector yet is like the mean."""
    if chat.vectors is None or vector is None or chat.vectors.shape[1] != len(vector):
        return None
    cosines = _products(chat.vectors, vector) / UNIT
    there = chat.vectors[:, :8].any(axis=1)
    if not there.all():
        cosines[~there] = cosines[there].mean() if there.any() else 0
    return np.asarray(cosines, dtype=np.float32)


def _products(vectors: Bytes, vector: Floats) -> Floats:
    """*vectors* @ *vector*, some rows at a time: all at once take threads and memory, and longer."""
    wanted = vector.astype(np.float32)
    some = (
        vectors[start : start + VECTOR_ROWS].astype(np.float32) @ wanted
        for start in range(0, len(vectors), VECTOR_ROWS)
    )
    return np.concatenate(list(some))
