"""In any world of several people, what only one of them said is in no file after they are forgotten."""

import asyncio
import re
import tempfile
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from memory.known import a_fact, a_subject
from people import BOB, GROUP, GRYAG, NOON, a_message, a_photo, texts
from sizes import size
from store.builders import a_record, a_run, a_task, a_tool_run, add_own, an_outgoing, prompt_sent
from tertulia.memory.forget import Plan
from tertulia.memory.values import Summary
from tertulia.messages import Author, Message, Place, Quote, Reply
from tertulia.parts import Media, Text, ToolCall, ToolResult
from tertulia.store import Store
from tertulia.store.forget.export import SHOWN
from tertulia.tasks.task import Task
from tertulia.turns import Prompt, model, user

HER = Author(id="u777001", name="Xanthippe", username="xanthippe_of_athens")
CAROL = Author(id="u888002", name="Carol")
ELSEWHERE = Place(platform="telegram", id="-5", kind="group", title="Elsewhere")
HOME = Place(platform="telegram", id=HER.id, kind="direct", title=HER.name)
BOBS = Place(platform="telegram", id=BOB.id, kind="direct", title="Bob")
HERS = (
    "zyzzyva", "flowerpots", "глокосліпка", "мимрячки", "0671234567", "4417-9035", "朝阳区八里庄", "喜鹊", "ひみつばこ",
    "กระซิบลับ", "비밀정원", "ελικοπτέρων", "qvx8841", "שושנים",
)  # fmt: skip
OTHERS = ("marmalade", "теревені", "0937654321", "海淀区中关村", "さくらんぼ", "lighthouse")
COMMON = ("tea", "tomorrow", "чай", "ok", "12")
NAMES = (HER.name, "xanthippe_of_athens", HER.id)
PEOPLE = (HER, BOB, CAROL)
WROTE_IN = {HER.id: (GROUP, HOME), BOB.id: (GROUP, ELSEWHERE, BOBS), CAROL.id: (GROUP, ELSEWHERE)}


class Asked(Struct, frozen=True, kw_only=True):
    """What went into a run, to be compared with what is left."""

    id: str
    place: Place
    prompts: list[Prompt]
    theirs: bool  # it answers her
    knew_her: bool  # a message of hers, a quote of one or a fact about her was there before


