"""Several bots in one supergroup are agents over one log."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from platforms.telegram.world import telegram
from tertulia import Agent, Behavior, Engine, Message, Place, Store
from tertulia.models import Scripted
from tertulia.models.base import Response
from tertulia.sim.telegram import SimBot, SimChat, TelegramSim
from tertulia.turns import Prompt, model

PATIENCE = 30.0  # seconds, on a busy machine
NAMES = ("Ada", "Bob", "Cid")


class Named(Scripted):
    """A model that says who it is, and how often it was asked."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name)
        self.asked: list[Prompt] = []

    async def respond(self, prompt: Prompt) -> Response:
        self.asked.append(prompt)
        return Response(turn=model(f"{self.name} {len(self.asked)}.", by=self.name))


class Agora:
    """A supergroup of Ann and three bots, each the account of an agent."""

    def __init__(self, sim: TelegramSim, *, hears_bots: bool = True) -> None:
        self.sim = sim
        self.bots = [sim.bot, *(sim.add_bot(name, username=f"{name.lower()}_bot") for name in NAMES[1:])]
        self.bots[0].account.first_name, self.bots[0].bot_account.username = "Ada", "ada_bot"
        for bot in self.bots:
            bot.bot_account.hears_bots = hears_bots
        self.ann = sim.user("Ann")
        self.chat = sim.group("Agora", [self.ann, *self.bots], supergroup=True)
        self.models = {name: Named(name) for name in NAMES}

    def set_privacy(self, *names: str) -> None:
        for name, bot in zip(NAMES, self.bots, strict=True):
            bot.bot_account.privacy = name in names

    @asynccontextmanager
    async def alive(self, path: Path) -> AsyncIterator[tuple[Engine, Store]]:
        """Run the engine of the three; it is done with all when the block ends."""
        platforms = [telegram(self.sim, bot.token) for bot in self.bots]
        agents = [
            Agent(name=name, models=(self.models[name],), accounts=(platform.name,))
            for name, platform in zip(NAMES, platforms, strict=True)
        ]
        async with Store.open(path) as store:
            engine = Engine(store, self.models["Ada"], platforms, agents=agents, behavior=Behavior(debounce=0.0))
            running = asyncio.create_task(engine.run())
            try:
                yield engine, store
                await self.quiet(engine)
            finally:
                running.cancel()
                with suppress(asyncio.CancelledError):
                    await running

    async def quiet(self, engine: Engine) -> None:
        """Wait until no bot has an update that waits, and the engine has nothing to do."""
        async with asyncio.timeout(PATIENCE):
            while any(bot.pending for bot in self.bots):
                await asyncio.sleep(0.01)
            await engine.settled()

    async def seen(self, *texts: str, chat: SimChat | None = None) -> None:
        """Wait until people see exactly these texts of the bots."""
        await self.sim.until(lambda: said(chat or self.chat, self.bots) == list(texts), timeout=PATIENCE)


def said(chat: SimChat, bots: Sequence[SimBot]) -> list[str]:
    names = {bot.id: name for name, bot in zip(NAMES, bots, strict=True)}
    return [f"{names[one.sender]}: {one.text}" for one in chat.messages if one.sender in names and one.text]


async def log(store: Store, chat: SimChat) -> list[Message]:
    found = [place for place in await places(store) if place.id == str(chat.id)]
    assert len(found) == 1, found
    return list(await store.log.read(found[0], 0, 999))


async def places(store: Store) -> list[Place]:
    return [one.place for one in await store.inspection.places()]


@pytest.mark.parametrize("hears_bots", [True, False])
async def test_three_bots_have_one_log_and_each_answers_for_its_agent(tmp_path: Path, *, hears_bots: bool) -> None:
    async with TelegramSim() as sim:
        agora = Agora(sim, hears_bots=hears_bots)
        async with agora.alive(tmp_path / "bot.db") as (engine, store):
            asked = agora.ann.send(agora.chat, "@bob_bot, who are you?")
            await agora.seen("Bob: Bob 1.")
            (answer,) = agora.chat.of(agora.bots[1])
            agora.ann.send(agora.chat, "and again", reply_to=answer)
            await agora.seen("Bob: Bob 1.", "Bob: Bob 2.")
            agora.ann.send(agora.chat, "Cid and Ada?")
            await agora.seen("Bob: Bob 1.", "Bob: Bob 2.", "Cid: Cid 1.", "Ada: Ada 1.")
            await agora.quiet(engine)

            found = await log(store, agora.chat)
            assert answer.reply_to == asked.id
            assert [(one.agent, one.text) for one in found] == [
                (None, "@bob_bot, who are you?"), ("Bob", "Bob 1."), (None, "and again"), ("Bob", "Bob 2."),
                (None, "Cid and Ada?"), ("Cid", "Cid 1."), ("Ada", "Ada 1."),
            ]  # fmt: skip
            assert [len(one.asked) for one in agora.models.values()] == [1, 2, 1]
            assert [int(one.author.id) for one in found if one.agent == "Cid"] == [agora.bots[2].id]
