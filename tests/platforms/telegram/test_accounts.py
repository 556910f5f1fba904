"""Several bots in one supergroup are agents over one log."""

import asyncio
import random
import socket
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from msgspec.structs import replace

from lives import lives
from platforms.telegram import accounts_child
from platforms.telegram.bot_child import Life
from platforms.telegram.world import AT_ONCE, short_sleep, telegram
from tertulia import Agent, Behavior, Engine, Media, Message, Place, Store
from tertulia.models import Scripted
from tertulia.models.base import Response
from tertulia.platforms.telegram.platform import Telegram
from tertulia.sim.telegram import SimBot, SimChat, TelegramSim
from tertulia.turns import Prompt, model

PATIENCE = 30.0  # seconds, on a busy machine
NAMES = accounts_child.NAMES
KILLS = 12


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

    engine: Engine

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
    async def alive(self, path: Path, *, ports: Sequence[int] = ()) -> AsyncIterator[Store]:
        """Run the engine of the three; it is done with all when the block ends. With *ports* updates are posted."""
        platforms = [telegram(self.sim, bot.token) for bot in self.bots]
        for number, port in enumerate(ports):
            hook, listen = f"http://127.0.0.1:{port}/hook", f"127.0.0.1:{port}"
            token = self.bots[number].token
            platforms[number] = Telegram(
                token, base_url=self.sim.url, webhook=hook, listen=listen, pace=AT_ONCE, sleep=short_sleep
            )
        agents = [
            Agent(name=name, models=(self.models[name],), accounts=(platform.name,))
            for name, platform in zip(NAMES, platforms, strict=True)
        ]
        async with Store.open(path) as store:
            engine = Engine(store, self.models["Ada"], platforms, agents=agents, behavior=Behavior(debounce=0.0))
            running = asyncio.create_task(engine.run())
            self.engine = engine
            try:
                yield store
                await self.quiet()
            finally:
                running.cancel()
                with suppress(asyncio.CancelledError):
                    await running

    async def quiet(self) -> None:
        """Wait until no bot has an update that waits, and the engine has nothing to do."""
        async with asyncio.timeout(PATIENCE):
            while any(bot.pending for bot in self.bots):  # noqa: ASYNC110 (nobody tells when they are taken)
                await asyncio.sleep(0.01)
            await self.engine.settled()

    async def seen(self, *texts: str, chat: SimChat | None = None) -> None:
        """Wait until people see exactly these texts of the bots."""
        await self.sim.until(lambda: said(chat or self.chat, self.bots) == list(texts), timeout=PATIENCE)
        await self.quiet()
        assert said(chat or self.chat, self.bots) == list(texts)


def said(chat: SimChat, bots: Sequence[SimBot]) -> list[str]:
    names = {bot.id: name for name, bot in zip(NAMES, bots, strict=True)}
    return [f"{names[one.sender]}: {one.text}" for one in chat.messages if one.sender in names and one.text]


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


async def log(store: Store, chat: SimChat) -> list[Message]:
    found = [place for place in await places(store) if place.id == str(chat.id)]
    assert len(found) == 1, found
    return list(await store.log.read(found[0], 0, 999))


async def places(store: Store) -> list[Place]:
    return [one.place for one in await store.inspection.places()]


@pytest.mark.parametrize("posted", [True, False])
@pytest.mark.parametrize("hears_bots", [True, False])
async def test_three_bots_have_one_log_and_each_answers_for_its_agent(
    tmp_path: Path, *, hears_bots: bool, posted: bool
) -> None:
    async with TelegramSim() as sim:
        agora = Agora(sim, hears_bots=hears_bots)
        async with agora.alive(tmp_path / "bot.db", ports=[free_port() for _ in NAMES] if posted else ()) as store:
            asked = agora.ann.send(agora.chat, "@bob_bot, who are you?")
            await agora.seen("Bob: Bob 1.")
            (answer,) = agora.chat.of(agora.bots[1])
            agora.ann.send(agora.chat, "and again", reply_to=answer)
            await agora.seen("Bob: Bob 1.", "Bob: Bob 2.")
            agora.ann.send(agora.chat, "Cid and Ada?")
            await agora.seen("Bob: Bob 1.", "Bob: Bob 2.", "Cid: Cid 1.", "Ada: Ada 1.")

            found = await log(store, agora.chat)
            assert answer.reply_to == asked.id
            assert [(one.agent, one.text) for one in found] == [
                (None, "@bob_bot, who are you?"), ("Bob", "Bob 1."), (None, "and again"), ("Bob", "Bob 2."),
                (None, "Cid and Ada?"), ("Cid", "Cid 1."), ("Ada", "Ada 1."),
            ]  # fmt: skip
            assert [len(one.asked) for one in agora.models.values()] == [1, 2, 1]
            assert [int(one.author.id) for one in found if one.agent == "Cid"] == [agora.bots[2].id]


