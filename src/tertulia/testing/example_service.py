"""An invented chat service on a loopback socket, for examples and for tests of platforms.

Whoever connects writes a request as a line of JSON and reads the answer as another:

    {"do": "update", "had": 3}      → {"number": 4, "kind": "post", …}, as soon as something happened after number 3
    {"do": "send", "place": "1", "text": "Hi.", "reply_to": "m0", "key": "k1"}   → {"id": "m1"}
    {"do": "edit", "id": "m1", "text": "Hello."}                                 → {"id": "m1"}
    {"do": "preview", "place": "1", "text": "Hel"}                               → {}, for as long as the bot writes
    {"do": "role", "place": "2", "author": "7"}                                  → {"role": "administrator"}

To send and to edit may be answered with `{"error": "busy", "after": 0.5}` or `{"error": "refused"}`, and an edit that
changes nothing with `{"error": "not modified"}`. An update is delivered again until its number came as `had`.
"""

import asyncio
import json
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self

from tertulia.messages import Author
from tertulia.platform import PlaceRole
from tertulia.testing.platform_world import Fault

LONGEST = 2**24  # bytes of a line


class ExampleService:
    """`async with ExampleService() as service:` serves at `127.0.0.1:{service.port}`.

    `post`, `edit`, `delete`, `react`, `migrate`, `leave` and `stop` are what people do; `shown` is what they see of the
    bot, and `echo` shows it to the bot too.
    """

    def __init__(self, *, keys: bool = True, show: Callable[[str], object] | None = None) -> None:
        self.port = 0
        self._show = show  # is called with the text of each message that the bot sends
        self.faults: deque[Fault] = deque()  # of the next requests to send or edit
        self.roles: dict[tuple[str, str], PlaceRole] = {}  # by place and author
        self.previews: list[tuple[str, str]] = []  # places and texts; an empty text: the bot writes
        self._takes_keys = keys
        self._messages: dict[str, dict[str, Any]] = {}  # the bot's, by their ids
        self._ids: dict[str, str] = {}  # of the bot's messages, by their keys
        self._updates: list[dict[str, Any]] = []
        self._acknowledged = 0
        self._happened = asyncio.Event()
        self._connections: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connect, "127.0.0.1", self.port, limit=LONGEST)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        connections = set(self._connections)
        self.disconnect()
        if connections:
            await asyncio.wait(connections)

    def post(self, place: str, author: Author, text: str, **fields: Any) -> str:
        """Post a message; return its id. *fields* may be `place_kind` (direct by default), `album` and `reply_to`."""
        message_id = f"m{len(self._updates)}"
        self._happens("post", place=place, id=message_id, text=text, **_author_fields(author), **fields)
        return message_id

    def echo(self, message_id: str, author: Author, *, place_kind: str = "direct") -> None:
        """Show the bot a message of its own; *author* is its account."""
        shown = {name: self._messages[message_id][name] for name in ("id", "place", "text")}
        self._happens("post", place_kind=place_kind, **shown, **_author_fields(author))

    def edit(self, message_id: str, text: str) -> None:
        posted = next(update for update in self._updates if update["id"] == message_id)
        self._happens(**{**posted, "kind": "edit", "text": text})

    def delete(self, place: str, message_id: str) -> None:
        self._happens("delete", place=place, id=message_id)

    def react(self, place: str, message_id: str, author: Author, *emojis: str) -> None:
        self._happens("react", place=place, id=message_id, emojis=emojis, **_author_fields(author))

    def migrate(self, place: str) -> str:
        """Give a group another id; return it."""
        self._happens("migrate", place=place, id="", new=f"{place}-new")
        return f"{place}-new"

    def leave(self, place: str, *, place_kind: str = "direct") -> None:
        """Remove the bot from a group, or block it."""
        self._happens("leave", place=place, id="", place_kind=place_kind)

    def stop(self, place: str, author: Author) -> None:
        """Stop the answer that the bot writes."""
        self._happens("stop", place=place, id="", **_author_fields(author))

    def deliver_again(self) -> None:
        """Deliver all updates again, as a service does that lost its acknowledgements."""
        self._acknowledged = 0
        self.disconnect()

    def shown(self, place: str) -> list[dict[str, Any]]:
        """Return the messages of the bot that people see in a place: `id`, `text` and `reply_to`."""
        return [message for message in self._messages.values() if message["place"] == place]

    def disconnect(self) -> None:
        """End every connection."""
        for connection in self._connections:
            connection.cancel()

    def _happens(self, kind: str, **fields: Any) -> None:
        self._updates.append({"kind": kind, "place_kind": "direct", **fields, "number": len(self._updates)})
        self._happened.set()
        self._happened = asyncio.Event()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.current_task()
        assert connection is not None
        self._connections.add(connection)
        try:
            with suppress(OSError, asyncio.CancelledError):
                while line := await reader.readline():
                    answer = await self._answer(json.loads(line))
                    if answer is None:
                        break
                    writer.write(json.dumps(answer).encode() + b"\n")
                    await writer.drain()
        finally:
            self._connections.discard(connection)
            writer.transport.abort()

    async def _answer(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """Return the answer to a request; None if the connection ends without one."""
        match request["do"]:
            case "update":
                return await self._update(request["had"])
            case "preview":
                self.previews.append((request["place"], request["text"]))
                return {}
            case "role":
                return {"role": self.roles.get((request["place"], request["author"]), "member")}
            case "send" | "edit":
                return self._write(request, self.faults.popleft() if self.faults else None)
            case _:
                return {"error": "refused"}

    async def _update(self, had: int | None) -> dict[str, Any]:
        if had == self._acknowledged:
            self._acknowledged += 1
        while self._acknowledged == len(self._updates):
            await self._happened.wait()
        return self._updates[self._acknowledged]

    def _write(self, request: dict[str, Any], fault: Fault | None) -> dict[str, Any] | None:
        """Show what the bot sends or edits, or fail."""
        if fault == "request lost":
            return None
        if fault == "busy":
            return {"error": "busy", "after": 0.01}
        if fault == "refused":
            return {"error": "refused"}
        answer = self._edit(request) if request["do"] == "edit" else self._send(request)
        return None if fault == "receipt lost" else answer

    def _edit(self, request: dict[str, Any]) -> dict[str, Any]:
        message = self._messages.get(request["id"])
        if message is None:
            return {"error": "refused"}
        if message["text"] == request["text"]:
            return {"error": "not modified"}
        message["text"] = request["text"]
        return {"id": request["id"]}

    def _send(self, request: dict[str, Any]) -> dict[str, Any]:
        key = request.get("key") if self._takes_keys else None
        if key in self._ids:
            return {"id": self._ids[key]}
        message_id = f"b{len(self._messages)}"
        self._messages[message_id] = {"id": message_id, **{name: request[name] for name in ("place", "text")}}
        self._messages[message_id]["reply_to"] = request.get("reply_to")
        if key is not None:
            self._ids[key] = message_id
        if self._show is not None:
            self._show(request["text"])
        return {"id": message_id}


def _author_fields(author: Author) -> dict[str, Any]:
    return {"author": author.id, "name": author.name, "username": author.username}
