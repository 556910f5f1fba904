"""Every rule of docs/wire-rules.md for OpenAI-compatible servers: what is refused, by which family, how strictly."""

from typing import Any

import pytest

from palaver.sim.openai.rules import PARAMETERS, Refusal, check, is_openai

OPENAI, COMPATIBLE = "gpt-4o", "compatible-1"
BOTH, OPENAI_ONLY, STRICT_ELSEWHERE, STRICT = "AA", "A-", "AS", "SS"
HELLO: dict[str, Any] = {"role": "user", "content": "hello"}


def a_call(identity: Any = "a", **changes: Any) -> dict[str, Any]:
    return {"id": identity, "type": "function", "function": {"name": "look", "arguments": "{}"}} | changes


def calls(*some: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(some)}


def a_result(identity: Any = "a") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": identity, "content": "found"}


def says(*messages: Any, **parameters: Any) -> dict[str, Any]:
    return {"messages": list(messages)} | parameters


def parts(*some: Any, role: str = "user") -> dict[str, Any]:
    return says({"role": role, "content": list(some)})


def a_tool(name: Any = "look", **changes: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}} | changes


def function(name: Any = "look", arguments: Any = "{}") -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


def answered(call: dict[str, Any]) -> dict[str, Any]:
    return says(HELLO, calls(call), a_result(call.get("id")))


def audio(**fields: Any) -> dict[str, Any]:
    return parts({"type": "input_audio", "input_audio": fields})


