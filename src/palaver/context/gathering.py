"""One message and all that should be known to answer it."""

from collections.abc import Iterable
from datetime import datetime

from palaver.context.sources import Source, without_repeats
from palaver.context.values import Context
from palaver.errors import InvalidValue
from palaver.messages import Message


async def gather(message: Message, sources: Iterable[Source], now: datetime) -> Context:
    """The context of *message*: each source in turn adds what it knows."""
    if now.tzinfo is None:
        raise InvalidValue("now is a time without a zone; give an aware one")
    context = Context(target=message, now=now, place=message.place)
    for source in sources:
        context = await source(context)
    return without_repeats(context)
