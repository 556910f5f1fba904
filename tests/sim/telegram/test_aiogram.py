"""Real aiogram polls, sends, edits, downloads and meets refusals; its types read every update of the simulator."""

import asyncio
from typing import Any

from sim.telegram.everything import do_everything
from tertulia.sim.telegram import TelegramSim, image


async def test_aiogram(sim: TelegramSim) -> None:
    """One test: the import takes four seconds."""
    from aiogram import Bot
    from aiogram.client.session.aiohttp import AiohttpSession
    from aiogram.client.telegram import TelegramAPIServer

    session = AiohttpSession(api=TelegramAPIServer.from_base(sim.url))
    async with Bot(sim.token, session=session) as bot:
        await sends_and_changes(sim, bot)
        await files_and_albums(sim, bot)
        await refusals(sim, bot)
        await everything_is_read(sim, bot)
        await a_dispatcher_polls(sim, bot)


async def sends_and_changes(sim: TelegramSim, bot: Any) -> None:
    from aiogram.types import BotCommand, BotCommandScopeAllPrivateChats, ReactionTypeEmoji, ReplyParameters

    alice = sim.user("Alice")
    chat = sim.private(alice)
    asked = alice.send(chat, "Tea?")
    assert (await bot.get_me()).username == "tertulia_bot"
    await bot.send_chat_action(chat.id, "typing")
    await bot.send_message_draft(chat_id=chat.id, draft_id=1, text="Ye", can_stop=True)
    reply = ReplyParameters(message_id=asked.id, quote="Tea")
    sent = await bot.send_message(chat.id, "<b>Yes</b> &amp; milk", parse_mode="HTML", reply_parameters=reply)
    edited = await bot.edit_message_text("*No*", chat_id=chat.id, message_id=sent.message_id, parse_mode="MarkdownV2")
    await bot.set_message_reaction(chat.id, asked.id, reaction=[ReactionTypeEmoji(emoji="👍")])
    commands = [BotCommand(command="help", description="Help")]
    scope = BotCommandScopeAllPrivateChats()
    await bot.set_my_commands(commands, scope=scope, language_code="uk")

    assert (sent.text, sent.html_text, sent.quote.text) == ("Yes & milk", "<b>Yes</b> &amp; milk", "Tea")
    assert (edited.html_text, edited.reply_to_message.text) == ("<b>No</b>", "Tea?")
    (command,) = await bot.get_my_commands(scope=scope, language_code="uk")
    assert command.model_dump() == commands[0].model_dump()
    assert (await bot.get_chat(chat.id)).first_name == "Alice"
    assert (await bot.get_chat_member(chat.id, alice.id)).status == "member"
    assert await bot.delete_message(chat.id, sent.message_id)
    assert chat.texts == ["Tea?"]
    assert [draft.text for draft in sim.drafts] == ["Ye"]


async def files_and_albums(sim: TelegramSim, bot: Any) -> None:
    from aiogram.types import BufferedInputFile, InputMediaPhoto

    chat = sim.private(sim.user("Bob"))
    photos = [InputMediaPhoto(media=BufferedInputFile(image(shade=shade), "a.png")) for shade in (1, 2)]
    album = await bot.send_media_group(chat.id, photos)
    document = await bot.send_document(chat.id, BufferedInputFile(b"words", "a.txt"), caption="read")
    downloaded = await bot.download(document.document)

    assert len({message.media_group_id for message in album}) == 1
    assert (document.document.file_name, document.caption) == ("a.txt", "read")
    assert downloaded.read() == b"words"


async def refusals(sim: TelegramSim, bot: Any) -> None:
    from aiogram import exceptions

    dora = sim.user("Dora")
    chat, group = sim.private(dora), sim.group("G", [dora])

    async def refused(number: int, text: str = "x", **params: Any) -> tuple[type[Exception], str, Any]:
        try:
            await bot.send_message(number, text, **params)
        except exceptions.TelegramAPIError as error:
            wait = getattr(error, "retry_after", None) or getattr(error, "migrate_to_chat_id", None)
            return type(error), getattr(error, "message", ""), wait
        raise AssertionError("not refused")

    sim.fail(429, retry_after=7)
    assert (await refused(chat.id))[::2] == (exceptions.TelegramRetryAfter, 7)
    sim.fail("request lost")
    assert (await refused(chat.id))[0] == exceptions.TelegramNetworkError
    sim.fail(500)
    assert (await refused(chat.id))[0] == exceptions.TelegramServerError
    dora.block_bot(chat)
    assert (await refused(chat.id))[0] == exceptions.TelegramForbiddenError
    new = group.migrate()
    assert (await refused(group.id))[::2] == (exceptions.TelegramMigrateToChat, new.id)
    assert (await refused(chat.id, "a *b", parse_mode="MarkdownV2"))[:2] == (
        exceptions.TelegramBadRequest,
        "Bad Request: can't parse entities: Can't find end of Bold entity at byte offset 2",
    )


async def everything_is_read(sim: TelegramSim, bot: Any) -> None:
    from aiogram.types import Update

    pending = await bot.get_updates(allowed_updates=list(Update.model_fields)[1:])
    do_everything(sim)
    updates = await bot.get_updates(offset=pending[-1].update_id + 1)

    assert len(updates) == sim.bot.pending
    kinds = {update.event_type for update in updates}
    assert kinds == {
        *("message", "edited_message", "channel_post", "my_chat_member", "chat_member", "message_reaction"),
    }
    contents = {str(update.message.content_type.value) for update in updates if update.message}
    assert contents >= {
        *("text", "photo", "document", "sticker", "voice", "audio", "video", "video_note", "animation", "location"),
        *("contact", "poll", "checklist", "dice", "story", "new_chat_members", "left_chat_member"),
        *("forum_topic_created", "forum_topic_closed", "migrate_to_chat_id", "migrate_from_chat_id"),
    }


async def a_dispatcher_polls(sim: TelegramSim, bot: Any) -> None:
    from aiogram import Dispatcher
    from aiogram.types import Message

    dispatcher = Dispatcher()

    @dispatcher.message()
    async def echo(message: Message) -> None:
        if message.text == "echo this":
            await message.reply(message.text)

    eve = sim.user("Eve")
    chat = sim.private(eve)
    polling = asyncio.create_task(dispatcher.start_polling(bot, handle_signals=False, close_bot_session=False))
    eve.send(chat, "echo this")
    await sim.until(lambda: len(chat.messages) == 2)
    await dispatcher.stop_polling()
    await polling

    assert chat.texts == ["echo this", "echo this"]
    assert chat.messages[1].reply_to == chat.messages[0].id
