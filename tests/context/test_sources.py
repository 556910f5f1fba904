"""Each source adds what it knows to the context, within its budget."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from people import ALICE, BOB, DIRECT, GROUP, GRYAG, NOON, PERSONA, a_message, a_photo, a_quote, a_talk
from tertulia.context import Context, gather, sources
from tertulia.context.budget import Budget, count_tokens
from tertulia.context.gather import InMemoryKnowledge
from tertulia.context.log import InMemoryLog
from tertulia.context.stable_prefix import Marks, stable_cut
from tertulia.context.values import Background, LeftOut, RecalledEpisode, RelevantMessage
from tertulia.errors import InvalidValue
from tertulia.messages import Message, Quote
from tertulia.parts import Text, ToolCall, ToolResult
from tertulia.tokens import ESTIMATOR
from tertulia.turns import model, user


async def gathered(messages: list[Message], *given: sources.Source, target: Message | None = None) -> Context:
    return await gather(target or messages[-1], given, NOON)


def ids(messages: tuple[Message, ...]) -> list[int]:
    return [int(message.id) for message in messages]


async def test_immediate_is_the_five_before_the_target_and_recent_the_thirty_before_those() -> None:
    talk = a_talk(60)

    context = await gathered(talk, sources.levels(InMemoryLog(talk)), target=talk[50])

    assert (ids(context.immediate), ids(context.recent)) == (list(range(45, 50)), list(range(15, 45)))


@given(st.integers(0, 90), st.sets(st.integers(0, 89)))
@settings(max_examples=30)
async def test_levels_overlap_nowhere_and_skip_the_deleted(count: int, deleted: set[int]) -> None:
    talk = [replace(message, deleted=int(message.id) in deleted) for message in a_talk(count)]
    target = a_message(id="target")

    context = await gathered(talk, sources.levels(InMemoryLog([*talk, target])), target=target)

    left = [n for n in range(count) if n not in deleted]
    assert ids(context.immediate) == left[-5:]
    assert ids(context.recent) == left[-35:-5]


async def test_a_target_that_is_not_kept_comes_after_all_others() -> None:
    talk = a_talk(3)

    context = await gathered(talk, sources.levels(InMemoryLog(talk)), target=a_message(id="new"))

    assert ids(context.immediate) == [0, 1, 2]


@pytest.mark.parametrize(
    ("count", "first", "length"), [(1, 0, 0), (501, 0, 500), (502, 376, 125), (877, 376, 500), (878, 752, 125)]
)
async def test_the_window_is_what_lies_after_the_cut(count: int, first: int, length: int) -> None:
    talk = a_talk(count)

    context = await gathered(talk, sources.window(InMemoryLog(talk)))

    assert (context.window_start, len(context.window)) == (first, length)
    assert ids(context.window) == list(range(first, count - 1))


async def test_the_target_is_not_in_the_window_also_when_it_is_not_the_newest() -> None:
    talk = a_talk(5)

    context = await gathered(talk, sources.window(InMemoryLog(talk)), target=talk[2])

    assert ids(context.window) == [0, 1, 3, 4]


@pytest.mark.parametrize(("size", "length"), [(0, 0), (1, 1), (2, 2), (30, 28)])
async def test_history_size_caps_the_window(size: int, length: int) -> None:
    talk = a_talk(53)

    context = await gathered(talk, sources.window(InMemoryLog(talk), history_size=size))

    assert ids(context.window) == list(range(52 - length, 52))


async def test_a_deleted_message_keeps_its_place_in_the_window() -> None:
    talk = a_talk(502)
    talk[450] = replace(talk[450], deleted=True)

    context = await gathered(talk, sources.window(InMemoryLog(talk)))

    assert (context.window_start, len(context.window)) == (376, 125)


async def test_a_cut_parts_no_call_from_its_result() -> None:
    talk = a_talk(12)
    talk[5] = replace(talk[5], author=GRYAG, parts=(ToolCall(name="look", id="a"),))
    talk[6] = replace(talk[6], parts=(ToolResult(name="look", id="a", value=1),))
    log = InMemoryLog(talk)

    contexts = [
        await gathered(talk, sources.window(log, marks=Marks(low=low, high=10)), target=talk[11])
        for low in range(2, 10)
    ]

    assert all(context.window[0].id != "6" for context in contexts)
    assert any(context.window[0].id == "5" for context in contexts)


async def test_turns_behind_own_messages_come_with_the_window() -> None:
    log = InMemoryLog([a_message(id="1")])
    done = (model("Yes?", by="gemini-3.8-flash"),)
    log.add(a_message("Yes?", id="2", author=GRYAG), turns=done)
    target = a_message(id="3")

    assert (await gathered([], sources.window(log), target=target)).turns == {"2": done}
    assert (await gathered([], sources.levels(log), target=target)).turns == {"2": done}


async def test_places_do_not_mix() -> None:
    log = InMemoryLog(
        [a_message(id="1"), a_message(id="2", place=DIRECT), a_message(id="3", place=replace(GROUP, thread="9"))]
    )

    context = await gathered([], sources.window(log), target=a_message(id="4", place=DIRECT))

    assert ids(context.window) == [2]


async def test_an_edit_replaces_a_message_where_it_stands() -> None:
    log = InMemoryLog(a_talk(3))
    log.add(a_message("edited", id="1"))

    context = await gathered([], sources.window(log), target=a_message(id="9"))

    assert context.window[1] == a_message("edited", id="1")


async def test_over_budget_the_oldest_go_and_are_reported() -> None:
    talk = a_talk(8, authors=(ALICE,))
    (each,) = count_tokens(talk[:1], {}, ESTIMATOR)
    budget = Budget(immediate=3 * each)

    context = await gathered(talk, sources.levels(InMemoryLog(talk), budget=budget))

    assert (ids(context.immediate), context.recent) == ([4, 5, 6], ())
    assert context.left_out == (
        LeftOut(source="recent", ids=("0",), why="older than what was left out", tokens=each),
        LeftOut(source="recent", ids=("1",), why="older than what was left out", tokens=each),
        LeftOut(source="immediate", ids=("2",), why=f"over the budget of {3 * each} tokens", tokens=each),
        LeftOut(source="immediate", ids=("3",), why=f"over the budget of {3 * each} tokens", tokens=each),
    )


async def test_a_huge_message_does_not_push_out_the_others() -> None:
    talk = [a_message("hi", id="0"), a_message("long " * 5000, id="1"), a_message(id="2")]

    context = await gathered(talk, sources.levels(InMemoryLog(talk), budget=Budget(immediate=1000)))

    assert ids(context.immediate) == [0]


async def test_a_window_over_budget_loses_its_beginning_in_steps() -> None:
    talk = a_talk(300, authors=(ALICE,))
    log = InMemoryLog()
    budget = Budget(window=120 * count_tokens(talk[150:151], {}, ESTIMATOR)[0])
    starts = []
    for message in talk:
        starts.append((await gathered([message], sources.window(log, budget=budget), target=message)).window_start)
        log.add(message)

    assert len(set(starts)) <= 6
    assert starts == sorted(starts)


@given(st.lists(st.integers(1, 200), max_size=150), st.integers(100, 3000))
def test_a_cut_by_tokens_never_goes_back_and_keeps_a_quarter(counts: list[int], budget: int) -> None:
    cuts = [stable_cut(counts[:number], 0, budget, 93) for number in range(len(counts) + 1)]

    assert cuts == sorted(cuts)
    for number, cut in enumerate(cuts):
        kept = sum(counts[cut:number])
        assert kept <= budget
        assert cut == 0 or kept * 4 >= budget or kept + counts[cut - 1] > budget


async def test_pictures_that_go_in_words_are_counted_as_words() -> None:
    pictured = [replace(m, parts=(a_photo(rendered_text="a cat"), a_photo(unique_id="2"))) for m in a_talk(200)]

    context = await gathered(pictured, sources.window(InMemoryLog(pictured)))

    assert len(context.window) == 199
    assert {left.source for left in context.left_out} == {"media"}


async def test_what_the_agent_did_is_counted_too() -> None:
    log = InMemoryLog([a_message("hi", id="1")])
    results = [ToolResult(name="x", value="word " * 10_000)] * 20
    log.add(a_message("ok", id="2", author=GRYAG), turns=[user(*results), model("ok")])

    context = await gathered([], sources.window(log), target=a_message(id="3"))

    assert [(left.ids, left.why) for left in context.left_out] == [
        (("2",), "alone larger than the budget of 100000 tokens")
    ]


async def test_a_long_result_is_counted_as_it_is_shown() -> None:
    log = InMemoryLog([a_message("hi", id="1")])
    done = [user(ToolResult(name="x", value="word " * 200_000)), model("ok")]
    log.add(a_message("ok", id="2", author=GRYAG), turns=done)

    context = await gathered([], sources.window(log), target=a_message(id="3"))

    assert context.left_out == ()
    assert context.turns == {"2": tuple(done)}


async def test_an_edited_own_message_is_shown_as_it_is_now() -> None:
    log = InMemoryLog()
    log.add(a_message("v1", id="1", author=GRYAG), turns=[model("v1")])
    log.add(a_message("v2", id="1", author=GRYAG, edited_at=NOON))

    context = await gathered([], sources.window(log), target=a_message(id="3"))

    assert (context.turns, context.window[0].parts) == ({}, (Text(text="v2"),))


@pytest.mark.parametrize(
    ("now", "quote"),
    [
        (a_message("old", id="m0", deleted=True), a_quote("", author=ALICE)),
        (a_message("new", id="m0"), a_quote("new", author=ALICE)),
        (a_message("old", id="m0"), a_quote("old", author=ALICE, excerpt="ol")),
    ],
    ids=["deleted", "edited", "as it was"],
)
@pytest.mark.parametrize("source", [sources.window, sources.levels])
async def test_a_quote_says_what_the_message_says_now(now: Message, quote: Quote, source: Any) -> None:
    target = a_message(id="t", reply_to=a_quote("old", author=ALICE, excerpt="ol"))

    context = await gathered([], source(InMemoryLog([now])), target=target)

    assert context.target.reply_to == quote


async def test_hits_of_another_place_are_not_taken_for_messages_of_this_one() -> None:
    talk = a_talk(3)
    hits = [
        RelevantMessage(text="there", score=0.9, message_id="1", place=DIRECT),
        RelevantMessage(text="x", score=0.8),
        RelevantMessage(text="x", score=0.7),
    ]

    context = await gathered(talk, sources.levels(InMemoryLog(talk)), sources.relevant(InMemoryKnowledge(hits=hits)))

    assert context.relevant == (hits[0], hits[1])


async def test_a_score_that_is_no_number_comes_last() -> None:
    hits = [RelevantMessage(text=str(score), score=score) for score in (0.1, float("nan"), 0.9, 0.5)]

    context = await gathered([a_message()], sources.relevant(InMemoryKnowledge(hits=hits)))

    assert [hit.text for hit in context.relevant] == ["0.9", "0.5", "0.1", "nan"]


def test_a_zone_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidValue, match="no time zone is called 'Nowhere/Land'"):
        sources.agent_settings(persona=PERSONA, zone="Nowhere/Land")


@given(st.integers(1, 60), st.integers(0, 2000))
@settings(max_examples=30)
async def test_a_window_stays_within_its_budget_and_keeps_the_newest(count: int, budget: int) -> None:
    talk = a_talk(count)
    target = a_message(id="target")

    context = await gathered(talk, sources.window(InMemoryLog(talk), budget=Budget(window=budget)), target=target)

    kept = tuple(message for message in context.window if not message.deleted)
    counts = dict(zip(range(count), count_tokens(talk, {}, ESTIMATOR), strict=True))
    fitting = [number for number in range(count) if counts[number] <= budget]
    assert sum(counts[number] for number in ids(kept)) <= budget
    assert ids(kept) == fitting[len(fitting) - len(kept) :]
    assert len(context.left_out) + len(kept) == count


@pytest.mark.parametrize("target", range(12))
@pytest.mark.parametrize("size", [1, 3, 8, 400])
async def test_a_window_is_no_larger_than_its_cap_wherever_the_target_stands(target: int, size: int) -> None:
    talk = a_talk(12)

    context = await gathered(talk, sources.window(InMemoryLog(talk), history_size=size), target=talk[target])

    others = [number for number in range(12) if number != target]
    assert ids(context.window) == others[len(others) - len(context.window) :]
    assert (len(context.window) <= size, context.window_start + len(context.window)) == (True, 11)


@pytest.mark.parametrize(("size", "shown"), [(0, 0), (1, 1), (7, 7), (35, 35), (500, 35)])
async def test_levels_are_no_larger_than_the_history(size: int, shown: int) -> None:
    talk = a_talk(60)

    context = await gathered(talk, sources.levels(InMemoryLog(talk), history_size=size))

    assert len(context.history) == shown


async def test_of_a_deleted_message_nothing_is_recalled() -> None:
    talk = a_talk(3)
    log = InMemoryLog([talk[0], replace(talk[1], deleted=True), talk[2]])

    context = await gathered(
        talk,
        sources.window(log),
        sources.relevant(InMemoryKnowledge(hits=[RelevantMessage(text="secret", score=1, message_id="1")])),
    )

    assert context.relevant == ()


async def test_another_counter_counts_everything() -> None:
    class Dear:
        def text(self, text: str) -> int:
            return 10**6

    known = InMemoryKnowledge(
        hits=[RelevantMessage(text="h", score=1)],
        background=Background(memories=("m",), summary="s", key_facts={"k": "v"}),
        episodes=[RecalledEpisode(topic="t", summary="u")],
    )
    dear = Budget(counter=Dear())

    context = await gathered(
        [a_message()],
        sources.relevant(known, budget=dear),
        sources.background(known, budget=dear),
        sources.episodic(known, budget=dear),
    )

    assert len(context.left_out) == 5


def test_a_budget_below_nothing_is_refused() -> None:
    with pytest.raises(InvalidValue, match=r"budget\.immediate is a number of tokens"):
        Budget(immediate=-5)


async def test_the_least_relevant_go_first() -> None:
    hits = [
        RelevantMessage(text="x" * 400, score=0.1),
        RelevantMessage(text="y" * 400, score=0.9),
        RelevantMessage(text="z" * 400, score=0.5),
    ]
    room = Budget(relevant=ESTIMATOR.text("y" * 400) + ESTIMATOR.text("z" * 400))

    context = await gathered([a_message()], sources.relevant(InMemoryKnowledge(hits=hits), budget=room))

    assert [hit.score for hit in context.relevant] == [0.9, 0.5]
    assert [left.text for left in context.left_out] == ["x" * 39 + "…"]


async def test_what_is_shown_as_a_message_is_not_recalled_too() -> None:
    talk = a_talk(3)
    hits = [
        RelevantMessage(text="shown", score=0.9, message_id="1"),
        RelevantMessage(text="target", score=0.8, message_id="2"),
        RelevantMessage(text="old", score=0.7, message_id="old"),
        RelevantMessage(text="old", score=0.6, message_id="old"),
        RelevantMessage(text="a summary", score=0.5),
    ]

    context = await gathered(talk, sources.relevant(InMemoryKnowledge(hits=hits)), sources.levels(InMemoryLog(talk)))

    assert context.relevant == (hits[2], hits[4])
    assert [(left.ids, left.why) for left in context.left_out] == [
        ((w,), "is shown already") for w in ("2", "old", "1")
    ]


async def test_background_goes_in_as_far_as_it_fits() -> None:
    known = Background(summary="short", key_facts={"a": "b"}, memories=("one", "two " * 500, "three"))

    context = await gathered(
        [a_message()], sources.background(InMemoryKnowledge(background=known), budget=Budget(background=50))
    )

    assert (context.summary, context.key_facts, context.memories) == ("short", {"a": "b"}, ("one", "three"))


async def test_without_levels_there_is_the_plain_window() -> None:
    talk = a_talk(50)

    context = await gathered(talk, sources.window(InMemoryLog(talk)))

    assert (context.levels, len(context.history), context.immediate) == (False, 49, ())


@pytest.mark.parametrize("delimiter", ["short", "has space", "x]", "a" * 65])
def test_a_delimiter_that_could_be_guessed_or_break_out_is_refused(delimiter: str) -> None:
    with pytest.raises(InvalidValue, match="a delimiter is 6 to 64 letters and digits"):
        sources.agent_settings(persona=PERSONA, delimiter=delimiter)


async def test_days_of_what_was_said_are_those_of_the_places_zone() -> None:
    late = RelevantMessage(text="good night", score=1.0, said_by="Alice", said_at=NOON.replace(hour=23))
    sent = RelevantMessage(text="an old hit", score=0.5)
    scene = sources.agent_settings(persona=PERSONA, zone="Europe/Kyiv")

    context = await gathered([a_message()], scene, sources.relevant(InMemoryKnowledge(hits=[late, sent])))

    assert [hit.text for hit in context.relevant] == ["Alice (2025-01-16): good night", "an old hit"]


async def test_without_levels_all_that_is_remembered_is_one_list() -> None:
    known = Background(
        summary="short", key_facts={"Home": "Lives in Lviv.", "Pet": "has a cat"}, memories=("Has a cat.",)
    )

    context = await gathered([a_message()], sources.memories(InMemoryKnowledge(background=known)))

    assert (context.summary, context.key_facts) == ("", {})
    assert context.memories == ("Home: Lives in Lviv.", "Has a cat.")


@pytest.mark.parametrize("source", [partial(sources.window, history_size=12), partial(sources.levels, history_size=12)])
async def test_what_the_history_replies_to_and_does_not_show_is_as_it_stands_now(
    source: Callable[..., sources.Source],
) -> None:
    talk = a_talk(40, authors=(ALICE, BOB))
    talk[0] = replace(talk[0], parts=(Text(text="edited"),), edited_at=NOON)
    talk[1] = replace(talk[1], deleted=True)
    for number, quote in enumerate(("0", "1", "2", "nowhere", "33")):
        talk[34 + number] = replace(talk[34 + number], reply_to=Quote(message_id=quote, parts=(Text(text="then"),)))

    context = await gathered(talk, source(InMemoryLog(talk)))

    shown = {one.id: one for one in (*context.window, *context.recent, *context.immediate)}
    told = {quote.message_id: quote for quote in context.unshown_quotes(tuple(shown.values())).values()}
    assert told == {
        "0": Quote(message_id="0", author=talk[0].author, parts=(Text(text="edited"),)),
        "1": Quote(message_id="1", author=talk[1].author),
        "2": Quote(message_id="2", author=talk[2].author, parts=talk[2].parts),
        "nowhere": Quote(message_id="nowhere", parts=(Text(text="then"),)),
    }


async def test_what_is_replied_to_before_the_cut_of_the_budget_is_looked_up_too() -> None:
    talk = a_talk(40, authors=(ALICE, BOB))
    talk[38] = replace(talk[38], reply_to=Quote(message_id="0"))

    context = await gathered(talk, sources.window(InMemoryLog(talk), budget=Budget(window=300)))

    assert context.unshown_quotes(context.window)["38"].parts == talk[0].parts


def test_a_reply_counts_with_what_it_quotes() -> None:
    short = a_message(id="1", reply_to=a_quote("x" * 300))
    long = a_message(id="2", reply_to=a_quote("x" * 30_000))

    plain, quoting, cut = count_tokens([a_message(), short, long], {}, ESTIMATOR)

    assert plain + ESTIMATOR.text("x" * 300) <= quoting == cut
