"""`tertulia inspect`: is the bot well, what was sent in a place, and one run from its message to its reply."""

from datetime import UTC, datetime
from itertools import zip_longest
from typing import TYPE_CHECKING, Annotated

import typer

from tertulia.cli.options import DB, find_place, open_beside
from tertulia.cli.output import (
    author_label,
    count_of,
    local_time,
    one_line,
    place_label,
    print_json,
    print_line,
    print_table,
    relative_time,
    short_ids,
)
from tertulia.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from tertulia.engine.inspection import Spent
    from tertulia.inspector.agents import KnownAgents
    from tertulia.inspector.values import (
        DecisionPage,
        Home,
        LayerShown,
        MessageBrief,
        ModelHealth,
        PlaceRow,
        RunRow,
        RunShown,
        Span,
        StepShown,
        Strata,
        Stratum,
    )
    from tertulia.messages import Message
    from tertulia.store import Store

WIDTH = 48  # columns of a bar
IDLE = 2.0  # seconds of a time line in which nothing happens, from which on they are one column
DECISIONS = 12  # of a place, the newest
NEW, CACHED, NOTHING = "█", "░", "·"
PLACES_HEAD = ("place", "state", "last message", "when", "runs", "cached", "today")
RUNS_HEAD = ("id", "began", "place", "agent", "message", "took", "cost", "status")
MODELS_HEAD = ("model", "calls", "failed", "median", "cached", "today", "last failure")
DECISIONS_HEAD = ("message", "who", "text", "agent", "why")
SPANS_HEAD = ("what", "", "took", "")
LAYERS_HEAD = ("layer", "tokens", "as before", "says")


