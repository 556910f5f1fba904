"""Platforms and models that more than one test speaks to; what throws is in `throwing`."""

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any

from tertulia.models.base import Response
from tertulia.models.scripted import Scripted
from tertulia.parts import Media
from tertulia.platform import Capabilities, Delivery
from tertulia.testing import RecordedPlatform
from tertulia.turns import Prompt, Role


class Files(RecordedPlatform):
    """A platform that gives what *give* returns or awaits for media, and notes what was asked for."""

    def __init__(self, give: Callable[[Media], Any]) -> None:
        super().__init__()
        self.asked: list[str | None] = []
        self._give = give

    async def fetch(self, media: Media, *, limit: int) -> bytes:
        self.asked.append(media.file_id)
        given = self._give(media)
        return await given if isawaitable(given) else given  # type: ignore[no-any-return]


class Receipts(RecordedPlatform):
    """A platform that gives the same receipt for everything that is sent."""

    def __init__(self, receipt: Any, capabilities: Capabilities | None = None) -> None:
        super().__init__(capabilities=capabilities)
        self._receipt = receipt

    async def send(self, delivery: Delivery) -> str:
        await super().send(delivery)
        return self._receipt  # type: ignore[no-any-return]


class Blind(Scripted):
    """A model that takes no media."""

    def takes(self, _: Media, __: Role) -> bool:
        return False


class Meanwhile(Scripted):
    """A model that follows its script; while it is asked for the first time, something else happens."""

    def __init__(self, happens: Callable[[], Awaitable[object]], *script: Any) -> None:
        super().__init__(*script)
        self._happens = happens

    async def respond(self, prompt: Prompt) -> Response:
        if not self.prompts:
            await self._happens()
        return await super().respond(prompt)
