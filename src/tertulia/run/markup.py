"""The grammars of our markup, as a model may repeat it in an answer. Pure.

A grammar is a generator that is sent one character at a time. It returns or raises `Miss` when the text cannot be its
markup, and calls `own.take()` when the text read so far is. Grammars are tabled by the character they begin with.
"""

import re
from collections.abc import Collection, Generator, Mapping
from functools import lru_cache
from typing import NamedTuple

from tertulia.formats import meta_grammar
from tertulia.grammar import Candidate, Grammar, Miss, Steps, line_end, literal, token
from tertulia.parts import DESCRIBED, MAX_LABEL, SAME_AS
from tertulia.parts import MAX_SHOWN_TEXT as LONGEST_MESSAGE
from tertulia.prompt import forms
from tertulia.prompt.render import DOUBT, KINDS, NOTE
from tertulia.run.header_grammar import (
    LONGEST_ID,
    header,
    header_without_author,
    indented_header,
    is_digit,
    peek,
    take_with_line_end,
)
from tertulia.run.section_grammar import echo_grammars, section_grammars
from tertulia.tasks import blocks

LONGEST_DESCRIPTION = 2 * LONGEST_MESSAGE
SOMEONE = "Someone"  # the author of a quote, where unknown

_BEGUN = (
    r"\Z|#(?!\[)",
    r"R(?:ES|EP)|replied (?:\Z|t)|forwarded (?:\Z|f)",
    r"(?i:meta(?:data)?+:?|speaker)\]?:?(?:\Z| [A-Za-z_]{0,24}+(?:=|\Z))",
    r"[\w-]{1,64}+(?:\Z| (?:\Z|\"|of?(?:\Z| )|p(?:resent|[a-z]{0,6}\Z)|d(?:escribed|[a-z]{0,8}\Z)))",
    r"[\w-]{1,64}+,(?:\Z| (?:\Z|t(?:he same as|[a-z ]{0,10}\Z)))",
)
IN_ROUND = (  # a pattern of what may follow a round bracket that begins markup
    r"(?i:[ms][a-z]{0,7}+:?)?+\Z|(?i:meta(?:data)?+:?+|speaker) [a-z_]{0,24}+(?:=|\Z)"
)
_SECTIONS = tuple(section_grammars())
_ROUND = (meta_grammar.round_meta, meta_grammar.round_speaker)
_CUES = (forms.RESPOND, forms.REPLY_TO_THIS)

Table = Mapping[str, tuple[Grammar, ...]]  # by the character with which the markup begins


class Markers(NamedTuple):
    """What stood in the prompt and may come again, by where it can stand in an answer."""

    in_brackets: tuple[str, ...] = ()  # `[photo]`, within a line
    authors: frozenset[str] = frozenset()  # `From: Alice (u123)`
    texts: tuple[str, ...] = ()  # lines from the start of one on

    @classmethod
    def of(cls, markers: Collection[str]) -> "Markers":
        authors = frozenset(marker for marker in markers if marker.startswith(forms.FROM))
        marks = tuple(one for one in markers if one[0] == "[" and one[1:2] != "#" and "\n" not in one)
        return cls(marks, authors, tuple(one for one in markers if one not in authors and one not in marks))


def line_start_grammars(delimiter: str, kinds: Collection[str], markers: Markers) -> Table:
    """Return the grammars that match at the start of a line. *kinds* are those of task blocks."""
    common = _line_start_grammars(tuple(kinds), markers)
    return {**common, "[": (_delimited_line(delimiter), *common["["])} if delimiter else common


@lru_cache(maxsize=16)
def _line_start_grammars(kinds: Collection[str], markers: Markers) -> Table:
    """Return those that all places have."""
    task = _task(kinds)
    blocks = tuple(map(meta_grammar.indented, (meta_grammar.square_meta, meta_grammar.square_speaker, *_ROUND)))
    grammars: dict[str, tuple[Grammar, ...]] = {
        " ": (indented_header(markers.authors), task, *blocks),
        "\t": blocks,
        "\u00a0": (task,),
        "\ufeff": (task,),
        "i": (header_without_author,),
        "H": (_context_block,),
        "#": (task,),
        "*": (task,),
        "u": (meta_grammar.speaker_line("user"),),
        "b": (meta_grammar.speaker_line("bot"),),
        "[": (),
    }
    for first, grammar in (*_SECTIONS, *echo_grammars(markers.texts)):
        grammars[first] = (*grammars.get(first, ()), grammar)
    return grammars


