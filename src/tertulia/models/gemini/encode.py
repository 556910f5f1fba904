"""From our turns to Gemini's JSON: requests, and what of a prompt an explicit cache can hold. Pure."""

from base64 import b64encode
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any, assert_never

from msgspec import Struct
from msgspec.structs import replace

from tertulia.errors import NothingToSend
from tertulia.jsonio import dump_items, dumps, join_items, limit_depth, lower_types
from tertulia.models.gemini.cache_values import CacheFingerprint
from tertulia.parts import Media, Opaque, Part, Text, Thought, ToolCall, ToolResult, is_generated_id
from tertulia.turns import Layer, Prompt, Settings, ToolSpec, Turn
from tertulia.value_cache import cached
from tertulia.wire.gemini_request import LEVELS, schema_is_plain, thinking_violations
from tertulia.wire.generations import bare, generation, nearest_effort
from tertulia.wire.media_limits import limits_of
from tertulia.wire.part_forms import fits_in_result, gemini_mime, is_sent_inline, is_sent_to_gemini, raw_if_unchanged
from tertulia.wire.repair import repair
from tertulia.wire.rules import GEMINI_RULES, when_refused
from tertulia.wire.signatures import drop_foreign_signatures


def encode_request(prompt: Prompt, *, model: str) -> bytes:
    """Encode a generateContent request; turns that were encoded before are joined from their cached bytes."""
    key = _key(model)
    turns = [turn.__dict__.get(key) or _fragment(turn, model) for turn in prompt.turns]
    contents = [*_leading(prompt, model), *filter(None, turns)]
    return join_items(b'{"contents":[', contents, b"]%b}" % _fields(_request_fields(prompt, model)))


def encode_turn(turn: Turn, *, model: str) -> bytes:
    """Encode a turn as a JSON array of contents: one, two if text must be split from results, or none."""
    return b"[%b]" % _fragment(turn, model)


def encode_cache(prompt: Prompt, *, model: str, ttl: int, label: str = "") -> bytes:
    """Encode the request that creates a cache of the instruction, tools and turns of a prompt."""
    turns = b",".join(filter(None, (_fragment(turn, model) for turn in prompt.turns)))
    fields = [(b"ttl", dumps(f"{ttl}s"))]
    if label:
        fields.append((b"displayName", dumps(label)))
    if turns:
        fields.append((b"contents", b"[%b]" % turns))
    fields += [field for field in _request_fields(prompt, model) if field[0] in {b"systemInstruction", b"tools"}]
    return b'{"model":%b%b}' % (dumps(f"models/{bare(model)}"), _fields(fields))


def _fields(fields: list[tuple[bytes, bytes]]) -> bytes:
    return b"".join(b',"%b":%b' % field for field in fields)


def _key(model: str) -> str:
    return f"gemini {model}"


def _fragment(turn: Turn, model: str) -> bytes:
    """Return the turn's contents as bytes; cached."""
    return cached(turn, _key(model), lambda one: dump_items(_contents(one, model)))


