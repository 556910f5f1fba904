"""Local: a small model in this process, without a key and a service.

Its runtime is xllamacpp: a GGUF file is loaded once into the process, with a thread of its own.
"""

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import aclosing, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from secrets import token_hex
from threading import Event, Lock
from typing import Any, Self
from weakref import WeakValueDictionary

from tertulia.errors import ContextTooLong, InvalidValue, NotInstalled, RequestRefused, ServiceFault
from tertulia.models.base import Response
from tertulia.models.local.decode import (
    ChoiceDecoder,
    Chunk,
    answer_check,
    check_response,
    decode_chunk,
    is_progress,
    refused_tokens,
    respond,
)
from tertulia.models.local.encode import (
    LLAMA,
    callable_tools,
    encode_request,
    omitted_exchanges,
    reserved_tokens,
    text_length,
    text_prompt,
    with_one_call,
)
from tertulia.models.local.weights import WEIGHTS, weights_path
from tertulia.models.notes import Notes
from tertulia.models.openai.settings import sent_settings
from tertulia.models.stream import decode_stream
from tertulia.parts import Media, Part
from tertulia.turns import Prompt, Role
from tertulia.wire.repair import repair_prompt

log = logging.getLogger(__name__)

CONTEXT = 4096
TOKENS_PER_CHARACTER = 0.25  # until the model has counted
MAX_TRIES = 6
BATCH = 16  # tokens: a cancelled request stops after each batch of the prompt; 32 are a twentieth faster
CACHE_MIB = 256  # of memory for the prompts of other conversations

_runtimes: "WeakValueDictionary[tuple[Path, int, int], Runtime]" = WeakValueDictionary()
_runtimes_lock = Lock()


