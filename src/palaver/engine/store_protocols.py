"""What the engine wants stored, as protocols that a store fulfils, with the values they speak in. Pure."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Literal, Protocol

from msgspec import Struct

from palaver.context.log import Log
from palaver.context.values import LeftOut
from palaver.engine.coordination import Ownership, StopRequests
from palaver.engine.rate_limit import RateLimitStore
from palaver.engine.spend_caps import UsageStore
from palaver.errors import InvalidValue, PalaverError
from palaver.events import DurableEvent
from palaver.memory.episodes import Episodes, WindowPasts
from palaver.memory.facts import Cursors, Fact, Facts, Summaries
from palaver.memory.retrieval.index import IndexReader, IndexWriter
from palaver.messages import Author, Message, Place, PlaceKey, Reply
from palaver.platform import Change, DeliveryKind, Update
from palaver.run.journal import Journal, JournalStore, Run, SentPrompt
from palaver.tasks.policy import REPEATABLE, Policy, sends
from palaver.tasks.task import Task
from palaver.turns import Prompt, Turn

DRAFT_END = "-end"  # ends the id of the line that replaces a draft; the draft's id begins it
PROPOSAL = "-forget"  # ends the id of the reply that tells a person what a model would forget; the run's id begins it

SendStatus = Literal[
    "waiting",  # to be sent
    "sending",  # given to the platform; no receipt yet
    "sent",  # with its receipt
    "doubtful",  # the process ended while it was being sent, on a platform that cannot say
    "dropped",  # by somebody's decision, or refused for good
]


class WaitingMessage(Struct, frozen=True, kw_only=True):
    """A message that no run has taken yet."""

    message: Message
    since: datetime  # when it was received
    number: int  # in its place


class OutboxItem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A reply on its way."""

    id: str  # also the key by which a platform knows it again, where it can
    reply: Reply
    made_at: datetime
    run: str | None = None
    task: str | None = None
    kind: DeliveryKind = "answer"
    status: SendStatus = "waiting"
    attempts: int = 0
    unknown_attempts: int = 0  # those of which nobody knows whether they went out
    message_id: str | None = None  # the platform's receipt
    sent_at: datetime | None = None  # when it was given to the platform, for the first time if nobody knows the outcome
    why: str = ""
    author: Author | None = None  # the agent's own: with it, a reply that is sent is a message of the place
    turns: tuple[Turn, ...] = ()  # what the model did and said to write it; goes with that message
    reply_id: str | None = None  # shared by the parts of a reply that was split; None for a whole one
    part: int = 0  # counted in the reply
    separator: str = ""  # what stood between it and the part before it
    edits: str | None = None  # the id of our own message that it replaces, on its platform: a draft
    streamed: bool = False  # see `Delivery`; it is not stored


MessageState = Literal["waiting", "taken", "passed", "own"]


class PlaceSnapshot(Struct, frozen=True, kw_only=True):
    """The messages that wait in a place, the oldest first, and how far the place has come, at one moment."""

    waiting: tuple[WaitingMessage, ...]
    count: int  # of all messages
    changes: int  # how many edits and deletions there were
    beginning: int = 0  # the number of the first message that is still part of the conversation


class Command(Struct, frozen=True, kw_only=True):
    """A command that somebody gave, to be carried out."""

    id: int
    message: Message
    name: str
    argument: str
    horizon: int  # how many messages of the place were known then


class UpdateResult(Struct, frozen=True, kw_only=True):
    """What became of an update."""

    new: bool  # whether its key was not known, or stood for what could not be read
    refused: str = ""  # why its changes could not be stored; then it is stored unread


class PromptOutdated(InvalidValue):
    """The prompt of a run shows what was edited, deleted or forgotten since. The run is withdrawn and begun again."""


