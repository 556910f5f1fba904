"""Commands are carried out once, for all platforms alike, by those who may."""

import asyncio
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from engine.engines import ALICE, BOB, DIRECT, GROUP, engine_with, said, talked, until
from people import NOON
from store.builders import skip
from stored_rows import on, read
from tertulia.engine.behavior import TOO_MANY, Behavior
from tertulia.engine.command_list import HELP
from tertulia.engine.engine import Engine
from tertulia.engine.languages.lines import ENGLISH
from tertulia.engine.languages.ukrainian import UKRAINIAN
from tertulia.engine.limits import Limits
from tertulia.errors import MediaUnavailable
from tertulia.memory.facts import default_scope, subject_of
from tertulia.memory.values import Fact
from tertulia.messages import Author, Place, Reply
from tertulia.models import Response, Scripted
from tertulia.parts import Media, Text
from tertulia.platform import Capabilities, Commanded, Delivery, PlaceRole, Received, Stopped
from tertulia.store import Store
from tertulia.tasks.reminders import MOST
from tertulia.tasks.task import Task, public_id
from tertulia.testing import Clock, HeldModel, RecordedPlatform
from tertulia.turns import Prompt


def command(line: str, number: int = 90, **changes: Any) -> Commanded:
    name, _, argument = line.removeprefix("/").partition(" ")
    return Commanded(message=said(line, number, **changes), name=name, argument=argument)


async def told(engine: Engine, platform: RecordedPlatform, line: str, *, key: str = "c1", **changes: Any) -> list[str]:
    """What the platform is sent after a command."""
    before = len(platform.texts)
    await engine.inbox("recorded").apply([command(line, **changes)], key=key)
    await engine.settled()
    return platform.texts[before:]


def fact(number: int, text: str, place: Place = DIRECT, author: Author = ALICE) -> Fact:
    return Fact(
        id=f"fact{number:04}",
        subject=subject_of(author, place),
        text=text,
        place=place,
        sources=("1",),
        learned_at=NOON,
        scope=default_scope(place),
    )


async def knowing(store: Store, *facts: Fact) -> None:
    for place in {one.place.key: one.place for one in facts}.values():
        await store.inbox.receive(said("so it is", 1, place=place), at=NOON)
        await skip(store, place, "1")
    await store.facts.learn(facts)


async def test_help_lists_the_commands_and_an_unknown_one_is_named_in_a_direct_chat_alone(store: Store) -> None:
    platform = RecordedPlatform()
    async with engine_with(Scripted(), platform, store=store) as engine:
        assert await told(engine, platform, "/help") == ["\n".join(HELP.values())]
        assert await told(engine, platform, "/dance", key="c2") == ["There is no /dance; /help lists what there is."]
        assert await told(engine, platform, "/dance", key="c3", place=GROUP) == []


async def test_a_command_is_no_part_of_the_conversation_and_neither_is_its_answer(store: Store) -> None:
    model, platform = Scripted("Hi."), RecordedPlatform()
    async with engine_with(model, platform, store=store) as engine:
        await told(engine, platform, "/help")
        await talked(engine, said("hello", 1))

    assert [message.id for message in await store.log.read(DIRECT, 0, 9)] == ["1", "s-1"]
    assert "/help" not in str(model.prompts)


async def test_the_same_update_again_is_one_command(store: Store) -> None:
    platform = RecordedPlatform()
    async with engine_with(Scripted(), platform, store=store) as engine:
        assert len(await told(engine, platform, "/help")) == 1
        assert await told(engine, platform, "/help") == []


@pytest.mark.parametrize(
    ("author", "line"),
    [
        (ALICE, ENGLISH.greeting.format(name="Gryag")),
        (replace(ALICE, language="uk"), UKRAINIAN.greeting.format(name="Gryag")),
    ],
)
async def test_start_says_who_the_bot_is_and_where_help_is(author: Author, line: str) -> None:
    platform = RecordedPlatform()
    async with engine_with(Scripted(), platform) as engine:
        (told_line,) = await told(engine, platform, "/start deep-link", author=author)

    assert told_line == line
    assert "/help" in line
    assert "\n" not in line


