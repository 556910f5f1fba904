"""Messages and members as the Bot API shows them to a bot."""

from typing import TYPE_CHECKING, Any

from tertulia.sim.errors import Wire
from tertulia.sim.telegram.accounts import (
    CHANNEL_BOT,
    GROUP_ANONYMOUS_BOT,
    TELEGRAM,
    Account,
    BotAccount,
    Chat,
    Message,
    Status,
)

if TYPE_CHECKING:
    from tertulia.sim.telegram.world import World

SERVICE_ACCOUNTS: dict[int, Wire] = {
    GROUP_ANONYMOUS_BOT: {
        "id": GROUP_ANONYMOUS_BOT,
        "is_bot": True,
        "first_name": "Group",
        "username": "GroupAnonymousBot",
    },
    CHANNEL_BOT: {"id": CHANNEL_BOT, "is_bot": True, "first_name": "Channel", "username": "Channel_Bot"},
    TELEGRAM: {"id": TELEGRAM, "is_bot": False, "first_name": "Telegram"},
}

SERVICE_KINDS = frozenset(
    "new_chat_members left_chat_member new_chat_title group_chat_created migrate_to_chat_id migrate_from_chat_id "
    "pinned_message forum_topic_created forum_topic_closed forum_topic_reopened forum_topic_edited".split()
)
ADMINISTRATOR = {
    "can_be_edited": False,
    "can_manage_chat": True,
    "can_change_info": True,
    "can_delete_messages": True,
    "can_invite_users": True,
    "can_restrict_members": True,
    "can_pin_messages": True,
    "can_manage_topics": False,
    "can_promote_members": False,
    "can_manage_video_chats": True,
    "can_send_welcome_messages": False,
    "can_post_stories": False,
    "can_edit_stories": False,
    "can_delete_stories": False,
    "is_anonymous": False,
}


def shown(world: "World", chat: Chat, message: Message, viewer: BotAccount, *, reply: bool = True) -> Wire:
    """Return a message as *viewer* gets it; what a quoted message quotes is left out."""
    result: Wire = {"message_id": message.id}
    if message.sender is not None:
        result["from"] = account_shown(world, message.sender)
    if message.sender_chat is not None:
        result["sender_chat"] = chat_shown(world, viewer, message.sender_chat)
    result |= {"chat": chat.chat(), "date": message.date}
    if message.edit_date is not None:
        result["edit_date"] = message.edit_date
    result |= thread_shown(chat, message)
    quoted = chat.messages.get(message.reply_to or message.topic or 0)
    if reply and quoted is not None and quoted is not message:
        result["reply_to_message"] = shown(world, chat, quoted, viewer, reply=False)
    result |= files_shown(world, viewer, message.extra)
    result |= files_shown(world, viewer, message.content)
    if message.reply_markup is not None:
        result["reply_markup"] = message.reply_markup
    return result


def thread_shown(chat: Chat, message: Message) -> Wire:
    """Return the thread of a message: its topic, or the first message of a chain of replies in a supergroup."""
    if message.topic is not None:
        return {"message_thread_id": message.topic, "is_topic_message": True}
    if chat.type != "supergroup" or chat.is_forum or message.reply_to is None:
        return {}
    root = message
    while root.reply_to is not None and root.reply_to in chat.messages:
        root = chat.messages[root.reply_to]
    return {} if root is message else {"message_thread_id": root.id}


def account_shown(world: "World", number: int) -> Wire:
    """Return an account as a `User`."""
    return SERVICE_ACCOUNTS[number] if number in SERVICE_ACCOUNTS else world.accounts[number].user()


def chat_shown(world: "World", viewer: BotAccount, number: int) -> Wire:
    """Return a chat as a `Chat`."""
    chat = world.chat_of(viewer, number)
    return chat.chat() if chat is not None else {"id": number, "type": "channel", "title": "?"}


def member_shown(account: Account, status: Status) -> Wire:
    """Return somebody as a `ChatMember`."""
    member: Wire = {"user": account.user(), "status": status}
    match status:
        case "creator":
            return member | {"is_anonymous": False}
        case "administrator":
            return member | ADMINISTRATOR
        case "kicked":
            return member | {"until_date": 0}
        case _:
            return member


def is_meant_for(world: "World", chat: Chat, message: Message, bot: BotAccount) -> bool:
    """Tell whether a bot gets a message, by its privacy mode and by what it hears of other bots."""
    sender = world.accounts.get(message.sender or 0)
    if isinstance(sender, BotAccount) and not bot.hears_bots:
        return False
    if chat.type in ("private", "channel") or not bot.privacy or chat.is_administrator(bot.id):
        return True
    if SERVICE_KINDS & message.content.keys():
        return True
    quoted = chat.messages.get(message.reply_to or 0)
    if quoted is not None and quoted.sender == bot.id:
        return True
    name = f"@{bot.username}".lower()
    words = message.text.lower().split()
    is_command = bool(words) and words[0].startswith("/") and ("@" not in words[0] or words[0].endswith(name))
    return is_command or name in message.text.lower()


def files_shown(world: "World", viewer: BotAccount, value: Any) -> Any:
    """Put the ids of files that *viewer* may use in the place of their numbers."""
    if isinstance(value, list):
        return [files_shown(world, viewer, one) for one in value]
    if not isinstance(value, dict):
        return value
    result = {name: files_shown(world, viewer, one) for name, one in value.items() if name != "file"}
    return result | world.files.shown(value["file"], viewer.id) if isinstance(value.get("file"), int) else result
