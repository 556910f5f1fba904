"""What a model is to the rest: something that answers a prompt, whole or in pieces. Pure."""

from collections.abc import AsyncIterator
from typing import Any, Literal, Protocol, runtime_checkable

from msgspec import Struct

from palaver.parts import Media, Opaque, Part, Text, Thought, ToolCall
from palaver.turns import Prompt, Role, Turn

Outcome = Literal[
    "complete",  # the model said what it had to say, or called tools
    "cut",  # the limit of tokens was reached
    "blocked",  # the answer was withheld
    "prompt_blocked",  # the request was not answered at all
    "malformed",  # the model produced a call or a text the service could not use; asking again may help
    "empty",  # it ended well and said nothing
    "continue",  # the service wants to be asked for the rest
    "incomplete",  # the connection broke before the end
    "other",  # a reason without a name, or one we do not know
]


class Finish(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a response ended: our outcome, and the service's own word for it."""

    outcome: Outcome
    reason: str = ""
    message: str = ""


class Usage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Tokens: `cached` are among `input`; `thought` are not among `output`."""

    input: int = 0
    cached: int = 0
    output: int = 0
    thought: int = 0

    @property
    def total(self) -> int:
        return self.input + self.output + self.thought


class Response(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a model sent: the turn to keep, and how it ended."""

    turn: Turn
    usage: Usage = Usage()
    finish: Finish = Finish(outcome="other")
    raw: dict[str, Any] = {}

    @property
    def parts(self) -> tuple[Part, ...]:
        return self.turn.parts

    @property
    def text(self) -> str:
        """What the model said, without its thoughts."""
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
        """Whether the turn may enter the history that is sent: it arrived whole and says something."""
        if self.finish.outcome == "incomplete" or not self.parts:
            return False
        if any(isinstance(part, Opaque) and not part.raw for part in self.parts):
            return False
        return any(not isinstance(part, Text) or part.text for part in self.parts)


class Model(Protocol):
    name: str

    async def respond(self, prompt: Prompt) -> Response:
        """Answer *prompt*, or raise one of our errors."""
        ...

    def stream(self, prompt: Prompt) -> AsyncIterator[Part | Response]:
        """Yield pieces of the answer as parts, in order, and last the whole Response."""
        ...


@runtime_checkable
class TakesMedia(Protocol):
    """A model that tells which media its service gets, so that the words for the others are known again in an answer.

    One that does not is taken to get all media that have content.
    """

    def takes(self, media: Media, role: Role) -> bool:
        """Whether the service gets *media* in a turn of this role; else it gets `media.words`."""
        ...
