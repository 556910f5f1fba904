"""What a model may repeat of its prompt, and people must not see: sections, authors, cues. Pure.

Some of it has a form that nothing else has; the cleaner removes that from every answer. The rest, such as `# Role` with
a text below it, may also be what a person asked for. It is removed only where it is what the prompt says.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from tertulia.models.local.encode import AFTER_RESULT
from tertulia.parts import Media, Text, ToolResult
from tertulia.prompt import forms
from tertulia.turns import Prompt, Turn
from tertulia.value_cache import cached
from tertulia.wire.part_forms import unseen_note

MAY_ECHO = re.compile(  # an answer in which it does not match repeats nothing
    rf"[\[#*{{]|{re.escape(forms.FROM)}|{re.escape(forms.RECALLED[:9])}|{re.escape(forms.PAST[:9])}"
    rf"|{re.escape(AFTER_RESULT)}|you read text only"
)

_HEADING = re.compile(
    "|".join(rf"^{re.escape(form.heading)}{'.*' if form.heading.endswith(' ') else ''}$" for form in forms.FORMS)
    + f"|^{re.escape(forms.RECALLED)}$",
    re.MULTILINE,
)
_MARK = re.compile(r"\[#\w*\] ")
_AUTHOR = re.compile(rf"(?:\[#\w*\] )?({re.escape(forms.FROM)}[^\n]*?\([^\s()]+\))(?={forms.DASH}|\n|\Z)")
_HEADLESS = (forms.CURRENT_USER, forms.REPLY_CONTEXT)  # whose lines say what they are


def echoes_in(prompt: Prompt) -> frozenset[str]:
    """Return what may be repeated of *prompt*: texts whose lines go where they come in this order, two or more, and
    `From: NAME (ID)` of each author."""
    found: set[str] = set()
    for layer in prompt.layers:
        found |= _of_text(layer.instruction)
        for turn in layer.turns:
            found |= turn.__dict__.get("echoes") or cached(turn, "echoes", _of_turn)
            if layer.name == "dynamic":
                found |= {turn.text, *_of_text(_MARK.sub("", turn.text, count=1))}
    return frozenset(found)


@lru_cache(maxsize=64)
def _of_text(text: str) -> frozenset[str]:
    """Return the sections of a text, and the cues of a context block."""
    cues = (forms.RESPOND, forms.REPLY_TO_THIS) if forms.RESPOND in text else ()
    return frozenset((*_sections(text), *cues))


def _sections(text: str) -> Iterator[str]:
    """Yield each section, up to the next one; of those whose lines have labels, these lines too."""
    starts = [found.start() for found in _HEADING.finditer(text)]
    for start, end in zip(starts, [*starts[1:], len(text)], strict=False):
        section = text[start:end].strip()
        yield section
        heading, _, body = section.partition("\n")
        form = next((form for form in _HEADLESS if form.heading == heading), None)
        if form is None:
            continue
        lines = [line for line in body.splitlines() if line.startswith(form.lines)]
        yield from ("\n".join(lines), *(line for line in lines if line.startswith(forms.USER_ID)))


def _of_turn(turn: Turn) -> frozenset[str]:
    """Return the authors of the headers in a turn, what is remembered of the time before, and what a model that reads
    text alone is told of its media and results.
    """
    if turn.role != "user":
        return frozenset()
    texts = [part.text for part in turn.parts if isinstance(part, Text)]
    past = [text for text in texts if text.removeprefix("[#")[:100].find(forms.PAST[:20]) >= 0]
    authors = {author[1] for text in texts if (author := _AUTHOR.match(text))}
    notes = {unseen_note(part) for part in turn.parts if isinstance(part, Media)} - {""}
    cues = {AFTER_RESULT for part in turn.parts if isinstance(part, ToolResult)}
    return frozenset(authors | notes | cues | {one for text in past for one in (text, _MARK.sub("", text, count=1))})
