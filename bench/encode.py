"""Measures how long it takes to encode a request with one new message, beside other libraries."""

import asyncio
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import orjson

from tertulia.models.gemini import encode as gemini
from tertulia.models.openai import encode as openai
from tertulia.turns import Prompt
from tertulia.wire.repair import repair_prompt

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a script, it still finds its neighbours
from bench.common import (
    GEMINI_ANSWER,
    GEMINI_MODEL,
    OPENAI_ANSWER,
    OPENAI_MODEL,
    SCHEMA,
    SYSTEM,
    TOOL,
    TOOL_WORDS,
    Run,
    Sample,
    Stub,
    Subject,
    main,
)
from bench.peer_types import (
    declared_tools,
    genai_client,
    genai_config,
    genai_dict,
    langchain_message,
    openai_dict,
    pydantic_ai_google_model,
    pydantic_ai_message,
    stubbed_gemini,
    turn_of,
)

BATCH_SECONDS = 0.002  # what is faster is timed in batches about this long
T = TypeVar("T")

# how a subject is run


def direct(fresh: Callable[[], T], encode: Callable[[T], bytes]) -> Run:
    """Time *encode* alone, in batches if it is fast. *fresh* makes its input before."""
    batch = 1

    def run() -> tuple[float, bytes]:
        nonlocal batch
        given = [fresh() for _ in range(batch)]
        body = b""
        start = time.process_time()
        for one in given:
            body = encode(one)
        took = (time.process_time() - start) / batch
        batch = max(1, min(200, int(BATCH_SECONDS / max(took, 1e-6))))
        return took, body

    return run


# ours


def _prompts(
    history: Sequence[Sample], new: Sample, model: str = GEMINI_MODEL, *, signed: bool = True
) -> Callable[[], Prompt]:
    """Return a function that makes prompts of turns with cached bytes and a last turn that is always new."""
    cached = [turn_of(one, model, signed=signed) for one in history]
    tools = declared_tools()
    return lambda: Prompt.of(*cached, turn_of(new, model), system=SYSTEM, tools=tools)


def tertulia(history: Sequence[Sample], new: Sample) -> Run:
    return direct(_prompts(history, new), lambda prompt: gemini.encode_request(prompt, model=GEMINI_MODEL))


def tertulia_with_repair(history: Sequence[Sample], new: Sample) -> Run:
    def encode(prompt: Prompt) -> bytes:
        return gemini.encode_request(repair_prompt(prompt, GEMINI_MODEL, wire="gemini"), model=GEMINI_MODEL)

    return direct(_prompts(history, new), encode)


def tertulia_client(history: Sequence[Sample], new: Sample) -> Run:
    """Measure a whole call, as for the peers: prompt, repair, encoding, HTTP request."""
    prompts = _prompts(history, new)
    loop, stub = asyncio.new_event_loop(), Stub(GEMINI_ANSWER)
    model = stubbed_gemini(stub, loop)
    return stub.timed(lambda: loop.run_until_complete(model.respond(prompts())))


def tertulia_cold(history: Sequence[Sample], new: Sample) -> Run:
    def fresh() -> Prompt:
        turns = [turn_of(one, GEMINI_MODEL) for one in (*history, new)]
        return Prompt.of(*turns, system=SYSTEM, tools=declared_tools())

    return direct(fresh, lambda prompt: gemini.encode_request(prompt, model=GEMINI_MODEL))


def tertulia_openai(history: Sequence[Sample], new: Sample) -> Run:
    prompts = _prompts(history, new, OPENAI_MODEL, signed=False)
    return direct(prompts, lambda prompt: openai.encode_request(prompt, model=OPENAI_MODEL))


# floors: the same body by the least work there is


def floor_join(history: Sequence[Sample], new: Sample) -> Run:
    """Join ready bytes once. The envelope is part of the first and the last piece."""
    body = gemini.encode_request(_prompts(history[:1], new)(), model=GEMINI_MODEL)
    first, new_bytes = (orjson.dumps(content) for content in orjson.loads(body)["contents"])
    head, tail = body.split(first + b"," + new_bytes)
    ready = [orjson.dumps(content) for content in _contents(history)]
    ready[0] = head + ready[0]
    return direct(lambda: _contents([new])[0], lambda last: b",".join([*ready, orjson.dumps(last) + tail]))


def floor_orjson(history: Sequence[Sample], new: Sample) -> Run:
    """Dump ready dictionaries, with base64 done, by orjson."""
    envelope = orjson.loads(gemini.encode_request(_prompts([], new)(), model=GEMINI_MODEL))
    ready = _contents([*history, new])
    return direct(lambda: {**envelope, "contents": ready}, orjson.dumps)


