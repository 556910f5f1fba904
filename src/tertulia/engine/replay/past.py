"""The past of a store: its log, descriptions, media and memory as they were when a run began. Nothing is written.

What can be known of that moment is a horizon, the number of messages that the place had, and a time. Messages from the
horizon on came later. An edit or a deletion has the number of messages at its time: from the horizon on it came later,
and the message is read as it was before. A description that a run with this horizon had not shown has a later position.
Facts, summaries and episodes have times. What was forgotten or hidden since is gone from the past too.
"""

from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, TypeVar

from msgspec.structs import replace

from tertulia.context.edits import LogChange, MessageChange
from tertulia.context.log import Log
from tertulia.context.sources import MessageSearch
from tertulia.context.values import RelevantMessage
from tertulia.engine.memory.recall import EpisodeReader, FactReader
from tertulia.media.descriptions import Description, DescriptionFailure, DescriptionStore
from tertulia.media.handles import InMemoryHandles
from tertulia.media.values import FetchFailure, FileForm, Handle, MediaStore, StoredFile
from tertulia.memory.values import Episode, EpisodeCursor, Fact, Subject, Summary, WindowPast, WindowPasts
from tertulia.messages import Message, Place
from tertulia.seen_by import SeenBy
from tertulia.turns import Turn

T = TypeVar("T")

LONG_AGO = datetime(1970, 1, 2, tzinfo=UTC)  # files that are read count as used then: no row is written


class PastLog(Log):
    """The log of a place up to a horizon, without later edits, deletions and reactions."""

    def __init__(self, log: Log, horizon: int) -> None:
        self._log = log
        self._horizon = horizon

    async def count(self, place: Place) -> int:
        return min(await self._log.count(place), self._horizon)

    async def read(self, place: Place, start: int, stop: int) -> Sequence[Message]:
        messages = await self._log.read(place, start, min(stop, self._horizon))
        before = await self._before(place, start) if messages else {}
        return [before.get(number, message) for number, message in enumerate(messages, max(start, 0))]

    async def number(self, message: Message) -> int | None:
        number = await self._log.number(message)
        return number if number is not None and number < self._horizon else None

    async def find(self, place: Place, message_ids: Sequence[str]) -> Sequence[tuple[int, Message]]:
        found = [one for one in await self._log.find(place, message_ids) if one[0] < self._horizon]
        before = await self._before(place, min(number for number, _ in found)) if found else {}
        return [(number, before.get(number, message)) for number, message in found]

    async def turns(self, messages: Sequence[Message]) -> Mapping[str, tuple[Turn, ...]]:
        return await self._log.turns(messages)

    async def changes(self, place: Place, since: int) -> Sequence[LogChange]:
        return [one for one in await self._log.changes(place, since) if one.position < self._horizon]

    async def in_snapshot(self, reading: Callable[[Log], Coroutine[Any, Any, T]]) -> T:
        return await self._log.in_snapshot(lambda log: reading(PastLog(log, self._horizon)))

    async def _before(self, place: Place, since: int) -> dict[int, Message]:
        """Return by number the messages that were changed later, as they were before."""
        found: dict[int, Message] = {}
        for change in await self._log.changes(place, since):
            if isinstance(change, MessageChange) and change.position >= self._horizon:
                found.setdefault(change.number, change.before)
        return found


