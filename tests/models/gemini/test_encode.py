"""What goes to Gemini, field by field."""

from typing import Any

import orjson
import pytest
from msgspec.structs import replace

from models.talk import EVERY_SETTING, LOOK
from tertulia.models.gemini.encode import encode_cache, encode_request, encode_turn, setting_notes
from tertulia.parts import Media, Opaque, Part, Text, Thought, ToolCall, ToolResult
from tertulia.turns import Layer, Prompt, Settings, ToolSpec, Turn, model, user

FLASH = "gemini-3.8-flash"
OLD = "gemini-2.5-flash"
PLACEHOLDER = "skip_thought_signature_validator"
PHOTO = Media(media_kind="photo", unique_id="u", mime="image/png", data=b"\x00\xff\xfe")
PHOTO_DATA = {"inlineData": {"mimeType": "image/png", "data": "AP/+"}}


def contents_of(turn: Turn, to: str = FLASH) -> Any:
    return orjson.loads(encode_turn(turn, model=to))


def parts_of(turn: Turn, to: str = FLASH) -> Any:
    [content] = contents_of(turn, to)
    return content["parts"]


def request_of(prompt: Prompt, to: str = FLASH) -> Any:
    return orjson.loads(encode_request(prompt, model=to))


def config_of(settings: Settings, to: str = FLASH, *, tools: tuple[ToolSpec, ...] = ()) -> Any:
    return request_of(Prompt.of("hi", tools=tools, settings=settings), to).get("generationConfig")


def test_a_request_with_everything_in_it() -> None:
    settings = replace(
        EVERY_SETTING,
        answer={"type": "OBJECT", "properties": {"a": {"type": "STRING"}}},
        safety={"harassment": "OFF", "HARM_CATEGORY_HATE_SPEECH": "BLOCK_NONE"},
    )
    history = [user("hi"), model("hello", by=FLASH), user("and?")]

    assert request_of(Prompt.of(*history, system="Be kind.", tools=[LOOK], settings=settings)) == {
        "contents": [
            {"role": "user", "parts": [{"text": "hi"}]},
            {"role": "model", "parts": [{"text": "hello"}]},
            {"role": "user", "parts": [{"text": "and?"}]},
        ],
        "systemInstruction": {"parts": [{"text": "Be kind."}]},
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "look", "description": "Looks at a place.", "parameters": LOOK.parameters}
                ]
            }
        ],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
        "generationConfig": {
            "temperature": 0.5,
            "topP": 0.9,
            "topK": 40,
            "maxOutputTokens": 100,
            "stopSequences": ["END"],
            "seed": 7,
            "thinkingConfig": {"thinkingLevel": "LOW", "includeThoughts": True},
            "responseMimeType": "application/json",
            "responseJsonSchema": {"type": "object", "properties": {"a": {"type": "string"}}},
        },
        "safetySettings": [
            {"category": "HARM_CATEGORY_HARASSMENT", "threshold": "OFF"},
            {"category": "HARM_CATEGORY_HATE_SPEECH", "threshold": "BLOCK_NONE"},
        ],
    }


def test_a_request_with_nothing_but_words_in_it() -> None:
    assert request_of(Prompt.of("hi")) == {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}


def test_layers_become_one_instruction_and_one_list_of_contents() -> None:
    layers = (
        Layer(name="static", instruction="One.", turns=(user("a"),)),
        Layer(name="trigger", instruction="Two.", turns=(user("b"),)),
    )

    assert request_of(Prompt(layers=layers)) == {
        "contents": [{"role": "user", "parts": [{"text": "a"}]}, {"role": "user", "parts": [{"text": "b"}]}],
        "systemInstruction": {"parts": [{"text": "One.\n\nTwo."}]},
    }


