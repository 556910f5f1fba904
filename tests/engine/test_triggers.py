from typing import Any

import pytest
from msgspec.structs import replace

from engine.agents.casts import Alone
from people import ALICE, BOB, DIRECT, GRYAG, a_message, a_quote
from tertulia.decisions import Address, Decision, Reason
from tertulia.messages import Author, Message
from tertulia.parts import Text

ME = replace(GRYAG, username="gryag_bot")
OTHER_AGENT = Author(id="9", name="Einstein", persona="einstein")
POSING = Author(id="13", name="gryag", username="gryag_bot", persona="gryag")
TRIGGERS = Alone(me=ME, names=("гряг",), blocked=frozenset({("telegram", "u666")}))


@pytest.mark.parametrize(
    ("message", "verdict"),
    [
        (a_message("hi", place=DIRECT), "direct"),
        (a_message("", place=DIRECT), "direct"),
        (a_message("hi"), "not addressed"),
        (a_message("@gryag_bot hi"), "mention"),
        (a_message("hey @GRYAG_BOT, hi"), "mention"),
        (a_message("@gryag_bot2 hi"), "not addressed"),
        (a_message("mail me@gryag_bot.org"), "not addressed"),
        (a_message("Gryag, hi"), "name"),
        (a_message("Gr\u200byag, hi"), "name"),
        (a_message("@gryag\u2060_bot hi"), "mention"),
        (a_message("gry\U000e0020ag\u00ad!"), "name"),
        (a_message("Як справи, Гряг?"), "name"),
        (a_message("grygryag"), "not addressed"),
        (a_message("what", reply_to=a_quote(author=GRYAG)), "reply"),
        (a_message("what", reply_to=a_quote(author=BOB)), "not addressed"),
        (a_message("what", reply_to=a_quote(author=None)), "not addressed"),
        (a_message("gryag", author=ME), "our own"),
        (a_message("gryag", author=Author(id="42", name="renamed")), "our own"),
        (a_message("what", reply_to=a_quote(author=POSING)), "not addressed"),
        (a_message("gryag", author=POSING), "name"),
        (a_message("gryag", author=Author(id="u666", name="Eve")), "blocked"),
        (a_message("gryag, listen", author=OTHER_AGENT), "name"),
        (a_message("", parts=(Text(text="so,"), Text(text="gryag"))), "name"),
        (a_message("gryag, hi", forwarded_from=BOB), "not addressed"),
        (a_message("@gryag_bot hi", forwarded_from=BOB), "not addressed"),
        (a_message("gryag, hi", forwarded_from=BOB, place=DIRECT), "direct"),
        (a_message("hi", forwarded_from=BOB, reply_to=a_quote(author=GRYAG)), "reply"),
        (a_message("gryag", forwarded_from=Author(id="u666", name="Eve")), "not addressed"),
    ],
)
def test_verdict(message: Message, verdict: Address | Reason) -> None:
    assert outcome(TRIGGERS.decide(message)) == verdict


def outcome(decision: Decision) -> str | None:
    """How a message that is answered speaks to us, or why another is not."""
    return decision.address if decision.reason == "answered" else decision.reason


INFLECTED = replace(TRIGGERS, names=("гряг*", "гряже"))


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("Гряг, привіт", "name"),
        ("спитай у гряга", "name"),
        ("ГРЯГУ скажи", "name"),
        ("з грягом весело", "name"),
        ("гряже!", "name"),
        ("гря\u200bже, ти тут?", "name"),
        ("грякнуло", "not addressed"),
        ("загряг", "not addressed"),
        ("@гряга", "not addressed"),
        ("гряжечку", "not addressed"),
        ("гряг" * 50_000 + "!", "name"),
        (" гряк" * 50_000, "not addressed"),
    ],
)
def test_a_name_has_inflections_by_a_pattern(text: str, verdict: Address | Reason) -> None:
    assert outcome(INFLECTED.decide(a_message(text))) == verdict


@pytest.mark.parametrize("name", ["Star*", "S*", "*"])
def test_the_name_of_an_account_is_no_pattern(name: str) -> None:
    triggers = Alone(me=Author(id="42", name=name, persona=name))

    assert outcome(triggers.decide(a_message("starting so"))) == "not addressed"


def test_the_name_of_the_persona_is_a_name() -> None:
    triggers = Alone(me=Author(id="42", name="Helper account", persona="gryag"))

    assert outcome(triggers.decide(a_message("Gryag, hi"))) == "name"


def test_a_rule_of_the_operators_answers_more() -> None:
    curious = replace(TRIGGERS, rule=lambda message: str(message.parts[0]).endswith("?'"))

    assert outcome(TRIGGERS.decide(a_message("anybody there?"))) == "not addressed"
    by_alice = replace(curious, rule=lambda message: message.author == ALICE)
    assert outcome(by_alice.decide(a_message("hm"))) == "rule"
    forwarded = a_message("gryag, hi", forwarded_from=BOB)
    of_bob = replace(curious, rule=lambda message: message.forwarded_from == BOB)
    assert outcome(of_bob.decide(forwarded)) == "rule"


@pytest.mark.parametrize(
    ("authors", "verdict"),
    [
        ([ALICE], "answered"),
        ([ALICE, ME], "answered"),
        ([ME, ALICE, OTHER_AGENT], "answered"),
        ([ME, OTHER_AGENT], "agents in a row"),
        ([ALICE, OTHER_AGENT, ME], "agents in a row"),
        ([POSING, POSING], "agents in a row"),
        ([OTHER_AGENT, replace(ME, persona=None)], "agents in a row"),
    ],
)
def test_two_agents_stop_talking_to_each_other(authors: list[Author], verdict: Reason) -> None:
    before = [a_message("gryag, Einstein", author=author) for author in authors]

    decision = TRIGGERS.decide(a_message("gryag, go on", author=OTHER_AGENT), before)

    assert decision == Decision(reason=verdict, address="name")


def test_a_person_is_answered_whoever_spoke_before() -> None:
    before: list[Any] = [a_message("gryag", author=OTHER_AGENT)] * 5

    assert outcome(TRIGGERS.decide(a_message("gryag, stop"), before)) == "name"


def test_our_account_is_ours_under_any_name_it_had() -> None:
    before = replace(GRYAG, persona="what it was called before")

    assert outcome(TRIGGERS.decide(a_message("gryag, hello", author=before))) == "our own"
    assert outcome(TRIGGERS.decide(a_message("and you?", reply_to=a_quote(author=before)))) == "reply"
