"""Words for what is neither text nor a file in a message of Telegram: the same from an update and from an export. Pure.

What its sender wrote is their text; the rest is a marker.
"""

from collections.abc import Iterable

from tertulia.parts import Media, Part, Text


def marker(kind: str, words: str = "") -> Media:
    return Media(media_kind=kind, unique_id=f"{kind}:{words}", rendered_text=words or None)


def location(*point: float) -> Media:
    return marker("location", ", ".join(f"{degrees:.5f}" for degrees in point))


def venue(title: str, address: str) -> tuple[Part, ...]:
    return marker("location"), Text(text=", ".join(filter(None, (title, address))))


def contact(first_name: str, last_name: str, phone_number: str) -> tuple[Part, ...]:
    return marker("contact"), Text(text=f"{f'{first_name} {last_name}'.strip()}, {phone_number}")


def listing(kind: str, title: str, entries: Iterable[str]) -> tuple[Part, ...]:
    """Return a poll or a checklist: its title, and a line for each entry."""
    return marker(kind), Text(text="\n".join([title, *(f"- {entry}" for entry in entries)]))


def song(performer: str, title: str) -> str | None:
    return " – ".join(filter(None, (performer, title))) or None