@pytest.mark.parametrize(
    ("part", "encoded"),
    [
        (Text(text="Привіт"), {"text": "Привіт"}),
        (Text(text="", signature="a+/b-_="), {"text": "", "thoughtSignature": "a+/b-_="}),
        (Text(text="x", signature="not base64!"), {"text": "x", "thoughtSignature": "not base64!"}),
        (Text(text="x", signature=""), {"text": "x"}),
        (Thought(text="hm"), {"thought": True, "text": "hm"}),
        (Thought(text="hm", signature="s"), {"thought": True, "text": "hm", "thoughtSignature": "s"}),
        (PHOTO, PHOTO_DATA),
        (
            Media(media_kind="photo", unique_id="u", mime="image/png", data=b"\x00\xff\xfe", signature="s"),
            {**PHOTO_DATA, "thoughtSignature": "s"},
        ),
        (
            ToolCall(name="look", args={"place": "Lviv"}, id="g98os1Jf", signature="s"),
            {"functionCall": {"id": "g98os1Jf", "name": "look", "args": {"place": "Lviv"}}, "thoughtSignature": "s"},
        ),
        (ToolCall(name="look"), {"functionCall": {"name": "look", "args": {}}}),
        (ToolCall(name="look", id="tertulia-x-0"), {"functionCall": {"name": "look", "args": {}}}),
        (
            ToolCall(name="look", raw={"functionCall": {"name": "look"}, "new": 1}),
            {"functionCall": {"name": "look"}, "new": 1},
        ),
        (Opaque(raw={"executable_code": {"code": "1"}}), {"executable_code": {"code": "1"}}),
    ],
)
def test_a_part_of_the_model_goes_back_to_it(part: Part, encoded: Any) -> None:
    assert contents_of(model(part, by=FLASH)) == [{"role": "model", "parts": [encoded]}]


@pytest.mark.parametrize(
    ("media", "encoded"),
    [
        ({"mime": "image/jpg", "data": b"x"}, {"inlineData": {"mimeType": "image/jpeg", "data": "eA=="}}),
        ({"mime": "audio/x-m4a", "data": b"x"}, {"inlineData": {"mimeType": "audio/m4a", "data": "eA=="}}),
        ({"data": b"x"}, {"inlineData": {"mimeType": "image/jpeg", "data": "eA=="}}),
        ({"media_kind": "voice", "data": b"x"}, {"inlineData": {"mimeType": "audio/ogg", "data": "eA=="}}),
        (
            {"mime": "image/png", "uri": "https://e.test/f"},
            {"fileData": {"mimeType": "image/png", "fileUri": "https://e.test/f"}},
        ),
        ({"uri": "https://youtu.be/x"}, {"fileData": {"fileUri": "https://youtu.be/x"}}),
        (
            {"mime": "image/png", "data": b"x", "uri": "https://e.test/f"},
            {"inlineData": {"mimeType": "image/png", "data": "eA=="}},
        ),
        ({"mime": "application/octet-stream", "data": b"x"}, {"text": "[photo]"}),
        (
            {"mime": "application/zip", "data": b"x", "rendered_text": "an archive"},
            {"text": "[photo described: an archive]"},
        ),
        ({"mime": "png", "data": b"x"}, {"text": "[photo]"}),
        ({"media_kind": "poll", "data": b"x"}, {"text": "[poll]"}),
        ({"mime": "image/png", "data": b""}, {"text": "[photo]"}),
        ({}, {"text": "[photo]"}),
    ],
)
def test_media_go_as_they_can(media: dict[str, Any], encoded: Any) -> None:
    assert parts_of(user(Media(**{"media_kind": "photo", "unique_id": "u", **media}))) == [encoded]


@pytest.mark.parametrize(("to", "end"), [(FLASH, "300s"), ("gemini-2.5-flash", "120s")])
def test_of_a_long_video_the_beginning_goes(to: str, end: str) -> None:
    shown = {"videoMetadata": {"endOffset": end}}
    youtube = Media(media_kind="youtube", unique_id="u", uri="https://youtu.be/x")
    long, short = [
        Media(media_kind="video", unique_id="u", mime="video/mp4", sha256="00", data=b"x", seconds=seconds)
        for seconds in (3 * 3600, 60)
    ]
    inline = {"inlineData": {"mimeType": "video/mp4", "data": "eA=="}}

    assert parts_of(user(youtube, long, short, replace(long, seconds=None)), to) == [
        {"fileData": {"fileUri": "https://youtu.be/x"}, **shown},
        {**inline, **shown},
        inline,
        {**inline, **shown},  # it may be long
    ]
    assert parts_of(user(replace(short, sha256=None, seconds=None)), to) == [inline]  # as its caller gives it


