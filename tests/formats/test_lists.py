"""Lists of contents and of messages become turns, whoever wrote them and however they are spelled."""

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import GEMINI_MODELS, OPENAI_MODELS, turns
from tertulia.errors import InvalidValue
from tertulia.formats.importers import import_conversation
from tertulia.formats.lists import DEEPEST, TurnList, read_genai, read_openai
from tertulia.jsonio import dumps
from tertulia.models.gemini import encode as gemini
from tertulia.models.openai import encode as openai
from tertulia.parts import Media, Opaque, Part, Text, Thought, ToolCall, ToolResult
from tertulia.turns import Prompt, Turn, model, user

FLASH = "gemini-3.8-flash"
HI = {"role": "user", "parts": [{"text": "hi"}]}
PHOTO = Media(
    media_kind="photo",
    unique_id="099a8b91dc87c576d70f5cfa328ad935",
    mime="image/png",
    data=b"\xfb\xef\xff",
)


@pytest.mark.parametrize(
    ("found", "listed"),
    [
        ([], TurnList()),
        ([HI], TurnList(turns=(user("hi"),))),
        ({"contents": [HI]}, TurnList(turns=(user("hi"),))),
        ({"contents": HI}, TurnList(turns=(user("hi"),))),
        ({"contents": "hi"}, TurnList(turns=(user("hi"),))),
        (["hi", HI], TurnList(turns=(user("hi"), user("hi")))),
        (HI, TurnList(turns=(user("hi"),))),
        ([{"parts": [{"text": "hi"}]}], TurnList(turns=(user("hi"),))),
        ([{"role": None, "parts": "hi"}], TurnList(turns=(user("hi"),))),
        ([{"role": "model", "parts": ["hi", {"text": "you"}]}], TurnList(turns=(model("hi", "you"),))),
        ([{"role": "MODEL", "parts": {"text": "hi"}}], TurnList(turns=(model("hi"),))),
        ([{"role": "model", "parts": None}], TurnList(turns=(model(),))),
        ([{"role": "model"}], TurnList(turns=(model(),))),
        ([{"role": "system", "parts": [{"text": "Be brief."}]}, HI], TurnList(turns=(user("hi"),), system="Be brief.")),
        (
            {"contents": [HI], "systemInstruction": {"parts": [{"text": "Be brief."}, {"text": "Be kind."}]}},
            TurnList(turns=(user("hi"),), system="Be brief.\n\nBe kind."),
        ),
        (
            {"contents": [HI], "system_instruction": "Be brief.", "config": {"system_instruction": ["Be kind."]}},
            TurnList(turns=(user("hi"),), system="Be brief.\n\nBe kind."),
        ),
        (
            {"contents": [HI, {"role": "model", "parts": ["yes"]}], "model": f"models/{FLASH}", "tools": [], "x": None},
            TurnList(turns=(user("hi"), model("yes", by=FLASH)), left_out=("tools",)),
        ),
        ([{**HI, "timestamp": 5}], TurnList(turns=(user("hi"),), left_out=("timestamp",))),
    ],
)
def test_contents_become_turns(found: Any, listed: TurnList) -> None:
    assert read_genai(found) == listed


@pytest.mark.parametrize(
    ("part", "read_as"),
    [
        ({"text": "so", "thought": True, "thought_signature": "ab-_"}, Thought(text="so", signature="ab-_")),
        ({"text": "so", "thoughtSignature": "ab+/"}, Text(text="so", signature="ab+/")),
        ({"inline_data": {"mime_type": "image/png", "data": "--__"}}, PHOTO),
        ({"inlineData": {"mimeType": "image/png", "data": "++//"}}, PHOTO),
        (
            {"fileData": {"fileUri": "https://e.test/f", "mimeType": "video/mp4"}},
            Media(media_kind="video", unique_id="https://e.test/f", uri="https://e.test/f", mime="video/mp4"),
        ),
        ({"function_call": {"id": "a", "name": "f", "args": {"x": 1}}}, ToolCall(id="a", name="f", args={"x": 1})),
        ({"functionCall": {"name": "f", "args": {}}}, ToolCall(id="tertulia-c577d64f74a7-0", name="f")),
        ({"function_response": {"name": "f", "response": {"a": 1}}}, ToolResult(name="f", value={"a": 1})),
        (
            {"functionResponse": {"id": "a", "name": "f", "response": {}}, "text": None},
            ToolResult(name="f", value={}, id="a"),
        ),
        ({"text": "so", "hologram": 1}, Text(text="so", raw={"text": "so", "hologram": 1})),
        ({}, Opaque(raw={})),
    ],
)
def test_every_part_is_read_in_either_spelling(part: dict[str, Any], read_as: Part) -> None:
    assert read_genai([{"role": "model", "parts": [part]}]) == TurnList(turns=(model(read_as),))


