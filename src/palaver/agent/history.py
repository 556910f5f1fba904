"""What was said in a chat, twice: all of it, and what may be sent again."""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from palaver.errors import InvalidValue
from palaver.models.base import Response
from palaver.parts import Part, ToolCall, ToolResult
from palaver.turns import Record, Turn, user
from palaver.wire.pairing import answer as match_results

Said = str | Part | Sequence[str | Part]


class History:
    """The records of every turn; the curated turns, among which every result has its call."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self.records: list[Record] = []
        self.curated: list[Turn] = []
        self._pending: list[ToolResult] = []  # of a step in which the caller is to answer other calls

    def keep(self, turn: Turn, *, valid: bool, raw: dict[str, Any] | None = None) -> None:
        self.records.append(Record(turn=turn, at=self._now(), valid=valid, raw=raw))
        if valid:
            self.curated.append(turn)

    def keep_exchange(self, asked: Turn | None, response: Response) -> None:
        if asked is not None:
            self._keep_asked(asked, valid=response.valid)
        self.keep(response.turn, valid=response.valid, raw=response.raw)

    def keep_unanswered(self, asked: Turn, said: Turn) -> None:
        """Keep a turn that got no response, and what had arrived of one; only results stay in what is sent."""
        self._keep_asked(asked, valid=False)
        if said.parts:
            self.keep(said, valid=False)

    def _keep_asked(self, asked: Turn, *, valid: bool) -> None:
        results = [part for part in asked.parts if isinstance(part, ToolResult)]
        self.keep(asked, valid=valid or len(results) == len(asked.parts))
        if results and not valid and len(results) < len(asked.parts):
            self.curated.append(user(*results))  # the calls they answer are in what is sent

    def spoken(self, message: Said) -> Turn:
        """The person's turn; results that wait for a caller who goes on talking instead go with it."""
        parts = [message] if isinstance(message, str | Part) else list(message)
        turn = user(*self._pending, *parts)
        self._pending = []
        return turn

    def following(self, results: Turn, response: Response | None) -> Turn | None:
        """The results as what is said next; none where the caller has calls of the same response to answer."""
        calls = response.function_calls if response else ()
        if len(results.parts) == len(calls):
            return results
        self._pending = [part for part in results.parts if isinstance(part, ToolResult)]
        return None

    def answered(self, results: Sequence[ToolResult]) -> Turn:
        """The caller's results, and those that waited for them, in the order of the calls and under their ids."""
        calls = self.open_calls()
        given = [*self._pending, *results]
        strange = Counter(one.id for one in given if one.id) - Counter(call.id for call in calls if call.id)
        matched = match_results(calls, given)
        if strange or len([one for one in matched if one]) < len(given):
            waiting = ", ".join(f"{call.name} (id {call.id})" if call.id else call.name for call in self._left(calls))
            raise InvalidValue(f"a result answers no call; the calls that wait are: {waiting or 'none'}")
        self._pending = []
        return user(
            *(
                replace(result, id=call.id, name=call.name)
                for call, result in zip(calls, matched, strict=True)
                if result is not None
            )
        )

    def open_calls(self) -> list[ToolCall]:
        """The calls of the last turn, none of which is answered in what is sent."""
        last = self.curated[-1] if self.curated else None
        return [part for part in last.parts if isinstance(part, ToolCall)] if last and last.role == "model" else []

    def _left(self, calls: list[ToolCall]) -> list[ToolCall]:
        """The calls that the caller is to answer."""
        return [call for call, known in zip(calls, match_results(calls, self._pending), strict=True) if known is None]
