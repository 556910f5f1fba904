"""Histories of chat bots that write `[meta]` or `[speaker …]` before each text, read into messages. Pure."""

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from tertulia.characters import is_blank
from tertulia.formats.compact import author_of, unknown_author
from tertulia.formats.lists import message_parts
from tertulia.messages import Author, Message, Place, Quote
from tertulia.parts import Part, Text
from tertulia.turns import Turn

ORDER = (
    "chat_id", "thread_id", "message_id", "user_id", "username", "name", "is_bot", "reply_to_message_id",
    "reply_to_user_id", "reply_to_username", "reply_to_name", "reply_excerpt",
)  # fmt: skip
AGENT = "agent"

_PAIR = re.compile(r' +(\w{1,40})=(?:"((?:\\"|[^"\n]){0,1024})"(?=[\s\]]|\Z)|([^\s\[\]"]+))')
_WRAPPED = re.compile(r"\[(meta|speaker)(?= )")
_OPEN = "[meta]"
_SPEAKER_KEYS = {"id": "user_id"}


class Header(Struct, frozen=True, kw_only=True):
    """The values of a block, by the keys of `[meta]`, and the text after it."""

    kind: str
    pairs: dict[str, str]
    rest: str


def read_header(text: str) -> Header | None:
    """Return the block that *text* begins with, if any."""
    if text.startswith(_OPEN):
        return _open_block(text)
    found = _WRAPPED.match(text)
    return _wrapped_block(text, found[1], found.end()) if found else None


def has_headers(turns: Iterable[Turn]) -> bool:
    """Return whether any user turn begins with a block."""
    return any(_without_header(turn.parts)[0] is not None for turn in turns if turn.role == "user")


def read_meta(turns: Sequence[Turn], *, agent: str | None = None) -> tuple[Message, ...]:
    """Return the turns as messages, each by the author of its block; those of the model are the agent's."""
    headed, people = _without_repeated_headers([_headed_turn(turn) for turn in turns])
    persona = agent or next((one.pairs["name"] for one in headed if one.own and "name" in one.pairs), AGENT)
    place = Place(platform="", id="", kind="group" if len(people) > 1 else "direct")
    place = next((_place(one.pairs, place) for one in headed if "chat_id" in one.pairs), place)
    messages: list[Message] = []
    taken: set[str] = set()
    for number, one in enumerate(headed):
        if not one.headed and not one.parts:
            continue
        place = _place(one.pairs, place)
        message_id = _free(one.pairs.get("message_id"), number, taken)
        taken.add(message_id)
        author = _agent(one.pairs, persona) if one.own else _author(one.pairs, "")
        author = unknown_author(people) if is_blank(author.id) else author
        quote = _quote(one.pairs)
        messages.append(Message(id=message_id, place=place, author=author, parts=one.parts, reply_to=quote))
    return tuple(messages)


class _HeadedTurn(Struct, frozen=True, kw_only=True):
    """The parts of a turn, and the pairs of the block before them."""

    own: bool
    headed: bool
    pairs: dict[str, str]
    parts: tuple[Part, ...]


def _headed_turn(turn: Turn) -> _HeadedTurn:
    own = turn.role == "model"
    header, parts = _without_header(turn.parts)
    if header is None:
        return _HeadedTurn(own=own, headed=False, pairs={}, parts=message_parts(parts))
    second, rest = _without_header(parts)
    same_author = second and header.pairs.get("user_id", "") == second.pairs.get("user_id")
    if second and same_author and header.kind != second.kind:  # it is a header too
        return _HeadedTurn(own=own, headed=True, pairs=second.pairs | header.pairs, parts=message_parts(rest))
    return _HeadedTurn(own=own, headed=True, pairs=header.pairs, parts=message_parts(parts))


def _without_repeated_headers(headed: Sequence[_HeadedTurn]) -> tuple[list[_HeadedTurn], set[str]]:
    """Return the turns, and the ids of people, with an unknown one where a block is missing.

    A person's block that a model repeated says nothing of the agent: it is dropped.
    """
    people = {_author(one.pairs, "").id for one in headed if not one.own and (one.headed or one.parts)}
    repeated = [one.own and _author(one.pairs, "").id in people for one in headed]
    turns = [replace(one, pairs={}) if again else one for one, again in zip(headed, repeated, strict=True)]
    return turns, people


