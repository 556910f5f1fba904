"""Updates of Telegram as changes: what happened, in the values of the engine. Pure."""

import re
from datetime import UTC, datetime
from typing import Literal

import msgspec
from msgspec import Struct

from tertulia.messages import Author, Message, Place, Quote
from tertulia.parts import Text
from tertulia.platform import (
    Change,
    Commanded,
    Edited,
    PlaceJoined,
    PlaceLeft,
    PlaceMigrated,
    Reacted,
    Received,
    Stopped,
)
from tertulia.platforms.telegram import types
from tertulia.platforms.telegram.words import content_parts, name_of, parts_of, span

PlaceKind = Literal["direct", "group", "channel"]
_KINDS: dict[str, PlaceKind] = {"private": "direct", "channel": "channel"}  # all others are groups
_GONE = ("left", "kicked")


class Account(Struct, frozen=True):
    """Our account, as far as reading updates needs it."""

    platform: str  # the name of the platform
    id: int
    username: str = ""


class _Fields(Struct, frozen=True):
    """The messages of an update with all their fields, to name those that we do not know."""

    message: dict[str, msgspec.Raw] = {}
    edited_message: dict[str, msgspec.Raw] = {}
    channel_post: dict[str, msgspec.Raw] = {}
    edited_channel_post: dict[str, msgspec.Raw] = {}


_UPDATE = msgspec.json.Decoder(types.Update)
_FIELDS = msgspec.json.Decoder(_Fields)
_KIND = re.compile(rb'"(\w+)"\s*:\s*[{\[]')  # where an update cannot be decoded
_ID = msgspec.json.Decoder(dict[str, msgspec.Raw])


def kind_of(raw: bytes) -> str:
    """Return the kind of an update, for the log; it works for kinds that we do not know."""
    try:
        return ", ".join(name for name in _ID.decode(raw) if name != "update_id") or "empty"
    except (msgspec.MsgspecError, RecursionError):
        found = _KIND.search(raw)
        return found[1].decode() if found else "not an object"


def changes_of(raw: bytes, account: Account) -> list[Change]:
    """Return what an update means; nothing for a kind that we do not know.

    Raise `msgspec.ValidationError` where a known field has an unknown form.
    """
    update, here = _UPDATE.decode(raw), UpdateReader(account)
    if message := update.message or update.channel_post:
        fields = _FIELDS.decode(raw)
        return here.posted(message, tuple(fields.message or fields.channel_post))
    if message := update.edited_message or update.edited_channel_post:
        fields = _FIELDS.decode(raw)
        return [Edited(message=here.message(message, tuple(fields.edited_message or fields.edited_channel_post)))]
    if update.message_reaction:
        return here.reacted(update.message_reaction)
    if update.my_chat_member:
        return here.membership(update.my_chat_member)
    if stopped := update.stopped_message_generation:
        return [Stopped(place=here.place(stopped.chat, stopped.message_thread_id))]
    return []


