"""The system context block where a model repeats it: its lines in their fence go as a whole. Pure."""

from palaver.markdown import Fence, closes, opened

_MOST_BLANK = 256  # characters before the fence
_LONGEST = 4096  # a line that goes on for longer closes no fence


class Echo:
    """Follows a text after the line that begins the block, and says how far it goes with that."""

    def __init__(self) -> None:
        self.found = False  # there is a fence
        self._fence: Fence | None = None
        self._within = False  # what comes next is the rest of a line

    def drop(self, text: str, at: int, *, ended: bool) -> tuple[int, bool]:
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
        if len(text) - at > _LONGEST:
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
