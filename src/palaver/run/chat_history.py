"""What was said in a chat, twice: all of it, and what may be sent again."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from datetime import datetime
from itertools import takewhile
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from palaver.errors import InvalidValue
from palaver.jsonio import jsonable
from palaver.models.base import Response
from palaver.parts import Part, ToolCall, ToolResult
from palaver.turns import Record, Turn, cut_turn, user
from palaver.wire.pairing import calls_of, results_of
from palaver.wire.pairing import pair_results as match_results

MessageInput = str | Part | Sequence[str | Part]


class HistoryEntry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One step of a history: a record, and whether its turn is sent; or a turn that is sent and has no record."""

    record: Record | None = None
    is_sent: bool = True
    turn: Turn | None = None


class History:
    """The records of every turn; the curated turns, among which every result has its call."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self.records: list[Record] = []
        self.curated: list[Turn] = []
        self.sent: list[Turn] = []  # the curated turns as a model is shown them
        self.entries: list[HistoryEntry] = []  # all of it, in order

    def add(self, turns: Iterable[Turn]) -> None:
        """Keep turns of the caller's; anything else among them could never be sent."""
        for turn in turns if isinstance(turns, Iterable) else [turns]:
            if not isinstance(turn, Turn):
                read = "msgspec.json.decode(data, type=list[Turn]) reads them back"
                raise InvalidValue(f"a history is made of Turn values, not of {repr(turn)[:80]}; {read}")
            self.append(turn, valid=True)

    def append(self, turn: Turn, *, valid: bool, raw: dict[str, Any] | None = None) -> None:
        self._append(jsonable(turn), valid=valid, raw=raw)

    def _append(self, turn: Turn, *, valid: bool, raw: dict[str, Any] | None = None) -> None:
        """Keep a turn that JSON can hold."""
        self._enter(HistoryEntry(record=Record(turn=turn, at=self._now(), valid=valid, raw=raw), is_sent=valid))

    def restore(self, entries: Iterable[HistoryEntry]) -> None:
        """Have what was stored before all else."""
        for entry in entries:
            self._enter(entry)

    def append_record(self, asked: Turn | None, record: Record) -> None:
        """Keep a response that a journal has, and what it answers."""
        if asked is not None:
            self._append_asked(asked, valid=record.valid)
        self._enter(HistoryEntry(record=record, is_sent=record.valid))

    def _enter(self, entry: HistoryEntry) -> None:
        self.entries.append(entry)
        if entry.record is not None:
            self.records.append(entry.record)
        turn = entry.turn or (entry.record.turn if entry.record and entry.is_sent else None)
        if turn is not None:
            self.curated.append(turn)
            self.sent.append(cut_turn(turn))

    def append_response(self, asked: Turn | None, response: Response) -> None:
        """Keep a response, whose turn JSON can hold, and what it answers."""
        valid = response.valid
        if asked is not None:
            self._append_asked(asked, valid=valid)
        self._append(response.turn, valid=valid, raw=response.raw)

    def append_unanswered(self, asked: Turn | None, said: Turn) -> None:
        """Keep a turn that got no response, and what had arrived of one; only results stay in what is sent."""
        if asked is not None:
            self._append_asked(asked, valid=False)
        if said.parts:
            self.append(said, valid=False)

    def _append_asked(self, asked: Turn, *, valid: bool) -> None:
        results = [part for part in asked.parts if isinstance(part, ToolResult)]
        self._append(asked, valid=valid or len(results) == len(asked.parts))
        if results and not valid and len(results) < len(asked.parts):
            self._enter(HistoryEntry(turn=user(*results)))  # the calls they answer are in what is sent

    def user_turn(self, message: MessageInput) -> Turn:
        """The person's turn."""
        listed = isinstance(message, Iterable) and not isinstance(message, bytes | dict)
        parts = [message] if isinstance(message, str | Part) else list(message) if listed else []
        if not parts:
            raise InvalidValue(f"a message is text, a part, or a list of both, not {message!r}")
        return jsonable(user(*parts))

    def answer(self, results: Sequence[ToolResult], is_for_caller: Callable[[ToolCall], bool]) -> None:
        """Keep the caller's results and those known before as one turn, in the order of the calls, under their ids.

        Until the model has answered, those of calls that the toolbox *leaves* to the caller may be given anew.
        """
        calls, turns = self._last_step()
        known = match_results(calls, results_of(turns))
        run = [None if is_for_caller(call) else result for call, result in zip(calls, known, strict=True)]
        given = results_of([jsonable(user(*results))])
        added, anew = _filled(calls, known, given), _filled(calls, run, given)
        changed = anew and [new or old for new, old in zip(anew, known, strict=True)]
        together = changed if added is None or changed == known else added
        if together is None:
            names = (f"{call.name} (id {call.id})" if call.id else call.name for call in self.open_calls(is_for_caller))
            raise InvalidValue(f"a result answers no call; the calls that wait are: {', '.join(names) or 'none'}")
        for turn in reversed(turns):
            self._take_back(turn)
        self.append(user(*filter(None, together)), valid=True)

    def open_calls(self, is_for_caller: Callable[[ToolCall], bool]) -> list[ToolCall]:
        """The calls of the last step that the caller is to answer, or may answer anew: the model has not read on."""
        calls, turns = self._last_step()
        known = match_results(calls, results_of(turns))
        return [call for call, result in zip(calls, known, strict=True) if result is None or is_for_caller(call)]

    def _last_step(self) -> tuple[list[ToolCall], list[Turn]]:
        """The calls of the model's turn with which what is sent ends, and the turns of results after it."""
        known = list(takewhile(_only_results, reversed(self.curated)))[::-1]
        before = self.curated[: len(self.curated) - len(known)]
        return calls_of(turn for turn in before[-1:] if turn.role == "model"), known

    def _take_back(self, turn: Turn) -> None:
        """Remove the last turn of what is sent, and its record, if it is the last one too."""
        self.curated.pop()
        self.sent.pop()
        is_last = self.records[-1].turn is turn
        if is_last:
            self.records.pop()
        place = next(number for number in reversed(range(len(self.entries))) if self._sends(number, turn))
        record = None if is_last else self.entries[place].record
        self.entries[place : place + 1] = [HistoryEntry(record=record, is_sent=False)] if record else []

    def _sends(self, number: int, turn: Turn) -> bool:
        entry = self.entries[number]
        return entry.turn is turn or (entry.is_sent and entry.record is not None and entry.record.turn is turn)


