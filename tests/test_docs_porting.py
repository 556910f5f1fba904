"""The programs of docs/porting.md run, before and after, against the simulators."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tertulia.sim import GeminiSim, OpenAISim
from tertulia.sim.behaviours import Actor
from tertulia.testing.fixtures import serve

PAGE = (Path(__file__).parent.parent / "docs" / "porting.md").read_text("utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
NAMES = ["google-genai, before", "google-genai, after", "openai, before", "openai, after"]


@pytest.fixture(scope="module")
def environment() -> Iterator[dict[str, str]]:
    """What makes both SDKs and Tertulia ask the simulators.

    The model of google-genai makes one call at a time: of several calls in a stream the SDK makes several turns, and
    the simulator refuses those without a signature, as the service sometimes does.
    """
    one_call = GeminiSim(behaviour=Actor(parallel=1))
    with serve(GeminiSim()) as gemini, serve(one_call) as for_sdk, serve(OpenAISim()) as openai:
        yield {
            **os.environ,
            "GEMINI_API_KEY": "any",
            "GOOGLE_GEMINI_BASE_URL": for_sdk.url,
            "TERTULIA_GEMINI_BASE_URL": gemini.url,
            "OPENAI_API_KEY": "any",
            "OPENAI_BASE_URL": openai.url,
            "TERTULIA_OPENAI_BASE_URL": openai.url,
        }


@pytest.mark.parametrize(("name", "program"), list(zip(NAMES, PROGRAMS, strict=False)), ids=NAMES)
def test_a_program_runs(name: str, program: str, environment: dict[str, str]) -> None:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environment)

    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert "before" in name or done.stderr == ""  # the SDK warns on standard error


def test_all_programs_are_run_but_those_of_aiogram() -> None:
    assert ["aiogram" in program for program in PROGRAMS] == [False] * len(NAMES) + [True, True]
