"""What is stored of a chat with a name, and the protocols of its store. Pure."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct

from tertulia.messages import Place
from tertulia.run.journal import Journal, JournalStore, Run
from tertulia.turns import Prompt, Record, Turn

SERVICE = "chat"  # the platform of such chats in the store


def place_of_chat(name: str) -> Place:
    """Return the place of the runs of a chat: a direct chat whose id is the name."""
    return Place(platform=SERVICE, id=name, kind="direct")


class HistoryEntry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One entry of a history: a record, and whether its turn is sent; or a turn that is sent and has no record."""

    record: Record | None = None
    is_sent: bool = True
    turn: Turn | None = None


class OpenExchange(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An exchange that has begun and not ended. Without `asked` the caller gave results."""

    run_id: str
    asked: Turn | None = None


class ChatState(Struct, frozen=True, kw_only=True):
    entries: tuple[HistoryEntry, ...] = ()
    exchange: OpenExchange | None = None
    edition: int | None = None  # changes when something in it is forgotten; None: no such chat


class Chats(Protocol):
    async def read(self, name: str) -> ChatState: ...

    async def edition(self, name: str) -> int | None:
        """Return the edition of a chat, which changes when something in it is forgotten; None without such a chat."""
        ...

    async def write(
        self,
        name: str,
        start: int,
        entries: Sequence[HistoryEntry],
        exchange: OpenExchange | None,
        *,
        edition: int | None,
    ) -> int:
        """Replace the entries from number *start* on, and the open exchange, in one transaction; return the edition.

        Raise `InvalidValue` if the chat has another edition: the entries may hold what was forgotten.
        """
        ...


class ChatRuns(JournalStore, Protocol):
    async def begin(self, run: Run, prompt: Prompt, *, at: datetime) -> None: ...

    async def journal(self, run_id: str) -> Journal | None: ...

    async def end(self, run: Run) -> None: ...


class Delimiters(Protocol):
    async def delimiter(self, place: Place) -> str:
        """Return the word that tells our own markup in a place from people's text; the same in every process."""
        ...


class ChatStore(Protocol):
    @property
    def chats(self) -> Chats: ...
    @property
    def runs(self) -> ChatRuns: ...
    @property
    def place_settings(self) -> Delimiters: ...
