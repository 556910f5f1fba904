"""Embedders make vectors of length 1: the one in this process, and services."""

from collections.abc import Sequence
from importlib.resources import files
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tertulia.errors import InvalidValue, ResponseUnreadable
from tertulia.memory import embeddings
from tertulia.memory.embeddings import MINILM, MiniLM, RemoteEmbedder, check_embedder, find_embedder
from tertulia.memory.retrieval.features import pack_vectors, vector_matrix


class Service:
    name = "embedding-9"

    def __init__(self, *vectors: list[float]) -> None:
        self.vectors = list(vectors)
        self.asked: list[tuple[Sequence[str], str | None, int | None]] = []

    async def embed(
        self, texts: Sequence[str], *, task: str | None = None, dimensions: int | None = None
    ) -> list[list[float]]:
        self.asked.append((texts, task, dimensions))
        return self.vectors


@pytest.mark.skipif(not embeddings.is_minilm_installed(), reason="tertulia[search] is not installed")
async def test_what_means_the_same_is_near() -> None:
    texts = ["I bought a new car", "a vehicle was purchased", "the soup is cold"]
    made = await MiniLM().embed(texts)
    near = made @ made.T

    assert made.shape == (3, 384)
    assert np.allclose(np.linalg.norm(made, axis=1), 1, atol=1e-5)
    assert near[0, 1] > 0.6 > 0.3 > near[0, 2]
    assert np.array_equal(await MiniLM().embed(texts[:0]), np.empty((0, 384)))


@pytest.mark.skipif(not embeddings.is_minilm_installed(), reason="tertulia[search] is not installed")
async def test_the_vector_of_a_text_does_not_depend_on_the_texts_beside_it() -> None:
    texts = ["hi", "I bought a new car " * 20, "суп холодний"]
    minilm = MiniLM()

    assert np.array_equal(await minilm.embed(texts), np.concatenate([await minilm.embed([text]) for text in texts]))


def test_the_weights_of_the_model_are_multiplied_as_eight_bits() -> None:
    model = (files("tertulia.memory") / "learned" / "minilm.onnx").read_bytes()

    assert model.count(b'"\rMatMulInteger') == 36  # six layers of four matrices of attention and two of a network
    assert len(model) < 24_000_000


@pytest.mark.skipif(not embeddings.is_minilm_installed(), reason="tertulia[search] is not installed")
def test_the_default_embedder_and_the_one_that_vectors_name_are_one() -> None:
    assert find_embedder("") is find_embedder(MINILM) is not None


@pytest.mark.skipif(not embeddings.is_minilm_installed(), reason="tertulia[search] is not installed")
async def test_any_text_has_a_vector() -> None:
    made = await MiniLM().embed(["", "\0", "🙂" * 3000, "слово"])

    assert np.isfinite(made).all()


@pytest.mark.skipif(not embeddings.is_minilm_installed(), reason="tertulia[search] is not installed")
async def test_of_long_texts_so_many_characters_and_tokens_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    read: list[list[str]] = []
    minilm = MiniLM()
    tokenizer, run = minilm._tokenizer, embeddings._run

    def watched(session: Any, tokens: list[int]) -> Any:
        asked.append(len(tokens))
        return run(session, tokens)

    def encode(texts: list[str]) -> Any:
        read.append(texts)
        return tokenizer.encode_batch_fast(texts)

    monkeypatch.setattr(embeddings, "_run", watched)
    monkeypatch.setitem(minilm.__dict__, "_tokenizer", SimpleNamespace(encode_batch_fast=encode))
    made = await minilm.embed(["a word " * 100_000] * 9)

    assert made.shape == (9, 384)
    assert [len(text) for text in read[0]] == [2_000] * 9
    assert asked == [128] * 9


@pytest.mark.skipif(not embeddings.is_minilm_installed(), reason="tertulia[search] is not installed")
def test_what_the_model_needed_for_one_text_is_given_back() -> None:
    options = MiniLM()._session.get_session_options()

    assert (options.enable_cpu_mem_arena, options.enable_mem_pattern) == (False, False)
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (1, 1)


async def test_a_service_is_told_what_the_vectors_are_for() -> None:
    service = Service([3.0, 4.0])
    remote = RemoteEmbedder(service, dimensions=2)

    assert np.allclose(await remote.embed(["hi"]), [[0.6, 0.8]])
    await remote.embed(["hi?"], asking=True)
    assert service.asked == [(["hi"], "RETRIEVAL_DOCUMENT", 2), (["hi?"], "RETRIEVAL_QUERY", 2)]
    assert remote.id == "embedding-9"


async def test_vectors_that_do_not_fit_each_other_are_refused() -> None:
    with pytest.raises(ResponseUnreadable):
        await RemoteEmbedder(Service([1.0], [1.0, 2.0])).embed(["a", "b"])
    with pytest.raises(ResponseUnreadable):
        await RemoteEmbedder(Service([], [])).embed(["a", "b"])


def test_an_embedder_is_known_by_its_name() -> None:
    assert find_embedder("gemini:embedding-9") is find_embedder("gemini:embedding-9")
    assert find_embedder("gemini:embedding-9").id == "gemini:embedding-9"  # type: ignore[union-attr]
    assert find_embedder("bert") is None
    assert check_embedder("none") == "none"
    with pytest.raises(InvalidValue):
        check_embedder("bert")


def test_vectors_are_kept_by_eight_bits() -> None:
    kept = pack_vectors(np.array([[1, -1, 0.5], [float("nan"), 0, 9]], dtype=np.float32))

    assert [list(np.frombuffer(one, dtype=np.int8)) for one in kept] == [[127, -127, 64], [0, 0, 127]]


def test_vectors_are_laid_by_number_and_those_that_do_not_fit_are_left_out() -> None:
    table = vector_matrix([(0, b"\1\2"), (2, b"\3\4"), (1, b"\5"), (9, b"\6\7")], 3)

    assert table is not None
    assert table.tolist() == [[1, 2], [0, 0], [3, 4]]
    assert vector_matrix([], 3) is None
