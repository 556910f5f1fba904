"""Files of media: their rows, their forms and their handles at services; the bytes are in a `FileFolder`.

A row is added only where the file is on the disk, and a file is removed only where it has no row. Both are decided in
the writer thread, on committed rows, so an addition and a removal of the same file cannot cross: whoever comes second
sees what the first one did. An addition whose file was removed just before its row is added writes it again.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial

from msgspec.structs import replace

from tertulia.errors import StoreBroken, StoreBusy, StoreRefused, StoreTrouble, TertuliaError
from tertulia.media.file_folder import FileFolder, is_hash
from tertulia.media.values import FetchFailure, FileForm, Handle, StoredFile
from tertulia.store import file_garbage
from tertulia.store.database import Database, insert_into, upsert_into, upsert_row
from tertulia.store.encoding import Columns, clean
from tertulia.store.file_garbage import GRACE, PAGE, time_text
from tertulia.store.rows import Rows
from tertulia.store.threads import Access, Repository, reading, writing
from tertulia.timezones import utc

log = logging.getLogger(__name__)

_USE = timedelta(days=1)  # between two changes of `used_at`
_UPLOAD = timedelta(minutes=10)  # in which the upload of a file may be under way
_LAST = datetime.max.replace(tzinfo=UTC)
_ATTEMPTS = 5  # to add a file that is removed meanwhile
_REMOVED = 100  # files that are removed at once, while no row is written

FILES = Rows(StoredFile, "files f", "sha256 size mime width height seconds pages frames has_metadata")
_FORMS = Rows(FileForm, "file_forms o", "text failure", file=FILES)
_FAILURE = Columns(FetchFailure, "why=failure failures retry_at", "w")
_HANDLES = Rows(Handle, "handles", "sha256 account name mime expires_at", uri="coalesce(uri, '')")

# Which files media are, or why they have none.
_FIND = f"""SELECT w.unique_id, {FILES}, {_FAILURE} FROM media_files w
    LEFT JOIN files f ON f.sha256 = w.sha256 WHERE w.unique_id IN (:asked)"""

# Stores that media are a file, in place of an earlier file or failure.
_ADD = """INSERT INTO media_files (unique_id, sha256, at) VALUES (:unique_id, :sha256, :at)
    ON CONFLICT (unique_id) DO UPDATE SET
    sha256 = excluded.sha256, failure = '', failures = 0, retry_at = NULL, at = excluded.at"""

# Stores why media could not be fetched, unless they were.
_FAIL = (
    upsert_into("media_files", "unique_id", "unique_id", "at", *_FAILURE.names) + " WHERE media_files.sha256 IS NULL"
)

# Stores a file; of one that is stored, that it is used.
_ADD_FILE = f"""{insert_into("files", *FILES.names, "at", "used_at")} ON CONFLICT (sha256) DO UPDATE SET
    used_at = CASE WHEN excluded.used_at > files.used_at THEN excluded.used_at ELSE files.used_at END"""

# The form of a file, with its own file if it has one.
_FORM = "LEFT JOIN files f ON f.sha256 = o.sha256 WHERE o.source = :source AND o.form = :form"

# The newest handle of a file at an account that can be used.
_FIND_HANDLE = """WHERE sha256 = :sha256 AND account = :account AND unwanted = 0
    AND uri IS NOT NULL ORDER BY at DESC LIMIT 1"""

# The handles to be deleted at their service, but those whose upload may be under way.
_UNWANTED_HANDLES = """WHERE unwanted = 1
    AND (uri IS NOT NULL OR at NOT BETWEEN :before AND :now) ORDER BY at"""

# The files, among some and those that they are forms of, of which it is not stored that they were used lately.
_STALE = """SELECT sha256 FROM files WHERE used_at < :before AND (sha256 IN (:files)
    OR sha256 IN (SELECT source FROM file_forms WHERE sha256 IN (:files)))"""


class SqlMedia(Repository):
    """Implements `media.values.MediaStore`."""

    def __init__(self, access: Access, folder: FileFolder, *, beside: bool = False) -> None:
        super().__init__(access)
        self.folder = folder
        self._beside = beside
        self._forgotten: set[str] = set()  # media of people who were forgotten while this process may fetch them

    def forget(self, unique_ids: Collection[str]) -> None:
        """Store no more of media, unless a message has them: a fetch of them may be under way."""
        self._forgotten |= set(unique_ids)

    def is_forgotten(self, database: Database, unique_id: str) -> bool:
        """Return whether media are of somebody who was forgotten meanwhile, and no message or quote has them."""
        return clean(unique_id) in self._forgotten and clean(unique_id) not in file_garbage.shown_ids(database)

    async def find(
        self, unique_ids: Collection[str], *, at: datetime | None = None
    ) -> Mapping[str, StoredFile | FetchFailure]:
        if not unique_ids:
            return {}
        found = await self._reader.run(lambda database: _find(database, unique_ids))
        await self._use([one.sha256 for one in found.values() if isinstance(one, StoredFile)], at)
        return found

    async def get(self, sha256s: Collection[str]) -> Mapping[str, StoredFile]:
        return await self._reader.run(lambda database: _get(database, sha256s)) if sha256s else {}

    async def add(self, unique_id: str, data: bytes, file: StoredFile, *, at: datetime) -> StoredFile:
        def insert(database: Database, stored: StoredFile) -> bool:
            if self.is_forgotten(database, unique_id):
                return False
            _insert_file(database, stored, at)
            database.run(_ADD, unique_id=clean(unique_id), sha256=stored.sha256, at=time_text(at))
            return True

        stored = await self._store(data, file, insert)
        if stored is None:
            raise StoreRefused("the person who sent a file was forgotten while it was fetched")
        return stored

    @writing
    def fail(self, database: Database, unique_id: str, failure: FetchFailure, *, at: datetime) -> None:
        if not self.is_forgotten(database, unique_id):
            failed = replace(failure, retry_at=failure.retry_at and utc(failure.retry_at))
            database.run(_FAIL, unique_id=clean(unique_id), at=time_text(at), **_FAILURE.encode(failed))

    async def read(self, sha256: str, *, at: datetime) -> bytes | None:
        data = await asyncio.to_thread(self.folder.read, sha256, clean=not self._beside)
        if data is not None:
            await self._use([sha256], at)
        elif not self._beside:
            with _optional():
                await self._writer.run(lambda database: self._remove_missing(database, sha256))
        return data

    async def locate(self, sha256: str) -> str | None:
        path = self.folder.locate(sha256)
        return str(path) if path and path.is_file() else None

    @reading
    def form(self, database: Database, source: str, form: str) -> FileForm | None:
        return _FORMS.one(database, _FORM, source=source, form=clean(form))

    async def add_form(
        self, source: str, form: str, made: FileForm, *, data: bytes | None = None, at: datetime
    ) -> None:
        def insert(database: Database, stored: StoredFile | None) -> bool:
            if database.one("SELECT 1 FROM files WHERE sha256 = :source", source=source) is None:
                return False
            if stored:
                _insert_file(database, stored, at)
            row = {"source": source, "form": clean(form), "sha256": stored.sha256 if stored else None}
            upsert_row(database, "file_forms", "source, form", at=time_text(at), **row, **_FORMS.encode(made))
            return True

        if made.file and data is not None:
            await self._store(data, made.file, insert)
        else:
            await self._writer.run(lambda database: insert(database, None))

    async def handle(self, sha256: str, account: str, *, at: datetime | None = None) -> Handle | None:
        found = await self._reader.run(
            lambda database: _HANDLES.one(database, _FIND_HANDLE, sha256=sha256, account=account)
        )
        if found is not None:
            await self._use([sha256], at)
        return found

    @writing
    def begin_handle(self, database: Database, handle: Handle, *, at: datetime) -> None:
        _write_handle(database, handle, at)

    @writing
    def add_handle(self, database: Database, handle: Handle, *, at: datetime) -> None:
        """Store a handle; older ones of the same file and account are unwanted."""
        database.run(
            "UPDATE handles SET unwanted = 1 WHERE sha256 = :sha256 AND account = :account AND name <> :name",
            sha256=handle.sha256,
            account=handle.account,
            name=handle.name,
        )
        _write_handle(database, handle, at)

    @writing
    def drop_handle(self, database: Database, account: str, name: str) -> bool:
        update = "UPDATE handles SET uri = NULL WHERE account = :account AND (name = :name OR uri = :name)"
        return database.run(update, account=account, name=name) > 0

    @reading
    def unwanted_handles(self, database: Database, *, at: datetime | None = None) -> Sequence[Handle]:
        uploading = {"now": time_text(at), "before": time_text(at - _UPLOAD)} if at else {"now": "", "before": ""}
        return _HANDLES.all(database, _UNWANTED_HANDLES, **uploading)

    @writing
    def remove_handle(self, database: Database, handle: Handle) -> None:
        delete = "DELETE FROM handles WHERE account = :account AND name = :name AND unwanted = 1"
        database.run(delete, account=handle.account, name=handle.name)

    async def sweep(self, *, unused_since: datetime, at: datetime) -> int:
        self._refuse_beside()

        def remove_old(database: Database) -> set[str]:
            file_garbage.correct_uses(database, at)
            file_garbage.remove_old_rows(database, since=unused_since, at=at)
            return file_garbage.find_unused(database, unused_since)

        gone = await self._remove_garbage(at - GRACE, remove_old)
        await self.remove_strays()
        return len(gone)

    async def remove_unreferenced(self) -> None:
        """Remove the rows of all files that nothing refers to at this moment."""
        await self._remove_garbage(_LAST, lambda _: set())

    async def _remove_garbage(self, before: datetime, find_more: Callable[[Database], set[str]]) -> set[str]:
        """Remove the rows of files that nothing refers to, last used *before* a moment, and of more; return all."""
        garbage = await self._find_garbage(before)

        def remove_rows(database: Database) -> set[str]:
            found = find_more(database) | file_garbage.find_unreferenced(database, before, garbage)
            named = file_garbage.named_hashes(database) if found else set()
            return file_garbage.remove_files(database, found - named, keep=named)

        return await self._writer.run(remove_rows)

    async def remove_strays(self) -> None:
        """Remove the files without a row."""
        self._refuse_beside()
        names = await asyncio.to_thread(self.folder.names)
        strays = await self._reader.run(lambda database: _without_row(database, [*names]))
        for start in range(0, len(strays), _REMOVED):
            await self._remove_stray(strays[start : start + _REMOVED])

    async def _remove_stray(self, sha256s: Sequence[str]) -> None:
        """Remove those of the files that have no committed row."""

        def remove(database: Database) -> None:
            self.folder.remove(_without_row(database, sha256s))

        await self._writer.run(remove, autocommit=True)

    async def check(self) -> list[str]:
        """Return a line for each file that is missing or damaged; it is fetched again when it is needed."""
        select = "SELECT sha256 FROM files ORDER BY sha256"
        rows = await self._reader.run(lambda database: database.column(select))
        damaged = await asyncio.to_thread(lambda: [row for row in rows if not self._is_whole(row)])
        still = await self.get(damaged)  # a running bot may have removed it meanwhile
        return [f"the file {sha256} in {self.folder.path} is missing or damaged" for sha256 in still]

    def _is_whole(self, sha256: str) -> bool:
        return is_hash(sha256) and self.folder.read(sha256, clean=False) is not None

    async def _store(
        self, data: bytes, file: StoredFile, insert: Callable[[Database, StoredFile], bool]
    ) -> StoredFile | None:
        """Write a file, and then its rows; None, and no file, where *insert* does not want them.

        Who is cancelled waits until both are there or neither: a file without a row would stay until the next sweep.
        """
        self._refuse_beside()
        storing = asyncio.ensure_future(self._write(data, file, insert))
        try:
            return await asyncio.shield(storing)
        except asyncio.CancelledError:
            await asyncio.gather(storing, return_exceptions=True)
            raise

    async def _write(
        self, data: bytes, file: StoredFile, insert: Callable[[Database, StoredFile], bool]
    ) -> StoredFile | None:
        def add_rows(database: Database, stored: StoredFile) -> bool | None:
            is_there = self.folder.size(stored.sha256) == stored.size
            return insert(database, stored) if is_there else None

        for _ in range(_ATTEMPTS):
            sha256 = await asyncio.to_thread(self.folder.write, data)
            stored = replace(file, sha256=sha256, size=len(data))
            is_stored: bool | None = False
            try:
                is_stored = await self._writer.run(partial(add_rows, stored=stored))
            finally:
                if is_stored is False:
                    with suppress(TertuliaError):  # the disk of the rows may be full
                        await self._remove_stray([sha256])
            if is_stored is not None:
                return stored if is_stored else None
        raise StoreTrouble(f"the folder of media {self.folder.path}: somebody removes the files that are written there")

    def _remove_missing(self, database: Database, sha256: str) -> None:
        """Remove the rows of a file that is not on the disk."""
        if self.folder.size(sha256) is None:
            file_garbage.remove_files(database, [sha256])

    async def _use(self, sha256s: Collection[str], at: datetime | None) -> None:
        """Store that files were used, and the files that they are forms of; once a day is enough."""
        if not sha256s or at is None or self._beside:
            return
        before, now = time_text(at - _USE), time_text(at)
        stale = await self._reader.run(lambda database: database.column(_STALE, files=[*sha256s], before=before))
        if stale:
            update = "UPDATE files SET used_at = :now WHERE sha256 IN (:files) AND used_at < :now"
            with _optional():
                await self._writer.run(lambda database: database.run(update, now=now, files=stale))

    async def _find_garbage(self, before: datetime) -> set[str]:
        """Return the files that no message, quote or turn has, read page by page, so that others can read meanwhile."""
        found = await self._reader.run(lambda database: file_garbage.find_unreferenced(database, before))
        last = await self._reader.run(file_garbage.last_message) if found else 0
        for start in range(0, last, PAGE):
            page = (start, start + PAGE)
            found -= await self._reader.run(partial(file_garbage.find_repeated, sha256s=found, page=page))
        return found

    def _refuse_beside(self) -> None:
        if self._beside:
            raise StoreBusy("files of media are added and removed only by the process that has the store")


@contextmanager
def _optional() -> Iterator[None]:
    """Let what can be written later fail while the disk is full: a file is read all the same."""
    try:
        yield
    except StoreBroken:
        raise
    except StoreTrouble as trouble:
        log.info("that a file was used, or is gone, is stored later: %s", trouble)


def _without_row(database: Database, sha256s: Sequence[str]) -> list[str]:
    known = set(database.column("SELECT sha256 FROM files WHERE sha256 IN (:sha256s)", sha256s=sha256s))
    return [sha256 for sha256 in sha256s if sha256 not in known]


def _find(database: Database, unique_ids: Collection[str]) -> dict[str, StoredFile | FetchFailure]:
    asked = {clean(unique_id): unique_id for unique_id in unique_ids}
    found: dict[str, StoredFile | FetchFailure] = {}
    for unique_id, *row in database.all(_FIND, asked=[*asked]):
        found[asked[unique_id]] = FILES.decode(row) if row[0] else _FAILURE.decode(row[FILES.count :])
    return found


def _get(database: Database, sha256s: Collection[str]) -> dict[str, StoredFile]:
    return {file.sha256: file for file in FILES.all(database, "WHERE f.sha256 IN (:sha256s)", sha256s=[*sha256s])}


def _insert_file(database: Database, file: StoredFile, at: datetime) -> None:
    database.run(_ADD_FILE, at=time_text(at), used_at=time_text(at), **FILES.encode(file))


def _write_handle(database: Database, handle: Handle, at: datetime) -> None:
    """Write the row of a handle; it is unwanted if its file is gone."""
    row = _HANDLES.encode(replace(handle, expires_at=handle.expires_at and utc(handle.expires_at)))
    unwanted = database.one("SELECT 1 FROM files WHERE sha256 = :sha256", sha256=handle.sha256) is None
    more = {"uri": handle.uri or None, "at": time_text(at), "unwanted": int(unwanted)}
    upsert_row(database, "handles", "account, name", **row | more)
