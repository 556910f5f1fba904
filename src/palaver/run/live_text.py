"""Live text: what may be shown of responses while they stream in, without our markup. Pure."""

from collections.abc import Callable, Collection, Mapping

from palaver.models.base import Response
from palaver.parts import Part, Text
from palaver.run.clean.cleaner import Cleaner
from palaver.run.model_calls import AttemptFailed
from palaver.tasks.blocks import ParsedText, may_be_outer_fence, parse
from palaver.tasks.kinds import KINDS, Kind


class LiveText:
    """One response; task blocks in a fence are left to the replies they make."""

    def __init__(
        self, delimiter: str, *, kinds: Mapping[str, Kind] = KINDS, markers: Collection[str] = frozenset()
    ) -> None:
        self.said = ""  # what was shown of it
        self._kinds = kinds
        self._cleaner = Cleaner(delimiter=delimiter, kinds=kinds, markers=markers)
        self._held: str | None = ""  # its beginning, until it is plain that no fence of blocks begins there
        self._in_fence: str | None = None  # all of it, where one begins
        self._blank = ""  # at the end, and shown when something follows

    def feed(self, text: str) -> str:
        """What may be shown now."""
        return self._shown(self._cleaner.feed(text))

    def finish(self) -> str:
        """Return what was held back: the text has ended."""
        return self._shown(self._cleaner.finish(), ended=True)

    def _shown(self, text: str, *, ended: bool = False) -> str:
        if self._held is not None:
            self._held += text
            may = may_be_outer_fence(f"{self._held}\n" if ended else self._held, self._kinds)
            if may is None and not ended:
                return ""
            text, self._held = self._held, None
            self._in_fence = "" if may else None
        if self._in_fence is None:
            return self._without_end(text)
        self._in_fence += text
        if ended and _has_no_blocks(parse(self._in_fence, kinds=self._kinds)):  # as where the fence is not closed
            return self._without_end(self._in_fence)
        return ""

    def _without_end(self, text: str) -> str:
        text = self._blank + text
        words = text.rstrip()
        self._blank = text[len(words) :]
        self.said += words
        return words


def _has_no_blocks(parsed: ParsedText) -> bool:
    return not (parsed.blocks or parsed.problems or parsed.skipped)


class LiveTexts:
    """The responses of one run. *begin* makes the text of each response."""

    def __init__(self, begin: Callable[[], LiveText]) -> None:
        self._begin = begin
        self._ended: list[str] = []
        self._is_response_last = False  # nothing has come since a response
        self._live: LiveText | None = None

    @property
    def text(self) -> str:
        """What is shown: each usable response, and the one that streams in."""
        texts = [*self._ended, self._live.said if self._live else ""]
        return "\n\n".join(text for text in texts if text.strip())

    def feed(self, piece: Part | Response | AttemptFailed) -> str:
        """Read a piece; return what may be shown now."""
        if isinstance(piece, AttemptFailed):
            if self._is_response_last:
                self._ended.pop()  # it was not usable
            self._live, self._is_response_last = None, False
            return ""
        live = self._live = self._live or self._begin()
        self._is_response_last = isinstance(piece, Response)
        if not isinstance(piece, Response):
            return live.feed(piece.text) if isinstance(piece, Text) else ""
        more = live.finish()
        self._ended.append(live.said)
        self._live = None
        return more
