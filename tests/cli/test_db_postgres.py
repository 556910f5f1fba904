"""`tertulia db` with a store in PostgreSQL."""

import asyncio
import json
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

import postgres
from cli.command import tertulia
from people import NOON, a_message
from tertulia.store import Store
from tertulia.store_url import masked


async def fill(file: str) -> None:
    async with Store.open(file) as store:
        await store.inbox.receive(a_message("hello"), at=NOON)


def test_a_store_moves_to_postgresql_and_every_command_works_there(tmp_path: Path) -> None:
    url, file, back = postgres.empty_database(), str(tmp_path / "a.db"), str(tmp_path / "b.db")
    asyncio.run(fill(file))
    environment = {"TERTULIA_DB": url, "XDG_DATA_HOME": str(tmp_path / "data")}

    moved = tertulia("db", "move", file, url, **environment)
    assert (moved.returncode, moved.stdout.split(" of ")[0].rpartition(" has ")[2]) == (0, "all 7 rows")
    checked = tertulia("db", "check", **environment)
    assert (checked.returncode, checked.stdout) == (
        0,
        "all is well: 1 place, 1 message, 0 runs, 0 replies, 0 tasks, 0 files\n",
    )
    exported = tertulia("db", "export", **environment)
    assert [row["text"] for row in map(json.loads, exported.stdout.splitlines()) if row["table"] == "messages"] == [
        "hello"
    ]
    assert tertulia("db", "backup", str(tmp_path / "copy.db"), **environment).returncode == 0
    assert tertulia("db", "check", "--db", str(tmp_path / "copy.db")).stdout == checked.stdout
    assert tertulia("db", "prune", "--prompts", "1", **environment).returncode == 0
    again = tertulia("db", "move", file, url, **environment)
    assert (again.returncode, again.stderr.splitlines()[-1]) == (
        2,
        f"tertulia: the store {masked(url)}: there is something in it; a store moves to an empty one",
    )
    assert tertulia("db", "move", url, back, **environment).returncode == 0
    assert tertulia("db", "check", "--db", back).stdout == checked.stdout
    forgotten = tertulia("db", "forget", "u123", "--yes", **environment)
    assert (forgotten.returncode, forgotten.stderr) == (0, "")
    assert '"hello"' not in tertulia("db", "export", **environment).stdout


def test_a_wrong_url_is_one_line_without_the_password() -> None:
    ran = tertulia("db", "check", "--db", "postgresql://me:s3cret@127.0.0.1:1/bot")

    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("tertulia: the store postgresql://127.0.0.1:1/bot: the database does not answer (")
    assert "s3cret" not in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_a_url_without_user_and_host_is_what_libpq_takes_it_for(tmp_path: Path) -> None:
    known = conninfo_to_dict(postgres.empty_database())
    url, config = f"postgresql:///{known['dbname']}", tmp_path / "tertulia.toml"
    config.write_text(f'store = "{url}"\n')
    environment = {f"PG{name.upper()}": str(known[name]) for name in ("user", "host", "port") if known.get(name)}
    environment |= {"TERTULIA_CONFIG": str(config), "TERTULIA_DB": "", "XDG_DATA_HOME": str(tmp_path)}

    for options in (("--db", url), ()):
        checked = tertulia("db", "check", *options, **environment)

        assert (checked.returncode, checked.stderr) == (0, "")
