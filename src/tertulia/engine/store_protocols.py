"""Protocols that a store implements for the engine, and their values. Pure."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol

from msgspec import Struct

from tertulia.context.log import Log
from tertulia.context.values import LeftOut, RecalledThing
from tertulia.decisions import Address, Decision, Meant
from tertulia.engine.agents.presence import Stay
from tertulia.engine.limits import UsageStore
from tertulia.engine.orders import OrderStore
from tertulia.engine.places import Ownership, StopRequests
from tertulia.engine.rate_limit import RateLimitStore
from tertulia.engine.rooms import RoomStore
from tertulia.errors import InvalidValue, TertuliaError
from tertulia.events import DurableEvent
from tertulia.media.descriptions import DescriptionStore
from tertulia.media.values import MediaStore
from tertulia.memory.forget import Forgotten, Plan
from tertulia.memory.values import Cursors, Episodes, Fact, Facts, IndexReader, IndexWriter, Summaries, WindowPasts
from tertulia.messages import Author, Message, Place, PlaceKey, Reply
from tertulia.models.gemini.cache_values import CacheStore
from tertulia.platform import Change, DeliveryKind, Update
from tertulia.run.journal import Journal, JournalStore, Run, StoredPrompts
from tertulia.tasks.task import REPEATABLE, Policy, Task, cancels_sends
from tertulia.turns import Prompt, Turn

if TYPE_CHECKING:
    from tertulia.engine.inspection import InspectionStore, StoreState

SettingValue = Mapping[str, str | int | float]  # fields of the persona or of the limits
SendStatus = Literal[
    "waiting",  # to be sent
    "sending",  # given to the platform; no receipt yet
    "sent",  # with its receipt
    "doubtful",  # it is unknown whether it was sent, and a retry might duplicate it
    "dropped",  # by a decision, or refused by the platform
]
Purpose = Literal[
    "draft end",  # replaces a draft without an answer
    "proposal",  # asks a person to confirm what is forgotten
]


class WaitingMessage(Struct, frozen=True, kw_only=True):
    """A message that no run has taken yet, or not for this agent."""

    message: Message
    since: datetime  # when it was received
    number: int  # in its place
    agent: str = ""  # that is meant; empty: it is not decided yet, or there is only one
    address: Address | None = None  # how it speaks to that agent
    addressed: tuple[str, ...] | None = None  # `Received.addressed`
    acted: tuple[str, ...] = ()  # of an edited one: the agents that have acted on it, and do not answer again


class DeliveryAttempt(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One attempt to send a reply."""

    number: int  # from 1
    begun_at: datetime
    ended_at: datetime | None = None  # None: it is under way, or the process ended in it
    outcome: SendStatus | None = None  # what the reply became by it
    why: str = ""  # the error


class OutboxItem(Struct, frozen=True, kw_only=True):
    """A reply in the outbox: one message to send, with its status."""

    id: str  # also the idempotency key, on platforms that have one
    reply: Reply
    made_at: datetime
    run: str | None = None
    task: str | None = None
    agent: str = ""  # that says it; its message has it then
    kind: DeliveryKind = "answer"
    purpose: Purpose | None = None  # of a line that is found again by it
    status: SendStatus = "waiting"
    attempts: int = 0
    unknown_attempts: int = 0  # attempts with an unknown outcome
    message_id: str | None = None  # of its message: the platform's; while it is doubtful that of the delivery
    sent_at: datetime | None = None  # when it was given to the platform; with an unknown outcome, for the first time
    why: str = ""
    author: Author | None = None  # our account: with it, the sent reply becomes a message of the place
    turns: tuple[Turn, ...] = ()  # the model's turns that wrote it; stored with that message
    reply_id: str | None = None  # shared by the parts of a split reply; None for a whole one
    part: int = 0  # its number in a split reply
    separator: str = ""  # the text between the previous part and this one
    edits: str | None = None  # the platform's id of the draft that it replaces
    plain: bool = False  # whether it was refused in its own form, and goes in plain text from then on
    waits: bool = False  # whether its message waits for the other agents of the place once it is sent
    streamed: bool = False  # see `Delivery`; not stored
    attempt: DeliveryAttempt | None = None  # that begins or ends with this status; stored beside the reply


class PlaceSnapshot(Struct, frozen=True, kw_only=True):
    """The messages that wait in a place, the oldest first, and the counts of the place, in one read."""

    waiting: tuple[WaitingMessage, ...]
    count: int  # of all messages
    changes: int  # of edits and deletions
    beginning: int = 0  # see `PlaceSettings.beginning`


