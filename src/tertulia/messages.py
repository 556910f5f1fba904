"""Messages, their authors and places: the values of platforms. Pure."""

from datetime import datetime
from typing import Literal

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from tertulia.characters import is_blank
from tertulia.errors import InvalidValue
from tertulia.parts import Media, Part, joined_text

PlaceKey = tuple[str, str, str | None]


class Place(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A place where people talk: a direct chat, a group, a channel, or a thread of one."""

    platform: str
    id: str
    kind: Literal["direct", "group", "channel"]
    thread: str | None = None
    title: str = ""
    service: str = ""  # whose accounts the people have; empty: the platform is a service of its own

    @property
    def author_namespace(self) -> str:
        """The namespace in which author ids are unique. Our accounts on one service share it."""
        return self.service or self.platform

    @property
    def key(self) -> PlaceKey:
        """The identity of the place: platform, id and thread."""
        return self.platform, self.id, self.thread


class Author(Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: str
    name: str
    username: str | None = None
    persona: str | None = None  # set when the author is an agent
    unknown: bool = False  # whether the account is gone, or nobody knows whose it was; the id may be made up
    language: str = ""  # of their client, as the service says: an IETF tag such as `uk`; stored apart from the name

    @property
    def is_person(self) -> bool:
        """Whether facts may be learned about the author: not an agent, not an unknown account, and with an id."""
        return self.persona is None and not self.unknown and not is_blank(self.id)


class Quote(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The message that a message replies to, as far as it is known."""

    message_id: str
    author: Author | None = None
    parts: tuple[Part, ...] = ()
    excerpt: str | None = None  # the passage that was marked, when only a part was quoted
    forwarded_from: Author | None = None  # whose words the parts are, where the author only forwarded them

    @property
    def inline_text(self) -> str:
        """The quoted texts, separated by spaces: a quote is shown on one line."""
        return joined_text(self.parts, " ")

    def beside(self, *, deleted: bool | None) -> "Quote | None":
        """Return what a reply shows of the quote: all of it, or the marked passage where the message is shown too.

        *deleted* says whether the message, which stands beside the reply, was deleted; None: it does not stand there.
        """
        if deleted is None:
            return self
        return replace(self, parts=()) if self.excerpt and not deleted else None

    def update_from(self, message: "Message") -> "Quote":
        """Return the quote with the current parts of *message*, which it quotes: edited since, or deleted."""
        parts = () if message.deleted else message.parts
        excerpt = self.excerpt if self.excerpt and self.excerpt in joined_text(parts, " ") else None
        origin = None if message.deleted else message.forwarded_from
        return Quote(
            message_id=self.message_id, author=message.author, parts=parts, excerpt=excerpt, forwarded_from=origin
        )


class Message(Struct, frozen=True, kw_only=True, omit_defaults=True, dict=True):
    """One message in its current version. Its turn is cached with it (`value_cache`)."""

    id: str
    place: Place
    author: Author
    sent_at: datetime | None = None  # aware
    parts: tuple[Part, ...] = ()
    reply_to: Quote | None = None
    album: str | None = None  # the id that messages sent as one album share
    forwarded_from: Author | None = None  # whose words the parts are, where the author only forwarded them
    edited_at: datetime | None = None
    deleted: bool = False
    doubtful: bool = False  # of the agent's own: whether it is not known if people received all of it
    agent: str | None = None  # the agent of this engine that wrote it; "": the default one; None: none of them

    def __post_init__(self) -> None:
        if not isinstance(self.place, Place):
            raise InvalidValue(f"message {self.id!r}: place must be of type Place, not {self.place!r}")
        if not isinstance(self.author, Author):
            raise InvalidValue(f"message {self.id!r}: author must be of type Author, not {self.author!r}")
        if self.reply_to is not None and not isinstance(self.reply_to, Quote):
            raise InvalidValue(f"message {self.id!r}: reply_to must be of type Quote, not {self.reply_to!r}")
        if self.reply_to is not None and self.reply_to.message_id == self.id:
            force_setattr(self, "reply_to", None)  # it would be shown as a quote of itself
        if self.forwarded_from is not None and not isinstance(self.forwarded_from, Author):
            origin = self.forwarded_from
            raise InvalidValue(f"message {self.id!r}: forwarded_from must be of type Author, not {origin!r}")
        if isinstance(self.parts, str):
            raise InvalidValue(f"message {self.id!r}: parts must be parts, as in (Text(text={self.parts!r}),)")

    @property
    def text(self) -> str:
        """The texts of the message, each on a line of its own; media have none."""
        return joined_text(self.parts, "\n")


NOBODY = Author(id="", name="")  # the author of a placeholder


def placeholder_of(message: Message) -> Message:
    """Return the placeholder of a hidden message: its id and place, deleted, without an author."""
    return Message(id=message.id, place=message.place, author=NOBODY, deleted=True)


class Reply(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message that we send."""

    place: Place
    text: str
    reply_to: str | None = None
    media: tuple[Media, ...] = ()
