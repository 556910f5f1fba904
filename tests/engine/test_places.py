"""The engine and the store agree on where places that have moved go on, and a place has one delimiter."""

from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.engines import DIRECT, GROUP
from palaver.engine.places import DelimiterCache, PlaceAliases
from palaver.messages import Place
from palaver.platform import PlaceMigrated
from palaver.store import Store
from people import NOON

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


class CountedPlaceSettings:
    """Counts how often a delimiter is read."""

    def __init__(self, store: Store) -> None:
        self.reads = 0
        self._place_settings = store.place_settings

    async def delimiter(self, place: Place) -> str:
        self.reads += 1
        return await self._place_settings.delimiter(place)


async def test_a_place_has_one_delimiter_whatever_it_is_called(store: Store) -> None:
    made = DelimiterCache(store.place_settings)

    found = {await made.get(place) for place in (GROUP, GROUP, replace(GROUP, title="Enemies"))}

    assert found == {await store.place_settings.delimiter(GROUP)}
    assert await made.get(DIRECT) not in found


async def test_of_too_many_places_the_delimiters_are_read_again_and_are_the_same(store: Store) -> None:
    place_settings: Any = CountedPlaceSettings(store)
    made = DelimiterCache(place_settings, max_places=2)
    places = [replace(DIRECT, id=str(number)) for number in range(5)]

    first = [await made.get(place) for place in places]

    assert [await made.get(place) for place in places] == first
    assert place_settings.reads == 10
