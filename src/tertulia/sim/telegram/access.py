"""What a bot may see and write: chats, the messages that are replied to, and threads, in the order of the server."""

from typing import Any, Literal

from msgspec import Struct

from tertulia.sim.errors import Wire
from tertulia.sim.telegram.accounts import BotAccount, Chat, Message
from tertulia.sim.telegram.arguments import Arguments
from tertulia.sim.telegram.refusals import refused
from tertulia.sim.telegram.world import World

Need = Literal["read", "members", "edit", "write"]
GENERAL = 1


class Target(Struct, kw_only=True):
    """Where a message goes: its chat, its topic and what it replies to."""

    chat: Chat
    topic: int | None = None
    reply_to: int | None = None
    extra: Wire = {}  # a quote, a reply to another chat


def find_chat(world: World, bot: BotAccount, given: str, *, need: Need = "write") -> Chat:
    """Return a chat that the bot may use as it needs."""
    if not given:
        raise refused("chat-id")
    chat = _chat_by(world, bot, given)
    if chat.person is not None:
        if chat.person.is_deactivated and need in ("edit", "write"):
            raise refused("deactivated")
    elif chat.type == "group":
        _check_group(chat, bot, need)
    else:
        if chat.members.get(bot.id) == "kicked":
            raise refused("kicked", kind=chat.type)
        is_open = chat.username is not None and need not in ("edit", "write")
        if not chat.is_member(bot.id) and not is_open:
            raise refused("not-member", kind=chat.type)
    return chat


def _check_group(chat: Chat, bot: BotAccount, need: Need) -> None:
    is_active = chat.upgraded_to is None and not chat.is_deleted
    if not is_active and need in ("members", "write"):
        if chat.upgraded_to is not None:
            raise refused("upgraded", {"migrate_to_chat_id": chat.upgraded_to})
        raise refused("group-deleted")
    if is_active and need != "read":
        if chat.members.get(bot.id) == "kicked":
            raise refused("kicked", kind="group")
        if not chat.is_member(bot.id):
            raise refused("not-member", kind="group")


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
    person = world.accounts.get(number)
    if chat is None and person is None:
        raise refused("chat")
    return chat or Chat(id=number, type="private", person=person, bot=bot)


def check_posting(world: World, chat: Chat, bot: BotAccount, what: str = "text messages") -> None:
    """Refuse what Telegram itself refuses, after everything else was checked: rights, blocks, too many messages."""
    check_rights(chat, bot, what)
    if world.flood is not None:
        world.flood.admit(bot.id, chat.id)


def check_rights(chat: Chat, bot: BotAccount, what: str = "text messages") -> None:
    """Refuse to write where the bot may not."""
    if chat.person is not None:
        if chat.person.is_bot:
            raise refused("to-bot")
        if chat.is_blocked:
            raise refused("blocked")
        if not chat.is_started:
            raise refused("not-started")
    if chat.type == "channel" and not chat.is_administrator(bot.id):
        raise refused("channel-rights")
    permission = _PERMISSIONS.get(what, "can_send_messages")
    if not chat.is_administrator(bot.id) and chat.permissions.get(permission) is False:
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
    """Return where a message goes: its chat, then what it replies to, then its topic."""
    wanted = _reply_parameters(arguments)
    chat = find_chat(world, bot, arguments.text("chat_id"))
    source, quoted = _quoted(world, bot, chat, wanted)
    thread = arguments.integer("message_thread_id")
    topic = find_topic(chat, bot, thread)
    target = Target(chat=chat, topic=topic)
    if quoted is None:
        return target
    target.extra = _quote(wanted, quoted)
    if source is not chat:
        target.extra |= {"external_reply": external_reply(world, source, quoted)}
        return target
    target.reply_to = quoted.id
    if topic is None and not thread:
        target.topic = quoted.topic
        _check_open(chat, bot, quoted.topic)
    return target


def external_reply(world: World, source: Chat, quoted: Message) -> Wire:
    """Return a message of another chat as an `ExternalReplyInfo`; what it holds is left out."""
    author = world.accounts.get(quoted.sender or 0)
    origin: Wire = {"type": "hidden_user", "sender_user_name": source.title, "date": quoted.date}
    if author is not None:
        origin = {"type": "user", "sender_user": author.user(), "date": quoted.date}
    if source.person is not None:
        return {"origin": origin}
    return {"origin": origin, "chat": source.chat(), "message_id": quoted.id}


def _quoted(world: World, bot: BotAccount, chat: Chat, wanted: Wire) -> tuple[Chat, Message | None]:
    if wanted["message_id"] <= 0:
        return chat, None
    source = chat
    if wanted.get("chat_id"):
        source = find_chat(world, bot, str(wanted["chat_id"]), need="read")
    quoted = source.messages.get(wanted["message_id"])
    if quoted is None and wanted.get("allow_sending_without_reply") is not True:
        raise refused("reply")
    return source, quoted


def find_topic(chat: Chat, bot: BotAccount, number: int) -> int | None:
    """Return the topic that a call names; None for none. General has no number of its own."""
    if number <= 0:
        return None
    if chat.type in ("group", "channel") or (chat.is_forum and number == GENERAL):
        raise refused("thread")
    if not chat.is_forum and chat.type == "supergroup":
        if number not in chat.messages:
            raise refused("thread")
        return None  # a thread of replies
    if number not in chat.topics:
        raise refused("thread")
    _check_open(chat, bot, number)
    return number


def _check_open(chat: Chat, bot: BotAccount, topic: int | None) -> None:
    if topic in chat.topics and chat.topics[topic].is_closed and not chat.is_administrator(bot.id):
        raise refused("topic-closed")


def find_message(chat: Chat, arguments: Arguments, rule: str) -> Message:
    """Return the message that a call names."""
    message = chat.messages.get(arguments.integer("message_id"))
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
    number = str(given.get("message_id", 0))
    return given | {"message_id": int(number) if number.isdigit() else 0}


def _quote(wanted: Wire, quoted: Message) -> Wire:
    text = wanted.get("quote")
    if not text:
        return {}
    position = quoted.text.find(str(text))
    if position < 0:
        raise refused("quote")
    units = len(quoted.text[:position].encode("utf-16-le")) // 2
    return {"quote": {"text": str(text), "position": units, "is_manual": True}}
