"""Strata: the requests of a place on a day under each other, and the difference of two of them."""

from collections.abc import Iterable
from datetime import date, datetime
from itertools import chain

from tertulia.engine.inspection import SentSummary, Spent
from tertulia.engine.store_protocols import StoreProtocol
from tertulia.errors import InvalidValue
from tertulia.inspector.places import place_row
from tertulia.inspector.runs import find_run
from tertulia.inspector.shown import Blocked, Mask, as_json, brief, halves_of, only, parts_of, turn_text
from tertulia.inspector.values import Difference, LayerDifference, Strata, Stratum
from tertulia.messages import Place
from tertulia.run.journal import SentPrompt

MOST = 100  # requests of a day, the newest
_CHANGING = ("dynamic", "trigger", "run")  # layers that are another text in most requests


async def strata(store: StoreProtocol, place: Place, day: date | None = None, *, now: datetime) -> Strata:
    """Return the requests of a place on a day in UTC, by default the last one with requests."""
    row = await place_row(store, place, now=now)
    days = await store.inspection.days(place)
    day = day or (days[0] if days else now.date())
    blocked = await store.inspection.blocked()
    strips = strips_of(await store.inspection.sent(place=place, day=day, most=MOST), blocked)
    return Strata(
        row=row,
        day=day,
        strips=strips,
        spent=sum((one.spent for one in strips), Spent()),
        breaks=sum(one.broke for one in strips),
        days=tuple(days),
    )


def strips_of(found: Iterable[SentSummary], blocked: Blocked) -> tuple[Stratum, ...]:
    """Return requests as strips."""
    return tuple(_strip(one, blocked) for one in found)


def _strip(found: SentSummary, blocked: Blocked) -> Stratum:
    layers, size = parts_of(found.layers, found.size)
    return Stratum(
        run_id=found.run_id,
        agent=found.agent,
        step=found.step,
        at=found.at,
        model=found.model,
        message=brief(found.target, blocked) if found.target else None,
        after=found.after,
        layers=layers,
        size=size,
        spent=found.spent,
        status=found.status,
        broke=size.broken_by is not None and size.broken_by not in _CHANGING,
    )


async def difference(store: StoreProtocol, a: str, b: str) -> Difference:
    """Return the difference of two requests, each named by its run and step: `85a6b2c1.0`."""
    first, second = await _request(store, a), await _request(store, b)
    runs = list({first.run_id, second.run_id})
    found = await store.inspection.sent(runs=runs, most=MOST)
    strips = {(one.run_id, one.step): one for one in strips_of(found, await store.inspection.blocked())}
    mask = Mask(await _delimiter(store, first.run_id), await _delimiter(store, second.run_id))
    before, after = _texts(first, mask), _texts(second, mask)
    return Difference(
        a=strips[first.run_id, first.step],
        b=strips[second.run_id, second.step],
        layers=tuple(_compared(before, after)),
    )


async def _request(store: StoreProtocol, named: str) -> SentPrompt:
    run, _, step = named.rpartition(".")
    if not step.isascii() or not step.isdecimal() or len(step) > 6:
        raise InvalidValue(f"{named:.100} names no request: give a run and its step, as in 85a6b2c1.0")
    sent = await store.prompts.sent(await find_run(store, run), int(step))
    if sent is None:
        raise InvalidValue(f"run {run:.100} has no step {step}")
    return sent


async def _delimiter(store: StoreProtocol, run_id: str) -> str:
    found = only(await store.inspection.runs(ids=[run_id], most=1))
    return await store.place_settings.delimiter(found.run.place)


_Text = tuple[str, int]  # what a layer says, and about how many tokens that has


def _texts(sent: SentPrompt, mask: Mask) -> dict[str, _Text]:
    """Return what the tools and each layer of a prompt say."""
    found: dict[str, _Text] = {}
    if sent.prompt.tools:
        tools = "\n\n".join(f"{one.name}: {one.description}\n{as_json(one.parameters)}" for one in sent.prompt.tools)
        found["tools"] = tools, sent.size.tools
    _, size = parts_of((layer.name for layer in sent.prompt.layers), sent.size)
    parts = chain.from_iterable(map(halves_of, sent.prompt.layers))
    for layer, tokens in zip(parts, size.layers, strict=True):
        text = "\n".join(filter(None, (layer.instruction, *map(turn_text, layer.turns))))
        found[layer.name] = mask.text(text), tokens
    return found


def _compared(before: dict[str, _Text], after: dict[str, _Text]) -> Iterable[LayerDifference]:
    for name in dict.fromkeys((*before, *after)):
        (old, old_tokens), (new, new_tokens) = before.get(name, ("", 0)), after.get(name, ("", 0))
        changed = old != new
        yield LayerDifference(
            name=name,
            tokens=(old_tokens, new_tokens),
            before=old if changed else "",
            after=new if changed else "",
        )