SINCE = " (since 2025-01-15 12:00)"


async def test_memory_shows_what_is_known_where_it_may_be_told(store: Store) -> None:
    await knowing(store, fact(1, "Likes tea."), fact(2, "Is from Lviv.", GROUP), fact(3, "Likes cake.", GROUP, BOB))
    platform = RecordedPlatform()
    async with engine_with(Scripted(), platform, store=store) as engine:
        direct = await told(engine, platform, "/memory")
        group = await told(engine, platform, "/memory", key="c2", place=GROUP)
        other = await told(engine, platform, "/memory", key="c3", author=Author(id="3", name="Carl"))
        why = await told(engine, platform, "/memory why fact0001", key="c4")

    assert direct == [f"fact0002  Is from Lviv.{SINCE}\nfact0001  Likes tea.{SINCE}"]
    assert group == [f"fact0002  Is from Lviv.{SINCE}"]
    assert other == [ENGLISH.nothing_remembered]
    assert why == [f"Likes tea.{SINCE}\nAlice: so it is"]


async def test_why_says_where_a_fact_without_a_message_is_from(store: Store) -> None:
    await knowing(store, fact(1, "Likes tea."))
    known = replace(fact(2, "Plays the violin."), sources=(), imported_from="gryag")
    await store.imports.add_memory([known], at=NOON)
    platform = RecordedPlatform()
    async with engine_with(Scripted(), platform, store=store) as engine:
        why = await told(engine, platform, "/memory why fact0002")

    assert why == [f"Plays the violin.{SINCE}\nIt was imported from gryag, which names no message of it."]


async def test_what_memory_told_is_not_in_the_store_once_it_is_told(store: Store) -> None:
    await knowing(store, fact(1, "Likes tea."))
    platform = RecordedPlatform()
    async with engine_with(Scripted(), platform, store=store) as engine:
        await told(engine, platform, "/memory")

    [row] = await on(store, read, "outbox", "text", "reply")
    assert "tea" not in "".join(row)


FORGOTTEN_BY = [
    ("/forget tea", [ENGLISH.forgotten], ["Likes cake."]),
    ("/forget fact0001", [ENGLISH.forgotten], ["Likes cake."]),
    ("/forget likes", [f"Which of these? /forget ID\nfact0002  Likes cake.{SINCE}\nfact0001  Likes tea.{SINCE}"], None),
    ("/forget coffee", [ENGLISH.nothing_like_that], None),
    ("/forget", [HELP["forget"]], None),
    ("/forget all", ["Nothing is remembered of you any more."], []),
]


@pytest.mark.parametrize(("line", "answer", "left"), FORGOTTEN_BY)
async def test_forget_removes_what_is_meant(store: Store, line: str, answer: list[str], left: list[str] | None) -> None:
    await knowing(store, fact(1, "Likes tea."), fact(2, "Likes cake."))
    platform = RecordedPlatform()
    async with engine_with(Scripted(), platform, store=store) as engine:
        assert await told(engine, platform, line) == answer

    assert [one.text for one in await store.facts.listed()] == (["Likes tea.", "Likes cake."] if left is None else left)


async def test_nobody_forgets_what_is_known_of_somebody_else(store: Store) -> None:
    await knowing(store, fact(1, "Likes tea."))
    platform = RecordedPlatform()
    async with engine_with(Scripted(), platform, store=store) as engine:
        answer = await told(engine, platform, "/forget fact0001", author=BOB, place=GROUP)

    assert (answer, len(await store.facts.listed())) == ([ENGLISH.nothing_like_that], 1)


@pytest.mark.parametrize(
    ("place", "administrators", "cleared"),
    [(DIRECT, set(), True), (GROUP, set(), False), (GROUP, {ALICE.id}, True)],
)
async def test_clear_is_for_those_who_may(store: Store, place: Place, administrators: set[str], cleared: bool) -> None:
    platform = RecordedPlatform()
    platform.administrators = administrators
    async with engine_with(Scripted("Yes?"), platform, store=store) as engine:
        await talked(engine, said("Gryag!", 1, place=place))
        (answer,) = await told(engine, platform, "/clear", place=place)

    assert await store.place_settings.beginning(place) == (2 if cleared else 0)
    assert answer == (ENGLISH.begun_anew if cleared else "Only an administrator can let this conversation begin anew.")


