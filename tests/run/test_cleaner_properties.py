import random
import re

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from run.cleaner_calls import calls_of
from run.own_markup import (
    DELIMITER,
    LINE_ENDS,
    NEAR_MISSES,
    OPENINGS,
    PREFIXES,
    TASKS,
    TEXTS,
    WHOLE_LINES,
    goes_on,
    headers,
    holds_markup,
    timeless_headers,
)
from sizes import size
from tertulia.run.cleaner import Cleaner, clean

ANYTHING = st.lists(
    st.one_of(
        NEAR_MISSES,
        headers(),
        timeless_headers(),
        WHOLE_LINES,
        PREFIXES,
        TASKS,
        OPENINGS,
        LINE_ENDS,
        st.just(DELIMITER),
        st.text(max_size=5),
    ),
    max_size=6,
).map("".join)
CUES = ("[RESPOND]", "[REPLY TO THIS]")
LINES = st.lists(TEXTS.map(lambda text: text.replace("`", "'").replace("~", "-")), max_size=5)


def streamed(chunks: list[str]) -> str:
    cleaner = Cleaner(delimiter=DELIMITER)
    return "".join([*map(cleaner.feed, chunks), cleaner.finish()])


@given(TEXTS)
def test_text_without_our_markup_stays_as_it_is(text: str) -> None:
    assert clean(text, delimiter=DELIMITER) == text
    assert clean(text) == text


@example("[RESPOND] ", "~~~")
@given(OPENINGS, TEXTS)
def test_our_markup_before_a_text_goes_and_the_text_stays(own: str, text: str) -> None:
    assume("</" not in own or text[:1] not in tuple(" \t\r\n"))  # blank lines after a thought go with it
    assume(not text.startswith(("\n", "\r", " user_id=", "user_id=", 'name="')))  # could be markup
    assume(not text.lstrip(" \t\r\n\ufeff").lower().startswith("<think"))
    assume(not goes_on(own, text))

    assert clean(own + text, delimiter=DELIMITER, markers=CUES) == text


@given(LINES, WHOLE_LINES, LINE_ENDS)
def test_lines_of_ours_between_lines_of_text_go_whole(lines: list[str], own: str, end: str) -> None:
    said = "".join(f"{line}.{end}" for line in lines)
    assume(not holds_markup(said))
    assume(not any(goes_on(own, f"{line}.") for line in lines[1:]))

    assert clean("".join(f"{line}.{end}{own}{end}" for line in lines), delimiter=DELIMITER) == said


@given(LINES.map("".join), headers(), TEXTS)
def test_a_header_within_a_line_goes_and_what_stands_around_it_stays(before: str, own: str, after: str) -> None:
    before = before.replace("From: ", "") + "."
    assume(own.startswith("From: ") and "From: " not in own[1:])
    assume(after[:1] not in tuple(" 0123456789") or "reply to" in own)
    after = f"\t{after}" if "reply to" in own else after
    assume(not holds_markup(before + after))

    assert clean(before + own + after, delimiter=DELIMITER) == before + after


@given(headers(), TEXTS)
def test_the_rest_of_a_line_that_begins_with_a_header_stays(own: str, after: str) -> None:
    assume("reply to" not in own and after[:1] not in tuple(" \r\n0123456789"))
    assume("From: " not in after)
    assume(not after or after.strip("*_~> \t"))  # marks around nothing go with it

    assert clean(f"Hi\n{own}{after}", delimiter=DELIMITER) == f"Hi\n{after}"
    assert clean(f"Hi\n{own} {after}", delimiter=DELIMITER) == f"Hi\n{after}"


@given(
    st.lists(
        st.one_of(
            st.sampled_from(
                ["[RES", "POND]", "[RESPOND]", "[REPLY TO", " THIS]", " [REPLY TO THIS]", "x", " ", "\n", "`"]
            ),
            st.sampled_from(["[voice", " present", " uid=", "]", "[voice present uid=]", "[", "RESPOND]", DELIMITER]),
        ),
        max_size=16,
    ).map("".join)
)
def test_no_cue_is_made_of_what_is_left(text: str) -> None:
    shown = clean(text, delimiter=DELIMITER, markers=CUES)
    assume("```" not in shown)
    shown = re.sub(r"(?<=`)\[(RESPOND|REPLY TO THIS)\](?=`)", "", shown)

    assert "[RESPOND]" not in shown
    assert "[REPLY TO THIS]" not in shown
    assert "[voice present uid=]" not in shown


