"""What is held back is bounded, and hostile text takes neither much time nor much memory."""

import tracemalloc

import pytest

from run.cleaner_calls import calls_of
from run.own_markup import BLOCKS, CONTEXT, DELIMITER, HEADER
from sizes import in_time, size
from tertulia.run.cleaner import Cleaner, clean

SIZE = 200_000


HOSTILE_SIZE = size(20_000, full=1_000_000)


SHOWN_AT_ONCE = [
    ("Hello wor", "Hello wor"),
    ("Hello ", "Hello"),
    ("From: Al", ""),
    ("From: Alice — w", "From: Alice — w"),
    ("Hi\nFrom: ", "Hi\n"),
    ("So: From: Al", "So: "),
    ("So: From: Alice — i", "So: "),
    ("So: From: Alice — w", "So: From: Alice — w"),
    ("So: From: " + "x" * 200, "So: From: " + "x" * 200),
    ("So F", "So "),
    ("So Fe", "So Fe"),
    (f"{HEADER} O", "O"),
    (f"{HEADER}: H", ": H"),
    ("`[RESPOND]", "`"),
    ("[RES[RESPOND]PO", ""),
    ("[RES[RESPOND] PO", "[RES PO"),
    ("   F", ""),
    ("   f", "   f"),
    ("i", ""),
    ("it", "it"),
    ("[meta] name=", ""),
    ("[meta] name=v", "[meta] name=v"),
    ("[", ""),
    ("[a", ""),
    ("[a]", "[a]"),
    ("[meta] x", "[meta] x"),
    ("[meta] chat_id=1 na", ""),
    ("[meta] chat_id=1 nab", "nab"),
    ("# He", "# He"),
    ("> ", ""),
    ("> x", "> x"),
    ("a **", "a "),
    ("a **b", "a **b"),
    ("a ****", "a ****"),
    ("1. ", ""),
    (f"{BLOCKS[0]}\nHi", "Hi"),
    (f"{CONTEXT}\n\nx", "\nx"),
    ("# «se", ""),
    ("  # «se", ""),
    ("# «send»", ""),
    ("# «send»x", "# «send»x"),
    ("# «Кобзар", ""),
    ("# «Кобзар»\nТ", "# «Кобзар»\nТ"),
    ("# «a«", "# «a«"),
    ("users", "users"),
    ("x 7f3", "x "),
    ("x 7f4", "x 7f4"),
    ("```\n[RESPOND", "```\n[RESPOND"),
    ("\n\n", ""),
    ("\n\n<thi", ""),
    ("\n\n<this", "\n\n<this"),
    ("<think>hm</think>\n\nHi", "Hi"),
    ("Hi <think", "Hi <think"),
    ("Hi\n# «send»\n" + "x" * 5000, "Hi\n"),
]


HOSTILE = [
    "**", "*[", "(", "([", "> ", "- ", "1. ", "* ", "**[RESPOND]**", "> [RESPOND]\n", f"{CONTEXT}\n",
    f"{CONTEXT}\n```\n",
    " [meta user_id=1]", "[meta] user_id=1*", "_", "    [", "\t[meta] ",
    "[meta ", "[meta] ", '[meta] name="\\" ', '[meta] name="', "user_id=1 ", "`", "```\n", "~", "[", "[[", " ", " [",
    "\n", "\r", "<", "<think>", ">", "> ```\n", "- ", "- ```\n", "1. ", "    ```\n", "# «", "# «a", "From: ",
    "From: x\n", " — ", "[RESPOND", "[RESPOND]", "[a present uid=", "From: x — id: ", "Fr", "   ", "   F\n",
    "<think></think>", "<THINK ", "[[RESPOND]", "[RES[RESPOND]", "F[RESPOND]", "From: [RESPOND]", "`[RESPOND]`", "id: ",
    "id: x — ", HEADER, HEADER + " ", f" {HEADER}", "7f3a9c2", "7f3a9c2e", "7f3a", "[#7f3a9c2e", "\\",
    '"', "user [meta] ", "H",
]  # fmt: skip


def test_no_more_is_held_back_than_must_be() -> None:
    assert [(text, Cleaner(delimiter=DELIMITER).feed(text)) for text, _ in SHOWN_AT_ONCE] == SHOWN_AT_ONCE


OPENINGS = ["", "x", "[meta] ", "> ```\n", "- ```\n", "<think><think></think>"]


@pytest.mark.parametrize("opening", OPENINGS)
def test_what_is_held_back_is_bounded(opening: str) -> None:
    every = size(10, full=1)
    for unit in HOSTILE[OPENINGS.index(opening) % every :: every]:
        cleaner, text = Cleaner(), opening + unit * (size(6_000, full=12_000) // len(unit))

        settled = len(cleaner.feed(text)) + len(cleaner.finish())
        assert settled == len(clean(text)), unit

        again = Cleaner()
        shown = len("".join(map(again.feed, text)))
        assert len(again.finish()) < 5_000, unit
        assert shown <= settled, unit


@in_time
@pytest.mark.parametrize("unit", dict.fromkeys(HOSTILE))
def test_hostile_text_is_cleaned_in_time(unit: str) -> None:
    text = unit * (HOSTILE_SIZE // len(unit))

    assert len(clean(text, delimiter=DELIMITER)) <= len(text)


@pytest.mark.parametrize("unit", [" ", "\t", "x ", ">", "> ", "*", "* ", "~", "\u00a0"])
@pytest.mark.parametrize("opening", ["", "x", "\n", "<think>no</think>"])
def test_a_run_of_blanks_or_marks_is_one_step_however_long(opening: str, unit: str) -> None:
    few, many = (calls_of(opening + unit * (size // len(unit))) for size in (3_000, 30_000))

    assert many == few


@pytest.mark.parametrize("unit", ["Some plain words, and more. ", "x", "A line of words\n", "    code\n"])
def test_plain_text_takes_little_memory(unit: str) -> None:
    text = unit * (SIZE // len(unit))

    tracemalloc.start()
    clean(text, delimiter=DELIMITER)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert most < 24 * len(text)
