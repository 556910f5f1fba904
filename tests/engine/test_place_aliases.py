"""The engine and the store agree on where places that have moved go on."""

from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.engine.place_aliases import PlaceAliases
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
