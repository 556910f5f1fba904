"""Generated requests as they stand on the wire, right and wrong, in both formats."""

from typing import Any

from hypothesis import strategies as st

Json = st.SearchStrategy[Any]


def some(**fields: Json) -> Json:
    """An object with any of the fields; now and then one is null or misspelt."""
    extra = st.sampled_from([{}, {}, {}, {}, {}, {}, {}, {}, {"foo": 1}, {"foo": None}])
    return st.builds(lambda base, more: {**base, **more}, st.fixed_dictionaries({}, optional=dict(fields)), extra)


def rarely(usual: Json, odd: Json) -> Json:
    return st.integers(0, 31).flatmap(lambda roll: odd if roll == 31 else usual)


def both_spellings(camel: str, snake: str, value: Json) -> Json:
    keys = rarely(st.sampled_from([(camel,), (camel,), (snake,)]), st.just((camel, snake)))
    return st.builds(lambda names, item: dict.fromkeys(names, item), keys, value)


wrong: Json = st.sampled_from([None, 5, "x", [], {}, True, [5]])
names = st.sampled_from(["search", "weather", "", "a.b:c", "1x", "n" * 70, "n" * 130, "дія"])
usual_names = st.sampled_from(["search", "search", "weather"])
ids = st.sampled_from(["a", "b", "", None])
signature = st.sampled_from(
    [{}, {}, {"thoughtSignature": "skip_thought_signature_validator"}, {"thought_signature": ""}]
)

_call = rarely(
    st.builds(lambda name, i: {"name": name, "args": {}, **({"id": i} if i else {})}, usual_names, ids),
    some(name=rarely(names, wrong), id=rarely(ids, wrong), args=wrong, willContinue=st.booleans()) | wrong,
)
_result = rarely(
    st.builds(lambda name, i: {"name": name, "response": {}, **({"id": i} if i else {})}, usual_names, ids),
    some(name=rarely(names, wrong), id=rarely(ids, wrong), response=wrong, parts=wrong) | wrong,
)
_mimes = st.sampled_from(
    [
        "image/png",
        "image/jpg",
        "png",
        "application/octet-stream",
        "audio/ogg; codecs=opus",
        "text/x",
        "video/x",
        "",
        None,
    ]
)
_inline = some(mimeType=_mimes, data=st.sampled_from(["aGk=", "", "!!", "-_", None, 5])) | wrong
_file = some(mimeType=_mimes, file_uri=st.sampled_from(["https://e.test/v", "", None, 5])) | wrong
call_parts = st.builds(
    lambda call, sign: {**call, **sign}, both_spellings("functionCall", "function_call", _call), signature
)
result_parts = both_spellings("functionResponse", "function_response", _result)
text_parts = st.sampled_from([{"text": "hi"}, {"text": ""}, {"text": "hm", "thought": True}])
odd_parts = st.one_of(
    both_spellings("inlineData", "inline_data", _inline),
    both_spellings("fileData", "file_data", _file),
    st.sampled_from(
        [
            {},
            {"text": None},
            {"text": 5},
            {"text": "x", "thought": "yes"},
            {"thought": True},
            {"videoMetadata": {}},
            {"videoMetadata": {}, "thought": True},
            {"text": "x", "videoMetadata": {"endOffset": "300s"}},
            {"text": "x", "video_metadata": {"end_offset": 300}},
            {"text": "x", "videoMetadata": {"fps": 1, "from": "0s"}},
            {"text": "x", "inlineData": {"mimeType": "image/png", "data": "aGk="}},
            {"executableCode": {}},
            {"text": "x", "newField": 1},
        ]
    ),
    wrong,
)
_parts = rarely(st.one_of(call_parts, result_parts, text_parts), odd_parts)


@st.composite
def gemini_steps(draw: st.DrawFn) -> list[Any]:
    """Calls and mostly fitting results."""
    calls = draw(st.lists(call_parts, min_size=1, max_size=3))
    results = [_answer(part) for part in calls]
    if draw(st.integers(0, 3)) == 0:
        results = draw(st.permutations(results))[draw(st.integers(0, 1)) :]
    before: list[Any] = draw(st.lists(text_parts, max_size=1))
    after: list[Any] = draw(st.lists(text_parts, max_size=1))
    calls_apart = draw(st.integers(0, 5)) == 0 and before
    said = [{"role": "model", "parts": before}, {"role": "model", "parts": calls}] if calls_apart else []
    said = said or [{"role": "model", "parts": before + calls}]
    apart = draw(st.booleans())
    answers = [{"role": "user", "parts": [one]} for one in results] if apart else [{"role": "user", "parts": results}]
    if after:
        shape = draw(st.integers(0, 2))
        if shape == 0 and answers:
            answers[-1]["parts"] = [*answers[-1]["parts"], *after]
        elif shape == 1 and answers:
            answers[0]["parts"] = [*after, *answers[0]["parts"]]
        else:
            answers.append({"role": "user", "parts": after})
    return [*said, *answers]


