"""What repair does to the things that brick a chat elsewhere."""

import gc

import pytest

from tertulia import Media, Opaque, Text, Thought, ToolCall, ToolResult, Turn, model, user
from tertulia.errors import NothingToSend
from tertulia.models.gemini.encode import encode_request as gemini_request
from tertulia.models.openai.encode import encode_request as openai_request
from tertulia.turns import Prompt
from tertulia.wire import Receipt, lint, repair
from tertulia.wire.repair import repair_prompt
from tertulia.wire.signatures import Wire

NEW = "gemini-3.8-flash"
OLD = "gemini-2.0-flash"
PLACEHOLDER = "skip_thought_signature_validator"
NOT_RECORDED = "No result was recorded for this call."


def a_call(name: str = "look", **changes: object) -> ToolCall:
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
            action="1 call without a result answered as not recorded",
        ),
    )


def test_a_call_at_the_end_is_answered_too() -> None:
    assert mended(user("go"), model(a_call()))[2:] == [user(ToolResult(name="look", value=NOT_RECORDED, failed=True))]


def test_a_result_without_a_call_goes() -> None:
    turns, receipts = repair([user("hi"), user(a_result()), model("yes"), user("ok")], NEW)

    assert turns == (user("hi"), model("yes"), user("ok"))
    assert receipts == (Receipt(rule="result-after-call", where="turns[0]", action="1 result without a call left out"),)


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


def test_signatures_of_an_unknown_maker_are_left_out_for_a_model_that_signs_nothing() -> None:
    signed = model("so", ToolCall(name="one", id="1", signature="s"), ToolCall(name="two", id="2"))
    history = (user("go"), signed, user(a_result("one", id="1"), a_result("two", id="2")))

    turns, receipts = repair(history, "gpt-4o", wire="openai")

    assert turns[1] == model("so", ToolCall(name="one", id="1"), ToolCall(name="two", id="2"))
    assert [(one.rule, one.where, one.action) for one in receipts] == [
        ("foreign", "turns[1].parts[1]", "a signature of an unknown maker was left out")
    ]
    assert repair(turns, "gpt-4o", wire="openai") == (turns, ())
    assert repair(history, NEW, wire="openai") == repair(history, NEW) == (history, ())


def test_a_signed_call_in_a_turn_of_a_person_is_not_sent_so_nothing_is_left_out_of_it() -> None:
    history = (user("hi"), user(ToolCall(name="one", id="1", signature="s"), "so"))

    assert repair(history, "gpt-4o", wire="openai") == (history, ())


def test_an_empty_signature_of_another_model_goes_too() -> None:
    foreign = Turn(role="model", parts=(ToolCall(name="one", id="1", signature=""), Text(text="so")), model="other")

    turns, receipts = repair([user("go"), foreign, user(a_result("one", id="1"))], "gpt-4o", wire="openai")

    assert turns[1].parts == (ToolCall(name="one", id="1"), Text(text="so"))
    assert [one.action for one in receipts] == ["a signature of other was left out"]


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
    assert [(receipt.rule, receipt.where) for receipt in receipts] == [("no-data", "turns[0].parts[2]")]


def test_unknown_fields_are_trimmed_from_a_part_whose_rest_is_known() -> None:
    assert mended(user(Opaque(raw={"text": "hi", "mystery": 1}))) == [user(Opaque(raw={"text": "hi"}))]


def test_text_and_call_in_turns_of_their_own_stand_as_they_are() -> None:
    history = (user("go"), model("let me"), model("see"), model(a_call()), user(a_result()))

    assert repair(history, NEW) == (history, ())


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

    assert turns == (user("[photo described: a cat]"), user(huge))
    assert [receipt.rule for receipt in receipts] == ["payload-size"]


@pytest.mark.parametrize("history", [[], [user()], [user(a_result())], [user(Opaque(raw={}))]])
def test_with_nothing_left_it_says_so(history: list[Turn]) -> None:
    with pytest.raises(NothingToSend):
        repair(history, NEW)


def test_a_legal_prompt_is_sent_as_it_is() -> None:
    prompt = Prompt.of("hi", system="Be brief.")

    assert repair_prompt(prompt, NEW, wire="gemini") is prompt


def test_a_repaired_prompt_keeps_its_instruction_and_tools() -> None:
    prompt = Prompt.of(user("hi"), model("yes"), system="Be brief.")

    mended_prompt = repair_prompt(prompt, NEW, wire="gemini")

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


def nest(levels: int) -> dict[str, object]:
    value: dict[str, object] = {}
    for _ in range(levels):
        value = {"in": value}
    return value


