"""Fallbacks: prompts that are asked after a model refused one or gave no usable answer. Pure.

A fallback is a function from a prompt to another prompt, or to None where it changes nothing. `FALLBACKS` lists them
from the least loss to the greatest: without expired handles, the same again, turns regrouped, signatures replaced or
dropped, tool calls as words, media as words, and the older half of the history left out, up to four times. Media are
words first of all if the service refused the request because of them, or if it is too long: those of the history, then
all. `next_prompt` takes the next one that may help against the error. Before all media become words, the loop tries to
find the one that is refused (`WITHOUT_FILE`).

Turns are closed or open. The open ones follow the last turn in which a person speaks: there the model still answers,
and services check calls, results and signatures. So signatures and calls of closed turns can be given up first.

Files that a service no longer has are no fallback: `ExpiredFiles` takes them out of every later prompt.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from msgspec.structs import replace

from tertulia.errors import ContextTooLong, FileGone, HandleGone, RequestRefused, TertuliaError
from tertulia.parts import Media, Opaque, Part, Text, Thought, ToolCall, ToolResult
from tertulia.prompt.layers import exchange_sentence
from tertulia.tokens import part_tokens, turn_tokens
from tertulia.turns import Prompt, Turn
from tertulia.wire.part_forms import file_uris, is_file, without_expired_files
from tertulia.wire.rules import PLACEHOLDER_SIGNATURE

Fallback = Callable[[Prompt], Prompt | None]
Fallbacks = Sequence[tuple[str, Fallback]]

_ABOUT_MEDIA = re.compile(r"\b(?:image|audio|video|media|mime|pdf|document|file)s?\b", re.IGNORECASE)
HISTORY = ("static", "buffered")  # the layers that `shorten` may cut


class ExpiredFiles:
    """The URIs of expired files, remembered by a chat or an engine until its process ends.

    Media with such a URI are sent as bytes, or as words if there are none.
    """

    def __init__(self) -> None:
        self._uris: set[str] = set()

    def add(self, error: FileGone, prompt: Prompt) -> bool:
        """Add the files of *prompt* that *error* names; return whether any is new.

        A file that is not ready yet has not expired. If the service names none, all files of
        *prompt* count as expired.
        """
        if error.for_now:
            return False
        uris = file_uris(prompt.turns)
        new = set([uri for uri in uris if is_file(uri, error.file)] or uris) - self._uris
        self._uris |= new
        return bool(new)

    def without(self, prompt: Prompt) -> Prompt:
        """Return the prompt without expired files; itself if it holds none."""
        if not self._uris or self._uris.isdisjoint(file_uris(prompt.turns)):
            return prompt
        layers = (
            replace(layer, turns=tuple(without_expired_files(turn, self._uris) for turn in layer.turns))
            for layer in prompt.layers
        )
        return replace(prompt, layers=tuple(layers))


def without_handles(prompt: Prompt) -> Prompt | None:
    """Remove the handle of a cache; if there is none, replace uploaded files with words."""
    if prompt.cached is not None:
        return replace(prompt, cached=None)
    return _with_each_part(prompt, lambda _, part: _without_file(part))


def again(prompt: Prompt) -> Prompt | None:
    """Return the same prompt: another attempt may give a usable answer."""
    return prompt


def regroup(prompt: Prompt) -> Prompt | None:
    """Join neighbouring turns of one speaker in a layer; results stay apart from text."""
    return _with_turns(prompt, [list(_join_neighbours(layer.turns)) for layer in prompt.layers])


def placeholders(prompt: Prompt) -> Prompt | None:
    """Replace the signature of every call with the documented placeholder; drop all others in open turns."""
    start = _open_start(prompt.turns)
    return _with_each_part(prompt, lambda number, part: _with_placeholder(part, is_open=number > start))


def drop_signatures(prompt: Prompt) -> Prompt | None:
    """Drop signatures and opaque parts of closed turns."""
    start = _open_start(prompt.turns)
    return _with_each_part(prompt, lambda number, part: _without_signature(part) if number < start else part)


def flatten(prompt: Prompt) -> Prompt | None:
    """Replace calls and results of closed turns with words, where the results are."""
    start = _open_start(prompt.turns)
    calls: list[ToolCall] = []

    def flat(number: int, turn: Turn) -> Turn | None:
        if number >= start:
            return turn
        if turn.role == "model":
            calls.extend(part for part in turn.parts if isinstance(part, ToolCall))
        return _flatten_turn(turn, calls)

    return _with_each(prompt, flat)


def without_media(prompt: Prompt) -> Prompt | None:
    """Replace media with their words."""
    return _with_each_part(prompt, lambda _, part: _in_words(part))


def without_old_media(prompt: Prompt) -> Prompt | None:
    """Replace the media of the history with their words."""
    old = {number for number, _ in _in_history(prompt)}
    return _with_each_part(prompt, lambda number, part: _in_words(part) if number in old else part)


def shorten(prompt: Prompt) -> Prompt | None:
    """Leave out the older half of the history, by tokens; never only a part of an exchange."""
    units = list(_units(prompt))
    goal = sum(tokens for _, tokens in units) / 2
    gone: set[tuple[int, int]] = set()
    for places, tokens in units:
        if goal <= 0:
            break
        goal -= tokens
        gone |= places

    def left(number: int, turn: Turn) -> Turn | None:
        return _with_parts(turn, (part for place, part in enumerate(turn.parts) if (number, place) not in gone))

    return _with_each(prompt, left)


UPLOAD_AGAIN = "upload again"  # the same prompt, after the service lost a file of it
WITHOUT_HANDLES = "without handles"
WITHOUT_FILE = "without a file"  # the same prompt, with words for media that the service may refuse
WITHOUT_OLD_MEDIA = "without old media"  # if the prompt is too long
WITHOUT_MEDIA = "without media"  # if the service refused the request because of them, or it is too long
WITHOUT_MEDIA_LAST = "without any media"  # if nothing else helped
SAME_PROMPT = (WITHOUT_HANDLES, "again")  # fallbacks that keep the text of the prompt
FALLBACKS: Fallbacks = (
    (WITHOUT_HANDLES, without_handles),
    ("again", again),
    (WITHOUT_OLD_MEDIA, without_old_media),
    (WITHOUT_MEDIA, without_media),
    ("regroup", regroup),
    ("placeholder signatures", placeholders),
    ("drop closed signatures", drop_signatures),
    ("flatten", flatten),
    (WITHOUT_MEDIA_LAST, without_media),
    *[("shorten", shorten)] * 4,
)


def may_be_one_file(name: str, trouble: TertuliaError) -> bool:
    """Return whether a fallback gives up all media where the service may have refused one of them."""
    refused = isinstance(trouble, RequestRefused) and not isinstance(trouble, ContextTooLong)
    return refused and name in (WITHOUT_MEDIA, WITHOUT_MEDIA_LAST)


def next_prompt(
    prompt: Prompt, trouble: TertuliaError, tried: Sequence[str], fallbacks: Fallbacks = FALLBACKS
) -> tuple[str, Prompt] | None:
    """Return the name and the prompt of the next fallback after those *tried* that may help against *trouble*."""
    for name, fallback in _remaining(tried, fallbacks):
        if _may_help(name, trouble) and (changed := fallback(prompt)) is not None:
            return name, changed
    return None


def _remaining(tried: Sequence[str], fallbacks: Fallbacks) -> Fallbacks:
    """Return the fallbacks after those that were tried."""
    for name in tried:
        found = next((number for number, one in enumerate(fallbacks) if one[0] == name), None)
        fallbacks = fallbacks if found is None else fallbacks[found + 1 :]
    return fallbacks


def _may_help(name: str, trouble: TertuliaError) -> bool:
    if isinstance(trouble, HandleGone):
        return name in (WITHOUT_HANDLES, "again")
    if name == WITHOUT_HANDLES:
        return False
    if isinstance(trouble, ContextTooLong):
        return name in (WITHOUT_OLD_MEDIA, WITHOUT_MEDIA, "shorten")
    if name == WITHOUT_OLD_MEDIA:
        return False
    if name in (WITHOUT_MEDIA, WITHOUT_MEDIA_LAST):
        refused = isinstance(trouble, RequestRefused)
        return refused and (name == WITHOUT_MEDIA_LAST or _ABOUT_MEDIA.search(str(trouble)) is not None)
    return name != "again" or not isinstance(trouble, RequestRefused)


def _open_start(turns: Sequence[Turn]) -> int:
    """Return the number of the last turn in which a person speaks; the turns after it are open."""
    return max((number for number, turn in enumerate(turns) if _is_of_person(turn)), default=-1)


def _is_of_person(turn: Turn) -> bool:
    return turn.role == "user" and not _has_only_results(turn)


def _has_only_results(turn: Turn) -> bool:
    return turn.role == "user" and bool(turn.parts) and all(isinstance(part, ToolResult) for part in turn.parts)


def _numbered(prompt: Prompt) -> Iterator[tuple[int, tuple[Turn, ...]]]:
    """Yield the turns of each layer, with the number of the first one."""
    first = 0
    for layer in prompt.layers:
        yield first, layer.turns
        first += len(layer.turns)


def _with_each(prompt: Prompt, change: Callable[[int, Turn], Turn | None]) -> Prompt | None:
    """Return the prompt with every turn changed, or left out where *change* returns None."""
    layers = [
        [made for number, turn in enumerate(turns, first) if (made := change(number, turn)) is not None]
        for first, turns in _numbered(prompt)
    ]
    return _with_turns(prompt, layers)


def _with_each_part(prompt: Prompt, change: Callable[[int, Part], Part | None]) -> Prompt | None:
    """Return the prompt with every part changed by the number of its turn, or left out."""
    return _with_each(prompt, lambda number, turn: _with_parts(turn, (change(number, part) for part in turn.parts)))


def _with_turns(prompt: Prompt, layers: Sequence[Sequence[Turn]]) -> Prompt | None:
    """Return the prompt with other turns in its layers; None if they are the same."""
    made = tuple(replace(layer, turns=tuple(turns)) for layer, turns in zip(prompt.layers, layers, strict=True))
    return None if made == prompt.layers else replace(prompt, layers=made)


def _join_neighbours(turns: Sequence[Turn]) -> Iterator[Turn]:
    for _, found in groupby(turns, lambda turn: (turn.role, turn.model, _has_only_results(turn))):
        first, *others = found
        yield replace(first, parts=(*first.parts, *(part for turn in others for part in turn.parts)))


def _without_file(part: Part) -> Part:
    return Text(text=part.words) if isinstance(part, Media) and part.uri and part.data is None else part


def _in_words(part: Part) -> Part:
    match part:
        case Media() if part.has_content:
            return Text(text=part.words)
        case ToolResult(media=media) if any(one.has_content for one in media):
            return replace(part, media=tuple(one.without_content() for one in media), raw=None)
        case _:
            return part


def _with_placeholder(part: Part, *, is_open: bool) -> Part | None:
    match part:
        case ToolCall(signature=str(signature)) if signature != PLACEHOLDER_SIGNATURE:
            return replace(part, signature=PLACEHOLDER_SIGNATURE, raw=None)
        case ToolCall() | Opaque():
            return part
        case _:
            return _without_signature(part) if is_open else part


def _without_signature(part: Part) -> Part | None:
    """Return the part without its signature; None if that was all of it."""
    match part:
        case Opaque() | Text(text="", signature=str()) | Thought(text="", signature=str()):
            return None
        case ToolCall(signature=str()):
            return replace(part, signature=None, raw=None)
        case Text() | Media() | Thought() if part.signature is not None or part.raw is not None:
            return replace(part, signature=None, raw=None)
        case _:
            return part


def _flatten_turn(turn: Turn, calls: list[ToolCall]) -> Turn | None:
    """Return the turn without calls, its results as words; *calls* are those without a result yet."""
    parts: list[Part] = []
    for part in turn.parts:
        if isinstance(part, ToolResult):
            parts.append(Text(text=exchange_sentence(_take_call(calls, part), part)))
        elif not isinstance(part, ToolCall):
            parts.append(part)
    return _with_parts(turn, parts)


def _take_call(calls: list[ToolCall], result: ToolResult) -> ToolCall | None:
    """Remove the call that *result* answers from *calls* and return it."""
    found = next((call for call in calls if call.id == result.id and call.name == result.name), None)
    if found is not None:
        calls.remove(found)
    return found


def _with_parts(turn: Turn, parts: Iterable[Part | None]) -> Turn | None:
    """Return the turn with those of *parts* that are not None; None where all its parts are gone."""
    left = tuple(part for part in parts if part is not None)
    if turn.parts and not left:
        return None
    return turn if left == turn.parts else replace(turn, parts=left)


def _units(prompt: Prompt) -> Iterator[tuple[set[tuple[int, int]], int]]:
    """Yield what can be left out by itself, oldest first: the numbers of (turn, part)s, and their tokens.

    A unit is a person's turn with all turns up to the next one. In the static layer, where a part is a message, it is a
    part.
    """
    turns = prompt.turns
    places: set[tuple[int, int]] = set()
    tokens = 0
    for number, static in _in_history(prompt):
        turn = turns[number]
        if places and (_is_of_person(turn) or static):
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
    """Yield the numbers of the turns that are history, and whether each is in the static layer."""
    start = _open_start(prompt.turns)
    for layer, (first, turns) in zip(prompt.layers, _numbered(prompt), strict=True):
        if layer.name in HISTORY:
            yield from ((number, layer.name == "static") for number in range(first, min(first + len(turns), start)))
