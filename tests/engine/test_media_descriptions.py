"""Media of a context get words: which are asked for, which of them a run waits for, and what is shown."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from engine.describing import EYES, Eyes, a_describer, words
from fakes import Blind
from people import ALICE, BOB, GROUP, GRYAG, NOON, a_context, a_message, a_photo, a_quote
from store.builders import a_run, begin
from tertulia.context.log import InMemoryLog
from tertulia.context.values import Context
from tertulia.engine.describers import ASKED, by_model
from tertulia.engine.limits import CurrentLimits
from tertulia.engine.spend_caps import SpendTracker
from tertulia.media.descriptions import Description
from tertulia.messages import Author, Message
from tertulia.models.base import Model, Response, Usage
from tertulia.models.scripted import Scripted
from tertulia.parts import Media, Text
from tertulia.store import Store
from tertulia.turns import model, user

PHOTO = a_photo()


SEES, BLIND = Scripted(), Blind()


def with_media(*media: Media, name: str = "m1", **changes: Any) -> Message:
    return a_message(id=name, parts=(Text(text="look"), *media), **changes)


def photos(*names: str) -> list[Media]:
    return [a_photo(unique_id=name) for name in names]


async def described(
    store: Store, eyes: Any, context: Context, *, models: tuple[Model, ...] = (BLIND,), settle: bool = True, **how: Any
) -> Context:
    """The context that a run gets; with *settle*, what comes in the background is there afterwards."""
    for message in (*context.window, *context.batch):
        await store.inbox.receive(message, at=NOON)
    made, log = a_describer(store, eyes, **how), InMemoryLog([*context.window, *context.batch])
    found = await made.describe(await made.add_descriptions(context), log, models)
    if settle:
        await made.worker.done()
    return found


async def test_what_the_target_shows_is_put_into_words_and_nothing_else_changes(store: Store) -> None:
    target = with_media(PHOTO)

    found = await described(store, Eyes(), a_context(target))

    told = replace(target, parts=(Text(text="look"), replace(PHOTO, rendered_text="a picture of p1")))
    assert found == a_context(told)
    assert await store.descriptions.find(["p1"]) == {"p1": Description(words="a picture of p1")}


async def test_what_goes_itself_is_described_in_the_background(store: Store) -> None:
    eyes, context = Eyes(), a_context(with_media(PHOTO))

    assert await described(store, eyes, context, models=(SEES,)) == context
    assert eyes.asked == ["p1"]


async def test_a_fallback_that_does_not_see_makes_a_run_wait(store: Store) -> None:
    found = await described(store, Eyes(), a_context(with_media(PHOTO)), models=(SEES, BLIND))

    assert words(found.target) == ["a picture of p1"]


async def test_the_batch_comes_first_then_its_quotes_then_the_newest_of_the_window(store: Store) -> None:
    eyes = Eyes()
    old, new = with_media(*photos("w1"), name="1"), with_media(*photos("w2"), name="2")
    target = with_media(*photos("b1", "b2"), name="3", reply_to=a_quote("", parts=tuple(photos("q1"))))

    found = await described(store, eyes, a_context(target, window=(old, new), levels=False), per_run=4, settle=False)

    assert eyes.asked == ["b1", "b2", "q1", "w2"]
    assert [words(one) for one in (found.target, *found.window)] == [
        ["a picture of b1", "a picture of b2"],
        [None],
        ["a picture of w2"],
    ]
    assert found.target.reply_to is not None
    assert words(found.target.reply_to) == ["a picture of q1"]


@pytest.mark.parametrize(("author", "sender"), [(BOB, BOB), (None, ALICE), (GRYAG, ALICE)])
async def test_a_quoted_photo_counts_for_the_person_who_sent_it(
    store: Store, author: Author | None, sender: Author
) -> None:
    quote = a_quote("", parts=tuple(photos("q1")), author=author)
    tracker = SpendTracker(store.usage, CurrentLimits(), now=lambda: NOON)
    eyes = Scripted(Response(turn=model("A cat.", by=EYES), usage=Usage(input=600, output=400)), name=EYES)
    asked_for: list[Author] = []

    async def language(message: Message) -> str:
        asked_for.append(message.author)
        return "uk"

    await described(
        store, by_model(eyes), a_context(a_message(reply_to=quote)), spend_tracker=tracker, language=language
    )

    assert (await store.usage.spent(NOON.date(), author=sender)).tokens == 1000
    assert asked_for == [sender]


async def test_the_others_come_in_the_background(store: Store) -> None:
    eyes, context = Eyes(), a_context(with_media(*photos(*"abcdef")))

    first = await described(store, eyes, context, per_run=2)
    second = await described(store, eyes, context, per_run=2)

    assert words(first.target) == ["a picture of a", "a picture of b", None, None, None, None]
    assert words(second.target) == [f"a picture of {name}" for name in "abcdef"]
    assert sorted(eyes.asked) == [*"abcdef"]


async def test_videos_of_youtube_take_no_turn_of_others(store: Store) -> None:
    video = Media(media_kind="youtube", unique_id="y1", uri="https://www.youtube.com/watch?v=dQw4w9WgXcQ")
    old, new = with_media(PHOTO, name="1"), with_media(video, name="2")
    context = a_context(with_media(name="3"), window=(old, with_media(video.without_content(), name="2")), levels=False)
    for message in (old, new, context.target):
        await store.inbox.receive(message, at=NOON)
    made = a_describer(store, Eyes(), per_run=1)

    found = await made.describe(context, InMemoryLog([old, new, context.target]), (BLIND,))

    assert [words(one) for one in found.window] == [["a picture of p1"], [None]]


@pytest.mark.parametrize(("stable", "waits_for"), [(2, ["p2"]), (0, ["p2", "p1"])])
async def test_nobody_waits_for_words_that_take_effect_later(store: Store, stable: int, waits_for: list[str]) -> None:
    """A run has shown the photo without words: behind the stable prefix new words show at once, else later."""
    shown = with_media(PHOTO, name="1")
    await store.inbox.receive(shown, at=NOON)
    await begin(store, a_run(target="1", taken=(), horizon=1))
    eyes, new = Eyes(), with_media(*photos("p2"), name="2")
    waited: list[list[str]] = []

    @asynccontextmanager
    async def waiting() -> AsyncIterator[None]:
        yield
        waited.append(eyes.asked[:])

    context = a_context(a_message(id="3"), window=(shown, new), levels=False, stable=stable)
    made = a_describer(store, eyes)
    await made.describe(context, InMemoryLog(context.window), (BLIND,), while_waiting=waiting)
    await made.worker.done()

    assert waited == [waits_for]
    assert sorted(eyes.asked) == ["p1", "p2"]


async def test_media_that_go_in_words_are_described_from_the_message_as_it_was_sent(store: Store) -> None:
    eyes, old = Eyes(), with_media(PHOTO, name="1")
    context = a_context(a_message(id="2"), window=(replace(old, parts=(PHOTO.without_content(),)),), levels=False)
    made = a_describer(store, eyes)
    await store.inbox.receive(old, at=NOON)

    found = await made.describe(context, InMemoryLog([old]), (SEES,))

    assert [words(one) for one in found.window] == [["a picture of p1"]]


async def test_one_picture_is_asked_for_once_however_often_it_is_shown(store: Store) -> None:
    eyes = Eyes()
    target = with_media(PHOTO, PHOTO, reply_to=a_quote("", parts=(PHOTO,)))

    found = await described(store, eyes, a_context(target, window=tuple([with_media(PHOTO, name="w")] * 9)))
    again = await described(store, eyes, a_context(with_media(PHOTO, name="m2")))

    assert eyes.asked == ["p1"]
    assert words(found.target) == ["a picture of p1"] * 2
    assert words(again.target) == ["a picture of p1"]


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


async def test_words_of_another_model_are_shown_until_those_of_the_current_one_are_there(store: Store) -> None:
    await store.descriptions.describe("p1", "a cat", by="other", at=NOON)
    eyes, target = Eyes(), with_media(PHOTO)

    first = await described(store, eyes, a_context(target), models=(BLIND,))
    second = await described(store, eyes, a_context(target), models=(BLIND,))

    assert [words(one.target) for one in (first, second)] == [["a cat"], ["a picture of p1"]]
    assert [(one.unique_id, one.rendered_text) for one in eyes.seen] == [("p1", None)]


async def test_a_failure_of_the_model_does_not_keep_a_transcriber_from_a_voice(store: Store) -> None:
    voice = Media(media_kind="voice", unique_id="v1", mime="audio/ogg", data=b"OggS")
    ears, target = Eyes("Bring milk."), with_media(voice)
    ears.name = "ears"
    await described(store, Eyes(""), a_context(target))

    found = await described(store, Eyes(), a_context(target), transcribe=ears)

    assert words(found.target) == ["Bring milk."]


async def test_where_nobody_describes_what_is_known_is_told_all_the_same(store: Store) -> None:
    await store.descriptions.describe("p1", "a green cat", by="", at=NOON)

    found = await described(store, None, a_context(with_media(PHOTO, a_photo(unique_id="new"))))

    assert words(found.target) == ["a green cat", None]


async def test_a_context_without_media_is_the_same_object(store: Store) -> None:
    context = a_context(window=(a_message(id="a"),))

    assert await described(store, Eyes(), context) is context


async def test_deleted_messages_of_the_window_are_not_looked_at(store: Store) -> None:
    eyes = Eyes()

    await described(store, eyes, a_context(window=(with_media(PHOTO, deleted=True),), levels=False))

    assert eyes.asked == []


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


async def test_the_levels_of_other_profiles_have_the_newest_words(store: Store) -> None:
    await store.descriptions.describe(EYES, "a green cat", by="m", at=NOON)
    seen = with_media(a_photo(unique_id=EYES), name="a", place=GROUP)

    found = await described(store, Eyes(), a_context(recent=(seen,), immediate=(seen,), newer=(seen,)))

    assert [words(one) for one in (*found.recent, *found.immediate, *found.newer)] == [["a green cat"]] * 3


async def test_media_that_failed_lately_leave_room_for_older_ones(store: Store) -> None:
    eyes = Eyes(*[""] * 40)
    window = tuple(with_media(a_photo(unique_id=f"p{number}"), name=str(number)) for number in range(50))
    context = a_context(a_message(id="target"), window=window, levels=False)

    for _ in range(3):
        await described(store, eyes, context, models=(SEES,))

    assert eyes.asked == [f"p{number}" for number in range(49, -1, -1)]
