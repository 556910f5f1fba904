"""Endpoints that write in rooms: messages, edits, deletions, reactions, and that an answer is stopped."""

import asyncio
import time
from secrets import token_hex
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace
from starlette.responses import Response

from tertulia.characters import is_blank, one_line
from tertulia.engine.rooms import Guest
from tertulia.media.fetcher import fits_kind
from tertulia.messages import Message, Place, Quote
from tertulia.parts import MAX_LABEL, Media, Part, Text
from tertulia.platform import Change, Deleted, Edited, Reacted, Stopped
from tertulia.platforms.web.allowance import Allowance
from tertulia.platforms.web.endpoints import Asked, Endpoint, Id, write
from tertulia.platforms.web.roles import TALKERS, Refusal, Refused, refused
from tertulia.platforms.web.room_files import kind_of
from tertulia.platforms.web.room_members import OfRoom, platform_of, talker
from tertulia.platforms.web.room_platform import OWNER, is_uploader, message_id
from tertulia.platforms.web.site import Site

MAX_TEXT = 20_000  # characters of a message
MAX_FILES = 100  # in a request at all; `RoomLimits.files` are taken
NOT_RUNNING = Refusal(status=503, why="the bot is not there: try again in a moment", retry_after=1)

Key = Annotated[str, Meta(min_length=1, max_length=100)]
Words = Annotated[str, Meta(max_length=MAX_TEXT)]
Emoji = Annotated[str, Meta(min_length=1, max_length=32)]


class Attached(Struct, frozen=True, kw_only=True):
    """A file that was uploaded before."""

    file: Id
    name: Annotated[str, Meta(max_length=400)] = ""
    voice: bool = False  # whether it was recorded for this message


class Posting(Struct, frozen=True, kw_only=True):
    """A message. The same id again is the same message."""

    id: Key
    text: Words = ""
    reply_to: Id | None = None
    media: Annotated[tuple[Attached, ...], Meta(max_length=MAX_FILES)] = ()


class Posted(Struct, frozen=True, kw_only=True):
    message: str  # its id


class Rewriting(Struct, frozen=True, kw_only=True):
    text: Words


class Reacting(Struct, frozen=True, kw_only=True):
    emojis: Annotated[tuple[Emoji, ...], Meta(max_length=8)] = ()  # all that they show from now on


class OfMessage(OfRoom, frozen=True, kw_only=True):
    message: Id


