"""Texts of the chat in the terminal: greetings, calls, results, turns, endings, errors."""

import shlex
from collections.abc import Sequence
from datetime import datetime
from textwrap import indent
from typing import Any

from msgspec.structs import replace

from tertulia import errors
from tertulia.context.values import LeftOut
from tertulia.jsonio import dumps
from tertulia.memory.values import Fact
from tertulia.messages import Author, Message
from tertulia.model_choice import BETTER, SMALL, Hints, ModelChoice, program_command
from tertulia.models.base import Response
from tertulia.models.local.weights import WEIGHTS, size_text
from tertulia.parts import Media, Opaque, Part, Text, Thought, ToolCall, ToolResult
from tertulia.platforms.terminal.setup import PLACE
from tertulia.prompt.ledger import LedgerEntry
from tertulia.turns import ToolSpec, Turn
from tertulia.wire.repair import Receipt

MAX_TEXT = 200  # characters of a call, a result or a turn
MAX_ERROR = 300
MAX_FACT = 80  # characters of a fact
MAX_FACTS = 3  # that are remembered or learned

_ENDINGS = {
    "cut": "the answer was cut: the limit of tokens was reached",
    "blocked": "the answer was withheld",
    "prompt_blocked": "the service does not answer this message",
    "malformed": "the model wrote something that could not be used",
    "empty": "the model said nothing",
    "continue": "the answer goes on; ask for the rest",
    "incomplete": "the answer broke off",
    "other": "the answer ended for a reason we do not know",
}
_HINTS: tuple[tuple[type[errors.TertuliaError], str], ...] = (
    (errors.ContextTooLong, "{forget}"),
    (errors.KeyRefused, "{new_key}, or choose another model with {model}."),
    (errors.ModelUnknown, "Choose another with {model}."),
    (errors.QuotaExhausted, "Choose another model with {model}, or come back later."),
    (errors.ConnectionLost, "Check the network, then say it again."),
    (errors.ModelUnavailable, "Say it again in a little while."),
    (errors.ResponseUnreadable, "Say it again, or differently."),
)


def short_greeting(choice: ModelChoice, hints: Hints, **known: Any) -> list[str]:
    """Return the first line of a chat that goes on."""
    if choice.small and hints.model.startswith("/"):
        return [f"{SMALL} answers here (small: often wrong; {hints.model} shows better ones)."]
    return greeting(choice, hints, **known)


def greeting(choice: ModelChoice, hints: Hints, *, program: str, fetched: bool, key: str | None) -> list[str]:
    """Return the first lines: which model answers, and for the small model two ways to a better one.

    *fetched*: the better local model is installed. *key*: the variable that holds a key for Gemini.
    """
    if not choice.small:
        why = f" ({choice.why})" if choice.why else ""
        return [f"{choice.model.name} answers{_address_text(choice)}.{why}"]
    gemini = "gemini-3.8-flash"
    there = f"{hints.model} {BETTER}: it is on this machine already"
    size = size_text(WEIGHTS[BETTER].size)
    fetch = f"{program} model get {BETTER}, then {program} chat: {size} once, stays on this machine"
    keyed = f"{hints.model} {gemini}: Google's; {key} is set"
    keyless = f"GEMINI_API_KEY=… {program} chat --model {gemini}: Google's, with a key of yours"
    return [
        f"{SMALL} answers on this machine, without a key; nothing leaves it.",
        "It is small (135 million parameters): fluent English, most of it wrong. Two ways to a better one:",
        f"  {there if fetched else fetch}",
        f"  {keyed if key else keyless}",
        *([f"({choice.why})"] if choice.why else []),
    ]


def _address_text(choice: ModelChoice) -> str:
    if choice.kind == "local":
        return " on this machine; nothing leaves it"
    return f" at {choice.base_url}" if choice.base_url else f" ({choice.kind})"


def tool_lines(specs: Sequence[ToolSpec], model: str) -> list[str]:
    """Return a line for each tool: its name and the first sentence about it."""
    if not specs:
        return [f"({model} has no tools here: it is too small for them, or its service refuses them)"]
    width = max(len(spec.name) for spec in specs)
    return [f"{spec.name:<{width}}  {one_line(first_sentence(spec.description))}" for spec in specs]


def first_sentence(text: str) -> str:
    paragraph = " ".join(text.strip().partition("\n\n")[0].split())
    return f"{paragraph.partition('. ')[0].rstrip('.')}." if paragraph else ""


def call_text(call: ToolCall) -> str:
    """`calculate(expression="6 * 7")`"""
    given = ", ".join(f"{name}={dumps(value).decode()}" for name, value in call.args.items())
    return one_line(f"{call.name}({call.broken if call.broken is not None else given})")


def result_text(result: ToolResult, seconds: float | None) -> str:
    """`calculate gave 42 in 3 ms`"""
    value = result.value if isinstance(result.value, str) else dumps(result.value).decode()
    verb = "failed:" if result.failed else "gave"
    took = "" if seconds is None else f" in {duration_text(seconds)}"
    return f"{result.name} {verb} {one_line(value)}{took}"