def inline_grammars(delimiter: str, markers: Markers, *, again: bool) -> Table:
    """Return the grammars that match within a line, *markers* among them.

    They take the blank before the markup, except in a later pass (*again*).
    """
    common = _inline_grammars(markers, again=again)
    if not delimiter:
        return common
    grammars = {**common, "[": (*common["["], _literal_mark(f"[#{delimiter}]"), *_doubts(delimiter))}
    grammars[delimiter[0]] = (*grammars.get(delimiter[0], ()), _literal_mark(delimiter))
    return grammars


@lru_cache(maxsize=16)
def _inline_grammars(markers: Markers, *, again: bool) -> Table:
    """Return those that all places have."""
    blocks = (meta_grammar.square_meta, meta_grammar.square_speaker, *map(_marker, markers.in_brackets))
    return {
        "F": (header(markers.authors),),
        "[": (*map(_cue, _CUES), _placeholder, _description, _repetition, *_LABELS, *blocks),
        "(": _ROUND,
        " ": () if again else (_cue_after_blank, *map(meta_grammar.at_line_end, (*blocks, *_ROUND))),
    }


def bracket_pattern(markers: Collection[str]) -> str:
    """Return a pattern of what may follow a square bracket that begins markup.

    Where it does not match, no grammar does, so none is tried. It is compiled for each prompt, so it is short rather
    than exact.
    """
    own = sorted({re.escape(marker[1:3]) for marker in markers})
    return "|".join([*_BEGUN, *own])


def _thought(name: str) -> Grammar:
    """`<think>`, in any case."""

    def grammar(own: Candidate) -> Steps:
        for expected in f"<{name}":
            if (yield) not in (expected, expected.upper()):
                raise Miss
        for _ in range(blocks.MOST_TAG_BLANKS):
            if (yield from peek(own)) not in ("\t", " "):
                break
            yield
        yield from literal(">")
        own.take()
        own.thought = name

    return grammar


THOUGHTS = tuple(map(_thought, blocks.THOUGHT_TAGS))


def _literal_mark(words: str) -> Grammar:
    def grammar(own: Candidate) -> Steps:
        yield from literal(words)
        yield from take_with_line_end(own)

    return grammar


def _cue(words: str) -> Grammar:
    """Return a mark that a text may mention: between two backticks, or where a sentence goes on after it, it stays."""

    def grammar(own: Candidate) -> Steps:
        yield from literal(words)
        if own.before == "`" and (yield from peek(own)) == "`":
            raise Miss
        if own.before in ("", " ") and (yield from _goes_on(own)):
            raise Miss
        yield from _take_with_gap(own)

    return grammar


def _cue_after_blank(own: Candidate) -> Steps:
    yield from literal(f" {forms.REPLY_TO_THIS}")
    if (yield from _goes_on(own)):
        raise Miss
    yield from take_with_line_end(own)


def _goes_on(own: Candidate) -> Generator[None, str, bool]:
    """Return whether a blank and a small letter follow, without reading them."""
    blank = yield
    if blank != " ":
        own.unread(blank)
        return False
    letter = yield
    own.unread(blank, letter)
    return letter.islower()


def _marker(words: str) -> Grammar:
    """Return a media marker of the prompt, with the blank after it; in backticks, or as the text of a link, it
    stays.
    """

    def grammar(own: Candidate) -> Steps:
        yield from literal(words)
        if own.before == "`" or (yield from peek(own)) == "(":
            raise Miss
        yield from _take_with_gap(own)

    return grammar


def _placeholder(own: Candidate) -> Steps:
    """`[audio present uid=a1]`; the id may be missing."""
    yield from literal("[")
    yield from token(own, _in_kind, most=64)
    yield from literal(" present uid=")
    if (yield from peek(own)) != "]":
        yield from token(own, _in_uid, most=LONGEST_ID)
    yield from literal("]")
    yield from _take_with_gap(own)


def _description(own: Candidate) -> Steps:
    """`[photo described: a cat]`, `[document "a.pdf"]`, `[voice of 12 seconds described: hello]`.

    Without a description it is the marker of a known kind, and stays in backticks or as the text of a link.
    """
    yield from literal("[")
    kind = yield from token(own, _in_kind, most=64)
    named = yield from _option(own, ' "', _label_end)
    lasting = yield from _option(own, " of ", _length)
    bare = kind in KINDS and (named or lasting) and (yield from peek(own)) == "]"
    if not bare:
        yield from literal(DESCRIBED)
        own.longest = LONGEST_DESCRIPTION
        yield from token(own, _in_label, most=LONGEST_DESCRIPTION)
    yield from literal("]")
    if bare and (own.before == "`" or (yield from peek(own)) == "("):
        raise Miss
    yield from _take_with_gap(own)


