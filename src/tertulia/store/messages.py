"""Messages: received once, edited, deleted; those that wait; the agent's own; and their media."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any

from msgspec.structs import replace

from tertulia.characters import is_blank
from tertulia.decisions import Decision, Meant, Reason, waits_after_edit
from tertulia.engine.store_protocols import PlaceSnapshot, WaitingMessage
from tertulia.errors import InvalidValue
from tertulia.events import MessageReceived
from tertulia.media.values import file_key
from tertulia.memory.values import FactRules
from tertulia.messages import Message, Place, Quote, placeholder_of
from tertulia.parts import Media
from tertulia.store import decisions, events, message_rows, places, search_index
from tertulia.store.database import Database, insert_into, upsert_row
from tertulia.store.encoding import clean, dumps, format_time, parse_time, validate_id
from tertulia.store.forget import retraction
from tertulia.store.identities import (
    conversation_start_column,
    find_place,
    read_counts,
    select_places,
    upsert_author,
    upsert_name,
    upsert_place,
    upsert_title,
)
from tertulia.store.message_rows import (
    FIND_MESSAGE,
    MESSAGES,
    ChangeKind,
    insert_changes,
)
from tertulia.store.rows import Rows
from tertulia.store.threads import Repository, reading, writing

CONTENT = (  # what an edit replaces
    "text media name title sent_at edited_at deleted reply_to reply_author reply parts album "
    "forwarded_from forward_author"
).split()
_ALL = 2**63 - 1  # rows: no limit
_WAITING = Rows(
    WaitingMessage,
    "messages m",
    "number",
    agent="d.agent",
    address="d.address",
    addressed="d.addressed",
    since="d.at",
    message=MESSAGES,
)
_FIXED = "place number message_id role own agent received_at".split()
INSERT_MESSAGE = insert_into("messages", *_FIXED, *CONTENT)
# replaces the content of a message
_REWRITE = f"UPDATE messages SET {', '.join(f'{column} = :{column}' for column in CONTENT)} WHERE id = :message"
# counts a message in its place, unless it is there already
_COUNT = f"""UPDATE places SET messages = messages + 1, {{}} = messages + 1
    WHERE id = :place AND {FIND_MESSAGE} IS NULL RETURNING messages, left_at"""
_COUNT_DIRECT, _COUNT_OPEN = _COUNT.format("direct_until"), _COUNT.format("open_until")


class SqlInbox(Repository):
    """Implements `engine.store_protocols.InboxStore`."""

    @writing
    def receive(self, database: Database, message: Message, *, at: datetime) -> bool:
        row = MessageRow(message)
        require_ids(message)
        return add(database, row, at, "waiting") is not None

    @writing
    def edit(self, database: Database, message: Message, *, at: datetime) -> bool:
        MessageRow(message)  # raises also for one that is not stored
        return edit(database, message, at, self._access.facts)

    @writing
    def delete(self, database: Database, place: Place, message_id: str, *, at: datetime) -> bool:
        validate_id(message_id, "message")
        return delete(database, place, message_id, at, self._access.facts)

    @reading
    def places(self, database: Database) -> Sequence[Place]:
        return waiting_places(database)

    async def waiting(self, place: Place) -> Sequence[WaitingMessage]:
        return list((await self.snapshot(place)).waiting)

    @reading
    def snapshot(self, database: Database, place: Place, *, most: int | None = None) -> PlaceSnapshot:
        return snapshot(database, place, most)

    @reading
    def album(self, database: Database, place: Place, author_id: str, album: str) -> Sequence[tuple[Message, Decision]]:
        """Return the messages of one album, each with each of its decisions."""
        which = """JOIN names n ON n.id = m.name JOIN authors a ON a.id = n.author
            WHERE m.place = :place AND m.album = :album AND a.author_id = :author_id AND m.deleted = 0 AND m.hidden = 0
            ORDER BY m.number"""
        named = {"album": album, "author_id": author_id}
        found = MESSAGES.beside(database, "m.id", which, place=find_place(database, place), **named)
        decided = decisions.read(database, [row for _, (row,) in found])
        return [(message, decision) for message, (row,) in found for decision in decided[row]]

    @writing
    def skip(
        self,
        database: Database,
        place: Place,
        why: Mapping[str, Decision],
        *,
        at: datetime,
        changes: int | None = None,
        meant: Meant = MappingProxyType({}),
    ) -> bool:
        return decisions.skip(database, place, why, meant, at, changes)

    @reading
    def decided(
        self, database: Database, place: Place, message_id: str | None = None, *, most: int
    ) -> Sequence[tuple[Message, tuple[Decision, ...]]]:
        """Return the newest messages that are decided about, or one; hidden ones without their content."""
        condition = "m.id = " + FIND_MESSAGE if message_id is not None else "m.place = :place"
        which = f"""WHERE {condition} AND (m.own = 0 OR EXISTS (SELECT 1 FROM decisions d WHERE d.message = m.id))
            ORDER BY m.number DESC LIMIT :most"""
        values = {"place": find_place(database, place), "message_id": message_id, "most": most}
        found = MESSAGES.beside(database, "m.id, m.hidden", which, **values)[::-1]
        decided = decisions.read(database, [row for _, (row, _) in found])
        return [(placeholder_of(message) if hidden else message, decided[row]) for message, (row, hidden) in found]


def require_ids(message: Message) -> None:
    """Raise `InvalidValue` if the id of the message, its author or its place is blank."""
    ids = ("its own", message.id), ("its author", message.author.id), ("its place", message.place.id)
    for whose, one in ids:
        if is_blank(one):
            raise InvalidValue(f"message {message.id!r} needs an id of {whose}, not {one!r}")


class MessageRow:
    """A message about to be stored: validated at once, encoded later in the writer thread."""

    def __init__(self, message: Message) -> None:
        if not validate_id(message.id, "message"):
            raise InvalidValue("a message needs an id, by which it is known again")
        if _is_naive(message.sent_at) or _is_naive(message.edited_at):
            raise InvalidValue(f"message {message.id!r} has a time without a zone; give aware ones")
        validate_id(message.place.id, "place")
        validate_id(message.author.id, "author")
        validate_id(message.agent or "", "agent")
        if message.album:
            validate_id(message.album, "album")
        if message.reply_to:
            validate_id(message.reply_to.message_id, "message")
        if message.forwarded_from:
            validate_id(message.forwarded_from.id, "author")
        self.message = without_languages(message)
        self.author = message.author  # with the language of their client
        self.medias = [part for part in message.parts if isinstance(part, Media)]

    def content(self, database: Database, place: int, at: datetime | None) -> dict[str, Any]:
        """Return the values of `CONTENT`."""
        message, quote, media = self.message, _with_known_id(database, place, self.message.reply_to), self.medias
        if quote and _is_invisible(database, message.place, quote.message_id):
            quote = Quote(message_id=quote.message_id, author=quote.author)
        cited, origin, service = quote.author if quote else None, message.forwarded_from, message.place.author_namespace
        return {
            "text": text_of(message),
            "media": dumps([replace(part, data=None, signature=None, raw=None) for part in media]) if media else None,
            "name": upsert_name(database, service, self.author, at),
            "title": upsert_title(database, message.place, place),
            "sent_at": format_time(message.sent_at),
            "edited_at": format_time(message.edited_at),
            "deleted": int(message.deleted),
            "reply_to": clean(quote.message_id) if quote else None,
            "reply_author": upsert_author(database, service, cited.id) if cited else None,
            "reply": dumps(quote) if quote else None,
            "parts": dumps(message.parts),
            "album": message.album,
            "forwarded_from": dumps(origin) if origin else None,
            "forward_author": upsert_author(database, service, origin.id) if origin and not origin.unknown else None,
        }


def _is_naive(at: datetime | None) -> bool:
    return at is not None and at.tzinfo is None


def without_languages(message: Message) -> Message:
    """Return a message as it is stored: the language of a person's client is a column of their account."""
    quote, origin = message.reply_to, message.forwarded_from
    named = (message.author, origin, quote and quote.author, quote and quote.forwarded_from)
    if not any(author.language for author in named if author):
        return message
    author, origin, *cited = [replace(one, language="") if one else None for one in named]
    quote = quote and replace(quote, author=cited[0], forwarded_from=cited[1])
    return replace(message, author=author, reply_to=quote, forwarded_from=origin)


