"""Model: the protocol of everything that answers a prompt; Response, Finish and Usage. Pure."""

from collections.abc import AsyncIterator, Callable
from datetime import datetime
from typing import Any, Literal, Protocol, runtime_checkable

from msgspec import Struct
from msgspec.structs import replace

from tertulia.parts import Media, Opaque, Part, Text, Thought, ToolCall
from tertulia.turns import Prompt, Role, Turn
from tertulia.wire.media_limits import MediaTaken, limits_of

Outcome = Literal[
    "complete",  # the model ended its answer, or called tools
    "cut",  # the token limit was reached
    "blocked",  # the answer was withheld
    "prompt_blocked",  # the service does not answer this prompt
    "malformed",  # the model wrote a call or a text that the service cannot use; a retry may help
    "empty",  # it ended without text and calls
    "continue",  # the rest must be requested
    "incomplete",  # the stream broke off
    "other",  # an unknown reason
]


class Finish(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a response ended: our outcome, and the service's own word for it."""

    outcome: Outcome
    reason: str = ""
    message: str = ""


class Usage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Tokens: `cached`, and `written` to a cache, are among `input`; `thought` are not among `output`."""

    input: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0
    thought: int = 0

    @property
    def total(self) -> int:
        return self.input + self.output + self.thought

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input=self.input + other.input,
            cached=self.cached + other.cached,
            written=self.written + other.written,
            output=self.output + other.output,
            thought=self.thought + other.thought,
        )


class Response(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a model sent: its turn, usage, how it ended, and the raw body."""

    turn: Turn
    usage: Usage = Usage()
    finish: Finish = Finish(outcome="other")
    raw: dict[str, Any] = {}
    answered_by: str = ""  # the model, as the service calls it

    @property
    def parts(self) -> tuple[Part, ...]:
        return self.turn.parts

    @property
    def text(self) -> str:
        """The text of the answer, without thoughts."""
        return self.turn.text

    @property
    def thought_text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Thought))

    @property
    def has_thoughts(self) -> bool:
        return any(isinstance(part, Thought) for part in self.parts)

    @property
    def thought_signatures(self) -> tuple[str, ...]:
        signed = (part.signature for part in self.parts if isinstance(part, Text | Media | Thought | ToolCall))
        return tuple(signature for signature in signed if signature)

    @property
    def function_calls(self) -> tuple[ToolCall, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def valid(self) -> bool:
        """Whether the turn may be in the history that is sent: it is complete and not empty."""
        if self.finish.outcome == "incomplete" or not self.parts:
            return False
        if any(isinstance(part, Opaque) and not part.raw for part in self.parts):
            return False
        return any(not isinstance(part, Text) or part.text for part in self.parts)


class File(Struct, frozen=True, kw_only=True):
    """An uploaded file; its URI goes into `Media.uri`."""

    name: str
    uri: str
    mime: str
    state: str  # PROCESSING, ACTIVE or FAILED
    expires_at: datetime | None = None
    size: int = 0  # bytes


class Model(Protocol):
    name: str

    async def respond(self, prompt: Prompt) -> Response:
        """Answer *prompt*, or raise one of our errors."""
        ...

    def stream(self, prompt: Prompt) -> AsyncIterator[Part | Response]:
        """Yield the parts of the answer in order, and last the whole Response."""
        ...


@runtime_checkable
class TakesMedia(Protocol):
    """A model that says which media its service takes. The others are sent as words, which answers may repeat.

    A model without `takes` is assumed to take all media that have content.
    """

    def takes(self, media: Media, role: Role) -> bool:
        """Return whether the service takes *media* in a turn of this role; else `media.words` are sent."""
        ...


def media_taken(model: Model) -> MediaTaken:
    """Return what a model takes of media: by its id, and by its own account if it has one."""
    taken = limits_of(model.name)
    take: Callable[[Media, Role], bool] | None = getattr(model, "takes", None)
    if take is None:  # `isinstance` takes ten times as long, for each request
        return taken

    def takes(mime: str, role: Role = "user") -> bool:
        return take(Media(media_kind="document", unique_id="", mime=mime, data=b"\0"), role)

    return replace(
        taken,
        types=frozenset(filter(takes, taken.types)),
        texts=taken.texts and takes("text/plain"),
        own=taken.own and takes("image/png", "model"),
    )


@runtime_checkable
class UploadsFiles(Protocol):
    """A model whose service takes files, which requests then name by their URIs."""

    @property
    def account(self) -> str:
        """The service and a digest of the key, by which a file belongs to them; empty if no file can be uploaded."""
        ...

    async def upload(self, data: bytes, *, mime: str, name: str = "") -> File:
        """Upload a file and wait until it can be used.

        If the account has a file of this *name*, type and size, that is returned. Raise `FileExists` if another file
        has the name, `FileGone` if the service cannot read the file.
        """
        ...

    def is_own_file(self, uri: str) -> bool:
        """Return whether *uri* is the address of a file at this service."""
        ...

    async def get_file(self, name: str) -> File: ...

    async def delete_file(self, name: str) -> None: ...