class PastDescriptions:
    """The descriptions of media that a run with this horizon may have shown: a `DescriptionStore`."""

    def __init__(self, known: DescriptionStore, horizon: int) -> None:
        self._known = known
        self._horizon = horizon

    async def find(self, unique_ids: Collection[str], place: Place | None = None) -> Mapping[str, Description]:
        found = {name: self._then(one) for name, one in (await self._known.find(unique_ids, place)).items()}
        return {name: one for name, one in found.items() if one}

    def _then(self, description: Description | None) -> Description | None:
        while description and description.position >= self._horizon:
            description = description.before
        return description

    async def makers(self, unique_ids: Collection[str]) -> Mapping[str, Collection[str]]:
        return await self._known.makers(unique_ids)

    async def shown(self, place: Place) -> int:
        return self._horizon

    async def describe(
        self, unique_id: str, words: str, *, by: str, at: datetime, message: Message | None = None
    ) -> None:
        """Describe nothing."""

    async def failures(self, unique_ids: Collection[str], *, by: str) -> Mapping[str, DescriptionFailure]:
        return {}

    async def fail(self, unique_id: str, failure: DescriptionFailure, *, by: str) -> None:
        """Store nothing."""


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


class PastFacts:
    """The facts and summaries that were known at a moment: those *recalled* for the run, and what was learned before.

    Facts that another one has replaced since are known only where they were recalled.
    """

    def __init__(self, facts: FactReader, recalled: Iterable[str], at: datetime) -> None:
        self._facts = facts
        self._recalled = tuple(recalled)
        self._at = at

    async def about(
        self,
        subject: Subject,
        *,
        place: Place,
        asked_by: Subject | None = None,
        limit: int = 50,
        at: datetime | None = None,
        seen_by: SeenBy | None = None,
    ) -> Sequence[Fact]:
        found = await self._facts.about(
            subject, place=place, asked_by=asked_by, limit=limit, at=self._at, seen_by=seen_by
        )
        known = {fact.id: fact for fact in found if fact.learned_at <= self._at}
        for fact_id in self._recalled:
            if fact_id not in known and (fact := await self._facts.get(fact_id)):
                known[fact_id] = fact
        return tuple(known.values())

    async def get(self, fact_id: str) -> Fact | None:
        return await self._facts.get(fact_id)

    async def summary(
        self, subject: Subject, *, place: Place, at: datetime | None = None, seen_by: SeenBy | None = None
    ) -> Summary | None:
        found = await self._facts.summary(subject, place=place, at=self._at, seen_by=seen_by)
        return found if found and found.made_at <= self._at else None


class PastEpisodes:
    """The episodes that had ended at a moment."""

    def __init__(self, episodes: EpisodeReader, at: datetime) -> None:
        self._episodes = episodes
        self._at = at

    async def visible_to(self, target: Message, *, seen_by: SeenBy | None = None) -> Sequence[Episode]:
        found = await self._episodes.visible_to(target, seen_by=seen_by)
        return [one for one in found if _is_before(one.ended_at, self._at)]

    async def listed(self, place: Place, *, seen_by: SeenBy | None = None) -> Sequence[Episode]:
        found = await self._episodes.listed(place, seen_by=seen_by)
        return [one for one in found if _is_before(one.ended_at, self._at)]

    async def cursor(self, place: Place) -> EpisodeCursor | None:
        return await self._episodes.cursor(place)


class PastPasts:
    """The stored pasts of windows; a new one is not stored."""

    def __init__(self, pasts: WindowPasts) -> None:
        self._pasts = pasts

    async def find(self, place: Place, since: int, start: int, *, agent: str | None = None) -> WindowPast | None:
        return await self._pasts.find(place, since, start, agent=agent)

    async def add(self, place: Place, past: WindowPast, *, seen: EpisodeCursor) -> WindowPast:
        return past


class PastSearch:
    """The hits that were *recalled* for the run; without any, what is found now and was said before its moment."""

    def __init__(self, search: MessageSearch, recalled: Sequence[RelevantMessage], at: datetime) -> None:
        self._search = search
        self._recalled = recalled
        self._at = at

    async def relevant(self, target: Message) -> Sequence[RelevantMessage]:
        if self._recalled:
            return self._recalled
        return [one for one in await self._search.relevant(target) if _is_before(one.said_at, self._at)]


def _is_before(moment: datetime | None, at: datetime) -> bool:
    return moment is not None and moment <= at
