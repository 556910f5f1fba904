"""HTML as TDLib reads it. Pure."""

import re

from msgspec.structs import replace

from tertulia.sim.telegram.entities import Entity, sort
from tertulia.sim.telegram.links import checked_format
from tertulia.sim.telegram.markup import PADDING, SPACES, MarkupError, Opened, Output, Parsed, byte_offset, link

_TAGS = {
    "b": "bold",
    "strong": "bold",
    "i": "italic",
    "em": "italic",
    "u": "underline",
    "ins": "underline",
    "s": "strikethrough",
    "strike": "strikethrough",
    "del": "strikethrough",
    "tg-spoiler": "spoiler",
    "span": "spoiler",
    "code": "code",
    "pre": "pre",
    "a": "text_link",
    "tg-emoji": "custom_emoji",
    "tg-time": "date_time",
    "blockquote": "blockquote",
}
_CHARACTERS = {"lt": "<", "gt": ">", "amp": "&", "quot": '"'}
_REFERENCE = re.compile(r"&(?:#(?:x([0-9a-fA-F]*)|([0-9]*))|([A-Za-z]*));?")
_LAST = 0x10FFFF
_LONGEST_REFERENCE = 10
_TOKEN = re.compile(r"[A-Za-z0-9.-]*")
_LARGEST = 2**31 - 1


def parse_html(source: str) -> Parsed:
    """Read HTML; raise MarkupError with TDLib's words."""
    return _Reader(source).read()


class _Reader:
    """Goes through a source from left to right with a stack of open tags."""

    def __init__(self, source: str) -> None:
        self._size = len(source)
        self._text = source + PADDING
        self._out = Output()
        self._open: list[Opened] = []
        self._languages: dict[int, str] = {}  # of `code`, by the place of its entity

    def read(self) -> Parsed:
        i = 0
        while i < self._size:
            character = self._text[i]
            reference = _reference(self._text, i) if character == "&" else None
            if reference is not None:
                self._out.add(reference[0])
                i = reference[1]
            elif character != "<":
                self._out.add(character)
                i += 1
            elif self._text[i + 1] == "/":
                i = self._end(i)
            else:
                i = self._begin(i)
        if self._open:
            raise MarkupError(f'Can\'t find end tag corresponding to start tag "{self._open[-1].kind}"')
        text = self._out.since(0)
        return _joined(text), sort(self._out.entities)

    def _begin(self, begin: int) -> int:
        text, i = self._text, begin + 1
        while text[i] not in SPACES and text[i] != ">":
            i += 1
        if i >= self._size:
            raise self._error("Unclosed start tag", begin)
        tag = text[begin + 1 : i].lower()
        if tag not in _TAGS:
            raise self._error(f'Unsupported start tag "{tag}"', begin)
        attributes: dict[str, str] = {}
        while text[i] != ">":
            i = self._attribute(tag, begin, i, attributes)
        argument, form = _argument(tag, attributes), ""
        if tag == "span" and argument != "spoiler":
            raise self._error('Tag "span" must have class "tg-spoiler"', begin)
        if tag == "tg-time":
            try:
                form = checked_format(attributes.get("format", ""))
            except ValueError as error:
                raise MarkupError(str(error)) from None
        out = self._out
        self._open.append(Opened(tag, out.units, begin, len(out.characters), argument, form))
        return i + 1

    def _attribute(self, tag: str, begin: int, i: int, attributes: dict[str, str]) -> int:
        """Read an attribute of a tag; return where it ends."""
        text = self._text
        i = self._blank(i)
        if text[i] == ">":
            return i
        start = i
        while text[i] not in SPACES and text[i] not in "=>/\"'":
            i += 1
        name = text[start:i]
        if not name:
            raise self._error(f'Empty attribute name in the tag "{tag}"', begin)
        i = self._blank(i)
        if text[i] != "=":
            if i >= self._size:
                raise self._error(f'Unclosed start tag "{tag}"', begin)
            attributes[name] = "1"
            return i
        i = self._blank(i + 1)
        if i >= self._size:
            raise self._error(f'Unclosed start tag "{tag}"', begin)
        attributes[name], i = self._value(i)
        if i >= self._size:
            raise self._error("Unclosed start tag", begin)
        return i

    def _value(self, i: int) -> tuple[str, int]:
        text = self._text
        if text[i] not in "'\"":
            token = _TOKEN.match(text, i)
            value = token.group() if token else ""
            end = i + len(value)
            if text[end] not in SPACES and text[end] != ">":
                raise MarkupError(f"Unexpected end of name token at byte offset {byte_offset(text, i)}")
            return value.lower(), end
        ending, value, i = text[i], "", i + 1
        while i < self._size and text[i] != ending:
            reference = _reference(text, i) if text[i] == "&" else None
            character, i = reference if reference is not None else (text[i], i + 1)
            value += character
        return value, i + 1 if i < self._size else i

    def _blank(self, i: int) -> int:
        while i < self._size and self._text[i] in SPACES:
            i += 1
        return i

    def _end(self, begin: int) -> int:
        text, i = self._text, begin + 2
        if not self._open:
            raise self._error("Unexpected end tag", begin)
        while text[i] not in SPACES and text[i] != ">":
            i += 1
        tag = text[begin + 2 : i].lower()
        i = self._blank(i)
        if text[i] != ">":
            raise self._error("Unclosed end tag", begin)
        opened = self._open.pop()
        if tag and tag != opened.kind:
            where = byte_offset(text, begin)
            expected = f'expected "</{opened.kind}>", found "</{tag}>"'
            raise MarkupError(f"Unmatched end tag at byte offset {where}, {expected}")
        if self._out.units > opened.offset:
            self._close(opened)
        return i + 1

    def _close(self, opened: Opened) -> None:
        out, kind = self._out, _TAGS[opened.kind]
        length = out.units - opened.offset
        entity = Entity(type=kind, offset=opened.offset, length=length)
        match kind:
            case "text_link":
                out.entities += link(opened.argument or out.since(opened.begin), opened.offset, length)
            case "custom_emoji":
                if not re.fullmatch(r"-?\d{1,19}", opened.argument) or not int(opened.argument):
                    raise MarkupError("Invalid custom emoji identifier specified")
                out.entities.append(replace(entity, custom_emoji_id=opened.argument))
            case "date_time":
                if re.fullmatch(r"\d{1,10}", opened.argument) and 0 < int(opened.argument) <= _LARGEST:
                    time = int(opened.argument)
                    out.entities.append(replace(entity, unix_time=time, date_time_format=opened.format))
            case "pre" | "code":
                self._close_code(opened, entity)
            case "blockquote":
                out.entities.append(replace(entity, type="expandable_blockquote") if opened.argument else entity)
            case _:
                out.entities.append(entity)

    def _close_code(self, opened: Opened, entity: Entity) -> None:
        """Add code; `pre` and `code` around the same text are one entity, with the language of the `code`."""
        out = self._out
        last = len(out.entities) - 1
        other = "code" if entity.type == "pre" else "pre"
        language = self._languages.get(last, "") if entity.type == "pre" else opened.argument
        if language and last >= 0 and out.entities[last] == replace(entity, type=other):
            out.entities[last] = replace(entity, type="pre", language=language)
            self._languages.pop(last, None)
            return
        if entity.type == "code" and opened.argument:
            self._languages[len(out.entities)] = opened.argument
        out.entities.append(entity)

    def _error(self, words: str, index: int) -> MarkupError:
        return MarkupError(f"{words} at byte offset {byte_offset(self._text, index)}")


