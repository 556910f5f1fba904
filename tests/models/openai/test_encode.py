"""What goes to a service that speaks OpenAI's format, field by field."""

from typing import Any, get_args

import orjson
import pytest
from openai.types import AllModels

from models.talk import EVERY_SETTING
from tertulia.models.openai.encode import encode_request, encode_turn
from tertulia.models.openai.settings import sent_settings
from tertulia.models.openai.vendors import OPENAI, VENDORS, vendor_of
from tertulia.parts import Media, Opaque, Part, Text, Thought, ToolCall, ToolResult
from tertulia.sim.openai.rules import check
from tertulia.turns import Prompt, Settings, ToolSpec, Turn, model, user
from tertulia.wire import lint

GPT = "gpt-4o"
OTHER = "compatible-1"
GEMINI = "gemini-3.8-flash"
PLACEHOLDER = "skip_thought_signature_validator"
PHOTO = Media(media_kind="photo", unique_id="u", mime="image/png", data=b"\x00\xff\xfe")
AT_ADDRESS = [{"type": "audio_url", "audio_url": {"url": "https://e.test/a"}}]
INSIDE = [{"type": "input_audio", "input_audio": {"data": "eA==", "format": "wav"}}]
LOOK = ToolSpec(
    name="look",
    description="Looks at a place.",
    parameters={"type": "OBJECT", "properties": {"place": {"type": "STRING"}}, "required": ["place"]},
)


def messages_of(turn: Turn, to: str = GPT, vendor: str | None = None) -> Any:
    return orjson.loads(encode_turn(turn, model=to, vendor=VENDORS[vendor] if vendor else None))


def request_of(prompt: Prompt, to: str = GPT, vendor: str | None = None) -> Any:
    return orjson.loads(encode_request(prompt, model=to, vendor=VENDORS[vendor] if vendor else None))


def settings_of(settings: Settings, to: str, vendor: str | None = None, *, tools: tuple[ToolSpec, ...] = ()) -> Any:
    request = request_of(Prompt.of("hi", settings=settings, tools=tools), to, vendor)
    return {name: value for name, value in request.items() if name not in {"model", "messages", "tools"}}


def a_call(call_id: str, arguments: str = "{}", **more: Any) -> Any:
    return {"id": call_id, "type": "function", "function": {"name": "look", "arguments": arguments}, **more}


def test_a_request_with_everything_in_it() -> None:
    history = [
        user("hi"),
        model("Looking.", ToolCall(name="look", args={"place": "Lviv"}, id="call_1"), by=GPT),
        user(ToolResult(name="look", id="call_1", value={"sky": "blue"})),
    ]

    assert request_of(Prompt.of(*history, system="Be kind.", tools=[LOOK], settings=EVERY_SETTING)) == {
        "model": GPT,
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "Looking.", "tool_calls": [a_call("call_1", '{"place":"Lviv"}')]},
            {"role": "tool", "tool_call_id": "call_1", "content": '{"sky":"blue"}'},
        ],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "look",
                    "description": "Looks at a place.",
                    "parameters": {
                        "type": "object",
                        "properties": {"place": {"type": "string"}},
                        "required": ["place"],
                    },
                },
            }
        ],
        "temperature": 0.5,
        "top_p": 0.9,
        "max_completion_tokens": 100,
        "stop": ["END"],
        "seed": 7,
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": {"type": "object"}}},
        "tool_choice": "required",
    }


def test_a_request_with_nothing_but_words_in_it() -> None:
    assert request_of(Prompt.of("hi")) == {"model": GPT, "messages": [{"role": "user", "content": "hi"}]}


def test_a_tool_without_parameters_declares_that_it_has_none() -> None:
    request = request_of(Prompt.of("hi", tools=[ToolSpec(name="now")]))

    assert request["tools"] == [
        {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}}
    ]


