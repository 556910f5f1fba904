"""People who talk: builders of messages, places and contexts."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from tertulia.context.values import Context, Persona
from tertulia.messages import Author, Message, Place, Quote
from tertulia.parts import Media, Part, Text

NOON = datetime(2025, 1, 15, 12, 0, tzinfo=UTC)
GROUP = Place(platform="telegram", id="-100123", kind="group", title="Friends")
DIRECT = Place(platform="telegram", id="7", kind="direct")
ALICE = Author(id="u123", name="Alice", username="alice_ua")
BOB = Author(id="u456", name="Bob")
GRYAG = Author(id="42", name="gryag", persona="gryag")
PERSONA = Persona(name="gryag", text="You are gryag.")
DELIMITER = "7f3a9c2e51b0"


def a_message(text: str = "hello", **changes: Any) -> Message:
    fields: dict[str, Any] = {
        "id": "m1",
        "place": GROUP,
        "author": ALICE,
        "sent_at": NOON,
        "parts": (Text(text=text),) if text else (),
    }
    return Message(**fields | changes)


def a_photo(**changes: Any) -> Media:
    fields: dict[str, Any] = {"media_kind": "photo", "unique_id": "p1", "mime": "image/jpeg", "data": b"\xff\xd8jpeg"}
    return Media(**fields | changes)


def a_quote(text: str = "hello", **changes: Any) -> Quote:
    fields: dict[str, Any] = {"message_id": "m0", "author": BOB, "parts": (Text(text=text),) if text else ()}
    return Quote(**fields | changes)


def a_context(target: Message | None = None, **changes: Any) -> Context:
    answered = target or a_message()
    fields: dict[str, Any] = {
        "target": answered,
        "now": NOON,
        "place": answered.place,
        "persona": PERSONA,
        "delimiter": DELIMITER,
    }
    return Context(**fields | changes)


def a_talk(count: int, *, place: Place = GROUP, authors: Iterable[Author] = (ALICE, GRYAG, BOB)) -> list[Message]:
    """*count* messages, a minute apart, by each of the authors in turn, numbered from 0."""
    speaking = tuple(authors)
    return [
        a_message(
            f"message number {number}",
            id=str(number),
            place=place,
            author=speaking[number % len(speaking)],
            sent_at=NOON - timedelta(minutes=count - number),
        )
        for number in range(count)
    ]


def texts(parts: Iterable[Part]) -> list[str]:
    return [part.text for part in parts if isinstance(part, Text)]
