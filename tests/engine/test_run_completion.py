import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from engine.engines import DIRECT, GROUP, ME, engine_with, said, talked, texts_of
from media.fetchers import a_fetcher
from people import NOON, a_photo
from store.builders import a_run, begin
from tertulia.context.values import Context, Persona
from tertulia.engine.behavior import FAILED, NOTHING_TO_SAY, TOO_MANY, Behavior
from tertulia.engine.context_media import ContextMedia
from tertulia.engine.identity import Identity
from tertulia.engine.languages.translator import Translator
from tertulia.engine.limits import Limits
from tertulia.engine.long_replies import LongReplies
from tertulia.engine.places import DelimiterCache
from tertulia.engine.run_completion import RunCompletion, RunOutput
from tertulia.engine.store_protocols import OutboxItem
from tertulia.errors import Overloaded, StoreFull, TertuliaError
from tertulia.messages import Reply
from tertulia.models.base import Response
from tertulia.models.scripted import Scripted
from tertulia.profiles import PROFILES
from tertulia.run.journal import Run
from tertulia.run.loop import RunAnswered
from tertulia.run.outcome import ParsedTexts
from tertulia.store import Store
from tertulia.tasks.task import Task
from tertulia.testing import RecordedPlatform
from tertulia.turns import Prompt, model

US = replace(ME, persona="Gryag")


class Ended:
    """What was given on once it was kept."""

    def __init__(self) -> None:
        self.sent: list[OutboxItem] = []
        self.planned = 0

    def plan(self) -> None:
        self.planned += 1


def completion(store: Store, ended: Ended | None = None, *, runs: Any = None, **behavior: Any) -> RunCompletion:
    given = ended or Ended()
    platforms, media = {"recorded": RecordedPlatform()}, ContextMedia(a_fetcher(store))
    translator = Translator(Behavior(**behavior), store.place_settings, store.runs, store.log)
    return RunCompletion(
        runs or store.runs,
        store.proposals,
        DelimiterCache(store.place_settings.delimiter),
        Identity(Persona(), platforms),
        Behavior(**behavior),
        translator,
        media,
        platforms=platforms,
        long_replies=LongReplies(platforms, media, translator),
        outbox=store.outbox,
        sent=given.sent.extend,
        planned=given.plan,
        now=lambda: NOON,
    )


def the_run(**changes: Any) -> Run:
    return a_run(**{"place": DIRECT, "target": "1", "taken": ("1",), "horizon": 0} | changes)


def a_line(text: str, **changes: Any) -> OutboxItem:
    fields: dict[str, Any] = {"reply": Reply(place=DIRECT, text=text), "made_at": NOON, "run": "r1", "author": US}
    return OutboxItem(id="r1-0", **fields | changes)


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

    found = await completion(store).make_output(answered, said("hi"), ParsedTexts())

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

    found = await completion(store, language=language).make_output(answered, said("hi"), ParsedTexts())

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
    ended = Ended()

    await completion(store, ended).complete(run, words, said("hi"))

    assert await kept_run(store) == replace(run, status="done", ended_at=NOON)
    assert await store.outbox.listed() == ended.sent == list(words.replies)
    assert (await store.tasks.listed(), ended.planned) == (list(words.tasks), 1)


async def test_without_tasks_nobody_is_woken(store: Store) -> None:
    ended = Ended()
    await store.inbox.receive(said("hi"), at=NOON)

    await completion(store, ended).complete(the_run(), RunOutput(replies=(a_line("Hello."),)), said("hi"))

    assert (len(ended.sent), ended.planned) == (1, 0)


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

    ended = Ended()
    with pytest.raises(StoreFull):
        await completion(store, ended, runs=Troubled(store, full)).complete_with_notice(
            the_run(), said("hi"), lambda _: "Sorry.", why="?"
        )

    assert (ended.sent, await store.outbox.listed()) == ([], [])


