"""Memory of a bot's process over an hour of messages of people, whom the simulator plays in another process."""

import asyncio
import os
import re
import tempfile
from collections.abc import AsyncIterator, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

from bench.common import progress
from bench.engine import BEHAVIOR, LIMITS
from bench.telegram_server import DISK

from tertulia import Engine, Memory, Part, Store, Text, Turn
from tertulia.memory.embeddings import NO_EMBEDDER
from tertulia.models.base import Finish, Response
from tertulia.platforms.telegram import Telegram
from tertulia.platforms.telegram.client import Pace
from tertulia.sim.telegram import SimChat, SimUser, TelegramSim
from tertulia.turns import Prompt

AT_ONCE = Pace(direct=1e6, group=1e6, overall=1e6)  # messages a second
CHATS = (50, 5)  # in how many chats the messages come: in few, the caches of all of them are full before the end
PATIENCE = 120.0  # seconds until an answer is lost
WARM = 200  # messages before the first look: what is loaded late is loaded then


class Echo:
    """A model that answers with the number of the question, in a few words."""

    name = "echo"

    async def respond(self, prompt: Prompt) -> Response:
        number = re.findall(r"number (\d+)", "".join(turn.text for turn in prompt.turns[-3:]))[-1]
        said = f"**Number {number}**: it leaves at a quarter to nine, from `platform 3`."
        turn = Turn(role="model", parts=(Text(text=said),), model=self.name)
        return Response(turn=turn, finish=Finish(outcome="complete", reason="STOP"))

    async def stream(self, prompt: Prompt) -> AsyncIterator[Part | Response]:
        response = await self.respond(prompt)
        for word in response.text.split(" "):
            yield Text(text=f"{word} ")
        yield response


async def serve_people(told: Connection, chats: int) -> None:
    """Serve the simulator; let people send as many messages as *told* says, one a second of its time."""
    async with TelegramSim() as sim:
        people = [sim.user(f"Person {number}") for number in range(chats)]
        rooms = [
            sim.private(person) if number % 2 else sim.group(f"Group {number}", [person], supergroup=True)
            for number, person in enumerate(people)
        ]
        told.send((sim.url, sim.token))
        sent = 0
        while True:
            numbers = range(sent, sent + await asyncio.to_thread(told.recv))
            await asyncio.gather(*(talk(sim, one, rooms[i], numbers[i::chats]) for i, one in enumerate(people)))
            sent = numbers.stop
            told.send(sent)


async def talk(sim: TelegramSim, person: SimUser, room: SimChat, numbers: Sequence[int]) -> None:
    """Ask questions in a chat, each after the answer to the one before."""
    for number in numbers:
        sim.clock.advance(1.0)
        person.send(room, f"@{sim.bot.account.username} when does train number {number} leave, and from where?")
        answer = f"Number {number}:"
        async with asyncio.timeout(PATIENCE):
            while not room.chat.messages[next(reversed(room.chat.messages))].text.startswith(answer):  # noqa: ASYNC110
                await asyncio.sleep(0.005)


def run_people(told: Connection, chats: int) -> None:
    asyncio.run(serve_people(told, chats))


async def run_bot(url: str, token: str, folder: str) -> None:
    """Run a bot with its memory, by words; only the pace and the pause before an answer are shorter than usual."""
    platform = Telegram(token, base_url=url, pace=AT_ONCE)
    async with Store.open(Path(folder) / "s.db") as store:
        await store.index_writer.choose(NO_EMBEDDER)
        await Engine(store, Echo(), [platform], behavior=BEHAVIOR, limits=LIMITS, memory=Memory(store)).run()


def start_bot(url: str, token: str, folder: str) -> None:
    asyncio.run(run_bot(url, token, folder))


def memory_rows(count: int, chats: int) -> list[dict[str, float]]:
    """Return memory and CPU time of the bot's process at the start and after each quarter of the messages."""
    context = get_context("spawn")
    rows: list[dict[str, float]] = []
    ours, theirs = context.Pipe()
    people = context.Process(target=run_people, args=(theirs, chats), daemon=True)
    people.start()
    theirs.close()  # so that we hear when they end
    with tempfile.TemporaryDirectory(dir=DISK) as folder:
        bot = context.Process(target=start_bot, args=(*ours.recv(), folder), daemon=True)
        bot.start()
        for step in (WARM, *[count // 4] * 4):
            progress(f"memory, {len(rows)} of 5 looks, {chats} chats")
            ours.send(step)
            sent = ours.recv() - WARM
            rows.append({"chats": chats, "messages": sent, **usage(bot.pid or 0)})
        bot.terminate()
        bot.join()
    people.kill()
    people.join()
    progress("")
    return rows


def usage(process: int) -> dict[str, float]:
    """Return the resident megabytes and the CPU seconds of a process."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    ticks = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
    return {
        "rss_mb": pages * os.sysconf("SC_PAGE_SIZE") / 2**20,
        "cpu_s": sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK"),
    }
