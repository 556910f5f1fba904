"""The one place where a model's words become words for people: what we put in never comes out. Pure."""

from collections.abc import Collection

from palaver.run.cleaning.scanner import Scanner
from palaver.tasks.kinds import KINDS

PASSES = 3  # what is left when a piece is taken out may be markup; deeper than this nothing is nested


def clean(
    text: str, *, delimiter: str = "", kinds: Collection[str] = KINDS, markers: Collection[str] = frozenset()
) -> str:
    """*text* without our markup, and otherwise byte for byte; see `Cleaner`."""
    for number in range(PASSES):
        scanner = Scanner(delimiter=delimiter, kinds=kinds, markers=markers, again=number > 0)
        before, text = text, scanner.feed(text) + scanner.finish()
        if text == before:
            break
    return text


class Cleaner:
    """Cleans a text that comes in chunks; where they are cut makes no difference, and cleaning twice changes nothing.

    The *delimiter* is that of the place, task blocks are those of *kinds*, and *markers* are the words in brackets that
    stood for media in the prompt that is answered: they are too ordinary to be known otherwise.
    """

    def __init__(
        self, *, delimiter: str = "", kinds: Collection[str] = KINDS, markers: Collection[str] = frozenset()
    ) -> None:
        self._scanners = [
            Scanner(delimiter=delimiter, kinds=kinds, markers=markers, again=number > 0) for number in range(PASSES)
        ]

    def feed(self, chunk: str) -> str:
        """What may be shown now: all but what may yet turn out to be markup."""
        for scanner in self._scanners:
            chunk = scanner.feed(chunk)
        return chunk

    def finish(self) -> str:
        """What was held back and can be shown, as no more will come."""
        rest = ""
        for scanner in self._scanners:
            rest = scanner.feed(rest) + scanner.finish()
        return rest
