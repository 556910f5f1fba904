"""Grammars of sections that a model repeats in an answer: by their forms, and by what its prompt says. Pure.

A heading alone is never removed: it may be what a person asked for.
"""

import re
from collections.abc import Collection, Generator, Iterator

from tertulia.grammar import Candidate, Grammar, Miss, Steps, line_end, literal
from tertulia.prompt import forms

LONGEST_SECTION = 100_000  # characters
LONGEST_LINE = 400  # of a heading with a name, and of a label with one

_WITH_ID = re.compile(r"\(ID: \S+\)\s*\Z")  # after a name


def section_grammars() -> Iterator[tuple[str, Grammar]]:
    """Yield the grammars of sections whose lines nothing else has, by the character with which each begins."""
    for form in forms.FORMS:
        if form.lines:
            yield form.heading[0], _section(form)
    for label in (forms.REPLYING_TO, forms.FORWARDED_FROM):
        yield label[0], _labelled(label, forms.REPLY_CONTEXT)
    for cue in (forms.RECALLED, forms.PAST):
        yield cue[0], _cue(cue)


def echo_grammars(echoes: Collection[str]) -> Iterator[tuple[str, Grammar]]:
    """Yield the grammars of texts of a prompt, by the character with which each begins."""
    for text in echoes:
        yield text[0], _echo(text)


def _section(form: forms.SectionForm) -> Grammar:
    """Return a heading with lines of its form below it."""

    def grammar(own: Candidate) -> Steps:
        own.longest = LONGEST_SECTION
        yield from literal(form.heading)
        if form.heading.endswith(" "):
            yield from _name_with_id(own)
        elif not (yield from _line_end(own)):
            raise Miss
        yield from _lines(own, form)

    return grammar


def _labelled(label: str, form: forms.SectionForm) -> Grammar:
    """`**Replying to**: Bob (ID: 7)`, without its heading, with other lines of its form below it."""

    def grammar(own: Candidate) -> Steps:
        own.longest = LONGEST_SECTION
        yield from literal(label)
        yield from _name_with_id(own)
        own.take()
        yield from _lines(own, form)

    return grammar


def _cue(words: str) -> Grammar:
    """Return a sentence that ends with a colon; a model may end it in another way, and go on in the same line."""

    def grammar(own: Candidate) -> Steps:
        yield from literal(words[:-1])
        end = yield
        if end not in (":", "."):
            own.unread(end)
        if (yield from _gap(own)):
            own.take()

    return grammar


def _echo(text: str) -> Grammar:
    """Return the lines of *text* from the first on, as many as come; at least two, if it has more than one.

    They may come in one line: so a model writes them that answers in JSON.
    """
    lines = [line.rstrip() for line in text.splitlines()]
    is_one = not any(lines[1:])

    def grammar(own: Candidate) -> Steps:
        own.longest = LONGEST_SECTION
        gap, count = "line", 0
        for line in lines:
            if not line:  # a model may leave it out
                if gap == "line":
                    yield from _blank_line(own) if own.taken else _line_end(own)
                continue
            for expected in line.lstrip() if gap == "blank" else line:
                while (char := (yield)) == "*" != expected:
                    pass  # emphasis of a label
                if char != expected:
                    if not char and count:
                        own.take()
                    raise Miss
            gap = yield from _gap(own)
            if not gap or (is_one and gap == "blank"):
                raise Miss
            count += 1
            if count > 1 or is_one:
                own.take()
        if gap == "line":
            yield from _blank_line(own)

    return grammar


def _gap(own: Candidate) -> Generator[None, str, str]:
    """Read what ends a line, if it is here: a `line` end with the blanks before it, or a `blank`."""
    blank = ""
    while (char := (yield)) in (" ", "\t"):
        blank = "blank"
    own.unread(char)
    return "line" if (yield from line_end(own)) else blank


def _name_with_id(own: Candidate) -> Steps:
    """Read the rest of a line, which ends with an id."""
    name = ""
    while (char := (yield)) not in ("", "\n"):
        name += char
        if len(name) > LONGEST_LINE:
            raise Miss
    if not _WITH_ID.search(name):
        raise Miss


def _lines(own: Candidate, form: forms.SectionForm) -> Steps:
    """Take the lines that begin as those of the form, and the blank line after them."""
    while (yield from _begins(own, form.lines)):
        while (yield) not in ("", "\n"):
            pass
        own.take()
    if own.taken:
        yield from _blank_line(own)


def _begins(own: Candidate, starts: tuple[str, ...]) -> Generator[None, str, bool]:
    """Read one of the *starts*, if it is here; return whether it is."""
    read: list[str] = []
    while True:
        read.append((yield))
        begun = "".join(read)
        if begun in starts:
            return True
        if not read[-1] or not any(start.startswith(begun) for start in starts):
            own.unread(*read)
            return False


def _line_end(own: Candidate) -> Generator[None, str, bool]:
    """Read the line end and the blanks before it, if they are here; return whether they are."""
    return (yield from _gap(own)) == "line"


def _blank_line(own: Candidate) -> Steps:
    """Take a blank line, if one follows."""
    if (yield from _line_end(own)):
        own.take()
