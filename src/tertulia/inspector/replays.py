"""Past requests beside themselves: in another profile, for another model, or sent to one."""

from contextlib import aclosing
from typing import Literal

import orjson
from msgspec import Struct

from tertulia.engine.replay.replayer import Replayer
from tertulia.engine.store_protocols import StoreProtocol
from tertulia.inspector.requests import requests, shown_body
from tertulia.inspector.runs import find_run
from tertulia.inspector.shown import Mask
from tertulia.inspector.values import Check
from tertulia.models.base import Model
from tertulia.models.calls import Call
from tertulia.turns import Turn


class RenderedShown(Struct, frozen=True, kw_only=True):
    """A past request as it was sent, and as it would be."""

    wire: Literal["gemini", "openai"]
    model: str
    profile: str
    before: str  # JSON; empty where it cannot be rebuilt
    after: str  # JSON
    tokens: int  # estimated
    money: float | None  # in dollars, for these tokens without a cache; None: the price is not known


class SentAgainShown(Struct, frozen=True, kw_only=True):
    """A past request that was sent again, beside what it got then."""

    check: Check  # whether the request of then is rebuilt as it was sent
    before: Turn | None
    after: Turn
    finish: str  # how the response ended
    call: Call


async def rendered(
    store: StoreProtocol,
    replayer: Replayer,
    given: str,
    step: int,
    *,
    model: Model | str | None,
    profile: str | None,
) -> RenderedShown:
    """Return a request of the run whose id begins with *given*, in a profile or for a model; nobody is asked."""
    run = await find_run(store, given)
    before = await requests(store, run, step)
    async with aclosing(replayer):
        found = await replayer.render(run, step, model, profile=replayer.profile_named(profile))
    mask = Mask(await _delimiter(store, run))
    return RenderedShown(
        wire=found.wire,
        model=found.model,
        profile=found.profile,
        before=before[-1].body if before else "",
        after=orjson.dumps(shown_body(found.body, mask)).decode(),
        tokens=found.tokens,
        money=found.money,
    )


async def sent_again(
    store: StoreProtocol, replayer: Replayer, given: str, step: int, *, model: Model, profile: str | None
) -> SentAgainShown:
    """Send a request of the run whose id begins with *given* to a model; its tools do not run."""
    run = await find_run(store, given)
    async with aclosing(replayer):
        found = await replayer.send(run, step, model, profile=replayer.profile_named(profile))
    mask, journal = Mask(await _delimiter(store, run)), await store.runs.journal(run)
    records = journal.records if journal else ()
    before = [record.turn for of, record in records if of == step and record.turn.role == "model"]
    return SentAgainShown(
        check=Check(ok=found.check.is_same, what=f"rebuilt from the store, {found.check.why}"),
        before=mask.turn(before[-1]) if before else None,
        after=mask.turn(found.turn),
        finish=found.finish,
        call=found.call,
    )


async def _delimiter(store: StoreProtocol, run: str) -> str:
    journal = await store.runs.journal(run)
    return await store.place_settings.delimiter(journal.run.place) if journal else ""
