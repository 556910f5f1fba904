"""What a model may do with what is remembered: of whom it speaks with, where it speaks, and no further."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta, tzinfo
from typing import Annotated, NamedTuple

from msgspec import Struct

from palaver.characters import visible
from palaver.context.log import Log
from palaver.engine.memory.recall import BACK, evidence_messages
from palaver.engine.store_protocols import StoreProtocol
from palaver.errors import InvalidValue
from palaver.memory.extract import HEARSAY_FACTOR
from palaver.memory.facts import (
    Fact,
    Facts,
    Subject,
    default_scope,
    is_same_person,
    is_same_place,
    subject_of,
)
from palaver.memory.verify.clauses import supporting_messages
from palaver.memory.verify.duplicates import comparable_words
from palaver.memory.verify.guards import unfit_reason
from palaver.memory.verify.overlap import FactWords, contains_any
from palaver.messages import Author, Message, Place
from palaver.timezones import zone_named
from palaver.toolbox.run_context import RunContext
from palaver.toolbox.toolbox import Tool, tool

PREFIX = "fact-"  # of the ids of what is remembered by the tool
LONGEST = 500  # characters of a fact
SHOWN = 1000  # characters of a message that is shown as a reason
MOST = 200  # facts that are recalled at once
ALL = 100_000  # more than anybody has

LASTS = timedelta(hours=1)  # in which a proposal to forget can be confirmed

SELF = frozenset("me|myself|i|self|user|the user|я|мене|мені|себе".split("|"))  # whoever is answered, to a model

AT_ONE_TIME = 10  # facts that a person is asked about: they must have read what they say yes to

JUST_SAID = "they have just said that; it is not forgotten"
PROPOSED = "not forgotten yet: below your answer they are asked whether to forget “{fact}”, and their own yes does it"
ENOUGH = "they are asked about enough already; what else is to be forgotten can be asked in the next answer"
NOTHING = "nothing like that is remembered of them here; name one fact alone, by its id or its words"


class Recalled(Struct, frozen=True, kw_only=True):
    id: str
    about: str
    fact: str
    learned: str  # the day


class Reason(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message that a fact was learned from."""

    who: str
    when: str = ""
    said: str = ""  # left out where those who would hear it now did not hear it then, and where it was cleared


class Asking(NamedTuple):
    """Who asks where, and by which call."""

    context: RunContext
    target: Message  # as it is now

    @property
    def call(self) -> str:
        """The id of what this call makes."""
        return f"{PREFIX}{self.context.idempotency_key}"

    @property
    def place(self) -> Place:
        return self.target.place

    @property
    def person(self) -> Subject:
        return subject_of(self.target.author, self.target.place)


About = Annotated[
    str, "Whom it is about: the name, @username or id of somebody else who writes here; empty for whoever is answered"
]
Which = Annotated[str, "The id of the fact as recall gives it, or its words"]


def memory_tools(store: StoreProtocol, now: Callable[[], datetime], zone: str = "UTC") -> list[Tool]:
    """The tools `remember`, `recall`, `why` and `forget`, for the conversation that calls them.

    `forget` removes nothing: the person is asked below the answer, and their own plain yes does it. Days and times are
    told in *zone*.
    """
    clock = zone_named(zone)
    facts, log = store.facts, store.log

    @tool(repeatable=True)
    async def remember(
        context: RunContext,
        fact: Annotated[str, "One short sentence in the third person, in the language of the person"],
        about: About = "",
    ) -> Recalled:
        """Remember a lasting fact that a person has told here about themselves, beyond this conversation."""
        asking = await _asking(log, context)
        text, whom = _words(fact), await _whom(log, asking, about)
        heard = await evidence_messages(log, whom, place=asking.place, target=asking.target.id)
        said = await asyncio.to_thread(supporting_messages, text, whom, heard)
        _refuse_unfit(text, whom, said)
        subject = subject_of(whom, asking.place)
        await facts.learn([_fact(asking, subject, text, said, now())])
        kept = _same(await _heard(facts, asking, subject), asking.call, text)
        if kept is None:
            raise InvalidValue("that cannot be remembered: its message is gone, or its author is blocked")
        return _recalled(kept, clock)

    @tool(repeatable=True)
    async def recall(context: RunContext, about: About = "") -> list[Recalled]:
        """What is remembered about a person and may be told in this conversation, the most useful first."""
        asking = await _asking(log, context)
        whom = await _whom(log, asking, about)
        return [_recalled(fact, clock) for fact in await _heard(facts, asking, subject_of(whom, asking.place), MOST)]

    @tool(repeatable=True)
    async def why(context: RunContext, fact: Which) -> list[Reason]:
        """Why something about a person is thought to be so: the messages it was learned from."""
        asking = await _asking(log, context)
        found = await _meant(facts, asking, fact)
        said = await facts.why(found.id)
        return [_reason(one, asking, clock, cleared=await _is_cleared(store, one)) for one in said]

    @tool(repeatable=True)
    async def forget(context: RunContext, fact: Which) -> str:
        """Ask the person who is answered whether something about them is to be forgotten. Only if they ask for it."""
        return await _propose(store, await _asking(log, context), fact, now())

    return [remember, recall, why, forget]


