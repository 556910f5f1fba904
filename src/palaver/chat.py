"""A conversation with a model: what was said stays, what went wrong does not spoil it."""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import aclosing
from datetime import UTC, datetime
from secrets import token_hex
from typing import Any

from msgspec.structs import replace

from palaver.errors import AnswerUnfit, InvalidValue
from palaver.messages import Place
from palaver.models.base import Model, Response
from palaver.parts import Part, Text, Thought, ToolResult
from palaver.run.answer_type import AnswerType
from palaver.run.chat_history import Exchange, History, Pieces
from palaver.run.chat_history import MessageInput as MessageInput
from palaver.run.expired_files import ExpiredFiles
from palaver.run.journal import InMemoryJournal, Journal, Run, ToolRun
from palaver.run.loop import STEPS, NoAnswer, RunAnswered, RunLoop, ToolsStopped, without_tools
from palaver.run.model_calls import CALL_TIMEOUT, AttemptFailed, ModelCalls
from palaver.run.stored_chat import ChatStore, OpenExchange, StoredChat, give_up, replay
from palaver.toolbox.run_context import RunContext
from palaver.toolbox.toolbox import Function, Tool, Toolbox
from palaver.turns import Layer, Prompt, Record, Settings, ToolSpec, Turn, cut_turn, user

_PLACE = Place(platform="chat", id="", kind="direct")  # where the runs of a chat are: in no place of people
Opening = Callable[[History], Turn | None]  # what is said; results are kept at once, and nothing is said beside them


def _context(run: Run, tool: ToolRun) -> RunContext:
    """What a tool is told of a run that is in no place and answers no message."""
    return RunContext(run_id=run.id, step=tool.step, call=tool.number, now=tool.began_at)


def _now() -> datetime:
    return datetime.now(UTC)


