"""A chat with a context: the four layers of an engine, without a platform."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.engines import texts_of
from tertulia import Chat, Context, ContextOptions, SyncChat, Workspace, volatile
from tertulia.chat_context import ChatLog
from tertulia.messages import Place
from tertulia.models import Gemini
from tertulia.models.scripted import Scripted
from tertulia.parts import ToolCall, ToolResult
from tertulia.sim import GeminiSim
from tertulia.store import Store
from tertulia.turns import Layer, Prompt, ToolSpec, model, user

LAYERS = ["static", "dynamic", "buffered", "trigger"]
CALL = ToolCall(id="c1", name="write", args={"text": "new"})


class Folder:
    """One file, which a tool writes and a source shows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.write_text("old")

    def write(self, text: str) -> str:
        """Write the file."""
        self._path.write_text(text)
        return "written"

    def state(self, context: Context) -> Context:
        return replace(context, workspace=Workspace(file_references=({"text": self._path.read_text()},)))

    @property
    def options(self) -> ContextOptions:
        return ContextOptions(sources=(volatile(self.state),))


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "a.md")


def names(prompt: Prompt) -> list[str]:
    return [layer.name for layer in prompt.layers]


def layer(prompt: Prompt, name: str) -> Layer:
    return next(one for one in prompt.layers if one.name == name)


def file_of(prompt: Prompt) -> str:
    """The file that the dynamic layer of a prompt shows."""
    text: str = json.loads(texts_of(layer(prompt, "dynamic").turns)[0])["file_references"][0]["text"]
    return text


async def test_a_chat_has_the_four_layers_and_its_history_holds_none_of_the_state(folder: Folder) -> None:
    scripted = Scripted("Hello.", "Fine.")
    chat = Chat(scripted, system="Be brief.", context=folder.options)

    await chat.send_message("hi")
    await chat.send_message("how are you?")

    prompt = scripted.prompts[1]
    assert names(prompt) == LAYERS
    assert layer(prompt, "static").instruction.startswith("# Persona\nBe brief.\n")
    assert file_of(prompt) == "old"
    assert layer(prompt, "buffered").turns == (user("hi"), model("Hello.", by="scripted"))
    assert layer(prompt, "trigger").turns == (user("how are you?"),)
    assert chat.history == (
        user("hi"), model("Hello.", by="scripted"), user("how are you?"), model("Fine.", by="scripted")
    )  # fmt: skip


async def test_each_step_shows_what_the_tools_before_it_have_written(folder: Folder) -> None:
    scripted = Scripted([CALL], "Done.", "Yes.")
    chat = Chat(scripted, tools=[folder.write], context=folder.options)

    await chat.send_message("write it")
    await chat.send_message("is it there?")

    assert [file_of(prompt) for prompt in scripted.prompts] == ["old", "new", "new"]
    first, second, third = scripted.prompts
    assert [one for one in second.layers if one.name != "dynamic"][:3] == [
        one for one in first.layers if one.name != "dynamic"
    ]
    assert layer(third, "static") == layer(first, "static")
    assert layer(third, "buffered").turns == chat.history[:4]


async def test_old_turns_move_into_the_static_layer_in_chunks_and_the_newest_stay_as_they_are(folder: Folder) -> None:
    scripted = Scripted(*(f"answer {number}" for number in range(40)))
    chat = Chat(scripted, context=folder.options)
    for number in range(40):
        await chat.send_message(f"question {number}")

    static = [texts_of(layer(prompt, "static").turns) for prompt in scripted.prompts]
    recent = [layer(prompt, "buffered").turns for prompt in scripted.prompts]
    assert all(after[: len(before)] == before for before, after in pairwise(static))
    assert len({len(one) for one in static}) == 6  # it grew five times
    assert all(len(one) <= 16 for one in recent)
    assert recent[-1] == chat.history[: 2 * 39][-len(recent[-1]) :]
    told = "\n".join((*static[-1], *texts_of(recent[-1])))
    assert all(f"question {number}" in told and f"answer {number}" in told for number in range(39))


