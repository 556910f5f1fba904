import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from engine.engines import DIRECT, GROUP, ME, engine_with, said, shared_by, store_with, talked, texts_of
from media.fetchers import a_fetcher
from people import NOON, a_photo
from store.builders import a_run, begin
from tertulia.context.values import Context
from tertulia.engine.behavior import FAILED, NOTHING_TO_SAY, TOO_MANY, Behavior
from tertulia.engine.context_media import ContextMedia
from tertulia.engine.limits import Limits
from tertulia.engine.outbox_sender import OutboxSender
from tertulia.engine.reply_parts import LongReplies
from tertulia.engine.run_completion import RunCompletion, RunOutput
from tertulia.engine.store_protocols import OutboxItem
from tertulia.engine.task_worker import TaskWorker
from tertulia.errors import Overloaded, StoreFull, TertuliaError
from tertulia.messages import Reply
from tertulia.models.base import Response
from tertulia.models.scripted import Scripted
from tertulia.platform import Delivery
from tertulia.profiles import PROFILES
from tertulia.run.journal import Run
from tertulia.run.loop import RunAnswered
from tertulia.run.outcome import ParsedTexts
from tertulia.store import Store
from tertulia.tasks.task import Task
from tertulia.testing import RecordedPlatform
from tertulia.turns import Prompt, model

US = replace(ME, persona="Gryag")


@asynccontextmanager
async def completing(
    store: Any, platform: RecordedPlatform | None = None, **behavior: Any
) -> AsyncIterator[RunCompletion]:
    """What completes runs, on a platform that has been sent their replies by the end."""
    shared = shared_by(store, platform, behavior=Behavior(**behavior))
    sender = OutboxSender(shared)
    long_replies = LongReplies(shared.platforms, ContextMedia(a_fetcher(store)), shared.translator)
    try:
        yield RunCompletion(shared, long_replies, sender, TaskWorker(shared, {}, long_replies, sender))
    finally:
        await sender.done()


def the_run(**changes: Any) -> Run:
    return a_run(**{"place": DIRECT, "target": "1", "taken": ("1",), "horizon": 0} | changes)


def a_line(text: str, **changes: Any) -> OutboxItem:
    fields: dict[str, Any] = {"reply": Reply(place=DIRECT, text=text), "made_at": NOON, "run": "r1", "author": US}
    return OutboxItem(id="r1-0", **fields | changes)


def sent(line: OutboxItem) -> OutboxItem:
    """The line once it is the first message that a platform was sent."""
    return replace(line, status="sent", attempts=1, message_id="s-0", sent_at=NOON)


async def kept_run(store: Store, run_id: str = "r1") -> Run:
    journal = await store.runs.journal(run_id)
    assert journal is not None
    return journal.run


WORDS: list[tuple[str, list[str], list[str]]] = [
    ("Hello.", ["Hello."], []),
    ("# «think»\nhm", [], []),
    ("# «remember»\nlikes tea", [], ["remember"]),
    ("# «wait»\ndelay: 5\n# «send»\nLater.", [], ["send"]),
    ("# «wait»\ndelay: 5", [NOTHING_TO_SAY], []),
    ("# «sned»\nx", [NOTHING_TO_SAY], []),
    ("<think>hm</think>", [NOTHING_TO_SAY], []),
]


@pytest.mark.parametrize(("text", "replies", "tasks"), WORDS)
async def test_words_that_come_to_nothing_are_an_honest_line_unless_the_model_chose_to_be_silent(
    store: Store, text: str, replies: list[str], tasks: list[str]
) -> None:
    answered = RunAnswered(run=the_run(), response=Response(turn=model(text)), turns=(model(text),))

    async with completing(store) as made:
        found = await made.make_output(answered, said("hi"), ParsedTexts())

    assert [one.reply.text for one in found.replies] == replies
    assert [task.kind for task in found.tasks] == tasks
    expected = {True: ("notice", None), False: ("answer", US)}
    assert all((one.kind, one.author) == expected[one.reply.text == NOTHING_TO_SAY] for one in found.replies)


