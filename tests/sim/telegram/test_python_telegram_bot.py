"""Real python-telegram-bot polls, sends, edits, downloads and meets refusals, and reads every update."""

import pytest

from sim.telegram.everything import do_everything
from tertulia.sim.telegram import TelegramSim, image


async def test_python_telegram_bot(sim: TelegramSim, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTB_TIMEDELTA", "true")  # else it warns of what it will do by itself
    import telegram
    from telegram.error import BadRequest, ChatMigrated, Forbidden, NetworkError, RetryAfter

    alice = sim.user("Alice")
    chat, group = sim.private(alice), sim.group("G", [alice])
    asked = alice.send(chat, "Tea?")
    async with telegram.Bot(sim.token, base_url=f"{sim.url}/bot", base_file_url=f"{sim.url}/file/bot") as bot:
        sent = await bot.send_message(chat.id, "<i>Yes</i>", parse_mode="HTML", reply_to_message_id=asked.id)
        edited = await bot.edit_message_text("No", chat_id=chat.id, message_id=sent.message_id)
        album = await bot.send_media_group(chat.id, [telegram.InputMediaPhoto(image()) for _ in range(2)])
        document = await bot.send_document(chat.id, b"words", filename="a.txt")
        assert document.document is not None
        assert isinstance(edited, telegram.Message)
        downloaded = await (await bot.get_file(document.document.file_id)).download_as_bytearray()
        assert (sent.text_html, edited.text, len({one.media_group_id for one in album})) == ("<i>Yes</i>", "No", 1)
        assert (document.document.file_name, bytes(downloaded)) == ("a.txt", b"words")

        new = group.migrate()
        sim.fail("busy", retry_after=3)
        with pytest.raises(RetryAfter, match="Retry in 0:00:03"):
            await bot.send_message(chat.id, "x")
        with pytest.raises(ChatMigrated, match=str(new.id)):
            await bot.send_message(group.id, "x")
        with pytest.raises(BadRequest, match="Message is not modified"):
            await bot.edit_message_text("No", chat_id=chat.id, message_id=sent.message_id)
        sim.fail("receipt lost")
        with pytest.raises(NetworkError):
            await bot.send_message(chat.id, "posted")
        alice.block_bot(chat)
        with pytest.raises(Forbidden, match="bot was blocked by the user"):
            await bot.send_message(chat.id, "x")
        assert chat.texts[-1] == "posted"

        pending = await bot.get_updates(allowed_updates=telegram.Update.ALL_TYPES)
        do_everything(sim)
        updates = await bot.get_updates(offset=pending[-1].update_id + 1)
        assert len(updates) == sim.bot.pending
        assert all(update.effective_chat for update in updates)
