"""An answer as the model sends it: thoughts, ids, signatures and limits, whole or in chunks. Pure."""

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from palaver.sim.gemini.behaviours import Answer, Ask
from palaver.sim.gemini.rules.generations import THREE_AND_LATER, generation
from palaver.sim.gemini.tokens import details, json_tokens, text_tokens

Wire = dict[str, Any]

_PIECE = 24


class Usage(Struct, frozen=True, kw_only=True):
    """Tokens of one exchange."""

    prompt: Counter[str]
    cached: int = 0
    candidates: int = 0
    thoughts: int = 0

    @property
    def wire(self) -> Wire:
        """The usage as the service states it: what is zero is left out."""
        prompt = sum(self.prompt.values())
        cached: list[Wire] = [{"modality": "TEXT", "tokenCount": self.cached}] if self.cached else []
        stated = {
            "promptTokenCount": prompt,
            "candidatesTokenCount": self.candidates,
            "totalTokenCount": prompt + self.candidates + self.thoughts,
            "cachedContentTokenCount": self.cached,
            "promptTokensDetails": details(self.prompt),
            "cacheTokensDetails": cached,
            "thoughtsTokenCount": self.thoughts,
        }
        return {name: value for name, value in stated.items() if value}


class Message(Struct, frozen=True, kw_only=True):
    """A finished answer."""

    ask: Ask
    parts: list[Wire]
    finish: str
    usage: Usage
    response_id: str

    def response(self, parts: list[Wire], *, usage: Usage, finish: str | None) -> Wire:
        """A response, or a chunk of one if it does not finish."""
        content: Wire = {"parts": parts, "role": "model"} if parts else {"role": "model"}
        candidate: Wire = {"content": content}
        if finish:
            candidate["finishReason"] = finish
        candidate["index"] = 0
        if finish and generation(self.ask.model.name) == "2.5" and any("functionCall" in part for part in parts):
            candidate["finishMessage"] = "Model generated function call(s)."
        return self.framed({"candidates": [candidate]}, usage)

    def framed(self, response: Wire, usage: Usage) -> Wire:
        """*response* with what every response carries."""
        return response | {
            "usageMetadata": usage.wire,
            "modelVersion": self.ask.model.name,
            "responseId": self.response_id,
        }

    @property
    def whole(self) -> Wire:
        return self.response(self.parts, usage=self.usage, finish=self.finish)

    @property
    def chunks(self) -> list[Wire]:
        """The answer as a stream brings it."""
        pieces = _pieces(self.parts, newer=generation(self.ask.model.name) in THREE_AND_LATER)
        sent: list[Wire] = []
        tokens = 0
        for place, piece in enumerate(pieces):
            last = place == len(pieces) - 1
            tokens = self.usage.candidates if last else min(self.usage.candidates, tokens + output_tokens(piece))
            usage = replace(self.usage, candidates=tokens)
            sent.append(self.response(piece, usage=usage, finish=self.finish if last else None))
        return sent


def _pieces(parts: list[Wire], *, newer: bool) -> list[list[Wire]]:
    """The parts of each chunk."""
    pieces: list[list[Wire]] = []
    for part in parts:
        if "text" in part and not part.get("thought"):
            pieces += [[{"text": text}] for text in _cut(part["text"])]
            if "thoughtSignature" in part:
                pieces.append([{"text": "", "thoughtSignature": part["thoughtSignature"]}])
        elif "functionCall" in part and not newer and pieces and "functionCall" in pieces[-1][0]:
            pieces[-1].append(part)
        else:
            pieces.append([part])
    if newer and pieces and "functionCall" in pieces[-1][0]:
        pieces.append([{"text": ""}])
    return pieces or [[]]


def _cut(text: str) -> list[str]:
    """*text* in pieces of a few words."""
    pieces = [""]
    for word in re.findall(rf"\s*\S{{1,{_PIECE}}}|\s+", text):
        if len(pieces[-1]) + len(word) > _PIECE:
            pieces.append("")
        pieces[-1] += word
    return [piece for piece in pieces if piece] or [""]


def output_tokens(parts: list[Wire]) -> int:
    """The tokens of what a model says aloud."""
    spoken = [part for part in parts if not part.get("thought")]
    return sum(text_tokens(part["text"]) if "text" in part else json_tokens(_bare(part)) for part in spoken)


