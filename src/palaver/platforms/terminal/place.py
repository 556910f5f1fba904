"""Where one talks in the terminal, and who does."""

from getpass import getuser

from palaver.messages import Author, Place

PLACE = Place(platform="terminal", id="terminal", kind="direct")
ME = Author(id="palaver", name="palaver")
YOU = "you"


def person() -> Author:
    """Who sits at the terminal."""
    try:
        name = getuser().strip()
    except (OSError, KeyError, ImportError):
        name = ""
    name = YOU if name in ("", ME.id) else name
    return Author(id=name, name=name)