@pytest.mark.parametrize(("to", "role"), [(GPT, "system"), ("o1-mini", "user"), ("o3-mini", "system")])
def test_the_instruction_comes_first_in_the_role_the_model_knows(to: str, role: str) -> None:
    assert request_of(Prompt.of("hi", system="Be kind."), to)["messages"][0] == {"role": role, "content": "Be kind."}


@pytest.mark.parametrize(
    ("part", "content"),
    [
        (Text(text="hi"), "hi"),
        (PHOTO, [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AP/+"}}]),
        (
            Media(media_kind="photo", unique_id="u", uri="https://e.test/p"),
            [{"type": "image_url", "image_url": {"url": "https://e.test/p"}}],
        ),
        (
            Media(media_kind="sticker", unique_id="u", data=b"x"),
            [{"type": "image_url", "image_url": {"url": "data:image/webp;base64,eA=="}}],
        ),
        (
            Media(media_kind="audio", unique_id="u", mime="audio/wav", data=b"x"),
            [{"type": "input_audio", "input_audio": {"data": "eA==", "format": "wav"}}],
        ),
        (
            Media(media_kind="audio", unique_id="u", mime="audio/mpeg", data=b"x"),
            [{"type": "input_audio", "input_audio": {"data": "eA==", "format": "mp3"}}],
        ),
        (
            Media(media_kind="voice", unique_id="u", mime="audio/ogg", data=b"x", rendered_text="a hum"),
            "[voice described: a hum]",
        ),
        (Media(media_kind="voice", unique_id="u", mime="audio/ogg", uri="https://e.test/a"), "[voice]"),
        (
            Media(media_kind="document", unique_id="u", mime="application/pdf", data=b"x"),
            [
                {
                    "type": "file",
                    "file": {"filename": "u.pdf", "file_data": "data:application/pdf;base64,eA=="},
                }
            ],
        ),
        (
            Media(media_kind="document", unique_id="u", mime="application/pdf", data=b"x", label="a [b]\n.pdf"),
            [{"type": "file", "file": {"filename": "a (b) .pdf", "file_data": "data:application/pdf;base64,eA=="}}],
        ),
        (Media(media_kind="video", unique_id="u", mime="video/mp4", data=b"x"), "[video]"),
        (Media(media_kind="photo", unique_id="u"), "[photo]"),
    ],
)
def test_what_a_person_said(part: Part, content: Any) -> None:
    assert messages_of(user(part), "gpt-audio") == [{"role": "user", "content": content}]


@pytest.mark.parametrize(
    ("vendor", "mime", "data", "uri", "content"),
    [
        ("vllm", "audio/wav", b"x", "https://e.test/a", AT_ADDRESS),
        ("vllm", "audio/ogg", b"x", "https://e.test/a", AT_ADDRESS),
        ("vllm", None, None, "https://e.test/a", AT_ADDRESS),
        ("vllm", "audio/wav", b"x", None, [{"type": "audio_url", "audio_url": {"url": "data:audio/wav;base64,eA=="}}]),
        ("vllm", "audio/ogg", b"x", None, [{"type": "audio_url", "audio_url": {"url": "data:audio/ogg;base64,eA=="}}]),
        ("vllm", None, b"x", None, [{"type": "audio_url", "audio_url": {"url": "data:audio/ogg;base64,eA=="}}]),
        ("vllm", "audio/ogg", None, None, "[voice]"),
        (None, None, None, "https://e.test/a", AT_ADDRESS),
        (None, "audio/wav", b"x", "https://e.test/a", AT_ADDRESS),
        (None, "audio/wav", b"x", None, INSIDE),
        (None, "audio/ogg", b"x", None, [{"type": "audio_url", "audio_url": {"url": "data:audio/ogg;base64,eA=="}}]),
        ("mistral", None, None, "https://e.test/a", [{"type": "input_audio", "input_audio": "https://e.test/a"}]),
        ("mistral", "audio/ogg", b"x", "https://e.test/a", [{"type": "input_audio", "input_audio": "eA=="}]),
        ("groq", "audio/wav", b"x", "https://e.test/a", "[voice]"),
        ("openai", "audio/wav", b"x", "https://e.test/a", INSIDE),
        ("openai", "audio/wav", b"x", None, INSIDE),
        ("openai", "audio/ogg", b"x", "https://e.test/a", "[voice]"),
    ],
)
def test_audio_goes_by_address_else_inside_else_in_words(
    vendor: str | None, mime: str | None, data: bytes | None, uri: str | None, content: Any
) -> None:
    voice = Media(media_kind="voice", unique_id="u", mime=mime, data=data, uri=uri)

    assert messages_of(user(voice), OTHER, vendor) == [{"role": "user", "content": content}]


SIGNED: Any = {"extra_content": {"google": {"thought_signature": "c2ln"}}}


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (ToolCall(name="look", id="1", signature="c2ln"), {"content": None, "tool_calls": [a_call("1")]}),
        (
            ToolCall(name="look", id="1", signature="c2ln", raw=a_call("1", more=5, **SIGNED)),
            {"content": None, "tool_calls": [a_call("1", more=5)]},
        ),
        (
            Opaque(raw={"tool_call": {"id": "1", "type": "custom", **SIGNED}}),
            {"content": "", "tool_calls": [{"id": "1", "type": "custom"}]},
        ),
        (Opaque(raw={"refusal": "no", **SIGNED}), {"content": "", "refusal": "no"}),
        (
            Opaque(raw={"refusal": "no", "extra_content": {"google": {}, "other": 1}}),
            {"content": "", "refusal": "no", "extra_content": {"other": 1}},
        ),
        (Opaque(raw={"type": "x", "thoughtSignature": "c2ln"}), {"content": [{"type": "x"}]}),
    ],
)
def test_signatures_of_unknown_makers_go_to_no_model_but_a_gemini(part: Part, message: Any) -> None:
    signed = model(part)

    [to_gpt] = messages_of(signed, GPT)
    [to_other] = messages_of(signed, OTHER)
    [to_gemini] = messages_of(signed, GEMINI)

    assert to_gpt == to_other == {"role": "assistant", **message}
    assert to_gemini != to_gpt


