"""Where a store is, as a path or a URL, and what messages show of it."""

import pytest

from tertulia.errors import StoreRefused
from tertulia.store import Store
from tertulia.store_url import is_url, masked

SHOWN = {
    "postgresql://me:s3cret@db.example:5433/bot?sslmode=require": "postgresql://db.example:5433/bot",
    "postgres://me:s3cret@db.example/bot": "postgresql://db.example/bot",
    "postgresql://db.example/bot?user=me@home&password=s3cret": "postgresql://db.example/bot",
    "postgresql://me:s3cret@[::1]:5433/bot": "postgresql://[::1]:5433/bot",
    "postgresql://me:s3cret@one:1,two:2/bot": "postgresql://one:1,two:2/bot",
    "postgresql://me:s3cret@/bot?host=/run/postgresql": "postgresql://localhost/bot",
    "postgresql:///bot?host=/run/postgresql": "postgresql://localhost/bot",
    "tertulia.db": "tertulia.db",
}
WRONG = (
    "postgresql://me:4711/s3cret@db.example/bot",
    "postgresql://me:4711?s3cret@db.example/bot",
    "postgresql://me:4711#s3cret@db.example/bot",
    "postgresql://me:p@s3cret@db.example/bot",
    "postgresql+psycopg://me:s3cret@db.example/bot",
    "POSTGRESQL://me:s3cret@db.example/bot",
    " postgresql://me:s3cret@db.example/bot",
    "mysql://me:s3cret@db.example/bot",
    "jdbc:postgresql://db.example/bot?password=s3cret",
    "host=127.0.0.1 password=s3cret",
)


def test_of_a_url_messages_show_the_server_and_the_database() -> None:
    assert {url: masked(url) for url in SHOWN} == SHOWN


@pytest.mark.parametrize("url", WRONG)
def test_what_is_no_url_of_postgresql_is_refused_and_nothing_of_it_is_shown(url: str) -> None:
    with pytest.raises(StoreRefused) as refused, Store.open(url):
        pass

    assert is_url(url)
    assert masked(url) == "postgresql://…"
    assert "s3cret" not in str(refused.value)
    assert "4711" not in str(refused.value)


def test_a_path_is_no_url() -> None:
    paths = (
        "tertulia.db",
        "/var/lib/bot/tertulia.db",
        "./a:b.db",
        "C:/bots/tertulia.db",
        "postgresql:/a.db",
        ":memory:",
    )

    assert [path for path in paths if is_url(path)] == []
