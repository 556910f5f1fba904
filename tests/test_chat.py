"""A chat keeps two histories, and goes on after whatever went wrong."""

import asyncio
from typing import Any, cast

import msgspec
import pytest

from tertulia import Media, Prompt, Settings, Store, Text, ToolCall, Turn, model, user
from tertulia.chat import Chat
from tertulia.errors import InvalidValue, Overloaded
from tertulia.models import Finish, Response, Scripted
from tertulia.models.calls import note_request
from tertulia.sim import GeminiSim

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


class Unhashable(Scripted):
    """A model whose requests have a body that cannot be hashed."""

    async def respond(self, prompt: Prompt) -> Response:
        note_request(cast("bytes", "a text"))
        return await super().respond(prompt)


async def test_requests_are_hashed_only_where_a_store_keeps_the_hash() -> None:
    response = await Chat(Unhashable("Hello.")).send_message("Hi")

    async with Store.open(":memory:") as store:
        with pytest.raises(TypeError, match="must be encoded before hashing"):
            await Chat(Unhashable("Hello."), store=store, name="alice").send_message("Hi")
    assert response.text == "Hello."


async def test_a_failed_call_raises_and_the_next_message_works() -> None:
    chat = Chat(Scripted(Overloaded("busy"), "Hello."))

    with pytest.raises(Overloaded):
        await chat.send_message("Hi")
    await chat.send_message("Hi again")

    assert chat.history == (user("Hi again"), said("Hello."))
    assert chat.get_history()[0] == user("Hi")


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


@pytest.mark.parametrize("streaming", [False, True])
async def test_what_a_tool_clears_is_forgotten_with_the_exchange_it_runs_in(streaming: bool) -> None:
    def forget() -> str:
        chat.clear_history()
        chat.add_to_history(user("Only this."))
        return "forgotten"

    scripted = Scripted("Hello.", ToolCall(id="a", name="forget"), "Done.", "Who are you?")
    chat = Chat(scripted, tools=[forget])
    await chat.send_message("Hi")

    if streaming:
        last = [piece async for piece in chat.send_message_stream("Forget me.")][-1]
    else:
        last = await chat.send_message("Forget me.")
    await chat.send_message("It is me.")

    assert isinstance(last, Response)
    assert last.text == "Done."
    assert chat.history == (user("Only this."), user("It is me."), said("Who are you?"))
    assert chat.get_history() == chat.history


@pytest.mark.parametrize("message", [None, 5, b"hi", {}, []])
async def test_what_is_no_message_is_refused(message: Any) -> None:
    with pytest.raises(InvalidValue, match="a message is text, a part, or a list of both, not "):
        await Chat(Scripted("x")).send_message(message)


async def test_what_json_cannot_hold_is_kept_and_sent_as_it_can() -> None:
    scripted = Scripted("Hello.", Overloaded("busy"), "c\udc00d")
    chat = Chat(scripted, history=[user("x\ud800")])
    chat.add_to_history(model(ToolCall(name="f", args={"n": float("nan"), "s": "\udfff"})))

    await chat.send_message("a\ud800b")
    with pytest.raises(Overloaded):
        await chat.send_message([Text(text="\ud800"), Media(media_kind="photo", unique_id="\ud800")])
    await chat.send_message("\ud83d\ude00")

    given = (user("x\ufffd"), model(ToolCall(name="f", args={"n": None, "s": "\ufffd"})))
    assert scripted.prompts[0].turns == (*given, user("a\ufffdb"))
    assert chat.history == (*given, user("a\ufffdb"), said("Hello."), user("\U0001f600"), said("c\ufffdd"))
    assert chat.get_history()[4] == user("\ufffd", Media(media_kind="photo", unique_id="\ufffd"))
    for turns in (chat.history, chat.get_history()):
        assert msgspec.json.decode(msgspec.json.encode(turns), type=tuple[Turn, ...]) == turns


async def test_a_part_that_is_none_is_refused_and_spoils_nothing() -> None:
    chat = Chat(Scripted("Hello."))

    with pytest.raises(InvalidValue, match="this Turn could not be read again from JSON: Expected `str`, got `null`"):
        await chat.send_message(Text(text=None))  # type: ignore[arg-type]
    with pytest.raises(InvalidValue):
        chat.add_to_history(Turn(role="system", parts=()))  # type: ignore[arg-type]
    await chat.send_message("Hi")

    assert chat.history == chat.get_history() == (user("Hi"), said("Hello."))


@pytest.mark.parametrize(
    ("history", "shown"),
    [
        (["x"], "'x'"),
        ([5], "5"),
        ([user("hi"), None], "None"),
        ("hi", "'h'"),
        (5, "5"),
        ([Text(text="hi")], "Text(text='hi', signature=None, raw=None)"),
    ],
)
async def test_a_history_is_made_of_turns(history: Any, shown: str) -> None:
    why = (
        f"a history is made of Turn values, not of {shown}; msgspec.json.decode(data, type=list[Turn]) reads them back"
    )

    with pytest.raises(InvalidValue) as refused:
        Chat(Scripted("Hello."), history=history)

    assert str(refused.value) == why


async def test_what_is_no_turn_is_not_added_and_spoils_nothing() -> None:
    chat = Chat(Scripted("Hello."))
    spoiled: list[Any] = [{"role": "user", "parts": []}, "x", [user("hi")], Turn(role="user", parts=("x",))]  # type: ignore[arg-type]

    for one in spoiled:
        with pytest.raises(InvalidValue):
            chat.add_to_history(one)
    await chat.send_message("Hi")

    assert chat.get_history() == chat.history == (user("Hi"), said("Hello."))


async def test_a_history_read_back_from_json_goes_on() -> None:
    chat = Chat(Scripted("Hello."))
    await chat.send_message("Hi")

    again = Chat(Scripted("Yes."), history=msgspec.json.decode(msgspec.json.encode(chat.history), type=list[Turn]))

    assert (await again.send_message("There?")).text == "Yes."


async def test_a_model_is_known_by_its_name() -> None:
    async with GeminiSim() as sim:
        variables = {"TERTULIA_GEMINI_BASE_URL": sim.url, "GEMINI_API_KEY": "any"}
        with pytest.MonkeyPatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            async with Chat("gemini-3.8-flash") as chat:
                response = await chat.send_message("Hi")

    assert (chat.model.name, response.valid, chat.usage) == ("gemini-3.8-flash", True, response.usage)


async def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(InvalidValue, match=r"a chat is with a model or its name, .*, not 3"):
        Chat(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["context", "settings"])
def test_a_chat_is_not_made_with_a_wrong_argument(name: str) -> None:
    with pytest.raises(InvalidValue, match=r"a chat takes a .*, not 'wrong'"):
        Chat(Scripted(), **{name: "wrong"})  # type: ignore[arg-type]
