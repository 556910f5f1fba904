"""Batches of updates: each with its number and raw form, also beside one that cannot be read. Pure."""

import re
from collections.abc import Iterator

import msgspec
from msgspec import Struct


class _UpdateId(Struct, frozen=True):
    update_id: int


class _Answer(Struct, frozen=True):
    ok: bool
    result: list[msgspec.Raw]


_UPDATE_ID = msgspec.json.Decoder(_UpdateId)
_ANSWER = msgspec.json.Decoder(_Answer)
_UNREADABLE = (msgspec.MsgspecError, RecursionError)
_NUMBER = re.compile(rb'"update_id"\s*:\s*(\d{1,19})(?![\d.eE])')
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
_SUCCESS = re.compile(rb'\s*\{\s*"ok"\s*:\s*true\s*,\s*"result"\s*:\s*\[')
_UPDATE_DEPTH = 3  # of the brackets around what an update holds, in an answer


def updates_in(answer: bytes) -> list[tuple[int, bytes]] | None:
    """Return the numbers and raw forms of the updates of an answer; None if it has none that could be confirmed.

    One that cannot be decoded, for half a character or for its depth, does not stand in the way of the others.
    """
    try:
        decoded = _ANSWER.decode(answer)
        found = [bytes(raw) for raw in decoded.result] if decoded.ok else None
    except _UNREADABLE:
        found = list(_objects(answer)) if _SUCCESS.match(answer) else None
    if found is None:
        return None
    numbered = [(number, raw) for raw in found if (number := update_number(raw)) is not None]
    return numbered if numbered or not found else None


def update_number(raw: bytes) -> int | None:
    """Return the number of an update; None if there is none."""
    try:
        number = _UPDATE_ID.decode(raw).update_id
    except _UNREADABLE:
        found = _NUMBER.search(raw)
        number = int(found[1]) if found else -1
    return number if number >= 0 else None


def _objects(answer: bytes) -> Iterator[bytes]:
    """Yield the updates of an answer by its brackets alone."""
    depth = start = 0
    for token in _TOKEN.finditer(answer):
        if token[0] in b"[{":
            depth += 1
            start = token.start() if depth == _UPDATE_DEPTH else start
        elif token[0] in b"]}":
            if depth == _UPDATE_DEPTH:
                yield answer[start : token.end()]
            depth -= 1