@pytest.mark.parametrize("private", [(), ("Ada",), ("Bob", "Cid"), NAMES])
async def test_whoever_hears_a_message_it_is_answered_once(tmp_path: Path, private: Sequence[str]) -> None:
    async with TelegramSim() as sim:
        agora = Agora(sim)
        agora.set_privacy(*private)
        async with agora.alive(tmp_path / "bot.db") as store:
            agora.ann.send(agora.chat, "good morning")
            await agora.quiet()
            agora.ann.send(agora.chat, "@cid_bot and @ada_bot, good morning")
            await agora.seen("Cid: Cid 1.", "Ada: Ada 1.")

            heard = ["good morning"] if len(private) < 3 else []
            texts = [one.text for one in await log(store, agora.chat)]
            assert texts == [*heard, "@cid_bot and @ada_bot, good morning", "Cid 1.", "Ada 1."]


async def test_a_command_is_answered_once_by_the_account_that_it_names(tmp_path: Path) -> None:
    async with TelegramSim() as sim:
        agora = Agora(sim)
        async with agora.alive(tmp_path / "bot.db") as store:
            for line in ("/help", "/help@bob_bot", "/help@cid_bot"):
                agora.ann.send(agora.chat, line)
                await agora.quiet()

            answers = said(agora.chat, agora.bots)
            assert [one.partition(":")[0] for one in answers] == ["Ada", "Bob", "Cid"]
            agora.ann.send(agora.chat, "Bob?")
            await agora.seen(*answers, "Bob: Bob 1.")
            assert [one.text for one in await log(store, agora.chat)] == ["Bob?", "Bob 1."]


async def test_a_file_is_fetched_by_the_account_that_saw_it(tmp_path: Path) -> None:
    async with TelegramSim() as sim:
        agora = Agora(sim)
        agora.set_privacy("Ada", "Bob")
        async with agora.alive(tmp_path / "bot.db") as store:
            agora.ann.send(agora.chat, "@ada_bot, hello")  # the place is hers
            await agora.seen("Ada: Ada 1.")
            agora.ann.send_photo(agora.chat, caption="Cid, what is it?")
            await agora.seen("Ada: Ada 1.", "Cid: Cid 1.")

            photo = (await log(store, agora.chat))[2].parts[0]
            assert isinstance(photo, Media)
            assert photo.account == f"telegram-{agora.bots[2].id}"
            fetched = [call for call in sim.calls if call.method == "getFile"]
            assert [(call.bot, call.status) for call in fetched] == [(agora.bots[2].id, 200)]


async def test_a_direct_chat_and_a_basic_group_are_those_of_one_account(tmp_path: Path) -> None:
    async with TelegramSim() as sim:
        agora = Agora(sim, hears_bots=False)
        group = sim.group("Kitchen", [agora.ann, *agora.bots])
        async with agora.alive(tmp_path / "bot.db") as store:
            for bot in agora.bots:
                agora.ann.send(sim.private(agora.ann, bot), "hello")
                name = NAMES[agora.bots.index(bot)]
                await agora.seen(f"{name}: {name} 1.", chat=sim.private(agora.ann, bot))
            agora.ann.send(group, "good evening")
            await agora.quiet()

            homes = sorted((one.kind, one.platform) for one in await places(store))
            assert homes == [(kind, f"telegram-{bot.id}") for kind in ("direct", "group") for bot in agora.bots]


async def test_a_group_of_several_bots_has_one_log_once_it_is_a_supergroup(tmp_path: Path) -> None:
    async with TelegramSim() as sim:
        agora = Agora(sim, hears_bots=False)
        group = sim.group("Kitchen", [agora.ann, *agora.bots])
        async with agora.alive(tmp_path / "bot.db") as store:
            agora.ann.send(group, "good evening")
            await agora.quiet()
            moved = group.migrate()
            await agora.quiet()
            agora.ann.send(moved, "Bob?")
            await agora.seen("Bob: Bob 1.", chat=moved)

            assert [one.text for one in await log(store, moved)] == ["good evening", "Bob?", "Bob 1."]


