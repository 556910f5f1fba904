"""Values of memory, and the protocols of the store that holds them: facts, summaries, episodes, the index. Pure."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from datetime import datetime
from typing import Literal, Protocol

from msgspec import Struct

from tertulia.errors import InvalidValue
from tertulia.messages import Author, Message, Place
from tertulia.seen_by import SeenBy

Scope = Literal[
    "chat",  # where it was said; of a group also in their direct chats, if only the person it is about said so
    "direct",  # in the direct chats of the person it is about
    "everywhere",  # wherever that person asks; never what was said in a direct chat
]

CursorKind = Literal["facts", "episodes"]  # what messages are read for

Posting = tuple[str, int, int]  # term, number of the message, weight and position of the term in it, packed
Row = tuple[int, int, int, int, int, int, int]  # number, author, at, length, traits, first, last
WantedTerm = tuple[str, bool]  # a prefix of words; with True, a whole word

ASKS, ENDS_ASKING, DIGITS, MEDIA, FORWARDED = 1, 2, 4, 8, 16
MISSING = -1
MAX_FACT_LENGTH = 4000  # characters
MAX_INDEXED_LENGTH = 16_000  # characters; the rest is not indexed


class Subject(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person on a platform, with the name at the time when the fact was learned."""

    platform: str
    id: str
    name: str = ""