@pytest.mark.parametrize(
    ("language", "line"),
    [
        ("en", "(3 more not shown: at most 10 files go with one answer.)"),
        ("uk", "(Не показано ще 3: з однією відповіддю надсилаю щонайбільше 10 файлів.)"),
    ],
)
async def test_media_that_are_too_many_for_an_answer_are_counted(store: Store, language: str, line: str) -> None:
    turn = model("Look.", *(a_photo(unique_id=str(number), data=b"\xff\xd8%d" % number) for number in range(13)))
    answered = RunAnswered(run=the_run(), response=Response(turn=turn), turns=(turn,))

    async with completing(store, language=language) as made:
        found = await made.make_output(answered, said("hi"), ParsedTexts())

    assert [(one.kind, one.reply.text, len(one.reply.media)) for one in found.replies] == [
        ("answer", "Look.", 10),
        ("notice", line, 0),
    ]


async def test_an_end_is_kept_with_its_replies_and_tasks_before_they_are_carried_out(store: Store) -> None:
    run = the_run()
    await store.inbox.receive(said("hi"), at=NOON)
    await begin(store, run)
    words = RunOutput(
        replies=(a_line("Hello."),),
        tasks=(Task(id="t", kind="send", place=DIRECT, due_at=NOON, run="r1", args={"text": "Later."}),),
    )
    seen: list[Any] = []

    class Looking(RecordedPlatform):
        async def send(self, delivery: Delivery) -> str:
            seen.extend([await kept_run(store), *await store.tasks.listed()])
            return await super().send(delivery)

    async with completing(store, Looking()) as made:
        await made.complete(run, words, said("hi"))

    assert seen == [replace(run, status="done", ended_at=NOON), *words.tasks]
    assert await store.outbox.listed() == [sent(words.replies[0])]


class Counted:
    """Tasks that count how often it is asked which is due next."""

    def __init__(self, store: Store) -> None:
        self.reads = 0
        self._tasks = store.tasks

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tasks, name)

    async def next_due(self, **named: Any) -> datetime | None:
        self.reads += 1
        return await self._tasks.next_due(**named)


async def test_without_tasks_nobody_is_woken(store: Store) -> None:
    model, tasks = Scripted("Hello.", "# «wait»\ndelay: 0\n# «send»\nLater."), Counted(store)
    platform, reads = RecordedPlatform(), list[int]()

    async with engine_with(model, platform, store=store_with(store, tasks=tasks)) as engine:
        await engine.settled()
        for number in range(2):
            reads.append(tasks.reads)
            await talked(engine, said("hi", number))

    assert reads[0] == reads[1] < tasks.reads
    assert platform.texts == ["Hello.", "Later."]


class Troubled:
    """Runs whose end cannot be kept, or not at once."""

    def __init__(self, store: Store, trouble: Callable[[], Any]) -> None:
        self._runs = store.runs
        self._trouble = trouble

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runs, name)

    async def end(self, run: Run, **changes: Any) -> None:
        await self._trouble()
        await self._runs.end(run, **changes)


async def test_what_could_not_be_kept_is_not_carried_out(store: Store) -> None:
    async def full() -> None:
        raise StoreFull("there is no room left")

    async with completing(store_with(store, runs=Troubled(store, full)), platform := RecordedPlatform()) as made:
        with pytest.raises(StoreFull):
            await made.complete_with_notice(the_run(), said("hi"), lambda _: "Sorry.", why="?")

    assert (platform.texts, await store.outbox.listed()) == ([], [])


