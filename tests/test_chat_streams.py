"""A stream gives what there is to show, may be left, and is waited for while somebody reads it."""

import asyncio
from typing import Any

from palaver import Text, Thought, ToolCall, ToolResult, Turn, model, user
from palaver.chat import Chat
from palaver.models import Response, Scripted


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


async def test_a_stream_that_is_left_keeps_what_arrived_and_the_chat_goes_on() -> None:
    chat = Chat(Scripted("one two three", "Hello."))

    stream = chat.send_message_stream("Count.")
    first = await anext(stream)
    await chat.send_message("Hi")

    assert first == Text(text="one ")
    assert chat.history == (user("Hi"), said("Hello."))
    assert chat.get_history()[:2] == (user("Count."), said("one "))
    assert [piece async for piece in stream] == []


async def test_a_stream_that_was_never_read_holds_nobody_up() -> None:
    chat = Chat(Scripted("one two", "Hello."))
    standing = chat.send_message_stream("a")
    await anext(standing)
    unread = chat.send_message_stream("b")

    assert (await chat.send_message("c")).text == "Hello."
    await unread.aclose()


async def test_a_stream_that_another_task_reads_is_waited_for() -> None:
    chat = Chat(Scripted("one two three", "Hello."))
    begun = asyncio.Event()

    async def read_slowly() -> list[Any]:
        pieces = []
        async for piece in chat.send_message_stream("Count."):
            pieces.append(piece)
            begun.set()
            await asyncio.sleep(0)
        return pieces

    reading = asyncio.create_task(read_slowly())
    await begun.wait()
    await chat.send_message("Hi")

    assert isinstance((await reading)[-1], Response)
    assert chat.history == (user("Count."), said("one two three"), user("Hi"), said("Hello."))


async def test_a_stream_read_with_a_limit_of_time_is_waited_for() -> None:
    chat = Chat(Scripted("one two three", "Hello."))
    begun = asyncio.Event()

    async def read_in_time() -> list[Any]:
        pieces: list[Any] = []
        stream = chat.send_message_stream("Count.")
        while not pieces or not isinstance(pieces[-1], Response):
            pieces.append(await asyncio.wait_for(anext(stream), 60))
            begun.set()
            await asyncio.sleep(0)
        return pieces

    reading = asyncio.create_task(read_in_time())
    await begun.wait()
    await chat.send_message("Hi")

    assert (await reading)[:-1] == [Text(text="one "), Text(text="two "), Text(text="three")]
    assert chat.history == (user("Count."), said("one two three"), user("Hi"), said("Hello."))


async def test_who_read_a_stream_with_a_limit_of_time_may_leave_it_too() -> None:
    chat = Chat(Scripted("one two three", "Hello."))

    stream = chat.send_message_stream("Count.")
    first = await asyncio.wait_for(anext(stream), 60)
    await chat.send_message("Hi")

    assert first == Text(text="one ")
    assert chat.history == (user("Hi"), said("Hello."))
    assert [piece async for piece in stream] == []


async def test_a_stream_that_one_task_asks_for_and_another_reads_is_the_readers() -> None:
    chat = Chat(Scripted("one two three", "Hello."))
    begun = asyncio.Event()

    async def read(stream: Any) -> list[Any]:
        pieces = []
        async for piece in stream:
            pieces.append(piece)
            begun.set()
            await asyncio.sleep(0)
        return pieces

    reading = asyncio.create_task(read(chat.send_message_stream("Count.")))
    await begun.wait()
    await chat.send_message("Hi")

    assert (await reading)[:-1] == [Text(text="one "), Text(text="two "), Text(text="three")]
    assert chat.history == (user("Count."), said("one two three"), user("Hi"), said("Hello."))


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
