"""A chat keeps two histories, runs tools, and goes on after whatever went wrong."""

import asyncio
from typing import Any

import msgspec
import pydantic
import pytest

from palaver import Media, Settings, Text, Thought, ToolCall, ToolResult, ToolSpec, Turn, model, user
from palaver.chat import Chat
from palaver.errors import AnswerUnfit, InvalidValue, Overloaded
from palaver.models import Finish, Response, Scripted


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


BOOK = ToolSpec(name="book", description="Book it")
EMPTY = Response(turn=Turn(role="model", parts=(), model="scripted"), finish=Finish(outcome="empty", reason="STOP"))


def said(*parts: Any) -> Turn:
    return model(*parts, by="scripted")


async def test_an_exchange_enters_both_histories() -> None:
    chat = Chat(Scripted("Hello."))

    response = await chat.send_message("Hi")

    assert (response.text, response.valid) == ("Hello.", True)
    assert chat.history == chat.get_history() == (user("Hi"), said("Hello."))


async def test_what_is_sent_is_the_curated_history_and_the_message() -> None:
    scripted = Scripted("one", "two")
    chat = Chat(scripted, system="Be brief.", settings=Settings(temperature=0.5))

    await chat.send_message("1")
    await chat.send_message([Text(text="2"), Text(text="", signature="sig_abc123")])

    assert scripted.prompts[1].instruction == "Be brief."
    assert scripted.prompts[1].settings == Settings(temperature=0.5)
    assert scripted.prompts[1].turns == (
        user("1"),
        said("one"),
        user("2", Text(text="", signature="sig_abc123")),
    )


async def test_an_invalid_exchange_stays_out_of_the_curated_history_as_a_whole() -> None:
    chat = Chat(Scripted(EMPTY, "Hello."))

    response = await chat.send_message("Hi")
    await chat.send_message("Hi again")

    assert not response.valid
    assert chat.get_history() == (user("Hi"), said(), user("Hi again"), said("Hello."))
    assert chat.get_history(curated=True) == (user("Hi again"), said("Hello."))


async def test_a_failed_call_raises_and_the_next_message_works() -> None:
    chat = Chat(Scripted(Overloaded("busy"), "Hello."))

    with pytest.raises(Overloaded):
        await chat.send_message("Hi")
    await chat.send_message("Hi again")

    assert chat.history == (user("Hi again"), said("Hello."))
    assert chat.get_history()[0] == user("Hi")


async def test_functions_are_run_and_their_results_go_back_in_one_turn() -> None:
    calls = [ToolCall(id="a", name="add", args={"a": 1, "b": 2}), ToolCall(id="b", name="add", args={"a": 3, "b": 4})]
    chat = Chat(Scripted(calls, "3 and 7."), tools=[add])

    response = await chat.send_message("Add.")

    assert response.text == "3 and 7."
    assert chat.history == (
        user("Add."),
        said(*calls),
        user(ToolResult(id="a", name="add", value=3), ToolResult(id="b", name="add", value=7)),
        said("3 and 7."),
    )


async def test_when_a_step_fails_after_tool_results_the_completed_steps_stay() -> None:
    call = ToolCall(id="a", name="add", args={"a": 1, "b": 2})
    chat = Chat(Scripted(call, Overloaded("busy"), "It is 3."), tools=[add])

    with pytest.raises(Overloaded):
        await chat.send_message("Add.")
    response = await chat.send_message("And?")

    assert response.text == "It is 3."
    assert chat.history == (
        user("Add."),
        said(call),
        user(ToolResult(id="a", name="add", value=3)),
        user("And?"),
        said("It is 3."),
    )


async def test_an_invalid_response_after_tool_results_is_left_out_alone() -> None:
    call = ToolCall(id="a", name="add", args={"a": 1, "b": 2})
    chat = Chat(Scripted(call, EMPTY), tools=[add])

    await chat.send_message("Add.")

    assert chat.history == (user("Add."), said(call), user(ToolResult(id="a", name="add", value=3)))


