"""Descriptions: one by each model for all places, each with the position since which a place knows it."""

from datetime import timedelta

from msgspec.structs import replace

from people import ALICE, GROUP, NOON, a_message, a_photo
from store.builders import a_run, begin
from tertulia.formats.imported import ImportedMessage
from tertulia.media.descriptions import Description, DescriptionFailure
from tertulia.messages import Place
from tertulia.platform import PlaceMigrated
from tertulia.store import Store

LATER = NOON + timedelta(hours=1)
OTHER = replace(GROUP, id="-100999")
PHOTO = a_photo(data=None, file_id="f1")


async def show(store: Store, *numbers: int, place: Place = GROUP) -> None:
    """Store a photo, the same in each of these messages."""
    for number in numbers:
        sent_at = NOON + timedelta(minutes=number)
        message = a_message("", id=str(number), place=place, sent_at=sent_at, parts=(PHOTO,))
        await store.inbox.receive(message, at=NOON)


async def run_with(store: Store, count: int, *, place: Place = GROUP) -> None:
    """Begin a run that knows *count* messages of a place."""
    await begin(store, a_run(id=f"{place.id}/{count}", place=place, target="0", taken=(), horizon=count))


async def test_media_are_described_once_for_everybody(store: Store) -> None:
    await store.descriptions.describe("p1", "a cat", by="gemini-3.8-flash", at=NOON)
    await store.descriptions.describe("p2", "half of a \ud83d", by="gemini-3.8-flash", at=NOON)
    await store.descriptions.describe("p1", "a black cat", by="gemini-3.8-flash", at=LATER)

    found = await store.descriptions.find(["p2", "p1", "p3", "p1", *map(str, range(2000))])

    assert found == {"p1": Description(words="a black cat"), "p2": Description(words="half of a \ud83d")}
    assert await store.descriptions.find([]) == {}


async def test_the_newest_of_several_models_is_shown_and_earlier_messages_keep_the_one_before(store: Store) -> None:
    await show(store, 0)
    await store.descriptions.describe("p1", "a cat", by="m", at=NOON)
    await run_with(store, 1)
    await store.descriptions.describe("p1", "a black cat", by="n", at=NOON - timedelta(days=1))  # by another clock

    [found] = (await store.descriptions.find(["p1"], GROUP)).values()
    assert found == Description(words="a black cat", position=1, before=Description(words="a cat"))
    assert [found.known_at(position) for position in (0, 1)] == ["a cat", "a black cat"]
    assert await store.descriptions.find(["p1"]) == {"p1": Description(words="a black cat")}
    assert await store.descriptions.makers(["p1", "p2"]) == {"p1": {"m", "n"}}


async def test_one_model_has_one_description_of_media(store: Store) -> None:
    for by, words in (("m", "a cat"), ("n", "a dog"), ("m", "a tall cat")):
        await store.descriptions.describe("p1", words, by=by, at=NOON)

    rows = [row["text"] async for row in store.export() if row["table"] == "descriptions"]
    assert rows == ["a dog", "a tall cat"]
    assert await store.descriptions.find(["p1"]) == {"p1": Description(words="a tall cat")}


async def test_words_for_media_that_no_run_has_shown_hold_from_the_start(store: Store) -> None:
    await show(store, 0)
    await run_with(store, 1)
    await show(store, 1, place=OTHER)
    await store.descriptions.describe("p1", "a cat", by="m", at=NOON)

    assert await store.descriptions.find(["p1"], GROUP) == {"p1": Description(words="a cat", position=1)}
    assert await store.descriptions.find(["p1"], OTHER) == {"p1": Description(words="a cat")}
    assert await store.descriptions.find(["p1"], replace(GROUP, id="unknown")) == {"p1": Description(words="a cat")}


async def test_a_position_is_what_the_newest_run_knew_and_not_what_came_since(store: Store) -> None:
    await show(store, 0, 1, 2)
    await run_with(store, 2)
    await show(store, 3)
    await store.descriptions.describe("p1", "a cat", by="m", at=NOON)
    await run_with(store, 4)

    assert await store.descriptions.find(["p1"], GROUP) == {"p1": Description(words="a cat", position=2)}


async def test_a_position_moves_with_the_messages_of_an_import(store: Store) -> None:
    await show(store, 5, 6)
    await run_with(store, 2)
    await store.descriptions.describe("p1", "a cat", by="m", at=NOON)

    past = [a_message(id=str(number), sent_at=NOON + timedelta(minutes=number)) for number in (1, 2, 3)]
    await store.imports.add([ImportedMessage(message=one) for one in past])
    await store.imports.finish(GROUP, learn=False)

    assert await store.descriptions.find(["p1"], GROUP) == {"p1": Description(words="a cat", position=5)}


async def test_a_position_moves_with_the_messages_of_a_place(store: Store) -> None:
    await show(store, 0, 1, 2)
    await show(store, 10, 11, place=OTHER)
    for place, count in ((GROUP, 3), (OTHER, 2)):
        await run_with(store, count, place=place)
    await store.descriptions.describe("p1", "a cat", by="m", at=NOON)

    change = PlaceMigrated(old=GROUP, new=OTHER)
    await store.updates.apply("telegram", [change], key="k", raw=None, at=NOON, keep=timedelta(0))

    assert await store.descriptions.find(["p1"], OTHER) == {"p1": Description(words="a cat", position=5)}
    assert await store.check() == []


async def test_a_forgotten_place_leaves_no_position(store: Store) -> None:
    direct = replace(GROUP, id=ALICE.id, kind="direct")
    await show(store, 0)
    await show(store, 1, place=direct)
    await run_with(store, 1, place=direct)
    await store.descriptions.describe("p1", "a cat", by="m", at=NOON)

    await store.forget(platform="telegram", author_id=ALICE.id)

    assert await store.descriptions.find(["p1"], direct) == {}
    assert await store.check() == []


async def test_a_failure_belongs_to_a_model_and_ends_with_a_description(store: Store) -> None:
    failure = DescriptionFailure(why="it is busy", failures=2, retry_at=LATER)
    for unique_id in ("p1", "p2"):
        await store.descriptions.fail(unique_id, replace(failure, failures=1), by="m")
        await store.descriptions.fail(unique_id, failure, by="m")
    await store.descriptions.describe("p1", "a dog", by="other", at=NOON)
    await store.descriptions.describe("p2", "a dog", by="m", at=NOON)

    assert await store.descriptions.failures(["p1", "p2"], by="m") == {"p1": failure}
    assert await store.descriptions.failures(["p1"], by="other") == {}
    assert await store.descriptions.failures([], by="m") == {}
