"""Descriptions that come late take effect where the prefix changes anyway."""

from typing import Any

import pytest
from msgspec.structs import replace

from people import DIRECT, GROUP, GRYAG, NOON, a_context, a_message, a_photo, a_quote, a_talk
from tertulia.context import Context, gather, sources
from tertulia.context.log import InMemoryLog
from tertulia.context.media_words import undescribed_ids, with_descriptions
from tertulia.context.stable_prefix import BUFFER, BufferMarks, Marks
from tertulia.media.descriptions import Description
from tertulia.messages import Message
from tertulia.parts import Media, Text, ToolResult
from tertulia.turns import user

WORDS = "a cat"


def sent(name: str, *media: Media, **changes: Any) -> Message:
    return a_message(id=name, parts=(Text(text="look"), *media), **changes)


def words(*messages: Message) -> list[str | None]:
    return [part.rendered_text for message in messages for part in message.parts if isinstance(part, Media)]


def a_window(**changes: int) -> Context:
    """A window that begins with message 100; each message has the same sticker."""
    window = tuple(sent(str(number), a_photo(data=None)) for number in range(100, 105))
    return a_context(a_message(id="105"), window=window, window_start=100, levels=False, **{"stable": 5} | changes)


@pytest.mark.parametrize(
    ("position", "since", "shown"),
    [
        (0, 0, [True] * 5),  # no run has shown it
        (103, 90, [False, False, True, True, True]),  # known before these messages were the history of a run
        (105, 90, [False] * 4 + [True]),
        (200, 90, [False] * 5),
        (104, 104, [True] * 5),  # known at the last step
        (105, 104, [False] * 4 + [True]),
    ],
)
def test_a_late_description_waits_for_the_next_step(position: int, since: int, shown: list[bool]) -> None:
    known = {"p1": Description(words=WORDS, position=position)}

    context = with_descriptions(a_window(stable_since=since), known)

    assert words(*context.window) == [WORDS if one else None for one in shown]


def test_messages_behind_the_prefix_have_the_newest_description() -> None:
    known = {"p1": Description(words=WORDS, position=200)}

    context = with_descriptions(a_window(stable=3), known)

    assert words(*context.window) == [None, None, None, WORDS, WORDS]


def test_the_batch_and_its_quotes_and_levels_have_the_newest_description() -> None:
    known = {"p1": Description(words=WORDS, position=200)}
    one = sent("1", a_photo(), reply_to=a_quote(parts=(a_photo(),)))
    context = a_context(one, recent=(one,), immediate=(one,), newer=(one,))

    described = with_descriptions(context, known)

    quote = described.target.reply_to
    assert quote is not None
    assert words(*described.batch, *described.history) == [WORDS] * 4
    assert quote.parts == (a_photo(rendered_text=WORDS),)


def test_positions_count_from_the_beginning_of_the_place() -> None:
    known = {"p1": Description(words=WORDS, position=1_200)}

    shown = [with_descriptions(a_window(stable_since=200), known, beginning=start).window for start in (0, 999, 1_000)]

    assert [words(*window) for window in shown] == [[None] * 5, [None] * 5, [WORDS] * 5]


def test_a_message_that_is_described_alike_is_the_same_object() -> None:
    known, context = {"p1": Description(words=WORDS)}, a_window()

    first, second = (with_descriptions(context, known).window for _ in range(2))

    assert all(one is other for one, other in zip(first, second, strict=True))


def test_media_are_asked_for_once_and_not_where_they_are_described() -> None:
    context = a_context(sent("1", a_photo(), a_photo(unique_id="")), window=(sent("0", a_photo(rendered_text="x")),))

    assert undescribed_ids(context) == {"p1"}


@pytest.mark.parametrize(
    ("count", "buffer", "stable", "since"),
    [
        (32, None, 32, 0),
        (33, None, 33, 33),
        (57, None, 57, 33),
        (58, None, 58, 58),
        (16, BUFFER, 0, 0),
        (17, BUFFER, 13, 17),
        (30, BUFFER, 26, 30),
        (42, BUFFER, 26, 30),
    ],
)
async def test_steps_are_those_of_the_media_or_of_the_buffer(
    count: int, buffer: BufferMarks | None, stable: int, since: int
) -> None:
    for place in (DIRECT, GROUP):
        window = sources.window(InMemoryLog(a_talk(count, place=place)), buffer=buffer)

        context = await gather(a_message(id="new", place=place), [window], NOON)

        assert (context.stable, context.stable_since) == (stable, since)


def test_where_media_were_just_seen_their_description_is_not_late() -> None:
    known = {"p1": Description(words=WORDS, position=105)}

    context = with_descriptions(a_window(settled_after=3), known)

    assert words(*context.window) == [None, None, WORDS, WORDS, WORDS]


async def test_a_cut_of_the_window_is_a_step() -> None:
    window = sources.window(InMemoryLog(a_talk(103)), marks=Marks(low=10, high=40))

    context = await gather(a_message(id="new"), [window], NOON)

    assert (context.window_start, context.stable_since) == (93, 103)


def test_a_long_transcript_is_whole_in_the_batch_and_brief_in_the_history() -> None:
    voice = a_photo(media_kind="voice", unique_id="v1", data=None)
    said = "word " * 400
    context = a_context(sent("2", voice), window=(sent("1", voice),), levels=False)

    found = with_descriptions(context, {"v1": Description(words=said)})

    [whole, brief] = words(found.target, *found.window)
    assert whole == said
    assert brief is not None
    assert (len(brief) <= 600, brief.startswith("word word"), brief[-1]) == (True, True, "…")


def test_media_of_own_turns_that_are_words_say_what_those_of_the_message_say() -> None:
    chart = a_photo(data=None)
    shown = a_photo(unique_id="p2", sha256="00")
    own = sent("1", chart, a_photo(unique_id="p2", data=None), author=GRYAG)
    turns = {"1": (user(ToolResult(name="chart", media=(chart, shown))),)}
    known = {name: Description(words=WORDS, position=0) for name in ("p1", "p2")}

    context = with_descriptions(a_context(window=(own,), levels=False, turns=turns), known)

    assert context.turns["1"] == (user(ToolResult(name="chart", media=(replace(chart, rendered_text=WORDS), shown))),)
