"""Answers of Gemini's models on the wire: thoughts, ids, signatures and limits, whole or in chunks; tokens. Pure."""

import hashlib
import re
from collections import Counter
from collections.abc import Callable

import orjson
from msgspec import Struct
from msgspec.structs import replace

from tertulia.sim.behaviours import THOUGHTS, Answer, Ask, Function, FunctionResult, Output, Raw
from tertulia.sim.errors import Wire
from tertulia.sim.gemini.catalogue import THREE_AND_LATER, Generation, Model, generation
from tertulia.sim.gemini.contents import content_groups, contents_of, current_turn
from tertulia.sim.gemini.fields import Parser
from tertulia.sim.gemini.rules import declarations
from tertulia.sim.usage import ASCII_PER_TOKEN, Segment, TokenUsage, first_tokens, json_tokens, text_tokens, until_stop

_PIECE = 24  # characters of text in one chunk
_OUTPUTS: dict[object, Output] = {"text/x.enum": "enum", "application/json": "json"}
_RESPONSE_FIELDS = frozenset({"candidates", "usageMetadata", "promptFeedback", "error"})
Sizes = Callable[[str], int | None]
_AUDIO_BYTES_PER_SECOND = 16_000
_VIDEO_BYTES_PER_SECOND = 128_000
_UNKNOWN_SECONDS = 60
_REPLAYED_SIGNATURES = frozenset({"3.5", "3.5-lite", "3.6", "3.7", "4"})


def ask_of(request: Wire, model: Model) -> Ask:
    """Return the request as a behaviour sees it."""
    contents = contents_of(request)
    turn = content_groups(current_turn(contents))
    calling = request.get("toolConfig", {}).get("functionCallingConfig", {})
    mode = str(calling.get("mode", "AUTO")).upper()
    allowed = calling.get("allowedFunctionNames")
    names = allowed if isinstance(allowed, list) else []
    callable_now = [one for one in declarations(request) if not names or one.get("name") in names]
    config = request.get("generationConfig", {})
    texts = [
        "\n".join(part["text"] for part in one.parts if part.get("text")) for one in contents if one.side == "user"
    ]
    return Ask(
        model=model.name,
        request=request,
        last_text=next((text for text in reversed(texts) if text), ""),
        functions=[]
        if mode == "NONE"
        else [
            Function(
                name=one["name"],
                description=str(one.get("description", "")),
                schema=one.get("parametersJsonSchema", one.get("parameters")),
            )
            for one in callable_now
        ],
        must_call=mode == "ANY",
        steps=sum(bool(one.calls) for one in turn),
        results=[
            FunctionResult(name=one["name"], text=orjson.dumps(one.get("response", {})).decode())
            for side in turn
            for one in side.results
        ],
        output=_OUTPUTS.get(config.get("responseMimeType"), "text"),
        schema=config.get("responseJsonSchema", config.get("responseSchema")),
    )


def raw_chunks(answer: Answer | Raw) -> list[Wire] | None:
    """Return the responses that *answer* consists of, to be sent as they stand; None if it has parts."""
    if not isinstance(answer, Raw):
        return None
    entries = [answer.value] if isinstance(answer.value, dict) else [dict(entry) for entry in answer.value]
    is_response = isinstance(answer.value, dict) or any(_RESPONSE_FIELDS & set(entry) for entry in entries)
    return entries if is_response else None


def parts_and_thoughts(answer: Answer | Raw) -> tuple[list[Wire], str]:
    """Return the parts of *answer*, and what the model thinks before them."""
    if isinstance(answer, Raw):
        return [dict(part) for part in answer.value], THOUGHTS
    calls: list[Wire] = [{"functionCall": {"name": call.name, "args": dict(call.args)}} for call in answer.calls]
    return ([{"text": answer.text}, *calls] if answer.text or not calls else calls), answer.thoughts


class FinishedAnswer(Struct, frozen=True, kw_only=True):
    """A finished answer."""

    model: Model
    parts: list[Wire]
    finish: str
    usage: TokenUsage
    response_id: str

    def response(self, parts: list[Wire], *, usage: TokenUsage, finish: str | None) -> Wire:
        """Return a response, or a chunk of one if it does not finish."""
        content: Wire = {"parts": parts, "role": "model"} if parts else {"role": "model"}
        candidate: Wire = {"content": content}
        if finish:
            candidate["finishReason"] = finish
        candidate["index"] = 0
        if finish and generation(self.model.name) == "2.5" and any("functionCall" in part for part in parts):
            candidate["finishMessage"] = "Model generated function call(s)."
        return self.framed({"candidates": [candidate]}, usage)

    def framed(self, response: Wire, usage: TokenUsage) -> Wire:
        """Return *response* with the fields that every response has."""
        return response | {
            "usageMetadata": usage_metadata(usage),
            "modelVersion": self.model.name,
            "responseId": self.response_id,
        }

    @property
    def whole(self) -> Wire:
        return self.response(self.parts, usage=self.usage, finish=self.finish)

    @property
    def chunks(self) -> list[Wire]:
        """The answer as a stream."""
        pieces = _pieces(self.parts, newer=generation(self.model.name) in THREE_AND_LATER)
        sent: list[Wire] = []
        tokens = 0
        for place, piece in enumerate(pieces):
            last = place == len(pieces) - 1
            tokens = self.usage.output if last else min(self.usage.output, tokens + output_tokens(piece))
            usage = replace(self.usage, output=tokens)
            sent.append(self.response(piece, usage=usage, finish=self.finish if last else None))
        return sent


