"""The chat without `await`."""

import asyncio

import pytest

from palaver import Chat, SyncChat, Text, ToolCall, ToolResult, ToolSpec
from palaver.errors import InvalidValue, Overloaded
from palaver.models import Gemini, Response, Scripted
from palaver.sim import GeminiSim


def test_messages_streams_and_results() -> None:
    script = Scripted("Hello.", "one two", ToolCall(id="a", name="book"), "Booked.")
    with SyncChat(Chat(script, tools=[ToolSpec(name="book")])) as chat:
        hello = chat.send_message("Hi")
        pieces = list(chat.send_message_stream("Count"))
        chat.send_message("Book")
        booked = chat.send_function_responses(ToolResult(name="book", value=1))

    assert hello.text == "Hello."
    assert pieces[:-1] == [Text(text="one "), Text(text="two")]
    assert isinstance(pieces[-1], Response)
    assert booked.text == "Booked."
    assert len(chat.history) == 8
    assert chat.get_history() == chat.history


def test_an_error_is_raised_and_the_next_message_works() -> None:
    with SyncChat(Chat(Scripted(Overloaded("busy"), "Hello."))) as chat:
        with pytest.raises(Overloaded):
            chat.send_message("Hi")
        assert chat.send_message("Hi").text == "Hello."


def test_a_stream_may_be_left() -> None:
    with SyncChat(Chat(Scripted("one two three", "Hello."))) as chat:
        for _ in chat.send_message_stream("Count"):
            break
        assert chat.send_message("Hi").text == "Hello."


async def test_it_works_where_a_loop_is_running_already() -> None:
    async with GeminiSim() as sim:

        def script() -> str:
            with SyncChat(Chat(Gemini("gemini-3.8-flash", key="any", base_url=sim.url))) as chat:
                chat.send_message("Hi")
                return str(chat.send_message("Hello").text)

        assert "Hello" in await asyncio.to_thread(script)


def test_closing_twice_is_harmless() -> None:
    chat = SyncChat(Chat(Scripted()))
    chat.close()
    chat.close()

    with pytest.raises(InvalidValue, match="this chat is closed"):
        chat.send_message("Hi")


async def test_a_stream_may_be_left_where_a_loop_is_running_already() -> None:
    with SyncChat(Chat(Scripted("one two three", "Hello."))) as chat:
        stream = chat.send_message_stream("Count")
        first = next(stream)
        answered = chat.send_message("Hi")

    assert first == Text(text="one ")
    assert answered.text == "Hello."
