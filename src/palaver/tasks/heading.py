"""The line that begins a task block: one grammar for whoever runs blocks and whoever keeps them from people. Pure."""

import re

OPEN, CLOSE = "# «", "»"
LONGEST = 64  # characters of a kind, and of an id
LONGEST_LINE = 4095  # a line that goes on for longer, if only in blanks, is text

_LINE = re.compile(
    rf"{OPEN}(?P<kind>[\w-]{{1,{LONGEST}}}+){CLOSE}(?: (?P<id>[0-9]{{1,{LONGEST}}}+))?+[ \t]*+(?:\r(?=\n))?+(?=\n|\Z)"
)


def at(text: str, start: int) -> re.Match[str] | None:
    """The heading on the line that begins there, with its `kind` and `id`."""
    found = _LINE.match(text, start)
    return found if found and len(found[0]) <= LONGEST_LINE else None


def written(kind: str, number: str | None) -> str:
    return f"{OPEN}{kind}{CLOSE}" + (f" {number}" if number else "")


def in_kind(char: str) -> bool:
    return char.isalnum() or char in "-_"


def in_id(char: str) -> bool:
    return char.isascii() and char.isdigit()