async def test_a_role_that_a_platform_cannot_tell_is_no_right(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    class Silent(RecordedPlatform):
        async def role(self, place: Place, author: Author) -> Any:
            raise OSError("no connection")

    platform = Silent()
    async with engine_with(Scripted("Yes?"), platform, store=store) as engine:
        await talked(engine, said("Gryag!", 1, place=GROUP))
        (answer,) = await told(engine, platform, "/clear", place=GROUP)

    assert answer == "Only an administrator can let this conversation begin anew."
    assert "role failed for author" in caplog.text


async def test_tasks_lists_what_is_planned_in_the_place(store: Store) -> None:
    later = NOON.replace(year=2099)
    plan = [Task(id="t1", kind="send", place=DIRECT, due_at=later, args={"text": "call mum"})]
    await store.tasks.add([*plan, Task(id="t2", kind="send", place=GROUP, due_at=later, args={"text": "not here"})])
    platform = RecordedPlatform()
    async with engine_with(Scripted(), platform, store=store) as engine:
        answers = [
            *await told(engine, platform, "/tasks"),
            *await told(engine, platform, "/tasks", key="c2", place=Place(platform="recorded", id="8", kind="direct")),
        ]

    listed = f"{public_id(plan[0])[:8]}  {later:%Y-%m-%d %H:%M} send: call mum"
    assert answers == [listed, "Nothing is planned here."]


class TakesTheTask(RecordedPlatform):
    """A platform on which a task begins while it is asked for the role of an author."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._store = store

    async def role(self, place: Place, author: Author) -> PlaceRole:
        await self._store.tasks.take(NOON.replace(year=2099))
        return "administrator"


async def test_a_task_that_runs_is_not_offered_and_not_cancelled(store: Store) -> None:
    task = Task(id="t1", kind="send", place=GROUP, due_at=NOON.replace(year=2099), args={"text": "call mum"})
    await store.tasks.add([task])
    platform, line = TakesTheTask(store), f"/tasks cancel {public_id(task)[:8]}"
    async with engine_with(Scripted(), platform, store=store) as engine:
        begun = await told(engine, platform, line, place=GROUP)  # after it was listed
        again = await told(engine, platform, line, place=GROUP, key="c2")
        listed = await told(engine, platform, "/tasks", place=GROUP, key="c3")

    none = ENGLISH.tasks_with_id.format(count=0)
    assert (begun, again, listed) == ([none], [none], [ENGLISH.nothing_planned])


async def test_a_reminder_is_planned_and_comes_to_whoever_asked(store: Store) -> None:
    platform, clock = RecordedPlatform(), Clock(NOON)
    async with engine_with(Scripted(), platform, store=store, clock=clock, zone="Europe/Kyiv") as engine:
        answers = [
            *await told(engine, platform, "/remind in 10 minutes: call mum", number=5, place=GROUP),
            *await told(engine, platform, "/remind завтра о 9:00 чай", key="c2", author=replace(BOB, language="uk")),
            *await told(engine, platform, "/tasks", key="c3", place=GROUP),
        ]
        await clock.advance(600)
        await engine.settled()
        await clock.advance(24 * 3600)
        await engine.settled()

    assert answers == [
        "I will remind you: 2025-01-15 14:10 (Europe/Kyiv).",
        "Нагадаю: 2025-01-16 09:00 (Europe/Kyiv).",
        f"{answers[2][:8]}  2025-01-15 14:10 send: Reminder: call mum",
    ]
    assert list(platform.shown.values())[3:] == [
        Reply(place=GROUP, text="Reminder: call mum", reply_to="5"),
        Reply(place=DIRECT, text="Нагадую: чай"),
    ]


async def test_a_reminder_comes_again_over_restarts_and_summer_time_and_once_for_those_that_were_missed(
    tmp_path: Path,
) -> None:
    platform, start = RecordedPlatform(), datetime(2026, 3, 26, 12, tzinfo=UTC)
    up = [(0, 30), (40, 50), (144, 200)]  # hours; the clocks of Kyiv go forward 63 hours after the start
    for number, (begin, end) in enumerate(up):
        clock = Clock(start + timedelta(hours=begin))
        async with (
            Store.open(tmp_path / "bot.db") as store,
            engine_with(Scripted(), platform, store=store, clock=clock, zone="Europe/Kyiv") as engine,
        ):
            if number == 0:
                await told(engine, platform, "/remind щодня о 3:30 чай", place=GROUP, number=5)
            for _ in range(end - begin):
                await clock.advance(3600)
                await engine.settled()
            (task,) = await store.tasks.listed()
            sent = [one for one in await store.outbox.listed("sent") if one.kind == "task"]

    assert {one.reply for one in sent} == {Reply(place=GROUP, text="Reminder: чай", reply_to="5")}
    assert [one.id.split("-")[-2] for one in sent] == [
        "20260327T013000",
        "20260328T013000",  # made up for at the start
        "20260329T010000",  # at the end of the gap; so are those of the next days, at once
        "20260402T003000",
        "20260403T003000",
    ]
    assert (task.status, f"{task.due_at:%m-%d %H:%M}") == ("pending", "04-04 00:30")


async def test_a_reminder_that_comes_again_is_listed_and_cancelled_by_who_asked_or_an_administrator(
    store: Store,
) -> None:
    platform, clock = RecordedPlatform(), Clock(NOON)
    group: dict[str, Any] = {"place": GROUP}
    async with engine_with(Scripted(), platform, store=store, clock=clock, zone="Europe/Kyiv") as engine:
        (answer,) = await told(engine, platform, "/remind every weekday at 8 until 2025-01-31 stand up", **group)
        (listed,) = await told(engine, platform, "/tasks", key="c2", **group)
        name = listed.partition(" ")[0]
        others = [
            *await told(engine, platform, f"/tasks cancel {name}", key="c3", author=BOB, **group),
            *await told(engine, platform, "/tasks cancel zzzzz", key="c4", **group),
            *await told(engine, platform, "/tasks drop", key="c5", **group),
        ]
        assert await told(engine, platform, f"/tasks cancel {name.upper()}", key="c6", **group) == [
            f"Cancelled: {listed.removeprefix(name).strip()}"
        ]
        await clock.advance(7 * 24 * 3600)
        await engine.settled()

    assert answer.splitlines() == [
        "I will remind you: 2025-01-16 08:00 (Europe/Kyiv).",
        "And then: every weekday at 8 until 2025-01-31. /tasks cancel ID stops it.",
    ]
    assert listed == f"{name}  2025-01-16 08:00 send: Reminder: stand up (every weekday at 8 until 2025-01-31)"
    assert others == [ENGLISH.only_own_tasks, ENGLISH.tasks_with_id.format(count=0), HELP["tasks"]]
    assert "Reminder: stand up" not in platform.texts


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("/remind every day at 9 until 2025-01-01 tea", ENGLISH.remind_when.format(moment="2025-01-15 12:00 (UTC)")),
        ("/remind every hour tea", ENGLISH.remind_how),
        ("/remind weekend plans with Ann", ENGLISH.remind_how),
        ("/remind", ENGLISH.remind_how),
        ("/remind tomorrow", ENGLISH.remind_how),
        ("/remind me of tea", ENGLISH.remind_how),
        ("/remind tomorrow at 9pm call mum", ENGLISH.remind_how),
        ("/remind in 5 minutes " + "x" * 4001, ENGLISH.remind_how),
        ("/remind today 9:00 tea", ENGLISH.remind_when.format(moment="2025-01-15 12:00 (UTC)")),
        ("/remind in 9999 weeks tea", ENGLISH.remind_when.format(moment="2025-01-15 12:00 (UTC)")),
    ],
)
async def test_a_reminder_that_cannot_be_is_not_planned(store: Store, line: str, answer: str) -> None:
    platform = RecordedPlatform()
    async with engine_with(Scripted(), platform, store=store, clock=Clock(NOON)) as engine:
        assert await told(engine, platform, line) == [answer]

    assert await store.tasks.listed() == []


async def test_a_place_has_so_many_reminders_at_most(store: Store) -> None:
    platform = RecordedPlatform()
    later = NOON.replace(year=2099)
    await store.tasks.add(
        [Task(id=f"reminder-{number}", kind="send", place=DIRECT, due_at=later) for number in range(MOST)]
    )
    async with engine_with(Scripted(), platform, store=store) as engine:
        assert await told(engine, platform, "/remind in 5 minutes tea") == [ENGLISH.remind_full.format(count=MOST)]

    assert len(await store.tasks.listed()) == MOST


async def test_a_reminder_is_forgotten_with_whoever_asked_for_it(store: Store) -> None:
    platform = RecordedPlatform()
    async with engine_with(Scripted(), platform, store=store) as engine:
        await told(engine, platform, "/remind in 5 hours my secret tea", place=GROUP)
        await told(engine, platform, "/remind in 5 hours cake", place=GROUP, author=BOB, key="c2")

    await store.forget(platform=GROUP.author_namespace, author_id=ALICE.id)

    assert [(task.status, task.args.get("text")) for task in await store.tasks.listed()] == [
        ("cancelled", None),
        ("pending", "Reminder: cake"),
    ]


@pytest.mark.parametrize(
    ("author", "administrators", "stopped"), [(ALICE, set(), True), (BOB, set(), False), (BOB, {BOB.id}, True)]
)
async def test_stop_is_for_whoever_asked_and_for_administrators(
    store: Store, author: Author, administrators: set[str], stopped: bool
) -> None:
    model, platform = HeldModel(), RecordedPlatform()
    platform.administrators = administrators
    async with engine_with(model, platform, store=store) as engine:
        inbox = engine.inbox("recorded")
        await inbox.apply([Received(message=said("Gryag, tell me", 1, place=GROUP))], key="u1")
        await model.asked.wait()
        await inbox.apply([command("/stop", place=GROUP, author=author)], key="u2")
        await platform.sent.wait()
        if stopped:
            await engine.settled()
        runs = await store.runs.open()

    assert (platform.texts, len(runs)) == (
        (["Stopped."], 0) if stopped else (["Only whoever asked, or an administrator, can stop this answer."], 1)
    )


async def no_runs(store: Store) -> bool:
    return not await store.runs.open()


@pytest.mark.parametrize(
    ("author", "administrators", "stopped"),
    [(None, set(), True), (ALICE, set(), True), (BOB, set(), False), (BOB, {BOB.id}, True)],
)
async def test_a_button_stops_for_whom_the_command_does(
    store: Store, author: Author | None, administrators: set[str], stopped: bool
) -> None:
    model, platform = HeldModel("Yes."), RecordedPlatform()
    platform.administrators = administrators
    async with engine_with(model, platform, store=store) as engine:
        inbox = engine.inbox("recorded")
        await inbox.apply([Received(message=said("Gryag, tell me", 1, place=GROUP))], key="u1")
        await model.asked.wait()
        await inbox.apply([Stopped(place=GROUP, author=author)], key="u2")
        if stopped:
            await until(partial(no_runs, store))
        model.release()
        await engine.settled()

    assert platform.texts == ([] if stopped else ["Yes."])


@pytest.mark.parametrize(
    ("author", "administrators", "stopped"), [(ALICE, set(), True), (BOB, set(), False), (BOB, {BOB.id}, True)]
)
async def test_an_answer_that_waits_for_a_file_is_stopped(
    store: Store, author: Author, administrators: set[str], stopped: bool
) -> None:
    model, platform = Scripted("A cat."), SlowFiles()
    platform.administrators = administrators
    photo = Media(media_kind="photo", unique_id="cat", file_id="c")
    async with engine_with(model, platform, store=store) as engine:
        inbox = engine.inbox("recorded")
        asked = said("", 1, place=GROUP, parts=(photo, Text(text="Gryag, what is it?")))
        await inbox.apply([Received(message=asked)], key="u1")
        await platform.asked.wait()
        await inbox.apply([command("/stop", place=GROUP, author=author)], key="u2")
        await platform.sent.wait()
        platform.comes.set()
        await engine.settled()

    refusal = "Only whoever asked, or an administrator, can stop this answer."
    assert platform.texts == (["Stopped."] if stopped else [refusal, "A cat."])


LONG = "one two\n\nthree four\n\nfive six"


class SlowParts(RecordedPlatform):
    """A platform of short messages, whose second one is sent when it may be."""

    capabilities = Capabilities(length=10)

    def __init__(self) -> None:
        super().__init__()
        self.second, self.go_on = asyncio.Event(), asyncio.Event()

    async def send(self, delivery: Delivery) -> str:
        if delivery.reply.text == "three four":
            self.second.set()
            await self.go_on.wait()
        return await super().send(delivery)


@pytest.mark.parametrize(
    ("author", "administrators", "stopped"),
    [(None, set(), True), (ALICE, set(), True), (BOB, set(), False), (BOB, {BOB.id}, True)],
)
async def test_a_button_drops_the_parts_of_an_answer_that_wait(
    store: Store, author: Author | None, administrators: set[str], stopped: bool
) -> None:
    platform = SlowParts()
    platform.administrators = administrators
    async with engine_with(Scripted(LONG), platform, store=store) as engine:
        await engine.inbox("recorded").apply([Received(message=said("Gryag, tell me", 1, place=GROUP))], key="u1")
        await platform.second.wait()
        await engine.inbox("recorded").apply([Stopped(place=GROUP, author=author)], key="u2")
        if stopped:
            await until(partial(are_dropped, store))
        platform.go_on.set()
        await engine.settled()

    assert platform.texts == LONG.split("\n\n")[: 2 if stopped else 3]


async def test_the_command_drops_them_too(store: Store) -> None:
    platform = SlowParts()
    async with engine_with(Scripted(LONG), platform, store=store) as engine:
        await engine.inbox("recorded").apply([Received(message=said("Gryag, tell me", 1, place=GROUP))], key="u1")
        await platform.second.wait()
        await engine.inbox("recorded").apply([command("/stop", place=GROUP, author=ALICE)], key="u2")
        await until(partial(are_dropped, store))
        platform.go_on.set()
        await engine.settled()
        log = [message.text for message in await store.log.read(GROUP, 0, 9)]

    assert platform.texts == ["one two", "three four", "Stopped."]
    assert log == ["Gryag, tell me", "one two\n\nthree four"]


CAROL = Author(id="3", name="Carol")


class HeldLater(Scripted):
    """A model that answers its first request at once, and later ones when it may."""

    def __init__(self, *script: Any) -> None:
        super().__init__(*script)
        self.asked, self.go_on = asyncio.Event(), asyncio.Event()

    async def respond(self, prompt: Prompt) -> Response:
        if self.prompts:
            self.asked.set()
            await self.go_on.wait()
        return await super().respond(prompt)


@pytest.mark.parametrize("writing", [False, True])
@pytest.mark.parametrize(
    ("author", "administrators", "stopped"),
    [(ALICE, set(), {"ALICE"}), (BOB, set(), {"BOB"}), (CAROL, set(), set()), (CAROL, {CAROL.id}, {"ALICE", "BOB"})],
)
async def test_of_several_answers_each_is_stopped_by_whoever_may(
    store: Store, author: Author, administrators: set[str], stopped: set[str], writing: bool
) -> None:
    """The answer to Alice is being sent; that to Bob is still being made, or waits behind it."""
    model, platform = HeldLater(LONG, "seven"), SlowParts()
    platform.administrators = administrators
    async with engine_with(model, platform, store=store) as engine:
        inbox = engine.inbox("recorded")
        await inbox.apply([Received(message=said("Gryag, tell me", 1, place=GROUP))], key="u1")
        await platform.second.wait()
        await inbox.apply([Received(message=said("Gryag, me too", 2, place=GROUP, author=BOB))], key="u2")
        await model.asked.wait()
        if not writing:
            model.go_on.set()
            await until(partial(no_runs, store))
        await inbox.apply([command("/stop", place=GROUP, author=author)], key="u3")
        await until(partial(no_commands, store))
        model.go_on.set()
        platform.go_on.set()
        await engine.settled()

    answers = {text for text in platform.texts if text in ("one two", "three four", "five six", "seven")}
    lost = ({"five six"} if "ALICE" in stopped else set()) | ({"seven"} if "BOB" in stopped else set())
    assert answers == {"one two", "three four", "five six", "seven"} - lost
    told_line = "".join(text for text in platform.texts if text not in answers).replace(" ", "")
    assert told_line == (ENGLISH.stopped if stopped else ENGLISH.only_asker).replace(" ", "")


async def no_commands(store: Store) -> bool:
    return not await store.updates.commands()


async def are_dropped(store: Store) -> bool:
    return bool(await store.outbox.listed("dropped"))


class SlowFiles(RecordedPlatform):
    """A platform whose files come when they may."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.comes = asyncio.Event(), asyncio.Event()

    async def fetch(self, media: Media, *, limit: int) -> bytes:
        self.asked.set()
        await self.comes.wait()
        raise MediaUnavailable("it is gone")


async def test_there_may_be_nothing_to_stop(store: Store) -> None:
    platform = RecordedPlatform()
    async with engine_with(Scripted(), platform, store=store) as engine:
        assert await told(engine, platform, "/stop") == ["Nothing is being written."]


async def test_a_command_that_was_stored_before_a_crash_is_carried_out_at_the_next_start(store: Store) -> None:
    platform = RecordedPlatform()
    async with engine_with(Scripted(), platform, store=store) as engine:
        await store.updates.apply(
            "recorded", [command("/help")], key="c1", raw=None, at=NOON, keep=Behavior().keep_updates
        )

    async with engine_with(Scripted(), platform, store=store) as engine:
        await engine.settled()

    assert platform.texts == ["\n".join(HELP.values())]


async def test_somebody_who_is_blocked_gets_no_answer_to_a_command_and_may_still_forget(store: Store) -> None:
    platform = RecordedPlatform()
    await knowing(store, fact(1, "Likes tea."))
    await store.place_settings.block(platform=DIRECT.platform, author_id=ALICE.id, at=NOON)
    async with engine_with(Scripted(), platform, store=store) as engine:
        for number, line in enumerate(["/help", "/memory", "/dance", "/forget all"]):
            assert await told(engine, platform, line, key=f"c{number}") == (
                ["Nothing is remembered of you any more."] if line == "/forget all" else []
            )

    assert await store.facts.listed(subject_of(ALICE, DIRECT)) == []


async def test_commands_count_towards_the_limit_of_their_author(store: Store) -> None:
    platform, model = RecordedPlatform(), Scripted()
    limits = Limits(messages=2, seconds=3600)
    async with engine_with(model, platform, store=store, limits=limits) as engine:
        lines = [await told(engine, platform, "/help", key=f"c{number}") for number in range(4)]
        others = await told(engine, platform, "/help", key="bob", author=BOB)
        await knowing(store, fact(1, "Likes tea."))
        await told(engine, platform, "/forget all", key="forget")

    help_line = "\n".join(HELP.values())
    assert (lines, others) == ([[help_line], [help_line], [TOO_MANY], []], [help_line])
    assert await store.facts.listed(subject_of(ALICE, DIRECT)) == []


async def test_no_command_repeats_what_somebody_calls_themselves_or_their_group(store: Store) -> None:
    platform = RecordedPlatform()
    loud = {
        "author": Author(id="9", name="@everyone", username="@everyone"),
        "place": replace(GROUP, title="@everyone"),
    }
    async with engine_with(Scripted(), platform, store=store) as engine:
        for number, line in enumerate(["/clear", "/stop", "/forget @everyone", "/memory why @everyone", "/tasks"]):
            await told(engine, platform, line, key=f"c{number}", **loud)

    assert "@everyone" not in "".join(platform.texts)