async def test_an_end_that_is_being_kept_is_kept_and_carried_out_also_if_it_is_cancelled(store: Store) -> None:
    begun, let = asyncio.Event(), asyncio.Event()

    async def slow() -> None:
        begun.set()
        await let.wait()

    await store.inbox.receive(said("hi"), at=NOON)
    async with completing(store_with(store, runs=Troubled(store, slow)), platform := RecordedPlatform()) as made:
        ending = asyncio.create_task(made.complete(the_run(), RunOutput(replies=(a_line("Hello."),)), said("hi")))
        await begun.wait()
        ending.cancel()
        await asyncio.sleep(0)
        assert not ending.done()
        let.set()
        await asyncio.wait([ending])

    assert ending.cancelled()
    assert platform.texts == ["Hello."]
    assert (await kept_run(store)).status == "done"


async def test_and_if_it_cannot_be_kept_then_it_is_said(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    begun, let = asyncio.Event(), asyncio.Event()

    async def full() -> None:
        begun.set()
        await let.wait()
        raise StoreFull("there is no room left")

    async with completing(store_with(store, runs=Troubled(store, full))) as made:
        ending = asyncio.create_task(made.complete_with_notice(the_run(), said("hi"), lambda _: "Sorry.", why="?"))
        await begun.wait()
        ending.cancel()
        let.set()
        await asyncio.wait([ending])

    assert ending.cancelled()
    assert caplog.messages == ["run r1 is not ended: there is no room left"]


@pytest.mark.parametrize(("place", "beside"), [(DIRECT, None), (GROUP, "1")])
async def test_an_excuse_is_a_reply_to_the_message_and_what_went_wrong_is_kept_with_the_run(
    store: Store, place: Any, beside: str | None
) -> None:
    target = said("hi", place=place)
    await store.inbox.receive(target, at=NOON)

    async with completing(store) as made:
        await made.complete_with_error(the_run(place=place), target, TertuliaError("x" * 5_000))

    line = a_line(FAILED, kind="error", author=None, reply=Reply(place=place, text=FAILED, reply_to=beside))
    assert await store.outbox.listed() == [sent(line)]
    run = await kept_run(store)
    assert (run.status, run.why, run.ended_at) == ("failed", "x" * 1_000, NOON)


def raising(_: TertuliaError) -> str:
    raise ZeroDivisionError


@pytest.mark.parametrize(
    ("error_text", "words"),
    [
        (lambda _: "Ouch.", "Ouch."),
        (raising, FAILED),
        (lambda _: None, FAILED),
        (lambda _: 5, FAILED),
        (lambda _: " \n", FAILED),
        (lambda: "no argument", FAILED),
    ],
)
async def test_an_excuse_that_fails_is_excused_too(store: Store, error_text: Any, words: str) -> None:
    await store.inbox.receive(said("hi"), at=NOON)

    async with completing(store, error_text=error_text) as made:
        await made.complete_with_error(the_run(), said("hi"), Overloaded("?"))

    assert await store.outbox.listed() == [sent(a_line(words, kind="error", author=None))]
    assert (await kept_run(store)).status == "failed"


async def test_an_engine_whose_excuses_fail_goes_on() -> None:
    platform = RecordedPlatform()
    trouble = Scripted(TertuliaError("oops"), "Fine.")

    async with engine_with(trouble, platform, behavior=Behavior(debounce=0.0, error_text=raising)) as engine:
        await talked(engine, said("hi"), said("and now?", 2))

    assert platform.texts == [FAILED, "Fine."]


async def test_a_run_ends_with_nothing(store: Store) -> None:
    await store.inbox.receive(said("hi"), at=NOON)

    async with completing(store) as made:
        await made.complete_silently(the_run(), why="somebody stopped it")

    run = await kept_run(store)
    assert (run.status, run.why) == ("failed", "somebody stopped it")
    assert [await store.outbox.listed(), await store.tasks.listed(), await store.inbox.waiting(DIRECT)] == [[], [], []]


async def test_a_run_that_was_begun_keeps_what_it_took_and_saw(store: Store) -> None:
    for number in range(3):
        await store.inbox.receive(said("hi", number), at=NOON)
    begun = the_run(taken=("0", "1"), target="1", horizon=2)
    await begin(store, begun)

    async with completing(store) as made:
        await made.complete_silently(replace(begun, taken=("1",), horizon=99), why="?")

    run = await kept_run(store)
    assert (run.taken, run.horizon) == (("0", "1"), 2)


async def test_a_run_that_never_began_has_shown_nothing(store: Store) -> None:
    """What was shown before stays as it was shown, and is told of when it changes; what was not is shown as it is."""
    for number in range(3):
        await store.inbox.receive(said("hi", number), at=NOON)
    await begin(store, the_run(id="r0", target="0", taken=("0",), horizon=1))
    async with completing(store) as made:
        await made.complete(the_run(id="r0", target="0", taken=("0",), horizon=1), RunOutput(), said("hi", 0))
        await made.complete_with_error(the_run(target="2", taken=("1", "2")), said("hi", 2), TertuliaError("?"))
    for number in (0, 1):
        await store.inbox.edit(said("changed", number), at=NOON + timedelta(minutes=1))

    assert (await kept_run(store)).horizon == 0
    assert [change.number for change in await store.log.changes(DIRECT, 0)] == [0]
    assert await store.inbox.waiting(DIRECT) == []


def unless_second(context: Context) -> Prompt:
    """A profile that fails on one message."""
    if context.target.id == "2":
        raise TertuliaError("it cannot be laid out")
    return PROFILES["layered"].build(context)


@pytest.mark.parametrize(
    ("limit", "line"),
    [(Limits(messages=1, seconds=600), TOO_MANY), (Limits(), FAILED)],
    ids=["the limit", "before the model was asked"],
)
async def test_an_edit_after_a_run_that_never_began_leaves_the_beginning_of_the_prompt_as_it_was(
    store: Store, limit: Limits, line: str
) -> None:
    asked = Scripted("One.", "Three.")
    named: dict[str, Any] = {"store": store, "profile": unless_second, "now": lambda: NOON}  # prompts tell the second
    platform = RecordedPlatform()
    async with engine_with(asked, platform, limits=limit, **named) as engine:
        await talked(engine, said("my first words", 1), said("two", 2))
    async with engine_with(asked, **named) as engine:
        await engine.edit(said("my changed words", 1))
        await talked(engine, said("three", 3))

    first, second = (texts_of(prompt.turns) for prompt in asked.prompts)
    assert second[: len(first)] == first
    assert any("my changed words" in text for text in second[len(first) :])
    assert platform.texts == ["One.", line]


class Cats(RecordedPlatform):
    """A platform that has one sticker, and counts who asks for it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    async def sticker_fault(self, set_name: str, name: str) -> str | None:
        self.asked.append(f"{set_name}/{name}")
        if set_name == "broken":
            raise ZeroDivisionError
        return None if (set_name, name) == ("cats", "😺") else f"there is no set of stickers {set_name!r}"


async def test_a_model_that_names_a_sticker_which_does_not_exist_is_told_and_asked_again() -> None:
    platform, model = Cats(), Scripted("Catch!\n# «sticker»\nHotCherry\n👍", "# «sticker»\ncats\n😺")

    async with engine_with(model, platform) as engine:
        await talked(engine, said("hi"))

    assert "`# «sticker»`: there is no set of stickers 'HotCherry'" in texts_of(model.prompts[1].turns)[-1]
    assert [(reply.text, [one.unique_id for one in reply.media]) for reply in platform.shown.values()] == [
        ("Catch!", []),
        ("", ["cats/😺"]),
    ]
    assert platform.asked == ["HotCherry/👍", "cats/😺"]


async def test_a_sticker_that_cannot_be_looked_up_is_sent(caplog: pytest.LogCaptureFixture) -> None:
    platform = Cats()

    async with engine_with(Scripted("# «sticker»\nbroken\n👍"), platform) as engine:
        await talked(engine, said("hi"))

    assert [media.unique_id for reply in platform.shown.values() for media in reply.media] == ["broken/👍"]
    assert "recorded.sticker_fault failed" in caplog.text