def _only_results(turn: Turn) -> bool:
    return turn.role == "user" and all(isinstance(part, ToolResult) for part in turn.parts)


def _filled(
    calls: Sequence[ToolCall], known: Sequence[ToolResult | None], results: Sequence[ToolResult]
) -> list[ToolResult | None] | None:
    """For each call the result known or given, under its id; None where one given answers no call that waits."""
    given = [*filter(None, known), *results]
    strange = Counter(one.id for one in given if one.id) - Counter(call.id for call in calls if call.id)
    matched = match_results(calls, given)
    if strange or len([one for one in matched if one]) < len(given):
        return None
    return [one and replace(one, id=call.id, name=call.name) for call, one in zip(calls, matched, strict=True)]


Pieces = AsyncGenerator[Part | Response, None]

LEFT = "another message was sent while nobody awaited the next piece of this stream, which closed it"


class Exchange:
    """An exchange from its first request to its end, of which only its reader and the next who speaks know."""

    def __init__(self, exchange: Pieces) -> None:
        self._exchange = exchange
        self._idle = asyncio.Event()  # nobody awaits a piece: its reader does something else, has left, or it is over
        self._over = False
        self._left = False

    def given(self) -> None:
        """The reader has a piece, and may come back for the next."""
        self._idle.set()

    def read_on(self) -> None:
        if self._left:
            raise InvalidValue(LEFT)
        self._idle.clear()

    async def close(self) -> None:
        """End it, unless whoever speaks next has done so."""
        if self._left:
            return
        self._idle.clear()
        try:
            await self._exchange.aclose()
        finally:
            self._over = True
            self._idle.set()

    async def make_way(self) -> None:
        """Wait while its next piece is awaited; close it once nobody does."""
        while not self._idle.is_set():
            await self._idle.wait()
        if not self._over:
            self._left = self._over = True
            await self._exchange.aclose()
