"""The model inside the process: really asked, where it is installed."""

import asyncio
import logging
import subprocess
import sys
from collections.abc import Callable
from contextlib import aclosing
from importlib.util import find_spec
from pathlib import Path
from threading import Event
from typing import Any
from unittest.mock import Mock

import orjson
import pytest

from models.talk import COUNT, LOOK, step, streamed
from tertulia.errors import InvalidValue, NotInstalled
from tertulia.models import Model
from tertulia.models.local import Local, find_weights
from tertulia.models.local.client import Runtime, runtime_for
from tertulia.parts import Text, ToolCall, is_generated_id
from tertulia.turns import Prompt, Settings, model, user

HERE = find_spec("xllamacpp") is not None and find_weights("smollm2") is not None
real = pytest.mark.skipif(not HERE, reason="xllamacpp or the weights of smollm2 are not installed: run `make chat`")

SMALL = Local(threads=1, context=1024)  # one for all tests: it is loaded once, and no event loop is its own


def a_prompt(text: str = "Tell me about rivers.", *, max_tokens: int = 12, **settings: Any) -> Prompt:
    return Prompt.of(text, settings=Settings(max_tokens=max_tokens, seed=1, **settings))


@real
async def test_it_answers_and_counts() -> None:
    response = await SMALL.respond(a_prompt("Hi!"))
    again = await SMALL.respond(a_prompt("Hi!"))

    assert response.text.strip()
    assert response.turn.model == "smollm2"
    assert response.finish.outcome in {"complete", "cut"}
    assert response.usage.input > 10
    assert 0 < response.usage.output <= 12
    assert again.usage.cached > 0


@real
async def test_it_streams() -> None:
    pieces, whole = await streamed(SMALL, a_prompt())

    assert len(pieces) > 3
    assert "".join(piece.text for piece in pieces if isinstance(piece, Text)) == whole.text
    assert whole.usage.output == 12
    assert (whole.finish.outcome, whole.finish.reason) == ("cut", "length")


def the_engine() -> Runtime:
    """The engine that all have with so many threads and so much context."""
    path = find_weights("smollm2")
    assert path is not None
    return runtime_for(path, threads=1, context=1024)


class Counted:
    """The loaded model; counts the chunks of each answer."""

    def __init__(self, loaded: Any) -> None:
        self._loaded = loaded
        self.chunks: list[int] = []

    def handle_chat_completions(self, body: bytes, tell: Callable[[bytes], bool]) -> None:
        self.chunks.append(0)

        def count(chunk: bytes) -> bool:
            self.chunks[-1] += 1
            return tell(chunk)

        self._loaded.handle_chat_completions(body, count)


@real
async def test_of_a_cancelled_answer_no_more_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = {"type": "array", "items": {"type": "integer"}, "minItems": 400}  # so that it does not end by itself
    long = a_prompt("Count.", max_tokens=900, answer=numbers)
    await SMALL.respond(a_prompt("Hi!", max_tokens=1))
    engine = the_engine()
    counted = Counted(engine.loaded)
    monkeypatch.setattr(engine, "loaded", counted)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(SMALL.respond(long), 0.3)
    async with aclosing(SMALL.stream(long)) as pieces:
        await anext(pieces)

    response = await SMALL.respond(a_prompt("Hi!", max_tokens=2))

    assert response.usage.output > 0
    assert len(counted.chunks) == 3
    assert max(counted.chunks) < 400, counted.chunks


@real
async def test_requests_at_once_are_answered_one_after_the_other_by_one_engine() -> None:
    async with Local(threads=1, context=1024) as other:
        one, two = await asyncio.gather(SMALL.respond(a_prompt("Hi!")), other.respond(a_prompt()))

        await SMALL.aclose()
        assert the_engine().loaded  # the other one holds it
    assert one.usage.output > 0
    assert two.usage.output == 12


@real
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_a_call_that_must_be_is_a_legal_one_and_its_result_is_spoken_of(stream: bool) -> None:
    forced = Settings(tool_choice="any", max_tokens=40, seed=1)
    question = user("Count up to five, please.")

    history = await step(SMALL, [question], stream=stream, tools=[COUNT], settings=forced)
    history = await step(SMALL, history, stream=stream, settings=Settings(max_tokens=8, seed=1))

    _, called, _, spoken = history
    [call] = called.parts
    assert isinstance(call, ToolCall)
    assert call.name == "count"
    assert call.args["upto"] >= 3
    assert is_generated_id(call.id)
    assert all(isinstance(part, Text) for part in spoken.parts)


@real
async def test_any_choice_among_tools_is_legal() -> None:
    prompt = Prompt.of("What is in Lviv?", tools=[LOOK, COUNT], settings=Settings(max_tokens=40, seed=2))

    pieces, whole = await streamed(SMALL, prompt)

    assert whole.finish.outcome in {"complete", "cut"}
    assert list(whole.function_calls) == [piece for piece in pieces if not isinstance(piece, Text)]
    assert "".join(piece.text for piece in pieces if isinstance(piece, Text)) == whole.text