@given(TEXTS, TASKS)
def test_everything_from_the_first_task_block_on_goes(text: str, tasks: str) -> None:
    before = text.replace("`", "'").replace("~", "-") + ".\n"
    assume(not holds_markup(before))

    assert clean(before + tasks, delimiter=DELIMITER) == before


@given(
    ANYTHING,
    st.sampled_from(["```", "````", "~~~~", "   ```"]),
    st.sampled_from(["", "py", " text x"]),
    st.sampled_from(["", "> ", "    ", "> > "]),
    TEXTS,
)
def test_markup_in_a_fence_stays(body: str, fence: str, info: str, container: str, after: str) -> None:
    body = body.replace(DELIMITER, "").replace("`", "'").replace("~", "-")
    lines = [fence + info, *body.split("\n"), fence, ""]
    text = "Look:\n" + "\n".join(container + line for line in lines) + "\n" + after
    assume(DELIMITER not in text and not holds_markup("x\n" + after))

    assert clean(text, delimiter=DELIMITER) == text


@given(ANYTHING.map(lambda text: text[: size(120, full=300)]))
def test_it_makes_no_difference_where_a_text_is_cut_in_two(text: str) -> None:
    whole = clean(text, delimiter=DELIMITER)

    for cut in range(len(text) + 1):
        assert streamed([text[:cut], text[cut:]]) == whole


@given(ANYTHING, st.randoms(use_true_random=False))
def test_it_makes_no_difference_how_a_text_is_cut(text: str, chance: random.Random) -> None:
    cuts = sorted(chance.randrange(len(text) + 1) for _ in range(chance.randrange(12)))
    chunks = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]

    assert streamed(chunks) == streamed(list(text)) == clean(text, delimiter=DELIMITER)


@given(ANYTHING)
@example("7f3a" * 3 + "9c2e" * 3)
@example("```\n7f3a7f3a9c2e9c2e9c2e\n```")
@example("7f3a[RESPOND]9c2e")
@example("7f3a[#7f3a9c2e]9c2e")
def test_the_delimiter_never_comes_out(text: str) -> None:
    assert DELIMITER not in clean(text, delimiter=DELIMITER)


@given(st.text("ab", max_size=40), st.text("ab", min_size=1, max_size=4))
def test_no_delimiter_of_any_shape_comes_out(text: str, delimiter: str) -> None:
    cleaner = Cleaner(delimiter=delimiter)
    streamed = "".join([*map(cleaner.feed, text), cleaner.finish()])

    assert streamed == clean(text, delimiter=delimiter)
    assert delimiter not in streamed


@given(ANYTHING)
@example('[meta] name=""[RESPOND]')
@example("# «send»[#7f3a9c2e]")
@example("[meta] user_id=57f3a9c2e")
@example("id: 1 — 2025-01-15 14:277f3a9c2e")
@example(" [RESPOND]id: 1 — 2025-01-15 14:01")
@example("<thi[RESPOND]nk>x</think>y")
@example("# [RESPOND]«send»\nhi")
@example("**[RESPOND]***[RESPOND]*")
@example("``[RESPOND]`\n[RESPOND]\n```\n[RESPOND]")
def test_cleaning_twice_is_cleaning_once(text: str) -> None:
    once = clean(text, delimiter=DELIMITER, markers=["[x part]"])

    assert clean(once, delimiter=DELIMITER, markers=["[x part]"]) == once


@given(ANYTHING)
def test_what_is_shown_early_is_the_beginning_of_the_whole(text: str) -> None:
    whole, cleaner, shown = clean(text, delimiter=DELIMITER), Cleaner(delimiter=DELIMITER), ""

    for char in text:
        shown += cleaner.feed(char)
        assert whole.startswith(shown)


@pytest.mark.parametrize(
    "piece",
    [
        "[meta ",
        "[meta] ",
        "[",
        "[ ",
        "[photo ",
        " [speaker ",
        "[meta user ",
        "[replied ",
        "[#",
        "(",
        "(meta: ",
        "(metadata ",
    ],
)
def test_what_only_looks_like_markup_is_passed_over_without_reading_it(piece: str) -> None:
    assert calls_of(f"x {piece * 1_000}y") < 1_500


def test_prose_in_small_chunks_is_shown_without_reading_it() -> None:
    cleaner = Cleaner(delimiter=DELIMITER)
    cleaner.feed("It ")

    assert [cleaner.feed(chunk) for chunk in ("was", " a", " cold ", "day", ", in", " April")] == [
        " was", " a", " cold", " day", ", in", " April",
    ]  # fmt: skip
