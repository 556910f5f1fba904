"""Which media are sent themselves, and which as words."""

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from people import BOB, GROUP, NOON, PERSONA, a_context, a_message, a_photo, a_quote, a_talk
from sizes import size
from tertulia.context import Context, gather, sources
from tertulia.context.budget import Budget, count_tokens
from tertulia.context.log import InMemoryLog
from tertulia.context.media_boundary import MEDIA_MARKS
from tertulia.context.media_budget import fit_request, has_media, message_in_words, request_limits
from tertulia.context.values import LeftOut
from tertulia.media.sent_forms import media_tokens, sent_as
from tertulia.media.values import FetchFailure, StoredFile
from tertulia.messages import Message
from tertulia.parts import Media, ToolResult
from tertulia.profiles import PROFILES
from tertulia.tokens import ESTIMATOR
from tertulia.turns import Turn
from tertulia.wire.media_limits import limits_of

MODEL = "gemini-3.8-flash"
LONG = partial(sources.window, media_marks=MEDIA_MARKS)
A_VIDEO = Media(media_kind="video", unique_id="v", file_id="f", seconds=200)


def a_file(name: str, *, kind: str = "photo", **changes: Any) -> Media:
    """Media as a platform gives them: without their bytes."""
    return Media(media_kind=kind, unique_id=name, file_id=f"file {name}", **{"size": 100_000} | changes)


async def gathered(messages: Sequence[Message], *given: sources.Source, target: Message | None = None) -> Context:
    return await gather(target or messages[-1], given, NOON)


async def asked(batch: Sequence[Message], budget: Budget, *history: Message) -> Context:
    """The context of a batch whose last message is the target, for a Gemini."""
    scene = sources.agent_settings(persona=PERSONA, model=MODEL)
    return await gather(
        batch[-1],
        [scene, sources.window(InMemoryLog(history), budget=budget, media_marks=MEDIA_MARKS)],
        NOON,
        batch=batch,
    )


def ids(messages: tuple[Message, ...]) -> list[int]:
    return [int(message.id) for message in messages]


def media_of(messages: Sequence[Message]) -> list[Media]:
    return [part for message in messages for part in message.parts if isinstance(part, Media)]


def that_go(messages: Sequence[Message]) -> list[str]:
    return [one.unique_id for one in media_of(messages) if one.has_content]


def all_that_go(context: Context) -> Iterator[Media]:
    """All media of a context that are sent themselves, those of quotes too."""
    for message in (*context.history, *context.batch):
        yield from (one for one in media_of([message]) if one.has_content)
    for message in context.batch:
        parts = context.written(message.reply_to).parts if message.reply_to else ()
        yield from (part for part in parts if isinstance(part, Media) and part.has_content)


def pictured(talk: list[Message], every: int, *media: Media) -> list[Message]:
    """The talk with media in each message whose number is a multiple of *every*; each has ids of its own."""
    return [
        replace(one, parts=(*one.parts, *(replace(each, unique_id=f"{one.id} {each.unique_id}") for each in media)))
        if number % every == 0
        else one
        for number, one in enumerate(talk)
    ]


async def test_three_quarters_of_the_media_that_may_go_are_those_of_a_window() -> None:
    album = a_message(id="0", parts=tuple(a_photo(unique_id=str(number)) for number in range(17)))

    context = await gathered([album], sources.window(InMemoryLog([album])), target=a_message(id="1"))

    assert that_go(context.window) == [str(number) for number in range(12)]
    why = "more media than the 12 that may go as they are: the others go in words"
    assert context.left_out == (LeftOut(source="media", ids=("0",), why=why),)


async def test_an_album_over_the_budget_sends_its_first_photos_and_the_rest_are_reported() -> None:
    album = [a_message(id=str(number), parts=(a_photo(unique_id=str(number)),), album="a") for number in range(18)]
    scene = sources.window(InMemoryLog(album), media_marks=MEDIA_MARKS)

    context = await gather(album[0], [scene], NOON, batch=album)

    assert that_go(context.batch) == [str(number) for number in range(16)]
    why = "more media than the 16 that may go as they are: the others go in words"
    assert context.left_out == tuple(LeftOut(source="media", ids=(name,), why=why) for name in ("16", "17"))


