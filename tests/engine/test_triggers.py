from typing import Any

import pytest
from msgspec.structs import replace

from people import ALICE, BOB, DIRECT, GRYAG, a_message, a_quote
from tertulia.engine.triggers import Decision, Triggers
from tertulia.messages import Author, Message
from tertulia.parts import Text

ME = replace(GRYAG, username="gryag_bot")
OTHER_AGENT = Author(id="9", name="Einstein", persona="einstein")
POSING = Author(id="13", name="gryag", username="gryag_bot", persona="gryag")
TRIGGERS = Triggers(me=ME, names=("гряг",), blocked=frozenset({("telegram", "u666")}))


@pytest.mark.parametrize(
    ("message", "verdict"),
    [
        (a_message("hi", place=DIRECT), "answer"),
        (a_message("", place=DIRECT), "answer"),
        (a_message("hi"), "not addressed"),
        (a_message("@gryag_bot hi"), "answer"),
        (a_message("hey @GRYAG_BOT, hi"), "answer"),
        (a_message("@gryag_bot2 hi"), "not addressed"),
        (a_message("mail me@gryag_bot.org"), "not addressed"),
        (a_message("Gryag, hi"), "answer"),
        (a_message("Gr\u200byag, hi"), "answer"),
        (a_message("@gryag\u2060_bot hi"), "answer"),
        (a_message("gry\U000e0020ag\u00ad!"), "answer"),
        (a_message("Як справи, Гряг?"), "answer"),
        (a_message("grygryag"), "not addressed"),
        (a_message("what", reply_to=a_quote(author=GRYAG)), "answer"),
        (a_message("what", reply_to=a_quote(author=BOB)), "not addressed"),
        (a_message("what", reply_to=a_quote(author=None)), "not addressed"),
        (a_message("gryag", author=ME), "our own"),
        (a_message("gryag", author=Author(id="42", name="renamed")), "our own"),
        (a_message("what", reply_to=a_quote(author=POSING)), "not addressed"),
        (a_message("gryag", author=POSING), "answer"),
        (a_message("gryag", author=Author(id="u666", name="Eve")), "blocked"),
        (a_message("gryag, listen", author=OTHER_AGENT), "answer"),
        (a_message("", parts=(Text(text="so,"), Text(text="gryag"))), "answer"),
        (a_message("gryag, hi", forwarded_from=BOB), "not addressed"),
        (a_message("@gryag_bot hi", forwarded_from=BOB), "not addressed"),
        (a_message("gryag, hi", forwarded_from=BOB, place=DIRECT), "answer"),
        (a_message("hi", forwarded_from=BOB, reply_to=a_quote(author=GRYAG)), "answer"),
        (a_message("gryag", forwarded_from=Author(id="u666", name="Eve")), "not addressed"),
    ],
)
def test_verdict(message: Message, verdict: Decision) -> None:
    assert TRIGGERS.decide(message) == verdict


INFLECTED = replace(TRIGGERS, names=("гряг*", "гряже"))


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("Гряг, привіт", "answer"),
        ("спитай у гряга", "answer"),
        ("ГРЯГУ скажи", "answer"),
        ("з грягом весело", "answer"),
        ("гряже!", "answer"),
        ("гря\u200bже, ти тут?", "answer"),
        ("грякнуло", "not addressed"),
        ("загряг", "not addressed"),
        ("@гряга", "not addressed"),
        ("гряжечку", "not addressed"),
        ("гряг" * 50_000 + "!", "answer"),
        (" гряк" * 50_000, "not addressed"),
    ],
)
def test_a_name_has_inflections_by_a_pattern(text: str, verdict: Decision) -> None:
    assert INFLECTED.decide(a_message(text)) == verdict


@pytest.mark.parametrize("name", ["Star*", "S*", "*"])
def test_the_name_of_an_account_is_no_pattern(name: str) -> None:
    triggers = Triggers(me=Author(id="42", name=name, persona=name))

    assert triggers.decide(a_message("starting so")) == "not addressed"


def test_the_name_of_the_persona_is_a_name() -> None:
    triggers = Triggers(me=Author(id="42", name="Helper account", persona="gryag"))

    assert triggers.decide(a_message("Gryag, hi")) == "answer"


def test_a_rule_of_the_operators_answers_more() -> None:
    curious = replace(TRIGGERS, rule=lambda message: str(message.parts[0]).endswith("?'"))

    assert TRIGGERS.decide(a_message("anybody there?")) == "not addressed"
    assert replace(curious, rule=lambda message: message.author == ALICE).decide(a_message("hm")) == "answer"
    forwarded = a_message("gryag, hi", forwarded_from=BOB)
    assert replace(curious, rule=lambda message: message.forwarded_from == BOB).decide(forwarded) == "answer"


@pytest.mark.parametrize(
    ("authors", "verdict"),
    [
        ([ALICE], "answer"),
        ([ALICE, ME], "answer"),
        ([ME, ALICE, OTHER_AGENT], "answer"),
        ([ME, OTHER_AGENT], "an agent's turn too many"),
        ([ALICE, OTHER_AGENT, ME], "an agent's turn too many"),
        ([POSING, POSING], "an agent's turn too many"),
        ([OTHER_AGENT, replace(ME, persona=None)], "an agent's turn too many"),
    ],
)
def test_two_agents_stop_talking_to_each_other(authors: list[Author], verdict: Decision) -> None:
    before = [a_message("gryag, Einstein", author=author) for author in authors]

    assert TRIGGERS.decide(a_message("gryag, go on", author=OTHER_AGENT), before) == verdict


def test_a_person_is_answered_whoever_spoke_before() -> None:
    before: list[Any] = [a_message("gryag", author=OTHER_AGENT)] * 5

    assert TRIGGERS.decide(a_message("gryag, stop"), before) == "answer"


def test_our_account_is_ours_under_any_name_it_had() -> None:
    before = replace(GRYAG, persona="what it was called before")

    assert TRIGGERS.decide(a_message("gryag, hello", author=before)) == "our own"
    assert TRIGGERS.decide(a_message("and you?", reply_to=a_quote(author=before))) == "answer"
