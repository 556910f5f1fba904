"""What a model is told in the course of a run or a chat: fallbacks, repeated and cut calls, bad blocks, misfits."""

import asyncio
from collections.abc import Iterable
from typing import Any

from model_text.shown import a_section, shown_part, shown_prompt, shown_turns
from people import NOON, a_photo
from store.builders import a_run, a_tool_run
from tertulia import Chat
from tertulia.engine.elsewhere import FROM_DIRECT, NOT_ALLOWED, NOT_THERE
from tertulia.engine.prompt_builder import SEND_ELSEWHERE
from tertulia.errors import AnswerUnfit
from tertulia.models.base import Finish, Response
from tertulia.models.scripted import Scripted
from tertulia.parts import MAX_SHOWN_TEXT, Media, Opaque, Text, Thought, ToolCall, ToolResult, cut_parts
from tertulia.run.fallbacks import FALLBACKS
from tertulia.run.journal import InMemoryJournal, Journal
from tertulia.run.loop import STEPS, RunLoop, RunOptions
from tertulia.run.model_calls import ModelCalls
from tertulia.run.outcome import MOST_PROBLEMS, MOST_STEPS, ParsedTexts
from tertulia.run.run_host import RunHost
from tertulia.store import Store
from tertulia.tasks.blocks import lines_for_model, parse
from tertulia.tasks.kinds import KINDS, for_model, offered_kinds
from tertulia.toolbox.toolbox import Toolbox
from tertulia.turns import Layer, Prompt, Record, model, user

MAKER = "gemini-3.8-flash"
CALL = ToolCall(name="look", args={"place": "Kyiv"}, id="a", signature="c2ln")
RESULT = ToolResult(name="look", id="a", value={"seen": "[meta] Bob:\nhi"}, media=(a_photo(rendered_text="a cat"),))
FAILED = ToolResult(name="look", id="a", value="x" * 400, failed=True)


def fallbacks() -> str:
    """What each fallback makes of one prompt."""
    file = Media(media_kind="document", unique_id="d", uri="https://example.com/files/d", rendered_text="a plan")
    prompt = Prompt(
        layers=(
            Layer(name="static", instruction="Be kind.", turns=(user("long ago", "and then"),)),
            Layer(
                name="buffered",
                turns=(
                    user("a"),
                    user("b", file),
                    model("I look.", CALL, Opaque(raw={"executableCode": {}}), by=MAKER),
                    user(RESULT),
                    model(Text(text="Green.", signature="c2ln"), by=MAKER),
                    user("and now?"),
                    model(CALL, by=MAKER),
                    user(FAILED),
                    model("It failed.", by=MAKER),
                ),
            ),
            Layer(name="trigger", turns=(user("once more"),)),
            Layer(name="run", turns=(model(Thought(text="hm", signature="x"), CALL, by=MAKER), user(RESULT))),
        )
    )
    made = [(name, fallback(prompt)) for name, fallback in dict(FALLBACKS).items()]
    return "\n".join(a_section(name, shown_prompt(one) if one else "nothing") for name, one in made)


def cut_words() -> str:
    """What stands where long words and results are cut."""
    long = "a" * (MAX_SHOWN_TEXT + 5_000)
    told = (
        user(*cut_parts((Text(text=long), Text(text=long), a_photo(rendered_text=long)))),
        user(*cut_parts((ToolResult(name="look", value=long, media=(a_photo(rendered_text=long),)),))),
        user(*cut_parts((ToolResult(name="look", value={"all": long}),))),
    )
    return shown_turns(told).replace("a" * 1_000, "a") + "\n"


BAD_BLOCKS = """Hello!
# «send»
# «send» 12
One more.
# «wait»
delay: soon
# «send»
Later.
"""
BODIES = {
    "wait": ("", "delay: 1\ndelay: 2", "delay: many", "delay: 1,500", f"delay: {10**12}"),
    "sticker": ("one line",),
    "remember": ("",),
    "send": ("",),
    "send 12 to Plato": ("hi",),
    "block 12": ("",),
    "unblock 12": ("",),
    "clear-conversation 12": ("",),
    "sendd": ("hi",),
}


def _lines(kinds: Iterable[str]) -> str:
    return "\n".join(line.text + line.with_id for line in lines_for_model(kinds, {}))


def task_blocks() -> str:
    """How blocks are described, and what is said of those that cannot be used."""
    told = ParsedTexts(for_model(KINDS, offered_kinds(KINDS)))
    answers = {
        "bad blocks": BAD_BLOCKS,
        "no wait among them": "# «send»\n# «sticker»\none line\n",
        "too many": "# «think»\nhm\n" * (MOST_STEPS + 1),
        "too many problems": "# «send»\n" * (MOST_PROBLEMS + 3),
        "not allowed": "# «block»\n# «clear-conversation»\n",
        "waits beyond the end": f"# «wait»\ndelay: {300 * 10**6}\n# «wait»\ndelay: {300 * 10**6}\n",
    }
    sections = [
        a_section("described", _lines(KINDS)),
        a_section("described where some are not allowed", _lines(offered_kinds(KINDS))),
        a_section("described to who may send elsewhere", SEND_ELSEWHERE.format(names="Plato, telegram:-100123")),
        a_section(
            "problems elsewhere",
            "\n".join((NOT_ALLOWED, FROM_DIRECT, NOT_THERE.format(names="Plato, telegram:-100123", name="Nobody"))),
        ),
        a_section(
            "problems",
            "\n".join(
                problem
                for heading, bodies in BODIES.items()
                for body in bodies
                for problem in parse(f"# «{heading.partition(' ')[0]}» {heading.partition(' ')[2]}\n{body}\n").problems
            ),
        ),
    ]
    for name, text in answers.items():
        correction = told.correction(Response(turn=model(text)))
        sections.append(a_section(name, correction or "nothing"))
    return "\n".join(sections)


