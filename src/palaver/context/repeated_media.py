"""The same media in several messages: they go once, and where they come again words say where they are. Pure.

Of the media that go themselves the earliest stay, so that a prompt keeps its start when they come again. Media are the
same if they have one unique id, or one hash where their bytes are stored.
"""

import re
from collections.abc import Iterable
from itertools import groupby

from msgspec.structs import replace

from palaver.context.values import Context
from palaver.messages import Message
from palaver.parts import Media, Part
from palaver.value_cache import cached, cached_for

_KEYS = "media keys"  # of a message: those of its media that go
_PLAIN_ID = re.compile(r"[A-Za-z0-9@._:+-]{1,64}")  # of a message: its header shows it as it is


def show_media_once(context: Context) -> Context:
    """Return the context with words for media that go already: in its history, its batch, or what the batch quotes."""
    history = (context.window, context.recent, context.immediate, context.newer)
    messages = (*context.window, *context.recent, *context.immediate, *context.newer, *context.batch)
    keys = [
        key
        for one in messages
        if one.__dict__.get(_KEYS) != ()  # a look instead of a call, since nearly all have none
        for key in cached(one, _KEYS, _keys_of)
    ]
    keys += (key for one in context.batch if one.reply_to for key in _keys(one.reply_to.parts))
    if len(keys) == len(set(keys)):  # nothing comes twice: most of the time
        return context
    shown = _ShownMedia(named=context.place.kind != "direct" and not context.levels)
    window, recent, immediate, newer = (tuple(map(shown.once, messages)) for messages in history)
    batch: list[Message] = []
    for _, album in groupby(context.batch, key=lambda one: (one.author.id, one.album or one.id, one.forwarded_from)):
        once = [shown.once(message) for message in album]  # an album is shown as one message, its quote behind all
        batch += map(shown.quote_once, once)
    return replace(context.with_batch(batch), window=window, recent=recent, immediate=immediate, newer=newer)


class _ShownMedia:
    """The media that go, in the order of the prompt."""

    def __init__(self, *, named: bool) -> None:
        self._named = named  # whether messages have their ids in the prompt
        self._media: list[tuple[Media, str]] = []  # each with the id of its message
        self._numbers: dict[str, int] = {}  # by key

    def once(self, message: Message) -> Message:
        """Return the message with words for media that go already; cached."""
        if not cached(message, _KEYS, _keys_of):
            return message
        parts = tuple(self._shown(part, message.id) for part in message.parts)
        changed = parts != message.parts
        return cached_for(message, "media once", parts, lambda: replace(message, parts=parts)) if changed else message

    def quote_once(self, message: Message) -> Message:
        """Return the message with words for media of its quote that go already.

        Media of a message that is itself in the prompt, with its id, stay as they are there: they are not repeated.
        """
        if (quote := message.reply_to) is None:
            return message
        before = len(self._media)
        parts = tuple(self._shown(part, quote.message_id, before=before) for part in quote.parts)
        return message if parts == quote.parts else replace(message, reply_to=replace(quote, parts=parts))

    def _shown(self, part: Part, message_id: str, *, before: int = 0) -> Part:
        """Return the part, or words if it goes already; as it goes if that is one of those *before* a quote of it."""
        if not isinstance(part, Media) or not part.has_content:
            return part
        keys = _keys([part])
        number = next((self._numbers[key] for key in keys if key in self._numbers), None)
        if number is None:
            self._numbers |= dict.fromkeys(keys, len(self._media))
            self._media.append((part, message_id))
            return part
        first, where = self._media[number]
        if number < before and self._named and where == message_id:
            return first
        named = self._named and _PLAIN_ID.fullmatch(where)
        back = sum(media.media_kind == first.media_kind for media, _ in self._media[number:])
        place = (f"in message {where}" if named else "above") + (
            f", {back} {first.kind_word}s back" if back > 1 else ""
        )
        return replace(part.without_content(), rendered_text=None, label=None, same_as=place)


def _keys_of(message: Message) -> tuple[str, ...]:
    return () if message.deleted else tuple(_keys(message.parts))


def _keys(parts: Iterable[Part]) -> list[str]:
    """Return what tells media that go from others: their unique ids and hashes, each once for one of them."""
    media = (part for part in parts if isinstance(part, Media) and part.has_content)
    return [key for one in media for key in dict.fromkeys((one.unique_id, one.sha256)) if key]