async def test_an_end_that_is_being_kept_is_kept_and_carried_out_also_if_it_is_cancelled(store: Store) -> None:
    begun, let = asyncio.Event(), asyncio.Event()

    async def slow() -> None:
        begun.set()
        await let.wait()

    ended = Ended()
    await store.inbox.receive(said("hi"), at=NOON)
    made = completion(store, ended, runs=Troubled(store, slow))
    ending = asyncio.create_task(made.complete(the_run(), RunOutput(replies=(a_line("Hello."),)), said("hi")))
    await begun.wait()
    ending.cancel()
    await asyncio.sleep(0)
    assert not ending.done()
    let.set()
    await asyncio.wait([ending])

    assert ending.cancelled()
    assert [one.reply.text for one in ended.sent] == ["Hello."]
    assert (await kept_run(store)).status == "done"


async def test_and_if_it_cannot_be_kept_then_it_is_said(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    begun, let = asyncio.Event(), asyncio.Event()

    async def full() -> None:
        begun.set()
        await let.wait()
        raise StoreFull("there is no room left")

    ending = asyncio.create_task(
        completion(store, runs=Troubled(store, full)).complete_with_notice(
            the_run(), said("hi"), lambda _: "Sorry.", why="?"
        )
    )
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
    ended = Ended()
    target = said("hi", place=place)
    await store.inbox.receive(target, at=NOON)

    await completion(store, ended).complete_with_error(the_run(place=place), target, TertuliaError("x" * 5_000))

    assert ended.sent == [
        a_line(FAILED, kind="error", author=None, reply=Reply(place=place, text=FAILED, reply_to=beside))
    ]
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
    ended = Ended()
    await store.inbox.receive(said("hi"), at=NOON)

    await completion(store, ended, error_text=error_text).complete_with_error(the_run(), said("hi"), Overloaded("?"))

    assert ended.sent == [a_line(words, kind="error", author=None)]
    assert (await kept_run(store)).status == "failed"


async def test_an_engine_whose_excuses_fail_goes_on() -> None:
    platform = RecordedPlatform()
    trouble = Scripted(TertuliaError("oops"), "Fine.")

    async with engine_with(trouble, platform, behavior=Behavior(debounce=0.0, error_text=raising)) as engine:
        await talked(engine, said("hi"), said("and now?", 2))

    assert platform.texts == [FAILED, "Fine."]


async def test_a_run_ends_with_nothing(store: Store) -> None:
    ended = Ended()
    await store.inbox.receive(said("hi"), at=NOON)

    await completion(store, ended).complete_silently(the_run(), why="somebody stopped it")

    run = await kept_run(store)
    assert (run.status, run.why, ended.sent, ended.planned) == ("failed", "somebody stopped it", [], 0)
    assert await store.inbox.waiting(DIRECT) == []


async def test_a_run_that_was_begun_keeps_what_it_took_and_saw(store: Store) -> None:
    for number in range(3):
        await store.inbox.receive(said("hi", number), at=NOON)
    begun = the_run(taken=("0", "1"), target="1", horizon=2)
    await begin(store, begun)

    await completion(store).complete_silently(replace(begun, taken=("1",), horizon=99), why="?")

    run = await kept_run(store)
    assert (run.taken, run.horizon) == (("0", "1"), 2)


async def test_a_run_that_never_began_has_shown_nothing(store: Store) -> None:
    """What was shown before stays as it was shown, and is told of when it changes; what was not is shown as it is."""
    for number in range(3):
        await store.inbox.receive(said("hi", number), at=NOON)
    await begin(store, the_run(id="r0", target="0", taken=("0",), horizon=1))
    await completion(store).complete(the_run(id="r0", target="0", taken=("0",), horizon=1), RunOutput(), said("hi", 0))

    await completion(store).complete_with_error(
        the_run(target="2", taken=("1", "2")), said("hi", 2), TertuliaError("?")
    )
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
