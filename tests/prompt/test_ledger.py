from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from people import DIRECT, GRYAG, NOON, PERSONA, a_context, a_talk
from tertulia.models.base import Usage
from tertulia.parts import ToolResult
from tertulia.profiles import PROFILES
from tertulia.prompt import forms
from tertulia.prompt.ledger import CHANGED, CUT, HISTORY, REMOVED, STATE, Ledger, LedgerEntry, Ledgers, layer_entries
from tertulia.tokens import ESTIMATOR, prompt_tokens, turn_tokens
from tertulia.turns import Layer, Prompt, Settings, ToolSpec, Turn, model, user

SYSTEM = "Be brief."
FIRST = Prompt.of("hello", system=SYSTEM)


def test_an_entry_names_each_layer_with_its_tokens() -> None:
    entry = Ledger().record_request(FIRST)

    assert [(layer.name, layer.tokens) for layer in entry.layers] == [
        ("static", ESTIMATOR.text(SYSTEM)),
        ("buffered", turn_tokens(user("hello"))),
    ]
    assert (entry.tokens, entry.stable, entry.broken_by) == (prompt_tokens(FIRST), 0, None)


def test_what_only_grew_is_stable_throughout() -> None:
    ledger = Ledger()
    before = ledger.record_request(FIRST)

    entry = ledger.record_request(Prompt.of("hello", model("Hi."), "and now?", system=SYSTEM))

    assert (entry.stable, entry.broken_by) == (before.tokens, None)


@pytest.mark.parametrize(
    ("changed", "layer", "stable"),
    [
        (Prompt.of("hello", system="Be long."), "static", ESTIMATOR.text("Be ")),
        (Prompt.of("hell no", system=SYSTEM), "buffered", ESTIMATOR.text(SYSTEM) + ESTIMATOR.text("hell")),
        (Prompt.of(model("hello"), system=SYSTEM), "buffered", ESTIMATOR.text(SYSTEM)),
        (Prompt.of("hello", system=SYSTEM, tools=[ToolSpec(name="look")]), "static", 0),
        (Prompt.of(system=SYSTEM), "buffered", ESTIMATOR.text(SYSTEM)),
        (Prompt.of("hello", system=SYSTEM, settings=Settings(temperature=1)), None, prompt_tokens(FIRST)),
    ],
)
def test_the_layer_that_broke_the_prefix_is_named(changed: Prompt, layer: str | None, stable: int) -> None:
    ledger = Ledger()
    ledger.record_request(FIRST)

    entry = ledger.record_request(changed)

    assert (entry.broken_by, entry.stable) == (layer, stable)


def test_a_layer_has_the_same_fingerprint_as_long_as_it_is_the_same() -> None:
    ledger = Ledger()

    one, same, other = (
        ledger.record_request(prompt) for prompt in (FIRST, replace(FIRST), Prompt.of("bye", system=SYSTEM))
    )

    assert one.layers == same.layers
    assert [a == b for a, b in zip(one.layers, other.layers, strict=True)] == [True, False]


@pytest.mark.parametrize(("profile", "layer"), [("layered", "dynamic"), ("tail", "dynamic"), ("native", "static")])
def test_a_clock_tick_breaks_what_changes_and_nothing_before_it(profile: str, layer: str) -> None:
    context = a_context(window=tuple(a_talk(40)), persona=PERSONA)
    ledger = Ledger()
    ledger.record_request(PROFILES[profile].build(context))

    assert (
        ledger.record_request(PROFILES[profile].build(replace(context, now=NOON + timedelta(minutes=1)))).broken_by
        == layer
    )


def test_a_promotion_leaves_what_was_promoted_before_stable() -> None:
    talk = a_talk(60, place=DIRECT)
    ledger = Ledger()

    entries = [
        ledger.record_request(
            PROFILES["layered"].build(a_context(message, window=tuple(talk[:number]), now=message.sent_at))
        )
        for number, message in enumerate(talk)
        if message.author != GRYAG
    ]

    framing = turn_tokens(user("")) - ESTIMATOR.text("")
    static = [entry.layers[0].tokens - framing for entry in entries]
    assert all(now.stable >= before for now, before in zip(entries[1:], static, strict=False))
    assert {entry.broken_by for entry in entries[1:]} == {"dynamic"}  # what is added at an end breaks nothing


def test_what_the_service_reported_is_entered_with_the_request() -> None:
    usage = Usage(input=9, cached=4, output=2)
    ledger = Ledger()

    for _ in range(2):
        ledger.record_request(FIRST)
        ledger.record_usage(usage)

    assert [entry.reported for entry in ledger.entries] == [usage] * 2
    assert isinstance(ledger.entries[0], LedgerEntry)
    assert [entry.share for entry in ledger.entries] == [0.0, 1.0]


@pytest.mark.parametrize(
    "value", [["caf\udce9.txt"], {None: 1}, 10**5000, float("nan")], ids=["half", "key", "long", "nan"]
)
def test_what_json_cannot_hold_is_entered_all_the_same(value: Any) -> None:
    entry = Ledger().record_request(Prompt.of("a\ud800b", user(ToolResult(name="x", value=value))))

    assert entry.tokens > 0


