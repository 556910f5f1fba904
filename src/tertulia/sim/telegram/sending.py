"""The methods that post, change and delete messages, and those that show activity."""

from typing import Any

from msgspec import Struct

from tertulia.sim.errors import Wire
from tertulia.sim.telegram.access import (
    Target,
    check_posting,
    check_rights,
    find_chat,
    find_message,
    find_target,
    find_topic,
)
from tertulia.sim.telegram.accounts import BotAccount, Chat, Message
from tertulia.sim.telegram.arguments import Arguments
from tertulia.sim.telegram.entities import fixed
from tertulia.sim.telegram.refusals import refused
from tertulia.sim.telegram.rendering import shown
from tertulia.sim.telegram.texts import (
    TEXT_LIMIT,
    Formatted,
    caption,
    caption_content,
    entities_given,
    message_text,
    parsed,
    text_content,
)
from tertulia.sim.telegram.world import World

ACTIONS = frozenset(
    "cancel typing record_video upload_video record_video_note upload_video_note record_voice record_audio "
    "upload_voice upload_audio upload_photo upload_document find_location pick_up_location choose_sticker".split()
)
DRAFT_SECONDS = 30
FIRST_BUTTON_DATA, MOST_BUTTON_DATA = 1, 64
MOST_DELETED = 100
DELETABLE_SECONDS = 48 * 3600


class Action(Struct, frozen=True, kw_only=True):
    """A `sendChatAction`: typing and the like."""

    bot: int
    chat: int
    topic: int | None
    action: str
    date: float


class Draft(Struct, frozen=True, kw_only=True):
    """A `sendMessageDraft`: what a person sees of a message in the making."""

    bot: int
    chat: int
    topic: int | None
    draft_id: int
    text: str
    entities: list[Wire]
    date: float
    can_stop: bool = False
    keep_on_stop: bool = False

    def is_shown(self, now: float) -> bool:
        return now < self.date + DRAFT_SECONDS


class Activity:
    """What bots showed and did not post: actions and drafts, all of them in order."""

    def __init__(self) -> None:
        self.actions: list[Action] = []
        self.drafts: list[Draft] = []
        self.visible: dict[tuple[int, int], Draft] = {}  # by bot and chat
        self.queries: dict[str, int] = {}  # buttons that were pressed, and the bot that should answer
        self.answers: dict[str, str] = {}  # what people were told, by query


def post(world: World, activity: Activity, bot: BotAccount, target: Target, content: Wire, **extra: Any) -> Message:
    """Post a message of a bot; its draft in the chat disappears."""
    chat = target.chat
    message = Message(
        id=0,
        date=world.now(),
        sender=None if chat.type == "channel" else bot.id,
        sender_chat=chat.id if chat.type == "channel" else None,
        author=bot.id,
        content=content,
        topic=target.topic,
        reply_to=target.reply_to,
        reply_markup=extra.pop("reply_markup", None),
        extra=target.extra | extra,
    )
    activity.visible.pop((bot.id, chat.id), None)
    return world.post(chat, message)


def send_message(world: World, activity: Activity, bot: BotAccount, arguments: Arguments) -> Wire:
    text = message_text(world, arguments)
    markup = reply_markup(arguments)
    target = find_target(world, bot, arguments)
    content = text_content(world, text)
    check_posting(world, target.chat, bot)
    message = post(world, activity, bot, target, content, reply_markup=markup)
    return shown(world, target.chat, message, bot)


def edit_message_text(world: World, activity: Activity, bot: BotAccount, arguments: Arguments) -> Wire:
    text = message_text(world, arguments)
    markup = reply_markup(arguments)
    chat, message = _editable(world, bot, arguments)
    if "text" not in message.content:
        raise refused("no-text")
    return _edit(world, bot, chat, message, text_content(world, text), markup)


def edit_message_caption(world: World, activity: Activity, bot: BotAccount, arguments: Arguments) -> Wire:
    text = caption(world, arguments)
    markup = reply_markup(arguments)
    chat, message = _editable(world, bot, arguments)
    if "text" in message.content:
        raise refused("no-caption")
    kept = {name: value for name, value in message.content.items() if not name.startswith("caption")}
    return _edit(world, bot, chat, message, kept | caption_content(world, text), markup)


def edit_message_reply_markup(world: World, activity: Activity, bot: BotAccount, arguments: Arguments) -> Wire:
    markup = reply_markup(arguments)
    chat, message = _editable(world, bot, arguments)
    return _edit(world, bot, chat, message, message.content, markup)


def _editable(world: World, bot: BotAccount, arguments: Arguments) -> tuple[Chat, Message]:
    if not arguments.text("chat_id") and not arguments.integer("message_id"):
        raise refused("message-id")
    chat = find_chat(world, bot, arguments.text("chat_id"), need="edit")
    message = find_message(chat, arguments, "edit")
    if message.author != bot.id and not (chat.type == "channel" and chat.is_administrator(bot.id)):
        raise refused("edit-denied")
    return chat, message


def _edit(world: World, bot: BotAccount, chat: Chat, message: Message, content: Wire, markup: Wire | None) -> Wire:
    if content == message.content and markup == message.reply_markup:
        raise refused("same")
    check_posting(world, chat, bot)
    message.reply_markup = markup
    world.edit(chat, message, content, silently=chat.type != "channel")
    return shown(world, chat, message, bot)


