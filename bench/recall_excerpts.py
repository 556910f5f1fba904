"""What search learns from besides whole conversations: parts of them, and messages asked for by their words."""

import random
from collections.abc import Mapping, Sequence

from bench.locomo import Question, Talk
from msgspec.structs import replace

from palaver.memory.retrieval.index import Index, Posting, Row, Seen, Wanted
from palaver.memory.retrieval.terms import terms
from palaver.messages import Author, Message, Place
from palaver.parts import Text

WITHOUT = 0.3  # how many parts do not hold what is asked for
VARIED = 0.3  # how many questions are asked without names, and how many in other forms


class Excerpt:
    """Some messages of a place, by number, as if nothing else had been said there."""

    def __init__(self, index: Index, numbers: Sequence[int]) -> None:
        self._index = index
        self._new = {old: new for new, old in enumerate(numbers)}

    async def seen(self, place: Place, author: Author) -> Seen | None:
        seen = await self._index.seen(place, author)
        size = len(self._new)
        return seen and replace(seen, size=size, embedded=dict.fromkeys(seen.embedded, size))

    async def rows(self, row: int, since: int) -> Sequence[Row]:
        return [(self._new[one[0]], *one[1:]) for one in await self._index.rows(row, 0) if one[0] in self._new]

    async def names(self, row: int, since: int) -> Sequence[tuple[int, str]]:
        return await self._index.names(row, 0)

    async def vectors(self, row: int, embedder: str, since: int) -> Sequence[tuple[int, bytes]]:
        kept = await self._index.vectors(row, embedder, 0)
        return [(self._new[number], vector) for number, vector in kept if number in self._new]

    async def postings(self, row: int, wanted: Sequence[Wanted]) -> Sequence[Sequence[Posting]]:
        found = await self._index.postings(row, wanted)
        return [
            [(word, self._new[number], packed) for word, number, packed in some if number in self._new]
            for some in found
        ]

    async def messages(self, row: int, numbers: Sequence[int]) -> Mapping[int, Message]:
        found = await self._index.messages(row, list(self._new))
        return {self._new[old]: message for old, message in found.items() if self._new[old] in numbers}


def part(talk: Talk, evidence: frozenset[str], rng: random.Random) -> list[int]:
    """Numbers of messages of *talk*, from one to all: in a row or scattered, mostly with some of the *evidence*."""
    count = len(talk.messages)
    size = round(count ** rng.random())
    answers = [at for at, one in enumerate(talk.messages) if one.id in evidence]
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


def statements(talk: Talk, count: int, rng: random.Random) -> list[Question]:
    """Messages asked for by some of their words, half of the time in other forms."""
    able = [one for one in talk.messages if terms(text_of(one))]
    some = [(_some(text_of(one), rng), one.id) for one in rng.sample(able, count)]
    bent = [(_bent(text, rng) if rng.random() < 0.5 else text, id) for text, id in some]
    return [Question(text=text, category=0, evidence=frozenset([id])) for text, id in bent if terms(text)]


def varied(question: str, talk: Talk, rng: random.Random) -> str:
    """*question*, sometimes without the names of those who talk, sometimes with words in other forms."""
    names = {term for author in {one.author.name for one in talk.messages} for term in terms(author)}
    if rng.random() < VARIED:
        question = " ".join(word for word in question.split() if not names & set(terms(word)))
    return _bent(question, rng) if rng.random() < VARIED else question


def text_of(message: Message) -> str:
    return " ".join(one.text for one in message.parts if isinstance(one, Text))


def _bent(text: str, rng: random.Random) -> str:
    """*text* with other endings on half of its words, as an inflected language has them."""
    return " ".join(_ending(word, rng) if rng.random() < 0.5 else word for word in text.split())


def _ending(word: str, rng: random.Random) -> str:
    bare = word.rstrip(".,!?;:")
    return bare[:-1] + rng.choice("aiouy") + rng.choice("mnrx") if len(bare) > 4 and bare.isalpha() else word


def _some(text: str, rng: random.Random) -> str:
    share = rng.uniform(0.2, 1)
    return " ".join(word for word in text.split() if rng.random() < share)
