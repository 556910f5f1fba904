"""The line that is shown, and what of it must wait: marks around a piece that is taken out go with it. Pure."""

import re

from palaver.markdown import Fence, closes, opened

_LONGEST = 32  # characters at the beginning of a line that wait for the first word
_MOST_MARKS = 3
_TAIL = 320  # characters shown before a piece that was taken out, which may become markup with those after it

_LEADING = re.compile(r"[ \t>*_~+#().\d-]*+")
_BEFORE = re.compile(r"(?:[ \t>]|(?:[-+*]|\d{1,9}[.)]|#{1,6})(?:[ \t]|\Z))*+[*_~(]*+")
_AFTER = re.compile(r"[ \t\r*_~)]*+")
_CLOSING = {"*": "*", "_": "_", "~": "~", "(": ")"}


class LineBuffer:
    """What is shown of the line under way.

    Marks of a quote, a list or a heading that begin it wait for its first word, and so do marks of emphasis at its end:
    a line of which nothing else is left once our markup is gone is not shown at all.
    """

    def __init__(self) -> None:
        self._shown: list[str] = []
        self._held = ""
        self._cut: int | None = None  # how much of what is held stood before the first piece that was taken out
        self._unwrapped = False  # marks around a piece went with it

    def __bool__(self) -> bool:
        return bool(self._held or self._shown)

    @property
    def before(self) -> str:
        """The last character; none: the line is empty."""
        return self._held[-1:] or (self._shown[-1][-1] if self._shown else "")

    @property
    def tail(self) -> str:
        tail = self._held
        for shown in reversed(self._shown):
            if len(tail) >= _TAIL:
                break
            tail = shown[-_TAIL:] + tail
        return tail

    @property
    def text(self) -> str:
        return "".join(self._shown) + self._held

    @property
    def closing(self) -> str:
        """The marks that would close those at the end, which are held back."""
        last = self._held[-1:]
        count = len(self._held) - len(self._held.rstrip(last)) if last in _CLOSING else 0
        return _CLOSING[last] * count if 0 < count <= _MOST_MARKS else ""

    @property
    def is_shown(self) -> bool:
        """Whether something of it is shown, and nothing is held back."""
        return bool(self._shown) and not self._held

    def add(self, text: str) -> None:
        """Add *text*, which is shown at once, to a line of which nothing is held back."""
        self._shown.append(text)

    def show(self, text: str) -> str:
        """What of the line can be shown now that *text* is added to it."""
        self._held += text
        if text.endswith("\n"):
            return ""
        size = len(self._held) if self._is_open() else _marks(self._held)
        return self._release(len(self._held) - size)

    def end(self) -> str:
        """What was held back, as the line is over; nothing where only marks are left of it."""
        held = self._held
        if self._is_debris(held.rstrip("\r\n")) and (held.strip() or self._unwrapped):
            self._held = ""
            return ""
        return self._release(len(held))

    def cut(self) -> None:
        """A piece was taken out at the end of what is shown."""
        if self._cut is None and not self._shown:
            self._cut = len(self._held)

    def unwrap(self) -> None:
        """Take out the marks at the end as well."""
        self._held = self._held[: len(self._held) - len(self.closing)]
        self._cut = None if self._cut is None else min(self._cut, len(self._held))
        self._unwrapped = True

    def _is_open(self) -> bool:
        """Whether there is no word yet."""
        if self._shown or len(self._held) > _LONGEST:
            return False
        return self._is_debris(self._held) if self._cut is not None else _LEADING.fullmatch(self._held) is not None

    def _is_debris(self, held: str) -> bool:
        if self._cut is None or self._shown:
            return False
        return bool(_BEFORE.fullmatch(held, 0, self._cut) and _AFTER.fullmatch(held, self._cut))

    def _release(self, size: int) -> str:
        shown, self._held = self._held[:size], self._held[size:]
        if shown:
            self._shown.append(shown)
        return shown


def _marks(text: str) -> int:
    """How many marks of emphasis, or brackets, stand at the end."""
    last, end = text[-1:], text[-_MOST_MARKS - 1 :]
    count = len(end) - len(end.rstrip(last)) if last in _CLOSING else 0
    return count if count <= _MOST_MARKS else 0


_MOST_BLANK = 256  # characters before the fence
_LONGEST_FENCE_LINE = 4096  # a line that goes on for longer closes no fence


