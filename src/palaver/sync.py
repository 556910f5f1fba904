"""The chat for scripts and notebooks that do not await."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Coroutine, Iterable, Iterator
from typing import Any, TypeVar

from palaver.agent.standing import Pieces
from palaver.chat import Chat, Said
from palaver.errors import InvalidValue
from palaver.models.base import Response
from palaver.parts import Part, ToolResult
from palaver.turns import Turn

T = TypeVar("T")


class SyncChat:
    """`SyncChat(Chat(model, …))`: what a chat does, without `await`; in a notebook too."""

    def __init__(self, chat: Chat) -> None:
        self.chat = chat
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="palaver", daemon=True)
        self._thread.start()

    def __enter__(self) -> "SyncChat":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def history(self) -> tuple[Turn, ...]:
        return self.chat.history

    def get_history(self, curated: bool = False) -> tuple[Turn, ...]:
        return self.chat.get_history(curated)

    def clear_history(self) -> None:
        self.chat.clear_history()

    def add_to_history(self, turn: Turn) -> None:
        self.chat.add_to_history(turn)

    def send_message(self, message: Said, *, answer: Any = None) -> Any:
        return self._wait(self.chat.send_message(message, answer=answer))

    def send_message_stream(self, message: Said) -> Iterator[Part | Response]:
        """The pieces of the answer as they come, and last the response."""
        stream = self._wait(_begun(self.chat, message))

        async def following() -> Part | Response | None:
            return await anext(stream, None)

        try:
            while (piece := self._wait(following())) is not None:
                yield piece
        finally:
            if not self._loop.is_closed():
                self._wait(_closed(stream))

    def send_function_responses(self, results: ToolResult | Iterable[ToolResult]) -> Response:
        return self._wait(self.chat.send_function_responses(results))

    def close(self) -> None:
        """Close the model's connections and what streams stand, and end the thread."""
        if self._loop.is_closed():
            return
        aclose = getattr(self.chat.model, "aclose", None)
        if aclose is not None:
            self._wait(aclose())
        self._wait(self._loop.shutdown_asyncgens())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        if self._loop.is_closed():
            work.close()
            raise InvalidValue("this chat is closed; make another SyncChat")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # an interrupt stops the answer too
            raise


async def _begun(chat: Chat, message: Said) -> Pieces:
    """The stream, asked for where its chat lives."""
    return chat.send_message_stream(message)


async def _closed(stream: AsyncGenerator[Any, None]) -> None:
    """Close the stream once what an interrupt has stopped has really stopped."""
    while getattr(stream, "ag_running", False):  # noqa: ASYNC110 (a generator tells nobody when it has stopped)
        await asyncio.sleep(0.01)
    await stream.aclose()
