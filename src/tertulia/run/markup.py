"""The grammars of our markup, as a model may repeat it in an answer. Pure.

A grammar is a generator that is sent one character at a time. It returns or raises `Miss` when the text cannot be its
markup, and calls `own.take()` when the text read so far is. Grammars are tabled by the character they begin with.
"""

import re
from collections.abc import Collection, Generator, Mapping

from tertulia.formats import meta_grammar
from tertulia.grammar import Candidate, Grammar, Miss, Steps, line_end, literal, token
from tertulia.parts import DESCRIBED, MAX_LABEL, SAME_AS
from tertulia.parts import MAX_SHOWN_TEXT as LONGEST_MESSAGE
from tertulia.prompt.render import KINDS
from tertulia.tasks import blocks

LONGEST_NAME = 160  # characters of a name and an id in a header
LONGEST_ID = 80
LONGEST_DESCRIPTION = 2 * LONGEST_MESSAGE
SOMEONE = "Someone"  # the author of a quote, where unknown

_FROM = "From: "
_DASH = " — "
_TIME = "0000-00-00 00:00"
_WITH_ID = re.compile(r"(?:^| )\([^\s()]+\)$")
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
_ROUND = (meta_grammar.round_meta, meta_grammar.round_speaker)
_CONTEXT = ("Here is the current conversation context (last up to ", " messages):")

Table = Mapping[str, tuple[Grammar, ...]]  # by the character with which the markup begins


def line_start_grammars(delimiter: str, kinds: Collection[str]) -> Table:
    """Return the grammars that match at the start of a line. *kinds* are those of task blocks."""
    task = _task(kinds)
    blocks = tuple(map(meta_grammar.indented, (meta_grammar.square_meta, meta_grammar.square_speaker, *_ROUND)))
    return {
        " ": (_indented_header, task, *blocks),
        "\t": blocks,
        "\u00a0": (task,),
        "\ufeff": (task,),
        "i": (_header_without_author,),
        "H": (_context_block,),
        "#": (task,),
        "*": (task,),
        "u": (meta_grammar.speaker_line("user"),),
        "b": (meta_grammar.speaker_line("bot"),),
        "[": (_delimited_line(delimiter),) if delimiter else (),
    }


def inline_grammars(delimiter: str, markers: Collection[str], *, again: bool) -> Table:
    """Return the grammars that match within a line, *markers* among them.

    They take the blank before the markup, except in a later pass (*again*).
    """
    blocks = (meta_grammar.square_meta, meta_grammar.square_speaker, *map(_marker, markers))
    grammars: dict[str, tuple[Grammar, ...]] = {
        "F": (_header,),
        "[": (_cue("[RESPOND]"), _cue("[REPLY TO THIS]"), _placeholder, _description, _repetition, *_LABELS, *blocks),
        "(": _ROUND,
        " ": () if again else (_literal_mark(" [REPLY TO THIS]"), *map(meta_grammar.at_line_end, (*blocks, *_ROUND))),
    }
    if delimiter:
        grammars["["] = (*grammars["["], _literal_mark(f"[#{delimiter}]"))
        grammars[delimiter[0]] = (*grammars.get(delimiter[0], ()), _literal_mark(delimiter))
    return grammars


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
            if (yield from _peek(own)) not in ("\t", " "):
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
        yield from _take_with_line_end(own)

    return grammar


def _cue(words: str) -> Grammar:
    """Return a mark that a text may mention: between two backticks it stays."""

    def grammar(own: Candidate) -> Steps:
        yield from literal(words)
        if own.before == "`" and (yield from _peek(own)) == "`":
            raise Miss
        yield from _take_with_gap(own)

    return grammar


def _marker(words: str) -> Grammar:
    """Return a media marker of the prompt, with the blank after it; in backticks, or as the text of a link, it
    stays.
    """

    def grammar(own: Candidate) -> Steps:
        yield from literal(words)
        if own.before == "`" or (yield from _peek(own)) == "(":
            raise Miss
        yield from _take_with_gap(own)

    return grammar


def _placeholder(own: Candidate) -> Steps:
    """`[audio present uid=a1]`; the id may be missing."""
    yield from literal("[")
    yield from token(own, _in_kind, most=64)
    yield from literal(" present uid=")
    if (yield from _peek(own)) != "]":
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
    bare = kind in KINDS and (named or lasting) and (yield from _peek(own)) == "]"
    if not bare:
        yield from literal(DESCRIBED)
        own.longest = LONGEST_DESCRIPTION
        yield from token(own, _in_label, most=LONGEST_DESCRIPTION)
    yield from literal("]")
    if bare and (own.before == "`" or (yield from _peek(own)) == "("):
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
    yield from token(own, _is_digit, most=12)
    yield from literal(" ")
    if (yield from _peek(own)) == "m":
        yield from literal("min ")
        yield from token(own, _is_digit, most=2)
        yield from literal(" s")
        return
    yield from literal("second")
    if (yield from _peek(own)) == "s":
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


