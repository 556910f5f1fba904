"""Adversarial texts, derived from the patterns they are meant for.

Every repeat of a pattern gives texts: what leads to it, then what it repeats, many times, then a character that makes
the match fail. A pattern that backtracks, or starts anew at every place, needs time for these that grows with the
square of their length.
"""

import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from msgspec import Struct

_parser: Any = import_module("re._parser")
_SAMPLES = "a1 \n\t-_.:,;'\"`~*#([{<>|@/\\=%&é字«Я\u200b"
_CATEGORIES = {"CATEGORY_DIGIT": "1", "CATEGORY_SPACE": " ", "CATEGORY_WORD": "a", "CATEGORY_NOT_DIGIT": "a",
               "CATEGORY_NOT_SPACE": "a", "CATEGORY_NOT_WORD": "-"}  # fmt: skip
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_MOST_BRANCHES = 3
_MOST = 40  # texts of one pattern


class Recipe(Struct, frozen=True):
    """A start, a repeated piece and an end, from which a text of any size is made."""

    start: str
    pump: str
    end: str

    def text(self, length: int) -> str:
        return self.start + self.pump * max(1, (length - len(self.start)) // len(self.pump)) + self.end

    def __str__(self) -> str:
        start = self.start if len(self.start) <= 12 else f"{self.start[:11]}…"
        pump = self.pump if len(self.pump) <= 16 else f"{self.pump[:15]}…"
        return f"{start!r} + {pump!r} * n" if start else f"{pump!r} * n"


KNOWN = tuple(
    Recipe(start, pump, "\x01")
    for start, pump in [
        ("From: (", "1"), ("", " "), ("", "\n"), ("", "a"), ("", "1"), ("", "["), ("", "]"), ("", "("), ("", "«"),
        ("", "#"), ("", "# «"), ("", "`"), ("", "`\n"), ("", "```\n"), ("", "> "), ("", ">"), ("", "- "), ("", '"'),
        ("", "“"), ("", "<"), ("", "<think>"), ("", "</think>"), ("", "<!--"), ("", "<p "), ("", "a "), ("", "a, "),
        ("", "a. "), ("", "I am "), ("", "my "), ("", "From: "), ("", "From: (1"), ("", "From: a (1) — id: 1\n"),
        ("[", "replied to"), ("", "[replied to:"), ("", "[meta "), ("[meta]", " a=1"), ("", "\\"), ("", "\\u00"),
        ("", "a@"), ("", "http://"), ("", "\u0301"), ("a", "\u0301"), ("", "\u200b"), ("", "字"), ("", "Я "),
        ("", "1-"), ("", "0 "), ("", "*"), ("", "**"), ("", "_"), ("", "a_"), ("", "'a"), ("", "a'"), ("", "{"),
        ("", "\r"), ("", "\r\n"), ("", "\t"), ("", "1. "), ("", "|"), ("", "~~~"), ("", "—"), ("", "— "), ("", "ﷺ"),
        ("", "@"), ("", "@a "), ("", "[Image: "), ("", "[Image x2] "), ("", "said "), ("", "\ud800"), ("", "👍"),
    ]
)  # fmt: skip


def recipes(pattern: re.Pattern[Any]) -> tuple[Recipe, ...]:
    """Derive texts against *pattern*, the most likely first."""
    tree = _parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
    found: dict[Recipe, None] = {}
    for before, repeated in _pumps(list(tree), ""):
        for pump in repeated:
            for end in ("\x01", ""):
                found[Recipe(before, pump, end)] = None
            found[Recipe("", before + pump, "\x01")] = None
    whole = _sample(list(tree), 0)
    if whole:
        found[Recipe("", whole, "\x01")] = None
        found[Recipe("", whole[:-1] or whole, "\x01")] = None
    return tuple(found)[:_MOST]


def _pumps(nodes: Sequence[Any], before: str) -> Iterator[tuple[str, list[str]]]:
    """Yield every repeat in *nodes*: the text before it and a text that it repeats."""
    for operation, value in nodes:
        name = str(operation)
        if name in _REPEATS:
            _, most, inner = value
            if most > 3:
                pumps = {_sample(list(inner), choice) for choice in range(_MOST_BRANCHES)}
                yield before, sorted(pump for pump in pumps if pump)
            yield from _pumps(list(inner), before)
        else:
            for inner in _inside(name, value):
                yield from _pumps(inner, before)
        before += _sample([(operation, value)], 0)


def _inside(name: str, value: Any) -> list[list[Any]]:
    match name:
        case "BRANCH":
            return [list(branch) for branch in value[1]]
        case "SUBPATTERN":
            return [list(value[3])]
        case "ATOMIC_GROUP":
            return [list(value)]
        case "ASSERT" | "ASSERT_NOT":
            return [list(value[1])]
        case _:
            return []


def _sample(nodes: Sequence[Any], choice: int) -> str:
    """Make a short text that *nodes* nearly match; *choice* selects a branch."""
    return "".join(_one(str(operation), value, choice) for operation, value in nodes)


def _one(name: str, value: Any, choice: int) -> str:
    match name:
        case "LITERAL":
            return str(chr(value))
        case "NOT_LITERAL":
            return next(char for char in _SAMPLES if ord(char) != value)
        case "ANY":
            return "a1 "[choice % 3]
        case "IN":
            return _member(value, choice)
        case "BRANCH":
            branches = value[1]
            return _sample(list(branches[choice % len(branches)]), choice)
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            least, _, inner = value
            return _sample(list(inner), choice) * max(int(least), 1)
        case "SUBPATTERN":
            return _sample(list(value[3]), choice)
        case "ATOMIC_GROUP":
            return _sample(list(value), choice)
        case _:
            return ""


def _member(items: Any, choice: int) -> str:
    """Return a character of a set."""
    refused = any(str(operation) == "NEGATE" for operation, _ in items)
    chosen = []
    for operation, value in items:
        match str(operation):
            case "LITERAL":
                chosen.append(chr(value))
            case "RANGE":
                chosen += [chr(value[0]), chr(value[1])]
            case "CATEGORY":
                chosen.append(_CATEGORIES.get(str(value), "a"))
    if refused:
        inside = re.compile(f"[{''.join(map(re.escape, chosen))}]") if chosen else None
        chosen = [char for char in _SAMPLES if inside is None or not inside.match(char)] or ["é"]
    return chosen[choice % len(chosen)] if chosen else "a"
