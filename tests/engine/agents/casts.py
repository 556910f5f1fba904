"""Casts of agents for tests."""

from typing import Any

from msgspec.structs import replace

from people import GROUP
from tertulia.context.values import Persona
from tertulia.decisions import Decision
from tertulia.engine.agents.agent import Agent, Cast
from tertulia.engine.agents.meant import Recipients
from tertulia.engine.triggers import Triggers
from tertulia.messages import Author, Message, Place

ACCOUNT = Author(id="42", name="Salon", username="salon_bot")
GRYAG = Agent(name="Gryag", persona=Persona(name_pattern="гряг*|гряже"))
ALBERT = Agent(name="Albert", names=("Al",))
EINSTEIN = Agent(name="Albert Einstein", names=("the physicist",))
MARIE = Agent(name="Marie")
CAST = Cast(agents=(GRYAG, ALBERT, EINSTEIN, MARIE))


def recipients(cast: Cast = CAST, *, place: Place = GROUP, **changes: Any) -> Recipients:
    """Who is meant in a place, on an account that the agents share."""
    return Recipients(**{"cast": cast, "here": cast.in_place(place), "me": ACCOUNT} | changes)


def of_one(triggers: Triggers, message: Message) -> Recipients:
    """The same as these triggers, for a cast of one agent."""
    cast = Cast(agents=(Agent(name=triggers.me.persona or "", names=triggers.names),))
    return Recipients(
        cast=cast,
        here=cast.in_place(message.place),
        me=triggers.me,
        rule=triggers.rule,
        blocked=triggers.blocked,
        agents_in_a_row=triggers.agents_in_a_row,
    )


def decided(triggers: Triggers, message: Message, before: list[Message] | tuple[()] = ()) -> Decision:
    """The decision of the triggers, which is that of a cast of one."""
    (of_cast,) = of_one(triggers, message).decide(message, before)
    decision = triggers.decide(message, before)
    assert replace(of_cast, agent="") == decision
    return decision