def _contents(samples: Sequence[Sample]) -> list[dict[str, Any]]:
    bodies = (gemini.encode_turn(turn_of(one, GEMINI_MODEL), model=GEMINI_MODEL) for one in samples)
    return [content for body in bodies for content in orjson.loads(body)]


# the peers, each with its own types


def google_genai(history: Sequence[Sample], new: Sample) -> Run:
    from google.genai import types

    return _genai([types.Content.model_validate(genai_dict(one)) for one in (*history, new)])


def google_genai_dicts(history: Sequence[Sample], new: Sample) -> Run:
    return _genai([genai_dict(one) for one in (*history, new)])


def _genai(contents: Any) -> Run:
    stub = Stub(GEMINI_ANSWER)
    client, config = genai_client(stub), genai_config()
    return stub.timed(lambda: client.models.generate_content(model=GEMINI_MODEL, contents=contents, config=config))


def openai_sdk(history: Sequence[Sample], new: Sample) -> Run:
    from openai import OpenAI

    stub = Stub(OPENAI_ANSWER)
    client = OpenAI(api_key="k", http_client=stub.client())
    messages: Any = [{"role": "system", "content": SYSTEM}, *(openai_dict(one) for one in (*history, new))]
    function = {"name": TOOL, "description": TOOL_WORDS, "parameters": SCHEMA}
    tools: Any = [{"type": "function", "function": function}]
    return stub.timed(
        lambda: client.chat.completions.create(model=OPENAI_MODEL, messages=messages, tools=tools, stream=False)
    )


def pydantic_ai_google(history: Sequence[Sample], new: Sample) -> Run:
    stub = Stub(GEMINI_ANSWER)
    return _pydantic_ai(pydantic_ai_google_model(stub), stub, [*history, new])


def pydantic_ai_openai(history: Sequence[Sample], new: Sample) -> Run:
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    stub = Stub(OPENAI_ANSWER)
    client = AsyncOpenAI(api_key="k", http_client=stub.async_client())
    model = OpenAIChatModel(OPENAI_MODEL, provider=OpenAIProvider(openai_client=client))
    return _pydantic_ai(model, stub, [*history, new])


def _pydantic_ai(model: Any, stub: Stub, samples: Sequence[Sample]) -> Run:
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.tools import ToolDefinition

    loop = asyncio.new_event_loop()
    tool = ToolDefinition(name=TOOL, description=TOOL_WORDS, parameters_json_schema=SCHEMA)
    parameters = ModelRequestParameters(function_tools=[tool])
    messages = [pydantic_ai_message(one, model.system) for one in samples]
    return stub.timed(lambda: loop.run_until_complete(model.request(messages, None, parameters)))


def langchain(history: Sequence[Sample], new: Sample) -> Run:
    """Measure langchain over gRPC, its default: the body is protobuf, taken before it goes to the channel."""
    from langchain_core.messages import SystemMessage
    from langchain_google_genai import ChatGoogleGenerativeAI

    stub = Stub({})

    class Left(Exception):
        """Ends the call after the request; there is no answer."""

    class Service:
        def generate_content(self, *, request: Any, **_: Any) -> None:
            stub.body = type(request).serialize(request)
            stub.at = time.process_time()
            raise Left

    model: Any = ChatGoogleGenerativeAI(model=GEMINI_MODEL, google_api_key="k", transport="rest")
    model.client = Service()
    bound = model.bind_tools([{"name": TOOL, "description": TOOL_WORDS, "parameters": SCHEMA}])
    messages = [SystemMessage(SYSTEM), *(langchain_message(one) for one in (*history, new))]

    def call() -> None:
        with suppress(Left):
            bound.invoke(messages)

    return stub.timed(call)


SUBJECTS: dict[str, Subject] = {
    "floor join": floor_join,
    "floor orjson": floor_orjson,
    "tertulia": tertulia,
    "tertulia openai": tertulia_openai,
    "tertulia with repair": tertulia_with_repair,
    "tertulia client": tertulia_client,
    "tertulia cold": tertulia_cold,
    "google-genai": google_genai,
    "google-genai dicts": google_genai_dicts,
    "openai": openai_sdk,
    "pydantic-ai google": pydantic_ai_google,
    "pydantic-ai openai": pydantic_ai_openai,
    "langchain-google-genai (protobuf)": langchain,
}

if __name__ == "__main__":
    main(__doc__, SUBJECTS, unit="request")
