"""A view that is reduced event by event is what the store says, whatever has happened and wherever it went on."""

from contextlib import suppress
from datetime import timedelta
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tertulia.decisions import Decision
from tertulia.engine.view import View, ViewChange, named, reduce, whole
from tertulia.engine.view_reader import ViewReader, change_since
from tertulia.errors import CallerMustAct
from tertulia.formats.imported import ImportedMessage
from tertulia.memory.values import Fact, Subject
from tertulia.messages import Place
from tertulia.parts import ToolCall, ToolResult
from tertulia.platform import Deleted, Edited, PlaceMigrated
from tertulia.run.journal import FallbackStep
from tertulia.store import Store
from tertulia.testing.store_world import (
    ALICE,
    BOB,
    GROUP,
    LATER,
    ME,
    NOON,
    PROMPT,
    a_message,
    a_record,
    a_reply,
    a_run,
    a_task,
    a_tool_run,
    apply,
)
from tertulia.turns import model

MOST = 4  # messages of a view
ELSEWHERE = Place(platform="telegram", id="-100777", kind="group", title="Others")
BEFORE = NOON - timedelta(days=1)
STEPS = st.lists(st.tuples(st.integers(0, 99), st.integers(0, 7)), max_size=40)


class History:
    """Things that happen in a store, some of which it refuses."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._count = 0
        self.kinds = [
            *(self.receive, self.receive, self.receive, self.edit, self.delete, self.skip, self.begin, self.begin),
            *(self.ask, self.use_tool, self.end, self.end, self.send, self.send, self.decide, self.clear),
            *(self.learn, self.forget_fact, self.forget_person, self.import_messages, self.migrate, self.plan),
        ]

    async def happen(self, what: int, which: int) -> None:
        """Do one of the things to the message, run or reply with one of the numbers."""
        with suppress(CallerMustAct):  # it cannot happen now
            await self.kinds[what % len(self.kinds)](which)

    async def receive(self, which: int) -> None:
        self._count += 1
        author = (ALICE, BOB)[which % 2]
        place = GROUP if which < 6 else ELSEWHERE
        await self.store.inbox.receive(a_message("hi", id=str(self._count), author=author, place=place), at=NOON)

    def _message_id(self, which: int) -> str:
        return str(max(1, self._count - which))

    async def edit(self, which: int) -> None:
        self._count += 1
        author = (ALICE, BOB)[which % 2]
        edited = a_message(f"edit {self._count}", id=self._message_id(which), author=author, edited_at=LATER)
        await apply(self.store, Edited(message=edited), key=f"e{self._count}")

    async def delete(self, which: int) -> None:
        await apply(self.store, Deleted(place=GROUP, message_id=self._message_id(which)), key=f"d{self._count}")

    async def skip(self, which: int) -> None:
        decision = Decision(reason="not addressed")
        await self.store.inbox.skip(GROUP, {self._message_id(which): decision}, at=NOON)

    async def begin(self, which: int) -> None:
        waiting = [one.message.id for one in await self.store.inbox.waiting(GROUP)]
        if waiting:
            self._count += 1
            taken = tuple(waiting[: which + 1])
            run = a_run(id=f"r{self._count}", target=taken[-1], taken=taken)
            await self.store.runs.begin(run, PROMPT, at=NOON)

    async def ask(self, which: int) -> None:
        for run in await self.store.runs.open():
            tried = FallbackStep(step=which, fallback="shorter", why="too long") if which % 2 else None
            await self.store.runs.ask(run, which, PROMPT, at=NOON, tried=tried)
            await self.store.runs.resume(replace(run, resumed=which))

    async def use_tool(self, which: int) -> None:
        for run in await self.store.runs.open():
            tool = a_tool_run(number=which, call=ToolCall(name="look", signature="opaque"))
            await self.store.runs.begin_tool(run, tool)
            if which % 3:
                result = ToolResult(name="look", value=which)
                await self.store.runs.end_tool(run, replace(tool, result=result, ended_at=LATER))
            await self.store.runs.add_record(run, 0, a_record())

    async def end(self, which: int) -> None:
        for run in await self.store.runs.open():
            parts = [
                a_reply(f"part {part}", id=f"o-{run.id}-{part}", run=run.id, author=ME, part=part, reply_id=run.id)
                for part in range(which % 3)
            ]
            whole = a_reply("whole", id=f"o-{run.id}", run=run.id, author=ME, turns=(model("# «send»\nwhole"),))
            notice = a_reply("failed", id=f"o-{run.id}", run=run.id, kind="error")
            failed = which > 5
            status, replies = ("failed", [notice]) if failed else ("done", parts or [whole])
            ended = replace(run, status=status, ended_at=LATER, why="no" if failed else "", seconds=1.0)
            await self.store.runs.end(ended, replies=replies)

    async def send(self, which: int) -> None:
        for item in (await self.store.outbox.listed("waiting", "sending", "doubtful"))[:1]:
            status: Any = ("sent", "sent", "sent", "doubtful", "dropped", "sending", "waiting", "sent")[which]
            name = f"b-{item.id}" if status == "sent" else None
            sent = replace(item, status=status, attempts=item.attempts + 1, why="maybe", sent_at=LATER, message_id=name)
            await self.store.outbox.change(sent)

    async def decide(self, which: int) -> None:
        for item in (await self.store.outbox.listed("waiting", "doubtful", "dropped"))[which:][:1]:
            await self.store.outbox.decide(item.id, "waiting" if which % 2 else "dropped", why="so it is")

    async def clear(self, which: int) -> None:
        await self.store.place_settings.clear(GROUP, await self.store.log.count(GROUP), at=LATER)

    async def learn(self, which: int) -> None:
        self._count += 1
        author, source = (ALICE, BOB)[which % 2], self._message_id(which)
        fact = Fact(
            id=f"f{self._count}",
            subject=subject(author.id),
            text=f"Lives in town {self._count}.",
            place=GROUP,
            sources=(source,),
            learned_at=NOON,
            key="home",
        )
        await self.store.facts.learn([fact])

    async def forget_fact(self, which: int) -> None:
        await self.store.facts.forget([one.id for one in await self.store.facts.listed()][which:][:1], at=LATER)

    async def forget_person(self, which: int) -> None:
        if which == 0:
            await self.store.forget(platform=GROUP.platform, author_id=BOB.id, at=LATER)

    async def import_messages(self, which: int) -> None:
        old = [a_message("old", id=f"old-{self._count}-{number}", sent_at=BEFORE) for number in range(which)]
        await self.store.imports.add([ImportedMessage(message=message) for message in old])
        await self.store.imports.finish(GROUP, learn=False)

    async def migrate(self, which: int) -> None:
        if which == 0:
            await apply(self.store, PlaceMigrated(old=ELSEWHERE, new=GROUP), key=f"m{self._count}")

    async def plan(self, which: int) -> None:
        await self.store.tasks.add([a_task(id=f"t{which}")])


def subject(author_id: str) -> Subject:
    return Subject(platform=GROUP.platform, id=author_id)


class Follower:
    """Somebody who has a view, and goes on from it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._reader = ViewReader(store, GROUP, most=MOST)
        self.view = View(place=GROUP, most=MOST)
        self.changes: list[ViewChange] = []

    async def follow(self) -> None:
        """Reduce the events that have come since."""
        while events := await self._store.events.read(after=self.view.cursor, place=GROUP):
            for event in events:
                names = named(event)
                update = reduce(self.view, event, await self._reader.load(names) if names else None)
                self.view = update.view
                self.changes.append(update.change)

    async def begin(self) -> None:
        self.view = await self._reader.read()