def inspect(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[PLACE|RUN]",
            help="A place: its title, id, or platform:id. A run: the beginning of its id. Default: the whole bot.",
        ),
    ] = None,
    day: Annotated[
        datetime | None,
        typer.Option(formats=["%Y-%m-%d"], metavar="DATE", help="Of a place: the requests of this day."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what is shown as a JSON object.")] = False,
    db: DB = None,
) -> None:
    """Show whether the bot is well, what was sent in a place and why it was answered, or one run.

    In the bars of a place, pale is what the service had in its cache, and full what was new; below is what broke the
    prefix. The same is on the page of `tertulia web`. A bot may be running meanwhile.
    """
    import asyncio

    home, place, run = asyncio.run(_read(db, what, day.date() if day else None))
    if as_json:
        print_json(home or run or (place and {"strata": place[0], "decisions": place[1]}))
    elif home:
        _print_home(home)
    elif place:
        _print_strata(place[0])
        _print_decisions(place[1])
    elif run:
        _print_run(run)


def add_to(app: typer.Typer) -> None:
    app.command(epilog="Example: tertulia inspect Friends")(inspect)


async def _read(
    db: "str | None", what: str | None, day: "date | None"
) -> "tuple[Home | None, tuple[Strata, DecisionPage] | None, RunShown | None]":
    """Return what is asked for: home, the requests and decisions of a place, or a run."""
    from tertulia.inspector import agents, home, places, runs, strata

    now = datetime.now(UTC)
    async with open_beside(db) as store:
        known = await _agents(store)
        if what is None:
            return await home.home(store, now=now, agents=agents.briefs(known)), None, None
        if what and await store.prompts.runs(what) and not await _is_place(store, what):
            return None, None, await runs.run(store, what)
        place = await find_place(store, what)
        return (
            None,
            (
                await strata.strata(store, place, day, now=now),
                await places.decisions(store, place, now=now, agents=await agents.present(store, known, place)),
            ),
            None,
        )


async def _agents(store: "Store") -> "KnownAgents":
    """Return the agents of the config here."""
    from tertulia.app import known_agents
    from tertulia.config import find_config, load_config
    from tertulia.inspector.agents import KnownAgents

    path = find_config()
    return await known_agents(load_config(path), store) if path else KnownAgents()


async def _is_place(store: "Store", what: str) -> bool:
    try:
        await find_place(store, what)
    except InvalidValue:
        return False
    return True


def _print_home(home: "Home") -> None:
    spent, store = home.today, home.store
    print_line(_sentence(home), bold=True)
    cap = f" of ${home.cap.money:.2f}" if home.cap and home.cap.money is not None else ""
    lines = {
        "today": f"{_money(spent)}{cap}; {count_of(spent.calls, 'requests')}, {_tokens(spent)}",
        "runs": f"{home.runs_done} done, {home.runs_failed} failed, {count_of(home.replies_sent, 'replies')} sent"
        + (f", median {home.median_seconds:.1f} s" if home.median_seconds is not None else ""),
        "queue": f"{home.answering} answering, {home.waiting} waiting"
        + (f"; next task {local_time(home.next_task.due_at)}" if home.next_task else ""),
        "store": f"{one_line(store.name, None)}: {store.messages:,} messages, "
        f"{count_of(store.prompts, 'prompts')}, "
        f"{count_of(store.facts, 'facts')}, {count_of(store.episodes, 'episodes')}",
    }
    for name, said in lines.items():
        print_line(f"{name + ':':8} {said}")
    for model in home.models:
        if model.down_since:
            print_line(
                f"down:    {one_line(model.model)} since {local_time(model.down_since)}: {one_line(model.why)}",
                fg="red",
            )
    for one in home.to_decide:
        why = one_line(one.item.why) or "nobody knows whether it arrived"
        print_line(
            f"decide:  {one_line(one.item.reply.text)} to {place_label(one.item.reply.place)}: {why}; "
            f"tertulia outbox --send {one_line(one.item.id[:12])}, or --drop",
            fg="yellow",
        )
    if home.places:
        print_line("")
        print_table(PLACES_HEAD, [_place_row(row, home.now) for row in home.places], red=_failed(home.places))
    if home.models:
        print_line("")
        print_table(MODELS_HEAD, [_model_row(one) for one in home.models])
    if home.runs:
        names = short_ids(row.run.id for row in home.runs)
        rows = [(names[row.run.id], *_run_row(row)) for row in home.runs]
        print_line("")
        print_table(RUNS_HEAD, rows, red=[row.run.status == "failed" for row in home.runs])


def _sentence(home: "Home") -> str:
    """Return how the bot is, in a sentence or two."""
    agent = one_line(", ".join(one.name for one in home.agents) or home.agent) or "The bot"
    if not home.runs:
        return f"{agent} {'has' if len(home.agents) < 2 else 'have'} answered nothing yet."
    is_down = home.models and all(one.down_since for one in home.models)  # where one is not, it answers
    down = f"runs, but {', '.join(one_line(one.model) for one in home.models)} does not answer"
    is_single = len(home.agents) < 2
    rests, answers = ("is not running", "answers") if is_single else ("are not running", "answer")
    state = f"{agent} {rests if home.running is False else down if is_down else answers}."
    if home.to_decide:
        waits = "reply waits" if len(home.to_decide) == 1 else "replies wait"
        return f"{state} {len(home.to_decide)} {waits} for your decision."
    failed = f" {count_of(home.runs_failed, 'runs')} failed today." if home.runs_failed else ""
    return f"{state}{failed}"


def _failed(rows: "Sequence[PlaceRow]") -> list[bool]:
    return [row.state == "failed" for row in rows]


def _place_row(row: "PlaceRow", now: datetime) -> tuple[str, ...]:
    last = row.last
    state = f"failed: {one_line(row.why, 30)}" if row.state == "failed" else row.state
    return (
        place_label(row.place),
        f"{state}, {count_of(row.waiting, 'messages')}" if row.waiting else state,
        _said(last, 40) if last else "",
        relative_time(last.sent_at, now) if last and last.sent_at else "",
        str(row.runs),
        _cached(row.today),
        _cost(row.today),
    )


def _model_row(model: "ModelHealth") -> tuple[str, ...]:
    return (
        one_line(model.model),
        str(model.spent.calls),
        str(model.failed) if model.failed else "",
        f"{model.median_seconds:.1f} s" if model.median_seconds is not None else "",
        _cached(model.spent),
        _cost(model.spent),
        f"{local_time(model.failed_at)} {one_line(model.why, 50)}" if model.failed_at else "",
    )


def _run_row(row: "RunRow") -> tuple[str, ...]:
    run = row.run
    return (
        local_time(run.began_at),
        place_label(run.place),
        one_line(run.agent, 20),
        _said(row.message, 40) if row.message else "",
        f"{run.seconds:.1f} s" if run.ended_at else "",
        _cost(row.spent),
        "under way" if run.status == "open" else run.status,
    )


def _print_strata(strata: "Strata") -> None:
    row, spent = strata.row, strata.spent
    print_line(f"{place_label(row.place)}, {strata.day}: {count_of(len(strata.strips), 'requests')}", bold=True)
    print_line(f"{_money(spent)}; {_tokens(spent)}; {count_of(strata.breaks, 'breaks')} of the prefix")
    if not strata.strips:
        days = ", ".join(map(str, strata.days[:10]))
        return print_line(f"there are requests on {days}" if days else "nothing was sent there yet, or it was removed")
    longest = max(strip.size.total for strip in strata.strips) or 1
    for strip in strata.strips:
        print_line(_strip_line(strip, longest), fg="red" if strip.status == "failed" else None)
        if strip.broke:
            at = round(WIDTH * strip.size.stable / longest)
            print_line(f"{'':46}{' ' * at}▲ {one_line(strip.size.broken_by or '')}: {strip.size.cause}", fg="yellow")
    return None


def _strip_line(strip: "Stratum", longest: int) -> str:
    """Return a request as a bar: pale where the service had it in its cache, else as far as it repeats."""
    used, length = strip.spent, round(WIDTH * strip.size.total / longest)
    share = used.cached / used.input if used.input else strip.size.stable / max(1, strip.size.total)
    pale = min(length, round(length * share))
    bar = NOTHING * length if strip.status in ("failed", "under way") else CACHED * pale + NEW * (length - pale)
    said = f"after {', '.join(strip.after)}" if strip.after else _said(strip.message, 24) if strip.message else ""
    label = f"{local_time(strip.at)[11:]}  {one_line(strip.run_id[:8])}.{strip.step}  {said}"
    tokens = f"{used.input:,}" if used.input else f"about {strip.size.total:,}"
    return f"{one_line(label, 45):46}{bar:{WIDTH}}  {tokens:>12} {_cached(used):>6} {_cost(used):>9}"


def _print_decisions(page: "DecisionPage") -> None:
    newest = page.messages[-DECISIONS:]
    if newest:
        print_line("")
        rows = [
            (one_line(one.message.id), one_line(one.message.author.name, 20), _text(one.message), agent, why)
            for one in newest
            for agent, why in zip_longest((one_line(made.agent, 20) for made in one.decisions), one.words, fillvalue="")
        ]
        print_table(DECISIONS_HEAD, rows)


def _print_run(shown: "RunShown") -> None:
    from tertulia.inspector.words import MUST_ACT

    row, run = shown.row, shown.row.run
    status = {"open": "under way", "done": "done", "failed": f"failed: {one_line(run.why)}"}[run.status]
    print_line(_said(row.message, None) if row.message else f"message {one_line(run.target)}", bold=True)
    took = f" in {(run.ended_at - run.began_at).total_seconds():.1f} s" if run.ended_at else ""
    by = f" of {one_line(run.agent)}" if run.agent else ""
    print_line(f"run {one_line(run.id)}{by} in {place_label(run.place)}, {local_time(run.began_at)}: {status}{took}")
    print_line(f"{count_of(row.spent.calls, 'requests')}, {_money(row.spent)}; {_tokens(row.spent)}")
    if shown.spans:
        print_line("")
        bars = _bars(shown.spans)
        rows = [
            (span.label, bar, _took(span), one_line(span.note)) for span, bar in zip(shown.spans, bars, strict=True)
        ]
        print_table(SPANS_HEAD, rows, red=[span.failed for span in shown.spans])
    if shown.must_act:
        print_line(MUST_ACT[shown.must_act])
    if shown.why_no_steps:
        print_line(shown.why_no_steps)
    for step in shown.steps:
        _print_step(step)
    for recalled in shown.recalled:
        score = "" if recalled.thing.score is None else f", {recalled.thing.score:.2f}"
        print_line(f"recalled: {recalled.thing.kind}{score}: {one_line(recalled.text)} ({recalled.thing.why})")
    for reply in shown.replies:
        print_line(f"reply, {reply.item.status}: {one_line(reply.item.reply.text, None)}")


def _print_step(step: "StepShown") -> None:
    print_line("")
    calls = [one.call for one in step.calls if one.call.status == "answered"]
    told = "".join(
        f", {call.usage.input:,} tokens as the service counted, {call.usage.cached:,} cached" for call in calls
    )
    print_line(f"request {step.step + 1} to {one_line(step.model)}, about {step.size.total:,} tokens{told}", bold=True)
    if step.tried:
        print_line(f"sent because the one before failed ({one_line(step.tried.fallback)}): {one_line(step.tried.why)}")
    tools = ", ".join(one_line(tool.name) for tool in step.tools)
    rows = [("tools", f"{step.tool_tokens:,}", "", one_line(tools))] if tools else []
    print_table(LAYERS_HEAD, [*rows, *map(_layer_row, step.layers)])
    for left in step.left_out:
        print_line(f"left out of {one_line(left.source)}: {left.count} ({one_line(left.why, None)})")


def _layer_row(layer: "LayerShown") -> tuple[str, ...]:
    from tertulia.inspector.shown import turn_text

    said = layer.instruction or (turn_text(layer.turns[-1]) if layer.turns else "")
    return one_line(layer.name), f"{layer.tokens:,}", f"{layer.repeated:,}" if layer.repeated else "", one_line(said)


def _took(span: "Span") -> str:
    return f"{(span.ended_at - span.begun_at).total_seconds():.2f} s" if span.ended_at else "…"


def _bars(spans: "Sequence[Span]") -> list[str]:
    """Return a bar for each span, to scale; where nothing happens for long is one column."""
    ends = [(one.begun_at, one.ended_at or one.begun_at) for one in spans]
    busy: list[tuple[datetime, datetime]] = []
    for begun, ended in sorted(ends):
        if busy and (begun - busy[-1][1]).total_seconds() <= IDLE:
            busy[-1] = busy[-1][0], max(ended, busy[-1][1])
        else:
            busy.append((begun, ended))
    total = sum((ended - begun).total_seconds() for begun, ended in busy) or 1.0
    scale = (WIDTH - len(busy) + 1) / total

    def column(at: datetime) -> int:
        passed, folded = 0.0, -1
        for begun, ended in busy:
            if at < begun:
                break
            folded += 1
            passed += (min(at, ended) - begun).total_seconds()
        return round(passed * scale) + max(0, folded)

    found = []
    for begun, ended in ends:
        first = min(column(begun), WIDTH - 1)
        found.append(f"{' ' * first}{NEW * max(1, column(ended) - first)}")
    return found


def _said(message: "MessageBrief", longest: int | None) -> str:
    return one_line(f"{message.author.name or author_label('', message.author.id)}: {message.text}", longest)


def _text(message: "Message") -> str:
    from tertulia.inspector.shown import words_of

    return "(deleted)" if message.deleted else one_line(words_of(message), 40)


def _money(spent: "Spent") -> str:
    """`$0.0249 ($0.0689 without the cache)`"""
    saved = f" (${spent.without_cache:.4f} without the cache)" if spent.without_cache > spent.money else ""
    return f"{_cost(spent) or '$0.0000'}{saved}"


def _cost(spent: "Spent") -> str:
    if spent.unpriced:
        return f"${spent.money:.4f} + ?" if spent.money else "?"
    return f"${spent.money:.4f}" if spent.money else ""


def _tokens(spent: "Spent") -> str:
    cached = f", {_cached(spent)} cached" if spent.input else ""
    return f"{spent.input:,} tokens in{cached}, {spent.output:,} out"


def _cached(spent: "Spent") -> str:
    return f"{spent.cached / spent.input:.0%}" if spent.input else ""
