"""Grammars of markup as generators that read one character at a time, and the candidates that run them. Pure."""

from collections import deque
from collections.abc import Callable, Generator

MAX_MARKUP = 4096  # characters of markup

Steps = Generator[None, str, None]


class Miss(Exception):
    """The text is not the markup of this grammar."""


class Candidate:
    """One attempt to match a grammar. It is fed one character at a time; an empty one is the end of the text."""

    def __init__(self, grammar: "Grammar", *, before: str, shown: int = 0) -> None:
        self.before = before  # the character before it in its line; empty at the start of a line
        self.taken = 0  # characters that are markup so far, without those that are shown already
        self.until: str | None = ""  # removed with it: nothing, all up to and with this text, or (None) all text
        self.thought = ""  # the tag of the thought that it begins
        self.echo = False  # it begins the system context block
        self.longest = MAX_MARKUP  # characters after which it is no markup
        self.reopened = shown > 0  # its start is shown already
        self._read = -shown
        self._ahead: deque[str] = deque()
        self._steps = grammar(self)
        next(self._steps)

    @property
    def fresh(self) -> bool:
        return not self.before

    def push(self, char: str) -> bool:
        """Read one more character; return whether more can be read."""
        try:
            self._read += len(char)
            self._steps.send(char)
            while self._ahead:
                self._read += len(self._ahead[0])
                self._steps.send(self._ahead.popleft())
        except (StopIteration, Miss):
            return False
        return self._read < self.longest

    def take(self) -> None:
        """Mark all that was read so far as markup."""
        self.taken = self._read

    def unread(self, *chars: str) -> None:
        """Give back the last characters, to be read again."""
        self._ahead.extendleft(reversed(chars))
        self._read -= sum(map(len, chars))


Grammar = Callable[[Candidate], Steps]


def literal(words: str) -> Steps:
    for expected in words:
        if (yield) != expected:
            raise Miss


def token(own: Candidate, fits: Callable[[str], bool], *, most: int) -> Generator[None, str, str]:
    """Read at least one and at most *most* characters that fit."""
    read = ""
    while (char := (yield)) and fits(char):
        read += char
        if len(read) > most:
            raise Miss
    own.unread(char)
    if not read:
        raise Miss
    return read


def line_end(own: Candidate) -> Generator[None, str, bool]:
    """Read the line end, if it is here; return whether it is."""
    char = yield
    if char in ("", "\n"):
        return True
    if char != "\r":
        own.unread(char)
        return False
    after = yield
    if after != "\n":
        own.unread(char, after)
    return after == "\n"
