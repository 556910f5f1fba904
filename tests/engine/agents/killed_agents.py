"""Three agents of one engine that is killed again and again: what each of them said to every message, and when."""

import asyncio
import os
import random
import re
import shutil
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from engine.aftermath import Rows, command
from engine.scripted_service import Kind, ScriptedService
from engine.torture import BOTH, EACH, Moment, Station, station
from tertulia.engine.behavior import FAILED
from tertulia.engine.place_worker import GAVE_UP
from tertulia.messages import Author, Message, Place
from tertulia.parts import Text
from tertulia.sim.behaviours import Answer, Ask, Call
from tertulia.store import Store

AGENTS = ("Socrates", "Plato", "Hypatia")
KINDS = "one two three pass book aside late two three".split()


class Agents:
    """A model for each agent: it says which message it answers, who it is, and who has answered before."""

    def answer(self, ask: Ask) -> Answer:
        shown = str(ask.request)
        [me] = [one for one in AGENTS if f"You are {one}." in str(ask.request["systemInstruction"])]
        if called_again := re.search(r"re (m\d+) by", ask.last_text):
            name, kind = called_again[1], "passed" if "passed]" in ask.last_text else "again"
        else:
            [(name, kind)] = re.findall(r"\[(m\d+) (\w+)\]", ask.last_text)
        if kind == "book" and "functionResponse" not in str(ask.request["contents"][-1]):
            return Answer(calls=[Call(name="book", args={"message": name})])
        others = _numbers(re.findall(rf"re {name} by (\w+)", shown))
        passed = f" [{name} passed] {_next(me)}" if kind == "pass" else ""
        return Answer(text=f"re {name} by {me} after {others}{passed}")


def _numbers(agents: Iterable[str]) -> str:
    """Agents in words that call none of them."""
    return "+".join(str(number) for number in sorted({AGENTS.index(one) for one in agents})) or "nobody"


def _next(agent: str) -> str:
    return AGENTS[(AGENTS.index(agent) + 1) % len(AGENTS)]


class Agora(ScriptedService):
    """People in groups, each of whom means one agent or several, by name."""

    def _message(self, number: int) -> Message:
        kind = KINDS[number % len(KINDS)]
        alone = f"p{number}"  # where nobody else comes between agents that talk with each other
        name = alone if kind == "pass" else f"g{number // 24 * 3 + number % 3}"
        place = Place(platform=self.kind, id=name, kind="group")
        text = Text(text=f"[m{number} {kind}] {', '.join(called(number))} if you please")
        return Message(id=f"m{number}", place=place, author=Author(id=f"p{number}", name="Ann"), parts=(text,))


def called(number: int) -> list[str]:
    """The agents that a message names, in order."""
    kind = KINDS[number % len(KINDS)]
    many = {"two": 2, "three": 3, "aside": 0}.get(kind, 1)
    return random.Random(number).sample(AGENTS, many)  # noqa: S311 (nothing secret)


def meant(number: int) -> list[str]:
    """The agents that answer a message, in order; one that calls another is answered, and answers once more."""
    names = called(number)
    return [*names, _next(names[0]), *names] if KINDS[number % len(KINDS)] == "pass" else names


class Outcome(Struct, frozen=True, kw_only=True):
    """What has become of everything; the faults, in words, are what should not have."""

    kind: Kind
    kills: int = 0
    messages: int = 0
    answers: int = 0  # that people see
    doubtful: int = 0
    lost: int = 0  # that nobody sees, and nobody knows of
    doubled: int = 0
    given_up: int = 0  # runs that were cut off too often, and ended with an honest line
    seconds: float = 0.0
    faults: tuple[str, ...] = ()


async def killed(folder: Path, kind: Kind, *, kills: int, seed: int) -> Outcome:
    """What has become of everything in a file whose engine was killed so often, at random moments."""
    began, chance = time.monotonic(), random.Random(seed)  # noqa: S311 (nothing secret)
    async with station(folder, kind, seed, script=Agora, behaviour=Agents(), agents=AGENTS) as one:
        for _ in range(kills):
            await one.die(Moment.drawn(chance))
        await one.finish()
        return await looked_into(one, time.monotonic() - began)


async def killed_at(folder: Path, kind: Kind, points: Sequence[str], *, seed: int) -> Outcome:
    """What has become of everything in a file whose engine was killed once at each of the named points."""
    began = time.monotonic()
    async with station(folder, kind, seed, script=Agora, behaviour=Agents(), agents=AGENTS) as one:
        for point in points:
            await one.die_at(point)
        await one.finish()
        return await looked_into(one, time.monotonic() - began)


