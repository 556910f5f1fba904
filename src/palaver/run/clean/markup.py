"""What we write around people's words, as it is known again where a model repeats it. Pure."""

import re
from collections.abc import Collection, Generator, Mapping

from palaver.formats import meta_grammar
from palaver.grammar import Grammar, Miss, Reading, Steps, line_end, literal, token
from palaver.parts import DESCRIBED
from palaver.parts import LONGEST as LONGEST_MESSAGE
from palaver.tasks import blocks

LONGEST_NAME = 160  # a name and an id in a header
LONGEST_ID = 80
LONGEST_DESCRIPTION = 2 * LONGEST_MESSAGE
SOMEONE = "Someone"  # whose words are quoted where nobody knows it

_FROM = "From: "
_DASH = " — "
_TIME = "0000-00-00 00:00"
_WITH_ID = re.compile(r"(?:^| )\([^\s()]+\)$")
_BEGUN = (
    r"\Z|#(?!\[)",
    r"R(?:ES|EP)|replied (?:\Z|t)",
    r"(?i:meta(?:data)?+:?|speaker)\]?:?(?:\Z| [A-Za-z_]{0,24}+(?:=|\Z))",
    r"[\w-]{1,64}+(?:\Z| (?:\Z|p(?:resent|[a-z]{0,6}\Z)|d(?:escribed|[a-z]{0,8}\Z)))",
)
IN_ROUND = (  # what may follow a round bracket that begins markup
    r"(?i:[ms][a-z]{0,7}+:?)?+\Z|(?i:meta(?:data)?+:?+|speaker) [a-z_]{0,24}+(?:=|\Z)"
)
_ROUND = (meta_grammar.round_meta, meta_grammar.round_speaker)
_CONTEXT = ("Here is the current conversation context (last up to ", " messages):")

Table = Mapping[str, tuple[Grammar, ...]]  # by the character a piece of markup begins with


def on_lines(delimiter: str, kinds: Collection[str]) -> Table:
    """What begins a line; headings of task blocks are those of *kinds*."""
    task = _task(kinds)
    blocks = tuple(map(meta_grammar.indented, (meta_grammar.meta, meta_grammar.speaker, *_ROUND)))
    return {
        " ": (_indented, task, *blocks),
        "\t": blocks,
        "\u00a0": (task,),
        "\ufeff": (task,),
        "i": (_of_nobody,),
        "H": (_context,),
        "#": (task,),
        "u": (meta_grammar.spoken_by("user"),),
        "b": (meta_grammar.spoken_by("bot"),),
        "[": (_entry(delimiter),) if delimiter else (),
    }


def anywhere(delimiter: str, markers: Collection[str], *, again: bool) -> Table:
    """What can stand within a line, *markers* too, with the blank before it unless the text is read *again*."""
    blocks = (meta_grammar.meta, meta_grammar.speaker, *map(_marker, markers))
    grammars: dict[str, tuple[Grammar, ...]] = {
        "F": (_header,),
        "[": (_cue("[RESPOND]"), _cue("[REPLY TO THIS]"), _placeholder, _description, _label, *blocks),
        "(": _ROUND,
        " ": () if again else (_mark(" [REPLY TO THIS]"), *map(meta_grammar.at_the_end, (*blocks, *_ROUND))),
    }
    if delimiter:
        grammars["["] = (*grammars["["], _mark(f"[#{delimiter}]"))
        grammars[delimiter[0]] = (*grammars.get(delimiter[0], ()), _mark(delimiter))
    return grammars


def begun(markers: Collection[str]) -> str:
    """A pattern of what may follow a bracket that begins markup within a line, as far as the text goes.

    It saves trying each grammar at each bracket: where it does not match, none of them can. It is made for each prompt,
    so it is short rather than exact.
    """
    own = sorted({re.escape(marker[1:3]) for marker in markers})
    return "|".join([*_BEGUN, *own])


def _thought(name: str) -> Grammar:
    """`<think>`, in letters of any size."""

    def grammar(own: Reading) -> Steps:
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


def _mark(words: str) -> Grammar:
    def grammar(own: Reading) -> Steps:
        yield from literal(words)
        yield from _taken(own)

    return grammar


def _cue(words: str) -> Grammar:
    """A mark that may be spoken of: between two backticks it stays."""

    def grammar(own: Reading) -> Steps:
        yield from literal(words)
        if own.before == "`" and (yield from _peek(own)) == "`":
            raise Miss
        yield from _gone(own)

    return grammar


def _marker(words: str) -> Grammar:
    """A marker of the prompt that is answered, with the gap after it; in backticks, or as words of a link, it stays."""

    def grammar(own: Reading) -> Steps:
        yield from literal(words)
        if own.before == "`" or (yield from _peek(own)) == "(":
            raise Miss
        yield from _gone(own)

    return grammar


