"""The kinds of task blocks: how the body of each is read and written, and what a model is told of it. Pure."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from types import MappingProxyType
from typing import assert_never

from msgspec import Struct, json

from tertulia.errors import InvalidValue
from tertulia.tasks.task import (
    BlockAuthor,
    ClearConversation,
    Custom,
    Remember,
    Send,
    SendSticker,
    TaskBlock,
    Think,
    UnblockAuthor,
    Wait,
)

LONGEST_WAIT = 10 * 365 * 24 * 60 * 60  # seconds, one wait or all of a plan

_BLANK_LINES = re.compile(r"(?:[ \t\r]*+\n)*+")
_DELAY = re.compile(r"[ \t]*+delay[ \t]*+:(.*)", re.IGNORECASE)
_AMOUNT = re.compile(r"(?P<whole>[0-9]++)(?:[.,](?P<part>[0-9]{1,6}+))?+\s*+(?P<unit>[^\W\d_]*+)\.?+")
_UNITS: dict[str, int] = {
    unit: seconds
    for seconds, units in {
        1: "s sec secs second seconds с сек секунда секунди секунду секунд",
        60: "m min mins minute minutes хв хвилина хвилини хвилину хвилин",
        3600: "h hr hrs hour hours год година години годину годин",
        86_400: "d day days доба доби добу день дні днів",
    }.items()
    for unit in units.split()
} | {"": 1}
_SHOWN = 40  # characters of a wrong value that are repeated


class BlockLine(Struct, frozen=True, kw_only=True):
    """A line for the model about a kind of task block."""

    text: str
    with_id: str = ""  # added where messages are shown with their ids


class Body(Struct, frozen=True, kw_only=True):
    """The text below a heading, without the blank lines around it, and the id in the heading."""

    text: str
    id: str | None = None
    to: str | None = None  # after the heading of a send


Kind = Callable[[Body], object]  # returns a block, or a value that JSON can hold; or raises InvalidValue

DESTRUCTIVE = frozenset({"block", "clear-conversation"})  # a model may use these kinds only where the owner allows it


def not_allowed(_: Body) -> TaskBlock:
    """Refuse a block: the model may not use its kind."""
    raise InvalidValue("it is not allowed here")


def offered_kinds(
    kinds: Iterable[str], *, may: Collection[str] = (), chosen: Collection[str] | None = None
) -> tuple[str, ...]:
    """Return those of *kinds* that a model is offered, in their order.

    They are the *chosen* ones, all without any; of the destructive ones those in *may*. Unblocking goes with blocking.
    """

    def is_allowed(name: str) -> bool:
        needed = "block" if name == "unblock" else name
        return (chosen is None or name in chosen) and (needed not in DESTRUCTIVE or needed in may)

    return tuple(filter(is_allowed, kinds))


def for_model(kinds: Mapping[str, Kind], offered: Collection[str]) -> dict[str, Kind]:
    """Return the kinds for a model. Those that it is not *offered* are refused when they are read.

    Thinking never is: a model that is told of a bad block needs a way to say nothing.
    """
    return {name: kind if name in offered or name == "think" else not_allowed for name, kind in kinds.items()}


def is_usable(kind: Kind) -> bool:
    return kind is not not_allowed


def usable_kinds(kinds: Mapping[str, Kind]) -> list[str]:
    """Return the names of the kinds that a model may use, sorted."""
    return sorted(name for name, kind in kinds.items() if is_usable(kind))


def read_body(name: str, kind: Kind, body: Body) -> TaskBlock:
    """Read *body* by the kind that is registered as *name*."""
    try:
        value = kind(body)
    except ValueError:
        raise
    except Exception as error:  # a registered kind is foreign code
        raise InvalidValue(f"{type(error).__name__}: {error}") from error
    if isinstance(value, TaskBlock):
        return value
    return Custom(name=name, id=body.id, body=body.text, value=json.decode(json.encode(value)))


def write_body(block: TaskBlock) -> Body:
    """Write *block* as the body below its heading: the inverse of `read_body`."""
    match block:
        case Send():
            return Body(text=block.text, id=block.reply_to, to=block.to)
        case Wait():
            return Body(text=f"delay: {block.seconds}")
        case SendSticker():
            return Body(text=_join_lines(block.set, block.name), id=block.reply_to)
        case Remember():
            return Body(text=_join_lines(*block.facts))
        case Think():
            return Body(text=block.text)
        case BlockAuthor() | UnblockAuthor() | ClearConversation():
            return Body(text="")
        case Custom():
            return Body(text=block.body, id=block.id)
        case _:
            assert_never(block)


def _join_lines(*lines: str) -> str:
    """Join lines. One that looks like a heading is indented by four blanks, which the parser removes."""
    return "\n".join(f"    {line}" if line.lstrip("\ufeff").startswith("#") else line for line in lines)


def trim(text: str) -> str:
    """Remove blank lines at the start and white space at the end."""
    found = _BLANK_LINES.match(text)
    return text[found.end() if found else 0 :].rstrip(" \t\r\n")


def _send(body: Body) -> Send:
    if not body.text.strip():
        raise InvalidValue("there is no text below it to send")
    if body.to and body.id:
        raise InvalidValue("what is sent elsewhere answers no message here")
    return Send(text=body.text, reply_to=body.id, to=body.to)


def _wait(body: Body) -> Wait:
    found = [delay[1].strip() for line in body.text.split("\n") if (delay := _DELAY.match(line))]
    if len(found) != 1:
        raise InvalidValue(f"it needs one line `delay: N` with whole seconds, and has {len(found) or 'none'}")
    return Wait(seconds=_seconds(found[0]))


def _seconds(delay: str) -> float:
    """Read `90`, `1.5`, `10 seconds` or `2 min` as seconds."""
    amount = _AMOUNT.fullmatch(delay)
    unit = _UNITS.get(amount["unit"].casefold()) if amount else None
    may_be_thousands = re.match(r"[0-9]+,[0-9]{3}", delay) is not None  # `1,500` is not one and a half
    if amount is None or unit is None or (amount["part"] is not None and may_be_thousands):
        raise InvalidValue(f"the delay is whole seconds in digits, not {_short(delay)}")
    whole = amount["whole"].lstrip("0") or "0"
    if len(whole) <= len(str(LONGEST_WAIT)):
        seconds = float(f"{whole}.{amount['part'] or 0}") * unit
        if seconds <= LONGEST_WAIT:
            return int(seconds) if seconds.is_integer() else seconds
    raise InvalidValue(f"the delay is at most {LONGEST_WAIT} seconds, not {_short(delay)}")


def _sticker(body: Body) -> SendSticker:
    lines = _lines(body.text)
    if len(lines) < 2:
        raise InvalidValue("it needs two lines, the sticker's set and its name")
    return SendSticker(set=lines[0], name=lines[1], reply_to=body.id)


def _remember(body: Body) -> Remember:
    facts = _lines(body.text)
    if not facts:
        raise InvalidValue("there is no fact below it, one a line")
    return Remember(facts=tuple(facts))


def _without_id(block: TaskBlock) -> Kind:
    def kind(body: Body) -> TaskBlock:
        if body.id is not None:
            raise InvalidValue("it takes no number")
        return block

    return kind


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.split("\n") if line.strip()]


def _short(value: str) -> str:
    return repr(value) if len(value) <= _SHOWN else f"{value[:_SHOWN]!r}…"


KINDS: MappingProxyType[str, Kind] = MappingProxyType(
    {
        "send": _send,
        "wait": _wait,
        "sticker": _sticker,
        "remember": _remember,
        "think": lambda body: Think(text=body.text),
        "block": _without_id(BlockAuthor()),
        "unblock": _without_id(UnblockAuthor()),
        "clear-conversation": _without_id(ClearConversation()),
    }
)

ABOUT: MappingProxyType[str, str] = MappingProxyType(
    {
        "send": "one more message, with its text below",
        "wait": "what follows comes later; below it a line `delay: N` with whole seconds",
        "sticker": "a sticker; below it two lines, its set and its name",
        "remember": "what should be remembered about the author, one fact a line",
        "think": "thoughts that nobody sees; alone, it means that you say nothing",
        "block": "the author is not answered any more",
        "unblock": "the author is answered again",
        "clear-conversation": "the conversation begins anew, and what was said is no longer shown to you",
    }
)
ABOUT_IDS: MappingProxyType[str, str] = MappingProxyType(
    {"send": "; `# «send» 123` replies to the message with the id 123"}
)  # where messages are shown with their ids
