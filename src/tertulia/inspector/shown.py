"""What is shown of messages and turns: no bytes, signatures, keys, or words of blocked people. Pure."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, TypeVar, assert_never

import msgspec
from msgspec.structs import replace

from tertulia.engine.inspection import NumberedMessage
from tertulia.engine.log_views import visible_message
from tertulia.engine.store_protocols import OutboxItem
from tertulia.errors import InvalidValue
from tertulia.inspector.values import MessageBrief
from tertulia.messages import Message, placeholder_of
from tertulia.models.calls import PromptSize
from tertulia.parts import Media, Opaque, Part, Text, Thought, ToolCall, ToolResult
from tertulia.prompt.ledger import HISTORY
from tertulia.redaction import redact_keys
from tertulia.turns import Layer, Turn

T = TypeVar("T")

BRIEF = 300  # characters
MASK = "•••"  # in place of the delimiter of a place: whoever knows it can write what looks like our markup
Blocked = Collection[tuple[str, str]]  # platforms and ids


def only(found: Sequence[T]) -> T:
    """Return the row that was asked for by its id; raise `InvalidValue` where it was removed since its id was read."""
    if not found:
        raise InvalidValue("it was removed a moment ago")
    return found[0]


class Mask:
    """Replaces the delimiters of places in texts."""

    def __init__(self, *delimiters: str) -> None:
        self._delimiters = tuple(filter(None, delimiters))

    def text(self, text: str) -> str:
        for delimiter in self._delimiters:
            text = text.replace(delimiter, MASK)
        return text

    def turn(self, turn: Turn) -> Turn:
        """Return a turn as it is shown."""
        return replace(turn, parts=tuple(map(self.part, turn.parts)))

    def part(self, part: Part) -> Part:
        """Return a part as it is shown."""
        match part:
            case Text():
                return Text(text=self.text(part.text))
            case Thought():
                return Thought(text=self.text(part.text), field=part.field)
            case ToolCall():
                broken = None if part.broken is None else self.text(part.broken)
                return ToolCall(name=part.name, args=self.value(part.args), id=part.id, broken=broken)
            case ToolResult():
                media = tuple(map(_shown_media, part.media))
                return replace(part, value=self.value(part.value), media=media, raw=None)
            case Media():
                return _shown_media(part)
            case Opaque():
                return Opaque(raw={})
        assert_never(part)

    def value(self, value: Any) -> Any:
        """Return a JSON value as it is shown."""
        match value:
            case str():
                return self.text(value)
            case dict():
                return {self.text(str(name)): self.value(one) for name, one in value.items()}
            case list() | tuple():
                return [self.value(one) for one in value]
        return value


def _shown_media(media: Media) -> Media:
    uri = None if media.uri is None else redact_keys(media.uri)
    return replace(media, data=None, file_id=None, signature=None, raw=None, uri=uri)


def shown_parts(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Return the parts of a message as they are shown."""
    return tuple(map(Mask().part, parts))


def shown_item(item: OutboxItem) -> OutboxItem:
    """Return a reply as it is shown: without what the model did to write it."""
    media = tuple(map(_shown_media, item.reply.media))
    return replace(item, turns=(), reply=replace(item.reply, media=media))


def shown_message(message: Message, blocked: Blocked = ()) -> Message:
    """Return a message as it is shown; of a deleted one and of a blocked author only that it was there."""
    seen = visible_message(message, message.place, blocked)
    if seen.author != message.author or message.deleted:
        return replace(placeholder_of(message), author=message.author, sent_at=message.sent_at)
    quote = seen.reply_to and replace(seen.reply_to, parts=shown_parts(seen.reply_to.parts))
    return replace(seen, parts=shown_parts(seen.parts), reply_to=quote)


def brief(found: NumberedMessage, blocked: Blocked = ()) -> MessageBrief:
    """Return the beginning of a message."""
    message = shown_message(found.message, blocked)
    return MessageBrief(
        id=message.id,
        number=found.number,
        author=message.author,
        text=words_of(message)[:BRIEF],
        sent_at=message.sent_at,
    )


def words_of(message: Message) -> str:
    """Return the texts of a message and the words for its media."""
    return words_in(message.parts)


def words_in(parts: Iterable[Part]) -> str:
    """Return the texts among parts and the words for their media."""
    words = (part.text if isinstance(part, Text) else part.words for part in parts if isinstance(part, Text | Media))
    return " ".join(filter(None, words))


def parts_of(names: Iterable[str], size: PromptSize) -> tuple[tuple[str, ...], PromptSize]:
    """Return the layers of a prompt as they are shown: the static one is its instruction and its history."""
    parts: list[tuple[str, int]] = []
    for name, tokens, instruction in zip(names, size.layers, size.instructions, strict=True):
        is_both = name == "static" and 0 < instruction < tokens
        parts += [(name, instruction), (HISTORY, tokens - instruction)] if is_both else [(name, tokens)]
    shown = replace(size, layers=tuple(tokens for _, tokens in parts), instructions=())
    return tuple(name for name, _ in parts), shown


def halves_of(layer: Layer) -> tuple[Layer, ...]:
    """Return a layer as it is shown: the static one as its instruction and its history."""
    if layer.name != "static" or not layer.instruction or not layer.turns:
        return (layer,)
    return replace(layer, turns=()), Layer(name=HISTORY, turns=layer.turns)


def as_json(value: Any) -> str:
    """Return a value as JSON in one line."""
    return msgspec.json.encode(value).decode()


def turn_text(turn: Turn) -> str:
    """Return a turn as text: its role, then its parts."""
    return f"{turn.role}: " + "\n".join(filter(None, map(part_text, turn.parts)))


def part_text(part: Part) -> str:
    """Return a part as text: `[call look {"seat":"3A"}]`."""
    match part:
        case Text():
            return part.text
        case Media():
            return part.words
        case ToolCall():
            return f"[call {part.name} {as_json(part.args)}]"
        case ToolResult():
            return "\n".join([f"[result of {part.name} {as_json(part.value)}]", *(one.words for one in part.media)])
        case Thought() | Opaque():
            return f"[{type(part).__name__.lower()}]"
    assert_never(part)