class World:
    def __init__(self, store: Store, draw: Any) -> None:
        self.store = store
        self.draw = draw
        self.said: list[Message] = []
        self.asked: list[Asked] = []
        self.tasks: list[Task] = []
        self.her_places: set[Place] = set()  # where a fact is about her
        self.count = 0

    def name(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def of(self, values: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(values))

    async def speak(self) -> None:
        """Somebody writes; what they quote is of anybody."""
        author: Author = self.of(PEOPLE)
        place: Place = self.of(WROTE_IN[author.id])
        own = HERS if author is HER else OTHERS
        words = self.draw(st.lists(st.sampled_from([*own, *COMMON]), min_size=1, max_size=4))
        there = [message for message in self.said if message.place == place]
        quoted: Message | None = self.of([None, None, *there])
        quote = quoted and Quote(message_id=quoted.id, author=quoted.author, parts=quoted.parts)
        parts: tuple[Any, ...] = (Text(text=" ".join(words)),)
        if self.draw(st.booleans()):
            parts = (*parts, a_photo(unique_id=self.name(f"photo-{author.name}-"), data=None))
        message = a_message(id=self.name("m"), author=author, place=place, parts=parts, reply_to=quote)
        await self.store.inbox.receive(message, at=NOON)
        if self.draw(st.booleans()):
            message = replace(message, parts=(Text(text=self.of(own)),), edited_at=NOON)
            await self.store.inbox.edit(message, at=NOON)
        self.said.append(message)

    async def repeat(self) -> None:
        """The agent remembers, describes and says what it has heard in a place."""
        message: Message | None = self.of([None, *self.said])
        if message is None:
            return
        word = self.repeated(message.place)
        match self.of(["say", "fact", "summary", "describe"]):
            case "say":
                own = a_message(f"I think {word}", id=self.name("a"), author=GRYAG, place=message.place)
                await add_own(self.store, own, [model(f"hm {self.repeated(message.place)}"), model(f"I think {word}")])
                self.said.append(own)
            case "fact":
                about = self.of([BOB, CAROL, HER])
                self.her_places |= {message.place} if about is HER else set()
                await self.store.facts.learn(
                    [
                        a_fact(
                            f"mentions {word}",
                            id=self.name("f"),
                            about=about,
                            place=message.place,
                            sources=(message.id,),
                        )
                    ]
                )
            case "summary":
                told = Summary(
                    subject=a_subject(BOB),
                    place=message.place,
                    text=f"Likes {word}.",
                    facts=1,
                    digest="d",
                    made_at=NOON,
                )
                await self.store.facts.summarise(told)
            case "describe":
                for part in message.parts:
                    if isinstance(part, Media):
                        await self.store.descriptions.describe(part.unique_id, f"shows {word}", by="m", at=NOON)

    def repeated(self, place: Place) -> str:
        """A word that was said in a place, or somebody's name there."""
        there = [message for message in self.said if message.place == place]
        words = [word for message in there for text in texts(message.parts) for word in text.split()]
        return str(self.of([*words, *[message.author.name for message in there], "nothing"]))

    async def answer(self) -> None:
        """A run about what was said in a place, with tools, a reply and a reminder, done or under way."""
        asked = [message for message in self.said if message.author is not GRYAG]
        if not asked:
            return
        target: Message = self.of(asked)
        place, run_id = target.place, self.name("r")
        there = [message for message in self.said if message.place == place]
        shown = there[self.draw(st.integers(0, len(there))) :] if self.draw(st.booleans()) else [target]
        turns = [user(f"{message.author.name}: {' '.join(texts(message.parts))}") for message in shown]
        run = a_run(id=run_id, place=place, target=target.id, taken=(), horizon=len(there))
        first = Prompt.of(*turns, system="Be honest with everybody." * 20)
        made, given, reply, reminder = (self.repeated(place) for _ in range(4))
        second = Prompt.of(*turns, model(f"Well, {made}"), system="Be honest with everybody." * 20)
        await self.store.runs.begin(run, first, at=NOON)
        await self.store.runs.add_record(run, 0, a_record(turn=model(f"Well, {made}"), raw={"text": f"Well, {made}"}))
        call = ToolCall(name="note", id="c", args={"text": given})
        await self.store.runs.begin_tool(run, a_tool_run(call=call, result=ToolResult(name="note", value=given)))
        await self.store.runs.ask(run, 1, second, at=NOON)
        task = a_task(
            id=f"t-{run_id}", place=place, args={"text": reminder}, made_by=run_id, due_at=NOON + timedelta(1)
        )
        task = replace(task, status=self.of(["pending", "done", "failed"]))
        if self.draw(st.booleans()):
            out = an_outgoing(reply, id=f"o-{run_id}", reply=Reply(place=place, text=reply), run=run_id, author=GRYAG)
            await self.store.runs.end(replace(run, status="done"), replies=[out], tasks=[task])
            self.tasks.append(task)
            if self.draw(st.booleans()):
                sent = replace(out, status="sent", message_id=self.name("a"), sent_at=NOON)
                await self.store.outbox.change(sent)
        knew_her = place in self.her_places or any(message.author is HER for message in there)
        prompts = [first, second]
        self.asked.append(
            Asked(id=run_id, place=place, prompts=prompts, theirs=target.author is HER, knew_her=knew_her)
        )

    def hers(self, text: str) -> bool:
        return any(word in text for word in (*HERS, *NAMES)) or any(
            said and said in text
            for message in self.said
            if message.author is HER
            for said in (*texts(message.parts), *" ".join(texts(message.parts)).split())
        )


def everything_in(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(folder.iterdir()))


RUN_CONTENTS = {name: (name, "id") for name in ("prompts", "records", "tool_runs")}
TABLES = {name: (shown.table, shown.key) for name, shown in SHOWN.items()} | RUN_CONTENTS  # of sections, with keys
DELETED = ("names", "facts", "summaries", *RUN_CONTENTS)
EMPTIED = ("messages", "tasks", "outbox", "runs")


async def rows_by_key(store: Store) -> dict[tuple[str, int], Any]:
    """The rows of these tables, by table and id."""
    return {(row["table"], row["id"]): row async for row in store.export() if row["table"] in (*DELETED, *EMPTIED)}


def planned(plan: Plan) -> set[tuple[str, int | str]]:
    """The rows of these tables that a plan names, by table and id."""
    return {
        (table, key[0])
        for section, keys in plan.rows.items()
        for table, column in [TABLES.get(section, ("", ""))]
        for key in keys
        if table in (*DELETED, *EMPTIED) and column == "id"
    }


async def forgotten(draw: Any, folder: Path) -> None:
    path = folder / "s.db"
    async with Store.open(path) as store:
        world = World(store, draw)
        for _ in range(draw(st.integers(3, 14))):
            step = world.of([world.speak, world.speak, world.repeat, world.answer])
            await step()
        reminders = {task.id: task for task in await store.tasks.listed()}

        before = await rows_by_key(store)
        plan = await store.plan_forget(platform="telegram", author_id=HER.id)
        exported = await store.export_person(platform="telegram", author_id=HER.id)
        assert {name: len(exported[name]) for name in ("messages", "tasks", "replies", "runs")} == {
            name: len(plan.rows.get(name, ())) for name in ("messages", "tasks", "replies", "runs")
        }

        assert await store.forget(platform="telegram", author_id=HER.id) == plan.report()

        after = await rows_by_key(store)
        changed = {key for key, row in before.items() if key not in after or (key[0] in EMPTIED and after[key] != row)}
        assert changed == planned(plan)
        held = await asyncio.to_thread(everything_in, folder)
        for word in (*HERS, *NAMES):
            assert word.encode() not in held, word
            assert not any(run.encode() in held for run in re.findall(r"[\u3040-\uffdc]{3}", word)), word
        assert await store.check() == []
        for message in world.said:
            if message.author in (BOB, CAROL):
                place_number = await store.log.number(message)
                assert place_number is not None
                (now,) = await store.log.read(message.place, place_number, place_number + 1)
                assert (now.author, now.parts) == (message.author, message.parts)
        for run in world.asked:
            if not run.theirs and not run.knew_her:
                left = [await prompt_sent(store, run.id, step) for step in (0, 1)]
                assert left == run.prompts
        left_tasks = {task.id: task for task in await store.tasks.listed()}
        for run in world.asked:
            task = reminders.get(f"t-{run.id}")
            if task and not run.theirs and not world.hers(task.args["text"]):
                assert left_tasks[task.id] == task
        due = await store.tasks.take(NOON + timedelta(2))
        assert not any(world.hers(str(task.args)) for task in due)
        assert await store.tasks.take(NOON + timedelta(2)) == []


@settings(max_examples=size(20, full=40))
@given(st.data())
def test_what_only_she_said_is_in_no_file_and_what_others_said_and_planned_is_there(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(forgotten(data.draw, Path(folder)))
