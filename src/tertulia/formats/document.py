"""A conversation as one JSON document, the input of `tertulia render`: read into messages and memory. Pure."""

from collections.abc import Iterator
from datetime import datetime, tzinfo
from hashlib import sha256
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tertulia.context.gather import InMemoryKnowledge
from tertulia.context.log import InMemoryLog
from tertulia.context.values import AvailableSticker, Background, Persona, RecalledEpisode, RelevantMessage, Workspace
from tertulia.errors import InvalidValue
from tertulia.messages import Author, Message, Place, Quote
from tertulia.parts import Part
from tertulia.timezones import zone_named, zone_of
from tertulia.turns import ToolSpec

CHAT_KINDS: dict[str, Literal["direct", "group", "channel"]] = {
    "direct": "direct",
    "private": "direct",
    "group": "group",
    "supergroup": "group",
    "channel": "channel",
}
PART_KINDS = frozenset({"text", "media", "thought", "tool_call", "tool_result", "opaque"})


class AuthorEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    id: str = ""
    name: str = ""
    username: str | None = None
    persona: str | None = None
    unknown: bool = False


class QuoteEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    message_id: str
    author: AuthorEntry | None = None
    parts: tuple[Part, ...] = ()
    excerpt: str | None = None
    forwarded_from: AuthorEntry | None = None


class MessageEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    id: str
    author: AuthorEntry
    sent_at: datetime | None = None
    parts: tuple[Part, ...] = ()
    reply_to: str | QuoteEntry | None = None
    forwarded_from: AuthorEntry | None = None
    edited_at: datetime | None = None
    deleted: bool = False


class PlaceEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    platform: str = ""
    id: str = ""
    kind: str = "direct"  # direct, group or channel, or Telegram's words for them
    thread: str | None = None
    title: str = ""


class Document(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    messages: tuple[MessageEntry, ...]
    target: str | None = None  # the message to answer; the last one of others where none is named
    persona: str | Persona = ""
    agent: str | None = None  # whose messages are the agent's own, where several agents speak
    now: datetime
    timezone: str | None = None  # that of `now` where none is named
    chat: PlaceEntry = PlaceEntry()
    memories: tuple[str, ...] = ()
    profile: str = ""
    key_facts: dict[str, str] = {}
    relevant: tuple[RelevantMessage, ...] = ()
    episodes: tuple[RecalledEpisode, ...] = ()
    workspace: Workspace = Workspace()
    stickers: tuple[AvailableSticker, ...] = ()
    delimiter: str = ""
    tools: tuple[ToolSpec, ...] = ()


class Conversation(Struct, frozen=True, kw_only=True):
    """A document as our values: the message to answer, and what its sources read."""

    target: Message
    now: datetime
    log: InMemoryLog
    remembered: InMemoryKnowledge
    persona: Persona
    zone: str
    delimiter: str
    workspace: Workspace
    stickers: tuple[AvailableSticker, ...]
    tools: tuple[ToolSpec, ...]


def read_conversation(data: bytes | Any, *, agent: str | None = None) -> Conversation:
    """Read the conversation of a JSON document; raise `InvalidValue` with one line that names the wrong field."""
    document = _document(data)
    name = document.timezone or zone_of(document.now)
    zone = _zone(name)
    persona = _persona(document, agent)
    messages = tuple(_messages(document, zone))
    return Conversation(
        target=_target(document, messages, persona),
        now=_aware(document.now, zone),
        log=InMemoryLog(messages),
        remembered=InMemoryKnowledge(
            hits=document.relevant,
            background=Background(memories=document.memories, summary=document.profile, key_facts=document.key_facts),
            episodes=document.episodes,
        ),
        persona=persona,
        zone=name,
        delimiter=document.delimiter or _usual_delimiter(document.chat),
        workspace=document.workspace,
        stickers=document.stickers,
        tools=document.tools,
    )


def _document(data: bytes | Any) -> Document:
    try:
        found = msgspec.json.decode(data) if isinstance(data, bytes) else data
        return msgspec.convert(_with_known_kinds(found), Document)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, InvalidValue) as error:
        raise InvalidValue(f"the conversation cannot be read: {error}") from error