class Command(Struct, frozen=True, kw_only=True):
    """A command that a person gave and that is not carried out yet."""

    id: int
    message: Message
    name: str
    argument: str
    agent: str = ""  # whose account it names
    horizon: int  # the number of messages in the place at that time


class UpdateResult(Struct, frozen=True, kw_only=True):
    """The result of `UpdateStore.apply`."""

    new: bool  # False for a key that was applied before
    refused: str = ""  # why its changes were refused; then the update is stored unread


class PromptOutdated(InvalidValue):
    """The prompt of a run shows text that was edited, deleted or forgotten since. The run starts over."""


class InboxStore(Protocol):
    async def receive(self, message: Message, *, at: datetime) -> bool:
        """Store a message; return whether it is new. A duplicate changes nothing."""
        ...

    async def edit(self, message: Message, *, at: datetime) -> bool:
        """Replace the parts of a message; return whether it exists."""
        ...

    async def delete(self, place: Place, message_id: str, *, at: datetime) -> bool: ...

    async def places(self) -> Sequence[Place]:
        """Return the places in which messages wait."""
        ...

    async def waiting(self, place: Place) -> Sequence[WaitingMessage]:
        """Return the messages that wait in a place, the oldest first."""
        ...

    async def snapshot(self, place: Place, *, most: int | None = None) -> PlaceSnapshot:
        """Return at most *most* of the waiting messages and the counts of the place, in one transaction."""
        ...

    async def album(self, place: Place, author_id: str, album: str) -> Sequence[tuple[Message, Decision]]:
        """Return the messages of an album that are not deleted, the oldest first, each with its decisions."""
        ...

    async def skip(
        self,
        place: Place,
        why: Mapping[str, Decision],
        *,
        at: datetime,
        changes: int | None = None,
        meant: Meant = MappingProxyType({}),
    ) -> bool:
        """Store that messages which wait are not answered by the agents of the decisions, and why, by their ids.

        Those that were undecided wait for the agents *meant* besides. Return False, and store nothing, where the place
        has other *changes* than they were read with: one of them may have been edited since.
        """
        ...

    async def decided(
        self, place: Place, message_id: str | None = None, *, most: int
    ) -> Sequence[tuple[Message, tuple[Decision, ...]]]:
        """Return the newest messages of people, or the one with that id, the oldest first, each with its decisions.

        A message that is waiting has one that says so. An imported message has none.
        """
        ...


class UpdateStore(Protocol):
    """Updates of platforms, and the commands of people in them."""

    async def apply(
        self, platform: str, changes: Sequence[Change], *, key: str, raw: bytes | None, at: datetime, keep: timedelta
    ) -> UpdateResult:
        """Store an update of a platform and apply its changes, in one transaction; *raw* is removed after *keep*."""
        ...

    async def leave(self, place: Place, *, at: datetime) -> None:
        """Store that nothing can be sent to a place any more; the messages, replies and tasks that wait there end."""
        ...

    async def remove_old(self, keep: timedelta, *, at: datetime) -> None:
        """Remove raw updates that were stored for longer than *keep*."""
        ...

    async def unread(self, platform: str) -> Sequence[Update]: ...

    async def last(self, place: Place) -> Message | None: ...

    async def first_platform(self, place_id: str, platforms: Sequence[str]) -> str | None:
        """Return the one of some platforms that a place with an id was stored under first."""
        ...

    async def migrated_places(self) -> Mapping[PlaceKey, Place]:
        """Return the places that have migrated, by their former keys."""
        ...

    async def commands(self) -> Sequence[Command]:
        """Return the commands that are not carried out yet, the oldest first."""
        ...

    async def end(self, command: Command, *, replies: Sequence[OutboxItem] = (), tasks: Sequence[Task] = ()) -> None:
        """End a command and store its replies and tasks, in one transaction."""
        ...


class EventStore(Protocol):
    """Durable events, numbered per place."""

    def subscribe(
        self, published: Callable[[Sequence[DurableEvent]], None], troubled: Callable[[TertuliaError], None]
    ) -> Callable[[], None]:
        """Call the functions with the events of each commit and with errors, in any thread; return how to stop."""
        ...

    async def read(
        self, *, after: str, place: Place | None = None, run_id: str | None = None
    ) -> Sequence[DurableEvent]:
        """Return some events after a cursor, the oldest first; none at the end. `""` is before all."""
        ...

    async def last(self) -> str:
        """Return the cursor of the newest event."""
        ...

    async def cursor(self, place: Place, number: int) -> str | None:
        """Return the cursor of an event by its number in its place; None if it is not stored any more."""
        ...


