"""The history of a chat, comprehensive and curated; and the exchange in progress."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from datetime import datetime
from itertools import takewhile

from msgspec.structs import replace

from tertulia.errors import InvalidValue
from tertulia.jsonio import jsonable
from tertulia.models.base import Response
from tertulia.parts import Part, ToolCall, ToolResult
from tertulia.run.chat_values import HistoryEntry
from tertulia.turns import Record, Turn, cut_turn, user
from tertulia.wire.repair import calls_of, results_of
from tertulia.wire.repair import pair_results as match_results

log = logging.getLogger(__name__)

MessageInput = str | Part | Sequence[str | Part]


class History:
    """The records of all turns, and the curated turns, in which every result has its call."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self.records: list[Record] = []
        self.curated: list[Turn] = []
        self.sent: list[Turn] = []  # the curated turns with long texts cut, as a model gets them
        self.entries: list[HistoryEntry] = []  # of both, in order

    def add(self, turns: Iterable[Turn]) -> None:
        """Add turns given by the caller."""
        for turn in turns if isinstance(turns, Iterable) else [turns]:
            if not isinstance(turn, Turn):
                read = "msgspec.json.decode(data, type=list[Turn]) reads them back"
                if isinstance(turn, dict):
                    read = "tertulia.formats.lists has read_openai(messages).turns and read_genai(contents).turns"
                raise InvalidValue(f"a history is made of Turn values, not of {repr(turn)[:80]}; {read}")
            self.append(turn, valid=True)

    def append(self, turn: Turn, *, valid: bool) -> None:
        """Append a turn. Values that JSON cannot hold are made plain."""
        self._append(jsonable(turn), valid=valid)

    def append_record(self, asked: Turn | None, record: Record) -> None:
        """Append the record of a response, and the turn it answers."""
        if asked is not None:
            self._append_asked(asked, valid=record.valid)
        self._append_entry(HistoryEntry(record=record, is_sent=record.valid))

    def append_response(self, asked: Turn | None, response: Response) -> None:
        """Append a response, whose turn JSON can hold, and the turn it answers."""
        self.append_record(asked, Record(turn=response.turn, at=self._now(), valid=response.valid, raw=response.raw))

    def append_unanswered(self, asked: Turn | None, partial: Turn) -> None:
        """Append a turn that got no response, and the part of one that arrived. Only results are sent again."""
        if asked is not None:
            self._append_asked(asked, valid=False)
        if partial.parts:
            self.append(partial, valid=False)

    def restore(self, entries: Iterable[HistoryEntry]) -> None:
        """Append the entries that a store held."""
        for entry in entries:
            self._append_entry(entry)

    def _append(self, turn: Turn, *, valid: bool) -> None:
        self._append_entry(HistoryEntry(record=Record(turn=turn, at=self._now(), valid=valid), is_sent=valid))

    def _append_asked(self, asked: Turn, *, valid: bool) -> None:
        """Append the turn of a request. Its results stay curated if it failed: the calls they answer are."""
        results = [part for part in asked.parts if isinstance(part, ToolResult)]
        self._append(asked, valid=valid or len(results) == len(asked.parts))
        if results and not valid and len(results) < len(asked.parts):
            self._append_entry(HistoryEntry(turn=user(*results)))

    def _append_entry(self, entry: HistoryEntry) -> None:
        self.entries.append(entry)
        if entry.record is not None:
            self.records.append(entry.record)
        turn = entry.turn or (entry.record.turn if entry.record and entry.is_sent else None)
        if turn is not None:
            self.curated.append(turn)
            self.sent.append(cut_turn(turn))

    # Tool pairing. The curated history must hold one result for each call, or a service refuses it. While the model
    # has not answered, results come from two sides: our tools ran some calls, and the caller answers the others,
    # perhaps in several attempts and by name only. So the results after the last model turn are taken out, matched with
    # the calls together with the new ones, and put back as one turn in the order of the calls, under their ids. A
    # result for a call of ours never replaces the one that our tool gave; a result for a call of the caller may.

    def answer(self, results: Sequence[ToolResult], is_for_caller: Callable[[ToolCall], bool]) -> None:
        """Append results of the caller; raise `InvalidValue` if one answers no open call."""
        calls, turns = self._last_step()
        known = match_results(calls, results_of(turns))
        ours = [None if is_for_caller(call) else result for call, result in zip(calls, known, strict=True)]
        given = results_of([jsonable(user(*results))])
        added, replaced = _complete(calls, known, given), _complete(calls, ours, given)
        changed = replaced and [new or old for new, old in zip(replaced, known, strict=True)]
        complete = changed if added is None or changed == known else added
        if complete is None:
            names = _names(self.open_calls(is_for_caller)) or "none"
            raise InvalidValue(f"a result answers no call; the calls that wait are: {names}")
        if missing := [call for call, result in zip(calls, complete, strict=True) if result is None]:
            log.warning("calls that got no result: %s; the model is told that none was recorded", _names(missing))
        for turn in reversed(turns):
            self._remove_last(turn)
        self.append(user(*filter(None, complete)), valid=True)

    def open_calls(self, is_for_caller: Callable[[ToolCall], bool]) -> list[ToolCall]:
        """Return the calls of the last step that the caller is to answer, or may answer again."""
        calls, turns = self._last_step()
        known = match_results(calls, results_of(turns))
        return [call for call, result in zip(calls, known, strict=True) if result is None or is_for_caller(call)]

    def _last_step(self) -> tuple[list[ToolCall], list[Turn]]:
        """Return the calls of the model turn that the curated history ends with, and the turns of results after it."""
        results = list(takewhile(_has_only_results, reversed(self.curated)))[::-1]
        before = self.curated[: len(self.curated) - len(results)]
        return calls_of(turn for turn in before[-1:] if turn.role == "model"), results

    def _remove_last(self, turn: Turn) -> None:
        """Remove the last curated turn, and its record, if that is the last one too."""
        self.curated.pop()
        self.sent.pop()
        is_last = self.records[-1].turn is turn
        if is_last:
            self.records.pop()
        number, entry = next(
            (number, entry)
            for number, entry in reversed(list(enumerate(self.entries)))
            if entry.turn is turn or (entry.is_sent and entry.record is not None and entry.record.turn is turn)
        )
        record = None if is_last else entry.record
        self.entries[number : number + 1] = [HistoryEntry(record=record, is_sent=False)] if record else []


