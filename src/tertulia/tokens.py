"""Token counts: a protocol, an estimator without a vocabulary, and sums over parts, turns and prompts. Pure."""

from collections.abc import Callable, Iterable, Iterator
from math import ceil
from operator import mul
from typing import Any, Protocol, assert_never

import orjson
from msgspec import Struct

from tertulia.messages import Message
from tertulia.parts import USUAL_MIME, Media, Opaque, Part, Text, Thought, ToolCall, ToolResult, cut_parts, cut_results
from tertulia.turns import Layer, Prompt, ToolSpec, Turn
from tertulia.value_cache import cached

# Shapes are counted in the text written as classes, a byte a character: `a` small letter, `A` capital, `0` digit,
# space, newline, `.` anything else of ASCII; `l` accented Latin, `g` Greek, `c` Cyrillic, `s` symbols and emoji.
# Scripts that are not European keep the first byte of their UTF-8. Marks are counted in the UTF-8 itself. The weights
# were fitted by `bench/tokens.py --fit` to the tokenizer of Gemma 3, which is kin to Gemini's. None is below zero, so
# more text never counts less.
_CLASSES = (
    (0xC2, b"l"),
    (0xCD, b"g"),
    (0xD0, b"c"),
    (0xD6, b"\xd6"),
    (0xD8, b"\xd8"),
    (0xE0, b"\xe0"),
    (0xE1, b"\xe1"),
)
_CLASSES_ABOVE = ((0xE2, b"s"), (0xE3, b"\xe3"), (0xE4, b"\xe4"), (0xEA, b"\xea"), (0xEE, b"\xee"), (0xF0, b"s"))

SHAPES = {
    b" a": 0.395,
    b" A": 0.645,
    b" .": 0.470,
    b"  ": 0.146,
    b".a": 0.966,
    b".A": 1.256,
    b". ": 0.923,
    b".": 0.282,
    b"a": 0.132,
    b"A": 0.199,
    b"0": 1.404,
    b"\n": 1.146,
}
MARKS = {b"z": 0.681}
EUROPEAN_SHAPES = {b" c": 0.378, b"c": 0.234, b"l": 0.639, b"g": 0.399, b"s": 1.054}
EUROPEAN_MARKS = {b"\xc5": 0.696, "і".encode(): 0.656, "ъ".encode(): 0.847}
FAR_SHAPES = {
    b"\xd6": 0.504,  # Hebrew
    b"\xd8": 0.356,  # Arabic
    b"\xe0": 0.293,  # Devanagari and its kin, Thai
    b"\xe1": 0.429,  # Georgian, Vietnamese
    b"\xe3": 0.384,  # kana
    b"\xe4": 0.539,  # Han
    b"\xea": 0.624,  # hangul
    b"\xee": 0.997,  # full width
}
FAR_MARKS = {b"\xe0\xb8": 0.054, b"\xe3\x80": 0.970}  # Thai; 。, 、, 「 and their kin

_CONTINUED = bytes(range(0x80, 0xC0))
_WEIGHTS = tuple(
    weight
    for table in (SHAPES, MARKS, EUROPEAN_SHAPES, EUROPEAN_MARKS, FAR_SHAPES, FAR_MARKS)
    for weight in table.values()
)

_TURN = 4  # who speaks, and where a turn begins and ends
_CALL = 6  # what frames a call, a result or a declaration
_SIGNATURE_CHARACTERS = 8  # of a replayed signature, a token
_UNKNOWN_SECONDS = 60
_LONGEST = 24 * 3600  # seconds of a sound that are counted
_UNKNOWN_TEXT = 1000
_TEXT_TOKEN_BYTES = 4
_PAGE_BYTES = 100_000
_VIDEO_SECOND_BYTES = 128_000
_AUDIO_SECOND_BYTES = 16_000
_AUDIO_SECOND_BYTES_OF = {
    "audio/ogg": 4_000,  # voice messages: Opus
    "audio/opus": 4_000,
    "audio/webm": 4_000,
    "audio/wav": 88_200,
    "audio/x-wav": 88_200,
    "audio/aiff": 88_200,
    "audio/flac": 60_000,
}
_MIME_OF_KIND = {**USUAL_MIME, "youtube": "video/mp4"}
READ_AS_TEXT = ("application/json", "application/xml", "application/javascript")
MOVING = ("sticker", "animation", "gif")  # kinds of which a picture says enough
_KEY = "tokens"