def _with_known_id(database: Database, place: int, quote: Quote | None) -> Quote | None:
    """Return the quote with the id of the whole message, if a part of it was quoted."""
    if quote is None or (name := message_rows.whole_id(database, place, quote.message_id)) == quote.message_id:
        return quote
    return replace(quote, message_id=name)


def text_of(message: Message) -> str:
    return clean(message.text)


def add(
    database: Database,
    row: MessageRow,
    at: datetime | None,
    reason: Reason | None,
    addressed: Sequence[str] | None = None,
) -> int | None:
    """Append a new message to its place; return its row, or None if it is stored already.

    *reason* is that of its first decision; None for a message of the agent. *addressed* is `Received.addressed`.
    """
    message, is_own = row.message, reason is None
    place = upsert_place(database, message.place)
    count = _COUNT_DIRECT if message.place.kind == "direct" else _COUNT_OPEN
    counted = database.one(count, place=place, message_id=message.id)
    if counted is None:
        return None
    messages, left_at = counted
    row_id = database.insert(
        INSERT_MESSAGE,
        place=place,
        number=messages - 1,
        message_id=message.id,
        role="model" if is_own or message.author.persona is not None else "user",
        own=int(is_own),
        agent=message.agent,
        received_at=format_time(at),
        **row.content(database, place, at),
    )
    if row.medias:
        insert_media(database, row_id, row.medias)
    if reason is not None:
        if left_at is not None:  # where somebody writes to us we can write
            places.join_place(database, message.place)
        decisions.add(database, row_id, place, "withdrawn" if message.deleted else reason, at, addressed=addressed)
        events.add(database, MessageReceived(place=message.place, message_id=message.id), at=at)
    return row_id


