"""Which of the messages that wait belong together. Pure."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from palaver.conversation.journal import Waiting


def burst_from(first: int, waiting: Sequence[Waiting], gap: timedelta, longest: timedelta) -> list[Waiting]:
    """The messages that the author of the one at *first* wrote from there on, each within *gap* of the last."""
    author = waiting[first].message.author.id
    found = [waiting[first]]
    for one in waiting[first + 1 :]:
        if one.message.author.id != author:
            continue
        if one.since - found[-1].since > gap or one.since - found[0].since > longest:
            break
        found.append(one)
    return found


def quiet_in(burst: Sequence[Waiting], now: datetime, gap: timedelta, longest: timedelta) -> timedelta:
    """How long nothing more is waited for yet; not at all where the clock was set back since."""
    left = min(burst[-1].since + gap, burst[0].since + longest) - now
    return timedelta(0) if left > gap else left
