"""The engine and the store agree on where places that have moved go on, and a place has one delimiter."""

from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.engines import DIRECT, GROUP
from people import NOON
from tertulia.engine.places import DelimiterCache, PlaceAliases
from tertulia.messages import Place
from tertulia.platform import PlaceMigrated
from tertulia.store import Store

PLACES = [Place(platform="telegram", id=name, kind="group") for name in "abcd"]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PLACES), st.sampled_from(PLACES)), max_size=8))
async def test_whatever_moves_where_the_engine_knows_what_the_store_knows(moves: list[tuple[Place, Place]]) -> None:
    moved = PlaceAliases()
    async with Store.open(":memory:") as store:
        for number, (old, new) in enumerate(moves):
            change = PlaceMigrated(old=old, new=new)
            keep = timedelta(days=1)
            outcome = await store.updates.apply("telegram", [change], key=str(number), raw=None, at=NOON, keep=keep)
            assert not outcome.refused
            moved.move(old, new)
        known = await store.updates.migrated_places()
        assert await store.check() == []

    assert {place.key: moved.current(place).key for place in PLACES} == {
        place.key: known.get(place.key, place).key for place in PLACES
    }


async def test_a_place_has_one_delimiter_whatever_it_is_called(store: Store) -> None:
    made = DelimiterCache(store.place_settings.delimiter)

    found = {await made.get(place) for place in (GROUP, GROUP, replace(GROUP, title="Enemies"))}

    assert found == {await store.place_settings.delimiter(GROUP)}
    assert await made.get(DIRECT) not in found


async def test_of_too_many_places_the_delimiters_are_read_again_and_are_the_same(store: Store) -> None:
    reads: list[Place] = []

    async def read(place: Place) -> str:
        reads.append(place)
        return await store.place_settings.delimiter(place)

    made = DelimiterCache(read, max_places=2)
    places = [replace(DIRECT, id=str(number)) for number in range(5)]

    first = [await made.get(place) for place in places]

    assert [await made.get(place) for place in places] == first
    assert reads == places * 2
