"""Live text: the part of streaming responses that may be shown, without our markup. Pure."""

from collections.abc import Callable, Collection, Mapping

from palaver.models.base import Response
from palaver.parts import Part, Text
from palaver.run.cleaner import Cleaner
from palaver.run.model_calls import AttemptFailed
from palaver.tasks.blocks import may_be_outer_fence, parse
from palaver.tasks.kinds import KINDS, Kind


class LiveText:
    """One response. Task blocks in a fence are not shown: they become replies."""

    def __init__(
        self, delimiter: str, *, kinds: Mapping[str, Kind] = KINDS, markers: Collection[str] = frozenset()
    ) -> None:
        self.shown = ""
        self._kinds = kinds
        self._cleaner = Cleaner(delimiter=delimiter, kinds=kinds, markers=markers)
        self._held: str | None = ""  # the start, until it is known whether a fence of blocks begins there
        self._in_fence: str | None = None  # the whole text, if one begins
        self._blank = ""  # at the end; shown when text follows

    def feed(self, text: str) -> str:
        """Return what may be shown now."""
        return self._show(self._cleaner.feed(text))

    def finish(self) -> str:
        """Return what was held back: the text has ended."""
        return self._show(self._cleaner.finish(), ended=True)

    def _show(self, text: str, *, ended: bool = False) -> str:
        if self._held is not None:
            self._held += text
            is_fence = may_be_outer_fence(f"{self._held}\n" if ended else self._held, self._kinds)
            if is_fence is None and not ended:
                return ""
            text, self._held = self._held, None
            self._in_fence = "" if is_fence else None
        if self._in_fence is None:
            return self._hold_blank_end(text)
        self._in_fence += text
        if not ended:
            return ""
        parsed = parse(self._in_fence, kinds=self._kinds)
        if not (parsed.blocks or parsed.problems or parsed.skipped):  # for example, the fence is not closed
            return self._hold_blank_end(self._in_fence)
        return ""

    def _hold_blank_end(self, text: str) -> str:
        text = self._blank + text
        shown = text.rstrip()
        self._blank = text[len(shown) :]
        self.shown += shown
        return shown


class LiveTexts:
    """The texts of all responses of a run. *begin* returns a new `LiveText` for each."""

    def __init__(self, begin: Callable[[], LiveText]) -> None:
        self._begin = begin
        self._ended: list[str] = []
        self._is_response_last = False  # the last piece was a response
        self._live: LiveText | None = None

    @property
    def text(self) -> str:
        """The shown text of each usable response, and of the one that streams in."""
        texts = [*self._ended, self._live.shown if self._live else ""]
        return "\n\n".join(text for text in texts if text.strip())

    def feed(self, piece: Part | Response | AttemptFailed) -> str:
        """Add a piece; return what may be shown now."""
        if isinstance(piece, AttemptFailed):
            if self._is_response_last:
                self._ended.pop()  # it was not usable
            self._live, self._is_response_last = None, False
            return ""
        live = self._live = self._live or self._begin()
        self._is_response_last = isinstance(piece, Response)
        if not isinstance(piece, Response):
            return live.feed(piece.text) if isinstance(piece, Text) else ""
        rest = live.finish()
        self._ended.append(live.shown)
        self._live = None
        return rest
