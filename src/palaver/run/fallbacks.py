"""Fallbacks: what is asked after a model refused a prompt or said nothing to it, each a prompt made from one. Pure."""

from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from palaver.errors import ContextTooLong, HandleGone, PalaverError, RequestRefused
from palaver.jsonio import dumps
from palaver.parts import Media, Opaque, Part, Text, Thought, ToolCall, ToolResult
from palaver.prompt import escape
from palaver.prompt.history import short
from palaver.tokens import part_tokens, turn_tokens
from palaver.turns import Prompt, Turn
from palaver.wire.rules import PLACEHOLDER_SIGNATURE

Fallback = Callable[[Prompt], Prompt | None]
Fallbacks = Sequence[tuple[str, Fallback]]

HISTORY = ("static", "buffered")  # the layers that may lose their beginning


def unhandled(prompt: Prompt) -> Prompt | None:
    """Without what the service no longer holds: the cache; where none is named, files, as words."""
    if prompt.cached is not None:
        return replace(prompt, cached=None)
    return _with_each(prompt, lambda _, turn: _with_parts(turn, [_unfiled(part) for part in turn.parts]))


def again(prompt: Prompt) -> Prompt | None:
    """The same request: what a model says is also a matter of chance."""
    return prompt


def regroup(prompt: Prompt) -> Prompt | None:
    """Neighbours of one speaker as one turn, within their layer; results stay apart from words."""
    return _with_turns(prompt, [list(_joined(layer.turns)) for layer in prompt.layers])


def placeholders(prompt: Prompt) -> Prompt | None:
    """The documented placeholder for every call's signature; in the open turn nothing else is signed."""
    start = _opening(prompt.turns)
    return _with_each(prompt, lambda number, turn: _held(turn, is_open=number > start))


def unsigned(prompt: Prompt) -> Prompt | None:
    """No signatures, nor parts that only their maker understands, in the turns that are closed."""
    start = _opening(prompt.turns)
    return _with_each(prompt, lambda number, turn: _bare(turn) if number < start else turn)


def flatten(prompt: Prompt) -> Prompt | None:
    """The calls and results of closed turns as words, told where the results stood."""
    start = _opening(prompt.turns)
    calls: list[ToolCall] = []

    def told(number: int, turn: Turn) -> Turn | None:
        if number >= start:
            return turn
        if turn.role == "model":
            calls.extend(part for part in turn.parts if isinstance(part, ToolCall))
        return _told(turn, calls)

    return _with_each(prompt, told)


def shorten(prompt: Prompt) -> Prompt | None:
    """Without the older half of what was said before, by tokens; never a part of an exchange alone."""
    units = list(_units(prompt))
    goal = sum(tokens for _, tokens in units) / 2
    gone: set[tuple[int, int]] = set()
    for places, tokens in units:
        if goal <= 0:
            break
        goal -= tokens
        gone |= places
    return _with_each(prompt, lambda number, turn: _without(turn, number, gone))


WITHOUT_HANDLES = "without handles"
SAME_PROMPT = (WITHOUT_HANDLES, "again")  # those that leave what was said as it is
FALLBACKS: Fallbacks = (
    (WITHOUT_HANDLES, unhandled),
    ("again", again),
    ("regroup", regroup),
    ("placeholder signatures", placeholders),
    ("drop closed signatures", unsigned),
    ("flatten", flatten),
    *[("shorten", shorten)] * 4,
)


def next_prompt(
    prompt: Prompt, trouble: PalaverError, tried: Sequence[str], fallbacks: Fallbacks = FALLBACKS
) -> tuple[str, Prompt] | None:
    """The next fallback after those that were *tried*, and what to ask now that *prompt* came to *trouble*."""
    for name, fallback in _left(tried, fallbacks):
        if _may_help(name, trouble) and (made := fallback(prompt)) is not None:
            return name, made
    return None


def _left(tried: Sequence[str], fallbacks: Fallbacks) -> Fallbacks:
    """The fallbacks after those that were tried, in their order."""
    for name in tried:
        found = next((number for number, one in enumerate(fallbacks) if one[0] == name), None)
        fallbacks = fallbacks if found is None else fallbacks[found + 1 :]
    return fallbacks


def _may_help(name: str, trouble: PalaverError) -> bool:
    if isinstance(trouble, HandleGone):
        return name in (WITHOUT_HANDLES, "again")
    if name == WITHOUT_HANDLES:
        return False
    if isinstance(trouble, ContextTooLong):
        return name == "shorten"
    return name != "again" or not isinstance(trouble, RequestRefused)


def _opening(turns: Sequence[Turn]) -> int:
    """Where the open turn begins: the last turn in which a person speaks; after it the model is at work."""
    return max((number for number, turn in enumerate(turns) if _speaks(turn)), default=-1)


def _speaks(turn: Turn) -> bool:
    return turn.role == "user" and not _only_results(turn)


def _only_results(turn: Turn) -> bool:
    return turn.role == "user" and bool(turn.parts) and all(isinstance(part, ToolResult) for part in turn.parts)


def _numbered(prompt: Prompt) -> Iterator[tuple[int, tuple[Turn, ...]]]:
    """The turns of each layer, with the number of the first among all."""
    first = 0
    for layer in prompt.layers:
        yield first, layer.turns
        first += len(layer.turns)


