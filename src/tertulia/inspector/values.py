"""Values that the inspector shows. They are the JSON of the page and of the command line. Pure."""

from datetime import date, datetime
from typing import Literal

from msgspec import Struct

from tertulia.context.values import LeftOut, RecalledThing
from tertulia.decisions import Decision
from tertulia.engine.inspection import Spent
from tertulia.engine.limits import Cap, UsageRow
from tertulia.engine.orders import OrderKind, OrderStatus
from tertulia.engine.store_protocols import DeliveryAttempt, OutboxItem
from tertulia.memory.values import Fact, Subject, Summary
from tertulia.messages import Author, Message, Place
from tertulia.models.calls import Call, PromptSize
from tertulia.run.journal import FallbackStep, Run, ToolRun
from tertulia.tasks.task import Task
from tertulia.turns import ToolSpec, Turn

PlaceState = Literal["answering", "waits", "to decide", "failed", "quiet"]
MustAct = Literal["nobody", "operator", "program"]  # nobody: it passes
SpanKind = Literal["wait", "gather", "request", "retry", "tool", "send"]
EvidenceKind = Literal["fact", "message", "episode", "tool"]


class AgentBrief(Struct, frozen=True, kw_only=True):
    """One of several agents."""

    name: str
    default: bool  # answers where nobody else is meant; what is stored without a name is its own


class AgentRow(AgentBrief, frozen=True, kw_only=True):
    """An agent with what it has of its own, and what it has spent today."""

    called: tuple[str, ...]  # what people call it
    models: tuple[str, ...]
    profile: str
    memory: Literal["shared", "own"]
    knows: Literal["all", "present"]
    listed: tuple[str, ...]  # where it takes part; empty: everywhere
    added_at: datetime | None  # by an owner, while the bot ran; None: the config has it
    places: int  # in which it is
    today: Spent


class AgentPresence(AgentBrief, frozen=True, kw_only=True):
    """Since when an agent has been in a place, or when it was there last."""

    called: tuple[str, ...] = ()  # what people call it; empty: it was removed
    here: bool
    since: datetime | None = None  # None: nothing was said there yet
    until: datetime | None = None  # when it was removed from there


class MessageBrief(Struct, frozen=True, kw_only=True):
    """The beginning of a message."""

    id: str
    number: int  # in its place
    author: Author
    text: str
    sent_at: datetime | None = None


class PlaceRow(Struct, frozen=True, kw_only=True):
    key: str  # names the place in addresses: `places/KEY`
    place: Place
    state: PlaceState
    since: datetime | None = None  # when a run that is under way began, or the last one failed
    why: str = ""  # of a failed run
    waiting: int = 0  # messages
    to_decide: int = 0  # doubtful replies
    messages: int = 0
    runs: int = 0
    today: Spent = Spent()
    last: MessageBrief | None = None


class ModelHealth(Struct, frozen=True, kw_only=True):
    """How a model has answered today."""

    model: str
    spent: Spent = Spent()
    failed: int = 0
    median_seconds: float | None = None
    answered_at: datetime | None = None  # the last time
    failed_at: datetime | None = None
    why: str = ""  # the last failure
    down_since: datetime | None = None  # its service does not answer; None: it does, or was not asked
    retry_at: datetime | None = None  # when it is asked again, as the bot's own process knows


class PlatformHealth(Struct, frozen=True, kw_only=True):
    name: str
    updates: int = 0  # stored
    unread: int = 0  # that were refused
    last_at: datetime | None = None
    places: int = 0
    running: bool | None = None  # whether the bot has it; None: only the bot's own process knows
    down_since: datetime | None = None  # as that process knows
    retry_at: datetime | None = None
    why: str = ""  # it is down


class StoreHealth(Struct, frozen=True, kw_only=True):
    name: str  # the file or the URL, without its password
    size: int | None = None  # bytes; None: not known
    messages: int = 0
    prompts: int = 0
    facts: int = 0
    episodes: int = 0
    indexed: int = 0  # messages


class RunRow(Struct, frozen=True, kw_only=True):
    run: Run
    place_key: str
    message: MessageBrief | None = None  # the target; None: it is gone
    spent: Spent = Spent()
    layers: tuple[str, ...] = ()  # names of the layers of its last prompt
    size: PromptSize = PromptSize()  # of its last prompt


class Decided(Struct, frozen=True, kw_only=True):
    """A reply that waits for a decision of the owner."""

    item: OutboxItem
    place_key: str


