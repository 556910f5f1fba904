"""Decisions and sums in words, the same on the page and at the command line. Pure."""

from collections.abc import Mapping

from tertulia import errors
from tertulia.decisions import Address, Decision, Reason
from tertulia.inspector.values import MustAct

REASONS: Mapping[Reason, str] = {
    "waiting": "it waits for the end of its burst, or of the run before it",
    "answered": "answered",
    "joined": "taken into a run that had begun",
    "not addressed": "not addressed to the bot: no mention, name or reply to it, and no rule that answers more",
    "our own": "it is the bot's own",
    "blocked": "its author is blocked",
    "agents in a row": "too many messages of agents in a row (behavior.agents_in_a_row)",
    "rate limit": "its author is over the rate limit (limits.messages)",
    "spend cap": "a spend cap is reached (limits)",
    "album answered": "its album was answered before it came",
    "withdrawn": "it was deleted before it was answered",
    "forgotten": "it was forgotten before it was answered",
    "place left": "the bot has left the place",
    "late edit": "only an edit of it reached the bot, over an hour after it was sent",
    "agent removed": "its agent was removed before it answered",
}
ADDRESSES: Mapping[Address, str] = {
    "direct": "in a direct chat",
    "reply": "by a reply",
    "mention": "by a mention",
    "name": "by name",
    "rule": "by Behavior.answer_if",
    "platform": "as the platform says",
}
MUST_ACT: Mapping[MustAct, str] = {
    "nobody": "nobody must act if it passes: the next message is answered again",
    "operator": "whoever runs the bot must act: on the key, the quota or the config",
    "program": "the program or the service is at fault: the checks of the request may say more",
}
IMPORTED = "imported: the bot did not receive it"


def address_words(decision: Decision) -> str:
    """Return how a message speaks to the bot: `by name, after an edit`."""
    how = ADDRESSES[decision.address] if decision.address else ""
    return f"{how}, after an edit".removeprefix(", ") if decision.edited else how


def must_act(error: str) -> MustAct | None:
    """Return who must act about an error, by the name of its class."""
    if not error:
        return None
    kind = getattr(errors, error, Exception)
    if issubclass(kind, errors.ModelUnavailable | errors.RunTimedOut):
        return "nobody"
    return "operator" if issubclass(kind, errors.OperatorMustAct) else "program"


def decision_words(decision: Decision) -> str:
    """Return a decision as a sentence: `answered; it spoke to the bot by name`."""
    how = address_words(decision)
    return f"{REASONS[decision.reason]}; it spoke to the bot {how}" if decision.address else REASONS[decision.reason]
