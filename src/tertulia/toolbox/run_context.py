"""`RunContext`: the run that a tool is called in; and which parameter of a tool gets it. Pure."""

from datetime import datetime
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from msgspec import Struct

from tertulia.errors import InvalidValue
from tertulia.messages import Author, Message, Place
from tertulia.seen_by import SeenBy


class RunContext(Struct, frozen=True, kw_only=True):
    """The run that calls a tool. A tool may take it as its first parameter; the model does not see that parameter.

    A run of a `Chat` has no place, author or message.
    """

    run_id: str
    step: int  # the model call that asked for this tool, counted from 0
    call: int = 0  # the position of this call among the calls of its step
    now: datetime  # when the tool was called
    place: Place | None = None
    author: Author | None = None  # of `message`
    message: Message | None = None  # the target, as the model was shown it
    agent: str = ""  # the name of the agent that answers; empty: the only one
    batch: tuple[str, ...] = ()  # the ids of all messages that are answered, `message` among them
    seen_by: SeenBy | None = None  # the agent that answers, where there are several

    @property
    def idempotency_key(self) -> str:
        """Identifies this call; the same when a repeatable tool runs again after a crash."""
        return f"{self.run_id}-{self.step}-{self.call}"


def takes_context(kind: Any, *, first: bool, tool: str, parameter: str) -> bool:
    """Return whether a parameter of type *kind* gets the `RunContext`; raise `InvalidValue` if it cannot."""
    if not _mentions(kind):
        return False
    if not first or not _is_context(kind):
        advice = "RunContext is the first parameter of a tool, by itself or with None"
        raise InvalidValue(f"{tool}: its parameter {parameter!r} cannot be filled in; {advice}")
    return True


def _is_context(kind: Any) -> bool:
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) in (Union, UnionType):
        return all(one is NoneType or _is_context(one) for one in get_args(kind))
    return kind is RunContext


def _mentions(kind: Any) -> bool:
    return (isinstance(kind, type) and issubclass(kind, RunContext)) or any(map(_mentions, get_args(kind)))
