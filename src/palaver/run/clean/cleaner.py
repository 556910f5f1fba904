"""A model's text read once, from its beginning to its end, without the markup in it. Pure."""

import re
from collections.abc import Collection
from functools import lru_cache

from palaver.grammar import Grammar, Reading
from palaver.markdown import Fences
from palaver.run.clean import markup
from palaver.run.clean.text_filters import ContextBlockSkipper, DelimiterFilter, LeadingSpace, LineBuffer, is_space
from palaver.tasks.blocks import ThoughtSkipper
from palaver.tasks.kinds import KINDS

_INDENTED_TEXT = re.compile(r" {1,3}[^ \tFi#\[(\u00a0\ufeff]| {4,}+[^ \t\[(]")  # no markup can begin so
_BLANKS = re.compile(r"[ \t]{2,}+")  # within a line; markup can only begin with the last of them


class Scanner:
    """Goes through a text that comes in chunks, once; where they are cut makes no difference.

    One that goes through it *again*, after another, leaves the blanks before markup, so that it need not wait for more
    at every blank.
    """

    def __init__(
        self, *, delimiter: str, kinds: Collection[str], markers: Collection[str], again: bool = False
    ) -> None:
        self._on_lines = markup.on_lines(delimiter, kinds)
        self._anywhere = markup.anywhere(delimiter, markers, again=again)
        self._plain = _plain(delimiter[:2], frozenset(marker[:3] for marker in markers))
        self._quick = _quick(delimiter[:1])
        self._calm = False  # amid a line of which everything is shown but a blank at its end
        self._fences = Fences(without=delimiter)
        self._opening = LeadingSpace()
        self._secret = DelimiterFilter(delimiter)
        self._text = ""  # what came and is neither shown nor dropped
        self._at = 0  # how far it is settled
        self._ahead = 0  # how far it is read
        self._ended = False  # no more will come
        self._readings: list[Reading] = []  # what may begin at the place that is settled
        self._going: list[Reading] = []  # … and is not read to its end
        self._until: str | None = ""  # what ends the text that is being dropped; None: nothing
        self._within: ThoughtSkipper | ContextBlockSkipper | None = None  # … which is a thought or the context block
        self._seam = False  # what was read last was taken out
        self._closing = ""  # the marks that go too if they come next
        self._gap = False  # they did, and a blank after them may not be needed
        self._line = LineBuffer()  # that is being shown
        self._verbatim = False  # this line is code
        self._out: list[str] = []

    def feed(self, chunk: str) -> str:
        """What may be shown now: all but what may yet turn out to be markup."""
        self._text += chunk
        if self._calm and (found := self._quick.fullmatch(self._text)):
            shown, self._text = found[1], found[2]
            self._line.add(shown)
            return self._secret.feed(shown)
        while self._advance():
            pass
        self._text, self._ahead, self._at = self._text[self._at :], self._ahead - self._at, 0
        self._calm = self._is_calm()
        out, self._out = "".join(self._out), []
        return self._secret.feed(out)

    def _is_calm(self) -> bool:
        if self._text or self._readings or self._within or self._until != "" or self._closing or self._gap:
            return False
        return self._line.is_shown and self._opening.spoken and not self._seam

    def finish(self) -> str:
        """What was held back and can be shown, as no more will come."""
        self._ended = True
        out = self.feed("")
        rest = self._opening.show(self._line.end())
        return out + self._secret.feed(rest + self._opening.finish()) + self._secret.finish()

    def _advance(self) -> bool:
        """Settle the next piece of the text; False if there is none, or more must come to know."""
        if self._readings:
            return self._read_on()
        if self._at == len(self._text):
            return False
        if self._within:
            return self._forget(self._within)
        if self._until != "":
            return self._drop(self._until)
        if self._closing:
            return self._close(self._closing)
        if self._gap:
            self._close_up()
            return True
        if not self._line:
            covered = self._fences.covers(self._text, self._at, ended=self._ended)
            if covered is None:
                return False
            self._verbatim = covered
        if self._verbatim:
            self._show(self._text.find("\n", self._at) + 1 or len(self._text))
        else:
            self._begin()
        return True

    def _begin(self) -> None:
        """Show what is plainly text, or begin to read what may be markup."""
        char = self._text[self._at]
        first = self._first(char)
        grammars = first + self._anywhere.get(char, ())
        seam = self._reopened() if self._seam and self._line else []
        certain = not first and not seam and (self._opening.spoken or not is_space(char))
        plain = self._plain.match(self._text, self._at) if certain else None
        blanks = _BLANKS.match(self._text, self._at) if self._line and not seam and not plain else None
        if plain:
            self._show(plain.end())
        elif blanks:
            self._show(blanks.end() - 1)
        elif grammars or seam:
            before = self._line.before
            self._readings = self._going = seam + [Reading(grammar, before=before) for grammar in grammars]
            self._ahead = self._at
        else:
            self._show(self._at + 1)

    def _first(self, char: str) -> tuple[Grammar, ...]:
        """What can begin here because nothing was said before it, in this line or at all."""
        grammars = () if self._line else self._on_lines.get(char, ())
        if char == " " and grammars and _INDENTED_TEXT.match(self._text, self._at):
            return ()
        if char == "<" and not self._opening.spoken and is_space(self._line.text):
            return grammars + markup.THOUGHTS
        return grammars

    def _reopened(self) -> list[Reading]:
        """What can have begun in the words shown, now that what stood after them is gone."""
        tail = self._line.tail
        starts = {tail.rfind("["), tail.rfind("("), tail.rfind("F"), tail.rfind("From: ")} - {-1}
        begun = [
            (Reading(grammar, before=tail[:start][-1:] or " ", shown=len(tail) - start), tail[start:])
            for start in starts
            for grammar in self._anywhere.get(tail[start], ())
        ]
        return [reading for reading, words in begun if all(map(reading.push, words))]

    def _read_on(self) -> bool:
        """Read until nothing more can be markup; False if more must come to know."""
        while self._going and self._ahead < len(self._text):
            char = self._text[self._ahead]
            self._ahead += 1
            self._going = [reading for reading in self._going if reading.push(char)]
        if self._going and not self._ended:
            return False
        for reading in self._going:
            reading.push("")
        self._settle(max(self._readings, key=lambda reading: reading.taken))
        return True

    def _settle(self, longest: Reading) -> None:
        self._readings = self._going = []
        if longest.taken <= 0:
            self._show(self._at + 1)
            return
        self._at += longest.taken
        self._until = longest.until
        self._seam = True
        self._line.cut()
        self._closing = self._line.closing
        if longest.echo:
            self._within = ContextBlockSkipper()
        if longest.thought:
            self._within = ThoughtSkipper(longest.thought)
            self._opening.think()
            self._line = LineBuffer()

    def _close(self, marks: str) -> bool:
        """Take the marks around what was taken out as well; False if more must come to know whether they are there."""
        found = self._text[self._at : self._at + len(marks)]
        if found != marks and marks.startswith(found) and not self._ended:
            return False
        self._closing = ""
        if found == marks:
            self._at += len(marks)
            self._line.unwrap()
            self._gap = True
        return True

    def _close_up(self) -> None:
        """Take a blank of which there is one before it, or nothing."""
        self._gap = False
        if self._text[self._at] == " " and self._line.before in ("", " "):
            self._at += 1

    def _forget(self, within: ThoughtSkipper | ContextBlockSkipper) -> bool:
        """Drop the text up to the end of a thought or of the context block; False if more must come."""
        self._at, over = within.skip(self._text, self._at, ended=self._ended)
        if over:
            self._within = None
            if isinstance(within, ContextBlockSkipper) and within.found:
                self._opening.think()
        return over

    def _drop(self, until: str | None) -> bool:
        """Drop the text up to and with *until*; False if more must come."""
        end = self._text.find(until, self._at) if until else -1
        if until and end >= 0:
            self._at = end + len(until)
            self._until = ""
            return True
        self._at = max(self._at, len(self._text) - len(until or " ") + 1)
        return False

    def _show(self, end: int) -> None:
        """Show the text up to *end*, of one line."""
        shown = self._text[self._at : end]
        self._at = end
        self._seam = False
        self._out.append(self._opening.show(self._line.show(shown)))
        if shown.endswith("\n"):
            rest = self._line.end()
            self._out.append(self._opening.show(rest))
            if rest:
                self._fences.line(self._line.text)
            self._line = LineBuffer()


@lru_cache(maxsize=256)
def _plain(delimiter: str, markers: frozenset[str]) -> re.Pattern[str]:
    """Text within a line in which certainly no markup begins; of the delimiter and the markers the beginnings do."""
    first, second = delimiter[:1], delimiter[1:2]
    none, none_in_round = rf"(?!{markup.begun(markers)})", f"(?!{markup.IN_ROUND})"
    after = {  # what shows that none begins with these
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
def _quick(first: str) -> re.Pattern[str]:
    """Text amid a line with no character at which markup begins, or marks that wait; and a blank after it.

    *first* is that of the delimiter.
    """
    begins = rf"\n\[(F{re.escape(first)}"
    return re.compile(rf"((?:[^{begins}]*+\((?=[^mM]))*+[^{begins}]*[^{begins} *_~])( ?)")


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