class RunStore(JournalStore, Protocol):
    """Runs: begin, resume, end, and the journal between."""

    async def begin(
        self,
        run: Run,
        prompt: Prompt,
        *,
        at: datetime,
        cancels: Policy = cancels_sends,
        changes: int | None = None,
        edits_matter: bool = True,
        left_out: Sequence[LeftOut] = (),
        recalled: Iterable[RecalledThing] = (),
    ) -> None:
        """Begin a run with its first prompt and what was *left_out* of it and *recalled* for it, in one transaction.

        Its messages no longer wait for its agent; those that were undecided wait for the agents `Run.meant` besides.
        Tasks of older plans for the place are cancelled as *cancels* says. Raise `PromptOutdated`, and begin nothing,
        where the place has more *changes* than the prompt was built with; if *edits_matter* is false, only where
        something was deleted or forgotten since.
        """
        ...

    async def open(self) -> Sequence[Run]:
        """Return the runs that have begun and not ended, the oldest first."""
        ...

    async def unfinished(self, place: Place) -> Sequence[Run]:
        """Return the runs of a place that are open, or whose answers wait to be sent; the oldest first."""
        ...

    async def resume(self, run: Run) -> None:
        """Store that a run is resumed once more."""
        ...

    async def journal(self, run_id: str) -> Journal | None: ...

    async def recalled(self, run_id: str) -> Sequence[RecalledThing]:
        """Return what the first prompt of a run shows from memory, as far as that is still stored."""
        ...

    async def end(self, run: Run, *, replies: Sequence[OutboxItem] = (), tasks: Sequence[Task] = ()) -> None:
        """End a run and store its replies and tasks, in one transaction; also a run that never began."""
        ...


class OutboxStore(Protocol):
    async def unsent(self) -> Sequence[OutboxItem]:
        """Return the replies with status "waiting" or "sending", the oldest first."""
        ...

    async def put(self, *item: OutboxItem) -> None:
        """Store replies or their status, in one transaction. One with an author becomes a message once it is sent."""
        ...

    async def draft(self, run_id: str) -> OutboxItem | None:
        """Return the draft of a run: the message that shows the answer while the model writes it."""
        ...

    async def abandoned_drafts(self) -> Sequence[OutboxItem]:
        """Return the visible drafts of runs that were withdrawn, or ended without editing them."""
        ...

    async def attempts(self, *outgoing_ids: str) -> Mapping[str, Sequence[DeliveryAttempt]]:
        """Return the attempts to send replies, the oldest first, by the ids of these."""
        ...

    async def change(self, item: OutboxItem) -> None:
        """Store the status of a reply; of one that is sent or doubtful also what went of it.

        Raise `InvalidValue` where the reply was removed.
        """
        ...

    async def drop_answers(self, runs: Sequence[str], *, why: str) -> None:
        """Drop the answers of runs, and parts of them, that wait to be sent."""
        ...

    async def listed(self, *statuses: SendStatus) -> Sequence[OutboxItem]: ...

    async def to_retry(self) -> Sequence[OutboxItem]:
        """Return the replies that wait after a failed attempt, the oldest first."""
        ...

    async def decide(
        self, outgoing_id: str, status: Literal["waiting", "dropped"], *, why: str = ""
    ) -> OutboxItem | None:
        """Make a doubtful or dropped reply wait again, or drop one that is not sent; None where there is none."""
        ...


