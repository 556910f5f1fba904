"""Platform: the interface to a chat service, the changes that it reports, and the deliveries that it sends."""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal, Protocol, assert_never

from msgspec import Struct
from msgspec.structs import replace

from tertulia.errors import InvalidValue, MediaUnavailable
from tertulia.markdown import split_text
from tertulia.messages import Author, Message, Place, Quote, Reply
from tertulia.parts import Media

PlaceRole = Literal["owner", "administrator", "member"]
CommandAudience = Literal["everyone", "administrators", "owners"]
COMMAND = re.compile(r"/(?P<name>[a-z]\w*)(?:@(?P<bot>\S+))?(?:\s+(?P<argument>.*))?", re.IGNORECASE | re.DOTALL)
DeliveryKind = Literal["answer", "error", "notice", "task", "draft"]


class Capabilities(Struct, frozen=True, kw_only=True):
    """What a chat service can do. The defaults fit a service that can only send."""

    idempotency_window: timedelta = timedelta(0)  # how long the service recognizes a delivery id; 0: never
    edits: bool = False  # whether `Delivery.edits` works
    previews: bool = False  # whether `preview` shows something
    typing: bool = False  # whether `preview` with an empty text shows that we are typing
    drafts: bool = False  # whether an answer is a message that is edited while it streams; needs `edits`
    preview_interval: float = 1.5  # seconds between two previews, or two edits of a draft
    length: int | None = None  # characters of one message; None: no limit
    media: frozenset[str] = frozenset()  # kinds of `Reply.media` that `send` takes; "document": all that have bytes

    def __post_init__(self) -> None:
        if self.drafts and not self.edits:
            raise InvalidValue("Capabilities(drafts=True) needs edits=True: the answer edits its draft")
        if self.length is not None and self.length < 1:
            raise InvalidValue(f"Capabilities(length={self.length}) must be 1 or more, or None for no limit")


class Speaking(Struct, frozen=True, kw_only=True):
    """The agent that says a message."""

    name: str
    avatar: str = ""  # a picture of it, as a path or an address; empty: none


class Delivery(Struct, frozen=True, kw_only=True):
    """One message to send."""

    id: str  # the idempotency key: the same in every attempt
    run_id: str | None  # the run that wrote it, if any
    kind: DeliveryKind
    reply: Reply
    edits: str | None = None  # the id of our message that this one replaces
    streamed: bool = False  # whether the deltas of its run had all of its text; false after a restart
    plain: bool = False  # whether `send` refused it: without quote and media, to be sent without markup
    agent: Speaking | None = None  # who says it, where an engine has several agents
    answers: Quote | None = None  # what it quotes: its id, author and words, for a platform that cannot quote


class Received(Struct, frozen=True, kw_only=True, tag_field="kind", tag="received"):
    """Somebody posted a message. A platform that knows which agents it is for says their names."""

    message: Message
    addressed: tuple[str, ...] | None = None  # the names, in the order in which they answer; (): nobody; None: unknown


class Edited(Struct, frozen=True, kw_only=True, tag_field="kind", tag="edited"):
    """Somebody edited a message; `message` is its new version."""

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
    emojis: tuple[str, ...]  # all of them; empty: all were removed
    at: datetime | None = None


class Commanded(Struct, frozen=True, kw_only=True, tag_field="kind", tag="commanded"):
    """Somebody sent a command, such as `/forget peanuts`. It is no message of the conversation."""

    message: Message  # as it was posted
    name: str  # without the slash, lower case
    argument: str = ""
    agent: str = ""  # whose account it names; empty: it is for the place. The engine sets it


class CommandInfo(Struct, frozen=True, kw_only=True):
    """A command that the agent knows, for clients that suggest commands."""

    name: str  # without the slash
    who: CommandAudience  # everyone may give it, or administrators of a group, or owners of the bot
    descriptions: dict[str, str]  # by language, as in `Author.language`; that under "" is for all others


