"""The conversation goes on whatever happens to a message, and obeys its commands."""

import asyncio
import re
import shlex
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tertulia import Message, Part, Prompt, Record, Reply, Settings, Store, Text, Thought, ToolCall, model, user
from tertulia.cli import app
from tertulia.config import Config, MemoryConfig
from tertulia.engine.behavior import NOTHING_TO_SAY
from tertulia.engine.place_worker import STOPPED
from tertulia.engine.store_protocols import OutboxItem
from tertulia.errors import InvalidValue, KeyRefused, Overloaded, RequestRefused, StoreBroken, StoreFull
from tertulia.model_choice import ModelChoice
from tertulia.models import Gemini, Local, OpenAI, Response, Scripted
from tertulia.models.calls import Call
from tertulia.platforms.terminal.output import ScreenDisplay
from tertulia.platforms.terminal.session import TerminalSession
from tertulia.platforms.terminal.setup import ME, PLACE, SessionOptions, person
from tertulia.run.journal import Run
from tertulia.sim import GeminiSim, OpenAISim
from tertulia.sim.gemini import BlockedPrompt, ContentFilter, CutStream, Empty, MaxTokens
from tertulia.testing import HeldModel
from tertulia.tools.calculator import calculate

FORGETFUL = Config(profile="plain", memory=MemoryConfig(enabled=False))
CALL = ToolCall(id="a", name="calculate", args={"expression": "6*7"})


class Typed:
    """A reader to whom these lines are typed; an exception among them is raised."""

    def __init__(self, *lines: str | type[BaseException]) -> None:
        self._lines = list(lines)

    async def read(self, whom: str = "") -> str:
        line = self._lines.pop(0) if self._lines else EOFError
        if isinstance(line, str):
            return line
        raise line

    async def show_above_input(self, show: Callable[[], None]) -> None:
        show()

    def watched(self, _: Callable[[str], bool]) -> AbstractContextManager[None]:
        return nullcontext()

    def hold_back(self) -> None:
        pass


async def at_once(_: float) -> None:
    """A sleep that takes no time."""
    await asyncio.sleep(0)


def never(name: str | None, base_url: str | None) -> ModelChoice:
    raise InvalidValue(f"no model is called {name!r}")


class Talk:
    """A conversation that is typed, and what was seen of it."""

    def __init__(
        self,
        chosen: Any,
        *lines: str | type[BaseException],
        choose: Callable[[str | None, str | None], ModelChoice] = never,
        **options: Any,
    ) -> None:
        self.out = StringIO()
        self._chosen = chosen if isinstance(chosen, ModelChoice) else ModelChoice(model=chosen, name="openai:it")
        self._lines = lines
        self._options: dict[str, Any] = {
            "choose": choose,
            "sleep": at_once,
            "config": FORGETFUL,
            "last_messages": 0,
            **options,
        }

    async def run(self, db: Any = ":memory:") -> int:
        async with Store.open(db) as store:
            return await self.run_on(store)

    async def run_on(self, store: Any) -> int:
        screen = ScreenDisplay(self.out, self.out, coloured=False)
        conversation = TerminalSession(
            self._chosen,
            store=store,
            reader=Typed(*self._lines),
            display=screen,
            options=SessionOptions(**self._options),
        )
        return await conversation.run()

    @property
    def seen(self) -> list[str]:
        """The lines after the greeting."""
        return self.out.getvalue().splitlines()[2:]


async def test_an_answer_is_shown_with_its_thoughts_and_tools() -> None:
    talk = Talk(Scripted([Thought(text="I count."), CALL], "It is 42."), "6*7?", tools=[calculate])

    assert await talk.run() == 0

    thought, call, result, answer = talk.seen
    assert (thought, call, answer) == ("I count.", '[calculate(expression="6*7")]', "It is 42.")
    assert result.startswith("[calculate gave 42 in ")


