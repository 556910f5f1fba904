"""Who answers in the simulator: a script, an actor that follows the request's rules, or an echo."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import orjson

from palaver.sim.choosing import chosen_behaviour
from palaver.sim.fitting import fitting
from palaver.sim.openai.answers import Answer, Chunks, Whole, answer_of, calls_tools
from palaver.sim.openai.usage import CHARACTERS_PER_TOKEN, token_limit

Request = Mapping[str, Any]
Reply = Answer | Whole | Chunks
Line = str | dict[str, Any] | list[dict[str, Any]]


class Behaviour(Protocol):
    """Gives the model's next answer; *seed* is the only chance in it."""

    def answer(self, request: Request, *, seed: str) -> Reply: ...


class ScriptEnded(Exception):
    """A script was asked for more answers than it has."""


class Script:
    """Gives its lines in order: a text, a whole message, a whole response, or the chunks of a stream."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._replies = [_reply(line) for line in lines]
        self._given = 0

    def answer(self, request: Request, *, seed: str) -> Reply:
        if self._given == len(self._replies):
            raise ScriptEnded(f"The script has ended after {self._given} answers.")
        self._given += 1
        return self._replies[self._given - 1]


class Echo:
    """Says what the user said last."""

    def answer(self, request: Request, *, seed: str) -> Reply:
        return limited(last_words(request), request)


class Actor:
    """Calls the declared functions, some side by side and then one more, and at last answers in words."""

    def __init__(self, *, steps: int = 2, parallel: int = 2) -> None:
        self._steps = steps
        self._parallel = parallel

    def answer(self, request: Request, *, seed: str) -> Reply:
        functions, must_call = callable_functions(request)
        step = steps_taken(request)
        if functions and (must_call or step < self._steps):
            return self._calls(functions, request, step=step, seed=seed)
        return limited(_words(request, seed), request)

    def _calls(self, functions: Sequence[Request], request: Request, *, step: int, seed: str) -> Reply:
        together = step == 0 and request.get("parallel_tool_calls") is not False and not _named(request)
        number = self._parallel if together else 1
        first = step and self._parallel + step - 1  # go on after those of the first step
        chosen = [functions[(first + offset) % len(functions)] for offset in range(number)]
        return calls_tools(
            *((function["name"], _arguments(function, f"{seed}/{step}/{i}")) for i, function in enumerate(chosen))
        )


def limited(text: str, request: Request) -> Answer:
    """*text* as far as the request's stop sequences and token limit let it go."""
    stops = request.get("stop")
    for stop in stops if isinstance(stops, list) else [stops]:
        text = text.partition(stop)[0] if isinstance(stop, str) and stop else text
    limit = token_limit(request)
    if limit is None or len(text) <= limit * CHARACTERS_PER_TOKEN:
        return Answer(message={"content": text})
    return Answer(message={"content": text[: limit * CHARACTERS_PER_TOKEN]}, finish_reason="length")


def declared_functions(request: Request) -> list[Request]:
    tools = request.get("tools")
    listed = tools if isinstance(tools, list) else []
    return [tool["function"] for tool in listed if tool.get("type") == "function"]


def callable_functions(request: Request) -> tuple[list[Request], bool]:
    """The functions the request lets a model call now, and whether it has to call one."""
    tools = declared_functions(request)
    match request.get("tool_choice"):
        case "none":
            return [], False
        case "required":
            return tools, True
        case {"type": "function", "function": {"name": name}}:
            return [tool for tool in tools if tool["name"] == name], True
        case {"type": "allowed_tools", "allowed_tools": {"tools": allowed, **rest}}:
            names = [tool["function"]["name"] for tool in allowed if "function" in tool]
            return [tool for tool in tools if tool["name"] in names], rest.get("mode") == "required"
        case _:
            return tools, False


def steps_taken(request: Request) -> int:
    """How many messages with calls stand after the user's last."""
    steps = 0
    for message in request["messages"]:
        if message["role"] == "user":
            steps = 0
        steps += bool(message.get("tool_calls"))
    return steps


def last_words(request: Request) -> str:
    """The text of the user's last message."""
    said = [message for message in request["messages"] if message["role"] == "user"]
    return text_of(said[-1]) if said else ""


def text_of(message: Request) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content or () if part.get("type") == "text")


def behaviour_named(text: str) -> Behaviour:
    """The behaviour that *text* names: `actor`, `echo` or `script:FILE`; raises ValueError."""
    kind, lines = chosen_behaviour(text)
    return Script(lines) if kind == "script" else {"actor": Actor, "echo": Echo}[kind]()


def _reply(line: Line) -> Reply:
    if isinstance(line, str):
        return Answer(message={"content": line})
    if isinstance(line, list):
        return Chunks(line)
    return Whole(line) if "choices" in line else answer_of(line)


def _named(request: Request) -> bool:
    choice = request.get("tool_choice")
    return isinstance(choice, Mapping) and choice.get("type") == "function"


def _arguments(function: Request, seed: str) -> str:
    declared = function.get("parameters")
    schema = declared if isinstance(declared, Mapping) else {}
    return orjson.dumps(fitting({"type": "object", **schema}, seed)).decode()


def _words(request: Request, seed: str) -> str:
    match request.get("response_format"):
        case {"type": "json_schema", "json_schema": {"schema": schema}}:
            return orjson.dumps(fitting(schema, seed)).decode()
        case {"type": "json_object"}:
            return orjson.dumps({"answer": last_words(request)}).decode()
        case _:
            return _spoken(request)


def _spoken(request: Request) -> str:
    results = [text_of(message) for message in request["messages"] if message["role"] == "tool"]
    heard = last_words(request) or "nothing"
    found = f" I found: {'; '.join(results)}." if results and steps_taken(request) else ""
    return f"You said: {heard}.{found}"
