"""Whatever a history holds, its repaired form is legal, stable, and no more changed than it must be."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from strategies import GEMINI_MODELS, OPENAI_MODELS, histories, plausible
from tertulia.errors import NothingToSend
from tertulia.models.gemini import encode as gemini
from tertulia.models.openai import encode as openai
from tertulia.turns import Prompt, Turn
from tertulia.wire import Receipt, lint, repair
from tertulia.wire.lint import Violation
from tertulia.wire.signatures import Wire

pytestmark = pytest.mark.torture

History = tuple[str, list[Turn]]
likely_history = st.one_of(plausible(GEMINI_MODELS), plausible(OPENAI_MODELS))
any_history = st.one_of(histories(GEMINI_MODELS), histories(OPENAI_MODELS), likely_history)


def violations(turns: tuple[Turn, ...] | list[Turn], model: str) -> list[Violation]:
    encode = openai.encode_request if model in OPENAI_MODELS else gemini.encode_request
    return lint(encode(Prompt.of(*turns), model=model), model=model, strict=True)


def repaired(
    turns: list[Turn] | tuple[Turn, ...], model: str, *, wire: Wire | None = None
) -> tuple[tuple[Turn, ...], tuple[Receipt, ...]]:
    try:
        return repair(turns, model, wire=wire)
    except NothingToSend:
        assume(False)
        raise


@given(any_history)
def test_a_repaired_history_is_legal(history: History) -> None:
    model, turns = history

    legal, _ = repaired(turns, model)

    assert violations(legal, model) == []


@given(any_history)
def test_repairing_twice_is_repairing_once(history: History) -> None:
    model, turns = history

    once, _ = repaired(turns, model)

    assert repaired(once, model)[0] == once


@given(likely_history)
def test_what_is_legal_and_the_models_own_is_left_alone(history: History) -> None:
    model, turns = history
    own = [replace(turn, model=model if turn.model or turn.role == "model" else None) for turn in turns]
    assume(violations(own, model) == [])

    assert repaired(own, model) == (tuple(own), ())


@given(any_history)
def test_repairing_leaves_the_history_it_was_given_and_does_the_same_every_time(history: History) -> None:
    model, turns = history
    copies = [replace(turn) for turn in turns]

    once = repaired(turns, model)

    assert turns == copies
    assert repaired(copies, model) == once


@given(any_history, st.lists(st.lists(st.integers(min_value=0)), max_size=4))
def test_what_was_repaired_before_never_matters(history: History, orders: list[list[int]]) -> None:
    """The same turns in any order and number, as windows, forks and edits put them together, as if never seen."""
    model, turns = history
    assume(turns)
    chosen = [turns, *([turns[place % len(turns)] for place in order] for order in orders), turns[1:], turns]

    for some in chosen:
        assert outcome(some, model) == outcome([replace(turn) for turn in some], model)


def outcome(turns: list[Turn], model: str) -> tuple[bytes, tuple[Receipt, ...]] | None:
    """The request that is sent and the receipts of its repair; None where nothing is left to send."""
    encode = openai.encode_request if model in OPENAI_MODELS else gemini.encode_request
    try:
        legal, receipts = repair(turns, model)
    except NothingToSend:
        return None
    return encode(Prompt.of(*legal), model=model), receipts


@given(st.one_of(histories(GEMINI_MODELS), plausible(GEMINI_MODELS)))
def test_a_gemini_history_repaired_for_the_other_wire_is_legal_there_and_stable(history: History) -> None:
    model, turns = history

    once, _ = repaired(turns, model, wire="openai")

    assert lint(openai.encode_request(Prompt.of(*once), model=model), model=model, strict=True) == []
    assert repaired(once, model, wire="openai")[0] == once
