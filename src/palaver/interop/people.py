"""Authors of imported messages: accounts that are gone, and people of whom the source says nothing. Pure."""

from collections.abc import Container

from palaver.characters import visible
from palaver.messages import Author

PERSON = "person"  # what an author is called, and mostly known by, of whom the source says nothing

_GONE = frozenset({"deleted account", "deleted user", "[deleted]", "deleted-user", "deleted_user"})


def author_of(*, identity: str | None, name: str, username: str | None = None) -> Author:
    """An author as the source has them. A deleted account is nobody's, and keeps the id that tells it apart."""
    gone = " ".join(visible(name).casefold().split()) in _GONE
    return Author(id=identity or name, name=name, username=username, unknown=gone)


def nobody_known(taken: Container[str]) -> Author:
    """The author of messages of whose author the source says nothing, under an id that is not among those *taken*."""
    identity = PERSON
    while identity in taken:
        identity += "-"
    return Author(id=identity, name=PERSON, unknown=True)
