from typing import Any

from msgspec.structs import replace

from engine.engines import DIRECT, GROUP
from palaver.engine.delimiters import DelimiterCache
from palaver.messages import Place
from palaver.store import Store


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
