"""Where the files of media of a database are."""

from pathlib import Path

import pytest

from tertulia.redaction import redact_keys
from tertulia.store.postgres.opening import ServerStore


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("postgresql://bot:secret@localhost:15432/tertulia?sslmode=require", "tertulia/localhost-15432/tertulia"),
        ("postgresql:///bot?host=/run/postgresql", "tertulia/localhost/bot"),
    ],
)
def test_files_are_in_a_folder_named_after_host_and_database_which_a_log_shows(url: str, path: str) -> None:
    found = Path(ServerStore(url).files).as_posix()

    assert found.endswith(path)
    assert redact_keys(found) == found
