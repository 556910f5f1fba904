"""Tools are run, or come back as calls for the caller to answer."""

import asyncio
from typing import Any

import msgspec
import pytest

from people import NOON
from tertulia import RunContext, Settings, ToolCall, ToolResult, ToolSpec, Turn, model, user
from tertulia.chat import Chat
from tertulia.errors import InvalidValue, Overloaded
from tertulia.models import Finish, Response, Scripted


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


NUMBERS = {"a": 1, "b": 1}
BOOK = ToolSpec(name="book", description="Book it")
EMPTY = Response(turn=Turn(role="model", parts=(), model="scripted"), finish=Finish(outcome="empty", reason="STOP"))


def said(*parts: Any) -> Turn:
    return model(*parts, by="scripted")


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


PAGES = {"url": "https://a.example", "pages": ["x" * 70_000, "y" * 30_000]}
WHOLE = '{"url":"https://a.example","pages":["' + "x" * 70_000 + '","' + "y" * 30_000 + '"]}'


def shortened(text: str) -> str:
    return f"{text[:39_940]}\n(… {len(text) - 49_940:,} characters are left out here …)\n{text[-10_000:]}"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("ы" * 60_001, shortened("ы" * 60_001)),
        (PAGES, shortened(WHOLE)),
        ("x" * 50_000, "x" * 50_000),
    ],
    ids=["words", "values", "just short enough"],
)
async def test_a_long_result_is_kept_whole_and_sent_cut_now_and_later(value: Any, shown: Any) -> None:
    def read() -> Any:
        """Read the pages."""
        return value

    call = ToolCall(id="a", name="read")
    scripted = Scripted(call, "Long.", "As I said.")
    chat = Chat(scripted, tools=[read])

    await chat.send_message("Read.")
    await chat.send_message("And?")
    resumed = Scripted("As I said.")
    saved = msgspec.json.decode(msgspec.json.encode(chat.history[:4]), type=tuple[Turn, ...])
    await Chat(resumed, tools=[read], history=saved).send_message("And?")

    sent = (user("Read."), said(call), user(ToolResult(id="a", name="read", value=shown)))
    assert chat.history[2] == user(ToolResult(id="a", name="read", value=value))
    assert [prompt.turns for prompt in scripted.prompts[1:]] == [sent, (*sent, said("Long."), user("And?"))]
    assert resumed.prompts[0].turns == scripted.prompts[2].turns


async def test_results_of_the_callers_are_sent_cut_too_and_may_be_given_anew() -> None:
    call = ToolCall(id="a", name="book")
    scripted = Scripted(call, Overloaded("busy"), "Booked.")
    chat = Chat(scripted, tools=[BOOK])
    await chat.send_message("Book.")

    with pytest.raises(Overloaded):
        await chat.send_function_responses(ToolResult(id="a", name="book", value="x" * 60_000))
    await chat.send_function_responses(ToolResult(id="a", name="book", value="y" * 60_000))

    def results(letter: str) -> Turn:
        return user(ToolResult(id="a", name="book", value=shortened(letter * 60_000)))

    assert [prompt.turns[-1] for prompt in scripted.prompts[1:]] == [results("x"), results("y")]
    assert chat.history[2] == user(ToolResult(id="a", name="book", value="y" * 60_000))


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


async def test_calls_that_get_no_result_are_named_in_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    calls = [ToolCall(id="a", name="book"), ToolCall(id="b", name="book"), ToolCall(id="c", name="add", args={"a": 1})]
    chat = Chat(Scripted(calls, "Done.", calls, "Done."), tools=[BOOK, add])

    await chat.send_message("Go.")
    await chat.send_function_responses(ToolResult(id="a", name="book", value=1))
    await chat.send_message("Again.")
    await chat.send_function_responses([ToolResult(id=name, name="book", value=1) for name in "ab"])

    assert caplog.messages == ["calls that got no result: book (id b); the model is told that none was recorded"]


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


async def test_tools_that_must_be_called_need_not_be_called_again_in_an_exchange() -> None:
    scripted = Scripted(
        ToolCall(id="a", name="book"), "Done.", ToolCall(id="b", name="add", args={"a": 1, "b": 1}), "2"
    )
    chat = Chat(scripted, tools=[BOOK, add], settings=Settings(tool_choice="required"))

    await chat.send_message("Go.")
    await chat.send_function_responses(ToolResult(id="a", name="book", value="ok"))
    await chat.send_message("Add.")

    assert [prompt.settings.tool_choice for prompt in scripted.prompts] == ["any", "auto", "any", "auto"]