async def test_an_error_is_one_line_and_the_next_message_is_answered() -> None:
    scripted = Scripted(RequestRefused("it is\nnot legal"), "Hello.", "And again.")
    talk = Talk(scripted, "hi", "hi again", "and again")

    assert await talk.run() == 0

    assert talk.seen == ["it is not legal", "Hello.", "And again."]
    assert scripted.prompts[-1].turns == (
        *(user("hi"), user("hi again"), model("Hello.", by="scripted"), user("and again")),
    )


async def test_a_model_that_is_busy_is_waited_for_and_the_person_is_told() -> None:
    talk = Talk(Scripted(Overloaded("too\nbusy"), "Hello."), "hi")

    assert await talk.run() == 0

    assert talk.seen == ["(too busy; asked again in 1 s)", "Hello."]


async def test_a_model_that_stays_busy_is_waited_for_no_longer() -> None:
    talk = Talk(Scripted(*[Overloaded("busy")] * 5), "hi")

    await talk.run()

    assert talk.seen == [
        *(f"(busy; asked again in {seconds} s)" for seconds in (1, 2, 4, 8)),
        "busy. Say it again in a little while.",
    ]


async def test_a_host_whose_name_nobody_knows_is_asked_for_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    talk = Talk(Gemini("gemini-3.8-flash", key="any", base_url="http://nobody"), "hi")

    await talk.run()

    why = "http://nobody cannot be found ([Errno -2] Name or service not known); is there a network, and is the address"
    assert talk.seen == [
        f"({why} right?; asked again in 1 s)",
        f"{why} right? Check the network, then say it again.",
    ]


async def test_no_network_is_one_line_that_says_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = "http://{}:{}".format(*server.getsockname())
    talk = Talk(Gemini("gemini-3.8-flash", key="any", base_url=address), "hi", interactive=False)

    assert await talk.run() == 1

    assert talk.seen[-1].startswith(f"no connection to {address}")
    assert talk.seen[-1].endswith("Check the network, then say it again.")


async def test_a_key_that_was_pasted_and_is_refused_can_be_pasted_again() -> None:
    chosen = ModelChoice(model=Scripted(KeyRefused("no")), name="gemini-3.8-flash")
    talk = Talk(chosen, "hi", stored_keys={"GEMINI_API_KEY"})

    await talk.run()

    assert talk.seen == ["no. tertulia chat --choose takes another key, or choose another model with /model."]


async def test_piped_a_message_that_failed_makes_the_status_one() -> None:
    talk = Talk(Scripted(RequestRefused("no"), "Hello."), "hi", "hi again", interactive=False)

    assert await talk.run() == 1


async def test_history_shows_what_was_said() -> None:
    talk = Talk(Scripted("Hello.", KeyRefused("no")), "/history", "hi", "lost", "/history")

    await talk.run()

    assert talk.seen[0] == "(nothing has been said yet)"
    assert talk.seen[-3:] == ["you: hi", "scripted: Hello.", "you: lost (no answer)"]


async def test_history_shows_the_last_fifty_messages() -> None:
    talk = Talk(Scripted(*map(str, range(30))), *map(str, range(30)), "/history")

    await talk.run()

    shown = talk.seen[30:]
    assert (shown[0], shown[1], shown[-1], len(shown)) == ("(… 10 before)", "you: 5", "scripted: 29", 51)


async def test_clear_forgets() -> None:
    scripted = Scripted("Hello.", "Hello again.")
    talk = Talk(scripted, "hi", "/clear", "hi")

    await talk.run()

    assert scripted.prompts[1].turns == (user("hi"),)
    assert talk.seen[1:-1] == ["Begun anew: I no longer see what was said here before."]  # nothing is in a file