def test_results_are_the_persons_whatever_their_role() -> None:
    parts = [{"functionResponse": {"name": "calculator", "response": {"result": 345}}}]

    listed = read_genai([{"role": role, "parts": parts} for role in ("user", "tool", "function")])

    assert listed.turns == (user(ToolResult(name="calculator", value={"result": 345})),) * 3


@pytest.mark.parametrize(
    ("found", "listed"),
    [
        ([{"role": "user", "content": "hi"}], TurnList(turns=(user("hi"),))),
        ({"messages": [{"role": "user", "content": "hi"}]}, TurnList(turns=(user("hi"),))),
        ([{"role": "user", "content": [{"type": "text", "text": "hi"}, "you"]}], TurnList(turns=(user("hi", "you"),))),
        ([{"role": "user", "content": None}], TurnList(turns=(user(),))),
        (
            [
                {"role": "system", "content": "Be brief."},
                {"role": "developer", "content": [{"type": "text", "text": "Be kind."}]},
                {"role": "user", "name": "Alice", "content": "hi"},
                {"role": "assistant", "name": "gryag", "content": "yes"},
            ],
            TurnList(system="Be brief.\n\nBe kind.", turns=(user("hi"), model("yes")), names={0: "Alice", 1: "gryag"}),
        ),
        (
            {
                "model": "gpt-5.6",
                "temperature": 1,
                "messages": [{"role": "assistant", "content": "yes"}, {"role": "user", "content": "hi", "mood": "ok"}],
            },
            TurnList(turns=(model("yes", by="gpt-5.6"), user("hi")), left_out=("temperature", "mood")),
        ),
    ],
)
def test_messages_become_turns(found: Any, listed: TurnList) -> None:
    assert read_openai(found) == listed


def test_results_that_follow_each_other_are_one_turn_under_the_names_of_their_calls() -> None:
    calls = [{"id": one, "type": "function", "function": {"name": f"f-{one}", "arguments": "{}"}} for one in "ab"]
    asked = {"role": "assistant", "content": None, "tool_calls": calls}
    given_back = [{"role": "tool", "tool_call_id": one, "content": f"is {one}"} for one in "bac"]

    listed = read_openai([asked, *given_back, {"role": "user", "content": "so?"}])

    assert listed.turns == (
        model(ToolCall(id="a", name="f-a"), ToolCall(id="b", name="f-b")),
        user(
            ToolResult(id="b", name="f-b", value="is b"),
            ToolResult(id="a", name="f-a", value="is a"),
            ToolResult(id="c", name="", value="is c"),
        ),
        user("so?"),
    )


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (5, "a number is no list of contents"),
        ({"a": 1}, "the object has no `contents`"),
        ({"contents": None}, "the object has no `contents`"),
        ({"contents": 5}, "contents: a number, not a list"),
        ([HI, None], "contents[1]: null, not an object"),
        ([HI, [HI]], "contents[1]: a list, not an object"),
        ([{"role": "user", "content": "hi"}], "contents[0]: no `parts` in it"),
        ([{"role": 5, "parts": []}], "contents[0].role: a number, not a role"),
        (
            [{"role": "narrator", "parts": []}],
            "contents[0].role: 'narrator' is none we know (system, developer, model, assistant, tool, function, user)",
        ),
        ([{"role": "user", "parts": 5}], "contents[0].parts: a number, not a list"),
        ([HI, HI, {"parts": [True]}], "contents[2].parts[0]: true or false, not a part"),
        ([{"parts": [{"text": "x", "deep": nested(DEEPEST)}]}], "contents[0]: nested more than 150 deep"),
        ({"contents": [], "systemInstruction": 5}, "systemInstruction: a number, not an object"),
        (
            {"contents": [], "config": {"system_instruction": [5]}},
            "config.systemInstruction.parts[0]: a number, not a part",
        ),
    ],
)
def test_what_is_no_content_is_named_with_its_place(found: Any, why: str) -> None:
    with pytest.raises(InvalidValue) as raised:
        read_genai(found)

    assert str(raised.value) == why


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ("hi", "a text is no list of messages"),
        ({"contents": []}, "the object has no `messages`"),
        ({"messages": "hi"}, "messages: a text, not a list"),
        (["hi"], "messages[0]: a text, not an object"),
        ([{"content": "hi"}], "messages[0]: no `role` in it"),
        ([{"role": "user"}], "messages[0]: no `content` in it"),
        ([{"role": "model", "parts": []}], "messages[0]: no `content` in it"),
        ([{"role": "user", "content": 5}], "messages[0].content: a number, neither text nor a list of parts"),
        ([{"role": "user", "content": ["a", 5]}], "messages[0].content[1]: a number, not a part"),
        ([{"role": "assistant", "tool_calls": {}}], "messages[0].tool_calls: an object, not a list"),
        ([{"role": "assistant", "tool_calls": ["f"]}], "messages[0].tool_calls[0]: a text, not a call"),
    ],
)
def test_what_is_no_message_is_named_with_its_place(found: Any, why: str) -> None:
    with pytest.raises(InvalidValue) as raised:
        read_openai(found)

    assert str(raised.value) == why


