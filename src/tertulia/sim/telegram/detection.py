"""Mentions, commands, hashtags, cashtags, cards, addresses and mail in a text, as TDLib finds them. Pure."""

import re
from collections.abc import Callable, Iterator
from unicodedata import category

from tertulia.sim.telegram.domains import DOMAINS

Found = tuple[str, int, int]  # the type, where it begins and ends, in characters

_MENTION = re.compile(r"@([A-Za-z0-9_]{2,})")
_LONGEST_NAME = 32
_SHORT_NAMES = ("gif", "pic", "vid")
_COMMAND = re.compile(r"/([A-Za-z0-9_]{1,})(?:@([A-Za-z0-9_]*))?")
_OWNER = re.compile(r"@[A-Za-z0-9_]{3,}")
_LONGEST_COMMAND, _SHORTEST_BOT = 64, 3
_LONGEST_HASHTAG = 256
_CASHTAG = re.compile(r"\$(1INCH|[A-Z]+)")
_LONGEST_CASHTAG = 8
_CARD = re.compile(r"[0-9][0-9 -]*")
_OWN_NAME = re.compile(r"(?i)(?:tg|ton)$")
_OWN_PLACE = re.compile(r"(?i)://[a-z0-9_-]{1,253}")
_SHORTEST_OWN = 5
_EMAIL = re.compile(
    r"(?:[A-Za-z0-9_-]{0,26}[.+]){0,10}[A-Za-z0-9_-]{1,35}"
    r"@(?:(?:[A-Za-z0-9][A-Za-z0-9_-]{0,28})?[A-Za-z0-9]\.){1,6}[A-Za-z]{2,8}"
)
_BAD_ENDS = ".:;,('?!`"
_PORT = re.compile(r":0*([0-9]{1,5})(?![0-9])")
_BRACKETS = {")": "(", "]": "[", "}": "{"}
_LABEL = 64


def detected(text: str) -> list[tuple[str, int, int]]:
    """Return (type, offset, length) of what is found, in UTF-16 units, in order; none overlap."""
    units = [0]
    for character in text:
        units.append(units[-1] + (2 if character > "\uffff" else 1))
    kept: list[Found] = []
    for found in sorted(_all(text), key=lambda one: (one[1], -one[2])):
        if not kept or found[1] >= kept[-1][2]:
            kept.append(found)
    return [(kind, units[start], units[end] - units[start]) for kind, start, end in kept]


def _all(text: str) -> Iterator[Found]:
    yield from _mentions(text)
    yield from _commands(text)
    yield from _hashtags(text)
    yield from _cashtags(text)
    yield from _cards(text)
    yield from _own_addresses(text)
    yield from _addresses(text)


def _is_word(character: str) -> bool:
    return character == "_" or category(character)[0] in "LN"


def _is_tag(character: str) -> bool:
    return (
        character in "_\u200c·"
        or "\u0d80" <= character <= "\u0dff"
        or category(character)[0] == "L"
        or (category(character) == "Nd")
    )


def _mentions(text: str) -> Iterator[Found]:
    for match in _MENTION.finditer(text):
        before, after = text[match.start() - 1 : match.start()], text[match.end() : match.end() + 1]
        if (before and _is_word(before)) or (after and _is_word(after)):
            continue
        name = match.group(1)
        if len(name) <= _LONGEST_NAME and (len(name) >= 4 or name.lower() in _SHORT_NAMES):
            yield "mention", match.start(), match.end()


def _commands(text: str) -> Iterator[Found]:
    for match in _COMMAND.finditer(text):
        before = text[match.start() - 1 : match.start()]
        if before and (_is_word(before) or before in "/<>"):
            continue
        command, name = match.groups()
        end = match.end()
        if len(command) > _LONGEST_COMMAND:
            continue
        if name is not None and not _SHORTEST_BOT <= len(name) <= _LONGEST_NAME:
            continue
        after = text[end : end + 1]
        if not after or not (_is_word(after) or after in "/<>"):
            yield "bot_command", match.start(), end


def _hashtags(text: str) -> Iterator[Found]:
    for start in (index for index, character in enumerate(text) if character == "#"):
        if start and _is_tag(text[start - 1]):
            continue
        end = start + 1
        while end < len(text) and _is_tag(text[end]):
            end += 1
        word = text[start + 1 : end][:_LONGEST_HASHTAG]
        end = start + 1 + len(word)
        end += min(_owner_length(text, end), _LONGEST_NAME + 1)
        if text[end : end + 1] != "#" and any(category(character)[0] == "L" for character in word):
            yield "hashtag", start, end


