"""View: the conversation of a place as it stands, and how events change it. Pure.

A durable event names stored values: `named` says which. `engine/view_reader` loads them as they are stored by then, and
`reduce` puts each in the place of the one with its key. What is loaded may be newer than the event, never older; a
later event that names it again changes nothing then. So a view that has reduced all events of its place, in order and
from any cursor, equals one that is read anew.

A view has the newest `most` messages, runs, deliveries and facts. Where what is stored changes as a whole, for example
when a person is forgotten, the event is `PlaceChanged`, and everything is loaded anew.

A `ViewChange` is what goes to readers elsewhere, as JSON with `event` as its id. They put each item in the place of the
one with its key, `number` of a message or `order` of a run and a delivery; they take `facts` as they come, and drop all
others where it is `anew`. Whoever has seen the change with the number of `View.event` has seen all. What others may see
of a change, `inspector/views` says. What streams is not stored: readers in the process of the engine find it in
`View.live`, and get the deltas as `ViewUpdate.event`.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from itertools import chain
from typing import Any, Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from tertulia.decisions import Decision
from tertulia.engine.inspection import Named, ShownReactions
from tertulia.events import (
    AnswerSoFar,
    Delta,
    Event,
    FactsChanged,
    FactsLearned,
    FallbackTried,
    MessageDecided,
    MessageReceived,
    MessagesChanged,
    Missed,
    PlaceChanged,
    PromptSent,
    ReplyDoubtful,
    ReplyDropped,
    ReplyQueued,
    ReplyRefused,
    ReplySent,
    RunEnded,
    RunStarted,
    StoreUnavailable,
    ToolFinished,
    ToolStarted,
    Waiting,
)
from tertulia.memory.values import Fact
from tertulia.messages import Message, Place
from tertulia.parts import Text
from tertulia.platform import DeliveryKind
from tertulia.run.journal import RunProgress
from tertulia.turns import Turn

MOST = 60  # messages of a view
EVERYTHING = Named(everything=True)

T = TypeVar("T")


class ViewMessage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message with what was decided about it."""

    number: int  # in its place; its key, since a receipt may change the id
    message: Message  # a hidden one is a placeholder
    decisions: tuple[Decision, ...] = ()  # none for one of the agent
    turns: tuple[Turn, ...] = ()  # of the model that wrote it, without our markup
    reactions: tuple[ShownReactions, ...] = ()


