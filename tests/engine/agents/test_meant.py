from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.agents.casts import ACCOUNT, CAST, recipients
from people import ALICE, BOB, DIRECT, GROUP, a_message, a_quote
from sizes import in_time
from tertulia.decisions import Decision
from tertulia.engine.agents.agent import Agent, Cast
from tertulia.engine.agents.meant import Recipients
from tertulia.messages import Author, Message, Place
from tertulia.parts import Text

HERE = recipients()
OTHER_BOT = Author(id="9", name="Bot", persona="bot")
EVE = Author(id="u666", name="Eve")
OF_BOT, OF_BOB = a_quote(author=ACCOUNT), a_quote(author=BOB)


def meant(by: Recipients, message: Message, before: list[Message] | tuple[()] = (), **known: Any) -> list[str]:
    """Who answers a message and how it speaks to them, as `Marie: name`; else why nobody does."""
    return [
        f"{one.agent}: {one.address}" if one.reason == "answered" else " ".join(filter(None, (one.agent, one.reason)))
        for one in by.decide(message, before, **known)
    ]


@pytest.mark.parametrize(
    ("message", "quoted", "expected"),
    [
        (a_message("hi"), None, ["not addressed"]),
        # mentions
        (a_message("@salon_bot hi"), None, ["Gryag: mention"]),
        (a_message("@marie hi"), None, ["Marie: mention"]),
        (a_message("@Albert Einstein and @marie"), None, ["Albert Einstein: mention", "Marie: mention"]),
        (a_message("@al, Marie says hi"), None, ["Albert: mention"]),
        (a_message("mail@marie.org"), None, ["not addressed"]),
        (a_message("@гряга"), None, ["not addressed"]),  # a mention is no pattern
        # the author of the quoted message
        (a_message("what?", reply_to=OF_BOT), "Marie", ["Marie: reply"]),
        (a_message("what?", reply_to=OF_BOT), "", ["Gryag: reply"]),
        (a_message("what?", reply_to=OF_BOT), None, ["Gryag: reply"]),
        (a_message("what?", reply_to=OF_BOB), None, ["not addressed"]),
        (a_message("what?", reply_to=OF_BOT), "Removed", ["not addressed"]),
        (a_message("Albert, look", reply_to=OF_BOT), "Marie", ["Marie: reply"]),
        (a_message("Albert, look", reply_to=OF_BOB), None, ["Albert: name"]),
        (a_message("Albert, look", reply_to=OF_BOT), "Removed", ["Albert: name"]),
        (a_message("@albert look", reply_to=OF_BOT), "Marie", ["Albert: mention"]),
        (a_message("@albert @marie look", reply_to=OF_BOT), "Marie", ["Albert: mention", "Marie: reply"]),
        (a_message("Albert", forwarded_from=BOB, reply_to=OF_BOT), "Marie", ["Marie: reply"]),
        # names in the text
        (a_message("Salon, hi"), None, ["Gryag: name"]),
        (a_message("Albert Einstein, hi"), None, ["Albert Einstein: name"]),
        (a_message("Albert, hi"), None, ["Albert: name"]),
        (a_message("Albert Einstein, is Albert here?"), None, ["Albert Einstein: name", "Albert: name"]),
        (a_message("Marie, Albert, Marie!"), None, ["Marie: name", "Albert: name"]),
        (a_message("the physicist and Al"), None, ["Albert Einstein: name", "Albert: name"]),
        (a_message("спитай у гряга, Marie"), None, ["Gryag: name", "Marie: name"]),
        (a_message("", parts=(Text(text="Marie"), Text(text="Al"))), None, ["Marie: name", "Albert: name"]),
        (a_message("Marie, hi", forwarded_from=BOB), None, ["not addressed"]),
        (a_message("Marie, hi", author=EVE), None, ["blocked"]),
        # direct chats
        (a_message("hi", place=DIRECT), None, ["Gryag: direct"]),
        (a_message("Gryag, hi", place=DIRECT), None, ["Gryag: direct"]),
        (a_message("Marie, hi", place=DIRECT), None, ["Marie: name"]),
        (a_message("Marie", place=DIRECT, forwarded_from=BOB), None, ["Gryag: direct"]),
        (a_message("so?", place=DIRECT, reply_to=OF_BOT), "Marie", ["Marie: reply"]),
        (a_message("Marie and Gryag", place=DIRECT), None, ["Marie: name", "Gryag: direct"]),
    ],
)
def test_the_first_rule_that_finds_somebody_decides(message: Message, quoted: str | None, expected: list[str]) -> None:
    by = replace(HERE, blocked=frozenset({("telegram", "u666")}))

    assert meant(by, message, quoted=quoted) == expected


