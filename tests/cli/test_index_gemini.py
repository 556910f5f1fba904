"""`tertulia index` with vectors that a service makes: asked over a socket, refused, slowed down, interrupted."""

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from cli.command import TERTULIA, tertulia
from cli.stores import a_store
from memory.searching import talk
from people import ALICE, GROUP
from platforms.terminal.pseudo import CTRL_C, terminal
from tertulia import Store
from tertulia.engine.memory.indexer import EMBEDDED
from tertulia.memory.embeddings import GEMINI, RemoteEmbedder, find_embedder
from tertulia.memory.search import Search
from tertulia.memory.values import IndexProgress
from tertulia.models import Gemini
from tertulia.sim.gemini import GeminiSim, Hang, RateLimited

COUNT = 5 * EMBEDDED
KEY = "a-key-nobody-should-see"
FIRST, SECOND = "gemini:gemini-embedding-001", "gemini:gemini-embedding-2"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    messages = talk(*(f"message {number}" for number in range(COUNT)))
    return a_store(tmp_path_factory.mktemp("filled") / "s.db", messages=messages)


@pytest.fixture
def db(filled: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(filled, tmp_path / "s.db"))


async def index(sim: GeminiSim, db: Path, *arguments: str, key: str = KEY) -> tuple[int, str, str]:
    environment = {"GEMINI_API_KEY": key, "TERTULIA_GEMINI_BASE_URL": sim.url}
    find_embedder.cache_clear()  # with the client of another simulator
    run = await asyncio.to_thread(tertulia, "index", "--db", str(db), *arguments, **environment)
    return run.returncode, run.stdout, run.stderr


async def state(db: Path, embedder: str = FIRST) -> tuple[str, IndexProgress]:
    """The embedder that was chosen, and how much can be found by one."""
    async with Store.open(db) as store:
        return await store.index_writer.embedder(), await store.index_writer.progress(embedder)


def texts(sim: GeminiSim, model: str = FIRST) -> list[str]:
    """What a model was shown and has answered, but for what only tries it."""
    path = f"/v1beta/models/{model.removeprefix('gemini:')}:batchEmbedContents"
    asked = [
        one["content"]["parts"][0]["text"]
        for request in sim.requests
        if (request.path, request.status) == (path, 200)
        for one in request.body["requests"]
    ]
    return [text for text in asked if text != "one that can be used"]


async def test_a_service_embeds_every_message_once_in_small_batches(db: Path) -> None:
    async with GeminiSim() as sim:
        assert (await index(sim, db, "--embedder", FIRST))[:2] == (
            0, f"{COUNT} messages can be found by words and by meaning ({FIRST})\n",
        )  # fmt: skip
        assert texts(sim) == [f"{('Alice', 'Bob')[at % 2]}: message {at}" for at in range(COUNT)]
        assert {len(request.body["requests"]) for request in sim.requests} == {1, EMBEDDED}
        assert {
            (one["taskType"], one["outputDimensionality"])
            for request in sim.requests
            for one in request.body["requests"]
        } == {("RETRIEVAL_DOCUMENT", 768)}
        assert await index(sim, db, "--json") == (
            0, f'{{"messages":{COUNT},"indexed":{COUNT},"embedded":{COUNT},"embedder":"{FIRST}"}}\n', "",
        )  # fmt: skip


@pytest.mark.parametrize(
    ("embedder", "key", "fault", "why"),
    [
        (FIRST, "invalid-key", None, "tertulia: Gemini does not accept the key: "),
        (FIRST, "", None, "tertulia: no key for gemini-embedding-001: "),
        (FIRST, KEY, RateLimited(daily=True), "tertulia: Gemini's quota for today is used up: "),
        ("gemini:no-such-model", KEY, None, "tertulia: Gemini does not know no-such-model: "),
        ("gemini:", KEY, None, "tertulia: no embedder is called 'gemini:'; there are "),
    ],
)
async def test_what_a_service_refuses_is_one_line_and_changes_nothing(
    db: Path, embedder: str, key: str, fault: RateLimited | None, why: str
) -> None:
    async with GeminiSim() as sim:
        if fault:
            sim.fail(fault)

        status, output, errors = await index(sim, db, "--embedder", embedder, key=key)

    assert (status, output, errors.count("\n"), errors[: len(why)]) == (2, "", 1, why)
    assert not key or key not in errors
    assert await state(db, embedder) == ("", IndexProgress(messages=COUNT, indexed=0))