async def test_bare_declarations_come_back_as_calls_for_the_caller_to_answer() -> None:
    call = ToolCall(id="a", name="book", args={"seat": 4})
    chat = Chat(Scripted(call, "Booked."), tools=[BOOK])

    response = await chat.send_message("Book it.")
    answered = await chat.send_function_responses([ToolResult(id="a", name="book", value={"ok": True})])

    assert response.function_calls == (call,)
    assert answered.text == "Booked."
    assert chat.history[2] == user(ToolResult(id="a", name="book", value={"ok": True}))


async def test_results_without_ids_are_matched_by_name_and_order() -> None:
    calls = [ToolCall(id="a", name="book"), ToolCall(id="b", name="book"), ToolCall(id="c", name="pay")]
    chat = Chat(Scripted(calls, "Done."), tools=[BOOK, ToolSpec(name="pay")])

    await chat.send_message("Go.")
    await chat.send_function_responses(
        [ToolResult(name="pay", value=3), ToolResult(name="book", value=1), ToolResult(name="book", value=2)]
    )

    assert chat.history[2] == user(
        ToolResult(id="a", name="book", value=1),
        ToolResult(id="b", name="book", value=2),
        ToolResult(id="c", name="pay", value=3),
    )


async def test_a_single_result_may_be_given_alone() -> None:
    chat = Chat(Scripted(ToolCall(id="a", name="book"), "Done."), tools=[BOOK])

    await chat.send_message("Go.")

    assert (await chat.send_function_responses(ToolResult(name="book", value=1))).text == "Done."


async def test_a_result_that_answers_no_call_is_refused() -> None:
    chat = Chat(Scripted("Hello."), tools=[BOOK])
    await chat.send_message("Hi")

    with pytest.raises(InvalidValue, match="a result answers no call; the calls that wait are: none"):
        await chat.send_function_responses(ToolResult(name="book"))


async def test_functions_run_beside_calls_that_are_the_callers() -> None:
    calls = [ToolCall(id="a", name="book"), ToolCall(id="b", name="add", args={"a": 1, "b": 1})]
    chat = Chat(Scripted(calls, "Done."), tools=[BOOK, add])

    await chat.send_message("Go.")
    await chat.send_function_responses(ToolResult(id="a", name="book", value="ok"))

    assert chat.history[2] == user(ToolResult(id="a", name="book", value="ok"), ToolResult(id="b", name="add", value=2))


async def test_the_step_limit_ends_in_a_request_without_tools() -> None:
    call = ToolCall(id="a", name="add", args={"a": 1, "b": 2})
    scripted = Scripted(call, call, "Enough.")

    response = await Chat(scripted, tools=[add], steps=2).send_message("Go on.")

    assert response.text == "Enough."
    assert [bool(prompt.tools) for prompt in scripted.prompts] == [True, True, False]


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


async def test_a_cancelled_message_leaves_the_chat_usable() -> None:
    started = asyncio.Event()

    async def stall() -> None:
        """Never ends."""
        started.set()
        await asyncio.Event().wait()

    chat = Chat(Scripted(ToolCall(id="a", name="stall"), "Hello."), tools=[stall])
    task = asyncio.create_task(chat.send_message("Go."))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert (await chat.send_message("Hi")).text == "Hello."
    assert chat.history[:2] == (user("Go."), said(ToolCall(id="a", name="stall")))


async def test_two_messages_at_once_are_answered_one_after_the_other() -> None:
    chat = Chat(Scripted("one", "two"))

    await asyncio.gather(chat.send_message("1"), chat.send_message("2"))

    assert chat.history == (user("1"), said("one"), user("2"), said("two"))


class City(msgspec.Struct):
    name: str
    people: int


