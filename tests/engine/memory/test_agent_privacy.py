"""No agent is told what was said while it was not there: a property of whole prompts of a running engine."""

import asyncio
import random

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from engine.agents.evening import ADDED, ANN, PEOPLE, Evening, an_evening
from engine.engines import DIRECT, GROUP
from sizes import size
from tertulia.engine.agents.agent import Agent
from tertulia.messages import Place
from tertulia.profiles import PROFILES

KANT = Agent(name="Kant", knows="present")
HUME = Agent(name="Hume", knows="present", memory="own")
HEGEL = Agent(name="Hegel")
CAST = (HEGEL, KANT, HUME)
NAMES = [one.name for one in CAST]
GROUPS = (GROUP, replace(GROUP, id="-200", title="Others"))
PLACES = (*GROUPS, *(replace(DIRECT, id=person.id) for person in PEOPLE[:2]))
STEPS = size(20, full=40)
WORDS = ("Where do I live?", "Who lives where?", "What was said while you were away?", "Tell us all about Ann and Bob.")


class Talk(Struct, frozen=True):
    """Somebody says something; in a direct chat, whose it is."""

    place: Place
    person: int
    called: list[str]
    words: str
    quotes: int | None  # how far back is what they quote, as many platforms give it: with its words


class Chosen(Struct, frozen=True):
    """Ann, an owner, says who is in a group, or who answers in her direct chat."""

    place: Place
    agents: list[str]


class Changed(Struct, frozen=True):
    """Ann adds an agent, or removes it."""

    is_added: bool


Step = Talk | Chosen | Changed


def a_step(chance: random.Random) -> Step:
    match chance.randrange(10):
        case 0 | 1:
            place = chance.choice(PLACES[1:3])
            return Chosen(place, chance.sample(NAMES, chance.randrange(3)))
        case 2:
            return Changed(chance.random() < 0.6)
        case _:
            return Talk(
                place=chance.choice(PLACES[1:]) if chance.random() < 0.9 else GROUP,
                person=chance.randrange(len(PEOPLE)),
                called=chance.sample([*NAMES, ADDED], chance.choice((0, 1, 1, 2))),
                words=chance.choice(WORDS),
                quotes=chance.randrange(20) if chance.random() < 0.2 else None,
            )


async def act(evening: Evening, step: Step) -> None:
    match step:
        case Talk(place=place, person=person, called=called, words=words, quotes=number):
            author = PEOPLE[person] if place in GROUPS else next(one for one in PEOPLE if one.id == place.id)
            quote = await evening.quote(place, number) if number is not None else None
            await evening.say(author, f"{', '.join(called)}: {words}", place, reply_to=quote)
        case Chosen(place=place, agents=chosen) if place in GROUPS:
            await evening.command(ANN, f"/agents {', '.join(chosen) or '-'}", place)
        case Chosen(place=place, agents=chosen):
            await evening.command(ANN, f"/agent {chosen[0] if chosen else '-'}", place)
        case Changed(is_added=True):
            await evening.command(ANN, f"/agent add {ADDED}: You are {ADDED}.", PLACES[2])
        case Changed():
            await evening.command(ANN, f"/agent remove {ADDED}", PLACES[2])


@given(st.integers(0, 10**9), st.sampled_from(sorted(PROFILES)))
def test_no_prompt_has_what_was_said_where_its_agent_was_not(seed: int, profile: str) -> None:
    chance = random.Random(seed)  # noqa: S311 (nothing secret)

    async def talk() -> None:
        async with an_evening(CAST, profile=profile) as evening:
            for step in [a_step(chance) for _ in range(STEPS)]:
                await act(evening, step)
                assert evening.leaks() == {}, step

    asyncio.run(talk())
