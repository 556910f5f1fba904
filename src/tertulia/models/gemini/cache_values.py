"""What is remembered of an explicit cache, and the protocols of its store and of its service. Pure."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol, runtime_checkable

from msgspec import Struct


class Cache(Struct, frozen=True, kw_only=True):
    """An explicit cache on the service; its name goes into `Prompt.cached`."""

    name: str
    model: str
    expires_at: datetime
    tokens: int
    label: str = ""  # the display name, which its maker gave it


class CacheFingerprint(Struct, frozen=True, kw_only=True):
    """What is remembered of the content of a cache: enough to recognize it, and content that has grown out of it."""

    digest: bytes
    frame: bytes
    length: int
    half: bytes  # digest of the first half of the contents


class StoredCache(Struct, frozen=True, kw_only=True):
    """An explicit cache, as it is remembered."""

    label: str  # our name of it, which the service shows
    account: str  # the service and a digest of the key
    model: str
    fingerprint: CacheFingerprint
    expires_at: datetime
    name: str = ""  # at the service; empty: it is not known, since making it did not end
    replaces: tuple[str, ...] = ()  # labels of the caches that it has grown out of
    unwanted: bool = False  # to be deleted at the service


class CacheStore(Protocol):
    """Remembers explicit caches. Those of a copied store belong to the original, and are not in it."""

    @property
    def is_durable(self) -> bool:
        """Whether another process finds them in it."""
        ...

    async def owner(self) -> str:
        """Return the mark of this store: letters and digits, no two stores have the same."""
        ...

    async def find(self, account: str) -> Sequence[StoredCache]:
        """Return the caches of an account, unwanted ones too."""
        ...

    async def add(self, cache: StoredCache) -> None:
        """Store a cache before it is made."""
        ...

    async def set_name(self, label: str, name: str) -> None:
        """Store the name that the service gave a cache."""
        ...

    async def drop(self, labels: Sequence[str]) -> None:
        """Store that nothing wants these caches."""
        ...

    async def remove(self, labels: Sequence[str]) -> None:
        """Forget caches that the service no longer has."""
        ...


@runtime_checkable
class HasCaches(Protocol):
    """A model whose service stores explicit caches."""

    @property
    def account(self) -> str: ...

    async def list_caches(self) -> Sequence[Cache]: ...

    async def delete_cache(self, name: str) -> None: ...


@runtime_checkable
class CachesPrompts(HasCaches, Protocol):
    """A model that makes such caches."""

    name: str

    def remember_in(self, store: CacheStore) -> None:
        """Remember its caches in *store*, unless another was given."""
        ...