@pytest.mark.parametrize(
    ("addressed", "expected"),
    [
        (None, ["Marie: mention"]),
        ((), ["not addressed"]),
        (("Albert",), ["Albert: platform"]),
        (("ALBERT EINSTEIN", "gryag", "Gryag"), ["Albert Einstein: platform", "Gryag: platform"]),
        (("Removed",), ["not addressed"]),
        (("Removed", "Al", "Albert"), ["Albert: platform"]),
        (("",), ["not addressed"]),
    ],
)
def test_what_the_platform_says_goes_first(addressed: tuple[str, ...] | None, expected: list[str]) -> None:
    assert meant(HERE, a_message("@marie hi", place=DIRECT), addressed=addressed) == expected


def test_the_rule_of_a_place_is_for_its_default_agent() -> None:
    of_alice = recipients(rule=lambda message: message.author == ALICE)
    of_marie = replace(of_alice, here=CAST.in_place(GROUP, default="Marie"))

    assert meant(of_alice, a_message("hm")) == ["Gryag: rule"]
    assert meant(of_marie, a_message("hm")) == ["Marie: rule"]
    assert meant(of_marie, a_message("hm", author=BOB)) == ["not addressed"]
    assert meant(of_marie, a_message("@salon_bot, Salon")) == ["Marie: mention"]
    assert meant(of_marie, a_message("hi", place=DIRECT)) == ["Marie: direct"]
    assert meant(of_marie, a_message("Albert?")) == ["Albert: name"]


def test_who_is_not_in_a_place_is_not_meant_there() -> None:
    few = replace(HERE, here=CAST.in_place(GROUP, listed=["Albert", "Marie"]))
    nobody = recipients(Cast(agents=(Agent(name="Al", places=("direct",)),)), rule=lambda _: True)

    assert meant(few, a_message("Gryag?")) == ["not addressed"]
    assert meant(few, a_message("Albert Einstein?")) == ["not addressed"]  # Albert is not meant by that
    assert meant(few, a_message("Salon?")) == ["Albert: name"]
    assert meant(few, a_message("Gryag?", reply_to=OF_BOT), quoted="Gryag") == ["not addressed"]
    assert meant(few, a_message("hi"), addressed=["Gryag", "Marie"]) == ["Marie: platform"]
    assert [meant(nobody, a_message(text, reply_to=OF_BOT)) for text in ("Al", "@salon_bot")] == [["not addressed"]] * 2
    assert meant(nobody, a_message("Al", author=ACCOUNT)) == ["our own"]


def test_an_account_of_its_own_is_that_agent() -> None:
    cast = Cast(agents=(*CAST.agents, Agent(name="Ada", accounts=("telegram",))))
    by = recipients(cast)

    assert meant(by, a_message("hi", place=DIRECT)) == ["Ada: direct"]
    assert meant(by, a_message("@salon_bot")) == ["Ada: mention"]
    assert meant(by, a_message("what?", reply_to=OF_BOT)) == ["Ada: reply"]
    assert meant(by, a_message("Ada, Gryag", author=ACCOUNT)) == ["Gryag: name"]
    assert meant(replace(by, here=cast.in_place(Place(platform="irc", id="#a", kind="group"))), a_message("Salon")) == [
        "Gryag: name"
    ]


def test_several_accounts_in_one_group_are_their_agents() -> None:
    marie = Author(id="43", name="Curie", username="curie_bot")
    by = replace(HERE, accounts={"Marie": marie})

    assert meant(by, a_message("@salon_bot or @curie_bot?")) == ["Gryag: mention", "Marie: mention"]
    assert meant(by, a_message("Curie?")) == ["Marie: name"]
    assert meant(by, a_message("what?", reply_to=a_quote(author=marie))) == ["Marie: reply"]
    assert meant(by, a_message("Albert, Marie", author=marie)) == ["Albert: name"]
    assert meant(by, a_message("Marie", author=OTHER_BOT), [a_message("hi", author=marie)] * 2) == [
        "Marie agents in a row"
    ]