class TaskStore(Protocol):
    """Tasks. A change of one task also updates the tasks of its plan that depend on it.

    With `platforms`, only the tasks of their places are affected.
    """

    async def add(self, tasks: Sequence[Task]) -> None:
        """Store new tasks; one that exists stays as it is."""
        ...

    async def take(self, now: datetime, *, platforms: Collection[str] | None = None) -> Sequence[Task]:
        """Set the tasks that are due and ready to running, and return them."""
        ...

    async def end(self, task: Task, *, replies: Sequence[OutboxItem] = ()) -> None:
        """Store the end of a task and its replies, in one transaction."""
        ...

    async def next_due(self, *, platforms: Collection[str] | None = None) -> datetime | None:
        """Return when the next task is due, which may be in the past; None without one."""
        ...

    async def recover(
        self, repeatable: Collection[str] = REPEATABLE, *, platforms: Collection[str] | None = None
    ) -> Sequence[Task]:
        """Reset the tasks that a crash interrupted, and return them: pending if *repeatable*, else doubtful."""
        ...

    async def cancel(self, task_id: str, *, why: str) -> Task | None:
        """Cancel a task that has not begun; None where there is no such task, `InvalidValue` where it has begun."""
        ...

    async def cancel_superseded(self, place: Place, policy: Policy) -> None:
        """Cancel the tasks of a place that have not begun and that the policy names."""
        ...

    async def listed(self, place: Place | None = None) -> Sequence[Task]: ...


class PlaceSettings(Protocol):
    """Settings of places (delimiter, beginning), blocked authors, and the languages of authors."""

    async def listed(self) -> Sequence[Place]:
        """Return all places, each with its last title, in the order in which they were first seen."""
        ...

    async def delimiter(self, place: Place) -> str:
        """Return the word that tells our markup in a place from people's; it is made at random at the first call."""
        ...

    async def beginning(self, place: Place) -> int:
        """Return the number of the first message since the place was cleared, or became a group or a direct chat."""
        ...

    async def clear(self, place: Place, beginning: int, *, at: datetime) -> None:
        """Set the number of the first message of the conversation; a lower number than before changes nothing."""
        ...

    async def blocked(self) -> frozenset[tuple[str, str]]:
        """Return namespace and id of the blocked authors."""
        ...

    async def block(self, *, platform: str, author_id: str, at: datetime, until: datetime | None = None) -> bool:
        """Block an author, also one who never wrote, for ever or *until* a moment; return whether they are known.

        The end of a later block replaces that of an earlier one.
        """
        ...

    async def unblock(self, *, platform: str, author_id: str) -> bool | None:
        """Unblock an author; return whether they were blocked, None if nobody is known by this id."""
        ...

    async def end_blocks(self, at: datetime) -> datetime | None:
        """Unblock the authors whose block has ended; return when the next one ends."""
        ...

    async def language(self, *, platform: str, author_id: str) -> str | None:
        """Return the language of an author's client, empty if it is unknown; None if the author is."""
        ...