async def test_what_clear_hints_at_runs_as_it_is_printed(tmp_path: Path) -> None:
    path = tmp_path / "my own.db"
    talk = Talk(Scripted("Hello."), "hi", "/clear")

    await talk.run(path)

    _, hint = talk.seen[2].split(" run: ")
    words = shlex.split(hint.removesuffix(")"))
    ran = await asyncio.to_thread(CliRunner().invoke, app, [*words[words.index("db") :], "--yes"])
    assert (ran.exit_code, ran.output.startswith("removed: ")) == (0, True)
    assert await Talk(Scripted(), "/history").run(path) == 0
    assert b"Hello." not in path.read_bytes()


async def test_system_shows_and_sets_the_instruction() -> None:
    scripted = Scripted("Arr.", "Yes.")
    talk = Talk(scripted, "/system", "/system Be a pirate.", "hi", "/system -", "hi", system="Be kind.")

    await talk.run()

    assert talk.seen == ["Be kind.", "Be a pirate.", "Arr.", "(no instruction)", "Yes."]
    assert [prompt.instruction for prompt in scripted.prompts] == ["Be a pirate.", ""]


async def test_model_lets_another_one_go_on() -> None:
    other = Scripted("I am other.", name="other")
    asked: list[Any] = []

    def choose(name: str | None, base_url: str | None) -> ModelChoice:
        asked.append((name, base_url))
        return ModelChoice(model=other, name=name or "", base_url=base_url)

    first = ModelChoice(model=Scripted("Hello."), name="openai:it", base_url="http://here/v1")
    talk = Talk(first, "hi", "/model openai:other", "/model openai:other http://there/v1", "and you?", choose=choose)

    await talk.run()

    assert asked == [("openai:other", "http://here/v1"), ("openai:other", "http://there/v1")]
    assert talk.seen == [
        "Hello.",
        "other answers at http://here/v1.",
        "other answers at http://there/v1.",
        "I am other.",
    ]
    assert other.prompts[0].turns == (user("hi"), model("Hello.", by="scripted"), user("and you?"))


async def test_an_address_stays_with_its_service() -> None:
    asked: list[Any] = []

    def choose(name: str | None, base_url: str | None) -> ModelChoice:
        asked.append(base_url)
        return ModelChoice(model=Scripted(), name=name or "")

    first = ModelChoice(model=Scripted(), name="openai:it", base_url="http://here/v1")

    await Talk(first, "/model gemini-3.8-flash", choose=choose).run()

    assert asked == [None]


async def test_instruction_tools_and_settings_follow_the_model_unless_the_person_has_said_otherwise() -> None:
    small, large = Scripted("1", name="smollm2"), Scripted("2", "3", name="gemini-3.8-flash")

    def choose(name: str | None, base_url: str | None) -> ModelChoice:
        return ModelChoice(model=small if name == "smollm2" else large, name=name or "")

    lines = ["a", "/model gemini-3.8-flash", "b", "/system Mine.", "/model gemini-3.8-flash", "c"]
    await Talk(ModelChoice(model=small, name="smollm2"), *lines, choose=choose, tools=[calculate]).run()

    [first], [second, third] = small.prompts, large.prompts
    assert (len(first.tools), len(second.tools)) == (0, 1)
    assert first.instruction != second.instruction
    assert (second.settings, third.instruction) == (Settings(thoughts=True), "Mine.")


async def test_a_model_that_cannot_be_chosen_leaves_the_old_one() -> None:
    talk = Talk(Scripted("Hello."), "/model nobody", "hi")

    await talk.run()

    assert talk.seen == ["no model is called 'nobody'", "Hello."]


async def test_an_unknown_command_is_no_message() -> None:
    talk = Talk(Scripted(), "/dance", "")

    await talk.run()

    assert talk.seen == ["there is no /dance; /help shows what there is"]


async def test_a_command_with_more_than_it_takes_is_not_obeyed() -> None:
    talk = Talk(Scripted("Hello."), "/quit now", "hi")

    await talk.run()

    assert talk.seen == ["/quit takes nothing after it; to send this as a message, put a space before it", "Hello."]