def _bare(part: Wire) -> Wire:
    return {name: value for name, value in part.items() if name != "thoughtSignature"}


class Composer(Struct, frozen=True, kw_only=True):
    """Finishes answers; *sign* signs a part for a model and *new_id* names a call."""

    sign: Callable[[str, Wire], str]
    new_id: Callable[[], str]
    response_id: str

    def message(self, ask: Ask, answer: Answer, usage: Usage) -> Message:
        """*answer* as the model asked would send it."""
        thinking = ask.config.get("thinkingConfig", {})
        spoken_thoughts = [part for part in answer.parts if part.get("thought")]
        thinks = bool(spoken_thoughts) or ask.model.thinks(thinking)
        thoughts = "".join(part.get("text", "") for part in spoken_thoughts) or answer.thoughts
        thought_tokens = text_tokens(thoughts) if thinks else 0
        aloud = stopped([part for part in answer.parts if not part.get("thought")], ask.config.get("stopSequences"))
        room = _limit(ask) - thought_tokens
        kept, cut = limited(aloud, room)
        shown = spoken_thoughts
        if thinks and not shown and thinking.get("includeThoughts") is True:
            shown = [{"text": thoughts, "thought": True}]
        parts = shown + self._signed(ask, self._named(ask, kept), thinks=thinks)
        return Message(
            ask=ask,
            parts=parts if room > 0 else [],
            finish="MAX_TOKENS" if cut else "STOP",
            usage=replace(usage, candidates=output_tokens(kept), thoughts=min(thought_tokens, _limit(ask))),
            response_id=self.response_id,
        )

    def _named(self, ask: Ask, parts: list[Wire]) -> list[Wire]:
        if generation(ask.model.name) not in THREE_AND_LATER:
            return parts
        return [
            part | {"functionCall": {"id": self.new_id()} | part["functionCall"]} if "functionCall" in part else part
            for part in parts
        ]

    def _signed(self, ask: Ask, parts: list[Wire], *, thinks: bool) -> list[Wire]:
        place = signed_place(ask, parts, thinks=thinks)
        if place is None or "thoughtSignature" in parts[place]:
            return parts
        signature = self.sign(ask.model.name, parts[place])
        return [*parts[:place], parts[place] | {"thoughtSignature": signature}, *parts[place + 1 :]]


def signed_place(ask: Ask, parts: list[Wire], *, thinks: bool) -> int | None:
    """Which of *parts* the model signs."""
    of = generation(ask.model.name)
    if of not in THREE_AND_LATER and of != "2.5":
        return None
    calls = [place for place, part in enumerate(parts) if "functionCall" in part]
    if calls:
        return calls[0]
    return len(parts) - 1 if parts and thinks and of != "2.5" else None


def _limit(ask: Ask) -> int:
    wanted = ask.config.get("maxOutputTokens")
    return min(wanted, ask.model.output_limit) if isinstance(wanted, int) and wanted > 0 else ask.model.output_limit


def stopped(parts: list[Wire], sequences: object) -> list[Wire]:
    """*parts* up to the first stop sequence."""
    stops = [one for one in sequences if isinstance(one, str) and one] if isinstance(sequences, list) else []
    kept: list[Wire] = []
    for part in parts:
        text = part.get("text", "")
        places = [text.index(stop) for stop in stops if stop in text]
        if places:
            return [*kept, part | {"text": text[: min(places)]}]
        kept.append(part)
    return kept


def limited(parts: list[Wire], room: int) -> tuple[list[Wire], bool]:
    """*parts* as far as *room* tokens go, and whether they had to be cut."""
    kept: list[Wire] = []
    for part in parts:
        tokens = output_tokens([part])
        if tokens <= room:
            kept.append(part)
            room -= tokens
            continue
        text = _first_tokens(part.get("text", ""), room)
        return ([*kept, part | {"text": text}] if text else kept), True
    return kept, room < 0


def _first_tokens(text: str, room: int) -> str:
    """As much of *text* as *room* tokens hold."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if text_tokens(text[:middle]) <= room:
            low = middle
        else:
            high = middle - 1
    return text[:low]