def _pieces(parts: list[Wire], *, newer: bool) -> list[list[Wire]]:
    """Return the parts of each chunk."""
    pieces: list[list[Wire]] = []
    for part in parts:
        if "text" in part and not part.get("thought"):
            pieces += [[{"text": text}] for text in _split(part["text"])]
            if "thoughtSignature" in part:
                pieces.append([{"text": "", "thoughtSignature": part["thoughtSignature"]}])
        elif "functionCall" in part and not newer and pieces and "functionCall" in pieces[-1][0]:
            pieces[-1].append(part)
        else:
            pieces.append([part])
    if newer and pieces and "functionCall" in pieces[-1][0]:
        pieces.append([{"text": ""}])
    return pieces or [[]]


def _split(text: str) -> list[str]:
    """Return *text* in pieces of a few words."""
    pieces = [""]
    for word in re.findall(rf"\s*\S{{1,{_PIECE}}}|\s+", text):
        if len(pieces[-1]) + len(word) > _PIECE:
            pieces.append("")
        pieces[-1] += word
    return [piece for piece in pieces if piece] or [""]


class Composer(Struct, frozen=True, kw_only=True):
    """Finishes answers; *sign* signs a part for a model and *new_id* makes the id of a call."""

    sign: Callable[[str, Wire], str]
    new_id: Callable[[], str]
    response_id: str

    def message(
        self, parts: list[Wire], *, model: Model, config: Wire, usage: TokenUsage, thoughts: str
    ) -> FinishedAnswer:
        """Return *parts* as *model* sends them under a `generationConfig`."""
        thinking = config.get("thinkingConfig", {})
        shown = [part for part in parts if part.get("thought")]
        thinks = bool(shown) or model.thinks(thinking)
        thoughts = "".join(part.get("text", "") for part in shown) or thoughts
        thought_tokens = text_tokens(thoughts) if thinks else 0
        spoken = _until_stop([part for part in parts if not part.get("thought")], config.get("stopSequences"))
        wanted = config.get("maxOutputTokens")
        limit = min(wanted, model.output_limit) if isinstance(wanted, int) and wanted > 0 else model.output_limit
        spoken, cut = _within(spoken, limit - thought_tokens)
        if thinks and not shown and thinking.get("includeThoughts") is True:
            shown = [{"text": thoughts, "thought": True}]
        named = self._with_ids(spoken) if generation(model.name) in THREE_AND_LATER else spoken
        return FinishedAnswer(
            model=model,
            parts=shown + self._signed(named, model, thinks=thinks) if limit > thought_tokens else [],
            finish="MAX_TOKENS" if cut else "STOP",
            usage=replace(usage, output=output_tokens(spoken), thoughts=min(thought_tokens, limit)),
            response_id=self.response_id,
        )

    def _with_ids(self, parts: list[Wire]) -> list[Wire]:
        return [
            part | {"functionCall": {"id": self.new_id()} | part["functionCall"]} if "functionCall" in part else part
            for part in parts
        ]

    def _signed(self, parts: list[Wire], model: Model, *, thinks: bool) -> list[Wire]:
        place = _signed_place(parts, model, thinks=thinks)
        if place is None or "thoughtSignature" in parts[place]:
            return parts
        signature = self.sign(model.name, parts[place])
        return [*parts[:place], parts[place] | {"thoughtSignature": signature}, *parts[place + 1 :]]


def _signed_place(parts: list[Wire], model: Model, *, thinks: bool) -> int | None:
    """Return the index of the part that the model signs: its first call, or the last part after thinking."""
    of = generation(model.name)
    if of not in THREE_AND_LATER and of != "2.5":
        return None
    calls = [place for place, part in enumerate(parts) if "functionCall" in part]
    if calls:
        return calls[0]
    return len(parts) - 1 if parts and thinks and of != "2.5" else None


def signed_content(part: Wire) -> bytes:
    """Return the content that a signature covers: the name and arguments of a call, or a text."""
    read = Parser().read_one("part", part, "")
    if "functionCall" not in read:
        return orjson.dumps(read.get("text", ""))
    call = read["functionCall"]
    return orjson.dumps([call.get("name", ""), _whole_numbers(call.get("args", {}))], option=orjson.OPT_SORT_KEYS)