async def test_the_step_limit_ends_in_a_request_without_tools() -> None:
    call = ToolCall(id="a", name="add", args={"a": 1, "b": 2})
    scripted = Scripted(call, call, "Enough.")

    response = await Chat(scripted, tools=[add], steps=2).send_message("Go on.")

    assert response.text == "Enough."
    assert [prompt.settings.tool_choice for prompt in scripted.prompts] == [None, None, "none"]
    assert all(prompt.tools for prompt in scripted.prompts)


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


@pytest.mark.parametrize("results", [[], [{"name": "book"}]])
async def test_calls_are_answered_with_results_and_nothing_else(results: list[Any]) -> None:
    scripted = Scripted(ToolCall(id="a", name="book"), "Booked.")
    chat = Chat(scripted, tools=[BOOK])
    await chat.send_message("Go.")

    with pytest.raises(InvalidValue) as refused:
        await chat.send_function_responses(results)
    booked = await chat.send_function_responses(ToolResult(id="a", name="book", value=1))

    assert str(refused.value) == f"calls are answered with one ToolResult or more, not with {results}"
    assert booked.text == "Booked."


@pytest.mark.parametrize(
    "results",
    [
        [ToolResult(id="z", name="book", value=1)],
        [ToolResult(id="a", name="book", value=1), ToolResult(id="a", name="book", value=2)],
        [ToolResult(id="c", name="add", value=1)],
        [ToolResult(name="add", value=1)],
    ],
)
async def test_a_result_under_an_id_that_no_open_call_has_is_refused(results: list[ToolResult]) -> None:
    calls = [
        ToolCall(id="a", name="book"),
        ToolCall(id="b", name="book"),
        ToolCall(id="c", name="add", args={"a": 1, "b": 1}),
    ]
    chat = Chat(Scripted(calls, "Booked."), tools=[BOOK, add])
    await chat.send_message("Go.")

    with pytest.raises(InvalidValue) as refused:
        await chat.send_function_responses(results)
    await chat.send_function_responses([ToolResult(id="b", name="", value=2), ToolResult(name="book", value=1)])

    waiting = "the calls that wait are: book (id a), book (id b)"
    assert str(refused.value) == f"a result answers no call; {waiting}"
    assert chat.history == (
        user("Go."),
        said(*calls),
        user(
            ToolResult(id="a", name="book", value=1),
            ToolResult(id="b", name="book", value=2),
            ToolResult(id="c", name="add", value=2),
        ),
        said("Booked."),
    )


def cut(*calls: ToolCall) -> Response:
    return Response(turn=said(*calls), finish=Finish(outcome="cut", reason="MAX_TOKENS"))


async def test_calls_that_may_be_cut_are_not_run_and_everybody_is_told() -> None:
    ran = []

    def pay(amount: int) -> None:
        ran.append(amount)

    call = ToolCall(id="a", name="pay", args={"amount": 1})
    chat = Chat(Scripted(cut(call), "Then not."), tools=[pay])

    response = await chat.send_message("Pay 100.")
    await chat.send_message("And?")

    assert ran == []
    message = "Not run, because the call may be cut: pay."
    assert response.finish == Finish(outcome="cut", reason="MAX_TOKENS", message=message)
    words = "pay was not run: the limit of tokens was reached, and the call may be cut."
    assert chat.history == (
        user("Pay 100."),
        said(call),
        user(ToolResult(id="a", name="pay", value=words, failed=True)),
        user("And?"),
        said("Then not."),
    )


async def test_the_callers_own_calls_may_be_answered_though_the_response_was_cut() -> None:
    calls = [ToolCall(id="a", name="book"), ToolCall(id="b", name="add", args={"a": 1, "b": 1})]
    chat = Chat(Scripted(cut(*calls), "Booked."), tools=[BOOK, add])

    await chat.send_message("Go.")
    await chat.send_function_responses(ToolResult(id="a", name="book", value=1))

    words = "add was not run: the limit of tokens was reached, and the call may be cut."
    assert chat.history[2] == user(
        ToolResult(id="a", name="book", value=1), ToolResult(id="b", name="add", value=words, failed=True)
    )


async def test_an_answer_that_ends_in_a_cut_call_says_what_to_do() -> None:
    call = ToolCall(id="a", name="add", args={"a": 1})

    with pytest.raises(InvalidValue) as refused:
        await Chat(Scripted(cut(call)), tools=[add]).send_message("Add.", answer=dict[str, int])

    assert str(refused.value) == "scripted calls add, and reached the limit of tokens; raise max_tokens"


ASK = ToolSpec(name="ask_person")
PAY_AND_ASK = [ToolCall(id="1", name="pay"), ToolCall(id="2", name="ask_person")]