def _option(own: Candidate, words: str, rest: Grammar) -> Generator[None, str, bool]:
    """Read *words* and the *rest* after them, if they are here; return whether they are."""
    read: list[str] = []
    for expected in words:
        read.append((yield))
        if read[-1] != expected:
            own.unread(*read)
            return False
    yield from rest(own)
    return True


def _label_end(own: Candidate) -> Steps:
    yield from token(own, _in_quotes, most=MAX_LABEL)
    yield from literal('"')


def _length(own: Candidate) -> Steps:
    """`12 seconds`, or `2 min 5 s`"""
    yield from token(own, is_digit, most=12)
    yield from literal(" ")
    if (yield from peek(own)) == "m":
        yield from literal("min ")
        yield from token(own, is_digit, most=2)
        yield from literal(" s")
        return
    yield from literal("second")
    if (yield from peek(own)) == "s":
        yield


def _repetition(own: Candidate) -> Steps:
    """`[photo, the same as in message 5]`"""
    yield from literal("[")
    yield from token(own, _in_kind, most=64)
    yield from literal(SAME_AS)
    yield from token(own, _in_label, most=2 * LONGEST_ID)
    yield from literal("]")
    yield from _take_with_gap(own)


def _label(words: str) -> Grammar:
    """`[replied to: Alice (u123)]`, or `[replied to: Someone]`"""

    def grammar(own: Candidate) -> Steps:
        yield from literal(f"[{words}: ")
        if not (yield from token(own, _in_label, most=2 * LONGEST_ID)).endswith((")", SOMEONE)):
            raise Miss
        yield from literal("]")
        yield from _take_with_gap(own)

    return grammar


_LABELS = tuple(map(_label, (forms.REPLIED, forms.FORWARDED)))


def _take_with_gap(own: Candidate) -> Steps:
    """Take what was read, and the blank after it."""
    own.take()
    yield from meta_grammar.gap(own)


_SPEAKERS = ("You", "Person")  # alone in their line, or before a dash
_AFTER_MARK: tuple[str, ...] = (forms.FROM, forms.ID, NOTE, forms.PAST, forms.RECALLED, *_SPEAKERS)


def _delimited_line(delimiter: str) -> Grammar:
    """`[#7f3a9c2e] `, with the rest of its line, if that is a line that we write; else only the mark is removed."""

    def grammar(own: Candidate) -> Steps:
        yield from literal(f"[#{delimiter}] ")
        own.take()
        if (yield from line_end(own)):
            own.take()
            return
        possible, read = _AFTER_MARK, ""
        while read not in possible:
            read += yield
            possible = tuple(words for words in possible if words.startswith(read))
            if not possible:
                raise Miss
        if read in _SPEAKERS and (yield from line_end(own)):
            own.take()
            return
        if read in _SPEAKERS:
            yield from literal(forms.DASH)
        own.take()
        own.until = "\n"

    return grammar


def _doubts(delimiter: str) -> tuple[Grammar, ...]:
    """Return the line behind a doubtful message, with and without its lead; it may come within a line too."""
    starts = (f"[#{delimiter}] {lead}You — {DOUBT[: DOUBT.index(':')]}" for lead in ("", NOTE))

    def line(words: str) -> Grammar:
        def grammar(own: Candidate) -> Steps:
            yield from literal(words)
            own.take()
            own.until = "\n"

        return grammar

    return tuple(map(line, starts))


def _context_block(own: Candidate) -> Steps:
    """Return the line before the system context block."""
    before, after = forms.CONTEXT_LINE
    yield from literal(before)
    yield from token(own, is_digit, most=6)
    yield from literal(after)
    if (yield from line_end(own)):
        own.take()
        own.echo = True


def _task(kinds: Collection[str]) -> Grammar:
    """`# «send» 481`, with all text after it."""

    def grammar(own: Candidate) -> Steps:
        line = ""
        while not line.endswith(blocks.HEADING_END):
            line += yield
            if not blocks.may_become_heading(line):
                raise Miss
        line += yield
        if line.endswith("\r"):
            line += yield
        if blocks.heading_at(line, 0, kinds):
            own.take()
            own.until = None

    return grammar


def _in_kind(char: str) -> bool:
    return char.isalnum() or char in "-_"


def _in_label(char: str) -> bool:
    return char not in "[]\r\n"


def _in_quotes(char: str) -> bool:
    return char not in '"[]\r\n'


def _in_uid(char: str) -> bool:
    return not char.isspace() and char not in "[]"
