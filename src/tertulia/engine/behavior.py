"""Behavior of an agent in chats: whom it answers, when, and the texts of its notices. Pure."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Literal

from msgspec import Struct

from tertulia import errors
from tertulia.characters import is_blank
from tertulia.context.values import require_names
from tertulia.engine.agents.meant import Rule
from tertulia.engine.languages import BUILT_IN, languages_with, lines_in
from tertulia.engine.languages.lines import ENGLISH, Lines
from tertulia.engine.places import is_identified, require_places
from tertulia.errors import InvalidValue, NotAllowed, TertuliaError
from tertulia.memory.values import Fact
from tertulia.messages import Author, Place
from tertulia.models.prices import PRICES, Prices
from tertulia.tasks.kinds import DESTRUCTIVE
from tertulia.tasks.task import POLICIES, RETRY, Policy, Retry

TOO_MANY, NOTHING_TO_SAY, FAILED = ENGLISH.too_many, ENGLISH.nothing_to_say, ENGLISH.failed
LONGEST_DEBOUNCE = 86_400.0  # seconds
LONGEST_KEPT = timedelta(days=36_500)

IsAdministrator = Callable[[Place, Author], Awaitable[bool]]  # whether a person is an owner or administrator of a group

_ERROR_LINES: tuple[tuple[type[TertuliaError], Callable[[Lines], str]], ...] = (
    (errors.ContextTooLong, lambda lines: lines.context_too_long),
    (errors.RunTimedOut, lambda lines: lines.run_timed_out),
    (errors.QuotaExhausted, lambda lines: lines.quota_exhausted),
    (errors.RateLimited, lambda lines: lines.rate_limited),
    (errors.ModelUnavailable, lambda lines: lines.model_unavailable),
    (errors.OperatorMustAct, lambda lines: lines.operator_must_act),
    (errors.ResponseUnreadable, lambda lines: lines.nothing_to_say),
)


def error_text(error: TertuliaError, lines: Lines = ENGLISH) -> str:
    """Return the text for a person whose message could not be answered. It gives no internal details."""
    return next((line(lines) for kind, line in _ERROR_LINES if isinstance(error, kind)), lines.failed)


def forget_question(facts: Sequence[Fact], lines: Lines = ENGLISH) -> str:
    """Return the question to a person about facts that a model proposes to forget."""
    if len(facts) == 1:
        return lines.forget_one.format(fact=facts[0].text)
    return lines.forget_several.format(facts="\n".join(f"- {fact.text}" for fact in facts))


async def require_right_to_clear(place: Place, person: Author, is_administrator: IsAdministrator) -> None:
    """Raise `NotAllowed` where a person may not clear a place: in a group without being an administrator."""
    if place.kind != "direct" and not await is_administrator(place, person):
        raise NotAllowed(f"{person.name} may not clear {place.title or place.id}: only its administrators may")


class Behavior(Struct, frozen=True, kw_only=True):
    """How an engine and its agents behave. Every field has a default."""

    # of its agents; what an `Agent` says itself goes before it
    names: tuple[str, ...] = ()  # other names that people use for the agent
    answer_if: Rule | None = None  # says whether a group message that is not addressed to the agent is answered
    cancel_tasks: str = "sends"  # which tasks of older plans a new run cancels: a name in tasks.task.POLICIES
    blocks: tuple[str, ...] | None = None  # kinds of task blocks that a model is offered; (): none; None: all
    model_may: frozenset[str] = frozenset()  # which of tasks.kinds.DESTRUCTIVE a model may use
    error_text: Callable[[TertuliaError], str] = error_text  # for a person whose message could not be answered
    forget_question: Callable[[Sequence[Fact]], str] = forget_question  # about facts that a model would forget
    language: str = "en"  # of the lines for people whose own is unknown, or has no lines
    lines: dict[str, dict[str, str]] = {}  # added or changed lines, by language and name: engine.languages.lines

    # of the engine
    agents_in_a_row: int = 2  # messages of agents after which the agent waits for a person
    debounce: float = 1.5  # seconds without another message of the author, after which the burst is answered
    max_debounce: float = 10.0  # seconds after which a burst is answered in any case
    during_run: Literal["next_run", "next_step"] = "next_run"  # what answers messages that come during one
    doubtful_replies: Literal["hold", "resend"] = "hold"  # what is done with replies whose outcome is unknown
    retry: Retry = RETRY  # of failed tasks
    max_runs: int = 32  # runs in all places together, without those that wait for a model
    prices: Prices = PRICES  # of models, by their names
    keep_updates: timedelta = timedelta(days=7)  # how long raw updates are stored
    keep_prompts: timedelta = timedelta(days=30)  # how long the prompts of a run are stored after its end
    max_resumes: int = 10  # times that a run is resumed after a crash before it fails
    owners: tuple[str, ...] = ()  # who runs the agent: their accounts, as `service:id`; they administer every place
    allowed_places: tuple[str, ...] = ()  # as `service:id`, or a kind of places such as `direct`; empty: all

    def __post_init__(self) -> None:
        if self.cancel_tasks not in POLICIES:
            known = ", ".join(POLICIES)
            raise InvalidValue(f"Behavior: cancel_tasks must be one of {known}, not {self.cancel_tasks!r}")
        if unknown := self.model_may - DESTRUCTIVE:
            kinds = ", ".join(sorted(DESTRUCTIVE))
            raise InvalidValue(f"Behavior: model_may must hold some of {kinds}, not {', '.join(sorted(unknown))}")
        if not (0 <= self.debounce <= self.max_debounce <= LONGEST_DEBOUNCE):
            raise InvalidValue(f"Behavior: 0 <= debounce <= max_debounce <= {LONGEST_DEBOUNCE:g} seconds")
        if self.max_runs < 1 or self.max_resumes < 1 or self.agents_in_a_row < 0:
            raise InvalidValue("Behavior: max_runs and max_resumes must be at least 1, agents_in_a_row at least 0")
        if not all(timedelta() <= kept <= LONGEST_KEPT for kept in (self.keep_updates, self.keep_prompts)):
            raise InvalidValue(f"Behavior: keep_updates and keep_prompts are 0 to {LONGEST_KEPT.days} days")
        if wrong := [owner for owner in self.owners if not is_identified(owner)]:
            raise InvalidValue(
                f"Behavior: an owner is an account as `service:id`, such as telegram:123; not {wrong[0]!r}"
            )
        require_places("Behavior: allowed_places", self.allowed_places)
        require_names(name for name in self.names if not is_blank(name))
        if lines_in(self.language, languages_with(self.lines)) is None:
            raise InvalidValue(f"Behavior: language {self.language!r} has no lines; add them to lines")

    @property
    def policy(self) -> Policy:
        return POLICIES[self.cancel_tasks]

    def lines_in(self, language: str) -> Lines:
        """Return the agent's own lines in a language, or in `language` where it has none."""
        languages = languages_with(self.lines) if self.lines else BUILT_IN
        return lines_in(language, languages) or lines_in(self.language, languages) or ENGLISH

    def error_line(self, error: TertuliaError, lines: Lines) -> str:
        """Return what `error_text` says; in the language of *lines* where it is the default."""
        return error_text(error, lines) if self.error_text is error_text else self.error_text(error)

    def forget_line(self, facts: Sequence[Fact], lines: Lines) -> str:
        """Return what `forget_question` says; in the language of *lines* where it is the default."""
        return forget_question(facts, lines) if self.forget_question is forget_question else self.forget_question(facts)
