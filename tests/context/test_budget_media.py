"""Which media of the history are sent themselves, and which as words."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from palaver.context import Context, gather, sources
from palaver.context.budget import Budget, count_tokens, message_in_words
from palaver.context.log import InMemoryLog
from palaver.context.values import LeftOut
from palaver.messages import Message
from palaver.parts import Media, Text
from palaver.tokens import ESTIMATOR, message_tokens
from people import NOON, a_message, a_photo, a_talk
from sizes import size


async def gathered(messages: list[Message], *given: sources.Source, target: Message | None = None) -> Context:
    return await gather(target or messages[-1], given, NOON)


def ids(messages: tuple[Message, ...]) -> list[int]:
    return [int(message.id) for message in messages]


async def test_of_an_album_as_many_go_as_they_are_as_may() -> None:
    album = a_message(id="0", parts=tuple(a_photo(unique_id=str(number)) for number in range(17)))

    context = await gathered([album], sources.window(InMemoryLog([album])), target=a_message(id="1"))

    (shown,) = context.window
    assert [bool(part.data) for part in shown.parts if isinstance(part, Media)] == [True] * 16 + [False]
    assert [left.source for left in context.left_out] == ["media"]


async def test_old_media_of_a_window_are_words_and_new_ones_are_not() -> None:
    talk = [replace(message, parts=(Text(text="look"), a_photo())) for message in a_talk(60)]

    context = await gathered(talk, sources.window(InMemoryLog(talk)))

    native = [any(isinstance(part, Media) and part.data for part in message.parts) for message in context.window]
    assert native == [False] * 50 + [True] * 9


A_VIDEO = Media(media_kind="youtube", unique_id="v", uri="https://youtu.be/x")


def pictured(talk: list[Message], every: int, *media: Media) -> list[Message]:
    """The talk with media in each message whose number is a multiple of *every*."""
    return [
        replace(message, parts=(*message.parts, *media)) if number % every == 0 else message
        for number, message in enumerate(talk)
    ]


@pytest.mark.parametrize(
    ("talk", "source"),
    [
        (pictured(a_talk(40), 7, A_VIDEO), sources.window),
        (pictured(a_talk(36), 12, A_VIDEO), sources.levels),
        (pictured(a_talk(36), 9, *(a_photo(unique_id=str(number)) for number in range(4))), sources.levels),
    ],
    ids=["videos in a window", "videos in levels", "albums in levels"],
)
async def test_no_message_is_left_out_because_of_its_media(talk: list[Message], source: Any) -> None:
    context = await gathered(talk, source(InMemoryLog(talk)))

    shown = context.history if source is sources.levels else context.window
    assert ids(shown) == list(range(len(talk) - 1))
    assert not any(message.deleted for message in shown)


async def test_a_video_that_is_over_the_budget_alone_takes_no_other_media_with_it() -> None:
    talk = a_talk(4)
    talk[1] = replace(talk[1], parts=(*talk[1].parts, a_photo()))
    talk[2] = replace(talk[2], parts=(*talk[2].parts, A_VIDEO))
    budget = Budget(window=16_000, immediate=16_000)
    for source in (sources.levels(InMemoryLog(talk), budget=budget), sources.window(InMemoryLog(talk), budget=budget)):
        context = await gathered(talk, source)

        assert (*context.immediate, *context.window) == (talk[0], talk[1], message_in_words(talk[2]))
        why = "its media go in words: over the budget of 16000 tokens"
        assert context.left_out == (LeftOut(source="media", ids=("2",), why=why),)


media_of_talks = st.lists(
    st.sampled_from([(), (a_photo(),), (A_VIDEO,), (a_photo(), a_photo(unique_id="2", rendered_text="a cat " * 50))]),
    min_size=1,
    max_size=60,
)


@given(media_of_talks, st.integers(0, 40_000), st.integers(0, 20), st.booleans())
@settings(max_examples=size(30, full=60), deadline=None)
async def test_the_texts_are_those_that_would_be_shown_had_all_media_been_words(
    media: list[tuple[Media, ...]], tokens: int, many: int, levels: bool
) -> None:
    said = a_talk(len(media))
    talk = [replace(one, parts=(*one.parts, *its)) for one, its in zip(said, media, strict=True)]
    budget = Budget(window=tokens, immediate=tokens, recent=tokens, media=many)
    source = sources.levels if levels else sources.window
    target = a_message(id="target")

    context, in_words_only = [
        await gathered([], source(InMemoryLog(one), budget=budget), target=target)
        for one in (talk, [message_in_words(message) for message in talk])
    ]

    for shown, words in (
        (context.window, in_words_only.window),
        (context.recent, in_words_only.recent),
        (context.immediate, in_words_only.immediate),
    ):
        assert [(m.id, m.deleted, message_in_words(m).parts) for m in shown] == [
            (m.id, m.deleted, m.parts) for m in words
        ]
        assert sum(count_tokens(shown, {}, ESTIMATOR)) <= tokens
        itself = [[bool(part.data or part.uri) for part in m.parts if isinstance(part, Media)] for m in shown]
        boundary = next((at for at, its in enumerate(itself) if any(its)), len(itself))
        assert sum(map(sum, itself)) <= many
        for message, its in list(zip(shown, itself, strict=True))[boundary:]:  # from the oldest on they are words
            assert any(its) or not its or message_tokens(talk[int(message.id)]) > tokens


@pytest.mark.parametrize(("every", "media", "most"), [(1, a_photo(), 30), (2, A_VIDEO, 45), (5, a_photo(), 11)])
async def test_the_boundary_between_media_and_words_moves_in_steps(every: int, media: Media, most: int) -> None:
    talk = pictured(a_talk(240), every, media)
    log = InMemoryLog()
    boundaries = []
    for message in talk:
        context = await gathered([], sources.window(log), target=message)
        itself = [any(isinstance(p, Media) and (p.data or p.uri) for p in m.parts) for m in context.window]
        boundaries.append(itself.index(True) if any(itself) else 0)
        log.add(message)

    assert boundaries == sorted(boundaries)
    assert len(set(boundaries)) <= most


async def test_of_too_many_media_the_newest_go_as_they_are() -> None:
    talk = [replace(message, parts=(a_photo(),)) for message in a_talk(7)]

    context = await gathered(talk, sources.levels(InMemoryLog(talk), budget=Budget(media=2)))

    shown = (*context.recent, *context.immediate)
    assert [bool(part.data) for message in shown for part in message.parts if isinstance(part, Media)] == [
        False
    ] * 4 + [True] * 2
    assert [left.source for left in context.left_out] == ["media"] * 4