class UpdateReader:
    """Reads the parts of an update for one account."""

    def __init__(self, account: Account) -> None:
        self._account = account

    def posted(self, message: types.Message, fields: tuple[str, ...]) -> list[Change]:
        """Return what a new message means: words, a command, or that a group has a new id."""
        if message.migrate_to_chat_id is not None:
            return [self._migrated(message.chat.id, message.migrate_to_chat_id, message.chat.title)]
        if message.migrate_from_chat_id is not None:
            return [self._migrated(message.migrate_from_chat_id, message.chat.id, message.chat.title)]
        made = self.message(message, fields)
        if command := self._command(message):
            name, argument = command
            return [Commanded(message=made, name=name, argument=argument)]
        return [Received(message=made)]

    def message(self, message: types.Message, fields: tuple[str, ...] = ()) -> Message:
        return Message(
            id=str(message.message_id),
            place=self.place(message.chat, message.message_thread_id if message.is_topic_message else 0),
            author=self._author(message),
            sent_at=_time(message.date),
            edited_at=_time(message.edit_date),
            parts=parts_of(message, fields),
            reply_to=self._quote(message),
            album=message.media_group_id,
            forwarded_from=forwarded_from(message),
        )

    def place(self, chat: types.Chat, thread: int = 0) -> Place:
        title = chat.title or f"{chat.first_name} {chat.last_name}".strip()
        return Place(
            platform=self._account.platform,
            id=str(chat.id),
            kind=_KINDS.get(chat.type, "group"),
            thread=str(thread) if thread else None,
            title=title,
            service="telegram",
        )

    def reacted(self, reaction: types.MessageReaction) -> list[Change]:
        author = self._sender(reaction.user, reaction.actor_chat)
        emojis = tuple(one.emoji or f"({one.type.replace('_', ' ')})" for one in reaction.new_reaction)
        place, at = self.place(reaction.chat), _time(reaction.date)
        return [Reacted(place=place, message_id=str(reaction.message_id), author=author, emojis=emojis, at=at)]

    def membership(self, changed: types.ChatMemberUpdated) -> list[Change]:
        """Return whether we joined a chat, or can no longer write there: kicked, blocked, or told to leave."""
        member, place = changed.new_chat_member, self.place(changed.chat)
        gone = member.status in _GONE or (member.status == "restricted" and not member.is_member)
        return [PlaceLeft(place=place) if gone else PlaceJoined(place=place)]

    def _migrated(self, old: int, new: int, title: str) -> PlaceMigrated:
        chats = [types.Chat(id=one, type="supergroup", title=title) for one in (old, new)]
        return PlaceMigrated(old=self.place(chats[0]), new=self.place(chats[1]))

    def _command(self, message: types.Message) -> tuple[str, str] | None:
        """Return the name and argument of a command that is for us; None for ordinary words, also of others."""
        first = message.entities[0] if message.entities else None
        if message.forward_origin or message.via_bot:  # somebody else wrote it
            return None
        if first is None or first.type != "bot_command" or first.offset != 0:
            return None
        word = span(message.text, first)
        name, _, whom = word[1:].partition("@")
        if whom and whom.casefold() != self._account.username.casefold():
            return None
        return name.lower(), message.text[len(word) :].strip()

    def _author(self, message: types.Message) -> Author:
        author = self._sender(message.user, message.sender_chat)
        if message.sender_chat is not None and message.author_signature:
            return msgspec.structs.replace(author, name=f"{author.name} ({message.author_signature})")
        return author

    def _sender(self, user: types.User | None, chat: types.Chat | None) -> Author:
        """Return who acted: a chat that speaks as itself, or a user; another bot is an agent."""
        if chat is not None:
            return Author(id=str(chat.id), name=chat.title or str(chat.id), username=chat.username)
        if user is None:
            return Author(id="unknown", name="somebody", unknown=True)
        persona = name_of(user) if user.is_bot and user.id != self._account.id else None
        return Author(
            id=str(user.id), name=name_of(user), username=user.username, persona=persona, language=user.language_code
        )

    def _quote(self, message: types.Message) -> Quote | None:
        """Return the message that *message* replies to, from the update itself: the store may not know it."""
        excerpt = message.quote.text if message.quote and message.quote.text else None
        if replied := message.reply_to_message:
            if message.is_topic_message and replied.message_id == message.message_thread_id:
                return None  # the message that opened the topic
            parts = parts_of(replied)
            return Quote(
                message_id=str(replied.message_id),
                author=self._author(replied),
                parts=parts,
                excerpt=excerpt,
                forwarded_from=forwarded_from(replied),
            )
        if (external := message.external_reply) is not None:
            origin = external.origin or types.MessageOrigin()
            chat = external.chat or origin.chat
            message_id = f"{chat.id if chat else 'elsewhere'}/{external.message_id}"
            parts = (*content_parts(external), *([Text(text=excerpt)] if excerpt else []))
            return Quote(message_id=message_id, author=origin_author(origin), parts=parts, excerpt=excerpt)
        return None


def forwarded_from(message: types.Message) -> Author | None:
    """Return whose words a message is; None if it is no forward. A channel's post in its discussion group is none."""
    if message.forward_origin is None or message.is_automatic_forward:
        return None
    return origin_author(message.forward_origin)


def origin_author(origin: types.MessageOrigin) -> Author:
    """Return who wrote a message that comes from elsewhere. A hidden user has a name only."""
    if origin.sender_user is not None:
        user = origin.sender_user
        persona = name_of(user) if user.is_bot else None
        return Author(id=str(user.id), name=name_of(user), username=user.username, persona=persona)
    if (chat := origin.sender_chat or origin.chat) is not None:
        signature = f" ({origin.author_signature})" if origin.author_signature else ""
        return Author(id=str(chat.id), name=f"{chat.title or chat.id}{signature}", username=chat.username)
    return Author(id="unknown", name=origin.sender_user_name or "somebody", unknown=True)


def _time(seconds: int) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if seconds else None