async def test_the_results_of_the_caller_are_the_trigger_and_stay_with_their_calls(folder: Folder) -> None:
    sign, call = ToolSpec(name="sign"), ToolCall(id="s", name="sign", signature="sig")
    scripted = Scripted([call], "Signed.")
    chat = Chat(scripted, tools=[sign], context=folder.options)
    await chat.send_message("sign it")
    result = ToolResult(id="s", name="sign", value="done")

    await chat.send_function_responses(result)

    prompt = scripted.prompts[1]
    assert layer(prompt, "buffered").turns == (user("sign it"), model(call, by="scripted"))
    assert layer(prompt, "trigger").turns == (user(result),)
    assert file_of(prompt) == "old"


@pytest.mark.parametrize("text", ["x" * 80_000, "[replied to: Bob] \x01 [photo described: a cat]"])
async def test_a_message_goes_as_it_is_given(folder: Folder, text: str) -> None:
    scripted = Scripted("Hm.")

    await Chat(scripted, context=folder.options).send_message(text)

    assert layer(scripted.prompts[0], "trigger").turns == (user(text),)


async def test_a_stored_chat_keeps_its_prefix_over_processes_and_resumes_with_the_state_of_now(
    folder: Folder, store: Store, tmp_path: Path
) -> None:
    async def write(text: str) -> str:
        """Write the file; the process ends before it says so."""
        await store.backup(tmp_path / "killed.db")
        return folder.write(text)

    before, after = Scripted("Hello.", [CALL], "Done."), Scripted("Done.")
    first = Chat(before, tools=[write], context=folder.options, store=store, name="work")
    await first.send_message("hi")
    await first.send_message("write it")
    async with Store.open(tmp_path / "killed.db") as left:
        second = Chat(after, tools=[write], context=folder.options, store=left, name="work")
        await second.resume()
        stored = [sent.prompt for sent in await left.prompts.sent_by()]

    assert [file_of(prompt) for prompt in (*before.prompts[:2], *after.prompts)] == ["old", "old", "new"]
    assert layer(after.prompts[0], "static") == layer(before.prompts[0], "static")
    assert layer(after.prompts[0], "buffered") == layer(before.prompts[1], "buffered")
    assert stored == [before.prompts[1], after.prompts[0]]


async def test_a_long_chat_with_tools_is_legal_at_the_service(folder: Folder) -> None:
    async with GeminiSim() as sim, Gemini("gemini-3.8-flash", key="k", base_url=sim.url) as gemini:
        chat = Chat(gemini, tools=[folder.write], context=folder.options)
        for number in range(14):
            await chat.send_message(f"write number {number}")

    assert {received.status for received in sim.requests} == {200}
    assert sum(turn.role == "model" for turn in chat.history) > 20


async def test_what_an_engine_may_be_told_of_its_context_a_chat_may_too() -> None:
    scripted = Scripted(*(f"answer {number}" for number in range(12)))
    chat = Chat(scripted, context=ContextOptions(history_size=4))
    for number in range(12):
        await chat.send_message(f"question {number}")

    assert "question 10" in str(scripted.prompts[-1])
    assert "question 4" not in str(scripted.prompts[-1])
    assert len(chat.history) == 24


def test_a_chat_without_await_has_them_too(folder: Folder) -> None:
    scripted = Scripted([CALL], "Done.")
    with SyncChat(Chat(scripted, tools=[folder.write], context=folder.options)) as chat:
        chat.send_message("write it")

    assert [file_of(prompt) for prompt in scripted.prompts] == ["old", "new"]


async def test_a_log_that_grew_is_the_log_of_all_its_turns() -> None:
    call, result = ToolCall(id="s", name="sign"), ToolResult(id="s", name="sign", value="done")
    turns = [
        model("Welcome."), user("hi"), user("sign it"), model(call), user(result), model("Signed.", call),
        user(result, "and now?"), model("Now."), user("bye"), model("Bye."),
    ]  # fmt: skip
    place = Place(platform="chat", id="", kind="direct")
    growing = ChatLog(place)

    for end in (*range(len(turns) + 1), 3, 7):
        grown, new = growing.of(turns[:end]), ChatLog(place).of(turns[:end])
        messages = await new.read(place, 0, 99)
        assert await grown.read(place, 0, 99) == messages
        assert await grown.turns(messages) == await new.turns(messages)
