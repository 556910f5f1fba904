"""Metadata of a message as a `[meta]` block, and the lines of the system context block. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from palaver.context.values import Context
from palaver.messages import Author, Message, Quote
from palaver.parts import Media, Part, Text
from palaver.prompt import escape
from palaver.prompt.render import quoted

NAMES, OTHERS = 100, 120  # how long values may be
LABELS = ("Image", "Video", "Audio", "YouTube", "Document", "Attachment")

_NUMBER = re.compile(r"-?[0-9]+")
_COLONS = re.compile("[:：﹕︓ː˸∶꞉ꓽ]")
_ROLES = re.compile("bot|user|system|tool|model|assistant")
_KINDS = {
    "photo": "Image", "image": "Image", "sticker": "Image",
    "video": "Video", "animation": "Video", "gif": "Video", "video_note": "Video", "video_sticker": "Video",
    "audio": "Audio", "voice": "Audio", "music": "Audio",
    "youtube": "YouTube",
    "document": "Document", "file": "Document",
}  # fmt: skip


def meta(message: Message) -> str:
    """`[meta] chat_id=-123 message_id=4 user_id=987 name="Alice"`: what is known of a message, in this order."""
    author, quote = message.author, message.reply_to
    replied = quote.author if quote else None
    pairs = [
        ("chat_id", _identity(message.place.id)),
        ("thread_id", _identity(message.place.thread)),
        ("message_id", _identity(message.id)),
        ("user_id", _identity(author.id)),
        ("username", _text(author.username, NAMES)),
        ("name", _text(author.name, NAMES)),
        ("reply_to_message_id", _identity(quote.message_id if quote else None)),
        ("reply_to_user_id", _identity(replied.id if replied else None)),
        ("reply_to_username", _text(replied.username if replied else None, NAMES)),
        ("reply_to_name", _text(replied.name if replied else None, NAMES)),
        ("reply_excerpt", _text(quoted(quote) if quote else None, OTHERS)),
    ]
    return " ".join(["[meta]", *(f"{key}={value}" for key, value in pairs if value)])


def line(message: Message, context: Context, *, include_meta: bool, marked: bool) -> str:
    """A message as one line of the block; *marked* with the kinds of its media."""
    said = _one_line(message.parts, context)
    marks = markers(message.parts) if marked else ""
    text = " ".join(filter(None, (said, marks))) or "(no content)"
    return f"{_speaker(message, context, include_meta=include_meta)}: {text}"


def quote_line(quote: Quote, context: Context, *, include_meta: bool) -> str:
    """The message that is replied to as a line, where it is older than the block."""
    author = quote.author or Author(id="", name="Someone")
    marked: tuple[Part, ...] = (Text(text=quote.excerpt or ""), *_media(quote.parts))
    parts = marked if quote.excerpt else quote.parts
    message = Message(id=quote.message_id, place=context.place, author=author, parts=parts)
    return line(message, context, include_meta=include_meta, marked=True)


def markers(parts: Iterable[Part]) -> str:
    """`[Image x2] [Audio]`: the kinds of the media, in a fixed order."""
    found = Counter(_label(media) for media in _media(parts))
    return " ".join(
        f"[{label} x{found[label]}]" if found[label] > 1 else f"[{label}]" for label in LABELS if found[label]
    )


def _media(parts: Iterable[Part]) -> tuple[Media, ...]:
    return tuple(part for part in parts if isinstance(part, Media))


def _label(media: Media) -> str:
    mime = media.mime or ""
    if re.search(r"//(?:www\.|m\.)?(?:youtube\.com|youtu\.be)/", media.uri or ""):
        return "YouTube"
    if media.media_kind == "sticker" and mime.startswith("video/"):
        return "Video"
    by_mime = {"image": "Image", "video": "Video", "audio": "Audio"}.get(mime.partition("/")[0], "Attachment")
    return _KINDS.get(media.media_kind, by_mime)


def _speaker(message: Message, context: Context, *, include_meta: bool) -> str:
    own = context.is_own(message)
    if include_meta:
        return f"{'bot' if own else 'user'} {meta(message)}"
    return "bot" if own else _name(message, context)


def _name(message: Message, context: Context) -> str:
    """A name before a colon; with the id where it could be taken for somebody else's."""
    author = message.author
    name = _COLONS.sub("", escape.inline(escape.name(author.name))).strip() or "Someone"
    looks = escape.looks(author.name)
    others = any(one.id != author.id and _poses(looks, one) for one in _speakers(context))
    if not (others or _ROLES.match(looks)) and (looks or not author.id):
        return name
    return f"{name} ({escape.identity(author.id) or 'unknown'})"


def _poses(looks: str, other: Author) -> bool:
    """Whether a name that *looks* so could be taken for the other's, or has the other's id in it."""
    identity = escape.looks(other.id)
    return escape.looks(other.name) == looks or (len(identity) > 2 and identity in looks)


def _speakers(context: Context) -> Iterator[Author]:
    quote = context.target.reply_to
    if quote and quote.author:
        yield quote.author
    for message in (*context.history, context.target):
        yield message.author


def _one_line(parts: Iterable[Part], context: Context) -> str:
    text = " ".join(part.text for part in parts if isinstance(part, Text))
    said = escape.said(escape.folded(text), context.delimiter)
    return " ".join(said.replace("```", "'''").split())


def _identity(value: str | None) -> str:
    """An id: bare where it is a number."""
    if not value:
        return ""
    return value if _NUMBER.fullmatch(value) else _text(escape.identity(value), OTHERS)


def _text(value: str | None, limit: int) -> str:
    plain = escape.unbracketed(escape.folded(value or "")).replace("\\", "/").replace("```", "'''").strip()
    cut = plain if len(plain) <= limit else plain[: limit - 2] + ".."
    escaped = cut.replace('"', '\\"')
    return f'"{escaped}"' if cut else ""