def test_a_signature_goes_back_to_its_maker_whatever_it_is_called() -> None:
    signed = model(ToolCall(name="look", id="1", signature="c2ln"), by=OTHER)

    [sent] = messages_of(signed, OTHER)

    assert sent["tool_calls"] == [a_call("1", **SIGNED)]


def test_words_and_pictures_are_one_message() -> None:
    assert messages_of(user("a", PHOTO, "b")) == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "a"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AP/+"}},
                {"type": "text", "text": "b"},
            ],
        }
    ]


@pytest.mark.parametrize(
    ("result", "content"),
    [
        ({"value": "sunny"}, "sunny"),
        ({"value": {"a": "ї"}}, '{"a":"ї"}'),
        ({"value": [1, None]}, "[1,null]"),
        ({"value": None}, "null"),
        ({"value": "no such place", "failed": True}, '{"error":"no such place"}'),
        ({"value": {"code": 5}, "failed": True}, '{"error":{"code":5}}'),
        ({"value": {1: float("nan"), "b": b"x"}}, '{"1":null,"b":"b\'x\'"}'),
    ],
)
def test_the_result_of_a_tool_is_a_message(result: dict[str, Any], content: str) -> None:
    assert messages_of(user(ToolResult(name="look", id="c", **result))) == [
        {"role": "tool", "tool_call_id": "c", "content": content}
    ]