REFUSED: list[tuple[str, str, Any]] = [
    ("json", BOTH, None),
    ("json", BOTH, [HELLO]),
    ("json", BOTH, "text"),
    ("type", BOTH, {"messages": {}}),
    ("type", BOTH, {"messages": ""}),
    ("type", BOTH, says("hello")),
    ("type", BOTH, says(HELLO, None)),
    ("type", BOTH, says({"role": 1, "content": "x"})),
    ("type", BOTH, says({"role": "user", "content": 1})),
    ("type", BOTH, says({"role": "user", "content": {"type": "text", "text": "x"}})),
    ("type", BOTH, parts("hello")),
    ("type", BOTH, parts(None)),
    ("type", BOTH, says({"role": "assistant", "content": "x", "tool_calls": {}})),
    ("type", BOTH, says(calls("a"))),
    ("type", BOTH, says(calls(None))),
    ("type", BOTH, says(calls(a_call(function="look")))),
    ("type", BOTH, says({"role": "nobody", "content": "x"}, "hello")),
    ("no-messages", BOTH, {}),
    ("no-messages", BOTH, {"messages": None}),
    ("no-messages", BOTH, {"messages": []}),
    ("role", BOTH, says({"content": "x"})),
    ("role", BOTH, says({"role": None, "content": "x"})),
    ("role", BOTH, says({"role": "", "content": "x"})),
    ("role", BOTH, says({"role": "User", "content": "x"})),
    ("role", BOTH, says({"role": "model", "content": "x"})),
    ("no-content", STRICT_ELSEWHERE, says({"role": "user"})),
    ("no-content", STRICT_ELSEWHERE, says({"role": "system", "content": None}, HELLO)),
    ("no-content", STRICT_ELSEWHERE, says({"role": "developer"}, HELLO)),
    ("no-content", STRICT_ELSEWHERE, says({"role": "function", "name": "look"}, HELLO)),
    ("no-content", STRICT_ELSEWHERE, says(calls(a_call()), {"role": "tool", "tool_call_id": "a"})),
    ("no-content", STRICT_ELSEWHERE, says({"role": "assistant"})),
    ("no-content", STRICT_ELSEWHERE, says({"role": "assistant", "content": None, "refusal": None})),
    ("no-content", STRICT_ELSEWHERE, says({"role": "assistant", "tool_calls": []})),
    ("empty-content", STRICT_ELSEWHERE, parts()),
    ("empty-content", STRICT_ELSEWHERE, parts(role="assistant")),
    ("part-type", BOTH, parts({"text": "x"})),
    ("part-type", BOTH, parts({"type": None, "text": "x"})),
    ("part-type", BOTH, parts({"type": 1}, role="system")),
    ("part-type", STRICT_ELSEWHERE, parts({"type": "audio_url", "audio_url": {"url": "http://x/a.ogg"}})),
    ("part-type", STRICT_ELSEWHERE, parts({"type": ""})),
    ("part-type", OPENAI_ONLY, parts({"type": "image_url", "image_url": {"url": "x"}}, role="assistant")),
    ("part-type", STRICT_ELSEWHERE, parts({"type": "refusal", "refusal": "no"}, role="system")),
    ("part-type", STRICT_ELSEWHERE, parts({"type": "file", "file": {}}, role="developer")),
    ("part-data", BOTH, parts({"type": "text"})),
    ("part-data", BOTH, parts({"type": "text", "text": 1})),
    ("part-data", BOTH, parts({"type": "text"}, role="system")),
    ("part-data", STRICT, parts({"type": "image_url", "image_url": "http://x/a.png"})),
    ("part-data", BOTH, parts({"type": "image_url", "image_url": {}})),
    ("part-data", BOTH, parts({"type": "image_url", "image_url": None})),
    ("part-data", BOTH, parts({"type": "image_url", "image_url": ["x"]})),
    ("part-data", BOTH, parts({"type": "image_url", "image_url": {}}, role="assistant")),
    ("part-data", BOTH, audio(format="wav")),
    ("part-data", BOTH, parts({"type": "input_audio"})),
    ("part-data", BOTH, parts({"type": "file", "file": None})),
    ("part-data", BOTH, parts({"type": "file", "file": "id"})),
    ("audio-format", STRICT_ELSEWHERE, audio(data="AAAA", format="ogg")),
    ("audio-format", STRICT_ELSEWHERE, audio(data="AAAA")),
    ("audio-format", STRICT_ELSEWHERE, audio(data="data:audio/wav;base64,AAAA", format="wav")),
    ("no-tool-calls", STRICT_ELSEWHERE, says({"role": "assistant", "content": "x", "tool_calls": []})),
    ("no-tool-calls", STRICT_ELSEWHERE, says(HELLO | {"tool_calls": []})),
    ("call-shape", BOTH, answered(a_call(identity=None))),
    ("call-shape", BOTH, answered(a_call(identity=1))),
    ("call-shape", BOTH, answered(a_call(function=None))),
    ("call-shape", BOTH, answered({"id": "a", "function": {"arguments": "{}"}})),
    ("call-shape", BOTH, answered(a_call(function=function(name=None)))),
    ("call-shape", BOTH, answered(a_call(function=function(arguments={})))),
    ("call-shape", BOTH, answered(a_call(function=function(arguments=None)))),
    ("call-name", STRICT, answered(a_call(identity=""))),
    ("call-name", STRICT, answered(a_call(function=function(name="")))),
    ("call-name", STRICT, answered(a_call(function=function(name="look up")))),
    ("call-name", STRICT, answered(a_call(function=function(name="look\n")))),
    ("call-name", STRICT, answered(a_call(function=function(name="n" * 65)))),
    ("call-arguments", STRICT, answered(a_call(function=function(arguments="")))),
    ("call-arguments", STRICT, answered(a_call(function=function(arguments="[]")))),
    ("call-arguments", STRICT, answered(a_call(function=function(arguments='{"a":')))),
    ("call-arguments", STRICT, answered(a_call(function=function(arguments='{"a":NaN}')))),
    ("duplicate-id", STRICT, says(HELLO, calls(a_call(), a_call()), a_result())),
    ("duplicate-id", STRICT, says(HELLO, calls(a_call()), a_result(), a_result())),
    ("unanswered", BOTH, says(HELLO, calls(a_call()))),
    ("unanswered", BOTH, says(HELLO, calls(a_call()), HELLO)),
    ("unanswered", BOTH, says(HELLO, calls(a_call(), a_call("b")), a_result("b"))),
    ("unanswered", BOTH, says(HELLO, calls(a_call()), HELLO, a_result())),
    ("unanswered", BOTH, says(HELLO, calls(a_call("b", type="custom", function=None)))),
    ("orphan-result", BOTH, says(a_result())),
    ("orphan-result", BOTH, says(HELLO, a_result())),
    ("orphan-result", BOTH, says(HELLO, calls(a_call()), a_result(), a_result("b"))),
    ("orphan-result", BOTH, says(HELLO, calls(a_call()), a_result(None), a_result())),
    ("orphan-result", BOTH, says(HELLO, calls(a_call()), a_result(["a"]), a_result())),
    ("orphan-result", BOTH, says(HELLO, calls(a_call()), a_result(), HELLO, a_result())),
    ("orphan-result", BOTH, says(HELLO | {"tool_calls": [a_call()]}, a_result())),
    ("temperature", STRICT_ELSEWHERE, says(HELLO, temperature=2.01)),
    ("temperature", STRICT_ELSEWHERE, says(HELLO, temperature=-1)),
    ("tool-shape", BOTH, says(HELLO, tools=["look"])),
    ("tool-shape", BOTH, says(HELLO, tools=[None])),
    ("tool-shape", BOTH, says(HELLO, tools=[{"type": "function"}])),
    ("tool-shape", BOTH, says(HELLO, tools=[a_tool(function="look")])),
    ("tool-shape", BOTH, says(HELLO, tools=[a_tool(name=None)])),
    ("function-name", STRICT_ELSEWHERE, says(HELLO, tools=[a_tool("look.up")])),
    ("function-name", STRICT_ELSEWHERE, says(HELLO, tools=[a_tool("")])),
    ("function-name", STRICT_ELSEWHERE, says(HELLO, tools=[a_tool("look\n")])),
    ("function-twice", STRICT, says(HELLO, tools=[a_tool(), a_tool()])),
    ("unknown-parameter", OPENAI_ONLY, says(HELLO, foo=1)),
    ("unknown-parameter", OPENAI_ONLY, says(HELLO, extra_body={})),
]

