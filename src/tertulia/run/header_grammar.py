"""Grammars of the headers before messages: `From: Alice (u123) — id: m1 — 2025-01-15 14:27`. Pure."""

import re
from collections.abc import Collection, Generator

from tertulia.grammar import Candidate, Grammar, Miss, Steps, line_end, literal, token
from tertulia.prompt import forms

LONGEST_NAME = 160  # characters of a name and an id in a header
LONGEST_ID = 80

_TIME = "0000-00-00 00:00"
_WITH_ID = re.compile(r"(?:^| )\([^\s()]+\)$")
_ADDRESS = re.compile(r"\([^\s()@]+@[^\s()@]+\.[^\s()@]+\)$")  # of an e-mail, which people write so too
_ACCOUNT = re.compile(r"(?:^| )\(-?\d{6,}\)$")  # a number that is no year and hardly a postal code


def header(authors: Collection[str]) -> Grammar:
    """`From: Alice (u123) — id: m1 — 2025-01-15 14:27 — reply to: m0`.

    With an id after the name, and if it fills the line, it may be without the time, or have only `reply to`. One of the
    *authors* of the prompt, or with the number of an account, may stand alone. An e-mail address is no such id, unless
    it is that of an author.
    """

    def grammar(own: Candidate) -> Steps:
        yield from literal(forms.FROM)
        name, is_alone = yield from _name(own)
        known = own.fresh and f"{forms.FROM}{name}" in authors
        sure = known or (own.fresh and _WITH_ID.search(name) is not None and not _ADDRESS.search(name))
        if is_alone:
            if known or _ACCOUNT.search(name):
                own.take()
        elif sure and (yield from peek(own)) == "r":
            yield from _reply_line(own)
        else:
            yield from _header_fields(own, timed=not sure)

    return grammar


def header_without_author(own: Candidate) -> Steps:
    """Return a header without an author: `id: m1 — 2025-01-15 14:27`."""
    yield from _header_fields(own, timed=True)


def indented_header(authors: Collection[str]) -> Grammar:
    """Return a header after up to three blanks."""
    headed = header(authors)

    def grammar(own: Candidate) -> Steps:
        yield from literal(" ")
        for _ in range(2):
            if (yield from peek(own)) == " ":
                yield
        yield from headed(own) if (yield from peek(own)) == "F" else header_without_author(own)

    return grammar


def _name(own: Candidate) -> Generator[None, str, tuple[str, bool]]:
    """Read the name, up to the dash after it; or to the end of the line that it begins, and return whether it did."""
    read = ""
    while not read.endswith(forms.DASH):
        char = yield
        read += char
        if own.fresh and char in ("", "\n"):
            return read.rstrip(), True
        if char in ("", "\n") or len(read) > LONGEST_NAME or (not own.fresh and read.endswith(forms.FROM)):
            raise Miss
    return read.removesuffix(forms.DASH), False


def _header_fields(own: Candidate, *, timed: bool) -> Steps:
    """Read the id and the time; the time may be missing at the line end, unless the header must be *timed*."""
    yield from literal(forms.ID)
    yield from token(own, _in_id, most=LONGEST_ID)
    if not timed and (yield from line_end(own)):
        own.take()
        return
    yield from literal(forms.DASH)
    if not timed and (yield from peek(own)) == "r":
        yield from _reply_line(own)
        return
    yield from _time()
    if is_digit((yield from peek(own))):
        raise Miss
    if (yield from _ends_header(own)):
        return
    yield from literal(forms.DASH[1:])
    yield from _reply(own)
    yield from _ends_header(own)


def _ends_header(own: Candidate) -> Generator[None, str, bool]:
    """Take what was read, with the line end or a blank; return whether it was the line end."""
    if (yield from take_with_line_end(own)):
        return True
    yield from literal(" ")
    own.take()
    return False


def _reply_line(own: Candidate) -> Steps:
    yield from _reply(own)
    if (yield from line_end(own)):
        own.take()


def _reply(own: Candidate) -> Steps:
    yield from literal(forms.REPLY_TO)
    yield from token(own, _in_id, most=LONGEST_ID)


def _time() -> Steps:
    for shape in _TIME:
        char = yield
        if not (is_digit(char) if shape == "0" else char == shape):
            raise Miss


def take_with_line_end(own: Candidate) -> Generator[None, str, bool]:
    """Take what was read, and the line end if the line holds nothing else; return whether it did."""
    own.take()
    ended = own.fresh and (yield from line_end(own))
    if ended:
        own.take()
    return ended


def peek(own: Candidate) -> Generator[None, str, str]:
    char = yield
    own.unread(char)
    return char


def is_digit(char: str) -> bool:
    return char.isascii() and char.isdigit()


def _in_id(char: str) -> bool:
    return not char.isspace()
