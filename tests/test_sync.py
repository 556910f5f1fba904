"""The chat without `await`."""

import asyncio
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tertulia import Chat, Store, SyncChat, Text, Toolbox, ToolCall, ToolResult, ToolSpec, model, user
from tertulia.errors import InvalidValue, Overloaded
from tertulia.models import Finish, Gemini, Response, Scripted
from tertulia.models.base import Usage
from tertulia.run.chat_values import OpenExchange
from tertulia.sim import GeminiSim
from throwing import THROWN, Throwing


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


def test_the_text_is_streamed_and_the_usage_is_counted() -> None:
    usage = Usage(input=3, output=2)
    answers = [Response(turn=model(text), usage=usage, finish=Finish(outcome="complete")) for text in ("one two", "3")]
    with SyncChat(Chat(Scripted(*answers))) as chat:
        texts = list(chat.stream_text("Count"))
        chat.send_message("And then?")

    assert (texts, chat.usage) == (["one ", "two"], Usage(input=6, output=4))


def test_an_error_is_raised_and_the_next_message_works() -> None:
    with SyncChat(Chat(Scripted(Overloaded("busy"), "Hello."))) as chat:
        with pytest.raises(Overloaded):
            chat.send_message("Hi")
        assert chat.send_message("Hi").text == "Hello."


async def left_under_way(store: Store, said: str) -> None:
    """What a process leaves that ends before the model is asked."""
    state = await store.chats.read("alice")
    exchange = OpenExchange(run_id="r1", asked=user(said))
    await store.chats.write("alice", len(state.entries), [], exchange, edition=state.edition)


def test_a_stored_chat_is_loaded_and_resumed(tmp_path: Path) -> None:
    def opened(*lines: Any) -> Chat:
        return Chat(Scripted(*lines), store=store, name="alice")

    with Store.open(tmp_path / "s.db") as store, SyncChat(opened("Hello.")) as chat:
        chat.send_message("Hi")
        asyncio.run(left_under_way(store, "Who am I?"))
    with Store.open(tmp_path / "s.db") as store, SyncChat(opened("You are Alice.")) as chat:
        chat.load()
        before = chat.history
        answer = chat.resume()
        nothing = chat.resume()

    assert before == (user("Hi"), model("Hello.", by="scripted"))
    assert (answer and answer.text, nothing) == ("You are Alice.", None)
    assert chat.history == (*before, user("Who am I?"), model("You are Alice.", by="scripted"))


@pytest.mark.timeout(20)
@pytest.mark.parametrize("streaming", [False, True])
def test_whatever_a_model_raises_reaches_who_waits_and_the_next_message_works(streaming: bool) -> None:
    for error in THROWN:
        with SyncChat(Chat(Throwing(error, "Hello."))) as chat:
            with pytest.raises(type(error)):
                list(chat.send_message_stream("Hi")) if streaming else chat.send_message("Hi")
            assert chat.send_message("Hi").text == "Hello."
            assert chat.history == (user("Hi"), model("Hello.", by="scripted"))


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


CLOSED = "this chat was closed before the answer came"


@pytest.mark.parametrize("heeding", [True, False])
def test_who_waits_for_an_answer_when_the_chat_is_closed_is_told(heeding: bool) -> None:
    begun = threading.Event()

    async def stall() -> None:
        begun.set()
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if heeding:
                    raise

    chat = SyncChat(Chat(Scripted(ToolCall(id="a", name="stall")), tools=Toolbox([stall], grace=0.01)), grace=0.1)
    told: list[str] = []

    def send() -> None:
        try:
            chat.send_message("Go.")
        except InvalidValue as error:
            told.append(str(error))

    waiting = threading.Thread(target=send, daemon=True)
    waiting.start()
    begun.wait()
    chat.close()
    waiting.join(30)

    assert told == [CLOSED]
    assert [turn.role for turn in chat.history] == ["user", "model", "user"]


def test_who_reads_a_stream_when_the_chat_is_closed_is_told() -> None:
    chat = SyncChat(Chat(Scripted("one two three")))
    stream = chat.send_message_stream("Count")
    first = next(stream)

    chat.close()

    assert first == Text(text="one ")
    with pytest.raises(InvalidValue, match="this chat is closed"):
        next(stream)
    assert chat.get_history() == (user("Count"), model("one ", by="scripted"))


def test_a_stream_that_is_left_for_another_message_says_so() -> None:
    with SyncChat(Chat(Scripted("one two three", "Hello."))) as chat:
        stream = chat.send_message_stream("Count")
        next(stream)
        chat.send_message("Hi")

        with pytest.raises(InvalidValue, match="another message was sent"):
            next(stream)


STANDING = """
from tertulia import Chat, SyncChat
from tertulia.models import Gemini, Scripted

chat = SyncChat(Chat(Scripted("one two three")))
stream = chat.send_message_stream("Count")
next(stream)
chat.close()
print("closed")
"""


def test_closing_with_a_stream_standing_makes_no_noise() -> None:
    ended = subprocess.run([sys.executable, "-c", STANDING], capture_output=True, text=True, timeout=30, check=False)

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "closed\n", "")


def test_a_model_that_cannot_be_closed_keeps_nobody_from_leaving() -> None:
    class Stuck(Scripted):
        async def aclose(self) -> None:
            raise Overloaded("busy")

    chat = SyncChat(Chat(Stuck()))

    with pytest.raises(Overloaded):
        chat.close()
    with pytest.raises(InvalidValue, match="this chat is closed"):
        chat.send_message("Hi")


def test_a_tool_that_awaits_is_told_that_it_cannot_wait_for_its_own_chat() -> None:
    async def nested() -> str:
        return str(chat.send_message("And?"))

    with SyncChat(Chat(Scripted(ToolCall(id="a", name="nested"), "Hello."), tools=[nested])) as chat:
        chat.send_message("Go.")

    words = "a SyncChat cannot be waited for in its own thread; await its `chat` there"
    assert chat.history[2] == user(ToolResult(id="a", name="nested", value=words, failed=True))