async def test_a_service_that_asks_to_slow_down_is_waited_for(db: Path) -> None:
    async with GeminiSim() as sim:
        sim.fail(RateLimited(retry_after=0.01), times=3)

        status, _, errors = await index(sim, db, "--embedder", FIRST)

        told = [line for line in errors.splitlines() if line.startswith("tertulia: ")]
        assert (status, len(texts(sim))) == (0, COUNT)
        assert [line.rpartition("; ")[2] for line in told] == ["retrying in 0.01 s"] * 2  # trying it was one


async def test_a_service_that_ends_in_between_is_said_and_the_rest_is_done_later(db: Path) -> None:
    async with GeminiSim() as sim:
        going = asyncio.ensure_future(index(sim, db, "--embedder", FIRST))
        await sim.until(lambda requests: len(requests) > 2)
        sim.fail(RateLimited(daily=True))
        status, output, errors = await going
        _, before = await state(db)

        again = await index(sim, db)

        assert (status, output) == (2, "")
        assert errors.splitlines()[-1].startswith("tertulia: Gemini's quota for today is used up: ")
        assert EMBEDDED <= before.embedded < COUNT
        assert again[0] == 0
        assert sorted(texts(sim)) == sorted({*texts(sim)})
        assert len(texts(sim)) == COUNT


async def test_ctrl_c_ends_it_below_the_bar_and_the_same_command_does_the_rest(db: Path) -> None:
    async with GeminiSim() as sim:
        sim.fail(RateLimited(retry_after=0.01))
        command = (*TERTULIA, "index", "--db", str(db), "--embedder", FIRST)
        environment = {**os.environ, "GEMINI_API_KEY": KEY, "TERTULIA_GEMINI_BASE_URL": sim.url}
        async with terminal(*command, environment=environment) as shown:
            await sim.until(lambda requests: len(requests) > 2)
            sim.fail(Hang())
            await shown.see(f"] {COUNT} of {COUNT} messages by words, ")
            await sim.until(lambda requests: requests[-1].status == 0)
            shown.type(CTRL_C)
            await shown.see("\ntertulia: interrupted; the same command does the rest\n")
            assert await shown.left() == 130
        _, before = await state(db)

        assert (await index(sim, db))[0] == 0
        assert 0 < before.embedded < COUNT
        assert len(texts(sim)) == COUNT


async def test_the_old_vectors_serve_until_the_new_ones_are_there_and_when_one_goes_back(db: Path) -> None:
    async with GeminiSim() as sim:
        await index(sim, db, "--embedder", FIRST)
        going = asyncio.ensure_future(index(sim, db, "--embedder", SECOND))
        await sim.until(lambda _: len(texts(sim, SECOND)) >= EMBEDDED)
        sim.fail(RateLimited(daily=True))
        assert (await going)[0] == 2

        await search(sim, db)
        assert await state(db) == (SECOND, IndexProgress(messages=COUNT, indexed=COUNT, embedded=COUNT))
        assert (texts(sim)[-1], sim.requests[-1].body["requests"][0]["taskType"]) == ("a question", "RETRIEVAL_QUERY")

        before = len(sim.requests)
        assert (await index(sim, db, "--embedder", FIRST))[0] == 0
        assert await state(db, SECOND) == (FIRST, IndexProgress(messages=COUNT, indexed=COUNT, embedded=0))
        assert len(sim.requests) == before + 1  # to see whether it can be used


async def search(sim: GeminiSim, db: Path) -> None:
    clients = [Gemini(name.removeprefix(GEMINI), key=KEY, base_url=sim.url) for name in (FIRST, SECOND)]
    async with clients[0], clients[1], Store.open(db) as store:
        embedders = {
            f"{GEMINI}{client.name}": RemoteEmbedder(client, id=f"{GEMINI}{client.name}") for client in clients
        }
        await Search(store.index_reader, embedders=embedders.get).find("a question", place=GROUP, author=ALICE)
