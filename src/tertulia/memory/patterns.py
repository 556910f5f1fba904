"""Finds facts that people plainly state about themselves: one engine, a TOML file of patterns for each language.

How a message is read. A request to translate or to write something states nothing. Any other message is split into
sentences, these into clauses. A reported sentence and what follows a doubt are left out, greetings and fillers are cut
off. Each rule is matched against the whole clause; of two rules of one kind (`taste:tea`, `taste:milk`) the first
that matches gives the fact. The patterns are careful: they find nothing rather than something wrong.

How a rule is read. A rule is `[key, text, pattern, options]`:

    ["home", "Lives in {place}.", "(?:${im})?based in <place>"]

- `pattern` is a regular expression in any case. `${im}` stands for an entry of `[fragments]`. `<place>` is a gap: any
  text that fulfils the conditions of `[gaps.place]` (`CONDITIONS`). Other named groups, `(?P<verb>like|love)`, are
  gaps that need no conditions. Line breaks and the indentation of lines are left out.
- `key` and `text` are the fact; `{place}` is the text in the gap. `[verbs]` puts the gap `verb` into the third person.
- `options`: `tail` (a pattern of what may follow, else `${tail}`), `confidence` (else 0.9), `serious` (no fact in a
  sentence with laughter), `dated` (the fact says on which day it was true, in the words of `dated`).

A new language is a new file in `languages/`. The fields of `Language` are what it must hold.
"""

import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import Any

import msgspec
from msgspec import Struct

from tertulia.errors import InvalidValue
from tertulia.memory.sentences import Sentence, own_sentences, own_words, spoken_text, words_in
from tertulia.messages import Message

MAX_CLAUSE = 160  # characters
MAX_CLAUSES = 100  # of one message
_MAX_KEY = 60  # characters
_PUNCTUATION = " \t.!?…,;)(-—~\"'"

_FRAGMENT = re.compile(r"\$\{(\w+)\}")
_GAP = re.compile(r"(?<!\?P)<(\w+)>")
_NAME_LETTERS = re.compile(r"(?:[^\W\d_]|['-](?=\w)){1,20}")  # one word of an unknown name


class StatedFact(Struct, frozen=True, kw_only=True):
    """A fact that a message states about its author."""

    key: str
    text: str
    confidence: float


