"""A chat that is talked to, streamed, broken off, faulted, cleared and moved between models: no request is refused."""

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress
from itertools import takewhile
from typing import Any, TypeVar

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from sizes import EXAMPLES, size
from tertulia import TertuliaError, ToolCall, ToolResult, ToolSpec, Turn
from tertulia.chat import Chat
from tertulia.models import Gemini, OpenAI, Response
from tertulia.run.chat_history import Pieces
from tertulia.sim import gemini as gemini_sim
from tertulia.sim import openai as openai_sim
from tertulia.wire.repair import calls_of, pair_results, results_of

T = TypeVar("T")

GEMINI = ["gemini-3.8-flash", "gemini-3.5-flash", "gemini-2.5-flash", "gemini-2.0-flash", "gemini-4-argon"]
OPENAI = ["gpt-5.6", "compatible-1", "gemini-3.8-flash"]
GEMINI_FAULTS = [
    gemini_sim.Overloaded(),
    gemini_sim.RateLimited(retry_after=1),
    gemini_sim.Internal(),
    gemini_sim.CutStream(after=1),
    gemini_sim.ErrorFrame(after=1),
    gemini_sim.Empty(),
    gemini_sim.MaxTokens(),
    gemini_sim.ContentFilter(),
    gemini_sim.MalformedCall(),
]
OPENAI_FAULTS = [
    openai_sim.Overloaded(),
    openai_sim.RateLimited(),
    openai_sim.CutStream(after=1),
    openai_sim.ErrorFrame(after=1),
    openai_sim.Empty(),
    openai_sim.MaxTokens(),
    openai_sim.MalformedCall(),
    openai_sim.ModelRefusal(),
]


async def look(what: str) -> dict[str, str]:
    """Look at something."""
    if len(what) % 5 == 4:
        raise RuntimeError("nothing to see")
    return {"seen": what}


TOOLS: list[Any] = [look, ToolSpec(name="book", description="Book it")]


class Conversation(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.standing: Pieces | None = None
        self.run(self.start())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    async def start(self) -> None:
        self.gemini = await gemini_sim.GeminiSim(behaviour=gemini_sim.Actor(steps=2, parallel=2)).__aenter__()
        self.openai = await openai_sim.OpenAISim(behaviour=openai_sim.Actor(steps=2, parallel=2)).__aenter__()
        self.models: list[Gemini | OpenAI] = [Gemini(name, key="any", base_url=self.gemini.url) for name in GEMINI]
        self.models += [OpenAI(name, key="any", base_url=self.openai.url) for name in OPENAI]
        self.chat = Chat(self.models[0], tools=TOOLS, steps=3)

    def teardown(self) -> None:
        self.run(self.stop())
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()

    async def stop(self) -> None:
        if self.standing is not None:
            await self.standing.aclose()
        for model in self.models:
            await model.aclose()
        await self.gemini.__aexit__()
        await self.openai.__aexit__()

    @initialize(index=st.integers(0, len(GEMINI) + len(OPENAI) - 1))
    def begin_with(self, index: int) -> None:
        self.chat.model = self.models[index]

    @rule(index=st.integers(0, len(GEMINI) + len(OPENAI) - 1))
    def switch(self, index: int) -> None:
        self.chat.model = self.models[index]

    @rule(text=st.sampled_from(["hi", "look again", "", "Привіт"]))
    def send(self, text: str) -> None:
        self.run(self.tried(self.chat.send_message(text)))

    @rule(pieces=st.integers(0, 12))
    def stream(self, pieces: int) -> None:
        """Stream an answer, and perhaps leave before its end."""

        async def partly() -> None:
            stream = self.chat.send_message_stream("tell me")
            for _ in range(pieces):
                if isinstance(await anext(stream, None), Response):
                    break
            await stream.aclose()

        self.run(self.tried(partly()))

    @rule(pieces=st.integers(1, 6))
    def leave(self, pieces: int) -> None:
        """Read a little of a stream, and hold on to it."""

        async def partly() -> None:
            self.standing = self.chat.send_message_stream("tell me")
            for _ in range(pieces):
                await anext(self.standing, None)

        self.run(self.tried(partly()))

    @rule(ticks=st.integers(0, 80))
    def cancel(self, ticks: int) -> None:
        async def cancelled() -> None:
            task = asyncio.create_task(self.chat.send_message("wait"))
            for _ in range(ticks):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])

        self.run(cancelled())

    def waiting_calls(self) -> list[ToolCall]:
        """The calls at the end of what is sent that have no result, or that the caller may answer anew."""
        results = [
            *takewhile(lambda turn: all(isinstance(part, ToolResult) for part in turn.parts), self.chat.history[::-1])
        ]
        before = self.chat.history[: len(self.chat.history) - len(results)]
        calls = calls_of(turn for turn in before[-1:] if turn.role == "model")
        known = pair_results(calls, results_of(results[::-1]))
        return [call for call, result in zip(calls, known, strict=True) if result is None or call.name == "book"]

    @rule(with_ids=st.booleans())
    def answer_and_talk(self, with_ids: bool) -> None:
        """Answer the calls that wait in a message that says something too."""
        waiting = self.waiting_calls()
        results = [ToolResult(id=call.id if with_ids else None, name=call.name, value=5) for call in waiting]
        self.run(self.tried(self.chat.send_message([*results, "and?"])))

    @rule(shuffle=st.randoms(use_true_random=False), with_ids=st.booleans(), all_of_them=st.booleans())
    def pair_results(self, shuffle: Any, with_ids: bool, all_of_them: bool) -> None:
        """Answer the calls that wait, in any order, with ids or without, all or all but one."""
        waiting = self.waiting_calls()
        results = [ToolResult(id=call.id if with_ids else None, name=call.name, value=5) for call in waiting]
        shuffle.shuffle(results)
        if results:
            self.run(self.tried(self.chat.send_function_responses(results if all_of_them else results[:1])))

    @rule(fault=st.sampled_from(GEMINI_FAULTS), other=st.sampled_from(OPENAI_FAULTS))
    def fault(self, fault: Any, other: Any) -> None:
        self.gemini.fail(fault)
        self.openai.fail(other)

    @rule()
    def clear(self) -> None:
        self.chat.clear_history()

    @rule()
    def rebuild(self) -> None:
        """Save the history, and go on with a chat made from it."""
        saved = msgspec.json.encode(self.chat.history)
        self.chat = Chat(self.chat.model, tools=TOOLS, steps=3, history=msgspec.json.decode(saved, type=list[Turn]))

    async def tried(self, work: Coroutine[Any, Any, Any]) -> None:
        with suppress(TertuliaError):
            await work

    @invariant()
    def no_request_was_refused(self) -> None:
        received: list[Any] = [*self.gemini.requests, *self.openai.requests]
        assert [(request.rule, request.body) for request in received if request.status == 400] == []


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Leave the warnings out: the tool fails on purpose."""
    caplog.set_level(logging.ERROR, logger="tertulia.toolbox.toolbox")


Conversation.TestCase.settings = settings(
    max_examples=size(15, full=max(25, EXAMPLES // 100)), stateful_step_count=12, deadline=None
)
TestConversation = pytest.mark.torture(Conversation.TestCase)
