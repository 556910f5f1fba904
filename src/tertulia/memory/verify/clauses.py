"""Finds the clauses of a message that support a fact: same person, same negation, same tense. Pure.

A sentence is split into clauses with one subject each. How a clause begins tells whom it is about: its author ("I",
"my brother"), a person who is addressed ("you") or named, or somebody else.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice

from msgspec import Struct

from tertulia.memory.patterns import before_echo, grammar, split_clauses
from tertulia.memory.sentences import own_sentences, spoken_text, words_in
from tertulia.memory.verify.comparison import content_words, has_any_word, is_same_word, is_supported
from tertulia.memory.verify.markers import (
    ASKS,
    DENIED,
    FIRST,
    HEARSAY,
    LONG_AGO,
    OWN_REPORT,
    SAYS_NO,
    SAYS_WISH,
    WISHED,
    any_word,
    claims_authority,
    is_order,
    is_over,
    tells_past,
)
from tertulia.messages import Author, Message

MAX_SUBJECT_CLAUSES = 200  # of one sentence
MAX_CLAUSE_LENGTH = 400  # characters; nobody speaks so long of one subject

_I = "i|i'm|im|i've|i'd|i'll|we|we're|we've|я|ми|ich|ja"
_YOU = (
    "you|you're|you've|you'd|you'll|your|yours|u|ur|ти|тебе|тобі|твій|твоя|твоє|твої|твою|ви|вас|вам|ваш|ваша|du|"
    "dein|ty"
)
_ANYONE = "anyone|anybody|someone|somebody|everyone|everybody|nobody|no one|people|хтось|всі|усі|ніхто|люди"
_THEY = "he|she|they|it|he's|she's|they're|він|вона|вони|он|она"
_THEIR = "his|her|their|its|його|її|їх|їхній|їхня"
_THIS = r"(?:this|these|those|цей|ця|ці|той|ті) (?!is\b|—)"
_MY = "my|our|мій|моя|моє|мої|мого|мою|моєму|наш|наша"
_WHO = "who|whose|which|that|який|яка|яке|які|яку|котрий|котра|що"
_LIVES_THERE = (
    "lives|works|likes|loves|hates|enjoys|prefers|owns|plays|speaks|studies|teaches|learns|drinks|eats|smokes|wants|"
    "runs|comes"
)
_LIVES = (
    f"{_LIVES_THERE}|живе|живуть|мешкає|мешкають|проживає|працює|працюють|любить|люблять|обожнює|ненавидить|має|мають|"
    "вчиться|навчається|вивчає|вчить|грає|розмовляє|говорить|п'є|їсть|палить|курить|хоче|служить|володіє|дружить"
)
_IS = "is|has|isn't|was|had|'s"
_LIVE = "live|work|study|speak|own|hate|enjoy|prefer|teach|drink|eat|smoke|are|have"
_TOPICS = (
    r"(?:(?:first|full|real) )?(?:name|birthday|bday|b-day|pronouns|favou?rite|fave|job|work|profession|hobby|"
    r"hobbies|age|"
    r"home|hometown|city|native|mother tongue|ім'я|день|др|займенники|улюблен|робот|вік|хобі|місто|рідн)"
)
_FILLERS = (
    r"\W*+(?:(?:and|but|so|well|also|btw|by the way|actually|yes|no|ok|hey|hi|our|still|just|currently|а|але|і|й|та|ну|"
    r"так|ні|до речі|наш|наша|ще|зараз)\W++)*"
)
_KIN = (
    r"(?:(?:late|dear|new|first|only|older|elder|younger|little|big|best|old|старш\w+|молодш\w+|менш\w+|найкращ\w+|"
    r"покійн\w+) )?(?P<kin>[^\W\d_]+)"
)

_DID = re.compile(
    r"\W*(?!(?:i|i'\w+|we|we'\w+|just|also|already|once|never|always|finally|\w+ly|я|ми|сам|сама|раніше|колись|торік|"
    r"недавно|нещодавно|вже|"
    r"уже|потім|тоді|спочатку|зараз|також|теж|\w+(?:в|ла|ли|вся|лася|лась))\b)"
    r"(?-i:[A-ZА-ЯІЇЄҐ])[\w'-]+ (?:(?-i:[A-ZА-ЯІЇЄҐ])[\w'-]+ )?\w+(?:ed|в|ла|ли|вся|лася|лась)\b",
    re.IGNORECASE,
)  # a name, and what its bearer did
_BORDERS = re.compile(
    r"(?<!\s)\s*+[,:()—\ufffc]+\s*|(?<!\s)\s++(?:but|and|so|because|however|when|while|але|проте|і|й|та|бо|коли|поки)\s+",
    re.IGNORECASE,
)
_NOT_OF = "".join(rf"(?<!\b{word})" for word in "of with for to from by at in on not the".split())
_SUBJECTS = re.compile(
    rf"(?<!\s)\s++(?=(?:{_I}|{_YOU}|{_THEY}|{_WHO})(?![\w'/]))|"
    rf"(?<!\s){_NOT_OF}\s++(?=(?-i:[A-Z])[\w'-]+\s+(?:(?-i:[A-Z])\w+\s+)?(?:{_IS}|{_LIVES_THERE})(?![\w']))|"
    rf"(?<!\s)\s++(?=(?:{_MY}|{_THEIR})\s+(?:\w+\s+){{1,2}}(?:{_IS}|{_LIVES})(?![\w']))",
    re.IGNORECASE,
)
_KNOW = any_word(
    r"(?:know|think|thought|heard|hear|guess|believe|hope|suppose|bet|swear|sure|знаю|думаю|чув|чула|вважаю|гадаю|"
    r"певн\w+)"
)
_WITH_ME = re.compile(r"\b(?:мене|мені|нас|нам)\b", re.IGNORECASE)
_OF_THEM = re.compile(r"(?!(?:is|has|was)$).*(?:[^s]s|є|ить|їть|їсть|ться|ає|ує)$")
_OWN = re.compile(rf"\b(?:me|us|mine|myself|мене|мені|мною|нас|нам|{_MY})\b|^{_FILLERS}{_TOPICS}", re.IGNORECASE)
_I_LEADS = re.compile(rf"{_FILLERS}(?:(?:у|в|для|for|to) )?(?:{_I}|me|мене|мені)(?![\w'])", re.IGNORECASE)
_MINE_LEADS = re.compile(rf"{_FILLERS}(?:{_MY}) {_TOPICS}", re.IGNORECASE)
_YOU_LEAD = re.compile(rf"{_FILLERS}(?:{_YOU})(?![\w'])", re.IGNORECASE)
_YOURS = re.compile(rf"{_FILLERS}(?:your|ur|твій|твоя|твоє|твої|ваш|ваша|dein) {_KIN}", re.IGNORECASE)
_THEY_LEAD = re.compile(rf"{_FILLERS}(?:(?:{_THEY}|{_THEIR}|{_ANYONE})(?![\w'/])|{_THIS})", re.IGNORECASE)
_KIN_LEAD = re.compile(rf"{_FILLERS}(?:{_MY}) (?!{_TOPICS}){_KIN}", re.IGNORECASE)
_CALL_ME = re.compile(r"\b(?:calls? me|(?:звати|зви|звіть|називай|називайте|кличте) мене)\b", re.IGNORECASE)
_KIN_CALLED = re.compile(r"'?s name\b|\bis (?:called|named)\b|\b(?:звати|звуть)\b", re.IGNORECASE)
_HAS = re.compile(r"\W*(?:has|owns|має|є)\b", re.IGNORECASE)
_WHO_LEAD = re.compile(rf"\W*(?:{_WHO}|де|where)\b", re.IGNORECASE)
_VERB_LEADS = re.compile(rf"{_FILLERS}(?:{_LIVES}|is|has|was)\b", re.IGNORECASE)
_NAMED = re.compile(rf"{_FILLERS}@?(?P<name>\w[\w-]*?)(?P<has>'s?)?(?:\s+{_KIN})?(?![\w'])", re.IGNORECASE)
_OTHERS = re.compile(rf"(?<![\w'])(?:{_LIVES})(?![\w'])", re.IGNORECASE)
_HE_IS = re.compile(r"(?<![\w'])(?:is|isn't|has|hasn't)(?![\w'])", re.IGNORECASE)
_ANYBODYS = re.compile(
    rf"(?<![\w'])(?:{_IS})(?![\w'])|^(?!{_FILLERS}(?:{_LIVE})\b).*\w\s+(?:{_LIVE})\b|\ws (?:love|like)\b",
    re.IGNORECASE,
)


class _SourceSentence(Struct, frozen=True, kw_only=True):
    """A sentence that its author states, and how it is meant."""

    text: str
    wished: bool
    long_ago: bool
    denied: bool  # or in the past
    ordered: bool
    hearsay: bool


def supporting_clauses(person: Author, fact: str, message: Message, people: Mapping[str, Author]) -> Iterator[str]:
    """Find the clauses of *message* that are about *person* and agree with *fact* in negation, tense and wish."""
    for sentence in _statements(spoken_text(message)):
        if _sentence_agrees(sentence, fact):
            yield from (
                clause
                for clause in _clauses_about(person, sentence, fact, message, people)
                if _clause_agrees(clause, fact)
            )


def supporting_messages(fact: str, person: Author, messages: Sequence[Message]) -> list[Message]:
    """Find which of *messages*, oldest first, support a fact: the newest that does alone, or several together."""
    people = {message.author.id: message.author for message in messages if message.author.is_person}
    called = [person.name]
    clauses = [(message, list(supporting_clauses(person, fact, message, people))) for message in messages]
    for message, words in reversed(clauses):
        if is_supported(fact, words, called=called):
            return [message]
    if not is_supported(fact, [word for _, words in clauses for word in words], called=called):
        return []
    counted = content_words(fact, called=called)
    return [message for message, words in clauses if has_any_word(" ".join(words), counted)]


@lru_cache(maxsize=1024)
def _statements(text: str) -> tuple[_SourceSentence, ...]:
    """Return the sentences that the author of a text states: no reports, no requests, no claims of authority.

    They are without the questions in them, and without idioms that look like a condition.
    """
    found: list[_SourceSentence] = []
    for sentence in own_sentences(text):
        said = grammar().idioms.sub("", sentence.text)
        if sentence.asks:
            said = ", ".join(piece for _, piece in before_echo(list(split_clauses(said))))
        reported = grammar().reported.search(OWN_REPORT.sub(" ", said))
        if not said or reported or grammar().requests.search(said) or claims_authority(said):
            continue
        statement = _SourceSentence(
            text=said,
            wished=bool(WISHED.search(said)),
            long_ago=bool(LONG_AGO.search(said)),
            denied=is_over(said) or any(one.search(said) for one in (DENIED, SAYS_NO)),
            ordered=is_order(said),
            hearsay=bool(HEARSAY.search(said)),
        )
        found.append(statement)
    return tuple(found)


def _sentence_agrees(sentence: _SourceSentence, fact: str) -> bool:
    """Return whether *fact* keeps the wish and the past of the sentence, and adds no negation to it."""
    if sentence.wished and not SAYS_WISH.search(fact):
        return False
    if sentence.long_ago and not tells_past(fact):
        return False
    return sentence.denied or not SAYS_NO.search(fact)


def _clause_agrees(clause: str, fact: str) -> bool:
    if DENIED.search(clause) and not SAYS_NO.search(fact):
        return False
    return not is_over(clause) or tells_past(fact)


def _clauses_about(
    person: Author, sentence: _SourceSentence, fact: str, message: Message, people: Mapping[str, Author]
) -> Iterable[str]:
    if message.author.id == person.id:
        others = [one for one in people.values() if one.id != person.id]
        return clauses_about_author(sentence.text, fact, others=others, strictly=sentence.ordered)
    if sentence.ordered or sentence.hearsay:
        return ()
    quote = message.reply_to
    quoted = quote.author if quote and quote.forwarded_from is None else None  # of a forward, "you" may be either
    addressed = quoted is not None and quoted.id == person.id
    return clauses_about_other(sentence.text, fact, person=person, people=people.values(), addressed=addressed)


@lru_cache(maxsize=256)
def subject_clauses(sentence: str) -> Sequence[tuple[str, str]]:
    """Split a sentence into clauses with one subject each, as (clause before, clause).

    After a question only clauses in the first person are left.
    """
    return tuple(islice(_clauses(sentence), MAX_SUBJECT_CLAUSES))


def _clauses(sentence: str) -> Iterator[tuple[str, str]]:
    asked, before = False, ""
    for part in _BORDERS.split(_KNOW.sub(r"\g<0>,", sentence)):
        asks = bool(ASKS.match(part))
        asked = asked or asks
        for clause in [] if asks else filter(None, _SUBJECTS.split(part)):
            if len(clause) <= MAX_CLAUSE_LENGTH and (not asked or _is_first_person(clause)):
                yield before, clause
            before = clause


def clauses_about_author(
    sentence: str, fact: str, *, others: Sequence[Author], strictly: bool = False
) -> Iterator[str]:
    """Find the clauses in which authors speak about themselves, or about a relative whom *fact* names too.

    *strictly*: only clauses in the first person.
    """
    for before, clause in subject_clauses(sentence):
        if _is_first_person(clause) if strictly else _is_about_author(clause, before, fact, others):
            yield clause


def clauses_about_other(
    sentence: str, fact: str, *, person: Author, people: Iterable[Author], addressed: bool
) -> Iterator[str]:
    """Find the clauses about *person*, another than the author: begun by the name, or by "you" if *addressed*."""
    if FIRST.search(sentence) or not (addressed or is_named(person, sentence, people)):
        return
    names = (*words_in(person.name)[:1], (person.username or "").casefold())  # as they are, not inflected
    led = False
    for _, clause in subject_clauses(sentence):
        found = _NAMED.match(clause)
        named = found if found and found["name"].casefold() in names else None
        if named and not clause[named.end("name") :].strip(" .!?…\"'"):
            addressed = led = True
        elif named and not named["has"]:
            led = True
            yield clause
        elif named or (addressed and _YOU_LEAD.match(clause)):
            owned = named or _YOURS.match(clause)
            led = False
            if owned is None or _is_topic(clause, owned) or _names(owned["kin"], fact):
                yield clause
        elif led and _VERB_LEADS.match(clause):
            yield clause
        else:
            led = False


def is_named(person: Author, text: str, people: Iterable[Author]) -> bool:
    """Return whether *text* names the person, and nobody else in *people* has that name."""
    words = set(words_in(text))
    if person.username and re.search(rf"(?<!\w){re.escape(person.username)}(?!\w)", text, re.IGNORECASE):
        return True
    called = words_in(person.name)[:1]
    if not called or len(called[0]) < 3 or not any(is_same_word(called[0], word) for word in words):
        return False
    return not any(other.id != person.id and words_in(other.name)[:1] == called for other in people)


def _is_first_person(clause: str) -> bool:
    return bool(_I_LEADS.match(clause) or _MINE_LEADS.match(clause)) and not _OTHERS.search(clause)


def _is_about_author(clause: str, before: str, fact: str, others: Sequence[Author]) -> bool:
    """Decide by how a clause begins: call me, you, they, who, my brother, a name; else by its subject."""
    if _CALL_ME.search(clause):
        return True
    if _YOU_LEAD.match(clause) or _THEY_LEAD.match(clause):
        return False
    if _WHO_LEAD.match(clause):
        return _names(next(reversed(words_in(before)), ""), fact)
    if kin := _KIN_LEAD.match(clause):
        return _names(kin["kin"], fact) or bool(_KIN_CALLED.search(clause) and _HAS.match(fact))
    first = words_in(clause)[:1]
    if first and first[0] not in words_in(fact) and any(words_in(one.name)[:1] == first for one in others):
        return False
    if _HAS.match(fact) and first and first[0] in content_words(fact):
        return True
    return _has_author_as_subject(clause, fact)


def _has_author_as_subject(clause: str, fact: str) -> bool:
    """Decide by the verb: in the third person, the clause must mention its author too."""
    if _HE_IS.search(clause) and _I_LEADS.match(clause):
        return bool(_OWN.search(clause))
    if _OTHERS.search(clause) or _DID.match(clause) or _has_verb_of(clause, fact):
        return bool(_WITH_ME.search(clause))
    return bool(_OWN.search(clause) or _I_LEADS.match(clause) or not _ANYBODYS.search(clause))


def _has_verb_of(clause: str, fact: str) -> bool:
    """Return whether a clause has the verb of a fact in the third person: then its subject is not the author."""
    verb = words_in(fact)[:1]
    return bool(verb and _OF_THEM.match(verb[0]) and verb[0] in words_in(clause)[1:] and not _OWN.search(clause))


def _is_topic(clause: str, owned: re.Match[str]) -> bool:
    return bool(owned["kin"] and re.match(_TOPICS, clause[owned.start("kin") :], re.IGNORECASE))


def _names(word: str | None, fact: str) -> bool:
    return bool(word) and any(is_same_word(str(word).casefold(), one) for one in words_in(fact))
