"""Readers of the stream of a place, as browsers read it."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from msgspec import Struct

from platforms.web.pages import Served


class Sent(Struct, frozen=True):
    """An event of a stream."""

    kind: str
    data: Any
    id: str | None = None


class Stream:
    """A stream that is open."""

    def __init__(self, lines: AsyncIterator[str]) -> None:
        self._lines = lines
        self.comments = 0
        self.last_id = 0

    async def next(self) -> Sent | None:
        """Return the next event; None at the end."""
        while (fields := await self._fields()) is not None:
            if "data" in fields:
                return Sent(fields["event"], json.loads(fields["data"]), fields.get("id"))
        return None

    async def _fields(self) -> dict[str, str] | None:
        """Return the fields until the next empty line; None at the end."""
        fields: dict[str, str] = {}
        async for line in self._lines:
            name, _, value = line.partition(": ")
            if line and not line.startswith(":"):
                fields[name] = value
            elif not line:
                self.last_id = int(fields.get("id", self.last_id))
                return fields
            self.comments += line == ":"
        return None

    async def until_id(self, number: int) -> list[Sent]:
        """Return the events until one with a number is seen."""
        found: list[Sent] = []
        while self.last_id < number:
            fields = await self._fields()
            assert fields is not None
            if "data" in fields:
                found.append(Sent(fields["event"], json.loads(fields["data"]), fields.get("id")))
        return found

    async def until(self, kind: str) -> Sent:
        """Return the next event of a kind."""
        while one := await self.next():
            if one.kind == kind:
                return one
        raise AssertionError(f"the stream ended without {kind}")

    async def rest(self) -> list[Sent]:
        """Return the events until the end."""
        found: list[Sent] = []
        while one := await self.next():
            found.append(one)
        return found


@asynccontextmanager
async def listening(served: Served, path: str, *, headers: Mapping[str, str] | None = None) -> AsyncIterator[Stream]:
    """Listen to a stream until the block ends."""
    async with served.client.stream("GET", path, headers=headers, timeout=30) as response:
        assert response.status_code == 200, await response.aread()
        assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
        yield Stream(response.aiter_lines())


def shown_by(events: list[Sent]) -> tuple[dict[str, list[Any]], dict[str, str]]:
    """Return what a reader shows, who puts each item in the place of the one with its key; and the live texts."""
    shown: dict[str, dict[Any, Any]] = {"messages": {}, "runs": {}, "deliveries": {}}
    live: dict[str, str] = {}
    for event in events:
        data = event.data
        if event.kind == "change":
            if data.get("anew"):
                shown = {kind: {} for kind in shown}
            for kind, items in shown.items():
                items |= {one["number" if kind == "messages" else "order"]: one for one in data.get(kind, ())}
        else:
            before = live.get(data["run_id"], "") if event.kind == "delta" else ""
            live[data["run_id"]] = before + data["text"]
    return {kind: [items[key] for key in sorted(items)] for kind, items in shown.items()}, live
