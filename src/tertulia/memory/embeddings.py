"""Embedders: MiniLM in this process (`tertulia[search]`), and services."""

import asyncio
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from importlib.resources import as_file, files
from importlib.util import find_spec
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

from tertulia.errors import InvalidValue, ResponseUnreadable

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

    from tertulia.memory.retrieval.features import Floats

NO_EMBEDDER = "none"  # search by words alone
MINILM = "minilm"
GEMINI = "gemini:"  # prefix of the name of a model

_PACKAGES = ("onnxruntime", "tokenizers")
_WIDTH = 384
_MAX_TOKENS = 128
_MAX_TEXT = 2_000  # characters: more than _MAX_TOKENS have
_LEARNED = files("tertulia.memory") / "learned"


class Embedder(Protocol):
    """Makes a vector of length 1 for each text. Its id is stored with every vector."""

    id: str

    async def embed(self, texts: Sequence[str], *, asking: bool = False) -> "Floats":
        """Embed messages, or a query if *asking*; raise a `TertuliaError` if it fails."""
        ...


Embedders = Callable[[str], Embedder | None]


class MiniLM:
    """all-MiniLM-L6-v2, multiplied as 8 bit: mostly English, 23 MB, one thread. Loaded on first use.

    Each text goes through the model alone. Activations are quantized by the largest of a batch, so beside other texts
    its vector would be another one.
    """

    id = MINILM

    def __init__(self) -> None:
        self._loading = Lock()

    async def embed(self, texts: Sequence[str], *, asking: bool = False) -> "Floats":
        return await asyncio.to_thread(self.encode, texts)

    def encode(self, texts: Sequence[str]) -> "Floats":
        import numpy as np

        with self._loading:
            tokenizer, session = self._tokenizer, self._session
        vectors = np.empty((len(texts), _WIDTH), dtype=np.float32)
        for at, tokens in enumerate(tokenizer.encode_batch_fast([text[:_MAX_TEXT] for text in texts])):
            vectors[at] = _run(session, tokens.ids)
        return vectors

    @cached_property
    def _tokenizer(self) -> "Tokenizer":
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_str((_LEARNED / "minilm.json").read_text(encoding="utf-8"))
        tokenizer.enable_truncation(_MAX_TOKENS)
        tokenizer.no_padding()
        return tokenizer

    @cached_property
    def _session(self) -> "InferenceSession":
        from onnxruntime import InferenceSession, SessionOptions

        options = SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.enable_cpu_mem_arena = options.enable_mem_pattern = (
            False  # otherwise the memory of the longest text is never freed
        )
        with as_file(_LEARNED / "minilm.onnx") as model:
            return InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


class EmbeddingService(Protocol):
    """A client that embeds, such as `models.gemini.client.Gemini`."""

    name: str

    async def embed(
        self, texts: Sequence[str], *, task: str | None = None, dimensions: int | None = None
    ) -> list[list[float]]: ...


class RemoteEmbedder:
    """Embeds by a service, to which the texts of messages are sent."""

    def __init__(self, service: EmbeddingService, *, id: str | None = None, dimensions: int | None = 768) -> None:
        self.id = id or service.name
        self._service = service
        self._dimensions = dimensions

    async def embed(self, texts: Sequence[str], *, asking: bool = False) -> "Floats":
        task = "RETRIEVAL_QUERY" if asking else "RETRIEVAL_DOCUMENT"
        return _unit(await self._service.embed(texts, task=task, dimensions=self._dimensions), self.id)

    async def aclose(self) -> None:
        """Close the connections of the service, if it has some; the next text opens others."""
        if close := getattr(self._service, "aclose", None):
            await close()


def is_minilm_installed() -> bool:
    """Return whether the packages of `tertulia[search]` are installed."""
    return all(find_spec(name) for name in _PACKAGES)


@cache
def find_embedder(name: str) -> Embedder | None:
    """Find the embedder of that name, MiniLM by default; None if it cannot be used here. Each is made once."""
    if not name:
        return find_embedder(MINILM)
    if name == MINILM:
        return MiniLM() if is_minilm_installed() else None
    if name.startswith(GEMINI) and name != GEMINI:
        from tertulia.models.gemini.client import Gemini

        return RemoteEmbedder(Gemini(name.removeprefix(GEMINI)), id=name)
    return None


def check_embedder(name: str) -> str:
    """Return the name of an embedder; raise `InvalidValue` if it cannot be used."""
    if name == NO_EMBEDDER:
        return name
    if name == MINILM and not is_minilm_installed():
        raise InvalidValue("minilm needs packages that are not installed: pip install 'tertulia[search]'")
    if find_embedder(name) is None or not name:
        raise InvalidValue(f"no embedder is called {name!r}; there are minilm, gemini:MODEL and none")
    return name


def _run(session: "InferenceSession", tokens: list[int]) -> "Floats":
    import numpy as np

    ids = np.array([tokens], dtype=np.int64)
    feed: dict[str, Any] = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    pooled = np.asarray(session.run(None, feed)[0][0], dtype=np.float32).sum(axis=0)
    return np.asarray(pooled / np.linalg.norm(pooled), dtype=np.float32)


def _unit(vectors: list[list[float]], about: str) -> "Floats":
    import numpy as np

    if len({len(vector) for vector in vectors}) > 1 or not all(vectors):
        raise ResponseUnreadable(f"{about} answered with vectors of different lengths")
    table = np.array(vectors, dtype=np.float32)
    return np.asarray(table / np.maximum(np.linalg.norm(table, axis=-1, keepdims=True), 1e-9), dtype=np.float32)
