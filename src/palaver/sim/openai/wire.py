"""What goes down the socket: a JSON body or the frames of a stream, whole or cut off."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import orjson
from msgspec import Struct
from starlette.types import Send

DONE = b"data: [DONE]\n\n"
BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
REQUESTS_A_MINUTE, TOKENS_A_MINUTE = 10_000, 2_000_000


class Sent(Struct, frozen=True, kw_only=True):
    """An answer on its way; one that is cut never ends, so the server drops the connection."""

    status: int
    headers: Mapping[str, str]
    frames: tuple[bytes, ...]
    cut: bool = False

    async def __call__(self, send: Send, headers: Mapping[str, str]) -> None:
        fields = {**headers, "openai-version": "2020-10-01", "openai-processing-ms": "7", **self.headers}
        raw = [(name.encode(), value.encode()) for name, value in fields.items()]
        await send({"type": "http.response.start", "status": self.status, "headers": raw})
        for frame in self.frames:
            await send({"type": "http.response.body", "body": frame, "more_body": True})
        if not self.cut:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


def sent_json(value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None, cut: bool = False) -> Sent:
    body = orjson.dumps(value)
    fields = {"content-type": "application/json", "content-length": str(len(body)), **(headers or {})}
    return Sent(status=status, headers=fields, frames=(body[: len(body) // 2] if cut else body,), cut=cut)


def sent_stream(chunks: Iterable[Any], *, done: bool = True, cut: bool = False) -> Sent:
    frames = [b"data: " + orjson.dumps(chunk) + b"\n\n" for chunk in chunks]
    if done and not cut:
        frames.append(DONE)
    fields = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
    return Sent(status=200, headers=fields, frames=tuple(frames), cut=cut)


def base62(seed: str, length: int) -> str:
    """Letters and digits that look drawn, the same for the same seed."""
    return "".join(BASE62[byte % 62] for byte in hashlib.shake_256(seed.encode()).digest(length))


def rate_headers(requests: int) -> dict[str, str]:
    left = max(0, REQUESTS_A_MINUTE - requests)
    return {
        "x-ratelimit-limit-requests": str(REQUESTS_A_MINUTE),
        "x-ratelimit-limit-tokens": str(TOKENS_A_MINUTE),
        "x-ratelimit-remaining-requests": str(left),
        "x-ratelimit-remaining-tokens": str(TOKENS_A_MINUTE),
        "x-ratelimit-reset-requests": "6ms",
        "x-ratelimit-reset-tokens": "0s",
    }