class Options(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of a rule; `tail` is already part of its pattern."""

    confidence: float = 0.9
    serious: bool = False
    dated: bool = False


class PatternRule(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One way to state a fact about oneself."""

    key: str
    text: str
    pattern: str  # with its fragments, gaps and tail filled in
    options: Options = Options()


class SharedSubject(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A clause without a subject that has the one of the clause before it: "I love tea and hate coffee"."""

    pronoun: str
    verbs: str  # how the clause begins
    clause: str  # how the clause before it begins


class FirstPerson(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rules from first to third person. A verb is looked up in `irregular`, `[verbs]` and `endings`, in this order."""

    begins: str  # a sentence about oneself
    words: tuple[str, ...]  # lists of words that a sentence about somebody else does not have
    verb: str  # the pronoun, and the verb as a group
    irregular: Mapping[str, str] = {}
    unchanged: str = ""  # verbs that stay as they are
    endings: tuple[tuple[str, str], ...] = ()  # [pattern, replacement]: the first that is found


class Language(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file of a language. Every `str` but `dated` is a pattern: alternatives, divided by `|`."""

    rules: tuple[PatternRule, ...]
    gaps: Mapping[str, Mapping[str, Any]]
    lists: Mapping[str, frozenset[str]]
    verbs: Mapping[str, str]
    first_person: FirstPerson
    shared_subject: SharedSubject | None = None
    dated: str  # a fact without its full stop, and a date
    times: str  # when it began, in front of a statement
    fillers: str  # what a statement may begin with
    starters: str  # what a clause begins with after one of the joints
    joints: str  # words between two clauses
    subjects: str  # what a clause begins with after a dash
    labels: str  # words before a colon that belong to the statement
    doubtful: str  # before a clause: it is not stated
    reported: str  # in a sentence: somebody else says so, or it is not meant
    requests: str  # in a message: its text is material
    echoes: str  # how a question begins that only gives a question back
    idioms: str  # what looks like a condition and is none
    foreign: str = ""  # in a text: it is in another language

    def has(self, names: Iterable[str], words: Iterable[str]) -> bool:
        """Return whether one of *words* is in one of the lists."""
        wanted = set(words)
        return any(not wanted.isdisjoint(self.lists[name]) for name in names)

    def stems(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(stem for name in names for stem in self.lists[name])


class Grammar(Struct, frozen=True, kw_only=True):
    """All languages, and the patterns that are the same for every rule."""

    languages: tuple[Language, ...]
    titles: frozenset[str]  # roles that are no names of people: "admin"
    doubtful: re.Pattern[str]
    reported: re.Pattern[str]
    requests: re.Pattern[str]
    echo: re.Pattern[str]
    idioms: re.Pattern[str]
    border: re.Pattern[str]  # between clauses
    label: re.Pattern[str]
    fillers: re.Pattern[str]
    first_person: re.Pattern[str]
    first_person_words: frozenset[str]
    verbs: Mapping[str, str]  # of all languages

    @classmethod
    def of(cls, languages: tuple[Language, ...]) -> "Grammar":
        def alternatives(pattern: Callable[[Language], str]) -> str:
            return "|".join(map(pattern, languages))

        def compiled(pattern: str) -> re.Pattern[str]:
            return re.compile(pattern, re.IGNORECASE)

        def alone(pattern: str) -> re.Pattern[str]:
            return compiled(rf"(?<![\w'])(?:{pattern})(?![\w'])")

        joints = alternatives(lambda one: rf"(?<!\s)\s++(?:{one.joints})\s+(?=(?:{one.starters})(?![\w']))")
        dash = rf"(?<!\s)\s++[-—]\s+(?=(?:{alternatives(lambda one: one.subjects)})\s)"
        fillers = alternatives(lambda one: f"{one.times}|{one.fillers}")
        return cls(
            languages=languages,
            titles=frozenset().union(*(one.lists["titles"] for one in languages)),
            doubtful=alone(alternatives(lambda one: one.doubtful)),
            reported=alone(alternatives(lambda one: one.reported)),
            requests=alone(alternatives(lambda one: one.requests)),
            echo=compiled(alternatives(lambda one: one.echoes)),
            idioms=compiled(alternatives(lambda one: one.idioms)),
            border=compiled(rf"(?<!\s)\s*+[,(){{}}\[\]:|\ufffc]+\s*|{dash}|{joints}"),
            label=compiled(rf"\b({alternatives(lambda one: one.labels)})\s*:\s*"),
            fillers=compiled(rf"(?:(?:{fillers})(?![\w'])[\s,!.—-]*)+"),
            first_person=compiled(rf"\W*(?:{alternatives(lambda one: one.first_person.begins)})(?![\w'\u2019])"),
            first_person_words=frozenset(word for one in languages for word in one.stems(one.first_person.words)),
            verbs={first: third for one in languages for first, third in one.verbs.items()},
        )


@cache
def grammar() -> Grammar:
    """Load the languages on first use: many programs extract no facts."""
    folder = files("tertulia.memory") / "languages"
    found = sorted((one for one in folder.iterdir() if one.name.endswith(".toml")), key=lambda one: one.name)
    return Grammar.of(tuple(load_language(one.read_text(encoding="utf-8")) for one in found))


def load_language(text: str) -> Language:
    """Read the file of a language: fill in fragments, gaps and tails, split its lists into entries."""
    data = tomllib.loads(text)
    fragments: dict[str, str] = data.pop("fragments")
    lists = {  # divided by commas where there are any, else by spaces
        name: [" ".join(one.split()) for one in words.split(",")] if "," in words else words.split()
        for name, words in data.pop("lists").items()
    }

    def expand(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: expand(one) for name, one in value.items()}
        if isinstance(value, list):
            return [expand(one) for one in value]
        if not isinstance(value, str):
            return value
        line = "".join(map(str.lstrip, value.splitlines()))
        return _GAP.sub(r"(?P<\1>.+?)", _FRAGMENT.sub(lambda found: expand(fragments[found[1]]), line))

    def with_tail(key: str, text: str, pattern: str, options: dict[str, Any] | None = None) -> list[object]:
        options = dict(options or {})
        return [key, text, pattern + options.pop("tail", "${tail}"), options]

    data["rules"] = [with_tail(*rule) for rule in data["rules"]]
    language = msgspec.convert(expand(data) | {"lists": lists}, Language)
    unknown = {name for gap in language.gaps.values() for name in gap} - CONDITIONS.keys() - {"skip", "ignored"}
    if unknown:
        raise InvalidValue(f"no condition of a gap is called {', '.join(sorted(unknown))}")
    return language


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a rule when it is first needed: all of them take a while."""
    return re.compile(pattern, re.IGNORECASE)


class GapText(Struct, frozen=True, kw_only=True):
    """The text in a gap, as conditions read it."""

    text: str
    tokens: Sequence[str]  # between spaces
    words: Sequence[str]  # in lower case, without those that are ignored
    language: Language

    @classmethod
    def of(cls, text: str, gap: Mapping[str, Any], language: Language) -> "GapText":
        """Read *text* as *gap* wants it: without the first words (`skip`), not counting some others (`ignored`)."""
        text = text.split(maxsplit=gap.get("skip", 0))[-1]
        ignored = gap.get("ignored", ())
        words = [word for word in words_in(text) if not language.has(ignored, [word])]
        return cls(text=text, tokens=text.split(), words=words, language=language)

    def fits(self, gap: Mapping[str, Any]) -> bool:
        return all(CONDITIONS[name](self, wanted) for name, wanted in gap.items() if name in CONDITIONS)

    def has(self, lists: Iterable[str], words: Iterable[str]) -> bool:
        return self.language.has(lists, words)

    def begins(self, word: str, lists: Iterable[str]) -> bool:
        return word.startswith(self.language.stems(lists))

    def ends(self, word: str, lists: Iterable[str]) -> bool:
        return word.endswith(self.language.stems(lists))


def _is_capital(word: str) -> bool:
    return word[:1].isupper()


def _is_name(gap: GapText, known: Collection[str]) -> bool:
    """Accept a known first name, or words with capitals that hold nothing but letters."""
    if len(gap.words) != len(gap.tokens) or not grammar().titles.isdisjoint(gap.words):
        return False
    if gap.has(known, gap.words[:1]):
        return True
    return not gap.text.isupper() and all(_is_capital(one) and _NAME_LETTERS.fullmatch(one) for one in gap.tokens)


def _is_place(gap: GapText, wanted: Mapping[str, Collection[str]]) -> bool:
    """Accept a known place; one word with a known stem; or words with capitals, particles between them."""
    folded = gap.text.casefold()
    if any(map(str.isdigit, gap.text)):
        return False
    if gap.has(wanted["known"], [folded]):
        return True
    if gap.begins(folded, wanted.get("never_stems", ())) or gap.has(wanted["articles"], [gap.tokens[0].casefold()]):
        return False
    stems = tuple(stem for stem in gap.language.stems(wanted.get("stems", ())) if len(stem) > 3)
    if len(gap.tokens) == 1 and len(folded) > 4 and folded.startswith(stems):
        return len(folded) <= 14
    if gap.text.isupper() and len(gap.text) > 4:
        return False
    last = gap.tokens[-1]
    return _is_capital(last) and all(_is_capital(one) or gap.has(wanted["particles"], [one]) for one in gap.tokens)


def _has_head(gap: GapText, wanted: Mapping[str, Any]) -> bool:
    """Accept a word of a list, with a few words before it, and after it only words with certain endings."""
    at = next((number for number, word in enumerate(gap.words) if gap.has(wanted["lists"], [word])), None)
    if at is None or at > wanted["before"]:
        return False
    return all(gap.ends(word, wanted["after"]) for word in gap.words[at + 1 :])


def _capitals(gap: GapText, which: str) -> bool:
    tokens = {"all": gap.tokens, "first": gap.tokens[:1], "second": gap.tokens[1:2]}[which]
    return bool(tokens) and all(map(_is_capital, tokens))


# The conditions that a gap may name, each with its argument: a range, or names of lists.
CONDITIONS: Mapping[str, Callable[[GapText, Any], bool]] = {
    "words": lambda gap, wanted: wanted[0] <= len(gap.words) <= wanted[1],
    "tokens": lambda gap, wanted: wanted[0] <= len(gap.tokens) <= wanted[1],
    "number": lambda gap, wanted: wanted[0] <= int(gap.text) <= wanted[1],
    "lower": lambda gap, wanted: gap.text.islower() == wanted,
    "capitals": _capitals,  # of "all" tokens, the "first" or the "second"
    "whole": lambda gap, lists: gap.has(lists, [gap.text.casefold()]),
    "first": lambda gap, lists: gap.has(lists, gap.words[:1]),
    "last": lambda gap, lists: gap.has(lists, gap.words[-1:]),
    "all": lambda gap, lists: all(gap.has(lists, [word]) for word in gap.words),
    "never": lambda gap, lists: not gap.has(lists, gap.words),
    "never_first": lambda gap, lists: not gap.has(lists, gap.words[:1]),
    "any_stem": lambda gap, lists: any(gap.begins(word, lists) for word in gap.words),
    "all_stem": lambda gap, lists: all(gap.begins(word, lists) for word in gap.words),
    "never_stem": lambda gap, lists: not any(gap.begins(word, lists) for word in gap.words),
    "any_ending": lambda gap, lists: any(len(word) > 4 and gap.ends(word, lists) for word in gap.words),
    "never_last_ending": lambda gap, lists: not gap.ends(gap.words[-1], lists),
    "head": _has_head,
    "name": _is_name,
    "place": _is_place,
    "either": lambda gap, gaps: any(map(gap.fits, gaps)),
}


def find_facts(message: Message) -> list[StatedFact]:
    """Find what *message* states about its author, each key once."""
    text = spoken_text(message)
    if not text or grammar().requests.search(own_words(text)):
        return []
    languages = [one for one in grammar().languages if not (one.foreign and _compiled(one.foreign).search(text))]
    found: dict[str, StatedFact] = {}
    clauses = ((clause, sentence) for sentence in own_sentences(text) for clause in _statements(sentence))
    for clause, sentence in islice(clauses, MAX_CLAUSES):
        for fact in _facts(clause, sentence, languages, message):
            found.setdefault(fact.key, fact)
    return list(found.values())


def split_clauses(text: str) -> Iterator[tuple[int, str]]:
    """Split *text* into clauses, each with its position."""
    start = 0
    for found in grammar().border.finditer(text):
        yield start, text[start : found.start()]
        start = found.end()
    yield start, text[start:]


def before_echo(clauses: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Return the clauses before an echo question ("and you?"); none before any other question."""
    last = next((number for number in range(len(clauses) - 1, 0, -1) if clauses[number][1].strip(_PUNCTUATION)), 0)
    return clauses[:last] if last and grammar().echo.match(clauses[last][1].strip()) else []


def _statements(sentence: Sentence) -> Iterator[str]:
    """Yield the clauses of a sentence that are stated, without what they begin with."""
    text = grammar().idioms.sub("", grammar().label.sub(r"\1 ", sentence.text))
    if grammar().reported.search(text):
        return
    doubt = grammar().doubtful.search(text)
    clauses = list(split_clauses(text))
    before = ""
    for start, clause in before_echo(clauses) if sentence.asks else clauses:
        if doubt and doubt.end() <= start:
            return
        bare = clause.strip(_PUNCTUATION)
        fillers = grammar().fillers.match(bare)
        before = _with_subject(bare[fillers.end() :] if fillers else bare, before)
        yield before


def _with_subject(clause: str, before: str) -> str:
    for shared in (one.shared_subject for one in grammar().languages if one.shared_subject):
        if _compiled(rf"(?:{shared.verbs})(?![\w'])").match(clause) and _compiled(shared.clause).match(before):
            return f"{shared.pronoun} {clause}"
    return clause


def _facts(clause: str, sentence: Sentence, languages: list[Language], message: Message) -> Iterable[StatedFact]:
    if not clause or len(clause) > MAX_CLAUSE:
        return ()
    facts: dict[str, StatedFact] = {}  # by kind: the first rule of a kind says more
    for language in languages:
        for rule in language.rules:
            if rule.options.serious and sentence.laughing:
                continue
            found = _compiled(rule.pattern).fullmatch(clause)
            if found and (fact := _fact(rule, found, language, message)):
                facts.setdefault(fact.key.partition(":")[0], fact)
    return facts.values()


def _fact(rule: PatternRule, found: re.Match[str], language: Language, message: Message) -> StatedFact | None:
    gaps = {name: " ".join((text or "").strip(_PUNCTUATION).split()) for name, text in found.groupdict().items()}
    for name, text in gaps.items():
        gap = language.gaps.get(name)
        if gap is not None and found[name] is not None and not (text and GapText.of(text, gap, language).fits(gap)):
            return None
    if "verb" in gaps:
        gaps["verb"] = language.verbs.get(gaps["verb"].casefold(), gaps["verb"].casefold())
    told = rule.text.format_map(gaps).replace(" .", ".")
    if rule.options.dated and message.sent_at is not None:
        told = language.dated.format(told.rstrip("."), message.sent_at.date().isoformat())
    key = rule.key.format_map({name: " ".join(words_in(text)) for name, text in gaps.items()})
    return StatedFact(key=key[:_MAX_KEY], text=told[0].upper() + told[1:], confidence=rule.options.confidence)


def is_first_person(text: str) -> bool:
    """Return whether a sentence is about its author."""
    return bool(grammar().first_person.match(text))
