"""Embeddings of texts: similar texts get similar vectors. Pure."""

import hashlib
import math
import re
from collections import Counter

DIMENSIONS = 3072
_RANGES = ((0, 128), (128, 768), (768, DIMENSIONS))


def embed(text: str, *, dimensions: int = DIMENSIONS, normalise: bool = True) -> list[float]:
    """Embed *text* by its words and letters. A shorter vector is the start of a longer one."""
    vector = [0.0] * DIMENSIONS
    for gram, count in _grams(text).items():
        digest = hashlib.blake2b(gram.encode(), digest_size=13).digest()
        weight = math.sqrt(count) * (1 if digest[0] & 1 else -1)
        for place, (start, end) in enumerate(_RANGES):
            number = int.from_bytes(digest[1 + 4 * place : 5 + 4 * place], "big")
            vector[start + number % (end - start)] += weight
    whole = _unit(vector)
    short = whole[:dimensions]
    return _unit(short) if normalise else short


def _grams(text: str) -> Counter[str]:
    lowered = text.lower()
    words = re.findall(r"\w+", lowered)
    padded = f" {' '.join(words)} "
    thirds = (padded[place : place + 3] for place in range(len(padded) - 2))
    return Counter(["^", *(f"w:{word}" for word in words), *(f"3:{third}" for third in thirds)])


def _unit(vector: list[float]) -> list[float]:
    length = math.sqrt(sum(value * value for value in vector)) or 1.0
    return [value / length for value in vector]
