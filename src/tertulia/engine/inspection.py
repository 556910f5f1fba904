"""What is read of a store to be shown: the protocol of these reads, and their values. Pure."""

from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime
from operator import add
from typing import Literal, Protocol

from msgspec import Struct
from msgspec.structs import astuple

from tertulia.decisions import Decision
from tertulia.engine.store_protocols import OutboxItem, SendStatus
from tertulia.media.values import StoredFile
from tertulia.memory.values import Episode, Fact, Subject, Summary, WantedTerm
from tertulia.messages import Author, Message, Place, PlaceKey
from tertulia.models.calls import Call, CallStatus, PromptSize
from tertulia.run.journal import Run, RunProgress, RunStatus, ToolRun
from tertulia.tasks.task import Task
from tertulia.turns import Turn


class Spent(Struct, frozen=True, kw_only=True):
    """A sum over calls."""

    calls: int = 0
    input: int = 0  # tokens, the cached among them
    cached: int = 0
    output: int = 0  # with thoughts
    money: float = 0.0  # in dollars, of the calls with a known price
    without_cache: float = 0.0  # what these would have cost without a cache
    unpriced: int = 0  # calls with tokens whose price is not known

    def __add__(self, other: "Spent") -> "Spent":
        mine, theirs = astuple(self), astuple(other)
        return Spent(**dict(zip(self.__struct_fields__, map(add, mine, theirs), strict=True)))


class CallSum(Struct, frozen=True, kw_only=True):
    """The calls of one model in one place and hour."""

    place: PlaceKey | None  # None: of no place, or one that was removed
    model: str
    hour: datetime  # in UTC
    spent: Spent
    failed: int = 0
    answered_at: datetime | None = None  # the last time
    failed_at: datetime | None = None


class NumberedMessage(Struct, frozen=True, kw_only=True):
    """A message with its number in its place."""

    number: int
    message: Message


class ShownReactions(Struct, frozen=True, kw_only=True):
    """What one person shows at a message now."""

    author: Author
    emojis: tuple[str, ...]


class LoggedMessage(NumberedMessage, frozen=True, kw_only=True):
    """A message with what became of it."""

    received_at: datetime | None = None  # None: it is the agent's own, or imported
    decisions: tuple[Decision, ...] = ()
    reactions: tuple[ShownReactions, ...] = ()
    delivery: OutboxItem | None = None  # by which it was sent


class Named(Struct, frozen=True, kw_only=True):
    """What of a conversation is read: some values by their ids, or everything."""

    messages: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    replies: tuple[str, ...] = ()
    facts: bool = False
    everything: bool = False


class NumberedReply(Struct, frozen=True, kw_only=True):
    """A reply with its place among all; later ones have greater numbers."""

    order: int
    item: OutboxItem


class StoredConversation(Struct, frozen=True, kw_only=True):
    """The newest of a place, or some of it, in one state of the store."""

    cursor: str  # of the newest event of all places
    event: int  # the number of the newest event of the place
    count: int  # of all messages
    beginning: int  # see `PlaceSettings.beginning`
    messages: tuple[LoggedMessage, ...]  # without their deliveries
    turns: Mapping[str, tuple[Turn, ...]]  # of the model, by the ids of the agent's own messages
    runs: tuple[RunProgress, ...]
    replies: tuple[NumberedReply, ...]  # without drafts
    facts: tuple[Fact, ...] | None  # that were learned in the place; None: not read


class PlaceSummary(Struct, frozen=True, kw_only=True):
    """A place in numbers."""

    place: Place
    messages: int
    runs: int
    waiting: int
    doubtful: int  # replies
    event: int  # the number of its last event
    open_since: datetime | None = None  # when its oldest open run began
    failed: Run | None = None  # its last run, if that failed, and not by a limit
    last: NumberedMessage | None = None  # that can be seen


class RunSummary(Struct, frozen=True, kw_only=True):
    """A run with its target, its cost and the size of its last prompt."""

    run: Run
    target: NumberedMessage | None
    spent: Spent
    layers: tuple[str, ...] = ()  # names
    size: PromptSize = PromptSize()


