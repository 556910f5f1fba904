"""Model texts and the blocks in them."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sizes import in_time, size
from tasks.block_text import format_text
from tertulia.errors import InvalidValue
from tertulia.tasks.blocks import ParsedText, parse
from tertulia.tasks.kinds import KINDS, LONGEST_WAIT, Body
from tertulia.tasks.task import (
    BlockAuthor,
    ClearConversation,
    Custom,
    Remember,
    Send,
    SendSticker,
    TaskBlock,
    Think,
    UnblockAuthor,
    Wait,
)

PANCAKES = """# «think»
She wants the recipe, then the timer.
# «send» 481
Flour, two eggs, milk.
# «wait»
delay: 600
# «send»
Time to turn it over.
"""
ASKED: tuple[TaskBlock, ...] = (
    Think(text="She wants the recipe, then the timer."),
    Send(text="Flour, two eggs, milk.", reply_to="481"),
    Wait(seconds=600),
    Send(text="Time to turn it over."),
)
HI: tuple[TaskBlock, ...] = (Send(text="hi"),)

TITLES = [
    "Кобзар", "Сон", "сон", "Лис Микита", "Sun", "son", "fly", "Hamlet", "Waiting for Godot", "发送", "", "-", "1984",
]  # fmt: skip

READ: list[tuple[str, str, tuple[TaskBlock, ...]]] = [
    ("", "", ()),
    ("\n\n", "", ()),
    ("Hi", "Hi", ()),
    ("Hi\n", "Hi", ()),
    ("Hi\r\n", "Hi", ()),
    ("  Hi \n\n", "  Hi \n", ()),
    (PANCAKES, "", ASKED),
    (PANCAKES.replace("\n", "\r\n"), "", ASKED),
    ("\n" + PANCAKES, "", ASKED),
    (" \n\t\n" + PANCAKES, "", ASKED),
    ("Hi\n\n" + PANCAKES, "Hi\n", ASKED),
    # what follows a heading
    ("# «send»\nhi", "", HI),
    ("# «send» \t\nhi", "", HI),
    ("# «Send»\nhi", "", HI),
    ("# «send»\n\n\nhi\n\n\n", "", HI),
    ("# «send»\n\n  a\n\n\n b  \n\n", "", (Send(text="  a\n\n\n b"),)),
    ("# «send»\r\na\r\n\r\nb\r\n", "", (Send(text="a\r\n\r\nb"),)),
    ("# «send» 9007199254740993123\nhi", "", (Send(text="hi", reply_to="9007199254740993123"),)),
    ("# «send» 007\nhi", "", (Send(text="hi", reply_to="007"),)),
    ("# «sticker» 5\n\n HotCherry \n\n\twave\nmore", "", (SendSticker(set="HotCherry", name="wave", reply_to="5"),)),
    ("# «wait»\ndelay: 0", "", (Wait(seconds=0),)),
    ("# «wait»\n\n  Delay :  0060  \n", "", (Wait(seconds=60),)),
    *(
        (f"# «wait»\ndelay: {delay}", "", (Wait(seconds=seconds),))
        for delay, seconds in [
            ("10 seconds", 10),
            ("10s", 10),
            ("1 second.", 1),
            ("1.5", 1.5),
            ("0,5 sec", 0.5),
            ("1.50 s", 1.5),
            ("2.0", 2),
            ("1.", 1),
            ("10 minutes", 600),
            ("1.5 min", 90),
            ("2 Hours", 7200),
            ("1 day", 86_400),
            ("10 секунд", 10),
            ("5 хв.", 300),
        ]
    ),
    ("# «wait»\nfor the oven\ndelay:5", "", (Wait(seconds=5),)),
    (f"# «wait»\ndelay: {LONGEST_WAIT}", "", (Wait(seconds=LONGEST_WAIT),)),
    ("# «remember»\n\nLikes tea.\n\n  Has a cat. \n", "", (Remember(facts=("Likes tea.", "Has a cat.")),)),
    ("# «think»", "", (Think(),)),
    ("# «block»\n# «unblock»\n# «clear-conversation»", "", (BlockAuthor(), UnblockAuthor(), ClearConversation())),
    ("# «block»\nhe was rude", "", (BlockAuthor(),)),
    # near misses of a heading
    *(
        (f"{heading}\nhi", "", HI)
        for heading in ("## «send»", "###### «send»", "#«send»", "**# «send»**", "**#«send»**")
    ),
    *((f"{heading}\nhi", "", HI) for heading in ("# **«send»**", "**# «send»", "**# «send»**:", "**# «send»:**")),
    *(
        (f"{heading}\nhi", "", (Send(text="hi", reply_to="12"),))
        for heading in ("## «send» 12", "**# «send» 12**", "**# «send»** 12", "# **«send»** 12")
    ),
    ("**# «send»** **hi** all", "", (Send(text="**hi** all"),)),
    ("# «send» **hi** all", "", (Send(text="**hi** all"),)),
    # other headings are text
    ("# Recipe\n## «send»\nhi", "# Recipe", HI),
    ("# «send»\n# Recipe\n## Flour", "", (Send(text="# Recipe\n## Flour"),)),
    *(
        (text, text, ())
        for text in [
            "####### «send»\nhi",
            "*# «send»*\nhi",
            "# «send»**\nhi",
            "    # «send»\nhi",
            "    **# «send»**\nhi",
            "\t# «send»\nhi",
            "> # «send»\nhi",
            "- # «send»\nhi",
            "# «send»er\nhi",
            "# «send», he said\nhi",
            "# «»\nhi",
            "# «two words»\nhi",
            "# «send\nhi",
            "# <<send>>\nhi",
            "say # «send»\nhi",
            f"# «{'k' * 65}»\nhi",
            "# «send»\u2028hi",
            "# «send»\x0bhi",
            "# «send»\rhi",
            "# «send»\r",
            f"#{' ' * 9}«send»\nhi",
        ]
    ),
    # titles are text, however short
    *((f"# «{title}»\nhi", f"# «{title}»\nhi", ()) for title in TITLES),
    ("# «Кобзар»\nТарас\n# «send»\nhi", "# «Кобзар»\nТарас", HI),
    ("# «send»\n# «Кобзар» 1840\nhi", "", (Send(text="# «Кобзар» 1840\nhi"),)),
    # the form is missed a little
    *(
        (f"{heading}\nhi", "", HI)
        for heading in [
            " # «send»",
            "   # «send»",
            "\ufeff# «send»",
            "\ufeff  # «send»",
            "\u00a0# «send»",
            "#  «send»",
            "#\t«send»",
            "#\u00a0«send»",
            "#\u202f «send»",
            "# «send»\u00a0",
            "# « send »",
            "# «\u00a0Send\u00a0»",
            "# «ｓｅｎｄ»",
            "# «send»:",
        ]
    ),
    *((f"# «send»{gap}12\nhi", "", (Send(text="hi", reply_to="12"),)) for gap in ["  ", "\u00a0", "\t ", ": "]),
    ("# «send» hi", "", HI),
    ("# «send»: hi", "", HI),
    ("# «send»\u00a0hi\r\n\r\n", "", HI),
    ("# «send» x\nhi", "", (Send(text="x\nhi"),)),
    ("# «send» 12 x\nhi", "", (Send(text="x\nhi", reply_to="12"),)),
    ("# «send» 12x\nhi", "", (Send(text="12x\nhi"),)),
    ("# «send» 10:30, gate 4", "", (Send(text="10:30, gate 4"),)),
    ("# «send» -5\nhi", "", (Send(text="-5\nhi"),)),
    ("# «send» ٣\nhi", "", (Send(text="٣\nhi"),)),
    (f"# «send» {'1' * 65}", "", (Send(text="1" * 65),)),
    ("# «think» of tea\n# «wait» delay: 5\n# «send» hi", "", (Think(text="of tea"), Wait(seconds=5), *HI)),
    # code is text
    ("Look:\n```\n# «send»\nhi\n```", "Look:\n```\n# «send»\nhi\n```", ()),
    ("Look:\n```\n# «send»\nhi", "Look:\n```\n# «send»\nhi", ()),
    ("```\n# «send»\nhi\n```\nso", "```\n# «send»\nhi\n```\nso", ()),
    ("```\n# «send»\nhi", "```\n# «send»\nhi", ()),
    ("```python\n# «send»\nhi\n```", "```python\n# «send»\nhi\n```", ()),
    ("```\nx\n# «send»\nhi\n```", "```\nx\n# «send»\nhi\n```", ()),
    ("    ```\n    # «send»\n    ```", "    ```\n    # «send»\n    ```", ()),
    ("- ```\n  x\n# «send»\nhi", "- ```\n  x", HI),
    (
        "# «send»\n~~~\n# «wait»\n```\n~~~\n# «wait»\ndelay: 1",
        "",
        (Send(text="~~~\n# «wait»\n```\n~~~"), Wait(seconds=1)),
    ),
    ("# «send»\n```\n# «wait»\ndelay: 1", "", (Send(text="```\n# «wait»\ndelay: 1"),)),
    # a fence around the whole
    ("```markdown\n# «send»\nhi\n```", "", HI),
    ("\n\n ```Markdown \n\n# «send»\nhi\n\n ````\n\n", "", HI),
    ("```\r\n# «send»\r\nhi\r\n```\r\n", "", HI),
    ("```markdown\r\n# «block»\r\n```", "", (BlockAuthor(),)),
    ("~~~md\n# «send»\nhi\n~~~", "", HI),
    ("```\n\n# «send»\nhi\n```", "", HI),
    ("```markdown\nOh\n# «send»\nhi\n```", "Oh", HI),
    (
        "```markdown\n# «send»\n```py\n1\n```\n# «wait»\ndelay: 1\n```",
        "",
        (Send(text="```py\n1\n```"), Wait(seconds=1)),
    ),
    ("````markdown\n# «send»\n```\n1\n```\n````", "", (Send(text="```\n1\n```"),)),
    ("```markdown\n# «send»\n```\n1\n```\n# «x»\n```", "```markdown\n# «send»\n```\n1\n```\n# «x»\n```", ()),
    ("```markdown\nno block\n```", "```markdown\nno block\n```", ()),
    ("```markdown\n```\n# «send»\nhi\n```\n```", "```markdown\n```", (Send(text="hi\n```\n```"),)),
    # thoughts before it
    ("<think>\n# «send»\nno\n</think>\nHi", "Hi", ()),
    ("\n<think>a</think>\n<thought>b</thought>\n\n# «send»\nhi", "", HI),
    ("<think>a</think>\n```markdown\n<think>b</think># «send»\nhi\n```", "", HI),
    ("<thinking>\n# «send»\nnever ended", "", ()),
    ("Hi <think>\n# «send»\nhi", "Hi <think>", HI),
]

NO_KIND = "there is no such kind of block; there are " + ", ".join(sorted(KINDS))
MISSPELT = [
    "sned", "Sned", "sedn", "snd", "sendd", "sends", "ѕend", "sendit", "send!", "stiker", "remembre", "thikn", "blok",
    "clear conversation", "clear_conversation", "clearconversation", "CLEAR-CONVERSATIONS",
]  # fmt: skip
WRONG = [
    *((f"# «{kind}»\nup", NO_KIND) for kind in MISSPELT),
    ("# «send»", "there is no text below it to send"),
    ("# «send» 7\n \n\u00a0", "there is no text below it to send"),
    ("# «sticker» 5\nHotCherry\n\n", "it needs two lines, the sticker's set and its name"),
    ("# «remember»\n\n", "there is no fact below it, one a line"),
    ("# «block» 5", "it takes no number"),
    ("# «clear-conversation» 5", "it takes no number"),
]
WRONG_WAITS = [
    ("# «wait»", "it needs one line `delay: N` with whole seconds, and has none"),
    ("# «wait» 600\nten minutes", "it needs one line `delay: N` with whole seconds, and has none"),
    ("# «wait»\ndelay: 1\ndelay: 1", "it needs one line `delay: N` with whole seconds, and has 2"),
    *(
        (f"# «wait»\ndelay: {delay}", f"the delay is whole seconds in digits, not {delay!r}")
        for delay in [
            "-1",
            "+1",
            "1e3",
            "1_0",
            "٣",
            "²",
            "",
            "soon",
            "1..5",
            ".5",
            "1.5.2",
            "1,500",
            "1:30",
            "10 ages",
            "1h 5m",
            "nan",
            "inf",
            "10 minutes\x00\u202e",
        ]
    ),
    (
        f"# «wait»\ndelay: {LONGEST_WAIT + 1}",
        f"the delay is at most {LONGEST_WAIT} seconds, not '{LONGEST_WAIT + 1}'",
    ),
    ("# «wait»\ndelay: 3651 days", f"the delay is at most {LONGEST_WAIT} seconds, not '3651 days'"),
    (f"# «wait»\ndelay: {'9' * 9_000}", f"the delay is at most {LONGEST_WAIT} seconds, not '{'9' * 40}'…"),
    ("# «wiat»\ndelay: 5", NO_KIND),
]


@pytest.mark.parametrize(("text", "said", "blocks"), READ)
def test_a_text_is_what_is_said_and_the_blocks_in_their_order(
    text: str, said: str, blocks: tuple[TaskBlock, ...]
) -> None:
    assert parse(text) == ParsedText(text=said, blocks=blocks)


@pytest.mark.parametrize(("block", "why"), WRONG)
def test_a_bad_block_among_good_ones_is_one_line_for_the_model(block: str, why: str) -> None:
    parsed = parse(f"Hi\n# «send» 1\na\n{block}\n# «think»\nb")

    assert parsed == ParsedText(
        text="Hi",
        blocks=(Send(text="a", reply_to="1"), Think(text="b")),
        problems=(f"line 4, `{block.partition(chr(10))[0]}`: {why}",),
    )
    assert all(line.isprintable() for line in parsed.problems)


@pytest.mark.parametrize(("block", "why"), WRONG_WAITS)
def test_what_follows_a_wait_that_cannot_be_read_is_put_off(block: str, why: str) -> None:
    parsed = parse(f"Hi\n# «send» 1\na\n{block}\n# «send»\nb\n# «sned»\n# «block»")

    assert parsed == ParsedText(
        text="Hi",
        blocks=(Send(text="a", reply_to="1"),),
        problems=(f"line 4, `{block.partition(chr(10))[0]}`: {why}",),
        skipped=3,
    )


def test_lines_are_counted_in_the_text_as_it_came() -> None:
    text = "\n<think>\n</think>\r\n```markdown\n# «send»\nhi\n# «sned»\n\n# «block» 5\n```"

    found = [problem.partition(":")[0] for problem in parse(text).problems]
    assert found == ["line 7, `# «sned»`", "line 9, `# «block» 5`"]


def test_a_wait_that_comes_to_more_than_ten_years_with_those_before_it_puts_off_what_follows() -> None:
    parsed = parse(f"# «wait»\ndelay: {LONGEST_WAIT}\n# «wait»\ndelay: 0\n# «wait»\ndelay: 1\n# «send»\nhi")

    assert parsed == ParsedText(
        blocks=(Wait(seconds=LONGEST_WAIT), Wait(seconds=0)),
        problems=(f"line 5, `# «wait»`: with the waits before it, it comes to more than {LONGEST_WAIT} seconds",),
        skipped=1,
    )


def test_what_is_said_is_the_first_of_the_steps() -> None:
    assert parse("Hi\n# «think»\na").steps == (Send(text="Hi"), Think(text="a"))
    assert parse("\n# «think»\na").steps == (Think(text="a"),)


def test_a_registered_kind_makes_blocks_of_its_own_or_ours() -> None:
    def poll(body: Body) -> dict[str, Any]:
        question, *answers = body.text.split("\n")
        if not answers:
            raise InvalidValue("a poll\nneeds answers")
        return {"question": question, "answers": tuple(answers)}

    def shout(body: Body) -> Send:
        return Send(text=body.text.upper(), reply_to=body.id)

    kinds = KINDS | {"poll": poll, "крик": shout}
    parsed = parse("# «poll» 3\nTea?\nyes\nno\n# «крик» 4\nhi\n# «poll»\nTea?\n# «send»\nhi", kinds=kinds)

    value = {"question": "Tea?", "answers": ["yes", "no"]}
    assert parsed == ParsedText(
        blocks=(
            Custom(name="poll", id="3", body="Tea?\nyes\nno", value=value),
            Send(text="HI", reply_to="4"),
            Send(text="hi"),
        ),
        problems=("line 7, `# «poll»`: a poll needs answers",),
    )
    assert parse(format_text(ParsedText(blocks=parsed.blocks), kinds=kinds), kinds=kinds).blocks == parsed.blocks


def test_blocks_are_written_as_the_model_writes_them() -> None:
    assert format_text(ParsedText(blocks=ASKED)) == PANCAKES
    assert format_text(ParsedText(text="Hi", blocks=ASKED)) == f"Hi\n{PANCAKES}"


@pytest.mark.parametrize(
    "parsed",
    [
        ParsedText(text=" "),
        ParsedText(text="# «send»\nhi"),
        ParsedText(text="```", blocks=HI),
        ParsedText(text="<think>"),
        ParsedText(blocks=(Send(text=""),)),
        ParsedText(blocks=(Send(text="a\n# «send»\nb"),)),
        ParsedText(blocks=(Send(text="\na"),)),
        ParsedText(blocks=(Send(text="a", reply_to="m1"),)),
        ParsedText(blocks=(Send(text="a", reply_to="1\n# «block»"),)),
        ParsedText(blocks=(Send(text="```"), *HI)),
        ParsedText(blocks=(Wait(seconds=-1),)),
        ParsedText(blocks=(SendSticker(set="a\nb", name="c"),)),
        ParsedText(blocks=(Remember(facts=()),)),
        ParsedText(blocks=(Remember(facts=("a\nb",)),)),
        ParsedText(blocks=(Custom(name="poll"),)),
        ParsedText(blocks=(Custom(name="a»\n# «block"),)),
    ],
)
def test_what_would_be_read_otherwise_is_not_written(parsed: ParsedText) -> None:
    with pytest.raises(InvalidValue, match="cannot be written"):
        format_text(parsed)


_PIECES = [
    "# «send»", "# «wait»", "# «think»", "# «sticker»", "# «remember»", "# «block»", "# «sned»", "# «Кобзар»", " 7",
    "\n", "\n", "\n", "\r\n", "\r", " ", "    ", "\t", "delay: 5", "delay: -5", "a", "b c", "```", "```markdown",
    "```py",
    "~~~", "> ", "- ", "1. ", "#", "## «send»", "«", "»", "<think>", "</think>", "\u2028", "\x00", "é", "🙂", "שלום",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(_PIECES), max_size=30).map("".join)

_WORDS = st.text(st.characters(exclude_characters="\r\n`~#<>", exclude_categories=["Cs", "Z", "Cc"]), min_size=1)
_IDS = st.none() | st.from_regex(r"[0-9]{1,64}", fullmatch=True)
_LINES = st.lists(_WORDS | st.just(""), min_size=1, max_size=4).map("\n".join).map(lambda text: f"a{text}b")
BLOCKS: st.SearchStrategy[TaskBlock] = st.one_of(
    st.builds(Send, text=_LINES, reply_to=_IDS),
    st.builds(Wait, seconds=st.integers(0, LONGEST_WAIT // 10) | st.integers(0, 4000).map(lambda number: number / 4)),
    st.builds(SendSticker, set=_WORDS, name=_WORDS, reply_to=_IDS),
    st.builds(Remember, facts=st.lists(_WORDS, min_size=1, max_size=4).map(tuple)),
    st.builds(Think, text=_LINES),
    st.sampled_from([BlockAuthor(), UnblockAuthor(), ClearConversation()]),
)


@given(st.builds(ParsedText, text=st.just("") | _LINES, blocks=st.lists(BLOCKS, max_size=8).map(tuple)))
def test_what_is_written_is_read_as_it_was(parsed: ParsedText) -> None:
    assert parse(format_text(parsed)) == parsed


@given(TEXTS)
def test_a_text_of_any_kind_is_read_and_read_again_from_its_blocks(text: str) -> None:
    parsed = parse(text)

    try:
        again = format_text(parsed)
    except InvalidValue:
        assert parsed.problems or "```" in text or "~~~" in text or text.endswith("\r")
    else:
        assert parse(again) == ParsedText(text=parsed.text, blocks=parsed.blocks)


@given(TEXTS)
@example("Hi\n# «send»\nhi")
def test_code_is_never_a_task(text: str) -> None:
    code = f"x\n`````\n{text}\n`````"

    assert parse(code) == ParsedText(text=code)


@given(TEXTS, TEXTS)
def test_a_good_block_runs_whatever_stands_before_its_heading(before: str, body: str) -> None:
    closed = before.replace("`", "").replace("~", "").replace("<", "").replace("# «wait»", "")

    assert parse(f"{closed}\n# «block»\n# «think»\n{body}").blocks[-1:] != ()
    assert BlockAuthor() in parse(f"{closed}\n# «block»\n# «think»\n{body}").blocks


HOSTILE_SIZE = size(40_000, full=2_000_000)
HOSTILE = [
    "\n", "\r\n", " ", "`", "# «", "# «send»\n", "# «send»\nhi\n", "# «a»\n", "# «wait»\ndelay: 1\n", "delay: 1\n", "9",
    "```\n", "> ```\n", "- ```\n", "    ```\n", "```markdown\n", "```markdown\n# «send»\n", "<think>", "<think>\n",
    "<think></think>", "> > > > > > > > > > > > ```\n", "a", "# «sned»\n",
    "#  ", "   #", "# «sned» x\n",
]  # fmt: skip


@in_time
@pytest.mark.parametrize("opening", ["", "# «wait»\ndelay: ", "```markdown\n# «remember»\n", "> ```\n"])
def test_hostile_text_is_parsed_in_time(opening: str) -> None:
    for unit in HOSTILE:
        text = f"{opening}{unit * (HOSTILE_SIZE // len(unit))}\n```"

        assert len(parse(text).text) <= len(text), unit
