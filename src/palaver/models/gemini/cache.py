"""Gemini with the static layer of its prompts in an explicit cache: made when it pays, renewed unnoticed."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import suppress
from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from palaver import errors
from palaver.backoff import backoff
from palaver.models.base import Response
from palaver.models.gemini.cacheable import (
    CacheContent,
    CacheFingerprint,
    cache_content,
    fingerprint_of,
    rest_of_prompt,
)
from palaver.models.gemini.client import Gemini
from palaver.parts import Media, Part
from palaver.tokens import prompt_tokens
from palaver.turns import Prompt, Role
from palaver.wire.generations import smallest_cache
from palaver.wire.media_support import file_uris, is_sent_to_gemini

log = logging.getLogger(__name__)

Pieces = AsyncIterator[Part | Response]
Ask = Callable[[Prompt], Pieces]

PAUSE, MAX_PAUSE = 60.0, 3600.0  # seconds until a cache is tried again: doubled with each failure
MAX_CANDIDATES = 4096  # static layers whose last use is known

_GONE = (errors.CacheGone, errors.KeyRefused, errors.ModelUnknown)  # 403 and 404 are worded in several ways


class CachedGemini:
    """`CachedGemini(Gemini("gemini-3.8-flash"))`: the same model, with what does not change kept by the service.

    What is kept is the leading static layer with the tools, once it holds *threshold* tokens and the least the model
    takes. A cache is made at the second use of the same content within *ttl* seconds, because making one costs as much
    as sending it: a prompt that comes once is never cached. One that has grown out of a cache which was used more than
    once is made at its first use, and the old one deleted. Whatever fails, the prompt is sent plainly.

    It pays where the service does not remember prefixes by itself, or not reliably: one that always did would be
    cheaper without, because every growth of the layer is paid for once more.
    """

    def __init__(
        self,
        gemini: Gemini,
        *,
        threshold: int = 4096,
        ttl: int = 3600,
        early: float = 60.0,
        patience: float = 30.0,
        now: Callable[[], float] = time.monotonic,
        count: Callable[[Prompt], int] = prompt_tokens,
    ) -> None:
        if not 0 <= early < ttl:
            raise errors.InvalidValue(f"a cache of {ttl} s cannot be taken for gone {early:g} s before its end")
        smallest = smallest_cache(gemini.name)
        self.name = gemini.name
        self._gemini = gemini
        self._count = count
        self._least = None if smallest is None else max(threshold, smallest)  # tokens; None: the model has no caches
        self._ttl = ttl
        self._early = early  # seconds before its end at which a cache is taken for gone
        self._patience = patience  # seconds that making or deleting one may take
        self._now = now
        self._seen: dict[bytes, _Candidate] = {}
        self._kept: dict[bytes, _ActiveCache] = {}
        self._making: dict[bytes, asyncio.Task[_ActiveCache | None]] = {}
        self._deleting: dict[str, asyncio.Task[None]] = {}
        self._failures = 0
        self._paused_until = float("-inf")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Delete what the service keeps for us, and close the model's connections."""
        await asyncio.gather(*self._making.values(), return_exceptions=True)
        for kept in self._living():
            self._delete(kept.name)
        self._kept.clear()
        await asyncio.gather(*self._deleting.values(), return_exceptions=True)
        await self._gemini.aclose()

    def takes(self, media: Media, _: Role) -> bool:
        return is_sent_to_gemini(media)

    async def respond(self, prompt: Prompt) -> Response:
        [response] = [piece async for piece in self._asked(prompt, self._whole)]
        assert isinstance(response, Response)  # noqa: S101 (it is what was asked for)
        return response

    def stream(self, prompt: Prompt) -> AsyncGenerator[Part | Response, None]:
        """Yield the parts as they arrive, then the calls, then the Response: incomplete if it broke off."""
        return self._asked(prompt, self._gemini.stream)

    async def _whole(self, prompt: Prompt) -> Pieces:
        yield await self._gemini.respond(prompt)

    async def _asked(self, prompt: Prompt, ask: Ask) -> AsyncGenerator[Part | Response, None]:
        first, others = await self._begun(prompt, ask)
        try:
            yield first
            async for piece in others:
                yield piece
        finally:
            if isinstance(others, AsyncGenerator):
                await others.aclose()  # where the reader left early

    async def _begun(self, prompt: Prompt, ask: Ask) -> tuple[Part | Response, Pieces]:
        """The first piece of the answer and the others: with a cache, with one made anew, or plainly."""
        for again in (False, True):
            kept, rest = await self._with_cache(prompt)
            if kept is None:
                break
            pieces = ask(rest)
            try:
                first = await anext(pieces)
            except _GONE:
                self._lose(kept, again=again)
            except errors.FileGone:
                if file_uris(prompt.layers[0].turns):  # it may hold the file, and then it is of no more use
                    self._give_up(kept)
                raise
            except errors.RequestRefused:
                plain = await _first(ask(prompt))  # raises the same where the cache is not to blame
                self._give_up(kept)
                return plain
            else:
                self._use(kept)
                return first, pieces
        return await _first(ask(prompt))

    async def _with_cache(self, prompt: Prompt) -> "tuple[_ActiveCache | None, Prompt]":
        """The cache to ask with and what to send beside it; without one the prompt itself."""
        held = self._worth_keeping(prompt)
        rest = rest_of_prompt(prompt, self.name) if held else None
        kept = await self._found_or_made(held) if held and rest else None
        return (kept, replace(rest, cached=kept.name)) if kept and rest else (None, prompt)

    def _worth_keeping(self, prompt: Prompt) -> CacheContent | None:
        """What of the prompt belongs in a cache; None where it is too little, or was not yet seen to come again."""
        if self._least is None:
            return None
        held = cache_content(prompt, self.name)
        if held is None:
            return None
        sight = self._seen.pop(held.digest, None) or _Candidate(tokens=self._count(held.prompt))
        comes_again = self._now() - sight.at < self._ttl
        sight.at = self._now()
        self._seen[held.digest] = sight  # now the youngest
        if len(self._seen) > MAX_CANDIDATES:
            del self._seen[next(iter(self._seen))]
        if sight.refused or sight.tokens < self._least:
            return None
        if comes_again or any(kept.uses > 1 and kept.mark.grew_into(held) for kept in self._living()):
            return held
        return None

    async def _found_or_made(self, held: CacheContent) -> "_ActiveCache | None":
        kept = self._kept.get(held.digest)
        if kept and self._now() < kept.until:
            return kept
        if held.digest not in self._making:
            if self._now() < self._paused_until:
                return None
            task = asyncio.create_task(self._make(held))  # of its own: whoever asked first may leave
            self._making[held.digest] = task
            task.add_done_callback(lambda _: self._making.pop(held.digest))
        return await asyncio.shield(self._making[held.digest])

    async def _make(self, held: CacheContent) -> "_ActiveCache | None":
        begun = self._now()
        try:
            async with asyncio.timeout(self._patience):
                cache = await self._gemini.create_cache(held.prompt, ttl=self._ttl)
        except (errors.RequestRefused, errors.FileGone) as error:
            log.info("%s keeps no cache of this: %s", self.name, error)
            self._refuse(held.digest)
            return None
        except (errors.PalaverError, TimeoutError) as error:
            log.warning("no cache of %s for now: %s", self.name, str(error) or "not made in time")
            self._pause(error)
            return None
        log.debug("%s of %d tokens made", cache.name, cache.tokens)
        living = self._living()
        kept = _ActiveCache(
            name=cache.name,
            mark=fingerprint_of(held),
            until=begun + self._ttl - self._early,
            replaces=[old for old in living if old.mark.grew_into(held)],
        )
        self._kept = {old.mark.digest: old for old in living} | {held.digest: kept}
        return kept

    def _use(self, kept: "_ActiveCache") -> None:
        """Note that the cache works; at its first use, delete those it has grown out of."""
        self._failures = 0
        kept.uses += 1
        for old in kept.replaces:
            self._drop(old)
            self._delete(old.name)
        kept.replaces = []

    def _lose(self, kept: "_ActiveCache", *, again: bool) -> None:
        """Forget a cache that is gone; where it is gone *again*, another is not worth trying soon."""
        self._drop(kept)
        if not kept.uses:
            self._delete(kept.name)  # it may live, only not for us
        if again:
            self._pause(None)

    def _give_up(self, kept: "_ActiveCache") -> None:
        """Forget a cache whose requests are refused although they are good without it."""
        log.info("%s refuses requests with %s", self.name, kept.name)
        self._refuse(kept.mark.digest)
        self._drop(kept)
        self._delete(kept.name)

    def _drop(self, kept: "_ActiveCache") -> None:
        if self._kept.get(kept.mark.digest) is kept:
            del self._kept[kept.mark.digest]

    def _refuse(self, digest: bytes) -> None:
        if digest in self._seen:
            self._seen[digest].refused = True

    def _pause(self, error: Exception | None) -> None:
        wait = backoff(self._failures + 1, first=PAUSE, longest=MAX_PAUSE)
        asked = error.retry_after if isinstance(error, errors.ModelUnavailable) else None
        self._failures += 1
        self._paused_until = self._now() + max(wait, asked or 0.0)

    def _delete(self, name: str) -> None:
        """Have the service delete a cache, while nobody waits; where that fails, it ends with its time."""
        if name not in self._deleting:
            self._deleting[name] = asyncio.create_task(self._deleted(name))
            self._deleting[name].add_done_callback(lambda _: self._deleting.pop(name))

    async def _deleted(self, name: str) -> None:
        with suppress(errors.PalaverError, TimeoutError):
            async with asyncio.timeout(self._patience):
                await self._gemini.delete_cache(name)

    def _living(self) -> "list[_ActiveCache]":
        now = self._now()
        return [kept for kept in self._kept.values() if now < kept.until]


class _ActiveCache(Struct, kw_only=True):
    """A cache of ours, and the caches that end with its first use."""

    name: str
    mark: CacheFingerprint
    until: float
    replaces: "list[_ActiveCache]" = []
    uses: int = 0


class _Candidate(Struct, kw_only=True):
    """A static layer that came by."""

    tokens: int
    at: float = float("-inf")  # when it last came
    refused: bool = False  # whether the service would not keep it


async def _first(pieces: Pieces) -> tuple[Part | Response, Pieces]:
    return await anext(pieces), pieces
