"""A conversation with a model: what was said stays, what went wrong does not spoil it."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from palaver.agent.answers import AnswerType
from palaver.agent.loop import STEPS, run_agent
from palaver.agent.toolbox import Function, Tool, Toolbox
from palaver.errors import AnswerUnfit, InvalidValue
from palaver.models.base import Model, Response
from palaver.parts import Part, ToolCall, ToolResult
from palaver.turns import Layer, Prompt, Record, Settings, ToolSpec, Turn, user
from palaver.wire.pairing import answer as match_results

Said = str | Part | Sequence[str | Part]
Pieces = AsyncGenerator[Part | Response, None]


def _now() -> datetime:
    return datetime.now(UTC)


class Chat:
    """`Chat(model, system=…, tools=[…])`: functions among the tools are run, bare declarations come back as calls.

    Two histories: the comprehensive one keeps every turn, the curated one only what may be sent again. An exchange
    whose response is invalid, or that fails or is cancelled, stays out of the curated history as a whole; tool results
    that were known by then stay in it.
    """

    def __init__(
        self,
        model: Model,
        *,
        system: str = "",
        tools: Toolbox | Iterable[Function | Tool | ToolSpec] = (),
        history: Iterable[Turn] = (),
        settings: Settings | None = None,
        steps: int = STEPS,
        now: Callable[[], datetime] = _now,
    ) -> None:
        if not hasattr(model, "respond"):
            raise InvalidValue(f"a chat is with a model, such as model_named({model!r}), not with {model!r}")
        self.model = model
        self.system = system
        self.settings = settings or Settings()
        self._toolbox = tools if isinstance(tools, Toolbox) else Toolbox(tools)
        self._steps = steps
        self._now = now
        self.records: list[Record] = []
        self._curated: list[Turn] = []
        self._pending: list[ToolResult] = []  # of a step in which the caller is to answer other calls
        self._speaking = asyncio.Lock()
        self._standing: tuple[Pieces, asyncio.Task[Any] | None] | None = None  # the stream under way, and who reads it
        for turn in history:
            self.add_to_history(turn)

    @property
    def history(self) -> tuple[Turn, ...]:
        """The curated history: what is sent with the next message."""
        return tuple(self._curated)

    def get_history(self, curated: bool = False) -> tuple[Turn, ...]:
        """Every turn there was, or the curated ones."""
        return self.history if curated else tuple(record.turn for record in self.records)

    def clear_history(self) -> None:
        self.records.clear()
        self._curated.clear()
        self._pending.clear()

    def add_to_history(self, turn: Turn) -> None:
        self._keep(turn, valid=True)

    async def send_message(self, message: Said, *, answer: Any = None, settings: Settings | None = None) -> Any:
        """The model's response to *message*; with `answer=T` the answer itself, as a T."""
        wanted = AnswerType(answer) if answer is not None else None
        response = await self._send(lambda: self._spoken(message), settings, wanted)
        if wanted is None:
            return response
        if response.function_calls:
            raise InvalidValue(
                f"{self.model.name} calls {response.function_calls[0].name}, which the caller is to answer"
            )
        try:
            return wanted.read(response.text)
        except ValueError as error:
            again = user(f"That does not fit: {error}. Answer again with JSON that fits the schema, and nothing else.")
            response = await self._send(lambda: again, settings, wanted)
        try:
            return wanted.read(response.text)
        except ValueError as error:
            raise AnswerUnfit(f"{self.model.name} gave no answer that fits, twice: {error}") from error

    def send_message_stream(self, message: Said, *, settings: Settings | None = None) -> Pieces:
        """The pieces of the answer as they come, tool calls and results among them, and last the response."""
        given: list[Pieces] = []
        given.append(self._alone(self._exchange(lambda: self._spoken(message), settings, streaming=True), given))
        return given[0]

    async def send_function_responses(
        self, results: ToolResult | Iterable[ToolResult], *, settings: Settings | None = None
    ) -> Response:
        """Answer the calls of the last response; results without an id are matched by name and order."""
        given = [results] if isinstance(results, ToolResult) else list(results)
        return await self._send(lambda: user(*self._matched(given)), settings, None)

    async def _send(
        self, opening: Callable[[], Turn], settings: Settings | None, wanted: AnswerType | None
    ) -> Response:
        chosen = settings or self.settings
        if wanted is not None:
            chosen = replace(chosen, answer=wanted.schema)
        response = None
        exchange = self._exchange(opening, chosen, streaming=False)
        async with aclosing(self._alone(exchange, [])) as pieces:
            async for piece in pieces:
                response = piece
        assert isinstance(response, Response)  # noqa: S101 (an exchange ends in one, or raises)
        return response

    def _spoken(self, message: Said) -> Turn:
        """The person's turn; results that wait for a caller who goes on talking instead go with it."""
        parts = [message] if isinstance(message, str | Part) else list(message)
        turn = user(*self._pending, *parts)
        self._pending = []
        return turn

    def _matched(self, results: list[ToolResult]) -> list[ToolResult]:
        calls = self._open_calls()
        matched = match_results(calls, [*self._pending, *results])
        if len([one for one in matched if one]) < len(self._pending) + len(results):
            names = ", ".join(call.name for call in calls) or "none"
            raise InvalidValue(f"a result answers no call; the calls that wait are: {names}")
        self._pending = []
        return [
            replace(result, id=call.id, name=call.name)
            for call, result in zip(calls, matched, strict=True)
            if result is not None
        ]

    def _open_calls(self) -> list[ToolCall]:
        last = self._curated[-1] if self._curated else None
        return [part for part in last.parts if isinstance(part, ToolCall)] if last and last.role == "model" else []

    async def _alone(self, exchange: Pieces, given: list[Pieces]) -> Pieces:
        """The exchange after the one before it, whose stream is closed if its reader has left it standing."""
        await self._close_what_stands()
        async with self._speaking, aclosing(exchange):
            self._standing = (given[0], asyncio.current_task()) if given else None
            try:
                async for piece in exchange:
                    yield piece
            finally:
                self._standing = None

    async def _close_what_stands(self) -> None:
        """Close a stream that nobody reads on: its reader is the one who speaks now, or is gone."""
        if self._standing is None:
            return
        stream, reader = self._standing
        left = reader is None or reader is asyncio.current_task() or reader.done()
        if left and not getattr(stream, "ag_running", False):
            await stream.aclose()

    async def _exchange(self, opening: Callable[[], Turn], settings: Settings | None, *, streaming: bool) -> Pieces:
        """One message and all that follows until the model has answered, each step kept as it is known."""
        turn = opening()
        asked: Turn | None = turn
        said: list[Part] = []
        response = None
        run = run_agent(self._prompt(turn, settings), self.model, self._toolbox, steps=self._steps, streaming=streaming)
        try:
            async with aclosing(run):
                async for piece in run:
                    match piece:
                        case Response():
                            self._keep_exchange(asked, piece)
                            asked, said, response = None, [], piece
                        case Turn():
                            asked = self._results(piece, response)
                            for result in piece.parts:
                                yield result
                        case _:
                            said.append(piece)
                            yield piece
        finally:
            if asked is not None:
                self._keep_unanswered(asked, said)
        assert response is not None  # noqa: S101 (a run yields one, or raises)
        yield response

    def _prompt(self, turn: Turn, settings: Settings | None) -> Prompt:
        layers = (
            Layer(name="static", instruction=self.system),
            Layer(name="buffered", turns=tuple(self._curated)),
            Layer(name="trigger", turns=(turn,)),
        )
        return Prompt(layers=layers, tools=self._toolbox.specs, settings=settings or self.settings)

    def _results(self, turn: Turn, response: Response | None) -> Turn | None:
        """The results as the next step's opening; none where the caller has calls of the same step to answer."""
        calls = response.function_calls if response else ()
        if len(turn.parts) == len(calls):
            return turn
        self._pending = [part for part in turn.parts if isinstance(part, ToolResult)]
        return None

    def _keep_exchange(self, asked: Turn | None, response: Response) -> None:
        if asked is not None:
            self._keep_asked(asked, valid=response.valid)
        self._keep(response.turn, valid=response.valid, raw=response.raw)

    def _keep_unanswered(self, asked: Turn, said: list[Part]) -> None:
        """Keep a turn that got no response, and what had arrived of one; only results stay in what is sent."""
        self._keep_asked(asked, valid=False)
        if said:
            self._keep(Turn(role="model", parts=tuple(said), model=self.model.name), valid=False)

    def _keep_asked(self, asked: Turn, *, valid: bool) -> None:
        results = [part for part in asked.parts if isinstance(part, ToolResult)]
        self._keep(asked, valid=valid or len(results) == len(asked.parts))
        if results and not valid and len(results) < len(asked.parts):
            self._curated.append(user(*results))  # the calls they answer are in what is sent

    def _keep(self, turn: Turn, *, valid: bool, raw: dict[str, Any] | None = None) -> None:
        self.records.append(Record(turn=turn, at=self._now(), valid=valid, raw=raw))
        if valid:
            self._curated.append(turn)