SOME = tuple(user(f"message number {number}") for number in range(6))
TOOL = ToolSpec(name="look", description="", parameters={})
TALK = Prompt(layers=(Layer(name="static", instruction="Be kind."), Layer(name="buffered", turns=SOME)))
LONG = " ".join(f"word{number}" for number in range(400))


def history(*turns: Turn) -> Prompt:
    return replace(TALK, layers=(TALK.layers[0], Layer(name="buffered", turns=turns)))


CAUSES = {
    "grown": (history(*SOME, user("one more")), None, ""),
    "tools": (replace(TALK, tools=(TOOL,)), "static", "the tools are others"),
    "instruction": (
        replace(TALK, layers=(Layer(name="static", instruction="Be rude."),)),
        "static",
        "its instruction changed",
    ),
    "cut": (history(*SOME[2:], user("one more")), "buffered", CUT),
    "removed": (history(*SOME[:3], *SOME[4:]), "buffered", REMOVED),
    "edited": (history(*SOME[:3], user("another"), *SOME[4:]), "buffered", CHANGED),
    "gone": (history(*SOME[:3]), "buffered", "nothing of it is left"),
}


@pytest.mark.parametrize("name", CAUSES)
def test_what_ends_the_repeated_prefix_is_said_in_words(name: str) -> None:
    then, broken_by, cause = CAUSES[name]
    ledgers = Ledgers()

    first, size = ledgers.measure("here", TALK, "m"), ledgers.measure("here", then, "m")

    assert (first.stable, first.broken_by) == (0, None)
    assert (size.broken_by, size.cause) == (broken_by, cause)


def test_the_dynamic_layer_is_another_at_each_time() -> None:
    ledgers = Ledgers()
    at_times = [
        replace(TALK, layers=(*TALK.layers, Layer(name="dynamic", turns=(user(at),)))) for at in ("1 am", "2 am")
    ]

    sizes = [ledgers.measure("here", prompt, "m") for prompt in at_times]

    assert (sizes[1].broken_by, sizes[1].cause) == (
        "dynamic",
        STATE,
    )


def test_a_history_of_one_text_is_compared_too() -> None:
    ledgers = Ledgers()
    texts = LONG, LONG + " more", LONG[1600:] + " more", LONG[1600:].replace("word300", "Wort")
    sizes = [ledgers.measure("here", history(user(text)), "m") for text in texts]

    assert [(one.broken_by, one.cause) for one in sizes[2:]] == [("buffered", CUT), ("buffered", CHANGED)]
    assert sizes[1].stable > sizes[0].total * 0.9


def past(*lines: str) -> Turn:
    return user("\n".join((f"[#1] {forms.PAST}", *(f"- {line}" for line in lines))))


ONE_TURN = user("one", "two", "three", "four")  # a history as one turn, a part for each message
NOW = Layer(name="dynamic", turns=(user("now"),))


@pytest.mark.parametrize(
    ("then", "broken_by", "cause"),
    [
        ((past("A."), user("one", "two", "three", "four", "five")), "dynamic", None),
        ((past("A.", "B."), user("three", "four", "five")), HISTORY, CUT),
        ((past("A."), user("two", "three", "four")), HISTORY, CUT),
        ((past("A."), user("one", "three", "four")), HISTORY, REMOVED),
        ((past("A."), user("one", "2", "three", "four")), HISTORY, CHANGED),
        ((past("B."), ONE_TURN), HISTORY, CHANGED),
    ],
    ids=["grown", "summed up", "cut", "removed", "edited", "another past"],
)
def test_a_history_of_one_turn_grows_at_its_end_and_is_cut_after_the_past(
    then: tuple[Turn, ...], broken_by: str, cause: str | None
) -> None:
    ledgers = Ledgers()
    first, second = (
        Prompt(layers=(Layer(name="static", instruction="Be kind.", turns=turns), NOW))
        for turns in ((past("A."), ONE_TURN), then)
    )
    ledgers.measure("here", first, "m")

    size = ledgers.measure("here", second, "m")

    assert (size.broken_by, size.cause) == (broken_by, cause or STATE)


def test_a_window_of_turns_is_cut_after_the_past() -> None:
    ledgers = Ledgers()
    turns = SOME, (past("A."), *SOME[2:]), (past("A.", "B."), *SOME[3:], user("one more"))

    sizes = [ledgers.measure("here", history(*those), "m") for those in turns]

    assert [(size.broken_by, size.cause) for size in sizes[1:]] == [("buffered", CUT)] * 2


def test_another_model_repeats_nothing_and_other_places_are_not_compared() -> None:
    ledgers = Ledgers(most=1)

    sizes = [ledgers.measure(place, TALK, name) for place, name in ("am", "an", "bn", "an")]

    assert [(one.stable, one.broken_by) for one in sizes] == [(0, None), (0, "model"), (0, None), (0, None)]
    assert sizes[0].total == sum(one.tokens for one in layer_entries(TALK))
