"""Messages and memory of another program on their way into a store. Pure."""

from datetime import datetime

from msgspec import Struct

from tertulia.memory.values import Fact
from tertulia.messages import Author, Message, Place

EXPORT_ID = "export:"  # before ids that only the account knows which made the export
UNKNOWN, SOMEBODY = "unknown", "somebody"  # the id and the name of an author of whom nothing is known
EMPTY = "messages without content"
UNREADABLE = "entries without an id or a time"


class ImportedReaction(Struct, frozen=True, kw_only=True):
    """What one person shows under a message."""

    author: Author
    emojis: tuple[str, ...]
    at: datetime | None = None


class ImportedMessage(Struct, frozen=True, kw_only=True):
    """A message that was sent before the bot received any, or while it did not run."""

    message: Message
    own: bool = False  # whether our bot sent it
    reactions: tuple[ImportedReaction, ...] = ()
    has_bots_id: bool = True  # whether the bot knows it by the same id; ids of small groups differ between accounts


class Skipped(Struct, frozen=True, kw_only=True):
    """Messages that are not imported, and the reason."""

    reason: str
    title: str = ""  # of their chat, where the whole chat is left out
    count: int = 1


class ImportedDescription(Struct, frozen=True, kw_only=True):
    """What another program's model said that media show."""

    unique_id: str
    words: str


class ImportedEpisode(Struct, frozen=True, kw_only=True):
    """A part of a conversation that another program summarised."""

    id: str
    place: Place  # without its thread, which that of the messages is
    message_ids: tuple[str, ...]
    topic: str
    summary: str
    people: tuple[str, ...] = ()  # ids of authors
    tags: tuple[str, ...] = ()
    importance: float = 0.5  # from 0 to 1


class ImportedBan(Struct, frozen=True, kw_only=True):
    """A person whom another program does not answer."""

    platform: str
    author_id: str
    until: datetime | None = None  # None: for good


Remembered = Fact | ImportedEpisode | ImportedBan  # is stored after the messages, to which it refers
Imported = ImportedMessage | ImportedDescription | Remembered | Skipped
