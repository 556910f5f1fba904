"""Texts as a model might write them, whole or broken off: every kind of markup, in any order, each word only once."""

import random
from collections.abc import Iterator

INLINE = [
    "**", "*", "_", "__", "***", "~~", "~", "`", "``", "`` ` ``", "[", "](", ")", "]", "![", "(", "<", ">",
    "</b>", "<b>", "<think>", "</think>", "\\", "\\*", "&amp;", "&#10;", "&#32;", "&copy;", "&", "&#0;",
    "&#x202e;", "!", "|", "||", ":", "-", "+", "=", "#", "1.", "  ", " ", " ", " ", " ", "(http://a.b/c)",
    "](https://e.test/p_q?a=b&c=d)", "](<https://e.test/a b>)", "](/x)", "](javascript:x)", "](mailto:a@b.c)",
    "](tg://user?id=1)", "](http://localhost)", '](https://e.test "', '")', "<https://e.test/a>", "<a@b.c>",
    "](https://e.test:99999)", "https://e.test/x_y_z", "👍", "👨\u200d👩\u200d👧\u200d👦", "🇺🇦", "e\u0301",
    "a\u030a", "👍🏽", "\u200b", "\xa0", "日本", "ї", "\u202e", "\x00", "\x0b", "\ud83d", "\u3000", "'", '"', "$",
    "%", "@",
]  # fmt: skip
STARTS = [
    "- ", "* ", "+ ", "1. ", "1) ", "7. ", "- [ ] ", "- [x] ", "> ", "> > ", ">", "# ", "### ", "#", "    ",
    "  ", "   ", "\t", "  - ", "    - ", "   1. ", "```", "```py\n", "```c++ x\n", "~~~\n", "````\n",
    "> ```\n> ", "---", "***", "===", "| ", "|---|---|\n", "|-|\n", ":-:|:-\n", "[a]: http://a.b ", "", "",
    "", "",
]  # fmt: skip
ENDS = [
    "\n",
    "\n",
    "\n",
    "\n\n",
    "\n\n",
    "\n\n\n",
    "  \n",
    "\\\n",
    "\r\n",
    " |\n",
    "```\n",
    "\n```\n",
    "\n~~~\n",
    ":\n",
    "",
]


def markdown_text(chooser: random.Random) -> tuple[str, list[str]]:
    """Make a text, and list its words."""
    words: list[str] = []
    written = list(_parts(chooser, words))
    return "".join(written), words


def _parts(chooser: random.Random, words: list[str]) -> Iterator[str]:
    longest = chooser.choice([1, 3, 8])
    for _ in range(chooser.randint(1, chooser.choice([3, 10, 25]))):
        if chooser.random() < 0.5:
            yield chooser.choice(STARTS)
        for _ in range(chooser.randint(0, 10)):
            if chooser.random() < 0.5:
                yield chooser.choice(INLINE)
                continue
            words.append(chooser.choice(["w", "слово", "W"]) + f"{len(words)}" + "z" * chooser.randint(0, longest))
            yield words[-1] + chooser.choice(["", " ", " ", ". ", " | "])
        yield chooser.choice(ENDS)
