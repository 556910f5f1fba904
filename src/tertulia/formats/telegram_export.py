"""Reader of exports of Telegram Desktop in JSON: one chat, or all chats of an account. Pure.

An export has bare ids: those of supergroups and channels get -100 in front, those of small groups a minus. Messages of
supergroups and channels have one id for everybody. In other chats each account counts its own messages, so an id of the
export means another message to the bot: it becomes `export:12`. The part of a supergroup from before it was one is
exported with negative ids, which stay.

An export does not name topics. A topic has the id of the service message that created it; what is sent there replies to
that message, or to one that does.
"""

import re
from collections.abc import Collection, Iterator
from datetime import UTC, datetime, tzinfo
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from tertulia.formats.imported import (
    EMPTY,
    EXPORT_ID,
    SOMEBODY,
    UNKNOWN,
    UNREADABLE,
    Imported,
    ImportedMessage,
    ImportedReaction,
    Skipped,
)
from tertulia.formats.json_stream import JsonStream
from tertulia.formats.telegram_content import event_of, parts_of
from tertulia.messages import Author, Message, Place, Quote
from tertulia.parts import Part

SERVICE = "telegram"
DELETED_ACCOUNT = "Deleted Account"  # as Telegram shows it

SERVICE_MESSAGES = "service messages, such as pins and calls"
UNSUPPORTED = "messages that Telegram Desktop could not export"
NOT_WANTED = "messages of chats that --chat does not name"
PERSONAL = "messages of chats that the bot is not in: personal chats, saved messages, other bots"
NO_CHAT = "messages of a chat without an id and a type before them"

_CHANNEL_SHIFT = 1_000_000_000_000
_MAX_TOPIC_MESSAGES = 200_000  # messages of a forum whose topics are known; replies to older ones have none
_PEER = re.compile(r"(user|chat|channel)(\d+)")
_KINDS: dict[str, Literal["direct", "group", "channel"]] = {
    "bot_chat": "direct",
    "private_group": "group",
    "private_supergroup": "group",
    "public_supergroup": "group",
    "private_channel": "channel",
    "public_channel": "channel",
}
_PRIVATE = ("personal_chat", "saved_messages", "replies", "verify_codes")
_TYPES = "|".join((*_KINDS, *_PRIVATE))
_NAME = r'"name"\s*:\s*(?:null|"(?:[^"\\]|\\.)*")\s*,\s*'
_START = re.compile(rf'\s*\{{\s*(?:"about"\s*:|(?:{_NAME})?"type"\s*:\s*"(?:{_TYPES})")')


def is_export(start: str) -> bool:
    """Return whether a file that begins so is an export of Telegram Desktop."""
    return _START.match(start.removeprefix("\ufeff")) is not None


class TelegramExport(Struct, frozen=True, kw_only=True):
    """How an export is read: for which bot, and which of its chats."""

    bot_id: str
    agent: str = ""  # the persona of the bot; empty: the name that it has in the export
    chats: Collection[str] = ()  # ids or titles; empty: all
    zone: tzinfo = UTC  # of times in old exports, which have none

    def read(self, stream: JsonStream) -> Iterator[Imported]:
        """Yield the messages of an export, chat by chat; what is left out is counted where it stands."""
        header: dict[str, Any] = {}
        for key in stream.keys():  # noqa: SIM118 - it is no mapping
            opening = stream.peek()
            if key in ("chats", "left_chats") and opening == "{":
                yield from self._read_list(stream)
            elif key == "messages" and opening == "[":
                yield from self._read_chat(stream, header)
            elif key in ("name", "type", "id"):
                header[key] = stream.value()
            else:
                stream.value()

    def _read_list(self, stream: JsonStream) -> Iterator[Imported]:
        for key in stream.keys():  # noqa: SIM118
            if key == "list" and stream.peek() == "[":
                for _ in stream.items():
                    yield from self.read(stream)
            else:
                stream.value()

    def _read_chat(self, stream: JsonStream, header: dict[str, Any]) -> Iterator[Imported]:
        kind, bare, name = header.get("type"), header.get("id"), header.get("name")
        title = name if isinstance(name, str) else ""
        place = self._place(kind, bare, title) if isinstance(kind, str) and isinstance(bare, int) else None
        reason = self._why_skipped(kind, bare, place)
        if place is None or reason:
            count = sum(1 for _ in stream.items() if stream.value() is not Ellipsis)
            yield Skipped(reason=reason, title=title, count=count)
            return
        chat = _ChatReader(self, place, has_bots_ids=kind not in ("bot_chat", "private_group"))
        for _ in stream.items():
            yield from chat.read(stream.value())
        yield from chat.finish()

    def _why_skipped(self, kind: Any, bare: Any, place: Place | None) -> str:
        if place is None:
            return PERSONAL if kind in _PRIVATE else NO_CHAT
        if kind == "bot_chat" and str(bare) != self.bot_id:
            return PERSONAL
        return NOT_WANTED if self.chats and not {str(bare), place.id, place.title} & set(self.chats) else ""

    def _place(self, kind: str, bare: int, title: str) -> Place | None:
        """Return the place of a chat; that of our direct chat has no id until a person has written there."""
        if kind not in _KINDS:
            return None
        bot_side = {"bot_chat": "", "private_group": str(-abs(bare))}
        chat_id = bot_side.get(kind, str(bare if bare < 0 else -_CHANNEL_SHIFT - bare))
        direct = kind == "bot_chat"
        return Place(
            platform=f"{SERVICE}-{self.bot_id}",
            id=chat_id,
            kind=_KINDS[kind],
            title="" if direct else title,
            service=SERVICE,
        )


