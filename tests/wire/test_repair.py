"""What repair does to the things that brick a chat elsewhere."""

import pytest

from palaver import Media, Opaque, Text, Thought, ToolCall, ToolResult, Turn, model, user
from palaver.errors import NothingToSend
from palaver.turns import Prompt
from palaver.wire import Receipt, repair
from palaver.wire.repair import repaired

NEW = "gemini-3.8-flash"
OLD = "gemini-2.0-flash"
PLACEHOLDER = "skip_thought_signature_validator"
NOT_RECORDED = "No result was recorded for this call."


def a_call(name: str = "look", **changes: str | None) -> ToolCall:
    return ToolCall(**{"name": name, "signature": "c2ln", **changes})  # type: ignore[arg-type]


def a_result(name: str = "look", value: object = 1, **changes: str | None) -> ToolResult:
    return ToolResult(name=name, value=value, **changes)  # type: ignore[arg-type]


def mended(*turns: Turn, by: str = NEW) -> list[Turn]:
    return list(repair(turns, by)[0])


def test_a_call_without_a_result_gets_an_honest_one() -> None:
    turns, receipts = repair([user("go"), model(a_call(id="a")), user("well?")], NEW)

    answer = ToolResult(id="a", name="look", value=NOT_RECORDED, failed=True)
    assert turns == (user("go"), model(a_call(id="a")), user(answer), user("well?"))
    assert receipts == (
        Receipt(
            rule="count",
            where="turns[2]",
            action=(
                "results were put in the order of their calls, under their ids; "
                "1 calls without a result were answered as not recorded"
            ),
        ),
    )


def test_a_call_at_the_end_is_answered_too() -> None:
    assert mended(user("go"), model(a_call()))[2:] == [user(ToolResult(name="look", value=NOT_RECORDED, failed=True))]


def test_a_result_without_a_call_goes() -> None:
    turns, receipts = repair([user("hi"), user(a_result()), model("yes"), user("ok")], NEW)

    assert turns == (user("hi"), model("yes"), user("ok"))
    assert receipts == (
        Receipt(rule="result-after-call", where="turns[0]", action="1 results without a call were left out"),
    )


def test_results_are_matched_by_id_then_by_name_and_put_in_order() -> None:
    calls = [a_call("one", id="a"), ToolCall(name="two", id="b"), ToolCall(name="three", id="c")]
    results = [a_result("three", 3), a_result("wrong", 2, id="b"), a_result("one", 1, id="zzz")]

    assert mended(user("go"), model(*calls), user(*results))[2] == user(
        a_result("one", 1, id="a"), a_result("two", 2, id="b"), a_result("three", 3, id="c")
    )


def test_words_beside_late_results_stay_after_them() -> None:
    turns = mended(
        user("go"),
        model(a_call(id="a"), ToolCall(name="look", id="b")),
        user(a_result(id="a"), "hm"),
        user(a_result(id="b")),
    )

    assert turns[2:] == [user(a_result(id="a"), a_result(id="b")), user("hm")]


def test_calls_with_one_id_are_told_apart_and_so_are_their_results() -> None:
    turns = mended(
        user("go"),
        model(a_call(id="a"), ToolCall(name="look", id="a")),
        user(a_result(value=1, id="a"), a_result(value=2, id="a")),
    )

    assert turns[1:] == [
        model(a_call(id="a"), ToolCall(name="look", id="a-2")),
        user(a_result(value=1, id="a"), a_result(value=2, id="a-2")),
    ]


def test_a_history_cut_before_a_call_begins_with_a_user_turn() -> None:
    assert mended(model(a_call()), user(a_result()))[0] == user("Continue.")


def test_a_history_that_ends_with_the_model_is_continued_where_it_must_be() -> None:
    assert mended(user("hi"), model("yes")) == [user("hi"), model("yes"), user("Continue.")]
    assert mended(user("hi"), model("yes"), by=OLD) == [user("hi"), model("yes")]
    assert mended(user("hi"), model("yes"), by="gpt-5.6") == [user("hi"), model("yes")]


def test_signatures_of_another_model_give_way_to_the_placeholder_on_the_first_call() -> None:
    foreign = model(
        Thought(text="hm", signature="s1"),
        Text(text="so", signature="s2"),
        Text(text="", signature="s3"),
        ToolCall(name="one", signature="s4"),
        ToolCall(name="two", signature="s5"),
        Opaque(raw={"executableCode": {}}),
        by="gemini-2.5-pro",
    )
    turns, receipts = repair([user("go"), foreign, user(a_result("one"), a_result("two"))], NEW)

    assert turns[1] == model(
        Thought(text="hm"),
        Text(text="so"),
        ToolCall(name="one", signature=PLACEHOLDER),
        ToolCall(name="two"),
        by="gemini-2.5-pro",
    )
    assert [receipt.where for receipt in receipts] == [f"turns[1].parts[{place}]" for place in range(6)]


