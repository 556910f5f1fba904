"""The line that is shown, and what of it must wait: marks around a piece that is taken out go with it. Pure."""

import re

_LONGEST = 32  # characters at the beginning of a line that wait for the first word
_MOST_MARKS = 3
_TAIL = 320  # characters shown before a piece that was taken out, which may become markup with those after it

_LEADING = re.compile(r"[ \t>*_~+#().\d-]*+")
_BEFORE = re.compile(r"(?:[ \t>]|(?:[-+*]|\d{1,9}[.)]|#{1,6})(?:[ \t]|\Z))*+[*_~(]*+")
_AFTER = re.compile(r"[ \t\r*_~)]*+")
_CLOSING = {"*": "*", "_": "_", "~": "~", "(": ")"}


class Line:
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