class _ChatReader:
    """Reads the entries of one chat."""

    def __init__(self, export: TelegramExport, place: Place, *, has_bots_ids: bool) -> None:
        self._export = export
        self._place = place
        self._has_bots_ids = has_bots_ids
        self._topics: dict[int, int | None] = {}  # by message
        self._held: list[dict[str, Any]] = []  # what our bot wrote in a direct chat before the person did

    def read(self, entry: Any) -> Iterator[Imported]:
        if not isinstance(entry, dict) or not isinstance(entry.get("id"), int):
            yield Skipped(reason=UNREADABLE)
        elif entry.get("type") == "service":
            yield self._read_service(entry)
        elif entry.get("type") == "unsupported":
            yield Skipped(reason=UNSUPPORTED)
        elif not self._place.id and _author(entry, self._place).id in (self._export.bot_id, UNKNOWN):
            self._held.append(entry)
        else:
            if not self._place.id:
                person = _author(entry, self._place)
                self._place = replace(self._place, id=person.id, title=person.name)
            held, self._held = self._held, []
            for one in (*held, entry):
                yield self._imported(one, parts_of(one, unique_id=f"export-{self._place.id}-{one['id']}"))

    def _read_service(self, entry: dict[str, Any]) -> Imported:
        if entry.get("action") == "topic_created":
            self._topics[entry["id"]] = entry["id"]
        parts = event_of(entry)
        if not parts:
            return Skipped(reason=SERVICE_MESSAGES)
        actor = {"from": entry.get("actor"), "from_id": entry.get("actor_id")}
        return self._imported({**entry, **actor}, parts)

    def finish(self) -> Iterator[Imported]:
        """Count what is left of a direct chat in which no person has written."""
        if self._held:
            yield Skipped(reason=UNREADABLE, count=len(self._held))

    def _imported(self, entry: dict[str, Any], parts: tuple[Part, ...]) -> Imported:
        sent_at = _moment(entry, "date", self._export.zone)
        if sent_at is None:
            return Skipped(reason=UNREADABLE)
        topic = self._find_topic(entry)
        author = _author(entry, self._place)
        message_id = self._message_id(entry["id"])
        own = author.id == self._export.bot_id
        if not parts:
            return Skipped(reason=EMPTY)
        return ImportedMessage(
            message=Message(
                id=message_id,
                place=self._place if topic is None else replace(self._place, thread=str(topic)),
                author=replace(author, persona=self._export.agent or author.name) if own else author,
                sent_at=sent_at,
                parts=parts,
                reply_to=self._quote(entry, topic),
                forwarded_from=_origin(entry),
                edited_at=_moment(entry, "edited", self._export.zone),
            ),
            own=own,
            reactions=tuple(_reactions(entry, sent_at)),
            has_bots_id=self._has_bots_ids,
        )

    def _message_id(self, number: int) -> str:
        return str(number) if self._has_bots_ids else f"{EXPORT_ID}{number}"

    def _quote(self, entry: dict[str, Any], topic: int | None) -> Quote | None:
        """Return the quote of a message in this chat; being in a topic is no quote."""
        number, peer = entry.get("reply_to_message_id"), entry.get("reply_to_peer_id")
        if not isinstance(number, int) or number == topic or (peer and _peer_id(peer) != self._place.id):
            return None
        return Quote(message_id=self._message_id(number))

    def _find_topic(self, entry: dict[str, Any]) -> int | None:
        if not self._topics:
            return None
        topic = self._topics.get(entry.get("reply_to_message_id") or 0)
        if topic is not None:
            self._topics[entry["id"]] = topic
            if len(self._topics) > _MAX_TOPIC_MESSAGES:
                self._forget_old_messages()
        return topic

    def _forget_old_messages(self) -> None:
        newer = list(self._topics.items())[_MAX_TOPIC_MESSAGES // 2 :]
        roots = {number: topic for number, topic in self._topics.items() if number == topic}
        self._topics = {**roots, **dict(newer)}


def _author(entry: dict[str, Any], place: Place | None = None) -> Author:
    """Return who sent an entry. A deleted account has an id and no name; a post without either is the channel's."""
    author_id, name, signature = _peer_id(entry.get("from_id")), entry.get("from"), entry.get("author")
    if not author_id and place and place.kind == "channel":
        author_id, name = place.id, place.title
    if not author_id:
        return Author(id=UNKNOWN, name=name if isinstance(name, str) and name else SOMEBODY, unknown=True)
    if not isinstance(name, str) or not name:
        return Author(id=author_id, name=DELETED_ACCOUNT, unknown=True)
    return Author(id=author_id, name=f"{name} ({signature})" if signature else name)


def _origin(entry: dict[str, Any]) -> Author | None:
    """Return whose words a forwarded entry is. Older exports give a name only, and none of a deleted account."""
    if "forwarded_from" not in entry and "forwarded_from_id" not in entry:
        return None
    name = entry.get("forwarded_from") or DELETED_ACCOUNT
    author = _author({"from": name, "from_id": entry.get("forwarded_from_id")})
    return replace(author, unknown=True) if name == DELETED_ACCOUNT else author


def _peer_id(peer: Any) -> str:
    """Return `user123`, `chat123` or `channel123` as the id that bots know; a number is that of a user."""
    if isinstance(peer, int):
        return str(peer)
    found = _PEER.fullmatch(peer) if isinstance(peer, str) else None
    if found is None:
        return ""
    number = int(found[2])
    return str({"user": number, "chat": -number, "channel": -_CHANNEL_SHIFT - number}[found[1]])


def _moment(entry: dict[str, Any], key: str, zone: tzinfo) -> datetime | None:
    try:
        if seconds := entry.get(f"{key}_unixtime"):
            return datetime.fromtimestamp(int(seconds), UTC)
        local = datetime.fromisoformat(entry[key]) if entry.get(key) else None
        return local and local.replace(tzinfo=local.tzinfo or zone).astimezone(UTC)
    except (ValueError, TypeError, OverflowError, OSError):
        return None


def _reactions(entry: dict[str, Any], sent_at: datetime) -> Iterator[ImportedReaction]:
    """Yield the reactions whose authors are named. Their times are local; the message says how far from UTC."""
    shown: dict[Author, list[tuple[str, Any]]] = {}
    for reaction in entry.get("reactions") or ():
        emoji = reaction.get("emoji") if isinstance(reaction, dict) else None
        for one in (reaction.get("recent") or ()) if isinstance(emoji, str) else ():
            shown.setdefault(_author(one), []).append((str(emoji), one))
    local = _moment({"date": entry.get("date")}, "date", UTC)
    for author, given in shown.items():
        at = _moment({"date": given[-1][1].get("date")}, "date", UTC)
        moment = at - (local - sent_at) if at and local else None
        yield ImportedReaction(author=author, emojis=tuple(emoji for emoji, _ in given), at=moment)