class Returning:
    """Somebody who comes back with the number of the last event that they have seen, and gets what changed since."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._reader = ViewReader(store, GROUP, most=MOST)
        self._number = 0
        self.changes: list[ViewChange] = []

    async def come_back(self) -> None:
        view = await self._reader.read()
        self.changes.append(await change_since(self._reader, self._store.events, view, self._number))
        self._number = view.event


def as_it_stands(view: View) -> View:
    """Return a view without its cursor: that of a view which was read is of an event of any place."""
    return replace(view, cursor="")


@given(steps=STEPS, rests=st.sets(st.integers(0, 40)))
async def test_a_view_that_is_reduced_event_by_event_is_the_view_as_it_is_read(
    steps: list[tuple[int, int]], rests: set[int]
) -> None:
    async with Store.open(":memory:") as store:
        history, always, sometimes, late = History(store), Follower(store), Follower(store), Follower(store)
        returning = Returning(store)
        for number, (what, which) in enumerate(steps):
            await history.happen(what, which)
            stands = as_it_stands(await ViewReader(store, GROUP, most=MOST).read())
            await always.follow()
            assert as_it_stands(always.view) == stands
            if number in rests:  # it was away, and goes on from its cursor
                await sometimes.follow()
                assert as_it_stands(sometimes.view) == stands
                await late.begin()
                await returning.come_back()
        await late.follow()
        await returning.come_back()
        await sometimes.follow()

        assert as_it_stands(sometimes.view) == as_it_stands(late.view) == as_it_stands(always.view)
        assert _shown_by(always.changes) == _shown_by([whole(always.view)]) == _shown_by(returning.changes)
        assert (
            max(map(len, (always.view.messages, always.view.runs, always.view.deliveries, always.view.facts))) <= MOST
        )


def _shown_by(changes: list[ViewChange]) -> Any:
    """Return what somebody shows who gets changes as JSON, and puts each item in the place of the one with its key."""
    shown: dict[str, dict[Any, Any]] = {"messages": {}, "runs": {}, "deliveries": {}}
    facts: list[Any] = []
    counts: tuple[int, int, int] = (0, 0, 0)
    for change in changes:
        got = msgspec.json.decode(msgspec.json.encode(change))
        if got.get("anew"):
            shown = {"messages": {}, "runs": {}, "deliveries": {}}
        for one in got.get("messages", ()):
            shown["messages"][one["number"]] = one
        for one in got.get("runs", ()):
            shown["runs"][one["order"]] = one
        for one in got.get("deliveries", ()):
            shown["deliveries"][one["order"]] = one
        facts = got.get("facts", facts)
        counts = got["event"], got["count"], got["beginning"]
    newest = {kind: [items[key] for key in sorted(items)[-MOST:]] for kind, items in shown.items()}
    return newest, facts, counts
