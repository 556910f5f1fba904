"""How long it takes to make a request's bytes out of a held history with one new message, beside the peers."""

import argparse
import asyncio
import base64
import gc
import json
import random
import re
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing import get_context
from typing import Any, Literal, TypeVar

import httpx2
import orjson
from msgspec import Struct

from palaver.models.gemini import encode as gemini
from palaver.models.gemini.client import Gemini
from palaver.models.openai import encode as openai
from palaver.parts import Media, Part, Text, ToolCall, ToolResult
from palaver.turns import Prompt, ToolSpec, Turn
from palaver.wire.repair import repaired

GEMINI_MODEL = "gemini-3.6-flash"
OPENAI_MODEL = "gpt-4.1"
SIZES = (10, 100, 500, 5000)
REPEATS = 21
LEAST_REPEATS = 3  # however slow the subject
SECONDS = 3.0  # after which a subject is not repeated again
BATCH_SECONDS = 0.002  # what is faster is timed in batches about this long

SYSTEM = "You are a friend in a group chat. Answer briefly, in the language you are spoken to."
TOOL = "search_messages"
TOOL_WORDS = "Search the messages of this chat."
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"query": {"type": "string", "description": "what to look for"}},
    "required": ["query"],
}
IMAGE_START = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00\xff\xdb\x00C"[:24]
SIGNATURE_START = b"an opaque thought of it!"  # 24 bytes, so that its base64 stands by itself
WORDS = {
    "Latin": "the we have a picture of what was said about dinner tomorrow train leaves quarter to nine please bring "
    "that book you mentioned it seems nobody remembers where café naïve good idea then".split(),
    "Cyrillic": "ми вчора говорили про поїздку до Львова а потім хтось сказав що квитки вже є якщо можна то візьми "
    "фотоапарат і теплу куртку бо ввечері холодно їдемо зранку не забудь".split(),
}


class Said(Struct, frozen=True, kw_only=True):
    """One message of the conversation everybody encodes; each subject keeps it in its own types."""

    kind: Literal["user", "model", "call", "result"]
    text: str
    call_id: str = ""
    image: bytes = b""
    signature: bytes = b""


T = TypeVar("T")
Run = Callable[[], tuple[float, bytes]]  # encodes one request whose last message is new: its CPU seconds, its body
Subject = Callable[[Sequence[Said], Said], Run]  # keeps the history, takes the new message


class Row(Struct, frozen=True, kw_only=True):
    n: int
    name: str
    ms: float


# the conversation


def conversation(n: int) -> list[Said]:
    """*n* messages, the last of them new: every 25th with an image, every tenth exchange with a tool call."""
    random_ = random.Random(n)
    said: list[Said] = []
    images = 0
    plain: list[Literal["user", "model"]] = ["user", "model"]
    if n % 2 == 0:
        said.append(Said(kind="user", text=_words(0, random_)))
    for exchange in range(n):
        left = n - 1 - len(said)
        if left <= 0:
            break
        for kind in ("user", "call", "result", "model") if exchange % 10 == 2 and left >= 4 else plain:
            number = len(said)
            due = kind == "user" and (number + 20) // 25 > images
            images += due
            said.append(
                Said(
                    kind=kind,
                    text=_words(number, random_),
                    call_id=f"call{exchange}",
                    image=IMAGE_START + random_.randbytes(8_000) if due else b"",
                    signature=SIGNATURE_START + random_.randbytes(180) if kind == "call" else b"",
                )
            )
    return [*said, Said(kind="user", text=_words(n - 1, random_))]


def _words(number: int, random_: random.Random) -> str:
    """20 to 400 characters that begin with the message's number, by which it is found again in the bytes."""
    words = random_.choice(list(WORDS.values()))
    text = f"[[message {number}]]"
    length = random_.randint(20, 400)
    while len(text) < length:
        text += f" {random_.choice(words)}"
    return text[: max(length, 20)]


def check(name: str, body: bytes, said: Sequence[Said], *, signed: bool) -> None:
    """Nobody is measured doing nothing: all messages, images and signatures are in the body."""
    numbers = [int(number) for number in re.findall(rb"\[\[message (\d+)\]\]", body)]
    assert sorted(numbers) == list(range(len(said))), f"{name}: {len(numbers)} of {len(said)} messages were encoded"
    images = sum(1 for one in said if one.image)
    assert _times(IMAGE_START, body) == images, f"{name}: {_times(IMAGE_START, body)} of {images} images were encoded"
    signatures = sum(1 for one in said if one.signature) if signed else 0
    assert _times(SIGNATURE_START, body) == signatures, f"{name}: the signatures were not encoded"
    assert TOOL_WORDS.encode() in body, f"{name}: the tool was not declared"
    assert SYSTEM.encode() in body, f"{name}: the instruction is missing"