class Chat:
    """`Chat(model, system=…, tools=[…])`: functions among the tools are run, bare declarations come back as calls.

    Two histories: the comprehensive one keeps every turn, the curated one only what may be sent again. A message whose
    response is invalid, fails or is cancelled stays out of the curated history. Once tools were called, the calls stay
    in it, and so do the results known by then; a tool that was stopped is answered as not finished.

    With a *store* and a *name* it is durable: whoever opens a chat of that name has its history, and `resume` finishes
    what was under way when a process ended. What is said is stored before the model is asked.

    A call of the model that takes longer than *call_timeout* seconds in all raises `TimedOut`.

    An uploaded file that the service no longer has is named in no later request: it goes from its bytes, or as words.
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
        call_timeout: float | None = CALL_TIMEOUT,
        store: ChatStore | None = None,
        name: str = "",
        now: Callable[[], datetime] = _now,
    ) -> None:
        if (store is None) != (not name):
            raise InvalidValue("a chat that is stored has a name, and only such a chat: Chat(model, store=…, name=…)")
        if not hasattr(model, "respond"):
            raise InvalidValue(f"a chat is with a model, such as model_named({model!r}), not with {model!r}")
        self.model = model
        self.system = system
        self.settings = settings or Settings()
        self._toolbox = tools if isinstance(tools, Toolbox) else Toolbox(tools)
        self._steps = steps
        self._call_timeout = call_timeout
        self._now = now
        self._history = History(now)
        self._gone = ExpiredFiles()
        self._next = asyncio.Lock()  # held by who speaks next, until the exchange under way has made way
        self._standing: Exchange | None = None  # the exchange under way
        self._history.add(history)
        self._stored = StoredChat(store, name) if store is not None else None
        self._is_loaded = store is None
        self._cut_off: tuple[OpenExchange, Journal | None] | None = None  # what an earlier process left under way

    async def load(self) -> None:
        """Read what is stored under the chat's name; whatever is sent does that first.

        It is read again once something in it was forgotten; what was added since and not sent is dropped then.
        """
        if self._stored is None or (self._is_loaded and not await self._stored.is_outdated()):
            return
        given = History(self._now) if self._is_loaded else self._history
        self._history = History(self._now)
        self._cut_off = await self._stored.load(self._history)
        self._is_loaded = True
        if not self._history.entries:
            self._history.restore(given.entries)

    async def resume(self) -> Response | None:
        """Finish the exchange that an earlier process left under way; None where it left none.

        A message that is sent instead ends that exchange where it was cut off, as if it had been cancelled there.
        """
        await self.load()
        if self._cut_off is None:
            return None
        response = None
        async with aclosing(self._alone(self._resumed())) as pieces:
            async for piece in pieces:
                response = piece
        assert isinstance(response, Response)  # noqa: S101 (an exchange ends in one, or raises)
        return response

    @property
    def history(self) -> tuple[Turn, ...]:
        """The curated history: what is sent with the next message, long tool results whole."""
        return tuple(self._history.curated)

    @property
    def records(self) -> list[Record]:
        """Every turn there was as it was kept, valid or not, with the response it came in."""
        return self._history.records

    def get_history(self, curated: bool = False) -> tuple[Turn, ...]:
        """Every turn there was, or the curated ones."""
        return self.history if curated else tuple(record.turn for record in self.records)

    def clear_history(self) -> None:
        """Forget everything, the exchange under way included; one that is stored is emptied with what comes next."""
        self._history = History(self._now)
        self._is_loaded, self._cut_off = True, None
        if self._stored is not None:
            self._stored.clear()

    def add_to_history(self, turn: Turn) -> None:
        self._history.add([turn])

    async def send_message(self, message: MessageInput, *, answer: Any = None, settings: Settings | None = None) -> Any:
        """The model's response to *message*; with `answer=T` the answer itself, as a T."""
        wanted = AnswerType(answer) if answer is not None else None
        response = await self._send(lambda history: history.user_turn(message), settings, wanted)
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
            response = await self._send(lambda _: again, settings, wanted)
        try:
            return wanted.read(response.text)
        except ValueError as error:
            raise AnswerUnfit(f"{self.model.name} gave no answer that fits, twice: {error}") from error

    def send_message_stream(self, message: MessageInput, *, settings: Settings | None = None) -> Pieces:
        """The pieces of the answer as they come, tool calls and results among them, and last the response.

        Another message waits while the next piece is awaited; once nobody awaits it, the stream is taken as left.
        """
        return self._alone(self._exchange(lambda history: history.user_turn(message), settings, streaming=True))

    async def send_function_responses(
        self, results: ToolResult | Iterable[ToolResult], *, settings: Settings | None = None
    ) -> Response:
        """Answer the calls of the last response: by id, and results without one by name and order.

        When the request fails the calls still wait, and the results may be given again.
        """
        given = [results] if isinstance(results, ToolResult) else list(results)
        if not given or not all(isinstance(one, ToolResult) for one in given):
            raise InvalidValue(f"calls are answered with one ToolResult or more, not with {given!r}")

        def opening(history: History) -> None:
            history.answer(given, self._toolbox.is_for_caller)

        return await self._send(opening, settings, None)

    async def _send(self, opening: Opening, settings: Settings | None, wanted: AnswerType | None) -> Response:
        chosen = settings or self.settings
        if wanted is not None:
            chosen = replace(chosen, answer=wanted.schema)
        response = None
        exchange = self._exchange(opening, chosen, streaming=False)
        async with aclosing(self._alone(exchange)) as pieces:
            async for piece in pieces:
                response = piece
        assert isinstance(response, Response)  # noqa: S101 (an exchange ends in one, or raises)
        return response

    async def _alone(self, exchange: Pieces) -> Pieces:
        """The exchange after the one before it, which is closed if nobody awaits its next piece.

        The response comes when all is over, so that who reads no further leaves nothing standing.
        """
        standing = Exchange(exchange)
        async with self._next:
            if self._standing is not None:
                await self._standing.make_way()
            self._standing = standing
        try:
            async for piece in exchange:
                if isinstance(piece, Response):
                    break
                standing.given()
                yield piece
                standing.read_on()
        finally:
            await standing.close()
        yield piece

    async def _exchange(self, opening: Opening, settings: Settings | None, *, streaming: bool) -> Pieces:
        """One message and all that follows until the model has answered, each step kept as it is known."""
        await self.load()
        history = self._history  # when it is cleared meanwhile, this exchange is forgotten with it
        if self._cut_off is not None:
            (exchange, journal), self._cut_off = self._cut_off, None
            give_up(history, exchange.asked, journal)
        asked = opening(history)
        loop = self._loop(self._begun(asked, settings), streaming=streaming)
        if self._stored is not None:
            await self._stored.begin(history, loop.journal, asked)
        async with aclosing(self._followed(loop, history, asked)) as pieces:
            async for piece in pieces:
                yield piece

    async def _resumed(self) -> Pieces:
        assert self._cut_off is not None  # noqa: S101 (who calls it has looked)
        (exchange, journal), self._cut_off = self._cut_off, None
        history = self._history
        asked = replay(history, exchange.asked, journal)
        loop = self._loop(journal or self._begun(asked, None), streaming=False)
        if self._stored is not None and journal is None:
            await self._stored.begin(history, loop.journal, asked)
        async with aclosing(self._followed(loop, history, asked)) as pieces:
            async for piece in pieces:
                yield piece

    async def _followed(self, loop: RunLoop, history: History, asked: Turn | None) -> Pieces:
        """What happens in a run, each step kept as it is known."""
        said: list[Part] = []
        response = None
        try:
            async with aclosing(loop.run()) as events:
                async for event in events:
                    match event:
                        case Response():
                            response = self._telling_what_is_cut(event)
                            history.append_response(asked, response)
                            asked, said = None, []
                        case Turn():
                            history.append(event, valid=True)
                            for result in event.parts:
                                yield result
                        case AttemptFailed():
                            said = []
                        case ToolsStopped():
                            history.append(event.results, valid=True)
                        case Text(text="") | Thought(text=""):
                            said.append(event)  # a signature alone: nothing to show
                        case RunAnswered():
                            response = response or event.response
                        case _:
                            said.append(event)
                            yield event
        except NoAnswer:
            pass  # the response itself says why
        finally:
            if asked is not None or said:
                history.append_unanswered(asked, Turn(role="model", parts=tuple(said), model=self.model.name))
            if self._stored is not None:
                await self._stored.end(self._history, loop.journal.run, at=self._now(), failed=response is None)
        assert response is not None  # noqa: S101 (a run yields one, or raises)
        yield response

    def _begun(self, asked: Turn | None, settings: Settings | None) -> Journal:
        prompt = self._gone.without(self._prompt(asked, settings))
        first = prompt if self._steps > 0 else without_tools(prompt)
        place, name = self._stored.place if self._stored else _PLACE, self.model.name
        run = Run(id=token_hex(10), place=place, target="", taken=(), began_at=self._now(), horizon=0, model=name)
        return Journal(run=run, prompt=first)

    def _loop(self, journal: Journal, *, streaming: bool) -> RunLoop:
        return RunLoop(
            journal,
            store=self._stored.runs if self._stored else InMemoryJournal(),
            models=[self.model],
            toolbox=self._toolbox,
            now=self._now,
            steps=self._steps,
            fallbacks=(),
            calls=ModelCalls(streaming=streaming, retries=0, timeout=self._call_timeout),
            gone=self._gone,
            context=_context,
        )

    def _telling_what_is_cut(self, response: Response) -> Response:
        """The response; where its calls may be cut, its finish says which tools are therefore not run."""
        names = ", ".join(call.name for call in response.function_calls if not self._toolbox.is_for_caller(call))
        if response.finish.outcome != "cut" or not names:
            return response
        said = f"{response.finish.message} " if response.finish.message else ""
        message = f"{said}Not run, because the call may be cut: {names}."
        return replace(response, finish=replace(response.finish, message=message))

    def _prompt(self, asked: Turn | None, settings: Settings | None) -> Prompt:
        sent = self._history.sent
        turns = (*sent, cut_turn(asked)) if asked is not None else tuple(sent)
        layers = (
            Layer(name="static", instruction=self.system),
            Layer(name="buffered", turns=turns[:-1]),
            Layer(name="trigger", turns=turns[-1:]),
        )
        return Prompt(layers=layers, tools=self._toolbox.specs, settings=settings or self.settings)