def _answer(part: dict[str, Any]) -> dict[str, Any]:
    call = part.get("functionCall", part.get("function_call"))
    if not isinstance(call, dict):
        return {"functionResponse": {"name": "search", "response": {}}}
    kept = {key: call[key] for key in ("name", "id") if call.get(key)}
    return {"functionResponse": {**kept, "response": {}}}


roles = rarely(
    st.sampled_from(["user", "model"]),
    st.sampled_from(["tool", "function", "assistant", "system", "USER", "x", "", None, 5]),
)
_content = rarely(
    st.builds(lambda role, parts: {"role": role, "parts": parts}, roles, st.lists(_parts, min_size=1, max_size=3)),
    st.builds(lambda role, parts: {"role": role, "parts": parts}, roles, st.just([]) | _parts)
    | some(parts=wrong)
    | wrong,
)
_contents = st.lists(
    st.one_of(
        st.just([{"role": "user", "parts": [{"text": "hi"}]}]),
        gemini_steps(),
        _content.map(lambda content: [content]),
    ),
    min_size=1,
    max_size=4,
).map(lambda groups: [content for group in groups for content in group])
_contents = rarely(_contents.map(lambda contents: [{"role": "user", "parts": [{"text": "hi"}]}, *contents]), _contents)
_schema: Json = st.recursive(
    some(type=st.sampled_from(["STRING", "array", "object", ["string", "null"], 5]), description=st.just("d")),
    lambda inner: st.one_of(
        some(type=st.just("OBJECT"), properties=st.dictionaries(st.sampled_from(["a", "const"]), inner, max_size=2)),
        some(type=st.just("array"), items=inner),
        some(anyOf=st.lists(inner, max_size=2), const=st.just(1)),
        some(additionalProperties=inner | st.booleans(), any_of=st.lists(inner, max_size=1)),
    ),
    max_leaves=4,
)
_declaration = rarely(
    st.builds(lambda name: {"name": name, "description": "d"}, usual_names),
    some(name=rarely(names, wrong), description=st.just("d"), parameters=_schema, parametersJsonSchema=st.just({}))
    | wrong,
)
_tool = rarely(
    st.builds(lambda items: {"functionDeclarations": items}, st.lists(_declaration, min_size=1, max_size=2)),
    some(functionDeclarations=st.just([]) | wrong | _declaration, googleSearch=st.just({}), codeExecution=st.just({}))
    | wrong,
)
_thinking = some(
    thinkingBudget=st.sampled_from([-1, 0, 1, 128, 600, 30000, 99999, None, "5"]),
    thinking_level=st.sampled_from(["MINIMAL", "low", "medium", "HIGH", "odd", "THINKING_LEVEL_UNSPECIFIED", None]),
    includeThoughts=st.booleans(),
)
_config = some(
    temperature=st.just(1),
    candidateCount=st.sampled_from([1, 2, None]),
    thinkingConfig=_thinking | wrong,
    responseMimeType=st.sampled_from(["application/json", "text/plain"]),
    responseSchema=_schema,
)
_calling = some(mode=st.sampled_from(["ANY", "auto", None]), allowedFunctionNames=st.sampled_from([[], ["search"]]))
_tool_config = some(functionCallingConfig=_calling | wrong, includeServerSideToolInvocations=st.booleans())
_safety = st.lists(some(category=st.sampled_from(["A", "B"]), threshold=st.just("OFF")), max_size=2)
_rare = some(
    systemInstruction=some(parts=st.lists(text_parts | odd_parts, max_size=1), role=st.just("user")) | wrong,
    system_instruction=st.just(None),
    tools=st.lists(_tool, max_size=2) | _tool | wrong,
    toolConfig=_tool_config | wrong,
    generationConfig=_config | wrong,
    safetySettings=_safety | wrong,
    cachedContent=st.sampled_from(["cachedContents/x", ""]),
)
gemini_requests = rarely(
    st.builds(lambda contents: {"contents": contents}, _contents)
    | st.builds(lambda contents, rest: {"contents": contents, **rest}, _contents, _rare)
    | st.builds(lambda rest: {"contents": [{"role": "user", "parts": [{"text": "hi"}]}], **rest}, _rare),
    st.builds(lambda contents, rest: {"contents": contents, **rest}, wrong | _content, _rare) | wrong,
)

