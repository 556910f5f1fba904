import asyncio
import math
from typing import Any

import pytest
from msgspec.structs import replace

from engine.engine_world import World
from palaver.context.values import Context
from palaver.engine.media_descriptions import ASKED, Describe, MediaDescriber, by_model
from palaver.errors import Overloaded, StoreFull
from palaver.media.descriptions import Description
from palaver.messages import Message
from palaver.models.scripted import Scripted
from palaver.parts import Media, Text
from palaver.store import Store
from palaver.turns import user
from people import NOON, a_context, a_message, a_photo, a_quote

PHOTO = a_photo()
TIMEOUT = 120.0
KEY = "AIza" + "x7Qf" * 9


class Eyes:
    """Says of each what it is, and notes what it was asked."""

    def __init__(self, *says: Any) -> None:
        self.asked: list[str] = []
        self._says = list(says)

    async def __call__(self, media: Media) -> str:
        self.asked.append(media.unique_id)
        said = self._says.pop(0) if self._says else f"a picture of {media.unique_id}"
        if isinstance(said, BaseException):
            raise said
        return said


def with_media(*media: Media, name: str = "m1", **changes: Any) -> Message:
    return a_message(id=name, parts=(Text(text="look"), *media), **changes)


def describer(store: Store, eyes: Describe | None) -> MediaDescriber:
    return MediaDescriber(store.descriptions, eyes, now=lambda: NOON)


async def described(store: Store, eyes: Describe | None, context: Context) -> Context:
    made = describer(store, eyes)
    if made.is_enabled:
        await made.describe(await made.find_undescribed(context.batch))
    return await made.add_descriptions(context)


def words(message: Message) -> list[str | None]:
    return [part.rendered_text for part in message.parts if isinstance(part, Media)]


async def test_what_the_target_shows_is_put_into_words_and_nothing_else_changes(store: Store) -> None:
    eyes, target = Eyes(), with_media(PHOTO)

    found = await described(store, eyes, a_context(target))

    told = replace(target, parts=(Text(text="look"), replace(PHOTO, rendered_text="a picture of p1")))
    assert found == a_context(told)
    assert await store.descriptions.find(["p1"]) == {"p1": Description(words="a picture of p1")}


async def test_what_was_shown_before_is_known_but_never_asked_for(store: Store) -> None:
    await store.descriptions.describe("known", "a green cat", by="", at=NOON)
    eyes = Eyes()
    seen, unseen = with_media(a_photo(unique_id="known"), name="a"), with_media(a_photo(unique_id="new"), name="b")

    found = await described(store, eyes, a_context(window=(seen, unseen), recent=(seen,), immediate=(seen,)))

    told = (seen.parts[0], a_photo(unique_id="known", rendered_text="a green cat"))
    assert [message.parts for message in found.window] == [told, unseen.parts]
    assert [found.recent[0].parts, found.immediate[0].parts] == [told, told]
    assert eyes.asked == []


async def test_what_the_target_quotes_is_described_too(store: Store) -> None:
    target = a_message(reply_to=a_quote("", parts=(PHOTO,)))

    found = await described(store, Eyes(), a_context(target))

    quote = found.target.reply_to
    assert quote is not None
    assert quote.parts == (replace(PHOTO, rendered_text="a picture of p1"),)


async def test_one_picture_is_asked_for_once_however_often_it_is_shown(store: Store) -> None:
    eyes = Eyes()
    target = with_media(PHOTO, PHOTO, reply_to=a_quote("", parts=(PHOTO,)))

    found = await described(store, eyes, a_context(target))
    again = await described(store, eyes, a_context(with_media(PHOTO, name="m2")))

    assert eyes.asked == ["p1"]
    assert words(found.target) * 2 == [*words(again.target) * 2, *words(again.target) * 2]


LEFT = [
    a_photo(rendered_text="a cat"),  # it has its words
    a_photo(unique_id=""),  # it could not be known again
    a_photo(data=None),  # there is nothing to look at
]


@pytest.mark.parametrize("media", LEFT)
async def test_what_cannot_be_described_or_need_not_be_stays_as_it_is(store: Store, media: Media) -> None:
    eyes, context = Eyes(), a_context(with_media(media))

    assert await described(store, eyes, context) == context
    assert eyes.asked == []


async def test_where_nobody_describes_what_is_known_is_told_all_the_same(store: Store) -> None:
    await store.descriptions.describe("p1", "a green cat", by="", at=NOON)

    found = await described(store, None, a_context(with_media(PHOTO, a_photo(unique_id="new"))))

    assert words(found.target) == ["a green cat", None]


async def test_a_context_without_media_is_the_same_object(store: Store) -> None:
    context = a_context(window=(a_message(id="a"),))

    assert await described(store, Eyes(), context) is context


@pytest.mark.parametrize(
    "failure", [OSError(f"no such file: {KEY}"), Overloaded("busy"), ZeroDivisionError(), "", None]
)
async def test_a_failure_leaves_it_as_it_is_and_it_is_asked_for_again_next_time(
    store: Store, failure: Any, caplog: pytest.LogCaptureFixture
) -> None:
    eyes, context = Eyes(failure), a_context(with_media(PHOTO, a_photo(unique_id="p2")))

    first = await described(store, eyes, context)
    second = await described(store, eyes, context)

    assert words(first.target) == [None, "a picture of p2"]
    assert words(second.target) == ["a picture of p1", "a picture of p2"]
    assert eyes.asked == ["p1", "p2", "p1"]
    assert KEY not in caplog.text
    assert ("Traceback" in caplog.text) is isinstance(failure, OSError | ZeroDivisionError)


async def test_a_store_without_room_is_told_to_whoever_asked(store: Store) -> None:
    class Full:
        find = staticmethod(store.descriptions.find)
        failures = staticmethod(store.descriptions.failures)
        fail = staticmethod(store.descriptions.fail)

        async def describe(self, *_: Any, **__: Any) -> None:
            raise StoreFull("there is no room left")

    made = MediaDescriber(Full(), Eyes(), now=lambda: NOON)
    missing = await made.find_undescribed([with_media(PHOTO)])

    with pytest.raises(StoreFull):
        await made.describe(missing)


def test_nobody_waits_for_ever_for_a_description(world: World) -> None:
    async def blind(_: Media) -> str:
        await asyncio.sleep(math.inf)
        return "never"

    context = a_context(with_media(PHOTO, a_photo(unique_id="p2")))

    assert world.loop.run(described(world.store, blind, context)) == context
    assert world.loop.moment == TIMEOUT


async def test_a_model_is_shown_it_and_asked() -> None:
    model = Scripted("  A green cat.\n")

    assert await by_model(model)(PHOTO) == "A green cat."
    assert model.prompts[0].turns == (user(PHOTO, ASKED),)


async def test_a_message_that_was_read_once_is_not_looked_through_again(store: Store) -> None:
    """What was noted with a message goes with it alone: as it stands after an edit, it is another one."""
    eyes, target = Eyes(), with_media(PHOTO)
    await described(store, eyes, a_context(target))

    found = await described(store, eyes, a_context(replace(target, parts=(a_photo(unique_id="p9"),))))

    assert words(found.target) == ["a picture of p9"]