def _placeholder(own: Reading) -> Steps:
    """`[audio present uid=a1]`; there may be no id."""
    yield from literal("[")
    yield from token(own, _in_kind, most=64)
    yield from literal(" present uid=")
    if (yield from _peek(own)) != "]":
        yield from token(own, _in_uid, most=LONGEST_ID)
    yield from literal("]")
    yield from _gone(own)


def _description(own: Reading) -> Steps:
    """`[photo described: a cat]`"""
    yield from literal("[")
    yield from token(own, _in_kind, most=64)
    yield from literal(DESCRIBED)
    own.longest = LONGEST_DESCRIPTION
    yield from token(own, _in_label, most=LONGEST_DESCRIPTION)
    yield from literal("]")
    yield from _gone(own)


def _label(own: Reading) -> Steps:
    """`[replied to: Alice (u123)]`, or `[replied to: Someone]`"""
    yield from literal("[replied to: ")
    if not (yield from token(own, _in_label, most=2 * LONGEST_ID)).endswith((")", SOMEONE)):
        raise Miss
    yield from literal("]")
    yield from _gone(own)


def _gone(own: Reading) -> Steps:
    """Take what was read, and the gap after it."""
    own.take()
    yield from meta_grammar.gap(own)


def _taken(own: Reading) -> Generator[None, str, bool]:
    """Take what was read, and the end of the line if there is nothing else in it: whether it was."""
    own.take()
    ended = own.fresh and (yield from line_end(own))
    if ended:
        own.take()
    return ended


def _entry(delimiter: str) -> Grammar:
    """`[#7f3a9c2e] `, with the rest of its line."""

    def grammar(own: Reading) -> Steps:
        yield from literal(f"[#{delimiter}] ")
        own.take()
        own.until = "\n"

    return grammar


def _context(own: Reading) -> Steps:
    """The line before the system context block."""
    before, after = _CONTEXT
    yield from literal(before)
    yield from token(own, _is_digit, most=6)
    yield from literal(after)
    if (yield from line_end(own)):
        own.take()
        own.echo = True


def _task(kinds: Collection[str]) -> Grammar:
    """`# «send» 481`, with all that follows."""

    def grammar(own: Reading) -> Steps:
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


def _header(own: Reading) -> Steps:
    """`From: Alice (u123) — id: m1 — 2025-01-15 14:27 — reply to: m0`.

    It can do without the time, or without all but the message it replies to, if it names an id and fills the line.
    """
    yield from literal(_FROM)
    name = yield from _name(own)
    sure = own.fresh and _WITH_ID.search(name) is not None
    if sure and (yield from _peek(own)) == "r":
        yield from _reply_line(own)
    else:
        yield from _message(own, timed=not sure)


def _of_nobody(own: Reading) -> Steps:
    """A header where the author is not known: `id: m1 — 2025-01-15 14:27`."""
    yield from _message(own, timed=True)


def _indented(own: Reading) -> Steps:
    """A header after up to three blanks."""
    yield from literal(" ")
    for _ in range(2):
        if (yield from _peek(own)) == " ":
            yield
    yield from _header(own) if (yield from _peek(own)) == "F" else _of_nobody(own)


def _name(own: Reading) -> Generator[None, str, str]:
    """Up to the dash that ends it."""
    read = ""
    while not read.endswith(_DASH):
        char = yield
        read += char
        if char in ("", "\n") or len(read) > LONGEST_NAME or (not own.fresh and read.endswith(_FROM)):
            raise Miss
    return read.removesuffix(_DASH)


def _message(own: Reading, *, timed: bool) -> Steps:
    """Its id and its time, whatever follows; without a time, unless it must be *timed*, only if nothing does."""
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
    if (yield from _is_last(own)):
        return
    yield from literal(_DASH[1:])
    yield from _reply(own)
    yield from _is_last(own)


def _is_last(own: Reading) -> Generator[None, str, bool]:
    """Take what was read, with the line's end or a blank: whether it was not the blank."""
    if (yield from _taken(own)):
        return True
    yield from literal(" ")
    own.take()
    return False


def _reply_line(own: Reading) -> Steps:
    yield from _reply(own)
    if (yield from line_end(own)):
        own.take()


def _reply(own: Reading) -> Steps:
    yield from literal("reply to: ")
    yield from token(own, _in_id, most=LONGEST_ID)


def _time() -> Steps:
    for shape in _TIME:
        char = yield
        if not (_is_digit(char) if shape == "0" else char == shape):
            raise Miss


def _peek(own: Reading) -> Generator[None, str, str]:
    char = yield
    own.unread(char)
    return char


def _is_digit(char: str) -> bool:
    return char.isascii() and char.isdigit()


def _in_kind(char: str) -> bool:
    return char.isalnum() or char in "-_"


def _in_label(char: str) -> bool:
    return char not in "[]\r\n"


def _in_uid(char: str) -> bool:
    return not char.isspace() and char not in "[]"


def _in_id(char: str) -> bool:
    return not char.isspace()
