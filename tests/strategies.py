"""Generated histories: anything a store might hold, the broken included."""

import json
import random
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, TypeVar

from hypothesis import strategies as st
from msgspec.structs import replace

from sizes import EXAMPLES
from tertulia.models.gemini import decode as gemini
from tertulia.models.openai import decode as openai
from tertulia.parts import Media, Opaque, Part, Text, Thought, ToolCall, ToolResult
from tertulia.turns import Turn

T = TypeVar("T")
Choose = Callable[[Sequence[Any]], Any]
WIDE = EXAMPLES > 5_000

GEMINI_MODELS = [
    "gemini-2.0-flash",
    "gemini-2.5-flash",
    "gemini-2.5-pro",
    "gemini-3-flash-preview",
    "gemini-3.1-pro-preview",
    "gemini-3.5-flash",
    "gemini-3.5-flash-lite",
    "gemini-3.6-flash",
    "gemini-3.8-flash",
    "gemini-4-argon",
    "gemma-3-27b-it",
    "gemma-4-31b-it",
]
OPENAI_MODELS = [
    *("gpt-5.6", "gpt-4o", "o3-mini", "o1-mini", "compatible-1", "mistral-large-latest"),
    *("gpt-5-mini", "gpt-5.4", "gpt-6-luna", "gpt-6-astra"),
]

TEXTS = ["", "hi", "Привіт, світе", "😀", "\x00", '{"a": 1}', "x" * 50, "\u202eright to left"]
SIGNATURES = [None, None, "", "c2ln", "sig_abc-123", "not base64 at all!"]
NAMES = ["search", "search", "weather", "a.b:c", "", "дія", "n" * 70]
IDS = [None, None, "", "a", "b", "a-2", "tertulia-x-0", "tertulia-0", "tertulia-1"]
VALUES: list[Any] = [
    None, True, 0, 2**70, 0.5, float("nan"), float("inf"), "", "text", [], [1, [2, {}]], {}, {"a": None}, {"error": ""},
    {"a": {"b": [1, "ї", None]}}, {"a": 10**30},
]  # fmt: skip
OBJECTS: list[dict[str, Any]] = [
    {},
    {"city": "Kyiv"},
    {"n": 2**64},
    {"list": [1, {"a": float("nan")}], "city": "x"},
]
MIMES = [None, "image/png", "image/jpg", "image/PNG", "audio/wav", "audio/ogg", "application/pdf", "text/html", "x", ""]
RAWS: list[dict[str, Any]] = [
    {},
    {"text": None},
    {"executableCode": {"code": "1", "language": "PYTHON"}, "thoughtSignature": "c2ln"},
    {"text": "x", "newField": 1},
    {"text": "x", "functionCall": {"name": "search", "args": {}}},
    {"functionCall": {"name": "search", "args": {}, "id": "a"}},
    {"function_response": {"name": "search", "response": {}}},
    {"videoMetadata": {"fps": 1}},
    {"inlineData": {"data": "!!", "mimeType": "image/png"}},
    {"fileData": {"fileUri": "https://e.test/v", "mimeType": "video/mp4"}, "videoMetadata": {"fps": 1}},
    {"type": "thinking", "thinking": []},
    {"type": "text", "note": 1, "text_is": "missing"},
    {"type": "audio_url", "audio_url": {"url": "https://e.test/a"}},
    {"reasoning_details": [{"type": "x"}]},
    {"tool_calls": [{"id": "q"}]},
    {"tool_call": {"id": "q", "type": "custom"}},
    {"refusal": "no"},
]
CALL_RAWS: list[dict[str, Any] | None] = [
    None,
    None,
    None,
    {"functionCall": {"name": "search"}},
    {"function_call": {"name": "search", "args": {}, "will_continue": False}},
    {"functionCall": {"name": "search", "args": {}, "id": "a"}, "x": 1},
    {"functionCall": {"name": "weather", "args": 5}},
    {"id": "a", "type": "function", "function": {"name": "search", "arguments": '{"a": 1}'}},
    {"id": "a", "type": "function", "function": {"name": "search", "arguments": "{"}},
    {"id": "a", "type": "custom", "function": {"arguments": "{}"}},
]
RESULT_RAWS: list[dict[str, Any] | None] = [
    None,
    None,
    {"functionResponse": {"name": "search", "response": {}, "new": 1}},
]

