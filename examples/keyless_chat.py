"""A whole platform for the invented chat service: it knows no keys, and has edits, short messages and roles."""

import asyncio
import json
from typing import Any, Literal

from tertulia import Author, Capabilities, Delivery, Inbox, Message, Place, Platform, Quote, Text
from tertulia.errors import NotSent, SendRefused
from tertulia.platform import (
    Change,
    Deleted,
    Edited,
    PlaceLeft,
    PlaceMigrated,
    PlaceRole,
    Reacted,
    Stopped,
)

PAUSE = 0.1  # seconds until we connect again


class KeylessChat(Platform):
    """`KeylessChat(port)`: the bot of a service that shows a message again if it is sent again."""

    name = "keyless"
    me = Author(id="bot", name="Gryag", username="gryag_bot")
    capabilities = Capabilities(edits=True, typing=True, drafts=True, preview_interval=0.01, length=300)

    def __init__(self, port: int) -> None:
        self._port = port

    async def run(self, inbox: Inbox) -> None:
        had = None
        while True:
            try:
                line = await self._ask(do="update", had=had)
            except (OSError, NotSent):
                await asyncio.sleep(PAUSE)
                continue
            update = json.loads(line)
            await inbox.apply(self._changes(update), key=str(update["number"]), raw=line)
            had = update["number"]

    async def send(self, delivery: Delivery) -> str:
        reply = delivery.reply
        if delivery.edits is None:
            line = await self._ask(do="send", place=reply.place.id, text=reply.text, reply_to=reply.reply_to)
        else:
            line = await self._ask(do="edit", id=delivery.edits, text=reply.text)
        answer = json.loads(line)
        if answer.get("error") == "not modified":  # it went out before, and its receipt was lost
            return str(delivery.edits)
        if answer.get("error") == "busy":
            raise NotSent("the service is busy", retry_after=answer["after"])
        if "error" in answer:
            raise SendRefused(f"the service says: {answer['error']}")
        return str(answer["id"])

    async def preview(self, place: Place, run_id: str, text: str) -> None:
        await self._ask(do="preview", place=place.id, text=text)

    async def role(self, place: Place, author: Author) -> PlaceRole:
        if place.kind == "direct":
            return "owner"
        role: PlaceRole = json.loads(await self._ask(do="role", place=place.id, author=author.id))["role"]
        return role

    def _changes(self, update: dict[str, Any]) -> list[Change]:
        """What an update means."""
        place = self._place(update["place"], update["place_kind"])
        match update["kind"]:
            case "post":
                return [self.received(_message(update, place))]
            case "edit":
                return [Edited(message=_message(update, place))]
            case "delete":
                return [Deleted(place=place, message_id=update["id"])]
            case "react":
                emojis = tuple(update["emojis"])
                return [Reacted(place=place, message_id=update["id"], author=_author(update), emojis=emojis)]
            case "migrate":
                return [
                    PlaceMigrated(old=self._place(update["place"], "group"), new=self._place(update["new"], "group"))
                ]
            case "leave":
                return [PlaceLeft(place=place)]
            case "stop":
                return [Stopped(place=place, author=_author(update))]
            case _:  # stored unread, until a later version can read it
                return []

    def _place(self, place_id: str, kind: Literal["direct", "group", "channel"]) -> Place:
        return Place(platform=self.name, id=place_id, kind=kind)

    async def _ask(self, **request: Any) -> bytes:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port, limit=2**24)
        except OSError as error:
            raise NotSent(f"no connection: {error}") from error
        try:
            writer.write(json.dumps(request).encode() + b"\n")
            if not (line := await reader.readline()).endswith(b"\n"):
                raise ConnectionResetError("the connection ended before the answer was there")
            return line
        finally:
            writer.close()


def _author(update: dict[str, Any]) -> Author:
    return Author(id=update["author"], name=update["name"], username=update["username"])


def _message(update: dict[str, Any], place: Place) -> Message:
    return Message(
        id=update["id"],
        place=place,
        author=_author(update),
        parts=(Text(text=update["text"]),),
        album=update.get("album"),
        reply_to=Quote(message_id=update["reply_to"]) if update.get("reply_to") else None,
    )