async def test_media_of_the_target_come_first_then_those_that_it_quotes_then_others_of_the_batch() -> None:
    first = a_message(id="1", parts=(a_file("first"),))
    target = a_message(id="2", parts=(a_file("target"),), reply_to=a_quote(parts=(a_file("quoted"),)))
    for allowed, expected in enumerate([[], ["target"], ["target", "quoted"], ["first", "target", "quoted"]]):
        context = await asked([first, target], Budget(media=allowed))

        assert [one.unique_id for one in all_that_go(context)] == expected


@pytest.mark.parametrize(
    ("budget", "why"),
    [
        (Budget(media_bytes=250_000), "its media go in words: over the budget of 250000 bytes"),
        (Budget(media_tokens=2_500), "its media go in words: over the budget of 2500 tokens"),
    ],
)
async def test_media_go_as_long_as_their_tokens_and_bytes_are_within_the_budget(budget: Budget, why: str) -> None:
    target = a_message(id="0", parts=tuple(a_file(name) for name in "abc"))

    context = await asked([target], budget)

    assert that_go(context.batch) == ["a", "b"]
    assert context.left_out == (LeftOut(source="media", ids=("0",), why=why),)


async def test_tokens_are_those_of_the_model_that_is_asked() -> None:
    photo, clip = a_file("p", width=800, height=600), a_file("v", kind="video", seconds=40)
    history = [a_message(id="0", author=BOB, parts=(photo,)), a_message(id="1", author=BOB, parts=(clip,))]
    window = sources.window(InMemoryLog(history), budget=Budget(media_tokens=8_000), media_marks=MEDIA_MARKS)

    def scene(model: str) -> sources.Source:
        return sources.agent_settings(persona=PERSONA, model=model)

    old, new = [
        await gathered([], scene(model), window, target=a_message(id="2"))
        for model in ("gemini-2.5-flash", "gemini-3.8-flash")
    ]

    assert (that_go(old.window), that_go(new.window)) == (["p"], ["p", "v"])  # 295 tokens a second, and 102


async def test_recordings_that_a_model_does_not_hear_take_no_room_of_photos() -> None:
    kinds = ["photo", "voice", "voice", "music"] * 3
    talk = [a_message(id=str(number), parts=(a_file(f"u{number}", kind=kind),)) for number, kind in enumerate(kinds)]
    window = sources.window(InMemoryLog(talk), budget=Budget(media=4), media_marks=MEDIA_MARKS)

    def scene(model: str) -> sources.Source:
        return sources.agent_settings(persona=PERSONA, model=model)

    deaf, hearing = [
        await gathered([], scene(model), window, target=a_message(id="99")) for model in ("gpt-5.6", MODEL)
    ]

    photos = [{name for name in that_go(one.window) if int(name[1:]) % 4 == 0} for one in (deaf, hearing)]
    assert photos == [{"u0", "u4", "u8"}, set()]


@pytest.mark.parametrize("photos", [0, 1, 4])
async def test_a_batch_with_media_does_not_move_the_boundary_of_the_window(photos: int) -> None:
    talk = pictured(a_talk(80), 1, a_file("p"))
    target = a_message(id="new", parts=tuple(a_file(f"new {number}") for number in range(photos)))

    context = await asked([target], Budget(), *talk)

    assert that_go(context.window) == [f"{number} p" for number in range(70, 80)]


async def test_a_batch_with_many_media_takes_them_from_the_window_in_quarters() -> None:
    talk = pictured(a_talk(80), 1, a_file("p"))

    def asking(photos: int) -> Message:
        return a_message(id="new", parts=tuple(a_file(f"new {number}") for number in range(photos)))

    shown = [len(that_go((await asked([asking(many)], Budget(), *talk)).window)) for many in range(17)]

    assert shown == [10] * 5 + [3] * 4 + [4] * 4 + [0] * 4  # of at most 12, 8, 4 and 0


async def test_the_same_media_in_many_messages_count_once() -> None:
    talk = [replace(one, parts=(a_file("s", kind="sticker"),)) for one in a_talk(30)]

    context = await asked([a_message(id="new")], Budget(media=2), *talk)

    assert [one.same_as for one in media_of(context.window)] == [None, *["in message 0"] * 29]
    assert context.left_out == ()