words = st.text(st.characters(codec="utf-8"), min_size=1)
signatures = st.sampled_from([None, "c2ln", "ab-_", "ab+/"])
objects = st.dictionaries(words, st.none() | st.booleans() | st.integers() | words | st.lists(words), max_size=3)
names = st.sampled_from(["search", "weather"])
said = st.builds(Text, text=words, signature=signatures)
persons = st.builds(user, said | st.just(PHOTO), said)
asked = st.builds(ToolCall, name=names, args=objects, id=st.sampled_from("abc"), signature=signatures)
answered = st.builds(ToolResult, name=names, value=objects, id=st.sampled_from("abc"))
models = st.builds(model, st.builds(Thought, text=words, signature=signatures), said, asked, by=st.just(FLASH))
histories = st.lists(persons | models | st.builds(user, answered, answered), max_size=5)


@given(histories, words)
def test_what_we_write_for_gemini_is_read_back_the_same(history: list[Turn], system: str) -> None:
    body = gemini.encode_request(Prompt.of(*history, system=system), model=FLASH)

    found = import_conversation(body, model=FLASH, form="genai")

    assert (found.turns, found.system) == (tuple(history), system)


@given(st.lists(turns([FLASH, "gpt-5.6"]), max_size=4), st.sampled_from(GEMINI_MODELS))
def test_any_history_for_gemini_settles_once_it_was_written(history: list[Turn], name: str) -> None:
    first = _through_gemini(history, name)
    settled = _through_gemini(first, name)

    assert _through_gemini(settled, name) == settled
    assert msgspec.json.decode(dumps(msgspec.to_builtins(first)), type=tuple[Turn, ...]) == first


def _through_gemini(history: Iterable[Turn], name: str) -> tuple[Turn, ...]:
    written = b",".join(filter(None, (gemini.encode_turn(turn, model=name)[1:-1] for turn in history)))
    return import_conversation(b"[%b]" % written, model=name, form="genai").turns


plain = st.builds(Text, text=words)
plain_calls = st.builds(ToolCall, name=names, args=objects, id=st.sampled_from("abc"))
talks = st.lists(
    st.builds(user, plain, st.just(PHOTO))
    | st.builds(user, plain)
    | st.builds(model, plain, plain_calls, by=st.just("gpt-5.6"))
    | st.builds(model, st.builds(Thought, text=words, field=st.just("reasoning")), plain, by=st.just("gpt-5.6")),
    max_size=5,
)


@given(talks, words)
def test_what_we_write_for_openai_is_read_back_the_same(talk: list[Turn], system: str) -> None:
    body = openai.encode_request(Prompt.of(*talk, system=system), model="gpt-5.6")

    found = import_conversation(body)

    assert (found.form, found.turns, found.system) == ("openai", tuple(talk), system)


@given(st.lists(turns(["gpt-5.6", FLASH]), max_size=4), st.sampled_from(OPENAI_MODELS))
def test_any_history_for_openai_settles_once_it_was_written(history: list[Turn], name: str) -> None:
    first = _through_openai(history, name)  # words for what the service takes not, ids and names it has
    settled = _through_openai(first, name)

    assert _in_order(_through_openai(settled, name)) == _in_order(settled)
    assert msgspec.json.decode(dumps(msgspec.to_builtins(first)), type=tuple[Turn, ...]) == first


def _through_openai(history: Iterable[Turn], name: str) -> tuple[Turn, ...]:
    written = b",".join(filter(None, (openai.encode_turn(turn, model=name)[1:-1] for turn in history)))
    return import_conversation(b"[%b]" % written, model=name, form="openai").turns


def _in_order(history: Iterable[Turn]) -> list[tuple[str, Part]]:
    """All parts; an empty turn is not written, and may have stood between results."""
    return [(turn.role, part) for turn in history for part in turn.parts]