@pytest.mark.parametrize(
    ("message", "wrote", "quoted", "expected"),
    [
        (a_message("hi", author=ACCOUNT), "Marie", None, ["our own"]),
        (a_message("I am Marie", author=ACCOUNT), "Marie", None, ["our own"]),
        (a_message("Marie and Albert", author=ACCOUNT), "Marie", None, ["Albert: name"]),
        (a_message("@marie, Albert", author=ACCOUNT), "Marie", None, ["Albert: name"]),
        (a_message("yes", author=ACCOUNT, reply_to=OF_BOT), "Marie", "Albert", ["Albert: reply"]),
        (a_message("yes", author=ACCOUNT, reply_to=OF_BOT), "Marie", "Marie", ["our own"]),
        (a_message("yes", author=ACCOUNT, reply_to=OF_BOT), "Marie", "", ["Gryag: reply"]),
        (a_message("and Albert?", author=ACCOUNT, reply_to=OF_BOT), "Marie", "", ["Albert: name"]),
        (a_message("Gryag, Marie", author=ACCOUNT), "", None, ["Marie: name"]),
        (a_message("Gryag, Marie", author=ACCOUNT), None, None, ["Marie: name"]),
        (a_message("Marie, hi", author=ACCOUNT), "Removed", None, ["Marie: name"]),
        (a_message("hi", author=ACCOUNT, place=DIRECT), "Marie", None, ["our own"]),
        (a_message("hi", author=Author(id="43", name="Second")), "Marie", None, ["our own"]),
    ],
)
def test_agents_mean_each_other_by_their_words_alone(
    message: Message, wrote: str | None, quoted: str | None, expected: list[str]
) -> None:
    by = recipients(rule=lambda _: True, blocked=frozenset({("telegram", "42")}))

    assert meant(by, replace(message, agent=wrote), quoted=quoted, addressed=["Gryag"]) == expected


def test_agents_in_a_row_are_those_of_all_agents() -> None:
    spoken = [a_message("hi", author=author) for author in (ALICE, ACCOUNT, OTHER_BOT)]
    of_second = a_message("hi", author=Author(id="43", name="Second"), agent="Marie")
    reply = a_message("Marie and Albert", author=ACCOUNT, agent="Gryag")

    assert meant(HERE, reply, spoken[:2]) == ["Marie: name", "Albert: name"]
    assert meant(HERE, reply, spoken) == ["Marie agents in a row", "Albert agents in a row"]
    assert meant(HERE, a_message("Marie", author=OTHER_BOT), spoken) == ["Marie agents in a row"]
    assert meant(HERE, reply, [*spoken[:2], of_second]) == ["Marie agents in a row", "Albert agents in a row"]
    assert meant(HERE, a_message("Marie"), spoken) == ["Marie: name"]
    assert meant(replace(HERE, agents_in_a_row=0), reply) == [
        "Marie agents in a row",
        "Albert agents in a row",
    ]


def test_a_decision_names_the_agent_and_how_it_was_called() -> None:
    assert HERE.decide(a_message("Marie, hi")) == (Decision(reason="answered", address="name", agent="Marie"),)
    assert HERE.decide(a_message("hi")) == (Decision(reason="not addressed"),)


SPEECHES = st.lists(st.sampled_from(["Albert", "Einstein", "Marie", "@al", "гряга", "Salon", ","]), max_size=6).map(
    " ".join
)
NAMED = st.none() | st.sampled_from(["", "Marie", "Albert", "Removed"])


@given(
    SPEECHES,
    st.sampled_from([GROUP, DIRECT]),
    NAMED,
    NAMED,
    st.none() | st.lists(st.sampled_from(["Marie", "albert", "Removed", ""])),
    st.lists(st.sampled_from(["Marie", "Albert", "Removed"])),
)
def test_agents_of_the_place_are_meant_once_each_and_never_by_themselves(
    text: str, place: Place, wrote: str | None, quoted: str | None, addressed: list[str] | None, listed: list[str]
) -> None:
    here = CAST.in_place(place, listed=listed)
    by = replace(HERE, here=here, rule=lambda _: True)

    made = by.decide(a_message(text, place=place, agent=wrote, reply_to=OF_BOB), addressed=addressed, quoted=quoted)

    answering = [one.agent for one in made if one.address]
    assert len(set(answering)) == len(answering)
    assert set(answering) <= {one.name for one in here.agents} - {wrote, "Gryag" if wrote == "" else None}
    assert bool(answering) or [one.agent for one in made] == [""]
    assert bool(answering) or wrote is not None or addressed is not None


@in_time
def test_a_long_message_is_decided_in_time() -> None:
    many = recipients(Cast(agents=tuple(Agent(name=f"Agent {n}", names=(f"a{n}x*",)) for n in range(50))))

    assert meant(many, a_message("agent 49 a7x " * 50_000)) == ["Agent 49: name", "Agent 7: name"]
    assert meant(many, a_message("agent agent " * 50_000)) == ["not addressed"]
