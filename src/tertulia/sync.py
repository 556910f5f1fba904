"""`SyncChat`: a chat for scripts and notebooks without `await`."""

import asyncio
import threading
from collections.abc import Coroutine, Generator, Iterable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import closing
from typing import Any, TypeVar, cast, overload

from tertulia.chat import Chat
from tertulia.errors import InvalidValue
from tertulia.models.base import Response, Usage
from tertulia.parts import Part, Text, ToolResult
from tertulia.run.chat_history import MessageInput, Pieces
from tertulia.turns import Turn

T = TypeVar("T")
Outcome = tuple[T | None, BaseException | None]


class SyncChat:
    """`SyncChat(Chat(model, …))`: the same methods without `await`; also in a notebook.

    A chat with a store: `with Store.open(path) as store, SyncChat(Chat(model, store=store, name="…")) as chat:`.
    """

    def __init__(self, chat: Chat, *, grace: float = 5.0) -> None:
        self.chat = chat
        self._grace = grace  # seconds that open requests have to end when the chat is closed
        self._closed = False
        self._lock = threading.RLock()  # no request begins while the chat closes
        self._answers: set[Future[Any]] = set()
        self._streams: set[Pieces] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tertulia", daemon=True)
        self._thread.start()

    def __enter__(self) -> "SyncChat":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def history(self) -> tuple[Turn, ...]:
        return self.chat.history

    @property
    def usage(self) -> Usage:
        return self.chat.usage

    def get_history(self, curated: bool = False) -> tuple[Turn, ...]:
        return self.chat.get_history(curated)

    def clear_history(self) -> None:
        self.chat.clear_history()

    def add_to_history(self, turn: Turn) -> None:
        self.chat.add_to_history(turn)

    def load(self) -> None:
        """Read the history that is stored under the chat's name. Sending a message does that first."""
        self._wait(self.chat.load())

    def resume(self) -> Response | None:
        """Finish the exchange that an earlier process left open; return None if there is none."""
        return self._wait(self.chat.resume())

    @overload
    def send_message(self, message: MessageInput, *, answer: None = None) -> Response: ...

    @overload
    def send_message(self, message: MessageInput, *, answer: type[T]) -> T: ...

    @overload
    def send_message(self, message: MessageInput, *, answer: Any) -> Any: ...

    def send_message(self, message: MessageInput, *, answer: Any = None) -> Any:
        return self._wait(self.chat.send_message(message, answer=answer))

    def send_message_stream(self, message: MessageInput) -> Generator[Part | Response]:
        """Send *message* and yield the pieces of the answer, then the response."""
        stream = self._wait(self._begin_stream(message))

        async def next_piece() -> Part | Response | None:
            return await anext(stream, None)

        try:
            while (piece := self._wait(next_piece())) is not None:
                yield piece
        finally:
            if not self._closed and threading.current_thread() is not self._thread:
                self._wait(self._close_stream(stream))

    def stream_text(self, message: MessageInput) -> Iterator[str]:
        """Send *message* and yield the text of the answer, piece by piece."""
        with closing(self.send_message_stream(message)) as pieces:
            for piece in pieces:
                if isinstance(piece, Text):
                    yield piece.text

    def send_function_responses(self, results: ToolResult | Iterable[ToolResult]) -> Response:
        return self._wait(self.chat.send_function_responses(results))

    def close(self) -> None:
        """Close open streams and the model's connections, and end the thread. Whoever waits gets an error."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            waiting = tuple(self._answers)
        for answer in waiting:
            answer.cancel()
        try:
            asyncio.run_coroutine_threadsafe(self._shut(), self._loop).result()
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    async def _shut(self) -> None:
        """End tasks, then streams, then the model's connections."""
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=self._grace)
        for stream in self._streams:
            if not getattr(stream, "ag_running", False):  # its task did not end in time
                await stream.aclose()
        await self.chat.aclose()
        await self._loop.shutdown_asyncgens()

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        answer = self._begin(work)
        try:
            value, error = answer.result()
        except CancelledError:
            if not self._closed:
                raise
            raise InvalidValue("this chat was closed before the answer came") from None
        except BaseException:
            answer.cancel()  # an interrupt stops the request too
            raise
        finally:
            self._answers.discard(answer)
        if error is not None:
            raise error
        return cast("T", value)

    def _begin(self, work: Coroutine[Any, Any, T]) -> "Future[Outcome[T]]":
        with self._lock:
            refusal = "this chat is closed; make another SyncChat" if self._closed else ""
            if threading.current_thread() is self._thread:
                refusal = "a SyncChat cannot be waited for in its own thread; await its `chat` there"
            if refusal:
                work.close()
                raise InvalidValue(refusal)
            answer = asyncio.run_coroutine_threadsafe(_outcome(work), self._loop)
            self._answers.add(answer)
            return answer

    async def _begin_stream(self, message: MessageInput) -> Pieces:
        """Begin a stream in the thread of the chat."""
        stream = self.chat.send_message_stream(message)
        self._streams.add(stream)
        return stream

    async def _close_stream(self, stream: Pieces) -> None:
        """Close a stream after the step that an interrupt cancelled has ended."""
        while getattr(stream, "ag_running", False):  # noqa: ASYNC110 (a generator has no event for that)
            await asyncio.sleep(0.01)
        await stream.aclose()
        self._streams.discard(stream)


async def _outcome(work: Coroutine[Any, Any, T]) -> Outcome[T]:
    """Return what *work* returns or raises as a value: a SystemExit raised in a task would end the loop's thread."""
    try:
        return await work, None
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 (raised again where it is waited for)
        return None, error
