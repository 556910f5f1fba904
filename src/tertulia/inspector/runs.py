"""Runs: their rows, and one of them from its message to its reply."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import timedelta
from itertools import chain

from msgspec.structs import replace

from tertulia.engine.inspection import LoggedMessage, RunSummary
from tertulia.engine.limits import StoredCall
from tertulia.engine.store_protocols import DeliveryAttempt, OutboxItem, StoreProtocol
from tertulia.errors import InvalidValue, PromptRemoved
from tertulia.ids import SHORTEST
from tertulia.inspector.places import PAGE, place_key
from tertulia.inspector.shown import (
    Blocked,
    Mask,
    as_json,
    brief,
    halves_of,
    only,
    parts_of,
    shown_item,
    shown_message,
    words_of,
)
from tertulia.inspector.values import (
    CallShown,
    Delivered,
    LayerShown,
    Recollection,
    RunRow,
    RunShown,
    Span,
    StepShown,
)
from tertulia.inspector.words import must_act
from tertulia.messages import Place
from tertulia.models.calls import Call, PromptSize
from tertulia.models.prices import cost
from tertulia.run.journal import Journal, Run, RunStatus, SentPrompt, ToolRun
from tertulia.tokens import turn_tokens
from tertulia.turns import Layer

MOST_CALLS = 1_000  # of one run
_LAST_STEP = 2**31  # what is sent comes after all steps


async def runs(
    store: StoreProtocol,
    *,
    status: RunStatus | None = None,
    place: Place | None = None,
    before: str | None = None,
    fact: str | None = None,
    most: int = PAGE,
) -> tuple[RunRow, ...]:
    """Return the newest runs before the one with the id *before*, the newest first; those that were shown a fact."""
    found = await store.inspection.runs(place=place, status=status, before=before, fact=fact, most=most)
    return run_rows(found, await store.inspection.blocked())


def run_rows(found: Iterable[RunSummary], blocked: Blocked) -> tuple[RunRow, ...]:
    """Return the rows of runs."""
    return tuple(_row(one, blocked) for one in found)


def _row(found: RunSummary, blocked: Blocked) -> RunRow:
    layers, size = parts_of(found.layers, found.size)
    return RunRow(
        run=found.run,
        place_key=place_key(found.run.place),
        message=brief(found.target, blocked) if found.target else None,
        spent=found.spent,
        layers=layers,
        size=size,
    )


async def find_run(store: StoreProtocol, given: str) -> str:
    """Return the id of the run that begins with *given*; raise `InvalidValue` where there is none, or several."""
    found = await store.prompts.runs(given) if given else []
    if given in found:
        return given
    if not found:
        raise InvalidValue(f"there is no run {given:.100}")
    if len(found) > 1:
        raise InvalidValue(f"{len(found)} runs begin with {given:.100}; at least {SHORTEST} characters tell them apart")
    return found[0]


async def run(store: StoreProtocol, given: str, *, unmasked: bool = False) -> RunShown:
    """Return the run whose id begins with *given*; *unmasked* with the mark of its place."""
    run_id = await find_run(store, given)
    inspection, blocked = store.inspection, await store.inspection.blocked()
    summary = only(await inspection.runs(ids=[run_id], most=1))
    row = run_rows([summary], blocked)[0]
    journal = await store.runs.journal(run_id)
    if journal is None:
        raise InvalidValue(f"there is no run {given:.100}")
    delimiter = "" if unmasked else await store.place_settings.delimiter(row.run.place)
    sent, why_no_steps = await _sent(store, journal.run)
    calls = await store.usage.calls(run=run_id, most=MOST_CALLS)
    taken = await inspection.messages(row.run.place, ids=row.run.taken, most=len(row.run.taken))
    items = await inspection.replies([run_id])
    attempts = await store.outbox.attempts(*(item.id for item in items))
    replies = tuple(Delivered(item=shown_item(item), attempts=tuple(attempts.get(item.id, ()))) for item in items)
    recalled = await recollections(store, run_id, blocked)
    return RunShown(
        row=row,
        taken=tuple(shown_message(one.message, blocked) for one in taken),
        spans=tuple(_spans(row.run, taken, sent, calls, journal.tools, replies, recalled)),
        steps=steps_shown(sent, calls, journal, Mask(delimiter)),
        must_act=must_act(calls[-1].call.error) if calls and row.run.status == "failed" else None,
        why_no_steps=why_no_steps,
        recalled=recalled,
        replies=replies,
        tasks=tuple(await inspection.tasks([run_id])),
    )


async def _sent(store: StoreProtocol, run: Run) -> tuple[Sequence[SentPrompt], str]:
    """Return the prompts of a run, or none and why."""
    try:
        sent = await store.prompts.sent_by(run.id)
    except PromptRemoved as error:
        return (), str(error)
    return sent, "" if sent else "no model was asked"


def steps_shown(
    sent: Iterable[SentPrompt], calls: Iterable[StoredCall], journal: Journal, mask: Mask
) -> tuple[StepShown, ...]:
    """Return the steps of a run with their layers, calls, answers and tools."""
    by_step: dict[int | None, list[Call]] = {}
    for stored in calls:
        by_step.setdefault(stored.call.step, []).append(stored.call)
    return tuple(_step(one, by_step.get(one.step, ()), journal, mask) for one in sent)


def _step(sent: SentPrompt, calls: Iterable[Call], journal: Journal, mask: Mask) -> StepShown:
    records = [record for step, record in journal.records if step == sent.step and record.turn.role == "model"]
    answer = records[-1] if records else None
    _, size = parts_of((layer.name for layer in sent.prompt.layers), sent.size)
    return StepShown(
        step=sent.step,
        at=sent.at,
        model=sent.model,
        tools=sent.prompt.tools,
        tool_tokens=size.tools,
        layers=tuple(_layers(sent, size, mask)),
        size=size,
        left_out=sent.left_out,
        tried=sent.tried,
        calls=tuple(CallShown(call=call, without_cache=without_cache(call)) for call in calls),
        answer=mask.turn(answer.turn) if answer else None,
        usable=bool(answer and answer.valid),
        tool_runs=tuple(tool_shown(tool, mask) for tool in journal.tools_of(sent.step)),
    )


def tool_shown(tool: ToolRun, mask: Mask) -> ToolRun:
    """Return a tool run as it is shown."""
    call, result = mask.part(tool.call), tool.result and mask.part(tool.result)
    return replace(tool, call=call, result=result)


def _layers(sent: SentPrompt, size: PromptSize, mask: Mask) -> Iterable[LayerShown]:
    layers = list(chain.from_iterable(map(halves_of, sent.prompt.layers)))
    for layer, tokens, again in zip(layers, size.layers, _repeated(layers, size), strict=True):
        yield LayerShown(
            name=layer.name,
            tokens=tokens,
            repeated=again,
            instruction=mask.text(layer.instruction),
            turns=tuple(map(mask.turn, layer.turns)),
        )


def _repeated(layers: Sequence[Layer], size: PromptSize) -> list[int]:
    """Return how many tokens of each layer repeat the prompt before: tools come first, then instructions, then turns.

    An instruction has the tokens of its layer that its turns do not have.
    """
    turns = [sum(map(turn_tokens, layer.turns)) for layer in layers]
    instructions = [max(0, tokens - of_turns) for tokens, of_turns in zip(size.layers, turns, strict=True)]
    left = max(0, size.stable - size.tools)
    found = [0] * len(layers)
    for pieces in (instructions, turns):
        for number, tokens in enumerate(pieces):
            again = min(tokens, left)
            found[number] += again
            left -= again
    return found


def without_cache(call: Call) -> float:
    """Return what a call would have cost without a cache."""
    return cost(replace(call.usage, cached=0), call.price) if call.price else 0.0


async def recollections(store: StoreProtocol, run_id: str, blocked: Blocked) -> tuple[Recollection, ...]:
    """Return what was recalled for a run, each with its text as it is stored now."""
    things = await store.runs.recalled(run_id)
    facts = await store.inspection.facts([one.id for one in things if one.kind == "fact"])
    episodes = await store.inspection.episodes([one.id for one in things if one.kind == "episode"])
    said: dict[tuple[object, str], str] = {}
    for place in {one.place for one in things if one.place}:
        ids = [one.id for one in things if one.place == place]
        for found in await store.inspection.messages(place, ids=ids, most=len(ids)):
            said[place, found.message.id] = words_of(shown_message(found.message, blocked))
    shown = []
    for one in things:
        where = one.place
        match one.kind:
            case "fact":
                text = facts[one.id].text if one.id in facts else ""
            case "message":
                text = said.get((one.place, one.id), "")
            case "episode":
                episode = episodes.get(one.id)
                text, where = (f"{episode.topic}: {episode.summary}", episode.place) if episode else ("", None)
        shown.append(Recollection(thing=one, text=text, place_key=place_key(where) if where else None))
    return tuple(shown)


def _spans(
    run: Run,
    taken: Sequence[LoggedMessage],
    sent: Sequence[SentPrompt],
    calls: Sequence[StoredCall],
    tools: Sequence[ToolRun],
    replies: Sequence[Delivered],
    recalled: Sequence[Recollection],
) -> list[Span]:
    """Return the bars of the time line of a run, in order."""
    spans: list[Span] = []
    received = min((one.received_at for one in taken if one.received_at), default=None)
    if received and received <= run.began_at:
        more = f"{len(taken)} messages" if len(taken) > 1 else "waited for more"
        spans.append(Span(kind="wait", label="Message", begun_at=received, ended_at=run.began_at, note=more))
    if sent:
        note = _gathered(sent[0], recalled)
        spans.append(Span(kind="gather", label="Gather", begun_at=run.began_at, ended_at=sent[0].at, note=note))
    for stored in calls:
        spans += _call_spans(stored.call)
    spans += [_tool_span(tool) for tool in tools]
    spans += [span for one in replies for span in _send_spans(one.item, one.attempts)]
    return sorted(spans, key=lambda span: (span.begun_at, _LAST_STEP if span.kind == "send" else span.step or 0))


def _gathered(sent: SentPrompt, recalled: Sequence[Recollection]) -> str:
    """Return what the sources gave: `4 facts, 1 episode; 31 left out`."""
    kinds = Counter(one.thing.kind for one in recalled)
    found = [f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in kinds.items()]
    left = sum(one.count or 1 for one in sent.left_out)
    return "; ".join(filter(None, (", ".join(found), f"{left} left out" if left else "")))


def _call_spans(call: Call) -> list[Span]:
    """Return the bars of a call: the wait before it, and itself."""
    used, number = call.usage, (call.step or 0) + 1
    cached = f", {used.cached / used.input:.0%} cached" if used.input else ""
    note = f"{used.input:,} in{cached}, {used.output + used.thought:,} out" if used.total else ""
    failed = call.status != "answered"
    again = f", try {call.attempt}" if call.attempt > 1 else ""
    purpose = "Request" if call.purpose == "answer" else call.purpose.capitalize()
    asked = Span(
        kind="request",
        label=f"{purpose} {number}{again}" if call.step is not None else f"{purpose}{again}",
        begun_at=call.begun_at,
        ended_at=call.ended_at,
        note=f"{call.error}: {call.why}" if call.error else note or call.why,
        step=call.step,
        failed=failed,
    )
    if not call.waited:
        return [asked]
    since = call.begun_at - timedelta(seconds=call.waited)
    return [Span(kind="retry", label="Wait", begun_at=since, ended_at=call.begun_at, step=call.step), asked]


def _tool_span(tool: ToolRun) -> Span:
    return Span(
        kind="tool",
        label=tool.call.name,
        begun_at=tool.began_at,
        ended_at=tool.ended_at,
        note=as_json(tool.call.args)[:200],
        step=tool.step,
        failed=bool(tool.result and tool.result.failed),
    )


def _send_spans(item: OutboxItem, attempts: Iterable[DeliveryAttempt]) -> list[Span]:
    what = "Draft" if item.kind == "draft" else "Send"
    part = f" {item.part + 1}" if item.reply_id else ""
    return [
        Span(
            kind="send",
            label=f"{what}{part}" + (f", try {one.number}" if one.number > 1 else ""),
            begun_at=one.begun_at,
            ended_at=one.ended_at,
            note=one.why or one.outcome or "under way, or cut off",
            failed=one.outcome not in ("sent", None),
        )
        for one in attempts
    ]
