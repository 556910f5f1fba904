"""What the store tells about the conversation in the terminal: where it stands, what was said, what is planned."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from msgspec.structs import replace

from palaver.parts import Text
from palaver.platforms.terminal.defaults import PLACE
from palaver.platforms.terminal.text import history_summary, message_lines
from palaver.run.clean.cleaner import clean
from palaver.store import Store
from palaver.turns import Turn

MAX_MESSAGES = 50  # messages that are shown
UNANSWERED = "(what was said last had no answer yet; here it is)"


class HistoryView:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def delimiter(self) -> str:
        return await self._store.place_settings.delimiter(PLACE)

    async def summary(self, now: datetime, *, anew: str) -> list[str]:
        """Where an earlier process left off, in a line or two; nothing where nothing was said."""
        start, count = await self._span()
        if count <= start:
            return []
        (last,) = await self._store.log.read(PLACE, count - 1, count)
        lines = [history_summary(count - start, last.sent_at, now, anew=f"{anew} begins anew")]
        return [*lines, UNANSWERED] if await self._is_open() else lines

    async def history(self) -> list[str]:
        """The last messages since the conversation began, with what the model did to write its own."""
        start, count = await self._span()
        first = max(start, count - MAX_MESSAGES)
        messages = [message for message in await self._store.log.read(PLACE, first, count) if not message.deleted]
        if not messages:
            return ["(nothing has been said yet)"]
        made = await self._store.log.turns(messages)
        hidden = await self.delimiter()
        lines = [f"(… {first - start:,} before)"] if first > start else []
        for message in messages:
            lines += message_lines(message, list(_clean_turns(made.get(message.id, ()), hidden)))
        return lines

    async def _span(self) -> tuple[int, int]:
        """The numbers of the first message of the conversation and of the next that comes."""
        return await self._store.place_settings.beginning(PLACE), await self._store.log.count(PLACE)

    async def _is_open(self) -> bool:
        open_here = any(run.place == PLACE for run in await self._store.runs.open())
        return open_here or bool(await self._store.inbox.waiting(PLACE))


def _clean_turns(turns: Sequence[Turn], hidden: str) -> Iterator[Turn]:
    """The turns without our markup, which nobody is to see."""
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
