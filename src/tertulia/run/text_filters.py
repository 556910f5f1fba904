"""The parts of a cleaning pass: the current line, leading space, the context block and the delimiter. Pure.

Each takes text and returns what may be shown of it now; it holds the rest until more text decides. `LineBuffer` holds
marks that may turn out to surround only removed markup. `LeadingSpace` holds the white space before the first word.
`ContextBlockSkipper` skips the context block that a model repeated. `DelimiterFilter` removes the delimiter of the
place, wherever it stands.
"""

import re

from tertulia.markdown import Fence, is_closing_fence, opening_fence

_LONGEST = 32  # characters at the start of a line that wait for the first word
_MOST_MARKS = 3
_TAIL = 320  # characters shown before a removed piece: with those after it they may become markup

_LEADING = re.compile(r"[ \t>*_~+#().\d-]*+")
_TILDES = r"~{1,2}+(?!~)"  # of emphasis; with three a fence begins
_BEFORE = re.compile(rf"(?:[ \t>]|(?:[-+*]|\d{{1,9}}[.)]|#{{1,6}})(?:[ \t]|\Z))*+(?:[*_(]|{_TILDES})*+")
_AFTER = re.compile(rf"(?:[ \t\r*_)]|{_TILDES})*+")
_CLOSING = {"*": "*", "_": "_", "~": "~", "(": ")"}


class LineBuffer:
    """The current line, and how much of it may be shown.

    Marks of a quote, a list or a heading at its start wait for the first word. Marks of emphasis at its end wait too. A
    line of which only marks are left after our markup was removed is not shown at all.
    """

    def __init__(self) -> None:
        self._shown: list[str] = []
        self._held = ""
        self._removed_at: int | None = None  # characters of `_held` before the first removed piece
        self._has_removed_marks = False  # marks around a removed piece were removed too

    def __bool__(self) -> bool:
        return bool(self._held or self._shown)

    @property
    def last_character(self) -> str:
        """The last character of the line, or an empty string."""
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
    def closing_marks(self) -> str:
        """The marks that would close the marks of emphasis held at the end."""
        return _CLOSING.get(self._held[-1:], "") * _count_marks(self._held)

    @property
    def is_flushed(self) -> bool:
        """Whether some of the line was shown, and nothing is held."""
        return bool(self._shown) and not self._held

    def add(self, text: str) -> None:
        """Add text that is shown at once, to a line of which nothing is held."""
        self._shown.append(text)

    def show(self, text: str) -> str:
        """Add *text* and return what can be shown now."""
        self._held += text
        if text.endswith("\n"):
            return ""
        size = len(self._held) if self._has_no_word() else _count_marks(self._held)
        return self._release(len(self._held) - size)

    def end(self) -> str:
        """End the line and return what was held; nothing where only marks are left of it."""
        held = self._held
        if self._is_only_marks(held.rstrip("\r\n")) and (held.strip() or self._has_removed_marks):
            self._held = ""
            return ""
        return self._release(len(held))

    def mark_removal(self) -> None:
        """Note that a piece was removed here."""
        if self._removed_at is None and not self._shown:
            self._removed_at = len(self._held)

    def remove_marks(self) -> None:
        """Remove the marks of emphasis at the end."""
        self._held = self._held[: len(self._held) - len(self.closing_marks)]
        self._removed_at = None if self._removed_at is None else min(self._removed_at, len(self._held))
        self._has_removed_marks = True

    def _has_no_word(self) -> bool:
        """Return whether the line has no word yet."""
        if self._shown or len(self._held) > _LONGEST:
            return False
        return (
            self._is_only_marks(self._held)
            if self._removed_at is not None
            else _LEADING.fullmatch(self._held) is not None
        )

    def _is_only_marks(self, held: str) -> bool:
        if self._removed_at is None or self._shown:
            return False
        return bool(_BEFORE.fullmatch(held, 0, self._removed_at) and _AFTER.fullmatch(held, self._removed_at))

    def _release(self, size: int) -> str:
        shown, self._held = self._held[:size], self._held[size:]
        if shown:
            self._shown.append(shown)
        return shown


def _count_marks(text: str) -> int:
    """Count the marks of emphasis, or brackets, at the end."""
    last, end = text[-1:], text[-_MOST_MARKS - 1 :]
    count = len(end) - len(end.rstrip(last)) if last in _CLOSING else 0
    return count if count <= _MOST_MARKS else 0


_MOST_BLANK = 256  # characters between the first line of the block and its fence
_LONGEST_FENCE_LINE = 4096  # a line that goes on for longer closes no fence


