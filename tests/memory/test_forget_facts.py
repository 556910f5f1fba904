"""What states a fact that is forgotten: messages, replies, tasks, runs and exchanges."""

from typing import Any

from people import NOON
from tertulia.memory.forget_facts import find_stating, find_withdrawn, hidden_sentences, is_stated_by_name
from tertulia.memory.values import (
    ForgottenFact,
    OpenRun,
    SaidMessage,
    StatingMessages,
    UnsentReply,
    UnsentTask,
    UnsentWork,
    Withdrawal,
)

HER, HIM, AGENT = 1, 2, 3
HERE, ELSEWHERE = 1, 2


def a_fact(text: str = "Likes tea.") -> ForgottenFact:
    return ForgottenFact(
        row=1, about=HER, text=text, name="Alice", names=("Alice", "Alisa"), places=frozenset({HERE}), at=NOON
    )


def a_message(row: int, text: str, author: int = HER, **changes: Any) -> SaidMessage:
    fields: dict[str, Any] = {"by_agent": author == AGENT, "turns": "", "reply_author": None}
    return SaidMessage(row=row, author=author, text=text, **fields | changes)


def a_reply(row: int, text: str, **changes: Any) -> UnsentReply:
    fields: dict[str, Any] = {"place": HERE, "turns": "[]", "asked_by": HER, "question": ""}
    return UnsentReply(row=row, text=text, **fields | changes)


def test_messages_that_state_it_or_ask_to_forget_it_are_found() -> None:
    messages = [
        a_message(1, "I like tea"),
        a_message(2, "I like tea", HIM),
        a_message(3, "Tea is at five.", AGENT),
        a_message(4, "You like tea.", AGENT),
        a_message(5, "You like tea.", AGENT, reply_author=HIM),
        a_message(6, "please forget the tea"),
    ]

    found = find_stating([a_fact()], messages)

    assert found == StatingMessages(asking={6}, stating={1, 4}, doubtful={3})


def test_an_answer_states_it_together_with_its_question() -> None:
    answer = a_message(1, "In Lviv.", AGENT)

    assert find_stating([a_fact("Lives in Lviv.")], [answer]).doubtful == {1}
    asked = a_message(1, "In Lviv.", AGENT, question="Where do I live?")
    assert find_stating([a_fact("Lives in Lviv.")], [asked]).stating == {1}


def test_a_message_is_hidden_for_the_sentences_that_state_it() -> None:
    assert hidden_sentences([a_fact()], "Hello! I like tea. And you?") == ["I like tea"]
    assert hidden_sentences([a_fact()], "Hello!") == ["Hello!"]


def test_what_is_not_sent_yet_is_withdrawn_where_it_may_have_been_told() -> None:
    unsent = UnsentWork(
        replies=(
            a_reply(1, "You like tea."),
            a_reply(2, "You like tea.", asked_by=HIM),
            a_reply(3, "You like tea.", place=ELSEWHERE),
            a_reply(4, "Yes.", turns='[{"text": "you like tea"}]'),
        ),
        tasks=(
            UnsentTask(id="t1", place=HERE, args='{"text": "You like tea."}', asked_by=None),
            UnsentTask(id="t2", place=HERE, args='{"text": "Tea is at five."}', asked_by=None),
        ),
        runs=(
            OpenRun(id="r1", place=HERE, texts=("Alice likes tea. I like tea.",)),
            OpenRun(id="r2", place=HERE, texts=()),
        ),
    )

    assert find_withdrawn([a_fact()], unsent) == Withdrawal(replies=[1], turns=[4], tasks=["t1"], runs=["r1"])


def test_of_unknown_speakers_a_text_must_name_the_person() -> None:
    facts = [a_fact("Is allergic to peanuts.")]

    assert is_stated_by_name(facts, "Alisa is allergic to peanuts")
    assert not is_stated_by_name(facts, "Bob is allergic to peanuts")
    assert not is_stated_by_name([a_fact()], "Alice likes tea")  # one content word is not enough
