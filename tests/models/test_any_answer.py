"""Whatever a service answers, decoding it raises nothing, and what was decoded can be kept, read again and sent."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertulia.models import Response
from tertulia.models.gemini import decode as gemini
from tertulia.models.gemini.encode import encode_turn as encode_gemini
from tertulia.models.openai import decode as openai
from tertulia.models.openai.encode import encode_turn as encode_openai
from tertulia.turns import Turn

pytestmark = pytest.mark.torture

scalars = (
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "x", "STOP", "assistant", "{}", "aGk=", 0.5])
)
KEYS = (
    "candidates content parts role text thought thoughtSignature functionCall function_call functionResponse name args "
    "id response inlineData data mimeType fileData fileUri finishReason usageMetadata promptTokenCount promptFeedback "
    "blockReason choices message delta tool_calls function arguments index finish_reason usage prompt_tokens refusal "
    "reasoning_content extra_content google thought_signature type image_url url input_audio format tool_call_id error"
).split()
json: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(st.sampled_from(KEYS), json, max_size=4)


@st.composite
def gemini_bodies(draw: st.DrawFn) -> dict[str, Any]:
    part = st.dictionaries(st.sampled_from(KEYS[5:20]), json, max_size=3) | json
    content = st.fixed_dictionaries({"parts": st.lists(part, max_size=3) | json}, optional={"role": json})
    candidate = st.fixed_dictionaries({"content": content | json}, optional={"finishReason": json})
    return draw(
        st.fixed_dictionaries(
            {"candidates": st.lists(candidate | json, max_size=2) | json}, optional={"usageMetadata": json}
        )
    )


@st.composite
def openai_bodies(draw: st.DrawFn) -> dict[str, Any]:
    call = (
        st.dictionaries(st.sampled_from(["id", "type", "function", "index", "extra_content"]), json, max_size=4) | json
    )
    message = st.fixed_dictionaries(
        {},
        optional={"content": json, "tool_calls": st.lists(call, max_size=2) | json, "reasoning": json, "refusal": json},
    )
    choice = st.fixed_dictionaries(
        {"message": message | json, "delta": message | json}, optional={"finish_reason": json, "index": json}
    )
    return draw(
        st.fixed_dictionaries(
            {"choices": st.lists(choice | json, max_size=2) | json}, optional={"usage": json, "id": json}
        )
    )


def check(response: Response) -> None:
    """Any answer can be stored, sent to each service, and judged."""
    assert msgspec.json.decode(msgspec.json.encode(response.turn), type=Turn) == response.turn
    encode_gemini(response.turn, model="gemini-3.8-flash")
    encode_openai(response.turn, model="gpt-5.6")
    assert isinstance(response.valid, bool)


@given(gemini_bodies() | objects)
def test_gemini_response(body: dict[str, Any]) -> None:
    check(gemini.decode_response(body, model="gemini-3.8-flash"))


@given(st.lists(gemini_bodies() | objects, max_size=3))
def test_gemini_stream(chunks: list[dict[str, Any]]) -> None:
    gemini.decode_response(gemini.merge_chunks(chunks), model="gemini-3.8-flash")


@given(openai_bodies() | objects)
def test_openai_response(body: dict[str, Any]) -> None:
    check(openai.decode_response(body, model="gpt-5.6"))


@given(st.lists(openai_bodies() | objects, max_size=3))
def test_openai_stream(chunks: list[dict[str, Any]]) -> None:
    openai.decode_response(openai.merge_chunks(chunks), model="gpt-5.6")


@given(objects)
def test_any_turn(value: dict[str, Any]) -> None:
    gemini.decode_turn(value)
    openai.decode_turn(value)
    openai.decode_turn({"role": "assistant", **value})


@given(st.integers(400, 599), st.binary(max_size=20) | objects.map(msgspec.json.encode) | json.map(msgspec.json.encode))
def test_any_error(status: int, body: bytes) -> None:
    gemini.decode_error(status, body)
    openai.decode_error(status, body, {"retry-after": "x"})