@real
async def test_an_answer_fits_its_schema() -> None:
    schema = {
        "type": "OBJECT",
        "properties": {
            "mood": {"type": "string", "enum": ["good", "bad"]},
            "stars": {"type": "integer", "minimum": 3, "maximum": 5},
            "of": {"$ref": "#/$defs/Thing"},
        },
        "required": ["mood", "stars", "of"],
        "$defs": {"Thing": {"type": "string", "maxLength": 8}},
    }

    response = await SMALL.respond(a_prompt("I love this film!", max_tokens=60, answer=schema))

    answer = orjson.loads(response.text)
    assert answer.keys() == {"mood", "stars", "of"}
    assert answer["mood"] in {"good", "bad"}
    assert answer["stars"] in {3, 4, 5}
    assert len(answer["of"]) <= 8


@real
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "^(a)\\1$"},  # llguidance does not read it: the model writes freely
        {"type": "object", "properties": {"a": False}, "required": ["a"]},
        {"type": "array", "items": {"const": 1}, "minItems": 2, "maxItems": 2, "uniqueItems": True},  # leaves it out
    ],
)
async def test_an_answer_that_was_not_held_to_its_schema_is_not_called_complete(schema: dict[str, Any]) -> None:
    pieces, response = await streamed(SMALL, a_prompt("Hi!", max_tokens=200, answer=schema))

    assert response.finish.outcome in {"malformed", "cut"}
    assert pieces


@real
async def test_a_schema_that_is_none_is_refused_before_the_model_is_asked() -> None:
    with pytest.raises(InvalidValue, match="the schema of the answer cannot be read: Unknown type"):
        await SMALL.respond(a_prompt(answer={"type": "banana"}))


@real
async def test_a_history_longer_than_its_context_is_answered(caplog: pytest.LogCaptureFixture) -> None:
    history = [turn for number in range(400) for turn in (user(f"Я бачу {number} річок."), model(f"So {number}."))]
    caplog.set_level(logging.DEBUG, "tertulia")
    async with Local(threads=1, context=512) as narrow:
        response = await narrow.respond(
            Prompt.of(*history, "Hi!", system="Be kind.", settings=Settings(max_tokens=4, seed=1))
        )

    assert response.usage.output > 0
    assert 100 < response.usage.input < 512
    assert "omitting the oldest turns" in caplog.text


@real
async def test_how_long_a_token_is_is_learnt_anew_when_the_language_changes() -> None:
    words = a_prompt("All the words are here. " * 20, max_tokens=1)
    async with Local(threads=1, context=512) as narrow:
        await narrow.respond(a_prompt("🦜🪵🫧" * 1_000, max_tokens=1))
        short, whole = [(await narrow.respond(words)).usage.input for _ in range(2)]

    assert short < 100 < whole


@real
async def test_stops_and_seeds_are_honoured() -> None:
    stopped = await SMALL.respond(a_prompt(stop=(" ",)))
    one, two = [await SMALL.respond(a_prompt(max_tokens=6, temperature=1.5)) for _ in range(2)]

    assert " " not in stopped.text
    assert stopped.finish.outcome in {"complete", "empty"}
    assert one.text == two.text


@real
async def test_a_closed_model_can_be_asked_again() -> None:
    async with Local(threads=1, context=1024) as closed:
        pass

    assert (await closed.respond(a_prompt("Hi!", max_tokens=2))).usage.output > 0


@real
async def test_a_file_that_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "broken.gguf").write_bytes(b"nothing")

    with pytest.raises(NotInstalled, match=r"broken.gguf is no model that can be loaded"):
        await Local("mine", path=tmp_path / "broken.gguf").respond(a_prompt())


async def test_without_xllamacpp_it_says_what_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)

    with pytest.raises(
        NotInstalled, match=r"^the local model needs xllamacpp: run `tertulia model get smollm2`, or pip install .*$"
    ):
        await Local("mine", path=tmp_path / "any.gguf").respond(a_prompt())


async def test_a_model_whose_request_was_closed_while_it_was_loaded_is_unloaded_after_its_loop_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loading, closed, unloaded = Event(), Event(), Event()
    seen: list[str] = []

    class Server:
        """Like the real one, it waits forever if it is unloaded before its loop began, and all of Python with it."""

        def __init__(self, params: Any) -> None:
            loading.set()
            assert closed.wait(30)

        def handle_metrics(self) -> str:
            seen.append("loop began")
            return ""

        def __del__(self) -> None:
            seen.append("unloaded")
            unloaded.set()

    monkeypatch.setitem(sys.modules, "xllamacpp", Mock(Server=Server))
    local = Local("mine", path=tmp_path / "any.gguf")
    async with local:
        asked = asyncio.create_task(local.respond(a_prompt()))
        assert await asyncio.to_thread(loading.wait, 30)
        asked.cancel()
        await asyncio.wait([asked])
    del asked
    closed.set()
    assert await asyncio.to_thread(unloaded.wait, 30)

    assert seen == ["loop began", "unloaded"]


async def test_without_weights_it_says_what_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERTULIA_MODELS", str(tmp_path))

    with pytest.raises(NotInstalled, match=r"^the weights of qwen are not here: run `tertulia model get qwen` .*$"):
        await Local("qwen").respond(a_prompt())


async def test_a_name_nobody_knows_and_a_context_too_small() -> None:
    with pytest.raises(InvalidValue, match="no local model is called 'huge'"):
        await Local("huge").respond(a_prompt())
    with pytest.raises(InvalidValue, match="at least 512"):
        Local(context=100)


def test_it_is_a_model_and_imports_nothing_heavy() -> None:
    fulfilled: Model = Local()
    code = "import sys, tertulia.models.local; sys.exit('xllamacpp' in sys.modules or 'platformdirs' in sys.modules)"

    assert fulfilled.name == "smollm2"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
