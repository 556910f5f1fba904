"""People of a simulated Telegram, and what a test lets them do."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tertulia.sim.errors import Wire
from tertulia.sim.telegram.access import external_reply
from tertulia.sim.telegram.accounts import (
    CHANNEL_BOT,
    GROUP_ANONYMOUS_BOT,
    TELEGRAM,
    Account,
    BotAccount,
    Chat,
    Message,
)
from tertulia.sim.telegram.contents import image, media
from tertulia.sim.telegram.entities import Entity, fixed
from tertulia.sim.telegram.rendering import shown
from tertulia.sim.telegram.sending import Activity
from tertulia.sim.telegram.texts import with_entities
from tertulia.sim.telegram.world import World

if TYPE_CHECKING:
    from tertulia.sim.telegram.chats import SimChat


class SimUser:
    """A person, or another bot that writes: every method does what the person would do in an app."""

    def __init__(self, world: World, account: Account, activity: Activity | None = None) -> None:
        self.account = account
        self._world = world
        self._activity = activity or Activity()

    @property
    def id(self) -> int:
        return self.account.id

    @property
    def name(self) -> str:
        return self.account.first_name

    @property
    def username(self) -> str | None:
        return self.account.username

    def send(
        self,
        chat: "SimChat",
        text: str,
        *,
        reply_to: Message | int | None = None,
        quote: str | None = None,
        topic: int | None = None,
        entities: Sequence[Entity] = (),
        **extra: Any,
    ) -> Message:
        """Write a message. Mentions, commands, addresses and hashtags in it become entities."""
        written, found = fixed(text, list(entities))
        content = with_entities(self._world, {"text": written}, "entities", found)
        return self._post(chat.chat, content, reply_to=reply_to, quote=quote, topic=topic, extra=extra)

    def send_photo(self, chat: "SimChat", data: bytes | None = None, *, caption: str = "", **details: Any) -> Message:
        """Send a photo: a PNG, JPEG, GIF or WebP; without *data* a grey one."""
        return self._send_file(chat, "photo", data if data is not None else image(), caption, details)

    def send_document(self, chat: "SimChat", data: bytes = b"text", *, caption: str = "", **details: Any) -> Message:
        """Send a file; `file_name`, `mime_type` and `size` may be among *details*."""
        return self._send_file(chat, "document", data, caption, {"file_name": "file.txt"} | details)

    def send_sticker(self, chat: "SimChat", *, emoji: str = "👍", set_name: str = "Animals", **details: Any) -> Message:
        """Send a sticker of a set; `data`, `is_animated` (a TGS) and `is_video` (a WebM) may be among *details*."""
        details = {"emoji": emoji, "set_name": set_name} | details
        return self._send_file(chat, "sticker", details.pop("data", b"sticker " + emoji.encode()), "", details)

    def send_voice(self, chat: "SimChat", data: bytes = b"OggS voice", *, caption: str = "", **details: Any) -> Message:
        return self._send_file(chat, "voice", data, caption, details)

    def send_audio(self, chat: "SimChat", data: bytes = b"ID3 music", *, caption: str = "", **details: Any) -> Message:
        return self._send_file(chat, "audio", data, caption, details)

    def send_video(self, chat: "SimChat", data: bytes = b"ftyp video", *, caption: str = "", **details: Any) -> Message:
        return self._send_file(chat, "video", data, caption, details)

    def send_video_note(self, chat: "SimChat", data: bytes = b"ftyp round", **details: Any) -> Message:
        return self._send_file(chat, "video_note", data, "", details)

    def send_animation(
        self, chat: "SimChat", data: bytes = b"ftyp gif", *, caption: str = "", **details: Any
    ) -> Message:
        return self._send_file(chat, "animation", data, caption, details)

    def send_location(
        self, chat: "SimChat", latitude: float = 50.45, longitude: float = 30.52, **extra: Any
    ) -> Message:
        return self.send_content(chat, {"location": {"latitude": latitude, "longitude": longitude}}, **extra)

    def send_contact(self, chat: "SimChat", first_name: str, phone_number: str, **extra: Any) -> Message:
        return self.send_content(chat, {"contact": {"phone_number": phone_number, "first_name": first_name}}, **extra)

    def send_poll(self, chat: "SimChat", question: str, options: Sequence[str], **extra: Any) -> Message:
        """Send a poll that nobody answered yet."""
        shown = [{"persistent_id": str(i), "text": option, "voter_count": 0} for i, option in enumerate(options)]
        poll: Wire = {"id": self._world.new_album(), "question": question, "options": shown, "total_voter_count": 0}
        flags = {"is_closed": False, "is_anonymous": True, "type": "regular", "allows_multiple_answers": False}
        return self.send_content(
            chat, {"poll": poll | flags | {"allows_revoting": True, "members_only": False}}, **extra
        )

    def send_checklist(self, chat: "SimChat", title: str, tasks: Sequence[str], **extra: Any) -> Message:
        shown = [{"id": number, "text": task} for number, task in enumerate(tasks, 1)]
        return self.send_content(chat, {"checklist": {"title": title, "tasks": shown}}, **extra)

    def send_dice(self, chat: "SimChat", value: int = 4, emoji: str = "🎲", **extra: Any) -> Message:
        return self.send_content(chat, {"dice": {"emoji": emoji, "value": value}}, **extra)

    def send_story(self, chat: "SimChat", **extra: Any) -> Message:
        story = {"chat": {"id": self.id, "type": "private", "first_name": self.name}, "id": 1}
        return self.send_content(chat, {"story": story}, **extra)

    def send_content(self, chat: "SimChat", content: Wire, **extra: Any) -> Message:
        """Send a message of any kind, as the Bot API words it; for kinds that have no method."""
        places = {name: extra.pop(name, None) for name in ("reply_to", "quote", "topic")}
        return self._post(chat.chat, content, extra=extra, **places)

    def send_album(
        self, chat: "SimChat", photos: int | Sequence[bytes] = 2, *, caption: str = "", **extra: Any
    ) -> list[Message]:
        """Send photos as one album; the first has the caption."""
        data = [image(shade=index) for index in range(photos)] if isinstance(photos, int) else list(photos)
        album = {"media_group_id": self._world.new_album()} | extra
        return [self.send_photo(chat, one, caption="" if index else caption, **album) for index, one in enumerate(data)]

    def forward(self, chat: "SimChat", message: Message, *, origin: Wire | None = None) -> Message:
        """Forward a message of another chat; *origin* is a `MessageOrigin`, the author by default."""
        author = self._world.accounts.get(message.sender or 0)
        known = {"type": "hidden_user", "sender_user_name": "?"} if author is None else {"type": "user"}
        if author is not None:
            known["sender_user"] = author.user()  # type: ignore[assignment]
        forwarded = {"forward_origin": {"date": message.date} | (origin or known)}
        return self._post(chat.chat, message.content, extra=forwarded)

    def edit(self, chat: "SimChat", message: Message | int, text: str) -> Message:
        """Change the text or the caption of a message."""
        edited = chat.message(message)
        name, entities = ("text", "entities") if "text" in edited.content else ("caption", "caption_entities")
        written, found = fixed(text, [], allow_empty=name == "caption")
        kept = {key: value for key, value in edited.content.items() if key not in (name, entities)}
        self._world.edit(chat.chat, edited, with_entities(self._world, kept | {name: written}, entities, found))
        return edited

    def delete(self, chat: "SimChat", message: Message | int) -> None:
        """Delete a message; Telegram tells no bot of it."""
        self._world.delete(chat.chat, chat.message(message).id)

    def send_as_chat(self, chat: "SimChat", text: str, *, channel: "SimChat | None" = None, **extra: Any) -> Message:
        """Write as an anonymous administrator of a group, or as a *channel*; in a channel, post.

        With `is_automatic_forward=True` it is the post of a channel in the group where it is discussed.
        """
        written, found = fixed(text, [])
        content = with_entities(self._world, {"text": written}, "entities", found)
        sender = None if chat.chat.type == "channel" else CHANNEL_BOT if channel else GROUP_ANONYMOUS_BOT
        if extra.get("is_automatic_forward"):
            sender = TELEGRAM
        as_chat = (channel or chat).chat.id
        return self._post(chat.chat, content, sender=sender, sender_chat=as_chat, extra=extra)

    def react(self, chat: "SimChat", message: Message | int, *emojis: str) -> None:
        """Show these reactions and no others; bots that asked for them hear it, in groups as administrators."""
        reacted = chat.message(message)
        old = reacted.reactions.get(self.id, [])
        new: list[Wire] = [{"type": "emoji", "emoji": emoji} for emoji in emojis]
        reacted.reactions[self.id] = new
        update = {"chat": chat.chat.chat(), "message_id": reacted.id, "user": self.account.user()}
        update |= {"date": self._world.now(), "old_reaction": old, "new_reaction": new}
        for bot in self._world.hearers(chat.chat):
            if old != new and (chat.chat.type == "private" or chat.chat.is_administrator(bot.id)):
                bot.updates.add("message_reaction", update)

    def press_stop(self, chat: "SimChat") -> bool:
        """Press Stop under the draft that is shown; False if none is, or it has no button."""
        for (number, chat_id), draft in list(self._activity.visible.items()):
            bot = chat.chat.bot
            if bot is None or (bot.id, chat.id) != (number, chat_id):
                continue
            if not draft.can_stop or not draft.is_shown(self._world.clock()):
                return False
            if not draft.keep_on_stop:
                del self._activity.visible[number, chat_id]
            thread = {} if draft.topic is None else {"message_thread_id": draft.topic}
            update = {"chat": chat.chat.chat(), "draft_id": draft.draft_id} | thread
            bot.updates.add("stopped_message_generation", update)
            return True
        return False

    def press_button(self, chat: "SimChat", message: Message | int, data: str) -> str:
        """Press a button of an inline keyboard; return the id of the query."""
        pressed = chat.message(message)
        bot = self._world.accounts[pressed.sender or 0]
        assert isinstance(bot, BotAccount)  # noqa: S101 (only bots have buttons)
        query = self._world.new_album()
        self._activity.queries[query] = bot.id
        update = {"id": query, "from": self.account.user(), "chat_instance": str(chat.id), "data": data}
        bot.updates.add("callback_query", update | {"message": shown(self._world, chat.chat, pressed, bot)})
        return query

    def block_bot(self, chat: "SimChat") -> None:
        """Block the bot of a private chat."""
        self._world.set_blocked(chat.chat, is_blocked=True)

    def unblock_bot(self, chat: "SimChat") -> None:
        """Unblock the bot of a private chat."""
        self._world.set_blocked(chat.chat, is_blocked=False)

    def deactivate(self) -> None:
        """Delete the account."""
        self.account.is_deactivated = True

    def _send_file(self, chat: "SimChat", kind: str, data: bytes, caption: str, details: Wire) -> Message:
        places = {name: details.pop(name) for name in ("reply_to", "quote", "topic") if name in details}
        extra = {"media_group_id": details.pop("media_group_id")} if "media_group_id" in details else {}
        content = media(self._world.files, kind, data, **details)
        written, found = fixed(caption, [], allow_empty=True)
        if written:
            content |= with_entities(self._world, {"caption": written}, "caption_entities", found)
        return self._post(chat.chat, content, extra=extra, **places)

    def send_from_elsewhere(self, chat: "SimChat", text: str, source: "SimChat", quoted: Message | int) -> Message:
        """Reply in a chat to a message of another one."""
        written, found = fixed(text, [])
        content = with_entities(self._world, {"text": written}, "entities", found)
        reply = external_reply(self._world, source.chat, source.message(quoted))
        return self._post(chat.chat, content, extra={"external_reply": reply})

    def _post(self, chat: Chat, content: Wire, *, extra: Wire, **places: Any) -> Message:
        reply = places.pop("reply_to", None)
        number = reply.id if isinstance(reply, Message) else reply
        quote = places.pop("quote", None)
        topic = places.pop("topic", None)
        sender = places.pop("sender", self.id)
        if quote is not None:
            text = chat.messages[number].text
            units = len(text[: text.index(quote)].encode("utf-16-le")) // 2
            extra = extra | {"quote": {"text": quote, "position": units, "is_manual": True}}
        message = Message(
            id=0,
            date=self._world.now(),
            sender=sender,
            content=content,
            reply_to=number,
            topic=topic,
            extra=extra,
            **places,
        )
        return self._world.post(chat, message)


class SimBot(SimUser):
    """A bot with its token. What it does through the API is what counts; it can also write as people do."""

    def __init__(self, world: World, account: BotAccount) -> None:
        super().__init__(world, account)
        self.bot_account = account

    @property
    def token(self) -> str:
        return self.bot_account.token

    @property
    def pending(self) -> int:
        """How many updates wait."""
        return self.bot_account.updates.pending()