@pytest.mark.parametrize(
    ("result", "response"),
    [
        ({"value": {"temperature": 4}}, {"temperature": 4}),
        ({"value": {}}, {}),
        ({"value": "sunny"}, {"result": "sunny"}),
        ({"value": [1, 2]}, {"result": [1, 2]}),
        ({"value": 0}, {"result": 0}),
        ({"value": None}, {"result": None}),
        ({"value": "no such place", "failed": True}, {"error": "no such place"}),
        ({"value": {"code": 5}, "failed": True}, {"error": '{"code":5}'}),
        ({"value": None, "failed": True}, {"error": "null"}),
        ({"value": {"big": 2**70, "when": float("nan"), "raw": b"x"}}, {"big": 2.0**70, "when": None, "raw": "b'x'"}),
    ],
)
def test_the_result_of_a_tool_is_an_object(result: dict[str, Any], response: Any) -> None:
    assert parts_of(user(ToolResult(name="look", **result))) == [
        {"functionResponse": {"name": "look", "response": response}}
    ]


@pytest.mark.parametrize(
    ("call_id", "sent"), [("g98os1Jf", {"id": "g98os1Jf"}), ("tertulia-x-0", {}), (None, {}), ("", {})]
)
def test_a_result_goes_back_under_the_id_of_its_call(call_id: str | None, sent: dict[str, str]) -> None:
    assert parts_of(user(ToolResult(name="look", value={}, id=call_id))) == [
        {"functionResponse": {**sent, "name": "look", "response": {}}}
    ]


@pytest.mark.parametrize(
    ("to", "together"),
    [(FLASH, False), ("gemini-3.6-flash", False), ("gemini-3.5-flash", False), (OLD, True), ("gemini-2.0-flash", True)],
)
def test_words_after_results_stand_in_a_content_of_their_own_where_they_must(to: str, together: bool) -> None:
    turn = user("see:", ToolResult(name="look", value={}), "and now?", PHOTO)
    results = [{"text": "see:"}, {"functionResponse": {"name": "look", "response": {}}}]
    after = [{"text": "and now?"}, PHOTO_DATA]
    apart = [{"role": "user", "parts": results}, {"role": "user", "parts": after}]

    assert contents_of(turn, to) == ([{"role": "user", "parts": results + after}] if together else apart)


def test_pictures_of_a_tool_go_inside_its_result_where_the_model_takes_them() -> None:
    turn = user(ToolResult(name="look", value="a cat", media=(PHOTO,)))

    assert contents_of(turn) == [
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "look", "response": {"result": "a cat"}, "parts": [PHOTO_DATA]}},
            ],
        }
    ]


def test_pictures_of_a_tool_go_beside_its_result_where_the_model_does_not_take_them() -> None:
    turn = user(ToolResult(name="look", value="a cat", media=(PHOTO,)))

    assert parts_of(turn, OLD) == [
        {"functionResponse": {"name": "look", "response": {"result": "a cat"}}},
        PHOTO_DATA,
    ]


@pytest.mark.parametrize("mime", ["application/zip", "audio/ogg", "video/mp4"])
def test_what_cannot_go_inside_a_result_is_not_lost(mime: str) -> None:
    media = Media(media_kind="document", unique_id="u", mime=mime, data=b"x", rendered_text="a recording")

    encoded = orjson.dumps(contents_of(user(ToolResult(name="look", value="ok", media=(media,)))))

    [result] = [part for content in orjson.loads(encoded) for part in content["parts"] if "functionResponse" in part]
    assert result == {"functionResponse": {"name": "look", "response": {"result": "ok"}}}
    assert b"a recording" in encoded or b"inlineData" in encoded


CALLS = (
    Thought(text="hm", signature="t"),
    Text(text="Looking.", signature="x"),
    ToolCall(name="look", id="a", signature="s"),
    ToolCall(name="look", id="b"),
)


