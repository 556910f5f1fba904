"""A message that is cancelled among its tools: what is known stays, and the next message is accepted."""

import asyncio
import threading
import types
from collections.abc import Callable, Coroutine, Generator, Sequence
from contextlib import AsyncExitStack
from functools import partial
from itertools import count
from typing import Any, TypeVar

import pytest

from tertulia import Text, ToolCall, ToolResult, ToolSpec, Turn, model, user
from tertulia.chat import Chat
from tertulia.models import Gemini, OpenAI, Response, Scripted
from tertulia.sim import GeminiSim, OpenAISim
from tertulia.sim.behaviours import Actor
from tertulia.toolbox.run_context import RunContext
from tertulia.toolbox.toolbox import Toolbox

T = TypeVar("T")

STOPPED = "stall was stopped before it finished; what it has done is not known."
ONE, TWO, THREE = (ToolCall(id="a", name="look"), ToolCall(id="b", name="stall"), ToolCall(id="c", name="look"))


class Each(Toolbox):
    """A toolbox that runs every call by itself, as one that measures them does."""

    async def run(self, calls: Sequence[ToolCall], context: RunContext | None = None) -> list[ToolResult]:
        results = await asyncio.gather(*(super(Each, self).run([call], context) for call in calls))
        return [result for [result] in results]


def said(*parts: Any) -> Turn:
    return model(*parts, by="scripted")


class Stalling:
    """Tools of which one finishes and one does not, and when both are that far."""

    def __init__(self) -> None:
        self.reached = asyncio.Barrier(2)

    async def look(self) -> str:
        return "seen"

    async def stall(self) -> None:
        await self.reached.wait()
        await asyncio.Event().wait()


async def cancelled(chat: Chat, stalling: Stalling) -> None:
    task = asyncio.create_task(chat.send_message("Go."))
    await stalling.reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("toolbox", [Toolbox, Each])
async def test_results_that_are_known_stay_and_the_model_sees_them(toolbox: Callable[..., Toolbox]) -> None:
    stalling = Stalling()
    scripted = Scripted([ONE, TWO, THREE], "Hello.")
    chat = Chat(scripted, tools=toolbox([stalling.look, stalling.stall]))

    await cancelled(chat, stalling)
    await chat.send_message("Hi")

    results = user(
        ToolResult(id="a", name="look", value="seen"),
        ToolResult(id="b", name="stall", value=STOPPED, failed=True),
        ToolResult(id="c", name="look", value="seen"),
    )
    assert scripted.prompts[1].turns == (user("Go."), said(ONE, TWO, THREE), results, user("Hi"))
    assert chat.history == chat.get_history() == (*scripted.prompts[1].turns, said("Hello."))


async def test_calls_that_are_the_callers_can_be_answered_after_all() -> None:
    stalling = Stalling()
    calls = (ToolCall(id="z", name="book"), ONE, TWO)
    chat = Chat(Scripted(calls, "Done."), tools=[stalling.look, stalling.stall, ToolSpec(name="book")])

    await cancelled(chat, stalling)
    await chat.send_function_responses(ToolResult(name="book", value="ok"))

    assert chat.history == (
        user("Go."),
        said(*calls),
        user(
            ToolResult(id="z", name="book", value="ok"),
            ToolResult(id="a", name="look", value="seen"),
            ToolResult(id="b", name="stall", value=STOPPED, failed=True),
        ),
        said("Done."),
    )


async def test_a_tool_that_fails_because_it_is_stopped_is_answered_as_stopped() -> None:
    stalling = Stalling()

    async def stall() -> None:
        try:
            await stalling.stall()
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None

    chat = Chat(Scripted(TWO), tools=[stall])
    await cancelled(chat, stalling)

    assert chat.history == (user("Go."), said(TWO), user(ToolResult(id="b", name="stall", value=STOPPED, failed=True)))


