"""Contents kept on purpose: the `cachedContents` of a simulator."""

import re
from collections.abc import Callable
from random import Random
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from palaver.sim.gemini.catalogue import Catalogue
from palaver.sim.gemini.clock import moment, stamp
from palaver.sim.gemini.errors import ServiceError, no_cache, refused, unknown_model
from palaver.sim.gemini.paging import page
from palaver.sim.gemini.rules import bare, generation, read
from palaver.sim.gemini.tokens import Counting, Sizes

Wire = dict[str, Any]

_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"
_HELD = ("contents", "systemInstruction", "tools", "toolConfig")
_HOUR = 3600.0


class Cache(Struct, frozen=True, kw_only=True):
    """What one handle stands for."""

    name: str
    owner: str
    model: str
    display_name: str
    held: Wire
    tokens: int
    created: float
    updated: float
    expires: float

    @property
    def wire(self) -> Wire:
        return {
            "name": self.name,
            "model": f"models/{self.model}",
            "displayName": self.display_name,
            "createTime": stamp(self.created),
            "updateTime": stamp(self.updated),
            "expireTime": stamp(self.expires),
            "usageMetadata": {"totalTokenCount": self.tokens},
        }


class Caches:
    """Every cache there is; one that has expired is as good as gone."""

    def __init__(self, clock: Callable[[], float], random: Random, *, catalogue: Catalogue, sizes: Sizes) -> None:
        self._clock = clock
        self._random = random
        self._catalogue = catalogue
        self._sizes = sizes
        self._kept: dict[str, Cache] = {}

    def create(self, body: object, *, owner: str, version: str) -> Wire:
        wanted, unread = read("cachedContent", body)
        if unread:
            raise refused(unread)
        model = self._model(wanted.get("model", ""), version)
        held = {name: wanted[name] for name in _HELD if name in wanted}
        tokens = sum(Counting(generation(model), self._sizes).request(held).values())
        smallest = self._catalogue.models[model].smallest_cache
        if tokens < smallest:
            message = f"Cached content is too small. total_token_count={tokens}, min_total_token_count={smallest}"
            raise ServiceError(400, message, rule="cache")
        now = self._clock()
        name = "cachedContents/" + "".join(self._random.choices(_ALPHABET, k=40))
        cache = Cache(
            name=name,
            owner=owner,
            model=model,
            display_name=str(wanted.get("displayName", "")),
            held=held,
            tokens=tokens,
            created=now,
            updated=now,
            expires=_expiry(wanted, now, now + _HOUR),
        )
        self._kept[name] = cache
        return cache.wire

    def _model(self, name: str, version: str) -> str:
        if not name.startswith("models/"):
            message = "* CreateCachedContentRequest.cached_content.model: unexpected model name format\n"
            raise ServiceError(400, message, rule="cache")
        model = self._catalogue.find(bare(name), version)
        if model is None or not model.caches:
            raise unknown_model(bare(name), version, "createCachedContent")
        return model.name

    def get(self, name: str, owner: str) -> Cache:
        """The cache called *name*; raises the service's error if it is gone, or somebody else's."""
        cache = self._kept.get(name)
        if cache is None or cache.owner != owner or cache.expires <= self._clock():
            raise no_cache()
        return cache

    def used(self, name: str, owner: str, model: str) -> Cache:
        """The cache a request to *model* names."""
        cache = self.get(name, owner)
        if cache.model != model:
            message = (
                f"Model used by GenerateContent request (models/{model}) and CachedContent (models/{cache.model})"
                " has to be the same."
            )
            raise ServiceError(400, message, rule="cache")
        return cache

    def update(self, name: str, owner: str, body: object) -> Wire:
        cache = self.get(name, owner)
        wanted, unread = read("cachedContent", body)
        if unread:
            raise refused(unread)
        now = self._clock()
        changed = replace(cache, updated=now, expires=_expiry(wanted, now, cache.expires))
        self._kept[name] = changed
        return changed.wire

    def delete(self, name: str, owner: str) -> Wire:
        del self._kept[self.get(name, owner).name]
        return {}

    def list(self, owner: str, query: dict[str, str]) -> Wire:
        now = self._clock()
        shown = [cache.wire for cache in self._kept.values() if cache.owner == owner and cache.expires > now]
        return page("cachedContents", shown[::-1], query)


def _expiry(wanted: Wire, now: float, default: float) -> float:
    if "ttl" in wanted and "expireTime" in wanted:
        message = "Invalid value at 'cached_content' (oneof), oneof field 'expiration' is already set."
        raise ServiceError(400, f"{message} Cannot set 'expireTime'", rule="cache")
    if "ttl" in wanted:
        found = re.fullmatch(r"(-?\d{1,9}(?:\.\d{1,9})?)s", str(wanted["ttl"]))
        if found is None:
            raise ServiceError(400, "Invalid value at 'cached_content.ttl', Illegal duration format", rule="cache")
        return now + float(found[1])
    if "expireTime" not in wanted:
        return default
    try:
        return moment(str(wanted["expireTime"]))
    except ValueError as error:
        message = "Invalid value at 'cached_content.expire_time', Illegal timestamp format"
        raise ServiceError(400, message, rule="cache") from error
