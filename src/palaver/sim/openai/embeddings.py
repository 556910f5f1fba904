"""Embeddings that are always the same for the same text, and nearer for texts that share words. Pure."""

import base64
import hashlib
import math
import re
import struct
from collections.abc import Mapping
from typing import Any

from palaver.sim.openai.usage import tokens_in

Json = dict[str, Any]

DIMENSIONS = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
    "gemini-embedding-001": 3072,
}
OTHERS_DIMENSIONS = 1024
SPREAD = 16  # coordinates that one word moves
WORD = re.compile(r"\w+")


def texts_in(given: object) -> list[str] | None:
    """The texts of an `input`, which may be a text, tokens, or a list of either; None where it is neither."""
    if isinstance(given, str):
        return [given] if given else None
    if not isinstance(given, list) or not given:
        return None
    if all(isinstance(item, int) for item in given):
        return [_tokens_as_text(given)]
    if all(isinstance(item, str) and item for item in given):
        return list(given)
    if all(isinstance(item, list) and item for item in given):
        return [_tokens_as_text(item) for item in given]
    return None


def _tokens_as_text(tokens: list[int]) -> str:
    return " ".join(map(str, tokens))


def vector(text: str, dimensions: int) -> list[float]:
    """A unit vector in which every word of *text* moves a few coordinates."""
    coordinates = [0.0] * dimensions
    for word in WORD.findall(text.lower()) or [text]:
        digest = hashlib.shake_256(word.encode()).digest(SPREAD * 4)
        for (drawn,) in struct.iter_unpack("<I", digest):
            coordinates[(drawn >> 1) % dimensions] += 1.0 if drawn & 1 else -1.0
    length = math.hypot(*coordinates)
    if length == 0:
        return [1.0, *coordinates[1:]]
    return [coordinate / length for coordinate in coordinates]


def embeddings_of(request: Mapping[str, Any], texts: list[str]) -> Json:
    model = request["model"]
    asked = request.get("dimensions")
    dimensions = asked if isinstance(asked, int) and asked > 0 else DIMENSIONS.get(model, OTHERS_DIMENSIONS)
    vectors = [vector(text, dimensions) for text in texts]
    encoded = [_base64(each) if request.get("encoding_format") == "base64" else each for each in vectors]
    tokens = sum(map(tokens_in, texts))
    return {
        "object": "list",
        "data": [{"object": "embedding", "index": index, "embedding": each} for index, each in enumerate(encoded)],
        "model": model,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def _base64(coordinates: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(coordinates)}f", *coordinates)).decode()
