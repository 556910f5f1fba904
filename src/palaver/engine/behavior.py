"""Behavior of an agent in chats: whom it answers, when, and the texts of its notices. Pure."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Literal

from msgspec import Struct

from palaver import errors
from palaver.engine.rate_limit import RateLimit
from palaver.engine.spend_caps import Caps
from palaver.engine.triggers import Rule
from palaver.errors import InvalidValue, NotAllowed, PalaverError
from palaver.memory.facts import Fact
from palaver.messages import Author, Place
from palaver.models.prices import PRICES, Prices
from palaver.tasks.kinds import DESTRUCTIVE
from palaver.tasks.task import POLICIES, RETRY, Policy, Retry

TOO_MANY = "That was more than I can answer at once. I go on in a little while; please ask again then."
NOTHING_TO_SAY = "I have no answer to that. Please try to say it differently."
FAILED = "Something went wrong on my side, and I could not answer this. Please try again."
LONGEST_BURST = 86_400.0  # seconds

IsAdministrator = Callable[[Place, Author], Awaitable[bool]]  # whether a person is an owner or administrator of a group

_EXCUSES: tuple[tuple[type[PalaverError], str], ...] = (
    (errors.ContextTooLong, "This conversation has become too long for me, and I could not answer. Please begin anew."),
    (
        errors.RunTimedOut,
        "This took longer than I may work on one answer, and I stopped. Please ask for less at once.",
    ),
    (errors.QuotaExhausted, "I have used up what I may ask of my model, and cannot answer for now."),
    (errors.RateLimited, "My model has too much to do just now, and I could not answer. Please try again in a while."),
    (errors.ModelUnavailable, "I cannot reach my model just now, and could not answer. Please try again in a while."),
    (errors.OperatorMustAct, "I cannot answer until whoever runs me has looked after me; they have been told."),
    (errors.ResponseUnreadable, NOTHING_TO_SAY),
)


def excuse(error: PalaverError) -> str:
    """Return the text for a person whose message could not be answered. It gives no internal details."""
    return next((words for kind, words in _EXCUSES if isinstance(error, kind)), FAILED)


def proposal(facts: Sequence[Fact]) -> str:
    """Return the question to a person about facts that a model proposes to forget."""
    if len(facts) == 1:
        return f"I would forget: “{facts[0].text}” Say yes, and it is forgotten."
    lines = "\n".join(f"- {fact.text}" for fact in facts)
    return f"I would forget:\n{lines}\nSay yes, and all of it is forgotten."


async def require_right_to_clear(place: Place, person: Author, is_administrator: IsAdministrator) -> None:
    """Raise `NotAllowed` where a person may not clear a place: in a group without being an administrator."""
    if place.kind != "direct" and not await is_administrator(place, person):
        raise NotAllowed(f"{person.name} may not clear {place.title or place.id}: only its administrators may")


class Behavior(Struct, frozen=True, kw_only=True):
    """How an agent behaves. Every field has a default."""

    names: tuple[str, ...] = ()  # other names that people use for the agent
    rule: Rule | None = None  # answers further messages in groups
    agents_in_a_row: int = 2  # messages of agents after which the agent waits for a person
    limit: RateLimit = RateLimit()  # on messages of one author
    burst: float = 1.5  # seconds without another message of the author, after which the burst is answered
    longest_burst: float = 10.0  # seconds after which a burst is answered in any case
    during: Literal["next run", "next step"] = "next run"  # which takes the messages that come during a run
    doubtful: Literal["hold", "send again"] = "hold"  # replies with an unknown outcome
    calls_off: str = "sends"  # which tasks of older plans a new run cancels: a name in tasks.policy.POLICIES
    retry: Retry = RETRY  # of failed tasks
    at_once: int = 32  # runs in all places together, without those that wait for a model
    call_timeout: float = 120.0  # seconds of one model call
    run_timeout: float = 300.0  # seconds of one run, over all processes
    caps: Caps = Caps()  # on the spend of a day
    prices: Prices = PRICES  # of models, by their names
    model_may: frozenset[str] = frozenset()  # which of tasks.kinds.DESTRUCTIVE a model may use
    keep_updates: timedelta = timedelta(days=7)  # how long raw updates are stored
    resumes: int = 10  # times that a run is resumed after a crash before it fails
    excuse: Callable[[PalaverError], str] = excuse
    proposal: Callable[[Sequence[Fact]], str] = proposal

    def __post_init__(self) -> None:
        if self.calls_off not in POLICIES:
            raise InvalidValue(f"Behavior: calls_off must be one of {', '.join(POLICIES)}, not {self.calls_off!r}")
        if unknown := self.model_may - DESTRUCTIVE:
            kinds = ", ".join(sorted(DESTRUCTIVE))
            raise InvalidValue(f"Behavior: model_may must hold some of {kinds}, not {', '.join(sorted(unknown))}")
        if not (0 <= self.burst <= self.longest_burst <= LONGEST_BURST):
            raise InvalidValue(f"Behavior: 0 <= burst <= longest_burst <= {LONGEST_BURST:g} seconds")
        if self.call_timeout <= 0 or self.run_timeout <= 0:
            raise InvalidValue("Behavior: call_timeout and run_timeout must be more than 0 seconds")
        if self.at_once < 1 or self.resumes < 1 or self.agents_in_a_row < 0:
            raise InvalidValue("Behavior: at_once and resumes must be at least 1, agents_in_a_row at least 0")

    @property
    def policy(self) -> Policy:
        return POLICIES[self.calls_off]
