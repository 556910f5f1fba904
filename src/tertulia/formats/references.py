"""Messages with a reference, as JSON of OpenAI-compatible personality bots, combined into one message. Pure.

`{"messageContent": …, "referencedMessage": {"content": …, "author": …}, "userName": …}` becomes one user message in the
words of `single`.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any

from tertulia.errors import InvalidValue
from tertulia.formats.single import (
    Kind,
    QuoteWords,
    Voice,
    agent_name,
    display_name,
    escape_speech,
    is_address,
    join_texts,
    kind_of,
    message_text,
    quote_media,
    strip_controls,
)
from tertulia.jsonio import deeper_than
from tertulia.parts import Media

Warn = Callable[[str], None]

_DEEPEST = 60  # levels of an element we do not know
_PIECE = re.compile(r"\]|\s|[^\s\]]+")
_ADDRESS = re.compile(r"https?://[^\s\]]+")
_MARKERS = {"[Image:": "photo", "[Audio:": "audio"}
_MARKER_LIKE = re.compile(r"\[(?:Image|Audio):[^\]\n]{0,80}")
_KINDS: dict[str, Kind] = {"image_url": "image", "audio_url": "audio", "input_audio": "audio", "video_url": "video"}
_NAMES = ("author", "personalityName", "displayName")


def ignore(warning: str) -> None:
    """Ignore a warning."""


def combine_references(content: object, *, personality: str, warn: Warn = ignore) -> list[dict[str, Any]]:
    """Return *content* as one user message: a text, a list of elements, or an object with these and a reference.

    *warn* gets a line for everything that is left out.
    """
    quoted = None
    message, where = content, "content"
    if isinstance(content, dict):
        quoted = _quote(content.get("referencedMessage"), content.get("userName"), personality, warn)
        message, where = content.get("messageContent"), "messageContent"
        if message is None:
            message = ""
            if quoted is None:
                warn("messageContent is missing")
    texts, elements = _split_content(message, where, warn)
    kinds = [_KINDS.get(element["type"], "other") for element in elements]
    return user_message(message_text(escape_speech(join_texts(texts)), quoted, kinds), elements, quoted)


def user_message(text: str, elements: Iterable[dict[str, Any]], quoted: QuoteWords | None) -> list[dict[str, Any]]:
    """Return the message: a plain text where there is nothing else, or a list of the text and the media of both."""
    media = [*elements, *map(element_of, quoted.media if quoted else ())]
    if not media and quoted is None:
        return [{"role": "user", "content": text}]
    return [{"role": "user", "content": [{"type": "text", "text": text}, *media]}]


def element_of(media: Media) -> dict[str, Any]:
    """Return the element of quoted media, which have an address."""
    kind = f"{kind_of(media)}_url"
    return {"type": kind, kind: {"url": media.uri}}


def _split_content(message: object, where: str, warn: Warn) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the texts of a message, and its other elements in order. An empty element is left out."""
    if isinstance(message, str):
        return [message], []
    if not isinstance(message, list | tuple):
        raise InvalidValue(f"{where} is {_name_of(message)}; it should be text or a list of elements")
    texts: list[str] = []
    elements: list[dict[str, Any]] = []
    for number, element in enumerate(message):
        match element:
            case str(text) | {"type": "text", "text": str(text)}:
                texts.append(text)
            case None:
                warn(f"{where}[{number}] is left out: it is missing")
            case {"type": "text", **others} if others.get("text") is None:
                warn(f"{where}[{number}] is left out: its text is missing")
            case {**fields} if fields.get("type") is None:
                warn(f"{where}[{number}] is left out: it does not say its kind")
            case {"type": "image_url" | "audio_url" as kind}:
                elements += _own_media(element, kind, f"{where}[{number}]", warn)
            case _:
                elements.append(_unknown_element(element, f"{where}[{number}]"))
    return texts, elements


def _own_media(element: dict[str, Any], kind: str, where: str, warn: Warn) -> list[dict[str, Any]]:
    """Return the element, cleaned, if it has an address."""
    match element.get(kind):
        case str(url) | {"url": str(url)} if strip_controls(url).strip():
            if not is_address(strip_controls(url).strip()):
                warn(f"{where} is left out: {kind} is no address that can be followed: {strip_controls(url)[:80]!r}")
                return []
            cleaned: dict[str, Any] = _clean_json(element, where)
            return [cleaned if isinstance(cleaned[kind], dict) else {**cleaned, kind: {"url": cleaned[kind]}}]
    warn(f"{where} is left out: {kind} has no address")
    return []