class Delivered(Struct, frozen=True, kw_only=True, tag_field="kind", tag="delivered"):
    """A delivery of ours arrived. It settles one whose receipt is lost, or still to come.

    Where the service does not tell ids of deliveries, our own message as `Received` says the same by its text.
    """

    place: Place
    delivery_id: str
    message_id: str


class PlaceMigrated(Struct, frozen=True, kw_only=True, tag_field="kind", tag="place migrated"):
    """A place has a new id."""

    old: Place
    new: Place


class PlaceJoined(Struct, frozen=True, kw_only=True, tag_field="kind", tag="place joined"):
    """The agent can write in a place: it was added, or is no longer blocked."""

    place: Place


class PlaceLeft(Struct, frozen=True, kw_only=True, tag_field="kind", tag="place left"):
    """The agent can no longer write in a place and its threads: it was removed, or blocked."""

    place: Place


class Stopped(Struct, frozen=True, kw_only=True, tag_field="kind", tag="stopped"):
    """Somebody stopped the answer that streams, for example with a button."""

    place: Place
    author: Author | None = None  # must be who asked, or an administrator, as for `/stop`; None: not checked


Change = (
    Received | Edited | Deleted | Reacted | Commanded | Delivered | PlaceMigrated | PlaceJoined | PlaceLeft | Stopped
)


def places_of(change: Change) -> tuple[Place, ...]:
    """Return the places that a change is about."""
    match change:
        case Received(message=message) | Edited(message=message) | Commanded(message=message):
            return (message.place,)
        case PlaceMigrated(old=old, new=new):
            return old, new
        case Deleted(place=place) | Reacted(place=place) | Delivered(place=place) | Stopped(place=place):
            return (place,)
        case PlaceJoined(place=place) | PlaceLeft(place=place):
            return (place,)
        case _:
            assert_never(change)


class Update(Struct, frozen=True, kw_only=True):
    """An update of a service, as it is stored."""

    key: str
    raw: bytes


class Inbox(Protocol):
    """Where a platform reports changes. They are on disk when a call returns."""

    async def apply(self, changes: Sequence[Change], *, key: str, raw: bytes | None = None) -> bool:
        """Store and apply the changes of one update, in one transaction. Return whether the update was new.

        *key* is the id of the update on the service, unique for the name of the platform: the same key again changes
        nothing. *raw* is the update as received, stored with it. An update that could not be decoded has no changes: it
        is stored as unread, and applied when the same key comes with changes.
        """
        ...

    async def last(self, place: Place) -> Message | None:
        """Return the last message that was received in a place."""
        ...

    async def unread(self) -> Sequence[Update]:
        """Return the updates that were stored without changes, the oldest first."""
        ...


class Trouble(Struct, frozen=True, kw_only=True):
    """What keeps a platform from its service."""

    since: datetime
    why: str  # without keys
    retry_at: datetime  # when it is tried again


