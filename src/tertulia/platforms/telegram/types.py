"""Types of the Bot API, as far as we read them. Unknown fields are ignored, and nearly all known ones may be missing.

Pure.
"""

from typing import Any

from msgspec import Struct, field


class User(Struct, frozen=True):
    id: int
    is_bot: bool = False
    first_name: str = ""
    last_name: str = ""
    username: str | None = None
    language_code: str = ""


class Chat(Struct, frozen=True):
    id: int
    type: str = ""  # private, group, supergroup, channel
    title: str = ""
    first_name: str = ""
    last_name: str = ""
    username: str | None = None


class MessageEntity(Struct, frozen=True):
    """A span of a text; offset and length count UTF-16 units."""

    type: str
    offset: int
    length: int
    url: str = ""


class File(Struct, frozen=True):
    """A file of any kind: a size of a photo, a sticker, a voice message, a document."""

    file_id: str = ""
    file_unique_id: str = ""
    mime_type: str | None = None
    file_name: str = ""
    file_size: int = 0
    width: int = 0
    height: int = 0
    duration: float = 0
    emoji: str = ""
    set_name: str = ""
    performer: str = ""
    title: str = ""
    is_animated: bool = False
    is_video: bool = False


class StickerSet(Struct, frozen=True):
    stickers: list[File] = []


class Location(Struct, frozen=True):
    latitude: float
    longitude: float


class Venue(Struct, frozen=True):
    title: str = ""
    address: str = ""


class Contact(Struct, frozen=True):
    phone_number: str = ""
    first_name: str = ""
    last_name: str = ""


class Option(Struct, frozen=True):
    """An option of a poll, or a task of a checklist."""

    text: str = ""
    completion_date: int = 0


class Poll(Struct, frozen=True):
    question: str = ""
    options: list[Option] = []


class Checklist(Struct, frozen=True):
    title: str = ""
    tasks: list[Option] = []


class Dice(Struct, frozen=True):
    emoji: str = ""
    value: int = 0


class MessageOrigin(Struct, frozen=True):
    """Where a forwarded message comes from: a user, a hidden user, a chat or a channel."""

    type: str = ""
    sender_user: User | None = None
    sender_user_name: str = ""
    sender_chat: Chat | None = None
    chat: Chat | None = None
    author_signature: str = ""


class TextQuote(Struct, frozen=True):
    text: str = ""


class Content(Struct, frozen=True, kw_only=True):
    """What a message holds besides its text: at most one of these, mostly."""

    animation: File | None = None
    audio: File | None = None
    checklist: Checklist | None = None
    contact: Contact | None = None
    dice: Dice | None = None
    document: File | None = None
    location: Location | None = None
    photo: list[File] = []
    poll: Poll | None = None
    sticker: File | None = None
    story: Any = None
    venue: Venue | None = None
    video: File | None = None
    video_note: File | None = None
    voice: File | None = None


class ExternalReply(Content, frozen=True, kw_only=True):
    """The message of another chat or topic that a message replies to."""

    origin: MessageOrigin | None = None
    chat: Chat | None = None
    message_id: int = 0


class Message(Content, frozen=True, kw_only=True):
    message_id: int
    chat: Chat
    date: int = 0
    user: User | None = field(default=None, name="from")
    sender_chat: Chat | None = None
    author_signature: str = ""
    message_thread_id: int = 0
    is_topic_message: bool = False
    edit_date: int = 0
    media_group_id: str | None = None
    text: str = ""
    caption: str = ""
    entities: list[MessageEntity] = []
    caption_entities: list[MessageEntity] = []
    reply_to_message: "Message | None" = None
    external_reply: ExternalReply | None = None
    quote: TextQuote | None = None
    forward_origin: MessageOrigin | None = None
    via_bot: Any = None
    is_automatic_forward: bool = False  # of a post of a channel into its discussion group
    migrate_to_chat_id: int | None = None
    migrate_from_chat_id: int | None = None
    new_chat_members: list[User] = []
    left_chat_member: User | None = None
    new_chat_title: str = ""
    pinned_message: Any = None


class Reaction(Struct, frozen=True):
    type: str = ""
    emoji: str = ""


class MessageReaction(Struct, frozen=True):
    chat: Chat
    message_id: int
    date: int = 0
    user: User | None = None
    actor_chat: Chat | None = None
    new_reaction: list[Reaction] = []


class ChatMember(Struct, frozen=True):
    status: str = ""
    user: User | None = None
    is_member: bool = True  # of a restricted one


class ChatMemberUpdated(Struct, frozen=True):
    chat: Chat
    new_chat_member: ChatMember
    user: User | None = field(default=None, name="from")
    date: int = 0


class FilePath(Struct, frozen=True):
    """The answer to `getFile`."""

    file_path: str = ""
    file_size: int = 0


class WebhookInfo(Struct, frozen=True):
    url: str = ""
    last_error_date: int = 0
    last_error_message: str = ""


class StoppedGeneration(Struct, frozen=True):
    chat: Chat
    message_thread_id: int = 0


class Update(Struct, frozen=True, kw_only=True):
    update_id: int
    message: Message | None = None
    edited_message: Message | None = None
    channel_post: Message | None = None
    edited_channel_post: Message | None = None
    message_reaction: MessageReaction | None = None
    my_chat_member: ChatMemberUpdated | None = None
    stopped_message_generation: StoppedGeneration | None = None


ALLOWED_UPDATES = tuple(name for name in Update.__struct_fields__ if name != "update_id")  # which updates we ask for