def call_part(call_id: str, **more: Any) -> Any:
    return {"functionCall": {"id": call_id, "name": "look", "args": {}}, **more}


@pytest.mark.parametrize("maker", [FLASH, f"models/{FLASH}", None])
def test_signatures_go_back_to_the_model_that_made_them(maker: str | None) -> None:
    assert parts_of(model(*CALLS, by=maker)) == [
        {"thought": True, "text": "hm", "thoughtSignature": "t"},
        {"text": "Looking.", "thoughtSignature": "x"},
        call_part("a", thoughtSignature="s"),
        call_part("b"),
    ]


@pytest.mark.parametrize("maker", ["gemini-3.7-flash", "gpt-5.6"])
def test_another_model_gets_the_placeholder_on_the_first_call_and_no_other(maker: str) -> None:
    assert parts_of(model(*CALLS, by=maker)) == [
        {"thought": True, "text": "hm"},
        {"text": "Looking."},
        call_part("a", thoughtSignature=PLACEHOLDER),
        call_part("b"),
    ]


def test_a_model_that_knows_no_signatures_gets_none_of_others() -> None:
    assert parts_of(model(*CALLS, by=FLASH), "gemini-2.0-flash")[2:] == [call_part("a"), call_part("b")]


@pytest.mark.parametrize(
    "part",
    [
        Opaque(raw={"executableCode": {"code": "1", "language": "PYTHON"}}),
        Text(text="", signature="s"),
    ],
)
def test_what_only_its_maker_understands_is_left_out_for_others(part: Part) -> None:
    assert contents_of(model("a", part, by="gemini-3.7-flash")) == [{"role": "model", "parts": [{"text": "a"}]}]
    assert contents_of(model(part, by="gemini-3.7-flash")) == []


def test_a_call_as_received_goes_only_to_its_maker() -> None:
    raw = {"functionCall": {"name": "look"}, "thought": True, "thoughtSignature": "s"}
    turn = model(ToolCall(name="look", id="tertulia-x-0", signature="s", raw=raw), by=FLASH)

    assert parts_of(turn) == [raw]
    assert parts_of(turn, "gemini-3.7-flash") == [
        {"functionCall": {"name": "look", "args": {}}, "thoughtSignature": PLACEHOLDER}
    ]


def test_a_turn_is_encoded_the_same_however_often_and_for_each_model_by_itself() -> None:
    turn = model(*CALLS, by=FLASH)
    prompt = Prompt.of("hi", turn)

    first, other = encode_request(prompt, model=FLASH), encode_request(prompt, model="gemini-3.7-flash")

    assert encode_request(prompt, model=FLASH) == first != other
    assert encode_request(Prompt.of("hi", model(*CALLS, by=FLASH)), model=FLASH) == first


def test_what_is_not_sent_as_given_has_a_note_with_the_reason() -> None:
    schema = Settings(answer={"type": "string"}, thoughts=True)
    told = [
        setting_notes(Prompt.of("hi", tools=[LOOK], settings=settings), model=name)
        for settings, name in [
            (Settings(thinking=0), FLASH),
            (Settings(thinking="none"), FLASH),
            (Settings(thinking="high"), OLD),
            (Settings(thinking="none"), OLD),
            (Settings(thinking=99999), OLD),
            (schema, FLASH),
            (schema, "gemini-2.0-flash"),
            (Settings(), "gemini-3.1-flash-image"),
        ]
    ]

    assert told == [
        ['thinking is left out: the model does not take 0, "none" is the least that it takes'],
        ['thinking is "low", not "none": the model takes "low", "medium", "high"'],
        ['thinking is left out: the model does not take "high"'],
        [],
        ["thinking is left out: the model does not take 99999"],
        [],
        [
            "thoughts is left out: the model does not tell them",
            "answer is left out: the model takes no schema beside tools",
        ],
        ["tools are left out: the model takes none"],
    ]


