"""The rooms of the page as a platform: people write by its endpoints, and read what the store has.

A message of the agent is sent once the store has its receipt, since all that people see is read from there. Its id is
that of its delivery, so sending it again is sending the same message. The answer to a command is no message, and its
text is not stored once it is sent: it is told for a while from memory.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from hashlib import sha256

from tertulia.engine.rooms import PLATFORM, Guest, RoomStore
from tertulia.errors import MediaUnavailable, SendRefused
from tertulia.media.decoding import Decoder
from tertulia.media.fetcher import checked_file
from tertulia.media.values import MediaOptions, MediaStore, StoredFile
from tertulia.messages import Author, Place
from tertulia.parts import Media
from tertulia.platform import Capabilities, Delivery, Inbox, PlaceLeft, PlaceRole, Platform

OWNER = "owner"  # the id of the page's owner, in all rooms
AGENT = "agent"
TOLD = timedelta(minutes=10)  # how long the answer to a command is told
MOST_TOLD = 1_000  # of these
INTERVAL = 1.0  # seconds between two looks for rooms that have ended


class RoomPlatform(Platform):
    """The account of the bot in all rooms."""

    name = PLATFORM
    capabilities = Capabilities(idempotency_window=timedelta.max, media=frozenset({"document"}))

    def __init__(
        self,
        rooms: RoomStore,
        media: MediaStore,
        *,
        now: Callable[[], datetime],
        name: str = "",
        largest: int = MediaOptions().largest,
    ) -> None:
        self.rename(name)
        self.largest = largest  # bytes of a file
        self.inbox: Inbox | None = None  # None: the bot does not run
        self._rooms = rooms
        self._media = media
        self._now = now
        self._decoder = Decoder()
        self._look = asyncio.Event()
        self._told: dict[str, tuple[datetime, str]] = {}  # answers to commands, by their deliveries

    def rename(self, name: str) -> None:
        """Set what the agent is called in rooms."""
        self.me = Author(id=AGENT, name=name or AGENT)

    async def close(self) -> None:
        await self._decoder.close()

    async def run(self, inbox: Inbox) -> None:
        """Take what people write, and leave the rooms that have ended."""
        self.inbox = inbox
        try:
            while True:
                for room in await self._rooms.over(at=self._now()):
                    await inbox.apply([PlaceLeft(place=room.place)], key=f"left {room.id} {self._now().isoformat()}")
                self._look.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._look.wait(), INTERVAL)
        finally:
            self.inbox = None

    def look(self) -> None:
        """Look for rooms that have ended, now."""
        self._look.set()

    async def send(self, delivery: Delivery) -> str:
        room = await self._rooms.get(delivery.reply.place.id)
        if room is None or not room.is_open(self._now()):
            raise SendRefused("the room has ended", left=True)
        if delivery.kind == "notice" and delivery.run_id is None:
            self._told[delivery.id] = self._now(), delivery.reply.text
            if len(self._told) > MOST_TOLD:
                del self._told[next(iter(self._told))]
        return delivery.id

    def told(self, delivery_id: str) -> str:
        """Return the text of the answer to a command that was sent a while ago; empty for anything else."""
        at, text = self._told.get(delivery_id, (self._now(), ""))
        return text if self._now() - at < TOLD else ""

    async def role(self, place: Place, author: Author) -> PlaceRole:
        if author.id == OWNER:
            return "administrator"
        return await super().role(place, author)

    async def fetch(self, media: Media, *, limit: int) -> bytes:
        file = await self.file(media.file_id or "")
        data = await self._media.read(file.sha256, at=self._now()) if file else None
        if data is None:
            raise MediaUnavailable("the file was removed, and whoever sent it can send it again")
        if len(data) > limit:
            raise MediaUnavailable(f"it has more than {limit:,} bytes")
        return data

    async def check_file(self, data: bytes) -> StoredFile:
        """Return what somebody uploads as a file; raise `MediaUnavailable` for what cannot be decoded."""
        return await checked_file(Media(media_kind="document", unique_id=""), data, self._decoder)

    async def add_file(self, guest: Guest, data: bytes, file: StoredFile) -> tuple[str, StoredFile]:
        """Store a file; return its id."""
        file_id = f"{_owned(guest)}{file.sha256}"
        return file_id, await self._media.add(file_id, data, file, at=self._now())

    async def file(self, file_id: str) -> StoredFile | None:
        """Return the stored file of an id."""
        found = (await self._media.find([file_id])).get(file_id)
        return found if isinstance(found, StoredFile) else None


def _owned(guest: Guest) -> str:
    return f"{PLATFORM}-{guest.room}-{guest.id}-"


def is_uploader(guest: Guest | None, file_id: str) -> bool:
    """Return whether a file is one that this guest has uploaded."""
    return guest is not None and file_id.startswith(_owned(guest))


def message_id(guest: Guest, key: str) -> str:
    """Return the id of the message that a guest posts with a key: the same key is the same message."""
    given = "\n".join((guest.room, guest.id, key))
    return sha256(given.encode(errors="surrogatepass")).hexdigest()[:20]
