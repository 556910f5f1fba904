"""The programs of docs/porting.md run, before and after, against the simulators."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import palaver
from palaver import Chat, Media, Prompt, ToolSpec, errors, formats, models, turns
from palaver.formats.lists import read_genai, read_openai
from palaver.models import Gemini, OpenAI
from palaver.sim import GeminiSim, OpenAISim, faults
from palaver.sim.behaviours import Actor
from palaver.testing.fixtures import serve

PAGE = (Path(__file__).parent.parent / "docs" / "porting.md").read_text("utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
NAMES = ["google-genai, before", "google-genai, after", "openai, before", "openai, after"]


@pytest.fixture(scope="module")
def environment() -> Iterator[dict[str, str]]:
    """What makes both SDKs and Palaver ask the simulators.

    The model of google-genai makes one call at a time: of several calls in a stream the SDK makes several turns, and
    the simulator refuses those without a signature, as the service sometimes does.
    """
    one_call = GeminiSim(behaviour=Actor(parallel=1))
    with serve(GeminiSim()) as gemini, serve(one_call) as for_sdk, serve(OpenAISim()) as openai:
        yield {
            **os.environ,
            "GEMINI_API_KEY": "any",
            "GOOGLE_GEMINI_BASE_URL": for_sdk.url,
            "PALAVER_GEMINI_BASE_URL": gemini.url,
            "OPENAI_API_KEY": "any",
            "OPENAI_BASE_URL": openai.url,
            "PALAVER_OPENAI_BASE_URL": openai.url,
        }


@pytest.mark.parametrize(("name", "program"), list(zip(NAMES, PROGRAMS, strict=False)), ids=NAMES)
def test_a_program_runs(name: str, program: str, environment: dict[str, str]) -> None:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environment)

    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert "before" in name or done.stderr == ""  # the SDK warns on standard error


def test_all_programs_are_run_but_those_of_aiogram() -> None:
    assert ["aiogram" in program for program in PROGRAMS] == [False] * len(NAMES) + [True, True]


@pytest.mark.parametrize("program", PROGRAMS[len(NAMES) :])
def test_the_programs_of_aiogram_are_imported(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "a-key")
    exec(compile(program, "docs/porting.md", "exec"), {"__name__": "program"})  # noqa: S102 (of our own page)


def test_every_class_in_the_tables_exists() -> None:
    rows = re.findall(r"^\|.*?(?<!\\)\| (.*) \|$", PAGE, flags=re.MULTILINE)
    named = {
        name
        for row in rows
        for code in re.findall(r"`([^`]+)`", row)
        for name in re.findall(r"[A-Z]\w+(?=[(,.]|$)", code)
    }
    known = {*dir(palaver), *dir(errors), *dir(models), *dir(turns), *dir(formats)}

    assert {"Chat", "Media", "ToolSpec", "KeyRefused", "CachedGemini"} <= named
    assert {name for name in named if not name.isupper() and "_" not in name} - known <= {"Bot", "Dispatcher", "NAME"}


ROWS: list[tuple[Any, type[Exception]]] = [
    (faults.ContextTooLong(), errors.RequestRefused),
    (faults.RateLimited(), errors.RateLimited),
    (faults.Overloaded(), errors.Overloaded),
    (faults.Internal(), errors.ServiceFault),
]


async def test_the_rows_about_errors_are_true(monkeypatch: pytest.MonkeyPatch) -> None:
    async with GeminiSim() as gemini, OpenAISim() as openai:
        for fault, error in ROWS:
            gemini.fail(fault)
            openai.fail(fault)
            for model in (
                Gemini("gemini-3.8-flash", key="any", base_url=gemini.url),
                OpenAI("gpt-5.6", key="any", base_url=openai.url),
            ):
                with pytest.raises(error):
                    await model.respond(Prompt.of("Hi"))
                await model.aclose()
        for name, key, error in [
            ("gemini-3.8-flash", "bad-key", errors.KeyRefused),
            ("gemini-0-none", "any", errors.ModelUnknown),
            ("openai:gpt-5.6", "bad-key", errors.KeyRefused),
            ("openai:gpt-0-none", "any", errors.ModelUnknown),
        ]:
            monkeypatch.setenv("GEMINI_API_KEY", key)
            monkeypatch.setenv("OPENAI_API_KEY", key)
            async with Chat(name, base_url=openai.url if "openai" in name else gemini.url) as chat:
                with pytest.raises(error):
                    await chat.send_message("Hi")


async def test_the_rows_about_histories_declarations_files_and_bytes_are_true() -> None:
    asked = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]
    contents = [{"role": "user", "parts": [{"text": "Hi"}]}, {"role": "model", "parts": [{"text": "Hello."}]}]
    look = ToolSpec.of({"type": "function", "function": {"name": "look"}})
    async with GeminiSim() as sim, Gemini("gemini-3.8-flash", key="any", base_url=sim.url) as model:
        for history in (read_openai(asked).turns, read_genai(contents).turns):
            response = await Chat(model, history=history, tools=[look]).send_message(
                ["What is this?", Media.of(b"data", mime="image/png")]
            )
            assert [call.name for call in response.function_calls][:1] == ["look"]
        assert await model.count_tokens(Prompt.of("Hi")) > 0
        assert (await model.upload(b"data", mime="image/png")).uri
    with pytest.raises(errors.InvalidValue, match="read_openai"):
        Chat(model, history=asked)  # type: ignore[arg-type]
    with pytest.raises(errors.InvalidValue, match="base_url goes with the name of a model"):
        Chat(model, base_url="http://127.0.0.1")
