"""A long conversation by `layered`, its static layer in the service's cache: nothing lost, nothing twice."""

import re
from typing import Any

import pytest
from msgspec.structs import replace

from models.gemini.reading import Reader
from people import ALICE, DELIMITER, DIRECT, GROUP, GRYAG, NOON, a_message
from tertulia.context import gather, sources
from tertulia.context.log import InMemoryLog
from tertulia.context.values import Persona
from tertulia.messages import Place
from tertulia.models import Gemini
from tertulia.models.gemini.cache import CachedGemini
from tertulia.profiles import PROFILES
from tertulia.prompt.ledger import Ledger
from tertulia.sim.gemini import GeminiSim

PERSONA = Persona(
    name="gryag", text="You are gryag. " + "You keep the log of a ship and you are never in a hurry. " * 120
)


def numbers(request: dict[str, Any]) -> list[int]:
    """The numbers of the messages in a request, in the order they are read."""
    return [int(n) for content in request["contents"] for n in re.findall(r"said number (\d+)", str(content["parts"]))]


@pytest.mark.parametrize("place", [DIRECT, GROUP], ids=["direct", "group"])
async def test_every_message_is_read_once_whether_it_is_cached_or_sent(place: Place) -> None:
    reader, log, ledger = Reader(), InMemoryLog(), Ledger()
    given = [sources.agent_settings(persona=PERSONA, delimiter=DELIMITER), sources.window(log)]
    async with (
        GeminiSim(behaviour=reader) as sim,
        CachedGemini(Gemini("gemini-2.5-flash", key="k", base_url=sim.url), threshold=1024, now=sim.clock) as model,
    ):
        for number in range(0, 80, 2):
            target = a_message(f"said number {number}", id=str(number), place=place, author=ALICE)
            prompt = PROFILES["layered"].build(await gather(target, given, NOON))
            ledger.record_request(prompt)
            response = await model.respond(prompt)
            ledger.record_usage(response.usage)
            log.add(target)
            reply = a_message(f"said number {number + 1}", id=str(number + 1), place=place, author=GRYAG)
            log.add(reply, turns=(replace(response.turn, parts=reply.parts),))

    assert [numbers(request) for request in reader.read] == [list(range(n + 1)) for n in range(0, 80, 2)]
    cached = [entry.reported.cached for entry in ledger.entries if entry.reported]
    assert cached[0] == 0
    assert sum(tokens > 1024 for tokens in cached) >= 30
