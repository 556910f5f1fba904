"""What of a response may be shown as it streams in: its words, without our markup. Pure."""

from collections.abc import Collection

from palaver.run.cleaner import Cleaner
from palaver.tasks.kinds import KINDS
from palaver.tasks.wrapping import may_wrap


class LiveText:
    """One response; task blocks in a fence are left to the replies they make."""

    def __init__(
        self, delimiter: str, *, kinds: Collection[str] = KINDS, markers: Collection[str] = frozenset()
    ) -> None:
        self.said = ""  # what was shown of it
        self._kinds = kinds
        self._cleaner = Cleaner(delimiter=delimiter, kinds=kinds, markers=markers)
        self._held: str | None = ""  # its beginning, until it is plain that no fence of blocks begins there
        self._wrapped = False
        self._blank = ""  # at the end, and shown when something follows

    def feed(self, text: str) -> str:
        """What may be shown now."""
        return self._shown(self._cleaner.feed(text))

    def finish(self) -> str:
        """What was held back, as no more will come."""
        return self._shown(self._cleaner.finish(), ended=True)

    def _shown(self, text: str, *, ended: bool = False) -> str:
        if self._held is not None:
            self._held += text
            wrapped = may_wrap(f"{self._held}\n" if ended else self._held, self._kinds)
            if wrapped is None and not ended:
                return ""
            self._wrapped = bool(wrapped)
            text, self._held = self._held, None
        return "" if self._wrapped else self._without_end(text)

    def _without_end(self, text: str) -> str:
        text = self._blank + text
        words = text.rstrip()
        self._blank = text[len(words) :]
        self.said += words
        return words