def edit(database: Database, message: Message, at: datetime, rules: FactRules) -> bool:
    """Replace the content of a message; an edit older than the stored one changes nothing."""
    found = _find(database, message.place, message.id)
    if found is None:
        return False
    row_id, before = found
    message = without_languages(message)
    if before.author.id and message.author.id != before.author.id:
        raise InvalidValue(
            f"message {message.id!r} is by {before.author.id!r}; by {message.author.id!r} it cannot be edited"
        )
    place = upsert_place(database, message.place)
    is_part = message_rows.is_part(database, place, message.id)
    parts = message_rows.join_parts(database, row_id, {message.id: message.parts}) if is_part else message.parts
    now = replace(
        message,
        id=before.id,
        place=before.place,  # the audience of the original message
        parts=parts,
        sent_at=before.sent_at if is_part else message.sent_at or before.sent_at,
        reply_to=_with_known_id(database, place, message.reply_to) or before.reply_to,
        album=message.album or before.album,
        forwarded_from=message.forwarded_from or before.forwarded_from,
        deleted=message.deleted or before.deleted,
        agent=before.agent,
    )
    if _is_newer(now, before, at):
        kind: ChangeKind = "deleted" if now.deleted or not message.parts else "edited"  # also of a part
        rewrite(database, row_id, before, MessageRow(replace(now, edited_at=now.edited_at or at)), at, kind)
        if is_part:
            update = "UPDATE message_parts SET content = :content WHERE place = :place AND message_id = :part"
            database.run(update, content=dumps(tuple(message.parts)), place=place, part=message.id)
        if now.deleted or now.parts != before.parts:
            retraction.retract(database, [row_id], rules)
        retraction.unhide_edited(database, row_id, text_of(now), at, rules)
        if now.parts != before.parts:
            decide_again(database, row_id, now, at)
    return True


def decide_again(database: Database, row_id: int, edited: Message, at: datetime) -> None:
    """Let an edited message wait, if it was not addressed to us and its edit may have changed that."""
    select = "SELECT coalesce(sent_at, received_at) FROM messages WHERE id = :message"
    when = parse_time(database.value(select, message=row_id)), edited.edited_at or at
    is_open = waits_after_edit(decisions.read(database, [row_id])[row_id], *when)
    if is_open and not edited.deleted and not _is_invisible(database, edited.place, edited.id):
        decisions.wait_again(database, row_id, upsert_place(database, edited.place), at)


def _is_newer(now: Message, before: Message, at: datetime) -> bool:
    if replace(now, edited_at=now.edited_at or before.edited_at) == before:
        return False
    return before.edited_at is None or (now.edited_at or at) >= before.edited_at


def delete(database: Database, place: Place, message_id: str, at: datetime, rules: FactRules) -> bool:
    """Mark a message as deleted and no longer waiting; of a split message only this part is deleted."""
    found = _find(database, place, message_id)
    if found is None:
        return False
    row_id, before = found
    if not before.deleted and message_rows.join_parts(database, row_id, {message_id: ()}):
        then = max(at, before.edited_at or at)
        return edit(database, replace(before, id=message_id, parts=(), edited_at=then), at, rules)
    if not before.deleted:
        insert_changes(database, [row_id], "deleted", at, before)
        database.run("UPDATE messages SET deleted = 1 WHERE id = :message", message=row_id)
        decisions.end_waiting(database, [row_id], "withdrawn", at)
        retraction.retract(database, [row_id], rules)
        search_index.unindex(database, [row_id])
    return True


def insert_own(database: Database, row: MessageRow, turns: str | None, *, is_new: bool = False) -> int:
    """Store a message of the agent; return its row. A copy that the platform sent before becomes that message.

    Of one that *is_new* no other message of the agent may have the id.
    """
    row_id = add(database, row, row.message.sent_at, None)
    if row_id is None:
        if is_new:
            refuse_own(database, upsert_place(database, row.message.place), row.message.id)
        row_id = _claim_as_own(database, row, turns)
    if turns:
        upsert_row(database, "turns", "message", message=row_id, turns=turns)
    return row_id


