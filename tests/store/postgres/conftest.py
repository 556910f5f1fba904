"""A database of a real server for each test, with the tables of the store."""

from collections.abc import Iterator

import pytest

import postgres
from tertulia.store.postgres.connection import PostgresDatabase


@pytest.fixture
def url() -> str:
    return postgres.empty_database()


@pytest.fixture
def database(url: str) -> Iterator[PostgresDatabase]:
    opened = PostgresDatabase(url)
    yield opened
    opened.close()
