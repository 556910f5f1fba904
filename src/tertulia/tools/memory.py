"""The memory tools of a model: remember, recall, why and forget, limited to the place and the people of its run."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta, tzinfo
from typing import Annotated, NamedTuple

from msgspec import Struct

from tertulia.characters import visible
from tertulia.context.log import Log
from tertulia.engine.memory.recall import BACK, evidence_messages
from tertulia.engine.store_protocols import StoreProtocol
from tertulia.errors import InvalidValue
from tertulia.memory.facts import (
    HEARSAY_FACTOR,
    NO_LIMIT,
    default_scope,
    is_from,
    is_same_person,
    is_same_place,
    subject_of,
)
from tertulia.memory.values import Fact, Facts, Subject
from tertulia.memory.verify.claims import unfit_reason
from tertulia.memory.verify.clauses import supporting_messages
from tertulia.memory.verify.comparison import FactWords, comparable_words, contains_any
from tertulia.messages import Author, Message, Place
from tertulia.timezones import zone_named
from tertulia.toolbox.run_context import RunContext
from tertulia.toolbox.toolbox import Tool, tool

PREFIX = "fact-"  # of the ids of facts from `remember`
MAX_FACT_TEXT = 500  # characters of a fact
LONGEST_SOURCE = 1000  # characters of a source message
MOST_RECALLED = 200  # facts per call

PROPOSAL_LASTS = timedelta(hours=1)  # for which a proposal to forget can be confirmed

SELF = frozenset(
    "me|myself|i|self|user|the user|я|мене|мені|себе".split("|")
)  # words of a model for the person who is answered

MOST_PROPOSALS = 10  # facts that one question may list, so that the person reads them

JUST_SAID = "they have just said that; it is not forgotten"
PROPOSED = "not forgotten yet: below your answer they are asked whether to forget “{fact}”, and their own yes does it"
ENOUGH = "they are asked about enough already; what else is to be forgotten can be asked in the next answer"
NOTHING = "nothing like that is remembered of them here; name one fact alone, by its id or its words"


class RecalledFact(Struct, frozen=True, kw_only=True):
    id: str
    about: str
    fact: str
    learned: str  # the day


class SourceMessage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message that a fact was learned from."""

    who: str
    when: str = ""
    said: str = ""  # empty if it is not visible in this place, or was cleared


class Request(NamedTuple):
    """The run context of a call, and the message that is answered."""

    context: RunContext
    target: Message  # as it is in the log now

    @property
    def call(self) -> str:
        """The id of a fact that this call adds; the same when it runs again."""
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
    """Return the tools `remember`, `recall`, `why` and `forget`.

    `forget` removes nothing: the person is asked below the answer, and their own plain yes does it. Days and times are
    in *zone*.
    """
    clock = zone_named(zone)
    facts, log = store.facts, store.log

    @tool(repeatable=True)
    async def remember(
        context: RunContext,
        fact: Annotated[str, "One short sentence in the third person, in the language of the person"],
        about: About = "",
    ) -> RecalledFact:
        """Remember a lasting fact that a person has told here about themselves, beyond this conversation."""
        request = await _read_request(log, context)
        text, whom = _checked_text(fact), await _find_person(log, request, about)
        evidence = await evidence_messages(log, whom, place=request.place, target=request.target.id)
        sources = await asyncio.to_thread(supporting_messages, text, whom, evidence)
        _require_support(text, whom, sources)
        subject = subject_of(whom, request.place)
        new = _new_fact(request, subject, text, sources, now())
        await facts.learn([new])
        stored = _find_same(await _visible_facts(facts, request, subject), new.id, text)
        if stored is None:
            raise InvalidValue("that cannot be remembered: its message is gone, or its author is blocked")
        return _as_result(stored, clock)

    @tool(repeatable=True)
    async def recall(context: RunContext, about: About = "") -> list[RecalledFact]:
        """What is remembered about a person and may be told in this conversation, the most useful first."""
        request = await _read_request(log, context)
        subject = subject_of(await _find_person(log, request, about), request.place)
        return [_as_result(fact, clock) for fact in await _visible_facts(facts, request, subject, MOST_RECALLED)]

    @tool(repeatable=True)
    async def why(context: RunContext, fact: Which) -> list[SourceMessage]:
        """Why something about a person is thought to be so: the messages it was learned from."""
        request = await _read_request(log, context)
        found = await _find_fact(facts, request, fact)
        sources = await facts.why(found.id, seen_by=context.seen_by)
        return [_as_source(one, request, clock, cleared=await _is_cleared(store, one)) for one in sources]

    @tool(repeatable=True)
    async def forget(context: RunContext, fact: Which) -> str:
        """Ask the person who is answered whether something about them is to be forgotten. Only if they ask for it."""
        return await _propose(store, await _read_request(log, context), fact, now())

    return [remember, recall, why, forget]


async def _propose(store: StoreProtocol, request: Request, given: str, now: datetime) -> str:
    """Propose to forget a fact; return a text for the model."""
    known = await _visible_facts(store.facts, request, request.person)
    found = _find_same(known, given.strip(), given) or _find_only(known, given)
    if found is None:
        return NOTHING
    if is_from(found, request.place, request.context.batch):
        return JUST_SAID
    run_id = request.context.run_id
    asked = await store.proposals.propose(run_id, found.id, now=now, until=now + PROPOSAL_LASTS, most=MOST_PROPOSALS)
    return PROPOSED.format(fact=found.text) if asked else ENOUGH


