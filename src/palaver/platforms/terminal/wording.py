"""What the chat says about calls, results, endings and errors, each on one line. Pure."""

from palaver import errors
from palaver.models.base import Response
from palaver.models.json import dumps
from palaver.parts import Media, Opaque, Part, Text, Thought, ToolCall, ToolResult
from palaver.platforms.terminal.choosing import BETTER, SMALL, Chosen
from palaver.turns import Turn

LONGEST = 200  # characters of a call, a result or a turn
ERROR = 300

_ENDINGS = {
    "cut": "the answer was cut: the limit of tokens was reached",
    "blocked": "the answer was withheld",
    "prompt_blocked": "the service does not answer this message; say it differently",
    "malformed": "the model wrote something that could not be used; ask again",
    "empty": "the model said nothing; ask again, or differently",
    "continue": "the answer goes on; ask for the rest",
    "incomplete": "the answer broke off; ask again",
    "other": "the answer ended for a reason we do not know",
}
_HINTS: tuple[tuple[type[errors.PalaverError], str], ...] = (
    (errors.ContextTooLong, "/clear forgets the conversation."),
    (errors.KeyRefused, "Start again with a key that works, or choose another model with /model."),
    (errors.ModelUnknown, "Choose another with --model or /model."),
    (errors.QuotaExhausted, "Choose another model with /model, or come back later."),
    (errors.ConnectionLost, "Check the network, then say it again."),
    (errors.ModelUnavailable, "Say it again in a little while."),
)


def greeting(chosen: Chosen, *, key: str | None) -> list[str]:
    """The first lines: who answers, and for the small model how to get a better one; *key* is one that is set."""
    if not chosen.small:
        return [f"{chosen.model.name} answers{_whereabouts(chosen)}."]
    gemini = "palaver chat --model gemini-3.8-flash"
    return [
        f"{SMALL} answers: a model inside this package, without a key; nothing leaves this machine.",
        "It is small (135 million parameters): plain English, short answers, many mistakes. Two ways to a better one:",
        f"  palaver model get {BETTER}, then palaver chat: 1.1 GB once, stays on this machine",
        f"  {gemini}: {key} is set" if key else f"  GEMINI_API_KEY=… {gemini}: Google's, with a key of yours",
    ]


def _whereabouts(chosen: Chosen) -> str:
    if chosen.kind == "local":
        return " on this machine; nothing leaves it"
    return f" at {chosen.base_url}" if chosen.base_url else f" ({chosen.kind})"


def call_words(call: ToolCall) -> str:
    """`calculate(expression="6 * 7")`"""
    given = ", ".join(f"{name}={dumps(value).decode()}" for name, value in call.args.items())
    return shortened(f"{call.name}({call.broken if call.broken is not None else given})")


def result_words(result: ToolResult, seconds: float | None) -> str:
    """`calculate gave 42 in 3 ms`"""
    value = result.value if isinstance(result.value, str) else dumps(result.value).decode()
    verb = "failed:" if result.failed else "gave"
    took = "" if seconds is None else f" in {duration(seconds)}"
    return f"{result.name} {verb} {shortened(value)}{took}"


def duration(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def turn_words(turn: Turn) -> str:
    """A turn shortly, after who said it."""
    who = "you" if turn.role == "user" else turn.model or "model"
    if any(isinstance(part, ToolResult) for part in turn.parts):
        who = "tools"
    said = (_part_words(part) for part in turn.parts)
    return f"{who}: {shortened(' '.join(words for words in said if words))}"


def _part_words(part: Part) -> str:
    match part:
        case Text():
            return part.text
        case Media():
            return part.words
        case ToolCall():
            return f"[{call_words(part)}]"
        case ToolResult():
            return f"[{result_words(part, None)}]"
        case Thought() | Opaque():
            return ""


def ending_words(response: Response) -> str | None:
    """What is to be said about how an answer ended; nothing where it is complete."""
    finish = response.finish
    if finish.outcome == "complete":
        called = ", ".join(call.name for call in response.function_calls)
        return f"the model calls {called}, which is not there to be run; ask again" if called else None
    reasons = ": ".join(word for word in (finish.reason, finish.message) if word and finish.outcome != "empty")
    kept = "" if response.valid else "; not kept"
    return shortened(f"{_ENDINGS[finish.outcome]}{f' ({reasons})' if reasons else ''}{kept}", ERROR)


def error_words(error: errors.PalaverError) -> str:
    """What went wrong and what to do about it."""
    said = shortened(str(error) or type(error).__name__, ERROR)
    if isinstance(error, errors.ModelUnavailable) and error.retry_after is not None:
        hint = f"Say it again in {error.retry_after:g} s."
    else:
        hint = next((hint for kind, hint in _HINTS if isinstance(error, kind)), "")
    stop = "" if not hint or said.endswith((".", "?", "!", "…")) else "."
    return f"{said}{stop} {hint}".rstrip()


def shortened(text: str, longest: int = LONGEST) -> str:
    """*text* on one line, and not too long."""
    line = " ".join(text.split())
    return line if len(line) <= longest else f"{line[: longest - 1].rstrip()}…"
