"""Files of media, their forms and their handles at services; the protocol of the store that has them. Pure."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Annotated, Protocol

from msgspec import Meta, Struct

from tertulia.errors import InvalidValue
from tertulia.media.address_rules import AllowedAddress
from tertulia.parts import Media


class MediaOptions(Struct, frozen=True, kw_only=True):
    """How much of media is fetched, stored and described."""

    largest: Annotated[int, Meta(ge=1)] = 20_000_000  # bytes of a file that is fetched
    keep: timedelta = timedelta(days=30)  # how long a file is stored that is not used; it can be fetched again
    descriptions_per_run: Annotated[int, Meta(ge=0, le=100)] = 8  # new ones that a run waits for; others come later
    allowed_addresses: tuple[str, ...] = ()  # hosts or addresses of your network that may be fetched

    def __post_init__(self) -> None:
        if self.keep <= timedelta():
            raise InvalidValue("media.keep must be longer than nothing")
        for one in self.allowed_addresses:
            AllowedAddress.of(one)


class StoredFile(Struct, frozen=True, kw_only=True):
    """A file in the folder of media, and what is known of its content."""

    sha256: str
    size: int
    mime: str  # by its content
    width: int | None = None
    height: int | None = None
    seconds: float | None = None
    pages: int | None = None
    frames: int | None = None  # of an image; more than one: it moves
    has_metadata: bool = False  # an image has more than what shows it, see `image_metadata`


class FetchFailure(Struct, frozen=True, kw_only=True):
    """Media that could not be had."""

    why: str
    failures: int = 1
    retry_at: datetime | None = None  # None: never


class FileForm(Struct, frozen=True, kw_only=True):
    """What a file becomes for models that do not take it as it is: another file, a text, or a failure."""

    file: StoredFile | None = None
    text: str = ""
    failure: str = ""


class Handle(Struct, frozen=True, kw_only=True):
    """A file that a service has."""

    sha256: str
    account: str  # the service, and a digest of the key
    name: str  # by which it is deleted
    uri: str  # by which it is sent; empty as long as it is not known whether the service has it
    mime: str
    expires_at: datetime | None = None


def file_key(media: Media) -> str:
    """Return the id under which the file of media is stored: by their bytes if these are here, else theirs."""
    if media.unique_id and not media.data:
        return media.unique_id
    return sha256(media.data or (media.file_id or media.uri or "").encode(errors="replace")).hexdigest()


class MediaStore(Protocol):
    """Files by hash, and what they belong to. A file is whole on the disk before a row names it."""

    async def find(
        self, unique_ids: Collection[str], *, at: datetime | None = None
    ) -> Mapping[str, StoredFile | FetchFailure]:
        """Return the files of media, or why they have none. With *at*, the files count as used then."""
        ...

    async def get(self, sha256s: Collection[str]) -> Mapping[str, StoredFile]:
        """Return files by their hashes."""
        ...

    async def add(self, unique_id: str, data: bytes, file: StoredFile, *, at: datetime) -> StoredFile:
        """Store the bytes of media; return the file with its hash and size.

        Raise `StoreFull` where the disk is full, `StoreRefused` where the folder may not be written; nothing is stored
        then.
        """
        ...

    async def fail(self, unique_id: str, failure: FetchFailure, *, at: datetime) -> None:
        """Store that media could not be had."""
        ...

    async def read(self, sha256: str, *, at: datetime) -> bytes | None:
        """Return the bytes of a file, checked by its hash; None if it is gone or damaged, and is to be had again.

        The file counts as used, and the file that it is a form of.
        """
        ...

    async def locate(self, sha256: str) -> str | None:
        """Return the path of a file that was read before, for who reads it piece by piece; None if it is gone."""
        ...

    async def form(self, source: str, form: str) -> FileForm | None:
        """Return a form of a file, if it was made before."""
        ...

    async def add_form(
        self, source: str, form: str, made: FileForm, *, data: bytes | None = None, at: datetime
    ) -> None:
        """Store a form of a file, with its bytes if it is a file itself; nothing where the source is gone."""
        ...

    async def handle(self, sha256: str, account: str, *, at: datetime | None = None) -> Handle | None:
        """Return the newest handle of a file at a service, also an expired one. With *at*, the file counts as used."""
        ...

    async def begin_handle(self, handle: Handle, *, at: datetime) -> None:
        """Store the name under which a file is about to be uploaded: if it goes meanwhile, it is deleted there."""
        ...

    async def add_handle(self, handle: Handle, *, at: datetime) -> None:
        """Store a handle; an older one of the same file there becomes unwanted, as does this if the file is gone."""
        ...

    async def drop_handle(self, account: str, name: str) -> bool:
        """Use a handle no more, by its name or its URI: the service says it is gone; return whether it was known."""
        ...

    async def unwanted_handles(self, *, at: datetime | None = None) -> Sequence[Handle]:
        """Return the handles whose files are gone: they are to be deleted at the service.

        With *at*, without those whose upload may be under way then.
        """
        ...

    async def remove_handle(self, handle: Handle) -> None:
        """Remove an unwanted handle that the service has deleted, or that has expired."""
        ...

    async def sweep(self, *, unused_since: datetime, at: datetime) -> int:
        """Remove the files that nothing refers to, or that were not used since; return their number.

        A file that was used within an hour stays, since the prompt that names it may not be stored yet.
        """
        ...
