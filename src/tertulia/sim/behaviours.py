"""Behaviours: what a simulated model answers, by a script, by itself or as an echo, and how it embeds texts."""

import hashlib
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import orjson
from msgspec import Struct

from tertulia.sim.errors import Wire
from tertulia.sim.examples import example

Output = Literal["text", "json", "enum"]

THOUGHTS = "**Weighing the request**\n\nI look at what is asked, and choose what to do about it."
DIMENSIONS = 3072
_STEM = 5  # letters by which words are compared
_COMMON = frozenset(
    "and are ask bot but can did does for from had has have her him his how its let may not our out please reply say "
    "she tell tells than that the their them then there they this was what when where which who will with would you "
    "your".split()
)
_SUM = re.compile(r"\d\s*[+*×÷^]\s*\d")  # what is 6*7? Dates are none
_RANGES = ((0, 128), (128, 768), (768, DIMENSIONS))


class Function(Struct, frozen=True, kw_only=True):
    """A function that a request declares; *schema* is that of its arguments, if it has one."""

    name: str
    description: str = ""
    schema: Any = None


class Call(Struct, frozen=True, kw_only=True):
    """A call of a function by the model."""

    name: str
    args: Mapping[str, Any]


class FunctionResult(Struct, frozen=True, kw_only=True):
    """The result of a function, as text."""

    name: str
    text: str


class Ask(Struct, frozen=True, kw_only=True):
    """A request that the rules accept, as a behaviour sees it; *request* is the service's own JSON."""

    model: str
    request: Wire
    last_text: str  # the user's
    functions: Sequence[Function] = ()  # those the model may call now
    must_call: bool = False
    may_call_many: bool = True
    steps: int = 0  # how often the model has called functions since the user's last text
    results: Sequence[FunctionResult] = ()  # since the user's last text
    output: Output = "text"
    schema: Any = None  # of the output, if it has one


class Answer(Struct, frozen=True, kw_only=True):
    """The answer of the model. The service adds ids, signatures and thoughts, and applies the limits of the request."""

    text: str = ""
    calls: Sequence[Call] = ()
    thoughts: str = THOUGHTS


class Raw(Struct, frozen=True):
    """An answer in the service's own JSON: docs/wire.md tells what an object and a list stand for."""

    value: Any


class Behaviour(Protocol):
    """Decides what the model answers."""

    def answer(self, ask: Ask) -> Answer | Raw: ...


class ScriptExhausted(Exception):
    """A script was asked for more answers than it has."""

    def __init__(self, answers: int) -> None:
        super().__init__(f"The script has ended after {answers} answers.")
        self.answers = answers


class Script:
    """Gives the answers of a list in order: texts, or the service's own JSON. With *repeat* it begins again."""

    def __init__(self, answers: Sequence[str | Wire | Sequence[Wire]], *, repeat: bool = False) -> None:
        self._answers = list(answers)
        self._repeat = repeat
        self.played = 0

    def answer(self, ask: Ask) -> Answer | Raw:
        if not self._answers or (self.played >= len(self._answers) and not self._repeat):
            raise ScriptExhausted(len(self._answers))
        answer = self._answers[self.played % len(self._answers)]
        self.played += 1
        return Answer(text=answer) if isinstance(answer, str) else Raw(answer)


class Echo:
    """Answers with the user's last text."""

    def answer(self, ask: Ask) -> Answer | Raw:
        return Answer(text=ask.last_text)


class Actor:
    """Calls the function that fits the words of the message best, if any does, then answers in words.

    With *steps* it calls functions in so many steps, *parallel* at a time, those that fit first. It does the same each
    time.
    """

    def __init__(self, *, steps: int | None = None, parallel: int = 1, seed: int = 0) -> None:
        self._steps = steps
        self._parallel = parallel
        self._seed = seed

    def answer(self, ask: Ask) -> Answer | Raw:
        seed = f"{self._seed} {ask.model} {ask.steps} {ask.last_text}"
        fit = _by_fit(ask)
        calls = bool(fit and fit[0][0]) and not ask.steps if self._steps is None else ask.steps < self._steps
        if not fit or not (calls or ask.must_call):
            return Answer(text=_text(ask, seed))
        number = self._parallel if ask.may_call_many else 1
        first = ask.steps * number
        chosen = [fit[(first + place) % len(fit)][1] for place in range(number)]
        return Answer(calls=[_call(function, f"{seed} {place}") for place, function in enumerate(chosen)])


