"""A task and its statuses, and the blocks a model asks for it with. Pure."""

from datetime import UTC, datetime, timedelta
from typing import Any, Literal, get_args

from msgspec import Struct, ValidationError, convert, to_builtins
from msgspec.structs import force_setattr

from palaver.errors import InvalidValue
from palaver.messages import Place
from palaver.timezones import utc

Status = Literal["pending", "running", "done", "failed", "cancelled"]

LAST = datetime.max.replace(tzinfo=UTC)


class _Block(Struct, frozen=True, kw_only=True, tag_field="kind", omit_defaults=True):
    """What all blocks share: frozen, named fields, and `kind` as in their heading."""


class Send(_Block, frozen=True, kw_only=True, tag="send"):
    text: str
    reply_to: str | None = None


class Wait(_Block, frozen=True, kw_only=True, tag="wait"):
    seconds: float  # an int where they are whole


class Sticker(_Block, frozen=True, kw_only=True, tag="sticker"):
    set: str
    name: str
    reply_to: str | None = None


class Remember(_Block, frozen=True, kw_only=True, tag="remember"):
    facts: tuple[str, ...]


class Think(_Block, frozen=True, kw_only=True, tag="think"):
    text: str = ""  # never shown


class BlockAuthor(_Block, frozen=True, kw_only=True, tag="block"):
    """Of the author who is answered."""


class UnblockAuthor(_Block, frozen=True, kw_only=True, tag="unblock"):
    """Of the author who is answered."""


class ClearConversation(_Block, frozen=True, kw_only=True, tag="clear-conversation"):
    pass


class Custom(_Block, frozen=True, kw_only=True, tag="custom"):
    """A block of a kind that was registered."""

    name: str  # its kind
    id: str | None = None
    body: str = ""
    value: Any = None  # what the kind made of it, in terms of JSON


_Known = Send | Wait | Sticker | Remember | Think | BlockAuthor | UnblockAuthor | ClearConversation
Block = _Known | Custom

_TAGS = frozenset(known.__struct_config__.tag for known in get_args(_Known))


class Task(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One piece of work, as it stands now."""

    id: str
    kind: str
    place: Place
    due_at: datetime  # aware; kept in UTC, so that no zone or change of clocks moves it
    after: tuple[str, ...] = ()  # ids of the tasks that come first
    args: dict[str, Any] = {}
    status: Status = "pending"
    attempts: int = 0  # how often it was begun
    run: str | None = None  # whose plan it belongs to
    made_by: str | None = None  # the run that led to it, where it belongs to no plan
    why: str = ""  # it failed, also if it will be tried again, or was cancelled
    doubtful: bool = False  # it failed by being cut off: nobody knows whether it happened

    def __post_init__(self) -> None:
        force_setattr(self, "due_at", utc(self.due_at))


def kind_of(block: Block) -> str:
    """What stands in its heading."""
    return block.name if isinstance(block, Custom) else str(block.__struct_config__.tag)


def args_of(block: Block) -> dict[str, Any]:
    """What a task keeps of *block* beside its kind."""
    fields: dict[str, Any] = to_builtins(block)
    left_out = ("kind", "name") if isinstance(block, Custom) else ("kind",)
    return {
        name: list(value) if isinstance(value, tuple) else value  # as it is after it was kept
        for name, value in fields.items()
        if name not in left_out
    }


def block_of(task: Task) -> Block:
    """The block that *task* was made from."""
    fields = {"kind": task.kind} if task.kind in _TAGS else {"kind": "custom", "name": task.kind}
    try:
        block: Block = convert({**task.args, **fields}, Block)
    except ValidationError as error:
        raise InvalidValue(f"task {task.id} is no {task.kind}: {error}") from error
    return block


def later(moment: datetime, by: timedelta) -> datetime:
    """*moment* in UTC and *by* more, or the end of the calendar."""
    try:
        return utc(moment) + by
    except OverflowError:
        return LAST
