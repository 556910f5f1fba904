"""What states a fact, and what only mentions it."""

from hypothesis import given
from hypothesis import strategies as st

from tertulia.memory.verify.comparison import FactWords, WordIndex, may_contain
from tertulia.memory.verify.statements import Statement, mentioned_in

WORDS = st.sampled_from(
    "tea Tea's peanut-butter peanuts two 2 День дня Кіт кота п'ять Львові Lviv İstanbul straße 喝茶 I".split()
)
TEXTS = st.lists(WORDS, max_size=6).map(" ".join)


@given(said=TEXTS, fact=TEXTS)
def test_no_words_are_missed_by_looking_quickly_first(said: str, fact: str) -> None:
    sentence = FactWords.of(fact)

    if WordIndex.in_text(said).contains_fact(sentence):
        assert may_contain(said, [sentence]) == [True]


@given(fact=TEXTS, before=TEXTS, after=TEXTS)
def test_a_fact_is_mentioned_where_it_stands(fact: str, before: str, after: str) -> None:
    statement = Statement.of(fact, "")

    expected = [statement] if statement.sentence.words or statement.sentence.pairs else []
    assert mentioned_in(f"{before} {fact} {after}", [statement]) == expected
