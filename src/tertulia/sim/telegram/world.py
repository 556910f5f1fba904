"""A simulated Telegram: its accounts, chats, messages and files, and the updates that bots get of them."""

from collections.abc import Callable, Iterable
from itertools import count
from typing import Literal

from tertulia.sim.errors import Wire
from tertulia.sim.telegram.accounts import (
    FIRST_CHANNEL,
    GROUP_ANONYMOUS_BOT,
    Account,
    BotAccount,
    Chat,
    Message,
    Status,
    Topic,
)
from tertulia.sim.telegram.files import Files
from tertulia.sim.telegram.flood import FloodControl
from tertulia.sim.telegram.queue import UpdateQueue
from tertulia.sim.telegram.rendering import is_meant_for, member_shown, shown

FIRST_PERSON = 1_001
FIRST_BOT = 7_000_000_001
FIRST_GROUP = -4_001
ALBUM_BASE = 13_000_000_000_000_000


class World:
    """Everything that exists; *changed* is called whenever a bot has a new update."""

    def __init__(
        self, clock: Callable[[], float], changed: Callable[[], None], flood: FloodControl | None = None
    ) -> None:
        self.clock = clock
        self.flood = flood
        self.accounts: dict[int, Account] = {}
        self.bots: dict[str, BotAccount] = {}  # by token
        self.files = Files()
        self._changed = changed
        self._chats: dict[tuple[int, int], Chat] = {}  # by bot, 0 unless private, and id
        self._people = count(FIRST_PERSON)
        self._bots = count(FIRST_BOT)
        self._groups = count(FIRST_GROUP, -1)
        self._channels = count(FIRST_CHANNEL - 1, -1)
        self._albums = count(ALBUM_BASE)

    def now(self) -> int:
        """Return the time in seconds since 1970."""
        return int(self.clock())

    def add_person(
        self, name: str, *, language_code: str | None, username: str | None, last_name: str | None
    ) -> Account:
        account = Account(
            id=next(self._people),
            first_name=name,
            last_name=last_name,
            username=username,
            language_code=language_code,
        )
        self.accounts[account.id] = account
        return account

    def add_bot(self, name: str, *, username: str, token: str | None = None, privacy: bool = False) -> BotAccount:
        number = int(token.partition(":")[0]) if token else next(self._bots)
        bot = BotAccount(
            id=number,
            first_name=name,
            username=username,
            token=token or f"{number}:SIM-{number % 9973:04}-tertulia",
            updates=UpdateQueue(self.clock, self._changed),
            privacy=privacy,
        )
        self.accounts[bot.id] = bot
        self.bots[bot.token] = bot
        return bot

    def add_group(
        self,
        title: str,
        members: Iterable[int],
        *,
        kind: Literal["group", "supergroup", "channel"],
        is_forum: bool = False,
        username: str | None = None,
    ) -> Chat:
        number = next(self._groups if kind == "group" else self._channels)
        statuses: dict[int, Status] = {}
        for index, member in enumerate(members):
            statuses[member] = "creator" if index == 0 else "member"
        chat = Chat(id=number, type=kind, title=title, username=username, is_forum=is_forum, members=statuses)
        if kind != "group":
            next(chat.ids)  # the first message says that it was created; in a forum it is the General topic
        self._chats[0, number] = chat
        return chat

    def private(self, person: Account, bot: BotAccount) -> Chat:
        """Return the private chat of a person and a bot; the person has pressed Start."""
        chat = self._chats.get((bot.id, person.id))
        if chat is None:
            chat = Chat(id=person.id, type="private", person=person, bot=bot, is_started=True)
            self._chats[bot.id, person.id] = chat
        return chat

    def chats(self) -> list[Chat]:
        return list(self._chats.values())

    def chat_of(self, bot: BotAccount, number: int) -> Chat | None:
        """Return a chat as *bot* knows it by its id."""
        return self._chats.get((bot.id, number)) or self._chats.get((0, number))

    def chat_named(self, username: str) -> Chat | None:
        named = (chat for chat in self._chats.values() if chat.username is not None and chat.type != "private")
        return next((chat for chat in named if (chat.username or "").lower() == username.lower()), None)

    def hearers(self, chat: Chat) -> list[BotAccount]:
        """Return the bots that are in a chat."""
        if chat.bot is not None:
            return [] if chat.is_blocked else [chat.bot]
        return [bot for bot in self.bots.values() if chat.is_member(bot.id) and not bot.is_logged_out]

    def new_album(self) -> str:
        return str(next(self._albums))

    def post(self, chat: Chat, message: Message) -> Message:
        """Add a message to a chat and tell the bots that hear it."""
        message.id = message.id or next(chat.ids)
        chat.messages[message.id] = message
        chat.is_started = True if chat.person is not None and message.sender == chat.person.id else chat.is_started
        self._publish(chat, message, "channel_post" if chat.type == "channel" else "message")
        return message

    def edit(self, chat: Chat, message: Message, content: Wire, *, silently: bool = False) -> None:
        """Change what a message holds and tell the bots, unless nothing changed."""
        if content == message.content:
            return
        message.edits.append(message.content)
        message.content = content
        message.edit_date = self.now()
        if not silently:
            self._publish(chat, message, "edited_channel_post" if chat.type == "channel" else "edited_message")

    def delete(self, chat: Chat, number: int) -> None:
        """Delete a message; no bot is told."""
        message = chat.messages.pop(number, None)
        if message is not None:
            chat.deleted[number] = message

    def add_topic(self, chat: Chat, name: str, sender: int) -> Topic:
        """Open a topic in a forum; the message that says so is its id."""
        created: Wire = {"forum_topic_created": {"name": name, "icon_color": 7322096}}
        number = next(chat.ids)
        chat.topics[number] = Topic(id=number, name=name)
        self.post(chat, Message(id=number, date=self.now(), sender=sender, content=created, topic=number))
        return chat.topics[number]

    def set_status(self, chat: Chat, account: Account, status: Status, by: Account) -> None:
        """Change what somebody is in a chat and tell the bots, with a service message where there is one."""
        old = member_shown(account, chat.members.get(account.id, "left"))
        chat.members[account.id] = status
        new = member_shown(account, status)
        changed = {"chat": chat.chat(), "from": by.user(), "date": self.now()}
        update = changed | {"old_chat_member": old, "new_chat_member": new}
        if isinstance(account, BotAccount):
            account.updates.add("my_chat_member", update)
        for bot in self.hearers(chat):
            if bot.id != account.id and chat.is_administrator(bot.id):
                bot.updates.add("chat_member", update)

    def set_blocked(self, chat: Chat, *, is_blocked: bool) -> None:
        """Let the person of a private chat block or unblock its bot."""
        assert chat.person is not None  # noqa: S101 (a private chat has both)
        assert chat.bot is not None  # noqa: S101
        states: tuple[Status, Status] = ("kicked", "member")
        chat.is_blocked = is_blocked
        update = {"chat": chat.chat(), "from": chat.person.user(), "date": self.now()}
        update["old_chat_member"] = member_shown(chat.bot, states[is_blocked])
        update["new_chat_member"] = member_shown(chat.bot, states[not is_blocked])
        chat.bot.updates.add("my_chat_member", update)

    def migrate(self, chat: Chat, by: int) -> Chat:
        """Turn a group into a supergroup; return it."""
        new = self.add_group(chat.title, (), kind="supergroup")
        new.members = dict(chat.members)
        now = self.now()
        left = Message(id=0, date=now, sender=by, content={"migrate_to_chat_id": new.id})
        self.post(chat, left)
        came = Message(
            id=0, date=now, sender=GROUP_ANONYMOUS_BOT, sender_chat=new.id, content={"migrate_from_chat_id": chat.id}
        )
        self.post(new, came)
        chat.upgraded_to = new.id
        return new

    def _publish(self, chat: Chat, message: Message, kind: str) -> None:
        for bot in self.hearers(chat):
            if bot.id not in (message.sender, message.author) and is_meant_for(self, chat, message, bot):
                bot.updates.add(kind, shown(self, chat, message, bot))
