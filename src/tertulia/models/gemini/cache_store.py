"""Explicit caches beyond their process: each is stored before it is made, and deleted when nothing wants it.

A service gives a cache its name only when it has made it. So each has a *label* of ours beside it, its display name:
the mark of the store that it belongs to, and some random letters. The label is stored first, then the cache is made,
then its name is stored. A process that is killed in between leaves a label without a name: the next one finds the name
in the list of the service. Caches of the same account with another mark, or with none, are never touched.
"""

import logging
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from secrets import token_hex

from msgspec.structs import replace

from tertulia.errors import CacheGone, ModelUnknown, TertuliaError
from tertulia.models.gemini.cache_values import CacheStore, HasCaches, StoredCache

log = logging.getLogger(__name__)


class InMemoryCaches:
    """Implements `CacheStore` for one process."""

    is_durable = False

    def __init__(self) -> None:
        self._owner = token_hex(16)
        self._caches: dict[str, StoredCache] = {}

    async def owner(self) -> str:
        return self._owner

    async def find(self, account: str) -> Sequence[StoredCache]:
        return [one for one in self._caches.values() if one.account == account]

    async def add(self, cache: StoredCache) -> None:
        self._caches[cache.label] = cache

    async def set_name(self, label: str, name: str) -> None:
        if one := self._caches.get(label):
            self._caches[label] = replace(one, name=name)

    async def drop(self, labels: Sequence[str]) -> None:
        self._caches |= {
            label: replace(self._caches[label], unwanted=True) for label in labels if label in self._caches
        }

    async def remove(self, labels: Sequence[str]) -> None:
        for label in labels:
            self._caches.pop(label, None)


def new_label(owner: str) -> str:
    return f"{_mark(owner)}{token_hex(8)}"


def _mark(owner: str) -> str:
    return f"tertulia {owner} "


async def with_names(service: HasCaches, store: CacheStore, known: Iterable[StoredCache]) -> list[StoredCache]:
    """Return the caches with names; those whose making did not end get theirs from the list of the service."""
    found = list(known)
    if all(one.name for one in found):
        return found
    names = {cache.label: cache.name for cache in await service.list_caches()}
    for number, one in enumerate(found):
        if not one.name and one.label in names:
            found[number] = replace(one, name=names[one.label])
            await store.set_name(one.label, names[one.label])
    return [one for one in found if one.name]


async def delete_cache(service: HasCaches, name: str) -> None:
    """Delete a cache at its service, unless that has none of this name."""
    with suppress(CacheGone, ModelUnknown):  # both are what a 404 may say
        await service.delete_cache(name)


async def delete_unwanted(
    service: HasCaches,
    store: CacheStore,
    *,
    at: datetime,
    models: Collection[str] | None = None,
    look: bool = True,
) -> bool:
    """Delete the caches of this store that nothing wants; return whether none of them is left.

    Nothing wants a cache that was dropped or replaced, or whose model is not among the *models*. With *look* the list
    of the service is read: a cache there with the mark of this store, which the store does not know, is deleted too.
    """
    mark, account = _mark(await store.owner()), service.account
    listed = await service.list_caches() if look else ()  # first: what is in it, the store has known since then
    known = {one.label: one for one in await store.find(account)}
    there = {cache.label: cache.name for cache in listed if cache.label.startswith(mark)}
    gone = [await _delete(service, name) for label, name in there.items() if label not in known]
    replaced = {label for one in known.values() if one.name or one.label in there for label in one.replaces}
    for one in known.values():
        if one.expires_at <= at:
            await store.remove([one.label])
        elif one.unwanted or one.label in replaced or (models is not None and one.model not in models):
            await store.drop([one.label])
            name = one.name or there.get(one.label)
            gone.append(name is not None and await _delete(service, name))
            if gone[-1]:
                await store.remove([one.label])
    return all(gone)


async def _delete(service: HasCaches, name: str) -> bool:
    try:
        await delete_cache(service, name)
    except TertuliaError as error:
        log.info("%s is deleted later: %s", name, error)
        return False
    return True
