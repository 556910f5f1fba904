"""One message and all that should be known to answer it."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from inspect import isawaitable

from palaver.context.sources import AnySource, without_repeats
from palaver.context.values import Context
from palaver.errors import InvalidValue
from palaver.messages import Message


async def gather(
    message: Message, sources: Iterable[AnySource], now: datetime, *, batch: Sequence[Message] = ()
) -> Context:
    """The context of *message*: each source in turn adds what it knows.

    *batch* is all the messages that are answered together, in the order they were sent, with *message* among them.
    """
    if now.tzinfo is None:
        raise InvalidValue("now is a time without a zone; give an aware one")
    taken = tuple(batch) or (message,)
    at = next((index for index, one in enumerate(taken) if one.id == message.id), None)
    if at is None:
        raise InvalidValue(f"the batch does not hold message {message.id!r}, which is to be answered")
    context = Context(target=message, earlier=taken[:at], later=taken[at + 1 :], now=now, place=message.place)
    for source in sources:
        given = source(context)
        context = await given if isawaitable(given) else given
        if not isinstance(context, Context):
            name = getattr(source, "__name__", type(source).__name__)
            raise InvalidValue(f"the source {name} gave {context!r}; a source gives the context it was given, changed")
    return without_repeats(context)