async def test_in_a_group_the_pictures_of_the_two_newest_messages_go() -> None:
    talk = a_talk(8)
    media = [
        a_file("old"),
        a_file("voice", kind="voice"),
        a_file("picture"),
        a_file("file", kind="document", mime="image/png"),
        a_file("pages", kind="document", mime="application/pdf"),
        a_file("sticker", kind="sticker"),
    ]
    talk[1] = replace(talk[1], parts=(media[0],))
    talk[7] = replace(talk[7], parts=tuple(media[1:]))

    context = await gathered([], sources.window(InMemoryLog(talk)), target=a_message(id="new", parts=tuple(media[4:])))

    assert that_go(context.window) == ["picture", "file"]
    assert that_go(context.batch) == ["pages", "sticker"]
    assert [(left.ids, left.why) for left in context.left_out] == [
        (("1",), "its media go in words: it is not among the newest messages"),
        (("7",), "its media go in words: of its kind only those go that are asked about"),
    ]


async def test_in_a_group_an_album_is_one_of_the_newest_messages() -> None:
    talk = [replace(one, parts=(a_file(one.id),), album="a" if int(one.id) > 2 else None) for one in a_talk(7)]

    context = await gathered([], sources.window(InMemoryLog(talk)), target=a_message(id="new"))

    assert that_go(context.window) == ["2", "3", "4", "5", "6"]


async def test_in_a_group_too_the_newest_media_go_within_the_budget() -> None:
    talk = [replace(one, parts=(a_file(one.id),), album="a") for one in a_talk(7)]

    context = await gathered([], sources.window(InMemoryLog(talk), budget=Budget(media=4)), target=a_message(id="new"))

    assert that_go(context.window) == ["4", "5", "6"]
    why = "more media than the 3 that may go as they are: the others go in words"
    assert context.left_out == tuple(LeftOut(source="media", ids=(str(at),), why=why) for at in range(4))


async def test_old_media_of_a_window_are_words_and_new_ones_are_not() -> None:
    talk = pictured(a_talk(60), 1, a_photo())

    context = await gathered(talk, sources.window(InMemoryLog(talk), media_marks=MEDIA_MARKS))

    assert that_go(context.window) == [f"{number} p1" for number in range(50, 59)]


