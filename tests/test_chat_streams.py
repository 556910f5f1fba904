"""A stream gives what there is to show, is waited for while its next piece is awaited, and may be left."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

from tertulia import Prompt, Text, Thought, ToolCall, ToolResult, Turn, model, user
from tertulia.chat import Chat
from tertulia.errors import InvalidValue
from tertulia.models import Response, Scripted
from tertulia.parts import Part
from tertulia.testing import HeldModel
from throwing import THROWN, Throwing


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def said(*parts: Any) -> Turn:
    return model(*parts, by="scripted")


async def test_a_stream_gives_pieces_calls_results_and_last_the_response() -> None:
    call = ToolCall(id="a", name="add", args={"a": 1, "b": 2})
    chat = Chat(Scripted([Thought(text="hm"), call], "It is 3."), tools=[add])

    pieces = [piece async for piece in chat.send_message_stream("Add.")]

    result = ToolResult(id="a", name="add", value=3)
    assert pieces[:-1] == [Thought(text="hm"), call, result, Text(text="It "), Text(text="is "), Text(text="3.")]
    assert isinstance(pieces[-1], Response)
    assert chat.history[-1] == said("It is 3.")


class Slow(Scripted):
    """A model that lets others go first before each piece."""

    async def stream(self, prompt: Prompt) -> AsyncIterator[Part | Response]:
        async for piece in super().stream(prompt):
            await asyncio.sleep(0)
            yield piece


LEFT = "another message was sent while nobody awaited the next piece of this stream, which closed it"


async def directly(work: Coroutine[Any, Any, Any]) -> Any:
    return await work


async def in_time(work: Coroutine[Any, Any, Any]) -> Any:
    return await asyncio.wait_for(work, 60)


async def gathered(work: Coroutine[Any, Any, Any]) -> Any:
    [done] = await asyncio.gather(work)
    return done


async def in_a_task(work: Coroutine[Any, Any, Any]) -> Any:
    return await asyncio.create_task(work)


WAYS = [directly, in_time, gathered, in_a_task]


@pytest.mark.parametrize("sent", WAYS)
@pytest.mark.parametrize("read", WAYS)
@pytest.mark.parametrize("scripted", [Scripted, Slow])
async def test_a_stream_that_is_left_keeps_what_arrived_and_the_chat_goes_on(
    read: Callable[..., Any], sent: Callable[..., Any], scripted: Callable[..., Any]
) -> None:
    chat = Chat(scripted("one two three", "Hello."))

    stream = chat.send_message_stream("Count.")
    first = await read(_next(stream))
    await sent(chat.send_message("Hi"))

    assert first == Text(text="one ")
    assert chat.history == (user("Hi"), said("Hello."))
    assert chat.get_history()[:2] == (user("Count."), said("one "))
    with pytest.raises(InvalidValue, match=LEFT):
        await anext(stream)
    assert [piece async for piece in stream] == []


async def _next(stream: Any) -> Any:
    return await anext(stream)


async def test_a_stream_that_is_left_after_another_message_has_begun_to_wait_holds_nobody_up() -> None:
    chat = Chat(Slow("one two three", "Hello."))
    stream = chat.send_message_stream("Count.")
    reading = asyncio.create_task(_next(stream))
    await asyncio.sleep(0)
    sending = asyncio.create_task(chat.send_message("Hi"))

    assert await reading == Text(text="one ")
    assert (await sending).text == "Hello."
    assert chat.history == (user("Hi"), said("Hello."))


async def test_a_stream_that_was_never_read_holds_nobody_up() -> None:
    chat = Chat(Scripted("one two", "Hello."))
    standing = chat.send_message_stream("a")
    await anext(standing)
    unread = chat.send_message_stream("b")

    assert (await chat.send_message("c")).text == "Hello."
    await unread.aclose()


async def test_a_stream_whose_next_piece_is_awaited_is_waited_for() -> None:
    chat = Chat(Slow("one two three", "Hello."))

    async def read() -> list[Any]:
        return [piece async for piece in chat.send_message_stream("Count.")]

    pieces, _ = await asyncio.gather(read(), chat.send_message("Hi"))

    assert pieces[:-1] == [Text(text="one "), Text(text="two "), Text(text="three")]
    assert chat.history == (user("Count."), said("one two three"), user("Hi"), said("Hello."))


async def test_a_reader_who_is_busy_elsewhere_when_another_message_is_sent_is_told() -> None:
    chat = Chat(Slow("one two three", "Hello."))
    busy, sent = asyncio.Event(), asyncio.Event()

    async def read() -> None:
        async for _ in chat.send_message_stream("Count."):
            busy.set()
            await sent.wait()

    reading = asyncio.create_task(read())
    await busy.wait()
    await chat.send_message("Hi")
    sent.set()

    with pytest.raises(InvalidValue, match=LEFT):
        await reading
    assert chat.history == (user("Hi"), said("Hello."))


async def test_streams_and_messages_wait_for_each_other_in_order() -> None:
    chat = Chat(Slow("one two", "three four", "five", "six seven"))

    async def read(message: str) -> Any:
        return [piece async for piece in chat.send_message_stream(message)][-1]

    last = await asyncio.gather(read("1"), read("2"), chat.send_message("3"), read("4"))

    assert [response.text for response in last] == ["one two", "three four", "five", "six seven"]
    assert [turn.parts[0] for turn in chat.history if turn.role == "user"] == [Text(text=n) for n in "1234"]


async def test_a_stream_may_be_closed_while_another_message_is_sent() -> None:
    released = asyncio.Event()

    class Lingering(Scripted):
        async def stream(self, prompt: Prompt) -> AsyncIterator[Part | Response]:
            try:
                async for piece in super().stream(prompt):
                    yield piece
            finally:
                await released.wait()

    chat = Chat(Lingering("one two three", "Hello."))
    stream = chat.send_message_stream("Count.")
    await anext(stream)
    closing = asyncio.create_task(stream.aclose())
    await asyncio.sleep(0)
    sending = asyncio.create_task(chat.send_message("Hi"))
    await asyncio.sleep(0)
    released.set()

    await closing
    assert (await sending).text == "Hello."
    assert chat.history == (user("Hi"), said("Hello."))


async def test_who_reads_on_while_the_stream_is_being_closed_is_told_too() -> None:
    closing, released = asyncio.Event(), asyncio.Event()

    class Lingering(Scripted):
        async def stream(self, prompt: Prompt) -> AsyncIterator[Part | Response]:
            try:
                async for piece in super().stream(prompt):
                    yield piece
            finally:
                closing.set()
                await released.wait()

    chat = Chat(Lingering("one two three", "Hello."))
    stream = chat.send_message_stream("Count.")
    await anext(stream)
    sending = asyncio.create_task(chat.send_message("Hi"))
    await closing.wait()

    with pytest.raises(InvalidValue, match=LEFT):
        await anext(stream)
    released.set()
    assert (await sending).text == "Hello."


async def test_a_message_that_is_cancelled_while_it_waits_holds_nobody_up() -> None:
    held = HeldModel("one two", "Hello.")
    chat = Chat(held)
    stream = chat.send_message_stream("Count.")
    reading = asyncio.create_task(_next(stream))
    await held.asked.wait()
    sending = asyncio.create_task(chat.send_message("lost"))
    await asyncio.sleep(0)
    sending.cancel()
    await asyncio.wait([sending])
    held.release()

    assert await reading == Text(text="one ")
    assert (await chat.send_message("Hi")).text == "Hello."
    assert chat.history == (user("Hi"), said("Hello."))


async def test_a_stream_that_nobody_holds_any_more_holds_nobody_up() -> None:
    chat = Chat(Scripted("one two three", "Hello."))
    begun, ended = asyncio.Event(), asyncio.Event()

    async def read_a_little() -> None:
        async for _ in chat.send_message_stream("Count."):
            break
        begun.set()
        await ended.wait()

    reading = asyncio.create_task(read_a_little())
    await begun.wait()
    await chat.send_message("Hi")
    ended.set()
    await reading

    assert chat.history == (user("Hi"), said("Hello."))
    assert chat.get_history()[:2] == (user("Count."), said("one "))


async def test_pieces_without_words_are_kept_and_not_shown() -> None:
    signed = [Thought(text="", signature="dGhpbms="), Text(text="Hello."), Text(text="", signature="c2lnbmVk")]
    chat = Chat(Scripted(signed))

    pieces = [piece async for piece in chat.send_message_stream("Hi")]

    assert pieces[:-1] == [Text(text="Hello.")]
    assert chat.history == (user("Hi"), said(*signed))


@pytest.mark.parametrize("first", [(), (Text(text="Half"),)])
@pytest.mark.parametrize("streaming", [False, True])
async def test_whatever_a_model_raises_leaves_a_chat_that_goes_on(streaming: bool, first: tuple[Part, ...]) -> None:
    for error in THROWN:
        chat = Chat(Throwing(error, "Hello.", first=first))

        with pytest.raises(type(error)):
            await (all_of(chat) if streaming else chat.send_message("Hi"))

        assert (await chat.send_message("Hi")).text == "Hello."
        assert chat.history == (user("Hi"), said("Hello."))
        assert [record.valid for record in chat.records[-2:]] == [True, True]


async def all_of(chat: Chat) -> list[Part | Response]:
    return [piece async for piece in chat.send_message_stream("Hi")]
