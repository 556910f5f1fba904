"""One attempt to read a piece of markup, a character at a time, with the words it can give back. Pure."""

from collections import deque
from collections.abc import Callable, Generator

LONGEST = 4096  # characters: what goes on for longer is none of ours

Steps = Generator[None, str, None]


class Miss(Exception):
    """What is read is not, or no longer, the markup that was looked for."""


class Reading:
    """Fed character by character; an empty one is the end of the text. The longest piece that was taken counts."""

    def __init__(self, grammar: "Grammar", *, before: str, shown: int = 0) -> None:
        self.before = before  # the character that is shown before it in its line; none: nothing of the line is
        self.taken = 0  # how many of the characters read are markup, but for those that are shown already
        self.until: str | None = ""  # what goes with it: nothing, all up to these words and them, or all there is
        self.thought = ""  # the name of the thought that begins with it
        self.echo = False  # it begins the system context block
        self.longest = LONGEST  # characters after which it is none of ours
        self.reopened = shown > 0  # its beginning is shown already
        self._read = -shown
        self._ahead: deque[str] = deque()
        self._steps = grammar(self)
        next(self._steps)

    @property
    def fresh(self) -> bool:
        return not self.before

    def push(self, char: str) -> bool:
        """Read one more; whether there can be more to read."""
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
        """All that was read so far is markup."""
        self.taken = self._read

    def unread(self, *chars: str) -> None:
        """Give back the last characters, to be read again."""
        self._ahead.extendleft(reversed(chars))
        self._read -= sum(map(len, chars))


Grammar = Callable[[Reading], Steps]


def literal(words: str) -> Steps:
    for expected in words:
        if (yield) != expected:
            raise Miss


def token(own: Reading, fits: Callable[[str], bool], *, most: int) -> Generator[None, str, str]:
    """At least one and at most so many characters that fit."""
    read = ""
    while (char := (yield)) and fits(char):
        read += char
        if len(read) > most:
            raise Miss
    own.unread(char)
    if not read:
        raise Miss
    return read


def line_end(own: Reading) -> Generator[None, str, bool]:
    """Whether the line ends here; what ends it has then been read."""
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