def _owner_length(text: str, end: int) -> int:
    """Return how long the name of a chat behind a tag is, with its @; 0 without one."""
    owner = _OWNER.match(text, end)
    return len(owner.group()) if owner else 0


def _cashtags(text: str) -> Iterator[Found]:
    for match in _CASHTAG.finditer(text):
        owner = _owner_length(text, match.end())
        end = match.end() + (owner if owner <= _LONGEST_NAME + 1 else 0)
        around = text[match.start() - 1 : match.start()] + text[end : end + 1]
        if len(match.group(1)) <= _LONGEST_CASHTAG and not any(_is_tag(one) or one == "$" for one in around):
            yield "cashtag", match.start(), end


def _cards(text: str) -> Iterator[Found]:
    for match in _CARD.finditer(text):
        before = text[match.start() - 1 : match.start()]
        if before and (before in ".,+-_" or category(before)[0] == "L"):
            continue
        number = match.group()
        head = re.match(r"[0-9]{16,19}(?= )", number)
        number = (head.group() if head else number).rstrip(" -")
        digits = re.sub("[ -]", "", number)
        after = text[match.start() + len(number) : match.start() + len(number) + 1]
        if not 13 <= len(digits) <= 19 or len(number) > 2 * len(digits) - 1:
            continue
        if not (after and (after in "-_" or category(after)[0] == "L")) and _is_card(digits):
            yield "bank_card_number", match.start(), match.start() + len(number)


def _is_card(digits: str) -> bool:
    doubled = (int(digit) * 2 for digit in digits[-2::-2])
    total = sum(number - 9 if number > 9 else number for number in doubled) + sum(map(int, digits[::-2]))
    if total % 10:
        return False
    two, four, size = int(digits[:2]), int(digits[:4]), len(digits)
    if digits[0] == "4":
        return size in (13, 16, 18, 19)
    if 51 <= two <= 55 or 2200 <= four <= 2204 or 2221 <= four <= 2720:
        return size == 16
    if two in (34, 37):
        return size == 15
    return size >= 16 if two in (62, 81) else True


def _is_address_symbol(character: str) -> bool:
    if "\u2000" <= character <= "\u206f":
        return character in "\u200c\u200d" or "\u2010" <= character <= "\u2015"
    return category(character)[0] != "Z"


def _is_path_symbol(character: str) -> bool:
    return character not in '\n<>"«»' and _is_address_symbol(character)


def _is_domain_symbol(character: str) -> bool:
    if character < "\u00c0":
        return bool(re.match(r"[A-Za-z0-9._~-]", character))
    return _is_address_symbol(character)


def _is_user_symbol(character: str) -> bool:
    return character not in "\n/[]{}()'`<>\"@«»" and _is_address_symbol(character)


def _path_end(text: str, start: int) -> int:
    """Return where the path that begins at *start* ends."""
    end = start + 1
    while end < len(text) and _is_path_symbol(text[end]):
        end += 1
    while end > start + 1 and text[end - 1] in _BAD_ENDS:
        end -= 1
    return end if text[start] == "/" or end > start + 1 else start


def _own_addresses(text: str) -> Iterator[Found]:
    """Find addresses of Telegram and TON around every colon; the name before one may end another address."""
    position = 0
    while len(text[position:].encode()) > _SHORTEST_OWN and (colon := text.find(":", position)) >= 0:
        name = _OWN_NAME.search(text, 0, colon)
        place = _OWN_PLACE.match(text, colon)
        if name is None or not text.startswith("://", colon):
            position = colon + 1
            continue
        position = colon + 3
        if place is not None:
            position = place.end()
            if text[position : position + 1] in ("/", "?", "#"):
                position = _path_end(text, position)
            yield "url", name.start(), position


def _addresses(text: str) -> Iterator[Found]:
    """Find addresses around every dot, from left to right; what was read is not read again."""
    begin = 0
    while 0 <= (dot := text.find(".", begin)) < len(text) - 1:
        if text[dot + 1] == " ":
            begin = dot + 2
            continue
        start, end, is_bad = _around(text, begin, dot)
        if is_bad:
            while text[end - 1] != ".":
                end -= 1
        else:
            if end > dot + 1:
                yield from _address(text, start, end)
            while text[end : end + 1] == ".":
                end += 1
        begin = max(end, dot + 1)