class ViewDelivery(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A reply on its way, or sent."""

    id: str
    order: int  # later replies have greater ones
    kind: DeliveryKind
    status: Literal["waiting", "sent", "doubtful", "dropped"]
    made_at: datetime
    text: str = ""  # of one that is no message of the place
    run_id: str | None = None
    task_id: str | None = None
    message_id: str | None = None  # of its message, once it is one
    sent_at: datetime | None = None
    why: str = ""  # it is doubtful, or was dropped


class LiveAnswer(Struct, frozen=True, kw_only=True):
    """The text of an open run that has streamed so far."""

    run_id: str
    before: str = ""  # of the responses before the one that streams
    text: str = ""  # of the response that streams

    @property
    def whole(self) -> str:
        return "\n\n".join(filter(None, (self.before, self.text)))


class View(Struct, frozen=True, kw_only=True):
    """A conversation as it stands after an event."""

    place: Place
    event: int = 0  # the number of the last event of the place
    cursor: str = ""  # `engine.events(after=cursor)` continues behind it
    most: int = MOST
    count: int = 0  # of all messages of the place
    beginning: int = 0  # the number of the first message since the place was cleared
    messages: tuple[ViewMessage, ...] = ()  # the newest, in order
    runs: tuple[RunProgress, ...] = ()
    deliveries: tuple[ViewDelivery, ...] = ()  # without drafts
    facts: tuple[Fact, ...] = ()  # that were learned here
    live: tuple[LiveAnswer, ...] = ()

    def run(self, run_id: str) -> RunProgress | None:
        return next((one for one in self.runs if one.run.id == run_id), None)

    def message(self, message_id: str) -> Message | None:
        return next((one.message for one in self.messages if one.message.id == message_id), None)

    def delivery(self, delivery_id: str) -> ViewDelivery | None:
        return next((one for one in self.deliveries if one.id == delivery_id), None)


class ViewChange(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an event changed, as it is stored."""

    event: int  # the number of that event
    anew: bool = False  # it is everything: nothing else is left
    count: int
    beginning: int
    messages: tuple[ViewMessage, ...] = ()
    runs: tuple[RunProgress, ...] = ()
    deliveries: tuple[ViewDelivery, ...] = ()
    facts: tuple[Fact, ...] | None = None  # all; None: unchanged

    @property
    def is_empty(self) -> bool:
        return not (self.anew or self.messages or self.runs or self.deliveries or self.facts is not None)


class ViewUpdate(Struct, frozen=True, kw_only=True):
    """A view after an event, and what changed by it."""

    view: View
    change: ViewChange
    event: Event | None = None  # None: the view was read


def named(event: Event) -> Named | None:
    """Return what an event names of what is stored; None if it is nothing that a view shows."""
    match event:
        case MessageReceived() | MessageDecided():
            return Named(messages=(event.message_id,))
        case MessagesChanged():
            return Named(messages=event.message_ids)
        case RunStarted() | RunEnded() | PromptSent() | FallbackTried() | ToolStarted() | ToolFinished():
            return Named(runs=(event.run_id,))
        case ReplyQueued() | ReplySent() | ReplyDoubtful() | ReplyRefused() | ReplyDropped():
            return Named(replies=(event.delivery_id,))
        case FactsLearned() | FactsChanged():
            return Named(facts=True)
        case PlaceChanged():
            return EVERYTHING
        case _:
            return None


def named_by(events: Iterable[Event]) -> Named:
    """Return what events name together."""
    found = [one for one in map(named, events) if one]
    ids = {
        kind: tuple(dict.fromkeys(chain.from_iterable(getattr(one, kind) for one in found)))
        for kind in ("messages", "runs", "replies")
    }
    return Named(**ids, facts=any(one.facts for one in found), everything=any(one.everything for one in found))


def reduce(view: View, event: Event, stored: ViewChange | None = None) -> ViewUpdate:
    """Return the view after an event; *stored* are the values that it names, None if it names none.

    An event that the view has already changes nothing.
    """
    number, cursor = getattr(event, "number", 0), getattr(event, "cursor", "")
    if cursor and number <= view.event:
        return ViewUpdate(view=view, change=nothing(view), event=event)
    after = replace(view, event=number or view.event, cursor=cursor or view.cursor)
    change = nothing(after)
    if stored:
        after, change = put(after, stored)
    return ViewUpdate(view=replace(after, live=_live(after, event)), change=change, event=event)


def whole(view: View) -> ViewChange:
    """Return a change that gives all of a view."""
    shown = {name: getattr(view, name) for name in ("messages", "runs", "deliveries", "facts")}
    return replace(nothing(view), anew=True, **shown)


def nothing(view: View) -> ViewChange:
    """Return a change of nothing."""
    return ViewChange(event=view.event, count=view.count, beginning=view.beginning)


def put(view: View, stored: ViewChange) -> tuple[View, ViewChange]:
    """Put stored values into a view; return it, and those of them that differ from what it had."""
    known = replace(view, messages=(), runs=(), deliveries=(), facts=()) if stored.anew else view
    messages, new_messages = _upsert(known.messages, stored.messages, lambda one: one.number, view.most)
    runs, new_runs = _upsert(known.runs, stored.runs, lambda one: one.order, view.most)
    deliveries, new_deliveries = _upsert(known.deliveries, stored.deliveries, lambda one: one.order, view.most)
    facts = known.facts if stored.facts is None else stored.facts[-view.most :]
    after = replace(
        known,
        count=stored.count,
        beginning=stored.beginning,
        messages=messages,
        runs=runs,
        deliveries=deliveries,
        facts=facts,
    )
    change = replace(
        stored,
        event=after.event,
        messages=new_messages,
        runs=new_runs,
        deliveries=new_deliveries,
        facts=facts if stored.anew or facts != view.facts else None,
    )
    return after, change


def _upsert(
    known: Iterable[T], stored: Iterable[T], key: Callable[[T], int], most: int
) -> tuple[tuple[T, ...], tuple[T, ...]]:
    """Put each stored item in the place of the one with its key.

    Return the *most* items with the greatest keys, in order, and those of them that are new.
    """
    before = {key(one): one for one in known}
    items = before | {key(one): one for one in stored}
    last = sorted(items)[-most:]
    return tuple(items[one] for one in last), tuple(items[one] for one in last if before.get(one) != items[one])


def _live(view: View, event: Event) -> tuple[LiveAnswer, ...]:
    """Return what has streamed of the open runs after an event."""
    live = {one.run_id: one for one in view.live if _is_open(view, one.run_id)}
    run_id: Any = getattr(event, "run_id", None)
    match event:
        case Missed() | StoreUnavailable():  # the texts have gaps, or stream again
            live = {one.run_id: replace(one, text="") for one in live.values()}
        case AnswerSoFar(text=text) | Delta(part=Text(text=text)) if _is_open(view, run_id):
            one = live.get(run_id, LiveAnswer(run_id=run_id))
            live[run_id] = replace(one, text=text if isinstance(event, AnswerSoFar) else one.text + text)
        case Waiting() | FallbackTried() if run_id in live:  # the response is not used
            live[run_id] = replace(live[run_id], text="")
        case PromptSent() if run_id in live:
            live[run_id] = LiveAnswer(run_id=run_id, before=live[run_id].whole)
    return tuple(live.values())


def _is_open(view: View, run_id: str) -> bool:
    found = view.run(run_id)
    return found is not None and found.run.status == "open"
