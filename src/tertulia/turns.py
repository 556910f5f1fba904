"""Turns, prompts with their layers, tool declarations and settings: what a model sees. Pure."""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import chain
from typing import Any, Literal, get_args

from msgspec import Struct, ValidationError, convert
from msgspec.structs import force_setattr, replace

from tertulia.errors import InvalidValue
from tertulia.parts import Part, Text, cut_results, joined_text
from tertulia.value_cache import cached

Role = Literal["user", "model"]
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]  # how much a model thinks

EFFORTS: tuple[str, ...] = get_args(Effort)

TOOL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


class Turn(Struct, frozen=True, kw_only=True, omit_defaults=True, dict=True):
    """A role and its parts. Its encoded bytes are cached with it (`value_cache`)."""

    role: Role
    parts: tuple[Part, ...]
    model: str | None = None  # who made it; None: a person, or nobody in particular, and it is sent as it stands

    def __post_init__(self) -> None:
        if not isinstance(self.parts, tuple):
            force_setattr(self, "parts", tuple(self.parts))  # a list is taken too, and can then no longer change

    @property
    def text(self) -> str:
        """The texts of the turn without a separator: services return one text in several parts."""
        return joined_text(self.parts, "")


def cut_turn(turn: Turn) -> Turn:
    """Return the turn with long tool results cut, with a notice; cached."""
    return cached(turn, "shown", _cut) or turn


def _cut(turn: Turn) -> Turn | None:
    """Return the turn with its results cut, or None where none is too long."""
    parts = cut_results(turn.parts)
    return None if parts is turn.parts else replace(turn, parts=parts)


ANY_OBJECT = {"type": "object"}  # what the JSON schema `true` allows as arguments


class ToolSpec(Struct, frozen=True, kw_only=True, omit_defaults=True, dict=True):
    """A tool as declared to a model; `parameters` is a JSON schema."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}

    @classmethod
    def of(cls, declaration: Mapping[str, Any]) -> "ToolSpec":
        """Read a declaration as services take it: `{"name": …, "description": …, "parameters": …}`, also inside
        OpenAI's `{"type": "function", "function": …}`.
        """
        inner = declaration.get("function", declaration)
        try:
            fields = {name: inner[name] for name in cls.__struct_fields__ if inner.get(name) is not None}
            return convert(fields | ({"parameters": ANY_OBJECT} if fields.get("parameters") is True else {}), cls)
        except (ValidationError, TypeError, AttributeError) as error:
            raise InvalidValue(f"this is no declaration of a tool: {error}") from error

    def __post_init__(self) -> None:
        if not TOOL_NAME.fullmatch(self.name):
            raise InvalidValue(
                f"tool name {self.name!r} is not one every service takes: letters, digits, _ and -, "
                "beginning with a letter or _, at most 64"
            )
        given: object = self.parameters
        if given is True:
            force_setattr(self, "parameters", ANY_OBJECT)
        elif not isinstance(given, dict):
            raise InvalidValue(f"the parameters of tool {self.name!r} are a JSON schema as a dict, not {given!r}")


class Settings(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Settings of a request. Those that a model would refuse are left out of it, and told once in the log."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    thinking: int | Effort | None = None  # a budget of tokens, or how much; the nearest that the model takes
    thoughts: bool | None = None  # whether summaries of the thoughts are wanted
    answer: dict[str, Any] | None = None  # a JSON schema the answer must fit
    tool_choice: Literal["auto", "any", "none", "required"] | None = None  # required is another word for any
    safety: dict[str, str] = {}  # category → threshold, in Gemini's words

    def __post_init__(self) -> None:
        if self.tool_choice == "required":
            force_setattr(self, "tool_choice", "any")
        elif self.tool_choice not in (None, "auto", "any", "none"):
            raise InvalidValue(f"tool_choice is auto, any (or required) or none, not {self.tool_choice!r}")


class Layer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One layer of a prompt: an instruction, turns, or both."""

    name: str
    instruction: str = ""
    turns: tuple[Turn, ...] = ()


class Prompt(Struct, frozen=True, kw_only=True, omit_defaults=True, dict=True):
    layers: tuple[Layer, ...]
    tools: tuple[ToolSpec, ...] = ()
    settings: Settings = Settings()
    cached: str | None = None  # the service's handle for instruction, tools and turns it already holds

    @classmethod
    def of(
        cls,
        *turns: Turn | str,
        system: str = "",
        tools: Iterable[ToolSpec] = (),
        settings: Settings | None = None,
    ) -> "Prompt":
        """Return a plain prompt: an instruction and the turns of one conversation."""
        spoken = tuple(user(turn) if isinstance(turn, str) else turn for turn in turns)
        layers = (Layer(name="static", instruction=system), Layer(name="buffered", turns=spoken))
        return cls(layers=layers, tools=tuple(tools), settings=settings or Settings())

    @property
    def instruction(self) -> str:
        return "\n\n".join(layer.instruction for layer in self.layers if layer.instruction)

    @property
    def turns(self) -> tuple[Turn, ...]:
        return tuple(chain.from_iterable(layer.turns for layer in self.layers))


class Record(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A turn as stored, valid or not, with the response that it came in."""

    turn: Turn
    at: datetime
    valid: bool = True
    raw: dict[str, Any] | None = None
    run: str | None = None


def user(*parts: Part | str) -> Turn:
    """Return a user turn of texts and parts, in their order."""
    return Turn(role="user", parts=_as_parts(parts))


def model(*parts: Part | str, by: str | None = None) -> Turn:
    """Return a model turn, made *by* the model of that name."""
    return Turn(role="model", parts=_as_parts(parts), model=by)


def _as_parts(parts: Iterable[Part | str]) -> tuple[Part, ...]:
    made = tuple(Text(text=part) if isinstance(part, str) else part for part in parts)
    for part in made:
        if not isinstance(part, Part):
            raise InvalidValue(f"a turn is made of texts and parts, not of {part!r}")
    return made
