"""What the service remembers of prompts by itself: the longest beginning seen before."""

import hashlib
from collections import OrderedDict
from typing import Any

import orjson

from palaver.sim.gemini.tokens import Counting, json_tokens

Wire = dict[str, Any]
Segment = tuple[str, int]

_KEPT = 64
_REPORTED = 0.95  # the service counts a little less than the whole prefix


class Prefixes:
    """The last prompts of each caller and model."""

    def __init__(self) -> None:
        self._seen: OrderedDict[tuple[str, str, str], list[Segment]] = OrderedDict()

    def recall(self, caller: str, model: str, segments: list[Segment], smallest: int | None) -> int:
        """How many tokens of the prompt in *segments* come from memory; remembers it."""
        if smallest is None:
            return 0
        known = [prompt for (owner, name, _), prompt in self._seen.items() if (owner, name) == (caller, model)]
        longest = max((_common(prompt, segments) for prompt in known), default=0)
        self._remember((caller, model, _digest(segments)), segments)
        return int(longest * _REPORTED) if longest >= smallest else 0

    def _remember(self, key: tuple[str, str, str], segments: list[Segment]) -> None:
        self._seen[key] = segments
        self._seen.move_to_end(key)
        while len(self._seen) > _KEPT:
            self._seen.popitem(last=False)


def segments_of(request: Wire, counting: Counting) -> list[Segment]:
    """The prompt in the order the model reads it: tools, instruction, contents."""
    segments: list[Segment] = []
    if request.get("tools"):
        segments.append((orjson.dumps(request["tools"]).decode(), json_tokens(request["tools"])))
    for content in [request.get("systemInstruction", {}), *request.get("contents", [])]:
        for part in content.get("parts", []):
            text = part["text"] if "text" in part else hashlib.sha256(orjson.dumps(part)).hexdigest()
            segments.append((f"{content.get('role', '')}:{text}", sum(counting.part(part).values())))
    return segments


def _common(one: list[Segment], other: list[Segment]) -> int:
    tokens = 0
    for (text, count), (other_text, _) in zip(one, other, strict=False):
        if text != other_text:
            return tokens + count * _common_length(text, other_text) // max(1, len(text))
        tokens += count
    return tokens


def _common_length(one: str, other: str) -> int:
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _digest(segments: list[Segment]) -> str:
    return hashlib.sha256("\0".join(text for text, _ in segments).encode("utf-8", "replace")).hexdigest()
