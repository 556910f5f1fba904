"""What was said in a place, as a log keeps it, and how it is read for one message."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec.structs import replace

from palaver.context.changes import Change
from palaver.context.values import Context
from palaver.context.window import answers
from palaver.messages import Message, Place
from palaver.turns import Turn

_PAGE = 64


class Log(Protocol):
    """What was said in a place, in the order it came; a message keeps its number, also when it is deleted."""

    async def count(self, place: Place) -> int: ...

    async def read(self, place: Place, start: int, stop: int) -> Sequence[Message]:
        """The messages with the numbers from *start* up to *stop*."""
        ...

    async def number(self, message: Message) -> int | None:
        """The number of a message in its place, or None if it is not kept there."""
        ...

    async def turns(self, messages: Sequence[Message]) -> Mapping[str, tuple[Turn, ...]]:
        """By id, for those among *messages* that the agent wrote: what the model did and said to write them."""
        ...

    async def changes(self, place: Place, since: int) -> Sequence[Change]:
        """The edits and deletions, in order, of messages from that number on which a run had shown before.

        A message that was forgotten, or that the agent has said since, has none from before that.
        """
        ...


async def turns_behind(log: Log, messages: Sequence[Message]) -> dict[str, tuple[Turn, ...]]:
    """The turns behind the agent's own messages, but for those it has edited since: they say something else now."""
    found = await log.turns(messages)
    if not found:
        return {}
    edited = {message.id for message in messages if message.edited_at}
    return {name: turns for name, turns in found.items() if name not in edited}


async def with_current_quote(log: Log, context: Context) -> Context:
    """The context with what the target replies to as it stands in the log now: edited since, deleted, or not heard."""
    target = context.target
    if target.reply_to is None:
        return context
    kept = await _kept(log, target)
    quote = kept.reply_to if kept and kept.reply_to else target.reply_to
    message = await _kept(log, replace(target, id=quote.message_id))
    current = quote.as_it_stands(message) if message else quote
    return context if current == target.reply_to else replace(context, target=replace(target, reply_to=current))


async def _kept(log: Log, message: Message) -> Message | None:
    number = await log.number(message)
    return None if number is None else next(iter(await log.read(message.place, number, number + 1)), None)


async def without_target(
    log: Log, context: Context, start: int, number: int | None, stored: int
) -> tuple[int, tuple[Message, ...]]:
    """The messages from *start* on, counted as if the target, which has this *number*, were not among them."""
    first = start + (number is not None and number <= start)
    first, messages = await _whole(log, context.place, first, stored)
    if number is not None and number >= first:
        messages = messages[: number - first] + messages[number - first + 1 :]
    return first - (number is not None and number < first), messages


async def _whole(log: Log, place: Place, start: int, stop: int) -> tuple[int, tuple[Message, ...]]:
    """The messages from *start* on, or from before it where a result would be parted from its call."""
    messages = tuple(await log.read(place, start, stop))
    furthest = max(0, start - _PAGE)
    while start > furthest and messages and answers(messages[0]):
        start -= 1
        messages = (*await log.read(place, start, start + 1), *messages)
    return start, messages


async def newest_before(log: Log, context: Context, stop: int, most: int) -> tuple[Message, ...]:
    """The newest messages before number *stop* that were not deleted, *most* of them."""
    found: list[Message] = []
    while stop > 0 and len(found) < most:
        start = max(0, stop - _PAGE)
        page = await log.read(context.place, start, stop)
        found[:0] = [message for message in page if not message.deleted and message.id != context.target.id]
        stop = start
    return tuple(found[-most:]) if most else ()
