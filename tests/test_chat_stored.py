import asyncio
import os
import signal
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from chat_child import CALLS, LINES, NAME, a_chat, told
from run.loop_child import toolbox
from sizes import size
from tertulia.chat import Chat
from tertulia.errors import InvalidValue, Overloaded
from tertulia.models.base import Response
from tertulia.models.scripted import Scripted
from tertulia.parts import ToolCall, ToolResult
from tertulia.run.tool_runs import UNKNOWN_OUTCOME
from tertulia.store import Store
from tertulia.toolbox.toolbox import Toolbox
from tertulia.turns import ToolSpec, Turn, model, user

HERE = Path(__file__).parent
ASKED = user("Book me a seat.")
UNCUT = (
    ASKED,
    model(*CALLS, by="scripted"),
    user(ToolResult(name="book", id="a", value={"booked": 1}), ToolResult(name="look", id="b", value="Lviv is green")),
    model("Seat 1 is booked.", by="scripted"),
)


async def test_a_chat_of_the_same_name_has_the_same_histories(store: Store) -> None:
    first = Chat(Scripted("Hello.", [], Overloaded("busy"), "Bye."), store=store, name=NAME)
    await first.send_message("hi")
    await first.send_message("hm")
    with pytest.raises(Overloaded):
        await first.send_message("well")
    await first.send_message("bye")

    second = Chat(Scripted("Again."), store=store, name=NAME)
    await second.load()

    assert (second.history, second.records) == (first.history, first.records)
    assert first.history == (user("hi"), model("Hello.", by="scripted"), user("bye"), model("Bye.", by="scripted"))
    assert await second.resume() is None
    assert await store.chats.names() == [NAME]
    assert await store.check() == []


async def test_results_that_the_caller_gives_in_another_process_answer_the_calls(store: Store) -> None:
    call, sign = ToolCall(name="sign", id="s"), ToolSpec(name="sign")
    await Chat(Scripted([call]), tools=[sign], store=store, name=NAME).send_message("sign it")

    second = Chat(Scripted("Signed."), tools=[sign], store=store, name=NAME)
    await second.send_function_responses(ToolResult(name="sign", id="s", value="done"))
    third = Chat(Scripted(), tools=[sign], store=store, name=NAME)
    await third.load()

    done = user(ToolResult(name="sign", id="s", value="done"))
    assert third.history == (
        user("sign it"),
        model(call, by="scripted"),
        done,
        model("Signed.", by="scripted"),
    )


async def test_what_is_cleared_and_what_is_removed_does_not_come_back(store: Store) -> None:
    chat = Chat(Scripted("One.", "Two."), store=store, name=NAME)
    await chat.send_message("one")
    chat.clear_history()
    await chat.send_message("two")
    again = Chat(Scripted(), store=store, name=NAME)
    await again.load()

    assert again.history == (user("two"), model("Two.", by="scripted"))
    assert (await store.chats.remove(NAME), await store.chats.remove(NAME)) == (True, False)
    assert await store.runs.open() == []
    assert await store.check() == []


async def test_a_history_that_is_given_begins_a_chat_that_is_new(store: Store) -> None:
    given = (user("before"), model("Yes.", by="scripted"))
    for _ in range(2):
        chat = Chat(Scripted("Hello."), history=given, store=store, name=NAME)
        await chat.send_message("hi")

    assert chat.history == (*given, *[user("hi"), model("Hello.", by="scripted")] * 2)


@pytest.mark.parametrize("named", [{"name": "x"}, {"store": True}])
async def test_a_store_and_a_name_go_together(store: Store, named: dict[str, Any]) -> None:
    given = {**named, **({"store": store} if "store" in named else {})}
    with pytest.raises(InvalidValue, match="a chat that is stored has a name"):
        Chat(Scripted(), **given)


class Dead(BaseException):
    """The process has ended: nothing is written any more."""


async def cut_off(store: Store, after: int) -> tuple[list[str], Counter[str]]:
    """A chat whose process ends after so many writes; what was written, and which tools ran."""
    writes: list[str] = []
    ran: Counter[str] = Counter()

    def tell(point: str) -> None:
        if len(writes) >= after:
            raise Dead
        writes.extend([] if point == "before" else [point])

    chat = a_chat(told(store, tell), toolbox(lambda name: ran.update([name])), LINES)
    with suppress(Dead, BaseExceptionGroup):
        await chat.send_message("Book me a seat.")
    return writes, ran


def not_known(turns: tuple[Turn, ...], unknown: bool) -> list[tuple[Turn, ...]]:
    """The turns as they are, and with an unknown outcome of the tool that is not repeated."""
    lost = ToolResult(name="book", id="a", value=UNKNOWN_OUTCOME.format(name="book"), failed=True)
    spoilt = (*turns[:2], user(lost, *turns[2].parts[1:]), *turns[3:])
    return [turns, spoilt] if unknown else [turns]


async def test_a_chat_cut_off_at_any_write_is_finished_by_the_next_process() -> None:
    async with Store.open(":memory:") as store:
        everything, _ = await cut_off(store, 99)
    assert everything[:3] == ["write", "begin", "add_record"]

    for after in range(len(everything) + 1):
        async with Store.open(":memory:") as store:
            writes, ran = await cut_off(store, after)
            heard = writes.count("add_record")
            chat = a_chat(store, toolbox(lambda name, ran=ran: ran.update([name])), LINES[heard:])  # type: ignore[misc]

            response = await chat.resume()

            if not writes:  # nothing was said yet
                assert (response, chat.history) == (None, ())
                continue
            assert chat.history in not_known(UNCUT, unknown="begin_tool" in writes), after
            assert response is None or (isinstance(response, Response) and response.text == "Seat 1 is booked.")
            assert ran["book"] <= 1
            later = a_chat(store, Toolbox(), [])
            await later.load()
            assert (later.history, await later.resume()) == (chat.history, None)
            assert await store.check() == []


async def test_a_message_that_is_sent_instead_ends_what_was_cut_off() -> None:
    async with Store.open(":memory:") as store:
        everything, _ = await cut_off(store, 99)
    for after in range(1, len(everything)):
        async with Store.open(":memory:") as store:
            writes, _ = await cut_off(store, after)
            chat = a_chat(store, toolbox(lambda _: None), ["Fine."])

            await chat.send_message("Never mind.")

            last = (user("Never mind."), model("Fine.", by="scripted"))
            assert chat.history[-2:] == last
            assert (chat.history[:1] == (ASKED,)) == ("add_record" in writes)
            assert chat.get_history()[0] == ASKED


async def test_a_chat_whose_process_was_killed_is_finished_by_the_next(tmp_path: Path) -> None:
    async with Store.open(":memory:") as store:
        everything, _ = await cut_off(store, 99)
    for after in range(1, len(everything) + 1, size(3, full=1)):
        path = tmp_path / f"{after}.db"
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(HERE / "chat_child.py"),
            str(path),
            env={**os.environ, "PYTHONPATH": str(HERE), "TERTULIA_KILL_AT": str(after)},
        )
        assert await process.wait() == -signal.SIGKILL
        log = path.with_suffix(".log")
        ran = Counter(log.read_text().split() if log.exists() else ())
        async with Store.open(path) as store:
            heard = everything[:after].count("add_record")
            chat = a_chat(store, toolbox(lambda name, ran=ran: ran.update([name])), LINES[heard:])  # type: ignore[misc]
            await chat.resume()

        assert chat.history in not_known(UNCUT, unknown=True), after
        assert ran["book"] <= 1
