"""A word that never comes out, in whatever pieces a text arrives. Pure."""


class Secret:
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