def _without_header(parts: tuple[Part, ...]) -> tuple[Header | None, tuple[Part, ...]]:
    """Return the block at the beginning of the first text, and the parts without it."""
    index = next((n for n, part in enumerate(parts) if isinstance(part, Text)), None)
    text = parts[index] if index is not None else None
    header = read_header(text.text) if isinstance(text, Text) else None
    if index is None or header is None or not isinstance(text, Text):
        return None, parts
    rest = (replace(text, text=header.rest),) if header.rest else ()
    return header, (*parts[:index], *rest, *parts[index + 1 :])


def _open_block(text: str) -> Header | None:
    """Read `[meta] user_id=5 name="Alice"`, which has no closing bracket: a key out of order ends it and is text."""
    pairs: dict[str, str] = {}
    end, last = len(_OPEN), -1
    while (found := _PAIR.match(text, end)) and found[1] in ORDER and ORDER.index(found[1]) > last:
        last = ORDER.index(found[1])
        pairs[found[1]] = _value(found)
        end = found.end()
    if not pairs and text[end:].strip():
        return None
    return _header("meta", pairs, text[end:])


def _wrapped_block(text: str, kind: str, end: int) -> Header | None:
    """Read `[meta user_id=5]` or `[speaker id=5 name="Alice"]`, with the keys in any order."""
    pairs: dict[str, str] = {}
    while found := _PAIR.match(text, end):
        key = _SPEAKER_KEYS.get(found[1], found[1]) if kind == "speaker" else found[1]
        pairs.setdefault(key, _value(found))
        end = found.end()
    if not pairs or not text.startswith("]", end):
        return None
    return _header(kind, pairs, text[end + 1 :])


def _header(kind: str, pairs: dict[str, str], rest: str) -> Header | None:
    if rest and not rest[0].isspace():
        return None
    text = rest.removeprefix("\r\n") if rest.startswith("\r\n") else rest[1:]
    known = {key: value for key, value in pairs.items() if value and key in ORDER}
    return Header(kind=kind, pairs=known, rest=text)


def _value(found: re.Match[str]) -> str:
    return str(found[3]) if found[2] is None else found[2].replace('\\"', '"')


def _place(pairs: dict[str, str], known: Place) -> Place:
    """Return the place of the block, or the known one. Only chats of several people have negative numbers."""
    chat = pairs.get("chat_id")
    if chat is None:
        return known
    kind = known.kind if not re.fullmatch(r"-?[0-9]+", chat) else "group" if chat.startswith("-") else "direct"
    return Place(platform="", id=chat, kind=kind, thread=pairs.get("thread_id"))


def _author(pairs: dict[str, str], prefix: str) -> Author:
    """Return the author of the keys with this prefix. Without an id, the user name is the id, or else the name."""
    name, username = pairs.get(f"{prefix}name"), pairs.get(f"{prefix}username")
    handle = f"@{username.removeprefix('@')}" if username else None
    identity = pairs.get(f"{prefix}user_id") or handle
    return author_of(identity=identity, name=name or "", username=username)


def _agent(pairs: dict[str, str], persona: str) -> Author:
    name = pairs.get("name") or persona
    return Author(id=pairs.get("user_id") or name, name=name, username=pairs.get("username"), persona=persona)


def _quote(pairs: dict[str, str]) -> Quote | None:
    if not any(key.startswith("reply_") for key in pairs):
        return None
    named = any(f"reply_to_{key}" in pairs for key in ("user_id", "username", "name"))
    return Quote(
        message_id=pairs.get("reply_to_message_id", ""),
        author=_author(pairs, "reply_to_") if named else None,
        excerpt=pairs.get("reply_excerpt"),
    )


def _free(message_id: str | None, number: int, taken: set[str]) -> str:
    """Return the id of a message; one made of its number if it has none or the id is taken."""
    found = message_id if message_id and message_id not in taken else f"content-{number}"
    while found in taken:
        found += "-"
    return found