def test_results_come_first_each_in_a_message_and_their_pictures_after() -> None:
    turn = user(
        "and?", ToolResult(name="look", id="a", value=1, media=(PHOTO,)), ToolResult(name="look", id="b", value=2)
    )

    assert messages_of(turn) == [
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "tool", "tool_call_id": "b", "content": "2"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "and?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AP/+"}},
            ],
        },
    ]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((Text(text="a"), Text(text="b")), {"content": "ab"}),
        ((Thought(text="hm"), Text(text="a")), {"content": "a"}),
        ((Thought(text="hm", field="reasoning_content"), Text(text="a")), {"content": "a", "reasoning_content": "hm"}),
        ((PHOTO,), {"content": "[photo]"}),
        ((ToolCall(name="look", id="c"),), {"content": None, "tool_calls": [a_call("c")]}),
        (
            (ToolCall(name="look", id="c", args={"a": "ї"}, raw=a_call("c", '{"a": "ї"}')),),
            {"content": None, "tool_calls": [a_call("c", '{"a": "ї"}')]},
        ),
        (
            (ToolCall(name="look"), ToolCall(name="look")),
            {"content": None, "tool_calls": [a_call("tertulia-0"), a_call("tertulia-1")]},
        ),
        ((ToolCall(name="look", id="tertulia-x-0"),), {"content": None, "tool_calls": [a_call("tertulia-x-0")]}),
        ((Text(text="a"), Opaque(raw={"reasoning_details": [1]})), {"content": "a", "reasoning_details": [1]}),
        (
            (Text(text="a"), Opaque(raw={"type": "thinking", "thinking": []})),
            {"content": [{"type": "text", "text": "a"}, {"type": "thinking", "thinking": []}]},
        ),
        (
            (Opaque(raw={"tool_call": {"id": "q", "type": "custom"}}),),
            {"content": "", "tool_calls": [{"id": "q", "type": "custom"}]},
        ),
    ],
)
def test_what_the_model_said_goes_back_to_it(parts: tuple[Part, ...], message: Any) -> None:
    assert messages_of(model(*parts, by=OTHER), OTHER) == [{"role": "assistant", **message}]


def test_what_only_its_maker_understands_is_left_out_for_others() -> None:
    turn = model(
        Thought(text="hm", field="reasoning"),
        Text(text="a"),
        Opaque(raw={"reasoning_details": [1]}),
        ToolCall(name="look", id="c", signature="s", raw=a_call("c", '{"a": 1}', new=1)),
        by="other",
    )

    assert messages_of(turn) == [{"role": "assistant", "content": "a", "tool_calls": [a_call("c")]}]
    assert messages_of(model(Opaque(raw={"x": 1}), Thought(text="hm"), by="other")) == []


def test_signatures_of_gemini_travel_in_extra_content() -> None:
    turn = model(ToolCall(name="look", id="a", signature="s"), ToolCall(name="look", id="b"), by=GEMINI)

    assert messages_of(turn, GEMINI)[0]["tool_calls"] == [
        a_call("a", extra_content={"google": {"thought_signature": "s"}}),
        a_call("b"),
    ]
    assert messages_of(turn)[0]["tool_calls"] == [a_call("a"), a_call("b")]


def test_gemini_gets_the_placeholder_on_the_first_call_that_another_made() -> None:
    turn = model(ToolCall(name="look", id="a"), ToolCall(name="look", id="b"), by=GPT)

    assert messages_of(turn, GEMINI)[0]["tool_calls"] == [
        a_call("a", extra_content={"google": {"thought_signature": PLACEHOLDER}}),
        a_call("b"),
    ]


def test_ids_of_nine_characters_are_the_same_on_both_sides() -> None:
    call_id = "call_a_long_one"
    call, result = ToolCall(name="look", id=call_id, raw=a_call(call_id)), ToolResult(name="look", id=call_id)

    [said] = messages_of(model(call, by=OTHER), OTHER, "mistral")
    [answered] = messages_of(user(result), OTHER, "mistral")

    sent = said["tool_calls"][0]["id"]
    assert sent == answered["tool_call_id"]
    assert len(sent) == 9
    assert sent.isalnum()
    assert (
        messages_of(user(ToolResult(name="look", id="abcDEF123")), OTHER, "mistral")[0]["tool_call_id"] == "abcDEF123"
    )


