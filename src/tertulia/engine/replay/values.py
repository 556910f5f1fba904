"""What a replay takes and gives: the changed bot, runs as they were and as they would be, and their sums. Pure."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from tertulia.context.values import Persona
from tertulia.engine.inspection import Spent
from tertulia.messages import Place
from tertulia.models.base import Model
from tertulia.models.calls import Call
from tertulia.models.prices import cost
from tertulia.profiles import Profile
from tertulia.turns import Turn


class ChangedBot(Struct, frozen=True, kw_only=True):
    """What is changed of a bot; what is not given is as it was.

    With another model alone, prompts are those that were sent. With another persona or profile they are built anew, of
    what was known then.
    """

    models: tuple[Model, ...]  # the first is called; each other is a fallback for the one before
    persona: Persona | None = None
    profile: Profile | None = None


class ReplayedTool(Struct, frozen=True, kw_only=True):
    """A tool call, with the result that the journal of the run has for it."""

    name: str
    args: dict[str, Any]
    result: Any
    is_known: bool = True  # False: the run did not make this call; the model was told that its result is unknown


class Answered(Struct, frozen=True, kw_only=True):
    """What was said in a run, or would be, and how."""

    texts: tuple[str, ...] = ()
    tools: tuple[ReplayedTool, ...] = ()
    tasks: tuple[str, ...] = ()  # the kinds of what was planned for later
    model: str = ""
    profile: str = ""
    spent: Spent = Spent()
    error: str = ""  # why nothing was said


class RequestCheck(Struct, frozen=True, kw_only=True):
    """Whether a request of a run is rebuilt as it was sent, byte for byte."""

    run: str
    step: int
    attempt: int
    is_same: bool
    why: str  # in words


class ReplayedRun(Struct, frozen=True, kw_only=True):
    """A run as it was, and as it would be on the changed bot."""

    run: str
    place: Place
    at: datetime
    asked: tuple[str, ...]  # each message that was answered: `Alice: Is 3A free?`
    before: Answered
    after: Answered

    @property
    def is_changed(self) -> bool:
        """Whether something else would be said."""
        return not self.after.error and _words(self.before) != _words(self.after)


class ReplaySum(Struct, frozen=True, kw_only=True):
    """The sum of replayed runs."""

    runs: int = 0
    changed: int = 0
    failed: int = 0  # that would not be answered
    before: Spent = Spent()
    after: Spent = Spent()


class SentAgain(Struct, frozen=True, kw_only=True):
    """A past request, sent to another model."""

    check: RequestCheck
    model: str
    turn: Turn  # the response
    finish: str  # how it ended
    call: Call


class Rendered(Struct, frozen=True, kw_only=True):
    """A past request as it would be with another profile or for another model."""

    wire: Literal["gemini", "openai"]
    model: str
    profile: str
    body: bytes
    tokens: int  # estimated
    money: float | None  # in dollars, for these tokens without a cache; None: the price is not known


def summed(runs: Iterable[ReplayedRun]) -> ReplaySum:
    """Return the sum of replayed runs."""
    found = list(runs)
    return ReplaySum(
        runs=len(found),
        changed=sum(one.is_changed for one in found),
        failed=sum(bool(one.after.error) for one in found),
        before=sum((one.before.spent for one in found), Spent()),
        after=sum((one.after.spent for one in found), Spent()),
    )


def spent_by(calls: Iterable[Call]) -> Spent:
    """Return what calls have spent."""
    found = Spent()
    for call in calls:
        used, price = call.usage, call.price
        found += Spent(
            calls=1,
            input=used.input,
            cached=used.cached,
            output=used.output + used.thought,
            money=call.money,
            without_cache=cost(replace(used, cached=0), price) if price else 0.0,
            unpriced=int(price is None and used.total > 0),
        )
    return found


def _words(answer: Answered) -> list[str]:
    """Return the words of an answer; spaces do not matter."""
    return " ".join(answer.texts).split()