async def _propose(store: StoreProtocol, asking: Asking, given: str, now: datetime) -> str:
    """Propose to forget the fact that is meant, and return what the model is told of that."""
    known = await _heard(store.facts, asking, asking.person)
    found = _same(known, given.strip(), given) or _only_one_with(known, given)
    if found is None:
        return NOTHING
    if set(found.sources) <= set(asking.context.batch):
        return JUST_SAID
    run_id = asking.context.run_id
    asked = await store.proposals.propose(run_id, found.id, now=now, until=now + LASTS, most=AT_ONE_TIME)
    return PROPOSED.format(fact=found.text) if asked else ENOUGH


async def _asking(log: Log, context: RunContext) -> Asking:
    if context.place is None or context.message is None:
        raise InvalidValue("what is remembered belongs to a conversation, and this call comes from none")
    target = await log.get(context.place, context.message.id)
    if target is None or target.deleted:
        raise InvalidValue("the message that is being answered is gone")
    return Asking(context, target)


async def _heard(facts: Facts, asking: Asking, subject: Subject, limit: int = ALL) -> Sequence[Fact]:
    return await facts.about(subject, place=asking.place, asked_by=asking.person, limit=limit)


async def _meant(facts: Facts, asking: Asking, given: str) -> Fact:
    """The fact of that id, or of those words about whoever asks, if it may be told here."""
    named = await facts.get(given.strip())
    found = _same(await _heard(facts, asking, named.subject if named else asking.person), given.strip(), given)
    if found is None:
        raise InvalidValue(NOTHING)
    return found


async def _whom(log: Log, asking: Asking, about: str) -> Author:
    """Whoever is named, among those who write here."""
    name = visible(about).strip().removeprefix("@").casefold()
    if not name or name in SELF:
        return asking.target.author
    count = await log.count(asking.place)
    people = (message.author for message in await log.read(asking.place, max(0, count - BACK), count))
    found = {author.id: author for author in people if author.is_person and name in _names(author)}
    if not found:
        raise InvalidValue(f"nobody who writes here is called {about.strip()[:LONGEST]!r}")
    if len(found) > 1:
        raise InvalidValue(f"several who write here are called that; say which by id: {', '.join(sorted(found))}")
    return next(iter(found.values()))


def _names(author: Author) -> set[str]:
    return {visible(name).casefold() for name in (author.id, author.name, author.username) if name}


def _refuse_unfit(text: str, whom: Author, said: Sequence[Message]) -> None:
    """What is an instruction or a secret is no fact, nor is what nobody has said."""
    if why := unfit_reason(text):
        raise InvalidValue(f"that is not remembered: it {why}")
    if not said:
        why = f"{whom.name} has not said it here, nor was it clearly said of them; give one fact alone, as it was said"
        raise InvalidValue(f"that is not remembered: {why}")


def _words(fact: str) -> str:
    text = " ".join(fact.split())
    if not text or len(text) > LONGEST:
        raise InvalidValue(f"a fact is a short sentence, of at most {LONGEST} characters")
    return text


def _fact(asking: Asking, subject: Subject, text: str, said: Sequence[Message], now: datetime) -> Fact:
    own = is_same_person(subject, asking.person)
    hearsay = all(message.author.id != subject.id for message in said)
    return Fact(
        id=asking.call,
        subject=subject,
        text=text,
        place=asking.place,
        sources=tuple(message.id for message in said),
        learned_at=now,
        scope=default_scope(asking.place) if own else "chat",
        confidence=HEARSAY_FACTOR if hearsay else 1.0,
        hearsay=hearsay,
    )


def _same(facts: Iterable[Fact], fact_id: str, text: str) -> Fact | None:
    """The fact of that id, or else the one that says the same."""
    known = list(facts)
    by_id = (fact for fact in known if fact.id == fact_id)
    by_words = (fact for fact in known if _says(fact, fact.text) == _says(fact, text))
    return next(by_id, None) or next(by_words, None)


def _says(fact: Fact, text: str) -> tuple[str, ...]:
    return comparable_words(text, fact.subject.name)


def _only_one_with(facts: Iterable[Fact], words: str) -> Fact | None:
    """The fact that holds all these words, if there is one such and no more: the person is asked about it."""
    found = [fact for fact in facts if contains_any(fact.text, [FactWords.of(words, called=[fact.subject.name])])]
    return found[0] if len(found) == 1 else None


def _recalled(fact: Fact, zone: tzinfo) -> Recalled:
    about = fact.subject.name or fact.subject.id
    return Recalled(id=fact.id, about=about, fact=fact.text, learned=f"{fact.learned_at.astimezone(zone):%Y-%m-%d}")


async def _is_cleared(store: StoreProtocol, message: Message) -> bool:
    """Whether a message was said before the conversation of its place began."""
    return (await store.log.number(message) or 0) < await store.place_settings.beginning(message.place)


def _reason(message: Message, asking: Asking, zone: tzinfo, *, cleared: bool) -> Reason:
    """A message, with its words where all who hear them now may: in its place, to their author, in a direct chat."""
    own = message.author.id == asking.target.author.id
    told = own or asking.place.kind == "direct" or is_same_place(message.place, asking.place)
    when = f"{message.sent_at.astimezone(zone):%Y-%m-%d %H:%M %Z}" if message.sent_at else ""
    return Reason(who=message.author.name, when=when, said=message.text[:SHOWN] if told and not cleared else "")