def _unknown_element(element: object, where: str) -> dict[str, Any]:
    """Return an element of an unknown kind, cleaned."""
    if not isinstance(element, dict):
        raise InvalidValue(f"{where} is {_name_of(element)}; it should be an element")
    kind = element.get("type")
    if not isinstance(kind, str) or not strip_controls(kind).strip():
        raise InvalidValue(f"{where}.type is {_name_of(kind)}; it should say the kind of the element")
    if strip_controls(kind) == "text":
        raise InvalidValue(f"{where}.text is {_name_of(element.get('text'))}; it should be text")
    cleaned: dict[str, Any] = _clean_json(element, where)
    return cleaned


def _clean_json(value: object, where: str) -> Any:
    """Return a copy of JSON without control characters in its texts."""
    if deeper_than(value, _DEEPEST):
        raise InvalidValue(f"{where} is nested more than {_DEEPEST} levels deep")
    return _copy(value)


def _copy(value: object) -> Any:
    match value:
        case str():
            return strip_controls(value)
        case dict():
            copied: dict[str, Any] = {}
            for key, item in value.items():
                copied.setdefault(strip_controls(str(key)), _copy(item))  # of names that are equal now the first counts
            return copied
        case list() | tuple():
            return [_copy(item) for item in value]
    return value


def _quote(reference: object, user: object, personality: str, warn: Warn) -> QuoteWords | None:
    """Return the quote of a reference; None if there is none or it is invalid."""
    if reference is None:
        return None
    if odd := _problem(reference):
        warn(f"referencedMessage is left out: {odd}")
    if odd or not isinstance(reference, dict):
        return None
    text, media = _extract_markers(strip_controls(reference.get("content") or ""), warn)
    author, persona, display = (_name_field(reference, field, warn) for field in _NAMES)
    voice: Voice
    if _is_true(reference.get("isFromBot"), warn):
        voice = "own" if persona and persona == personality else "agent"
        return QuoteWords(voice=voice, name=agent_name(display, persona), text=text, media=media)
    voice = "self" if display_name(author) and author == user else "person"
    return QuoteWords(voice=voice, name=display_name(author), text=text, media=media)


def _problem(reference: object) -> str:
    """Return why a reference is invalid; empty if it is valid."""
    if not isinstance(reference, dict):
        return f"it is {_name_of(reference)}, not an object"
    content = reference.get("content")
    if not isinstance(content, str | None):
        return f"its content is {_name_of(content)}, not text"
    if content is None and all(reference.get(field) is None for field in _NAMES):
        return "it says neither what was said nor by whom"
    return ""


def _name_field(reference: dict[str, Any], field: str, warn: Warn) -> str:
    value = reference.get(field)
    if isinstance(value, str):
        return value
    if value is not None:
        warn(f"referencedMessage.{field} is left out: it is {_name_of(value)}, not text")
    return ""


def _is_true(value: object, warn: Warn) -> bool:
    if not isinstance(value, bool | None):
        warn(f"referencedMessage.isFromBot is taken as false: it is {_name_of(value)}")
    return value is True


def _extract_markers(text: str, warn: Warn) -> tuple[str, tuple[Media, ...]]:
    """Return the text without its media markers, and the media that are sent with it.

    Taking a marker out may join its surroundings into another one, so the text is read on a stack of words and blanks.
    """
    stack: list[str] = []  # words and the blanks after them
    word, media = "", []
    for piece in _PIECE.findall(text):
        if piece.isspace():
            stack += [word, piece]
            word = ""
        elif piece == "]" and (found := _marker(stack, word)):
            media.append(found)
            word = stack[-2][: -len("[Image:")]
            del stack[-2:]
        else:
            word += piece
    left = "".join([*stack, word]).strip() if media else text
    if odd := _MARKER_LIKE.findall(left):
        more = f" and {len(odd) - 1} more" if len(odd) > 1 else ""
        warn(f"referencedMessage.content keeps a marker without a usable address: {odd[0]!r}{more}")
    return left, quote_media(media)


def _marker(stack: list[str], word: str) -> Media | None:
    """Return the media of the marker that a closing bracket ends here, if there is one."""
    kind = _MARKERS.get(stack[-2][-len("[Image:") :]) if stack and stack[-1] == " " else None
    if kind is None or not _ADDRESS.fullmatch(word):
        return None
    return Media(media_kind=kind, unique_id=word, uri=word)


def _name_of(value: object) -> str:
    match value:
        case None:
            return "missing"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text" if value else "empty"
        case list() | tuple():
            return "a list"
        case dict():
            return "an object"
    return f"a Python {type(value).__name__}"
