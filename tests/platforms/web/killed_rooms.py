"""A bot whose page is killed again and again while people sit in its rooms: `killed_rooms.py 500` says what they saw.

In each room somebody asks and all listen, as browsers do: who was cut off comes back behind the last event they had
seen, and a message whose answer was lost goes up again under its key. Of many rooms the oldest are left, and entered
again at the end.
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

import httpx2
from msgspec import Struct
from msgspec.structs import asdict

import postgres
from lives import Lives, lives, print_result
from platforms.web.room_child import Life, answer_to
from platforms.web.room_people import RoomPeople
from platforms.web.streams import Sent, Stream, shown_by
from platforms.web.test_room_contract import free_port
from tertulia.messages import Author, Place
from tertulia.store import Store

CHILD = Path(__file__).with_name("room_child.py")
MOST = {"change": 12, "delta": 60, "live": 3}  # events in one life, at most
PEOPLE = [Author(id=name.lower(), name=name) for name in ("Ann", "Bob", "Cleo")]
ROOMS = 2  # a kill, at most
LISTENED = 10  # rooms at once
IDLE = 2.0  # seconds after which a life ends all the same
OVERDUE = 60.0  # seconds after which all must have been answered
PAUSE = 0.02  # seconds after which a browser comes back


class Result(Struct, frozen=True, kw_only=True):
    """What people saw."""

    kills: int
    in_answer: int  # kills while people read half of an answer
    messages: int
    resumed: int  # streams that were cut off and went on
    faults: tuple[str, ...]


class Listener:
    """One person's browser in a room."""

    def __init__(self, people: RoomPeople, place: Place, author: Author, seen: "Counter[str]") -> None:
        self.place = place
        self.author = author
        self.events: list[Sent] = []
        self.resumed = 0
        self.last = 0
        self.faults: list[str] = []
        self._people = people
        self._seen = seen
        self._listening: asyncio.Task[None] | None = None
        self.come()

    def come(self) -> None:
        """Listen, behind what was seen last."""
        self._listening = self._listening or asyncio.create_task(self._listen())

    async def leave(self) -> None:
        if self._listening:
            self._listening.cancel()
            await asyncio.wait([self._listening])
            self._listening = None

    @property
    def said(self) -> list[str]:
        """The texts that are shown, of people and of the agent."""
        messages = shown_by(self.events)[0]["messages"]
        return ["".join(part["text"] for part in one["message"]["parts"]) for one in messages]

    @property
    def written(self) -> list[str]:
        """The texts of answers as they were read while they were written."""
        return [*shown_by(self.events)[1].values()]

    @property
    def reads_half(self) -> bool:
        """Whether the beginning of an answer is shown that is no message yet."""
        return bool(self.events) and self.events[-1].kind in ("live", "delta")

    async def _listen(self) -> None:
        while True:
            with suppress(httpx2.TransportError):
                async with self._people.listening(self.place, self.author, self.last) as response:
                    if response.status_code == 200:
                        self.resumed += self.last > 0
                        await self._read(Stream(response.aiter_lines()))
            await asyncio.sleep(PAUSE)

    async def _read(self, stream: Stream) -> None:
        while event := await stream.next():
            if event.kind == "people":
                continue
            if event.id is not None and int(event.id) <= self.last:
                self.faults.append(f"{self.author.name} is told {event.id} after {self.last}")
            self.last = max(self.last, stream.last_id)
            self.events.append(event)
            self._seen[event.kind] += 1


async def killed(folder: Path, *, kills: int, seed: int) -> Result:
    """Kill a bot so often, at random moments, while people write; then let it finish, and compare what all see."""
    chance = random.Random(seed)  # noqa: S311 (nothing secret)
    seen: Counter[str] = Counter()
    listeners: list[Listener] = []
    in_answer = 0
    people = RoomPeople(free_port())
    rooms = [people.open_room(len(PEOPLE)) for _ in range(kills * ROOMS)]
    for place in rooms:
        for author in PEOPLE:
            people.seat(place, author)
    port, tokens = int(people.url.rpartition(":")[2]), str(folder / "page")
    life = Life(path=postgres.store_in(folder, "bot.db"), port=port, tokens=tokens)
    async with Store.open(life.path) as store:
        await people.settle(store)
    messages = 0
    async with lives(CHILD, folder / "log") as forked:
        try:
            for _ in range(kills):
                for _ in range(chance.choice([0, 1, ROOMS]) if messages else 1):
                    place = rooms[messages]
                    listeners += [Listener(people, place, author, seen) for author in PEOPLE]
                    people.post(place, chance.choice(PEOPLE), f"Gryag, number {messages}!")
                    messages += 1
                await left(listeners[: -LISTENED * len(PEOPLE)])
                in_answer += await kill(forked, life, listeners, seen, chance)
            postgres.let_time_pass(life.path)
            child = await forked.begin(life)
            people.post_again()
            await asyncio.sleep(IDLE)  # in which what is done twice would be done
            faults = [fault for number in range(messages) for fault in await outcome(number, listeners)]
            assert await forked.kill(child) == -signal.SIGKILL, forked.log()
        finally:
            await left(listeners)
            await people.close()
    return Result(
        kills=kills,
        in_answer=in_answer,
        messages=messages,
        resumed=sum(one.resumed for one in listeners),
        faults=(*faults, *(fault for one in listeners for fault in one.faults)),
    )


async def kill(
    forked: Lives, life: Life, listeners: Sequence[Listener], seen: "Counter[str]", chance: random.Random
) -> bool:
    """Live one life, and end it after a random number of events; return whether somebody read half of an answer."""
    postgres.let_time_pass(life.path)
    child = await forked.begin(life)
    what = chance.choice([*MOST])
    wanted = seen[what] + chance.randint(1, MOST[what])
    with suppress(TimeoutError):
        async with asyncio.timeout(IDLE):
            while seen[what] < wanted:  # noqa: ASYNC110 (it is counted for each event of all streams)
                await asyncio.sleep(0.001)
    await asyncio.sleep(chance.choice([0, chance.uniform(0, 0.01)]))
    reads_half = any(one.reads_half for one in listeners)
    assert await forked.kill(child) == -signal.SIGKILL, forked.log()
    return reads_half


async def left(listeners: Sequence[Listener]) -> None:
    await asyncio.gather(*(one.leave() for one in listeners))


async def outcome(number: int, listeners: Sequence[Listener]) -> list[str]:
    """Wait until all in a room see the question with its answer; return who does not, or sees something else."""
    these = listeners[number * len(PEOPLE) :][: len(PEOPLE)]
    question, answer = f"Gryag, number {number}!", answer_to(number)
    for one in these:
        one.come()
    with suppress(TimeoutError):
        async with asyncio.timeout(OVERDUE):
            while any(len(one.said) < 2 for one in these):  # noqa: ASYNC110 (three streams, and what each shows)
                await asyncio.sleep(PAUSE)
    await left(these)
    return [
        f"in room {number} {one.author.name} sees {[text[:20] for text in (*one.said, *one.written)]}"
        for one in these
        if one.said != [question, answer] or not all(map(answer.startswith, one.written))
    ]


async def main(kills: int) -> int:
    """Kill so often, and print what came of it."""
    with tempfile.TemporaryDirectory(prefix="tertulia-kills-") as folder:
        result = await killed(Path(folder), kills=kills, seed=1)
    return print_result(asdict(result), result.faults)


if __name__ == "__main__":
    sys.exit(asyncio.run(main(int(sys.argv[1]))))