_LABELS = tuple(map(_label, ("replied to", "forwarded from")))


def _take_with_gap(own: Candidate) -> Steps:
    """Take what was read, and the blank after it."""
    own.take()
    yield from meta_grammar.gap(own)


def _take_with_line_end(own: Candidate) -> Generator[None, str, bool]:
    """Take what was read, and the line end if the line holds nothing else; return whether it did."""
    own.take()
    ended = own.fresh and (yield from line_end(own))
    if ended:
        own.take()
    return ended


def _delimited_line(delimiter: str) -> Grammar:
    """`[#7f3a9c2e] `, with the rest of its line."""

    def grammar(own: Candidate) -> Steps:
        yield from literal(f"[#{delimiter}] ")
        own.take()
        own.until = "\n"

    return grammar


def _context_block(own: Candidate) -> Steps:
    """Return the line before the system context block."""
    before, after = _CONTEXT
    yield from literal(before)
    yield from token(own, _is_digit, most=6)
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


def _header(own: Candidate) -> Steps:
    """`From: Alice (u123) — id: m1 — 2025-01-15 14:27 — reply to: m0`.

    With an id after the name, and if it fills the line, it may be without the time, or have only `reply to`.
    """
    yield from literal(_FROM)
    name = yield from _name(own)
    sure = own.fresh and _WITH_ID.search(name) is not None
    if sure and (yield from _peek(own)) == "r":
        yield from _reply_line(own)
    else:
        yield from _header_fields(own, timed=not sure)


def _header_without_author(own: Candidate) -> Steps:
    """Return a header without an author: `id: m1 — 2025-01-15 14:27`."""
    yield from _header_fields(own, timed=True)


def _indented_header(own: Candidate) -> Steps:
    """Return a header after up to three blanks."""
    yield from literal(" ")
    for _ in range(2):
        if (yield from _peek(own)) == " ":
            yield
    yield from _header(own) if (yield from _peek(own)) == "F" else _header_without_author(own)


def _name(own: Candidate) -> Generator[None, str, str]:
    """Read the name, up to the dash after it."""
    read = ""
    while not read.endswith(_DASH):
        char = yield
        read += char
        if char in ("", "\n") or len(read) > LONGEST_NAME or (not own.fresh and read.endswith(_FROM)):
            raise Miss
    return read.removesuffix(_DASH)


def _header_fields(own: Candidate, *, timed: bool) -> Steps:
    """Read the id and the time; the time may be missing at the line end, unless the header must be *timed*."""
    yield from literal("id: ")
    yield from token(own, _in_id, most=LONGEST_ID)
    if not timed and (yield from line_end(own)):
        own.take()
        return
    yield from literal(_DASH)
    if not timed and (yield from _peek(own)) == "r":
        yield from _reply_line(own)
        return
    yield from _time()
    if _is_digit((yield from _peek(own))):
        raise Miss
    if (yield from _ends_header(own)):
        return
    yield from literal(_DASH[1:])
    yield from _reply(own)
    yield from _ends_header(own)


def _ends_header(own: Candidate) -> Generator[None, str, bool]:
    """Take what was read, with the line end or a blank; return whether it was the line end."""
    if (yield from _take_with_line_end(own)):
        return True
    yield from literal(" ")
    own.take()
    return False


def _reply_line(own: Candidate) -> Steps:
    yield from _reply(own)
    if (yield from line_end(own)):
        own.take()


def _reply(own: Candidate) -> Steps:
    yield from literal("reply to: ")
    yield from token(own, _in_id, most=LONGEST_ID)


def _time() -> Steps:
    for shape in _TIME:
        char = yield
        if not (_is_digit(char) if shape == "0" else char == shape):
            raise Miss


def _peek(own: Candidate) -> Generator[None, str, str]:
    char = yield
    own.unread(char)
    return char


def _is_digit(char: str) -> bool:
    return char.isascii() and char.isdigit()


def _in_kind(char: str) -> bool:
    return char.isalnum() or char in "-_"


def _in_label(char: str) -> bool:
    return char not in "[]\r\n"


def _in_quotes(char: str) -> bool:
    return char not in '"[]\r\n'


def _in_uid(char: str) -> bool:
    return not char.isspace() and char not in "[]"


def _in_id(char: str) -> bool:
    return not char.isspace()
