"""Usage: the tokens of a text, the cached share of a prompt, and the cost of an exchange."""

import hashlib
import re
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Sequence

import orjson
from msgspec import Struct

Segment = tuple[str, int]
"""A piece of a prompt in the order the model reads it, and its tokens."""

ASCII_PER_TOKEN = 4
_OTHERS_PER_TOKEN = 2
_WIDE = re.compile("[぀-鿿가-힯豈-﫿]")


class TokenUsage(Struct, frozen=True, kw_only=True):
    """The tokens of one exchange; those of the prompt by modality."""

    prompt: Counter[str]
    cached: int = 0
    output: int = 0
    thoughts: int = 0

    @property
    def prompt_total(self) -> int:
        return sum(self.prompt.values())

    @property
    def total(self) -> int:
        return self.prompt_total + self.output + self.thoughts


def text_tokens(text: str) -> int:
    """Count the tokens of *text*: four ASCII characters each, two of other alphabets, one of Chinese and its kin."""
    if not text:
        return 0
    wide = len(_WIDE.findall(text))
    plain = len(text.encode("ascii", "ignore"))
    other = len(text) - wide - plain
    return max(1, wide + -(-plain // ASCII_PER_TOKEN) + -(-other // _OTHERS_PER_TOKEN))


def json_tokens(value: object) -> int:
    """Count the tokens of *value* written as JSON."""
    return text_tokens(orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode())


def first_tokens(text: str, limit: int) -> str:
    """Return the longest start of *text* that has at most *limit* tokens."""
    return text[: _largest_that_holds(len(text), lambda length: text_tokens(text[:length]) <= limit)]


def until_stop(text: str, stops: Sequence[object]) -> str:
    """Return *text* up to the first of the stop sequences."""
    return text[
        : min((text.index(stop) for stop in stops if isinstance(stop, str) and stop and stop in text), default=None)
    ]


class PrefixCache:
    """The latest prompts by route (caller, model, key): a prompt that starts like one of them is cached so far."""

    def __init__(self, clock: Callable[[], float], *, size: int) -> None:
        self._clock = clock
        self._size = size
        self._prompts: OrderedDict[tuple[Hashable, str], tuple[Sequence[Segment], float]] = OrderedDict()

    def cached_tokens(self, route: Hashable, prompt: Sequence[Segment], *, ttl: float = float("inf")) -> int:
        """Return the tokens that *prompt* shares with the start of an earlier one. Keeps it for *ttl* seconds."""
        now = self._clock()
        known = [old for (of, _), (old, expires) in self._prompts.items() if of == route and expires > now]
        longest = max((_common_tokens(old, prompt) for old in known), default=0)
        text = "\0".join(text for text, _ in prompt)
        key = (route, hashlib.sha256(text.encode("utf-8", "replace")).hexdigest())
        _, before = self._prompts.pop(key, ((), 0.0))
        self._prompts[key] = prompt, max(before, now + ttl)
        while len(self._prompts) > self._size:
            self._prompts.popitem(last=False)
        return longest


def _common_tokens(one: Sequence[Segment], other: Sequence[Segment]) -> int:
    tokens = 0
    for (text, count), (other_text, _) in zip(one, other, strict=False):
        if text != other_text:
            return tokens + count * _common_length(text, other_text) // max(1, len(text))
        tokens += count
    return tokens


def _common_length(one: str, other: str) -> int:
    return _largest_that_holds(min(len(one), len(other)), lambda length: one[:length] == other[:length])


def _largest_that_holds(most: int, holds: Callable[[int], bool]) -> int:
    """Return the largest number up to *most* for which *holds*, by binary search: it must hold for all smaller ones."""
    low = 0
    while low < most:
        middle = (low + most + 1) // 2
        if holds(middle):
            low = middle
        else:
            most = middle - 1
    return low
