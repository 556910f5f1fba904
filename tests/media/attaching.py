"""Stored files for models at simulators."""

from contextlib import AsyncExitStack
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from media import media_files
from tertulia.media.stream_metadata import without_metadata
from tertulia.media.values import StoredFile
from tertulia.models.gemini.client import Gemini
from tertulia.models.openai.client import OpenAI
from tertulia.parts import Media
from tertulia.sim.gemini import GeminiSim
from tertulia.sim.openai import OpenAISim
from tertulia.store.media_files import SqlMedia

START = datetime(2026, 1, 1, tzinfo=UTC)
FLASH = "gemini-3.8-flash"
PHOTO = media_files.image("JPEG")
FILM = without_metadata(media_files.video("mp4") + bytes(1_500_000), "video/mp4")
VOICE = media_files.sound("ogg", "libopus")


class Files:
    """The media of a store, to which files are added."""

    def __init__(self, media: SqlMedia) -> None:
        self.media = media

    def path(self, media: Media) -> Path:
        """Return where its file is."""
        path = self.media.folder.locate(media.sha256 or "")
        assert path is not None
        return path

    async def put(self, data: bytes, mime: str, kind: str = "photo", **changes: Any) -> Media:
        """Store a file, and return media whose bytes it has."""
        names = ("width", "height", "seconds", "pages", "frames", "has_metadata")
        facts = {name: changes.pop(name) for name in names if name in changes}
        name = sha256(data).hexdigest()
        await self.media.add(name[:8], data, StoredFile(sha256=name, size=len(data), mime=mime, **facts), at=START)
        return Media(media_kind=kind, unique_id=name[:8], sha256=name, mime=mime, **changes)


class World:
    """Clients of the services, closed at the end."""

    def __init__(self, sim: GeminiSim, openai: OpenAISim, stack: AsyncExitStack) -> None:
        self._sim = sim
        self._openai = openai
        self._stack = stack

    async def gemini(self, *, key: str = "k") -> Gemini:
        return await self._stack.enter_async_context(Gemini(FLASH, key=key, base_url=self._sim.url))

    async def openai(self, name: str = "gpt-5.6") -> OpenAI:
        return await self._stack.enter_async_context(OpenAI(name, key="k", base_url=self._openai.url))


def now(sim: GeminiSim) -> datetime:
    return datetime.fromtimestamp(sim.clock(), UTC)


def uploads(sim: GeminiSim) -> list[str]:
    """The answers to the beginnings of uploads."""
    begun = [one for one in sim.requests if one.headers.get("x-goog-upload-command") == "start"]
    return [str(one.status) for one in begun]
