"""How many tokens things are, near enough and always the same. Pure."""

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import orjson

from palaver.sim.gemini.rules.generations import THREE_AND_LATER, Generation

Wire = dict[str, Any]
Sizes = Callable[[str], int | None]

_ASCII_A_TOKEN = 4
_OTHERS_A_TOKEN = 2
_AUDIO_BYTES_A_SECOND = 16_000
_VIDEO_BYTES_A_SECOND = 128_000
_UNKNOWN_SECONDS = 60
_WIDE = re.compile("[぀-鿿가-힯豈-﫿]")
_REPLAYED_SIGNATURES = frozenset({"3.5", "3.5-lite", "3.6", "3.7", "4"})


def text_tokens(text: str) -> int:
    """The tokens of *text*: four Latin letters each, two of other alphabets, one of Chinese and its kin."""
    if not text:
        return 0
    wide = len(_WIDE.findall(text))
    plain = len(text.encode("ascii", "ignore"))
    other = len(text) - wide - plain
    return max(1, wide + -(-plain // _ASCII_A_TOKEN) + -(-other // _OTHERS_A_TOKEN))


def json_tokens(value: object) -> int:
    """The tokens of *value* written as JSON."""
    return text_tokens(orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode())


class Counting:
    """Counts tokens by modality for one generation; *sizes* knows the bytes of uploaded files."""

    def __init__(self, generation: Generation, sizes: Sizes, *, resolution: str = "") -> None:
        self._generation = generation
        self._sizes = sizes
        self._resolution = resolution

    def request(self, request: Wire) -> Counter[str]:
        """The tokens of everything in *request* that a model reads."""
        total: Counter[str] = Counter()
        if request.get("tools"):
            total["TEXT"] += json_tokens(request["tools"])
        for content in [request.get("systemInstruction", {}), *request.get("contents", [])]:
            total += self.content(content)
        return total

    def content(self, content: Wire) -> Counter[str]:
        total: Counter[str] = Counter()
        for part in content.get("parts", []):
            total += self.part(part)
        return total

    def part(self, part: Wire) -> Counter[str]:
        """The tokens of one part."""
        total: Counter[str] = Counter()
        if "inlineData" in part:
            data = part["inlineData"]
            total += self._media(data.get("mimeType", ""), len(data.get("data", "")) * 3 // 4, part)
        elif "fileData" in part:
            file = part["fileData"]
            total += self._media(file.get("mimeType", ""), self._sizes(file.get("fileUri", "")), part)
        elif "text" in part:
            total["TEXT"] += text_tokens(part["text"])
        else:
            total["TEXT"] += json_tokens({name: part[name] for name in part if name != "thoughtSignature"})
        if self._generation in _REPLAYED_SIGNATURES:
            total["TEXT"] += text_tokens(part.get("thoughtSignature", "")) // 2
        return total

    def _media(self, mime: str, size: int | None, part: Wire) -> Counter[str]:
        kind = mime.split("/")[0]
        if kind == "image":
            return Counter(IMAGE=self._image(part))
        if kind == "audio":
            seconds = _UNKNOWN_SECONDS if size is None else max(1, size // _AUDIO_BYTES_A_SECOND)
            return Counter(AUDIO=32 * seconds)
        if kind == "video":
            seconds = _UNKNOWN_SECONDS if size is None else max(1, size // _VIDEO_BYTES_A_SECOND)
            return Counter(VIDEO=263 * seconds)
        if kind == "text" or mime == "application/json":
            return Counter(TEXT=max(1, (size or 4096) // _ASCII_A_TOKEN))
        pages = max(1, (size or 1) // 100_000)
        return Counter(DOCUMENT=pages * (560 if self._generation in THREE_AND_LATER else 258))

    def _image(self, part: Wire) -> int:
        if self._generation not in THREE_AND_LATER:
            return 258
        own = part.get("mediaResolution")
        level = own.get("level", "") if isinstance(own, dict) else own
        wanted = str(level or self._resolution).upper()
        return 280 if wanted.endswith("LOW") else 560 if wanted.endswith("MEDIUM") else 1120


def details(counted: Counter[str]) -> list[Wire]:
    """Tokens by modality, as the service lists them."""
    order = ("TEXT", "IMAGE", "VIDEO", "AUDIO", "DOCUMENT")
    return [{"modality": kind, "tokenCount": counted[kind]} for kind in order if counted[kind]]