def _with_known_kinds(found: Any) -> Any:
    """Return the document with parts of unknown kinds as media of that kind, which are shown as markers."""
    match found:
        case {"kind": str(kind), **rest} if kind not in PART_KINDS:
            return {
                "media_kind": kind,
                "unique_id": "",
                "rendered_text": rest.get("rendered_text", rest.get("text")),
                "kind": "media",
            }
        case {"parts": _} | {"reply_to": dict()}:
            return {
                key: [*map(_with_known_kinds, value)]
                if key == "parts" and isinstance(value, list)
                else _with_known_kinds(value)
                if key == "reply_to"
                else value
                for key, value in found.items()
            }
        case {"messages": list(messages), **rest}:
            return {**rest, "messages": [_with_known_kinds(message) for message in messages]}
        case _:
            return found


def _zone(name: str) -> tzinfo:
    try:
        return zone_named(name)
    except InvalidValue as error:
        raise InvalidValue(f"the conversation cannot be read: {error} - at `$.timezone`") from error


def _persona(document: Document, agent: str | None) -> Persona:
    known = Persona(text=document.persona) if isinstance(document.persona, str) else document.persona
    speaking = dict.fromkeys(entry.author.persona for entry in document.messages if entry.author.persona)
    name = agent or document.agent or known.name
    if not name and len(speaking) > 1:
        raise InvalidValue(f"several agents speak ({', '.join(speaking)}): say which one answers - at `$.agent`")
    return replace(known, name=name or next(iter(speaking), ""))


def _messages(document: Document, zone: tzinfo) -> Iterator[Message]:
    place = _place(document.chat)
    known: dict[str, MessageEntry] = {}
    for number, entry in enumerate(document.messages):
        if entry.id in known:
            raise InvalidValue(f"{entry.id!r} is the id of an earlier message too - at `$.messages[{number}].id`")
        known[entry.id] = entry
        yield Message(
            id=entry.id,
            place=place,
            author=_author(entry.author),
            sent_at=_aware(entry.sent_at, zone) if entry.sent_at else None,
            parts=entry.parts,
            reply_to=_quote(entry.reply_to, known),
            forwarded_from=_origin(entry.forwarded_from),
            edited_at=_aware(entry.edited_at, zone) if entry.edited_at else None,
            deleted=entry.deleted,
        )


def _place(chat: PlaceEntry) -> Place:
    if chat.kind not in CHAT_KINDS:
        raise InvalidValue(f"a chat is direct, group or channel, not {chat.kind!r} - at `$.chat.kind`")
    return Place(platform=chat.platform, id=chat.id, kind=CHAT_KINDS[chat.kind], thread=chat.thread, title=chat.title)


def _quote(cited: str | QuoteEntry | None, known: dict[str, MessageEntry]) -> Quote | None:
    if cited is None:
        return None
    if isinstance(cited, QuoteEntry):
        author = _author(cited.author) if cited.author else None
        origin = _origin(cited.forwarded_from)
        return Quote(
            message_id=cited.message_id, author=author, parts=cited.parts, excerpt=cited.excerpt, forwarded_from=origin
        )
    entry = known.get(cited)
    if entry is None:
        return Quote(message_id=cited)
    author = _author(entry.author)
    if entry.deleted:
        return Quote(message_id=cited, author=author)
    return Quote(message_id=cited, author=author, parts=entry.parts, forwarded_from=_origin(entry.forwarded_from))


def _origin(writer: AuthorEntry | None) -> Author | None:
    return _author(writer) if writer else None


def _target(document: Document, messages: tuple[Message, ...], persona: Persona) -> Message:
    if document.target is not None:
        found = next((message for message in messages if message.id == document.target), None)
        if found is None:
            raise InvalidValue(f"no message has the id {document.target!r} - at `$.target`")
        return found
    of_others = [
        message
        for message in messages
        if not message.deleted and (not message.author.persona or message.author.persona != persona.name)
    ]
    if not of_others:
        raise InvalidValue("there is no message of others to answer - at `$.messages`")
    return of_others[-1]


def _author(writer: AuthorEntry) -> Author:
    return Author(
        id=writer.id,
        name=writer.name,
        username=writer.username,
        persona=writer.persona or None,
        unknown=writer.unknown,
    )


def _aware(moment: datetime, zone: tzinfo) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=zone)


def _usual_delimiter(chat: PlaceEntry) -> str:
    """Return a delimiter that is always the same for a place, so that a document is always the same prompt."""
    return sha256(f"{chat.platform}\0{chat.id}\0{chat.thread}".encode("utf-8", "replace")).hexdigest()[:12]