def _by_fit(ask: Ask) -> list[tuple[int, Function]]:
    """Return the functions with how many words of the message they share, those that share most first."""
    said = _words(_SUM.sub(" calculate ", ask.last_text))
    scored = [(_shared(said, _words(one.name), 3) + _shared(said, _described(one), 1), one) for one in ask.functions]
    return sorted(scored, key=lambda one: -one[0])


def _described(function: Function) -> set[str]:
    names = function.schema.get("properties") if isinstance(function.schema, Mapping) else None
    return _words(" ".join([function.description, *(names if isinstance(names, Mapping) else ())]))


def _words(text: str) -> set[str]:
    return {word for word in re.findall(r"[^\W\d_]{3,}", text.lower()) if word not in _COMMON}


def _shared(said: set[str], known: set[str], weight: int) -> int:
    """Return the weight of each word that is said and known; longer words may end differently."""
    return sum(weight for word in said if any(word[:_STEM] == other[:_STEM] for other in known))


def _call(function: Function, seed: str) -> Call:
    args = example({"type": "object", **function.schema}, seed) if isinstance(function.schema, Mapping) else {}
    return Call(name=function.name, args=args if isinstance(args, dict) else {})


def _text(ask: Ask, seed: str) -> str:
    has_schema = isinstance(ask.schema, Mapping)
    if ask.output == "enum" and has_schema:
        return str(example(ask.schema, seed))
    if ask.output == "json":
        return orjson.dumps(example(ask.schema, seed) if has_schema else {"answer": ask.last_text}).decode()
    if ask.results:
        return f"Here is what I found: {'; '.join(f'{one.name} gave {one.text}' for one in ask.results)}."
    return f"You said “{ask.last_text}”, and I have thought about it: there is more to say on that than fits here."


def behaviour_named(text: str) -> Behaviour:
    """Return the behaviour that *text* names: `actor`, `echo`, `script:FILE`, or `repeat:FILE`, a script that begins
    again. The file is JSON or JSON Lines. Raises ValueError.
    """
    kind, _, path = text.partition(":")
    if text == "actor":
        return Actor()
    if text == "echo":
        return Echo()
    if kind in ("script", "repeat") and path:
        return Script(script_answers(Path(path)), repeat=kind == "repeat")
    raise ValueError(f"unknown behaviour {text!r}: expected actor, echo, script:FILE or repeat:FILE")


def script_answers(path: Path) -> list[Any]:
    """Return the answers in a script file: one JSON list of them, or one a line. Raises ValueError."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ValueError(f"cannot read the script {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"the script {path} is not text: {error}") from error
    try:
        answers = _list_or_lines(text)
    except ValueError as error:
        raise ValueError(f"the script {path} is neither a JSON list nor JSON lines: {error}") from error
    if not answers:
        raise ValueError(f"the script {path} holds no answer")
    for number, answer in enumerate(answers, start=1):
        if not isinstance(answer, str | dict | list):
            raise ValueError(f"the script {path} is wrong at answer {number}: expected a text, an object or a list")
    return answers


def _list_or_lines(text: str) -> list[Any]:
    try:
        whole = orjson.loads(text)
    except ValueError:
        answers = []
        for number, line in enumerate(text.split("\n"), start=1):
            try:
                answers += [orjson.loads(line)] if line.strip() else []
            except ValueError as error:
                raise ValueError(f"line {number}: {str(error).partition(': line')[0]}") from error
        return answers
    return whole if isinstance(whole, list) else [whole]


def embed(text: str, *, dimensions: int = DIMENSIONS, normalise: bool = True) -> list[float]:
    """Embed *text* by its words and letters. A shorter vector is the start of a longer one."""
    vector = [0.0] * DIMENSIONS
    words = re.findall(r"\w+", text.lower())
    padded = f" {' '.join(words)} "
    thirds = (padded[place : place + 3] for place in range(len(padded) - 2))
    grams = Counter(["^", *(f"w:{word}" for word in words), *(f"3:{third}" for third in thirds)])
    for gram, count in grams.items():
        digest = hashlib.blake2b(gram.encode(), digest_size=13).digest()
        weight = math.sqrt(count) * (1 if digest[0] & 1 else -1)
        for place, (start, end) in enumerate(_RANGES):
            number = int.from_bytes(digest[1 + 4 * place : 5 + 4 * place], "big")
            vector[start + number % (end - start)] += weight
    whole = _unit(vector)
    short = whole[:dimensions]
    return _unit(short) if normalise else short


def _unit(vector: list[float]) -> list[float]:
    length = math.sqrt(sum(value * value for value in vector)) or 1.0
    return [value / length for value in vector]
