"""The content of a Telegram message as parts: text, media, and words for what is neither. Pure."""

import re
from collections.abc import Iterator, Sequence

from tertulia.formats import telegram_words
from tertulia.formats.telegram_words import marker
from tertulia.media.file_names import safe_name
from tertulia.parts import EVENT, Media, Part, Text
from tertulia.platforms.telegram.types import Content, File, Message, MessageEntity, Option, User

MAX_VIDEOS = 3  # YouTube links of one message that the model may watch
_YOUTUBE = re.compile(
    r"(?:https?://)?(?:www\.|m\.)?(?:youtube\.com/(?:watch\?(?:[^\s#]*&)?v=|shorts/|live/)|youtu\.be/)([\w-]{11})(?![\w-])"
)
_FILES = ("animation", "audio", "document", "sticker", "video", "video_note", "voice")
_SERVICE = {  # what a message without content tells
    "channel_chat_created": "the channel was created",
    "chat_background_set": "the background was changed",
    "delete_chat_photo": "the photo of the chat was removed",
    "forum_topic_closed": "the topic was closed",
    "forum_topic_created": "the topic was opened",
    "forum_topic_edited": "the topic was renamed",
    "forum_topic_reopened": "the topic was reopened",
    "gift": "a gift",
    "giveaway": "a giveaway",
    "group_chat_created": "the group was created",
    "invoice": "an invoice",
    "new_chat_photo": "the photo of the chat was changed",
    "paid_media": "paid media",
    "game": "a game",
    "supergroup_chat_created": "the group was created",
    "unique_gift": "a gift",
    "video_chat_ended": "a video chat ended",
    "video_chat_started": "a video chat began",
}
_NO_CONTENT = frozenset(  # fields of any message
    "message_id message_thread_id is_topic_message direct_messages_topic date edit_date chat from sender_chat"
    " sender_boost_count sender_business_bot sender_tag business_connection_id reply_to_message external_reply quote"
    " reply_to_story reply_to_checklist_task_id reply_to_poll_option_id via_bot has_protected_content is_from_offline"
    " is_automatic_forward is_paid_post paid_star_count media_group_id author_signature forward_origin entities"
    " caption_entities caption link_preview_options effect_id show_caption_above_media has_media_spoiler reply_markup"
    " suggested_post_info text".split()
)


def parts_of(message: Message, fields: Sequence[str] = ()) -> tuple[Part, ...]:
    """Return the parts of a message; *fields* are the names of all its fields, also those that we do not know."""
    words = text_of(message)
    parts = [*content_parts(message), *([Text(text=words)] if words else []), *youtube_videos(message)]
    return tuple(parts or _service(message, fields))


def text_of(message: Message) -> str:
    """Return the text or the caption. A link behind words has its address after them: `here (https://…)`."""
    text, at, pieces = message.text or message.caption, 0, []
    units = text.encode("utf-16-le", "surrogatepass")
    for link in (*message.entities, *message.caption_entities):
        if link.type == "text_link" and link.url not in ("", span(text, link)):
            end = 2 * (link.offset + link.length)
            pieces += [units[at:end], f" ({link.url})".encode("utf-16-le", "surrogatepass")]
            at = end
    return b"".join([*pieces, units[at:]]).decode("utf-16-le", "replace") if pieces else text


def content_parts(content: Content) -> Iterator[Part]:
    """Yield the media of a message or of an external reply, and the words of its poll, contact or checklist."""
    if content.photo:
        yield _media("photo", max(content.photo, key=lambda size: size.width * size.height))
    for kind in _FILES:
        file: File | None = getattr(content, kind)
        if file is not None and not (kind == "document" and content.animation):  # an animation is also a document
            yield _media(kind, file)
    yield from _spoken(content)


def youtube_videos(message: Message) -> Iterator[Media]:
    """Yield the videos that a message links to, for models that can watch them."""
    texts = [message.text or message.caption, *(one.url for one in (*message.entities, *message.caption_entities))]
    found = dict.fromkeys(video for text in texts if "youtu" in text for video in _YOUTUBE.findall(text))
    for video in list(found)[:MAX_VIDEOS]:
        address = f"https://www.youtube.com/watch?v={video}"
        yield Media(media_kind="youtube", unique_id=f"youtube:{video}", uri=address)


def span(text: str, entity: MessageEntity) -> str:
    """Return the text of an entity, whose offset and length are in UTF-16 units."""
    units = text.encode("utf-16-le", "surrogatepass")
    return units[2 * entity.offset : 2 * (entity.offset + entity.length)].decode("utf-16-le", "replace")


def name_of(user: User) -> str:
    """Return the name of a user as people see it."""
    return f"{user.first_name} {user.last_name}".strip() or user.username or str(user.id)


def _media(kind: str, file: File) -> Media:
    return Media(
        media_kind=kind,
        unique_id=file.file_unique_id,
        mime=_mime(kind, file),
        label=_label(kind, file),
        file_id=file.file_id or None,
        size=file.file_size or None,
        width=file.width or None,
        height=file.height or None,
        seconds=file.duration or None,
    )


def _mime(kind: str, file: File) -> str | None:
    if kind == "sticker":
        return "application/x-tgsticker" if file.is_animated else "video/webm" if file.is_video else "image/webp"
    return file.mime_type or ("image/jpeg" if kind == "photo" else None)


def _label(kind: str, file: File) -> str | None:
    """Return what is known of a file without looking into it, where that says what it is."""
    match kind:
        case "sticker":
            return " ".join(filter(None, (file.emoji, f"of the set {file.set_name}" if file.set_name else ""))) or None
        case "audio":
            return telegram_words.song(file.performer, file.title or file.file_name)
        case "document":
            return safe_name(file.file_name) if file.file_name else None
    return None


def _spoken(content: Content) -> Iterator[Part]:
    """Yield what is neither text nor a file. What its sender wrote is their text."""
    if content.location and not content.venue:
        yield telegram_words.location(content.location.latitude, content.location.longitude)
    if content.venue:
        yield from telegram_words.venue(content.venue.title, content.venue.address)
    if content.contact:
        contact = content.contact
        yield from telegram_words.contact(contact.first_name, contact.last_name, contact.phone_number)
    if content.poll:
        yield from telegram_words.listing("poll", content.poll.question, (one.text for one in content.poll.options))
    if content.checklist:
        yield from telegram_words.listing("checklist", content.checklist.title, map(_task, content.checklist.tasks))
    if content.dice:
        yield marker("dice", f"{content.dice.emoji} shows {content.dice.value}")
    if content.story is not None:
        yield marker("story")


def _task(task: Option) -> str:
    return f"[{'x' if task.completion_date else ' '}] {task.text}"


def _service(message: Message, fields: Sequence[str]) -> Iterator[Media]:
    """Yield the events that a message without content tells; an unknown kind by its name."""
    if message.new_chat_members:
        yield marker(EVENT, f"joined: {', '.join(map(name_of, message.new_chat_members))}")
    if message.left_chat_member:
        yield marker(EVENT, f"left: {name_of(message.left_chat_member)}")
    if message.new_chat_title:
        yield marker(EVENT, f"the chat is now called {message.new_chat_title}")
    if message.pinned_message is not None:
        yield marker(EVENT, "a message was pinned")
    known = {"new_chat_members", "left_chat_member", "new_chat_title", "pinned_message", "new_chat_participant"}
    for name in fields:
        if name in _SERVICE:
            yield marker(EVENT, _SERVICE[name])
        elif name not in _NO_CONTENT and name not in known and not name.startswith("left_chat_"):
            yield marker("message", name.replace("_", " "))