async def test_a_tool_in_a_thread_is_given_up_at_once() -> None:
    loop = asyncio.get_running_loop()
    begun, release = asyncio.Event(), threading.Event()

    def stall() -> None:
        loop.call_soon_threadsafe(begun.set)
        release.wait()

    chat = Chat(Scripted(TWO, "Hello."), tools=[stall])
    task = asyncio.create_task(chat.send_message("Go."))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    release.set()

    assert chat.history == (user("Go."), said(TWO), user(ToolResult(id="b", name="stall", value=STOPPED, failed=True)))


async def test_a_limit_of_time_around_a_message_is_still_one() -> None:
    stalling = Stalling()
    chat = Chat(Scripted(TWO), tools=[stalling.stall])

    async def limited() -> None:
        async with asyncio.timeout(None) as limit:
            asyncio.get_running_loop().create_task(expired(limit))
            await chat.send_message("Go.")

    async def expired(limit: asyncio.Timeout) -> None:
        await stalling.reached.wait()
        limit.reschedule(0)

    with pytest.raises(TimeoutError):
        await limited()

    assert chat.history[2:] == (user(ToolResult(id="b", name="stall", value=STOPPED, failed=True)),)


@types.coroutine
def cancelled_at(work: Coroutine[Any, Any, T], point: int) -> Generator[Any, Any, T]:
    """*work*, whose task is cancelled as it comes to the await of that number."""
    step: Callable[[], Any] = partial(work.send, None)
    for number in count():
        try:
            awaited = step()
        except StopIteration as end:
            result: T = end.value
            return result
        if number == point:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
        try:
            yield awaited
            step = partial(work.send, None)
        except BaseException as error:  # noqa: BLE001 (handed on to the work)
            step = partial(work.throw, error)
    raise AssertionError


async def whole(chat: Chat) -> Any:
    return await chat.send_message("go")


async def streamed(chat: Chat) -> Any:
    return [piece async for piece in chat.send_message_stream("go")][-1]


@pytest.mark.parametrize("send", [whole, streamed])
@pytest.mark.parametrize("name", ["gemini-3.8-flash", "gpt-5.6"])
async def test_wherever_a_message_is_cancelled_the_next_is_accepted(name: str, send: Callable[[Chat], Any]) -> None:
    finished: list[str] = []

    async def look(what: str) -> dict[str, str]:
        """Look at something, at once or after a while."""
        for _ in range(len(what) % 4):
            await asyncio.sleep(0)
        finished.append(f"seen {what}")
        return {"seen": finished[-1]}

    def count_letters(what: str) -> int:
        """Count the letters."""
        return len(what)

    async with AsyncExitStack() as opened:
        gemini = await opened.enter_async_context(GeminiSim(behaviour=Actor(steps=2, parallel=2)))
        openai = await opened.enter_async_context(OpenAISim(behaviour=Actor(steps=2, parallel=2)))
        real: Gemini | OpenAI = (
            OpenAI(name, key="any", base_url=openai.url)
            if name.startswith("gpt")
            else Gemini(name, key="any", base_url=gemini.url)
        )
        await opened.enter_async_context(real)
        for point in count():
            finished.clear()
            chat = Chat(real, tools=[look, count_letters])
            task = asyncio.create_task(_done(cancelled_at(send(chat), point)))
            await asyncio.wait([task])
            results = [part for turn in chat.history for part in turn.parts if isinstance(part, ToolResult)]
            known = [one.value["seen"] for one in results if one.name == "look" and not one.failed]
            assert sorted(known) == sorted(finished)
            if not task.cancelled():
                break
            following = await chat.send_message("go on")
            assert following.valid
            received: list[Any] = [*gemini.requests, *openai.requests]
            assert [(request.rule, request.body) for request in received if request.status == 400] == []

    assert isinstance(task.result(), Response)
    assert point > 5
    assert any(isinstance(part, Text) for part in task.result().parts)


async def _done(work: Any) -> Any:
    return await work
