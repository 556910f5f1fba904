"""Measures one turn of a chat, from the message to the history with its answer, beside other libraries."""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from tertulia.chat import Chat
from tertulia.models.base import Model
from tertulia.models.gemini.encode import encode_request
from tertulia.models.scripted import Scripted

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a script, it still finds its neighbours
from bench.common import (
    ANSWER,
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
    agents_item,
    declared_tools,
    genai_client,
    genai_config,
    genai_dict,
    pydantic_ai_google_model,
    pydantic_ai_message,
    stubbed_gemini,
    turn_of,
)

C = TypeVar("C")
Send = Callable[[C], Awaitable[Sequence[Any]]]  # takes one turn of the chat, gives its history afterwards


def turn(
    new: Sample, fresh: Callable[[], C], send: Send[C], *, loop: asyncio.AbstractEventLoop, body: Callable[[C], bytes]
) -> Run:
    """Time *send* alone, from the message to the history with its answer. The chat is made before."""

    async def timed(chat: C) -> tuple[float, Sequence[Any]]:
        start = time.process_time()
        history = await send(chat)
        return time.process_time() - start, history

    def run() -> tuple[float, bytes]:
        chat = fresh()
        took, history = loop.run_until_complete(timed(chat))
        asked, answered = map(repr, history[-2:])
        assert new.text in asked, f"{asked}: the message is not in the history"
        assert ANSWER in answered, f"{answered}: the answer is not in the history"
        return took, body(chat)

    return run


# ours


def _chats(history: Sequence[Sample], model: Callable[[], Model], *, sent: int) -> Callable[[], Chat]:
    """Return a function that makes chats. The first *sent* turns have cached bytes, the others have none."""
    cached = [turn_of(one, GEMINI_MODEL) for one in history[:sent]]
    tools = declared_tools()

    def fresh() -> Chat:
        unsent = [turn_of(one, GEMINI_MODEL) for one in history[sent:]]
        return Chat(model(), system=SYSTEM, tools=tools, history=[*cached, *unsent])

    return fresh


def _sender(new: Sample) -> Send[Chat]:
    async def send(chat: Chat) -> Sequence[Any]:
        await chat.send_message(new.text)
        return chat.history

    return send


def tertulia_chat(history: Sequence[Sample], new: Sample) -> Run:
    """Measure a chat under way: the previous request had all turns but the last answer."""
    return _over_http(history, new, sent=len(history) - 1)


def tertulia_chat_cold(history: Sequence[Sample], new: Sample) -> Run:
    """Measure the first turn of a chat that was just loaded."""
    return _over_http(history, new, sent=0)


def _over_http(history: Sequence[Sample], new: Sample, *, sent: int) -> Run:
    loop, stub = asyncio.new_event_loop(), Stub(GEMINI_ANSWER)
    model = stubbed_gemini(stub, loop)
    return turn(new, _chats(history, lambda: model, sent=sent), _sender(new), loop=loop, body=lambda _: stub.body)


def tertulia_chat_scripted(history: Sequence[Sample], new: Sample) -> Run:
    """Measure `Chat` alone. There is no body, so the prompt is encoded after timing, for the check."""

    def body(chat: Chat) -> bytes:
        assert isinstance(chat.model, Scripted)
        return encode_request(chat.model.prompts[-1], model=GEMINI_MODEL)

    chats = _chats(history, lambda: Scripted(ANSWER, name=GEMINI_MODEL), sent=len(history) - 1)
    return turn(new, chats, _sender(new), loop=asyncio.new_event_loop(), body=body)


# the peers, each with its own types


def google_genai_chat(history: Sequence[Sample], new: Sample) -> Run:
    from google.genai import types

    stub = Stub(GEMINI_ANSWER)
    client, config = genai_client(stub), genai_config()
    contents = [types.Content.model_validate(genai_dict(one)) for one in history]

    async def send(chat: Any) -> Sequence[Any]:
        await chat.send_message(new.text)
        return list(chat.get_history())

    def fresh() -> Any:
        return client.aio.chats.create(model=GEMINI_MODEL, config=config, history=contents)

    return turn(new, fresh, send, loop=asyncio.new_event_loop(), body=lambda _: stub.body)


def pydantic_ai_agent(history: Sequence[Sample], new: Sample) -> Run:
    from pydantic_ai import Agent, Tool

    stub = Stub(GEMINI_ANSWER)
    model = pydantic_ai_google_model(stub)
    tool = Tool.from_schema(lambda query: query, name=TOOL, description=TOOL_WORDS, json_schema=SCHEMA)
    agent = Agent(model, instructions=SYSTEM, tools=[tool])
    messages = [pydantic_ai_message(one, model.system) for one in history]

    async def send(held: list[Any]) -> Sequence[Any]:
        result = await agent.run(new.text, message_history=held)
        return list(result.all_messages())

    return turn(new, lambda: [*messages], send, loop=asyncio.new_event_loop(), body=lambda _: stub.body)


def openai_agents(history: Sequence[Sample], new: Sample) -> Run:
    from agents import Agent, FunctionTool, OpenAIChatCompletionsModel, RunConfig, Runner
    from openai import AsyncOpenAI

    async def never(*_: Any) -> str:
        raise AssertionError("the canned answer calls no tool")

    stub = Stub(OPENAI_ANSWER)
    client = AsyncOpenAI(api_key="k", http_client=stub.async_client())
    tool = FunctionTool(TOOL, TOOL_WORDS, SCHEMA, never, strict_json_schema=False)
    model = OpenAIChatCompletionsModel(OPENAI_MODEL, client)
    agent = Agent(name="friend", instructions=SYSTEM, model=model, tools=[tool])
    untraced = RunConfig(tracing_disabled=True)
    items = [agents_item(one) for one in history]

    async def send(held: list[Any]) -> Sequence[Any]:
        result = await Runner.run(agent, [*held, {"role": "user", "content": new.text}], run_config=untraced)
        after: Sequence[Any] = result.to_input_list()
        return after

    return turn(new, lambda: [*items], send, loop=asyncio.new_event_loop(), body=lambda _: stub.body)


SUBJECTS: dict[str, Subject] = {
    "tertulia chat": tertulia_chat,
    "tertulia chat cold": tertulia_chat_cold,
    "tertulia chat scripted": tertulia_chat_scripted,
    "google-genai chat": google_genai_chat,
    "pydantic-ai agent": pydantic_ai_agent,
    "openai-agents": openai_agents,
}

if __name__ == "__main__":
    main(__doc__, SUBJECTS, unit="turn")
