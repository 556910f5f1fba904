"""What the chat learns and recalls is shown, can be looked at and forgotten, and can all be switched off."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from people import a_context
from platforms.terminal.pseudo import ENTER, terminal
from platforms.terminal.test_main import FLASH, FORKED, beside, environment, piped, piped_here, texts
from store.builders import skip
from tertulia import Message, Store, Text
from tertulia.config import Config, MemoryConfig
from tertulia.context.values import RecalledEpisode, RelevantMessage
from tertulia.engine.command_list import HELP
from tertulia.engine.languages.lines import ENGLISH
from tertulia.engine.view import View, ViewUpdate
from tertulia.engine.view_reader import ViewReader, view_updates
from tertulia.events import Event
from tertulia.memory.facts import subject_of
from tertulia.memory.values import Episode, Fact
from tertulia.messages import Place
from tertulia.model_choice import ModelChoice
from tertulia.models import Scripted
from tertulia.models.base import Model, Response
from tertulia.platforms.terminal.output import JsonDisplay, Output, ScreenDisplay
from tertulia.platforms.terminal.platform import UpdateDisplay
from tertulia.platforms.terminal.session import MEMORY_OFF, TerminalSession
from tertulia.platforms.terminal.setup import PLACE, SessionOptions, person
from tertulia.sim import GeminiSim
from tertulia.sim.gemini import Echo
from tertulia.turns import Prompt

LEARN = object()  # is typed once something was learned
LVIV = "(learned: Lives in Lviv.)"
ALL_FORGOTTEN = "Nothing is remembered of you any more."
NOW = datetime(2026, 1, 1, tzinfo=UTC)


async def since(store: Store, reader: ViewReader, view: View) -> AsyncIterator[ViewUpdate]:
    """The updates of what has happened since a view."""

    async def events(after: str) -> AsyncIterator[Event]:
        for event in await store.events.read(after=after, place=PLACE):
            yield event

    async for update in view_updates(reader, events, after=view):
        yield update


class Seen(StringIO):
    """What is written, and waited for."""

    def __init__(self) -> None:
        super().__init__()
        self._more = asyncio.Event()

    def write(self, text: str) -> int:
        self._more.set()
        return super().write(text)

    async def see(self, text: str, times: int) -> None:
        async with asyncio.timeout(10):
            while self.getvalue().count(text) < times:
                self._more.clear()
                await self._more.wait()


class Patient:
    """A reader to whom lines are typed; at LEARN the person waits until once more something was learned."""

    def __init__(self, out: Seen, *lines: Any) -> None:
        self._out = out
        self._lines = list(lines)
        self._learned = 0

    async def read(self, whom: str = "") -> str:
        while self._lines and self._lines[0] is LEARN:
            self._lines.pop(0)
            self._learned += 1
            await self._out.see("(learned", self._learned)
        if not self._lines:
            raise EOFError
        return str(self._lines.pop(0))

    async def show_above_input(self, show: Callable[[], None]) -> None:
        show()

    def watched(self, _: Callable[[str], bool]) -> AbstractContextManager[None]:
        return nullcontext()

    def hold_back(self) -> None:
        pass


class Reading(Scripted):
    """A model that answers by script, and is asked what is worth remembering beside it."""

    def __init__(self, *script: Any, found: str, name: str = "scripted") -> None:
        super().__init__(*script, name=name)
        self._found = found
        self.read: list[Prompt] = []

    async def respond(self, prompt: Prompt) -> Response:
        if prompt.settings.answer is None:
            return await super().respond(prompt)
        self.read.append(prompt)
        return await Scripted(self._found).respond(prompt)


async def talked(model: Model, *lines: Any, store: Store, name: str = "smollm2", **options: Any) -> list[str]:
    """What is seen of a conversation; the name says whether the model itself reads for facts."""
    out = Seen()
    conversation = TerminalSession(
        ModelChoice(model=model, name=name),
        store=store,
        reader=Patient(out, *lines),
        display=options.pop("display", None) or ScreenDisplay(out, out, coloured=False),
        options=SessionOptions(**{"last_messages": 0, **options}),
    )
    await conversation.run()
    seen = out.getvalue().splitlines()
    begun = next((at for at, line in enumerate(seen) if line.startswith("/help")), -1)
    return seen[begun + 1 :]


def claims(*texts: str) -> str:
    facts = [{"sources": [1], "about": person().id, "key": "home", "text": one, "confidence": 1.0} for one in texts]
    return json.dumps({"facts": facts})


async def known(store: Store) -> list[str]:
    return [fact.text for fact in await store.facts.listed() if fact.superseded_by is None]


async def a_fact(store: Store, fact_id: str, text: str, *, place: Place = PLACE, key: str = "") -> None:
    """A fact that the person told in a message of the same id."""
    said = Message(id=fact_id, place=place, author=person(), sent_at=NOW, parts=(Text(text=f"So: {text}"),))
    await store.inbox.receive(said, at=NOW)
    await skip(store, place, fact_id)
    fact = Fact(
        id=fact_id,
        subject=subject_of(person(), place),
        text=text,
        place=place,
        sources=(fact_id,),
        learned_at=NOW,
        scope="direct",
        key=key,
    )
    await store.facts.learn([fact])


async def test_what_is_learned_at_the_prompt_and_recalled_is_shown_once() -> None:
    model = Scripted("Nice.", "In Lviv.", "Still there.")
    lines = ["I live in Lviv.", LEARN, "Where do I live?", "And now?"]
    async with Store.open(":memory:") as store:
        seen = await talked(model, *lines, store=store)

    remembered = "(remembered: Lives in Lviv.)"
    assert seen == ["Nice.", LVIV, remembered, "In Lviv.", "Still there."]
    assert "- Home: Lives in Lviv." in str(model.prompts[1].layers[2])
    assert [layer.name for layer in model.prompts[0].layers] == ["static", "buffered", "trigger"]


async def test_recalled_facts_are_shown_only_where_they_fit_the_message() -> None:
    model = Scripted("391.", "In Lviv.")
    async with Store.open(":memory:") as store:
        await a_fact(store, "3f9a1c2e77", "Lives in Lviv.")
        seen = await talked(model, "What is 17*23?", "Where do I live?", store=store)

    assert seen[-3:] == ["391.", "(remembered: Lives in Lviv.)", "In Lviv."]
    assert "remembered" not in "".join(seen[:-2])
    assert "Lives in Lviv." in str(model.prompts[0])


async def test_what_is_said_again_is_not_shown_as_learned_again(tmp_path: Path) -> None:
    async with Store.open(":memory:") as store:
        seen = await talked(Scripted("Nice.", "I know."), "I live in Lviv.", LEARN, "I live in Lviv.", store=store)
        again = await talked(Scripted("Sure."), "I live in Lviv.", store=store, interactive=False)

    assert [line for line in [*seen, *again] if line.startswith("(learned")] == [LVIV]


async def test_a_service_reads_itself_and_another_one_does_after_it_was_chosen() -> None:
    first = Reading("Nice.", found=claims("Lives in Lviv."))
    second = Reading("Oh.", found=claims("Lives in Kyiv."), name="other")
    lines = ["I live in Lviv.", LEARN, "/model openai:other", "Now I live in Kyiv.", LEARN, "/model smollm2", "bye"]
    chosen = {"openai:other": second, "smollm2": Scripted("Bye.")}

    async with Store.open(":memory:") as store:
        seen = await talked(
            first,
            *lines,
            store=store,
            name="openai:it",
            choose=lambda name, _: ModelChoice(model=chosen[name or ""], name=name or ""),
            interactive=True,
        )
        assert await known(store) == ["Lives in Kyiv."]

    assert [line for line in seen if "learned" in line] == [LVIV, "(learned: Lives in Kyiv.)"]
    assert [len(model.read) for model in (first, second)] == [1, 1]


async def test_in_a_pipe_what_was_said_last_is_learned_before_it_ends() -> None:
    out = StringIO()
    async with Store.open(":memory:") as store:
        await talked(Scripted("Nice."), "I live in Lviv.", store=store, interactive=False, display=JsonDisplay(out))
        ((fact),) = await store.facts.listed()

    events = [json.loads(line) for line in out.getvalue().splitlines()]
    assert events[-1] == {
        "kind": "learned",
        "facts": [{"id": fact.id, "text": "Lives in Lviv.", "sources": list(fact.sources)}],
    }


async def test_in_a_pipe_what_a_line_says_is_learned_before_the_next_one_is_answered() -> None:
    model = Reading("Nice.", "In Lviv.", found=claims("Lives in Lviv."))
    async with Store.open(":memory:") as store:
        seen = await talked(
            model, "I live in Lviv.", "Where do I live?", store=store, name="openai:it", interactive=False
        )

    assert seen[-4:] == ["Nice.", LVIV, "(remembered: Lives in Lviv.)", "In Lviv."]


async def test_in_a_pipe_learning_that_takes_too_long_is_left_to_the_next_start() -> None:
    class Slow(Scripted):
        async def respond(self, prompt: Prompt) -> Response:
            if prompt.settings.answer is not None:
                await asyncio.Event().wait()
            return await super().respond(prompt)

    async with Store.open(":memory:") as store:
        options: dict[str, Any] = {"store": store, "name": "openai:it", "interactive": False, "learn_timeout": 0.01}
        await talked(Slow("Nice."), "I live in Lviv.", **options)
        assert await known(store) == []

        await talked(Scripted(), store=store, interactive=False)
        assert await known(store) == ["Lives in Lviv."]


async def test_an_answer_that_streams_in_is_not_broken_by_what_is_learned_meanwhile() -> None:
    out = StringIO()
    screen = ScreenDisplay(out, out, coloured=False)

    async def show_above(show: Callable[[], None]) -> None:
        show()

    def learned() -> Callable[[], None]:
        return lambda: screen.note(LVIV)

    shown = Output(show_above)
    with shown.streaming():
        screen.piece(Text(text="Half an "))
        shown.notify_later(learned)
        screen.piece(Text(text="answer.\n"))
    shown.show_pending()

    assert out.getvalue() == f"Half an answer.\n{LVIV}\n"


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("what", ["forgotten", "superseded", "kept"])
async def test_learned_is_said_only_of_what_is_in_the_store_by_then(what: str, streaming: bool) -> None:
    out = StringIO()
    screen = ScreenDisplay(out, out, coloured=False)

    async def show_above(show: Callable[[], None]) -> None:
        show()

    async with Store.open(":memory:") as store:
        for number in "12":
            said = Message(id=number, place=PLACE, author=person(), parts=(Text(text="I live in Lviv."),), sent_at=NOW)
            await store.inbox.receive(said, at=NOW)
        shown = Output(show_above)
        reader = ViewReader(store, PLACE)
        updates = UpdateDisplay(shown, screen, await reader.read())
        subject = subject_of(person(), PLACE)
        lviv = Fact(
            id="f1", subject=subject, text="Lives in Lviv.", place=PLACE, sources=("1",), learned_at=NOW, key="home"
        )
        kyiv = replace(lviv, id="f2", text="Lives in Kyiv.", sources=("2",), learned_at=NOW + timedelta(days=1))
        with shown.streaming() if streaming else nullcontext():
            await store.facts.learn([lviv])
            if streaming:
                await updates.run(since(store, reader, updates.view))
            if what == "forgotten":
                await store.facts.forget(["f1"])
            elif what == "superseded":
                await store.facts.learn([kyiv])
            await updates.run(since(store, reader, updates.view))
        shown.show_pending()
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()})

    assert out.getvalue() == {"forgotten": "", "superseded": "(learned: Lives in Kyiv.)\n", "kept": f"{LVIV}\n"}[what]


async def test_what_was_learned_elsewhere_is_neither_read_nor_shown() -> None:
    elsewhere = Place(platform="terminal", id="other", kind="direct")
    async with Store.open(":memory:") as store:
        said = Message(id="1", place=elsewhere, author=person(), parts=(Text(text="I live in Lviv."),))
        await store.inbox.receive(said, at=NOW)
        await skip(store, elsewhere, "1")
        seen = await talked(Scripted("Hello."), "hi", store=store, interactive=False)
        assert await known(store) == []

    assert not any("learned" in line for line in seen)


async def test_memory_shows_what_is_remembered_and_why() -> None:
    async with Store.open(":memory:") as store:
        await a_fact(store, "3f9a1c2e77", "Lives in Lviv.")
        await a_fact(store, "b0b0b0b0b0", "Likes\ntea.")
        seen = await talked(
            Scripted(),
            "/memory",
            "/memory why 3f",
            "/memory why 00",
            "/memory who",
            store=store,
            interactive=True,
        )

    second, first, fact, why, nothing, how = seen[-6:]
    assert (first.split("  ")[0], second.split("  ")[0]) == ("3f9a1c2e", "b0b0b0b0")
    assert first.startswith("3f9a1c2e  Lives in Lviv. (since 20")
    assert second.startswith("b0b0b0b0  Likes tea. (since 20")
    assert fact.startswith("Lives in Lviv. (since ")
    assert why.endswith(f" {person().name}: So: Lives in Lviv.")
    assert nothing == "Facts with an id that begins so: 0."
    assert how == HELP["memory"]


@pytest.mark.parametrize(
    ("line", "seen", "left"),
    [
        ("/forget 3f9a1c2e", [ENGLISH.forgotten, "(forgotten: Lives in Lviv.)"], ["Likes tea.", "Likes green tea."]),
        ("/forget lviv", [ENGLISH.forgotten, "(forgotten: Lives in Lviv.)"], ["Likes tea.", "Likes green tea."]),
        ("/forget likes tea.", [ENGLISH.forgotten, "(forgotten: Likes tea.)"], ["Lives in Lviv.", "Likes green tea."]),
        ("/forget tea green", [ENGLISH.forgotten, "(forgotten: Likes green tea.)"], ["Lives in Lviv.", "Likes tea."]),
        (
            "/forget b0b0b0b0 c1c1c1c1",
            [ENGLISH.forgotten, "(forgotten: Likes tea.)", "(forgotten: Likes green tea.)"],
            ["Lives in Lviv."],
        ),
        (
            "/forget ALL",
            [ALL_FORGOTTEN, "(forgotten: Lives in Lviv.)", "(forgotten: Likes tea.)", "(forgotten: Likes green tea.)"],
            [],
        ),
        (
            "/forget coffee",
            [ENGLISH.nothing_like_that],
            ["Lives in Lviv.", "Likes tea.", "Likes green tea."],
        ),
        *(
            (
                f"/forget {words}",
                [ENGLISH.nothing_like_that],
                ["Lives in Lviv.", "Likes tea.", "Likes green tea."],
            )
            for words in ("in", "is the", "e", "liv")
        ),
        ("/forget green", [ENGLISH.forgotten, "(forgotten: Likes green tea.)"], ["Lives in Lviv.", "Likes tea."]),
        ("/forget my Lviv!", [ENGLISH.forgotten, "(forgotten: Lives in Lviv.)"], ["Likes tea.", "Likes green tea."]),
        ("/forget", [HELP["forget"]], ["Lives in Lviv.", "Likes tea.", "Likes green tea."]),
        (
            "/forget b0",
            [ENGLISH.nothing_like_that],
            ["Lives in Lviv.", "Likes tea.", "Likes green tea."],
        ),
    ],
)
async def test_forgetting(line: str, seen: list[str], left: list[str]) -> None:
    async with Store.open(":memory:") as store:
        await a_fact(store, "3f9a1c2e77", "Lives in Lviv.")
        await a_fact(store, "b0b0b0b0b0", "Likes tea.")
        await a_fact(store, "c1c1c1c1c1", "Likes green tea.")
        shown = await talked(Scripted(), line, store=store)
        assert await known(store) == left

    assert shown[1:] == seen


async def test_what_was_said_last_is_learned_before_it_is_forgotten() -> None:
    async with Store.open(":memory:") as store:
        shown = await talked(Scripted("Oh."), "I am allergic to cats.", "/forget cats", "/memory", store=store)
        assert await known(store) == []

    assert shown[-2:] == ["(forgotten: Is allergic to cats.)", ENGLISH.nothing_remembered]


@pytest.mark.parametrize("given", ["all", "kyiv", "b0b0b0b0"])
async def test_what_no_longer_held_and_goes_too_is_named(given: str) -> None:
    async with Store.open(":memory:") as store:
        await a_fact(store, "3f9a1c2e77", "Lives in Lviv.", key="home")
        await a_fact(store, "b0b0b0b0b0", "Lives in Kyiv.", key="home")
        shown = await talked(Scripted(), f"/forget {given}", store=store)
        assert await store.facts.listed() == []

    assert shown[2:] == ["(forgotten: Lives in Lviv.)", "(forgotten: Lives in Kyiv.)"]


async def test_where_several_could_be_meant_nothing_is_forgotten() -> None:
    async with Store.open(":memory:") as store:
        await a_fact(store, "b0b0b0b0b0", "Likes tea.")
        await a_fact(store, "c1c1c1c1c1", "Likes green tea.")
        shown = await talked(Scripted(), "/forget tea", "/memory", store=store)
        assert len(await known(store)) == 2

    assert shown[1] == "Which of these? /forget ID"
    assert shown[2:4] == shown[4:]


async def test_who_forgets_all_is_told_no_more_of_what_happened_here() -> None:
    async with Store.open(":memory:") as store:
        await a_fact(store, "3f9a1c2e77", "Lives in Lviv.")
        seen = await store.episodes.cursor(PLACE)
        assert seen is not None
        await store.episodes.add(Episode(id="e", place=PLACE, start=0, stop=1, summary="Lviv"), seen=seen)

        assert (await talked(Scripted(), "/forget all", store=store))[2:] == ["(forgotten: Lives in Lviv.)"]
        assert await store.episodes.listed(PLACE) == []


async def test_nothing_remembered_is_said() -> None:
    async with Store.open(":memory:") as store:
        assert await talked(Scripted(), "/memory", "/forget all", store=store) == [
            ENGLISH.nothing_remembered,
            ALL_FORGOTTEN,
        ]


async def test_switched_off_nothing_is_learned_recalled_or_read() -> None:
    off = Config(profile="plain", memory=MemoryConfig(enabled=False))
    model = Reading("Nice.\n\n# «remember»\nlikes tea", "Hm.", found=claims("Lives in Lviv."))
    async with Store.open(":memory:") as store:
        await a_fact(store, "b0b0b0b0b0", "Likes tea.")
        seen = await talked(model, "I live in Lviv.", "Where?", "/memory", store=store, name="openai:it", config=off)
        assert await known(store) == ["Likes tea."]
        assert await store.cursors.unread() == [PLACE]

    assert (model.read, seen[-1]) == ([], MEMORY_OFF)
    assert "remembered" not in "".join(seen[:-2])
    assert "Remembered" not in str(model.prompts)


def test_what_comes_to_mind_is_each_thing_once() -> None:
    told = a_context(
        memories=("Lives in Lviv.",), key_facts={"home": "Lives in Lviv."}, summary="A sailor.",
        relevant=(RelevantMessage(text="About tea", score=1), RelevantMessage(text="About tea", score=0.9)),
        episodes=(RecalledEpisode(topic="Storm", summary="They hid"), RecalledEpisode(topic="", summary=" ")),
    )  # fmt: skip

    assert told.recollections == ("Lives in Lviv.", "About tea", "Storm: They hid")
    assert a_context(summary="A sailor.").recollections == ("A sailor.",)
    assert a_context().recollections == ()


async def test_in_a_terminal_it_is_learned_beside_a_line_that_is_typed_and_recalled_after_a_restart(
    tmp_path: Path,
) -> None:
    db = ("--db", str(tmp_path / "tertulia.db"))
    env = {"TERTULIA_MEMORY": "on"}
    gemma = ("--model", "gemma-4-31b-it")  # by patterns
    async with GeminiSim(models=["gemma-4-31b-it"], behaviour=Echo()) as sim:
        async with terminal(*FORKED, *gemma, *db, environment=environment(sim, **env)) as tty:
            await tty.say("I live in Lviv.", "(learned: Lives in Lviv.)")
            tty.type("/qu")
            await tty.see("/qu")
            tty.type("it" + ENTER)
            assert await tty.left() == 0

        status, out, errors = await piped(*gemma, *db, given="Where do I live?\n", env=environment(sim, **env))

    assert (status, out) == (0, "Where do I live?\n")
    assert "(remembered: Lives in Lviv.)\n" in errors
    assert any("- Home: Lives in Lviv." in text for text in texts(sim.requests[-1]))


def test_the_tools_of_memory_are_there_unless_it_is_off(tmp_path: Path) -> None:
    names = {}
    with beside(GeminiSim(behaviour=Echo())) as sim:
        for word in ("on", "off"):
            piped_here(*FLASH, given="hi\n", env=environment(sim, TERTULIA_MEMORY=word))
            tools = sim.requests[0 if word == "on" else -1].body["tools"][0]["functionDeclarations"]
            names[word] = {tool["name"] for tool in tools}

    assert names["on"] - names["off"] == {"remember", "recall", "why", "forget"}