class Home(Struct, frozen=True, kw_only=True):
    """Whether the bot is well."""

    now: datetime
    agent: str  # its name; empty: nothing was sent yet
    agents: tuple[AgentBrief, ...] = ()  # where there are several
    running: bool | None  # whether a bot has the store; None: not known
    today: Spent
    hours: tuple[float, ...]  # dollars of each hour of the day in UTC so far
    cap: Cap | None  # of all places together, where it is known
    runs_done: int
    runs_failed: int
    replies_sent: int
    median_seconds: float | None  # of the runs of today
    answering: int
    waiting: int
    next_task: Task | None
    to_decide: tuple[Decided, ...]
    places: tuple[PlaceRow, ...]
    runs: tuple[RunRow, ...]  # the newest first
    models: tuple[ModelHealth, ...]
    platforms: tuple[PlatformHealth, ...]
    store: StoreHealth
    tasks: tuple[Task, ...]  # the next


class MessageRow(Struct, frozen=True, kw_only=True):
    """A message with what became of it."""

    number: int
    message: Message
    decisions: tuple[Decision, ...] = ()
    wrote: str | None = None  # the run that wrote it
    tools: tuple[ToolRun, ...] = ()  # of the run that wrote it
    delivery: OutboxItem | None = None


class MessagePage(Struct, frozen=True, kw_only=True):
    """Messages of a place, the oldest first."""

    row: PlaceRow
    agents: tuple[AgentPresence, ...] = ()  # where there are, or were, several
    messages: tuple[MessageRow, ...]
    before: int | None  # the number to ask the page before with; None: there is none
    event: int  # the number of the last event of the place when it was read


class Reasoned(Struct, frozen=True, kw_only=True):
    """Why a message was or was not answered."""

    number: int
    message: Message
    decisions: tuple[Decision, ...]  # empty: imported, or the bot's own
    words: tuple[str, ...]  # a sentence for each decision; that of an imported one


class DecisionPage(Struct, frozen=True, kw_only=True):
    row: PlaceRow
    agents: tuple[AgentPresence, ...] = ()  # where there are, or were, several; then their messages are here too
    messages: tuple[Reasoned, ...]
    before: int | None


class Span(Struct, frozen=True, kw_only=True):
    """A bar of a time line."""

    kind: SpanKind
    label: str
    begun_at: datetime
    ended_at: datetime | None  # None: it is under way, or nobody knows
    note: str = ""
    step: int | None = None
    failed: bool = False


class LayerShown(Struct, frozen=True, kw_only=True):
    name: str
    tokens: int  # estimated
    repeated: int  # tokens that the prompt before began with, too
    instruction: str
    turns: tuple[Turn, ...]


class CallShown(Struct, frozen=True, kw_only=True):
    """A call of a step, and whether its request can be shown again as it was sent."""

    call: Call
    without_cache: float = 0.0


class StepShown(Struct, frozen=True, kw_only=True):
    step: int
    at: datetime
    model: str
    tools: tuple[ToolSpec, ...]
    tool_tokens: int
    layers: tuple[LayerShown, ...]
    size: PromptSize
    left_out: tuple[LeftOut, ...]
    tried: FallbackStep | None
    calls: tuple[CallShown, ...]
    answer: Turn | None  # what the model wrote
    usable: bool  # whether it was a valid answer
    tool_runs: tuple[ToolRun, ...]


class Delivered(Struct, frozen=True, kw_only=True):
    item: OutboxItem
    attempts: tuple[DeliveryAttempt, ...] = ()


class Recollection(Struct, frozen=True, kw_only=True):
    """Something that was recalled for a run, with its text if it is still stored."""

    thing: RecalledThing
    text: str
    place_key: str | None = None  # of a message or an episode


class RunShown(Struct, frozen=True, kw_only=True):
    """A run from its message to its reply."""

    row: RunRow
    taken: tuple[Message, ...]
    spans: tuple[Span, ...]
    steps: tuple[StepShown, ...]
    must_act: MustAct | None = None  # about its failure, as far as that is known
    why_no_steps: str = ""  # its prompts were removed, or it never sent one
    recalled: tuple[Recollection, ...] = ()
    replies: tuple[Delivered, ...] = ()
    tasks: tuple[Task, ...] = ()


class Check(Struct, frozen=True, kw_only=True):
    ok: bool
    what: str  # a sentence


class RequestShown(Struct, frozen=True, kw_only=True):
    """One request over the wire."""

    call: Call
    body: str  # JSON; empty: it cannot be made again
    checks: tuple[Check, ...]  # whether it is byte for byte as sent, what lint says, what was repaired
    response: str  # JSON, as the service sent it; empty: there is none
    url: str  # of the service, for `curl`
    curl: str  # without a key
    pytest: str  # a test case


