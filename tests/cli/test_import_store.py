"""`tertulia import` makes what other programs stored the past of a bot: once, and without a model."""

import asyncio
import json
import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cli.command import tertulia
from telegram_exports import account, chat, message, service, value
from tertulia.engine.memory.learner import EpisodeWriter, Learner
from tertulia.messages import Message, Place
from tertulia.models.scripted import Scripted
from tertulia.store import Store

BOT = "4242"
TOKEN = f"{BOT}:AAsecret-secret-secret"
PLACE = Place(platform=f"telegram-{BOT}", id="-1001234567890", kind="group", title="Friends", service="telegram")


CW_DUMP = """-- MySQL dump 10.13  Distrib 8.0.36, for Linux (x86_64)
CREATE TABLE `media_metadata` (
  `unique_id` varchar(255) NOT NULL,
  `kind` varchar(50) DEFAULT NULL,
  `description` text,
  PRIMARY KEY (`unique_id`)
);
INSERT INTO `media_metadata` VALUES ('46033261910035204','sticker','a cat\\'s yawn');
INSERT INTO `memories` (`id`, `content`) VALUES ('m1','likes tea');
"""


def write_export(folder: Path, export: dict[str, Any]) -> Path:
    file = folder / "result.json"
    file.write_text(value(export), encoding="utf-8")
    return file


def log_of(db: Path, place: Place = PLACE) -> list[Message]:
    async def read() -> list[Message]:
        async with Store.open(db) as store:
            assert await store.check() == []
            return list(await store.log.read(place, 0, 10**6))

    return asyncio.run(read())


def test_an_export_is_imported_once(tmp_path: Path) -> None:
    db = tmp_path / "bot.db"
    file = write_export(tmp_path, chat([service(1, "create_group"), message(2, "hi"), message(3, "Kyiv\x0b")]))

    first = tertulia("import", str(file), "--bot", TOKEN, "--db", str(db))
    again = tertulia("import", str(tmp_path), "--bot", BOT, "--db", str(db), "--json")

    assert (first.returncode, first.stdout.splitlines()) == (
        0,
        [
            "Read as an export of Telegram Desktop, for the bot telegram-4242.",
            "  Friends: 2 messages",
            "2 messages added, 0 known before.",
            "Skipped: 1 service messages, such as pins and calls.",
            "They can be searched and shown to the model. No facts are learned from them: that takes --learn.",
        ],
    )
    assert json.loads(again.stdout) == {
        "form": "telegram",
        "platform": "telegram-4242",
        "added": 0,
        "known": 2,
        "descriptions": 0,
        "facts": 0,
        "episodes": 0,
        "bans": 0,
        "remembered": 0,
        "skipped": {"service messages, such as pins and calls": 1},
        "chats": [{"id": "-1001234567890", "title": "Friends", "messages": 2}],
        "error": None,
    }
    assert [(one.id, one.text) for one in log_of(db)] == [("2", "hi"), ("3", "Kyiv\x0b")]
    assert "secret" not in first.stdout + first.stderr


def test_what_was_imported_is_indexed_at_once(tmp_path: Path) -> None:
    file = write_export(tmp_path, chat([message(2, "borscht with beetroot")]))

    tertulia("import", str(file), "--bot", BOT, "--db", str(tmp_path / "bot.db"))

    assert asyncio.run(count_indexed(tmp_path / "bot.db")) == 1


async def count_indexed(db: Path) -> int:
    async with Store.open(db) as store:
        return (await store.index_writer.progress(None)).indexed


@pytest.mark.parametrize("learn", [False, True])
def test_no_model_is_asked_unless_it_was_asked_for(tmp_path: Path, learn: bool) -> None:
    """The import asks none, and a bot that starts with a memory asks its model only after --learn."""
    db = tmp_path / "bot.db"
    days = (datetime(2024, 3, day, 12, minute, tzinfo=UTC) for day in range(1, 9) for minute in range(12))
    entries = [message(number, f"I live in Kyiv, {number}", at=at) for number, at in enumerate(days, start=1)]
    file = write_export(tmp_path, chat(entries))

    tertulia("import", str(file), "--bot", BOT, "--db", str(db), *(["--learn"] if learn else []))

    model, episodes = asyncio.run(start_memory(db))
    assert (bool(model.prompts), episodes > 3) == (learn, True)