async def loop() -> str:
    """What a model is told in a run whose tools are called again and again, were cut off by a crash, or are left."""
    sections = []
    again = Scripted(*([CALL] for _ in range(4)), "It is green.")
    sections.append(a_section("identical calls", await _run(again, Toolbox([look]))))
    many = Scripted(*([ToolCall(name="look", args={"place": str(n)}, id=str(n))] for n in range(3)), "Enough.")
    sections.append(a_section("the last step, without tools", await _run(many, Toolbox([look]), steps=2)))
    crashed = Journal(
        run=a_run(),
        prompt=Prompt.of("Where?", tools=Toolbox([look]).specs),
        records=((0, Record(turn=model(CALL, by="scripted"), at=NOON)),),
        tools=(a_tool_run(call=CALL),),
    )
    sections.append(
        a_section("after a crash", await _run(Scripted("I do not know."), Toolbox([look]), journal=crashed))
    )
    objecting = Scripted(BAD_BLOCKS, "# «think»\nok\n")
    sections.append(a_section("bad blocks", await _run(objecting, Toolbox(), host=Correcting())))
    return "\n".join(sections)


class Correcting(RunHost):
    async def correction(self, response: Response) -> str | None:
        return ParsedTexts().correction(response)


async def _run(
    asked: Scripted, tools: Toolbox, *, journal: Journal | None = None, steps: int = STEPS, host: RunHost | None = None
) -> str:
    begun = journal or Journal(run=a_run(), prompt=Prompt.of("Where?", tools=tools.specs))
    loop = RunLoop(
        begun,
        host or RunHost(),
        store=InMemoryJournal(),
        models=[asked],
        toolbox=tools,
        calls=ModelCalls(now=lambda: NOON),
        options=RunOptions(steps=steps),
    )
    await loop.run_to_end()
    return _asked(asked)


def _asked(asked: Scripted) -> str:
    return "\n".join(f"request {number}\n{shown_prompt(one)}" for number, one in enumerate(asked.prompts, 1))


def look(place: str) -> str:
    """Look at a place."""
    return "green"


async def chats() -> str:
    """What a chat tells its model of an answer that does not fit, a call that may be cut and a tool it stopped."""
    sections = []
    unfit = Scripted("no JSON", '{"age": "old"}')
    try:
        await Chat(unfit, now=lambda: NOON).send_message("How old?", answer=dict[str, int])
    except AnswerUnfit:
        sections.append(a_section("an answer that does not fit", _asked(unfit)))
    deep = Scripted('{"a": ' + "[" * 100_000, "{}")
    await Chat(deep, now=lambda: NOON).send_message("How deep?", answer=dict[str, Any])
    sections.append(a_section("an answer that is nested too deeply", shown_part(deep.prompts[1].turns[-1].parts[0])))
    schema = Scripted("[]", '{"age": 1}')
    wanted = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}
    await Chat(schema, now=lambda: NOON).send_message("How old?", answer=wanted)
    sections.append(a_section("an answer that does not fit a schema", _asked(schema)))
    cut = Scripted(Response(turn=model(CALL, by="scripted"), finish=Finish(outcome="cut")), "Green.")
    chat = Chat(cut, tools=[look], now=lambda: NOON)
    await chat.send_message("Where?")
    await chat.send_message("And?")
    sections.append(a_section("a call that may be cut", _asked(cut)))
    sections.append(a_section("a tool that was stopped", await _stopped()))
    sections.append(a_section("an exchange that was given up", await _given_up()))
    return "\n".join(sections)


async def _stopped() -> str:
    began = asyncio.Event()

    async def wait() -> None:
        """Wait."""
        began.set()
        await asyncio.Event().wait()

    asked = Scripted([ToolCall(name="wait", id="w")], "Ok.")
    chat = Chat(asked, tools=[wait], now=lambda: NOON)
    first = asyncio.create_task(chat.send_message("Wait!"))
    await began.wait()
    first.cancel()
    await asyncio.wait([first])
    await chat.send_message("And now?")
    return _asked(asked)


async def _given_up() -> str:
    """A chat whose process ended in the middle of a tool, and that is told something else afterwards."""
    async with Store.open(":memory:") as store:
        began = asyncio.Event()

        async def wait() -> None:
            """Wait."""
            began.set()
            await asyncio.Event().wait()

        first = Chat(Scripted([ToolCall(name="wait", id="w")]), tools=[wait], store=store, name="c", now=lambda: NOON)
        sending = asyncio.create_task(first.send_message("Wait!"))
        await began.wait()
        asked = Scripted("Ok.")
        await Chat(asked, tools=[wait], store=store, name="c", now=lambda: NOON).send_message("And now?")
        sending.cancel()
        await asyncio.wait([sending])
        return _asked(asked)
