"""Gemini with the static layer of its prompts in an explicit cache, created at its second use if it is large enough.

When caches are created and deleted. A *candidate* is a static layer that was sent in a request; its content is known by
a digest. At its second use within the TTL the cache is created, in a task of its own, so that everybody who asks
meanwhile waits for the same one. When the layer has grown, the new content begins with that of an active cache
(`has_grown_out_of`): the new cache is created at once, and the old one deleted only after the first
request with the new one has worked.

Why no answer is lost. A request with a cache can fail in three ways, and each ends in a plain request or in the error
that the plain request would have raised. The cache is gone (403, 404): it is created again, once. The request is
refused: the same prompt is sent plainly, and if that works the cache is the cause and is deleted. A file in the cache
is gone: the caller must act, as without a cache. Creating a cache never raises: a refusal marks the candidate, any
other failure pauses all creation, with backoff.

With a store (`cache_store`) a later process uses the caches of this one, and deletes what this one could not.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any, Self

from msgspec import Struct
from msgspec.structs import replace

from tertulia import errors
from tertulia.backoff import backoff
from tertulia.models.base import File, Response
from tertulia.models.gemini.cache_store import (
    InMemoryCaches,
    delete_cache,
    delete_unwanted,
    new_label,
    with_names,
)
from tertulia.models.gemini.cache_values import Cache, CacheFingerprint, CacheStore, StoredCache
from tertulia.models.gemini.client import Gemini
from tertulia.models.gemini.encode import (
    CacheContent,
    cache_content,
    fingerprint_of,
    has_grown_out_of,
    rest_of_prompt,
)
from tertulia.parts import Media, Part
from tertulia.tokens import prompt_tokens
from tertulia.turns import Prompt, Role
from tertulia.wire.generations import smallest_cache
from tertulia.wire.part_forms import file_uris, is_sent_to_gemini

log = logging.getLogger(__name__)

Pieces = AsyncIterator[Part | Response]
Ask = Callable[[Prompt], Pieces]

PAUSE, MAX_PAUSE = 60.0, 3600.0  # seconds until a cache is created again: doubled with each failure
MAX_CANDIDATES = 4096  # static layers whose last use is remembered

_GONE = (errors.CacheGone, errors.KeyRefused, errors.ModelUnknown)  # 403 and 404 are worded in several ways


class CachedGemini:
    """`CachedGemini(Gemini("gemini-3.8-flash"))`: the same model, with the static layer stored by the service.

    The cache holds the leading static layer and the tools, if they have *threshold* tokens and the model's minimum. It
    is created at the second use of the same content within *ttl* seconds: creating one costs as much as sending it,
    so a prompt that comes once is never cached. Content that has grown out of a cache that was used more than once is
    cached at its first use, and the old cache deleted. If anything fails, the prompt is sent without a cache.

    With a *store* (`store.model_caches`; an `Engine` gives it its own) caches outlive the process: the next one finds
    them, and `async with` or the start of the engine deletes those that nothing wants. Without a store they are deleted
    when the model is closed. *now* returns seconds since the epoch.

    It saves if the service does not cache prefixes by itself, or not reliably. Where it always does, explicit caches
    cost more, because each growth of the layer is paid once more.
    """

    def __init__(
        self,
        gemini: Gemini,
        *,
        store: CacheStore | None = None,
        threshold: int = 4096,
        ttl: int = 3600,
        early: float = 60.0,
        patience: float = 30.0,
        now: Callable[[], float] = time.time,
        count: Callable[[Prompt], int] = prompt_tokens,
    ) -> None:
        if not 0 <= early < ttl:
            raise errors.InvalidValue(f"early={early:g} must be at least 0 and less than ttl={ttl}")
        smallest = smallest_cache(gemini.name)
        self.name = gemini.name
        self._gemini = gemini
        self._store = store or InMemoryCaches()
        self._count = count
        self._min_tokens = None if smallest is None else max(threshold, smallest)  # None: the model has no caches
        self._ttl = ttl
        self._early = early  # seconds before its expiry from which on a cache is not used
        self._patience = patience  # seconds that creating or deleting one may take
        self._now = now
        self._candidates: dict[bytes, _Candidate] = {}
        self._active: dict[bytes, _ActiveCache] = {}
        self._loading: asyncio.Task[None] | None = None  # of the caches of an earlier process
        self._creating: dict[bytes, asyncio.Task[_ActiveCache | None]] = {}
        self._ending: dict[str, asyncio.Task[None]] = {}
        self._failures = 0
        self._paused_until = float("-inf")

    async def __aenter__(self) -> Self:
        if self._is_durable:
            with _failures_logged("caches of an earlier process are deleted later"):
                async with asyncio.timeout(self._patience):
                    await delete_unwanted(self._gemini, self._store, at=_time(self._now()))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Delete our caches on the service, unless a store remembers them, and close the model's connections."""
        await asyncio.gather(*self._creating.values(), return_exceptions=True)
        if not self._is_durable:
            for cache in self._unexpired():
                self._delete(cache)
        self._active.clear()
        await asyncio.gather(*self._ending.values(), return_exceptions=True)
        await self._gemini.aclose()

    def remember_in(self, store: CacheStore) -> None:
        """Remember caches in *store*, unless another was given or the first request was sent."""
        if self._loading is None and not self._store.is_durable:
            self._store = store

    async def list_caches(self) -> list[Cache]:
        return await self._gemini.list_caches()

    async def delete_cache(self, name: str) -> None:
        await self._gemini.delete_cache(name)

    async def check_model(self) -> None:
        await self._gemini.check_model()

    def takes(self, media: Media, _: Role) -> bool:
        return is_sent_to_gemini(media)

    @property
    def account(self) -> str:
        return self._gemini.account

    async def upload(self, data: bytes, *, mime: str, name: str = "") -> File:
        return await self._gemini.upload(data, mime=mime, name=name)

    def is_own_file(self, uri: str) -> bool:
        return self._gemini.is_own_file(uri)

    async def get_file(self, name: str) -> File:
        return await self._gemini.get_file(name)

    async def delete_file(self, name: str) -> None:
        await self._gemini.delete_file(name)

    async def respond(self, prompt: Prompt) -> Response:
        [response] = [piece async for piece in self._answer(prompt, self._whole)]
        assert isinstance(response, Response)  # noqa: S101 (`_whole` yields nothing else)
        return response

    def stream(self, prompt: Prompt) -> AsyncGenerator[Part | Response, None]:
        """Yield the parts as they arrive, then the calls, then the Response: incomplete if it broke off."""
        return self._answer(prompt, self._gemini.stream)

    async def _whole(self, prompt: Prompt) -> Pieces:
        yield await self._gemini.respond(prompt)

    async def _answer(self, prompt: Prompt, ask: Ask) -> AsyncGenerator[Part | Response, None]:
        first, others = await self._start(prompt, ask)
        try:
            yield first
            async for piece in others:
                yield piece
        finally:
            if isinstance(others, AsyncGenerator):
                await others.aclose()  # if the caller stopped reading

    async def _start(self, prompt: Prompt, ask: Ask) -> tuple[Part | Response, Pieces]:
        """Return the first piece of the answer and the rest: with a cache, with a new cache, or without one."""
        for again in (False, True):
            cache, rest = await self._with_cache(prompt)
            if cache is None:
                break
            pieces = ask(rest)
            try:
                first = await anext(pieces)
            except _GONE:
                self._lose(cache, again=again)
            except errors.FileGone:
                if file_uris(prompt.layers[0].turns):  # the cache may hold the file
                    self._give_up(cache)
                raise
            except errors.RequestRefused:
                plain = await _first(ask(prompt))  # raises the same error if the cache is not to blame
                self._give_up(cache)
                return plain
            else:
                self._use(cache)
                return first, pieces
        return await _first(ask(prompt))

    async def _with_cache(self, prompt: Prompt) -> "tuple[_ActiveCache | None, Prompt]":
        """Return the cache and what to send beside it; without a cache, None and the prompt itself."""
        if self._loading is None:
            self._loading = asyncio.create_task(self._load())
        await asyncio.shield(self._loading)
        content = self._content_to_cache(prompt)
        rest = rest_of_prompt(prompt, self.name) if content else None
        cache = await self._get_or_create(content) if content and rest else None
        return (cache, replace(rest, cached=cache.name)) if cache and rest else (None, prompt)

    def _content_to_cache(self, prompt: Prompt) -> CacheContent | None:
        """Return what of the prompt to cache. None if it is too small, was refused, or is used for the first time."""
        if self._min_tokens is None:
            return None
        content = cache_content(prompt, self.name)
        if content is None:
            return None
        candidate = self._candidates.pop(content.digest, None) or _Candidate(
            tokens=self._count(content.prompt), since=self._now()
        )
        comes_again = self._now() - candidate.at < self._ttl
        candidate.at = self._now()
        self._candidates[content.digest] = candidate  # now the newest
        if len(self._candidates) > MAX_CANDIDATES:
            del self._candidates[next(iter(self._candidates))]
        if candidate.refused or candidate.tokens < self._min_tokens:
            return None
        if comes_again or any(
            cache.fingerprint.digest == content.digest
            or (cache.uses > 1 and has_grown_out_of(content, cache.fingerprint))
            for cache in self._unexpired()
        ):
            return content
        return None

    async def _get_or_create(self, content: CacheContent) -> "_ActiveCache | None":
        cache = self._active.get(content.digest)
        if cache and self._now() < cache.until:
            return cache
        if content.digest not in self._creating:
            if self._now() < self._paused_until:
                return None
            task = asyncio.create_task(self._create(content))  # the first caller may be cancelled
            self._creating[content.digest] = task
            task.add_done_callback(lambda _: self._creating.pop(content.digest))
        return await asyncio.shield(self._creating[content.digest])

    async def _load(self) -> None:
        """Take over the caches that an earlier process left."""
        if not self._is_durable:
            self._store = InMemoryCaches()  # also if the account is not known
            return
        with _failures_logged("caches of an earlier process are not used"):
            async with asyncio.timeout(self._patience):
                stored = [one for one in await self._store.find(self.account) if one.model == self.name]
                wanted = [one for one in stored if not one.unwanted and one.expires_at > _time(self._now())]
                named = await with_names(self._gemini, self._store, wanted)
            found = {one.label: self._active_cache(one, uses=1) for one in named}
            for one in named:
                found[one.label].replaces = [found[label] for label in one.replaces if label in found]
            self._active = {cache.fingerprint.digest: cache for cache in found.values()}

    async def _create(self, content: CacheContent) -> "_ActiveCache | None":
        replaces = [old for old in self._unexpired() if self._is_replaced(old, content)]
        begun = StoredCache(
            label="",
            account=self.account,
            model=self.name,
            fingerprint=fingerprint_of(content),
            expires_at=_time(self._now() + self._ttl),
            replaces=tuple(old.label for old in replaces),
        )
        try:
            begun = replace(begun, label=new_label(await self._store.owner()))
            await self._store.add(begun)
            async with asyncio.timeout(self._patience):
                created = await self._gemini.create_cache(content.prompt, ttl=self._ttl, label=begun.label)
        except (errors.RequestRefused, errors.FileGone) as error:
            log.info("%s refuses to cache this: %s", self.name, error)
            self._refuse(content.digest)
            await self._forget(begun.label)
            return None
        except (errors.TertuliaError, TimeoutError) as error:
            log.warning("cannot create a cache of %s for now: %s", self.name, str(error) or "timeout")
            self._pause(error)
            with suppress(errors.TertuliaError):
                await self._store.drop([begun.label])  # the service may have made it
            return None
        log.debug("created %s of %d tokens", created.name, created.tokens)
        with _failures_logged(f"the name of {created.name} is not stored"):
            await self._store.set_name(begun.label, created.name)
        cache = self._active_cache(replace(begun, name=created.name), replaces=replaces)
        self._active = {old.fingerprint.digest: old for old in self._unexpired()} | {content.digest: cache}
        return cache

    def _is_replaced(self, old: "_ActiveCache", content: CacheContent) -> bool:
        """Return whether nothing wants *old* once *content* is cached.

        One without turns may be of several conversations: it is replaced if nobody used it since *content* came.
        """
        if old.fingerprint.length:
            return has_grown_out_of(content, old.fingerprint)
        return old.fingerprint.frame == content.frame and old.used_at < self._candidates[content.digest].since

    def _use(self, cache: "_ActiveCache") -> None:
        """Count a use of the cache; at the first one, delete the caches that it replaces."""
        self._failures = 0
        cache.uses += 1
        cache.used_at = self._now()
        for old in cache.replaces:
            self._drop(old)
            self._delete(old)
        cache.replaces = []

    def _lose(self, cache: "_ActiveCache", *, again: bool) -> None:
        """Forget a cache that has expired. After the second one in a row, pause."""
        self._drop(cache)
        if cache.uses:
            self._end(cache, self._forget(cache.label))
        else:
            self._delete(cache)  # it may exist although this key cannot use it
        if again:
            self._pause(None)

    def _give_up(self, cache: "_ActiveCache") -> None:
        """Delete a cache whose requests are refused although they work without it."""
        log.info("%s refuses requests with %s", self.name, cache.name)
        self._refuse(cache.fingerprint.digest)
        self._drop(cache)
        self._delete(cache)

    def _drop(self, cache: "_ActiveCache") -> None:
        if self._active.get(cache.fingerprint.digest) is cache:
            del self._active[cache.fingerprint.digest]

    def _refuse(self, digest: bytes) -> None:
        if digest in self._candidates:
            self._candidates[digest].refused = True

    def _pause(self, error: Exception | None) -> None:
        wait = backoff(self._failures + 1, first=PAUSE, longest=MAX_PAUSE)
        asked = error.retry_after if isinstance(error, errors.ModelUnavailable) else None
        self._failures += 1
        self._paused_until = self._now() + max(wait, asked or 0.0)

    def _delete(self, cache: "_ActiveCache") -> None:
        """Delete a cache on the service, in the background; if that fails, the next start does it, or it expires."""
        self._end(cache, self._delete_now(cache))

    def _end(self, cache: "_ActiveCache", ending: Coroutine[Any, Any, None]) -> None:
        if cache.label in self._ending:
            ending.close()
            return
        self._ending[cache.label] = asyncio.create_task(ending)
        self._ending[cache.label].add_done_callback(lambda _: self._ending.pop(cache.label))

    async def _delete_now(self, cache: "_ActiveCache") -> None:
        with suppress(errors.TertuliaError, TimeoutError):
            await self._store.drop([cache.label])
            async with asyncio.timeout(self._patience):
                await delete_cache(self._gemini, cache.name)
            await self._store.remove([cache.label])

    async def _forget(self, label: str) -> None:
        with suppress(errors.TertuliaError):
            await self._store.remove([label])

    def _active_cache(
        self, stored: StoredCache, *, replaces: "Sequence[_ActiveCache]" = (), uses: int = 0
    ) -> "_ActiveCache":
        return _ActiveCache(
            label=stored.label,
            name=stored.name,
            fingerprint=stored.fingerprint,
            until=stored.expires_at.timestamp() - self._early,
            replaces=list(replaces),
            uses=uses,
        )

    def _unexpired(self) -> "list[_ActiveCache]":
        now = self._now()
        return [cache for cache in self._active.values() if now < cache.until]

    @property
    def _is_durable(self) -> bool:
        """Whether caches are remembered beyond this process: those of an unknown account would not be found again."""
        return self._store.is_durable and bool(self.account)


class _ActiveCache(Struct, kw_only=True):
    """A cache on the service, and the caches to delete after its first use."""

    label: str
    name: str
    fingerprint: CacheFingerprint
    until: float
    replaces: "list[_ActiveCache]" = []
    uses: int = 0
    used_at: float = float("-inf")


class _Candidate(Struct, kw_only=True):
    """A static layer that was sent in a request and may get a cache."""

    tokens: int
    since: float  # its first use
    at: float = float("-inf")  # its last one
    refused: bool = False  # whether the service refused to cache it


async def _first(pieces: Pieces) -> tuple[Part | Response, Pieces]:
    return await anext(pieces), pieces


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


@contextmanager
def _failures_logged(what: str) -> Iterator[None]:
    """Log a failure of the service or of the store: no answer waits for what failed."""
    try:
        yield
    except (errors.TertuliaError, TimeoutError) as error:
        log.warning("%s: %s", what, str(error) or "timeout")