def _times(start: bytes, body: bytes) -> int:
    """How often data beginning with *start* is in the body: in base64 of either alphabet, or as it is in protobuf."""
    return len({match.start() for form in _forms(start) for match in re.finditer(re.escape(form), body)})


def _forms(start: bytes) -> tuple[bytes, ...]:
    return start, base64.b64encode(start), base64.urlsafe_b64encode(start)


# how a subject is run


def direct(fresh: Callable[[], T], encode: Callable[[T], bytes]) -> Run:
    """Time *encode* alone, in batches if it is fast; what *fresh* makes is made before."""
    batch = 1

    def run() -> tuple[float, bytes]:
        nonlocal batch
        given = [fresh() for _ in range(batch)]
        body = b""
        start = time.process_time()
        for one in given:
            body = encode(one)
        took = (time.process_time() - start) / batch
        batch = max(1, min(200, int(BATCH_SECONDS / max(took, 1e-6))))
        return took, body

    return run


class Stub:
    """A transport that takes the time when the request's bytes reach it, and gives a small answer."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self.answer = answer
        self.body = b""
        self.at = 0.0

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.at = time.process_time()
        self.body = request.content
        return httpx2.Response(200, json=self.answer)

    def client(self) -> httpx2.Client:
        return httpx2.Client(transport=httpx2.MockTransport(self))

    def async_client(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(transport=httpx2.MockTransport(self))

    def timed(self, call: Callable[[], object]) -> Run:
        def run() -> tuple[float, bytes]:
            start = time.process_time()
            call()
            return self.at - start, self.body

        return run


GEMINI_ANSWER: dict[str, Any] = {
    "candidates": [{"content": {"role": "model", "parts": [{"text": "Yes."}]}, "finishReason": "STOP"}],
    "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
    "modelVersion": GEMINI_MODEL,
    "responseId": "r",
}
OPENAI_ANSWER: dict[str, Any] = {
    "id": "r",
    "object": "chat.completion",
    "created": 1,
    "model": OPENAI_MODEL,
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Yes."}}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}

# ours


def turn_of(said: Said, model: str, *, signed: bool = True) -> Turn:
    signature = base64.b64encode(said.signature).decode() if signed else None
    match said.kind:
        case "call":
            call = ToolCall(name=TOOL, args={"query": said.text}, id=said.call_id, signature=signature)
            return Turn(role="model", parts=(call,), model=model)
        case "result":
            return Turn(role="user", parts=(ToolResult(name=TOOL, value={"found": said.text}, id=said.call_id),))
        case "model":
            return Turn(role="model", parts=(Text(text=said.text),), model=model)
        case "user":
            parts: tuple[Part, ...] = (Text(text=said.text),)
            if said.image:
                image = Media(media_kind="photo", unique_id=said.text, mime="image/jpeg", data=said.image)
                parts = (*parts, image)
            return Turn(role="user", parts=parts)


def _tools() -> list[ToolSpec]:
    return [ToolSpec(name=TOOL, description=TOOL_WORDS, parameters=SCHEMA)]


def _prompts(
    history: Sequence[Said], new: Said, model: str = GEMINI_MODEL, *, signed: bool = True
) -> Callable[[], Prompt]:
    """Makes prompts of the turns that are kept, their bytes with them, and of a last one that is always new."""
    kept = [turn_of(one, model, signed=signed) for one in history]
    tools = _tools()
    return lambda: Prompt.of(*kept, turn_of(new, model), system=SYSTEM, tools=tools)


def palaver(history: Sequence[Said], new: Said) -> Run:
    return direct(_prompts(history, new), lambda prompt: gemini.encode_request(prompt, model=GEMINI_MODEL))


def palaver_with_repair(history: Sequence[Said], new: Said) -> Run:
    def encode(prompt: Prompt) -> bytes:
        return gemini.encode_request(repaired(prompt, GEMINI_MODEL, wire="gemini"), model=GEMINI_MODEL)

    return direct(_prompts(history, new), encode)


def palaver_client(history: Sequence[Said], new: Said) -> Run:
    """The whole way of a user's call, as the peers' clients are measured: prompt, repair, encoding, HTTP request."""
    prompts = _prompts(history, new)
    loop, stub = asyncio.new_event_loop(), Stub(GEMINI_ANSWER)
    model = Gemini(GEMINI_MODEL, key="k")
    model._http._client, model._http._loop = stub.async_client(), loop
    return stub.timed(lambda: loop.run_until_complete(model.respond(prompts())))


def palaver_cold(history: Sequence[Said], new: Said) -> Run:
    def fresh() -> Prompt:
        turns = [turn_of(one, GEMINI_MODEL) for one in (*history, new)]
        return Prompt.of(*turns, system=SYSTEM, tools=_tools())

    return direct(fresh, lambda prompt: gemini.encode_request(prompt, model=GEMINI_MODEL))


def palaver_openai(history: Sequence[Said], new: Said) -> Run:
    prompts = _prompts(history, new, OPENAI_MODEL, signed=False)
    return direct(prompts, lambda prompt: openai.encode_request(prompt, model=OPENAI_MODEL))


# floors: the same body by the least work there is


def floor_join(history: Sequence[Said], new: Said) -> Run:
    """One join of ready bytes; the envelope sticks to the first and the last."""
    body = gemini.encode_request(_prompts(history[:1], new)(), model=GEMINI_MODEL)
    first, new_bytes = (orjson.dumps(content) for content in orjson.loads(body)["contents"])
    head, tail = body.split(first + b"," + new_bytes)
    ready = [orjson.dumps(content) for content in _contents(history)]
    ready[0] = head + ready[0]
    return direct(lambda: _contents([new])[0], lambda last: b",".join([*ready, orjson.dumps(last) + tail]))


def floor_orjson(history: Sequence[Said], new: Said) -> Run:
    """The whole body as ready dictionaries, base64 done, written by orjson."""
    envelope = orjson.loads(gemini.encode_request(_prompts([], new)(), model=GEMINI_MODEL))
    ready = _contents([*history, new])
    return direct(lambda: {**envelope, "contents": ready}, orjson.dumps)


def _contents(said: Sequence[Said]) -> list[dict[str, Any]]:
    bodies = (gemini.encode_turn(turn_of(one, GEMINI_MODEL), model=GEMINI_MODEL) for one in said)
    return [content for body in bodies for content in orjson.loads(body)]


# the peers, each with its own types


def google_genai(history: Sequence[Said], new: Said) -> Run:
    from google.genai import types

    return _genai([types.Content.model_validate(_genai_dict(one)) for one in (*history, new)])


def google_genai_dicts(history: Sequence[Said], new: Said) -> Run:
    return _genai([_genai_dict(one) for one in (*history, new)])


def _genai(contents: Any) -> Run:
    from google import genai
    from google.genai import types

    stub = Stub(GEMINI_ANSWER)
    client = genai.Client(api_key="k", http_options=types.HttpOptions(httpx_client=stub.client()))
    declaration = types.FunctionDeclaration(name=TOOL, description=TOOL_WORDS, parameters_json_schema=SCHEMA)
    tools = [types.Tool(function_declarations=[declaration])]
    config = types.GenerateContentConfig(system_instruction=SYSTEM, tools=[*tools])
    return stub.timed(lambda: client.models.generate_content(model=GEMINI_MODEL, contents=contents, config=config))


def _genai_dict(said: Said) -> dict[str, Any]:
    match said.kind:
        case "call":
            call = {"id": said.call_id, "name": TOOL, "args": {"query": said.text}}
            return {"role": "model", "parts": [{"function_call": call, "thought_signature": said.signature}]}
        case "result":
            result = {"id": said.call_id, "name": TOOL, "response": {"found": said.text}}
            return {"role": "user", "parts": [{"function_response": result}]}
    parts: list[dict[str, Any]] = [{"text": said.text}]
    if said.image:
        parts.append({"inline_data": {"mime_type": "image/jpeg", "data": said.image}})
    return {"role": said.kind, "parts": parts}


def openai_sdk(history: Sequence[Said], new: Said) -> Run:
    from openai import OpenAI

    stub = Stub(OPENAI_ANSWER)
    client = OpenAI(api_key="k", http_client=stub.client())
    messages: Any = [{"role": "system", "content": SYSTEM}, *(_openai_dict(one) for one in (*history, new))]
    function = {"name": TOOL, "description": TOOL_WORDS, "parameters": SCHEMA}
    tools: Any = [{"type": "function", "function": function}]
    return stub.timed(
        lambda: client.chat.completions.create(model=OPENAI_MODEL, messages=messages, tools=tools, stream=False)
    )


def _openai_dict(said: Said) -> dict[str, Any]:
    match said.kind:
        case "call":
            function = {"name": TOOL, "arguments": json.dumps({"query": said.text}, ensure_ascii=False)}
            calls = [{"id": said.call_id, "type": "function", "function": function}]
            return {"role": "assistant", "content": None, "tool_calls": calls}
        case "result":
            found = json.dumps({"found": said.text}, ensure_ascii=False)
            return {"role": "tool", "tool_call_id": said.call_id, "content": found}
        case "model":
            return {"role": "assistant", "content": said.text}
    if not said.image:
        return {"role": "user", "content": said.text}
    url = f"data:image/jpeg;base64,{base64.b64encode(said.image).decode()}"
    image = {"type": "image_url", "image_url": {"url": url}}
    return {"role": "user", "content": [{"type": "text", "text": said.text}, image]}


def pydantic_ai_google(history: Sequence[Said], new: Said) -> Run:
    from google import genai
    from google.genai import types
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    stub = Stub(GEMINI_ANSWER)
    options = types.HttpOptions(httpx_async_client=stub.async_client())
    client = genai.Client(api_key="k", http_options=options)
    return _pydantic_ai(GoogleModel(GEMINI_MODEL, provider=GoogleProvider(client=client)), stub, [*history, new])


def pydantic_ai_openai(history: Sequence[Said], new: Said) -> Run:
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    stub = Stub(OPENAI_ANSWER)
    client = AsyncOpenAI(api_key="k", http_client=stub.async_client())
    model = OpenAIChatModel(OPENAI_MODEL, provider=OpenAIProvider(openai_client=client))
    return _pydantic_ai(model, stub, [*history, new])


def _pydantic_ai(model: Any, stub: Stub, said: Sequence[Said]) -> Run:
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.tools import ToolDefinition

    loop = asyncio.new_event_loop()
    tool = ToolDefinition(name=TOOL, description=TOOL_WORDS, parameters_json_schema=SCHEMA)
    parameters = ModelRequestParameters(function_tools=[tool])
    messages = [_pydantic_ai_message(one, model.system) for one in said]
    return stub.timed(lambda: loop.run_until_complete(model.request(messages, None, parameters)))


def _pydantic_ai_message(said: Said, provider: str) -> Any:
    from pydantic_ai import messages

    match said.kind:
        case "call":
            details = {"thought_signature": base64.b64encode(said.signature).decode()}
            call = messages.ToolCallPart(TOOL, {"query": said.text}, said.call_id, provider_details=details)
            return messages.ModelResponse([call], provider_name=provider)
        case "result":
            result = messages.ToolReturnPart(TOOL, {"found": said.text}, said.call_id)
            return messages.ModelRequest([result], instructions=SYSTEM)
        case "model":
            return messages.ModelResponse([messages.TextPart(said.text)], provider_name=provider)
    image = [messages.BinaryContent(said.image, media_type="image/jpeg")] if said.image else []
    prompt = messages.UserPromptPart([said.text, *image] if image else said.text)
    return messages.ModelRequest([prompt], instructions=SYSTEM)


def langchain(history: Sequence[Said], new: Said) -> Run:
    """Its default transport is gRPC: the body is protobuf, taken where the call would leave for the channel."""
    from langchain_core.messages import SystemMessage
    from langchain_google_genai import ChatGoogleGenerativeAI

    stub = Stub({})

    class Left(Exception):
        """The request is out; there is no answer."""

    class Service:
        def generate_content(self, *, request: Any, **_: Any) -> None:
            stub.body = type(request).serialize(request)
            stub.at = time.process_time()
            raise Left

    model: Any = ChatGoogleGenerativeAI(model=GEMINI_MODEL, google_api_key="k", transport="rest")
    model.client = Service()
    bound = model.bind_tools([{"name": TOOL, "description": TOOL_WORDS, "parameters": SCHEMA}])
    messages = [SystemMessage(SYSTEM), *(_langchain_message(one) for one in (*history, new))]

    def call() -> None:
        with suppress(Left):
            bound.invoke(messages)

    return stub.timed(call)


def _langchain_message(said: Said) -> Any:
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

    match said.kind:
        case "call":
            signatures = {said.call_id: base64.b64encode(said.signature).decode()}
            return AIMessage(
                "",
                tool_calls=[{"name": TOOL, "args": {"query": said.text}, "id": said.call_id}],
                additional_kwargs={"__gemini_function_call_thought_signatures__": signatures},
            )
        case "result":
            found = json.dumps({"found": said.text}, ensure_ascii=False)
            return ToolMessage(found, tool_call_id=said.call_id, name=TOOL)
        case "model":
            return AIMessage(said.text)
    if not said.image:
        return HumanMessage(said.text)
    image = {"type": "image", "base64": base64.b64encode(said.image).decode(), "mime_type": "image/jpeg"}
    return HumanMessage([{"type": "text", "text": said.text}, image])


SUBJECTS: dict[str, Subject] = {
    "floor join": floor_join,
    "floor orjson": floor_orjson,
    "palaver": palaver,
    "palaver openai": palaver_openai,
    "palaver with repair": palaver_with_repair,
    "palaver client": palaver_client,
    "palaver cold": palaver_cold,
    "google-genai": google_genai,
    "google-genai dicts": google_genai_dicts,
    "openai": openai_sdk,
    "pydantic-ai google": pydantic_ai_google,
    "pydantic-ai openai": pydantic_ai_openai,
    "langchain-google-genai (protobuf)": langchain,
}

# measuring


def measure(name: str, n: int, repeats: int) -> Row:
    """The median CPU time of a request, after one that is checked and warms what is kept."""
    said = conversation(n)
    run = SUBJECTS[name](said[:-1], said[-1])
    for _ in range(2):  # the second finds everything kept that will be
        _, body = run()
        check(name, body, said, signed="openai" not in name)
    gc.collect()
    times: list[float] = []
    until = time.monotonic() + SECONDS
    while len(times) < repeats and (len(times) < LEAST_REPEATS or time.monotonic() < until):
        took, _ = run()
        times.append(took)
    return Row(n=n, name=name, ms=statistics.median(times) * 1000)


def measure_subject(name: str, *, sizes: Sequence[int], repeats: int) -> list[Row]:
    rows: list[Row] = []
    try:
        for n in sizes:
            progress(f"{name}, {n:,} messages")
            rows.append(measure(name, n, repeats))
    except ImportError as error:
        progress("")
        print(f"{name} is left out: {error} (`make bench` installs the peers)", file=sys.stderr)
    progress("")
    return rows


def measure_all(sizes: Sequence[int], repeats: int) -> list[Row]:
    """Each subject in a process of its own, so that none lives on what another left in the memory allocator."""
    measured = partial(measure_subject, sizes=sizes, repeats=repeats)
    with get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        return [row for rows in pool.imap(measured, SUBJECTS, chunksize=1) for row in rows]


def progress(words: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{words}", end="", file=sys.stderr, flush=True)


def table(rows: Sequence[Row], sizes: Sequence[int]) -> str:
    """Milliseconds of CPU a request, then how ours stand to the fastest peer and to the floor."""
    ms = {(row.name, row.n): row.ms for row in rows}
    names = list(dict.fromkeys(row.name for row in rows))
    ours = [name for name in names if name.startswith("palaver")]
    floor = {n: min(ms[name, n] for name in names if name.startswith("floor")) for n in sizes}
    peers = [name for name in names if not name.startswith(("palaver", "floor"))]
    lines = [["ms of CPU a request, messages:", *(f"{n:,}" for n in sizes)], []]
    lines += [[name, *(_number(ms[name, n]) for n in sizes)] for name in names]
    if peers:
        fastest = {n: min(ms[name, n] for name in peers) for n in sizes}
        lines += [[], ["times faster than the fastest peer:"], []]
        lines += [[name, *(f"{_number(fastest[n] / ms[name, n])}x" for n in sizes)] for name in ours]
    lines += [[], ["times the floor:"], []]
    lines += [[name, *(f"{_number(ms[name, n] / floor[n])}x" for n in sizes)] for name in [*ours, *peers]]
    width = max(len(line[0]) for line in lines if line)
    padded = (line[0].ljust(width) + "".join(cell.rjust(10) for cell in line[1:]) if line else "" for line in lines)
    return "\n".join(line.rstrip() for line in padded)


def _number(value: float) -> str:
    """Three digits that matter."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def _sizes(text: str) -> tuple[int, ...]:
    sizes = tuple(sorted({int(n) for n in text.split(",")}))
    if sizes[0] < 2:
        raise ValueError(text)
    return sizes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print a list of {n, name, ms}")
    parser.add_argument("--n", type=_sizes, default=SIZES, help="how many messages, e.g. 10,500; at least 2")
    parser.add_argument("--repeat", type=int, default=REPEATS, help="at most so many; slow subjects are repeated less")
    given = parser.parse_args()
    rows = measure_all(given.n, given.repeat)
    if given.json:
        print(json.dumps([{"n": row.n, "name": row.name, "ms": round(row.ms, 4)} for row in rows], indent=1))
        return
    print(table(rows, given.n))


if __name__ == "__main__":
    main()