async def start_memory(db: Path) -> tuple[Scripted, int]:
    """Let a bot's memory read what is unread, with a model; return the model, and how many episodes there are."""
    model = Scripted(*["{}"] * 100)
    async with Store.open(db) as store:
        learner = Learner(store.facts, store.cursors, store.log, model=model, now=lambda: datetime.now(UTC))
        writer = EpisodeWriter(store.episodes, store.log, model=model)
        for one in (learner, writer):
            await one.start()
            await one.done()
            await one.close()
        return model, len(await store.episodes.listed(PLACE))


@pytest.mark.parametrize("where", ["variable", "config"])
def test_the_bot_is_the_one_that_runs(tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if where == "config":
        (tmp_path / "tertulia.toml").write_text(f'[telegram]\ntoken = "{TOKEN}"\n', encoding="utf-8")
    environment = {"TERTULIA_TELEGRAM_TOKEN": TOKEN} if where == "variable" else {}
    file = write_export(tmp_path, chat([message(2, "hi")]))

    done = tertulia("import", str(file), "--db", str(tmp_path / "bot.db"), "--json", **environment)

    assert json.loads(done.stdout)["platform"] == "telegram-4242"


def test_only_the_chats_that_are_named_are_imported(tmp_path: Path) -> None:
    others = chat([message(1, "there")], name="Others", id=8)
    personal = chat([message(1, "secret")], name="Bo", type="personal_chat", id=6)
    file = write_export(tmp_path, account(chat([message(2, "hi")]), others, personal))

    done = tertulia("import", str(file), "--bot", BOT, "--db", str(tmp_path / "bot.db"), "--chat", "Friends", "--json")

    assert json.loads(done.stdout)["chats"] == [{"id": "-1001234567890", "title": "Friends", "messages": 1}]
    assert sum(json.loads(done.stdout)["skipped"].values()) == 2


def test_a_file_that_ends_too_early_gives_what_it_has(tmp_path: Path) -> None:
    db = tmp_path / "bot.db"
    file = write_export(tmp_path, chat([message(1, "one"), message(2, "two")]))
    whole = file.read_bytes()
    file.write_bytes(whole[: whole.index(b'"two"')])

    cut = tertulia("import", str(file), "--bot", BOT, "--db", str(db))
    file.write_bytes(whole)
    done = tertulia("import", str(file), "--bot", BOT, "--db", str(db), "--json")

    told = "line 28: no JSON that we read: the file ends too early; the 1 message before that is imported"
    assert (cut.returncode, cut.stderr.splitlines()[-1]) == (2, f"tertulia: {told}")
    assert (json.loads(done.stdout)["added"], [one.text for one in log_of(db)]) == (1, ["one", "two"])


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("messages.html", "<!DOCTYPE html><html>", "is HTML; an export has a file result.json"),
        ("other.dump", "-- MySQL dump 10.13\n", "the dump is not one of cw-telegram-agent"),
        ("other.sql", "--\n-- PostgreSQL database dump\n--\n", "the dump has no rows of messages"),
        ("half.json", '{"name": "x", "type": "private_group"', "the file ends too early"),
    ],
)
def test_what_cannot_be_imported_says_why(tmp_path: Path, name: str, content: str, error: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")

    done = tertulia("import", str(tmp_path / name), "--bot", BOT, "--db", str(tmp_path / "bot.db"))

    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert error in done.stderr


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ([], "tertulia: for which bot? --bot takes its token, or its id"),
        (["--bot", "gryag"], "tertulia: the bot's id is the number before the colon of its token"),
        (["--bot", BOT, "--to", "turns"], "tertulia: --to and --model are for conversations that are printed"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    tmp_path: Path, options: list[str], error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = write_export(tmp_path, chat([message(1, "one")]))

    done = tertulia("import", str(file), "--db", str(tmp_path / "bot.db"), *options)

    assert done.returncode == 2
    assert done.stderr.startswith(error)
    assert not (tmp_path / "bot.db").exists()


def test_a_folder_without_an_export_and_options_of_a_store_are_refused(tmp_path: Path) -> None:
    empty = tertulia("import", str(tmp_path), "--bot", BOT)
    printed = tertulia("import", "-", "--bot", BOT, given="[]")
    piped = tertulia("import", "-", "--from", "telegram", given="{}")

    assert empty.stderr.startswith(f"tertulia: there is no result.json in {tmp_path}")
    assert printed.stderr.startswith("tertulia: --bot, --chat, --learn, --db and --json are for what goes into a store")
    assert piped.stderr == "tertulia: --from telegram needs a file, not standard input\n"


def gryag_database(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute(
            "CREATE TABLE messages (id INTEGER PRIMARY KEY, chat_id, thread_id, user_id, external_message_id, role, "
            "sender_name, text, media, embedding, ts)"
        )
        rows = [
            (-1001234567890, None, 11, "2", "user", "Alice", "hi", None, None, 1709294520),
            (-1001234567890, None, None, "3", "model", "gryag", "hello", None, "[0.1]", 1709294521),
        ]
        marks = ", ".join("?" * 10)
        database.executemany(f"INSERT INTO messages VALUES (NULL, {marks})", rows)  # noqa: S608
        database.execute("CREATE TABLE user_memories (id, user_id, memory_text)")
        database.execute("INSERT INTO user_memories VALUES (1, 11, 'likes tea')")
    database.close()


def test_a_database_of_gryag_and_an_export_of_its_group_are_one_log(tmp_path: Path) -> None:
    db, old = tmp_path / "bot.db", tmp_path / "gryag.db"
    gryag_database(old)
    file = write_export(tmp_path, chat([message(1, "older"), message(2, "hi"), message(4, "newer")]))

    first = tertulia("import", str(old), "--bot", BOT, "--db", str(db))
    tertulia("import", str(file), "--bot", BOT, "--db", str(db))

    assert first.stdout.splitlines()[:4] == [
        "Read as a database of gryag, for the bot telegram-4242.",
        "  -1001234567890: 2 messages",
        "2 messages added, 0 known before.",
        "1 fact, 0 episodes and 0 bans taken over, 0 known before.",
    ]
    assert [(one.id, one.text) for one in log_of(db)] == [("1", "older"), ("2", "hi"), ("3", "hello"), ("4", "newer")]


def test_a_dump_of_gryags_postgres_is_read(tmp_path: Path) -> None:
    dump = tmp_path / "gryag.sql"
    columns = "id, chat_id, user_id, username, first_name, text, message_id, is_bot_reply, created_at"
    lines = [
        "--\n-- PostgreSQL database dump\n--\n",
        "COPY public.user_facts (id, chat_id) FROM stdin;\n1\t2\n\\.\n",
        f"COPY public.messages ({columns}) FROM stdin;",
        "1\t-1001234567890\t11\talice\tAlice\ttwo\\nlines \\\\ \\t.\t7\tf\t2026-03-01 12:00:00+00",
        "2\t-1001234567890\t\\N\t\\N\tgryag\tyes\t8\tt\t2026-03-01 12:00:01+00",
        "\\.\n",
    ]
    dump.write_text("\n".join(lines), encoding="utf-8")

    done = tertulia("import", str(dump), "--bot", BOT, "--db", str(tmp_path / "bot.db"), "--json")

    assert json.loads(done.stdout)["added"] == 2
    place = Place(platform=f"telegram-{BOT}", id="-1001234567890", kind="group", service="telegram")
    found = log_of(tmp_path / "bot.db", place)
    assert [(one.author.id, one.text) for one in found] == [("11", "two\nlines \\ \t."), (BOT, "yes")]


def test_a_dump_of_cw_gives_descriptions_once(tmp_path: Path) -> None:
    dump, db = tmp_path / "cw.sql", tmp_path / "bot.db"
    dump.write_text(CW_DUMP, encoding="utf-8")

    first = tertulia("import", str(dump), "--db", str(db))
    again = tertulia("import", str(dump), "--db", str(db), "--json")

    assert (first.returncode, first.stdout.splitlines()) == (
        0,
        [
            "Read as a dump of cw-telegram-agent, which has its messages in Telegram: export those from there.",
            "1 description of media added.",
            "Skipped: 1 memories, plans and summaries, which name no message as their source.",
        ],
    )
    assert (json.loads(again.stdout)["descriptions"], described(db, "AgADBAsAAgKLowAB")) == (0, "a cat's yawn")


def described(db: Path, unique_id: str) -> str:
    async def read() -> str:
        async with Store.open(db) as store:
            return (await store.descriptions.find([unique_id]))[unique_id].words

    return asyncio.run(read())


def test_databases_of_others_are_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as database:
        database.execute("CREATE TABLE messages (id, body)")
    database.close()

    done = tertulia("import", str(other), "--bot", BOT, "--db", str(tmp_path / "bot.db"))

    assert done.returncode == 2
    assert "is a database, but not one of gryag" in done.stderr
