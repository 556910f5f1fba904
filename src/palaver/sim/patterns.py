"""A text that matches a regular expression of the simple kind that schemas use. Pure."""

import re
import string
from collections.abc import Callable

Choose = Callable[[int], int]  # a number from 0 up to, but without, the one given

WORD = string.ascii_lowercase + string.digits + string.ascii_uppercase + "_"
ANY = string.ascii_lowercase + string.digits + " -_.,"
ESCAPES = {"d": string.digits, "w": WORD, "s": " ", "D": "abcxyz-", "W": "-. ", "S": WORD}
CONTROLS = {"n": "\n", "t": "\t", "r": "\r"}
QUANTIFIER = re.compile(r"\{(\d+)(,?)(\d*)\}[?+]?|([*+?])[?+]?")
OPENING = re.compile(r"\((\?:|\?P?<[A-Za-z_]\w*>)?")


def matching(pattern: str, choose: Choose) -> str:
    """A text that *pattern* describes, or nearly so where it uses more than classes, groups and repetition."""
    writer = _Writer(pattern, choose)
    return writer.alternatives()()


class _Writer:
    """Reads the pattern once, giving back functions that each write a piece of a matching text."""

    def __init__(self, pattern: str, choose: Choose) -> None:
        self._pattern = pattern
        self._choose = choose
        self._at = 0

    def alternatives(self) -> Callable[[], str]:
        options = [self._sequence()]
        while self._take("|"):
            options.append(self._sequence())
        self._take(")")
        return lambda: options[self._choose(len(options))]()

    def _sequence(self) -> Callable[[], str]:
        pieces: list[Callable[[], str]] = []
        while self._at < len(self._pattern) and self._pattern[self._at] not in "|)":
            pieces.append(self._repeated(self._atom()))
        return lambda: "".join(piece() for piece in pieces)

    def _atom(self) -> Callable[[], str]:
        if opening := OPENING.match(self._pattern, self._at):
            self._at = opening.end()
            return self.alternatives()
        character = self._next()
        if character in "^$":
            return lambda: ""
        alphabet = self._alphabet(character)
        return lambda: alphabet[self._choose(len(alphabet))]

    def _alphabet(self, character: str) -> str:
        if character == ".":
            return ANY
        if character == "\\":
            escaped = self._next()
            return ESCAPES.get(escaped) or CONTROLS.get(escaped) or escaped
        return self._class() if character == "[" else character

    def _class(self) -> str:
        negated = self._take("^")
        members = ""
        while self._at < len(self._pattern) and not (self._take("]") and members):
            start = self._alphabet("\\") if self._take("\\") else self._next()
            members += self._range(start)
        if not negated:
            return members or "x"
        return "".join(character for character in WORD + ANY if character not in members) or "~"

    def _range(self, start: str) -> str:
        rest = self._pattern[self._at : self._at + 2]
        if len(start) > 1 or len(rest) < 2 or rest[0] != "-" or rest[1] in "]\\":
            return start
        self._at += 2
        return "".join(chr(code) for code in range(ord(start), ord(rest[1]) + 1))

    def _repeated(self, piece: Callable[[], str]) -> Callable[[], str]:
        quantifier = QUANTIFIER.match(self._pattern, self._at)
        if quantifier is None:
            return piece
        self._at = quantifier.end()
        low, high = _bounds(quantifier)
        return lambda: "".join(piece() for _ in range(low + self._choose(high - low + 1)))

    def _take(self, character: str) -> bool:
        taken = self._pattern[self._at : self._at + 1] == character
        self._at += taken
        return taken

    def _next(self) -> str:
        character = self._pattern[self._at : self._at + 1]
        self._at += 1
        return character or "x"


def _bounds(quantifier: re.Match[str]) -> tuple[int, int]:
    least, comma, most, sign = quantifier.groups()
    if sign:
        return {"*": (0, 6), "+": (1, 8), "?": (0, 1)}[sign]
    low = int(least)
    if most:
        return low, max(low, int(most))
    return (low, low + 6) if comma else (low, low)
