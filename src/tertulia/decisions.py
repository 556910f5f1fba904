"""Decisions: why a message is or is not answered, and how it speaks to the agent. Pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Literal

from msgspec import Struct

EDIT_WINDOW = timedelta(hours=1)  # after a message was sent: an edit within it may still address the agent

Reason = Literal[
    "waiting",  # for the end of its burst, or of the run before it
    "answered",  # by a run
    "joined",  # taken into a run that had begun
    "not addressed",  # to the agent, in a group
    "our own",
    "blocked",  # its author is
    "agents in a row",  # more than `agents_in_a_row`
    "rate limit",
    "spend cap",
    "album answered",  # before this message of the album came
    "withdrawn",  # deleted before it was answered
    "forgotten",  # hidden or emptied before it was answered, since somebody or a fact was forgotten
    "place left",  # before it was answered
    "late edit",  # only its edit reached us, later than `EDIT_WINDOW`
    "agent removed",  # before it answered
]
Address = Literal[
    "direct",  # every message of a direct chat is addressed to us
    "reply",  # to a message of ours
    "mention",  # of our account: `@name`
    "name",
    "rule",  # `Behavior.answer_if`
    "platform",  # says that the agent is meant: `Received.addressed`
]


class Decision(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a message is or is not answered by an agent. A stored one is a row; only its reason and run change."""

    reason: Reason
    address: Address | None = None  # how the message speaks to the agent; None also while it waits
    agent: str = ""  # that is meant; empty: nobody, the only one, or it is not decided yet
    edited: bool = False  # it was decided once more after an edit
    run_id: str | None = None  # the run that took the message, also if it only sent a notice
    at: datetime | None = None  # when it was decided; of a message that waits, since when


Meant = Mapping[str, Sequence[Decision]]  # of messages, by their ids: the agents meant after the first, in their order


def waits_after_edit(before: Sequence[Decision], sent_at: datetime | None, edited_at: datetime) -> bool:
    """Return whether a message is decided about once more: its edit may address it to an agent, and it came in time.

    Agents that were meant *before* do not matter: others may be meant now.
    """
    is_open = all(one.agent or one.reason in ("not addressed", "late edit") for one in before)
    return bool(before) and is_open and sent_at is not None and edited_at - sent_at <= EDIT_WINDOW
