"""Policies for tasks: retries, which kinds are repeatable, and what a new message cancels. Pure."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from types import MappingProxyType

from msgspec import Struct

from palaver.backoff import backoff
from palaver.errors import InvalidValue
from palaver.tasks.task import Task

FORGET_CONFIRMED = "forget-confirmed"  # the kind of task that a person's yes makes; no model can
REPEATABLE = frozenset(
    {"send", "sticker", "remember", "block", "unblock", "clear-conversation", FORGET_CONFIRMED}
)  # kinds whose tasks may run twice; what such a task sends is stored with its end

_SENDS = frozenset({"send", "sticker"})

Policy = Callable[[Task], bool]  # whether a new message in its place cancels a task that never began


class Retry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The number of attempts of a task, and the pauses between them: each is twice the one before."""

    limit: int = 5  # attempts
    first: timedelta = timedelta(seconds=5)
    longest: timedelta = timedelta(hours=1)

    def __post_init__(self) -> None:
        if self.limit < 1 or not timedelta(0) < self.first <= self.longest:
            raise InvalidValue("a task is tried once at least, and the pauses are more than nothing and do not shrink")

    def pause(self, attempts: int) -> timedelta:
        """Return how long to wait after so many failed attempts."""
        return backoff(attempts, first=self.first, longest=self.longest)


RETRY = Retry()


def cancels_sends(task: Task) -> bool:
    """Return whether *task* is a send of an older plan. Tasks of no run, such as reminders, stay."""
    return task.run is not None and task.kind in _SENDS


def cancels_everything(task: Task) -> bool:
    """Return whether *task* belongs to an older plan."""
    return task.run is not None


def cancels_nothing(_: Task) -> bool:
    return False


POLICIES: Mapping[str, Policy] = MappingProxyType(
    {"sends": cancels_sends, "everything": cancels_everything, "nothing": cancels_nothing}
)
