"""What may be the grounds for remembering something of a person: what they said lately, and what is answered."""

from palaver.context.reading import Log
from palaver.messages import Author, Message, Place

BACK = 500  # messages of a place that are looked through
OWN = 50  # of these, the last ones of that person


async def grounds(log: Log, person: Author, *, place: Place, target: str) -> list[Message]:
    """The last messages of *person* in *place*, with the one of the id *target*, the oldest first.

    What was said there while it was a direct chat is none for a group, nor the other way round.
    """
    count = await log.count(place)
    said = await log.read(place, max(0, count - BACK), count)
    heard = [one for one in said if (one.place.kind == "direct") == (place.kind == "direct")]
    own = {message.id for message in [one for one in heard if one.author.id == person.id][-OWN:]}
    return [message for message in heard if message.id in own or message.id == target]
