"""Tasks, the blocks by which a model asks for them, and policies: retries, and what a new message cancels. Pure."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Literal, Protocol, get_args

from msgspec import Struct, ValidationError, convert, to_builtins
from msgspec.structs import force_setattr

from tertulia.backoff import backoff
from tertulia.errors import InvalidValue
from tertulia.ids import match_ids
from tertulia.messages import Place
from tertulia.tasks.recurrence import Recurrence
from tertulia.timezones import utc

Status = Literal["pending", "running", "done", "failed", "cancelled"]

LAST = datetime.max.replace(tzinfo=UTC)

FORGET_CONFIRMED = "forget-confirmed"  # the kind of task that a person's yes makes; no model can
REPEATABLE = frozenset(
    {"send", "sticker", "remember", "block", "unblock", "clear-conversation", FORGET_CONFIRMED}
)  # kinds whose tasks may run twice; what such a task sends is stored with its end

SENDS = frozenset({"send", "sticker"})


class _Block(Struct, frozen=True, kw_only=True, tag_field="kind", omit_defaults=True):
    """The base of blocks: `kind` is what stands in their heading."""


class Send(_Block, frozen=True, kw_only=True, tag="send"):
    text: str
    reply_to: str | None = None
    to: str | None = None  # an agent or a place elsewhere, as the model names it


class Wait(_Block, frozen=True, kw_only=True, tag="wait"):
    seconds: float  # an int where they are whole


class SendSticker(_Block, frozen=True, kw_only=True, tag="sticker"):
    set: str
    name: str
    reply_to: str | None = None


class Remember(_Block, frozen=True, kw_only=True, tag="remember"):
    facts: tuple[str, ...]


class Think(_Block, frozen=True, kw_only=True, tag="think"):
    text: str = ""  # never shown


class BlockAuthor(_Block, frozen=True, kw_only=True, tag="block"):
    """Blocks the author of the message that is answered."""


class UnblockAuthor(_Block, frozen=True, kw_only=True, tag="unblock"):
    """Unblocks the author of the message that is answered."""


class ClearConversation(_Block, frozen=True, kw_only=True, tag="clear-conversation"):
    pass


class Custom(_Block, frozen=True, kw_only=True, tag="custom"):
    """A block of a registered kind."""

    name: str  # its kind
    id: str | None = None
    body: str = ""
    value: Any = None  # what the kind returned; JSON can hold it


_Known = Send | Wait | SendSticker | Remember | Think | BlockAuthor | UnblockAuthor | ClearConversation
TaskBlock = _Known | Custom

_TAGS = frozenset(known.__struct_config__.tag for known in get_args(_Known))


class Task(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Work for later, with its status."""

    id: str
    kind: str
    place: Place
    due_at: datetime  # aware; stored in UTC, so that no zone or change of clocks moves it
    after: tuple[str, ...] = ()  # ids of the tasks that come first
    args: dict[str, Any] = {}
    status: Status = "pending"
    attempts: int = 0  # how often it began
    run: str | None = None  # the run whose plan it belongs to
    made_by: str | None = None  # the run that made it, where it belongs to no plan
    agent: str = ""  # whose it is
    why: str = ""  # the reason why it failed, also if it will be retried, or was cancelled
    doubtful: bool = False  # it failed because a process ended: nobody knows whether it happened
    again: Recurrence | None = None  # when it comes again; it is pending once more when it is done

    def __post_init__(self) -> None:
        force_setattr(self, "due_at", utc(self.due_at))


def public_id(task: Task) -> str:
    """Return the id by which people name a task, abbreviated: `Task.id` is long, and begins like others."""
    return sha256(task.id.encode(errors="replace")).hexdigest()


def tasks_named(given: str, tasks: Iterable[Task]) -> list[Task]:
    """Return the task whose `Task.id` is *given*, or else those whose public ids begin with it."""
    by_id = {task.id: task for task in tasks}
    by_public_id = {public_id(task): task for task in by_id.values()}
    return (
        [by_id[given]] if given in by_id else [by_public_id[name] for name in match_ids(given.casefold(), by_public_id)]
    )


def kind_of(block: TaskBlock) -> str:
    """Return the kind in the heading of a block."""
    return block.name if isinstance(block, Custom) else str(block.__struct_config__.tag)


def args_of(block: TaskBlock) -> dict[str, Any]:
    """Return the arguments of the task for *block*."""
    fields: dict[str, Any] = to_builtins(block)
    left_out = ("kind", "name") if isinstance(block, Custom) else ("kind",)
    return {
        name: list(value) if isinstance(value, tuple) else value  # as it is read from JSON
        for name, value in fields.items()
        if name not in left_out
    }


def block_of(task: Task) -> TaskBlock:
    """Return the block that *task* was made from."""
    fields = {"kind": task.kind} if task.kind in _TAGS else {"kind": "custom", "name": task.kind}
    try:
        block: TaskBlock = convert({**task.args, **fields}, TaskBlock)
    except ValidationError as error:
        raise InvalidValue(f"task {task.id} is no {task.kind}: {error}") from error
    return block


def later(moment: datetime, by: timedelta) -> datetime:
    """Return *moment* plus *by*, in UTC, or the end of the calendar."""
    try:
        return utc(moment) + by
    except OverflowError:
        return LAST


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
    return task.run is not None and task.kind in SENDS


def cancels_everything(task: Task) -> bool:
    """Return whether *task* belongs to an older plan."""
    return task.run is not None


def ends_with_its_place(task: Task) -> bool:
    """Return whether *task* is cancelled when its place is left: not what only changes memory, or what people may."""
    return task.kind in SENDS or task.kind not in REPEATABLE


def cancels_nothing(_: Task) -> bool:
    return False


class PlanRules(Protocol):
    """What follows from a change for the tasks of a plan: functions of all its tasks. `tasks.graph` is one."""

    def begin(self, task: Task, /) -> Task: ...

    def cancel(self, task: Task, /, *, why: str) -> Task: ...

    def settle(self, tasks: Iterable[Task], /) -> Sequence[Task]:
        """Return the tasks with what follows from their statuses."""
        ...

    def without_open_dependencies(self, tasks: Iterable[Task], /) -> Sequence[Task]:
        """Return the pending tasks that wait only for their time."""
        ...

    def recover(self, tasks: Iterable[Task], /, *, repeatable: Collection[str]) -> Sequence[Task]:
        """Return the tasks after a crash."""
        ...

    def supersede(self, tasks: Iterable[Task], place: Place, /, *, policy: Policy) -> Sequence[Task]:
        """Return the tasks after a new message in *place*."""
        ...


POLICIES: Mapping[str, Policy] = MappingProxyType(
    {"sends": cancels_sends, "everything": cancels_everything, "nothing": cancels_nothing}
)