class MediaRates(Struct, frozen=True, kw_only=True):
    """The tokens that a model counts for media; None for what it does not take. By default those of Gemini 3."""

    image: int | None = 1120  # where its pixels are not known, or do not matter
    image_of: Callable[[int, int], int] | None = None  # by width and height
    page: int | None = 560
    audio_second: int | None = 32
    video_second: int | None = 263 + 32  # a picture, and the sound


RATES = MediaRates()


class Counter(Protocol):
    """Counts the tokens of a text; a real tokenizer can stand here."""

    def text(self, text: str) -> int: ...


class Estimator:
    """The default counter: an estimate for any script, without a vocabulary."""

    def text(self, text: str) -> int:
        """Return about how many tokens *text* has: 0 only when empty; adding to a text never lowers it."""
        return int(1.5 + sum(map(mul, _WEIGHTS, features(text)))) if text else 0


ESTIMATOR = Estimator()


def _class_table() -> bytes:
    table = bytearray(b"." * 256)
    table[ord("a") : ord("z") + 1] = b"a" * 26
    table[ord("A") : ord("Z") + 1] = b"A" * 26
    table[ord("0") : ord("9") + 1] = b"0" * 10
    table[ord(" ")] = ord(" ")
    table[ord("\n")] = ord("\n")
    for first, name in (*_CLASSES, *_CLASSES_ABOVE):
        table[first:] = name * (256 - first)
    return bytes(table)


_CLASS_OF = _class_table()
_SHAPES, _MARKS = tuple(SHAPES), tuple(MARKS)
_EUROPEAN_SHAPES, _EUROPEAN_MARKS = tuple(EUROPEAN_SHAPES), tuple(EUROPEAN_MARKS)
_FAR_SHAPES, _FAR_MARKS = tuple(FAR_SHAPES), tuple(FAR_MARKS)


def features(text: str) -> list[int]:
    """Return how often each shape and mark is in *text*, in the order of the tables that its scripts need."""
    raw = text.encode("utf-8", "surrogatepass")
    classes = raw.translate(_CLASS_OF, _CONTINUED)
    shape, mark = classes.count, raw.count
    counts = [*map(shape, _SHAPES), *map(mark, _MARKS)]
    if text.isascii():
        return counts
    counts += [*map(shape, _EUROPEAN_SHAPES), *map(mark, _EUROPEAN_MARKS)]
    if classes.isascii():
        return counts
    return [*counts, *map(shape, _FAR_SHAPES), *map(mark, _FAR_MARKS)]


def part_tokens(part: Part, counter: Counter = ESTIMATOR) -> int:
    """Return the tokens of one part with its signature."""
    match part:
        case Text(text=text, signature=signature) | Thought(text=text, signature=signature):
            return counter.text(text) + _signature_tokens(signature)
        case Media(signature=signature):
            return count_media(part, counter) + _signature_tokens(signature)
        case ToolCall(name=name, args=args, broken=broken, signature=signature):
            said = counter.text(name) + counter.text(broken if broken is not None else _json(args))
            return _CALL + said + _signature_tokens(signature)
        case ToolResult(name=name, value=value, media=media):
            said = counter.text(name) + counter.text(_json(value))
            return _CALL + said + sum(count_media(item, counter) for item in media)
        case Opaque(raw=raw):
            return counter.text(_json(raw))
        case _:
            assert_never(part)


def turn_tokens(turn: Turn, counter: Counter = ESTIMATOR) -> int:
    """Return the tokens of a turn with long results cut; those of the default counter are cached."""
    if counter is not ESTIMATOR:
        return _of_turn(turn, counter)
    tokens: int | None = turn.__dict__.get(_KEY)
    return cached(turn, _KEY, _of_turn) if tokens is None else tokens


def grown_tokens(turn: Turn, start: Turn) -> int:
    """Return the tokens of *start*, with whose parts *turn* begins; cache those of *turn*, counting only the rest."""
    known, rest = turn_tokens(start), turn.parts[len(start.parts) :]
    cached(turn, _KEY, lambda _: known + sum(map(part_tokens, cut_results(rest))))
    return known


def message_tokens(message: Message, counter: Counter = ESTIMATOR) -> int:
    """Return the tokens of a message without its header; cached like a turn's."""
    if counter is not ESTIMATOR:
        return _of_message(message, counter)
    tokens: int | None = message.__dict__.get(_KEY)
    return cached(message, _KEY, _of_message) if tokens is None else tokens