class Fact(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that is known about a person, with the messages it was learned from."""

    id: str
    subject: Subject
    text: str  # a short sentence in the third person, or the words that were asked to be remembered
    place: Place  # where it was said
    sources: tuple[str, ...]  # the ids of the messages there that say so
    learned_at: datetime  # aware
    scope: Scope = "chat"
    confidence: float = 1.0  # from 0 to 1
    hearsay: bool = False  # only others say so; it never supersedes what the person said
    key: str = ""  # what it is about (`name`, `home`, `work`, …): a newer fact of the same key supersedes the older one
    held_from: datetime | None = None
    held_until: datetime | None = None  # no longer true since then
    superseded_by: str | None = None  # the id of the newer fact
    imported_from: str = ""  # the program that learned it; such a fact may have no sources
    agent: str | None = None  # whose own it is; None: all agents share it


def is_current(fact: Fact, now: datetime) -> bool:
    """Return whether a fact is true now: not superseded, and not ended."""
    return fact.superseded_by is None and (fact.held_until is None or fact.held_until > now)


def check_fact(fact: Fact) -> Fact:
    """Return the fact; raise `InvalidValue` if it cannot be one."""
    if not fact.text.strip():
        raise InvalidValue("a fact needs words")
    if len(fact.text) > MAX_FACT_LENGTH:
        raise InvalidValue(f"a fact has at most {MAX_FACT_LENGTH:,} characters")
    if not fact.sources and not fact.imported_from:
        raise InvalidValue("a fact needs a message that says so")
    if fact.subject.platform != fact.place.author_namespace:
        raise InvalidValue("a fact is about somebody on the platform where it was said")
    if fact.scope == "everywhere" and fact.place.kind == "direct":
        raise InvalidValue("what was said in a direct chat is not for everywhere")
    if not (math.isfinite(fact.confidence) and 0 <= fact.confidence <= 1):
        raise InvalidValue(f"a confidence is from 0 to 1, not {fact.confidence}")
    if any(moment and moment.tzinfo is None for moment in (fact.learned_at, fact.held_from, fact.held_until)):
        raise InvalidValue("the moments of a fact need a time zone")
    return fact


class Summary(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person in a few sentences, made of the facts that are visible in *place*, and shown only there."""

    subject: Subject
    place: Place
    text: str
    facts: int  # how many it was made from
    digest: str  # of those facts; the summary is stale if `facts_digest` is another now
    made_at: datetime  # aware
    agent: str | None = None  # for which it was made, where that is limited; None: for all others


class UnreadRange(Struct, frozen=True, kw_only=True):
    """Messages of a place, from number *start* up to *stop*, that are to be read for facts."""

    place: Place
    start: int
    stop: int
    changes: int  # the place's counter of changed messages when the range was read


class AnsweredMessages(Struct, frozen=True, kw_only=True):
    """Messages of a place that an agent has answered, and that are to be read for facts of its own."""

    place: Place
    agent: str
    messages: tuple[Message, ...]
    run: int  # the row of the last run that answered some of them
    changes: int  # the place's counter of changed messages when they were read


class ForgottenFact(Struct, frozen=True, kw_only=True):
    """A fact that is being forgotten, with what it is found by."""

    row: int
    about: int  # the row of its person
    text: str
    name: str  # of the person in the fact
    names: tuple[str, ...]  # all that the person went by
    places: frozenset[int]  # rows of the places where it may have been told
    at: datetime


class SaidMessage(Struct, frozen=True, kw_only=True):
    """A message that may state a fact that is being forgotten."""

    row: int
    author: int
    by_agent: bool
    text: str
    turns: str  # of the model, as JSON
    reply_author: int | None = None  # whose message it replies to
    question: str = ""  # the messages that the agent answered with it


class StatingMessages(Struct, frozen=True, kw_only=True):
    """Rows of messages that belong to facts that are being forgotten."""

    asking: Set[int]  # to forget them
    stating: Set[int]
    doubtful: Set[int]  # of the agent: whether they state a fact depends on the question


class UnsentReply(Struct, frozen=True, kw_only=True):
    row: int
    place: int
    text: str  # of all parts
    turns: str
    asked_by: int | None  # the author who is answered
    question: str


class UnsentTask(Struct, frozen=True, kw_only=True):
    id: str
    place: int
    args: str
    asked_by: int | None


class OpenRun(Struct, frozen=True, kw_only=True):
    id: str
    place: int
    texts: tuple[str, ...]  # what it was shown, and what it has done


class UnsentWork(Struct, frozen=True, kw_only=True):
    """What the agent has not said yet in some places."""

    replies: tuple[UnsentReply, ...]
    tasks: tuple[UnsentTask, ...]
    runs: tuple[OpenRun, ...]


class Withdrawal(Struct, frozen=True, kw_only=True):
    """What the agent must not say any more."""

    replies: Sequence[int]
    turns: Sequence[int]  # rows of replies that only lose what the model did to write them
    tasks: Sequence[str]
    runs: Sequence[str]


class FactRules(Protocol):
    """What memory decides about facts inside of a transaction of the store: pure functions over what it has read."""

    def merge_facts(self, known: Iterable[Fact], new: Iterable[Fact]) -> list[Fact]:
        """Merge *new* facts about a person into *known* ones; none is removed."""
        ...

    def merge_again(self, known: Iterable[Fact], gone: Collection[str], left: Iterable[str]) -> list[Fact]:
        """Merge the *known* facts about a person again when others are *gone*, and *left* ones lost a source."""
        ...

    def facts_to_drop(self, facts: Iterable[Fact]) -> list[Fact]:
        """Return those of the facts about a person from one place that are too many."""
        ...

    def as_hearsay(self, fact: Fact) -> Fact:
        """Return a fact that only others say."""
        ...

    def fact_digest(self, text: str, name: str) -> str:
        """Return the digest of a fact about a person of that name: equal for facts that say the same."""
        ...

    def find_stating(self, facts: Iterable[ForgottenFact], messages: Sequence[SaidMessage]) -> StatingMessages:
        """Find the messages of a place that state one of the facts, or ask to forget it."""
        ...

    def hidden_sentences(self, facts: Iterable[ForgottenFact], text: str) -> Sequence[str]:
        """Return the sentences for which a message is hidden."""
        ...

    def find_withdrawn(self, facts: Sequence[ForgottenFact], unsent: UnsentWork) -> Withdrawal:
        """Find the unsent replies, tasks and open runs that state one of the facts."""
        ...

    def is_stated_by_name(self, facts: Iterable[ForgottenFact], text: str) -> bool:
        """Return whether a text of unknown speakers states a fact and also names its person."""
        ...

    def is_repetition(self, text: str, before: str) -> bool:
        """Return whether a text still says what an earlier one said."""
        ...


class Facts(Protocol):
    """The store of facts."""

    async def learn(
        self, facts: Sequence[Fact], *, reading: UnreadRange | AnsweredMessages | None = None
    ) -> Sequence[Fact]:
        """Store facts, merged with those that are known (`merge_facts`); return those that were added or changed.

        With *reading*, its messages count as read, in the same transaction. If one of them has changed meanwhile,
        nothing is stored and they stay unread. Facts from deleted messages or about blocked people are left out.
        """
        ...

    async def about(
        self,
        subject: Subject,
        *,
        place: Place,
        asked_by: Subject | None = None,
        limit: int = 50,
        at: datetime | None = None,
        seen_by: SeenBy | None = None,
    ) -> Sequence[Fact]:
        """Current facts about a person that *asked_by* may see in *place*, the most useful first.

        Without *asked_by*: what everybody there may see; in a direct chat, what its person may see. With *seen_by* only
        what that agent sees: facts that say what was said while it was there.
        """
        ...

    async def listed(self, subject: Subject | None = None, place: Place | None = None) -> Sequence[Fact]:
        """Return all facts, also those that are no longer current."""
        ...

    async def get(self, fact_id: str) -> Fact | None: ...

    async def why(self, fact_id: str, *, seen_by: SeenBy | None = None) -> Sequence[Message]:
        """Return the messages a fact was learned from, oldest first; with *seen_by* those that this agent sees."""
        ...

    async def forget(self, fact_ids: Sequence[str], *, at: datetime | None = None) -> int:
        """Remove facts from the file, with those they superseded; return how many."""
        ...

    async def forget_all(self, subject: Subject, *, at: datetime | None = None) -> int:
        """Remove all facts about a person and the episodes of their direct chats; return how many facts."""
        ...

    async def resume_forgetting(self) -> None:
        """Finish what a process that was killed had begun to forget."""
        ...


class Summaries(Protocol):
    """The store of summaries."""

    async def summary(
        self, subject: Subject, *, place: Place, at: datetime | None = None, seen_by: SeenBy | None = None
    ) -> Summary | None:
        """Return the summary of a person in *place*; None if one of its facts is no longer current at *at*.

        For an agent that is limited there it is the one that was made for it.
        """
        ...

    async def summarise(self, summary: Summary, *, made_of: Sequence[str] = ()) -> None:
        """Store a summary, replacing the previous one."""
        ...


class Cursors(Protocol):
    """Reading cursors: up to which message each place was read."""

    async def next_range(self, place: Place, *, most: int | None = None) -> UnreadRange | None:
        """Return the next range to read for facts: the oldest message that changed since it was read, or else unread
        ones.

        At most *most* messages; None if nothing is left.
        """
        ...

    async def answered(self, place: Place, agent: str, *, most: int) -> AnsweredMessages | None:
        """Return the messages of the next runs of an agent that are to be read for facts of its own.

        Of at most *most* runs that are done; None if nothing is left.
        """
        ...

    async def unread(self) -> Sequence[Place]:
        """Places with messages to read for facts."""
        ...


class Episode(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Messages of a place, from number *start* up to *stop*, that belong together."""

    id: str
    place: Place
    start: int
    stop: int
    began_at: datetime | None = None
    ended_at: datetime | None = None
    topic: str = ""
    summary: str = ""
    people: tuple[str, ...] = ()  # ids of the authors
    tags: tuple[str, ...] = ()
    importance: float = 0.5  # from 0 to 1


class EpisodeCursor(Struct, frozen=True, kw_only=True):
    """The number of the first message that is in no episode yet, and the state of the place at that moment.

    An episode is stored only if the place has not changed since.
    """

    place: int  # row of the place: another one if it was forgotten and came again
    read: int  # number of the first message that is in no episode
    count: int  # of messages
    changes: int  # counter of changed messages


class Episodes(Protocol):
    """The store of episodes."""

    async def add(self, episode: Episode, *, seen: EpisodeCursor) -> bool:
        """Store an episode and move the cursor; return False if the place has changed since *seen*."""
        ...

    async def cursor(self, place: Place) -> EpisodeCursor | None: ...

    async def places(self) -> Sequence[Place]:
        """Places with messages that are in no episode, or whose episodes hold somebody who is blocked now."""
        ...

    async def missing_ranges(self, place: Place) -> Sequence[tuple[int, int]]:
        """Ranges before the cursor without an episode, or with one that holds somebody who is blocked now."""
        ...

    async def listed(self, place: Place, *, seen_by: SeenBy | None = None) -> Sequence[Episode]:
        """Return the episodes of a place since it became direct or a group, oldest first; none with blocked authors.

        With *seen_by* only those during which that agent was there.
        """
        ...

    async def visible_to(self, target: Message, *, seen_by: SeenBy | None = None) -> Sequence[Episode]:
        """Return the episodes that the author of *target* may see in its place, oldest first."""
        ...


class WindowPast(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A short text about the messages before a window."""

    since: int  # number of the first message of the conversation
    start: int  # number of the first message in the window
    text: str = ""
    people: tuple[str, ...] = ()  # ids of the authors it is made from
    agent: str | None = None  # for which it was made, where that is limited; None: for all others


class WindowPasts(Protocol):
    """Stores, for each window, the summary of the messages before it."""

    async def find(self, place: Place, since: int, start: int, *, agent: str | None = None) -> WindowPast | None:
        """Return the past of a window, made for an agent or for all; empty if one of its authors is blocked now."""
        ...

    async def add(self, place: Place, past: WindowPast, *, seen: EpisodeCursor) -> WindowPast:
        """Store the past of a window unless there is one; return the stored one, empty if the place has changed."""
        ...


class MessageText(Struct, frozen=True, kw_only=True):
    """The text of a message that is to be indexed."""

    number: int
    name: int  # row of the author's name
    author: str  # the name
    at: datetime | None
    text: str
    shown: str = ""  # descriptions of its media
    forwarded: bool = False  # it has words of somebody else

    @property
    def whole(self) -> str:
        """Author, text and media, for an embedder."""
        shown = f" [{self.shown}]" if self.shown else ""
        return f"{self.author}: {self.text}{shown}"[:MAX_INDEXED_LENGTH]


class IndexEntry(Struct, frozen=True, kw_only=True):
    """The index entry of a message."""

    number: int
    name: int
    at: int  # seconds
    length: int
    traits: int
    first: int = MISSING  # first and last day of the dates in it, as ordinals
    last: int = MISSING
    words: dict[str, int]  # for each term its weight and position, packed


class Query(Struct, frozen=True, kw_only=True):
    """A parsed query."""

    terms: tuple[str, ...]  # without names of people in the place, unless there is nothing else
    words: tuple[str, ...] = ()  # the terms as they were written
    people: frozenset[int] = frozenset()  # authors whom the query names
    names: tuple[str, ...] = ()  # the terms that name them
    days: tuple[int, int] | None = None  # first and last day of the dates in it, as ordinals
    when: bool = False  # it asks for a date
    counted: bool = False  # it asks for a number


class IndexProgress(Struct, frozen=True, kw_only=True):
    messages: int  # all
    indexed: int
    embedded: int = 0


class IndexBatch(Struct, frozen=True, kw_only=True):
    """Messages of a place, from number *start* up to *stop*, that are to be indexed or embedded."""

    row: int
    start: int
    stop: int
    edition: int  # of the index of the place when they were read
    said: tuple[MessageText, ...]  # without empty ones
    again: bool = False  # they were indexed, and have changed since


class IndexWriter(Protocol):
    """Reads and writes the index for an indexer."""

    async def embedder(self) -> str:
        """Return the name of the chosen embedder; empty if none was chosen."""
        ...

    async def choose(self, embedder: str) -> None: ...

    async def unread(self, embedder: str | None) -> Sequence[Place]:
        """Places with messages that are not indexed, or not embedded by *embedder* alone; newest first."""
        ...

    async def unindexed(self, place: Place, *, most: int) -> IndexBatch | None: ...

    async def add(self, stretch: IndexBatch, entries: Sequence[IndexEntry]) -> bool:
        """Store the entries of a batch; return False, and store nothing, if it has changed since it was read."""
        ...

    async def unembedded(self, place: Place, embedder: str, *, most: int) -> IndexBatch | None: ...

    async def embed(self, stretch: IndexBatch, embedder: str, vectors: Mapping[int, bytes]) -> None:
        """Store vectors by number, except for messages that have changed since they were read."""
        ...

    async def drop(self, place: Place, *, but: str | None) -> None:
        """Remove the vectors of other embedders from a place."""
        ...

    async def reset_gaps(self, embedder: str) -> None:
        """Let messages without a vector be embedded again, also where a place counts as embedded."""
        ...

    async def rebuild_broken(self) -> None:
        """Index places again whose index does not match their messages."""
        ...

    async def progress(self, embedder: str | None) -> IndexProgress: ...


class PlaceView(Struct, frozen=True, kw_only=True):
    """The state of a place for an author who searches there."""

    row: int  # of the place
    first: int = 0  # number of the first visible message
    size: int  # indexed messages
    edition: int  # changes with each edit of an indexed message
    blocked: frozenset[int] = frozenset()  # authors
    embedded: dict[str, int] = {}  # embedder: number up to which all messages have vectors
    embedder: str = ""  # the chosen one
    own: tuple[tuple[int, int], ...] | None = None  # of one's own words in groups: place and number of each message
    agent: str | None = None  # that sees only what was said while it was there; None: everything is seen
    stays: tuple[tuple[int, int | None], ...] = ()  # from which number to which that agent was there


class IndexReader(Protocol):
    """Reads the index for a search. Every method is about one view."""

    async def view(self, place: Place, author: Author, *, seen_by: SeenBy | None = None) -> PlaceView | None:
        """Return the state of *place* for *author*; None if nothing is visible."""
        ...

    async def own_view(self, place: Place, author: Author, *, seen_by: SeenBy | None = None) -> PlaceView | None:
        """Return what *author* said in groups, as a view for their direct chat *place*; None for other places."""
        ...

    async def rows(self, view: PlaceView, since: int) -> Sequence[Row]:
        """Return the messages of a place from number *since* on, in order, without blocked authors."""
        ...

    async def names(self, view: PlaceView, since: int) -> Sequence[tuple[int, str]]:
        """Authors of those messages, and their names in the place."""
        ...

    async def vectors(self, view: PlaceView, embedder: str, since: int) -> Sequence[tuple[int, bytes]]: ...

    async def postings(self, view: PlaceView, wanted: Sequence[WantedTerm]) -> Sequence[Sequence[Posting]]:
        """Return the postings of each wanted word; of too many the newest."""
        ...

    async def messages(self, view: PlaceView, numbers: Sequence[int]) -> Mapping[int, Message]:
        """Messages by number, without deleted ones and blocked authors."""
        ...
