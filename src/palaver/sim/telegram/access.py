"""What a bot may see and write: chats, threads and the messages that are replied to, in the order of the server."""

from typing import Any

from msgspec import Struct

from palaver.sim.errors import Wire
from palaver.sim.telegram.accounts import BotAccount, Chat, Message
from palaver.sim.telegram.arguments import Arguments
from palaver.sim.telegram.refusals import refused
from palaver.sim.telegram.world import World


class Target(Struct, kw_only=True):
    """Where a message goes: its chat, its topic and what it replies to."""

    chat: Chat
    topic: int | None = None
    reply_to: int | None = None
    quote: Wire | None = None


def find_chat(world: World, bot: BotAccount, given: str, *, write: bool = True) -> Chat:
    """Return a chat that the bot may read, or with *write* write to."""
    if not given:
        raise refused("chat-id")
    chat = _chat_by(world, bot, given)
    if chat.type == "private":
        return _private(chat, write=write)
    if chat.type == "group" and chat.upgraded_to is not None and write:
        raise refused("upgraded", {"migrate_to_chat_id": chat.upgraded_to})
    if chat.is_deleted and write:
        raise refused("group-deleted")
    if chat.members.get(bot.id) == "kicked":
        raise refused("kicked", kind=chat.type)
    if not chat.is_member(bot.id) and (write or chat.username is None):
        raise refused("not-member", kind=chat.type)
    return chat


def _chat_by(world: World, bot: BotAccount, given: str) -> Chat:
    if given.startswith("@"):
        found = world.chat_named(given[1:])
        if found is None:
            raise refused("chat")
        return found
    try:
        number = int(given)
    except ValueError:
        raise refused("chat") from None
    chat = world.chat_of(bot, number)
    if chat is not None:
        return chat
    person = world.accounts.get(number)
    if person is None:
        raise refused("chat")
    return Chat(id=number, type="private", person=person, bot=bot)


def _private(chat: Chat, *, write: bool) -> Chat:
    assert chat.person is not None  # noqa: S101 (a private chat has one)
    if write and chat.person.is_deactivated:
        raise refused("deactivated")
    return chat


def check_posting(chat: Chat, bot: BotAccount, what: str = "text messages") -> None:
    """Refuse what Telegram itself refuses, after everything was checked: blocks, rights."""
    if chat.person is not None:
        if chat.person.is_bot:
            raise refused("to-bot")
        if chat.is_blocked:
            raise refused("blocked")
        if not chat.is_started:
            raise refused("not-started")
    if chat.type == "channel" and not chat.is_administrator(bot.id):
        raise refused("channel-rights")
    if chat.is_administrator(bot.id):
        return
    permission = _PERMISSIONS.get(what, "can_send_messages")
    if chat.permissions.get("can_send_messages") is False and permission == "can_send_messages":
        raise refused("no-rights", what=what)
    if chat.permissions.get(permission) is False:
        raise refused("no-rights", what=what)


_PERMISSIONS = {
    "photos": "can_send_photos",
    "videos": "can_send_videos",
    "video notes": "can_send_video_notes",
    "voice notes": "can_send_voice_notes",
    "music": "can_send_audios",
    "documents": "can_send_documents",
    "stickers": "can_send_other_messages",
    "animations": "can_send_other_messages",
}


def find_target(world: World, bot: BotAccount, arguments: Arguments) -> Target:
    """Return where a message goes: chat, then topic, then reply, as the server checks them."""
    wanted = _reply_parameters(arguments)
    chat = find_chat(world, bot, arguments.text("chat_id"))
    topic = find_topic(chat, bot, arguments.integer("message_thread_id"))
    target = Target(chat=chat, topic=topic)
    if not wanted.get("message_id"):
        return target
    source = chat
    if "chat_id" in wanted:
        source = find_chat(world, bot, str(wanted["chat_id"]), write=False)
    quoted = source.messages.get(int(wanted["message_id"]))
    if quoted is None:
        if wanted.get("allow_sending_without_reply") is True:
            return target
        raise refused("reply")
    target.reply_to = quoted.id
    target.quote = _quote(wanted, quoted)
    if topic is None and chat.is_forum:
        target.topic = quoted.topic
    return target


def find_topic(chat: Chat, bot: BotAccount, number: int) -> int | None:
    """Return the topic that a call names; None for none."""
    if not number:
        return None
    if chat.type == "private":
        if number not in chat.topics:
            raise refused("thread")
        return number
    if not chat.is_forum:
        if chat.type == "supergroup" and number in chat.messages:
            return None
        raise refused("thread")
    topic = chat.topics.get(number)
    if topic is None:
        raise refused("thread")
    if topic.is_closed and not chat.is_administrator(bot.id):
        raise refused("topic-closed")
    return number


def find_message(chat: Chat, arguments: Arguments, rule: str) -> Message:
    """Return the message that a call names."""
    number = arguments.integer("message_id")
    if "message_id" not in arguments.given or number <= 0:
        raise refused("message-id")
    message = chat.messages.get(number)
    if message is None:
        raise refused(rule)
    return message


def _reply_parameters(arguments: Arguments) -> Wire:
    if not arguments.text("reply_parameters"):
        without = arguments.flag("allow_sending_without_reply")
        return {"message_id": arguments.integer("reply_to_message_id"), "allow_sending_without_reply": without}
    given: Any = arguments.json("reply_parameters", "reply-json")
    if not isinstance(given, dict):
        raise refused("reply-object")
    number = given.get("message_id", 0)
    return given | {"message_id": int(number) if str(number).lstrip("-").isdigit() else 0}


def _quote(wanted: Wire, quoted: Message) -> Wire | None:
    text = wanted.get("quote")
    if not text:
        return None
    position = quoted.text.find(str(text))
    if position < 0:
        raise refused("quote")
    units = len(quoted.text[:position].encode("utf-16-le")) // 2
    return {"text": str(text), "position": units, "is_manual": True}
