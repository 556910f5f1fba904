"""Training cases beside whole conversations: parts of them, and messages searched by their words."""

import random
from collections.abc import Mapping, Sequence

from bench.locomo import Conversation, Question
from msgspec.structs import replace

from tertulia.memory.retrieval.terms import terms
from tertulia.memory.values import IndexReader, PlaceView, Posting, Row, WantedTerm
from tertulia.messages import Author, Message, Place
from tertulia.parts import Text
from tertulia.seen_by import SeenBy

WITHOUT = 0.3  # how many parts do not hold what is asked for
VARIED = 0.3  # how many questions are asked without names, and how many in other forms


class Excerpt:
    """An index that shows only some messages of a place."""

    def __init__(self, index: IndexReader, numbers: Sequence[int]) -> None:
        self._index = index
        self._new = {old: new for new, old in enumerate(numbers)}

    async def view(self, place: Place, author: Author, *, seen_by: SeenBy | None = None) -> PlaceView | None:
        seen = await self._index.view(place, author, seen_by=seen_by)
        size = len(self._new)
        return seen and replace(seen, size=size, embedded=dict.fromkeys(seen.embedded, size))

    async def own_view(self, place: Place, author: Author, *, seen_by: SeenBy | None = None) -> PlaceView | None:
        return None

    async def rows(self, view: PlaceView, since: int) -> Sequence[Row]:
        return [(self._new[one[0]], *one[1:]) for one in await self._index.rows(view, 0) if one[0] in self._new]

    async def names(self, view: PlaceView, since: int) -> Sequence[tuple[int, str]]:
        return await self._index.names(view, 0)

    async def vectors(self, view: PlaceView, embedder: str, since: int) -> Sequence[tuple[int, bytes]]:
        kept = await self._index.vectors(view, embedder, 0)
        return [(self._new[number], vector) for number, vector in kept if number in self._new]

    async def postings(self, view: PlaceView, wanted: Sequence[WantedTerm]) -> Sequence[Sequence[Posting]]:
        found = await self._index.postings(view, wanted)
        return [
            [(word, self._new[number], packed) for word, number, packed in some if number in self._new]
            for some in found
        ]

    async def messages(self, view: PlaceView, numbers: Sequence[int]) -> Mapping[int, Message]:
        found = await self._index.messages(view, list(self._new))
        return {self._new[old]: message for old, message in found.items() if self._new[old] in numbers}


def part(conversation: Conversation, evidence: frozenset[str], rng: random.Random) -> list[int]:
    """Choose messages by number, from one to all, in a row or scattered, mostly with some of the *evidence*."""
    count = len(conversation.messages)
    size = round(count ** rng.random())
    answers = [at for at, one in enumerate(conversation.messages) if one.id in evidence]
    if rng.random() < WITHOUT:
        left = sorted(set(range(count)) - set(answers))
        size = min(size, len(left))
        start = rng.randint(0, len(left) - size)
        return left[start : start + size] if rng.random() < 0.5 else sorted(rng.sample(left, size))
    there = rng.choice(answers)
    if rng.random() < 0.5:
        start = min(max(0, there - rng.randrange(size)), count - size)
        return list(range(start, start + size))
    others = [at for at in range(count) if at != there]
    return sorted([there, *rng.sample(others, size - 1)])


def statements(conversation: Conversation, count: int, rng: random.Random) -> list[Question]:
    """Make questions of some words of messages, half of them in other forms."""
    able = [one for one in conversation.messages if terms(text_of(one))]
    some = [(_some(text_of(one), rng), one.id) for one in rng.sample(able, count)]
    bent = [(_bent(text, rng) if rng.random() < 0.5 else text, id) for text, id in some]
    return [Question(text=text, category=0, evidence=frozenset([id])) for text, id in bent if terms(text)]


def varied(question: str, conversation: Conversation, rng: random.Random) -> str:
    """Vary *question*: sometimes without the names of the speakers, sometimes with words in other forms."""
    names = {term for author in {one.author.name for one in conversation.messages} for term in terms(author)}
    if rng.random() < VARIED:
        question = " ".join(word for word in question.split() if not names & set(terms(word)))
    return _bent(question, rng) if rng.random() < VARIED else question


def text_of(message: Message) -> str:
    return " ".join(one.text for one in message.parts if isinstance(one, Text))


def _bent(text: str, rng: random.Random) -> str:
    """Change the endings of half of the words, as in an inflected language."""
    return " ".join(_ending(word, rng) if rng.random() < 0.5 else word for word in text.split())


def _ending(word: str, rng: random.Random) -> str:
    bare = word.rstrip(".,!?;:")
    return bare[:-1] + rng.choice("aiouy") + rng.choice("mnrx") if len(bare) > 4 and bare.isalpha() else word


def _some(text: str, rng: random.Random) -> str:
    share = rng.uniform(0.2, 1)
    return " ".join(word for word in text.split() if rng.random() < share)