@pytest.mark.parametrize(
    ("settings", "to", "config"),
    [
        (Settings(), FLASH, None),
        (Settings(temperature=0.0, seed=0), FLASH, {"temperature": 0.0, "seed": 0}),
        (Settings(thinking="minimal"), "gemini-3.5-flash", {"thinkingConfig": {"thinkingLevel": "MINIMAL"}}),
        (Settings(thinking="minimal"), FLASH, {"thinkingConfig": {"thinkingLevel": "LOW"}}),
        (Settings(thinking="none"), FLASH, {"thinkingConfig": {"thinkingLevel": "LOW"}}),
        (Settings(thinking="max"), FLASH, {"thinkingConfig": {"thinkingLevel": "HIGH"}}),
        (Settings(thinking="medium"), "gemma-4-31b-it", {"thinkingConfig": {"thinkingLevel": "HIGH"}}),
        (Settings(thinking="none"), OLD, {"thinkingConfig": {"thinkingBudget": 0}}),
        (Settings(thinking="none"), "gemini-2.5-pro", None),
        (Settings(thinking="minimal"), "gemini-4-argon", {"thinkingConfig": {"thinkingLevel": "LOW"}}),
        (Settings(thinking="minimal"), "gemini-3.1-pro-preview", {"thinkingConfig": {"thinkingLevel": "LOW"}}),
        (Settings(thinking="high"), "gemini-4-argon", {"thinkingConfig": {"thinkingLevel": "HIGH"}}),
        (Settings(thinking="high"), OLD, None),
        (Settings(thinking=1024), OLD, {"thinkingConfig": {"thinkingBudget": 1024}}),
        (Settings(thinking=0), OLD, {"thinkingConfig": {"thinkingBudget": 0}}),
        (Settings(thinking=-1), OLD, {"thinkingConfig": {"thinkingBudget": -1}}),
        (Settings(thinking=0), "gemini-2.5-pro", None),
        (Settings(thinking=99999), OLD, None),
        (Settings(thinking=1024), FLASH, {"thinkingConfig": {"thinkingBudget": 1024}}),
        (Settings(thinking=0), FLASH, None),
        (Settings(thinking=1024), "gemini-4-argon", None),
        (Settings(thinking=1024), "gemma-4-31b-it", None),
        (Settings(thinking="high", thoughts=True), OLD, {"thinkingConfig": {"includeThoughts": True}}),
        (Settings(thoughts=True), "gemini-2.0-flash", None),
        (Settings(thoughts=False), FLASH, {"thinkingConfig": {"includeThoughts": False}}),
        (
            Settings(answer={"type": "string"}),
            FLASH,
            {"responseMimeType": "application/json", "responseJsonSchema": {"type": "string"}},
        ),
        (
            Settings(answer={"type": "string"}),
            "gemini-2.0-flash",
            {"responseMimeType": "application/json", "responseSchema": {"type": "string"}},
        ),
        (
            Settings(answer={"const": "a", "type": "STRING"}),
            "gemini-2.0-flash",
            {"responseMimeType": "application/json", "responseJsonSchema": {"const": "a", "type": "string"}},
        ),
        (Settings(answer={}), FLASH, {"responseMimeType": "application/json", "responseJsonSchema": {}}),
    ],
)
def test_settings_are_written_where_the_model_takes_them(settings: Settings, to: str, config: Any) -> None:
    assert config_of(settings, to) == config


@pytest.mark.parametrize(("to", "kept"), [(FLASH, True), (OLD, False), ("gemini-2.0-flash", False)])
def test_a_schema_for_the_answer_gives_way_to_tools_where_both_cannot_be(to: str, kept: bool) -> None:
    config = config_of(Settings(answer={"type": "string"}), to, tools=(LOOK,)) or {}

    assert ("responseMimeType" in config) is kept


@pytest.mark.parametrize(("to", "declared"), [(FLASH, True), (OLD, False)])
def test_tools_that_are_switched_off_give_way_to_a_schema_where_both_cannot_be(to: str, declared: bool) -> None:
    settings = Settings(answer={"type": "string"}, tool_choice="none")
    request = request_of(Prompt.of("hi", tools=[LOOK], settings=settings), to)

    assert ("tools" in request, "responseMimeType" in request["generationConfig"]) == (declared, True)


