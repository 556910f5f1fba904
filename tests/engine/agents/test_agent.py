import re

import pytest

from engine.agents.casts import ALBERT, CAST, EINSTEIN, GRYAG, MARIE
from people import DIRECT, GROUP
from tertulia.context.values import Persona
from tertulia.engine.agents.agent import Agent, Cast, PlaceAgents
from tertulia.errors import InvalidValue
from tertulia.messages import Place

GRY = Agent(name="Gry", persona=Persona(name_pattern="gry*"))


@pytest.mark.parametrize(
    ("agents", "complaint"),
    [
        ((), "there is no agent: an engine has at least one"),
        (
            (Agent(name="Marie"), Agent(name="ma\u200brie")),
            "two agents are named 'ma\\u200brie': give each its own name",
        ),
        ((MARIE, Agent(name="")), "'' is no name of an agent"),
        ((Agent(name="\u2060"),), "'\\u2060' is no name of an agent"),
        ((Agent(name="Gryag"), GRY), "agent 'Gry': people could not tell it from 'Gryag': 'gry*' fits 'Gryag'"),
        ((GRY, Agent(name="Gryag")), "agent 'Gryag': people could not tell it from 'Gry': 'gry*' fits 'Gryag'"),
        ((GRY, Agent(name="A", names=("gryag*",))), "people could not tell it from 'Gry': 'gry*' fits 'gryag*'"),
        ((ALBERT, Agent(name="Alan", names=("AL",))), "'AL' fits 'Al'"),
        (
            (Agent(name="A", accounts=("tg",)), Agent(name="B", accounts=("irc", "tg"))),
            "agent 'B': the account 'tg' is that of 'A'",
        ),
        (
            (MARIE, Agent(name="A", may_send=("direct",))),
            "agent 'A': may_send must hold places as `service:id`, and agents: Marie, A; not 'direct'",
        ),
    ],
)
def test_a_cast_whose_agents_cannot_be_told_apart_is_refused(agents: tuple[Agent, ...], complaint: str) -> None:
    with pytest.raises(InvalidValue, match=re.escape(complaint)):
        Cast(agents=agents)


def test_an_agent_has_one_name_and_knows_its_places() -> None:
    with pytest.raises(InvalidValue, match="agent 'Marie': its persona is named 'Curie'; give both one name"):
        Agent(name="Marie", persona=Persona(name="Curie"))
    with pytest.raises(InvalidValue, match="agent 'Marie': places must hold places as `service:id`"):
        Agent(name="Marie", places=("somewhere",))
    with pytest.raises(InvalidValue, match="is no name"):
        Agent(name="Marie", names=("*",))
    with pytest.raises(InvalidValue, match="no agent is named 'Alfred'; the agents: Gryag, Albert"):
        Cast(agents=CAST.agents, default_name="Alfred")
    assert MARIE.persona == Persona(name="Marie")


def test_a_name_may_begin_another() -> None:
    Cast(agents=(Agent(name="Albert", names=("alb*",)), EINSTEIN))


def test_agents_are_found_by_name_in_any_case() -> None:
    of_marie = Cast(agents=CAST.agents, default_name="MARIE")

    assert [CAST.get(name) for name in ("albert EINSTEIN", "Nobody", "")] == [EINSTEIN, None, GRYAG]
    assert (of_marie.default, of_marie.get("")) == (MARIE, MARIE)
    assert Cast(agents=(Agent(name=""),)).default == Agent(name="")


@pytest.mark.parametrize(
    ("places", "place", "is_there"),
    [
        ((), GROUP, True),
        (("telegram:-100123",), GROUP, True),
        (("telegram:-100123",), Place(platform="telegram", id="-100123", kind="group", thread="9"), True),
        (("telegram:-100123",), DIRECT, False),
        (("telegram:-1",), GROUP, True),  # its former id
        (("direct",), DIRECT, True),
        (("group",), DIRECT, False),
        (("telegram:5",), Place(platform="second", id="5", kind="group", service="telegram"), True),
        (("second:5",), Place(platform="second", id="5", kind="group", service="telegram"), True),
    ],
)
def test_an_agent_is_in_its_places(places: tuple[str, ...], place: Place, *, is_there: bool) -> None:
    cast = Cast(agents=(Agent(name="Marie", places=places),))

    assert bool(cast.in_place(place, former_ids=["-1"]).agents) == is_there


def test_a_place_has_the_agents_and_the_default_of_its_administrators() -> None:
    elsewhere = Agent(name="Elsewhere", places=("irc:#math",))
    cast = Cast(agents=(elsewhere, GRYAG, ALBERT, MARIE))
    all_three, two = (GRYAG, ALBERT, MARIE), (ALBERT, MARIE)

    found = [
        cast.in_place(GROUP),
        cast.in_place(GROUP, default="marie"),
        cast.in_place(GROUP, default="elsewhere"),
        cast.in_place(GROUP, listed=["MARIE", "Albert", "Elsewhere"]),
        cast.in_place(GROUP, listed=["Marie", "Albert"], default="marie"),
        cast.in_place(GROUP, listed=["Removed"], default="Removed"),
        Cast(agents=(elsewhere,)).in_place(GROUP),
    ]

    assert found == [
        PlaceAgents(agents=all_three, default=GRYAG, account=GRYAG),
        PlaceAgents(agents=all_three, default=MARIE, account=MARIE),
        PlaceAgents(agents=all_three, default=GRYAG, account=GRYAG),
        PlaceAgents(agents=two, default=ALBERT, account=ALBERT),
        PlaceAgents(agents=two, default=MARIE, account=MARIE),
        PlaceAgents(agents=all_three, default=GRYAG, account=GRYAG),
        PlaceAgents(agents=(), default=None, account=None),
    ]


def test_who_has_the_account_is_the_default_there() -> None:
    own = Agent(name="Own", accounts=("telegram",))
    cast = Cast(agents=(GRYAG, own))

    assert cast.in_place(GROUP) == PlaceAgents(agents=(GRYAG, own), default=own, account=own)
    assert cast.in_place(GROUP, default="Gryag") == PlaceAgents(agents=(GRYAG, own), default=GRYAG, account=own)
    assert cast.in_place(Place(platform="irc", id="#a", kind="group")).default == GRYAG
