"""The one place where a model's words become words for people: what we put in never comes out. Pure."""

import re
from collections.abc import Collection

from palaver.conversation.cleaning import markup
from palaver.conversation.cleaning.opening import Opening, is_blank
from palaver.conversation.cleaning.reading import Grammar, Reading
from palaver.conversation.cleaning.secret import Secret
from palaver.markdown import Fences
from palaver.tasks.kinds import KINDS
from palaver.tasks.wrapping import Thought

_LONGEST_SEAM = 320  # characters shown before a piece that was taken out, which may become markup with those after it
_INDENTED_TEXT = re.compile(r" {1,3}[^ Fi#\u00a0\ufeff]| {4}")  # neither a header nor a heading can begin so


def clean(text: str, *, delimiter: str = "", kinds: Collection[str] = KINDS) -> str:
    """*text* without our markup, and otherwise byte for byte; task blocks are those of *kinds*."""
    cleaner = Cleaner(delimiter=delimiter, kinds=kinds)
    return cleaner.feed(text) + cleaner.finish()


class Cleaner:
    """Cleans a text that comes in chunks; where they are cut makes no difference."""

    def __init__(self, *, delimiter: str = "", kinds: Collection[str] = KINDS) -> None:
        self._on_lines = markup.on_lines(delimiter, kinds)
        self._anywhere = markup.anywhere(delimiter)
        self._plain = _plain(delimiter)
        self._fences = Fences(without=delimiter)
        self._opening = Opening()
        self._secret = Secret(delimiter)
        self._text = ""  # what came and is neither shown nor dropped
        self._at = 0  # how far it is settled
        self._ahead = 0  # how far it is read
        self._ended = False  # no more will come
        self._readings: list[Reading] = []  # what may begin at the place that is settled
        self._going: list[Reading] = []  # … and is not read to its end
        self._until: str | None = ""  # what ends the text that is being dropped; None: nothing
        self._thought: Thought | None = None  # … which is a thought
        self._seam = False  # what was read last was taken out
        self._line: list[str] = []  # what is shown of this line
        self._verbatim = False  # this line is code
        self._out: list[str] = []

    def feed(self, chunk: str) -> str:
        """What may be shown now: all but what may yet turn out to be markup."""
        self._text += chunk
        while self._advance():
            pass
        self._text, self._ahead, self._at = self._text[self._at :], self._ahead - self._at, 0
        out, self._out = "".join(self._out), []
        return self._secret.feed(out)

    def finish(self) -> str:
        """What was held back and can be shown, as no more will come."""
        self._ended = True
        out = self.feed("")
        return out + self._secret.feed(self._opening.finish()) + self._secret.finish()

    def _advance(self) -> bool:
        """Settle the next piece of the text; False if there is none, or more must come to know."""
        if self._readings:
            return self._read_on()
        if self._at == len(self._text):
            return False
        if self._thought:
            return self._forget(self._thought)
        if self._until != "":
            return self._drop(self._until)
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
        certain = not first and not seam and (self._opening.spoken or not is_blank(char))
        plain = self._plain.match(self._text, self._at) if certain else None
        if plain:
            self._show(plain.end())
        elif grammars or seam:
            before = self._line[-1][-1] if self._line else ""
            self._readings = self._going = seam + [Reading(grammar, before=before) for grammar in grammars]
            self._ahead = self._at
        else:
            self._show(self._at + 1)

    def _first(self, char: str) -> tuple[Grammar, ...]:
        """What can begin here because nothing was said before it, in this line or at all."""
        grammars = () if self._line else self._on_lines.get(char, ())
        if char == " " and _INDENTED_TEXT.match(self._text, self._at):
            return ()
        if char == "<" and not self._opening.spoken:
            return grammars + markup.THOUGHTS
        return grammars

    def _reopened(self) -> list[Reading]:
        """What can have begun in the words shown, now that what stood after them is gone."""
        tail = self._tail()
        starts = {tail.rfind("["), tail.rfind("F"), tail.rfind("From: ")} - {-1}
        begun = [
            (Reading(grammar, before=tail[:start][-1:] or " ", shown=len(tail) - start), tail[start:])
            for start in starts
            for grammar in self._anywhere.get(tail[start], ())
        ]
        return [reading for reading, words in begun if all(map(reading.push, words))]

    def _tail(self) -> str:
        tail = ""
        for shown in reversed(self._line):
            tail = shown[-_LONGEST_SEAM:] + tail
            if len(tail) >= _LONGEST_SEAM:
                break
        return tail

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
        if longest.thought:
            self._thought = Thought(longest.thought)
            self._opening.think()
            self._line = []

    def _forget(self, thought: Thought) -> bool:
        """Drop the text up to the end of the thought; False if more must come."""
        self._at, over = thought.drop(self._text, self._at, ended=self._ended)
        if over:
            self._thought = None
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
        self._line.append(shown)
        if shown.endswith("\n"):
            self._fences.line("".join(self._line))
            self._line = []
        self._out.append(self._opening.show(shown))


def _plain(delimiter: str) -> re.Pattern[str]:
    """Text within a line in which certainly no markup begins."""
    first = delimiter[:1]
    after = {"[": r"[^\w#-]", " ": r"[^\[]", "F": "[^r]"}  # what shows that none begins with these
    sure = [rf"[^\n\[ F{re.escape(first)}]++"]
    sure += [f"{re.escape(char)}(?={no_more})" for char, no_more in after.items() if char != first]
    if first not in ("\n", *after) and len(delimiter) > 1:
        sure.append(rf"{re.escape(first)}(?=[^{re.escape(delimiter[1])}])")
    return re.compile(f"(?:{'|'.join(sure)})++")