def pay() -> str:
    return "paid 5"


def restored(chat: Chat, scripted: Scripted) -> Chat:
    history = msgspec.json.decode(msgspec.json.encode(chat.history), type=list[Turn])
    return Chat(scripted, tools=[pay, ASK], history=history)


async def test_a_result_that_waits_for_the_callers_is_in_the_history_at_once() -> None:
    chat = Chat(Scripted(PAY_AND_ASK), tools=[pay, ASK])

    await chat.send_message("Go.")

    known = user(ToolResult(id="1", name="pay", value="paid 5"))
    assert chat.history == chat.get_history() == (user("Go."), said(*PAY_AND_ASK), known)


async def test_a_chat_restored_while_calls_wait_sends_every_result_in_one_turn() -> None:
    first = Chat(Scripted(PAY_AND_ASK), tools=[pay, ASK])
    await first.send_message("Go.")
    scripted = Scripted("Done.")

    again = restored(first, scripted)
    await again.send_function_responses([ToolResult(name="ask_person", value="yes")])

    results = user(ToolResult(id="1", name="pay", value="paid 5"), ToolResult(id="2", name="ask_person", value="yes"))
    assert scripted.prompts[0].turns == (user("Go."), said(*PAY_AND_ASK), results)
    assert again.history == again.get_history() == (*scripted.prompts[0].turns, said("Done."))


async def test_a_chat_restored_while_calls_wait_may_go_on_talking() -> None:
    first = Chat(Scripted(PAY_AND_ASK), tools=[pay, ASK])
    await first.send_message("Go.")
    scripted = Scripted("Fine.")

    await restored(first, scripted).send_message("Never mind.")

    known = user(ToolResult(id="1", name="pay", value="paid 5"))
    assert scripted.prompts[0].turns == (user("Go."), said(*PAY_AND_ASK), known, user("Never mind."))


async def test_calls_may_be_answered_one_after_the_other_when_the_model_does_not_answer() -> None:
    calls = [ToolCall(id="a", name="book"), ToolCall(id="b", name="book")]
    chat = Chat(Scripted(calls, Overloaded("busy"), EMPTY, "Booked."), tools=[BOOK])
    await chat.send_message("Go.")

    with pytest.raises(Overloaded):
        await chat.send_function_responses(ToolResult(id="b", name="book", value=2))
    await chat.send_function_responses(ToolResult(id="a", name="book", value=1))
    with pytest.raises(InvalidValue, match=r"the calls that wait are: book \(id a\), book \(id b\)"):
        await chat.send_function_responses(ToolResult(id="z", name="book", value=1))
    await chat.send_message("So?")

    results = user(ToolResult(id="a", name="book", value=1), ToolResult(id="b", name="book", value=2))
    assert chat.history == (user("Go."), said(*calls), results, user("So?"), said("Booked."))
    assert chat.get_history() == (user("Go."), said(*calls), results, said(), user("So?"), said("Booked."))


async def test_results_are_in_the_history_while_the_model_reads_them() -> None:
    class Reading(Scripted):
        async def respond(self, prompt: Any) -> Response:
            seen.append(chat.history)
            return await super().respond(prompt)

    seen: list[Any] = []
    chat = Chat(Reading(PAY_AND_ASK, ToolCall(id="3", name="pay"), "Done."), tools=[pay, ASK])

    await chat.send_message("Go.")
    await chat.send_function_responses(ToolResult(name="ask_person", value="yes"))

    both = user(ToolResult(id="1", name="pay", value="paid 5"), ToolResult(id="2", name="ask_person", value="yes"))
    begun = (user("Go."), said(*PAY_AND_ASK), both)
    again = user(ToolResult(id="3", name="pay", value="paid 5"))
    assert seen == [(), begun, (*begun, said(ToolCall(id="3", name="pay")), again)]


async def test_what_the_caller_answers_is_kept_as_json_can_hold_it() -> None:
    chat = Chat(Scripted(ToolCall(id="a", name="book"), "Booked."), tools=[BOOK])
    await chat.send_message("Go.")

    await chat.send_function_responses(ToolResult(name="book", value={True: "\udce9", None: float("nan")}))

    assert chat.history[2] == user(ToolResult(id="a", name="book", value={"True": "\ufffd", "None": None}))
    assert msgspec.json.decode(msgspec.json.encode(chat.history), type=tuple[Turn, ...]) == chat.history