@pytest.mark.parametrize(
    ("history", "by"),
    [
        pytest.param(
            [
                user("x"),
                model(ToolCall(name="f", id="a", raw={"id": "a", "type": "custom", "function": {"arguments": "{}"}})),
            ],
            "gpt-4o",
            id="a raw call without a name",
        ),
        pytest.param(
            [model("x", Opaque(raw={"type": "text", "text": "a", "inlineData": {"data": 5}}))],
            "compatible-1",
            id="data that is no text",
        ),
        pytest.param(
            [user("x"), model(a_call(id="a", name="f")), user(a_result("f", nest(900), id="a"))], NEW, id="deep"
        ),
        pytest.param([user("x"), model(ToolCall(name="f", args={"n": 10**5000}))], NEW, id="a number of 5000 digits"),
        pytest.param([user("x"), model(ToolCall(name="f", args=nest(150)))], NEW, id="deep arguments"),
        pytest.param([user("x", Opaque(raw={"toolCall": nest(95)}))], NEW, id="deep and opaque"),
        pytest.param(
            [model(Thought(text="x", field="tool_calls"), "y"), user("z")], "gpt-5.6", id="a thought as calls"
        ),
        pytest.param([model(Thought(text="x", field="role"), "y"), user("z")], "gpt-5.6", id="a thought as the role"),
        pytest.param([user("x")], "gemini-" + "9" * 5000, id="a model of 5000 digits"),
    ],
)
def test_what_a_hostile_history_holds_is_made_legal(history: list[Turn], by: str) -> None:
    turns, _ = repair(history, by)
    encode = gemini_request if by.startswith("gemini") else openai_request

    assert lint(encode(Prompt.of(*turns), model=by), model=by, strict=True) == []
    assert repair(turns, by) == (turns, ())


def test_media_in_snake_case_count_too() -> None:
    huge = Opaque(raw={"inline_data": {"mime_type": "image/png", "data": "A" * 105_000_000}, "video_metadata": {}})

    assert mended(user(huge, "hi")) == [user("[media]", "hi")]


def test_huge_media_in_a_result_become_words() -> None:
    film = Media(
        media_kind="photo", unique_id="u", mime="image/png", data=bytes(80 * 1024 * 1024), rendered_text="a cat"
    )
    turns = mended(user("go"), model(a_call(id="a")), user(ToolResult(name="look", id="a", media=(film,))), user("ok"))

    assert turns[2].parts[0] == ToolResult(
        name="look", id="a", media=(Media(media_kind="photo", unique_id="u", mime="image/png", rendered_text="a cat"),)
    )


def test_joined_turns_carry_one_placeholder() -> None:
    foreign = [Turn(role="model", parts=(ToolCall(name="f", id=name),), model="other") for name in "ab"]
    history = [user("x"), *foreign, user(a_result("f", id="a"), a_result("f", id="b"))]

    once, _ = repair(history, "gemini-2.5-flash", wire="openai")

    assert once[1].parts == (ToolCall(name="f", id="a", signature=PLACEHOLDER), ToolCall(name="f", id="b"))
    assert repair(once, "gemini-2.5-flash", wire="openai")[0] == once


def test_a_call_as_received_in_snake_case_stands() -> None:
    raw = {"function_call": {"name": "f", "args": {}, "will_continue": False}, "thought_signature": "c2ln"}
    history = (user("x"), model(ToolCall(name="f", signature="c2ln", raw=raw)), user(a_result("f")))

    assert repair(history, NEW) == (history, ())


def test_ten_thousand_calls_of_one_id_are_told_apart_in_good_time() -> None:
    calls = model(*[ToolCall(name="f", id="a") for _ in range(10_000)])

    [_, told, answers] = mended(user("x"), calls, by=OLD)

    assert len({part.id for part in told.parts if isinstance(part, ToolCall)}) == 10_000
    assert len(answers.parts) == 10_000


CUSTOM = {"id": "c", "type": "custom", "custom": {"name": "grep.it", "input": "x"}}


