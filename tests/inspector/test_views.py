"""What of a view goes to readers elsewhere has no bytes, marks or words of blocked people."""

from msgspec.structs import replace

from engine.engines import ALICE, BOB, GROUP, said
from inspector.evening import NOW, an_evening
from tertulia.engine.view import View, nothing, whole
from tertulia.engine.view_reader import ViewReader
from tertulia.inspector.shown import as_json
from tertulia.inspector.views import shown_change
from tertulia.parts import Media, Text
from tertulia.store import Store


async def test_a_view_is_shown_without_what_is_not_for_others(store: Store) -> None:
    photo = Media(media_kind="photo", unique_id="p", file_id="secret", uri="https://e.test/?key=AIzaSyB1234567890abcde")
    await store.inbox.receive(said("hi", 1, place=GROUP, author=ALICE, parts=(photo, Text(text="look"))), at=NOW)
    await store.inbox.receive(said("rude", 2, place=GROUP, author=BOB), at=NOW)
    await store.place_settings.block(platform="recorded", author_id=BOB.id, at=NOW)

    seen = as_json(await shown_change(store, GROUP, whole(await ViewReader(store, GROUP).read())))

    assert ["look" in seen, "rude" in seen, "secret" in seen, "AIzaSy" in seen] == [True, False, False, False]


async def test_nothing_is_left_out_of_a_plain_evening() -> None:
    async with an_evening() as store:
        view = await ViewReader(store, GROUP).read()

        assert await shown_change(store, GROUP, whole(view)) == whole(view)
        assert [one.run.status for one in view.runs] == ["done", "done", "failed"]
        assert [one.kind for one in view.deliveries] == ["answer", "answer", "error"]


async def test_a_change_of_nothing_is_as_it_is(store: Store) -> None:
    change = nothing(View(place=GROUP, event=7))

    assert await shown_change(store, GROUP, change) == replace(change, event=7)