def tool_tokens(tool: ToolSpec, counter: Counter = ESTIMATOR) -> int:
    """Return the tokens of a declaration; cached like a turn's."""
    return cached(tool, _KEY, _of_tool) if counter is ESTIMATOR else _of_tool(tool, counter)


def _of_turn(turn: Turn, counter: Counter = ESTIMATOR) -> int:
    return parts_tokens(cut_results(turn.parts), counter)


def _of_message(message: Message, counter: Counter = ESTIMATOR) -> int:
    return parts_tokens(cut_parts(message.parts), counter)


def _of_tool(tool: ToolSpec, counter: Counter = ESTIMATOR) -> int:
    return _CALL + sum(map(counter.text, (tool.name, tool.description, _json(tool.parameters))))


def layer_tokens(layer: Layer, counter: Counter = ESTIMATOR) -> int:
    """Return the tokens of a layer: its instruction and its turns."""
    return counter.text(layer.instruction) + sum([turn_tokens(turn, counter) for turn in layer.turns])


def prompt_tokens(prompt: Prompt, counter: Counter = ESTIMATOR) -> int:
    """Return the tokens of all layers and tools."""
    layers = sum(layer_tokens(layer, counter) for layer in prompt.layers)
    return layers + sum(tool_tokens(tool, counter) for tool in prompt.tools)


def parts_tokens(parts: Iterable[Part], counter: Counter) -> int:
    """Return the tokens of the parts of one turn."""
    return _TURN + sum(part_tokens(part, counter) for part in parts)


def _signature_tokens(signature: str | None) -> int:
    return -(-len(signature) // _SIGNATURE_CHARACTERS) if signature else 0


def count_media(media: Media, counter: Counter = ESTIMATOR, rates: MediaRates = RATES) -> int:
    """Return what services count by these *rates*; media without content, or without a rate, count as their words.

    Seconds and pages that are not known are guessed from the bytes. A sticker counts as a picture, also one that moves;
    so does an animation for a model that takes no video.
    """
    mime = media_mime(media)
    if media.media_kind == "sticker" or (media.media_kind in MOVING and rates.video_second is None):
        mime = "image/webp"
    rate, amount = None, 1
    if not media.has_content:
        pass
    elif mime.startswith("image/"):
        pixels = rates.image_of and media.width and media.height and rates.image_of(media.width, media.height)
        rate = pixels or rates.image
    elif mime.startswith("audio/"):
        rate, amount = rates.audio_second, _seconds(media, _AUDIO_SECOND_BYTES_OF.get(mime, _AUDIO_SECOND_BYTES))
    elif mime.startswith("video/"):
        rate, amount = rates.video_second, _seconds(media, _VIDEO_SECOND_BYTES)
    elif mime == "application/pdf":
        rate, amount = rates.page, media.pages or max(1, _size(media) // _PAGE_BYTES)
    elif mime.startswith("text/") or mime in READ_AS_TEXT:
        text = media.data.decode("utf-8", "replace") if media.data else ""
        return counter.text(text) or _size(media) // _TEXT_TOKEN_BYTES or _UNKNOWN_TEXT
    return counter.text(media.words) if rate is None else rate * amount


def media_mime(media: Media) -> str:
    """Return the MIME type without its parameters, or that which media of the kind mostly have."""
    mime = media.mime or _MIME_OF_KIND.get(media.media_kind, "")
    return mime.partition(";")[0].strip().lower()


def _size(media: Media) -> int:
    return len(media.data) if media.data else media.size or 0


def _seconds(media: Media, a_second: int) -> int:
    if media.length:
        return max(1, ceil(min(media.length, _LONGEST)))
    return -(-_size(media) // a_second) or _UNKNOWN_SECONDS


def _json(value: Any) -> str:
    """Return *value* as JSON, or its keys and leaves where JSON cannot hold it."""
    try:
        return orjson.dumps(value).decode()
    except (orjson.JSONEncodeError, RecursionError):
        return ",".join(_words(value))


def _words(value: Any) -> Iterator[str]:
    """Yield the keys and leaves of *value*, at any depth, each container once."""
    waiting, seen = [value], set()
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict | list | tuple | set | frozenset):
            if id(item) in seen:
                continue
            seen.add(id(item))
            waiting.extend(item)
            waiting.extend(item.values() if isinstance(item, dict) else ())
        elif isinstance(item, int):
            yield hex(item)  # Python writes no integer of more than some thousand digits in tens
        else:
            yield str(item)
