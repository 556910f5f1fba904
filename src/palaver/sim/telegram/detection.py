"""Mentions, commands, hashtags, cashtags, addresses and mail in a text, as TDLib finds them. Pure."""

import re
from collections.abc import Iterator

_WORD = r"\w"
_MENTION = re.compile(r"(?<![\w])@([A-Za-z0-9_]{2,32})(?![A-Za-z0-9_])")
_COMMAND = re.compile(r"(?<![\w/<>])/([A-Za-z0-9_]{1,64})(?:@([A-Za-z0-9_]{3,32}))?(?![\w/<>])")
_HASHTAG = re.compile(r"(?<![\w·\u200c])#([\w·\u200c]{1,256})(@[A-Za-z0-9_]{3,32}(?!\w))?(?![\w·\u200c])")
_CASHTAG = re.compile(r"(?<![\w$])\$(1INCH|[A-Z]{1,8})(?![\w$])")
_EMAIL = re.compile(r"(?<![\w.+-])[a-zA-Z0-9._+-]{1,256}@(?:[a-zA-Z0-9-]+\.)+[a-zA-Z]{2,8}(?![\w-])")
_URL = re.compile(
    r"(?:(?P<scheme>(?:https?|ftp|tonsite|tg|ton)://)|(?<![\w@.:/-]))"
    r"(?P<host>(?:[^\s\x00-\x20!-,/:-@\[-^`{-\x7f«»“”‘’…]+\.)*[^\s\x00-\x20!-,/:-@\[-^`{-\x7f«»“”‘’….]+)"
    r"(?P<port>:\d{1,5})?(?P<rest>[/?#][^\s<>\"«»“”‘’]*)?",
    re.IGNORECASE,
)
_DOMAINS = frozenset(
    "com org net edu gov mil int info biz name pro aero coop museum io me app dev ai co tv cc ly gg sh so to be gl at "
    "us uk ua de fr es it pl nl ru by kz eu se no fi dk cz sk hu ro bg gr pt ch ie tr il in cn jp kr br mx ar cl ca au "
    "nz za xyz online site store shop tech club blog news wiki page link live space world cloud digital рф укр".split()
)


def detected(text: str) -> list[tuple[str, int, int]]:
    """Return (type, offset, length) of what is found, in UTF-16 units, in order; none overlap."""
    found = sorted(_all(text), key=lambda entity: (entity[1], -entity[2]))
    kept: list[tuple[str, int, int]] = []
    for kind, start, end in found:
        if not kept or start >= kept[-1][2]:
            kept.append((kind, start, end))
    units = [0]
    for character in text:
        units.append(units[-1] + (2 if character > "\uffff" else 1))
    return [(kind, units[start], units[end] - units[start]) for kind, start, end in kept]


def _all(text: str) -> Iterator[tuple[str, int, int]]:
    for match in _MENTION.finditer(text):
        if len(match.group(1)) >= 3:
            yield "mention", match.start(), match.end()
    for match in _COMMAND.finditer(text):
        yield "bot_command", match.start(), match.end()
    for match in _HASHTAG.finditer(text):
        if any(character.isalpha() for character in match.group(1)):
            yield "hashtag", match.start(), match.end()
    for match in _CASHTAG.finditer(text):
        yield "cashtag", match.start(), match.end()
    for match in _EMAIL.finditer(text):
        yield "email", match.start(), match.end()
    yield from _addresses(text)


def _addresses(text: str) -> Iterator[tuple[str, int, int]]:
    for match in _URL.finditer(text):
        host, scheme = match.group("host"), match.group("scheme")
        domain = host.rpartition(".")[2].lower()
        if "." not in host and (scheme or "").lower() not in ("tg://", "ton://"):
            continue
        if not scheme and domain not in _DOMAINS:
            continue
        yield "url", match.start(), match.start() + len(_without_tail(match.group()))


def _without_tail(address: str) -> str:
    """Leave out the punctuation behind an address, and a closing bracket that opens nowhere in it."""
    while address:
        last = address[-1]
        if last in ".,:;!?'’\"":
            address = address[:-1]
            continue
        opening = {")": "(", "]": "[", "}": "{"}.get(last)
        if opening is None or address.count(opening) >= address.count(last):
            break
        address = address[:-1]
    return address