@pytest.mark.parametrize(("choice", "mode"), [("auto", "AUTO"), ("any", "ANY"), ("none", "NONE")])
def test_the_choice_of_tools_is_a_mode(choice: Any, mode: str) -> None:
    settings = Settings(tool_choice=choice)

    assert request_of(Prompt.of("hi", tools=[LOOK], settings=settings))["toolConfig"] == {
        "functionCallingConfig": {"mode": mode}
    }
    assert "toolConfig" not in request_of(Prompt.of("hi", settings=settings))


@pytest.mark.parametrize(
    ("parameters", "declared"),
    [
        ({}, {}),
        ({"type": "OBJECT", "properties": {}}, {"parameters": {"type": "OBJECT", "properties": {}}}),
        (
            {"type": "OBJECT", "properties": {"kind": {"type": "STRING", "const": "a"}}},
            {"parametersJsonSchema": {"type": "object", "properties": {"kind": {"type": "string", "const": "a"}}}},
        ),
        (
            {"type": "object", "properties": {"a": {"type": ["string", "null"]}}},
            {"parametersJsonSchema": {"type": "object", "properties": {"a": {"type": ["string", "null"]}}}},
        ),
        (
            {"type": "object", "properties": {"type": {"type": "array"}}},
            {"parametersJsonSchema": {"type": "object", "properties": {"type": {"type": "array"}}}},
        ),
    ],
)
def test_a_tool_is_declared_in_the_schema_its_parameters_need(parameters: Any, declared: Any) -> None:
    request = request_of(Prompt.of("hi", tools=[ToolSpec(name="look", parameters=parameters)]))

    assert request["tools"] == [{"functionDeclarations": [{"name": "look", **declared}]}]


def test_with_a_cache_goes_nothing_that_the_cache_holds() -> None:
    settings = Settings(temperature=1.0, tool_choice="any", safety={"HARASSMENT": "OFF"})
    layers = (Layer(name="static", instruction="Be kind."), Layer(name="buffered", turns=(user("hi"),)))
    prompt = Prompt(layers=layers, tools=(LOOK,), settings=settings, cached="cachedContents/abc")

    assert request_of(prompt) == {
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "cachedContent": "cachedContents/abc",
        "generationConfig": {"temperature": 1.0},
        "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "OFF"}],
    }


def test_a_model_without_instruction_and_tools_gets_the_instruction_as_words() -> None:
    assert request_of(Prompt.of("hi", system="Be kind.", tools=[LOOK]), "gemma-3-27b-it") == {
        "contents": [
            {"role": "user", "parts": [{"text": "Be kind."}]},
            {"role": "user", "parts": [{"text": "hi"}]},
        ]
    }


def test_a_cache_holds_instruction_tools_and_turns() -> None:
    prompt = Prompt.of("a long story", system="Be kind.", tools=[LOOK], settings=Settings(temperature=1.0, seed=1))

    assert orjson.loads(encode_cache(prompt, model=f"models/{FLASH}", ttl=300)) == {
        "model": f"models/{FLASH}",
        "ttl": "300s",
        "contents": [{"role": "user", "parts": [{"text": "a long story"}]}],
        "systemInstruction": {"parts": [{"text": "Be kind."}]},
        "tools": [
            {
                "functionDeclarations": [
                    orjson.loads(
                        orjson.dumps({"name": "look", "description": LOOK.description, "parameters": LOOK.parameters})
                    )
                ]
            }
        ],
    }
    assert orjson.loads(encode_cache(Prompt.of(system="Be kind."), model=FLASH, ttl=60)) == {
        "model": f"models/{FLASH}",
        "ttl": "60s",
        "systemInstruction": {"parts": [{"text": "Be kind."}]},
    }


def test_a_tool_whose_schema_is_none_is_sent_as_it_is() -> None:
    tool = ToolSpec(name="look", parameters={"type": "object", "properties": 5})

    body = orjson.loads(encode_request(Prompt.of("hi", tools=[tool]), model="gemini-3.8-flash"))

    assert body["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"] == tool.parameters
