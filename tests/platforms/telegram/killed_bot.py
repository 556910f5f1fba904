"""A bot on Telegram that is killed again and again: `killed_bot.py 500` prints what became of all messages.

Its simulator, which lives on, is the judge. People write in direct chats, where the answer is previewed, and in groups,
where it is one message that is edited; most answers are split.
"""

import asyncio
import random
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from msgspec.structs import asdict, replace

import postgres
from lives import Lives, lives, print_result
from platforms.telegram.bot_child import Life, answer_to, bot_of
from tertulia.messages import Place, Reply
from tertulia.sim.telegram import SimChat, TelegramSim
from testing.killed_platforms import Result, Stored, fate_of, stored

CHILD = Path(__file__).with_name("bot_child.py")
MOST = {"editMessageText": 20, "sendMessage": 4, "sendMessageDraft": 20, "getUpdates": 3}  # calls in one life, at most
IDLE = 2.0  # seconds after which a life ends all the same
OVERDUE = 60.0  # seconds after which the last life has to be over


async def killed(folder: Path, *, kills: int, seed: int) -> Result:
    """Kill a bot so often, at random moments, while people write; then let it finish, and look at everything."""
    chance = random.Random(seed)  # noqa: S311 (nothing secret)
    moments: Counter[str] = Counter()
    chats: list[SimChat] = []
    async with TelegramSim() as sim, lives(CHILD, folder / "log") as forked:
        life = Life(path=postgres.store_in(folder, "bot.db"), url=sim.url, token=sim.token)
        for _ in range(kills):
            for _ in range(chance.choice([0, 0, 1, 2]) if chats else 1):
                chats.append(ask(sim, len(chats)))
            await kill(forked, life, sim, chance)
            kept = await stored(life.path)
            moments["draft"] += is_draft_visible(kept, sim)
            moments["parts"] += is_between_parts(kept, sim)
        postgres.let_time_pass(life.path)
        child = await forked.begin(replace(life, messages=len(chats)))
        code = await forked.end(child, timeout=OVERDUE + len(chats))
        assert code == 0, forked.log()
        found = aftermath(await stored(life.path), life, sim, chats)
        return replace(found, kills=kills, with_draft=moments["draft"], between_parts=moments["parts"])


def ask(sim: TelegramSim, number: int) -> SimChat:
    """Let somebody ask: in a direct chat, or in a group."""
    ann = sim.user("Ann")
    chat = sim.private(ann) if number % 2 else sim.group(f"Group {number}", [ann])
    ann.send(chat, f"Tertulia, number {number}!")
    return chat


async def kill(forked: Lives, life: Life, sim: TelegramSim, chance: random.Random) -> None:
    """Live one life, and end it after a random number of calls."""
    postgres.let_time_pass(life.path)
    child = await forked.begin(life)
    what = chance.choice([*MOST])
    wanted = calls(sim, what) + chance.randint(1, MOST[what])
    with suppress(TimeoutError):
        await asyncio.wait_for(sim.until(lambda: calls(sim, what) >= wanted), IDLE)
    await asyncio.sleep(chance.choice([0, chance.uniform(0, 0.01)]))
    assert await forked.kill(child) == -signal.SIGKILL, forked.log()
    await asyncio.sleep(0.02)  # the simulator reads what the killed process has sent


def calls(sim: TelegramSim, method: str) -> int:
    return sum(call.method == method for call in sim.calls)


def shown(sim: TelegramSim, place_id: str) -> list[tuple[str, str]]:
    """Ids and texts of the bot's messages that people see."""
    return [(str(message.id), message.text) for message in sim.chat(int(place_id)).of(sim.bot)]


def is_draft_visible(kept: Stored, sim: TelegramSim) -> bool:
    drafts = [row for row in kept.outbox if row.kind == "draft" and row.run in kept.open_runs]
    return any(shown(sim, row.reply.place.id) for row in drafts)


def is_between_parts(kept: Stored, sim: TelegramSim) -> bool:
    """Whether people see some part of a split answer, and another one is still to be sent."""
    replies: dict[str, list[tuple[bool, bool]]] = {}
    for row in kept.outbox:
        if row.reply_id:
            is_seen = any(text == row.reply.text for _, text in shown(sim, row.reply.place.id))
            is_to_come = row.status in ("waiting", "sending") and not is_seen
            replies.setdefault(row.reply_id, []).append((is_seen, is_to_come))
    return any(all(map(any, zip(*parts, strict=True))) for parts in replies.values())


def aftermath(kept: Stored, life: Life, sim: TelegramSim, chats: Sequence[SimChat]) -> Result:
    """The fate of every message, by what people see and what is stored."""
    unfinished = kept.waiting.union(kept.open_runs.values())
    fates: Counter[str] = Counter()
    faults: list[str] = []
    for number, chat in enumerate(chats):
        place = Place(platform="telegram", id=str(chat.id), kind="direct" if number % 2 else "group")
        parts = [part.text for part in bot_of(life).split(Reply(place=place, text=answer_to(number)))]
        rows = [row for row in kept.outbox if row.reply.place.id == place.id]
        fate = fate_of(parts, rows, shown(sim, place.id), is_unfinished=place.id in unfinished)
        fates[fate] += 1
        if fate not in ("answered", "doubtful"):
            told = [(row.kind, row.status, row.message_id, row.reply.text[:20]) for row in rows]
            seen = [(message_id, text[:20]) for message_id, text in shown(sim, place.id)]
            faults.append(f"message {number} is {fate}: people see {seen}, the outbox has {told}")
    return Result(platform="telegram", messages=len(chats), faults=tuple(faults), **fates)


async def main(kills: int) -> int:
    """Kill so often, and print what came of it."""
    with tempfile.TemporaryDirectory(prefix="tertulia-kills-") as folder:
        result = await killed(Path(folder), kills=kills, seed=1)
    return print_result(asdict(result), result.faults)


if __name__ == "__main__":
    sys.exit(asyncio.run(main(int(sys.argv[1]))))
