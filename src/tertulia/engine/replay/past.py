"""The past of a store: its log, descriptions, media and memory as they were when a run began. Nothing is written.

What can be known of that moment is a horizon, the number of messages that the place had, and a time. Messages from the
horizon on came later. An edit or a deletion has the number of messages at its time: from the horizon on it came later,
and the message is read as it was before. A description that a run with this horizon had not shown has a later position.
Facts, summaries and episodes have times. What was forgotten or hidden since is gone from the past too.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256

from msgspec.structs import replace

from tertulia.context.edits import LogChange, MessageChange
from tertulia.context.log import Log
from tertulia.context.sources import MessageSearch
from tertulia.context.values import RelevantMessage
from tertulia.engine.log_views import LogView
from tertulia.engine.media_descriptions import Find
from tertulia.engine.memory.recall import KnownFacts, MemorySources
from tertulia.engine.store_protocols import FactStore, StoreProtocol
from tertulia.media.descriptions import Description, DescriptionStore
from tertulia.media.handles import InMemoryHandles
from tertulia.media.values import FetchFailure, FileForm, Handle, MediaStore, StoredFile
from tertulia.memory.values import Episode, EpisodeCursor, Fact, Subject, Summary, WindowPast, WindowPasts
from tertulia.messages import Message, Place

LONG_AGO = datetime(1970, 1, 2, tzinfo=UTC)  # files that are read count as used then: no row is written


class PastLog(LogView):
    """The log of a place up to a horizon, without later edits, deletions and reactions."""

    def __init__(self, log: Log, horizon: int) -> None:
        super().__init__(log)
        self._horizon = horizon

    async def count(self, place: Place) -> int:
        return min(await self.source.count(place), self._horizon)

    async def read(self, place: Place, start: int, stop: int) -> Sequence[Message]:
        messages = await self.source.read(place, start, min(stop, self._horizon))
        before = await self._before(place, start) if messages else {}
        return [before.get(number, message) for number, message in enumerate(messages, max(start, 0))]

    async def number(self, message: Message) -> int | None:
        number = await self.source.number(message)
        return number if number is not None and number < self._horizon else None

    async def find(self, place: Place, message_ids: Sequence[str]) -> Sequence[tuple[int, Message]]:
        found = [one for one in await self.source.find(place, message_ids) if one[0] < self._horizon]
        before = await self._before(place, min(number for number, _ in found)) if found else {}
        return [(number, before.get(number, message)) for number, message in found]

    async def changes(self, place: Place, since: int) -> Sequence[LogChange]:
        return [one for one in await self.source.changes(place, since) if one.position < self._horizon]

    async def _before(self, place: Place, since: int) -> dict[int, Message]:
        """Return by number the messages that were changed later, as they were before."""
        found: dict[int, Message] = {}
        for change in await self.source.changes(place, since):
            if isinstance(change, MessageChange) and change.position >= self._horizon:
                found.setdefault(change.number, change.before)
        return found


def past_descriptions(known: DescriptionStore, horizon: int) -> Find:
    """Return what finds the descriptions of media that a run with this horizon may have shown."""

    async def find(unique_ids: Collection[str], place: Place) -> Mapping[str, Description]:
        found = {name: then(one) for name, one in (await known.find(unique_ids, place)).items()}
        return {name: one for name, one in found.items() if one}

    def then(description: Description | None) -> Description | None:
        while description and description.position >= horizon:
            description = description.before
        return description

    return find


class ReadMedia(InMemoryHandles):
    """The files of a store; what is made of them is in memory: a `MediaStore`."""

    def __init__(self, store: MediaStore) -> None:
        super().__init__()
        self.uploaded: list[Handle] = []  # to be deleted at their service
        self._gone: set[str] = set()  # names and addresses of handles that the service has lost
        self._store = store
        self._files: dict[str, tuple[StoredFile, bytes]] = {}
        self._forms: dict[tuple[str, str], FileForm] = {}

    async def find(
        self, unique_ids: Collection[str], *, at: datetime | None = None
    ) -> Mapping[str, StoredFile | FetchFailure]:
        return await self._store.find(unique_ids)

    async def get(self, sha256s: Collection[str]) -> Mapping[str, StoredFile]:
        own = {name: self._files[name][0] for name in sha256s if name in self._files}
        return {**await self._store.get(sha256s), **own}

    async def add(self, unique_id: str, data: bytes, file: StoredFile, *, at: datetime) -> StoredFile:
        stored = replace(file, sha256=sha256(data).hexdigest(), size=len(data))
        self._files[stored.sha256] = stored, data
        return stored

    async def fail(self, unique_id: str, failure: FetchFailure, *, at: datetime) -> None:
        """Store nothing."""

    async def read(self, sha256: str, *, at: datetime) -> bytes | None:
        if sha256 in self._files:
            return self._files[sha256][1]
        return await self._store.read(sha256, at=LONG_AGO)

    async def locate(self, sha256: str) -> str | None:
        return await self._store.locate(sha256)

    async def form(self, source: str, form: str) -> FileForm | None:
        return self._forms.get((source, form)) or await self._store.form(source, form)

    async def add_form(
        self, source: str, form: str, made: FileForm, *, data: bytes | None = None, at: datetime
    ) -> None:
        if made.file and data is not None:
            made = replace(made, file=await self.add("", data, made.file, at=at))
        self._forms[source, form] = made

    async def handle(self, sha256: str, account: str, *, at: datetime | None = None) -> Handle | None:
        known = await super().handle(sha256, account) or await self._store.handle(sha256, account)
        return None if known is None or {known.name, known.uri} & self._gone else known

    async def begin_handle(self, handle: Handle, *, at: datetime) -> None:
        self.uploaded.append(handle)

    async def drop_handle(self, account: str, name: str) -> bool:
        self._gone.add(name)
        return True

    async def unwanted_handles(self, *, at: datetime | None = None) -> Sequence[Handle]:
        return ()

    async def remove_handle(self, handle: Handle) -> None:
        """Remove nothing."""

    async def sweep(self, *, unused_since: datetime, at: datetime) -> int:
        return 0


class PastFacts(KnownFacts):
    """The facts and summaries that were known at a moment: those *recalled* for the run, and what was learned before.

    Facts that another one has replaced since are known only where they were recalled.
    """

    def __init__(self, facts: FactStore, recalled: Iterable[str], at: datetime) -> None:
        super().__init__(facts, now=lambda: at)
        self._recalled = tuple(recalled)

    async def _about(self, author: Subject, place: Place, now: datetime) -> Sequence[Fact]:
        known = {fact.id: fact for fact in await super()._about(author, place, now) if fact.learned_at <= now}
        for fact_id in self._recalled:
            if fact_id not in known and (fact := await self._facts.get(fact_id)):
                known[fact_id] = fact
        return tuple(known.values())

    async def _summary(self, author: Subject, place: Place, now: datetime) -> Summary | None:
        found = await super()._summary(author, place, now)
        return found if found and found.made_at <= now else None


class PastMemory(MemorySources):
    """The memory of a moment; a new past of a window is not stored.

    The hits are those that were *recalled* for the run; without any, what is found now and was said before its moment.
    """

    def __init__(
        self,
        store: StoreProtocol,
        people: PastFacts,
        *,
        search: MessageSearch,
        recalled: Sequence[RelevantMessage],
        beginning: int,
        at: datetime,
    ) -> None:
        async def began(_: Place) -> int:
            return beginning

        super().__init__(
            people,
            episodes=store.episodes,
            window_pasts=store.window_pasts,
            search=search,
            beginning=began,
            now=lambda: at,
        )
        self._recalled = recalled

    async def relevant(self, target: Message) -> Sequence[RelevantMessage]:
        found = self._recalled or await super().relevant(target)
        return self._recalled or [one for one in found if one.said_at and one.said_at <= self._now()]

    def _known(self, episodes: Sequence[Episode]) -> Sequence[Episode]:
        return [one for one in episodes if one.ended_at and one.ended_at <= self._now()]

    async def _store(self, pasts: WindowPasts, place: Place, past: WindowPast, seen: EpisodeCursor) -> WindowPast:
        return past
