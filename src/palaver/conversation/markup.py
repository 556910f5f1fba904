"""What we write around people's words, as it is known again where a model repeats it. Pure."""

from collections.abc import Generator, Iterable, Mapping

from palaver.conversation import pairs
from palaver.conversation.reading import Grammar, Miss, Reading, Steps, line_end, literal, token
from palaver.tasks import heading, wrapping

LONGEST_NAME = 200  # a name and an id in a header
LONGEST_ID = 128

_DASH = " — "
_TIME = "0000-00-00 00:00"
_CONTEXT = ("Here is the current conversation context (last up to ", " messages):")

Table = Mapping[str, tuple[Grammar, ...]]  # by the character a piece of markup begins with


def on_lines(delimiter: str) -> Table:
    """What begins a line."""
    bracketed: tuple[Grammar, ...] = (pairs.meta, pairs.speaker)
    if delimiter:
        bracketed = (*bracketed, _entry(delimiter))
    return {
        "F": (_header,),
        "H": (_context,),
        "#": (_task,),
        "u": (pairs.spoken_by("user"),),
        "b": (pairs.spoken_by("bot"),),
        "[": bracketed,
    }


def anywhere(delimiter: str) -> Table:
    """What can stand within a line; a line of nothing else goes whole."""
    grammars = {
        "[": (_mark("[RESPOND]"), _mark("[REPLY TO THIS]"), _placeholder),
        " ": (_mark(" [REPLY TO THIS]"),),
    }
    if delimiter:
        grammars["["] = (*grammars["["], _mark(f"[#{delimiter}]"))
        grammars[delimiter[0]] = (*grammars.get(delimiter[0], ()), _mark(delimiter))
    return grammars


def _thought(name: str) -> Grammar:
    """`<think>`, with all up to its end."""

    def grammar(own: Reading) -> Steps:
        yield from literal(f"<{name}>")
        own.take()
        own.until = f"</{name}>"
        own.is_thought = True

    return grammar


THOUGHTS = tuple(map(_thought, wrapping.THOUGHTS))


def _mark(words: str) -> Grammar:
    def grammar(own: Reading) -> Steps:
        yield from literal(words)
        yield from _taken(own)

    return grammar


def _placeholder(own: Reading) -> Steps:
    """`[audio present uid=a1]`."""
    yield from literal("[")
    yield from token(own, _in_kind, most=64)
    yield from literal(" present uid=")
    yield from token(own, _in_uid, most=LONGEST_ID)
    yield from literal("]")
    yield from _taken(own)


def _taken(own: Reading) -> Steps:
    """What was read, and the end of the line if there is nothing else in it."""
    own.take()
    if own.fresh and (yield from line_end(own)):
        own.take()


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


def _task(own: Reading) -> Steps:
    """`# «send» 481`, alone on its line, with all that follows."""
    yield from literal(heading.OPEN)
    yield from token(own, heading.in_kind, most=heading.LONGEST)
    yield from literal(heading.CLOSE)
    blank = yield
    if blank == " " and heading.in_id((yield from _peek(own))):
        yield from token(own, heading.in_id, most=heading.LONGEST)
        blank = yield
    while blank in ("\t", " "):
        blank = yield
    own.unread(blank)
    if (yield from line_end(own)):
        own.take()
        own.until = None


def _header(own: Reading) -> Steps:
    """`From: Alice (u123) — id: m1 — 2025-01-15 14:27 — reply to: m0`: with an id or a time; both, if words follow."""
    yield from literal("From: ")
    yield from _name()
    known: list[str] = []
    while True:
        known.append((yield from _field(own, known)))
        if (yield from line_end(own)):
            break
        whole = {"id", "time"} <= set(known)
        if whole and known[-1] == "time" and (yield from _peek(own)).isalpha():
            own.take()
            return
        yield from literal(" ")
        if whole:
            own.take()
        yield from literal(_DASH[1:])
    if known != ["reply"]:
        own.take()


def _name() -> Steps:
    """Up to the dash that ends it."""
    read = ""
    while not read.endswith(_DASH):
        char = yield
        read += char
        if char in ("", "\n") or len(read) > LONGEST_NAME:
            raise Miss


def _field(own: Reading, known: Iterable[str]) -> Generator[None, str, str]:
    """One thing a header says, in its order: which it is."""
    first = yield from _peek(own)
    field = {"i": "id", "r": "reply"}.get(first, "time")
    if field in known or "reply" in known or (field == "id" and "time" in known):
        raise Miss
    if field == "time":
        yield from _time()
    else:
        yield from literal("id: " if field == "id" else "reply to: ")
        yield from token(own, _in_id, most=LONGEST_ID)
    return field


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


def _in_uid(char: str) -> bool:
    return not char.isspace() and char not in "[]"


def _in_id(char: str) -> bool:
    return not char.isspace()
