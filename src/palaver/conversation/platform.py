"""What a platform is to the engine: where replies go, and how it takes one that it may have had already. Pure."""

from datetime import timedelta
from typing import Protocol

from palaver.messages import Author, Reply

NO_KEYS = timedelta(0)


class Platform(Protocol):
    """One of the services where people talk, with the agent's account on it."""

    @property
    def name(self) -> str:
        """As in `Place.platform`."""
        ...

    @property
    def me(self) -> Author:
        """Who the agent is there."""
        ...

    @property
    def remembers(self) -> timedelta:
        """How long a key is known again, so that what is sent twice is one message; `NO_KEYS` where it has none."""
        ...

    async def send(self, reply: Reply, *, key: str) -> str:
        """Send a reply; the id of the message that people see now.

        `errors.NotSent` says that it certainly did not go out and may later, `errors.SendRefused` that it never will.
        After any other error nobody knows.
        """
        ...
