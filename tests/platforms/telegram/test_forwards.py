"""A message that somebody forwards on Telegram stays that of its author, from the update to prompt and memory."""

import asyncio

from people import texts
from platforms.telegram.world import telegram
from tertulia import Behavior, Engine, Memory, Store
from tertulia.models.scripted import Scripted
from tertulia.sim.telegram import TelegramSim


async def test_a_forward_is_not_what_its_sender_says() -> None:
    """Bob forwards words of Olha, which name the bot, to a group and to the bot."""
    async with TelegramSim() as sim, Store.open(":memory:") as store:
        olha, bob = sim.user("Olha"), sim.user("Bob")
        home, group, direct = sim.group("Home", [olha]), sim.group("Friends", [olha, bob]), sim.private(bob)
        platform, model = telegram(sim), Scripted("Hello.", "That is Olha.")
        engine = Engine(store, model, [platform], behavior=Behavior(debounce=0), memory=Memory(store))
        async with engine, asyncio.timeout(30):
            polling = asyncio.create_task(platform.run(engine.inbox(platform.name)))
            said = olha.send(home, "I live in Lviv. And you, @tertulia_bot?")
            await sim.until(lambda: bool(home.of(sim.bot)))
            bob.forward(group, said)
            bob.forward(direct, said)
            await sim.until(lambda: bool(direct.of(sim.bot)))
            await engine.settled()
            polling.cancel()
            await asyncio.wait([polling])

        assert [[one.text for one in chat.of(sim.bot)] for chat in (home, group, direct)] == [
            ["Hello."],
            [],
            ["That is Olha."],
        ]
        assert texts(model.prompts[-1].turns[-1].parts) == [
            f"[forwarded from: Olha ({olha.id})]",
            "I live in Lviv. And you, @tertulia_bot?",
        ]
        rows = [row async for row in store.export()]
        people = {row["id"]: row["author_id"] for row in rows if row["table"] == "authors"}
        facts = [(people[row["about"]], row["text"]) for row in rows if row["table"] == "facts"]
        assert facts == [(str(olha.id), "Lives in Lviv.")]