_function = rarely(
    st.builds(lambda name, text: {"name": name, "arguments": text}, usual_names, st.just("{}")),
    some(name=rarely(names, wrong), arguments=st.sampled_from(["{}", "", "[1]", "{", None, 5])) | wrong,
)
_tool_call = rarely(
    st.builds(
        lambda i, function: {"id": i, "type": "function", "function": function}, st.sampled_from("ab"), _function
    ),
    some(id=ids | wrong, type=st.sampled_from(["function", "custom", None]), function=_function) | wrong,
)
_openai_parts = st.one_of(
    st.sampled_from(
        [
            {"type": "text", "text": "x"},
            {"type": "text"},
            {"text": "x"},
            {"type": "image_url", "image_url": {"url": "https://e.test/x"}},
            {"type": "image_url", "image_url": "https://e.test/x"},
            {"type": "image_url"},
            {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
            {"type": "input_audio", "input_audio": {"data": "data:x", "format": "mp3"}},
            {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "ogg"}},
            {"type": "input_audio", "input_audio": {}},
            {"type": "audio_url", "audio_url": {"url": "https://e.test/a"}},
            {"type": "file", "file": {"file_id": "f"}},
            {"type": "file", "file": 5},
            {"type": "refusal", "refusal": "no"},
            {"type": "thinking", "thinking": []},
            {"type": 5},
        ]
    ),
    wrong,
)
_openai_content = rarely(st.just("hi"), st.lists(_openai_parts, max_size=2) | wrong)
_message = st.one_of(
    st.builds(lambda content: {"role": "user", "content": content}, _openai_content),
    st.builds(lambda content: {"role": "assistant", "content": content}, _openai_content),
    st.builds(lambda i, content: {"role": "tool", "tool_call_id": i, "content": content}, ids | wrong, _openai_content),
    st.builds(
        lambda calls, content: {"role": "assistant", "content": content, "tool_calls": calls},
        st.lists(_tool_call, max_size=2) | wrong,
        st.none() | _openai_content,
    ),
    some(
        role=st.sampled_from(["user", "assistant", "system", "developer", "function", "x", None, 5]),
        content=_openai_content,
        refusal=st.just("no"),
        tool_calls=st.lists(_tool_call, max_size=1),
    ),
    wrong,
)


@st.composite
def openai_steps(draw: st.DrawFn) -> list[Any]:
    calls = draw(st.lists(_tool_call, min_size=1, max_size=2))
    answered = [call["id"] for call in calls if isinstance(call, dict) and isinstance(call.get("id"), str)]
    results = [{"role": "tool", "tool_call_id": name, "content": "{}"} for name in answered]
    if draw(st.integers(0, 3)) == 0:
        results = results[1:]
    return [{"role": "assistant", "content": None, "tool_calls": calls}, *results]


_messages = st.lists(
    st.just([{"role": "user", "content": "hi"}])
    | openai_steps()
    | rarely(st.just([]), _message.map(lambda one: [one])),
    min_size=1,
    max_size=4,
).map(lambda groups: [message for group in groups for message in group])
_openai_tool = rarely(
    st.builds(lambda name: {"type": "function", "function": {"name": name}}, usual_names),
    some(type=st.sampled_from(["function", "custom"]), function=some(name=rarely(names, wrong)) | wrong) | wrong,
)
_openai_rare = some(
    temperature=st.sampled_from([0, 1.5, 2, 3, -1, None, "1"]),
    tools=st.lists(_openai_tool, max_size=2) | wrong,
    reasoning_effort=st.sampled_from(["none", "minimal", "low", "xhigh", "max", None, 5]),
    stop=st.just(["x"]),
    top_k=st.just(5),
    stream=st.booleans(),
)
openai_requests = rarely(
    st.builds(
        lambda messages, rest: {"messages": messages, **rest}, _messages | _message.map(lambda m: [m]), _openai_rare
    ),
    st.builds(lambda messages, rest: {"messages": messages, **rest}, wrong, _openai_rare),
)