NOT_THINKING = {"temperature": 0.5, "reasoning_effort": "none"}


@pytest.mark.parametrize(
    ("settings", "to", "vendor", "sent"),
    [
        (Settings(), GPT, None, {}),
        (Settings(temperature=0.0, seed=0), GPT, None, {"temperature": 0.0, "seed": 0}),
        (Settings(temperature=0.5, top_p=0.5, stop=("x",), seed=1), "gpt-5.6", None, {"seed": 1}),
        (Settings(temperature=0.5), "o3-mini", None, {}),
        (Settings(max_tokens=5), GPT, None, {"max_completion_tokens": 5}),
        (Settings(max_tokens=5), OTHER, None, {"max_tokens": 5}),
        (Settings(max_tokens=5), OTHER, "groq", {"max_completion_tokens": 5}),
        (Settings(top_k=5), OTHER, None, {}),
        (Settings(top_k=5), OTHER, "vllm", {"top_k": 5}),
        (Settings(thinking="high"), "gpt-5.6", None, {"reasoning_effort": "high"}),
        (Settings(thinking="high"), GPT, None, {}),
        (Settings(thinking="high"), OTHER, None, {}),
        (Settings(thinking="low"), GEMINI, "gemini", {"reasoning_effort": "low"}),
        (Settings(thinking=1024), "gpt-5.6", None, {}),
        (Settings(thinking=0), "gpt-5.6", None, {"reasoning_effort": "none"}),
        (Settings(thinking="max"), "gpt-6-luna", None, {"reasoning_effort": "xhigh"}),
        (Settings(thinking="max"), GEMINI, "gemini", {"reasoning_effort": "high"}),
        (Settings(thinking="none", temperature=0.5), "gpt-6-luna", None, NOT_THINKING),
        (Settings(thinking="none", temperature=0.5), "gpt-6-astra", None, {"reasoning_effort": "low"}),
        (Settings(temperature=0.5), "gpt-5.4", None, {"temperature": 0.5}),
        (Settings(thoughts=True, safety={"HARASSMENT": "OFF"}), GPT, None, {}),
        (Settings(tool_choice="any"), GPT, None, {}),
        (
            Settings(answer={"type": "string"}),
            OTHER,
            None,
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "answer", "schema": {"type": "string"}},
                }
            },
        ),
    ],
)
def test_settings_are_written_where_the_service_takes_them(
    settings: Settings, to: str, vendor: str | None, sent: Any
) -> None:
    assert settings_of(settings, to, vendor) == sent


def test_every_model_in_openais_tables_is_sent_the_settings_it_takes() -> None:
    names = [name for table in get_args(AllModels) for name in get_args(table)]
    settings = Settings(temperature=0.5, top_p=0.5, stop=("x",), seed=1, max_tokens=5, thinking="low")
    samples, reasons = set(), set()

    for name in names:
        body = orjson.loads(encode_request(Prompt.of("hi", settings=settings), model=name, vendor=VENDORS["openai"]))
        assert lint(body, model=name) == []
        assert check(body, model=name, strict=False) is None
        samples |= {name} if "temperature" in body else set()
        reasons |= {name} if "reasoning_effort" in body else set()

    searches = {name for name in names if "-search-" in name}
    talks = {name for name in names if name.startswith(("gpt-3.5", "gpt-4", "gpt-audio", "chatgpt", "gpt-5-chat"))}
    assert len(names) > 100
    assert samples == talks - searches
    assert reasons == {*names} - talks


@pytest.mark.parametrize(
    ("choice", "vendor", "sent"),
    [
        ("required", None, "required"),
        ("required", "mistral", "any"),
        ("auto", None, "auto"),
        ("any", None, "required"),
        ("none", None, "none"),
        ("any", "mistral", "any"),
    ],
)
def test_the_choice_of_tools(choice: Any, vendor: str | None, sent: str) -> None:
    assert settings_of(Settings(tool_choice=choice), OTHER, vendor, tools=(LOOK,)) == {"tool_choice": sent}


