"""What is remembered of the person at the terminal: shown as it comes to mind and is learned, looked at, forgotten."""

import itertools
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from palaver.memory.facts import Fact, holds, subject_of
from palaver.memory.finding.words import terms
from palaver.messages import Author
from palaver.platforms.terminal.place import PLACE
from palaver.platforms.terminal.wording import fact_words, reason_words, shortened
from palaver.store import Store

NOTHING = "(nothing is remembered of you)"
OFF = "(memory is off, by PALAVER_MEMORY: nothing of this is recalled, and nothing learned)"
HOW = "/memory shows what is remembered of you, /memory why ID the messages that say so"
WHAT = "say what to forget: /forget ID, /forget all, or words of it"
LIKE_THAT = "(nothing like that is remembered of you)"
SHOWN, SHORTEST = 8, 6  # characters of an id that are shown, and that it takes where words could be meant as well


class Remembering:
    """Facts about one person, who sits at one screen."""

    def __init__(self, store: Store, person: Author) -> None:
        self._facts = store.facts
        self._person = subject_of(person, PLACE)

    async def told(self, asked: str) -> list[str]:
        """What `/memory` shows: all that holds, or the messages that a fact was learned from."""
        if not asked:
            known = await self._all()
            return _lines(_holding(known), known) or [NOTHING]
        how, _, given = asked.partition(" ")
        return await self._why(given) if how == "why" and given else [HOW]

    async def forget(self, given: str) -> list[str]:
        """Remove for good what is meant, and say what that was; where several could be meant they are shown."""
        if not given:
            return [WHAT]
        known = await self._all()
        if given.casefold() == "all":
            await self._facts.forget_all(self._person)
            return await self._gone(known) or [NOTHING]
        named = [_by_id(word, known, least=SHORTEST) for word in given.split()]
        if any(len(found) != 1 for found in named):
            named = [_by_words(given, _holding(known))]
            if len(named[0]) > 1:
                return ["(which of these? /forget ID)", *_lines(named[0], known)]
        await self._facts.forget([fact.id for found in named for fact in found])
        return await self._gone(known) or [LIKE_THAT]

    async def _all(self) -> Sequence[Fact]:
        return await self._facts.listed(self._person)

    async def _why(self, given: str) -> list[str]:
        found = _by_id(given, await self._all())
        if len(found) != 1:
            return [f"({len(found) or 'no'} facts have an id that begins with {shortened(given, 40)})"]
        reasons = [reason_words(message) for message in await self._facts.why(found[0].id)]
        return [fact_words(found[0]), *(reasons or ["(the messages it was learned from are hidden, or gone)"])]

    async def _gone(self, known: Sequence[Fact]) -> list[str]:
        """What of this is no longer remembered."""
        left = {fact.id for fact in await self._all()}
        return [f"(forgotten: {shortened(fact.text)})" for fact in known if fact.id not in left]


def beginnings(ids: Iterable[str]) -> dict[str, str]:
    """The beginning of each id, as long as it takes to tell it from the others."""
    known = set(ids)
    length = next(size for size in itertools.count(SHOWN) if len({name[:size] for name in known}) == len(known))
    return {name: name[:length] for name in known}


def _lines(facts: Iterable[Fact], known: Iterable[Fact]) -> list[str]:
    names = beginnings(fact.id for fact in known)
    return [f"{names[fact.id]}  {fact_words(fact)}" for fact in facts]


def _holding(facts: Iterable[Fact]) -> list[Fact]:
    now = datetime.now(UTC)
    return [fact for fact in facts if holds(fact, now)]


def _by_id(given: str, facts: Sequence[Fact], *, least: int = 1) -> list[Fact]:
    """The fact of that id, or those whose ids begin so."""
    exact = [fact for fact in facts if fact.id == given]
    return exact or [fact for fact in facts if len(given) >= least and fact.id.startswith(given)]


def _by_words(given: str, facts: Sequence[Fact]) -> list[Fact]:
    """The fact that says exactly this, or those that hold all the words that say something, in whatever form."""
    exact = [fact for fact in facts if fact.text.casefold() == given.casefold()]
    wanted = set(terms(given))
    return exact or [fact for fact in facts if wanted and wanted <= set(terms(fact.text))]
