"""Parameters of the calls that send: text, reply, topic, file, menu of commands. Pure."""

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import to_builtins

from tertulia.media.file_names import name_of
from tertulia.messages import Place, Reply
from tertulia.parts import Media, cut
from tertulia.platform import CommandInfo
from tertulia.platforms.telegram.markdown import render
from tertulia.platforms.telegram.types import File

MENU_LIMIT = 256  # characters of the description of a command
WORDS_LIMIT = 1024  # characters of words in place of a file
MOST_EMOJIS = 40  # of a set that are named to a model
PHOTO_LIMIT, UPLOAD_LIMIT = 10 * 2**20, 50 * 2**20  # bytes
_EMOJI_STYLE = "\ufe0f"  # asks for the coloured form of an emoji; a set may have it without
_METHODS = {  # the method and the field of a kind of media
    "photo": ("sendPhoto", "photo"),
    "sticker": ("sendSticker", "sticker"),
    "voice": ("sendVoice", "voice"),
    "audio": ("sendAudio", "audio"),
    "video": ("sendVideo", "video"),
    "video_note": ("sendVideoNote", "video_note"),
    "animation": ("sendAnimation", "animation"),
}
DOCUMENT = ("sendDocument", "document")
ATTACHED = "attach://file"  # the field of a file, which is uploaded: no server of Telegram fetches an address for us
_KINDS = {"image": "photo", "music": "audio", "gif": "animation"}  # other names of kinds
_TYPES = {  # how the types that Telegram shows as such begin; files of other types are documents
    "photo": ("image/jpeg", "image/png", "image/webp", "image/gif", "image/bmp"),
    "voice": ("audio/ogg", "audio/mpeg", "audio/mp4", "audio/x-m4a"),
    "audio": ("audio/mpeg", "audio/mp3", "audio/mp4", "audio/x-m4a"),
    "video": ("video/mp4",),
    "video_note": ("video/mp4",),
    "animation": ("video/mp4", "image/gif"),
}


def command_menus(commands: Sequence[CommandInfo], owners: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the menus: for everybody, for administrators of groups and for the owners, each in every language."""
    scopes: list[tuple[dict[str, Any], tuple[str, ...]]] = [
        ({"type": "default"}, ("everyone",)),
        ({"type": "all_private_chats"}, ("everyone", "administrators")),
        ({"type": "all_chat_administrators"}, ("everyone", "administrators")),
    ]
    scopes += [({"type": "chat", "chat_id": owner}, ("everyone", "administrators", "owners")) for owner in owners]
    for scope, who in scopes:
        shown = [one for one in commands if one.who in who]
        for code, tag in _language_codes(shown).items():
            menu = [{"command": one.name, "description": _description(one, tag)} for one in shown]
            yield {"commands": menu, "scope": scope, "language_code": code}


def _language_codes(commands: Sequence[CommandInfo]) -> dict[str, str]:
    """Return the languages by the codes that Telegram takes, of two letters: `pt` is `pt-br` if there is no `pt`."""
    tags = sorted({tag for one in commands for tag in one.descriptions}, key=lambda tag: (len(tag), tag))
    codes: dict[str, str] = {}
    for tag in tags:
        codes.setdefault(tag.partition("-")[0], tag)
    return {code: tag for code, tag in codes.items() if len(code) in (0, 2)}


def _description(command: CommandInfo, tag: str) -> str:
    return (command.descriptions.get(tag) or command.descriptions[""])[:MENU_LIMIT]


def text_fields(text: str, name: str = "text", entities: str = "entities") -> dict[str, Any]:
    shown = render(text)
    return {name: shown.text, **({entities: to_builtins(shown.entities)} if shown.entities else {})}


def plain_text(text: str, limit: int) -> str:
    """Return *text*, which is Markdown, without markup; the end of one that is too long is cut off."""
    shown = render(text).text
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"


def reply_fields(reply: Reply) -> dict[str, Any]:
    """Return the topic, and the message that is replied to."""
    quoted = {}
    if reply.reply_to and reply.reply_to.isdecimal():
        quoted = {"reply_parameters": {"message_id": int(reply.reply_to), "allow_sending_without_reply": True}}
    return {**thread_field(reply.place), **quoted}


def thread_field(place: Place) -> dict[str, int]:
    """Return the topic of a place. The General topic has none: its number is refused."""
    return {"message_thread_id": int(place.thread)} if place.thread and place.thread != "1" else {}


def sticker_file(stickers: Sequence[File], name: str) -> str:
    """Return the file id of a sticker, by its emoji or its unique id; empty where the set has none such."""
    shown = {(one.emoji or "").replace(_EMOJI_STYLE, ""): one.file_id for one in reversed(stickers)}
    named = {one.file_unique_id: one.file_id for one in stickers}
    return shown.get(name.replace(_EMOJI_STYLE, "")) or named.get(name, "")


def emojis_of(stickers: Sequence[File]) -> str:
    return " ".join(list(dict.fromkeys(one.emoji for one in stickers if one.emoji))[:MOST_EMOJIS])


def files(media: Media) -> dict[str, tuple[str, bytes]] | None:
    """Return the upload of media, by the name of its field."""
    return None if media.data is None else {"file": (name_of(media), media.data)}


def method_of(media: Media) -> tuple[str, str]:
    """Return the method and the field by which media are sent: by their kind, if their type and size fit it."""
    mime, size = media.mime or "", len(media.data or b"")
    kind = _KINDS.get(media.media_kind, media.media_kind)
    if kind == "photo" and mime == "image/gif":
        kind = "animation"
    if size > PHOTO_LIMIT and kind == "photo":
        kind = "document"
    return _METHODS.get(kind, DOCUMENT) if not mime or mime.startswith(_TYPES.get(kind, "")) else DOCUMENT


def media_as_text(media: Media) -> str:
    """Return the text for media that Telegram does not take: a link, or words that fit beside a caption."""
    return media.link or cut(media.caption, WORDS_LIMIT)
