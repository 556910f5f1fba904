"""Endpoints of files: uploaded in rooms, and sent so that none of them runs anything in the name of the page."""

import asyncio
import time
from collections import Counter
from urllib.parse import quote

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from tertulia.characters import visible
from tertulia.errors import MediaUnavailable
from tertulia.media.content_types import PICTURES, STREAMS
from tertulia.media.values import StoredFile
from tertulia.messages import Place
from tertulia.parts import Media
from tertulia.platforms.web.allowance import Allowance
from tertulia.platforms.web.endpoints import BYTES, Asked, Endpoint, Id, write
from tertulia.platforms.web.roles import IN_ROOM, NOBODY, TALKERS, Refusal, Refused, refused
from tertulia.platforms.web.room_members import OfRoom, find_room, member, platform_of, talker
from tertulia.platforms.web.room_platform import OWNER, is_uploader
from tertulia.platforms.web.site import Site

SANDBOX = {"content-security-policy": "sandbox", "x-content-type-options": "nosniff"}
DAY = 86_400.0  # seconds
LEAST = 50_000  # bytes that each file counts: many small ones are work too
OF_ONE = 2  # uploads under way, of one person
BUSY = Refusal(status=429, why="other files are on their way: try again in a moment", retry_after=1)


class OfFile(Struct, frozen=True, kw_only=True):
    file: Id  # the unique id of media, or the SHA-256 of a file


class OfRoomFile(OfRoom, frozen=True, kw_only=True):
    file: Id


class Uploaded(Struct, frozen=True, kw_only=True):
    """A file that a message can have."""

    file: str
    kind: str
    mime: str  # by its content
    size: int
    inline: bool  # whether it is shown in the page
    width: int | None = None
    height: int | None = None
    seconds: float | None = None


def is_inline(file: StoredFile) -> bool:
    """Return whether a file is shown in the page: an image, a sound or a video that was decoded."""
    if file.mime in PICTURES:
        return file.width is not None
    return file.mime in STREAMS and file.seconds is not None


def kind_of(file: StoredFile) -> str:
    """Return the kind of media that a file is."""
    kind = file.mime.partition("/")[0]
    if not is_inline(file):
        return "document"
    if kind == "image":
        return "animation" if (file.frames or 1) > 1 else "photo"
    return kind


def file_endpoints(site: Site) -> tuple[Endpoint, ...]:
    """Return the endpoints of files."""
    store, limits = site.store, site.room_limits
    uploads = asyncio.Semaphore(limits.uploads)
    uploading = Counter[str]()
    bytes_left = Allowance(limits.bytes, limits.bytes / DAY, time.monotonic)

    async def upload(asked: Asked) -> Uploaded:
        platform, (_, me) = platform_of(site), await talker(site, asked)
        if uploads.locked() or uploading[me.id] >= OF_ONE:
            raise Refused(BUSY)
        async with uploads:
            uploading[me.id] += 1
            try:
                async with asyncio.timeout(limits.upload_seconds):
                    data = await read_body(asked.http, platform.largest)
            except TimeoutError:
                raise refused(408, f"the file did not come within {limits.upload_seconds:g} seconds") from None
            finally:
                uploading[me.id] -= 1
            if me.id != OWNER:
                bytes_left.take(me.id, max(len(data), LEAST))
            try:
                file = await platform.check_file(data)
                if not await asked.is_allowed():  # the room has ended meanwhile, or the guest was forgotten
                    raise Refused(NOBODY)
                file_id, file = await platform.add_file(me, data, file)
            except MediaUnavailable as error:
                raise refused(503 if error.for_now else 415, f"the file cannot be taken: {error}") from error
        return Uploaded(
            file=file_id,
            kind=kind_of(file),
            mime=file.mime,
            size=file.size,
            inline=is_inline(file),
            width=file.width,
            height=file.height,
            seconds=file.seconds,
        )

    async def of_room(asked: Asked) -> Response:
        room, me = await find_room(site, asked), await member(site, asked)
        media = await _shown(room.place, asked.arguments.file)
        if media is None and not is_uploader(me, asked.arguments.file):
            raise refused(404, "there is no such file")
        return await respond(asked.arguments.file, media)

    async def _shown(place: Place, file_id: str) -> Media | None:
        """Return the media of a message that is seen in the room."""
        message = await store.inspection.message_with(place, file_id)
        held = [part for part in message.parts if isinstance(part, Media)] if message else []
        return next((one for one in held if one.unique_id == file_id), None)

    async def of_store(asked: Asked) -> Response:
        return await respond(asked.arguments.file, None)

    async def respond(file_id: str, media: Media | None) -> Response:
        found = (await store.media.find([file_id])).get(file_id)
        sha256 = found.sha256 if isinstance(found, StoredFile) else (media.sha256 if media else file_id) or file_id
        file = (await store.media.get([sha256])).get(sha256)
        is_whole = file is not None and await store.media.read(sha256, at=site.now()) is not None
        path = await store.media.locate(sha256) if is_whole else None
        if file is None or path is None:
            raise refused(404, "there is no such file")
        return file_response(path, file, name=(media.label if media else None) or "")

    return (
        write(
            "POST",
            "/api/rooms/{room}/files",
            "Upload a file, the body of the request, for a message",
            handle=upload,
            roles=TALKERS,
            arguments=OfRoom,
            answers=Uploaded,
        ),
        Endpoint(
            path="/api/rooms/{room}/files/{file}",
            summary="A file that is shown in a room",
            handle=of_room,
            roles=IN_ROOM,
            arguments=OfRoomFile,
            media_type=BYTES,
        ),
        Endpoint(
            path="/api/files/{file:path}",
            summary="A file of the store",
            handle=of_store,
            arguments=OfFile,
            media_type=BYTES,
        ),
    )


async def read_body(request: Request, largest: int) -> bytes:
    """Return the body of a request; raise `Refused` as soon as it is too large."""
    too_large = refused(413, f"the file has more than {largest:,} bytes")
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:15]) > largest:
        raise too_large
    data = bytearray()
    async for piece in request.stream():
        data += piece
        if len(data) > largest:
            raise too_large
    return bytes(data)


def file_response(path: str, file: StoredFile, *, name: str = "") -> Response:
    """Return a file, of which nothing is held while it goes: shown if it was decoded, else as a download."""
    how = "inline" if is_inline(file) else "attachment"
    shown = visible(name)  # what turns the direction of letters would hide how a name ends
    named = f"; filename*=UTF-8''{quote(shown, safe='', errors='replace')}" if shown else ""
    headers = {**SANDBOX, "content-disposition": f"{how}{named}"}
    return FileResponse(path, media_type=file.mime if is_inline(file) else BYTES, headers=headers)
