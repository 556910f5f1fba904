"""The request llama.cpp takes."""

from typing import Any

import orjson

from models.talk import LOOK
from tertulia.models.local.encode import answer_schema, encode_request, grammar, reserved_tokens, text_prompt
from tertulia.parts import ToolCall, ToolResult
from tertulia.turns import Prompt, Settings, model, user


def encoded(prompt: Prompt) -> dict[str, Any]:
    body: dict[str, Any] = orjson.loads(encode_request(prompt, text_prompt(prompt, room=10_000), model="m"))
    return body


def test_a_plain_request() -> None:
    assert encoded(Prompt.of("hi", system="Be kind.")) == {
        "model": "m",
        "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "hi"}],
        "temperature": 0.2,
        "max_tokens": 512,
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_progress": True,
        "repeat_penalty": 1.1,
    }


def test_settings_go_along_and_thinking_does_not() -> None:
    settings = Settings(temperature=0, top_p=0.5, top_k=7, max_tokens=9, stop=("\n",), seed=3, thinking="high")

    body = encoded(Prompt.of("hi", settings=settings))

    sent = {name: body[name] for name in ("temperature", "top_p", "top_k", "max_tokens", "stop", "seed")}
    assert sent == {"temperature": 0, "top_p": 0.5, "top_k": 7, "max_tokens": 9, "stop": ["\n"], "seed": 3}
    assert "reasoning_effort" not in body


def test_with_tools_the_answer_is_held_to_their_schema() -> None:
    prompt = Prompt.of("hi", tools=[LOOK], settings=Settings(tool_choice="any", stop=('"\n',)))

    body = encoded(prompt)

    schema = answer_schema(prompt)
    assert schema is not None
    assert body["grammar"] == grammar(schema)
    assert body["stop"] == ['\\"\\n']  # as it looks inside the reply's JSON
    assert body.keys().isdisjoint({"tools", "tool_choice", "response_format", "repeat_penalty"})


def test_what_a_tool_has_answered_may_be_repeated() -> None:
    answered = Prompt.of(
        "Look!", model(ToolCall(name="look", id="a")), user(ToolResult(name="look", value=345, id="a"))
    )
    spoken = Prompt.of(*answered.turns, model("It is 345."), "And now?")

    assert "repeat_penalty" not in encoded(answered)
    assert encoded(spoken)["repeat_penalty"] == 1.1


def test_room_is_kept_for_the_answer() -> None:
    assert reserved_tokens(Settings(), context=4096) == 512
    assert reserved_tokens(Settings(max_tokens=10), context=4096) == 10
    assert reserved_tokens(Settings(max_tokens=9999), context=4096) == 2048