@pytest.mark.parametrize(
    ("talk", "source"),
    [
        (pictured(a_talk(40), 7, A_VIDEO), LONG),
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
    for source in (sources.levels, LONG):
        context = await gathered(talk, source(InMemoryLog(talk), budget=Budget(media_tokens=16_000)))

        assert (*context.immediate, *context.window) == (talk[0], talk[1], message_in_words(talk[2]))
        allowed = 15_681 if source is sources.levels else 12_000  # what words left, or three quarters
        why = f"its media go in words: over the budget of {allowed} tokens"
        assert context.left_out == (LeftOut(source="media", ids=("2",), why=why),)


async def test_of_too_many_media_the_newest_go_as_they_are() -> None:
    talk = pictured(a_talk(6), 1, a_photo())
    levels = sources.levels(InMemoryLog(talk), budget=Budget(media=2))

    context = await gathered([], levels, target=a_message(id="6"))

    assert that_go((*context.recent, *context.immediate)) == ["4 p1", "5 p1"]
    assert [left.source for left in context.left_out] == ["media"] * 4


@pytest.mark.parametrize("source", [sources.levels, LONG])
async def test_without_media_the_history_is_words_and_the_batch_is_not(source: Any) -> None:
    talk = pictured(a_talk(7), 1, a_photo())

    context = await gathered(talk, source(InMemoryLog(talk), media=False))

    assert (that_go(context.history), that_go(context.batch)) == ([], ["6 p1"])


def any_file(name: str) -> Media:
    """Media whose fields follow from their id: the same id is the same file."""
    seed = sum(name.encode())
    kind = ("photo", "sticker", "voice", "video", "document")[seed % 5]
    return a_file(name, kind=kind, size=seed * 9_973 % 400_000, seconds=(None, 3, 60)[seed % 3])


some_names = st.sampled_from([*"abcdef", *(f"x{number}" for number in range(40))])
some_media = st.lists(some_names.map(any_file), max_size=3).map(tuple)
some_talk = st.lists(some_media, min_size=1, max_size=60)
budgets = st.builds(
    Budget,
    media=st.integers(0, 20),
    media_tokens=st.integers(0, 40_000),
    media_bytes=st.integers(0, 4_000_000),
    window=st.integers(2_000, 40_000),
    immediate=st.integers(500, 40_000),
    recent=st.integers(500, 40_000),
)


@example([()], (), (any_file("a"), any_file("a")), Budget(media=1), False)
@given(some_talk, some_media, some_media, budgets, st.booleans())
@settings(max_examples=size(40, full=200), deadline=None)
async def test_no_request_has_more_media_than_the_budget(
    said: list[tuple[Media, ...]], own: tuple[Media, ...], quoted: tuple[Media, ...], budget: Budget, levels: bool
) -> None:
    talk = [replace(one, parts=(*one.parts, *its)) for one, its in zip(a_talk(len(said)), said, strict=True)]
    target = a_message(id="target", parts=own, reply_to=a_quote(parts=quoted))
    scene = sources.agent_settings(persona=PERSONA, model=MODEL)
    source = sources.levels if levels else LONG

    context = await gather(target, [scene, source(InMemoryLog(talk), budget=budget)], NOON)

    for name, profile in PROFILES.items():
        media = (part for turn in profile.build(context).turns for part in turn.parts if isinstance(part, Media))
        go = [one for one in media if one.has_content and sent_as(one, limits_of(MODEL)) != "words"]
        assert len({one.unique_id for one in go}) == len(go) <= budget.media, name
        assert sum(media_tokens(one, limits_of(MODEL)) for one in go) <= budget.media_tokens, name
        assert sum(one.size or 0 for one in go) <= budget.media_bytes, name


@given(
    st.lists(st.sampled_from(["", *"abc", *(f"x{number}" for number in range(60))]), max_size=90),
    budgets,
    st.booleans(),
)
@settings(max_examples=size(40, full=200), deadline=None)
async def test_the_newest_media_survive(names: list[str], budget: Budget, levels: bool) -> None:
    said = a_talk(len(names))
    talk = [replace(one, parts=(a_file(name),)) if name else one for one, name in zip(said, names, strict=True)]
    source = sources.levels if levels else LONG

    context = await gathered([], source(InMemoryLog(talk), budget=budget), target=a_message(id="target"))

    shown = [one.has_content or bool(one.same_as) for one in media_of(context.history)]
    assert shown == sorted(shown)


@given(some_talk, budgets)
@settings(max_examples=size(20, full=100), deadline=None)
async def test_a_request_changes_nothing_before_the_boundary_of_the_one_before(
    said: list[tuple[Media, ...]], budget: Budget
) -> None:
    budget = replace(budget, window=100_000)
    talk = [replace(one, parts=(*one.parts, *its)) for one, its in zip(a_talk(len(said)), said, strict=True)]
    before: tuple[Message, ...] = ()
    for count in range(1, len(talk) + 1):
        window = (await asked([a_message(id="target")], budget, *talk[:count])).window
        changed = [at for at, (old, new) in enumerate(zip(before, window, strict=False)) if old.parts != new.parts]
        went = [at for at, one in enumerate(before) if that_go([one])]
        assert not changed or changed[0] in went
        assert not changed or not that_go(window[: changed[0] + 1])  # it was the first that went: the boundary moved
        before = window


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
    talk = [
        replace(one, parts=(*one.parts, *(replace(each, unique_id=f"{one.id} {each.unique_id}") for each in its)))
        for one, its in zip(said, media, strict=True)
    ]
    budget = Budget(window=tokens, immediate=tokens, recent=tokens, media=many)
    source = sources.levels if levels else LONG
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


@pytest.mark.parametrize(
    ("every", "media", "most"),
    [(1, a_photo(), 26), (2, a_file("v", kind="voice", seconds=180), 26), (5, a_photo(), 10)],
)
async def test_the_boundary_between_media_and_words_moves_in_steps(every: int, media: Media, most: int) -> None:
    talk = pictured(a_talk(240), every, media)
    log = InMemoryLog()
    boundaries = []
    for message in talk:
        context = await gathered([], sources.window(log, media_marks=MEDIA_MARKS), target=message)
        itself = [bool(that_go([one])) for one in context.window]
        boundaries.append(itself.index(True) if any(itself) else 0)
        log.add(message)

    assert boundaries == sorted(boundaries)
    assert len(set(boundaries)) <= most


async def test_a_video_of_youtube_goes_where_it_is_asked_about() -> None:
    film = Media(media_kind="youtube", unique_id="youtube:x", uri="https://www.youtube.com/watch?v=x")
    old = a_message(id="0", parts=(replace(film, unique_id="youtube:old"),))

    by_target, by_quote = [
        await asked([one], Budget(), old)
        for one in (a_message(id="1", parts=(film,)), a_message(id="1", reply_to=a_quote(parts=(film,))))
    ]

    assert [one.unique_id for one in all_that_go(by_target)] == ["youtube:x"]
    assert [one.unique_id for one in all_that_go(by_quote)] == ["youtube:x"]
    assert not that_go((await asked([a_message(id="1", parts=(film,))], Budget(media_tokens=30_000))).batch)


def test_files_that_are_longer_than_their_senders_said_are_words_if_all_are_over_the_budget() -> None:
    sound = {"media_kind": "voice", "mime": "audio/ogg", "data": None}
    photo = a_photo(unique_id="photo", data=None, sha256="1")
    hours = [a_photo(**sound, unique_id=name, sha256=name, seconds=1000) for name in ("2", "3")]
    window = tuple(a_message(id=one.unique_id, parts=(one,)) for one in (hours[0], photo))
    taken = limits_of(MODEL)
    context = a_context(a_message(id="t", parts=(hours[1],)), window=window, levels=False, taken=taken)

    fitted = fit_request(context, request_limits(Budget()))

    assert (that_go(fitted.window), that_go(fitted.batch)) == (["photo"], ["3"])
    why = "its media go in words: over the budget of 50000 tokens"
    assert fitted.left_out == (LeftOut(source="media", ids=("2",), why=why),)
    assert fit_request(fitted, request_limits(Budget())) is fitted


class Files:
    """No stored files; those of more than 20 MB are never fetched, and others may be gone."""

    largest = 20_000_000

    def __init__(self, *gone: str) -> None:
        self._gone = dict.fromkeys(gone, FetchFailure(why="it is gone"))

    async def known_files(self, unique_ids: Collection[str]) -> dict[str, StoredFile | FetchFailure]:
        return {name: why for name, why in self._gone.items() if name in unique_ids}


async def test_media_that_are_too_large_to_be_fetched_take_no_room() -> None:
    direct = replace(GROUP, kind="direct")
    seen = a_message(id="1", place=direct, parts=(a_file("p1"),))
    film = a_message(id="2", place=direct, parts=(a_file("v1", kind="video", size=25_000_000, seconds=900),))
    scene = sources.agent_settings(persona=PERSONA, model=MODEL)

    context = await gather(film, [scene, sources.window(InMemoryLog([seen, film]), files=Files())], NOON)

    assert that_go([*context.window]) == ["p1"]


@pytest.mark.parametrize("source", [sources.window, sources.levels])
async def test_media_that_cannot_be_had_take_no_room(source: Any) -> None:
    direct = replace(GROUP, kind="direct")
    names = ["p1", "p2", "gone1", "p3", "gone2", "gone3"]
    *seen, asked = [a_message(id=name, place=direct, parts=(a_file(name),)) for name in names]
    scene = sources.agent_settings(persona=PERSONA, model=MODEL)
    log, budget = InMemoryLog([*seen, asked]), Budget(media=4)

    shown = []
    for files in (Files("gone1", "gone2", "gone3"), Files()):
        context = await gather(asked, [scene, source(log, budget=budget, files=files)], NOON)
        shown.append([name for name in that_go(context.history) if name.startswith("p")])

    assert shown == [["p1", "p2", "p3"], ["p3"]]


def test_a_context_has_media_wherever_they_are_and_none_where_they_are_words() -> None:
    photo = a_message(id="p", parts=(a_photo(),))
    made = Turn(role="model", parts=(a_photo(),))
    result = Turn(role="user", parts=(ToolResult(name="draw", media=(a_photo(),)),))
    quoting = a_message("look", reply_to=replace(a_quote(""), parts=(a_photo(),)))
    shown = (a_message(id="m"), photo)
    levels = (a_context(window=shown), a_context(recent=shown), a_context(immediate=shown), a_context(newer=shown))

    assert [*map(has_media, levels)] == [True] * 4
    assert [has_media(a_context(turns={"m": (made,)})), has_media(a_context(turns={"m": (result,)}))] == [True] * 2
    assert [has_media(a_context(photo)), has_media(a_context(quoting))] == [True] * 2
    assert not has_media(a_context(message_in_words(photo), window=(message_in_words(photo), quoting)))
    assert not has_media(a_context(turns={"m": (Turn(role="model", parts=(a_photo().without_content(),)),)}))