class Stratum(Struct, frozen=True, kw_only=True):
    """A request as a strip."""

    run_id: str
    agent: str = ""  # of the run
    step: int
    at: datetime
    model: str
    message: MessageBrief | None
    after: tuple[str, ...]  # names of the tools whose results it has; empty for a first step
    layers: tuple[str, ...]
    size: PromptSize
    spent: Spent
    status: Literal["answered", "failed", "stopped", "under way"]
    broke: bool = False  # whether something that mostly stays did not repeat; `size` says what and why


class Strata(Struct, frozen=True, kw_only=True):
    """The requests of a place on a day, the oldest first."""

    row: PlaceRow
    day: date
    strips: tuple[Stratum, ...]
    spent: Spent
    breaks: int  # strips that broke
    days: tuple[date, ...]  # on which there are requests


class LayerDifference(Struct, frozen=True, kw_only=True):
    name: str  # of a layer, or `tools`
    tokens: tuple[int, int]  # estimated, in both
    before: str
    after: str


class Difference(Struct, frozen=True, kw_only=True):
    """Two requests, layer by layer; equal layers have empty texts."""

    a: Stratum
    b: Stratum
    layers: tuple[LayerDifference, ...]


class Evidence(Struct, frozen=True, kw_only=True):
    """What was in the prompt and shares words with a sentence. Whether the model used it, nobody can know."""

    kind: EvidenceKind
    id: str
    text: str
    score: float | None  # of the search; of a fact how sure it is
    why: str
    shared: tuple[str, ...]  # words that it has in common with the sentence
    place_key: str | None = None
    message_id: str | None = None  # the source
    source: MessageBrief | None = None  # of a fact: a message that says so, as far as it is stored


class Known(Struct, frozen=True, kw_only=True):
    """What a run knew when it wrote a message."""

    message: Message
    run_id: str | None
    sentences: tuple[str, ...]
    evidence: tuple[tuple[Evidence, ...], ...]  # for each sentence
    window: int  # messages in the prompt
    why_nothing: str = ""


class PersonRow(Struct, frozen=True, kw_only=True):
    key: str  # names the person in addresses: `people/KEY`
    person: Subject
    messages: int
    facts: int
    last_at: datetime | None
    blocked: bool


class FactShown(Struct, frozen=True, kw_only=True):
    fact: Fact
    place_key: str
    sources: tuple[MessageBrief, ...]  # those that are still stored
    prompts: int  # how many runs were shown it


class EpisodeShown(Struct, frozen=True, kw_only=True):
    id: str
    place_key: str
    topic: str
    summary: str
    start: int
    stop: int
    importance: float  # from 0 to 1
    started_at: datetime | None
    people: tuple[str, ...]  # their names


class PersonShown(Struct, frozen=True, kw_only=True):
    """What is known of a person."""

    row: PersonRow
    names: tuple[str, ...]
    facts: tuple[FactShown, ...]
    summaries: tuple[Summary, ...]
    episodes: tuple[EpisodeShown, ...]
    places: tuple[PlaceRow, ...]


class PlaceMemory(Struct, frozen=True, kw_only=True):
    """What is known in a place."""

    row: PlaceRow
    people: tuple[PersonRow, ...]
    facts: tuple[FactShown, ...]
    episodes: tuple[EpisodeShown, ...]


class MediaRow(Struct, frozen=True, kw_only=True):
    unique_id: str
    kind: str
    mime: str
    size: int | None
    sha256: str | None  # names its file: `files/SHA256`
    place_key: str
    message: MessageBrief
    description: str
    why_not: str  # why there is no file or no description


class Hit(Struct, frozen=True, kw_only=True):
    """A message that a search found."""

    place_key: str
    place: Place
    message: MessageBrief
    why: str


class ForgetPlan(Struct, frozen=True, kw_only=True):
    """What forgetting a person or a fact would remove: rows by section."""

    rows: dict[str, int]
    files: int
    note: str = ""  # what cannot be counted before


class OrderShown(Struct, frozen=True, kw_only=True):
    """An order: who asked for what, when, and what became of it."""

    id: str
    kind: OrderKind
    subject: str  # as it is named in addresses; empty where a person was meant, once it has ended
    place_key: str | None
    place_title: str
    who: str
    at: datetime
    status: OrderStatus
    why: str  # it is refused
    ended_at: datetime | None


class UsagePage(Struct, frozen=True, kw_only=True):
    rows: tuple[UsageRow, ...]
    total: Spent
