"""From a prompt to a request for llama.cpp: tools, calls and results as text, cut to the context. Pure.

The answers that a prompt allows go with it, as a JSON schema in a grammar.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from msgspec.structs import replace

from tertulia.jsonio import dumps, lower_types
from tertulia.models.openai import encode as openai
from tertulia.models.openai.vendors import Vendor
from tertulia.parts import Media, Part, Text, ToolCall, ToolResult
from tertulia.turns import Prompt, Role, Settings, ToolSpec, Turn, model, user
from tertulia.wire.part_forms import words_unseen
from tertulia.wire.repair import CONTINUE, results_of

LLAMA = Vendor(name="llama.cpp", top_k=True)
TEMPERATURE = 0.2  # small models lose the thread sooner than large ones
REPEAT_PENALTY = 1.1  # … and repeat themselves
MAX_TOKENS = 512
INSTRUCTION = "You are a friendly, helpful companion in a chat. Keep your answers short and plain."
AFTER_RESULT = (
    "Now tell the person the answer, or use another tool."  # else the model takes a result for words of the person
)
STEPS = (
    4  # a long history is cut in steps of this fraction, so that most requests begin like the last and hit the cache
)
_GAP = " … "
_NAMED = {"properties", "patternProperties", "$defs", "definitions"}  # maps from names to schemas
_DATA = {"const", "enum", "default", "examples", "required"}  # values, whatever they look like
_LOOKAROUND = re.compile(r"\(\?<?[=!]")  # no grammar can express these

EXAMPLES = (  # answers from tool results: the smallest models learn by copying
    user("Who wrote the letter?"),
    user(ToolResult(name="look", value={"author": "Ann", "year": 1912})),
    model("Ann wrote the letter in 1912."),
    user("How tall is the tower?"),
    user(ToolResult(name="measure", value="52 m")),
    model("The tower is 52 m tall."),
    user("How many apples are left in the basket?"),
    user(ToolResult(name="count", value=52)),
    model("The answer is 52."),
)

TextTurn = tuple[Role, str]
Schema = dict[str, Any]


def text_prompt(prompt: Prompt, *, room: int) -> Prompt:
    """Return the prompt as text, in about *room* characters: the oldest exchanges are omitted if there are more."""
    instruction, _, fitting = _text_exchanges(prompt, room)
    turns = [Turn(role=role, parts=(Text(text=text),)) for role, text in _merge_roles(fitting)]
    if turns and turns[-1].role == "model":
        turns.append(CONTINUE)
    return replace(Prompt.of(*turns, system=instruction), settings=prompt.settings)


def omitted_exchanges(prompt: Prompt, *, room: int) -> int:
    """Return how many of the oldest exchanges `text_prompt` leaves out."""
    _, texts, fitting = _text_exchanges(prompt, room)
    return len(texts) - len(fitting)


def _text_exchanges(prompt: Prompt, room: int) -> tuple[str, list[list[TextTurn]], list[list[TextTurn]]]:
    """Return the instruction, all exchanges as text, and the exchanges that fit."""
    tools = callable_tools(prompt)
    instruction = cut_middle("\n\n".join(filter(None, [prompt.instruction or INSTRUCTION, _tools(tools)])), room // 2)
    texts = [list(_exchange_texts(exchange, tools=bool(tools))) for exchange in exchanges(prompt.turns)]
    nonempty = [exchange for exchange in texts if exchange]
    return instruction, nonempty, _fitting_exchanges(nonempty, room - len(instruction))


def text_length(prompt: Prompt) -> int:
    """Return the number of characters of a text-only prompt."""
    texts = [part.text for turn in prompt.turns for part in turn.parts if isinstance(part, Text)]
    return len(prompt.instruction) + sum(map(len, texts))


def exchanges(turns: Iterable[Turn]) -> list[list[Turn]]:
    """Group the turns into exchanges, each beginning with a turn of a person; so calls stay with their results."""
    groups: list[list[Turn]] = []
    for turn in turns:
        if not groups or (turn.role == "user" and not results_of([turn])):
            groups.append([])
        groups[-1].append(turn)
    return groups


def with_one_call(prompt: Prompt) -> Prompt:
    """Return the prompt without tools and with examples, once a tool has answered in this exchange, or failed twice."""
    *earlier, last = exchanges(prompt.turns)
    results = results_of(last)
    answered = len(results) > 1 or any(not result.failed for result in results)
    if not answered or prompt.settings.tool_choice == "any":
        return prompt
    shown = EXAMPLES if prompt.settings.answer is None else ()  # they are sentences, not JSON of the schema
    return Prompt.of(*chain(*earlier), *shown, *last, system=prompt.instruction, settings=prompt.settings)


def cut_middle(text: str, size: int) -> str:
    """Cut the middle of a text that is longer than *size*."""
    if len(text) <= size:
        return text
    half = max(size - len(_GAP), 2) // 2
    return text[:half] + _GAP + text[-half:]


def _fitting_exchanges(texts: list[list[TextTurn]], room: int) -> list[list[TextTurn]]:
    sizes = [sum(len(text) for _, text in exchange) for exchange in texts]
    step = max(room // STEPS, 1)
    excess = -((room - sum(sizes)) // step) * step if sum(sizes) > room else 0
    first = 0
    while excess > 0 and first < len(texts) - 1:
        excess -= sizes[first]
        first += 1
    fitting = texts[first:]
    return [_shorten_exchange(exchange, room) for exchange in fitting] if sum(sizes[first:]) > room else fitting


def _shorten_exchange(exchange: list[TextTurn], room: int) -> list[TextTurn]:
    """Cut the longest texts of an exchange until it fits, or none is long enough to cut."""
    said = list(exchange)
    while (over := sum(len(text) for _, text in said) - room) > 0:
        longest = max(range(len(said)), key=lambda index: len(said[index][1]))
        role, text = said[longest]
        if len(text) < 10 * len(_GAP):
            break
        said[longest] = role, cut_middle(text, max(len(text) - over, len(text) // 2))
    return said


def _exchange_texts(exchange: Iterable[Turn], *, tools: bool) -> Iterator[TextTurn]:
    """Yield the turns of an exchange as text. Without *tools*, calls are omitted: the model would copy them.

    A model with tools writes JSON, and copies the JSON that it wrote before. If that were calls only, it would call
    again and again; so its replies are shown as the JSON that it wrote.
    """
    for turn in exchange:
        calls = any(isinstance(part, ToolCall) for part in turn.parts)
        text = "\n".join(filter(None, (_words(part, turn.role, tools=tools) for part in turn.parts)))
        if text and tools and turn.role == "model" and not calls:
            text = dumps({"reply": text}).decode()
        if tools and any(
            not result.failed for result in results_of([turn])
        ):  # a failed call is corrected without being asked
            text += f"\n{AFTER_RESULT}"
        if text:
            yield turn.role, text


def _merge_roles(texts: Iterable[Sequence[TextTurn]]) -> list[TextTurn]:
    """Join neighbours of the same role: some models require that roles alternate."""
    joined: list[TextTurn] = []
    for role, text in (turn for exchange in texts for turn in exchange):
        if joined and joined[-1][0] == role:
            text = f"{joined.pop()[1]}\n{text}"
        joined.append((role, text))
    return joined


def _words(part: Part, role: Role, *, tools: bool) -> str:
    match part:
        case Text(text=text):
            return text
        case Media():
            return words_unseen(part) if role == "user" else part.words
        case ToolCall(name=name, args=args):
            return dumps({"tool": name, "args": args}).decode() if tools else ""
        case ToolResult():
            return _result(part)
        case _:
            return ""


def _result(result: ToolResult) -> str:
    value = result.value if isinstance(result.value, str) else dumps(result.value).decode()
    seen = "".join(f" {media.words}" for media in result.media)
    return f"The tool {result.name} {result.outcome}: {value}{seen}"


def _tools(tools: Iterable[ToolSpec]) -> str:
    """Return the forms of an answer, each after its purpose: in this order the smallest models choose best."""
    lines = [
        f'- {tool.description or tool.name}: {{"tool": "{tool.name}", "args": {{{_arguments(tool.parameters)}}}}}'
        for tool in tools
    ]
    heading = "Answer in JSON, in one of these forms:"
    return "\n".join([heading, '- Talk to the person: {"reply": string}', *lines]) if lines else ""


def _arguments(parameters: dict[str, Any]) -> str:
    named, required = parameters.get("properties"), parameters.get("required")
    if not isinstance(named, dict):
        return ""
    needed = required if isinstance(required, list) else []
    return ", ".join(f"{name}{'' if name in needed else '?'}: {_type(schema)}" for name, schema in named.items())


def _type(schema: Any) -> str:
    match schema:
        case {"enum": [*values]}:
            kind = " | ".join(dumps(value).decode() for value in values)
        case {"type": str(name)}:
            kind = name.lower()
        case _:
            kind = "any"
    described = schema.get("description") if isinstance(schema, dict) else None
    return f"{kind} ({described})" if described else kind


def encode_request(prompt: Prompt, text: Prompt, *, model: str) -> bytes:
    """Encode a streaming request for the answer to *prompt*; *text* is the prompt as text."""
    schema = answer_schema(prompt)
    body = openai.encode_request(
        replace(text, tools=(), settings=_settings(prompt)), model=model, vendor=LLAMA
    ).removesuffix(b"}")
    body += b',"stream":true,"stream_options":{"include_usage":true}'
    body += b',"return_progress":true'  # so that we are called, and can stop it, while it reads the prompt
    if schema is not None:
        return body + b',"grammar":%b}' % dumps(grammar(schema))
    if results_of(prompt.turns[-1:]):
        return body + b"}"  # the answer is to repeat the result
    return body + b',"repeat_penalty":%b}' % dumps(REPEAT_PENALTY)


def reserved_tokens(settings: Settings, *, context: int) -> int:
    """Return the tokens to reserve for the answer."""
    return min(settings.max_tokens or MAX_TOKENS, context // 2)


def _settings(prompt: Prompt) -> Settings:
    asked = prompt.settings
    stop = tuple(dumps(text)[1:-1].decode() for text in asked.stop) if callable_tools(prompt) else asked.stop
    return replace(
        asked,
        temperature=TEMPERATURE if asked.temperature is None else asked.temperature,
        max_tokens=asked.max_tokens or MAX_TOKENS,
        stop=stop,
        answer=None,
        tool_choice=None,
    )


def callable_tools(prompt: Prompt) -> tuple[ToolSpec, ...]:
    """Return the tools that the model may call now."""
    return () if prompt.settings.tool_choice == "none" else prompt.tools


def answer_schema(prompt: Prompt) -> Schema | None:
    """Return the schema of all answers that *prompt* allows: a call of a tool, or a reply; None if any text will do."""
    tools, answer = callable_tools(prompt), prompt.settings.answer
    if not tools:
        return None if answer is None else closed_schema(answer)
    schemas = {f"tool.{tool.name}": tool.parameters for tool in tools}
    branches = [_object(tool={"const": tool.name}, args=_reference(f"tool.{tool.name}")) for tool in tools]
    if prompt.settings.tool_choice != "any":
        branches.append(_object(reply={"type": "string", "minLength": 1} if answer is None else _reference("answer")))
    if answer is not None:
        schemas["answer"] = answer
    definitions = {
        name: closed_schema(
            {"type": "object", "properties": {}, **schema} if name.startswith("tool.") else schema, at=name
        )
        for name, schema in schemas.items()
    }
    return {"oneOf": branches, "$defs": definitions}


def grammar(schema: Schema) -> str:
    """Return the grammar of a schema for llguidance, which enforces bounds and patterns too; without whitespace."""
    rules = {"x-guidance": {"whitespace_flexible": False, "lenient": True}, **schema}
    return f"%llguidance {{}}\nstart: %json {dumps(rules).decode()}"


def closed_schema(schema: Schema, *, at: str = "") -> Schema:
    """Return the schema without additional fields; *at* is its name among the `$defs` of another."""
    closed: Schema = _close(lower_types(schema), f"#/$defs/{at}" if at else "#", close=True)
    return closed


def _close(schema: Any, base: str, *, close: bool) -> Any:
    if isinstance(schema, list):
        return [_close(item, base, close=close) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed: Schema = {}
    for key, value in schema.items():
        if key in {"$id", "$schema"} or (key == "pattern" and _LOOKAROUND.search(str(value))):
            continue
        if key in _NAMED and isinstance(value, dict):
            closed[key] = {name: _close(item, base, close=True) for name, item in value.items()}
        elif key == "$ref" and isinstance(value, str) and value.startswith("#"):
            closed[key] = base + value[1:]
        else:
            closed[key] = value if key in _DATA else _close(value, base, close=key != "allOf")
    return {**closed, "additionalProperties": False} if close and _closes(closed) else closed


def _closes(schema: Schema) -> bool:
    """Return whether the schema names all its fields, and does not allow others."""
    named = schema.get("properties")
    if not isinstance(named, dict) or schema.keys() & {"additionalProperties", "patternProperties", "allOf", "$ref"}:
        return False
    required = schema.get("required", [])
    return isinstance(required, list) and all(name in named for name in required)


def _object(**fields: Schema) -> Schema:
    return {"type": "object", "properties": fields, "required": [*fields], "additionalProperties": False}


def _reference(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}
