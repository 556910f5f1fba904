"""Every Gemini rule of docs/wire-rules.md as requests, with how each generation takes them."""

from typing import Any

from msgspec import Struct

Wire = dict[str, Any]

MODELS = {
    "2.0": "gemini-2.0-flash",
    "2.5": "gemini-2.5-flash",
    "3": "gemini-3-flash-preview",
    "3.1": "gemini-3.1-flash-lite",
    "3.5": "gemini-3.5-flash",
    "3.5-lite": "gemini-3.5-flash-lite",
    "3.6": "gemini-3.6-flash",
    "3.7": "gemini-3.8-flash",
    "4": "gemini-4-argon",
    "gemma-3": "gemma-3-27b-it",
    "gemma-4": "gemma-4-31b-it",
}
EVERYWHERE = "A" * 11
FILM: Wire = {"fileData": {"fileUri": "https://youtu.be/x"}}
SOMETIMES = "S" * 11


class Row(Struct, frozen=True):
    """A body and how each generation takes it, in the order of `MODELS`: always, in strict or never refused,
    or refused by another rule (x)."""

    rule: str
    grades: str
    body: Any


def text(words: str = "hi") -> Wire:
    return {"text": words}


def call(name: str = "look", signature: str | None = "c2ln", **changes: Any) -> Wire:
    part: Wire = {"functionCall": {"name": name, "args": {}, **changes}}
    return part | ({"thoughtSignature": signature} if signature else {})


def result(name: str = "look", **changes: Any) -> Wire:
    return {"functionResponse": {"name": name, "response": {"ok": True}, **changes}}


def user(*parts: Wire) -> Wire:
    return {"role": "user", "parts": list(parts)}


def model(*parts: Wire) -> Wire:
    return {"role": "model", "parts": list(parts)}


def said(*contents: Wire, **more: Any) -> Wire:
    return {"contents": list(contents), **more}


def hello(**more: Any) -> Wire:
    return said(user(text()), **more)


def tooled(*declared: Wire, **more: Any) -> Wire:
    return hello(tools=[{"functionDeclarations": list(declared)}], **more)


def thinking(**config: Any) -> Wire:
    return hello(generationConfig={"thinkingConfig": config})


def holding(**parameters: Any) -> Wire:
    return tooled({"name": "f", "parameters": parameters})


def inline(**data: Any) -> Wire:
    return said(user({"inlineData": data}))


SHAPE = [
    Row("json", EVERYWHERE, ["contents"]),
    Row("json", EVERYWHERE, None),
    Row("type", EVERYWHERE, {"contents": "hi"}),
    Row("type", EVERYWHERE, {"contents": ["hi"]}),
    Row("type", EVERYWHERE, {"contents": [None]}),
    Row("type", EVERYWHERE, hello(systemInstruction="be brief")),
    Row("type", EVERYWHERE, hello(systemInstruction={"parts": [{"text": 1}]})),
    Row("type", EVERYWHERE, hello(tools="search")),
    Row("type", EVERYWHERE, hello(toolConfig={"functionCallingConfig": []})),
    Row("type", EVERYWHERE, said({"role": 1, "parts": [text()]})),
    Row("type", EVERYWHERE, said(user({"text": "a", "thought": "yes"}))),
    Row("type", EVERYWHERE, said(user({**FILM, "videoMetadata": "300s"}))),
    Row("type", EVERYWHERE, said(user({**FILM, "videoMetadata": {"endOffset": 300}}))),
    Row("unknown-field", EVERYWHERE, said(user({**FILM, "videoMetadata": {"end": "300s"}}))),
    Row("type", EVERYWHERE, said(user(text()), model({"functionCall": {"name": "f", "args": []}}))),
    Row("unknown-field", EVERYWHERE, hello(temperature=1)),
    Row("unknown-field", EVERYWHERE, hello(generationConfig={"thinkingLevel": "low"})),
    Row("unknown-field", EVERYWHERE, holding(type="object", properties={"a": {"const": 1}})),
    Row("unknown-field", EVERYWHERE, holding(**{"$defs": {"a": {"anyOf": [{"examples": []}]}}})),
    Row("unknown-field", EVERYWHERE, hello(generationConfig={"responseSchema": {"additionalProperties": {"x": 1}}})),
    Row("duplicate-field", EVERYWHERE, hello(generationConfig={}, generation_config={})),
    Row("duplicate-field", EVERYWHERE, holding(anyOf=[], any_of=[])),
    Row("no-contents", EVERYWHERE, {}),
    Row("no-contents", EVERYWHERE, {"contents": []}),
    Row("no-parts", EVERYWHERE, {"contents": {}}),
    Row("no-parts", EVERYWHERE, said({"role": "user", "parts": []})),
    Row("no-data", EVERYWHERE, said({"role": "user", "parts": {}})),
    Row("no-data", EVERYWHERE, said(user({"thoughtSignature": "c2ln"}))),
    Row("no-data", "AAAAAAAAAAA", hello(systemInstruction={"parts": [{"text": None}]})),
    Row("no-data", "-SSSSSSSSSS", said(user({"videoMetadata": {"fps": 1}}))),
    Row("no-data", "AAAAAAAAAAA", said(user({"videoMetadata": {"fps": 1}, "thought": False}))),
    Row("two-data", EVERYWHERE, said(user({"text": "a", "inlineData": {"mimeType": "image/png", "data": ""}}))),
    Row("no-system-parts", "SSSSSSSSSxS", hello(systemInstruction={})),
]