def _with_each(prompt: Prompt, change: Callable[[int, Turn], Turn | None]) -> Prompt | None:
    """The prompt with every turn changed, or left out where nothing of it remains."""
    layers = [
        [made for number, turn in enumerate(turns, first) if (made := change(number, turn)) is not None]
        for first, turns in _numbered(prompt)
    ]
    return _with_turns(prompt, layers)


def _with_turns(prompt: Prompt, layers: Sequence[Sequence[Turn]]) -> Prompt | None:
    """The prompt with other turns in its layers; None when they are the same."""
    made = tuple(replace(layer, turns=tuple(turns)) for layer, turns in zip(prompt.layers, layers, strict=True))
    return None if made == prompt.layers else replace(prompt, layers=made)


def _joined(turns: Sequence[Turn]) -> Iterator[Turn]:
    waiting: Turn | None = None
    for turn in turns:
        if waiting is not None and _alike(waiting, turn):
            waiting = replace(waiting, parts=waiting.parts + turn.parts)
            continue
        if waiting is not None:
            yield waiting
        waiting = turn
    if waiting is not None:
        yield waiting


def _alike(one: Turn, other: Turn) -> bool:
    return (one.role, one.model, _only_results(one)) == (other.role, other.model, _only_results(other))


def _unfiled(part: Part) -> Part:
    return Text(text=part.words) if isinstance(part, Media) and part.uri and part.data is None else part


def _held(turn: Turn, *, is_open: bool) -> Turn | None:
    parts = [held for part in turn.parts if (held := _held_part(part, is_open=is_open)) is not None]
    return _with_parts(turn, parts) if parts or not turn.parts else None


def _held_part(part: Part, *, is_open: bool) -> Part | None:
    match part:
        case ToolCall(signature=str(signature)) if signature != PLACEHOLDER_SIGNATURE:
            return replace(part, signature=PLACEHOLDER_SIGNATURE, raw=None)
        case ToolCall() | Opaque():
            return part
        case _:
            return _bare_part(part) if is_open else part


def _bare(turn: Turn) -> Turn | None:
    parts = [bare for part in turn.parts if (bare := _bare_part(part)) is not None]
    return _with_parts(turn, parts) if parts or not turn.parts else None


def _bare_part(part: Part) -> Part | None:
    """The part without its signature; None where that was all of it."""
    match part:
        case Opaque() | Text(text="", signature=str()) | Thought(text="", signature=str()):
            return None
        case ToolCall(signature=str()):
            return replace(part, signature=None, raw=None)
        case Text() | Media() | Thought() if part.signature is not None or part.raw is not None:
            return replace(part, signature=None, raw=None)
        case _:
            return part


def _told(turn: Turn, calls: list[ToolCall]) -> Turn | None:
    """The turn without calls, its results as words; *calls* are those that wait for one."""
    parts: list[Part] = []
    for part in turn.parts:
        if isinstance(part, ToolResult):
            parts.append(Text(text=_in_words(part, _taken(calls, part))))
        elif not isinstance(part, ToolCall):
            parts.append(part)
    return _with_parts(turn, parts) if parts or not turn.parts else None


def _taken(calls: list[ToolCall], result: ToolResult) -> ToolCall | None:
    """The call that *result* answers, which then no longer waits."""
    found = next((call for call in calls if call.id == result.id and call.name == result.name), None)
    if found is not None:
        calls.remove(found)
    return found


def _in_words(result: ToolResult, call: ToolCall | None) -> str:
    asked = f" with {short(dumps(call.args).decode())}" if call else ""
    media = "".join(f" {escape.fold(one.words)}" for one in result.media)
    done = "failed" if result.failed else "answered"
    return f"(You called {escape.fold(result.name)}{asked}; it {done}: {short(dumps(result.value).decode())}{media})"


def _with_parts(turn: Turn, parts: Sequence[Part]) -> Turn:
    return turn if tuple(parts) == turn.parts else replace(turn, parts=tuple(parts))


def _units(prompt: Prompt) -> Iterator[tuple[set[tuple[int, int]], int]]:
    """What can be left out by itself, the oldest first: (turn, part)s, and their tokens.

    That is a person's turn with all that follows until the next one. In the static layer, where a part is a whole
    message, it is a part.
    """
    turns = prompt.turns
    places: set[tuple[int, int]] = set()
    tokens = 0
    for number, static in _in_history(prompt):
        turn = turns[number]
        if places and (_speaks(turn) or static):
            yield places, tokens
            places, tokens = set(), 0
        if static and turn.role == "user":
            yield from (({(number, place)}, part_tokens(part)) for place, part in enumerate(turn.parts))
            continue
        places = places | {(number, place) for place in range(len(turn.parts))}
        tokens += turn_tokens(turn)
    if places:
        yield places, tokens


def _in_history(prompt: Prompt) -> Iterator[tuple[int, bool]]:
    """The numbers of the turns that are history, and whether each stands in the static layer."""
    start = _opening(prompt.turns)
    for layer, (first, turns) in zip(prompt.layers, _numbered(prompt), strict=True):
        if layer.name in HISTORY:
            yield from ((number, layer.name == "static") for number in range(first, min(first + len(turns), start)))


def _without(turn: Turn, number: int, gone: set[tuple[int, int]]) -> Turn | None:
    parts = [part for place, part in enumerate(turn.parts) if (number, place) not in gone]
    return _with_parts(turn, parts) if parts or not turn.parts else None
