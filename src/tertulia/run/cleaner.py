"""The streaming cleaner: removes our own markup from a model's text before people see it. Pure.

**One character at a time.** A response streams in chunks, and markup may be cut anywhere between them. So the cleaner
decides by characters, never by chunks: at a character with which markup can begin it starts one candidate for each
grammar that begins so, feeds them the characters that follow, and shows or removes the text only when no candidate can
go on. The longest candidate that matched is removed; if none matched, one character is shown and the rest is read
again. Text before that point is shown at once. The result is the same wherever the stream is cut, and what waits is
bounded, because every grammar gives up after so many characters.

**Three passes.** Removing a piece joins the text before it with the text after it, and the result may be markup again,
as in `[RES[RESPOND]POND]`. A pass looks back a little at such a joint, but it cannot read again what it has shown. So a
`Cleaner` is a chain of `PASSES` passes, each fed with the output of the one before. With three, cleaning a second time
changes nothing: a model that repeats what it was shown does not nest markup more deeply.

**The fast path.** Nearly all text is plain. Within a line that is shown already, a regular expression passes over text
in which no markup can begin, so that a chunk costs one match instead of a decision for each character.
"""

import re
from collections.abc import Collection
from functools import lru_cache

from tertulia.grammar import Candidate, Grammar
from tertulia.markdown import Fences
from tertulia.run import markup
from tertulia.run.text_filters import ContextBlockSkipper, DelimiterFilter, LeadingSpace, LineBuffer, is_space
from tertulia.tasks.blocks import ThoughtSkipper
from tertulia.tasks.kinds import KINDS

_INDENTED_TEXT = re.compile(
    r" {1,3}[^ \tFi#*\[(\u00a0\ufeff]| {4,}+[^ \t\[(]"
)  # a line start with which no markup begins
_BLANKS = re.compile(r"[ \t]{2,}+")  # within a line; markup can begin only with the last of them