def message_endpoints(site: Site) -> tuple[Endpoint, ...]:
    """Return the endpoints that write in rooms."""
    limits = site.room_limits
    under_way = set["asyncio.Future[bool]"]()
    writes = Allowance(limits.writes, limits.writes_per_second, time.monotonic)

    async def writer(asked: Asked) -> tuple[Place, Guest]:
        """Return the room as a place, and who writes; count it."""
        room, guest = await talker(site, asked)
        if guest.id != OWNER:
            writes.take(guest.id)
        return room.place, guest

    async def apply(change: Change, key: str) -> None:
        inbox = platform_of(site).inbox
        if inbox is None or len(under_way) >= limits.writing:
            raise Refused(NOT_RUNNING)
        writing = asyncio.ensure_future(inbox.apply([change], key=key))  # it is tried until the store has room
        under_way.add(writing)
        writing.add_done_callback(settled)
        done, _ = await asyncio.wait([writing], timeout=limits.write_seconds)
        if not done:
            raise Refused(NOT_RUNNING)
        await writing

    def settled(writing: "asyncio.Future[bool]") -> None:
        under_way.discard(writing)
        if not writing.cancelled():
            writing.exception()  # nobody may wait for it any more

    async def find(asked: Asked, place: Place) -> Message:
        found = await site.store.log.get(place, asked.arguments.message)
        if found is None or found.deleted:
            raise refused(404, "there is no such message")
        return found

    async def post(asked: Asked) -> Posted:
        place, me = await writer(asked)
        given: Posting = asked.body
        if len(given.media) > limits.files:
            raise refused(400, f"a message has at most {limits.files} files")
        media = [await attached(me, one) for one in given.media]
        message = Message(
            id=message_id(me, given.id),
            place=place,
            author=me.author,
            sent_at=site.now(),
            parts=_parts(media, given.text),
            reply_to=await quote(place, given.reply_to) if given.reply_to else None,
        )
        await apply(platform_of(site).received(message), f"post {message.id}")
        return Posted(message=message.id)

    async def quote(place: Place, quoted_id: str) -> Quote | None:
        """Return a quote; none of a message that was deleted meanwhile."""
        found = await site.store.log.get(place, quoted_id)
        if found is None or found.deleted:
            return None
        return Quote(message_id=found.id, author=found.author, parts=found.parts)

    async def attached(me: Guest, given: Attached) -> Media:
        file = await platform_of(site).file(given.file) if is_uploader(me, given.file) else None
        if file is None:
            raise refused(404, "there is no such file: upload it again")
        if given.voice and not fits_kind("voice", file.mime):
            raise refused(400, f"this is no recording: its content is {file.mime}")
        return Media(
            media_kind="voice" if given.voice else kind_of(file),
            unique_id=given.file,
            file_id=given.file,
            label=one_line(given.name)[:MAX_LABEL] or None,
            mime=file.mime,
            size=file.size,
            width=file.width,
            height=file.height,
            seconds=file.seconds,
            pages=file.pages,
        )

    async def edit(asked: Asked) -> Response:
        place, me = await writer(asked)
        found = await find(asked, place)
        if found.author.id != me.id:
            raise refused(403, "only who wrote a message edits it")
        media = [part for part in found.parts if isinstance(part, Media)]
        edited = replace(found, parts=_parts(media, asked.body.text), edited_at=site.now())
        await apply(Edited(message=edited), f"edit {token_hex(10)}")
        return Response(status_code=204)

    async def delete(asked: Asked) -> Response:
        place, me = await writer(asked)
        found = await find(asked, place)
        if me.id not in (found.author.id, OWNER):
            raise refused(403, "only who wrote a message deletes it, and the owner")
        await apply(Deleted(place=place, message_id=found.id), f"delete {token_hex(10)}")
        return Response(status_code=204)

    async def react(asked: Asked) -> Response:
        place, me = await writer(asked)
        found = await find(asked, place)
        emojis = tuple(dict.fromkeys(asked.body.emojis))
        if any(map(is_blank, emojis)):
            raise refused(400, "an emoji cannot be blank")
        change = Reacted(place=place, message_id=found.id, author=me.author, emojis=emojis, at=site.now())
        await apply(change, f"react {token_hex(10)}")
        return Response(status_code=204)

    async def stop(asked: Asked) -> Response:
        place, me = await writer(asked)
        await apply(Stopped(place=place, author=me.author), f"stop {token_hex(10)}")
        return Response(status_code=204)

    messages = "/api/rooms/{room}/messages"
    one = f"{messages}/{{message}}"
    return (
        write(
            "POST", messages, "Post a message", handle=post, roles=TALKERS, arguments=OfRoom, body=Posting,
            answers=Posted,
        ),
        write(
            "POST", f"{one}/edit", "Edit a message of one's own", handle=edit, roles=TALKERS, arguments=OfMessage,
            body=Rewriting, status=204,
        ),
        write(
            "DELETE", one, "Delete a message of one's own; the owner any", handle=delete, roles=TALKERS,
            arguments=OfMessage, status=204,
        ),
        write(
            "POST", f"{one}/reactions", "Show these reactions and no others", handle=react, roles=TALKERS,
            arguments=OfMessage, body=Reacting, status=204,
        ),
        write(
            "POST", "/api/rooms/{room}/stop", "Stop the answer that is written to me; the owner any", handle=stop,
            roles=TALKERS, arguments=OfRoom, status=204,
        ),
    )  # fmt: skip


def _parts(media: list[Media], text: str) -> tuple[Part, ...]:
    if is_blank(text):
        if not media:
            raise refused(400, "a message needs a text or a file")
        return tuple(media)
    return (*media, Text(text=text))
