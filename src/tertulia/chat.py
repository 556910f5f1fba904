"""`Chat`: a conversation with a model, with a history that stays valid when a request fails."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import aclosing
from datetime import UTC, datetime
from secrets import token_hex
from typing import Any, Self, TypeVar, overload

from msgspec.structs import replace

from tertulia.chat_context import ChatContext, ChatLayers
from tertulia.context.gather import ContextOptions
from tertulia.errors import AnswerUnfit, InvalidValue
from tertulia.media.large_data import LargeData
from tertulia.models import model_named
from tertulia.models.base import Model, Response, Usage
from tertulia.parts import Part, Text, Thought, ToolCall, ToolResult
from tertulia.run.answer_type import AnswerType
from tertulia.run.chat_history import Exchange, History, MessageInput, Pieces, user_turn
from tertulia.run.chat_values import ChatStore, OpenExchange
from tertulia.run.fallbacks import ExpiredFiles
from tertulia.run.journal import InMemoryJournal, Journal, Run, ToolRun
from tertulia.run.loop import (
    STEPS,
    NoAnswer,
    RunAnswered,
    RunLoop,
    RunOptions,
    ToolsStopped,
    optional_tools,
    without_tools,
)
from tertulia.run.model_calls import CALL_TIMEOUT, AttemptFailed, ModelCalls, RetryWaits
from tertulia.run.run_host import RunHost
from tertulia.run.stored_chat import StoredChat, UnstoredChat, give_up, replay
from tertulia.toolbox.toolbox import Function, Tool, Toolbox
from tertulia.turns import Layer, Prompt, Record, Settings, ToolSpec, Turn, cut_turn, user
from tertulia.type_checks import require_options

T = TypeVar("T")

Opening = Callable[[History], Turn | None]  # returns the turn to send; appends results itself, and returns None


class _ChatHost(RunHost):
    """What the loop of an exchange asks of its chat."""

    def __init__(self, layers: ChatLayers, large_data: LargeData, expired_files: ExpiredFiles) -> None:
        super().__init__(attachments=large_data, expired_files=expired_files)
        self._layers = layers
        self._large_data = large_data

    async def refresh(self, prompt: Prompt) -> Prompt:
        return await self._layers.refresh(prompt)

    async def store_media(self, run: Run, result: ToolResult) -> ToolResult:
        return await self._large_data.fetch_result(result)


def _now() -> datetime:
    return datetime.now(UTC)


class Chat:
    """`Chat("gemini-3.8-flash", system=…, tools=[…])`: functions are run, bare declarations come back as calls.

    The model is given as such, or by its name, with the *base_url* of its service if that is another. `async with
    Chat(…)` closes its connections at the end.

    A chat has two histories. The comprehensive one holds every turn; the curated one only turns that may be sent again.
    A message whose response is invalid, fails or is cancelled is not in the curated history. Once tools were called,
    the calls are in it, with the results known by then; a tool that was stopped gets a result that says so.

    With a *store* and a *name* the chat is durable: a chat opened with the same name has the same history, and `resume`
    finishes an exchange that was open when a process ended. A message is stored before the model is asked.

    With a *context* its prompts have the four layers of an engine: the instruction with old messages in words, what the
    sources give, the newest turns, and the message. Without one they are the instruction and all turns.

    A model call that takes longer than *call_timeout* seconds in all raises `TimedOut`.

    An uploaded file that has expired is named in no later request: its bytes are sent instead, or words. Media that are
    too large for one request are uploaded, where the service takes files.
    """

    def __init__(
        self,
        model: Model | str,
        *,
        base_url: str | None = None,
        system: str = "",
        tools: Toolbox | Iterable[Function | Tool | ToolSpec] = (),
        history: Iterable[Turn] = (),
        context: ContextOptions | None = None,
        settings: Settings | None = None,
        steps: int = STEPS,
        call_timeout: float | None = CALL_TIMEOUT,
        store: ChatStore | None = None,
        name: str = "",
        now: Callable[[], datetime] = _now,
    ) -> None:
        if (store is None) != (not name):
            raise InvalidValue("a chat that is stored has a name, and only such a chat: Chat(model, store=…, name=…)")
        if not isinstance(model, str) and not hasattr(model, "respond"):
            raise InvalidValue(f"a chat is with a model or its name, such as Chat('gemini-3.8-flash'), not {model!r}")
        if base_url and not isinstance(model, str):
            raise InvalidValue("base_url goes with the name of a model; a model has its own: Gemini(name, base_url=…)")
        require_options("a chat", (context, ContextOptions), (settings, Settings))
        self.model: Model = model_named(model, base_url=base_url) if isinstance(model, str) else model
        self.usage = Usage()  # of all calls of the model so far, as the service counts them
        self.system = system
        self.settings = settings or Settings()
        self._toolbox = tools if isinstance(tools, Toolbox) else Toolbox(tools)
        self._steps = steps
        self._call_timeout = call_timeout
        self._now = now
        self._history = History(now)
        self._expired_files = ExpiredFiles()
        self._large_data = LargeData(now=now, runs=lambda name: not self._toolbox.is_for_caller(ToolCall(name=name)))
        self._next = asyncio.Lock()  # held by the next exchange until the one before it has ended
        self._exchange: Exchange | None = None  # the last one
        self._history.add(history)
        self._stored = StoredChat(store, name) if store is not None else None
        self._home = self._stored or UnstoredChat()
        self._context = ChatContext(context, self._home, now=now)
        self._is_loaded = store is None
        self._left_open: tuple[OpenExchange, Journal | None] | None = None  # by an earlier process

    async def __aenter__(self) -> Self:
        await self.load()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections of the model, after uploads that are under way are stopped."""
        await self._large_data.close()
        if aclose := getattr(self.model, "aclose", None):
            await aclose()

    async def load(self) -> None:
        """Read the history that is stored under the chat's name. Sending a message does that first.

        It is read again after something in it was forgotten; turns that were added since and not sent are dropped then.
        """
        if self._stored is None or (self._is_loaded and not await self._stored.is_outdated()):
            return
        given = History(self._now) if self._is_loaded else self._history
        self._history = History(self._now)
        self._left_open = await self._stored.load(self._history)
        self._is_loaded = True
        if not self._history.entries:
            self._history.restore(given.entries)

    async def resume(self) -> Response | None:
        """Finish the exchange that an earlier process left open; return None if there is none.

        Sending a message instead ends that exchange where it stopped, as if it had been cancelled there.
        """
        await self.load()
        return await self._last_response(self._resume()) if self._left_open is not None else None

    @property
    def history(self) -> tuple[Turn, ...]:
        """The curated history, which is sent with the next message; long tool results are whole here."""
        return tuple(self._history.curated)

    @property
    def records(self) -> list[Record]:
        """Every turn with its time, whether it is valid, and the response it came in."""
        return self._history.records

    def get_history(self, curated: bool = False) -> tuple[Turn, ...]:
        """Return every turn, or the curated ones."""
        return self.history if curated else tuple(record.turn for record in self.records)

    def clear_history(self) -> None:
        """Remove all turns, those of an open exchange too. A stored chat is emptied when the next message is sent."""
        self._history = History(self._now)
        self._is_loaded, self._left_open = True, None
        if self._stored is not None:
            self._stored.clear()

    def add_to_history(self, turn: Turn) -> None:
        self._history.add([turn])

    @overload
    async def send_message(
        self, message: MessageInput, *, answer: None = None, settings: Settings | None = None
    ) -> Response: ...

    @overload
    async def send_message(self, message: MessageInput, *, answer: type[T], settings: Settings | None = None) -> T: ...

    @overload
    async def send_message(self, message: MessageInput, *, answer: Any, settings: Settings | None = None) -> Any: ...

    async def send_message(self, message: MessageInput, *, answer: Any = None, settings: Settings | None = None) -> Any:
        """Send *message* and return the response; with `answer=T`, the answer as a T."""
        wanted = AnswerType(answer) if answer is not None else None
        response = await self._send(lambda _: user_turn(message), settings, wanted)
        if wanted is None:
            return response
        if response.function_calls:
            called = f"{self.model.name} calls {response.function_calls[0].name}"
            cut = response.finish.outcome == "cut"
            why = "and reached the limit of tokens; raise max_tokens" if cut else "which the caller is to answer"
            raise InvalidValue(f"{called}, {why}")
        try:
            return wanted.read(response.text)
        except ValueError as error:
            again = user(f"That does not fit: {error}. Answer again with JSON that fits the schema, and nothing else.")
            response = await self._send(lambda _: again, optional_tools(settings or self.settings), wanted)
        try:
            return wanted.read(response.text)
        except ValueError as error:
            raise AnswerUnfit(f"{self.model.name} gave no answer that fits, twice: {error}") from error

    def send_message_stream(self, message: MessageInput, *, settings: Settings | None = None) -> Pieces:
        """Send *message* and yield the pieces of the answer, tool calls and results among them, then the response.

        Another message waits while the next piece is awaited. If nobody awaits it, the stream is closed.
        """
        return self._one_at_a_time(self._run_message(lambda _: user_turn(message), settings, streaming=True))

    async def stream_text(self, message: MessageInput, *, settings: Settings | None = None) -> AsyncIterator[str]:
        """Send *message* and yield the text of the answer, piece by piece; tools are run between the pieces."""
        async with aclosing(self.send_message_stream(message, settings=settings)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Text):
                    yield piece.text

    async def send_function_responses(
        self, results: ToolResult | Iterable[ToolResult], *, settings: Settings | None = None
    ) -> Response:
        """Answer the calls of the last response: by id, and results without one by name and order.

        When the request fails the calls stay open, and the results may be given again. Tools that the chat's settings
        require were called: the model need not call them again.
        """
        given = [results] if isinstance(results, ToolResult) else list(results)
        if not given or not all(isinstance(one, ToolResult) for one in given):
            raise InvalidValue(f"calls are answered with one ToolResult or more, not with {given!r}")

        def append_results(history: History) -> None:
            history.answer(given, self._toolbox.is_for_caller)

        return await self._send(append_results, settings or optional_tools(self.settings), None)

    async def _send(self, opening: Opening, settings: Settings | None, wanted: AnswerType | None) -> Response:
        settings = settings or self.settings
        if wanted is not None:
            settings = replace(settings, answer=wanted.schema)
        return await self._last_response(self._run_message(opening, settings, streaming=False))

    async def _last_response(self, pieces: Pieces) -> Response:
        response = None
        async with aclosing(self._one_at_a_time(pieces)) as exchange:
            async for piece in exchange:
                response = piece
        assert isinstance(response, Response)  # noqa: S101 (an exchange ends in one, or raises)
        return response

    async def _one_at_a_time(self, pieces: Pieces) -> Pieces:
        """Yield the pieces of an exchange after the one before it has ended; that is closed if nobody awaits it.

        The response is yielded after the exchange has ended, so that nothing is left open if nobody reads on.
        """
        exchange = Exchange(pieces)
        async with self._next:
            if self._exchange is not None:
                await self._exchange.close_when_idle()
            self._exchange = exchange
        try:
            async for piece in pieces:
                if isinstance(piece, Response):
                    break
                exchange.mark_idle()
                yield piece
                exchange.mark_busy()
        finally:
            await exchange.close()
        yield piece

    async def _run_message(self, opening: Opening, settings: Settings | None, *, streaming: bool) -> Pieces:
        """Run an exchange from its message to the model's answer."""
        await self.load()
        if self._left_open is not None:
            (exchange, journal), self._left_open = self._left_open, None
            give_up(self._history, exchange.asked, journal)
        asked = opening(self._history)
        async with aclosing(self._run(asked, self._layers(asked), settings=settings, streaming=streaming)) as pieces:
            async for piece in pieces:
                yield piece

    async def _resume(self) -> Pieces:
        """Run the exchange that an earlier process left open, from where its journal ends."""
        assert self._left_open is not None  # noqa: S101 (who calls it has looked)
        (exchange, journal), self._left_open = self._left_open, None
        layers = self._layers(exchange.asked)
        asked = replay(self._history, exchange.asked, journal)
        async with aclosing(self._run(asked, layers, journal)) as pieces:
            async for piece in pieces:
                yield piece

    async def _run(
        self,
        asked: Turn | None,
        layers: ChatLayers,
        journal: Journal | None = None,
        *,
        settings: Settings | None = None,
        streaming: bool = False,
    ) -> Pieces:
        """Run the loop from the end of *journal*, or from its start, and append each step to the history."""
        history = self._history  # if it is cleared meanwhile, the steps of this exchange go with it
        begun = journal or self._new_journal(await layers.build(), settings)
        loop = self._loop(begun, layers, streaming=streaming)
        if self._stored is not None and journal is None:
            await self._stored.begin(history, loop.journal, asked)
        arrived: list[Part] = []  # of the response that streams in
        response = None
        try:
            async with aclosing(loop.run()) as events:
                async for event in events:
                    match event:
                        case Response():
                            response = self._with_cut_calls_named(event)
                            self.usage += event.usage
                            history.append_response(asked, response)
                            asked, arrived = None, []
                        case Turn():
                            history.append(event, valid=True)
                            for result in event.parts:
                                yield result
                        case AttemptFailed():
                            arrived = []
                        case ToolsStopped():
                            history.append(event.results, valid=True)
                        case ToolRun() | RetryWaits():
                            pass
                        case Text(text="") | Thought(text=""):
                            arrived.append(event)  # a signature alone: nothing to show
                        case RunAnswered():
                            response = response or event.response
                        case _:
                            arrived.append(event)
                            yield event
        except NoAnswer:
            pass  # the response itself says why
        finally:
            if asked is not None or arrived:
                history.append_unanswered(asked, Turn(role="model", parts=tuple(arrived), model=self.model.name))
            if self._stored is not None:
                await self._stored.end(self._history, loop.worked_run, at=self._now(), failed=response is None)
        assert response is not None  # noqa: S101 (a run yields one, or raises)
        yield response

    def _layers(self, asked: Turn | None) -> ChatLayers:
        """Return the layers of an exchange that begins with *asked*, or with the last turn of the history."""
        sent = self._history.sent
        turns = (*sent, cut_turn(asked)) if asked is not None else tuple(sent)
        return self._context.layers(self.system, turns, self.model)

    def _new_journal(self, layers: tuple[Layer, ...], settings: Settings | None) -> Journal:
        prompt = Prompt(layers=layers, tools=self._toolbox.specs, settings=settings or self.settings)
        prompt = self._expired_files.without(prompt)
        first = prompt if self._steps > 0 else without_tools(prompt)
        run = Run(
            id=token_hex(10),
            place=self._home.place,
            target="",
            taken=(),
            began_at=self._now(),
            horizon=0,
            model=self.model.name,
        )
        return Journal(run=run, prompt=first)

    def _loop(self, journal: Journal, layers: ChatLayers, *, streaming: bool) -> RunLoop:
        stored, timeout = self._stored, self._call_timeout
        calls = ModelCalls(streaming=streaming, retries=0, timeout=timeout, now=self._now, noting=stored is not None)
        return RunLoop(
            journal,
            _ChatHost(layers, self._large_data, self._expired_files),
            store=stored.runs if stored else InMemoryJournal(),
            models=[self.model],
            toolbox=self._toolbox,
            calls=calls,
            options=RunOptions(steps=self._steps, fallbacks=()),
        )

    def _with_cut_calls_named(self, response: Response) -> Response:
        """Return the response; if its calls may be cut, its finish names the tools that are therefore not run."""
        names = ", ".join(call.name for call in response.function_calls if not self._toolbox.is_for_caller(call))
        if response.finish.outcome != "cut" or not names:
            return response
        before = f"{response.finish.message} " if response.finish.message else ""
        message = f"{before}Not run, because the call may be cut: {names}."
        return replace(response, finish=replace(response.finish, message=message))
