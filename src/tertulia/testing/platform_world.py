"""PlatformWorld: the service for `platform_contract`, as people use it; the author of a platform implements it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import count
from typing import Literal

from msgspec import Struct

from tertulia.engine.store_protocols import StoreProtocol
from tertulia.messages import Author, Place
from tertulia.platform import Platform

Fault = Literal[
    "busy",  # the service refuses a message for now, as with a 429
    "refused",  # it refuses a message for good
    "request lost",  # the connection ends before the service has the message
    "receipt lost",  # it ends after people see the message, and before the platform knows
]


class Missing(Exception):
    """The service or its world cannot do what a test needs; the test is skipped under that name."""


class Shown(Struct, frozen=True, kw_only=True):
    """A message of the bot as people see it now."""

    id: str
    text: str
    reply_to: str | None = None
    media: int = 0  # how many photos and files it has


class PlatformWorld(ABC):
    """A chat service for the tests of its platform. Tests that need a method you did not write are skipped."""

    timeout = 5.0  # seconds that a test waits for something to happen, and then fails

    def __init__(self) -> None:
        self._people = count(101)

    async def open(self) -> None:  # noqa: B027 (a world that needs nothing writes nothing)
        """Start the service."""

    async def close(self) -> None:  # noqa: B027
        """Stop the service."""

    @abstractmethod
    def platform(self) -> Platform:
        """Return a new instance of the platform under test, as after a restart; the service keeps its state."""

    def platform_on(self, store: StoreProtocol) -> Platform:
        """Return `platform()`, for a process with this store: people of the page read it."""
        return self.platform()

    @abstractmethod
    async def direct(self, author: Author) -> Place:
        """Return the direct chat of a person with the bot."""

    @abstractmethod
    async def post(self, place: Place, author: Author, text: str) -> str:
        """Let somebody post a message; return its id."""

    @abstractmethod
    async def shown(self, place: Place) -> Sequence[Shown]:
        """Return the messages of the bot that people see in a place now, the oldest first."""

    def as_shown(self, text: str) -> str:
        """Return what people see of a text of the bot, where its markup is not shown as it stands."""
        return text

    def as_posted(self, text: str) -> str:
        """Return what the service makes of a text that somebody posts, where it removes characters."""
        return text

    async def person(self, name: str) -> Author:
        """Return a person who has an account on the service."""
        return Author(id=str(next(self._people)), name=name)

    async def group(self) -> Place:
        """Return a group that the bot is in."""
        raise Missing("group")

    async def post_album(self, place: Place, author: Author, texts: Sequence[str]) -> Sequence[str]:
        """Let somebody post messages as one album; return their ids."""
        raise Missing("post_album")

    async def post_photo(self, place: Place, author: Author, data: bytes) -> str:
        """Let somebody post a photo, a PNG; return the id of the message."""
        raise Missing("post_photo")

    async def reply(self, place: Place, author: Author, text: str, message_id: str) -> str:
        """Let somebody post a message that quotes another one; return its id."""
        raise Missing("reply")

    async def edit(self, place: Place, message_id: str, text: str) -> None:
        """Let the author of a message edit it."""
        raise Missing("edit")

    async def delete(self, place: Place, message_id: str) -> None:
        """Let somebody delete a message."""
        raise Missing("delete")

    async def react(self, place: Place, message_id: str, author: Author, emojis: Sequence[str]) -> None:
        """Let somebody show these reactions to a message, and no others."""
        raise Missing("react")

    async def command(self, place: Place, author: Author, line: str) -> None:
        """Let somebody give a command, as `/help`."""
        raise Missing("command")

    async def promote(self, place: Place, author: Author) -> None:
        """Make somebody an administrator of a group."""
        raise Missing("promote")

    async def migrate(self, place: Place) -> Place:
        """Give a group another id; return the group with that id."""
        raise Missing("migrate")

    async def leave(self, place: Place) -> None:
        """Remove the bot from a group."""
        raise Missing("leave")

    async def stop(self, place: Place, author: Author) -> None:
        """Let somebody stop the answer that the bot is writing, as with a button."""
        raise Missing("stop")

    async def previews(self, place: Place) -> Sequence[str]:
        """Return the previews of answers that people saw; an empty text means that only typing was shown."""
        raise Missing("previews")

    async def disconnect(self) -> None:
        """End every connection to the platform."""
        raise Missing("disconnect")

    async def deliver_again(self) -> None:
        """Deliver to the platform again what was delivered before."""
        raise Missing("deliver_again")

    async def echo(self, place: Place, message_id: str) -> None:
        """Let the platform see a message of the bot arrive, as its service shows it to the bot itself."""
        raise Missing("echo")

    async def fail(self, *faults: Fault) -> None:
        """Let the next requests to send fail, one after another."""
        raise Missing("fail")