@pytest.mark.parametrize(
    ("history", "by"),
    [
        pytest.param(
            (user("go"), model(Opaque(raw={"tool_call": CUSTOM}), by="gpt-5.6"), user(a_result("", id="c"))),
            "gpt-5.6",
            id="a custom tool call and its result",
        ),
        pytest.param(
            (
                user("go"),
                model(Opaque(raw={"tool_call": CUSTOM}), ToolCall(name="look"), by="gpt-5.6"),
                user(a_result(), a_result("", id="c")),
            ),
            "gpt-5.6",
            id="a custom tool call before one without an id",
        ),
        pytest.param(
            (
                user("go"),
                model(
                    a_call("mine", id="x", raw={"functionCall": {"name": "look", "id": "a"}, "thoughtSignature": "s"})
                ),
                user(a_result(id="a")),
            ),
            NEW,
            id="a call that its raw contradicts",
        ),
        pytest.param(
            (
                user("go"),
                model(a_call(id="a")),
                user(Opaque(raw={"functionResponse": {"name": "look", "response": {}}, "thoughtSignature": "s"})),
            ),
            NEW,
            id="a signed result",
        ),
        pytest.param((user(Opaque(raw={}), "hi"),), NEW, id="a part that nothing is sent for"),
        pytest.param((user("hi", Opaque(raw={"toolCall": nest(94)})),), NEW, id="as deep as may be"),
        pytest.param(
            (
                user("go"),
                model(ToolCall(name="look", id="a"), ToolCall(name="look", id="b")),
                user(a_result(id="a"), ToolCall(name="lost")),
                user(a_result(id="b")),
            ),
            "gpt-5.6",
            id="a call nobody sends among results",
        ),
    ],
)
def test_what_is_legal_as_received_stays(history: tuple[Turn, ...], by: str) -> None:
    encode = gemini_request if by == NEW else openai_request

    assert lint(encode(Prompt.of(*history), model=by), model=by, strict=True) == []
    assert repair(history, by) == (history, ())


def test_results_go_by_what_the_raw_call_says() -> None:
    raw = {"functionCall": {"name": "look", "id": "a", "args": {}, "willContinue": False}, "thoughtSignature": "s"}
    turns = mended(user("go"), model(ToolCall(name="mine", id="x", raw=raw)), user(a_result("mine", id="x")))

    assert turns[1:] == [
        model(ToolCall(name="look", id="a", signature="s", raw=raw)),
        user(ToolResult(name="look", id="a", value=NOT_RECORDED, failed=True)),
    ]


def test_words_after_a_signed_result_leave_its_content() -> None:
    raw = {"functionResponse": {"name": "look", "response": {}}, "thoughtSignature": "s"}
    turns, receipts = repair([user("go"), model(a_call()), user(Opaque(raw=raw), "well?")], NEW)

    assert turns[2] == user(ToolResult(name="look", value={}, raw=raw), "well?")
    assert [(receipt.rule, receipt.where) for receipt in receipts] == [("text-after-results", "turns[2]")]
    assert lint(gemini_request(Prompt.of(*turns), model=NEW), model=NEW, strict=True) == []


def test_a_custom_call_told_apart_stays_a_custom_call() -> None:
    twice = model(*[Opaque(raw={"tool_call": CUSTOM})] * 2)

    told = mended(user("go"), twice, user(a_result("", id="c")), by="gpt-5.6")[1]

    assert [part.raw for part in told.parts if isinstance(part, ToolCall)] == [CUSTOM, {**CUSTOM, "id": "c-2"}]


def test_huge_media_in_a_result_as_received_go() -> None:
    data = {"mimeType": "image/png", "data": "A" * 105_000_000, "displayName": "cat"}
    raw = {"functionResponse": {"name": "look", "id": "a", "response": {}, "parts": [{"inlineData": data}]}}
    turns = mended(user("go"), model(a_call(id="a")), user(ToolResult(name="look", id="a", value={}, raw=raw)))

    assert turns[2] == user(ToolResult(name="look", id="a", value={}))


def test_results_whose_media_stand_beside_them_go_first_together_for_openai_too() -> None:
    song = Media(media_kind="photo", unique_id="u", mime="image/png", data=b"png")
    raw = {"functionResponse": {"name": "look", "response": {}}}
    first = ToolResult(name="look", id="a", media=(song,), raw=raw)
    calls = model(ToolCall(name="look", id="a"), ToolCall(name="look", id="b"))

    turns = mended(user("go"), calls, user(first), user(a_result(id="b")), by="gpt-5.6")

    assert len(turns) == 3
    assert lint(openai_request(Prompt.of(*turns), model="gpt-5.6"), model="gpt-5.6", strict=True) == []


def test_joined_calls_of_one_id_carry_one_placeholder_too() -> None:
    foreign = [Turn(role="model", parts=(ToolCall(name="f", id="a"),), model="other") for _ in range(2)]

    once, _ = repair([user("x"), *foreign], "gemini-2.5-flash", wire="openai")

    assert once[1].parts == (ToolCall(name="f", id="a", signature=PLACEHOLDER), ToolCall(name="f", id="a-2"))


@pytest.mark.parametrize("wire", ["gemini", "openai"])
def test_a_turn_is_freed_with_its_last_reference_and_needs_no_garbage_collection(wire: Wire) -> None:
    def count() -> int:
        return sum(isinstance(one, Turn) for one in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        before = count()
        repair(
            [user("hi"), user(Media(media_kind="photo", unique_id="u", mime="image/png", data=b"x"))], NEW, wire=wire
        )
        after = count()
    finally:
        gc.enable()

    assert after == before