def test_an_unsigned_call_of_the_current_turn_gets_the_placeholder() -> None:
    turns = mended(
        user("before"), model(ToolCall(name="old")), user(a_result("old")), model("done"), user("now"),
        model(ToolCall(name="one"), ToolCall(name="two")), user(a_result("one"), a_result("two")),
    )  # fmt: skip

    assert [part for turn in turns for part in turn.parts if isinstance(part, ToolCall)] == [
        ToolCall(name="old"),
        ToolCall(name="one", signature=PLACEHOLDER),
        ToolCall(name="two"),
    ]


def test_a_model_that_checks_no_signatures_needs_no_placeholder() -> None:
    history = (user("go"), model(ToolCall(name="look"), by="other"), user(a_result()))

    assert mended(*history, by=OLD) == list(history)


def test_parts_without_data_go() -> None:
    turns, receipts = repair([user(Opaque(raw={}), "hi", Opaque(raw={"mystery": 1}))], NEW)

    assert turns == (user("hi"),)
    assert [receipt.rule for receipt in receipts] == ["no-data", "no-data"]


def test_unknown_fields_are_trimmed_from_a_part_whose_rest_is_known() -> None:
    assert mended(user(Opaque(raw={"text": "hi", "mystery": 1}))) == [user(Opaque(raw={"text": "hi"}))]


def test_text_and_call_in_turns_of_their_own_are_joined() -> None:
    turns = mended(user("go"), model("let me"), model("see"), model(a_call()), user(a_result()))

    assert turns[1] == model("let me", "see", a_call())


def test_calls_in_turns_of_their_own_are_joined_for_openai() -> None:
    calls = [ToolCall(name="one", id="a"), ToolCall(name="two", id="b")]
    results = user(a_result("one", id="a"), a_result("two", id="b"))

    assert mended(user("go"), model(calls[0]), model(calls[1]), results, by="gpt-5.6") == [
        user("go"),
        model(*calls),
        results,
    ]
    assert mended(user("go"), model(calls[0]), model(calls[1]), results, by=OLD)[1:3] == [
        model(calls[0]),
        model(calls[1]),
    ]


def test_names_that_openai_refuses_are_rewritten() -> None:
    turns = mended(user("go"), model(ToolCall(name="a.b:c", id="x")), user(a_result("a.b:c", id="x")), by="gpt-5.6")

    assert turns[1] == model(ToolCall(name="a_b_c", id="x"))


def test_media_beyond_what_a_request_carries_become_words_oldest_first() -> None:
    huge = Media(
        media_kind="photo", unique_id="u", mime="image/png", data=bytes(45 * 1024 * 1024), rendered_text="a cat"
    )
    turns, receipts = repair([user(huge), user(huge)], NEW)

    assert turns == (user("a cat"), user(huge))
    assert [receipt.rule for receipt in receipts] == ["payload-size"]


@pytest.mark.parametrize("history", [[], [user()], [user(a_result())], [user(Opaque(raw={}))]])
def test_with_nothing_left_it_says_so(history: list[Turn]) -> None:
    with pytest.raises(NothingToSend):
        repair(history, NEW)


def test_a_legal_prompt_is_sent_as_it_is() -> None:
    prompt = Prompt.of("hi", system="Be brief.")

    assert repaired(prompt, NEW, wire="gemini") is prompt


def test_a_repaired_prompt_keeps_its_instruction_and_tools() -> None:
    prompt = Prompt.of(user("hi"), model("yes"), system="Be brief.")

    mended_prompt = repaired(prompt, NEW, wire="gemini")

    assert mended_prompt.instruction == "Be brief."
    assert mended_prompt.turns == (user("hi"), model("yes"), user("Continue."))


def test_results_whose_media_stand_beside_them_go_first_together() -> None:
    song = Media(media_kind="audio", unique_id="u", mime="audio/ogg", data=b"ogg")
    first, second = ToolResult(name="look", id="a", media=(song,)), ToolResult(name="look", id="b")
    calls = model(a_call(id="a"), ToolCall(name="look", id="b"))

    assert mended(user("go"), calls, user(first), user(second))[2:] == [user(first, second)]


def test_what_gemini_alone_understands_does_not_go_to_the_same_model_by_the_other_wire() -> None:
    turns, _ = repair([user("go"), model("so", Opaque(raw={"executableCode": {}}), by=NEW)], NEW, wire="openai")

    assert turns[1] == model("so", by=NEW)
