"""The words in brackets that stand for media in a prompt: where a model repeats them, they are not for people. Pure."""

import re
from collections.abc import Iterator

from palaver.errors import ResponseUnreadable
from palaver.models.json import loads
from palaver.parts import Media, Text
from palaver.prompt.meta import LABELS
from palaver.prompt.render import EMPTY
from palaver.turns import Layer, Prompt, Turn

_PART = re.compile(r"\[[\w-][\w -]{0,39} part\]")
_LABEL = re.compile(rf"\[(?:{'|'.join(LABELS)})(?: x\d{{1,6}}+)?\]")
_TOLD = re.compile(
    r"^\*\*Original message\*\*: [^\n]*+|^Here is the current conversation context \(last up to .*+",
    re.MULTILINE | re.DOTALL,
)
_MARKERS = "markers"  # where a turn keeps them
_OURS = ("From: ", "id: ", "[#")  # what begins a turn in which people's own words can hold no marker


def markers_in(prompt: Prompt) -> frozenset[str]:
    """The markers that we wrote into *prompt*; what people wrote themselves is not among them."""
    return frozenset(marker for layer in prompt.layers for marker in _of_layer(layer))


def _of_layer(layer: Layer) -> Iterator[str]:
    for told in _TOLD.findall(layer.instruction):
        yield from _LABEL.findall(told)
    for turn in layer.turns:
        yield from _of_turn(turn)
        if layer.name == "dynamic":
            yield from _of_quote(turn)


def _of_turn(turn: Turn) -> frozenset[str]:
    """The markers in a turn, kept with it."""
    found: frozenset[str] | None = turn.__dict__.get(_MARKERS)
    if found is None:
        found = turn.__dict__[_MARKERS] = frozenset(_found_in(turn))
    return found


def _found_in(turn: Turn) -> Iterator[str]:
    if turn.role != "user":
        return
    first = turn.parts[0] if turn.parts else None
    ours = isinstance(first, Text) and first.text.startswith(_OURS)
    for part in turn.parts:
        match part:
            case Media(rendered_text=None, data=None, uri=None):
                yield part.words
            case Text(text=text) if text.endswith(EMPTY):
                yield EMPTY
            case Text(text=text) if ours and " part]" in text:
                yield from _PART.findall(text)


def _of_quote(turn: Turn) -> Iterator[str]:
    """The kinds of the media that are replied to, in what is known now."""
    text = "".join(part.text for part in turn.parts if isinstance(part, Text))
    if '"quote": {' not in text:
        return
    try:
        known = loads(text.encode())
    except ResponseUnreadable:
        return
    quote = known.get("quote") if isinstance(known, dict) else None
    yield from _LABEL.findall(str(quote.get("text", ""))) if isinstance(quote, dict) else ()