def _argument(tag: str, attributes: dict[str, str]) -> str:
    match tag:
        case "a":
            return attributes.get("href", "")
        case "code":
            value = attributes.get("class", "")
            return value.removeprefix("language-") if value.startswith("language-") else ""
        case "span":
            value = attributes.get("class", "")
            return value.removeprefix("tg-") if value.startswith("tg-") else ""
        case "tg-emoji":
            return attributes.get("emoji-id", "")
        case "tg-time":
            return attributes.get("unix", "")
        case "blockquote":
            return "1" if "expandable" in attributes else ""
        case _:
            return ""


def _reference(text: str, i: int) -> tuple[str, int] | None:
    """Return the character that a reference means, and where it ends; None for one that is not known."""
    found = _REFERENCE.match(text, i)
    if found is None:
        return None
    hexadecimal, decimal, name = found.groups()
    if name is not None:
        character = _CHARACTERS.get(name)
        return None if character is None else (character, found.end())
    digits = hexadecimal if hexadecimal is not None else decimal
    code = int(digits or "0", 16 if hexadecimal is not None else 10) & 0xFFFFFFFF
    length = len(found.group().removesuffix(";"))
    if not 0 < code < _LAST or length >= _LONGEST_REFERENCE:
        return None
    return chr(code), found.end()


def _joined(text: str) -> str:
    """Refuse halves of characters that references made."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise MarkupError(
            "Text contains invalid Unicode characters after decoding HTML entities, check for unmatched surrogate "
            "code units"
        ) from None
    return text
