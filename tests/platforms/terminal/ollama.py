"""A server that answers as Ollama does: its list of models, what each can do, and its chat in OpenAI's format."""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from tertulia.models import Local
from tertulia.parts import Text
from tertulia.turns import Prompt, model, user

Answer = Callable[[list[dict[str, Any]]], str]  # from the messages of a request
TALKS = ("completion", "tools")


def listed(name: str, *, family: str = "llama", **more: Any) -> dict[str, Any]:
    """A model as /api/tags lists it."""
    details = {"parent_model": "", "format": "gguf", "family": family, "families": [family]}
    return {
        "name": name,
        "model": name,
        "modified_at": "2026-11-01T10:00:00.123456789+02:00",
        "size": 2019393189,
        "digest": "a80c4f17acd55265feec403c7aef86be0c25983ab279d83f3bcd3abbcb5b8b72",
        "details": {**details, "parameter_size": "3.2B", "quantization_level": "Q4_K_M"},
        **more,
    }


def smollm2(messages: list[dict[str, Any]]) -> str:
    """The answer of the embedded model."""

    async def ask() -> str:
        turns = [
            (user if one["role"] == "user" else model)(one["content"]) for one in messages if one["role"] != "system"
        ]
        async with Local("smollm2") as local:
            response = await local.respond(Prompt.of(*turns))
        return "".join(part.text for part in response.turn.parts if isinstance(part, Text))

    return asyncio.run(ask())


class Ollama:
    """What the server serves, and the requests for answers that it got."""

    def __init__(self, models: Sequence[dict[str, Any]], answer: Answer, capabilities: dict[str, list[str]]) -> None:
        self.models = list(models)
        self.answer = answer
        self.capabilities = capabilities
        self.requests: list[dict[str, Any]] = []
        self.answers: list[str] = []
        self.url = ""


@contextmanager
def ollama(
    *models: dict[str, Any], answer: Answer = lambda _: "Hello.", capabilities: dict[str, list[str]] | None = None
) -> Iterator[Ollama]:
    served = Ollama(models, answer, capabilities or {})

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.reply(200, {"models": served.models}) if self.path == "/api/tags" else self.reply(404, {})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            names = [one["name"] for one in served.models]
            if body["model"] not in names:
                self.reply(404, {"error": f"model '{body['model']}' not found"})
            elif self.path == "/api/show":
                self.reply(200, {"capabilities": served.capabilities.get(body["model"], list(TALKS))})
            elif self.path == "/v1/chat/completions":
                served.requests.append(body)
                served.answers.append(served.answer(body["messages"]))
                self.stream(body["model"], served.answers[-1])

        def reply(self, status: int, value: Any) -> None:
            self.send_response(status)
            self.send_header("content-type", "application/json; charset=utf-8")
            self.end_headers()
            self.wfile.write(json.dumps(value).encode())

        def stream(self, name: str, text: str) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            about = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": name}
            for word in text.split(" "):
                piece = {"index": 0, "delta": {"role": "assistant", "content": f"{word} "}, "finish_reason": None}
                self.event({**about, "system_fingerprint": "fp_ollama", "choices": [piece]})
            self.event({**about, "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "stop"}]})
            self.wfile.write(b"data: [DONE]\n\n")

        def event(self, value: Any) -> None:
            self.wfile.write(f"data: {json.dumps(value)}\n\n".encode())

        def log_message(self, *_: Any) -> None:
            """Stay silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
