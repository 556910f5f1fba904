"""Generated histories: anything a store might hold, the broken included."""

import os
import random
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, TypeVar

from hypothesis import strategies as st

from palaver.parts import Media, Opaque, Part, Text, Thought, ToolCall, ToolResult
from palaver.turns import Turn

T = TypeVar("T")
Choose = Callable[[Sequence[Any]], Any]
WIDE = int(os.environ.get("PALAVER_EXAMPLES", "0")) > 5_000

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
OPENAI_MODELS = ["gpt-5.6", "gpt-4o", "o3-mini", "o1-mini", "compatible-1", "mistral-large-latest"]

TEXTS = ["", "hi", "Привіт, світе", "😀", "\x00", '{"a": 1}', "x" * 50, "\u202eright to left"]
SIGNATURES = [None, None, "", "c2ln", "sig_abc-123", "not base64 at all!"]
NAMES = ["search", "search", "weather", "a.b:c", "", "дія", "n" * 70]
IDS = [None, None, "", "a", "b", "a-2", "palaver-x-0", "palaver-0", "palaver-1"]
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
    {"type": "text"},
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
_POOLS: list[Sequence[Part]] = [
    [Text(text=text, signature=signature) for text, signature in product(TEXTS, SIGNATURES)],
    _MEDIAS,
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
            history += a_step(choose, model)
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
        "ours": [f"palaver-r-{i}" for i in range(count)],
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
