"""How a reply begins: blank space, thoughts, and then the first word. Pure."""

_BLANK = " \t\r\n\ufeff"
_MOST_BLANK = 257  # characters that wait for a thought to come; so many are shown together


class Opening:
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
        shown = len(blank) if self.spoken else len(blank) // _MOST_BLANK * _MOST_BLANK
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