# What the services send beside what we have values for; decoding makes `Opaque` and `raw` of it.
GEMINI_PARTS: list[dict[str, Any]] = [
    {},
    {"text": "x"},
    {"text": "x", "thought": True, "thoughtSignature": "c2ln"},
    {"text": "x", "partMetadata": {"a": 1}},
    {"text": "x", "thought": None, "newField": None},
    {"executableCode": {"code": "1", "language": "PYTHON"}, "thoughtSignature": "c2ln"},
    {"executable_code": {"code": "1", "language": "PYTHON", "id": "e"}},
    {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
    {"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["x"]}, "id": "t"}, "thoughtSignature": "c2ln"},
    {"toolResponse": {"toolType": "GOOGLE_SEARCH_WEB", "response": {}, "id": "t"}},
    {"inlineData": {"mimeType": "image/png", "data": "aGk=", "displayName": "cat.png"}},
    {"inline_data": {"mime_type": "image/png", "data": "aGk="}, "mediaResolution": {"level": "MEDIA_RESOLUTION_LOW"}},
    {"fileData": {"fileUri": "https://e.test/v", "mimeType": "video/mp4"}, "videoMetadata": {"fps": 1}},
    {"toolCall": {"deep": json.loads("[" * 94 + "]" * 94)}},
]
GEMINI_ODD_PARTS: list[dict[str, Any]] = [
    {"text": None},
    {"text": "x", "newField": 1},
    {"videoMetadata": {"fps": 1}},
    {"toolCall": {"deep": json.loads("[" * 95 + "]" * 95)}},
]
GEMINI_CALL_EXTRAS: list[dict[str, Any]] = [
    {}, {}, {"willContinue": False}, {"partial_args": [{"jsonPath": "$.a"}]}, {"args": None},
    {"newField": None},
]  # fmt: skip
GEMINI_EXTRAS: list[dict[str, Any]] = [{}, {}, {"thought": True}, {"partMetadata": {}}, {"videoMetadata": None}]
ODD_EXTRAS: list[dict[str, Any]] = [{"newField": 1}, {"new_field": {}, "another": []}]
GEMINI_RESULT_EXTRAS: list[dict[str, Any]] = [
    {}, {}, {"scheduling": "SILENT"}, {"will_continue": False}, {"parts": []},
    {"parts": [{"inlineData": {"mimeType": "image/png", "data": "aGk="}}]},
    {"parts": [{"inlineData": {"mimeType": "image/png", "data": "aGk=", "displayName": "cat"}}]},
]  # fmt: skip
OPENAI_CONTENTS: list[Any] = [
    None,
    "",
    "so",
    [{"type": "text", "text": "so", "annotations": []}],
    [{"type": "refusal", "refusal": "no"}],
    [{"type": "text", "text": "so", "deep": json.loads("[" * 95 + "]" * 95)}],
]
OPENAI_EXTRAS: list[dict[str, Any]] = [
    {},
    {"refusal": None, "annotations": []},
    {"refusal": "no"},
    {"reasoning_content": "hm"},
    {"reasoning": "hm", "reasoning_details": [{"type": "reasoning.text", "text": "hm"}]},
    {"audio": {"id": "audio_1"}, "refusal": None},
    {"function_call": {"name": "search", "arguments": "{}"}},
    {"text": "x", "provider_specific_fields": {"a": 1}},
    {"deep": json.loads("[" * 97 + "]" * 97)},
]
OPENAI_ODD_CONTENTS: list[Any] = [
    [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "so"}],
    [{"type": "text", "text": "so", "deep": json.loads("[" * 96 + "]" * 96)}],
]
OPENAI_ODD_EXTRAS: list[dict[str, Any]] = [{"tool_call": 5}, {"deep": json.loads("[" * 98 + "]" * 98)}]
OPENAI_CALL_EXTRAS: list[dict[str, Any]] = [
    {},
    {},
    {"index": 0},
    {"status": "done"},
    {"type": None},
    {"extra_content": {"google": {"thought_signature": "c2ln"}}},
    {"extra_content": {"google": {"thought_signature": "c2ln", "more": 1}}},
]
OPENAI_ARGUMENTS = ["{}", '{ "city": "Kyiv" }', '{"n":18446744073709551617}']
OPENAI_ODD_ARGUMENTS = ["", "{", "[1]"]

# Pools of ready parts: one draw each, so that a hundred thousand histories are made in minutes.
_choose = random.Random(2026).choice  # noqa: S311 (nothing secret)
_MEDIAS = [
    Media(
        media_kind=kind,
        unique_id="u1",
        mime=mime,
        data=data,
        uri=uri,
        rendered_text=_choose([None, "a cat"]),
        signature=_choose(SIGNATURES),
    )
    for kind, mime, data, uri in product(
        ["photo", "voice", "poll"], MIMES, [None, b"", b"\xff\xd8data"], [None, "", "https://e.test/x.png"]
    )
]
_CALLS = [
    ToolCall(
        name=name,
        id=call_id,
        signature=signature,
        raw=raw,
        args=_choose(OBJECTS),
        broken=_choose([None, None, None, '{"a": ']),
    )
    for name, call_id, signature, raw in product(NAMES, IDS, SIGNATURES, CALL_RAWS)
]
_RESULTS = [
    ToolResult(
        name=name,
        id=call_id,
        failed=failed,
        raw=raw,
        value=_choose(VALUES),
        media=_choose([(), (), (_choose(_MEDIAS),), (_choose(_MEDIAS), _choose(_MEDIAS))]),
    )
    for name, call_id, failed, raw, _ in product(NAMES, IDS, [False, True], RESULT_RAWS, range(4))
]
json_values: st.SearchStrategy[Any] = st.sampled_from(VALUES)
_FIELDS = [None, "reasoning", "reasoning_content", "tool_calls", "role"]
_RECEIVED = [  # as decoding leaves what stands beside fields we do not know
    part
    for raw in [*GEMINI_PARTS, *GEMINI_ODD_PARTS]
    for part in gemini.decode_turn({"role": "model", "parts": [raw]}).parts
    if isinstance(part, Text | Media | Thought)
] + [
    part
    for content in OPENAI_CONTENTS
    for part in openai.decode_turn({"role": "assistant", "content": content}).parts
    if isinstance(part, Text | Media | Thought)
]
_POOLS: list[Sequence[Part]] = [
    [Text(text=text, signature=signature) for text, signature in product(TEXTS, SIGNATURES)],
    _MEDIAS,
    _RECEIVED,
    [Thought(text=words, signature=sign, field=field) for words, sign, field in product(TEXTS, SIGNATURES, _FIELDS)],
    _CALLS,
    _CALLS,
    _RESULTS,
    _RESULTS,
    [Opaque(raw=raw) for raw in RAWS],
]
parts: st.SearchStrategy[Part] = st.one_of(*[st.sampled_from(pool) for pool in _POOLS])


def turns(models: list[str]) -> st.SearchStrategy[Turn]:
    """Any turn, made by one of *models*, or by nobody in particular."""
    return drawn(lambda choose: a_turn(choose, [None, *models]))


def histories(models: list[str]) -> st.SearchStrategy[tuple[str, list[Turn]]]:
    """A model, and a history cut anywhere, made by it, by others and by nobody."""
    return drawn(lambda choose: a_history(choose, models))


def plausible(models: list[str]) -> st.SearchStrategy[tuple[str, list[Turn]]]:
    """A model and a history of its own, mostly legal, sometimes with one thing gone wrong."""
    return drawn(lambda choose: a_plausible_history(choose, models))


def drawn(make: Callable[[Choose], T]) -> st.SearchStrategy[T]:
    """What *make* makes by choosing; in a long run by one number an example, which is many times faster."""
    if WIDE:
        return st.integers(0, 2**64).map(lambda seed: make(random.Random(seed).choice))  # noqa: S311

    @st.composite
    def chosen(draw: st.DrawFn) -> T:
        return make(lambda options: draw(st.sampled_from(options)))

    return chosen()


def a_turn(choose: Choose, makers: list[str | None]) -> Turn:
    some = tuple(choose(choose(_POOLS)) for _ in range(choose(range(5))))
    return Turn(role=choose(["user", "model"]), parts=some, model=choose(makers))


def a_history(choose: Choose, models: list[str]) -> tuple[str, list[Turn]]:
    model = choose(models)
    history = [a_turn(choose, [None, model, "other-model", "gemini-3.7-flash"]) for _ in range(choose(range(9)))]
    start = choose(range(len(history) + 1))
    return model, history[start : choose(range(start, len(history) + 1))]


def a_plausible_history(choose: Choose, models: list[str]) -> tuple[str, list[Turn]]:
    model = choose(models)
    history: list[Turn] = []
    for _ in range(choose([1, 2, 3])):
        history.append(Turn(role="user", parts=(Text(text=choose(TEXTS)),)))
        for _ in range(choose([0, 1, 2])):
            history += choose([a_step, a_received_step])(choose, model)
        if choose([True, False]):
            answer = Text(text=choose(TEXTS), signature=choose(SIGNATURES))
            history.append(Turn(role="model", parts=(answer,), model=model))
    history.append(Turn(role="user", parts=(Text(text="and now?"),)))
    if choose([True, False]):
        gone = choose(range(len(history)))
        history[gone : gone + 1] = [a_turn(choose, [None, model, "other-model"])] * choose([0, 1])
    return model, history[choose([0, 0, 0, 1, 2]) :]


def a_step(choose: Choose, model: str) -> list[Turn]:
    """Calls and their results as a model and a person leave them, in the shapes services take."""
    count = choose([1, 2, 3])
    kind = choose(["none", "theirs", "ours"])
    made: dict[str, list[str | None]] = {
        "none": [None] * count,
        "theirs": [f"c{i}" for i in range(count)],
        "ours": [f"tertulia-r-{i}" for i in range(count)],
    }
    calls = [
        ToolCall(name=choose(NAMES) or "look", args=choose(OBJECTS), id=made[kind][i], signature=None if i else "c2ln")
        for i in range(count)
    ]
    media = [(), (), (), (choose(_MEDIAS),)]
    results = [ToolResult(name=call.name, id=call.id, value=choose(VALUES), media=choose(media)) for call in calls]
    if kind == "theirs" and choose([True, False]):
        results.reverse()
    before: list[Part] = [choose([Text(text="so"), Thought(text="hm")]) for _ in range(choose([0, 1, 2]))]
    where = choose(range(count))
    split = [results[:where], results[where:]] if where else [results]
    after = [Turn(role="user", parts=tuple(some)) for some in split]
    if choose([True, False]):
        after.append(Turn(role="user", parts=(Text(text=choose(TEXTS)),)))
    return [Turn(role="model", parts=(*before, *calls), model=model), *after]


def a_received_step(choose: Choose, model: str) -> list[Turn]:
    """The same as decoded from what a service sent, fields we do not know included; now and then altered by hand."""
    make = a_gemini_step if model in GEMINI_MODELS else an_openai_step
    step = make(choose, model)
    return [replace(turn, parts=tuple(by_hand(choose, part) for part in turn.parts)) for turn in step]


def mostly(choose: Choose, usual: Sequence[Any], odd: Sequence[Any]) -> Any:
    """One of the usual, rarely one of the odd, which no service takes back."""
    return choose(usual if choose(range(24)) else odd)


def a_gemini_step(choose: Choose, model: str) -> list[Turn]:
    count = choose([0, 1, 2])
    named = choose([True, False])
    ids = [{"id": f"c{i}"} if named else choose([{}, {"id": ""}, {"id": None}]) for i in range(count)]
    names = [choose(["search", "weather"]) for _ in range(count)]
    calls = [
        {
            choose(["functionCall", "function_call"]): {
                "name": name, "args": {}, **one, **mostly(choose, GEMINI_CALL_EXTRAS, ODD_EXTRAS),
            },
            **({} if i else {"thoughtSignature": "c2ln"}),
            **mostly(choose, GEMINI_EXTRAS, ODD_EXTRAS),
        }
        for i, (name, one) in enumerate(zip(names, ids, strict=True))
    ]  # fmt: skip
    results = [
        {
            choose(["functionResponse", "function_response"]): {
                "name": name, "response": {}, **one, **mostly(choose, GEMINI_RESULT_EXTRAS, ODD_EXTRAS),
            },
            **choose([{}, {}, {}, {"thoughtSignature": "c2ln"}, {"partMetadata": {}}]),
        }
        for name, one in zip(names, ids, strict=True)
    ]  # fmt: skip
    said = [a_gemini_part(choose) for _ in range(choose([0, 1, 2]))] + calls
    said += [a_gemini_part(choose) for _ in range(choose([0, 0, 1]))]
    words = [a_gemini_part(choose) for _ in range(choose([0, 0, 1]))]
    heard = choose([[results + words], [words + results], [results, words], [[one] for one in results]])
    return [
        gemini.decode_turn({"role": "model", "parts": said}, model=model),
        *[gemini.decode_turn({"role": "user", "parts": some}) for some in heard],
    ]


def a_gemini_part(choose: Choose) -> Any:
    return mostly(choose, GEMINI_PARTS, GEMINI_ODD_PARTS)


def an_openai_step(choose: Choose, model: str) -> list[Turn]:
    ids = [mostly(choose, [f"c{i}"], [""]) for i in range(choose([0, 1, 2, 3]))]
    calls = [choose([a_function_call, a_function_call, a_custom_call])(choose, one) for one in ids]
    message = {
        "role": "assistant",
        "content": mostly(choose, OPENAI_CONTENTS, OPENAI_ODD_CONTENTS),
        **mostly(choose, OPENAI_EXTRAS, OPENAI_ODD_EXTRAS),
        **({"tool_calls": calls} if calls else {}),
    }
    said = openai.decode_response({"id": "r", "choices": [{"message": message}]}, model=model).turn
    ours = [part.id for part in said.parts if isinstance(part, ToolCall) and part.id not in ids]
    answers = [{"role": "tool", "tool_call_id": one, "content": "21"} for one in [*filter(None, ids), *ours]]
    heard = [openai.decode_turn(one) for one in answers]
    together = [Turn(role="user", parts=tuple(part for turn in heard for part in turn.parts))]
    return [said, *choose([heard, together])]


def a_function_call(choose: Choose, call_id: str) -> dict[str, Any]:
    text = mostly(choose, OPENAI_ARGUMENTS, OPENAI_ODD_ARGUMENTS)
    function = {"name": choose(["search", "weather"]), "arguments": text}
    return {"id": call_id, "type": "function", "function": function, **choose(OPENAI_CALL_EXTRAS)}


def a_custom_call(choose: Choose, call_id: str) -> dict[str, Any]:
    return {"id": call_id, "type": "custom", "custom": {"name": choose(["grep", "a.b"]), "input": "x"}}


def by_hand(choose: Choose, part: Part) -> Part:
    """Mostly the part; sometimes with fields that its `raw` contradicts, or as if nobody had had a value for it."""
    if choose(range(8)) or getattr(part, "raw", None) is None:
        return part
    changed: list[Part] = [part]
    match part:
        case ToolCall(raw=dict(raw)):
            changed = [replace(part, name="other"), replace(part, id="z"), replace(part, id=None)]
            changed += [replace(part, signature="b3Ro"), replace(part, signature=None)]
            changed.append(Opaque(raw={"tool_call": raw} if "function" in raw else raw))
        case Text(raw=dict(raw)) | Thought(raw=dict(raw)):
            changed = [replace(part, text="other"), replace(part, signature="b3Ro"), Opaque(raw=raw)]
        case Media(raw=dict(raw)):
            changed = [replace(part, data=None, uri=None), replace(part, signature="b3Ro"), Opaque(raw=raw)]
        case ToolResult(raw=dict(raw)):
            changed = [replace(part, name="other"), replace(part, id="z"), Opaque(raw=raw)]
    handmade: Part = choose(changed)
    return handmade
