"""Processes that are killed while their prompts are cached at a service: the next start leaves no cache that nothing
wants there, uses the others, and touches nobody else's."""

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from httpx2 import AsyncClient

from engine.cache_child import KEY, MODEL, CacheLife
from lives import Lives, lives
from models.gemini.reading import Reader
from tertulia.models import Gemini
from tertulia.models.gemini.cache_values import StoredCache
from tertulia.sim.gemini import GeminiSim, Received
from tertulia.store import Store
from tertulia.turns import Prompt

CHILD = Path(__file__).parent / "cache_child.py"
RULES = "You keep the log of another ship. " * 400
OTHERS = ["", "tertulia", f"tertulia {'0' * 32} 1"]  # labels of caches that others have made


def kind_of(received: Received) -> str:
    if "cachedContents" in received.path:
        return {"POST": "make", "DELETE": "delete", "GET": "list"}[received.method]
    return "use" if "cachedContent" in (received.body or {}) else "plain"


class Station:
    """A service, and the processes that use it, of which one is killed at a request."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sim = GeminiSim(behaviour=Reader(), tell=self._told)
        self.lives: Lives | None = None
        self._child = 0
        self._kill_at: tuple[str, int] | None = None  # a kind of request, and which one of them

    def _told(self, received: Received) -> None:
        """The service has done what is asked; the answer is not sent yet."""
        if self._kill_at is None or kind_of(received) != self._kill_at[0]:
            return
        kind, left = self._kill_at
        self._kill_at = (kind, left - 1) if left > 1 else None
        if left == 1:
            os.kill(self._child, signal.SIGKILL)

    async def live(self, *, kill_at: tuple[str, int] | None = None, **life: Any) -> list[str]:
        """Let a process live, or be killed at a request; the kinds of its requests."""
        assert self.lives
        before, self._kill_at = len(self.sim.requests), kill_at
        self._child = await self.lives.begin(CacheLife(path=str(self.path), url=self.sim.url, **life))
        code = await self.lives.end(self._child, timeout=60)
        assert code == (-signal.SIGKILL if kill_at else 0), self.lives.log()
        return [kind_of(received) for received in self.sim.requests[before:]]

    async def labels(self) -> list[str]:
        """The labels of the caches that the service has."""
        async with AsyncClient(headers={"x-goog-api-key": KEY}) as client:
            answer = await client.get(f"{self.sim.url}/v1beta/cachedContents?pageSize=100")
        return sorted(one["displayName"] for one in answer.json().get("cachedContents", []))

    async def stored(self) -> list[StoredCache]:
        """The caches that the store remembers."""
        async with Store.open(self.path) as store, Gemini(MODEL, key=KEY, base_url=self.sim.url) as gemini:
            return list(await store.model_caches.find(gemini.account))


@asynccontextmanager
async def station(folder: Path) -> AsyncIterator[Station]:
    made = Station(folder / "s.db")
    async with made.sim, lives(CHILD, folder / "log") as made.lives:
        yield made


async def make_cache(url: str, label: str) -> None:
    """A cache of the same account that another program has made."""
    async with Gemini(MODEL, key=KEY, base_url=url) as other:
        await other.create_cache(Prompt.of(system=RULES), label=label)


@pytest.mark.parametrize(
    "kill_at",
    [
        ("make", 1),  # it was made, and nobody was told its name
        ("use", 1),
        ("use", 3),
        ("make", 2),  # the next one, which has grown
        ("use", 9),  # the first use of that: the one before is not deleted yet
        ("delete", 1),  # it was deleted, and nobody was told so
    ],
    ids=lambda point: f"{point[0]} {point[1]}",
)
async def test_the_next_start_uses_the_cache_that_is_wanted_and_deletes_every_other(
    tmp_path: Path, kill_at: tuple[str, int]
) -> None:
    async with station(tmp_path) as one:
        for label in OTHERS:
            await make_cache(one.sim.url, label)
        await one.live(count=12, kill_at=kill_at)
        requests = await one.live(first=20)

        labels, stored = await one.labels(), await one.stored()

    assert {kind for kind in requests if kind not in ("list", "delete")} == {"use"}
    (left,) = [label for label in labels if label not in OTHERS]
    assert labels == sorted([*OTHERS, left])
    assert [(cache.label, cache.unwanted, bool(cache.name)) for cache in stored] == [(left, False, True)]


async def test_a_start_alone_deletes_what_nothing_wants_and_leaves_the_rest(tmp_path: Path) -> None:
    async with station(tmp_path) as one:
        await one.live(count=12, kill_at=("use", 9))
        before = await one.labels()
        requests = await one.live(count=0, kill_at=("delete", 1))

        assert (len(before), len(await one.labels())) == (2, 1)
        assert [kind for kind in requests if kind != "use"] == ["list", "delete"]  # a run is resumed beside it


async def test_caches_are_found_again_after_an_end_in_peace_and_deleted_where_the_model_caches_no_more(
    tmp_path: Path,
) -> None:
    async with station(tmp_path) as one:
        first = await one.live(count=3)
        second = await one.live(first=3, count=2)
        there = await one.labels()
        await make_cache(one.sim.url, OTHERS[1])
        third = await one.live(first=5, caches=False)

        assert first == ["list", "plain", "make", "use", "use"]
        assert second == ["list", "use", "use"]
        assert len(there) == 1
        assert sorted(third) == ["delete", "list", "plain"]
        assert (await one.labels(), await one.stored()) == ([OTHERS[1]], [])


async def test_a_copy_of_the_store_leaves_the_caches_of_the_original_alone(tmp_path: Path) -> None:
    async with station(tmp_path) as one:
        await one.live(count=3)
        before = await one.labels()
        async with Store.open(one.path) as store:
            await store.backup(tmp_path / "copy.db")
        original, one.path = one.path, tmp_path / "copy.db"
        copied = await one.live(first=3, count=2)
        one.path = original
        again = await one.live(first=3, count=2)

        assert copied == ["list", "plain", "make", "use"]
        assert again == ["list", "use", "use"]
        assert set(before) < set(await one.labels())