class AddedAgent(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An agent that an owner added while the bot ran."""

    name: str
    text: str  # of its persona
    at: datetime
    service: str = ""  # of the account of the owner
    who: str = ""  # the id of that account; empty: they were forgotten since


class PlaceCast(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The agents that an administrator chose for a place, by their names. None: those of the config."""

    agents: tuple[str, ...] | None = None
    default: str | None = None


class AgentStay(Stay, frozen=True, kw_only=True, omit_defaults=True):
    """From which message to which an agent was in a place, and when."""

    joined_at: datetime
    left_at: datetime | None = None


class AgentStore(Protocol):
    """The agents that owners added, those of places, and when each was where. The name of an agent is its id."""

    async def added(self) -> Sequence[AddedAgent]:
        """Return the agents that were added and not removed since, the first first."""
        ...

    async def add(self, agent: AddedAgent) -> None:
        """Store an agent, in place of one with its name."""
        ...

    async def remove(self, name: str, *, at: datetime) -> bool:
        """Store that an agent which was added is removed; return whether there was one."""
        ...

    async def cast(self, place: Place) -> PlaceCast: ...

    async def set_cast(self, place: Place, cast: PlaceCast) -> None: ...

    async def join(self, place: Place, agent: str, *, at: datetime, since: int | None = None) -> None:
        """Store that an agent is in a place, from the next message on; nothing changes for one that is there.

        One that was never there before is there from the number *since* on, if that is said.
        """
        ...

    async def leave(self, place: Place, agent: str, *, at: datetime) -> None:
        """Store that an agent is not in a place any more, from the next message on."""
        ...

    async def stays(self, place: Place) -> Mapping[str, Sequence[AgentStay]]:
        """Return when each agent was in a place, in order."""
        ...

    async def had_several(self) -> bool:
        """Return whether it is stored of any place who was there: then there were several agents."""
        ...

    async def places_of(self, agent: str) -> Sequence[Place]:
        """Return the places where an agent is."""
        ...

    async def awaited(self) -> Sequence[str]:
        """Return the agents for which messages wait, or that have planned tasks; not the default one."""
        ...

    async def drop_waiting(self, agent: str, *, at: datetime) -> Sequence[Task]:
        """End what waits for an agent that was removed: messages, and its tasks. Return these, cancelled."""
        ...


class OwnerSetting(Struct, frozen=True, kw_only=True):
    """What an owner set by a command."""

    name: str  # of the command: "persona" or "limit"
    value: SettingValue
    replaced: SettingValue  # the value of the config at that time
    at: datetime


class OwnerSettingStore(Protocol):
    """Stores one setting for each name."""

    async def listed(self) -> Sequence[OwnerSetting]: ...

    async def put(self, setting: OwnerSetting) -> None:
        """Store a setting, instead of an earlier one of that name."""
        ...

    async def remove(self, setting: OwnerSetting) -> None:
        """Remove a setting; one that was put later stays."""
        ...


class Proposal(Struct, frozen=True, kw_only=True):
    """A proposal to forget a fact, as it stood when a message came that may confirm it."""

    fact: Fact
    shown_as: str  # the id of the message that showed it
    authors_since: frozenset[str]  # the people who wrote after it and before the message
    is_last: bool  # whether the agent has said nothing since, nor was sending anything


class ProposalStore(Protocol):
    """Proposals of a model to forget facts, which the person they are about may confirm."""

    async def propose(self, run_id: str, fact_id: str, *, now: datetime, until: datetime, most: int) -> bool:
        """Store that a run proposes to forget a fact, once, and at most *most* facts for a run."""
        ...

    async def made_by(self, run_id: str) -> Sequence[Fact]:
        """Return the facts that a run proposes to forget and that still exist."""
        ...

    async def candidates(self, message: Message, *, now: datetime) -> Sequence[Proposal]:
        """Return the proposals that *message* may confirm.

        The facts are about its author and were proposed in this place by a reply that was sent before the message,
        which was not edited since.
        """
        ...


class FactStore(Facts, Summaries, Protocol):
    """Facts and summaries of people."""


class StoreProtocol(Protocol):
    """A store: one attribute for each protocol."""

    @property
    def log(self) -> Log: ...
    @property
    def inbox(self) -> InboxStore: ...
    @property
    def events(self) -> EventStore: ...
    @property
    def updates(self) -> UpdateStore: ...
    @property
    def runs(self) -> RunStore: ...
    @property
    def prompts(self) -> StoredPrompts: ...
    @property
    def outbox(self) -> OutboxStore: ...
    @property
    def tasks(self) -> TaskStore: ...
    @property
    def place_settings(self) -> PlaceSettings: ...
    @property
    def agents(self) -> AgentStore: ...
    @property
    def owner_settings(self) -> OwnerSettingStore: ...
    @property
    def orders(self) -> OrderStore: ...
    @property
    def facts(self) -> FactStore: ...
    @property
    def proposals(self) -> ProposalStore: ...
    @property
    def cursors(self) -> Cursors: ...
    @property
    def episodes(self) -> Episodes: ...
    @property
    def window_pasts(self) -> WindowPasts: ...
    @property
    def index_reader(self) -> IndexReader: ...
    @property
    def index_writer(self) -> IndexWriter: ...
    @property
    def descriptions(self) -> DescriptionStore: ...
    @property
    def media(self) -> MediaStore: ...
    @property
    def usage(self) -> UsageStore: ...
    @property
    def inspection(self) -> "InspectionStore": ...
    @property
    def rooms(self) -> RoomStore: ...
    @property
    def model_caches(self) -> CacheStore: ...
    @property
    def ownership(self) -> Ownership: ...
    @property
    def rate_limits(self) -> RateLimitStore: ...
    @property
    def stop_requests(self) -> StopRequests: ...

    async def state(self) -> "StoreState":
        """Return what the store is called, how large it is, and whether a bot has it."""
        ...

    async def count_rows(self) -> dict[str, int]: ...

    async def plan_forget(self, *, platform: str, author_id: str) -> Plan:
        """Return the rows that forgetting a person would remove."""
        ...

    async def export_person(self, *, platform: str, author_id: str) -> dict[str, Any]:
        """Return everything that is known of a person."""
        ...

    async def forget(self, *, platform: str, author_id: str, at: datetime | None = None) -> Forgotten:
        """Remove a person from all rows and files; return what was removed, and whether the person was known."""
        ...

    async def check(self) -> list[str]:
        """Check all rows and files; return the faults."""
        ...