def _whole_numbers(value: object) -> object:
    """Return *value* with `2.0` written as `2`."""
    if isinstance(value, dict):
        return {key: _whole_numbers(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_whole_numbers(entry) for entry in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value


def _until_stop(parts: list[Wire], sequences: object) -> list[Wire]:
    """Return *parts* up to the first stop sequence."""
    before: list[Wire] = []
    for part in parts:
        text = part.get("text", "")
        stopped = until_stop(text, sequences if isinstance(sequences, list) else [])
        if stopped != text:
            return [*before, part | {"text": stopped}]
        before.append(part)
    return before


def _within(parts: list[Wire], limit: int) -> tuple[list[Wire], bool]:
    """Return *parts* up to a limit of tokens, and whether they were cut."""
    within: list[Wire] = []
    for part in parts:
        tokens = output_tokens([part])
        if tokens <= limit:
            within.append(part)
            limit -= tokens
            continue
        text = first_tokens(part.get("text", ""), limit)
        return ([*within, part | {"text": text}] if text else within), True
    return within, limit < 0


class TokenCounter:
    """Counts tokens by modality for one generation; *sizes* gives the bytes of uploaded files."""

    def __init__(self, generation: Generation, sizes: Sizes, *, resolution: str = "") -> None:
        self._generation = generation
        self._sizes = sizes
        self._resolution = resolution

    def request(self, request: Wire) -> Counter[str]:
        """Count everything in *request* that a model reads."""
        total: Counter[str] = Counter()
        if request.get("tools"):
            total["TEXT"] += json_tokens(request["tools"])
        for content in [request.get("systemInstruction", {}), *request.get("contents", [])]:
            for part in content.get("parts", []):
                total += self.part(part)
        return total

    def part(self, part: Wire) -> Counter[str]:
        total: Counter[str] = Counter()
        if "inlineData" in part:
            data = part["inlineData"]
            total += self._media(data.get("mimeType", ""), len(data.get("data", "")) * 3 // 4, part)
        elif "fileData" in part:
            file = part["fileData"]
            total += self._media(file.get("mimeType", ""), self._sizes(file.get("fileUri", "")), part)
        elif "text" in part:
            total["TEXT"] += text_tokens(part["text"])
        else:
            total["TEXT"] += json_tokens({name: part[name] for name in part if name != "thoughtSignature"})
        if self._generation in _REPLAYED_SIGNATURES:
            total["TEXT"] += text_tokens(part.get("thoughtSignature", "")) // 2
        return total

    def segments(self, request: Wire) -> list[Segment]:
        """Return the prompt in the order the model reads it: tools, instruction, contents."""
        segments: list[Segment] = []
        if request.get("tools"):
            segments.append((orjson.dumps(request["tools"]).decode(), json_tokens(request["tools"])))
        for content in [request.get("systemInstruction", {}), *request.get("contents", [])]:
            for part in content.get("parts", []):
                text = part["text"] if "text" in part else hashlib.sha256(orjson.dumps(part)).hexdigest()
                segments.append((f"{content.get('role', '')}:{text}", self.part(part).total()))
        return segments

    def _media(self, mime: str, size: int | None, part: Wire) -> Counter[str]:
        kind = mime.split("/")[0]
        if kind == "image":
            return Counter(IMAGE=self._image(part))
        if kind == "audio":
            seconds = _UNKNOWN_SECONDS if size is None else max(1, size // _AUDIO_BYTES_PER_SECOND)
            return Counter(AUDIO=32 * seconds)
        if kind == "video":
            seconds = _UNKNOWN_SECONDS if size is None else max(1, size // _VIDEO_BYTES_PER_SECOND)
            return Counter(VIDEO=263 * seconds)
        if kind == "text" or mime == "application/json":
            return Counter(TEXT=max(1, (size or 4096) // ASCII_PER_TOKEN))
        pages = max(1, (size or 1) // 100_000)
        return Counter(DOCUMENT=pages * (560 if self._generation in THREE_AND_LATER else 258))

    def _image(self, part: Wire) -> int:
        if self._generation not in THREE_AND_LATER:
            return 258
        own = part.get("mediaResolution")
        level = own.get("level", "") if isinstance(own, dict) else own
        wanted = str(level or self._resolution).upper()
        return 280 if wanted.endswith("LOW") else 560 if wanted.endswith("MEDIUM") else 1120


def output_tokens(parts: list[Wire]) -> int:
    """Count what a model says, without its thoughts."""
    total = 0
    for part in parts:
        if "text" in part and not part.get("thought"):
            total += text_tokens(part["text"])
        elif not part.get("thought"):
            total += json_tokens({name: value for name, value in part.items() if name != "thoughtSignature"})
    return total


def details(tokens: Counter[str]) -> list[Wire]:
    """Tokens by modality, as the service lists them."""
    order = ("TEXT", "IMAGE", "VIDEO", "AUDIO", "DOCUMENT")
    return [{"modality": kind, "tokenCount": tokens[kind]} for kind in order if tokens[kind]]


def usage_metadata(usage: TokenUsage) -> Wire:
    """Return the usage as the service reports it: zeros are left out."""
    reported = {
        "promptTokenCount": usage.prompt_total,
        "candidatesTokenCount": usage.output,
        "totalTokenCount": usage.total,
        "cachedContentTokenCount": usage.cached,
        "promptTokensDetails": details(usage.prompt),
        "cacheTokensDetails": details(Counter(TEXT=usage.cached)),
        "thoughtsTokenCount": usage.thoughts,
    }
    return {name: value for name, value in reported.items() if value}