async def test_an_account_that_leaves_does_not_end_the_place_of_the_others(tmp_path: Path) -> None:
    async with TelegramSim() as sim:
        agora = Agora(sim)
        async with agora.alive(tmp_path / "bot.db"):
            agora.ann.send(agora.chat, "Ada?")
            await agora.seen("Ada: Ada 1.")
            agora.chat.kick(agora.bots[1])
            await agora.quiet()
            agora.ann.send(agora.chat, "Bob?")  # it cannot say a word any more
            await agora.quiet()
            agora.ann.send(agora.chat, "Cid?")
            await agora.seen("Ada: Ada 1.", "Cid: Cid 1.")
            agora.chat.kick(agora.bots[0])
            await agora.quiet()
            agora.ann.send(agora.chat, "Cid!")
            await agora.seen("Ada: Ada 1.", "Cid: Cid 1.", "Cid: Cid 2.")


async def test_what_another_account_sees_arrive_is_no_longer_doubtful(tmp_path: Path) -> None:
    async with TelegramSim() as sim:
        agora = Agora(sim)
        async with agora.alive(tmp_path / "bot.db") as store:
            sim.fail("receipt lost", method="sendMessage")
            agora.ann.send(agora.chat, "Ada?")
            await agora.quiet()
            await agora.seen("Ada: Ada 1.")

            assert [one.status for one in await store.outbox.listed()] == ["sent"]
            assert [(one.text, one.doubtful) for one in await log(store, agora.chat)] == [
                ("Ada?", False), ("Ada 1.", False),
            ]  # fmt: skip


async def test_accounts_keep_their_places_in_the_next_process(tmp_path: Path) -> None:
    async with TelegramSim() as sim:
        agora = Agora(sim)
        async with agora.alive(tmp_path / "bot.db"):
            agora.ann.send(agora.chat, "Ada?")
            await agora.seen("Ada: Ada 1.")
        for bot in agora.bots:
            sim.deliver_again(bot)
        async with agora.alive(tmp_path / "bot.db") as store:
            agora.ann.send(agora.chat, "Cid?")
            await agora.seen("Ada: Ada 1.", "Cid: Cid 1.")
            assert [one.text for one in await log(store, agora.chat)] == ["Ada?", "Ada 1.", "Cid?", "Cid 1."]


async def test_no_kill_loses_or_doubles_what_one_of_the_bots_heard_or_said(tmp_path: Path) -> None:
    chance, path = random.Random(28), tmp_path / "bot.db"  # noqa: S311 (nothing secret)
    async with TelegramSim() as sim, lives(Path(accounts_child.__file__), tmp_path / "log") as forked:
        agora = Agora(sim)
        agora.set_privacy("Bob")
        life = Life(path=str(path), url=sim.url, token=" ".join(bot.token for bot in agora.bots))
        for number in range(KILLS):
            agora.ann.send(agora.chat, f"@{NAMES[number % 3].lower()}_bot, number {number}!")
            child = await forked.begin(life)
            await asyncio.sleep(chance.uniform(0.05, 0.5))
            await forked.kill(child)
        code = await forked.end(await forked.begin(replace(life, messages=KILLS)), timeout=2 * PATIENCE)
        assert code == 0, forked.log()

        async with Store.open(path) as store:
            found, outbox = await log(store, agora.chat), await store.outbox.listed()
        asked = Counter(one.text for one in found if one.agent is None)
        assert set(asked.values()) == {1}
        assert len(asked) == KILLS
        wanted = [f"{NAMES[number % 3]}: {NAMES[number % 3]} says {number}" for number in range(KILLS)]
        seen = Counter(one for one in said(agora.chat, agora.bots) if " says " in one)
        in_doubt = {f"{one.agent}: {one.reply.text}" for one in outbox if one.status == "doubtful"}
        assert {one for one in wanted if seen[one] != 1} <= in_doubt
        assert set(seen) <= set(wanted)
        assert {one.status for one in outbox} <= {"sent", "doubtful", "dropped"}