def duration_text(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def turn_lines(turn: Turn) -> list[str]:
    """Return a turn in short, after its author; further lines are indented."""
    who = "you" if turn.role == "user" else turn.model or "model"
    if any(isinstance(part, ToolResult) for part in turn.parts):
        who = "tools"
    said = " ".join(words for part in turn.parts if (words := _part_text(part).strip()))
    return indent(f"{who}: {cut(said)}", "  ").strip().splitlines()


def message_lines(message: Message, turns: Sequence[Turn], ending: str = "") -> list[str]:
    """Return a message in short; one of the agent with the calls and results of its *turns*.

    *ending* says what became of it, if not an answer.
    """
    if not turns:
        own = message.author.persona is not None
        turns = [Turn(role="model" if own else "user", parts=message.parts, model=message.author.name or None)]
    if message.agent:  # one of several
        turns = [replace(turn, model=message.agent) for turn in turns]
    lines = [line for turn in turns for line in turn_lines(turn)]
    return [*lines[:-1], f"{lines[-1]} ({ending})"] if ending and lines else lines


def history_summary(count: int, last: datetime | None, now: datetime, *, anew: str) -> str:
    """`12 messages so far, the last 3 h ago; /clear begins anew`"""
    counted = f"{count:,} message{'s' if count > 1 else ''} so far"
    since = "" if last is None else f", {'the last ' if count > 1 else ''}{age_text(last, now)}"
    return f"({counted}{since}; {anew})"


def age_text(then: datetime, now: datetime) -> str:
    """`3 h ago`"""
    seconds = (now - then).total_seconds()
    spans = (("days", 2 * 86_400, 86_400), ("h", 3_600, 3_600), ("min", 60, 60))
    return next((f"{seconds // unit:.0f} {name} ago" for name, least, unit in spans if seconds >= least), "just now")


def proposal_text(facts: Sequence[Fact]) -> str:
    """Return the question about facts that a model proposes to forget, with the command that does the same."""
    if len(facts) == 1:
        return f"I would forget: “{facts[0].text}” Say yes, or /forget {facts[0].text}"
    lines = "\n".join(f"- {fact.text}" for fact in facts)
    return f"I would forget:\n{lines}\nSay yes to forget all of it, or /forget and the words of one."


def removal_hint(path: str, person: Author) -> str:
    """Return the command that removes the person from the file, shown after /clear."""
    given = shlex.join([person.id, "--platform", PLACE.platform, "--db", path])
    return f"(to remove you from the file too, leave and run: {program_command()} db forget {given})"


def facts_line(verb: str, texts: Sequence[str]) -> str:
    """`(learned: Lives in Lviv.; Likes tea.; …)`"""
    named = [one_line(text, MAX_FACT) for text in texts[:MAX_FACTS]]
    return f"({verb}: {'; '.join([*named, *(['…'] if len(texts) > MAX_FACTS else [])])})"


def prompt_lines(
    entry: LedgerEntry,
    receipts: Sequence[Receipt],
    *,
    left_out: Sequence[LeftOut] = (),
    omitted: int,
    words: Sequence[str] = (),
) -> list[str]:
    """Return the layers of a request with their tokens, how much of it is new, and what was left out or repaired.

    *words* went for media.
    """
    known = "the first request to this model"
    if entry.stable or entry.broken_by:
        until = f", up to `{entry.broken_by}`" if entry.broken_by else ""
        known = f"{entry.share:.0%} as in the request before{until}"
    lines = [f"about {entry.tokens:,} tokens, {known}"]
    lines += [f"  {layer.name:<9} {layer.tokens:>7,} tokens  {layer.fingerprint}" for layer in entry.layers]
    if entry.reported and entry.reported.input:
        lines.append(f"the service counted {entry.reported.input:,}, {entry.reported.cached:,} of them cached")
    lines += [f"left out of {one.source}: {one.count} ({one.why})" for one in left_out]
    if omitted:
        lines.append(f"left out for want of room: the oldest {omitted} exchange{'s' if omitted > 1 else ''}")
    lines += [f"changed to be legal: {receipt.where}: {receipt.action}" for receipt in receipts]
    lines += [f"went in words: {one}" for one in words]
    return lines if left_out or omitted or receipts or words else [*lines, "nothing was left out"]


def _part_text(part: Part) -> str:
    match part:
        case Text():
            return part.text
        case Media():
            return part.words
        case ToolCall():
            return f"[{call_text(part)}]"
        case ToolResult():
            return f"[{result_text(part, None)}]"
        case Thought() | Opaque():
            return ""


def ending_text(response: Response) -> str | None:
    """Return the text about how an answer ended; None if it is complete."""
    finish = response.finish
    if finish.outcome == "complete":
        return None
    reasons = ": ".join(word for word in (finish.reason, finish.message) if word and finish.outcome != "empty")
    kept = "" if response.valid else "; not kept"
    return one_line(f"{_ENDINGS[finish.outcome]}{f' ({reasons})' if reasons else ''}{kept}", MAX_ERROR)


def error_text(error: errors.TertuliaError, hints: Hints) -> str:
    """Return the error and what to do about it, on one line."""
    said = one_line(str(error) or type(error).__name__, MAX_ERROR)
    if isinstance(error, errors.ModelUnavailable) and error.retry_after is not None:
        hint = f"Say it again in {error.retry_after:g} s."
    else:
        hint = next((hint for kind, hint in _HINTS if isinstance(error, kind)), "")
        hint = hint.format(model=hints.model, forget=hints.forget, new_key=hints.new_key)
    stop = "" if not hint or said.endswith((".", "?", "!", "…")) else "."
    return f"{said}{stop} {hint}".rstrip()


def one_line(text: str, longest: int = MAX_TEXT) -> str:
    """Return a text on one line, cut to *longest* characters."""
    return cut(" ".join(text.split()), longest)


def cut(text: str, longest: int = MAX_TEXT) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"
