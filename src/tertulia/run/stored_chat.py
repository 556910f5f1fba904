"""A chat in a store, under a name: its history, and the exchange in progress."""

from datetime import datetime
from itertools import takewhile
from secrets import token_hex

from msgspec.structs import replace

from tertulia.messages import Place
from tertulia.run.chat_history import History
from tertulia.run.chat_values import SERVICE, ChatStore, HistoryEntry, OpenExchange, place_of_chat
from tertulia.run.journal import Journal, Run
from tertulia.run.tool_runs import results_after_cancel
from tertulia.turns import Turn, user


class UnstoredChat:
    """A chat that no store has."""

    place = Place(platform=SERVICE, id="", kind="direct")

    def __init__(self) -> None:
        self._delimiter = token_hex(6)

    async def delimiter(self) -> str:
        return self._delimiter


class StoredChat:
    """Persists a chat. The steps of an open exchange are in the journal of its run; its turns are saved at its end."""

    def __init__(self, store: ChatStore, name: str) -> None:
        self.runs = store.runs
        self.place = place_of_chat(name)
        self._chats = store.chats
        self._store = store
        self._name = name
        self._saved: list[HistoryEntry] = []
        self._edition: int | None = None
        self._is_empty = False

    async def delimiter(self) -> str:
        """Return the delimiter of the chat."""
        return await self._store.place_settings.delimiter(self.place)

    def clear(self) -> None:
        """Let the next `save` replace all entries."""
        self._is_empty = True

    async def is_outdated(self) -> bool:
        """Return whether something in the chat was forgotten since it was read. A cleared chat is not outdated."""
        edition = await self._chats.edition(self._name)
        if self._is_empty:
            self._saved, self._edition, self._is_empty = [], edition, False
        return edition != self._edition

    async def load(self, history: History) -> tuple[OpenExchange, Journal | None] | None:
        """Restore the stored history; return the exchange that an earlier process left open, if there is one."""
        state = await self._chats.read(self._name)
        history.restore(state.entries)
        self._saved, self._edition = list(state.entries), state.edition
        if state.exchange is None:
            return None
        return state.exchange, await self.runs.journal(state.exchange.run_id)

    async def save(self, history: History, exchange: OpenExchange | None = None) -> None:
        entries = history.entries
        pairs = zip(self._saved, entries, strict=False)
        start = sum(1 for _ in takewhile(lambda pair: pair[0] is pair[1], pairs))  # entries before it are saved
        self._edition = await self._chats.write(self._name, start, entries[start:], exchange, edition=self._edition)
        self._saved = list(entries)

    async def begin(self, history: History, journal: Journal, asked: Turn | None) -> None:
        """Persist an exchange before the model is asked."""
        run = journal.run
        await self.save(history, OpenExchange(run_id=run.id, asked=asked))
        await self.runs.begin(run, journal.last_prompt, at=run.began_at)

    async def end(self, history: History, run: Run, *, at: datetime, failed: bool) -> None:
        await self.save(history)
        await self.runs.end(replace(run, status="failed" if failed else "done", ended_at=at))


def replay(history: History, asked: Turn | None, journal: Journal | None) -> Turn | None:
    """Append the finished steps of an exchange to the history; return *asked* if no response answers it."""
    for step, record in journal.records if journal else ():
        history.append_record(asked, record)
        asked = None
        if journal and step < journal.step and (results := journal.results_of(step)):
            history.append(user(*results), valid=True)
    return asked


def give_up(history: History, asked: Turn | None, journal: Journal | None) -> None:
    """Append an exchange that is not resumed to the history, as if it had been cancelled where it stopped."""
    asked = replay(history, asked, journal)
    if asked is not None:
        history.append_unanswered(asked, Turn(role="model", parts=()))
    last = journal.last_record() if journal else None
    if journal and last and last.valid:
        begun = [(tool.number, tool.call) for tool in journal.tools_of(journal.step)]
        results = [*results_after_cancel(journal, begun)]
        if results:
            history.append(user(*results), valid=True)