ACCEPTED: list[Any] = [
    says(HELLO),
    says(HELLO | {"content": ""}),
    says(HELLO, {"role": "assistant", "content": ""}),
    says(HELLO, {"role": "assistant", "refusal": "no"}),
    says(HELLO, {"role": "assistant", "refusal": ""}),
    says(HELLO, {"role": "assistant", "audio": {"id": "x"}}),
    says(HELLO, {"role": "assistant", "function_call": {}}),
    says({"role": "developer", "content": "be good"}, HELLO, HELLO),
    says({"role": "system", "content": [{"type": "text", "text": "be good"}]}, HELLO),
    parts({"type": "text", "text": ""}, {"type": "image_url", "image_url": {"url": "x"}}),
    parts({"type": "file", "file": {}}, {"type": "refusal"}),
    parts({"type": "refusal", "refusal": "no"}, role="assistant"),
    audio(data="AAAA", format="mp3"),
    says(HELLO, calls(a_call(), a_call("b")), a_result("b"), a_result()),
    says(HELLO, calls(a_call()), a_result(), calls(a_call()), a_result(), HELLO),
    says(HELLO, calls(a_call(type=None)), a_result()),
    says(HELLO, calls(a_call(type="custom", function=None)), a_result()),
    says(HELLO, temperature=0, top_p=None, foo=None),
    says(HELLO, temperature=2),
    says(HELLO, temperature="hot"),
    says(HELLO, tools=[]),
    says(HELLO, tools={}),
    says(HELLO, tools=[{"type": "web_search"}, {}, {"function": {}}, a_tool("n" * 64), a_tool("m")]),
    says(HELLO, **dict.fromkeys(PARAMETERS - {"messages", "tools", "temperature", "model"}, 1)),
]


def rule_of(refusal: Refusal | None) -> str | None:
    return None if refusal is None else refusal.rule


@pytest.mark.parametrize(("rule", "when", "body"), REFUSED)
def test_plain_openai_refuses_what_is_always_refused(rule: str, when: str, body: Any) -> None:
    assert rule_of(check(body, model=OPENAI, strict=False)) == (rule if when[0] == "A" else None)


@pytest.mark.parametrize(("rule", "when", "body"), REFUSED)
def test_plain_compatible_refuses_what_all_refuse(rule: str, when: str, body: Any) -> None:
    assert rule_of(check(body, model=COMPATIBLE, strict=False)) == (rule if when[1] == "A" else None)


@pytest.mark.parametrize(("rule", "when", "body"), REFUSED)
def test_strict_openai_refuses_all_its_rules(rule: str, when: str, body: Any) -> None:
    assert rule_of(check(body, model=OPENAI)) == (None if when[0] == "-" else rule)


@pytest.mark.parametrize(("rule", "when", "body"), REFUSED)
def test_strict_compatible_refuses_all_its_rules(rule: str, when: str, body: Any) -> None:
    assert rule_of(check(body, model=COMPATIBLE)) == (None if when[1] == "-" else rule)


