"""What people plainly say of themselves, found by careful patterns: rather nothing than something wrong. Pure."""

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from msgspec import Struct

from palaver.memory.patterns.english import ALONE, ENGLISH
from palaver.memory.patterns.rules import Language, Rule, words_of
from palaver.memory.patterns.ukrainian import UKRAINIAN
from palaver.memory.sentences import Sentence, own_words, sentences, spoken
from palaver.messages import Message

LANGUAGES = (ENGLISH, UKRAINIAN)
LONGEST_CLAUSE = 160  # characters
MOST_CLAUSES = 100  # of one message
_KEY = 60

_RUSSIAN = re.compile(
    r"[ыэъё]|\b(?:что|как|меня|мне|очень|только|нет|сейчас|работаю|где|когда|опять|если|или|зовут|тоже|живём)\b",
    re.IGNORECASE,
)


class Found(Struct, frozen=True, kw_only=True):
    """A fact as a message states it, of its author."""

    key: str
    text: str
    confidence: float


def _any_of(*alternatives: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w'])(?:{'|'.join(alternatives)})(?![\w'])", re.IGNORECASE)


_DOUBTFUL = _any_of(*(language.doubtful for language in LANGUAGES))
REPORTED = _any_of(*(language.reported for language in LANGUAGES))
REQUESTS = _any_of(*(language.requests for language in LANGUAGES))
_ECHO = re.compile("|".join(language.echoes for language in LANGUAGES), re.IGNORECASE)
IDIOMS = re.compile(
    r"\b(?:якщо|якшо)\s+(?:що|шо|чесно|цікаво)\b\s*|\bif (?:that|it|anyone|anybody)\b[^,.]*", re.IGNORECASE
)
_JOINTS = "|".join(
    rf"(?<!\s)\s++(?:{language.joints})\s+(?=(?:{language.starters})(?![\w']))" for language in LANGUAGES
)
_CLAUSES = re.compile(
    rf"(?<!\s)\s*+[,(){{}}\[\]:|\ufffc]+\s*|(?<!\s)\s++[-—]\s+(?=(?:i|i'm|im|я|мене|my)\s)|{_JOINTS}", re.IGNORECASE
)
_LABEL = re.compile(r"\b(pronouns|займенники|ім'я)\s*:\s*", re.IGNORECASE)
_BEGINNINGS = "|".join(words for language in LANGUAGES for words in (language.times, language.fillers))
_FILLERS = re.compile(rf"(?:(?:{_BEGINNINGS})(?![\w'])[\s,!.—-]*)+", re.IGNORECASE)
_ALONE = re.compile(rf"(?:{ALONE})(?![\w'])", re.IGNORECASE)  # a verb whose subject stands in the clause before it
_SHARES = re.compile(
    r"i\s(?!.*\b(?:to|who|that|which|how|when|what|where|why|people|those|they|you|we)\b)", re.IGNORECASE
)
_ENDING = " \t.!?…,;)(-—~\"'"


def facts_in(message: Message) -> list[Found]:
    """What *message* states of its author, each key once."""
    text = spoken(message)
    if not text or REQUESTS.search(own_words(text)):
        return []
    languages = (ENGLISH,) if _RUSSIAN.search(text) else LANGUAGES
    found: dict[str, Found] = {}
    clauses = ((clause, sentence) for sentence in sentences(text) for clause in _statements(sentence))
    for clause, sentence in islice(clauses, MOST_CLAUSES):
        for one in _facts(clause, sentence, languages, message):
            found.setdefault(one.key, one)
    return list(found.values())


def _statements(sentence: Sentence) -> Iterator[str]:
    """The clauses of a sentence that may be taken at their word."""
    text = IDIOMS.sub("", _LABEL.sub(r"\1 ", sentence.text))
    if REPORTED.search(text):
        return
    doubt = _DOUBTFUL.search(text)
    found = list(pieces(text))
    clause = ""
    for start, piece in before_echo(found) if sentence.asks else found:
        if doubt and doubt.end() <= start:
            return
        bare = piece.strip(_ENDING)
        begun = _FILLERS.match(bare)
        said = bare[begun.end() :] if begun else bare
        clause = f"I {said}" if _ALONE.match(said) and _SHARES.match(clause) else said
        yield clause


def pieces(text: str) -> Iterator[tuple[int, str]]:
    """The clauses of *text*, each with where it begins."""
    start = 0
    for found in _CLAUSES.finditer(text):
        yield start, text[start : found.start()]
        start = found.end()
    yield start, text[start:]


def before_echo(found: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """What stands before a question that only gives a question back; nothing of any other."""
    last = next((number for number in range(len(found) - 1, 0, -1) if found[number][1].strip(_ENDING)), 0)
    return found[:last] if last and _ECHO.match(found[last][1].strip()) else []


def _facts(clause: str, sentence: Sentence, languages: tuple[Language, ...], message: Message) -> Iterable[Found]:
    if not clause or len(clause) > LONGEST_CLAUSE:
        return ()
    facts: dict[str, Found] = {}  # one of a kind: the first says more
    for language in languages:
        for rule in language.rules:
            if rule.earnest and sentence.laughing:
                continue
            if (found := rule.match(clause)) and (fact := _fact(rule, found, language, message)):
                facts.setdefault(fact.key.partition(":")[0], fact)
    return facts.values()


def _fact(rule: Rule, found: re.Match[str], language: Language, message: Message) -> Found | None:
    gaps = {name: " ".join(said.strip(_ENDING).split()) for name, said in found.groupdict().items() if said is not None}
    for name, said in gaps.items():
        if name in language.fits and not (said and language.fits[name](said)):
            return None
    if "verb" in gaps:
        gaps["verb"] = language.said.get(" ".join(gaps["verb"].casefold().split()), gaps["verb"].casefold())
    gaps.setdefault("role", "")  # the only gap that a text has and a clause may lack
    text = rule.text.format_map(gaps).replace(" .", ".")
    if rule.key == "age" and message.sent_at is not None:
        text = language.dated.format(text.rstrip("."), message.sent_at.date().isoformat())
    key = rule.key.format_map({name: " ".join(words_of(said)) for name, said in gaps.items()})
    return Found(key=key[:_KEY], text=text[0].upper() + text[1:], confidence=rule.sure)