def delete_message(world: World, activity: Activity, bot: BotAccount, arguments: Arguments) -> bool:
    chat = find_chat(world, bot, arguments.text("chat_id"))
    message = find_message(chat, arguments, "delete")
    if not _may_delete(world, chat, message, bot):
        raise refused("delete-denied")
    world.delete(chat, message.id)
    return True


def delete_messages(world: World, activity: Activity, bot: BotAccount, arguments: Arguments) -> bool:
    chat = find_chat(world, bot, arguments.text("chat_id"))
    numbers = arguments.json("message_ids", "message-ids-json")
    if numbers is None:
        raise refused("message-ids")
    if not isinstance(numbers, list):
        raise refused("message-ids-array")
    if len(numbers) > MOST_DELETED:
        raise refused("message-ids-many")
    for number in numbers:
        message = chat.messages.get(number) if isinstance(number, int) else None
        if message is not None and _may_delete(world, chat, message, bot):
            world.delete(chat, message.id)
    return True


def _may_delete(world: World, chat: Chat, message: Message, bot: BotAccount) -> bool:
    if chat.type != "private" and chat.is_administrator(bot.id):
        return True
    is_recent = world.now() - message.date < DELETABLE_SECONDS
    return is_recent and (message.author == bot.id or chat.type == "private")


def send_chat_action(world: World, activity: Activity, bot: BotAccount, arguments: Arguments) -> bool:
    action = arguments.text("action").lower()
    if action not in ACTIONS:
        raise refused("action")
    chat = find_chat(world, bot, arguments.text("chat_id"))
    topic = find_topic(chat, bot, arguments.integer("message_thread_id"))
    check_rights(chat, bot)
    shown_action = Action(bot=bot.id, chat=chat.id, topic=topic, action=action, date=world.clock())
    activity.actions.append(shown_action)
    return True


def send_message_draft(world: World, activity: Activity, bot: BotAccount, arguments: Arguments) -> bool:
    entities = entities_given(arguments, "entities")
    formatted = parsed(world, arguments.text("text"), arguments.text("parse_mode"), entities)
    chat = find_chat(world, bot, arguments.text("chat_id"))
    topic = find_topic(chat, bot, arguments.integer("message_thread_id"))
    draft_id = arguments.integer("draft_id")
    content = _draft_text(world, formatted)
    if not draft_id:
        raise refused("draft-id")
    if chat.type != "private":
        raise refused("draft-chat")
    check_rights(chat, bot)
    draft = Draft(
        bot=bot.id,
        chat=chat.id,
        topic=topic,
        draft_id=draft_id,
        text=content.get("text", ""),
        entities=content.get("entities", []),
        date=world.clock(),
        can_stop=arguments.flag("can_stop"),
        keep_on_stop=arguments.flag("keep_on_stop"),
    )
    activity.drafts.append(draft)
    activity.visible[bot.id, chat.id] = draft
    return True


def _draft_text(world: World, formatted: Formatted) -> Wire:
    text, _ = fixed(*formatted, allow_empty=True)
    if len(text) > TEXT_LIMIT:
        raise refused("text-long")
    return text_content(world, formatted) if text else {}


def set_message_reaction(world: World, activity: Activity, bot: BotAccount, arguments: Arguments) -> bool:
    given = arguments.json("reaction", "reaction-json") or []
    if not isinstance(given, list):
        raise refused("reaction-array")
    for one in given:
        if not isinstance(one, dict) or one.get("type") not in ("emoji", "custom_emoji", "paid"):
            raise refused("reaction-type", why="invalid reaction type specified")
    chat = find_chat(world, bot, arguments.text("chat_id"), need="read")
    message = find_message(chat, arguments, "react")
    if len(given) > 1:
        raise refused("reactions-many")
    if any(one.get("type") == "emoji" and one.get("emoji") not in REACTIONS for one in given):
        raise refused("reaction")
    message.reactions[bot.id] = given
    return True


def reply_markup(arguments: Arguments) -> Wire | None:
    """Return the keyboard of a call if it is one that stays with the message; refuse what is none."""
    given = arguments.json("reply_markup", "markup-json")
    if not arguments.text("reply_markup"):
        return None
    if not isinstance(given, dict):
        raise refused("markup-object")
    rows = given.get("inline_keyboard")
    if not isinstance(rows, list):
        return None
    if not all(isinstance(row, list) for row in rows):
        raise refused("markup-rows")
    for button in (button for row in rows for button in row):
        if not isinstance(button, dict) or "text" not in button:
            raise refused("markup-buttons", why='can\'t find field "text"')
        data = str(button.get("callback_data", "x")).encode()
        if not FIRST_BUTTON_DATA <= len(data) <= MOST_BUTTON_DATA:
            raise refused("button-data")
    return {"inline_keyboard": rows} if rows else None


REACTIONS = frozenset(
    "❤ 👍 👎 🔥 🥰 👏 😁 🤔 🤯 😱 🤬 😢 🎉 🤩 🤮 💩 🙏 👌 🕊 🤡 🥱 🥴 😍 🐳 ❤\u200d🔥 🌚 🌭 💯 🤣 ⚡ 🍌 🏆 💔 "
    "🤨 😐 🍓 🍾 💋 🖕 😈 😴 😭 🤓 👻 👨\u200d💻 👀 🎃 🙈 😇 😨 🤝 ✍ 🤗 🫡 🎅 🎄 ☃ 💅 🤪 🗿 🆒 💘 🙉 🦄 😘 💊 "
    "🙊 😎 👾 🤷\u200d♂ 🤷 🤷\u200d♀ 😡".split()
)