ROLES = [
    Row("role", EVERYWHERE, said({"role": "robot", "parts": [text()]})),
    Row("role", "AAAAAASSSAA", said({"role": "system", "parts": [text()]}, user(text()))),
    Row("role", "SSSSSSAAASS", said({"role": "function", "parts": [text()]})),
    Row("role", SOMETIMES, said({"role": "User", "parts": [text()]})),
    Row("role", SOMETIMES, said({"parts": [text()]}, {"role": "", "parts": [text()]})),
]

ASKED = (user(text()), model(call()))
CONVERSATION = [
    Row("ends-with-model", "-----AAAA--", said(user(text()), model(text()))),
    Row("text-after-results", "--SSSAAAA--", said(*ASKED, user(result(), text()))),
    Row("call-after-user", EVERYWHERE, said(model(call()), user(result()))),
    Row("result-after-call", EVERYWHERE, said(user(result()))),
    Row("result-after-call", EVERYWHERE, said(user(text()), model(text()), user(result()))),
    Row("result-first", SOMETIMES, said(*ASKED, user(text()), user(result()))),
    Row("count", EVERYWHERE, said(*ASKED, user(text()))),
    Row("count", EVERYWHERE, said(*ASKED, user(result(), result()))),
    Row("unanswered", "SSSSSxxxxSS", said(*ASKED)),
    Row("call-id", "SSAAAAAAASS", said(user(text()), model(call(id="a")), user(result(id="b")))),
    Row("call-id", SOMETIMES, said(user(text()), model(call()), user(result(id="b")))),
    Row("call-name", SOMETIMES, said(*ASKED, user(result("hear")))),
    Row(
        "duplicate-id",
        SOMETIMES,
        said(user(text()), model(call(id="a"), call(id="a")), user(result(id="a"), result(id="a"))),
    ),
    Row("result-name", EVERYWHERE, said(*ASKED, user(result("")))),
    Row("call-no-name", SOMETIMES, said(user(text()), model(call(name=""), call()), user(result(), result()))),
    Row("no-response", SOMETIMES, said(*ASKED, user(result(response=None)))),
    Row("result-parts", "AA-------AA", said(*ASKED, user(result(parts=[{"inlineData": {}}])))),
    Row("misplaced-call", SOMETIMES, said(user(text(), call()))),
    Row("misplaced-call", SOMETIMES, said(user(text()), model(text(), result()), user(text()))),
    Row("signature", "-SAAAAAAA--", said(user(text()), model(call(signature=None)), user(result()))),
    Row("signature", "-SAAAAAAA--", said(user(text()), model(call(signature="")), user(result()))),
    Row(
        "signature",
        "-SSSSSSSS--",
        said(user(text()), model(call()), model(call(signature=None)), user(result(), result())),
    ),
]

MEDIA = [
    Row("no-mime", EVERYWHERE, inline(data="aGk=")),
    Row("mime", EVERYWHERE, inline(data="aGk=", mimeType="image/jpg")),
    Row("mime", EVERYWHERE, inline(data="aGk=", mime_type="png")),
    Row(
        "mime", EVERYWHERE, said(user({"fileData": {"fileUri": "https://a/b", "mimeType": "application/octet-stream"}}))
    ),
    Row("mime", SOMETIMES, inline(data="aGk=", mimeType="image/tiff")),
    Row("base64", EVERYWHERE, inline(mimeType="image/png")),
    Row("base64", EVERYWHERE, inline(mimeType="image/png", data="aGk=\n")),
    Row("no-uri", SOMETIMES, said(user({"fileData": {"mimeType": "image/png"}}))),
]

