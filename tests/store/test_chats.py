"""What is forgotten is in no chat of the store either."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.known import a_fact
from people import NOON, a_message
from store.builders import files_hold
from tertulia.chat import Chat
from tertulia.errors import InvalidValue
from tertulia.messages import Author
from tertulia.models.scripted import Scripted
from tertulia.parts import ToolCall, ToolResult
from tertulia.store import Store
from tertulia.turns import ToolSpec, Turn, model, user

NAME = "alice"
SECRET = "my grandmother keeps the blue key under the third flowerpot"
SHE = Author(id="u777001", name="Xanthippe")


async def talked(store: Store, *lines: tuple[str, Any]) -> Chat:
    """A chat in which each line was said and answered."""
    chat = Chat(Scripted(*(answer for _, answer in lines)), store=store, name=NAME)
    for said, _ in lines:
        await chat.send_message(said)
    return chat


async def reread(store: Store) -> tuple[Turn, ...]:
    chat = Chat(Scripted(), store=store, name=NAME)
    await chat.load()
    return chat.history


def exchange(said: str, answer: str) -> tuple[Turn, ...]:
    return user(said), model(answer, by="scripted")


async def test_a_forgotten_person_is_in_no_exchange_of_any_chat(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "s.db") as store:
        await store.inbox.receive(a_message(SECRET, author=SHE), at=NOON)
        chat = await talked(
            store,
            ("hi", "Hello."),
            (f"She said: {SECRET}.", "Under which one?"),
            ("What did she say?", f"That {SECRET}."),
            ("bye", "Bye."),
        )

        forgotten = await store.forget(platform="telegram", author_id=SHE.id)
        kept = (*exchange("hi", "Hello."), *exchange("bye", "Bye."))

        assert forgotten.exchanges == 2
        assert (await reread(store), await store.check()) == (kept, [])
        chat.model = Scripted("Still here.")  # the chat that was open knows it as well
        await chat.send_message("there?")
        assert (await reread(store), chat.history) == ((*kept, *exchange("there?", "Still here.")),) * 2
    assert not any(files_hold(tmp_path, words) for words in ("flowerpot", SHE.id))


async def test_a_chat_under_way_does_not_bring_back_what_is_forgotten(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "s.db") as store:
        await store.inbox.receive(a_message(SECRET, author=SHE), at=NOON)
        asked = asyncio.Event()

        async def look() -> str:
            """Look."""
            asked.set()
            await store.forget(platform="telegram", author_id=SHE.id)
            return SECRET

        chat = Chat(Scripted([ToolCall(name="look", args={}, id="a")], "So."), tools=[look], store=store, name=NAME)
        with pytest.raises(InvalidValue, match="forgotten"):
            await chat.send_message(f"She said: {SECRET}.")

        assert (asked.is_set(), await reread(store), await store.runs.open()) == (True, (), [])
        chat.model = Scripted("Hello.")
        await chat.send_message("hi")
        assert await reread(store) == chat.history == exchange("hi", "Hello.")
    assert not files_hold(tmp_path, "flowerpot")


async def test_a_call_and_its_result_are_forgotten_together(store: Store) -> None:
    await store.inbox.receive(a_message(SECRET, author=SHE), at=NOON)
    sign = ToolSpec(name="sign")
    chat = Chat(Scripted([ToolCall(name="sign", id="s")], "Signed."), tools=[sign], store=store, name=NAME)
    await chat.send_message("sign it")
    await chat.send_function_responses(ToolResult(name="sign", id="s", value=SECRET))

    forgotten = await store.forget(platform="telegram", author_id=SHE.id)

    assert (forgotten.exchanges, await reread(store)) == (1, ())


WHERE = ("asked", "called", "found", "answered", "nowhere")  # her words stand in an exchange


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(WHERE), max_size=6))
async def test_of_any_chat_the_exchanges_without_her_words_are_left_whole(where: list[str]) -> None:
    def words(number: int, there: str) -> str:
        return f"{number}: {SECRET}" if where[number] == there else f"{number}"

    def look(what: str) -> str:
        """Look."""
        return words(int(what.split(":")[0]), "found")

    numbers = range(len(where))
    lines = [
        line
        for number in numbers
        for line in (
            ToolCall(id=f"c{number}", name="look", args={"what": words(number, "called")}),
            words(number, "answered"),
        )
    ]
    async with Store.open(":memory:") as store:
        await store.inbox.receive(a_message(SECRET, author=SHE), at=NOON)
        chat = Chat(Scripted(*lines), tools=[look], store=store, name=NAME)
        for number in numbers:
            await chat.send_message(words(number, "asked"))
        before = chat.history

        forgotten = await store.forget(platform="telegram", author_id=SHE.id)

        kept = [turn for number in numbers if where[number] == "nowhere" for turn in before[4 * number :][:4]]
        assert forgotten.exchanges == len(where) - where.count("nowhere")
        assert await reread(store) == tuple(kept)
        assert await store.check() == []


async def test_the_person_of_a_chat_is_forgotten_by_its_name(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "s.db") as store:
        chat = await talked(store, (SECRET, "Noted."))
        await Chat(Scripted("Hello."), store=store, name="other").send_message("hi")

        forgotten = await store.forget(platform="chat", author_id=NAME)

        assert (forgotten.exchanges, await store.chats.names(), await store.check()) == (1, ["other"], [])
        chat.model = Scripted("Hello.")
        await chat.send_message("hi")
        assert chat.history == exchange("hi", "Hello.")
    assert not files_hold(tmp_path, "flowerpot")


async def test_a_forgotten_fact_is_stated_in_no_chat(store: Store) -> None:
    await store.inbox.receive(a_message("I am allergic to peanuts", author=SHE, id="1"), at=NOON)
    fact = a_fact("Is allergic to peanuts.", about=SHE, sources=("1",))
    await store.facts.learn([fact])
    await talked(
        store,
        ("I am allergic to peanuts.", "Noted."),  # somebody else's
        ("What may Xanthippe not eat?", "Peanuts: she is allergic to them."),
        ("bye", "Bye."),
    )

    await store.facts.forget([fact.id])

    assert await reread(store) == (*exchange("I am allergic to peanuts.", "Noted."), *exchange("bye", "Bye."))