class SentSummary(Struct, frozen=True, kw_only=True):
    """A prompt that was sent, in numbers."""

    run_id: str
    agent: str = ""  # of its run
    step: int
    at: datetime
    model: str
    target: NumberedMessage | None = None  # of its run
    after: tuple[str, ...] = ()  # names of the tools that ran since the step before
    layers: tuple[str, ...] = ()  # names
    size: PromptSize
    spent: Spent = Spent()
    status: Literal["answered", "failed", "stopped", "under way"] = "under way"


class PersonSummary(Struct, frozen=True, kw_only=True):
    """A person in numbers."""

    person: Subject
    names: tuple[str, ...]  # all that they went by, the newest first
    messages: int
    facts: int
    last_at: datetime | None  # when they wrote last
    blocked: bool


class FactUse(Struct, frozen=True, kw_only=True):
    """Where a fact comes from, and how often it was used."""

    sources: tuple[NumberedMessage, ...]  # that can be seen
    runs: int  # that were shown it


class StoredMedia(Struct, frozen=True, kw_only=True):
    """Media of a message, with their file, their description, or why they have none."""

    unique_id: str
    kind: str
    message: NumberedMessage
    file: StoredFile | None
    description: str = ""
    failure: str


class FoundMessage(NumberedMessage, frozen=True, kw_only=True):
    """A message that a search found."""

    matches: int  # of the terms that were searched for


class DaySummary(Struct, frozen=True, kw_only=True):
    """What happened since the beginning of a day, and what there is."""

    agent: Author | None = None  # who wrote the newest reply
    done: int  # runs
    failed: int
    sent: int  # replies
    seconds: tuple[float, ...]  # of the newest runs that were done
    updates: Mapping[str, "UpdateCount"]  # by platform
    messages: int
    prompts: int
    facts: int
    episodes: int
    indexed: int  # messages


class ModelFigures(Struct, frozen=True, kw_only=True):
    """The calls of one model that ended in one way."""

    model: str
    status: CallStatus
    spent: Spent


class Figures(Struct, frozen=True, kw_only=True):
    """A bot in numbers: what waits now, and what happened since a moment."""

    waiting: int  # messages
    waiting_since: datetime | None = None  # the oldest of them
    open_runs: int
    runs: Mapping[RunStatus, int]  # that began since
    calls: Sequence[ModelFigures]  # that ended since
    replies: Mapping[SendStatus, int]  # all that are stored
    tasks_due: int
    tasks_pending: int  # those that are due among them
    newest_event_at: datetime | None = None


class StoreState(Struct, frozen=True, kw_only=True):
    """A store as it is now."""

    name: str  # its file or its URL, without a password
    size: int | None  # bytes, without the files of media; None: it is in memory
    is_held: bool | None  # whether a bot has it; None: nobody can know


class UpdateCount(Struct, frozen=True, kw_only=True):
    """The updates of a platform since the beginning of a day."""

    count: int
    unread: int
    last_at: datetime


