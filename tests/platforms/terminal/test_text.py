"""Everything the chat says beside the answers stands on one line and is honest."""

from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import pytest

from tertulia import Author, Message, Opaque, Text, Thought, ToolCall, ToolResult, Turn, errors, model, user
from tertulia.context.values import LeftOut
from tertulia.model_choice import CHAT_HINTS, START_HINTS, Hints, ModelChoice
from tertulia.models import Finish, Response, Scripted
from tertulia.models.base import Outcome, Usage
from tertulia.platforms.terminal.setup import PLACE
from tertulia.platforms.terminal.text import (
    call_text,
    duration_text,
    ending_text,
    error_text,
    greeting,
    history_summary,
    message_lines,
    one_line,
    prompt_lines,
    result_text,
    short_greeting,
    turn_lines,
)
from tertulia.prompt.ledger import LayerEntry, LedgerEntry
from tertulia.wire.repair import Receipt

LAYERS = (
    LayerEntry(name="static", fingerprint="f00", tokens=900),
    LayerEntry(name="trigger", fingerprint="ba7", tokens=100),
)
MENDED = Receipt(rule="empty-part", where="turns[1]", action="an empty part left out")


def ended(outcome: Any, *parts: Any, reason: str = "", message: str = "") -> Response:
    return Response(turn=model(*parts), finish=Finish(outcome=outcome, reason=reason, message=message))


def greeted(name: str, hints: Hints = START_HINTS, **known: Any) -> list[str]:
    chosen = ModelChoice(model=Scripted(name="it"), name=name, base_url=known.pop("base_url", None))
    return greeting(chosen, hints, **{"program": "tertulia", "fetched": False, "key": None, **known})


def test_the_small_model_is_said_to_be_small_with_two_ways_to_a_better_one() -> None:
    assert greeted("smollm2", program=".venv/bin/tertulia") == [
        "smollm2 answers on this machine, without a key; nothing leaves it.",
        "It is small (135 million parameters): fluent English, most of it wrong. Two ways to a better one:",
        "  .venv/bin/tertulia model get qwen, then .venv/bin/tertulia chat: 1.1 GB once, stays on this machine",
        "  GEMINI_API_KEY=… .venv/bin/tertulia chat --model gemini-3.8-flash: Google's, with a key of yours",
    ]


def test_a_chat_that_goes_on_says_so_in_one_line() -> None:
    chosen = ModelChoice(model=Scripted(name="it"), name="smollm2")
    known: dict[str, Any] = {"program": "tertulia", "fetched": False, "key": None}

    assert short_greeting(chosen, CHAT_HINTS, **known) == [
        "smollm2 answers here (small: often wrong; /model shows better ones)."
    ]
    assert short_greeting(chosen, START_HINTS, **known) == greeting(chosen, START_HINTS, **known)  # there is no /model


@pytest.mark.parametrize(("hints", "option"), [(START_HINTS, "--model"), (CHAT_HINTS, "/model")])
def test_what_is_fetched_or_set_already_is_pointed_at(hints: Hints, option: str) -> None:
    assert greeted("smollm2", hints, fetched=True, key="GOOGLE_API_KEY")[2:] == [
        f"  {option} qwen: it is on this machine already",
        f"  {option} gemini-3.8-flash: Google's; GOOGLE_API_KEY is set",
    ]


@pytest.mark.parametrize(
    ("name", "base_url", "line"),
    [
        ("qwen", None, "it answers on this machine; nothing leaves it."),
        ("gemini-3.8-flash", None, "it answers (gemini)."),
        ("openai:it", "http://somewhere/v1", "it answers at http://somewhere/v1."),
    ],
)
def test_the_first_line_says_who_answers(name: str, base_url: str | None, line: str) -> None:
    assert greeted(name, base_url=base_url) == [line]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (ToolCall(name="calculate", args={"expression": "6 * 7"}), 'calculate(expression="6 * 7")'),
        (ToolCall(name="book", args={"seat": 4, "days": [1, 2]}), "book(seat=4, days=[1,2])"),
        (ToolCall(name="now"), "now()"),
        (ToolCall(name="look", broken='{"a'), 'look({"a)'),
    ],
)
def test_a_call_in_words(call: ToolCall, words: str) -> None:
    assert call_text(call) == words


