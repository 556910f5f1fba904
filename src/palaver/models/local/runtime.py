"""Runtime: a GGUF file loaded once into this process by xllamacpp, with a thread of its own."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from secrets import token_hex
from threading import Event, Lock
from typing import Any
from weakref import WeakValueDictionary

from palaver.errors import NotInstalled, RequestRefused

BATCH = 256  # tokens: a cancelled request stops after each batch of the prompt
CACHE_MIB = 256  # of memory for the prompts of other conversations

_runtimes: "WeakValueDictionary[tuple[Path, int, int], Runtime]" = WeakValueDictionary()
_runtimes_lock = Lock()


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
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="palaver-local")
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
            "the local model needs xllamacpp: run `make chat`, or pip install 'palaver[local]'"
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
    params.api_keys = [token_hex(16)]  # it always opens a local port; the random key locks it
    try:
        return xllamacpp.Server(params)
    except RuntimeError as error:
        raise NotInstalled(f"{path} is no model that can be loaded; fetch it again with `palaver model get`") from error