def _around(text: str, begin: int, dot: int) -> tuple[int, int, bool]:
    """Return where the candidate around a dot begins and ends, and whether it cannot be an address."""
    start = _back(text, begin, dot, _is_domain_symbol)
    end, has_at = dot, False
    while end < len(text) and (text[end] == "@" or _is_domain_symbol(text[end])):
        has_at = has_at or text[end] == "@"
        end += 1
    if has_at:
        start = _back(text, begin, start, _is_user_symbol)
    port = _PORT.match(text, end)
    if port and 0 < int(port.group(1)) <= 65535:
        end = port.end()
    if text[end : end + 1] in ("/", "?", "#"):
        end = _path_end(text, end)
    while end > dot + 1 and text[end - 1] == ".":
        end -= 1
    is_bad = False
    if start > begin and text[start - 1] == "@":
        user = _back(text, begin, start - 1, _is_user_symbol)
        is_bad = has_at or user == start - 1
        start = user
    prefixed, is_wrong = _protocol(text, begin, start)
    return prefixed, end, is_bad or is_wrong


def _back(text: str, begin: int, position: int, fits: Callable[[str], bool]) -> int:
    while position > begin and fits(text[position - 1]):
        position -= 1
    return position


def _protocol(text: str, begin: int, start: int) -> tuple[int, bool]:
    """Return where the protocol before *start* begins, and whether what stands there is wrong."""
    if start == begin:
        return start, False
    before = text[begin:start]
    if len(before.encode()) < 6 or not before.endswith("://"):
        return start, _is_word(before[-1]) or before[-1] in "/#@"
    word = re.search(r"[^\x00-\x2a,./:-@\[-`{-\x7f]*$", before[:-3])
    protocol = word.group().lower() if word else ""
    for name, wrong in (("http", ("shttp",)), ("https", ()), ("ftp", ("tftp", "sftp")), ("tonsite", ())):
        if protocol.endswith(name) and protocol not in wrong:
            return start - len(name) - 3, False
    return start, True


def _address(text: str, start: int, end: int) -> Iterator[Found]:
    address = text[start:end]
    if _EMAIL.fullmatch(address):
        yield "email", start, end
    elif address.startswith("mailto:") and _EMAIL.fullmatch(address[7:]):
        yield "email", start + 7, end
    else:
        length = _address_length(address)
        if length:
            yield "url", start, start + length


def _address_length(address: str) -> int:
    """Return how much of a candidate is an address, 0 if it is none."""
    scheme = re.match(r"(?i)(?:https?|ftp|tonsite)://", address)
    rest = address[scheme.end() :] if scheme else address
    place = re.match(r"[^/?#]*", rest)
    domain = place.group() if place else ""
    path = rest[len(domain) :]
    domain = domain.partition("@")[2] if "@" in domain else domain
    domain = domain.rpartition(":")[0] if ":" in domain else domain
    if not _is_domain(domain, has_scheme=scheme is not None):
        return 0
    return len(address) - len(path) + _balanced(path)


def _balanced(path: str) -> int:
    """Return how much of a path is before a bracket that closes what did not open."""
    opened = dict.fromkeys("([{", 0)
    end = len(path)
    for index, character in enumerate(path):
        if character in opened:
            opened[character] += 1
        elif character in _BRACKETS:
            opened[_BRACKETS[character]] -= 1
            if opened[_BRACKETS[character]] < 0:
                end = index
                break
    while end and path[end - 1] in _BAD_ENDS:
        end -= 1
    return end


def _is_domain(domain: str, *, has_scheme: bool) -> bool:
    labels = domain.split(".")
    if len(labels) < 2 or domain.lower() == "teiegram.org":
        return False
    if any(not label or len(label.encode()) >= _LABEL or label.endswith("-") for label in labels):
        return False
    if all(re.fullmatch("[0-9]+", label) for label in labels):
        return len(labels) == 4 and all(label == str(int(label)) and int(label) < 256 for label in labels)
    last = labels[-1]
    if last.startswith("xn--"):
        is_known = bool(re.fullmatch("[A-Za-z0-9]{2,}", last[4:]))
    else:
        is_known = len(last) > 1 and not set("_-") & set(last) and (has_scheme or _is_common(last))
    return is_known and "_" not in labels[-2]


def _is_common(last: str) -> bool:
    if last[1:] == last[1:].lower() and last != last.lower():
        return False  # the beginning of a sentence
    return last.lower() in DOMAINS
