"""MarkdownV2 and the old Markdown as TDLib reads them. Pure."""

from msgspec.structs import replace

from tertulia.sim.telegram.entities import Entity, sort
from tertulia.sim.telegram.links import emoji_or_time
from tertulia.sim.telegram.markup import PADDING, SPACES, MarkupError, Opened, Output, Parsed, byte_offset, link, styled

_RESERVED = "_*[]()~`>#+-=|{}.!\n"
_MOST_ESCAPED = "\x7e"
_MARKS = {"*": "bold", "~": "strikethrough", "[": "text_link"}
_NAMES = {
    "bold": "Bold",
    "italic": "Italic",
    "underline": "Underline",
    "strikethrough": "Strikethrough",
    "spoiler": "Spoiler",
    "code": "Code",
    "pre": "Pre",
    "text_link": "TextUrl",
    "custom_emoji": "CustomEmoji",
    "blockquote": "BlockQuote",
}
_ENDS = {
    "bold": "*",
    "underline": "__",
    "strikethrough": "~",
    "spoiler": "||",
    "code": "`",
    "pre": "```",
    "text_link": "]",
    "custom_emoji": "]",
}


def parse_markdown_v2(source: str) -> Parsed:
    """Read MarkdownV2; raise MarkupError with TDLib's words."""
    return _Reader(source).read()


class _Reader:
    """Goes through a source from left to right with a stack of open entities."""

    def __init__(self, source: str) -> None:
        self._size = len(source)
        self._text = source + PADDING
        self._out = Output()
        self._open: list[Opened] = []
        self._in_quote = False
        self._may_quote = True  # at the beginning of a line

    def read(self) -> Parsed:
        i = 0
        while i < self._size:
            i = self._step(i)
        self._finish()
        return self._out.since(0), sort(self._out.entities)

    def _step(self, i: int) -> int:
        """Read what begins at *i*; return where the next begins."""
        text, character = self._text, self._text[i]
        if character == "\\" and "\0" < text[i + 1] <= _MOST_ESCAPED:
            self._put(text[i + 1])
            return i + 2
        kind = self._open[-1].kind if self._open else ""
        if character not in ("`" if kind in ("code", "pre") else _RESERVED):
            self._out.add(character)
            self._may_quote = self._may_quote and character == "\r"
            return i + 1
        return self._end(i) if self._is_end(i, kind) else self._begin(i)

    def _put(self, character: str) -> None:
        self._out.add(character)
        if character != "\r":
            self._may_quote = character == "\n"

    def _is_end(self, i: int, kind: str) -> bool:
        if not kind:
            return False
        if self._in_quote and self._text[i] == "\n" and (i + 1 == self._size or self._text[i + 1] != ">"):
            return True
        if kind == "italic":
            return self._text[i] == "_" and self._text[i + 1] != "_"
        return kind in _ENDS and self._text.startswith(_ENDS[kind], i)

    def _begin(self, i: int) -> int:
        text, out = self._text, self._out
        argument, after = "", i + 1
        match text[i]:
            case "*" | "~" | "[":
                kind = _MARKS[text[i]]
            case "_":
                kind = "underline" if text[i + 1] == "_" else "italic"
                after += kind == "underline"
            case "|" if text[i + 1] == "|":
                kind, after = "spoiler", i + 2
            case "!" if text[i + 1] == "[":
                kind, after = "custom_emoji", i + 2
            case "`" if text.startswith("```", i):
                argument, after = _pre_head(text, i + 3)
                kind = "pre"
            case "`":
                kind = "code"
            case "\n":
                self._put("\n")
                return after
            case ">" if self._may_quote:
                if self._in_quote:
                    return after
                kind, self._in_quote = "blockquote", True
            case _:
                raise MarkupError(f"Character '{text[i]}' is reserved and must be escaped with the preceding '\\'")
        self._open.append(Opened(kind, out.units, i, len(out.characters), argument))
        return after

    def _end(self, i: int) -> int:
        opened = self._open.pop()
        if self._text[i] == "\n":
            return self._end_quote(i, opened)
        is_empty = self._out.units == opened.offset
        if opened.kind == "text_link":
            return self._end_link(i, opened)
        if opened.kind == "custom_emoji":
            return self._end_emoji(i, opened)
        if not is_empty:
            self._out.close(opened)
        return i + len(_ENDS.get(opened.kind, "_"))

    def _end_quote(self, i: int, opened: Opened) -> int:
        """End a quote at the end of a line; two bars before it make it expandable."""
        kind = "blockquote"
        if opened.kind != "blockquote":
            is_mark = i - opened.source == 2 or (i - opened.source == 3 and self._out.characters[-1:] == ["\r"])
            if opened.kind != "spoiler" or not is_mark:
                raise self._no_end(opened)
            opened = self._open.pop()
            if opened.kind != "blockquote":
                raise self._no_end(opened)
            kind = "expandable_blockquote"
        self._in_quote = False
        self._put("\n")
        self._out.close(opened, kind)
        return i + 1

    def _end_link(self, i: int, opened: Opened) -> int:
        url, after = self._out.since(opened.begin), i + 1
        if self._text[i + 1] == "(":
            url, after = self._address(i + 2)
        length = self._out.units - opened.offset
        self._out.entities += link(url, opened.offset, length) if length else []
        return after

    def _end_emoji(self, i: int, opened: Opened) -> int:
        if self._text[i + 1] != "(":
            raise MarkupError("The entity must contain a tg://emoji or tg://time URL")
        url, after = self._address(i + 2)
        try:
            emoji, time, form = emoji_or_time(url)
        except ValueError as error:
            raise MarkupError(str(error)) from None
        length = self._out.units - opened.offset
        entity = Entity(type="custom_emoji", offset=opened.offset, length=length, custom_emoji_id=emoji)
        if emoji is None:
            entity = replace(entity, type="date_time", unix_time=time, date_time_format=form)
        self._out.entities += [entity] if length else []
        return after

    def _address(self, begin: int) -> tuple[str, int]:
        url, i = "", begin
        while i < self._size and self._text[i] != ")":
            i += self._text[i] == "\\" and "\0" < self._text[i + 1] <= _MOST_ESCAPED
            url += self._text[i]
            i += 1
        if self._text[i] != ")":
            raise MarkupError(f"Can't find end of a URL at byte offset {byte_offset(self._text, begin)}")
        return url, i + 1

    def _finish(self) -> None:
        if self._in_quote:
            kind = "blockquote"
            if self._open[-1].kind == "spoiler" and self._open[-1].source == self._size - 2:
                self._open.pop()
                kind = "expandable_blockquote"
            if self._open[-1].kind == "blockquote":
                opened = self._open.pop()
                if self._out.units > opened.offset:
                    self._out.close(opened, kind)
        if self._open:
            raise self._no_end(self._open[-1])

    def _no_end(self, opened: Opened) -> MarkupError:
        name = "PreCode" if opened.kind == "pre" and opened.argument else _NAMES[opened.kind]
        where = byte_offset(self._text, opened.source)
        return MarkupError(f"Can't find end of {name} entity at byte offset {where}")