async def looked_into(one: Station, seconds: float) -> Outcome:
    """What people see, and what the store says of it."""
    async with Store.open(one.store, beside=True) as store:
        tables: dict[str, Rows] = defaultdict(list)
        async for row in store.export():
            tables[row["table"]].append(row)
    seen: dict[str, list[tuple[str, str]]] = defaultdict(list)  # agents with whom they saw, by message
    faults, texts = [], Counter(sent.text for sent in one.service.sent)
    for sent in one.service.sent:
        if sent.text == FAILED:
            continue
        found = re.fullmatch(r"re (m\d+) by (\w+) after (\S+)(?: \[m\d+ passed\] \w+)?", sent.text)
        if found is None:
            faults.append(f"people read {sent.text!r}")
            continue
        seen[found[1]].append((found[2], found[3]))
    doubtful = {
        (found[1], found[2])
        for row in tables["outbox"]
        if row["status"] == "doubtful" and (found := re.match(r"re (m\d+) by (\w+)", row["reply"]["text"]))
    }
    given_up = [row for row in tables["runs"] if row["why"] == GAVE_UP.format(times=row["resumes"])]
    if texts.pop(FAILED, 0) > len(given_up):
        faults.append("people were told of more failures than there were")
    excused = doubtful | {(name, row["agent"]) for row in given_up for name in row["message_ids"]}
    numbers = range(len(one.service.messages))
    lost, doubled = 0, sum(count > 1 for count in texts.values())
    for number in numbers:
        name, wanted = f"m{number}", meant(number)
        said = [agent for agent, _ in seen[name]]
        uncertain = any((name, agent) in excused for agent in wanted)
        passes = KINDS[number % len(KINDS)] == "pass"
        missing = [who for who in (Counter(wanted) - Counter(said)).elements() if (name, who) not in excused]
        missing = [] if passes and uncertain else missing  # who was called by a message that may not have arrived
        lost += len(missing)
        faults += [f"{name}: {agent} did not answer" for agent in missing]
        if said != wanted and not uncertain:
            faults.append(f"{name}: {said} answered, meant are {wanted}")
        for at, (agent, after) in enumerate(seen[name]):
            before = _numbers(said[:at])
            if not uncertain and after != before:
                faults.append(f"{name}: {agent} saw the answers of {after}, not of {before}")
    faults += [f"people read {text!r} {count} times" for text, count in texts.items() if count > 1]
    faults += _misstored(one, tables)
    code, words = await command("db", "check", "--db", one.store)
    faults += [f"tertulia db check: {words}"] if code else []
    return Outcome(
        kind=one.service.kind,
        kills=one.kills,
        messages=len(numbers),
        answers=sum(texts.values()),
        doubtful=len(doubtful),
        lost=lost,
        doubled=doubled,
        given_up=len(given_up),
        seconds=seconds,
        faults=tuple(faults),
    )


def _misstored(one: Station, tables: dict[str, Rows]) -> Iterator[str]:
    """Rows that are not one for each message, and each agent meant by it."""
    for row in tables["runs"]:
        if row["status"] != "done" and row["why"] != GAVE_UP.format(times=row["resumes"]):
            yield f"run {row['run_id']} is {row['status']}: {row['why']}"
    people = {row["id"]: row["message_id"] for row in tables["messages"] if row["role"] == "user"}
    if sorted(people.values()) != sorted(message.id for message in one.service.messages):
        yield "the messages in the log are not those that were written"
    decided: dict[str, list[str]] = defaultdict(list)
    for row in tables["decisions"]:
        if row["message"] in people and row["reason"] == "answered":
            decided[people[row["message"]]].append(row["agent"])
    for number, message in enumerate(one.service.messages):
        if sorted(decided[message.id]) != sorted(called(number)):
            yield f"{message.id} has decisions for {decided[message.id]}"
    agents = Counter(row["agent"] for row in tables["messages"] if row["role"] == "model")
    if not set(agents) <= set(AGENTS):
        yield f"messages of ours are by {agents}"


async def main(kills: int) -> int:
    """Kill so often, half on each kind of platform, and print what came of it."""
    room, done = asyncio.Semaphore(os.cpu_count() or 1), list[Outcome]()

    async def batch(number: int, size: int) -> None:
        async with room:
            folder = Path(tempfile.mkdtemp(prefix="tertulia-agents-"))
            done.append(found := await killed(folder, BOTH[number % 2], kills=size, seed=number))
            print(found, flush=True)
            if not found.faults:
                shutil.rmtree(folder)

    async with asyncio.TaskGroup() as group:
        for number, start in enumerate(range(0, kills, EACH)):
            group.create_task(batch(number, min(EACH, kills - start)))
    for kind in BOTH:
        of_kind = [one for one in done if one.kind == kind]
        names = ("kills", "messages", "answers", "doubtful", "lost", "doubled", "given_up")
        print(kind, {name: sum(getattr(one, name) for one in of_kind) for name in names})
    return int(any(one.faults for one in done))


if __name__ == "__main__":
    sys.exit(asyncio.run(main(int(sys.argv[1]))))