class InspectionStore(Protocol):
    """Reads for those who look at a store. Each takes a bounded number of statements, whatever is stored.

    Hidden and forgotten messages are deleted placeholders. Words of blocked people are in them: `blocked` says who is.
    """

    async def blocked(self) -> Collection[tuple[str, str]]:
        """Return namespace and id of the blocked authors, as they are stored now."""
        ...

    async def places(self, place: Place | None = None) -> Sequence[PlaceSummary]:
        """Return all places, or one, in the order in which they were first seen."""
        ...

    async def conversation(self, place: Place, named: Named, *, most: int) -> StoredConversation:
        """Return what is *named* of a place, with the messages of the replies; of everything the *most* newest."""
        ...

    async def day(self, day: date) -> DaySummary: ...

    async def figures(self, since: datetime, *, now: datetime) -> Figures: ...

    async def call_sums(self, since: datetime, *, place: Place | None = None) -> Sequence[CallSum]:
        """Return the calls that ended since a moment, of all places or one, summed up."""
        ...

    async def call_times(self, *, most: int) -> Sequence[Call]:
        """Return when the newest calls began, ended, and how, the newest first; nothing else of them."""
        ...

    async def messages(
        self,
        place: Place,
        *,
        before: int | None = None,
        ids: Sequence[str] | None = None,
        people: bool = False,
        most: int,
    ) -> Sequence[LoggedMessage]:
        """Return the newest messages before a number, the oldest first: those with these ids, or of people alone."""
        ...

    async def runs(
        self,
        *,
        place: Place | None = None,
        status: RunStatus | None = None,
        before: str | None = None,
        ids: Sequence[str] | None = None,
        fact: str | None = None,
        most: int,
    ) -> Sequence[RunSummary]:
        """Return the newest runs that began before another one, the newest first, as far as something is said.

        Those of a *fact* were shown it.
        """
        ...

    async def days(self, place: Place) -> Sequence[date]:
        """Return the days on which runs of a place began whose prompts are stored, the newest first."""
        ...

    async def sent(
        self, *, place: Place | None = None, day: date | None = None, runs: Sequence[str] | None = None, most: int
    ) -> Sequence[SentSummary]:
        """Return the newest prompts, the oldest first: of the runs of a place that began on a day, or of these runs."""
        ...

    async def tools(self, runs: Sequence[str]) -> Mapping[str, Sequence[ToolRun]]:
        """Return the tool runs of runs."""
        ...

    async def replies(self, runs: Sequence[str]) -> Sequence[OutboxItem]:
        """Return the replies of runs, the oldest first."""
        ...

    async def tasks(self, runs: Sequence[str]) -> Sequence[Task]:
        """Return the tasks that runs have planned."""
        ...

    async def due_tasks(self, *, most: int) -> Sequence[Task]:
        """Return the tasks that wait only for their time, the next first."""
        ...

    async def tasks_listed(self, *, most: int) -> Sequence[Task]:
        """Return the newest tasks, the newest first."""
        ...

    async def outbox(self, *, most: int) -> Sequence[OutboxItem]:
        """Return the replies that are not sent or dropped, then the newest others, each the newest first."""
        ...

    async def presences(self) -> Mapping[str, int]:
        """Return in how many places each agent is."""
        ...

    async def media(self, *, most: int) -> Sequence[StoredMedia]:
        """Return the media of the newest messages that can be seen, the newest first."""
        ...

    async def message_with(self, place: Place, unique_id: str) -> Message | None:
        """Return the newest message of a place that has media with this id and can be seen; None if there is none."""
        ...

    async def search(self, wanted: Sequence[WantedTerm], *, most: int) -> Sequence[FoundMessage]:
        """Return the indexed messages of all places with most of the terms, of equal ones the newest first."""
        ...

    async def containing(self, texts: Sequence[str], *, most: int) -> Sequence[FoundMessage]:
        """Return messages that are not indexed and contain one of the texts, the newest first."""
        ...

    async def people(
        self, *, person: Subject | None = None, place: Place | None = None, most: int
    ) -> Sequence[PersonSummary]:
        """Return the people who wrote last, or are known otherwise: all, one, or those of a place."""
        ...

    async def places_of(self, person: Subject) -> Sequence[Place]:
        """Return the places where a person wrote lately."""
        ...

    async def names(self, author_ids: Sequence[str]) -> Mapping[tuple[str, str], str]:
        """Return the newest names of people with these ids, by namespace and id."""
        ...

    async def facts(self, fact_ids: Sequence[str]) -> Mapping[str, Fact]:
        """Return the facts with these ids."""
        ...

    async def fact_uses(self, fact_ids: Sequence[str]) -> Mapping[str, FactUse]:
        """Return the sources and uses of facts."""
        ...

    async def plan_forget_facts(self, fact_ids: Sequence[str]) -> Mapping[str, int]:
        """Count what forgetting facts removes or hides at least: facts, messages that state them, summaries."""
        ...

    async def summaries(self, person: Subject) -> Sequence[Summary]:
        """Return the summaries of a person."""
        ...

    async def episodes(self, episode_ids: Sequence[str]) -> Mapping[str, Episode]:
        """Return the episodes with these ids."""
        ...

    async def newest_episodes(
        self, *, person: Subject | None = None, place: Place | None = None, most: int
    ) -> Sequence[Episode]:
        """Return the newest episodes of a person or of a place, the newest first."""
        ...
