"""The seam between the engine and a chat service: `Platform`, what happens there, and what is sent there."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, Protocol, assert_never

from msgspec import Struct, ValidationError, convert, to_builtins
from msgspec.structs import replace

from palaver.errors import InvalidValue
from palaver.messages import Author, Message, Place, Reply

PlaceRole = Literal["owner", "administrator", "member"]
DeliveryKind = Literal["answer", "error", "notice", "task", "draft"]


class Capabilities(Struct, frozen=True, kw_only=True):
    """What a chat service can do. The defaults fit a service that can only send."""

    idempotency_window: timedelta = timedelta(0)  # how long a delivery id sent twice is one message; 0: no keys
    edits: bool = False  # whether `Delivery.edits` is understood
    previews: bool = False  # whether `preview` shows something
    typing: bool = False  # whether `preview` with an empty text shows that we write
    drafts: bool = False  # whether an answer is shown as a message that is edited while it is written; needs `edits`
    preview_interval: float = 1.5  # seconds between two previews, or two edits of a draft
    length: int | None = None  # characters of one message; None: no limit

    def __post_init__(self) -> None:
        if self.drafts and not self.edits:
            raise InvalidValue("Capabilities(drafts=True) needs edits=True: the answer edits its draft")
        if self.length is not None and self.length < 1:
            raise InvalidValue(f"a message has room for one character or more, not for length={self.length}")


class Delivery(Struct, frozen=True, kw_only=True):
    """One message to send."""

    id: str  # the idempotency key: the same delivery keeps it in every attempt
    run_id: str | None  # the run that wrote it; None for what no run wrote
    kind: DeliveryKind
    reply: Reply
    edits: str | None = None  # the id of our own message that this one replaces
    streamed: bool = False  # the deltas of its run said all of it; not known any more after a restart


class Received(Struct, frozen=True, kw_only=True, tag_field="kind", tag="received"):
    """Somebody posted a message."""

    message: Message


class Edited(Struct, frozen=True, kw_only=True, tag_field="kind", tag="edited"):
    """Somebody edited a message; it is given whole, as it is now."""

    message: Message


class Deleted(Struct, frozen=True, kw_only=True, tag_field="kind", tag="deleted"):
    """A message was deleted."""

    place: Place
    message_id: str


class Reacted(Struct, frozen=True, kw_only=True, tag_field="kind", tag="reacted"):
    """Somebody changed their reactions to a message."""

    place: Place
    message_id: str
    author: Author
    emojis: tuple[str, ...]  # all that they show now; empty: none any more
    at: datetime | None = None


class Commanded(Struct, frozen=True, kw_only=True, tag_field="kind", tag="commanded"):
    """Somebody gave a command, as `/forget peanuts`. It is no part of the conversation."""

    message: Message  # as it was posted
    name: str  # without the slash, lower case
    argument: str = ""


class PlaceMigrated(Struct, frozen=True, kw_only=True, tag_field="kind", tag="place migrated"):
    """A place goes on under another id."""

    old: Place
    new: Place


class PlaceLeft(Struct, frozen=True, kw_only=True, tag_field="kind", tag="place left"):
    """The agent can no longer write in a place: it was removed, or blocked."""

    place: Place


class Stopped(Struct, frozen=True, kw_only=True, tag_field="kind", tag="stopped"):
    """Somebody stopped the answer that was being written, as with a button."""

    place: Place
    author: Author | None = None  # who may stop it like `/stop`: they asked, or administer the place; None: it stops


Change = Received | Edited | Deleted | Reacted | Commanded | PlaceMigrated | PlaceLeft | Stopped


def type_fault(value: object, kind: Any) -> str | None:
    """What keeps *value* from being a *kind* with a value of its type in each field; None where nothing does.

    Python holds nobody to the types of a struct, and what is stored with another one cannot be read again.
    """
    if not isinstance(value, kind):
        return f"a value of the type {type(value).__name__} cannot be there"  # its words are nothing for a log
    try:
        convert(to_builtins(value, builtin_types=(bytes, datetime)), type(value))
    except (ValidationError, ValueError, TypeError, RecursionError) as error:
        return f"{type(value).__name__}: {error}"
    return None


def places_of(change: Change) -> tuple[Place, ...]:
    """Return the places that a change is about."""
    match change:
        case Received(message=message) | Edited(message=message) | Commanded(message=message):
            return (message.place,)
        case PlaceMigrated(old=old, new=new):
            return old, new
        case Deleted(place=place) | Reacted(place=place) | PlaceLeft(place=place) | Stopped(place=place):
            return (place,)
        case _:
            assert_never(change)


class Update(Struct, frozen=True, kw_only=True):
    """What a service sent, as it is stored."""

    key: str
    raw: bytes


class Inbox(Protocol):
    """What a platform tells the engine. Everything is on the disk when a call returns."""

    async def apply(self, changes: Sequence[Change], *, key: str, raw: bytes | None = None) -> bool:
        """Store and apply all that one update means, in one transaction. Return whether the update was new.

        *key* is the service's id of the update, unique for the platform's name: the same key again changes nothing.
        *raw* is the update as it came, stored with it. An update that could not be read has no changes: it
        is stored unread, and applied once the same key comes with changes.
        """
        ...

    async def last(self, place: Place) -> Message | None:
        """The newest message that was received in a place."""
        ...

    async def unread(self) -> Sequence[Update]:
        """The updates that were stored without changes, the oldest first."""
        ...


class Platform(ABC):
    """An account on a chat service. A subclass gives `name` and `me`, and writes `run` and `send`."""

    name: str  # of the account and its places: `Place.platform`; unique in an engine
    me: Author  # our account; asked for after `open`
    capabilities: Capabilities = Capabilities()

    @property
    def service(self) -> str:
        """The service whose accounts people have: those of one service are the same people for all its platforms."""
        return self.name

    async def open(self) -> None:  # noqa: B027 (a platform that needs nothing writes nothing)
        """Get ready to send, and learn who `me` is. It is awaited before everything else."""

    @abstractmethod
    async def run(self, inbox: Inbox) -> None:
        """Connect, and apply what happens until cancelled. Reconnect by itself."""

    @abstractmethod
    async def send(self, delivery: Delivery) -> str:
        """Send a message; return its id on the service.

        Where `capabilities.edits`, a delivery with `edits` replaces our message of that id instead; that it says this
        already counts as sent.

        Raise `errors.NotSent` if it certainly did not go out and may be tried again, `errors.SendRefused` if it never
        will. Let any other error propagate: the message may have arrived.
        """

    def split(self, reply: Reply) -> Sequence[Reply]:
        """Split a reply into messages of the service. Pure: the same reply is always split alike."""
        return split_reply(reply, self.capabilities.length)

    async def preview(self, place: Place, run_id: str, text: str) -> None:  # noqa: B027
        """Show the answer so far while it is being written; best effort. An empty text: show that we write."""

    async def role(self, place: Place, author: Author) -> PlaceRole:
        """Return an author's role. By default a direct chat is the person's own; elsewhere all are members."""
        return "owner" if place.kind == "direct" else "member"


def split_reply(reply: Reply, length: int | None) -> tuple[Reply, ...]:
    """Split the text of a reply at paragraphs, lines or blanks; the first part quotes, the last one has the media."""
    if length is None or len(reply.text) <= length:
        return (reply,)
    *texts, last = split_text(reply.text, length)
    parts = [replace(reply, text=text, media=()) for text in texts]
    first, *rest = [*parts, replace(reply, text=last)]
    return first, *(replace(part, reply_to=None) for part in rest)


def split_text(text: str, length: int) -> list[str]:
    """Split *text* into pieces of at most *length* characters; only the separator between two is left out."""
    pieces: list[str] = []
    while len(text) > length:
        end, separator = _end_of_piece(text, length)
        pieces.append(text[:end])
        text = text[end:].removeprefix(separator)
    return [piece for piece in (*pieces, text) if piece.strip()] or [text]


def _end_of_piece(text: str, length: int) -> tuple[int, str]:
    """Where a piece of *text* ends, after a third of *length* if it can, and what separates it from the next."""
    for separator in ("\n\n", "\n", " "):
        end = text.rfind(separator, length // 3, length + len(separator))
        if end > 0:
            return end, separator
    return length, ""
