"""Places: their names in addresses and their rows; messages of one, and why they were answered or not."""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, time

from tertulia.engine.inspection import CallSum, LoggedMessage, PlaceSummary, Spent
from tertulia.engine.store_protocols import StoreProtocol
from tertulia.errors import InvalidValue
from tertulia.inspector.shown import Blocked, brief, only, shown_item, shown_message
from tertulia.inspector.values import (
    AgentPresence,
    DecisionPage,
    MessagePage,
    MessageRow,
    PlaceRow,
    PlaceState,
    Reasoned,
)
from tertulia.inspector.words import IMPORTED, decision_words
from tertulia.memory.values import Subject
from tertulia.messages import Place, PlaceKey

PAGE = 60  # messages or runs of a page
_PLAIN = re.compile(rb"[A-Za-z0-9_-]")
_ESCAPED = re.compile(r"~([0-9A-F]{2})")


def place_key(place: Place) -> str:
    """Return the name of a place in addresses, with letters that no address escapes: `telegram.-100123.7`."""
    return _joined(part for part in place.key if part is not None)


def place_of_key(key: str) -> PlaceKey:
    """Return the key of the place that has this name in addresses."""
    parts = _parted(key)
    if len(parts) not in (2, 3):
        raise InvalidValue(f"there is no place {key:.100}")
    return parts[0], parts[1], parts[2] if len(parts) == 3 else None


def person_key(person: Subject) -> str:
    """Return the name of a person in addresses: `telegram.123456`."""
    return _joined((person.platform, person.id))


def person_of_key(key: str) -> Subject:
    """Return the person who has this name in addresses, without what they are called."""
    parts = _parted(key)
    if len(parts) != 2:
        raise InvalidValue(f"there is no person {key:.100}")
    return Subject(platform=parts[0], id=parts[1])


def _joined(parts: Iterable[str]) -> str:
    return ".".join("".join(map(_escaped, part.encode("utf-8", "surrogatepass"))) for part in parts)


def _escaped(byte: int) -> str:
    return chr(byte) if _PLAIN.fullmatch(bytes([byte])) else f"~{byte:02X}"


def _parted(key: str) -> list[str]:
    try:
        return [
            _ESCAPED.sub(lambda found: chr(int(found[1], 16)), part).encode("latin-1").decode("utf-8", "surrogatepass")
            for part in key.split(".")
        ]
    except UnicodeError:
        return []


async def find_place(store: StoreProtocol, key: str) -> Place:
    """Return the place that has this name in addresses; raise `InvalidValue` where there is none."""
    platform, place_id, thread = place_of_key(key)
    wanted = Place(platform=platform, id=place_id, kind="group", thread=thread)
    found = await store.inspection.places(wanted)
    if not found:
        raise InvalidValue(f"there is no place {key:.100}")
    return found[0].place


async def places(store: StoreProtocol, *, now: datetime) -> tuple[PlaceRow, ...]:
    """Return all places, that with the newest message first."""
    sums = await store.inspection.call_sums(midnight(now))
    return place_rows(await store.inspection.places(), sums, await store.inspection.blocked())


async def place_row(store: StoreProtocol, place: Place, *, now: datetime) -> PlaceRow:
    """Return one place; raise `InvalidValue` where nothing is stored of it."""
    found = await store.inspection.places(place)
    if not found:
        raise InvalidValue(f"there is no place {place_key(place):.100}")
    return await _row_of(store, found[0], await store.inspection.blocked(), now=now)


async def _row_of(store: StoreProtocol, found: PlaceSummary, blocked: Blocked, *, now: datetime) -> PlaceRow:
    (row,) = place_rows([found], await store.inspection.call_sums(midnight(now), place=found.place), blocked)
    return row


def place_rows(summaries: Iterable[PlaceSummary], sums: Sequence[CallSum], blocked: Blocked) -> tuple[PlaceRow, ...]:
    """Return the rows of places, that with the newest message first; *sums* are of the calls of today."""
    today: dict[PlaceKey | None, Spent] = {}
    for one in sums:
        today[one.place] = today.get(one.place, Spent()) + one.spent
    rows = [_place_row(one, today.get(one.place.key, Spent()), blocked) for one in summaries]
    return tuple(sorted(rows, key=_last_at, reverse=True))


def _place_row(found: PlaceSummary, today: Spent, blocked: Blocked) -> PlaceRow:
    failed = found.failed
    return PlaceRow(
        key=place_key(found.place),
        place=found.place,
        state=_state(found),
        since=found.open_since or (failed.ended_at if failed else None),
        why=failed.why if failed else "",
        waiting=found.waiting,
        to_decide=found.doubtful,
        messages=found.messages,
        runs=found.runs,
        today=today,
        last=brief(found.last, blocked) if found.last else None,
    )


def _state(found: PlaceSummary) -> PlaceState:
    if found.open_since:
        return "answering"
    if found.waiting:
        return "waits"
    if found.doubtful:
        return "to decide"
    return "failed" if found.failed else "quiet"


def _last_at(row: PlaceRow) -> float:
    return row.last.sent_at.timestamp() if row.last and row.last.sent_at else 0.0


async def messages(
    store: StoreProtocol,
    place: Place,
    *,
    before: int | None = None,
    now: datetime,
    agents: tuple[AgentPresence, ...] = (),
) -> MessagePage:
    """Return the newest messages of a place before a number, each with what became of it."""
    summary = only(await store.inspection.places(place))
    blocked = await store.inspection.blocked()
    row = await _row_of(store, summary, blocked, now=now)
    found = await store.inspection.messages(place, before=before, most=PAGE)
    runs = [one.delivery.run for one in found if one.delivery and one.delivery.run]
    tools = await store.inspection.tools(runs)
    shown = tuple(
        MessageRow(
            number=one.number,
            message=shown_message(one.message, blocked),
            decisions=one.decisions,
            wrote=one.delivery.run if one.delivery else None,
            tools=tuple(tools.get(one.delivery.run or "", ())) if one.delivery else (),
            delivery=shown_item(one.delivery) if one.delivery else None,
        )
        for one in found
    )
    return MessagePage(row=row, agents=agents, messages=shown, before=_page_before(found), event=summary.event)


async def decisions(
    store: StoreProtocol,
    place: Place,
    *,
    before: int | None = None,
    now: datetime,
    agents: tuple[AgentPresence, ...] = (),
) -> DecisionPage:
    """Return the newest messages in a place before a number, each with why it was answered or not.

    They are those of people, and of the *agents* too where there are several.
    """
    row = await place_row(store, place, now=now)
    blocked = await store.inspection.blocked()
    found = await store.inspection.messages(place, before=before, people=not agents, most=PAGE)
    shown = tuple(
        Reasoned(
            number=one.number,
            message=shown_message(one.message, blocked),
            decisions=one.decisions,
            words=tuple(map(decision_words, one.decisions)) or ((IMPORTED,) if one.message.agent is None else ()),
        )
        for one in found
    )
    return DecisionPage(row=row, agents=agents, messages=shown, before=_page_before(found))


def _page_before(found: Sequence[LoggedMessage]) -> int | None:
    """Return the number that asks for the page before; None where there is none."""
    return found[0].number if len(found) == PAGE and found[0].number else None


def midnight(now: datetime) -> datetime:
    """Return the beginning of a day in UTC."""
    return datetime.combine(now.astimezone(UTC).date(), time(), UTC)
