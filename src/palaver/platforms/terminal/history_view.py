"""HistoryView: the stored conversation, as lines for the terminal."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from msgspec.structs import replace

from palaver.parts import Text
from palaver.platforms.terminal.defaults import PLACE
from palaver.platforms.terminal.text import history_summary, message_lines
from palaver.run.cleaner import clean
from palaver.store import Store
from palaver.turns import Turn

MAX_MESSAGES = 50  # that /history shows
UNANSWERED = "(what was said last had no answer yet; here it is)"


class HistoryView:
    """Reads the messages of the terminal's place from the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def delimiter(self) -> str:
        return await self._store.place_settings.delimiter(PLACE)

    async def summary(self, now: datetime, *, anew: str) -> list[str]:
        """Return how many messages there are and how old the last one is, in a line or two; none for an empty
        history.
        """
        start, count = await self._span()
        if count <= start:
            return []
        (last,) = await self._store.log.read(PLACE, count - 1, count)
        lines = [history_summary(count - start, last.sent_at, now, anew=f"{anew} begins anew")]
        return [*lines, UNANSWERED] if await self._is_open() else lines

    async def history(self) -> list[str]:
        """Return the last messages of the conversation; those of the model with its calls and results."""
        start, count = await self._span()
        first = max(start, count - MAX_MESSAGES)
        messages = [message for message in await self._store.log.read(PLACE, first, count) if not message.deleted]
        if not messages:
            return ["(nothing has been said yet)"]
        turns = await self._store.log.turns(messages)
        hidden = await self.delimiter()
        lines = [f"(… {first - start:,} before)"] if first > start else []
        for message in messages:
            lines += message_lines(message, list(_clean_turns(turns.get(message.id, ()), hidden)))
        return lines

    async def _span(self) -> tuple[int, int]:
        """Return the numbers of the first message of the conversation and of the next message."""
        return await self._store.place_settings.beginning(PLACE), await self._store.log.count(PLACE)

    async def _is_open(self) -> bool:
        open_here = any(run.place == PLACE for run in await self._store.runs.open())
        return open_here or bool(await self._store.inbox.waiting(PLACE))


def _clean_turns(turns: Sequence[Turn], hidden: str) -> Iterator[Turn]:
    """Yield the turns without our markup."""
    for turn in turns:
        yield (
            turn
            if turn.role == "user"
            else replace(
                turn,
                parts=tuple(
                    replace(part, text=clean(part.text, delimiter=hidden)) if isinstance(part, Text) else part
                    for part in turn.parts
                ),
            )
        )