class Town(pydantic.BaseModel):
    name: str
    people: int


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (City, City("Kyiv", 3)),
        (Town, Town(name="Kyiv", people=3)),
        (
            {"type": "object", "required": ["name"], "properties": {"people": {"type": "integer"}}},
            {"name": "Kyiv", "people": 3},
        ),
        (dict[str, Any], {"name": "Kyiv", "people": 3}),
    ],
)
async def test_an_answer_of_a_type_comes_back_as_that_type(wanted: Any, expected: Any) -> None:
    scripted = Scripted('{"name": "Kyiv", "people": 3}')

    answer = await Chat(scripted).send_message("Which city?", answer=wanted)

    assert answer == expected
    assert scripted.prompts[0].settings.answer is not None


async def test_an_answer_that_does_not_fit_is_asked_for_once_more() -> None:
    scripted = Scripted('{"name": "Kyiv"}', '```json\n{"name": "Kyiv", "people": 3}\n```')

    answer = await Chat(scripted).send_message("Which city?", answer=City)

    assert answer == City("Kyiv", 3)
    assert "missing required field `people`" in scripted.prompts[1].turns[-1].parts[0].text  # type: ignore[union-attr]


async def test_an_answer_that_does_not_fit_twice_is_an_error() -> None:
    with pytest.raises(AnswerUnfit, match="scripted gave no answer that fits, twice"):
        await Chat(Scripted("no", "no")).send_message("Which city?", answer=City)


async def test_a_history_can_be_given_added_to_and_cleared() -> None:
    chat = Chat(Scripted("Hello."), history=[user("before"), model("yes")])
    chat.add_to_history(user("Manual entry"))

    given = chat.history
    chat.clear_history()

    assert given == (user("before"), model("yes"), user("Manual entry"))
    assert chat.history == chat.get_history() == ()


async def test_a_chat_rebuilt_from_its_saved_history_goes_on() -> None:
    first = Chat(Scripted([Text(text="Hello.", signature="c2ln+/-_=")]))
    await first.send_message(["Look", Media(media_kind="photo", unique_id="u", mime="image/png", data=b"\x00\xff")])
    saved = msgspec.json.encode(first.history)

    again = Chat(Scripted("Still here."), history=msgspec.json.decode(saved, type=list[Turn]))
    await again.send_message("And now?")

    assert again.history == (*first.history, user("And now?"), said("Still here."))


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


async def test_what_is_no_part_is_refused_and_spoils_nothing() -> None:
    calls = [ToolCall(id="a", name="book"), ToolCall(id="b", name="add", args={"a": 1, "b": 1})]
    chat = Chat(Scripted(calls, "Done."), tools=[BOOK, add])
    await chat.send_message("Go.")

    with pytest.raises(InvalidValue, match="a turn is made of texts and parts, not of 3"):
        await chat.send_message([3])  # type: ignore[list-item]
    await chat.send_function_responses(ToolResult(id="a", name="book", value="ok"))

    assert chat.history[2] == user(ToolResult(id="a", name="book", value="ok"), ToolResult(id="b", name="add", value=2))


async def test_of_a_failed_message_only_the_results_it_carried_are_sent_again() -> None:
    calls = [ToolCall(id="a", name="book"), ToolCall(id="b", name="add", args={"a": 1, "b": 1})]
    chat = Chat(Scripted(calls, Overloaded("busy")), tools=[BOOK, add])
    await chat.send_message("Go.")

    with pytest.raises(Overloaded):
        await chat.send_message("Never mind.")

    assert chat.history[2:] == (user(ToolResult(id="b", name="add", value=2)),)


@pytest.mark.parametrize("schema", [{"type": "nope"}, {"pattern": "("}])
async def test_a_schema_that_is_none_is_said_before_anything_is_asked(schema: dict[str, Any]) -> None:
    scripted = Scripted("x")

    with pytest.raises(InvalidValue, match="the schema of the answer is not one"):
        await Chat(scripted).send_message("Hi", answer=schema)

    assert scripted.prompts == []
