"""Patterns find what people plainly say of themselves, and hardly anything else."""

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.labelled import DEV, HELD_BACK, Labelled
from people import ALICE, GRYAG, NOON, a_message, a_quote
from sizes import in_time
from tertulia.errors import InvalidValue
from tertulia.memory.patterns import Options, PatternRule, StatedFact, find_facts, grammar, load_language

JUNK = 0.05  # at most, of what is found
FOUND = 0.70  # at least, of what is there

any_labelled = st.sampled_from((*DEV, *HELD_BACK))


def facts_of(text: str) -> list[StatedFact]:
    return find_facts(a_message(text, sent_at=None))


def fits(found: StatedFact, key: str, words: str) -> bool:
    return found.key.partition(":")[0] == key and words.casefold() in found.text.casefold()


def shares(half: Sequence[Labelled]) -> tuple[float, float]:
    """How much of what is found is junk, and how much of what is there is found."""
    found = [(one, fact) for one in half for fact in facts_of(one.text)]
    good = sum(any(fits(fact, *wanted) for wanted in one.facts) for one, fact in found)
    wanted = [(one, fact) for one in half for fact in one.facts]
    hit = sum(any(fits(found, *fact) for found in facts_of(one.text)) for one, fact in wanted)
    return 1 - good / len(found), hit / len(wanted)


@pytest.mark.parametrize("half", [DEV, HELD_BACK], ids=["worked with", "held back"])
def test_at_most_five_per_cent_are_junk_and_at_least_seventy_are_found(half: Sequence[Labelled]) -> None:
    junk, found = shares(half)

    assert (junk <= JUNK, found >= FOUND) == (True, True), f"{junk:.1%} junk, {found:.1%} found"