def user_turn(message: MessageInput) -> Turn:
    """Return a person's message as a turn."""
    listed = isinstance(message, Iterable) and not isinstance(message, bytes | dict)
    parts = [message] if isinstance(message, str | Part) else list(message) if listed else []
    if not parts:
        raise InvalidValue(f"a message is text, a part, or a list of both, not {message!r}")
    return jsonable(user(*parts))


def _names(calls: Iterable[ToolCall]) -> str:
    return ", ".join(f"{call.name} (id {call.id})" if call.id else call.name for call in calls)


def _has_only_results(turn: Turn) -> bool:
    return turn.role == "user" and all(isinstance(part, ToolResult) for part in turn.parts)


def _complete(
    calls: Sequence[ToolCall], known: Sequence[ToolResult | None], results: Sequence[ToolResult]
) -> list[ToolResult | None] | None:
    """Return for each call the known or given result, under its id; None if a result answers no call that is open."""
    given = [*filter(None, known), *results]
    unknown_ids = Counter(one.id for one in given if one.id) - Counter(call.id for call in calls if call.id)
    matched = match_results(calls, given)
    if unknown_ids or len([one for one in matched if one]) < len(given):
        return None
    return [one and replace(one, id=call.id, name=call.name) for call, one in zip(calls, matched, strict=True)]


Pieces = AsyncGenerator[Part | Response, None]

STREAM_CLOSED = "another message was sent while nobody awaited the next piece of this stream, which closed it"


class Exchange:
    """An exchange in progress, shared by the reader of its pieces and the next message.

    The next message must wait while the reader awaits a piece. But a reader may also have stopped reading without
    closing the stream. So the exchange is idle between two pieces, and the next message closes it then; a reader that
    comes back gets an error.
    """

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        self._idle = asyncio.Event()  # nobody awaits a piece
        self._is_over = False
        self._is_abandoned = False  # closed by the next message

    def mark_idle(self) -> None:
        """Note that the reader has a piece."""
        self._idle.set()

    def mark_busy(self) -> None:
        """Note that the reader awaits the next piece."""
        if self._is_abandoned:
            raise InvalidValue(STREAM_CLOSED)
        self._idle.clear()

    async def close(self) -> None:
        """End the exchange, unless the next message has closed it."""
        if self._is_abandoned:
            return
        self._idle.clear()
        try:
            await self._pieces.aclose()
        finally:
            self._is_over = True
            self._idle.set()

    async def close_when_idle(self) -> None:
        """Wait until the exchange is over or idle; then close it."""
        while not self._idle.is_set():
            await self._idle.wait()
        if not self._is_over:
            self._is_abandoned = self._is_over = True
            await self._pieces.aclose()