class ContextBlockSkipper:
    """Follows a text after the line that begins the block, and says how far it goes with that."""

    def __init__(self) -> None:
        self.found = False  # there is a fence
        self._fence: Fence | None = None
        self._within = False  # what comes next is the rest of a line

    def skip(self, text: str, at: int, *, ended: bool) -> tuple[int, bool]:
        """Up to where *text* can be dropped, and whether that is all; where no fence follows it is nothing."""
        if self._fence is None:
            start = self._opening(text, at, ended=ended)
            if start is None or self._fence is None:
                return at, start is not None
            at = start
        while (end := text.find("\n", at) + 1) or (ended and at < len(text)):
            line = text[at : end or len(text)]
            at, whole, self._within = end or len(text), not self._within, False
            if whole and closes(self._fence, line.rstrip("\r\n")):
                return at, True
        if len(text) - at > _LONGEST_FENCE_LINE:
            at, self._within = len(text), True
        return at, ended

    def _opening(self, text: str, at: int, *, ended: bool) -> int | None:
        """Where the lines in the fence begin; the same place where there is no fence, and None while that is open."""
        words = text[at:].lstrip(" \t\r\n")
        blank = len(text) - at - len(words)
        if blank > _MOST_BLANK or (words and words[0] not in "`~"):
            return at
        line, newline, _ = words.partition("\n")
        if not newline and not ended and len(line) <= _MOST_BLANK:
            return None
        self._fence = opened(line.rstrip("\r"))
        self.found = self._fence is not None
        return at + blank + len(line) + len(newline) if self.found else at


_BLANK = " \t\r\n\ufeff"
_LONGEST_BLANK = 257  # characters that wait for a thought to come; so many are shown together


class LeadingSpace:
    """Holds the blank space before the first word back, as a thought that follows takes it away."""

    def __init__(self) -> None:
        self.spoken = False  # the first word was shown
        self._thought = False
        self._blank = ""

    def show(self, text: str) -> str:
        if self.spoken:
            return text
        self.spoken = not is_space(text)
        blank = self._blank + text
        if self._thought and not self.spoken:
            blank = blank[blank.rfind("\n") + 1 :]
        shown = len(blank) if self.spoken else len(blank) // _LONGEST_BLANK * _LONGEST_BLANK
        self._blank = blank[shown:]
        return blank[:shown]

    def think(self) -> None:
        """A thought begins: what was held goes with it, and so do the blank lines that follow."""
        self._blank = ""
        self._thought = True

    def finish(self) -> str:
        blank, self._blank = self._blank, ""
        return blank


def is_space(text: str) -> bool:
    return not text.strip(_BLANK)


class DelimiterFilter:
    """Takes a word out of a stream; what would make it anew from the pieces around it goes too.

    Of what was shown it keeps only the longest end with which the word begins: the word cannot begin in anything else.
    A text in which the word does not begin is shown at once where there is no such end, which is nearly always.
    """

    def __init__(self, word: str) -> None:
        self._word = word
        self._tail = ""  # the end of what was shown with which the word begins
        self._held = ""

    def feed(self, text: str) -> str:
        """What of the text may be shown now: all but an end that may become the word."""
        if not self._word or (not self._held and not self._tail and self._word[0] not in text):
            return text
        kept: list[str] = []
        text, at = self._held + text, 0
        while (end := self._found(text, at)) >= 0:
            kept.append(text[at : max(at, end - len(self._word))])
            self._remember(kept[-1])
            at = end
        held = self._unsure(self._tail + text[max(at, len(text) - len(self._word)) :])
        shown = len(text) - min(held, len(text) - at)
        kept.append(text[at:shown])
        self._remember(kept[-1])
        self._held = text[shown:]
        return "".join(kept)

    def finish(self) -> str:
        held, self._held = self._held, ""
        return held

    def _found(self, text: str, at: int) -> int:
        """Where the word ends that comes first after *at*, be it begun in what was shown; -1 for none."""
        seam = (self._tail + text[at : at + len(self._word) - 1]).find(self._word)
        if seam >= 0:
            return at + seam + len(self._word) - len(self._tail)
        found = text.find(self._word, at)
        return found + len(self._word) if found >= 0 else -1

    def _remember(self, shown: str) -> None:
        tail = self._tail + shown[-len(self._word) :]
        size = self._unsure(tail)
        self._tail = tail[len(tail) - size :]

    def _unsure(self, text: str) -> int:
        """How long the end of *text* is that may become the word."""
        longest = min(len(text), len(self._word) - 1)
        return next((size for size in range(longest, 0, -1) if self._word.startswith(text[-size:])), 0)
