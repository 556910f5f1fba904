"""The people, bots and chats of a simulated Telegram, and what was said there."""

from itertools import count
from typing import Any, Literal

from msgspec import Struct, field

from tertulia.sim.errors import Wire
from tertulia.sim.telegram.queue import UpdateQueue

Status = Literal["creator", "administrator", "member", "restricted", "left", "kicked"]
IN_CHAT = ("creator", "administrator", "member", "restricted")

FIRST_CHANNEL = -1_001_000_000_000
GROUP_ANONYMOUS_BOT = 1_087_968_824
CHANNEL_BOT = 136_817_688
TELEGRAM = 777_000


class Account(Struct, kw_only=True, eq=False):
    """A person or a bot."""

    id: int
    first_name: str
    last_name: str | None = None
    username: str | None = None
    language_code: str | None = None
    is_bot: bool = False
    is_deactivated: bool = False

    def user(self) -> Wire:
        """Return the account as a `User`."""
        optional = {"last_name": self.last_name, "username": self.username, "language_code": self.language_code}
        return {"id": self.id, "is_bot": self.is_bot, "first_name": self.first_name} | _given(optional)


class BotAccount(Account, kw_only=True, eq=False):
    """A bot with its token and its updates."""

    token: str
    updates: UpdateQueue
    is_bot: bool = True
    privacy: bool = False  # hears only what is meant for it, unless it is an administrator
    hears_bots: bool = True  # bot-to-bot mode
    has_topics: bool = False  # in private chats
    is_logged_out: bool = False
    commands: dict[tuple[str, str], list[Wire]] = field(default_factory=dict)  # by scope and language

    def me(self) -> Wire:
        """Return the bot as `getMe` does."""
        return self.user() | {
            "can_join_groups": True,
            "can_read_all_group_messages": not self.privacy,
            "supports_inline_queries": False,
            "can_connect_to_business": False,
            "has_main_web_app": False,
            "has_topics_enabled": self.has_topics,
            "allows_users_to_create_topics": False,
        }


class Message(Struct, kw_only=True, eq=False):
    """A message. *content* is what a `Message` of the Bot API holds besides who, where and when."""

    id: int
    date: int
    sender: int | None  # an account; None in a channel
    content: Wire
    author: int | None = None  # the bot that posted it, also in a channel
    sender_chat: int | None = None
    topic: int | None = None
    reply_to: int | None = None
    reply_markup: Wire | None = None
    edit_date: int | None = None
    extra: Wire = field(default_factory=dict)  # forward_origin, quote, external_reply, media_group_id …
    edits: list[Wire] = field(default_factory=list)  # former contents, oldest first
    reactions: dict[int, list[Wire]] = field(default_factory=dict)  # by account

    @property
    def text(self) -> str:
        """The text or the caption."""
        return str(self.content.get("text", self.content.get("caption", "")))

    @property
    def entities(self) -> list[Wire]:
        """The entities of the text or the caption."""
        return list(self.content.get("entities") or self.content.get("caption_entities") or [])


class Topic(Struct, kw_only=True, eq=False):
    """A topic of a forum; its id is the id of the message that made it."""

    id: int
    name: str
    is_closed: bool = False


class Chat(Struct, kw_only=True, eq=False):
    """A private chat of a person and a bot, a group, a supergroup or a channel."""

    id: int
    type: Literal["private", "group", "supergroup", "channel"]
    title: str = ""
    username: str | None = None
    is_forum: bool = False
    members: dict[int, Status] = field(default_factory=dict)
    messages: dict[int, Message] = field(default_factory=dict)
    deleted: dict[int, Message] = field(default_factory=dict)
    topics: dict[int, Topic] = field(default_factory=dict)
    permissions: dict[str, bool] = field(default_factory=dict)  # can_send_messages … that are not given
    upgraded_to: int | None = None
    is_deleted: bool = False
    is_started: bool = False  # a private chat: the person wrote to the bot
    is_blocked: bool = False  # a private chat: the person blocked the bot
    person: Account | None = None
    bot: BotAccount | None = None
    ids: Any = field(default_factory=lambda: count(1))

    def is_member(self, account: int) -> bool:
        return self.members.get(account, "left") in IN_CHAT

    def is_administrator(self, account: int) -> bool:
        return self.members.get(account) in ("creator", "administrator")

    def chat(self) -> Wire:
        """Return the chat as a `Chat` of a message."""
        if self.person is not None:
            known = {"last_name": self.person.last_name, "username": self.person.username}
            return {"id": self.id, "type": "private", "first_name": self.person.first_name} | _given(known)
        optional = {"username": self.username, "is_forum": self.is_forum or None}
        return {"id": self.id, "type": self.type, "title": self.title} | _given(optional)

    def latest(self) -> Message | None:
        """Return the newest message that is not deleted."""
        return self.messages[max(self.messages)] if self.messages else None


def _given(values: Wire) -> Wire:
    return {name: value for name, value in values.items() if value is not None}
