"""Structs as rows: read and written by one definition."""

from datetime import datetime

from msgspec import Struct

from people import NOON
from tertulia.store.encoding import Columns
from tertulia.store.rows import Rows
from tertulia.store.sqlite.connection import MEMORY, SqliteDatabase, connect


class Kennel(Struct, frozen=True, kw_only=True):
    city: str
    places: int


class Dog(Struct, frozen=True, kw_only=True):
    name: str
    born: datetime
    tricks: tuple[str, ...] = ()
    good: bool = True
    kennel: Kennel | None = None
    owner: str = ""
    siblings: int = 0


OF_KENNEL = Columns(Kennel, "city places=size", "d")
OWNER = "(SELECT o.name FROM owners o WHERE o.dog = d.name)"
SIBLINGS = "(SELECT count(*) FROM dogs s WHERE s.city = d.city AND s.name <> d.name)"
DOGS = Rows(Dog, "dogs d", "name born tricks good", kennel=OF_KENNEL, owner=OWNER, siblings=SIBLINGS)
REX = Dog(name="Rex", born=NOON, tricks=("sit", "roll"), kennel=Kennel(city="Kyiv", places=9))
BIM = Dog(name="Bim", born=NOON, good=False)


def dogs(*some: Dog) -> SqliteDatabase:
    database = connect(MEMORY)
    database.run("CREATE TABLE dogs (name TEXT PRIMARY KEY, born TEXT, tricks TEXT, good INT, city TEXT, size INT)")
    database.run("CREATE TABLE owners (dog TEXT, name TEXT)")
    for dog in some:
        DOGS.insert(database, dog)
    return database


def test_what_was_written_is_read_with_the_structs_within_it() -> None:
    database = dogs(REX, BIM)

    assert DOGS.all(database, "ORDER BY d.name DESC") == [REX, BIM]
    assert DOGS.one(database, "WHERE d.name = :name", name="Bim") == BIM
    assert DOGS.one(database, "WHERE d.name = :name", name="Sharik") is None


def test_a_field_that_is_an_expression_is_read_and_not_written() -> None:
    database = dogs(REX, Dog(name="Bim", born=NOON, kennel=REX.kennel, owner="Nobody", siblings=7))
    database.run("INSERT INTO owners (dog, name) VALUES ('Rex', 'Oksana')")

    assert [(dog.owner, dog.siblings) for dog in DOGS.all(database, "ORDER BY d.name")] == [("", 1), ("Oksana", 1)]


def test_rows_are_read_beside_other_columns_and_by_one() -> None:
    database = dogs(REX, BIM)

    assert DOGS.beside(database, "d.size, d.city", "WHERE d.good = 1") == [(REX, (9, "Kyiv"))]
    assert DOGS.by(database, "d.good", "ORDER BY d.name") == {1: [REX], 0: [BIM]}


def test_a_row_takes_the_place_of_one_with_its_key() -> None:
    database = dogs(REX)

    DOGS.upsert(database, "name", Dog(name="Rex", born=NOON))

    assert DOGS.all(database) == [Dog(name="Rex", born=NOON)]
