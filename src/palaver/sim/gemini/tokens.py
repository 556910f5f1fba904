"""Tokens of a Gemini request: counted by modality, in the order the model reads them, and reported. Pure."""

import hashlib
from collections import Counter
from collections.abc import Callable

import orjson

from palaver.sim.errors import Wire
from palaver.sim.gemini.catalogue import THREE_AND_LATER, Generation
from palaver.sim.usage import ASCII_PER_TOKEN, Segment, TokenUsage, json_tokens, text_tokens

Sizes = Callable[[str], int | None]

_AUDIO_BYTES_PER_SECOND = 16_000
_VIDEO_BYTES_PER_SECOND = 128_000
_UNKNOWN_SECONDS = 60
_REPLAYED_SIGNATURES = frozenset({"3.5", "3.5-lite", "3.6", "3.7", "4"})


class TokenCounter:
    """Counts tokens by modality for one generation; *sizes* gives the bytes of uploaded files."""

    def __init__(self, generation: Generation, sizes: Sizes, *, resolution: str = "") -> None:
        self._generation = generation
        self._sizes = sizes
        self._resolution = resolution

    def request(self, request: Wire) -> Counter[str]:
        """Count everything in *request* that a model reads."""
        total: Counter[str] = Counter()
        if request.get("tools"):
            total["TEXT"] += json_tokens(request["tools"])
        for content in [request.get("systemInstruction", {}), *request.get("contents", [])]:
            for part in content.get("parts", []):
                total += self.part(part)
        return total

    def part(self, part: Wire) -> Counter[str]:
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

    def segments(self, request: Wire) -> list[Segment]:
        """Return the prompt in the order the model reads it: tools, instruction, contents."""
        segments: list[Segment] = []
        if request.get("tools"):
            segments.append((orjson.dumps(request["tools"]).decode(), json_tokens(request["tools"])))
        for content in [request.get("systemInstruction", {}), *request.get("contents", [])]:
            for part in content.get("parts", []):
                text = part["text"] if "text" in part else hashlib.sha256(orjson.dumps(part)).hexdigest()
                segments.append((f"{content.get('role', '')}:{text}", self.part(part).total()))
        return segments

    def _media(self, mime: str, size: int | None, part: Wire) -> Counter[str]:
        kind = mime.split("/")[0]
        if kind == "image":
            return Counter(IMAGE=self._image(part))
        if kind == "audio":
            seconds = _UNKNOWN_SECONDS if size is None else max(1, size // _AUDIO_BYTES_PER_SECOND)
            return Counter(AUDIO=32 * seconds)
        if kind == "video":
            seconds = _UNKNOWN_SECONDS if size is None else max(1, size // _VIDEO_BYTES_PER_SECOND)
            return Counter(VIDEO=263 * seconds)
        if kind == "text" or mime == "application/json":
            return Counter(TEXT=max(1, (size or 4096) // ASCII_PER_TOKEN))
        pages = max(1, (size or 1) // 100_000)
        return Counter(DOCUMENT=pages * (560 if self._generation in THREE_AND_LATER else 258))

    def _image(self, part: Wire) -> int:
        if self._generation not in THREE_AND_LATER:
            return 258
        own = part.get("mediaResolution")
        level = own.get("level", "") if isinstance(own, dict) else own
        wanted = str(level or self._resolution).upper()
        return 280 if wanted.endswith("LOW") else 560 if wanted.endswith("MEDIUM") else 1120


def output_tokens(parts: list[Wire]) -> int:
    """Count what a model says, without its thoughts."""
    total = 0
    for part in parts:
        if "text" in part and not part.get("thought"):
            total += text_tokens(part["text"])
        elif not part.get("thought"):
            total += json_tokens({name: value for name, value in part.items() if name != "thoughtSignature"})
    return total


def details(tokens: Counter[str]) -> list[Wire]:
    """Tokens by modality, as the service lists them."""
    order = ("TEXT", "IMAGE", "VIDEO", "AUDIO", "DOCUMENT")
    return [{"modality": kind, "tokenCount": tokens[kind]} for kind in order if tokens[kind]]


def usage_metadata(usage: TokenUsage) -> Wire:
    """Return the usage as the service reports it: zeros are left out."""
    reported = {
        "promptTokenCount": usage.prompt_total,
        "candidatesTokenCount": usage.output,
        "totalTokenCount": usage.total,
        "cachedContentTokenCount": usage.cached,
        "promptTokensDetails": details(usage.prompt),
        "cacheTokensDetails": details(Counter(TEXT=usage.cached)),
        "thoughtsTokenCount": usage.thoughts,
    }
    return {name: value for name, value in reported.items() if value}
