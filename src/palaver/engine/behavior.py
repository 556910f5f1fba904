"""How an agent behaves among people: whom it answers, when, and what becomes of what is in doubt. Pure."""

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
from palaver.tasks.policy import POLICIES, RETRY, Policy, Retry

TOO_MANY = "That was more than I can answer at once. I go on in a little while; please ask again then."
NOTHING_TO_SAY = "I have no answer to that. Please try to say it differently."
FAILED = "Something went wrong on my side, and I could not answer this. Please try again."
LONGEST_BURST = 86_400.0  # seconds

Administers = Callable[[Place, Author], Awaitable[bool]]  # whether a person is an owner or administrator of a group

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
    """An honest line for the person whose message could not be answered; what went wrong inside stays inside."""
    return next((words for kind, words in _EXCUSES if isinstance(error, kind)), FAILED)


def proposal(facts: Sequence[Fact]) -> str:
    """What a person is asked about facts that a model would forget: only their own yes does it."""
    if len(facts) == 1:
        return f"I would forget: “{facts[0].text}” Say yes, and it is forgotten."
    lines = "\n".join(f"- {fact.text}" for fact in facts)
    return f"I would forget:\n{lines}\nSay yes, and all of it is forgotten."


async def require_right_to_clear(place: Place, person: Author, administers: Administers) -> None:
    """Let a person clear a place: a direct chat is theirs, a group belongs to those who administer it."""
    if place.kind != "direct" and not await administers(place, person):
        raise NotAllowed(f"{person.name} may not clear {place.title or place.id}: only its administrators may")


class Behavior(Struct, frozen=True, kw_only=True):
    """How an agent behaves. Every field has a default."""

    names: tuple[str, ...] = ()  # what else people call the agent
    rule: Rule | None = None  # what else is answered in groups
    agents_in_a_row: int = 2  # messages of agents after which we wait for a person
    limit: RateLimit = RateLimit()  # on messages of one author
    burst: float = 1.5  # seconds without another message of an author after which they are answered, as one
    longest_burst: float = 10.0  # seconds after which they are answered all the same
    during: Literal["next run", "next step"] = "next run"  # which sees the messages that come during a run
    doubtful: Literal["hold", "send again"] = "hold"  # replies of which nobody knows whether they went out
    calls_off: str = "sends"  # what a new run calls off of an older plan: a name in tasks.policy.POLICIES
    retry: Retry = RETRY  # of tasks that fail
    at_once: int = 32  # runs in all places together, but for those that wait for a model
    call_timeout: float = 120.0  # seconds in which a model must have answered
    run_timeout: float = 300.0  # seconds that processes may work on one run
    caps: Caps = Caps()  # on what runs spend in a day
    prices: Prices = PRICES  # of models, by their names
    model_may: frozenset[str] = frozenset()  # which of tasks.kinds.DESTRUCTIVE a model may use
    keep_updates: timedelta = timedelta(days=7)  # how long what a chat service sent is stored as it came
    resumes: int = 10  # times that a run is taken up again after a crash, before it is given up
    excuse: Callable[[PalaverError], str] = excuse
    proposal: Callable[[Sequence[Fact]], str] = proposal

    def __post_init__(self) -> None:
        if self.calls_off not in POLICIES:
            raise InvalidValue(f"calls_off is one of {', '.join(POLICIES)}, not {self.calls_off!r}")
        if unknown := self.model_may - DESTRUCTIVE:
            kinds = ", ".join(sorted(DESTRUCTIVE))
            raise InvalidValue(f"model_may holds any of {kinds}, not {', '.join(sorted(unknown))}")
        if not (0 <= self.burst <= self.longest_burst <= LONGEST_BURST):
            raise InvalidValue("a burst lasts from 0 seconds up, and longest_burst is no less and a day at most")
        if self.call_timeout <= 0 or self.run_timeout <= 0:
            raise InvalidValue("call_timeout and run_timeout are more than 0 seconds")
        if self.at_once < 1 or self.resumes < 1 or self.agents_in_a_row < 0:
            raise InvalidValue("at_once and resumes are at least 1, agents_in_a_row at least 0")

    @property
    def policy(self) -> Policy:
        return POLICIES[self.calls_off]