class Local:
    """`Local()` is the model that comes with the package; `Local("qwen")` a better one that must be fetched.

    `Local("mine", path=…)` is any GGUF file. A file is loaded at the first request, and once in a process.
    """

    def __init__(
        self, name: str = "smollm2", *, path: Path | None = None, threads: int | None = None, context: int = CONTEXT
    ) -> None:
        if context < 512:
            raise InvalidValue(f"a context of {context} tokens is too small: it must have at least 512")
        self.name = name
        self._path = path
        self._threads = threads
        self._context = context
        self._tokens_per_character = TOKENS_PER_CHARACTER
        self._runtime: Runtime | None = None
        self._notes = Notes(name)
        self._last: tuple[Prompt, int] | None = None  # the last prompt, and its limit in characters

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Release the model; it is unloaded when nobody uses it. A later request loads it again."""
        self._runtime = None

    @property
    def is_loaded(self) -> bool:
        """Return whether the file has been loaded. The first request does so, which takes seconds."""
        return self._runtime is not None and self._runtime.loaded is not None

    @property
    def omitted_exchanges(self) -> int:
        """How many of the oldest exchanges did not fit into the last request."""
        return omitted_exchanges(self._last[0], room=self._last[1]) if self._last else 0

    def takes(self, _: Media, __: Role) -> bool:
        """Never: local models read text only."""
        return False

    async def respond(self, prompt: Prompt) -> Response:
        async with aclosing(self.stream(prompt)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Response):
                    return piece
        raise ServiceFault(f"{self.name} did not answer")

    async def stream(self, prompt: Prompt) -> AsyncGenerator[Part | Response, None]:
        """Yield text as it is generated, then the call, then the Response."""
        self._notes.tell(sent_settings(prompt, self.name, LLAMA).notes)
        legal = repair_prompt(prompt, self.name, wire="openai")
        if self.name in WEIGHTS and WEIGHTS[self.name].one_call:
            legal = with_one_call(legal)
        decode = ChoiceDecoder(legal) if callable_tools(legal) else lambda chunk: chunk
        fault_of = answer_check(prompt.settings.answer) if prompt.settings.answer is not None else lambda _: ""
        async with aclosing(self._chunks(legal)) as chunks:
            async for piece in decode_stream(chunks, read=decode, respond=partial(respond, model=self.name)):
                yield check_response(piece, fault_of) if isinstance(piece, Response) else piece

    async def _chunks(self, prompt: Prompt) -> AsyncGenerator[Chunk, None]:
        """Yield the chunks of the answer. If the context is too small, try again without the oldest turns."""
        if self._runtime is None:
            path = self._path or weights_path(self.name)
            self._runtime = runtime_for(path, threads=self._threads, context=self._context)
        runtime = self._runtime
        for _ in range(MAX_TRIES):
            room = int(
                (self._context - reserved_tokens(prompt.settings, context=self._context)) / self._tokens_per_character
            )
            sent = text_prompt(prompt, room=room)
            self._last = (prompt, room)
            async with aclosing(runtime.events(encode_request(prompt, sent, model=self.name))) as events:
                refused = 0
                async for event in events:
                    refused = refused_tokens(event)
                    if refused:
                        break
                    chunk = decode_chunk(event, about=self.name)
                    if not is_progress(chunk):
                        self._update_tokens_per_character(chunk, text_length(sent), room)
                        yield chunk
            if not refused:
                return
            self._tokens_per_character = max(refused / text_length(sent), self._tokens_per_character * 1.05)
            log.debug("%d tokens are too many for %s; omitting the oldest turns", refused, self.name)
        raise ContextTooLong(f"the prompt does not fit into the {self._context} tokens of {self.name}")

    def _update_tokens_per_character(self, chunk: Chunk, characters: int, room: int) -> None:
        """Measure the tokens per character of a long prompt. In a short one most tokens are of the template."""
        counted = respond([chunk], model=self.name).usage.input
        if counted and characters > room // 2:
            self._tokens_per_character = counted / characters


def runtime_for(path: Path, *, threads: int | None, context: int) -> "Runtime":
    """Return the runtime of a file, shared by all users; the file is closed when there are none."""
    key = path.resolve(), threads or default_threads(), context
    with _runtimes_lock:
        runtime = _runtimes.get(key)
        if runtime is None:
            runtime = _runtimes[key] = Runtime(key[0], threads=key[1], context=context)
    return runtime


def default_threads() -> int:
    """Half of the processors: on a busy machine, more threads are many times slower."""
    return max((os.cpu_count() or 1) // 2, 1)


class Runtime:
    """The model of one file. It answers one request at a time; others wait."""

    def __init__(self, path: Path, *, threads: int, context: int) -> None:
        self._path, self._threads, self._context = path, threads, context
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="tertulia-local")
        self.loaded: Any = None  # the server of xllamacpp; None before the first request

    async def events(self, body: bytes) -> AsyncGenerator[bytes, None]:
        """Yield the chunks of the answer as they are generated; closing the generator stops the model."""
        loop = asyncio.get_running_loop()
        chunks: asyncio.Queue[bytes | None] = asyncio.Queue()
        stopped = Event()

        def send(chunk: bytes | None) -> bool:
            """Pass a chunk on; return whether to stop."""
            if not stopped.is_set():
                with suppress(RuntimeError):  # the event loop has ended
                    loop.call_soon_threadsafe(chunks.put_nowait, chunk)
                    return False
            return True

        def send_end(_: "Future[None]") -> None:
            send(None)

        answering = self._worker.submit(self._answer, body, send, stopped)
        answering.add_done_callback(send_end)
        try:
            while (chunk := await chunks.get()) is not None:
                yield chunk
            answering.result()
        finally:
            stopped.set()
            answering.cancel()

    def _answer(self, body: bytes, send: Callable[[bytes | None], bool], stopped: Event) -> None:
        if self.loaded is None:
            self.loaded = _load(self._path, threads=self._threads, context=self._context)
        if stopped.is_set():
            return
        try:
            self.loaded.handle_chat_completions(body, send)
        except (RuntimeError, ValueError) as error:
            raise RequestRefused(f"{self._path.name} cannot answer that: {error}") from error


def _load(path: Path, *, threads: int, context: int) -> Any:
    try:
        xllamacpp: Any = import_module("xllamacpp")  # by name: it has no types, and is optional
    except ImportError as error:
        raise NotInstalled(
            "the local model needs xllamacpp: run `tertulia model get smollm2`, or pip install 'tertulia[local]'"
        ) from error
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx = context
    params.n_parallel = 1
    params.n_batch = params.n_ubatch = BATCH
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.cache_ram_mib = CACHE_MIB
    params.warmup = False
    params.verbosity = -1
    params.model_alias = {path.stem}
    params.ui = params.endpoint_slots = False
    params.endpoint_metrics = True
    params.api_keys = [token_hex(16)]  # it always opens a local port; the random key locks it
    try:
        server = xllamacpp.Server(params)
    except RuntimeError as error:
        raise NotInstalled(
            f"{path} is no model that can be loaded; fetch it again with `tertulia model get`"
        ) from error
    server.handle_metrics()  # its loop answers, so it has begun: unloaded before that, it waits for its end forever
    return server
