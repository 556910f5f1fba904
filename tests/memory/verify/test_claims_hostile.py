"""Text that was made to keep its reader busy is read in a time that grows with its length alone."""

from collections.abc import Callable

import pytest

from people import ALICE, a_message
from sizes import in_time
from tertulia.memory.sentences import own_sentences, own_words
from tertulia.memory.verify.claims import Claim, Evidence, holds_secret, verify_claim
from tertulia.memory.verify.clauses import MAX_CLAUSE_LENGTH, MAX_SUBJECT_CLAUSES, subject_clauses
from tertulia.memory.verify.markers import is_order, is_over
from tertulia.messages import Message

LONG = 200_000  # characters: with time that grows by their square, minutes


class Counted(dict[int, Message]):
    """Messages that count how often they are taken."""

    taken = 0

    def __getitem__(self, number: int) -> Message:
        self.taken += 1
        return super().__getitem__(number)


@in_time
@pytest.mark.parametrize(
    ("read", "piece"),
    [
        (is_order, "please, "),
        (is_order, "please,"),
        (is_over, "have been moved "),
        (holds_secret, "1-"),
        (holds_secret, "a-a"),
        (own_words, "\n"),
        (own_words, "“"),
        (own_words, "„"),
        (own_words, "«"),
        (own_words, "「"),
        (own_words, "—"),
        (own_words, "SELECT "),
        (own_sentences, "ok. \n"),
        (lambda text: subject_clauses(own_words(text)), "** "),
        (subject_clauses, "Bob "),
        (subject_clauses, "my dog is "),
    ],
)
def test_long_text_is_read_in_time(read: Callable[[str], object], piece: str) -> None:
    read(piece * (LONG // len(piece)))


@pytest.mark.parametrize(
    ("said", "count"),
    [
        ("I am here", 1),
        ("I am here, " * 2 * MAX_SUBJECT_CLAUSES, MAX_SUBJECT_CLAUSES),
        ("very " * MAX_CLAUSE_LENGTH, 0),
    ],
)
def test_of_a_sentence_so_many_clauses_of_such_a_length_are_read(said: str, count: int) -> None:
    assert len(subject_clauses(said)) == count


@pytest.mark.parametrize("told", ["Lives in Lviv.", "Lives in Rome."])
def test_each_message_of_a_claim_is_held_against_it_once(told: str) -> None:
    messages = Counted({number: a_message("I live in Lviv", id=str(number)) for number in range(1, 5)})
    claim = Claim(sources=(1, 2, 3, 2, 1), about=ALICE.id, key="home", text=told, confidence=1.0)

    verify_claim(claim, Evidence(messages=messages, people={ALICE.id: ALICE}))

    assert messages.taken == 3


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("I like «a «b» c» here", "I like"),
        ("“one “two” three” I live in Kyiv", ""),
        ("he said “I live in Kyiv” and left", "he said and left"),
        ("SELECT a FROM b", ""),
        ("SELECT a, SELECT b", "SELECT a, SELECT b"),
    ],
)
def test_what_is_quoted_in_a_quote_or_code_is_not_said(text: str, own: str) -> None:
    assert " ".join(own_words(text).replace("\ufffc", "").split()) == own