@pytest.mark.parametrize("leave", [["/quit"], ["/exit"], [EOFError], [KeyboardInterrupt, KeyboardInterrupt]])
async def test_ways_to_leave(leave: list[Any]) -> None:
    scripted = Scripted("never")

    assert await Talk(scripted, *leave, "hi").run() == 0

    assert scripted.prompts == []


async def test_one_interrupt_does_not_leave() -> None:
    scripted = Scripted("one", "two")

    await Talk(scripted, KeyboardInterrupt, "hi", KeyboardInterrupt, "hi").run()

    assert len(scripted.prompts) == 2


async def test_piped_one_interrupt_leaves() -> None:
    assert await Talk(Scripted(), KeyboardInterrupt, "hi", interactive=False).run() == 130


@pytest.mark.parametrize("name", ["gemini-3.8-flash", "gemini-2.5-flash", "gemini-2.0-flash"])
async def test_gemini_thinks_calls_and_answers(name: str) -> None:
    async with GeminiSim() as sim:
        chosen = ModelChoice(model=Gemini(name, key="any", base_url=sim.url), name=name)
        talk = Talk(chosen, "What is 6*7?", "And now?", tools=[calculate])

        assert await talk.run() == 0

    assert [request.status for request in sim.requests] == [200] * len(sim.requests)
    assert any(line.startswith("[calculate") for line in talk.seen)
    assert [line[:12] for line in talk.seen if line.startswith(("Here", "You"))] == ["Here is what", "You said “An"]


@pytest.mark.parametrize("name", ["gemma-4-31b-it", "gemma-3-27b-it"])
async def test_gemma_answers_without_tools(name: str) -> None:
    async with GeminiSim(models=[name]) as sim:
        talk = Talk(ModelChoice(model=Gemini(name, key="any", base_url=sim.url), name=name), "hi", tools=[calculate])

        assert await talk.run() == 0

    assert talk.seen[-1].startswith("You said “hi”")


async def test_an_openai_compatible_service_calls_and_answers() -> None:
    async with OpenAISim() as sim:
        chosen = ModelChoice(model=OpenAI("gpt-5.6", key="any", base_url=sim.url), name="openai:gpt-5.6")
        talk = Talk(chosen, "What is 6*7?", "/history", tools=[calculate])

        assert await talk.run() == 0

    assert any(line.startswith("[calculate") for line in talk.seen)
    assert "Here is what I found" in "\n".join(talk.seen)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (MaxTokens(), "(the answer was cut: the limit of tokens was reached (MAX_TOKENS); not kept)"),
        (ContentFilter(), "(the answer was withheld (SAFETY); not kept)"),
        (
            BlockedPrompt(),
            "(the service does not answer this message (PROHIBITED_CONTENT); not kept)",
        ),
        (Empty(), "(the model said nothing; not kept)"),
    ],
)
async def test_an_answer_that_is_none_is_said_to_be_none_and_the_model_asked_again(fault: Any, words: str) -> None:
    async with GeminiSim() as sim:
        sim.fail(fault)
        chosen = ModelChoice(model=Gemini("gemini-3.8-flash", key="any", base_url=sim.url), name="gemini-3.8-flash")
        talk = Talk(chosen, "hi")

        await talk.run()

    assert talk.seen[:2] == [words, "(asked again)"]
    assert talk.seen[-1].startswith("You said “hi”")


async def test_an_answer_that_says_nothing_is_an_ordinary_line() -> None:
    talk = Talk(ModelChoice(model=Scripted("<think>hm</think>"), name="scripted"), "hi")

    assert (await talk.run(), talk.seen) == (0, [NOTHING_TO_SAY])


async def test_an_answer_that_breaks_off_is_said_to() -> None:
    async with GeminiSim() as sim:
        sim.fail(CutStream(after=3))
        chosen = ModelChoice(model=Gemini("gemini-3.8-flash", key="any", base_url=sim.url), name="gemini-3.8-flash")
        talk = Talk(chosen, "hi")

        await talk.run()

    assert any(line.startswith("(the answer broke off") for line in talk.seen)
    assert talk.seen[-1].startswith("You said “hi”")