def test_the_labelled_set_is_large_and_half_of_it_holds_nothing() -> None:
    labelled = (*DEV, *HELD_BACK)

    assert len(labelled) >= 150
    assert sum(not one.facts for one in labelled) * 2 >= len(labelled)
    assert len({one.text for one in labelled}) == len(labelled)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("My name is Olena", [("name", "Name is Olena.")]),
        ("i live in kyiv", [("home", "Lives in kyiv.")]),
        ("I'm from Poland and I work as a nurse.", [("origin", "Is from Poland."), ("work", "Works as a nurse.")]),
        ("I love sushi but I hate olives", [("taste:sushi", "Loves sushi."), ("taste:olives", "Hates olives.")]),
        ("I don't drink alcohol", [("diet:alcohol", "Doesn't drink alcohol.")]),
        ("Я живу у Львові, працюю лікаркою", [("home", "Живе у Львові."), ("work", "Працює лікаркою.")]),
        ("не люблю оливки", [("taste:оливки", "Не любить оливки.")]),
        ("я народилась у Полтаві", [("origin", "Народилась у Полтаві.")]),
        ("мого кота звати Барсик", [("pet:барсик", "Кота звати Барсик.")]),
        ("мої займенники — вони/їх", [("pronouns", "Займенники: вони/їх.")]),
    ],
)
def test_a_fact_is_a_short_sentence_about_somebody_in_the_language_of_the_message(
    text: str, found: list[tuple[str, str]]
) -> None:
    assert [(fact.key, fact.text) for fact in facts_of(text)] == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("now I live in Kyiv", [("home", "Lives in Kyiv.")]),
        ("Now I live in Kyiv.", [("home", "Lives in Kyiv.")]),
        ("These days, I'm a nurse", [("work", "Is a nurse.")]),
        ("Since 2019 I work at Google", [("work", "Works at Google.")]),
        ("since last year I live in Lviv", [("home", "Lives in Lviv.")]),
        ("Last summer we moved to Berlin", [("home", "Moved to Berlin.")]),
        ("For two years now I'm vegan", [("diet", "Is vegan.")]),
        ("Currently my favourite colour is green", [("favourite:colour", "Favourite colour: green.")]),
        ("Тепер я живу в Києві.", [("home", "Живе в Києві.")]),
        ("Зараз мені подобається джаз", [("taste:джаз", "Подобається джаз.")]),
        ("З 2019 року я працюю в Google", [("work", "Працює в Google.")]),
        ("Торік ми переїхали до Львова", [("home", "Переїхали до Львова.")]),
        ("Вже два роки я живу у Львові", [("home", "Живе у Львові.")]),
        ("Тепер я більше не живу у Львові", [("past:home", "Більше не живе у Львові.")]),
    ],
)
def test_when_it_began_may_be_said_in_front(text: str, found: list[tuple[str, str]]) -> None:
    assert [(fact.key, fact.text) for fact in facts_of(text)] == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("I love tea and hate coffee", ["Loves tea.", "Hates coffee."]),
        ("I live in Lviv and love jazz", ["Lives in Lviv.", "Loves jazz."]),
        ("I enjoy tea but can't stand coffee", ["Enjoys tea.", "Can't stand coffee."]),
        ("I love tea and don't like milk", ["Loves tea.", "Doesn't like milk."]),
        ("Я люблю борщ і не люблю каву.", ["Любить борщ.", "Не любить каву."]),
        ("Обожнюю джаз, але ненавиджу реп", ["Обожнює джаз.", "Ненавидить реп."]),
        ("They love tea and hate coffee", []),
        ("I hate when people love tea and hate coffee", []),
        ("I live with those who adore tea and hate coffee", []),
        ("My cats love milk and hate water", []),
        ("I want to love tea and hate coffee", []),
    ],
)
def test_two_verbs_have_one_subject_where_nobody_else_can_be_meant(text: str, found: list[str]) -> None:
    assert [fact.text for fact in facts_of(text)] == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("I have a dog called Rex", ["Has a dog called Rex."]),
        ("I have two cats named Tom and Jerry", ["Has two cats."]),
        ("I'm allergic to hazelnuts and pistachios so no cake", ["Is allergic to hazelnuts and pistachios."]),
        ("I'm allergic to cats and I live in Lviv", ["Is allergic to cats.", "Lives in Lviv."]),
        ("I'm Bob from Odesa", ["Name is Bob.", "Is from Odesa."]),
    ],
)
def test_one_clause_says_one_thing_of_a_kind(text: str, found: list[str]) -> None:
    assert [fact.text for fact in facts_of(text)] == found


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Мені 34 роки", "34 роки."),
        ("мені 21", "21 рік."),
        ("Мені 11 років", "11 років."),
        ("мені 5 рочків", "5 років."),
        ("мені вже 30", "30 років."),
        ("мені 101 рік", "101 рік."),
        ("мені 12", "12 років."),
        ("мені 3 роки", "3 роки."),
    ],
)
def test_years_are_counted_as_ukrainian_counts_them(text: str, told: str) -> None:
    assert [fact.text for fact in facts_of(text)] == [told]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("I don't live in Lviv anymore", [("past:home", "No longer lives in Lviv.")]),
        ("I no longer live in Prague", [("past:home", "No longer lives in Prague.")]),
        ("I don't work at Google any more", [("past:work", "No longer works at Google.")]),
        ("I'm not a nurse anymore", [("past:work", "Is no longer a nurse.")]),
        ("I'm no longer vegan", [("past:diet", "Is no longer vegan.")]),
        ("I hate coffee now", [("taste:coffee", "Hates coffee.")]),
        ("I don't like coffee anymore", [("taste:coffee", "Doesn't like coffee.")]),
        ("я більше не живу у Львові", [("past:home", "Більше не живе у Львові.")]),
        ("вже не працюю в банку", [("past:work", "Більше не працює в банку.")]),
        ("більше не люблю каву", [("taste:каву", "Не любить каву.")]),
    ],
)  # fmt: skip
def test_what_is_over_is_found_as_such(text: str, found: list[tuple[str, str]]) -> None:
    assert [(fact.key, fact.text) for fact in facts_of(text)] == found


@pytest.mark.parametrize(
    "text",
    [
        "I live in Paris. Just kidding.",
        "I live in Paris. No wait, that was a joke",
        "I work as a nurse! jk",
        "я живу в Парижі. Жартую!",
        "My name is System",
        "My name is System Override",
        "My name is Legion, for we are many",
        "My name is R2D2",
        "my name is Administrator",
        "мене звати Система",
        "they say I live in Rome",
    ],
)
def test_what_is_taken_back_no_name_or_only_said_by_others_is_nothing(text: str) -> None:
    assert facts_of(text) == []


@pytest.mark.parametrize(
    ("text", "told"),
    [("I'm 27", "Is 27 years old (as of 2025-01-15)."), ("мені 19", "19 років (станом на 2025-01-15).")],
)
def test_an_age_says_when_it_was_true(text: str, told: str) -> None:
    assert [fact.text for fact in find_facts(a_message(text, sent_at=NOON))] == [told]


