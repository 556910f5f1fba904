"""What the simulated model does: plays a script, acts on its own, or repeats."""

from collections.abc import Sequence
from typing import Any, Protocol

import orjson
from msgspec import Struct

from palaver.sim.choosing import chosen_behaviour
from palaver.sim.fitting import fitting
from palaver.sim.gemini.catalogue import Model
from palaver.sim.gemini.errors import ServiceError
from palaver.sim.gemini.rules.conversation import current_turn, sayings, turns
from palaver.sim.gemini.rules.tools import declarations

Wire = dict[str, Any]

_RESPONSE_FIELDS = frozenset({"candidates", "usageMetadata", "promptFeedback", "error"})


class Ask(Struct, frozen=True, kw_only=True):
    """A request the rules let through, in camelCase, with what its cache holds."""

    model: Model
    request: Wire

    @property
    def config(self) -> Wire:
        config: Wire = self.request.get("generationConfig", {})
        return config

    @property
    def last_text(self) -> str:
        """What the user said last."""
        for content in reversed(sayings(self.request["contents"])):
            words = [part["text"] for part in content.parts if part.get("text")]
            if content.side == "user" and words:
                return "\n".join(words)
        return ""


class Answer(Struct, frozen=True, kw_only=True):
    """What the model says; ids, signatures and thoughts are added to it as the model does."""

    parts: list[Wire]
    thoughts: str = "**Weighing the request**\n\nI look at what is asked, and choose what to do about it."


class Raw(Struct, frozen=True, kw_only=True):
    """A response exactly as it goes out, as one or in the chunks of a stream."""

    chunks: list[Wire]


class Behaviour(Protocol):
    """Decides what the model answers."""

    def answer(self, ask: Ask) -> Answer | Raw: ...


class Echo:
    """Answers with what the user said last."""

    def answer(self, ask: Ask) -> Answer | Raw:
        return Answer(parts=[{"text": ask.last_text}])


class Script:
    """Answers with the items of a list in turn: a text, parts, a whole response, or the chunks of a stream."""

    def __init__(self, items: Sequence[str | Wire | Sequence[Wire]]) -> None:
        self._items = list(items)
        self.played = 0

    def answer(self, ask: Ask) -> Answer | Raw:
        if self.played >= len(self._items):
            message = f"The script of the simulator has ended: it holds {len(self._items)} answers."
            raise ServiceError(400, message, state="FAILED_PRECONDITION", rule="script")
        item = self._items[self.played]
        self.played += 1
        if isinstance(item, str):
            return Answer(parts=[{"text": item}])
        if isinstance(item, dict):
            return Raw(chunks=[item])
        entries = [dict(entry) for entry in item]
        whole = any(_RESPONSE_FIELDS & set(entry) for entry in entries)
        return Raw(chunks=entries) if whole else Answer(parts=entries)


class Actor:
    """Calls the declared functions for some steps, several at a time, then answers in words; the same each time."""

    def __init__(self, *, steps: int = 2, parallel: int = 2, seed: int = 0) -> None:
        self._steps = steps
        self._parallel = parallel
        self._seed = seed

    def answer(self, ask: Ask) -> Answer | Raw:
        calling = ask.request.get("toolConfig", {}).get("functionCallingConfig", {})
        mode = str(calling.get("mode", "AUTO")).upper()
        allowed = calling.get("allowedFunctionNames")
        named = allowed if isinstance(allowed, list) else []
        callable_now = [one for one in declarations(ask.request) if not named or one.get("name") in named]
        step = _steps_taken(ask.request["contents"])
        seed = f"{self._seed} {ask.model.name} {step} {ask.last_text}"
        if callable_now and mode != "NONE" and (mode == "ANY" or step < self._steps):
            chosen = self._choose(callable_now, step)
            return Answer(parts=[_call(one, f"{seed} {place}") for place, one in enumerate(chosen)])
        return Answer(parts=[{"text": _words(ask, seed)}])

    def _choose(self, declared: list[Wire], step: int) -> list[Wire]:
        first = step * self._parallel
        return [declared[(first + place) % len(declared)] for place in range(self._parallel)]


def _steps_taken(contents: list[Wire]) -> int:
    return sum(bool(turn.calls) for turn in turns(current_turn(sayings(contents))))


def _call(declaration: Wire, seed: str) -> Wire:
    schema = declaration.get("parametersJsonSchema", declaration.get("parameters"))
    arguments = fitting({"type": "object", **schema}, seed) if isinstance(schema, dict) else {}
    return {"functionCall": {"name": declaration["name"], "args": arguments if isinstance(arguments, dict) else {}}}


def _words(ask: Ask, seed: str) -> str:
    kind = ask.config.get("responseMimeType")
    schema = ask.config.get("responseJsonSchema", ask.config.get("responseSchema"))
    if kind == "text/x.enum" and isinstance(schema, dict):
        return str(fitting(schema, seed))
    if kind == "application/json":
        value = fitting(schema, seed) if isinstance(schema, dict) else {"answer": ask.last_text}
        return orjson.dumps(value).decode()
    results = [result for turn in turns(current_turn(sayings(ask.request["contents"]))) for result in turn.results]
    if results:
        told = "; ".join(f"{one['name']} gave {orjson.dumps(one.get('response', {})).decode()}" for one in results)
        return f"Here is what I found: {told}."
    return f"You said “{ask.last_text}”, and I have thought about it: there is more to say on that than fits here."


def behaviour_named(text: str) -> Behaviour:
    """The behaviour that *text* names: `actor`, `echo` or `script:FILE`; raises ValueError."""
    kind, lines = chosen_behaviour(text)
    return Script(lines) if kind == "script" else {"actor": Actor, "echo": Echo}[kind]()