@pytest.mark.parametrize("body", ACCEPTED)
@pytest.mark.parametrize("model", [OPENAI, COMPATIBLE])
@pytest.mark.parametrize("strict", [True, False])
def test_what_no_rule_names_is_accepted(body: Any, model: str, strict: bool) -> None:
    assert check(body, model=model, strict=strict) is None


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("gpt-4o", True),
        ("gpt-oss-120b", False),
        ("chatgpt-4o-latest", True),
        ("codex-mini", True),
        ("o3-mini", True),
        ("o", False),
        ("olmo-2", False),
        ("openai/gpt-4o", False),
        ("gemini-3.8-flash", False),
        ("", False),
    ],
)
def test_the_family_follows_from_the_id(model: str, expected: bool) -> None:
    assert is_openai(model) is expected


@pytest.mark.parametrize(
    ("model", "rule"),
    [("o1-mini-2024-09-12", "no-system"), ("o1-preview", "no-system"), ("o1", None), ("azure/o1-mini", None)],
)
def test_early_reasoning_models_know_no_system_role(model: str, rule: str | None) -> None:
    body = says({"role": "system", "content": "be good"}, HELLO)

    assert rule_of(check(body, model=model)) == rule


@pytest.mark.parametrize(
    ("model", "effort", "tools", "rule"),
    [
        ("gpt-5.6", "low", [a_tool()], "reasoning-with-tools"),
        ("gpt-5.6-mini", "high", [a_tool()], "reasoning-with-tools"),
        ("gpt-5.6", "none", [a_tool()], None),
        ("gpt-5.6", None, [a_tool()], None),
        ("gpt-5.6", "low", [{"type": "web_search"}], None),
        ("gpt-5.6", "low", None, None),
        ("gpt-5.5", "low", [a_tool()], None),
        ("openai/gpt-5.6", "low", [a_tool()], None),
    ],
)
def test_the_latest_models_take_function_tools_only_without_reasoning(
    model: str, effort: str | None, tools: Any, rule: str | None
) -> None:
    body = says(HELLO, tools=tools, reasoning_effort=effort)

    assert rule_of(check(body, model=model, strict=False)) == rule


def test_the_model_is_the_one_the_body_names() -> None:
    body = says(HELLO, model=OPENAI, foo=1)

    assert rule_of(check(body)) == "unknown-parameter"
    assert check(body, model=COMPATIBLE) is None
    assert check(body | {"model": 7}) is None


def test_a_server_may_take_other_parts_from_users() -> None:
    body = parts({"type": "audio_url", "audio_url": {"url": "x"}})

    assert check(body, model=COMPATIBLE, extra_parts=frozenset({"audio_url"})) is None


INVALID = "invalid_request_error"


@pytest.mark.parametrize(
    ("body", "refusal"),
    [
        (
            says(HELLO, calls(a_call(), a_call("b"))),
            Refusal(
                "unanswered",
                400,
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each"
                " 'tool_call_id'. The following tool_call_ids did not have response messages: a, b",
                INVALID,
                "messages.[1].role",
                None,
            ),
        ),
        (
            says(HELLO, a_result()),
            Refusal(
                "orphan-result",
                400,
                "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with"
                " 'tool_calls'.",
                INVALID,
                "messages.[1].role",
                None,
            ),
        ),
        (
            parts({"type": "text", "text": "x"}, {"type": "audio_url"}),
            Refusal(
                "part-type",
                400,
                "Invalid value: 'audio_url'. Supported values are: 'text', 'image_url', 'input_audio', 'refusal',"
                " and 'file'.",
                INVALID,
                "messages[0].content[1].type",
                "invalid_value",
            ),
        ),
        (
            says(HELLO, {"role": "assistant", "content": [{"type": "file", "file": {}}]}),
            Refusal(
                "part-type",
                400,
                "Invalid 'messages[1]'. Content blocks are expected to be either text or image_url type.",
                INVALID,
                "messages[1]",
                "invalid_value",
            ),
        ),
        (
            says(HELLO, temperature=99.0),
            Refusal(
                "temperature",
                400,
                "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 99.0 instead.",
                INVALID,
                "temperature",
                "decimal_above_max_value",
            ),
        ),
        (
            says(HELLO, foo=1),
            Refusal("unknown-parameter", 400, "Unknown parameter: 'foo'.", INVALID, "foo", "unknown_parameter"),
        ),
        (
            parts({"type": "image_url", "image_url": {}}),
            Refusal(
                "part-data",
                400,
                "Missing required parameter: 'messages[0].content[0].image_url.url'.",
                INVALID,
                "messages[0].content[0].image_url.url",
                "missing_required_parameter",
            ),
        ),
    ],
)
def test_a_refusal_has_the_words_of_the_service(body: Any, refusal: Refusal) -> None:
    assert check(body, model=OPENAI) == refusal
