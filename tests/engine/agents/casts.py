"""Casts of agents for tests."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from people import GROUP
from tertulia.context.values import Persona
from tertulia.decisions import Decision
from tertulia.engine.agents.agent import Agent, Cast
from tertulia.engine.agents.meant import Recipients, Rule
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


class Alone(Struct, frozen=True, kw_only=True):
    """What decides who is meant where there is one agent."""

    me: Author
    names: tuple[str, ...] = ()
    rule: Rule | None = None
    blocked: frozenset[tuple[str, str]] = frozenset()
    agents_in_a_row: int = 2

    def decide(self, message: Message, before: Sequence[Message] = ()) -> Decision:
        cast = Cast(agents=(Agent(name=self.me.persona or "", names=self.names),))
        made = Recipients(
            cast=cast,
            here=cast.in_place(message.place),
            me=self.me,
            rule=self.rule,
            blocked=self.blocked,
            agents_in_a_row=self.agents_in_a_row,
        )
        [found] = made.decide(message, before)
        return replace(found, agent="")