def _contents(turn: Turn, model: str) -> Iterator[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    after: list[dict[str, Any]] = []  # goes into a second content: it may not follow results
    answered = False
    split = when_refused(model, "text-after-results") != "never"
    for part in drop_foreign_signatures(turn, model, "gemini").parts:
        answered = answered or isinstance(part, ToolResult)
        (after if split and answered and not isinstance(part, ToolResult) else parts).extend(_part(part, model))
        if isinstance(part, ToolResult) and part.raw is None:
            outside = (_media(media, model) for media in part.media if not fits_in_result(media, model))
            (after if split else parts).extend(outside)
    yield from ({"role": turn.role, "parts": some} for some in (parts, after) if some)


def _part(part: Part, model: str) -> Iterator[dict[str, Any]]:
    if isinstance(part, Text | Thought | Media) and (received := raw_if_unchanged(part, "gemini")) is not None:
        yield received
        return
    match part:
        case Text(text=text, signature=signature):
            yield _with_signature({"text": text}, signature)
        case Thought(text=text, signature=signature):
            yield _with_signature({"thought": True, "text": text}, signature)
        case ToolCall(raw=None):
            yield _with_signature({"functionCall": _call(part)}, part.signature)
        case ToolResult(raw=None):
            yield {"functionResponse": _result(part, model)}
        case Media():
            yield _with_signature(_media(part, model), part.signature)
        case ToolCall(raw=raw) | ToolResult(raw=raw) | Opaque(raw=raw):
            if raw:
                yield raw
        case _:
            assert_never(part)


def _with_signature(part: dict[str, Any], signature: str | None) -> dict[str, Any]:
    return {**part, "thoughtSignature": signature} if signature else part


def _id_and_name(name: str, call_id: str | None) -> dict[str, Any]:
    return {"name": name} if not call_id or is_generated_id(call_id) else {"id": call_id, "name": name}


def _call(call: ToolCall) -> dict[str, Any]:
    return {**_id_and_name(call.name, call.id), "args": limit_depth(call.args)}


def _result(result: ToolResult, model: str) -> dict[str, Any]:
    encoded = {**_id_and_name(result.name, result.id), "response": _response(result)}
    inside = [_media(media, model) for media in result.media if fits_in_result(media, model)]
    return {**encoded, "parts": inside} if inside else encoded


def _response(result: ToolResult) -> dict[str, Any]:
    """Return the result of a tool as an object: a failure under `error`, a value that is no object under `result`."""
    if result.failed:
        value = result.value
        return {"error": value if isinstance(value, str) else dumps(value).decode()}
    value = limit_depth(result.value)
    return value if isinstance(value, dict) else {"result": value}


def _media(media: Media, model: str) -> dict[str, Any]:
    """Return the media if the service takes them, of a long video the beginning; else their words."""
    mime = gemini_mime(media)
    if is_sent_inline(media):
        part: dict[str, Any] = {"inlineData": {"mimeType": mime, "data": b64encode(media.data or b"").decode()}}
    elif is_sent_to_gemini(media):
        part = {"fileData": {"mimeType": mime, "fileUri": media.uri} if mime else {"fileUri": media.uri}}
    else:
        return {"text": media.words}
    taken = limits_of(model)
    is_video = media.media_kind == "youtube" or (mime or "").startswith("video/")
    if is_video and taken.sees_video and taken.cuts(media):
        part["videoMetadata"] = {"endOffset": f"{taken.video_seconds}s"}
    return part


def _leading(prompt: Prompt, model: str) -> Iterator[bytes]:
    """Yield the instruction as a content, for models without system instructions."""
    if prompt.instruction and not prompt.cached and when_refused(model, "no-system") != "never":
        yield dumps({"role": "user", "parts": [{"text": prompt.instruction}]})


def setting_notes(prompt: Prompt, *, model: str) -> list[str]:
    """Return a note about each setting that is not sent as it was given, and why."""
    settings, tools = prompt.settings, _sent_tools(prompt, model)
    notes = _thinking_level(settings, model)[1]
    if settings.thoughts and not _tells_thoughts(model):
        notes.append("thoughts is left out: the model does not tell them")
    if settings.answer is not None and not _takes_schema(model, functions=bool(tools)):
        notes.append("answer is left out: the model takes no schema beside tools")
    if prompt.tools and not tools and settings.tool_choice != "none":
        notes.append("tools are left out: the model takes none")
    return notes


def _sent_tools(prompt: Prompt, model: str) -> tuple[ToolSpec, ...]:
    no_functions = when_refused(model, "no-functions") == "always" or "-image" in bare(model)
    return () if no_functions or _omits_tools(prompt.settings, model) else prompt.tools


def _request_fields(prompt: Prompt, model: str) -> list[tuple[bytes, bytes]]:
    fields: list[tuple[bytes, bytes]] = []
    tools = _sent_tools(prompt, model)
    if prompt.cached:
        fields.append((b"cachedContent", dumps(prompt.cached)))
    else:
        if prompt.instruction and when_refused(model, "no-system") == "never":
            fields.append((b"systemInstruction", dumps({"parts": [{"text": prompt.instruction}]})))
        if tools:
            declarations = b",".join(cached(tool, "gemini", _declaration) for tool in tools)
            fields.append((b"tools", b'[{"functionDeclarations":[%b]}]' % declarations))
        if tools and prompt.settings.tool_choice:
            mode = {"functionCallingConfig": {"mode": prompt.settings.tool_choice.upper()}}
            fields.append((b"toolConfig", dumps(mode)))
    config = _generation_config(prompt.settings, model, functions=bool(tools))
    if config:
        fields.append((b"generationConfig", dumps(config)))
    if prompt.settings.safety:
        fields.append((b"safetySettings", dumps(list(_safety(prompt.settings.safety)))))
    return fields


def _omits_tools(settings: Settings, model: str) -> bool:
    """Return whether disabled tools are omitted because the model takes no answer schema beside tools."""
    wants_schema = settings.answer is not None and settings.tool_choice == "none"
    return wants_schema and when_refused(model, "json-with-functions") != "never"


def _declaration(tool: ToolSpec) -> bytes:
    declaration: dict[str, Any] = {"name": tool.name}
    if tool.description:
        declaration["description"] = tool.description
    if tool.parameters:
        plain = schema_is_plain(tool.parameters)
        declaration["parameters" if plain else "parametersJsonSchema"] = (
            tool.parameters if plain else lower_types(tool.parameters)
        )
    return dumps(declaration)


def _generation_config(settings: Settings, model: str, *, functions: bool) -> dict[str, Any]:
    config: dict[str, Any] = {
        "temperature": settings.temperature,
        "topP": settings.top_p,
        "topK": settings.top_k,
        "maxOutputTokens": settings.max_tokens,
        "stopSequences": list(settings.stop) or None,
        "seed": settings.seed,
        "thinkingConfig": _thinking_config(settings, model) or None,
    }
    if settings.answer is not None and _takes_schema(model, functions=functions):
        config["responseMimeType"] = "application/json"
        as_schema = generation(model) == "2.0" and schema_is_plain(settings.answer)
        config["responseSchema" if as_schema else "responseJsonSchema"] = (
            settings.answer if as_schema else lower_types(settings.answer)
        )
    return {name: value for name, value in config.items() if value is not None}


def _takes_schema(model: str, *, functions: bool) -> bool:
    return not functions or when_refused(model, "json-with-functions") == "never"


def _thinking_config(settings: Settings, model: str) -> dict[str, Any]:
    config, _ = _thinking_level(settings, model)
    if settings.thoughts is not None and _tells_thoughts(model):
        config["includeThoughts"] = settings.thoughts
    return config


def _tells_thoughts(model: str) -> bool:
    return generation(model) not in {"2.0", "gemma-3"}


def _thinking_level(settings: Settings, model: str) -> tuple[dict[str, Any], list[str]]:
    """Return the budget or the level as it is sent: the nearest that the model takes, and a note if it is another."""
    wanted = settings.thinking
    if wanted is None:
        return {}, []
    taken = [level for level in LEVELS if _takes_thinking({"thinkingLevel": level}, model)]
    if isinstance(wanted, str) and taken:
        found = nearest_effort(wanted, taken)
        quoted = ", ".join(f'"{level}"' for level in taken)
        changed = [f'thinking is "{found}", not "{wanted}": the model takes {quoted}'] if found != wanted else []
        return {"thinkingLevel": found.upper()}, changed
    config = {"thinkingBudget": 0 if wanted == "none" else wanted}
    if not isinstance(config["thinkingBudget"], str) and _takes_thinking(config, model):
        return config, []
    hint = ', "none" is the least that it takes' if wanted == 0 and taken else ""
    return {}, [f"thinking is left out: the model does not take {dumps(wanted).decode()}{hint}"]


def _takes_thinking(config: dict[str, Any], model: str) -> bool:
    found = thinking_violations(config, model)
    return all(GEMINI_RULES[violation.rule].when(generation(model)) == "never" for violation in found)


def _safety(safety: dict[str, str]) -> Iterable[dict[str, str]]:
    for category, threshold in safety.items():
        name = category if category.startswith("HARM_CATEGORY_") else f"HARM_CATEGORY_{category.upper()}"
        yield {"category": name, "threshold": threshold}


class CacheContent(Struct, frozen=True, kw_only=True):
    """The content of a cache, with its digests."""

    model: str
    prompt: Prompt
    frame: bytes  # digest of model, instruction and tools
    digest: bytes  # … and of the turns

    @property
    def contents(self) -> bytes:
        """The turns as they are sent."""
        return b",".join(encode_turn(turn, model=self.model) for turn in self.prompt.turns)


def cache_content(prompt: Prompt, model: str) -> CacheContent | None:
    """Return what a cache can hold: the leading static layer and the tools; None if the service would refuse it.

    A request with a cache can have no instruction in other layers, and no tool choice but `auto`.
    """
    if prompt.cached or not prompt.layers or prompt.layers[0].name != "static":
        return None
    if any(layer.instruction for layer in prompt.layers[1:]):
        return None
    if prompt.tools and prompt.settings.tool_choice not in {None, "auto"}:
        return None
    static = prompt.layers[0]
    if not _needs_no_repair(static, model):
        return None
    without_turns = Prompt(layers=(replace(static, turns=()),), tools=prompt.tools)
    frame = _digest(encode_cache(without_turns, model=model, ttl=0))
    digest = _digest(frame + b"".join(_turn_digest(turn, model) for turn in static.turns))
    whole = Prompt(layers=(static,), tools=prompt.tools)
    return CacheContent(model=model, prompt=whole, frame=frame, digest=digest)


def rest_of_prompt(prompt: Prompt, model: str) -> Prompt | None:
    """Return what is sent beside a cache of the first layer; None if the prompt cannot be split there.

    The service checks the rest by itself. So the split is legal only if repair leaves the cached turns as they are, and
    the rest alone needs no repair.
    """
    static = prompt.layers[0].turns
    try:
        whole, receipts = repair(prompt.turns, model, wire="gemini")
        rest = whole[len(static) :]
        if whole[: len(static)] != static or (static and repair(rest, model, wire="gemini")[1]):
            return None
    except NothingToSend:
        return None
    layers = (Layer(name="buffered", turns=rest),) if receipts else prompt.layers[1:]
    return replace(prompt, layers=layers)


def fingerprint_of(content: CacheContent) -> CacheFingerprint:
    contents = content.contents
    half = _digest(contents[: len(contents) // 2])
    return CacheFingerprint(digest=content.digest, frame=content.frame, length=len(contents), half=half)


def has_grown_out_of(content: CacheContent, old: CacheFingerprint) -> bool:
    """Return whether *content* is the old one with more turns.

    The first half decides: the end of a history may move.
    """
    if old.frame != content.frame or not old.length:
        return False
    contents = content.contents
    return old.length < len(contents) and _digest(contents[: old.length // 2]) == old.half


def _needs_no_repair(layer: Layer, model: str) -> bool:
    """Return whether the turns of a layer are sent as they are; turns that need repair are not cached."""
    try:
        return not layer.turns or repair(layer.turns, model, wire="gemini")[0][: len(layer.turns)] == layer.turns
    except NothingToSend:
        return False


def _turn_digest(turn: Turn, model: str) -> bytes:
    """Return the digest of a turn as it is sent; cached on the turn."""
    return cached(turn, f"digest gemini {model}", lambda one: _digest(encode_turn(one, model=model)))


def _digest(data: bytes) -> bytes:
    return sha256(data).digest()
