"""Lines about what has been said in a view: when a chat goes on, for `/history` and `/why`. Pure."""

from collections.abc import Iterable
from datetime import datetime

from tertulia.engine.place_worker import STOPPED
from tertulia.engine.view import View, ViewMessage
from tertulia.ids import SHORTEST
from tertulia.inspector.shown import words_of
from tertulia.inspector.words import decision_words
from tertulia.platforms.terminal.text import history_summary, message_lines, one_line
from tertulia.run.journal import Run

MAX_MESSAGES = 50  # that /history shows
MAX_ASKED = 60  # characters of a message that `/why` names
NOTHING = "(nothing has been said yet)"
UNANSWERED = "(what was said last had no answer yet; here it is)"


def summary_lines(view: View, now: datetime, *, anew: str, shown: int) -> list[str]:
    """Return how many messages there are, how old the last one is, and the last *shown* messages; nothing for an empty
    conversation.
    """
    count = view.count - view.beginning
    if count <= 0:
        return []
    first = _first_shown(view, shown)
    lines = [
        history_summary(count, view.messages[-1].message.sent_at, now, anew=f"{anew} begins anew"),
        *(f"  {line}" for line in _lines(view, first)),
    ]
    return [*lines, UNANSWERED] if _is_open(view) else lines


def history_lines(view: View) -> list[str]:
    """Return the last messages of the conversation; those of the model with its calls and results."""
    first = max(view.beginning, view.count - MAX_MESSAGES)
    lines = _lines(view, first)
    before = [f"(… {first - view.beginning:,} before)"] if first > view.beginning else []
    return [*before, *lines] if lines else [NOTHING]


def why_lines(view: View, words: str) -> list[str]:
    """Return why the last message of a person, or the last that has these words, was or was not answered."""
    said = [one for one in view.messages if one.message.author.persona is None and not one.message.deleted]
    named = [one for one in said if words.casefold() in words_of(one.message).casefold()]
    if not named:
        return [f"(no message of the last {len(said)} has “{one_line(words)}”)" if said else NOTHING]
    asked = named[-1]
    lines = [f"“{one_line(words_of(asked.message), MAX_ASKED)}”"]
    for decision in asked.decisions:
        lines.append(f"  {decision_words(decision)}")
        lines += [f"  {_run_words(one.run)}" for one in view.runs if one.run.id == decision.run_id]
    return lines


def _run_words(run: Run) -> str:
    """`run 85a6b2c1, gemini-3.8-flash: done in 1.2 s`"""
    named = f"run {run.id[:SHORTEST]}, {run.model}"
    if run.ended_at is None:
        return f"{named}: under way"
    took = f"{(run.ended_at - run.began_at).total_seconds():.1f} s"
    return f"{named}: failed after {took}: {run.why}" if run.status == "failed" else f"{named}: done in {took}"


def _first_shown(view: View, shown: int) -> int:
    """Return the number of the first of the last messages that are shown: an answer comes with its question."""
    first = max(view.beginning, view.count - shown)
    asked = (one.number for one in _said(view, view.beginning) if one.message.author.persona is None)
    return max((number for number in asked if number <= first), default=first) if shown else first


def _said(view: View, first: int) -> Iterable[ViewMessage]:
    return (one for one in view.messages if one.number >= first)


def _lines(view: View, first: int) -> list[str]:
    """Return the messages from a number on, in short."""
    failed = (one.run for one in view.runs if one.run.status == "failed")
    endings = {run.target: "stopped" if run.why == STOPPED else "no answer" for run in failed}
    return [
        line
        for one in _said(view, first)
        if not one.message.deleted
        for line in message_lines(one.message, one.turns, endings.get(one.message.id, ""))
    ]


def _is_open(view: View) -> bool:
    """Return whether something is still to be answered."""
    waits = any(decision.reason == "waiting" for one in view.messages for decision in one.decisions)
    return waits or any(one.run.status == "open" for one in view.runs)