@pytest.mark.parametrize(
    ("result", "seconds", "words"),
    [
        (ToolResult(name="calculate", value=42), 0.0034, "calculate gave 42 in 3 ms"),
        (ToolResult(name="look", value={"a": "b"}), 2.34, 'look gave {"a":"b"} in 2.3 s'),
        (ToolResult(name="look", value="no\nsuch thing", failed=True), None, "look failed: no such thing"),
    ],
)
def test_a_result_in_words(result: ToolResult, seconds: float | None, words: str) -> None:
    assert result_text(result, seconds) == words


@pytest.mark.parametrize(("seconds", "words"), [(0, "0 ms"), (0.25, "250 ms"), (1, "1.0 s"), (62.04, "62.0 s")])
def test_a_duration_in_words(seconds: float, words: str) -> None:
    assert duration_text(seconds) == words


@pytest.mark.parametrize(
    ("turn", "lines"),
    [
        (user("Hi\nthere\n\n  you\n"), ["you: Hi", "  there", "", "    you"]),
        (model("Hello.", by="gemini-3.8-flash"), ["gemini-3.8-flash: Hello."]),
        (model(Thought(text="hm"), Opaque(raw={"a": 1}), Text(text="Yes.")), ["model: Yes."]),
        (model("Well", ToolCall(name="now"), by="m"), ["m: Well [now()]"]),
        (user(ToolResult(name="now", value="12:00")), ["tools: [now gave 12:00]"]),
        (user("x" * 300), [f"you: {'x' * 199}…"]),
    ],
)
def test_a_turn_in_lines(turn: Turn, lines: list[str]) -> None:
    assert turn_lines(turn) == lines


@pytest.mark.parametrize(
    ("response", "words"),
    [
        (ended("complete", "Hello."), None),
        (ended("cut", "Hel", reason="MAX_TOKENS"), "the answer was cut: the limit of tokens was reached (MAX_TOKENS)"),
        (ended("blocked", reason="SAFETY"), "the answer was withheld (SAFETY); not kept"),
        (ended("empty", reason="STOP"), "the model said nothing; not kept"),
        (
            ended("incomplete", "Hel", message="the stream broke off"),
            "the answer broke off (the stream broke off); not kept",
        ),
        (ended("complete", ToolCall(name="fly")), None),
    ],
)
def test_how_an_answer_ended(response: Response, words: str | None) -> None:
    assert ending_text(response) == words


@pytest.mark.parametrize("outcome", [outcome for outcome in get_args(Outcome) if outcome != "complete"])
def test_no_other_ending_is_passed_over(outcome: str) -> None:
    assert ending_text(ended(outcome, "Hello."))


@pytest.mark.parametrize(
    ("error", "in_chat", "at_start"),
    [
        (errors.InvalidValue("no such thing"), "no such thing", "no such thing"),
        (
            errors.ModelUnknown("nobody knows it"),
            "nobody knows it. Choose another with /model.",
            "nobody knows it. Choose another with --model.",
        ),
        (
            errors.ContextTooLong("too long!"),
            "too long! /clear begins anew.",
            "too long! Begin with less, or anew with --db :memory:.",
        ),
        (errors.ScriptEnded(), "ScriptEnded", "ScriptEnded"),
    ],
)
def test_an_error_says_what_to_do_where_it_is_said(error: errors.TertuliaError, in_chat: str, at_start: str) -> None:
    assert (error_text(error, CHAT_HINTS), error_text(error, START_HINTS)) == (in_chat, at_start)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (errors.RateLimited("slow down.\n* please", retry_after=2.5), "slow down. * please. Say it again in 2.5 s."),
        (errors.Overloaded("busy"), "busy. Say it again in a little while."),
    ],
)
def test_an_error_that_passes_says_when(error: errors.TertuliaError, words: str) -> None:
    assert error_text(error, CHAT_HINTS) == words


