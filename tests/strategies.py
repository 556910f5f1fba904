"""Generated histories: anything a store might hold, the broken included."""

from typing import Any

from hypothesis import strategies as st

from palaver.parts import Media, Opaque, Part, Text, Thought, ToolCall, ToolResult
from palaver.turns import Turn

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

texts = st.sampled_from(["", "hi", "Привіт, світе", "😀", "\x00", '{"a": 1}', "x" * 50]) | st.text(max_size=8)
signatures = st.sampled_from([None, None, "", "c2ln", "sig_abc-123", "not base64 at all!"])
names = st.sampled_from(["search", "search", "weather", "a.b:c", "", "дія", "n" * 70])
ids = st.sampled_from([None, None, "", "a", "b", "a-2", "palaver-x-0", "palaver-0", "palaver-1"])
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "b", "error"]), inner, max_size=2)
    ),
    max_leaves=4,
)
objects = st.dictionaries(st.sampled_from(["city", "n", "list"]), json_values, max_size=2)
mimes = st.sampled_from(
    [None, "image/png", "image/jpg", "audio/wav", "audio/ogg", "application/pdf", "text/html", "x", ""]
)
raws: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
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
)

_medias = st.builds(
    Media,
    media_kind=st.sampled_from(["photo", "voice", "poll", "document"]),
    unique_id=st.sampled_from(["u1", ""]),
    mime=mimes,
    data=st.sampled_from([None, b"", b"\xff\xd8data"]),
    uri=st.sampled_from([None, "", "https://e.test/x.png"]),
    rendered_text=st.sampled_from([None, "a cat"]),
    signature=signatures,
)
_calls = st.builds(
    ToolCall,
    name=names,
    args=objects,
    id=ids,
    signature=signatures,
    broken=st.sampled_from([None, None, '{"a": ']),
    raw=st.sampled_from(
        [
            None,
            None,
            {"functionCall": {"name": "search"}},
            {"functionCall": {"name": "search", "args": {}, "id": "a"}, "x": 1},
            {"functionCall": {"name": "weather", "args": 5}},
            {"id": "a", "type": "function", "function": {"name": "search", "arguments": '{"a": 1}'}},
            {"id": "a", "type": "function", "function": {"name": "search", "arguments": "{"}},
        ]
    ),
)
_results = st.builds(
    ToolResult,
    name=names,
    value=json_values,
    id=ids,
    failed=st.booleans(),
    media=st.lists(_medias, max_size=1).map(tuple),
    raw=st.sampled_from([None, None, {"functionResponse": {"name": "search", "response": {}, "new": 1}}]),
)
parts: st.SearchStrategy[Part] = st.one_of(
    st.builds(Text, text=texts, signature=signatures),
    _medias,
    st.builds(
        Thought, text=texts, signature=signatures, field=st.sampled_from([None, "reasoning", "reasoning_content"])
    ),
    _calls,
    _calls,
    _results,
    _results,
    st.builds(Opaque, raw=raws),
)


def turns(models: list[str]) -> st.SearchStrategy[Turn]:
    """Any turn, made by one of *models*, or by nobody in particular."""
    return st.builds(
        Turn,
        role=st.sampled_from(["user", "model"]),
        parts=st.lists(parts, max_size=4).map(tuple),
        model=st.sampled_from([None, *models]),
    )


@st.composite
def histories(draw: st.DrawFn, models: list[str]) -> tuple[str, list[Turn]]:
    """A model, and a history cut anywhere, made by it, by others and by nobody."""
    model = draw(st.sampled_from(models))
    history = draw(st.lists(turns([model, "other-model", "gemini-3.7-flash"]), max_size=8))
    start = draw(st.integers(0, len(history)))
    end = draw(st.integers(start, len(history)))
    return model, history[start:end]


@st.composite
def steps(draw: st.DrawFn, model: str) -> list[Turn]:
    """Calls and their results as a model and a person leave them, in the shapes services take."""
    count = draw(st.integers(1, 3))
    kind = draw(st.sampled_from(["none", "theirs", "ours"]))
    made: dict[str, list[str | None]] = {
        "none": [None] * count,
        "theirs": [f"c{i}" for i in range(count)],
        "ours": [f"palaver-r-{i}" for i in range(count)],
    }
    calls = [
        ToolCall(name=draw(names.filter(bool)), args=draw(objects), id=made[kind][i], signature=None if i else "c2ln")
        for i in range(count)
    ]
    media = st.lists(_medias, max_size=1).map(tuple)
    results = [ToolResult(name=call.name, id=call.id, value=draw(json_values), media=draw(media)) for call in calls]
    before = draw(st.lists(st.builds(Text, text=texts) | st.builds(Thought, text=texts), max_size=2))
    after = draw(st.lists(st.builds(Text, text=texts), max_size=1))
    answers = draw(st.permutations(results)) if kind == "theirs" else results
    where = draw(st.integers(0, count - 1))
    split = [answers[:where], answers[where:]] if where else [answers]
    turns = [Turn(role="user", parts=tuple(some)) for some in split]
    if after:
        turns.append(Turn(role="user", parts=tuple(after)))
    return [Turn(role="model", parts=(*before, *calls), model=model), *turns]


@st.composite
def plausible(draw: st.DrawFn, models: list[str]) -> tuple[str, list[Turn]]:
    """A model and a history of its own, mostly legal, sometimes with one thing gone wrong."""
    model = draw(st.sampled_from(models))
    history: list[Turn] = []
    for _ in range(draw(st.integers(1, 3))):
        history.append(Turn(role="user", parts=(Text(text=draw(texts)),)))
        for step in draw(st.lists(steps(model), max_size=2)):
            history += step
        if draw(st.booleans()):
            history.append(Turn(role="model", parts=(Text(text=draw(texts), signature=draw(signatures)),), model=model))
    history.append(Turn(role="user", parts=(Text(text="and now?"),)))
    if draw(st.booleans()):
        gone = draw(st.integers(0, len(history) - 1))
        history[gone : gone + 1] = draw(st.lists(turns([model, "other-model"]), max_size=1))
    return model, history[draw(st.integers(0, 2)) :]