F = {"name": "f"}
SETTINGS = [
    Row("thinking-both", EVERYWHERE, thinking(thinkingBudget=1024, thinkingLevel="high")),
    Row("thinking-level", "SA-------A-", thinking(thinking_level="HIGH")),
    Row("thinking-level", "SA-----ASA-", thinking(thinkingLevel="minimal")),
    Row("thinking-level", "SA-------AS", thinking(thinkingLevel="low")),
    Row("thinking-level", EVERYWHERE, thinking(thinkingLevel="extreme")),
    Row("thinking-budget", "S-------AAA", thinking(thinkingBudget=1024)),
    Row("thinking-budget", "SA------AAA", thinking(thinkingBudget=24577)),
    Row("thinking-budget", "S-SSSSSSAAA", thinking(thinkingBudget=0)),
    Row("candidates", "--AAAAAAASS", hello(generationConfig={"candidateCount": 2})),
    Row("json-with-functions", "AA-------AA", tooled(F, generationConfig={"responseMimeType": "application/json"})),
    Row("cached-with-others", EVERYWHERE, hello(cachedContent="cachedContents/x", toolConfig={})),
    Row("no-system", "---------A-", hello(systemInstruction={"parts": [text()]})),
    Row("safety-twice", SOMETIMES, hello(safetySettings=[{"category": "A"}, {"category": "A"}])),
]

TOOLS = [
    Row("tool-type", EVERYWHERE, hello(tools=[{}])),
    Row("tool-type", EVERYWHERE, hello(tools={"functionDeclarations": []})),
    Row("function-name", EVERYWHERE, tooled({"description": "nameless"})),
    Row("function-name", EVERYWHERE, tooled({"name": "1st"})),
    Row("function-name", EVERYWHERE, tooled({"name": "f" * 129})),
    Row("function-name", "SSSSSSSSSxS", tooled({"name": "f" * 65})),
    Row("function-twice", "SSSSSSSSSxS", tooled(F, F)),
    Row("function-many", EVERYWHERE, tooled(*({"name": f"f{n}"} for n in range(513)))),
    Row("schema-twice", "SSSSSSSSSxS", tooled({"name": "f", "parameters": {}, "parametersJsonSchema": {}})),
    Row("schema-items", EVERYWHERE, holding(type="OBJECT", properties={"a": {"type": "ARRAY"}})),
    Row("schema-type", EVERYWHERE, holding(type=["string", "null"])),
    Row(
        "allowed-names",
        EVERYWHERE,
        tooled(F, toolConfig={"functionCallingConfig": {"mode": "auto", "allowedFunctionNames": ["f"]}}),
    ),
    Row("built-in-with-functions", "AAAAAAAAAxx", hello(tools=[{"functionDeclarations": [F], "googleSearch": {}}])),
    Row("server-side-tools", "AA-------xx", tooled(F, toolConfig={"includeServerSideToolInvocations": True})),
    Row("no-functions", "---------AS", tooled(F)),
]

GOOD = [
    Row("", "-", body)
    for body in (
        hello(),
        said(user(text()), model(call(id="a")), user(result())),
        {"contents": {"parts": {"text": ""}}},
        hello(nonsense=None, generation_config=None, generationConfig={"topK": 3, "top_p": 0.5}),
        said(user(text()), model(call(id="a"), call(signature=None, id="b")), user(result(id="b"), result(id="a"))),
        said(user(text()), model(call()), user(result()), user(text())),
        said(user(text()), model(text()), user(text())),
        said(user(text()), model(text()), model(call()), user(result())),
        said(user(text()), model(text()), model(text()), model(call()), user(result())),
        hello(toolConfig={"functionCallingConfig": {}}),
        hello(toolConfig={"functionCallingConfig": {"mode": "NONE"}}),
        said(user(text()), model(call(signature=None)), user(result()), model(text()), user(text())),
        said(user(text()), model(call()), model(call()), user(result()), user(result())),
        inline(mimeType="audio/ogg; codecs=opus", data="-_+/"),
        inline(mime_type="image/png", data=""),
        said(user({"fileData": {"fileUri": "https://youtu.be/x"}})),
        hello(generationConfig={"thinkingConfig": {"thinkingLevel": "thinking_level_unspecified"}}),
    )
]

ROWS = SHAPE + ROLES + CONVERSATION + MEDIA + SETTINGS + TOOLS