class Platform(ABC):
    """An account on a chat service. A subclass gives `name` and `me`, and writes `run` and `send`."""

    name: str  # of the account and its places: `Place.platform`; unique in an engine
    me: Author  # our account; asked for after `open`
    capabilities: Capabilities = Capabilities()
    trouble: Trouble | None = None  # that one has which reconnects by itself; the engine sets it where `run` fails

    @property
    def service(self) -> str:
        """The service whose accounts people have: an account is the same person on all platforms of a service."""
        return self.name

    async def open(self) -> None:  # noqa: B027 (a platform that needs nothing writes nothing)
        """Prepare to send, and set `me`. It is awaited first."""

    async def close(self) -> None:  # noqa: B027
        """Release what `open` has taken. It is awaited last, also where `open` failed."""

    @abstractmethod
    async def run(self, inbox: Inbox) -> None:
        """Connect, and apply changes until cancelled; reconnect if needed."""

    @abstractmethod
    async def send(self, delivery: Delivery) -> str:
        """Send a message; return its id on the service.

        With `capabilities.edits`, a delivery with `edits` replaces our message of that id instead. If the message has
        this text already, the delivery counts as sent.

        Raise `errors.NotSent` if the message was certainly not sent and can be retried, `errors.SendRefused` if it
        never can be sent, with `left=True` if nothing can be sent to this place. What is refused comes once more as
        `plain`. Let any other error propagate: the message may have arrived.
        """

    async def fetch(self, media: Media, *, limit: int) -> bytes:
        """Return the bytes of *media* of a message, which has a `file_id`: at most *limit* of them.

        Raise `errors.MediaUnavailable` if they cannot be had, with `for_now=True` if they can be had later.
        """
        raise MediaUnavailable(f"{self.name} gives no files")

    async def sticker_fault(self, set_name: str, name: str) -> str | None:
        """Return why the sticker that a model names cannot be sent, in words for it; None if it can, or nobody knows.

        It is asked when the block is read. A sticker that cannot be sent after all goes as its name, which is an emoji.
        """
        return None

    def received(self, message: Message) -> "Received | Commanded":
        """Return a new message as a change: `/forget peanuts` is a command, anything else a message.

        `/forget@name` is a command only if `me` has that username. What is forwarded is a message.
        """
        found = COMMAND.fullmatch(message.text.strip()) if message.forwarded_from is None else None
        if found is None or (found["bot"] and found["bot"].lower() != (self.me.username or "").lower()):
            return Received(message=message)
        return Commanded(message=message, name=found["name"].lower(), argument=found["argument"] or "")

    def split(self, reply: Reply) -> Sequence[Reply]:
        """Split a reply into messages of the service. Pure: the same reply gives the same messages."""
        return split_reply(reply, self.capabilities.length)

    def is_shared(self, place: Place) -> bool:
        """Return whether all accounts on the service know a place, and the messages in it, by the same ids."""
        return False

    def capabilities_in(self, place: Place) -> Capabilities:
        """Return what can be done in a place, where that is not the same in all of them."""
        return self.capabilities

    async def preview(self, place: Place, run_id: str, text: str) -> None:  # noqa: B027
        """Show the answer so far while it streams; best effort. An empty text: show that we are typing."""

    async def announce(self, commands: Sequence[CommandInfo], *, owners: Sequence[str]) -> None:  # noqa: B027
        """Tell the service which commands there are, so that clients suggest them; best effort, after `open`.

        *owners* are the ids of the accounts, on this service, that own the bot.
        """

    async def role(self, place: Place, author: Author) -> PlaceRole:
        """Return the role of an author. By default: owner of a direct chat, member of any other place."""
        return "owner" if place.kind == "direct" else "member"


ALL_MEDIA = frozenset("photo sticker voice audio video video_note animation document".split())


def with_media_as_text(reply: Reply, kinds: frozenset[str]) -> Reply:
    """Return the reply with a link, or words, in place of media that a platform with these kinds cannot send."""
    sent = tuple(one for one in reply.media if _is_sent(one, kinds))
    if len(sent) == len(reply.media):
        return reply
    words = [one.link or one.caption for one in reply.media if not _is_sent(one, kinds)]
    return replace(reply, text="\n\n".join(filter(None, [reply.text, *words])), media=sent)


def _is_sent(media: Media, kinds: frozenset[str]) -> bool:
    return media.media_kind in kinds or ("document" in kinds and bool(media.data or media.sha256))


def split_reply(reply: Reply, length: int | None) -> tuple[Reply, ...]:
    """Split the text of a reply by `split_text`; the first part quotes, the last one has the media."""
    if length is None or len(reply.text) <= length:
        return (reply,)
    *texts, last = split_text(reply.text, length)
    parts = [replace(reply, text=text, media=()) for text in texts]
    first, *rest = [*parts, replace(reply, text=last)]
    return first, *(replace(part, reply_to=None) for part in rest)
