"""Rules of settings: thinking, candidates, caches and safety. Pure."""

from collections import Counter
from collections.abc import Iterator

from palaver.sim.errors import Wire
from palaver.sim.gemini.rules.generations import GEMMA, THREE_AND_LATER, TWO, Subject, Violation
from palaver.sim.gemini.rules.tools import declarations

_LEVELS = ("minimal", "low", "medium", "high")
_UNSET_LEVEL = "thinking_level_unspecified"
_CACHED_WITH_OTHERS = (
    "CachedContent can not be used with GenerateContent request setting system_instruction, tools or tool_config."
    " Proposed fix: move those values to CachedContent from GenerateContent request."
)


def unknown_level(request: Wire) -> Iterator[Violation]:
    """Find a thinking level that does not exist."""
    level = _thinking(request).get("thinkingLevel") or _UNSET_LEVEL
    if not isinstance(level, str) or level.lower() not in (*_LEVELS, _UNSET_LEVEL):
        where = "generation_config.thinking_config.thinking_level"
        yield Violation("thinking-level", f"Invalid value at '{where}'", where)


def cached_with_others(request: Wire) -> Iterator[Violation]:
    others = "systemInstruction" in request or request.get("tools") or "toolConfig" in request
    if request.get("cachedContent") and others:
        yield Violation("cached-with-others", _CACHED_WITH_OTHERS, "cachedContent")


def settings(request: Wire, subject: Subject) -> Iterator[Violation]:
    """Find settings that the model does not support."""
    config = request.get("generationConfig", {})
    thinking = _thinking(request)
    level = thinking.get("thinkingLevel") or _UNSET_LEVEL
    if "thinkingBudget" in thinking and level.lower() != _UNSET_LEVEL:
        yield Violation("thinking-both", "You can only set only one of thinking budget and thinking level.")
    yield from _level(level, subject)
    if "thinkingBudget" in thinking:
        yield from _budget(thinking["thinkingBudget"], subject)
    if _number(config.get("candidateCount")) > 1 and subject.generation not in TWO:
        always = subject.generation in THREE_AND_LATER
        yield Violation("candidates", "Multiple candidates is not enabled for this model", always=always)
    wants_json = config.get("responseMimeType") == "application/json"
    if wants_json and declarations(request) and subject.generation in TWO | GEMMA:
        message = "Function calling with a response mime type: 'application/json' is unsupported"
        yield Violation("json-with-functions", message)
    if subject.generation == "gemma-3" and "systemInstruction" in request:
        yield Violation("no-system", f"Developer instruction is not enabled for models/{subject.model}")
    yield from _safety(request)


def _thinking(request: Wire) -> Wire:
    thinking: Wire = request.get("generationConfig", {}).get("thinkingConfig", {})
    return thinking


def _number(value: object) -> float:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else 0


def _level(level: str, subject: Subject) -> Iterator[Violation]:
    wanted = level.lower()
    if wanted == _UNSET_LEVEL:
        return
    generation = subject.generation
    if generation in ("2.0", "2.5", "gemma-3"):
        message = "Thinking level is not supported for this model."
        yield Violation("thinking-level", message, always=generation != "2.0")
    older_pro = generation in ("3", "3.1") and "-pro" in subject.model
    minimal_refused = wanted == "minimal" and (generation in ("3.7", "4") or older_pro)
    if minimal_refused or (wanted in ("low", "medium") and generation == "gemma-4"):
        message = (
            f"Thinking level {level.upper()} is not supported for this model. Please retry with other thinking level."
        )
        yield Violation("thinking-level", message, always=generation == "3.7")


def _budget(budget: object, subject: Subject) -> Iterator[Violation]:
    generation = subject.generation
    if generation in ("2.0", "4") or generation in GEMMA:
        hint = " Use thinking level instead." if generation == "4" else ""
        message = f"Thinking budget is not supported for this model.{hint}"
        yield Violation("thinking-budget", message, always=generation != "2.0")
    elif not isinstance(budget, int | float) or isinstance(budget, bool):
        return
    elif generation == "2.5":
        yield from _budget_range(budget, subject.model)
    elif budget == 0:
        yield Violation("thinking-budget", "Request contains an invalid argument.", always=False)


def _budget_range(budget: float, model: str) -> Iterator[Violation]:
    lowest, highest = (128, 32768) if "-pro" in model else (512, 24576) if "-flash-lite" in model else (0, 24576)
    off = budget == 0 and "-flash-lite" in model and "-pro" not in model
    if budget != -1 and not off and not lowest <= budget <= highest:
        message = f"The thinking budget {budget} is invalid. Please choose a value between {lowest} and {highest}."
        yield Violation("thinking-budget", message)


def _safety(request: Wire) -> Iterator[Violation]:
    categories = [setting.get("category") for setting in request.get("safetySettings", [])]
    counted = Counter(category for category in categories if isinstance(category, str))
    if any(count > 1 for count in counted.values()):
        yield Violation("safety-twice", "Only one safety setting per category is allowed.", always=False)
