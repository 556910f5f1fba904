"""Caches that a store remembers: what fails on the way leaves nothing at the service that nobody wants."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from models.gemini.reading import FLASH, Reader, exactly
from models.gemini.test_cache import a_prompt, history, kinds, stored_caches
from store.builders import a_cache
from tertulia import errors
from tertulia.models import CachedGemini, Gemini
from tertulia.models.gemini.cache_store import InMemoryCaches, delete_unwanted, new_label
from tertulia.sim import gemini as sims
from tertulia.sim.gemini import GeminiSim
from tertulia.turns import Prompt

PROMPT = a_prompt(told=history(2))


class Durable(InMemoryCaches):
    """A store that outlives the models of a test; its writes may fail."""

    is_durable = True

    def __init__(self) -> None:
        super().__init__()
        self.full = False
        self.is_busy = False

    async def owner(self) -> str:
        if self.is_busy:
            raise errors.StoreTrouble("the database is locked")
        return await super().owner()

    async def add(self, cache: Any) -> None:
        if self.full:
            raise errors.StoreFull("the disk is full")
        await super().add(cache)


@pytest.fixture
async def sim() -> AsyncIterator[GeminiSim]:
    async with GeminiSim(behaviour=Reader()) as running:
        yield running


def cached(sim: GeminiSim, store: Any = None, **changes: Any) -> CachedGemini:
    given = {"count": exactly, "now": sim.clock, **changes}
    return CachedGemini(Gemini(FLASH, key="k", base_url=sim.url), store=store, **given)


async def talked(model: CachedGemini, *prompts: Prompt) -> None:
    for prompt in prompts:
        await model.respond(prompt)


def now(sim: GeminiSim) -> datetime:
    return datetime.fromtimestamp(sim.clock(), UTC)


async def test_the_next_model_uses_the_cache_that_the_one_before_left(sim: GeminiSim) -> None:
    store = Durable()
    async with cached(sim, store) as model:
        await talked(model, PROMPT, PROMPT)
    async with cached(sim, store) as model:
        await talked(model, PROMPT)

    assert kinds(sim) == ["list", "plain", "make", "use", "list", "use"]


async def test_a_cache_that_has_expired_meanwhile_is_not_used(sim: GeminiSim) -> None:
    store = Durable()
    async with cached(sim, store) as model:
        await talked(model, PROMPT, PROMPT)
    sim.clock.advance(3600)
    async with cached(sim, store) as model:
        await talked(model, PROMPT)

        assert kinds(sim)[4:] == ["list", "plain"]
        assert await store.find(model.account) == []


async def test_without_a_store_caches_end_with_the_model(sim: GeminiSim) -> None:
    async with cached(sim) as model:
        await talked(model, PROMPT, PROMPT)

    assert kinds(sim) == ["plain", "make", "use", "delete"]
    assert await stored_caches(sim) == []


async def test_a_store_that_is_full_leaves_the_prompt_without_a_cache(
    sim: GeminiSim, caplog: pytest.LogCaptureFixture
) -> None:
    store = Durable()
    async with cached(sim, store) as model:
        store.full = True
        await talked(model, PROMPT, PROMPT, PROMPT)

    assert kinds(sim) == ["list", "plain", "plain", "plain"]
    assert "cannot create a cache of gemini-3.8-flash for now: the disk is full" in caplog.text


async def test_a_store_that_cannot_be_read_leaves_the_prompt_without_a_cache(
    sim: GeminiSim, caplog: pytest.LogCaptureFixture
) -> None:
    store = Durable()
    async with cached(sim, store) as model:
        await talked(model, PROMPT)
        store.is_busy = True
        await talked(model, PROMPT, PROMPT)

    assert kinds(sim)[-3:] == ["plain", "plain", "plain"]
    assert "cannot create a cache of gemini-3.8-flash for now: the database is locked" in caplog.text


@pytest.mark.parametrize(
    ("fault", "rows"), [(sims.Overloaded(), 1), (sims.ContextTooLong(), 0)], ids=["in doubt", "refused"]
)
async def test_a_cache_that_may_have_been_made_is_unwanted_and_a_refused_one_is_forgotten(
    sim: GeminiSim, fault: Any, rows: int
) -> None:
    store = Durable()
    async with cached(sim, store) as model:
        await talked(model, PROMPT)
        sim.fail(fault)
        await talked(model, PROMPT)
        found = await store.find(model.account)

    assert [(one.name, one.unwanted) for one in found] == [("", True)] * rows


async def test_one_that_could_not_be_deleted_is_deleted_later(sim: GeminiSim) -> None:
    store = Durable()
    async with cached(sim, store) as model:
        await talked(model, PROMPT, PROMPT)
        (made,) = await store.find(model.account)
        await store.drop([made.label])
        sim.fail(sims.Overloaded())
        first = await delete_unwanted(model, store, at=now(sim), look=False)
        left = await stored_caches(sim)
        second = await delete_unwanted(model, store, at=now(sim), look=False)

        assert (first, len(left), second) == (False, 1, True)
        assert (await stored_caches(sim), await store.find(model.account)) == ([], [])


async def test_one_of_ours_that_the_store_does_not_know_is_deleted_and_nothing_of_others(sim: GeminiSim) -> None:
    store = Durable()
    async with Gemini(FLASH, key="k", base_url=sim.url) as gemini:
        held = Prompt(layers=PROMPT.layers[:1])
        for label in (new_label(await store.owner()), new_label("0" * 32), "", "tertulia"):
            await gemini.create_cache(held, label=label)
        done = await delete_unwanted(gemini, store, at=now(sim))
        left = sorted(one.label for one in await gemini.list_caches())

    assert done
    assert [label[:10] for label in left] == ["", "tertulia", "tertulia 0"]


async def test_caches_of_models_that_are_not_used_any_more_are_deleted(sim: GeminiSim) -> None:
    store = Durable()
    async with cached(sim, store) as model:
        await talked(model, PROMPT, PROMPT)

        await delete_unwanted(model, store, at=now(sim), models={"gemini-2.5-flash"})

        assert await stored_caches(sim) == []


async def test_a_name_that_nobody_was_told_is_looked_for_until_the_cache_expires(sim: GeminiSim) -> None:
    store = Durable()
    async with Gemini(FLASH, key="k", base_url=sim.url) as gemini:
        soon = now(sim) + timedelta(hours=1)
        row = a_cache(new_label(await store.owner()), account=gemini.account, expires_at=soon, unwanted=True)
        await store.add(row)

        assert not await delete_unwanted(gemini, store, at=now(sim))
        await gemini.create_cache(Prompt(layers=PROMPT.layers[:1]), label=row.label)  # the service was slow
        assert await delete_unwanted(gemini, store, at=now(sim))
        assert (await gemini.list_caches(), await store.find(gemini.account)) == ([], [])


async def test_a_store_is_taken_until_the_first_request_and_none_replaces_another(sim: GeminiSim) -> None:
    first, second, third = Durable(), Durable(), Durable()
    given, late = cached(sim, first), cached(sim)
    given.remember_in(second)
    await talked(late, PROMPT)
    late.remember_in(third)
    for model in (given, late):
        await talked(model, PROMPT, PROMPT)

    found = [len(await store.find(given.account)) for store in (first, second, third)]
    await given.aclose()
    await late.aclose()
    assert found == [1, 0, 0]


async def test_all_pages_of_a_list_are_read(sim: GeminiSim, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tertulia.models.gemini.client._LISTED", 2)
    async with Gemini(FLASH, key="k", base_url=sim.url) as gemini:
        for number in range(5):
            await gemini.create_cache(Prompt(layers=PROMPT.layers[:1]), label=str(number))

        assert sorted(one.label for one in await gemini.list_caches()) == ["0", "1", "2", "3", "4"]
        assert kinds(sim).count("list") == 3
