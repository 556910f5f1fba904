"""Events: what the engine did, as values in one stream. Pure.

Durable events are stored in the transaction that caused them. They hold ids of stored values, and no copies. Ephemeral
events reach only those who listen at that moment.
"""

from datetime import datetime

from msgspec import Struct

from tertulia.decisions import Address, Reason
from tertulia.messages import Place
from tertulia.models.base import Response
from tertulia.parts import Part
from tertulia.platform import DeliveryKind


class _Event(Struct, frozen=True, kw_only=True, tag_field="kind", omit_defaults=True):
    place: Place


class _Durable(_Event, frozen=True, kw_only=True, tag_field="kind", omit_defaults=True):
    number: int = 0  # in its place, from 1
    cursor: str = ""  # opaque; `engine.events(after=cursor)` continues behind it
    at: datetime | None = None


class MessageReceived(_Durable, frozen=True, kw_only=True, tag="message received"):
    message_id: str


class MessageDecided(_Durable, frozen=True, kw_only=True, tag="message decided"):
    """It was decided whether an agent answers a message; `tertulia why` shows it."""

    message_id: str
    reason: Reason
    address: Address | None = None  # how the message speaks to the agent
    agent: str = ""
    run_id: str | None = None  # the run that took it


class MessagesChanged(_Durable, frozen=True, kw_only=True, tag="messages changed"):
    """Stored messages changed: they were edited, deleted or hidden, others react to them, or one was sent in parts."""

    message_ids: tuple[str, ...]


class PlaceChanged(_Durable, frozen=True, kw_only=True, tag="place changed"):
    """What is stored of a place changed as a whole.

    It was cleared, has moved, got the messages of another program, or lost what was forgotten.
    """


class RunStarted(_Durable, frozen=True, kw_only=True, tag="run started"):
    run_id: str
    message_id: str  # the target


class PromptSent(_Durable, frozen=True, kw_only=True, tag="prompt sent"):
    """A prompt is about to be sent.

    `store.prompts.sent(run_id, step)` gives it with its layers, what was left out and why.
    """

    run_id: str
    step: int


class FallbackTried(_Durable, frozen=True, kw_only=True, tag="fallback tried"):
    """The prompt of this step was sent because the one before failed; the journal says why."""

    run_id: str
    step: int
    fallback: str


class ToolStarted(_Durable, frozen=True, kw_only=True, tag="tool started"):
    run_id: str
    step: int
    call: int  # its number in the step
    name: str


class ToolFinished(_Durable, frozen=True, kw_only=True, tag="tool finished"):
    run_id: str
    step: int
    call: int
    name: str
    failed: bool = False


class RunEnded(_Durable, frozen=True, kw_only=True, tag="run ended"):
    run_id: str
    failed: bool = False


class ReplyQueued(_Durable, frozen=True, kw_only=True, tag="reply queued"):
    delivery_id: str
    delivery_kind: DeliveryKind = "answer"
    run_id: str | None = None


class ReplySent(_Durable, frozen=True, kw_only=True, tag="reply sent"):
    delivery_id: str
    message_id: str
    run_id: str | None = None


class ReplyDoubtful(_Durable, frozen=True, kw_only=True, tag="reply doubtful"):
    delivery_id: str
    run_id: str | None = None


class ReplyRefused(_Durable, frozen=True, kw_only=True, tag="reply refused"):
    """The service refused a reply; it will not be sent."""

    delivery_id: str
    run_id: str | None = None


class ReplyDropped(_Durable, frozen=True, kw_only=True, tag="reply dropped"):
    """A reply will not be sent: somebody stopped or dropped it, its place was left, or a part before it failed."""

    delivery_id: str
    run_id: str | None = None


class FactsLearned(_Durable, frozen=True, kw_only=True, tag="facts learned"):
    fact_ids: tuple[str, ...]


class FactsChanged(_Durable, frozen=True, kw_only=True, tag="facts changed"):
    """Facts that were learned before in the place are superseded, merged again or removed."""


class TaskPlanned(_Durable, frozen=True, kw_only=True, tag="task planned"):
    task_id: str
    run_id: str | None = None


class TaskDone(_Durable, frozen=True, kw_only=True, tag="task done"):
    """A task has ended: it ran, failed for good, or was cancelled."""

    task_id: str
    status: str
    run_id: str | None = None


class Delta(_Event, frozen=True, kw_only=True, tag="delta"):
    """A piece of the answer as it streams. Its text is cleaned of internal markup."""

    run_id: str
    part: Part


class AnswerSoFar(_Event, frozen=True, kw_only=True, tag="answer so far"):
    """The text so far of an answer that streams when somebody begins to listen; deltas follow."""

    run_id: str
    text: str


class ResponseReceived(_Event, frozen=True, kw_only=True, tag="response received"):
    """The response of the model is complete and stored."""

    run_id: str
    response: Response


class Waiting(_Event, frozen=True, kw_only=True, tag="waiting"):
    """The model is unavailable; it is asked again after so many seconds."""

    run_id: str
    seconds: float
    why: str


class Recalled(_Event, frozen=True, kw_only=True, tag="recalled"):
    """The texts that memory recalled for a message."""

    message_id: str
    texts: tuple[str, ...]


class RunFailed(_Event, frozen=True, kw_only=True, tag="run failed"):
    """A run ended with an error notice; `error` is the type of the error, `why` its text."""

    run_id: str
    error: str
    why: str
    retry_after: float | None = None


class StoreUnavailable(Struct, frozen=True, kw_only=True, tag_field="kind", tag="store unavailable"):
    """The store cannot be written, or is damaged."""

    why: str
    error: str = "StoreTrouble"  # the type of the error
    damaged: bool = False
    place: Place | None = None


class MemoryBehind(Struct, frozen=True, kw_only=True, tag_field="kind", tag="memory behind"):
    """The number of messages without vectors."""

    messages: int
    place: Place | None = None


class Missed(Struct, frozen=True, kw_only=True, tag_field="kind", tag="missed"):
    """The listener was too slow: so many ephemeral events are lost. Durable events are not."""

    events: int
    place: Place | None = None


DurableEvent = (
    MessageReceived
    | MessageDecided
    | MessagesChanged
    | PlaceChanged
    | RunStarted
    | PromptSent
    | FallbackTried
    | ToolStarted
    | ToolFinished
    | RunEnded
    | ReplyQueued
    | ReplySent
    | ReplyDoubtful
    | ReplyRefused
    | ReplyDropped
    | FactsLearned
    | FactsChanged
    | TaskPlanned
    | TaskDone
)
EphemeralEvent = (
    Delta | AnswerSoFar | ResponseReceived | Waiting | Recalled | RunFailed | StoreUnavailable | MemoryBehind | Missed
)
Event = DurableEvent | EphemeralEvent
