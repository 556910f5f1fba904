"""Embeddings as an OpenAI-compatible server sends them. Pure."""

import base64
import struct
from collections.abc import Mapping
from typing import Any

from palaver.sim.embeddings import embed
from palaver.sim.usage import text_tokens

Json = dict[str, Any]

DIMENSIONS = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
    "gemini-embedding-001": 3072,
}
OTHERS_DIMENSIONS = 1024


def texts_in(given: object) -> list[str] | None:
    """Return the texts of an `input`: a text, tokens, or a list of either. None if it is neither."""
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


def embeddings_of(request: Mapping[str, Any], texts: list[str]) -> Json:
    model = request["model"]
    asked = request.get("dimensions")
    dimensions = asked if isinstance(asked, int) and asked > 0 else DIMENSIONS.get(model, OTHERS_DIMENSIONS)
    vectors = [embed(text, dimensions=dimensions) for text in texts]
    encoded = [_base64(each) if request.get("encoding_format") == "base64" else each for each in vectors]
    tokens = sum(map(text_tokens, texts))
    return {
        "object": "list",
        "data": [{"object": "embedding", "index": index, "embedding": each} for index, each in enumerate(encoded)],
        "model": model,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def _base64(coordinates: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(coordinates)}f", *coordinates)).decode()
