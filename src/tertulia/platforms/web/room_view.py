"""What is seen in a room: its conversation without prompts, costs, decisions and memory; who is there. Pure."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Literal

from msgspec import Struct

from tertulia.engine.limits import Cap
from tertulia.engine.rooms import Guest, Room
from tertulia.engine.view import ViewChange, ViewDelivery, ViewMessage
from tertulia.inspector.places import place_key
from tertulia.inspector.values import AgentBrief
from tertulia.messages import Message
from tertulia.parts import ToolCall, ToolResult
from tertulia.platform import DeliveryKind, PlaceRole
from tertulia.run.journal import RunProgress, RunStatus
from tertulia.turns import Turn

RoomState = Literal["open", "ended", "revoked"]


class RoomShown(Struct, frozen=True, kw_only=True):
    """A room as its owner sees it."""

    id: str
    title: str
    people: int  # at most
    joined: int
    made_at: datetime
    ends_at: datetime
    revoked_at: datetime | None
    cap: Cap
    state: RoomState
    place: str  # its name in addresses


class RoomOpened(Struct, frozen=True, kw_only=True):
    """A new room."""

    room: RoomShown
    link: str  # that is shown once


class Link(Struct, frozen=True, kw_only=True):
    link: str


class AgentShown(Struct, frozen=True, kw_only=True):
    id: str
    name: str


class Person(Struct, frozen=True, kw_only=True):
    id: str
    name: str
    here: bool  # whether they look at the room now


class People(Struct, frozen=True, kw_only=True):
    people: tuple[Person, ...]


class Me(Struct, frozen=True, kw_only=True):
    id: str
    name: str
    role: PlaceRole


class Upload(Struct, frozen=True, kw_only=True):
    """What may be uploaded: anything, and how much of it."""

    bytes: int  # of one file
    per_message: int  # files
    inline: tuple[str, ...]  # types that are shown in the page; others are downloads


class RoomInside(Struct, frozen=True, kw_only=True):
    """A room as those who are in it see it."""

    id: str
    title: str
    kind: Literal["direct", "group", "channel"]
    agent: AgentShown
    agents: tuple[AgentBrief, ...] = ()  # who are in the room, where there are several
    people: tuple[Person, ...]
    seats: int
    joined: int
    ends_at: datetime
    may_upload: Upload
    text: int  # characters of a message, at most
    me: Me | None  # None: they only look


class ReactionShown(Struct, frozen=True, kw_only=True):
    person: str
    name: str
    emojis: tuple[str, ...]


class RoomMessage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    number: int  # its key
    message: Message
    turns: tuple[Turn, ...] = ()  # of the model that wrote it: thoughts, tools and their results
    reactions: tuple[ReactionShown, ...] = ()


class RoomTool(Struct, frozen=True, kw_only=True, omit_defaults=True):
    step: int
    number: int  # of the call within its step
    call: ToolCall
    began_at: datetime
    result: ToolResult | None = None
    ended_at: datetime | None = None


class AnswerShown(Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: str
    agent: str = ""  # that answers
    target: str  # the id of the message that it answers
    status: RunStatus
    began_at: datetime
    ended_at: datetime | None = None


class RoomRun(Struct, frozen=True, kw_only=True, omit_defaults=True):
    order: int  # its key
    run: AnswerShown
    tools: tuple[RoomTool, ...] = ()


class RoomDelivery(Struct, frozen=True, kw_only=True, omit_defaults=True):
    order: int  # its key
    id: str
    kind: DeliveryKind
    status: Literal["waiting", "sent", "doubtful", "dropped"]
    made_at: datetime
    text: str = ""  # of one that is no message of the room
    run_id: str | None = None
    message_id: str | None = None


class RoomChange(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What changed in a room; see `engine.view.ViewChange`."""

    event: int
    anew: bool = False
    count: int
    beginning: int
    messages: tuple[RoomMessage, ...] = ()
    runs: tuple[RoomRun, ...] = ()
    deliveries: tuple[RoomDelivery, ...] = ()


class RoomPage(Struct, frozen=True, kw_only=True):
    """Messages of a room, with the answers that wrote them."""

    messages: tuple[RoomMessage, ...]
    runs: tuple[RoomRun, ...]
    deliveries: tuple[RoomDelivery, ...]
    event: int  # the stream goes on behind it
    count: int
    beginning: int
    before: int | None  # asks for the page before; None: there is none


def room_shown(room: Room, at: datetime) -> RoomShown:
    """Return a room as its owner sees it."""
    state: RoomState = "revoked" if room.revoked_at else "open" if room.is_open(at) else "ended"
    return RoomShown(
        id=room.id,
        title=room.title,
        people=room.people,
        joined=room.joined,
        made_at=room.made_at,
        ends_at=room.ends_at,
        revoked_at=room.revoked_at,
        cap=room.cap,
        state=state,
        place=place_key(room.place),
    )


def people_shown(guests: Sequence[Guest], here: Collection[str]) -> tuple[Person, ...]:
    """Return the people of a room; *here* are the ids of those who look at it."""
    return tuple(Person(id=one.id, name=one.name, here=one.id in here) for one in guests)


def in_room(change: ViewChange) -> RoomChange:
    """Return a change, as `inspector.views.shown_change` shows it, for those in the room."""
    return RoomChange(
        event=change.event,
        anew=change.anew,
        count=change.count,
        beginning=change.beginning,
        messages=tuple(map(_message, change.messages)),
        runs=tuple(map(_run, change.runs)),
        deliveries=tuple(map(_delivery, change.deliveries)),
    )


def page_of_change(change: RoomChange, before: int | None) -> RoomPage:
    """Return a page of messages, which were read like a change."""
    return RoomPage(
        messages=change.messages,
        runs=change.runs,
        deliveries=change.deliveries,
        event=change.event,
        count=change.count,
        beginning=change.beginning,
        before=before,
    )


def _message(one: ViewMessage) -> RoomMessage:
    reactions = tuple(ReactionShown(person=r.author.id, name=r.author.name, emojis=r.emojis) for r in one.reactions)
    return RoomMessage(number=one.number, message=one.message, turns=one.turns, reactions=reactions)


def _run(one: RunProgress) -> RoomRun:
    run = one.run
    shown = AnswerShown(
        id=run.id,
        agent=run.agent,
        target=run.target,
        status=run.status,
        began_at=run.began_at,
        ended_at=run.ended_at,
    )
    tools = (
        RoomTool(
            step=tool.step,
            number=tool.number,
            call=tool.call,
            began_at=tool.began_at,
            result=tool.result,
            ended_at=tool.ended_at,
        )
        for tool in one.tools
    )
    return RoomRun(order=one.order, run=shown, tools=tuple(tools))


def _delivery(one: ViewDelivery) -> RoomDelivery:
    return RoomDelivery(
        order=one.order,
        id=one.id,
        kind=one.kind,
        status=one.status,
        made_at=one.made_at,
        text=one.text,
        run_id=one.run_id,
        message_id=one.message_id,
    )
