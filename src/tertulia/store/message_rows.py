"""Rows of messages: their columns, their numbered changes, the parts of split replies, reactions.

Changes are edits, deletions and removals, numbered in their place. Whoever has read messages of a place notes the
number of its last change (`places.changes`). Messages with a later change must be read again; what was derived from
them (facts, episodes, the index) is then not stored.

A reply that was split is one message in the log. Its id is that of the part that was sent first; what it says are the
parts that people see, in order. `message_parts` holds each part, so that an edit or a deletion of one changes only
that.

A service names the message it sent, so a reaction to any part of a split reply belongs to our one message. What a
prompt may have shown is not altered: a later change of a person's reactions is a row of its own, at the position that
the place has reached by then.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from types import MappingProxyType
from typing import Literal

from msgspec.structs import replace

from tertulia.context.edits import Reaction
from tertulia.engine.inspection import ShownReactions
from tertulia.events import MessagesChanged
from tertulia.messages import Message, Place
from tertulia.parts import Media, Part, Text, joined_text
from tertulia.platform import Reacted
from tertulia.store import events
from tertulia.store.database import Database, insert_into
from tertulia.store.encoding import ANY, PARTS, PLACE, STRINGS, clean, dumps, format_time
from tertulia.store.identities import upsert_name, upsert_place
from tertulia.store.rows import Rows

ChangeKind = Literal["edited", "deleted", "said", "removed"]

_AUTHOR = "(SELECT body FROM names WHERE id = {}.name)"
MESSAGES = Rows(
    Message,
    "messages m",
    "id=message_id sent_at edited_at deleted reply_to=reply parts album forwarded_from doubtful agent",
    place="(SELECT body FROM titles WHERE id = m.title)",
    author=_AUTHOR.format("m"),
)
_REACTIONS = Rows(Reaction, "reactions r", "position emojis at", number="m.number", author=_AUTHOR.format("r"))
_SHOWN = Rows(ShownReactions, "reactions r", "emojis", author=_AUTHOR.format("r"))
# the row of a message, by the id of it or of one of its parts; an expression with :place and :message_id
FIND_MESSAGE = """coalesce((SELECT message FROM message_parts WHERE place = :place AND message_id = :message_id),
    (SELECT id FROM messages WHERE place = :place AND message_id = :message_id))"""

# whether the message *m*, by an author with the name *n*, may be shown; a condition
SEEN = "m.deleted = 0 AND m.hidden = 0 AND n.author NOT IN (SELECT author FROM blocked_authors)"
# whether the agent :agent was in a place when a message came, and when all from one number to another did; conditions
WAS_PRESENT = """EXISTS (SELECT 1 FROM presences h WHERE h.place = {0} AND h.agent = :agent AND {1} >= h.since
    AND (h.until IS NULL OR {1} < h.until))"""
STAYED = """EXISTS (SELECT 1 FROM presences h WHERE h.place = {0} AND h.agent = :agent AND {1} >= h.since
    AND (h.until IS NULL OR {2} <= h.until))"""
# whether a message was received under an id, or sent as a part of that id; a condition with :message_id
_HAS_MESSAGE = """(EXISTS (SELECT 1 FROM messages m WHERE m.place = p.id AND m.message_id = :message_id)
    OR EXISTS (SELECT 1 FROM message_parts s WHERE s.place = p.id AND s.message_id = :message_id))"""
# the reactions of one person, under any of their names, to a message
_THEIRS = """place = :place AND message_id = :message_id AND name IN (
    SELECT id FROM names WHERE author = (SELECT author FROM names WHERE id = :name))"""

# how many messages the newest run with a prompt knew of a place; an expression
_KNOWN_MESSAGES = """coalesce(
    (SELECT r.horizon FROM runs r WHERE r.place = {} AND r.horizon > 0 ORDER BY r.id DESC LIMIT 1), 0)"""
INSERT_REACTION = insert_into("reactions", "place", "message_id", "name", "emojis", "at", "message", "position")

MAX_REACTIONS_SHOWN = 5  # changes of reactions to one message that prompts show


def find_message(database: Database, place: int | None, message_id: str) -> int | None:
    """Return the row of the message with this id, or with a part of this id."""
    row: int | None = database.value(f"SELECT {FIND_MESSAGE}", place=place, message_id=message_id)
    return row


def insert_changes(
    database: Database, messages: Collection[int], kind: ChangeKind, at: datetime | None, before: Message | None = None
) -> None:
    """Store that messages change, in the order of each place, with what one was *before*; publish it.

    They are counted in their places first.
    """
    database.run(
        """UPDATE places SET changes = changes + c.more,
            removed = CASE WHEN :removes = 1 THEN changes + c.more ELSE removed END
            FROM (SELECT place, count(*) AS more FROM messages WHERE id IN (:messages) GROUP BY place) c
            WHERE places.id = c.place""",
        messages=messages,
        removes=int(kind in ("deleted", "removed")),
    )
    database.run(
        f"""INSERT INTO message_changes (place, change, message, number, kind, at, before, position, seen)
            SELECT p.id, p.changes - count(*) OVER (PARTITION BY p.id)
                    + row_number() OVER (PARTITION BY p.id ORDER BY m.number),
                m.id, m.number, :kind, :at, :before, p.messages,
                CASE WHEN m.number < {_KNOWN_MESSAGES.format("m.place")} THEN 1 ELSE 0 END
            FROM messages m JOIN places p ON p.id = m.place WHERE m.id IN (:messages)""",
        messages=messages,
        kind=kind,
        at=format_time(at),
        before=None if before is None else dumps(before),
    )
    _publish(database, messages, at)


def _publish(database: Database, messages: Collection[int], at: datetime | None) -> None:
    """Publish that messages have changed, with an event for each place."""
    select = """SELECT m.place, (SELECT t.body FROM titles t WHERE t.place = m.place ORDER BY t.id DESC LIMIT 1),
        m.message_id FROM messages m WHERE m.id IN (:messages) ORDER BY m.place, m.number"""
    changed = [
        MessagesChanged(place=PLACE.loads(place), message_ids=tuple(message_id for *_, message_id in found))
        for (_, place), found in groupby(database.all(select, messages=list(messages)), itemgetter(0, 1))
    ]
    events.add(database, *changed, at=at)


def has_changed(database: Database, place: int, since: int, between: tuple[int, int]) -> bool:
    """Return whether people changed a message with a number *between* these after the change *since*."""
    select = """SELECT 1 FROM message_changes WHERE place = :place AND change > :since
        AND number >= :start AND number < :stop AND kind IN ('edited', 'deleted', 'removed') LIMIT 1"""
    return database.one(select, place=place, since=since, start=between[0], stop=between[1]) is not None


def known_messages(database: Database, place: int) -> int:
    """Return the number of messages that the newest run with a prompt knew of a place."""
    return int(database.value(f"SELECT {_KNOWN_MESSAGES.format(':place')}", place=place))


def whole_id(database: Database, place: int | None, message_id: str) -> str:
    """Return the id of the message that has a part of this id; the id itself where there is none."""
    select = """SELECT m.message_id FROM message_parts p JOIN messages m ON m.id = p.message
        WHERE p.place = :place AND p.message_id = :message_id"""
    return database.value(select, place=place, message_id=message_id) or message_id


def add_part(
    database: Database, place: int, message: int, message_id: str, content: Sequence[Part], at: tuple[int, str]
) -> None:
    """Add a part to a message; *at* is its number in the reply, and the separator before it."""
    number, separator = at
    row = {"place": place, "message_id": message_id, "message": message, "part": number}
    row |= {"separator": clean(separator), "content": dumps(tuple(content))}
    database.run(insert_into("message_parts", *row), **row)


def is_part(database: Database, place: int | None, message_id: str) -> bool:
    """Return whether this is the id of one of several parts of a message."""
    select = "SELECT 1 FROM message_parts WHERE place = :place AND message_id = :message_id"
    return database.one(select, place=place, message_id=message_id) is not None


def join_parts(
    database: Database, message: int, changed: Mapping[str, Sequence[Part]] = MappingProxyType({})
) -> tuple[Part, ...]:
    """Return the content of all parts: their texts joined, then other parts; *changed* ones override stored ones."""
    select = "SELECT message_id, separator, content FROM message_parts WHERE message = :message ORDER BY part"
    text, rest = "", list[Part]()
    for message_id, separator, content in database.all(select, message=message):
        parts = changed.get(message_id, PARTS.loads(content))
        part_text = joined_text(parts, "\n")
        text += f"{separator if text and part_text else ''}{part_text}"
        rest += [part for part in parts if not isinstance(part, Text)]
    return (*([Text(text=text)] if text else []), *rest)


def _place_of_message(database: Database, place: Place, message_id: str) -> int:
    """Return the row of a place, or of its thread that has the message: some services do not name the thread."""
    row = upsert_place(database, place)
    if place.thread is not None or find_message(database, row, message_id) is not None:
        return row
    select = f"""SELECT p.id FROM places p WHERE p.platform = :platform AND p.place_id = :place_id
        AND p.thread IS NOT NULL AND {_HAS_MESSAGE} ORDER BY p.id LIMIT 1"""
    return database.value(select, platform=clean(place.platform), place_id=place.id, message_id=message_id) or row


def add_reaction(database: Database, change: Reacted, at: datetime) -> None:
    """Store the current reactions of a person to a message, in place of earlier ones."""
    name = upsert_name(database, change.place.author_namespace, change.author, at)
    place = _place_of_message(database, change.place, change.message_id)
    key = {"place": place, "message_id": change.message_id, "name": name}
    before = database.value(f"SELECT emojis FROM reactions WHERE {_THEIRS} AND current = 1", **key)
    if STRINGS.loads(before or "[]") == change.emojis:
        return
    count = database.value("SELECT messages FROM places WHERE id = :place", place=place)
    replaced = f"""DELETE FROM reactions WHERE {_THEIRS} AND (position IS NULL OR position = :count)
        RETURNING position"""
    positions = database.column(replaced, **key, count=count)
    other = database.run(f"UPDATE reactions SET current = 0 WHERE {_THEIRS}", **key)
    if change.emojis or other:
        message = find_message(database, place, change.message_id)
        select = "SELECT count(*) FROM reactions WHERE message = :message AND position IS NOT NULL"
        shown = database.value(select, message=message)
        position = count if message is not None and shown < MAX_REACTIONS_SHOWN else None
        positions.append(position)
        shown_now = {"emojis": dumps(change.emojis), "at": format_time(change.at or at)}
        database.run(INSERT_REACTION, **key, **shown_now, message=message, position=position)
    if any(position is not None for position in positions):  # a prompt that was built meanwhile is outdated
        database.run("UPDATE places SET changes = changes + 1 WHERE id = :place", place=place)
    if message := find_message(database, place, change.message_id):
        _publish(database, [message], at)


def current_reactions(database: Database, messages: Collection[int]) -> Mapping[int, Sequence[ShownReactions]]:
    """Return what people show at messages now, by the rows of these."""
    which = "WHERE r.message IN (:messages) AND r.current = 1 AND r.emojis <> '[]' ORDER BY r.id"
    return _SHOWN.by(database, "r.message", which, messages=list(messages))


def read_reactions(database: Database, place: int, since: int) -> list[Reaction]:
    """Return the changes of reactions that prompts show, to messages from number *since* on, in order."""
    which = """JOIN messages m ON m.id = r.message
        WHERE r.place = :place AND r.position > :since AND m.number >= :since ORDER BY r.position, r.id"""
    return _REACTIONS.all(database, which, place=place, since=since)


def descriptions_of(database: Database, unique_ids: Collection[str]) -> dict[str, str]:
    """Return the newest descriptions of media, by their ids."""
    if not unique_ids:
        return {}
    select = "SELECT unique_id, body FROM descriptions WHERE unique_id IN (:unique_ids) ORDER BY id"
    rows = database.all(select, unique_ids=[clean(one) for one in unique_ids])
    return {unique_id: str(ANY.loads(body)) for unique_id, body in rows}


def with_descriptions(database: Database, messages: Sequence[Message]) -> list[Message]:
    """Return messages with the descriptions of their media, by which they may have been found."""
    shown = {part.unique_id for message in messages for part in message.parts if isinstance(part, Media)}
    known = descriptions_of(database, shown)
    return [_with_descriptions(message, known) for message in messages] if known else [*messages]


def _with_descriptions(message: Message, known: Mapping[str, str]) -> Message:
    parts = (
        replace(part, rendered_text=part.rendered_text or known.get(clean(part.unique_id)))
        if isinstance(part, Media)
        else part
        for part in message.parts
    )
    return replace(message, parts=tuple(parts))
