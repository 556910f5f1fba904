"""Messages as turns: who speaks, what was said, what stands for media. Pure."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import lru_cache
from itertools import chain
from typing import Literal
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from palaver.context.values import Context
from palaver.messages import Author, Message, Quote
from palaver.parts import Media, Part, Text
from palaver.prompt import escape
from palaver.turns import Turn

Style = Literal[
    "verbatim",  # what was said, and nothing else
    "direct",  # the same, but nobody can write the delimiter
    "headed",  # who speaks stands before it
    "worded",  # the same, with words for media
]

EMPTY = "[empty message]"
KINDS = frozenset(
    "photo image sticker gif animation audio voice music video video_note document file contact location".split()
)
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip


def turns_of(messages: Iterable[Message], context: Context, style: Style) -> tuple[Turn, ...]:
    """The messages as the model sees them, in order; deleted ones are not there."""
    key = f"{style} {context.zone} {context.delimiter} {context.persona.name}"
    known = context.turns
    groups = [
        (known.get(message.id) if known else None) or message.__dict__.get(key) or _kept(message, key, context, style)
        for message in messages
        if not message.deleted
    ]
    return tuple(chain.from_iterable(groups))


def _kept(message: Message, key: str, context: Context, style: Style) -> tuple[Turn, ...]:
    """The message rendered, and kept with it."""
    turn = turn_of(message, context, style)
    rendered = message.__dict__[key] = (turn,) if turn else ()
    return rendered


def turn_of(message: Message, context: Context, style: Style, *, beside: Iterable[Media] = ()) -> Turn | None:
    """One message as a turn, with media from *beside* it at its end; none for an empty one of the agent's own."""
    if context.is_own(message):
        return Turn(role="model", parts=message.parts) if message.parts else None
    parts = [*_spoken(message.parts, context, style), *beside]
    if style in ("headed", "worded") and (words := header(message, context.zone)):
        parts.insert(0, Text(text=words))
    if not parts:
        parts.append(Text(text=EMPTY))
    return Turn(role="user", parts=tuple(parts))


def header(message: Message, zone: str) -> str:
    """`From: Alice (u123) — id: m1 — 2025-01-15 14:27`, and ` — reply to: m0`; what is not known is left out."""
    fields = []
    if speaker := who(message.author):
        fields.append(f"From: {speaker}")
    if message.id:
        fields.append(f"id: {escape.token(message.id)}")
    if message.sent_at:
        fields.append(f"{local(message.sent_at, zone):%Y-%m-%d %H:%M}")
    if message.reply_to and message.reply_to.message_id:
        fields.append(f"reply to: {escape.token(message.reply_to.message_id)}")
    return " — ".join(fields)


def who(author: Author) -> str:
    """A name and an id, so that two people of one name are told apart."""
    name, identity = escape.name(author.name), escape.token(author.id)
    return f"{name} ({identity})".strip() if identity else name


def words(parts: Iterable[Part]) -> str:
    """What the parts say in words, one after another."""
    return " ".join(filter(None, (_in_words(part) for part in parts)))


def placeholder(media: Media) -> str:
    """What stands for media: its description, or that it is there."""
    if media.rendered_text:
        return media.rendered_text
    if media.media_kind in KINDS:
        return f"[{media.media_kind} present uid={escape.token(media.unique_id)}]"
    return f"[{escape.folded(media.media_kind)[:40]} part]"


def quoted(quote: Quote) -> str:
    """The words that are replied to: the passage that was marked, or all of them."""
    return quote.excerpt or words(quote.parts)


def media_beside(context: Context, shown: Iterable[Message]) -> tuple[Media, ...]:
    """Media of the message that is replied to, where the message itself is not shown."""
    quote = context.target.reply_to
    if quote is None or not any(isinstance(part, Media) for part in quote.parts):
        return ()
    if any(message.id == quote.message_id for message in shown):
        return ()
    return tuple(part for part in quote.parts if isinstance(part, Media))


def local(moment: datetime, zone: str) -> datetime:
    return moment.astimezone(_zone(zone))


def long_time(moment: datetime, zone: str) -> str:
    """`Wednesday, January 15, 2025 at 14:30:00`, in English wherever it runs."""
    there = local(moment, zone)
    return f"{DAYS[there.weekday()]}, {MONTHS[there.month - 1]} {there.day}, {there.year:04} at {there:%H:%M:%S}"


@lru_cache(maxsize=64)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


def _spoken(parts: Iterable[Part], context: Context, style: Style) -> Iterator[Part]:
    for part in parts:
        match part:
            case Text(text=""):
                continue
            case Text(text=text) if style != "verbatim":
                said = text if style == "direct" else escape.said(text)
                safe = escape.without(said, context.delimiter)
                yield part if safe is text else replace(part, text=safe)
            case Media() if style == "worded":
                yield Text(text=placeholder(part))
            case _:
                yield part


def _in_words(part: Part) -> str:
    match part:
        case Text(text=text):
            return text
        case Media():
            return placeholder(part)
    return ""