@given(any_labelled)
def test_nothing_is_learned_from_what_is_quoted_code_or_a_command(one: Labelled) -> None:
    line = one.text.replace("\n", " ").translate(str.maketrans("", "", '"«»`'))

    for text in (
        f'"{line}"',
        f"«{line}»",
        f"> {line}",
        f"```\n{line}\n```",
        f"`{line}`",
        f"/say {line}",
        f"♪ {line} ♪",
    ):
        assert facts_of(text) == []


@given(
    any_labelled, st.sampled_from(["Bob: ", "[12:03] Bob: ", "He said that ", "Якби ", "Translate: ", "Переклади: "])
)
def test_nothing_is_learned_from_the_words_of_others_or_what_is_only_supposed(one: Labelled, before: str) -> None:
    assert facts_of(before + one.text.translate(str.maketrans("\n.!?;", " ,,,,"))) == []


@given(any_labelled)
def test_nothing_is_learned_of_a_person_from_a_quote_or_an_agent(one: Labelled) -> None:
    assert find_facts(a_message("ok", reply_to=a_quote(one.text))) == []
    assert find_facts(a_message(one.text, author=GRYAG)) == []
    assert find_facts(a_message(one.text, author=ALICE, deleted=True)) == []


@given(st.text(), any_labelled, st.text())
def test_any_text_can_be_read(before: str, one: Labelled, after: str) -> None:
    for fact in facts_of(before + one.text + after):
        assert fact.text
        assert fact.text.endswith(".")
        assert "\n" not in fact.text
        assert 0 < len(fact.key) <= 60
        assert 0 < fact.confidence <= 1


A_LANGUAGE = r"""
dated = "{} ({})."
times = "teraz"
fillers = "cześć"
starters = "ja"
joints = "i"
subjects = "ja"
labels = "imię"
doubtful = "może"
reported = "mówi"
requests = "przetłumacz"
echoes = "a ty"
idioms = "jeśli chcesz"
rules = [["home", "Mieszka w {place}.", '''${now}mieszkam
  (?: dziś)? w <place>''', { confidence = 0.5 }]]
[verbs]
[first_person]
begins = "ja"
words = ["titles"]
verb = 'ja (\w+)'
[gaps]
place = { words = [1, 2], CONDITION = "all" }
[lists]
titles = "pan, pani doktor"
[fragments]
now = "(?:teraz )?"
tail = '(?: \w+)?'
"""


def test_a_language_is_one_file_of_rules_gaps_lists_and_fragments() -> None:
    language = load_language(A_LANGUAGE.replace("CONDITION", "capitals"))

    rule = PatternRule(
        key="home",
        text="Mieszka w {place}.",
        pattern=r"(?:teraz )?mieszkam(?: dziś)? w (?P<place>.+?)(?: \w+)?",
        options=Options(confidence=0.5),
    )
    assert language.rules == (rule,)
    assert language.lists == {"titles": frozenset({"pan", "pani doktor"})}


def test_a_condition_that_is_not_known_is_refused() -> None:
    with pytest.raises(InvalidValue, match=r"no condition of a gap is called capital$"):
        load_language(A_LANGUAGE.replace("CONDITION", "capital"))


ODD = r"(?:the|a|to|in|cat|Cat|x|_|\\+|7|²|猫|Ⓐ|😀|[/.&'#-]| ){1,5}"
RULES = [rule.pattern.replace(".+?", ODD) for language in grammar().languages for rule in language.rules]


@given(st.sampled_from(RULES).flatmap(lambda pattern: st.from_regex(re.compile(pattern, re.I), fullmatch=True)))
def test_whatever_stands_in_the_gap_of_a_rule_can_be_read(clause: str) -> None:
    for fact in facts_of(clause):
        assert fact.text.endswith(".")
        assert 0 < len(fact.key) <= 60


@pytest.mark.parametrize("text", ["I love the/cat", "I like the.cat", "I own a +++", "I run a _", "я з Ⓐ"])
def test_what_is_no_word_is_no_thing_no_business_and_no_place(text: str) -> None:
    assert facts_of(text) == []


@in_time
@pytest.mark.parametrize(
    "piece", ["«", '"', "[a", "for a ", "5 ", "i'm a ", "мене звати ", "*", " ", "a@", "haha", "і ", "— "]
)
def test_hostile_text_is_read_in_time(piece: str) -> None:
    facts_of("I live in Kyiv " + piece * 20_000)