class InboxStore(Protocol):
    async def receive(self, message: Message, *, at: datetime) -> bool:
        """Keep a message; whether it is new. The same one again changes nothing."""
        ...

    async def edit(self, message: Message, *, at: datetime) -> bool:
        """Put new parts in the place of the old; whether there was such a message."""
        ...

    async def delete(self, place: Place, message_id: str, *, at: datetime) -> bool: ...

    async def places(self) -> Sequence[Place]:
        """Return the places in which messages wait."""
        ...

    async def waiting(self, place: Place) -> Sequence[WaitingMessage]:
        """Return the messages that wait in a place, the oldest first."""
        ...

    async def snapshot(self, place: Place, *, most: int | None = None) -> PlaceSnapshot:
        """Return *most* of the waiting messages, with the counts of the place, all of one moment."""
        ...

    async def album(self, place: Place, author_id: str, album: str) -> Sequence[tuple[Message, MessageState]]:
        """The messages of an album that are not deleted, the oldest first, and how each stands."""
        ...

    async def pass_over(self, place: Place, message_ids: Sequence[str]) -> None: ...

    async def add_own(self, message: Message, turns: Sequence[Turn]) -> None:
        """Keep a message of the agent's own, with what the model did to write it."""
        ...


class UpdateStore(Protocol):
    """What chat services tell, and what people command."""

    async def apply(
        self, platform: str, changes: Sequence[Change], *, key: str, raw: bytes | None, at: datetime, keep: timedelta
    ) -> UpdateResult:
        """Store an update of a platform and apply its changes, in one transaction; *raw* is removed after *keep*."""
        ...

    async def unread(self, platform: str) -> Sequence[Update]: ...

    async def last(self, place: Place) -> Message | None: ...

    async def migrated_places(self) -> Mapping[PlaceKey, Place]:
        """The places that go on as another one, by their old keys."""
        ...

    async def commands(self) -> Sequence[Command]:
        """The commands that were not carried out yet, the oldest first."""
        ...

    async def end(self, command: Command, *, replies: Sequence[OutboxItem] = (), tasks: Sequence[Task] = ()) -> None:
        """End a command together with the replies and tasks it led to, all or nothing."""
        ...


class EventStore(Protocol):
    """What happened, numbered per place."""

    def subscribe(
        self, published: Callable[[Sequence[DurableEvent]], None], troubled: Callable[[PalaverError], None]
    ) -> Callable[[], None]:
        """Call *published* with the events of each commit and *troubled* with what went wrong, in any thread.

        The result ends that.
        """
        ...

    async def read(
        self, *, after: str, place: Place | None = None, run_id: str | None = None
    ) -> Sequence[DurableEvent]:
        """Some events behind a cursor, the oldest first; none at the end. `""` is before all."""
        ...

    async def last(self) -> str:
        """The cursor of the newest event."""
        ...


class RunStore(JournalStore, Protocol):
    """Runs from their beginning to their end."""

    async def begin(
        self,
        run: Run,
        prompt: Prompt,
        *,
        at: datetime,
        calls_off: Policy = sends,
        changes: int | None = None,
        left_out: Sequence[LeftOut] = (),
    ) -> None:
        """Open a run with the first prompt that is about to be sent and what was *left_out* of it, all or nothing.

        It takes its messages, which no longer wait, and calls off what an older plan for the place has not begun.
        Where the place has seen other *changes* than the prompt tells of, nothing is opened: `PromptOutdated`.
        """
        ...

    async def open(self) -> Sequence[Run]:
        """The runs that were begun and not ended, the oldest first."""
        ...

    async def resume(self, run: Run) -> None:
        """Store that a run is resumed."""
        ...

    async def journal(self, run_id: str) -> Journal | None: ...

    async def end(self, run: Run, *, replies: Sequence[OutboxItem] = (), tasks: Sequence[Task] = ()) -> None:
        """End a run together with the replies and tasks it made, all or nothing; also one that was never begun."""
        ...


class OutboxStore(Protocol):
    async def unsent(self) -> Sequence[OutboxItem]:
        """What waits to be sent or was being sent, the oldest first."""
        ...

    async def put(self, *item: OutboxItem) -> None:
        """Store replies, all or nothing, or their status. One with an author becomes a message once it is sent."""
        ...

    async def draft(self, run_id: str) -> OutboxItem | None:
        """The message in which the answer of a run was shown while it was being written."""
        ...

    async def abandoned_drafts(self) -> Sequence[OutboxItem]:
        """Return the drafts that people see, of runs that were withdrawn, or ended without editing them."""
        ...

    async def change(self, item: OutboxItem) -> None:
        """Store the status of a reply, not its text. Refused where the reply is gone."""
        ...

    async def listed(self, *statuses: SendStatus) -> Sequence[OutboxItem]: ...

    async def to_retry(self) -> Sequence[OutboxItem]:
        """The replies that wait after an attempt to send them, the oldest first."""
        ...

    async def decide(
        self, outgoing_id: str, status: Literal["waiting", "dropped"], *, why: str = ""
    ) -> OutboxItem | None:
        """Send a doubtful or dropped reply again, or drop one that is not sent; None where there is none."""
        ...