async def test_the_last_request_is_shown_layer_by_layer() -> None:
    talk = Talk(Scripted("Hello.", "Fine."), "/prompt", "hi", "how are you?", "/prompt", system="Be kind.")

    assert await talk.run() == 0

    nothing, *_, tokens, static, buffered, trigger, left = talk.seen
    assert (nothing, left) == ("(nothing has been asked yet)", "nothing was left out")
    assert tokens.endswith("% as in the request before")
    assert [line.split()[0] for line in (static, buffered, trigger)] == ["static", "buffered", "trigger"]


async def test_why_the_last_message_or_one_that_is_named_was_answered() -> None:
    talk = Talk(Scripted("Hello.", "Fine."), "/why", "hi", "how are you?", "/why", "/why HI", "/why nothing such")

    assert await talk.run() == 0

    nothing, *_, last, why, run, named, again, first, none = (line.strip() for line in talk.seen)
    assert (nothing, last, named) == ("(nothing has been said yet)", "“how are you?”", "“hi”")
    assert why == again == "answered; it spoke to the bot in a direct chat"
    assert re.fullmatch(r"run [0-9a-f]{8}, scripted: done in \d+\.\d s", run)
    assert first != run
    assert none == "(no message of the last 2 has “nothing such”)"


class SmallContext(Local):
    """A local model that has no room for the oldest two exchanges."""

    omitted_exchanges = 2

    async def stream(self, prompt: Prompt) -> AsyncGenerator[Part | Response, None]:
        async for piece in Scripted("Hello.").stream(prompt):
            yield piece


async def test_the_exchanges_that_a_local_model_had_no_room_for_are_counted() -> None:
    talk = Talk(ModelChoice(model=SmallContext("smollm2"), name="smollm2"), "hi", "/prompt")

    await talk.run()

    assert "left out for want of room: the oldest 2 exchanges" in talk.seen


async def test_it_takes_up_where_it_left_off(tmp_path: Path) -> None:
    db, second = tmp_path / "tertulia.db", Scripted("You said hi.")
    await Talk(Scripted("Hello."), "hi").run(db)

    talk = Talk(second, "What did I say?")
    await talk.run(db)

    assert talk.seen == ["(2 messages so far, the last just now; /clear begins anew)", "You said hi."]
    assert second.prompts[0].turns == (user("hi"), model("Hello.", by="scripted"), user("What did I say?"))


async def test_what_had_no_answer_is_answered_first(tmp_path: Path) -> None:
    db = tmp_path / "tertulia.db"
    async with Store.open(db) as store:
        said = Message(id="1", place=PLACE, author=person(), sent_at=datetime.now(UTC), parts=(Text(text="hi"),))
        await store.inbox.receive(said, at=datetime.now(UTC))

    talk = Talk(Scripted("Hello.", "Bye."), "bye")
    await talk.run(db)

    assert talk.seen == [
        "(1 message so far, just now; /clear begins anew)",
        *("(what was said last had no answer yet; here it is)", "Hello.", "Bye."),
    ]


async def test_an_answer_that_goes_on_after_its_process_ended_is_shown_once(tmp_path: Path) -> None:
    db, held = tmp_path / "tertulia.db", HeldModel("never said")
    first = asyncio.create_task(Talk(held, "hi").run(db))
    await held.asked.wait()
    first.cancel()
    await asyncio.wait([first])

    talk = Talk(Scripted("Hello."))
    await talk.run(db)

    assert talk.seen == [
        "(1 message so far, just now; /clear begins anew)",
        *("(what was said last had no answer yet; here it is)", "Hello."),
    ]


