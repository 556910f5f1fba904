"""A model loaded into this process by xllamacpp, once a file, and asked in a thread of its own."""

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

BATCH = 256  # tokens read at once: a request that nobody waits for any more can be stopped after each
CACHE_MIB = 256  # of memory for what was read of other conversations

_runtimes: "WeakValueDictionary[tuple[Path, int, int], Runtime]" = WeakValueDictionary()
_runtimes_lock = Lock()


def runtime_for(path: Path, *, threads: int | None, context: int) -> "Runtime":
    """The engine for a file, shared by all who hold it; the file is closed when nobody does any more."""
    key = path.resolve(), threads or default_threads(), context
    with _runtimes_lock:
        engine = _runtimes.get(key)
        if engine is None:
            engine = _runtimes[key] = Runtime(key[0], threads=key[1], context=context)
    return engine


def default_threads() -> int:
    """Half of the processors: where others work too, a thread for each makes it many times slower."""
    return max((os.cpu_count() or 1) // 2, 1)


class Runtime:
    """One file's model. It answers one request at a time; the others wait."""

    def __init__(self, path: Path, *, threads: int, context: int) -> None:
        self._path, self._threads, self._context = path, threads, context
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="palaver-local")
        self.loaded: Any = None  # the server of xllamacpp, from the first request on

    async def events(self, body: bytes) -> AsyncGenerator[bytes, None]:
        """The chunks of the answer as they are made; closing the generator stops the model."""
        loop = asyncio.get_running_loop()
        heard: asyncio.Queue[bytes | None] = asyncio.Queue()
        stopped = Event()

        def tell(chunk: bytes | None) -> bool:
            """Pass the chunk on, and say whether to stop."""
            if not stopped.is_set():
                with suppress(RuntimeError):  # the loop has ended, and with it whoever asked
                    loop.call_soon_threadsafe(heard.put_nowait, chunk)
                    return False
            return True

        def ended(_: "Future[None]") -> None:
            tell(None)

        answering = self._worker.submit(self._answer, body, tell, stopped)
        answering.add_done_callback(ended)
        try:
            while (chunk := await heard.get()) is not None:
                yield chunk
            answering.result()
        finally:
            stopped.set()
            answering.cancel()

    def _answer(self, body: bytes, tell: Callable[[bytes | None], bool], stopped: Event) -> None:
        if self.loaded is None:
            self.loaded = _load(self._path, threads=self._threads, context=self._context)
        if stopped.is_set():
            return
        try:
            self.loaded.handle_chat_completions(body, tell)
        except (RuntimeError, ValueError) as error:
            raise RequestRefused(f"{self._path.name} cannot answer that: {error}") from error


def _load(path: Path, *, threads: int, context: int) -> Any:
    try:
        xllamacpp: Any = import_module("xllamacpp")  # by name: it comes without types, and not to everyone
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
    params.api_keys = [token_hex(16)]  # it opens a port on this machine, whether we want one or not; nobody gets in
    try:
        return xllamacpp.Server(params)
    except RuntimeError as error:
        raise NotInstalled(f"{path} is no model that can be loaded; fetch it again with `palaver model get`") from error
