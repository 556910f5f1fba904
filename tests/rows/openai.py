"""Every OpenAI-compatible rule of docs/wire-rules.md as requests, with how each family takes them."""

import re
from pathlib import Path
from typing import Any

_PAGE = Path(__file__).parents[2] / "docs" / "wire-rules.md"
[_LISTED] = re.findall(r"Parameters of `openai`: `(.*?)`", _PAGE.read_text("utf-8"), flags=re.DOTALL)
PARAMETERS = set(_LISTED.split())

OPENAI, COMPATIBLE, MISTRAL = "gpt-4o", "compatible-1", "voxtral-small-latest"
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
    ("part-type", OPENAI_ONLY, parts({"type": "audio_url", "audio_url": {"url": "http://x/a.ogg"}})),
    ("part-type", STRICT_ELSEWHERE, parts({"type": "document_url", "document_url": "http://x/a.pdf"})),
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

ASKED_TO_THINK = ["o1", "gpt-5", "gpt-5-mini", "gpt-5.1-chat-latest", "gpt-5.5", "gpt-5.6-sol", "gpt-6-luna", "gpt-9"]
SETTINGS: list[tuple[str, str, Any]] = [  # a model, how it takes a setting, the request
    *[
        (model, when, says(HELLO, **setting))
        for when, models in {
            "A": [*ASKED_TO_THINK, "gpt-6-astra", "gpt-6.1-sol", "gpt-4o-search-preview"],
            "-": ["gpt-4o", "gpt-4.1-mini", "gpt-5-chat-latest", "chatgpt-4o-latest", "gpt-3.5-turbo", "openai/gpt-6"],
        }.items()
        for model in models
        for setting in ({"temperature": 0.5}, {"top_p": 0.9}, {"stop": ["x"]})
    ],
    *[
        (model, when, says(HELLO, **setting, reasoning_effort=effort))
        for model, effort in [("gpt-5.1", None), ("gpt-5.4-mini", None), ("gpt-5.6", "none"), ("gpt-6.1-terra", "none")]
        for when, setting in (("-", {"temperature": 0.5}), ("-", {"top_p": 0.9}), ("S", {"stop": ["x"]}))
    ],
    ("gpt-5.4", "A", says(HELLO, temperature=0.5, reasoning_effort="low")),
    ("o3-mini", "A", says(HELLO, temperature=0.5)),
    ("o3-mini", "-", says(HELLO, stop=["x"])),
    ("gpt-6-sol", "-", says(HELLO, temperature=1, top_p=1.0)),
    *[
        (model, "-" if effort in efforts.split() else "A", says(HELLO, reasoning_effort=effort))
        for model, efforts in {
            "gpt-4o": "",
            "gpt-5-chat-latest": "",
            "gpt-4o-search-preview": "",
            "o3": "low medium high",
            "gpt-5-nano": "minimal low medium high",
            "gpt-5.1": "none low medium high",
            "gpt-5.2-chat-latest": "medium",
            "gpt-5.2": "none low medium high xhigh",
            "gpt-5.6": "none low medium high xhigh",
            "gpt-6-luna": "none low medium high xhigh",
            "gpt-6-astra": "low medium high xhigh",
            "gpt-6.1-sol": "low medium high xhigh",
            "gpt-6.1-terra": "none low medium high xhigh",
            "gpt-10": "none low medium high xhigh",
        }.items()
        for effort in ("none", "minimal", "low", "medium", "high", "xhigh", "max")
    ],
]

BESIDE_TOOLS: list[
    tuple[str, bool, Any]
] = [  # a model, whether it refuses function tools beside an effort, the request
    *[
        (model, effort not in taken, says(HELLO, tools=[a_tool()], reasoning_effort=effort))
        for model, taken in {
            "o3": (None, "low"),
            "gpt-5": (None, "low"),
            "gpt-5.3": (None, "none", "low"),
            "gpt-5.4": (None, "none"),
            "gpt-5.5": ("none",),
            "gpt-5.6-mini": ("none",),
            "gpt-6-luna": ("none",),
            "gpt-6.1-terra": ("none",),
            "gpt-6-astra": (),
            "gpt-6.1-sol": (),
            "openai/gpt-6-astra": (None, "none", "low"),
        }.items()
        for effort in (None, "low", *(["none"] if "none" in taken else []))
    ],
    ("gpt-5.6", False, says(HELLO, tools=[{"type": "web_search"}], reasoning_effort="low")),
]

MISTRALS: list[Any] = [  # what Mistral takes, and the others do not
    parts(),
    parts(role="assistant"),
    parts({"type": "input_audio", "input_audio": "AAAA"}),
    parts({"type": "input_audio", "input_audio": "https://e.test/a.mp3"}),
    parts({"type": "document_url", "document_url": "https://e.test/d.pdf"}),
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
    says(HELLO, **dict.fromkeys(PARAMETERS - {"messages", "tools", "temperature", "model", "reasoning_effort"}, 1)),
]
