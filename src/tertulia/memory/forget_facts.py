"""What is forgotten with facts: the messages, replies, tasks, runs and exchanges that state them. Pure.

A message of the agent to somebody else must be clear by itself: there “you like tea” is about that person.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from tertulia.memory.values import ForgottenFact, SaidMessage, StatingMessages, UnsentWork, Withdrawal
from tertulia.memory.verify.comparison import content_words, has_any_word
from tertulia.memory.verify.statements import (
    Statement,
    answers_any,
    asks_to_forget,
    mentioned_in,
    sentences_about,
    states_any,
    states_any_by_anyone,
)

_statement = lru_cache(256)(Statement.of)


def find_stating(facts: Iterable[ForgottenFact], messages: Sequence[SaidMessage]) -> StatingMessages:
    """Find the messages of a place that state one of the facts, or ask to forget it.

    Those of the agent that mention one may state it together with the question that they answer.
    """
    asking, stating, doubtful = set[int](), set[int](), set[int]()
    for about, statements in _by_person(facts).items():
        enough = [one for one in statements if one.is_telling]
        for message in messages:
            theirs = message.author == about
            if not (theirs or message.by_agent):
                continue
            if theirs and asks_to_forget(message.text, statements):
                asking.add(message.row)
            to_them = message.reply_author in (None, about)
            found = mentioned_in(f"{message.text}\n{message.turns}", statements if theirs or to_them else enough)
            if found and states_any(f"{message.text}\n{message.turns}", found, by_them=theirs):
                stating.add(message.row)
            elif found and not theirs:
                answers = bool(message.question) and answers_any(message.question, message.text, found)
                (stating if answers else doubtful).add(message.row)
    return StatingMessages(asking=asking, stating=stating, doubtful=doubtful - stating)


def hidden_sentences(facts: Iterable[ForgottenFact], text: str) -> Sequence[str]:
    """Return the sentences for which a message is hidden; its whole text where no sentence states a fact by itself."""
    return sentences_about(text, _statements(facts)) or [text]


def find_withdrawn(facts: Sequence[ForgottenFact], unsent: UnsentWork) -> Withdrawal:
    """Find the unsent replies, tasks and open runs that state one of the facts."""
    replies, turns = [], []
    for reply in unsent.replies:
        about = _in_place(facts, reply.place)
        if _tells(reply.text, about, asked_by=reply.asked_by, question=reply.question):
            replies.append(reply.row)
        elif _tells(reply.turns, about, asked_by=reply.asked_by):
            turns.append(reply.row)
    return Withdrawal(
        replies=replies,
        turns=turns,
        tasks=[one.id for one in unsent.tasks if _tells(one.args, _in_place(facts, one.place), asked_by=one.asked_by)],
        runs=[
            one.id
            for one in unsent.runs
            if states_any_by_anyone("\n".join(one.texts), _statements(_in_place(facts, one.place)))
        ],
    )


def is_stated_by_name(facts: Iterable[ForgottenFact], text: str) -> bool:
    """Return whether a text of unknown speakers states a fact and also names its person."""
    telling = [(statement, fact) for fact in facts if (statement := _statement(fact.text, fact.name)).is_telling]
    found = mentioned_in(text, [statement for statement, _ in telling])
    return any(
        statement in found and has_any_word(text, [word for name in fact.names for word in content_words(name)])
        for statement, fact in telling
    )


def _tells(text: str, facts: Iterable[ForgottenFact], *, asked_by: int | None, question: str = "") -> bool:
    """Return whether a text of the agent states a fact; to another person it must be clear by itself."""
    for about, statements in _by_person(facts).items():
        to_them = asked_by in (None, about)
        found = mentioned_in(text, statements if to_them else [one for one in statements if one.is_telling])
        if found and (states_any(text, found, by_them=False) or answers_any(question, text, found)):
            return True
    return False


def _in_place(facts: Iterable[ForgottenFact], place: int) -> list[ForgottenFact]:
    return [fact for fact in facts if place in fact.places]


def _statements(facts: Iterable[ForgottenFact]) -> list[Statement]:
    return [_statement(fact.text, fact.name) for fact in facts]


def _by_person(facts: Iterable[ForgottenFact]) -> dict[int, list[Statement]]:
    found: dict[int, list[Statement]] = {}
    for fact in facts:
        found.setdefault(fact.about, []).append(_statement(fact.text, fact.name))
    return found
