"""The methods of the Bot API by name."""

from collections.abc import Callable
from typing import Any

from tertulia.sim.errors import Wire
from tertulia.sim.telegram.access import find_chat
from tertulia.sim.telegram.accounts import BotAccount
from tertulia.sim.telegram.arguments import Arguments
from tertulia.sim.telegram.commands import (
    answer_callback_query,
    delete_my_commands,
    get_my_commands,
    set_my_commands,
)
from tertulia.sim.telegram.contents import KINDS
from tertulia.sim.telegram.media import get_file, send_file, send_media_group
from tertulia.sim.telegram.refusals import refused
from tertulia.sim.telegram.rendering import files_shown, member_shown
from tertulia.sim.telegram.sending import (
    Activity,
    delete_message,
    delete_messages,
    edit_message_caption,
    edit_message_reply_markup,
    edit_message_text,
    send_chat_action,
    send_message,
    send_message_draft,
    set_message_reaction,
)
from tertulia.sim.telegram.world import World

Method = Callable[[World, Activity, BotAccount, Arguments], Any]


def get_me(world: World, activity: Activity, bot: BotAccount, arguments: Arguments) -> Wire:
    return bot.me()


def get_chat(world: World, activity: Activity, bot: BotAccount, arguments: Arguments) -> Wire:
    chat = find_chat(world, bot, arguments.text("chat_id"), need="read")
    if chat.type == "private" and not chat.is_started:
        raise refused("chat")
    limits = {"accent_color_id": 0, "max_reaction_count": 11}
    gifts = dict.fromkeys(("unlimited_gifts", "limited_gifts", "unique_gifts", "premium_subscription"), False)
    return chat.chat() | limits | {"accepted_gift_types": gifts | {"gifts_from_channels": False}}


def get_chat_member(world: World, activity: Activity, bot: BotAccount, arguments: Arguments) -> Wire:
    number = arguments.integer("user_id")
    if number <= 0:
        raise refused("user-id")
    chat = find_chat(world, bot, arguments.text("chat_id"), need="members")
    account = world.accounts.get(number)
    if account is None:
        raise refused("user")
    if chat.type == "private":
        return member_shown(account, "member")
    return member_shown(account, chat.members.get(number, "left"))


def get_chat_administrators(world: World, activity: Activity, bot: BotAccount, arguments: Arguments) -> list[Wire]:
    chat = find_chat(world, bot, arguments.text("chat_id"), need="members")
    if chat.type == "private":
        raise refused("member-list")
    members = [(world.accounts[number], status) for number, status in chat.members.items()]
    return [
        member_shown(account, status)
        for account, status in members
        if status in ("creator", "administrator") and (not account.is_bot or account.id == bot.id)
    ]


def get_chat_member_count(world: World, activity: Activity, bot: BotAccount, arguments: Arguments) -> int:
    chat = find_chat(world, bot, arguments.text("chat_id"), need="members")
    return 2 if chat.type == "private" else sum(chat.is_member(number) for number in chat.members)


def leave_chat(world: World, activity: Activity, bot: BotAccount, arguments: Arguments) -> bool:
    chat = find_chat(world, bot, arguments.text("chat_id"), need="read")
    if chat.type == "private":
        raise refused("leave-private")
    world.set_status(chat, bot, "left", bot)
    return True


def get_sticker_set(world: World, activity: Activity, bot: BotAccount, arguments: Arguments) -> Wire:
    """Return a set of those stickers that somebody has sent."""
    name = arguments.text("name")
    sent = [message.content.get("sticker") for chat in world.chats() for message in chat.messages.values()]
    found = {one["file"]: one for one in sent if one is not None and one.get("set_name") == name}
    if not found:
        raise refused("sticker-set")
    stickers = [files_shown(world, bot, sticker) for sticker in found.values()]
    return {"name": name, "title": name, "sticker_type": "regular", "stickers": stickers}


def _send_kind(kind: str) -> Method:
    def send(world: World, activity: Activity, bot: BotAccount, arguments: Arguments) -> Wire:
        return send_file(world, activity, bot, kind, arguments)

    return send


METHODS: dict[str, Method] = {
    "getme": get_me,
    "sendmessage": send_message,
    "editmessagetext": edit_message_text,
    "editmessagecaption": edit_message_caption,
    "editmessagereplymarkup": edit_message_reply_markup,
    "deletemessage": delete_message,
    "deletemessages": delete_messages,
    "sendchataction": send_chat_action,
    "sendmessagedraft": send_message_draft,
    "setmessagereaction": set_message_reaction,
    "sendmediagroup": send_media_group,
    "getfile": get_file,
    "getstickerset": get_sticker_set,
    "getchat": get_chat,
    "getchatmember": get_chat_member,
    "getchatadministrators": get_chat_administrators,
    "getchatmembercount": get_chat_member_count,
    "leavechat": leave_chat,
    "setmycommands": set_my_commands,
    "getmycommands": get_my_commands,
    "deletemycommands": delete_my_commands,
    "answercallbackquery": answer_callback_query,
    **{f"send{kind.replace('_', '')}": _send_kind(kind) for kind in KINDS},
}
POSTS = frozenset(
    name for name in METHODS if name.startswith(("send", "edit")) and name not in ("sendchataction", "sendmessagedraft")
)