async def test_a_reply_that_was_not_shown_is_shown_once(tmp_path: Path) -> None:
    db = tmp_path / "tertulia.db"
    async with Store.open(db) as store:
        reply = OutboxItem(id="a", reply=Reply(place=PLACE, text="Late."), made_at=datetime.now(UTC), author=ME)
        await store.outbox.put(reply)

    first, second = Talk(Scripted()), Talk(Scripted())
    await first.run(db)
    await second.run(db)

    assert (first.seen, second.seen) == (["Late."], ["(1 message so far, just now; /clear begins anew)"])


@pytest.mark.parametrize(
    ("answer", "seen"),
    [
        ("Hello.\n\n# «send»\nAnd this.", ["Hello.", "And this."]),
        ("# «think»\nhm\n\n# «send»\nThis.", ["This."]),
        ("```markdown\n# «send»\nThis.\n```", ["This."]),
        ("```\n\n# «think»\nhm\n\n# «send»\nThis.\n```\n", ["This."]),
        ("```\n# a comment\n```", ["```", "# a comment", "```"]),
        ("[meta] chat_id=1\nHello.", ["Hello."]),
        ("A title:\n\n# One\n\n- two", ["A title:", "", "# One", "", "- two"]),
    ],
)
async def test_our_markup_is_not_seen_and_what_it_says_is_done(answer: str, seen: list[str]) -> None:
    talk = Talk(Scripted(answer, "Still here."), "hi", "and?")

    await talk.run()

    assert talk.seen == [*seen, "Still here."]


@pytest.mark.parametrize("kind", ["block", "clear-conversation"])
async def test_a_model_shuts_nobody_out_at_the_terminal_and_what_it_may_not_do_is_not_seen(kind: str) -> None:
    talk = Talk(Scripted(f"# «{kind}»\n\n# «send»\nAh.", "# «think»\nAll right.", "Still here."), "hi", "and?")

    await talk.run()

    assert talk.seen == ["Ah.", "Still here."]


async def test_what_is_said_between_tools_is_shown_once() -> None:
    talk = Talk(Scripted(["I count. ", CALL], "It is 42."), "6*7?", tools=[calculate])

    await talk.run()

    assert [line for line in talk.seen if not line.startswith("[")] == ["I count.", "It is 42."]


async def test_a_person_sets_a_reminder_by_a_command() -> None:
    talk = Talk(Scripted(), "/remind in 20 minutes tea", "/tasks")

    assert await talk.run() == 0
    assert [re.sub(r"^[0-9a-f]{8}  ", "ID  ", re.sub(r"[\d-]+ \d\d:\d\d", "THEN", line)) for line in talk.seen] == [
        "I will remind you: THEN (UTC).",
        "ID  THEN send: Reminder: tea",
    ]


async def test_what_is_planned_is_shown() -> None:
    talk = Talk(Scripted("Soon.\n\n# «wait»\ndelay: 600\n\n# «send»\nNow!"), "/tasks", "hi", "/tasks")

    await talk.run()

    nothing, answer, planned = talk.seen
    assert (nothing, answer) == ("Nothing is planned here.", "Soon.")
    assert planned.endswith(" send: Now!")


async def run_without_room(talk: Talk, attempts: int) -> int:
    """Run on a store that has no room for the first *attempts* at storing what is said."""
    async with Store.open(":memory:") as store:
        apply, full = store.updates.apply, [StoreFull("the store x: no room is left")] * attempts

        async def applied(*given: Any, **named: Any) -> Any:
            if full:
                await store.writer.run(partial(raise_error, full.pop()))
            return await apply(*given, **named)

        store.updates.apply = applied  # type: ignore[method-assign]
        return await talk.run_on(store)


async def test_a_store_without_room_is_one_line_and_what_was_said_is_answered_once_there_is_some() -> None:
    talk = Talk(Scripted("Hello.", "Hello."), "hi", "hi again")

    assert await run_without_room(talk, 2) == 0
    assert talk.seen == ["the store x: no room is left", "Hello.", "Hello."]


