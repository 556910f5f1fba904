"""The same media in several messages: they go once, and where they come again words say where they are. Pure.

Of the media that go themselves the earliest stay, so that a prompt keeps its start when they come again. Media are the
same if they have one unique id, or one hash where their bytes are stored. A recording or a document that the model gets
in words is told each time: in the history its words are shorter than where it is asked about.
"""

import re
from collections.abc import Iterator
from itertools import chain, groupby

from msgspec.structs import replace

from tertulia.context.media_budget import message_in_words, with_media
from tertulia.context.values import Context
from tertulia.media.prompt_media import sent_media_in_turn, with_sent_media
from tertulia.media.sent_forms import is_shown_itself
from tertulia.messages import Message, Quote
from tertulia.parts import Media, change_media
from tertulia.turns import Role, Turn
from tertulia.value_cache import cached_for

_PLAIN_ID = re.compile(r"[A-Za-z0-9@._:+-]{1,64}")  # of a message: its header shows it as it is


def show_media_once(context: Context) -> Context:
    """Return the context with words for media that go already: in its history, its batch, or what the batch quotes."""
    keys = [
        key
        for media, role in _all_media(context)
        if is_shown_itself(media, context.taken, role)
        for key in _keys(media)
    ]
    if len(keys) == len(set(keys)):  # nothing comes twice: most of the time
        return context
    shown = _ShownMedia(context)
    history = (context.window, context.recent, context.immediate, context.newer)
    window, recent, immediate, newer = (tuple(map(shown.once, messages)) for messages in history)
    batch: list[Message] = []
    quoted: dict[str, Quote] = {}
    for _, album in groupby(context.batch, key=lambda one: (one.author.id, one.album or one.id, one.forwarded_from)):
        once = [shown.once(message) for message in album]  # an album is shown as one message, its quote behind all
        batch += once
        quoted |= {message.id: shown.quote_once(message.reply_to) for message in once if message.reply_to}
    return replace(
        context.with_batch(batch),
        window=window,
        recent=recent,
        immediate=immediate,
        newer=newer,
        turns=shown.turns,
        written_quotes=quoted,
    )


def _all_media(context: Context) -> Iterator[tuple[Media, Role]]:
    """Yield the media of a context that have content, each with the role in which they are shown."""
    messages = (*context.window, *context.recent, *context.immediate, *context.newer, *context.batch)
    if own := with_sent_media(context.turns):
        turns = (turn for one in messages for turn in own.get(one.id, ()))
        yield from chain.from_iterable(map(sent_media_in_turn, turns))
    for one in with_media(messages):
        if not context.turns.get(one.id) and not one.deleted:
            yield from ((part, _role(one, context)) for part in one.parts if isinstance(part, Media))
    for one in context.batch:
        for part in one.reply_to.parts if one.reply_to else ():
            if isinstance(part, Media):
                yield part, "user"


def _role(message: Message, context: Context) -> Role:
    return "model" if context.is_own(message) else "user"


class _ShownMedia:
    """The media that go, in the order of the prompt."""

    def __init__(self, context: Context) -> None:
        self.turns = dict(context.turns)
        self._context = context
        self._named = context.place.kind != "direct" and not context.levels  # whether messages show their ids
        self._media: list[tuple[Media, str]] = []  # each with the id of its message, if that is shown
        self._numbers: dict[str, int] = {}  # by key

    def once(self, message: Message) -> Message:
        """Return the message with words for media that go already; cached. Of an own one the turns are changed."""
        if turns := self.turns.get(message.id):
            self.turns[message.id] = tuple(map(self._turn_once, turns))
            return message
        if message.deleted or message_in_words(message) is message:
            return message
        role = _role(message, self._context)
        named = message.id if role == "user" else ""  # own messages have no header
        parts = change_media(message.parts, lambda media: self._shown(media, named, role))
        if parts is message.parts:
            return message
        return cached_for(message, "media once", parts, lambda: replace(message, parts=parts))

    def _turn_once(self, turn: Turn) -> Turn:
        if not sent_media_in_turn(turn):
            return turn
        roles = iter([role for _, role in sent_media_in_turn(turn)])
        parts = change_media(
            turn.parts, lambda media: self._shown(media, "", next(roles)) if media.has_content else media
        )
        return turn if parts is turn.parts else cached_for(turn, "once", parts, lambda: replace(turn, parts=parts))

    def quote_once(self, quote: Quote) -> Quote:
        """Return the quote as it is written beside a message, with words for media that go already.

        Media of a message that is itself in the prompt, with its id, stay as they are there: they are not repeated.
        """
        before = len(self._media)
        parts = change_media(quote.parts, lambda media: self._shown(media, quote.message_id, before=before))
        return quote if parts is quote.parts else replace(quote, parts=parts)

    def _shown(self, media: Media, message_id: str, role: Role = "user", *, before: int = 0) -> Media:
        """Return media, or words if they go already; as they go if that is one of those *before* a quote of them."""
        if not is_shown_itself(media, self._context.taken, role):
            return media
        keys = _keys(media)
        number = next((self._numbers[key] for key in keys if key in self._numbers), None)
        if number is None:
            self._numbers |= dict.fromkeys(keys, len(self._media))
            self._media.append((media, message_id))
            return media
        first, where = self._media[number]
        if number < before and self._named and where == message_id:
            return first
        named = self._named and _PLAIN_ID.fullmatch(where)
        back = sum(one.media_kind == first.media_kind for one, _ in self._media[number:])
        place = (f"in message {where}" if named else "above") + (
            f", {back} {first.kind_word}s back" if back > 1 else ""
        )
        return replace(media.without_content(), rendered_text=None, label=None, same_as=place)


def _keys(media: Media) -> list[str]:
    """Return what tells media from others: their unique id and hash."""
    return [key for key in dict.fromkeys((media.unique_id, media.sha256)) if key]
