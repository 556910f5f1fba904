"""What came to mind for the last few answers of each place: whoever repeats it says nothing of their own."""

from collections import OrderedDict, deque

from msgspec import Struct

from palaver.context.reading import Log
from palaver.context.values import Context
from palaver.memory.verify.echo import Recalled
from palaver.messages import Author, Message, Place, PlaceKey

ANSWERS = 5  # in each place
PLACES = 256
_SOMEBODY = Author(id="", name="")


class _Answer(Struct, frozen=True, kw_only=True):
    name: str  # of whom it was for
    texts: tuple[str, ...]
    hits: tuple[str, ...]  # ids of messages


class Lately:
    """`note(context)` for each answer; `of(place)` for whoever reads what was said there."""

    def __init__(self, said: Log) -> None:
        self._log = said
        self._places: OrderedDict[PlaceKey, deque[_Answer]] = OrderedDict()

    def note(self, context: Context) -> None:
        """Note what the agent is reminded of for an answer."""
        told = (*context.memories, *context.key_facts.values(), *(one.summary for one in context.episodes))
        hits = tuple(hit.message_id for hit in context.relevant if hit.message_id)
        answer = _Answer(name=context.target.author.name, texts=(*told, context.summary), hits=hits)
        self._places.setdefault(context.place.key, deque(maxlen=ANSWERS)).append(answer)
        self._places.move_to_end(context.place.key)
        while len(self._places) > PLACES:
            self._places.popitem(last=False)

    async def of(self, place: Place) -> Recalled:
        """All of it, with the messages as they stand now."""
        answers = tuple(self._places.get(place.key, ()))
        hits = {Message(id=hit, place=place, author=_SOMEBODY) for one in answers for hit in one.hits}
        numbers = [number for hit in hits if (number := await self._log.number(hit)) is not None]
        return Recalled(
            texts=tuple({text for one in answers for text in one.texts}),
            names=tuple({one.name for one in answers}),
            messages=tuple([one for number in numbers for one in await self._log.read(place, number, number + 1)]),
        )