class TaskStore(Protocol):
    """Work for later. Each change of a task comes with all that follows from it for the others of its plan.

    Where platforms are named, only the tasks of their places are meant.
    """

    async def add(self, tasks: Sequence[Task]) -> None:
        """Keep new tasks; one that is there already stays as it is."""
        ...

    async def take(self, now: datetime, *, platforms: Collection[str] | None = None) -> Sequence[Task]:
        """Begin those that are due and wait for nothing else; they are running now."""
        ...

    async def end(self, task: Task, *, replies: Sequence[OutboxItem] = ()) -> None:
        """Keep a task that is no longer running, together with what it sends, all or nothing."""
        ...

    async def next_due(self, *, platforms: Collection[str] | None = None) -> datetime | None:
        """When the next one may begin, if nothing else happens; it may be past."""
        ...

    async def recover(
        self, repeatable: Collection[str] = REPEATABLE, *, platforms: Collection[str] | None = None
    ) -> Sequence[Task]:
        """After a crash: what was running begins again if its kind may run twice, and else is in doubt; those."""
        ...

    async def cancel(self, task_id: str, *, why: str) -> Task | None:
        """Call off a task that was not begun; None where there is none, refused where it is past that."""
        ...

    async def call_off(self, place: Place, policy: Policy) -> None:
        """Cancel what the policy names of the plans for a place, as far as it was not begun."""
        ...

    async def listed(self, place: Place | None = None) -> Sequence[Task]: ...


class PlaceSettings(Protocol):
    """What holds for a place and for its people until somebody says otherwise."""

    async def delimiter(self, place: Place) -> str:
        """The word that tells our own markup there from people's; made at random when it is first asked for."""
        ...

    async def beginning(self, place: Place) -> int:
        """Return the number of the first message since the place was cleared, or became a group or a direct chat."""
        ...

    async def clear(self, place: Place, beginning: int, *, at: datetime) -> None:
        """Let the conversation begin with that number; it never goes back."""
        ...

    async def blocked(self) -> frozenset[tuple[str, str]]:
        """Platform and id of the authors who are not answered."""
        ...

    async def block(self, platform: str, author_id: str, *, at: datetime) -> None: ...

    async def unblock(self, platform: str, author_id: str) -> None: ...


class ProposalStore(Protocol):
    """What a model would forget, until the person it is about confirms it."""

    async def propose(self, run_id: str, fact_id: str, *, now: datetime, until: datetime, most: int) -> bool:
        """Keep that a run would forget a fact; once however often it is proposed, and *most* facts of a run."""
        ...

    async def made_by(self, run_id: str) -> Sequence[Fact]:
        """The facts that a run would forget, as far as they are still known."""
        ...

    async def confirmed_by(self, message: Message, *, now: datetime) -> Sequence[Fact]:
        """The facts that *message* confirms are to be forgotten, if it says yes.

        They are about its author, and were proposed to them in this place by a reply that was sent. It is the next
        thing they say there, still says it, and quotes that reply, or quotes nothing and nothing of ours came after
        that reply or was being sent.
        """
        ...


class FactStore(Facts, Summaries, Protocol):
    """What is remembered of people."""


class PromptStore(Protocol):
    """What the readers of events ask for."""

    async def sent(self, run_id: str, step: int) -> SentPrompt | None:
        """A prompt as it was sent, and what was left out of it; a layer somebody had removed says so."""
        ...


class DescriptionStore(Protocol):
    async def find(self, unique_ids: Sequence[str]) -> dict[str, str]: ...

    async def describe(self, unique_id: str, words: str, *, by: str, at: datetime) -> None: ...


class StoreProtocol(Protocol):
    """A store: one member for each protocol."""

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
    def prompts(self) -> PromptStore: ...
    @property
    def outbox(self) -> OutboxStore: ...
    @property
    def tasks(self) -> TaskStore: ...
    @property
    def place_settings(self) -> PlaceSettings: ...
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
    def usage(self) -> UsageStore: ...
    @property
    def ownership(self) -> Ownership: ...
    @property
    def rate_limits(self) -> RateLimitStore: ...
    @property
    def stop_requests(self) -> StopRequests: ...
