"""What the readers of Markdown and HTML share. Pure."""

from typing import NamedTuple

from tertulia.sim.telegram.entities import Entity
from tertulia.sim.telegram.links import checked_url, linked_user

SPACES = " \t\r\n\v\0"
PADDING = "\0" * 4  # behind a source, so that looking ahead needs no check

Parsed = tuple[str, list[Entity]]


class MarkupError(ValueError):
    """A text that cannot be parsed, in TDLib's words."""


class Opened(NamedTuple):
    """The beginning of an entity whose end was not found yet."""

    kind: str
    offset: int  # in units of the result
    source: int  # index in the source
    begin: int  # index in the result
    argument: str = ""
    format: str = ""


class Output:
    """The parsed text, with its length in UTF-16 units, and its entities."""

    def __init__(self) -> None:
        self.characters: list[str] = []
        self.units = 0
        self.entities: list[Entity] = []

    def add(self, character: str) -> None:
        self.characters.append(character)
        self.units += 2 if character > "\uffff" else 1

    def since(self, begin: int) -> str:
        return "".join(self.characters[begin:])

    def until(self, end: int) -> str:
        return "".join(self.characters[:end])

    def close(self, opened: Opened, kind: str | None = None) -> None:
        """Add the entity that ends here."""
        length = self.units - opened.offset
        self.entities.append(styled(kind or opened.kind, opened.offset, length, opened.argument))


def styled(kind: str, offset: int, length: int, language: str = "") -> Entity:
    """Return an entity; the language of code is kept."""
    return Entity(type=kind, offset=offset, length=length, language=(language or None) if kind == "pre" else None)


def link(url: str, offset: int, length: int) -> list[Entity]:
    """Return the entity of a link, none if its address is no good."""
    user = linked_user(url)
    if user is not None:
        return [Entity(type="text_mention", offset=offset, length=length, user=user)]
    try:
        return [Entity(type="text_link", offset=offset, length=length, url=checked_url(url))]
    except ValueError:
        return []


def byte_offset(text: str, index: int) -> int:
    """Return how many bytes are before a character."""
    return len(text[:index].encode(errors="surrogatepass"))
