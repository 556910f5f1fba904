"""The methods that send and give files."""

from typing import Any

from tertulia.sim.errors import Wire
from tertulia.sim.multipart import Upload
from tertulia.sim.telegram.access import check_posting, check_rights, find_target
from tertulia.sim.telegram.accounts import BotAccount
from tertulia.sim.telegram.arguments import Arguments
from tertulia.sim.telegram.contents import again, media
from tertulia.sim.telegram.files import DOWNLOAD_LIMIT, PHOTO_LIMIT, UPLOAD_LIMIT, image_size
from tertulia.sim.telegram.refusals import refused
from tertulia.sim.telegram.rendering import shown
from tertulia.sim.telegram.sending import Activity, post, reply_markup
from tertulia.sim.telegram.texts import caption, caption_content, parsed
from tertulia.sim.telegram.world import World

FEWEST, MOST = 2, 10  # items of an album
RIGHTS = {
    "photo": "photos",
    "document": "documents",
    "voice": "voice notes",
    "audio": "music",
    "video": "videos",
    "animation": "animations",
    "sticker": "stickers",
    "video_note": "video notes",
}
_NAMES = {
    "photo": "Photo",
    "document": "Document",
    "voice": "VoiceNote",
    "audio": "Audio",
    "video": "Video",
    "animation": "Animation",
    "sticker": "Sticker",
    "video_note": "VideoNote",
}
_NUMBERS = ("duration", "width", "height", "length")
_WORDS = ("performer", "title", "emoji")
_ALBUM_KINDS = ("photo", "video", "audio", "document")


def send_file(world: World, activity: Activity, bot: BotAccount, kind: str, arguments: Arguments) -> Wire:
    """Answer `sendPhoto` and its like."""
    content = _content(world, bot, kind, arguments, kind)
    text = caption(world, arguments)
    markup = reply_markup(arguments)
    target = find_target(world, bot, arguments)
    if kind not in ("sticker", "video_note"):
        content |= caption_content(world, text)
    check_posting(world, target.chat, bot, RIGHTS[kind])
    if arguments.flag("has_spoiler") and kind in ("photo", "video", "animation"):
        content["has_media_spoiler"] = True
    message = post(world, activity, bot, target, content, reply_markup=markup)
    return shown(world, target.chat, message, bot)


def send_media_group(world: World, activity: Activity, bot: BotAccount, arguments: Arguments) -> list[Wire]:
    if not arguments.text("media"):
        raise refused("media-missing")
    items = arguments.json("media", "media-json")
    if not isinstance(items, list):
        raise refused("media-array")
    contents = [_album_item(world, bot, item, arguments) for item in items]
    target = find_target(world, bot, arguments)
    if not contents:
        raise refused("media-count")
    if len(contents) > MOST:
        raise refused("media-many")
    _check_mixture([str(item["type"]) for item in items])
    for item in items:
        check_rights(target.chat, bot, RIGHTS[str(item["type"])])
    check_posting(world, target.chat, bot, RIGHTS[str(items[0]["type"])])
    album = {"media_group_id": world.new_album()} if len(contents) >= FEWEST else {}
    messages = [post(world, activity, bot, target, content, **album) for content in contents]
    return [shown(world, target.chat, message, bot) for message in messages]


def get_file(world: World, activity: Activity, bot: BotAccount, arguments: Arguments) -> Wire:
    file_id = arguments.text("file_id")
    if not file_id:
        raise refused("get-file-id")
    file = world.files.find(file_id, bot.id)
    if file is None:
        raise refused("get-file")
    if file.size > DOWNLOAD_LIMIT:
        raise refused("get-file-long")
    return world.files.shown(file.number, bot.id) | {"file_path": file.path}


def _album_item(world: World, bot: BotAccount, item: Any, arguments: Arguments) -> Wire:
    if not isinstance(item, dict):
        raise refused("media-object", why="expected an Object")
    entities = item.get("caption_entities")
    text = parsed(world, str(item.get("caption") or ""), str(item.get("parse_mode") or ""), entities)
    inner = Arguments(item, arguments.uploads)
    kind = item.get("type")
    if not inner.text("media"):
        raise refused("media-object", why="media not found")
    if kind not in _ALBUM_KINDS:
        why = "can't be used in sendMediaGroup" if kind == "animation" else "is unsupported"
        missing = 'Can\'t find field "type"'
        raise refused("media-object", why=missing if kind is None else f'type "{kind}" {why}')
    return _content(world, bot, str(kind), inner, "media") | caption_content(world, text)


def _check_mixture(kinds: list[str]) -> None:
    for kind, name in (("audio", "Audio"), ("document", "Document")):
        if kind in kinds and len(set(kinds)) > 1:
            raise refused("media-mixed", kind=name.lower())


def _content(world: World, bot: BotAccount, kind: str, arguments: Arguments, field: str) -> Wire:
    """Return the content that an argument names: a file of the call, one sent before, or an address."""
    value = arguments.text(field)
    upload = arguments.uploads.get(value.removeprefix("attach://")) if value else arguments.uploads.get(field)
    if upload is not None:
        return _uploaded(world, kind, upload, arguments)
    if not value or value.startswith("attach://"):
        raise refused("no-file", field=field if field != "media" else kind)
    if value.startswith(("http://", "https://")):
        raise refused("file-fetch")
    file = world.files.find(value, bot.id)
    if file is None:
        raise refused("file-id")
    if file.kind != kind:
        raise refused("file-kind", found=_NAMES[file.kind], wanted=_NAMES[kind])
    return again(world.files, file.number)


def _uploaded(world: World, kind: str, upload: Upload, arguments: Arguments) -> Wire:
    if not upload.data:
        raise refused("file-empty")
    if len(upload.data) > UPLOAD_LIMIT:
        raise refused("upload-long")
    if kind == "photo":
        _check_photo(upload.data)
    details: Wire = {name: arguments.integer(name) for name in _NUMBERS if name in arguments.given}
    details |= {
        name: arguments.text(name) for name in _WORDS if name in arguments.given and kind in ("audio", "sticker")
    }
    mime = upload.mime if kind == "document" or upload.mime.startswith(("audio/", "video/", "image/")) else None
    if kind == "photo":
        details = {}
    return media(world.files, kind, upload.data, file_name=upload.name, mime_type=mime, **details)


def _check_photo(data: bytes) -> None:
    if len(data) > PHOTO_LIMIT:
        raise refused("photo-long", size=len(data))
    size = image_size(data)
    if size is None:
        raise refused("image")
    width, height = size
    if width + height > 10_000 or max(size) > 20 * min(size):
        raise refused("dimensions")