async def test_a_tool_that_throws_anything_leaves_a_chat_that_goes_on() -> None:
    class Odd(BaseException):
        pass

    async def throw() -> None:
        raise Odd("very")

    calls = [ToolCall(id="1", name="pay"), ToolCall(id="2", name="throw")]
    chat = Chat(Scripted(calls, "Done."), tools=[pay, throw])

    await asyncio.create_task(chat.send_message("Go."))

    results = user(
        ToolResult(id="1", name="pay", value="paid 5"), ToolResult(id="2", name="throw", value="Odd: very", failed=True)
    )
    assert chat.history == (user("Go."), said(*calls), results, said("Done."))


@pytest.mark.parametrize("ids", [("a", "b"), (None, None)])
@pytest.mark.parametrize("rebuilt", [False, True])
async def test_results_may_be_given_again_when_their_request_failed(ids: tuple[str | None, ...], rebuilt: bool) -> None:
    calls = [ToolCall(id="a", name="book"), ToolCall(id="b", name="book"), ToolCall(id="c", name="add", args=NUMBERS)]
    scripted = Scripted(calls, Overloaded("busy"), Overloaded("busy"), "Booked.")
    chat = Chat(scripted, tools=[BOOK, add])
    results = [ToolResult(id=ids[0], name="book", value=1), ToolResult(id=ids[1], name="book", value=(2, {3}))]
    await chat.send_message("Go.")

    for _ in range(2):
        with pytest.raises(Overloaded):
            await chat.send_function_responses(results)
    if rebuilt:
        chat = Chat(scripted, tools=[BOOK, add], history=chat.history)
    booked = await chat.send_function_responses(results)

    known = [ToolResult(id="a", name="book", value=1), ToolResult(id="b", name="book", value=[2, [3]])]
    together = user(*known, ToolResult(id="c", name="add", value=2))
    assert booked.text == "Booked."
    assert chat.history == chat.get_history() == (user("Go."), said(*calls), together, said("Booked."))


@pytest.mark.parametrize(
    ("first", "again", "values"),
    [
        ([ToolResult(name="book", value=1)], [ToolResult(name="book", value=1)], [("a", 1)]),
        ([ToolResult(name="book", value=1)], [ToolResult(name="book", value=2)], [("a", 1), ("b", 2)]),
        ([ToolResult(id="b", name="book", value=1)], [ToolResult(id="b", name="book", value=2)], [("b", 2)]),
        (
            [ToolResult(id="b", name="book", value=1)],
            [ToolResult(id="b", name="book", value=1), ToolResult(id="a", name="book", value=2)],
            [("a", 2), ("b", 1)],
        ),
    ],
)
async def test_after_a_failed_request_results_are_repeated_changed_or_added(
    first: list[ToolResult], again: list[ToolResult], values: list[tuple[str, int]]
) -> None:
    calls = [ToolCall(id="a", name="book"), ToolCall(id="b", name="book")]
    chat = Chat(Scripted(calls, Overloaded("busy"), "Booked."), tools=[BOOK])
    await chat.send_message("Go.")

    with pytest.raises(Overloaded):
        await chat.send_function_responses(first)
    await chat.send_function_responses(again)

    assert chat.history[2] == user(*(ToolResult(id=name, name="book", value=value) for name, value in values))


async def test_once_the_model_has_answered_no_call_waits() -> None:
    chat = Chat(Scripted(ToolCall(id="a", name="book"), "Booked."), tools=[BOOK])
    await chat.send_message("Go.")
    await chat.send_function_responses(ToolResult(id="a", name="book", value=1))

    with pytest.raises(InvalidValue, match="the calls that wait are: none"):
        await chat.send_function_responses(ToolResult(id="a", name="book", value=1))


async def test_a_tool_is_given_the_run_it_works_for() -> None:
    seen: list[RunContext] = []

    def look(context: RunContext, n: int) -> int:
        """Look."""
        seen.append(context)
        return n

    calls = [ToolCall(id="a", name="look", args={"n": 1}), ToolCall(id="b", name="look", args={"n": 2})]
    chat = Chat(Scripted(calls, calls[:1], "Seen.", calls[:1], "Again."), tools=[look], now=lambda: NOON)

    await chat.send_message("Look.")
    await chat.send_message("And again.")

    first, _, _, other = (one.run_id for one in sorted(seen, key=lambda one: (one.run_id != seen[0].run_id, one.step)))
    assert first != other
    assert sorted(seen, key=lambda one: (one.run_id == other, one.step, one.call)) == [
        RunContext(run_id=first, step=0, call=0, now=NOON),
        RunContext(run_id=first, step=0, call=1, now=NOON),
        RunContext(run_id=first, step=1, call=0, now=NOON),
        RunContext(run_id=other, step=0, call=0, now=NOON),
    ]