class CleaningPass:
    """Reads a text that comes in chunks once, and removes the markup in it.

    A later pass (*again*) keeps the blank before markup, so that it need not wait at every blank.
    """

    def __init__(
        self, *, delimiter: str, kinds: Collection[str], markers: Collection[str], again: bool = False
    ) -> None:
        rules = _rules(delimiter, tuple(kinds), frozenset(markers), again)
        self._line_start_grammars, self._inline_grammars, self._plain_text = rules
        self._fast_path = _fast_path_pattern(delimiter[:1])
        self._is_fast = False  # the fast path may be tried on the next chunk
        self._fences = Fences(without=delimiter)
        self._leading_space = LeadingSpace()
        self._delimiter_filter = DelimiterFilter(delimiter)
        self._text = ""  # received, and neither shown nor removed yet
        self._position = 0  # in `_text`: what comes before it is decided
        self._read_to = 0  # in `_text`: how far the candidates have read
        self._is_ended = False  # no chunk follows
        self._candidates: list[Candidate] = []  # grammars that may match at the position
        self._open_candidates: list[Candidate] = []  # … and that can read on
        self._drop_until: str | None = ""  # drop the text up to this; None: up to the end
        self._region: ThoughtSkipper | ContextBlockSkipper | None = None  # being skipped
        self._just_removed = False  # the last text that was read was removed
        self._closing_marks = ""  # emphasis around a removed piece: removed if it comes next
        self._may_drop_blank = False  # the marks came; a blank after them may be one too many
        self._line = LineBuffer()  # the current line
        self._is_code = False  # the current line is code
        self._output: list[str] = []

    def feed(self, chunk: str) -> str:
        """Return what can be shown now: all but what may still become markup."""
        self._text += chunk
        if self._is_fast and (found := self._fast_path.fullmatch(self._text)):
            shown, self._text = found[1], found[2]
            self._line.add(shown)
            return self._delimiter_filter.feed(shown)
        while self._advance():
            pass
        self._text, self._read_to, self._position = self._text[self._position :], self._read_to - self._position, 0
        self._is_fast = self._may_use_fast_path()
        out, self._output = "".join(self._output), []
        return self._delimiter_filter.feed(out)

    def _may_use_fast_path(self) -> bool:
        if self._text or self._candidates or self._region or self._drop_until != "":
            return False
        if self._closing_marks or self._may_drop_blank:
            return False
        return self._line.is_flushed and self._leading_space.has_text and not self._just_removed

    def finish(self) -> str:
        """Return what was held back: no chunk follows."""
        self._is_ended = True
        out = self.feed("")
        rest = self._leading_space.show(self._line.end())
        return out + self._delimiter_filter.feed(rest + self._leading_space.finish()) + self._delimiter_filter.finish()

    def _advance(self) -> bool:
        """Decide about the next piece of the text; return False if that needs more text."""
        if self._candidates:
            return self._read_candidates()
        if self._position == len(self._text):
            return False
        if self._region:
            return self._skip_region(self._region)
        if self._drop_until != "":
            return self._drop_up_to(self._drop_until)
        if self._closing_marks:
            return self._drop_closing_marks(self._closing_marks)
        if self._may_drop_blank:
            self._drop_blank()
            return True
        if not self._line:
            covered = self._fences.covers(self._text, self._position, ended=self._is_ended)
            if covered is None:
                return False
            self._is_code = covered
        if self._is_code:
            self._show(self._text.find("\n", self._position) + 1 or len(self._text))
        else:
            self._show_or_try()
        return True

    def _show_or_try(self) -> None:
        """Show plain text, or start the candidates for what may be markup."""
        char = self._text[self._position]
        first = self._grammars_at_start(char)
        grammars = first + self._inline_grammars.get(char, ())
        reopened = self._candidates_in_shown_text() if self._just_removed and self._line else []
        certain = not first and not reopened and (self._leading_space.has_text or not is_space(char))
        plain = self._plain_text.match(self._text, self._position) if certain else None
        blanks = _BLANKS.match(self._text, self._position) if self._line and not reopened and not plain else None
        if plain:
            self._show(plain.end())
        elif blanks:
            self._show(blanks.end() - 1)
        elif grammars or reopened:
            before = self._line.last_character
            self._candidates = self._open_candidates = reopened + [
                Candidate(grammar, before=before) for grammar in grammars
            ]
            self._read_to = self._position
        else:
            self._show(self._position + 1)

    def _grammars_at_start(self, char: str) -> tuple[Grammar, ...]:
        """Return the grammars that match only at the start of a line or of the text."""
        grammars = () if self._line else self._line_start_grammars.get(char, ())
        if char == " " and grammars and _INDENTED_TEXT.match(self._text, self._position):
            return ()
        if char == "<" and not self._leading_space.has_text and is_space(self._line.text):
            return grammars + markup.THOUGHTS
        return grammars

    def _candidates_in_shown_text(self) -> list[Candidate]:
        """Return candidates that begin in text shown already: what followed it was removed, so it may become markup."""
        tail = self._line.tail
        starts = {tail.rfind("["), tail.rfind("("), tail.rfind("F"), tail.rfind("From: ")} - {-1}
        tried = [
            (Candidate(grammar, before=tail[:start][-1:] or " ", shown=len(tail) - start), tail[start:])
            for start in starts
            for grammar in self._inline_grammars.get(tail[start], ())
        ]
        return [candidate for candidate, words in tried if all(map(candidate.push, words))]

    def _read_candidates(self) -> bool:
        """Feed the candidates until none can read on; return False if that needs more text."""
        while self._open_candidates and self._read_to < len(self._text):
            char = self._text[self._read_to]
            self._read_to += 1
            self._open_candidates = [candidate for candidate in self._open_candidates if candidate.push(char)]
        if self._open_candidates and not self._is_ended:
            return False
        for candidate in self._open_candidates:
            candidate.push("")
        self._apply(max(self._candidates, key=lambda candidate: candidate.taken))
        return True

    def _apply(self, longest: Candidate) -> None:
        self._candidates = self._open_candidates = []
        if longest.taken <= 0:
            self._show(self._position + 1)
            return
        self._position += longest.taken
        self._drop_until = longest.until
        self._just_removed = True
        self._line.mark_removal()
        self._closing_marks = self._line.closing_marks
        if longest.echo:
            self._region = ContextBlockSkipper()
        if longest.thought:
            self._region = ThoughtSkipper(longest.thought)
            self._leading_space.drop_until_text()
            self._line = LineBuffer()

    def _drop_closing_marks(self, marks: str) -> bool:
        """Remove the closing marks around a removed piece, if they come; return False if that needs more text."""
        found = self._text[self._position : self._position + len(marks)]
        if found != marks and marks.startswith(found) and not self._is_ended:
            return False
        self._closing_marks = ""
        if found == marks:
            self._position += len(marks)
            self._line.remove_marks()
            self._may_drop_blank = True
        return True

    def _drop_blank(self) -> None:
        """Remove a blank that follows another blank, or begins the line."""
        self._may_drop_blank = False
        if self._text[self._position] == " " and self._line.last_character in ("", " "):
            self._position += 1

    def _skip_region(self, region: ThoughtSkipper | ContextBlockSkipper) -> bool:
        """Skip a thought or the context block; return False if its end has not come."""
        self._position, over = region.skip(self._text, self._position, ended=self._is_ended)
        if over:
            self._region = None
            if isinstance(region, ContextBlockSkipper) and region.has_fence:
                self._leading_space.drop_until_text()
        return over

    def _drop_up_to(self, until: str | None) -> bool:
        """Drop the text up to and with *until*; return False if it has not come."""
        end = self._text.find(until, self._position) if until else -1
        if until and end >= 0:
            self._position = end + len(until)
            self._drop_until = ""
            return True
        self._position = max(self._position, len(self._text) - len(until or " ") + 1)
        return False

    def _show(self, end: int) -> None:
        """Show the text up to *end*, which is in the same line."""
        shown = self._text[self._position : end]
        self._position = end
        self._just_removed = False
        self._output.append(self._leading_space.show(self._line.show(shown)))
        if shown.endswith("\n"):
            rest = self._line.end()
            self._output.append(self._leading_space.show(rest))
            if rest:
                self._fences.add_line(self._line.text)
            self._line = LineBuffer()