async def _read_request(log: Log, context: RunContext) -> Request:
    if context.place is None or context.message is None:
        raise InvalidValue("what is remembered belongs to a conversation, and this call comes from none")
    target = await log.get(context.place, context.message.id)
    if target is None or target.deleted:
        raise InvalidValue("the message that is being answered is gone")
    return Request(context, target)


async def _visible_facts(facts: Facts, request: Request, subject: Subject, limit: int = NO_LIMIT) -> Sequence[Fact]:
    seen_by = request.context.seen_by
    return await facts.about(subject, place=request.place, asked_by=request.person, limit=limit, seen_by=seen_by)


async def _find_fact(facts: Facts, request: Request, given: str) -> Fact:
    """Return the visible fact with that id, or with those words about the person who is answered."""
    named = await facts.get(given.strip())
    found = _find_same(
        await _visible_facts(facts, request, named.subject if named else request.person), given.strip(), given
    )
    if found is None:
        raise InvalidValue(NOTHING)
    return found


async def _find_person(log: Log, request: Request, about: str) -> Author:
    """Return the person with that name among those who write in the place."""
    name = visible(about).strip().removeprefix("@").casefold()
    if not name or name in SELF:
        return request.target.author
    count = await log.count(request.place)
    people = (message.author for message in await log.read(request.place, max(0, count - BACK), count))
    found = {author.id: author for author in people if author.is_person and name in _names(author)}
    if not found:
        raise InvalidValue(f"nobody who writes here is called {about.strip()[:MAX_FACT_TEXT]!r}")
    if len(found) > 1:
        raise InvalidValue(f"several who write here are called that; say which by id: {', '.join(sorted(found))}")
    return next(iter(found.values()))


def _names(author: Author) -> set[str]:
    return {visible(name).casefold() for name in (author.id, author.name, author.username) if name}


def _require_support(text: str, whom: Author, sources: Sequence[Message]) -> None:
    """Raise `InvalidValue` for an instruction, a secret, or what no message says."""
    if why := unfit_reason(text):
        raise InvalidValue(f"that is not remembered: it {why}")
    if not sources:
        why = f"{whom.name} has not said it here, nor was it clearly said of them; give one fact alone, as it was said"
        raise InvalidValue(f"that is not remembered: {why}")


def _checked_text(fact: str) -> str:
    text = " ".join(fact.split())
    if not text or len(text) > MAX_FACT_TEXT:
        raise InvalidValue(f"a fact is a short sentence, of at most {MAX_FACT_TEXT} characters")
    return text


def _new_fact(request: Request, subject: Subject, text: str, sources: Sequence[Message], now: datetime) -> Fact:
    own = is_same_person(subject, request.person)
    hearsay = all(message.author.id != subject.id for message in sources)
    seen_by = request.context.seen_by
    return Fact(
        id=request.call,
        subject=subject,
        text=text,
        place=request.place,
        sources=tuple(message.id for message in sources),
        learned_at=now,
        scope=default_scope(request.place) if own else "chat",
        confidence=HEARSAY_FACTOR if hearsay else 1.0,
        hearsay=hearsay,
        agent=seen_by.agent if seen_by and seen_by.own else None,
    )


def _find_same(facts: Iterable[Fact], fact_id: str, text: str) -> Fact | None:
    """Return the fact with that id, or else the one with the same words."""
    known = list(facts)
    by_id = (fact for fact in known if fact.id == fact_id)
    by_words = (fact for fact in known if _normalise(fact, fact.text) == _normalise(fact, text))
    return next(by_id, None) or next(by_words, None)


def _normalise(fact: Fact, text: str) -> tuple[str, ...]:
    return comparable_words(text, fact.subject.name)


def _find_only(facts: Iterable[Fact], words: str) -> Fact | None:
    """Return the fact that holds all these words, if only one does."""
    found = [fact for fact in facts if contains_any(fact.text, [FactWords.of(words, called=[fact.subject.name])])]
    return found[0] if len(found) == 1 else None


def _as_result(fact: Fact, zone: tzinfo) -> RecalledFact:
    about = fact.subject.name or fact.subject.id
    return RecalledFact(id=fact.id, about=about, fact=fact.text, learned=f"{fact.learned_at.astimezone(zone):%Y-%m-%d}")


async def _is_cleared(store: StoreProtocol, message: Message) -> bool:
    """Whether a message is from before its place was cleared."""
    return (await store.log.number(message) or 0) < await store.place_settings.beginning(message.place)


def _as_source(message: Message, request: Request, zone: tzinfo, *, cleared: bool) -> SourceMessage:
    """Return a source message, with its text if it is visible here: in its place, to its author, in a direct chat."""
    own = message.author.id == request.target.author.id
    is_visible = own or request.place.kind == "direct" or is_same_place(message.place, request.place)
    when = f"{message.sent_at.astimezone(zone):%Y-%m-%d %H:%M %Z}" if message.sent_at else ""
    return SourceMessage(
        who=message.author.name, when=when, said=message.text[:LONGEST_SOURCE] if is_visible and not cleared else ""
    )
