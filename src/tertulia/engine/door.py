"""Door: by which all changes come in, of platforms and of programs. They are attributed, stored, then acted on."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from inspect import currentframe
from typing import Any, TypeVar, assert_never

from msgspec.structs import replace

from tertulia.code_location import user_line
from tertulia.engine.background import BackgroundTasks, retry_forever
from tertulia.engine.commands import Commands
from tertulia.engine.memory import Memory
from tertulia.engine.place_worker import PlaceWorkers
from tertulia.engine.shared import Shared
from tertulia.engine.shared_places import SharedPlaces
from tertulia.engine.task_worker import TaskWorker
from tertulia.errors import InvalidValue
from tertulia.messages import Message, Place
from tertulia.platform import (
    Change,
    Commanded,
    Deleted,
    Delivered,
    Edited,
    PlaceJoined,
    PlaceLeft,
    PlaceMigrated,
    Reacted,
    Received,
    Stopped,
    Update,
    places_of,
)
from tertulia.type_checks import type_fault

log = logging.getLogger(__name__)

T = TypeVar("T")


class Door:
    """Stores changes where the agent takes part, and wakes who acts on them."""

    def __init__(
        self, shared: Shared, workers: PlaceWorkers, commands: Commands, tasks: TaskWorker, memory: Memory | None
    ) -> None:
        self.applying = BackgroundTasks()  # changes, from their transaction until they are acted on
        self.shared_places = SharedPlaces(shared.identity, shared.store.updates)
        self._shared = shared
        self._workers = workers
        self._commands = commands
        self._tasks = tasks
        self._memory = memory

    async def receive(self, message: Message) -> bool:
        """Store a message, to be answered; return whether it is new and may be there."""
        return await self._store(Received(message=message), self._shared.store.inbox.receive)

    async def edit(self, message: Message) -> bool:
        """Store the new content of a message; return whether it exists."""
        return await self._store(Edited(message=message), self._shared.store.inbox.edit)

    async def delete(self, place: Place, message_id: str) -> bool:
        """Store that a message was deleted; return whether it exists."""

        async def delete() -> bool:
            return await self._shared.store.inbox.delete(place, message_id, at=self._shared.now())

        return await self._shielded(self._stored_then_acted_on(delete, Deleted(place=place, message_id=message_id)))

    async def _store(self, change: Received | Edited, write: Callable[..., Awaitable[bool]]) -> bool:
        for admitted in await self.admit([change]):
            if isinstance(admitted, Received | Edited):  # as it was
                storing = partial(write, admitted.message, at=self._shared.now())
                return await self._shielded(self._stored_then_acted_on(storing, admitted))
        return False

    async def admit(self, changes: Sequence[Change]) -> list[Change]:
        """Return changes as they are stored, in the place where they are, with our persona on our own messages.

        What another account of ours reports is left out, and so is what happens in places that are not allowed. Which
        agents are in a place is stored before its next message.
        """
        at_home = [one for change in changes if (one := await self.shared_places.at_home(change)) is not None]
        admitted = self._shared.allowed_places.filter(map(self._attributed, at_home))
        for change in admitted:
            if isinstance(change, Received):
                await self._shared.agent_places.enter(change.message.place)
        return admitted

    async def _stored_then_acted_on(self, write: Callable[[], Awaitable[bool]], change: Change) -> bool:
        """Act on a change also where nothing is new: an earlier call may have been cancelled."""
        is_new = await write()
        self.act_on([change])
        return is_new

    async def _shielded(self, work: Coroutine[Any, Any, T]) -> T:
        """Finish *work* also where the caller is cancelled."""
        return await asyncio.shield(self.applying.start(work))

    def _attributed(self, change: Change) -> Change:
        """Return a change with our persona on our own messages, and with the service of its place."""
        identity = self._shared.identity
        match change:
            case Received(message=message) | Edited(message=message) | Commanded(message=message):
                return replace(change, message=identity.attribute(message))
            case PlaceMigrated(old=old, new=new):
                return PlaceMigrated(old=identity.with_service(old), new=identity.with_service(new))
            case Deleted() | Reacted() | Delivered() | PlaceJoined() | PlaceLeft() | Stopped():
                return replace(change, place=identity.with_service(change.place))
            case _:
                assert_never(change)

    def act_on(self, changes: Sequence[Change]) -> None:
        """Act on changes that are stored, if the engine runs."""
        if not self._tasks.is_started:
            return
        for change in changes:
            match change:
                case Received(message=message):
                    self._workers.wake(message.place)
                case Delivered(place=place):
                    self._workers.wake(place)  # other agents may answer it
                case Edited(message=message):
                    self._workers.wake(message.place)  # a message that names us since its edit waits
                    self._learn(message.place)
                case Deleted(place=place):
                    self._workers.wake_if_active(place)
                    self._learn(place)
                case PlaceMigrated(old=old, new=new):
                    self._shared.delimiters.clear()
                    self._shared.agent_places.clear()
                    self._workers.move(old, new)
                case PlaceLeft(place=place):
                    self._workers.stop(place)
                case Stopped(place=place, author=author):
                    self._commands.stop_for(place, author)
                case Commanded():
                    self._commands.wake()
                case Reacted() | PlaceJoined():
                    pass
                case _:
                    assert_never(change)

    def _learn(self, place: Place) -> None:
        if self._memory:
            self._memory.wake(place)


class PlatformInbox:
    """The inbox of one platform: `tertulia.platform.Inbox`. It retries while the store is full or locked."""

    def __init__(self, platform: str, door: Door, shared: Shared) -> None:
        self._platform = platform
        self._door = door
        self._shared = shared
        self._updates = shared.store.updates

    async def apply(self, changes: Sequence[Change], *, key: str, raw: bytes | None = None) -> bool:
        if not isinstance(changes, Sequence) or isinstance(changes, str | bytes):
            raise InvalidValue(f"changes must be a list, not {type(changes).__name__}")
        if raw is not None and not isinstance(raw, bytes):
            raise InvalidValue(f"raw must be the bytes of the update, not {raw!r:.200}")
        fault = next(filter(None, map(self._fault, changes)), "")
        where = user_line(currentframe()) if fault else ""
        made = [] if fault else await self._retry(partial(self._door.admit, changes))
        if changes and not (made or fault):
            return False
        raw = raw if fault or len(made) == len(changes) else None  # it tells of what is not stored
        applying = self._apply(made, key, raw, f"{fault} {where and f'({where})'}".strip())
        return await asyncio.shield(self._door.applying.start(applying))  # it goes on where the caller is cancelled

    async def _apply(self, changes: Sequence[Change], key: str, raw: bytes | None, fault: str) -> bool:
        at, keep = self._shared.now(), self._shared.behavior.keep_updates
        platform, key = self._door.shared_places.update_key(changes, self._platform, key)
        outcome = await self._retry(lambda: self._updates.apply(platform, changes, key=key, raw=raw, at=at, keep=keep))
        if refused := fault or outcome.refused:
            log.error("update %s of %s is stored unread: %s", key, self._platform, refused)
        elif outcome.new:
            self._door.act_on(changes)
        return outcome.new

    async def last(self, place: Place) -> Message | None:
        return await self._retry(lambda: self._updates.last(place))

    async def unread(self) -> Sequence[Update]:
        return await self._retry(lambda: self._updates.unread(self._platform))

    async def _retry(self, work: Callable[[], Awaitable[T]]) -> T:
        return await retry_forever(work, sleep=self._shared.sleep)

    def _fault(self, change: Change) -> str | None:
        """Return why a change cannot be stored; None if it can."""
        if fault := type_fault(change, Change):
            return fault
        others = {place.platform for place in places_of(change)} - {self._platform}
        return f"a place of platform {others.pop()!r}: write Place(platform=self.name, …)" if others else None