@lru_cache(maxsize=64)
def _rules(
    delimiter: str, kinds: Collection[str], markers: frozenset[str], again: bool
) -> tuple[markup.Table, markup.Table, re.Pattern[str]]:
    """Return the grammars that match at the start of a line and within it, and a pattern of plain text."""
    known = markup.Markers.of(markers)
    return (
        markup.line_start_grammars(delimiter, kinds, known),
        markup.inline_grammars(delimiter, known, again=again),
        _plain_text_pattern(delimiter[:2], frozenset(marker[:3] for marker in known.in_brackets)),
    )


@lru_cache(maxsize=256)
def _plain_text_pattern(delimiter: str, markers: frozenset[str]) -> re.Pattern[str]:
    """Return a pattern of text within a line in which no markup begins. The first letters of the delimiter and of the
    markers are given."""
    first, second = delimiter[:1], delimiter[1:2]
    none, none_in_round = rf"(?!{markup.bracket_pattern(markers)})", f"(?!{markup.IN_ROUND})"
    after = {  # by a character with which markup may begin: what shows that none does
        "[": none,
        "(": none_in_round,
        " ": rf"(?=[^\[(]|\[{none}|\({none_in_round})",
        "F": r"(?!r|\Z)",
    }
    sure = [rf"[^\n\[( F{re.escape(first)}]++"]
    sure += [f"{re.escape(char)}{no_more}" for char, no_more in after.items() if char != first]
    if first not in ("\n", *after) and second:
        sure.append(rf"{re.escape(first)}(?=[^{re.escape(second)}])")
    return re.compile(f"(?:{'|'.join(sure)})++")


@lru_cache(maxsize=256)
def _fast_path_pattern(first: str) -> re.Pattern[str]:
    """Return a pattern of text within a line without a character with which markup begins, or with marks that wait, and
    a blank after it. *first* is the first character of the delimiter."""
    begins = rf"\n\[(F{re.escape(first)}"
    return re.compile(rf"((?:[^{begins}]*+\((?=[^mM]))*+[^{begins}]*[^{begins} *_~])( ?)")


PASSES = 3


def clean(
    text: str, *, delimiter: str = "", kinds: Collection[str] = KINDS, markers: Collection[str] = frozenset()
) -> str:
    """Return *text* without our markup, otherwise byte for byte; see `Cleaner`."""
    for number in range(PASSES):
        one_pass = CleaningPass(delimiter=delimiter, kinds=kinds, markers=markers, again=number > 0)
        before, text = text, one_pass.feed(text) + one_pass.finish()
        if text == before:
            break
    return text


class Cleaner:
    """Cleans a text that comes in chunks. Where it is cut makes no difference; cleaning again changes nothing.

    *delimiter* is that of the place, *kinds* are those of task blocks. *markers* stood in the prompt: words in brackets
    for media, and its own texts. They are too ordinary to be removed from any other answer.
    """

    def __init__(
        self, *, delimiter: str = "", kinds: Collection[str] = KINDS, markers: Collection[str] = frozenset()
    ) -> None:
        self._passes = [
            CleaningPass(delimiter=delimiter, kinds=kinds, markers=markers, again=number > 0)
            for number in range(PASSES)
        ]

    def feed(self, chunk: str) -> str:
        """Return what can be shown now: all but what may still become markup."""
        for one_pass in self._passes:
            chunk = one_pass.feed(chunk)
        return chunk

    def finish(self) -> str:
        """Return what was held back: no chunk follows."""
        rest = ""
        for one_pass in self._passes:
            rest = one_pass.feed(rest) + one_pass.finish()
        return rest
