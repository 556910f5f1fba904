"""WordWrapper: breaks the lines of a text between its words, also while the text is still being written. Pure.

A word is held back until what follows shows where it ends; then it is written on this line, or on the next one if it
does not fit. A word that is wider than a whole line is broken at the edge, between graphemes. Spaces where a line is
broken are dropped. Han characters and kana are words of their own, together with the punctuation that follows them.
Lines of a fenced code block are left alone: the terminal wraps them, and what is copied from it is still the code.
"""

import re
from collections.abc import Callable

from wcwidth import iter_graphemes, wcswidth

TAB = 8

_SPACE = " \t\u1680\u2000-\u2006\u2008-\u200b\u2028\u2029\u205f\u3000"  # where a line may be broken
_HAN = "\u2e80-\u2fdf\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"
_CLOSING = "、。々〉》」』】〕〜！），．：；？!),.:;?…ー"
_MARKS = "\u0300-\u036f\u200d\u3099\u309a\ufe00-\ufe0f\U000e0100-\U000e01ef"
_PIECE = re.compile(rf"\n|[{_SPACE}]+|[{_HAN}][{_CLOSING}{_MARKS}]*|[^\n{_SPACE}{_HAN}]+")
_SPACES = re.compile(rf"[{_SPACE}]+")
_HAN_WORD = re.compile(rf"[{_HAN}]")
_FENCE = re.compile(r"(`{3,}|~{3,})[^`]*")


class WordWrapper:
    """Wraps a text to the width that *width* returns; it is asked again for each piece of the text."""

    def __init__(self, width: Callable[[], int], *, indent: int = 0) -> None:
        self._width = width
        self._indent = indent  # of a line that continues another
        self._limit = 0
        self._column = 0
        self._held = ""  # the last of it: a word that may go on, or spaces
        self._held_is_broken = False  # the beginning of the held word has been written, and broken at the edge
        self._spaces = ""  # to be written before the next word
        self._at_start = True  # no word stands on this line of the text
        self._fence = ""  # what opened the code block

    @property
    def is_open(self) -> bool:
        """Return whether the line has not ended."""
        return bool(self._held or self._spaces or self._column or not self._at_start)

    def feed(self, text: str) -> str:
        """Return what of the text can be written now."""
        self._measure()
        pieces = _PIECE.findall(self._held + text)
        self._held = pieces.pop() if pieces and pieces[-1] != "\n" else ""
        written = [self._place(piece) for piece in pieces]
        return "".join([*written, self._place_part_of_held()])

    def flush(self) -> str:
        """Return what was held back, since the text ends here."""
        self._measure()
        held, self._held = self._held, ""
        written = self._place(held) if held else ""
        return written + self._fitting_spaces()

    def _measure(self) -> None:
        limit = max(self._width(), 1)
        if limit != self._limit and self._column > limit:
            self._column = (self._column - 1) % limit + 1  # the terminal has wrapped the line itself
        self._limit = limit

    def _place(self, piece: str) -> str:
        is_broken, self._held_is_broken = self._held_is_broken, False
        if piece == "\n":
            spaces = self._fitting_spaces()
            self._column, self._at_start = 0, True
            return f"{spaces}\n"
        if _SPACES.fullmatch(piece):
            self._spaces += piece
            return ""
        if self._at_start:
            self._read_fence(piece)
        self._at_start = False
        if self._fence:
            return self._fitting_spaces() + piece
        return self._broken(piece) if is_broken else self._word(piece)

    def _word(self, word: str) -> str:
        """Write a word on this line or on the next one."""
        column, width = self._column_after(self._spaces), _cells(word)
        if column + width > self._limit:
            return self._begin_next_line() + self._broken(word)
        spaces, self._spaces, self._column = self._spaces, "", column + width
        return spaces + word

    def _begin_next_line(self) -> str:
        return self._line_break() if self._column or self._spaces else ""

    def _broken(self, word: str) -> str:
        """Write a word from here on, broken wherever a line is full."""
        written = []
        for grapheme in iter_graphemes(word):
            width = _cells(grapheme)
            if self._column + width > self._limit and self._column:
                written.append(self._line_break())
            self._column += width
            written.append(grapheme)
        return "".join(written)

    def _place_part_of_held(self) -> str:
        """Write the beginning of a held word whose place is known: code, or a word that is wider than a line."""
        if not self._held or _SPACES.fullmatch(self._held) or _HAN_WORD.match(self._held):
            return ""  # punctuation ends a Han word only while its beginning is known
        if self._fence and not self._at_start:
            held, self._held = self._held, ""
            return self._fitting_spaces() + held
        if not self._held_is_broken and (_cells(self._held) <= self._limit or _FENCE.fullmatch(self._held)):
            return ""
        *complete, self._held = iter_graphemes(self._held)
        begin = "" if self._held_is_broken else self._begin_next_line()
        self._held_is_broken, self._at_start = True, False
        return begin + self._broken("".join(complete))

    def _line_break(self) -> str:
        indent = self._indent if self._indent <= self._limit // 2 else 0
        self._spaces, self._column = "", indent
        return "\n" + " " * indent

    def _fitting_spaces(self) -> str:
        """Return the spaces before what comes next, if there is room for them."""
        spaces, self._spaces = self._spaces, ""
        if not self._fence and self._column_after(spaces) > self._limit:
            return ""
        self._column = self._column_after(spaces)
        return spaces

    def _column_after(self, spaces: str) -> int:
        column = self._column
        for space in spaces:
            column += TAB - column % TAB if space == "\t" else _cells(space)
        return column

    def _read_fence(self, word: str) -> None:
        """Note that a code block begins or ends."""
        found = _FENCE.fullmatch(word)
        if not found:
            return
        if not self._fence:
            self._fence = found[1]
        elif word.startswith(self._fence) and not word.strip(self._fence[0]):
            self._fence = ""
            self._column = 0


def _cells(text: str) -> int:
    """Return the columns that a text takes, grapheme by grapheme; control characters take none."""
    return sum(max(wcswidth(grapheme), 0) for grapheme in iter_graphemes(text))