class ContextBlockSkipper:
    """Skips a context block that a model repeats: the fence after its first line, if one follows."""

    def __init__(self) -> None:
        self.has_fence = False  # the fence has come
        self._fence: Fence | None = None
        self._in_long_line = False  # the next text is the rest of a long line

    def skip(self, text: str, at: int, *, ended: bool) -> tuple[int, bool]:
        """Return up to where *text* can be skipped, and whether the block ends there; without a fence, nothing is."""
        if self._fence is None:
            start = self._fence_start(text, at, ended=ended)
            if start is None or self._fence is None:
                return at, start is not None
            at = start
        while (end := text.find("\n", at) + 1) or (ended and at < len(text)):
            line = text[at : end or len(text)]
            at, whole, self._in_long_line = end or len(text), not self._in_long_line, False
            if whole and is_closing_fence(self._fence, line.rstrip("\r\n")):
                return at, True
        if len(text) - at > _LONGEST_FENCE_LINE:
            at, self._in_long_line = len(text), True
        return at, ended

    def _fence_start(self, text: str, at: int, *, ended: bool) -> int | None:
        """Return where the lines in the fence begin: *at* where there is no fence, None while that is not known."""
        words = text[at:].lstrip(" \t\r\n")
        blank = len(text) - at - len(words)
        if blank > _MOST_BLANK or (words and words[0] not in "`~"):
            return at
        line, newline, _ = words.partition("\n")
        if not newline and not ended and len(line) <= _MOST_BLANK:
            return None
        self._fence = opening_fence(line.rstrip("\r"))
        self.has_fence = self._fence is not None
        return at + blank + len(line) + len(newline) if self.has_fence else at


_BLANK = " \t\r\n\ufeff"
_LONGEST_BLANK = 257  # characters that wait for a thought; so many are shown together


class LeadingSpace:
    """Holds the white space before the first word: it is removed together with a thought that follows."""

    def __init__(self) -> None:
        self.has_text = False  # the first word was shown
        self._after_thought = False
        self._blank = ""

    def show(self, text: str) -> str:
        if self.has_text:
            return text
        self.has_text = not is_space(text)
        blank = self._blank + text
        if self._after_thought and not self.has_text:
            blank = blank[blank.rfind("\n") + 1 :]
        shown = len(blank) if self.has_text else len(blank) // _LONGEST_BLANK * _LONGEST_BLANK
        self._blank = blank[shown:]
        return blank[:shown]

    def drop_until_text(self) -> None:
        """Discard the white space that is held, and the blank lines after it: a thought begins."""
        self._blank = ""
        self._after_thought = True

    def finish(self) -> str:
        blank, self._blank = self._blank, ""
        return blank


def is_space(text: str) -> bool:
    return not text.strip(_BLANK)


class DelimiterFilter:
    """Removes a word from a stream, also where removing it puts the word together again from the text around it.

    Two ends of text decide whether the word comes: `_tail`, the longest end of what was shown with which the word
    begins, and `_held`, the end of what came that may still become the word. Mostly both are empty, and text without
    the first letter of the word is returned at once.
    """

    def __init__(self, word: str) -> None:
        self._word = word
        self._tail = ""  # of what was shown
        self._held = ""

    def feed(self, text: str) -> str:
        """Return what may be shown now: all but an end that may become the word."""
        if not self._word or (not self._held and not self._tail and self._word[0] not in text):
            return text
        shown_pieces: list[str] = []
        text, at = self._held + text, 0
        while (end := self._find_end(text, at)) >= 0:
            shown_pieces.append(text[at : max(at, end - len(self._word))])
            self._update_tail(shown_pieces[-1])
            at = end
        held = self._partial_length(self._tail + text[max(at, len(text) - len(self._word)) :])
        shown = len(text) - min(held, len(text) - at)
        shown_pieces.append(text[at:shown])
        self._update_tail(shown_pieces[-1])
        self._held = text[shown:]
        return "".join(shown_pieces)

    def finish(self) -> str:
        held, self._held = self._held, ""
        return held

    def _find_end(self, text: str, at: int) -> int:
        """Return where the first word after *at* ends, also if it begins in `_tail`; -1 for none."""
        seam = (self._tail + text[at : at + len(self._word) - 1]).find(self._word)
        if seam >= 0:
            return at + seam + len(self._word) - len(self._tail)
        found = text.find(self._word, at)
        return found + len(self._word) if found >= 0 else -1

    def _update_tail(self, shown: str) -> None:
        tail = self._tail + shown[-len(self._word) :]
        size = self._partial_length(tail)
        self._tail = tail[len(tail) - size :]

    def _partial_length(self, text: str) -> int:
        """Return the length of the end of *text* with which the word begins."""
        longest = min(len(text), len(self._word) - 1)
        return next((size for size in range(longest, 0, -1) if self._word.startswith(text[-size:])), 0)
