"""A store is a path, or a URL that is shown without what is nobody's business."""

import pytest

from tertulia.store_url import is_url, masked


@pytest.mark.parametrize(
    ("store", "is_of_server", "shown"),
    [
        ("bot.db", False, "bot.db"),
        ("postgresql:/bot.db", False, "postgresql:/bot.db"),
        ("postgresql://anna:secret@db.example:6432/bot?sslmode=require", True, "postgresql://db.example:6432/bot"),
        ("postgres://db.example/bot?password=secret", True, "postgresql://db.example/bot"),
        ("postgresql:///bot?host=/run/postgresql", True, "postgresql://localhost/bot"),
        ("postgresql://anna:sec/ret@host:x/bot", True, "postgresql://…"),
    ],
)
def test_a_store_is_shown_without_user_password_and_options(store: str, is_of_server: bool, shown: str) -> None:
    assert (is_url(store), masked(store)) == (is_of_server, shown)