def parse_markdown(source: str) -> Parsed:
    """Read the old Markdown: bold, italic, code and links, never nested."""
    text, out, i = source + PADDING, Output(), 0
    while i < len(source):
        if text[i] == "\\" and text[i + 1] in "_*`[":
            out.add(text[i + 1])
            i += 2
        elif text[i] in "_*`[":
            i = _old_entity(text, i, out)
        else:
            out.add(text[i])
            i += 1
    return out.since(0), out.entities


def _old_entity(text: str, begin: int, out: Output) -> int:
    size = len(text) - len(PADDING)
    character, i, language = text[begin], begin + 1, ""
    is_pre = text.startswith("```", begin)
    if is_pre:
        language, i = _pre_head(text, begin + 3)
    ending = "]" if character == "[" else "```" if is_pre else character
    offset, first = out.units, len(out.characters)
    while i < size and not text.startswith(ending, i):
        out.add(text[i])
        i += 1
    if i >= size:
        raise MarkupError(f"Can't find end of the entity starting at byte offset {byte_offset(text, begin)}")
    length, after, url = out.units - offset, i + len(ending), out.since(first)
    if not length:
        return after
    if character == "[":
        if text[after] == "(":
            end = text.find(")", after, size)
            end = size if end < 0 else end
            url, after = text[after + 1 : end], end + 1
        else:
            url = _overwritten(url, byte_offset(text, begin + 1) - len(out.until(first).encode()))
        out.entities += link(url, offset, length)
    else:
        kind = {"_": "italic", "*": "bold", "`": "pre" if is_pre else "code"}[character]
        out.entities.append(styled(kind, offset, length, language))
    return after


def _overwritten(content: str, shift: int) -> str:
    """Return the address that TDLib reads in `[address]`: its result has overwritten the source by *shift* bytes."""
    data = content.encode()
    return (data[shift:] + data[-shift:] if shift < len(data) else data).decode(errors="replace")


def _pre_head(text: str, i: int) -> tuple[str, int]:
    """Return the language behind three backticks, and where the code begins."""
    end = i
    while text[end] not in SPACES and text[end] != "`":
        end += 1
    language = ""
    if i != end and text[end] != "`" and end < len(text) - len(PADDING):
        language, i = text[i:end], end
    if text[i] in "\n\r":
        i += 2 if text[i + 1] in "\n\r" and text[i] != text[i + 1] else 1
    return language, i