@pytest.mark.parametrize(
    "error", [errors.ContextTooLong, errors.KeyRefused, errors.ModelUnknown, errors.QuotaExhausted]
)
def test_where_there_are_no_commands_none_is_named(error: type[errors.TertuliaError]) -> None:
    assert "/" not in error_text(error("x"), START_HINTS)


def test_long_text_is_shortened_to_its_length() -> None:
    assert one_line("a b\n c", 5) == "a b c"
    assert one_line("abcdef", 5) == "abcd…"


TABLE = ["  static        900 tokens  f00", "  trigger       100 tokens  ba7"]


@pytest.mark.parametrize(
    ("entry", "receipts", "omitted", "lines"),
    [
        (
            LedgerEntry(layers=LAYERS, tokens=1000, stable=0),
            [],
            0,
            ["about 1,000 tokens, the first request to this model", *TABLE, "nothing was left out"],
        ),
        (
            LedgerEntry(
                layers=LAYERS, tokens=1000, stable=860, broken_by="trigger", reported=Usage(input=1010, cached=800)
            ),
            [MENDED],
            2,
            [
                "about 1,000 tokens, 86% as in the request before, up to `trigger`",
                *TABLE,
                "the service counted 1,010, 800 of them cached",
                "left out for want of room: the oldest 2 exchanges",
                "changed to be legal: turns[1]: an empty part left out",
            ],
        ),
    ],
)
def test_a_request_layer_by_layer(entry: LedgerEntry, receipts: list[Receipt], omitted: int, lines: list[str]) -> None:
    assert prompt_lines(entry, receipts, omitted=omitted) == lines


def test_a_request_tells_what_was_left_out_of_it_and_why() -> None:
    entry = LedgerEntry(layers=LAYERS, tokens=1000, stable=0)
    left = [LeftOut(source="window", why="over the budget of 9 tokens", count=12)]

    lines = prompt_lines(entry, [], left_out=left, omitted=0)

    assert lines[-1] == "left out of window: 12 (over the budget of 9 tokens)"


NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("count", "before", "words"),
    [
        (1, timedelta(seconds=5), "(1 message so far, just now; /clear begins anew)"),
        (2, timedelta(minutes=5), "(2 messages so far, the last 5 min ago; /clear begins anew)"),
        (1200, timedelta(hours=47), "(1,200 messages so far, the last 47 h ago; /clear begins anew)"),
        (3, timedelta(days=40), "(3 messages so far, the last 40 days ago; /clear begins anew)"),
        (3, timedelta(hours=-3), "(3 messages so far, the last just now; /clear begins anew)"),
        (3, None, "(3 messages so far; /clear begins anew)"),
    ],
)
def test_where_a_conversation_stands(count: int, before: timedelta | None, words: str) -> None:
    last = None if before is None else NOW - before

    assert history_summary(count, last, NOW, anew="/clear begins anew") == words


@pytest.mark.parametrize(
    ("author", "turns", "lines"),
    [
        (Author(id="1", name="Alice"), (), ["you: Hi"]),
        (Author(id="tertulia", name="tertulia", persona="tertulia"), (), ["tertulia: Hi"]),
        (
            Author(id="tertulia", name="tertulia", persona="tertulia"),
            (model(ToolCall(name="now"), by="m"), user(ToolResult(name="now", value=1)), model("Hi", by="m")),
            ["m: [now()]", "tools: [now gave 1]", "m: Hi"],
        ),
    ],
)
def test_a_message_in_lines(author: Author, turns: tuple[Turn, ...], lines: list[str]) -> None:
    assert message_lines(Message(id="1", place=PLACE, author=author, parts=(Text(text="Hi"),)), turns) == lines