def refuse_own(database: Database, place: int, message_id: str) -> None:
    """Raise `InvalidValue` for the id of a message that the agent wrote."""
    select = f"SELECT own FROM messages WHERE id = {FIND_MESSAGE}"
    if database.one(select, place=place, message_id=message_id) == (1,):
        raise InvalidValue(f"{message_id!r} is the id of another reply")


def _claim_as_own(database: Database, row: MessageRow, turns: str | None) -> int:
    message = row.message
    found = _find(database, message.place, message.id)
    if found is None:
        raise AssertionError  # `add` would have stored it
    row_id, before = found
    if before.author.id != message.author.id:
        raise InvalidValue(f"{message.id!r} is the id of a message of somebody else")
    if before != message or turns:
        rewrite(database, row_id, before, row, message.sent_at, "said")
    update = "UPDATE messages SET own = 1, role = 'model', agent = :agent WHERE id = :message"
    database.run(update, agent=message.agent, message=row_id)
    decisions.remove(database, row_id)
    return row_id


def waiting_places(database: Database) -> list[Place]:
    """Return the places with messages that wait, that which waits longest first."""
    select = """SELECT t.body FROM (
            SELECT max(message) AS newest, min(message) AS first FROM decisions WHERE reason = 'waiting' GROUP BY place
        ) w JOIN messages m ON m.id = w.newest JOIN titles t ON t.id = m.title ORDER BY w.first"""
    return select_places(database, select)


def snapshot(database: Database, place: Place, most: int | None) -> PlaceSnapshot:
    """Return the messages that wait in a place, the oldest ones if there are more than *most*."""
    known = read_counts(database, place, f"id, messages, changes, {conversation_start_column(place)}")
    row, count, changes, first = known or (None, 0, 0, 0)
    which = """JOIN decisions d ON d.message = m.id
        WHERE d.place = :place AND d.reason = 'waiting' ORDER BY d.message LIMIT :most"""
    most = _ALL if most is None else most
    found = _WAITING.beside(database, "m.id, d.edited, d.position", which, place=row, most=most)
    found.sort(key=lambda one: (one[0].number, one[1][2]))  # differs where a place was joined to another
    acted = decisions.read(database, edited) if (edited := [row for _, (row, again, _) in found if again]) else {}
    waiting = [
        replace(one, acted=tuple(other.agent for other in acted.get(row, ()) if other.reason != "waiting"))
        if again
        else one
        for one, (row, again, _) in found
    ]
    return PlaceSnapshot(waiting=tuple(waiting), count=count, changes=changes, beginning=first)


def rewrite(
    database: Database, row_id: int, before: Message | None, row: MessageRow, at: datetime | None, kind: ChangeKind
) -> None:
    """Replace a stored message, and store what it was as a change."""
    insert_changes(database, [row_id], kind, at, before)
    content = row.content(database, upsert_place(database, row.message.place), at)
    database.run(_REWRITE, message=row_id, **content)
    insert_media(database, row_id, row.medias)
    search_index.unindex(database, [row_id])


def quote_of(database: Database, place: Place, message_id: str) -> Quote:
    """Return the quote of a message; only its id if it is deleted, hidden or unknown."""
    found = _find(database, place, message_id)
    if found is None:
        return Quote(message_id=message_id)
    message = found[1]
    if message.deleted or _is_invisible(database, place, message.id):
        return Quote(message_id=message.id)
    return Quote(
        message_id=message.id, author=message.author, parts=message.parts, forwarded_from=message.forwarded_from
    )


def _is_invisible(database: Database, place: Place, message_id: str) -> bool:
    """Return whether a message is hidden or older than the conversation of its place."""
    select = f"""SELECT 1 FROM messages m JOIN places p ON p.id = m.place
        WHERE m.place = :place AND m.message_id = :message_id
        AND (m.hidden = 1 OR m.number < {conversation_start_column(place)})"""
    return database.one(select, place=find_place(database, place), message_id=message_id) is not None


def _find(database: Database, place: Place, message_id: str) -> tuple[int, Message] | None:
    which = f"WHERE m.id = {FIND_MESSAGE}"
    found = MESSAGES.beside(database, "m.id", which, place=find_place(database, place), message_id=message_id)
    return next(((row, message) for message, (row,) in found), None)


def insert_media(database: Database, row_id: int, medias: Iterable[Media]) -> None:
    """Store which media a message has, by their ids and by those of their files."""
    database.many(
        insert_into("media", "message", "unique_id", "media_kind") + " ON CONFLICT DO NOTHING",
        [
            {"message": row_id, "unique_id": clean(unique_id), "media_kind": clean(media.media_kind)}
            for media in medias
            for unique_id in {media.unique_id, file_key(media)}
        ],
    )
