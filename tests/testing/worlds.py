"""The world of the invented chat service."""

from collections.abc import Callable, Sequence
from itertools import count

from tertulia.messages import Author, Place
from tertulia.platform import Platform
from tertulia.testing.example_service import ExampleService
from tertulia.testing.platform_world import Fault, PlatformWorld, Shown


class ExampleWorld(PlatformWorld):
    """All that happens on the service."""

    timeout = 30.0  # the machine of the tests may be busy

    def __init__(self, platform: Callable[[int], Platform], *, keys: bool = True) -> None:
        super().__init__()
        self.service = ExampleService(keys=keys)
        self._platform = platform
        self._albums = count(1)

    async def open(self) -> None:
        await self.service.__aenter__()

    async def close(self) -> None:
        await self.service.__aexit__()

    def platform(self) -> Platform:
        return self._platform(self.service.port)

    async def direct(self, author: Author) -> Place:
        return Place(platform=self.platform().name, id=author.id, kind="direct")

    async def post(self, place: Place, author: Author, text: str) -> str:
        return self.service.post(place.id, author, text, place_kind=place.kind)

    async def shown(self, place: Place) -> Sequence[Shown]:
        shown = self.service.shown(place.id)
        return [Shown(id=one["id"], text=one["text"], reply_to=one["reply_to"]) for one in shown]

    async def disconnect(self) -> None:
        self.service.disconnect()

    async def deliver_again(self) -> None:
        self.service.deliver_again()

    async def echo(self, place: Place, message_id: str) -> None:
        self.service.echo(message_id, self.platform().me, place_kind=place.kind)

    async def fail(self, *faults: Fault) -> None:
        self.service.faults.extend(faults)

    async def group(self) -> Place:
        return Place(platform=self.platform().name, id="friends", kind="group")

    async def post_album(self, place: Place, author: Author, texts: Sequence[str]) -> Sequence[str]:
        album = f"a{next(self._albums)}"
        return [self.service.post(place.id, author, text, album=album, place_kind=place.kind) for text in texts]

    async def reply(self, place: Place, author: Author, text: str, message_id: str) -> str:
        return self.service.post(place.id, author, text, place_kind=place.kind, reply_to=message_id)

    async def edit(self, place: Place, message_id: str, text: str) -> None:
        self.service.edit(message_id, text)

    async def delete(self, place: Place, message_id: str) -> None:
        self.service.delete(place.id, message_id)

    async def react(self, place: Place, message_id: str, author: Author, emojis: Sequence[str]) -> None:
        self.service.react(place.id, message_id, author, *emojis)

    async def command(self, place: Place, author: Author, line: str) -> None:
        await self.post(place, author, line)

    async def promote(self, place: Place, author: Author) -> None:
        self.service.roles[place.id, author.id] = "administrator"

    async def migrate(self, place: Place) -> Place:
        return Place(platform=place.platform, id=self.service.migrate(place.id), kind=place.kind)

    async def leave(self, place: Place) -> None:
        self.service.leave(place.id, place_kind=place.kind)

    async def stop(self, place: Place, author: Author) -> None:
        self.service.stop(place.id, author)

    async def previews(self, place: Place) -> Sequence[str]:
        return [text for place_id, text in self.service.previews if place_id == place.id]
