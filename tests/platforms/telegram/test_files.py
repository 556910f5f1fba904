"""Files that people sent are downloaded, and what that can fail with."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from platforms.telegram.world import telegram
from tertulia.errors import MediaUnavailable
from tertulia.parts import Media
from tertulia.platforms.telegram.platform import Telegram
from tertulia.platforms.telegram.updates import Account, changes_of
from tertulia.sim.server import Served, whole_response
from tertulia.sim.telegram import SimChat, SimUser, TelegramSim, image

LIMIT = 20 << 20
TOKEN = "7000000001:SECRET"


@pytest.fixture
async def sim() -> AsyncIterator[TelegramSim]:
    async with TelegramSim() as sim:
        yield sim


@pytest.fixture
async def bot(sim: TelegramSim) -> AsyncIterator[Telegram]:
    bot = telegram(sim)
    yield bot
    await bot.close()


@pytest.fixture
def ann(sim: TelegramSim) -> SimUser:
    return sim.user("Ann")


@pytest.fixture
def chat(sim: TelegramSim, ann: SimUser) -> SimChat:
    return sim.private(ann)


def received(sim: TelegramSim) -> Media:
    """The media of the last update, as the platform reads them."""
    raw = sim.bot.bot_account.updates.take(0, 100)[-1].body
    (change,) = changes_of(raw, Account(platform="telegram", id=sim.bot.id))
    return next(part for part in change.message.parts if isinstance(part, Media))  # type: ignore[union-attr]


@asynccontextmanager
async def bot_of_server(file: dict[str, Any]) -> AsyncIterator[Telegram]:
    """A bot of a server that answers `getFile` with *file* and has no files."""
    body = msgspec.json.encode({"ok": True, "result": file})

    async def service(scope: Any, receive: Any, send: Any) -> None:
        status = 404 if "/file/" in scope["path"] else 200
        await whole_response(body, status=status, headers={}).send(send, {})

    async with Served(service) as server:
        bot = Telegram(TOKEN, base_url=server.url)
        yield bot
        await bot.close()


async def failure(bot: Telegram, media: Media, *, limit: int = LIMIT) -> tuple[str, bool]:
    with pytest.raises(MediaUnavailable) as error:
        await bot.fetch(media, limit=limit)
    return str(error.value), error.value.for_now


@pytest.mark.parametrize(
    ("kind", "details", "mime"),
    [
        ("photo", {}, "image/jpeg"),
        ("document", {"file_name": "a b ü.pdf", "mime_type": "application/pdf"}, "application/pdf"),
        ("voice", {}, "audio/ogg"),
        ("video_note", {}, None),
        ("sticker", {}, "image/webp"),
        ("sticker", {"is_animated": True}, "application/x-tgsticker"),
        ("sticker", {"is_video": True}, "video/webm"),
    ],
)
async def test_each_kind_of_file_comes_as_it_was_sent(
    sim: TelegramSim, bot: Telegram, ann: SimUser, chat: SimChat, kind: str, details: Any, mime: str | None
) -> None:
    data = image(shade=len(details))
    getattr(ann, f"send_{kind}")(chat, data=data, **details)
    media = received(sim)

    assert media.mime == mime
    assert await bot.fetch(media, limit=LIMIT) == data


async def test_what_telegram_does_not_give_is_final(
    sim: TelegramSim, bot: Telegram, ann: SimUser, chat: SimChat
) -> None:
    ann.send_document(chat, size=LIMIT + 1)

    assert await failure(bot, received(sim)) == (
        "Telegram does not give the file: 400: Bad Request: file is too big",
        False,
    )
    assert await failure(bot, Media(media_kind="photo", unique_id="1", file_id="wrong")) == (
        "Telegram does not give the file: 400: Bad Request: invalid file_id",
        False,
    )


async def test_a_file_over_the_limit_is_not_downloaded(
    sim: TelegramSim, bot: Telegram, ann: SimUser, chat: SimChat
) -> None:
    ann.send_document(chat, b"0123456789")

    assert await failure(bot, received(sim), limit=9) == ("the file has 10 bytes, more than 9", False)
    assert [call.method for call in sim.calls] == ["getFile"]


async def test_a_download_ends_where_it_is_longer_than_was_said(
    sim: TelegramSim, bot: Telegram, ann: SimUser, chat: SimChat
) -> None:
    ann.send_document(chat, b"0123456789", size=2)

    assert await failure(bot, received(sim), limit=9) == ("the file has more than 9 bytes", False)


@pytest.mark.parametrize(
    ("fault", "method"),
    [
        (500, "getFile"),
        (429, "getFile"),
        ("request lost", "getFile"),
        (404, "download"),
        (502, "download"),
        ("request lost", "download"),
        ("broken", "download"),
    ],
)
async def test_what_fails_for_now_succeeds_later(
    sim: TelegramSim, bot: Telegram, ann: SimUser, chat: SimChat, fault: str | int, method: str
) -> None:
    photo = image(64, 64)
    ann.send_photo(chat, photo)
    media = received(sim)
    sim.fail(fault, method=method)

    _, for_now = await failure(bot, media)

    assert for_now
    assert await bot.fetch(media, limit=LIMIT) == photo


async def test_a_file_that_is_unavailable_for_a_while_may_come_later(
    sim: TelegramSim, bot: Telegram, ann: SimUser, chat: SimChat
) -> None:
    ann.send_photo(chat)
    why = "Bad Request: wrong file_id or the file is temporarily unavailable"
    sim.fail(400, method="getFile", description=why)

    assert await failure(bot, received(sim)) == (f"Telegram does not give the file: 400: {why}", True)


@pytest.mark.parametrize("path", ["/var/lib/telegram-bot-api/1.jpg", "C:\\files\\1.jpg", "../1.jpg", ""])
async def test_files_of_a_local_server_are_not_read_from_the_disk(path: str) -> None:
    async with bot_of_server({"file_path": path}) as bot:
        why, for_now = await failure(bot, Media(media_kind="photo", unique_id="1", file_id="1"))

    assert (why, for_now) == (
        "the Bot API server gives paths on its own disk (--local), which are not read",
        False,
    )


async def test_the_token_is_in_no_error_and_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with bot_of_server({"file_path": "photos/1.jpg"}) as bot:
        why, _ = await failure(bot, Media(media_kind="photo", unique_id="1", file_id="1"))

    assert why == "Telegram answers 404 to a download"
    assert TOKEN not in caplog.text