def test_beside_tools_a_model_is_sent_an_effort_that_it_takes_with_them() -> None:
    thinks = Settings(thinking="high")
    sent = {name: settings_of(thinks, name, tools=(LOOK,)) for name in ("gpt-5.6", "gpt-6-luna", "gpt-5.4", "o3-mini")}
    unasked = {name: settings_of(Settings(), name, tools=(LOOK,)) for name in ("gpt-5.6", "gpt-5.4", "gpt-5")}

    off, high = {"reasoning_effort": "none"}, {"reasoning_effort": "high"}
    assert sent == {"gpt-5.6": off, "gpt-6-luna": off, "gpt-5.4": off, "o3-mini": high}
    assert unasked == {"gpt-5.6": off, "gpt-5.4": {}, "gpt-5": {}}


def test_a_model_that_takes_no_tools_is_sent_none() -> None:
    prompt = Prompt.of("hi", tools=(LOOK,), settings=Settings(tool_choice="any", thinking="high"))

    body = orjson.loads(encode_request(prompt, model="gpt-6-astra"))

    assert body.keys() == {"model", "messages", "reasoning_effort"}


def test_what_is_not_sent_as_given_has_a_note_with_the_reason() -> None:
    given = Settings(temperature=0.5, stop=("x",), top_k=5, thinking="max", thoughts=True, safety={"HARASSMENT": "OFF"})
    notes = {
        name: sent_settings(Prompt.of("hi", tools=(LOOK,), settings=given), name, vendor).notes
        for name, vendor in (("gpt-6-luna", OPENAI), ("gpt-6-astra", OPENAI), ("llama-4", VENDORS["groq"]))
    }

    unknown = tuple(
        f"{name} is left out: the service is not known to take it" for name in ("top_k", "thoughts", "safety")
    )
    assert notes == {
        "gpt-6-luna": (
            'thinking is "none", not "max": the model takes "none" beside tools',
            "stop is left out: the model may refuse it",
            *unknown,
        ),
        "gpt-6-astra": (
            "tools are left out: the model takes none in chat completions",
            'thinking is "xhigh", not "max": the model takes "low", "medium", "high", "xhigh"',
            "stop is left out: the model refuses it while it thinks",
            "temperature is left out: the model refuses it while it thinks",
            *unknown,
        ),
        "llama-4": ("thinking is left out: the service is not known to take it", *unknown),
    }


def test_a_turn_is_encoded_for_each_vendor_by_itself() -> None:
    turn = user(ToolResult(name="look", id="call_a_long_one", value=1))
    prompt = Prompt.of(turn)

    first = encode_request(prompt, model=OTHER)
    other = encode_request(prompt, model=OTHER, vendor=VENDORS["mistral"])

    assert encode_request(prompt, model=OTHER, vendor=vendor_of(OTHER)) == first != other


def test_a_service_that_takes_no_pictures_gets_words_for_them() -> None:
    unseen = "[photo]\n(This photo has no description, and you read text only: say that you cannot see it.)"

    assert messages_of(user("Look", PHOTO), OTHER, "deepseek") == [
        {"role": "user", "content": [{"type": "text", "text": "Look"}, {"type": "text", "text": unseen}]}
    ]


@pytest.mark.parametrize(("vendor", "declared"), [("openai", True), ("compatible", True), ("ollama", False)])
def test_tools_that_are_switched_off_stay_declared_where_the_service_follows_the_choice(
    vendor: str, declared: bool
) -> None:
    request = request_of(Prompt.of("hi", tools=[LOOK], settings=Settings(tool_choice="none")), OTHER, vendor)

    assert ("tools" in request, request.get("tool_choice")) == ((True, "none") if declared else (False, None))