async def test_where_nobody_is_there_to_make_room_the_chat_ends() -> None:
    talk = Talk(Scripted(), "hi", "hi again", interactive=False)

    assert await run_without_room(talk, 9_999) == 1
    assert talk.out.getvalue().splitlines()[1:] == ["the store x: no room is left"]


async def test_a_store_that_has_no_room_in_the_middle_is_waited_for_and_nothing_is_lost() -> None:
    talk = Talk(Scripted("Hello.", "Hello.", "Hello."), "hi")
    async with Store.open(":memory:") as store:
        keep, full = store.runs.add_record, [StoreFull("the store x: no room is left")] * 2

        async def kept(run: Run, step: int, record: Record, *, call: Call | None = None) -> None:
            if full:
                await store.writer.run(partial(raise_error, full.pop()))
            await keep(run, step, record, call=call)

        store.runs.add_record = kept  # type: ignore[method-assign]

        assert await talk.run_on(store) == 0

    assert [line for line in talk.seen if "no room" in line] == ["the store x: no room is left"]
    assert talk.seen[-1] == "Hello."


@pytest.mark.parametrize("interactive", [True, False], ids=["typed", "piped"])
@pytest.mark.parametrize(
    ("room", "method"), [("updates", "apply"), ("inbox", "snapshot"), ("runs", "add_record"), ("outbox", "change")]
)
async def test_a_damaged_store_ends_the_conversation_with_its_error(interactive: bool, room: str, method: str) -> None:
    talk = Talk(Scripted("Hello.", "Hello."), "hi", "are you there?", interactive=interactive)
    async with Store.open(":memory:") as store:
        setattr(getattr(store, room), method, damaged)

        with pytest.raises(StoreBroken, match="the store x: the file is damaged"):
            await talk.run_on(store)

    assert [line for line in talk.seen if "damaged" in line] == []


async def test_damage_that_memory_meets_ends_the_conversation_before_the_next_line() -> None:
    talk = Talk(Scripted("Hello.", "Hello."), "I live in Kyiv.", "/memory", "hi", config=Config(profile="plain"))
    async with Store.open(":memory:") as store:
        store.cursors.next_range = damaged  # type: ignore[method-assign]

        with pytest.raises(StoreBroken, match="the store x: the file is damaged"):
            await talk.run_on(store)


def raise_error(error: Exception, _: Any) -> None:
    raise error


async def damaged(*_: Any, **__: Any) -> Any:
    raise StoreBroken("the store x: the file is damaged")


async def test_tools_are_listed_with_a_line_each() -> None:
    talk = Talk(Scripted(), "/TOOLS", tools=[calculate])

    await talk.run()

    assert talk.seen == ["calculate  Work out arithmetic exactly: numbers only, never code."]


async def test_a_model_without_tools_says_so() -> None:
    talk = Talk(ModelChoice(model=Scripted(name="smollm2"), name="smollm2"), "/tools", tools=[calculate])

    await talk.run()

    assert talk.seen[-1] == "(smollm2 has no tools here: it is too small for them, or its service refuses them)"


async def test_the_last_exchanges_are_shown_whole_when_a_conversation_goes_on() -> None:
    async with Store.open(":memory:") as store:
        answers = Scripted("One.", "Two.", KeyRefused("no"), "Four.")
        await Talk(answers, "first", "second", "third", "fourth").run_on(store)
        talk = Talk(Scripted(), last_messages=4)
        await talk.run_on(store)

    assert talk.seen == [
        "(7 messages so far, the last just now; /clear begins anew)",
        *("  you: second", "  scripted: Two.", "  you: third (no answer)", "  you: fourth", "  scripted: Four."),
    ]


async def test_an_answer_that_was_stopped_is_said_to_be() -> None:
    talk = Talk(Scripted(RequestRefused(STOPPED)), "first", "/history")

    await talk.run()

    assert talk.seen[-1] == "you: first (stopped)"
