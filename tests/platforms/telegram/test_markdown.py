"""Markdown becomes a text with entities that TDLib takes, and no word of it is lost."""

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from platforms.telegram.markdown_texts import markdown_text
from platforms.telegram.tdlib import accepted, refusal, styles
from sizes import EXAMPLES
from tertulia.characters import visible
from tertulia.platforms.telegram.markdown import Entity, FormattedText, render

FAMILY = "👨‍👩‍👧"


def tagged(formatted: FormattedText) -> str:
    """Write a text with its entities as tags."""
    units = formatted.text.encode("utf-16-le")
    tags: list[tuple[int, int, int, str]] = []
    for number, entity in enumerate(formatted.entities):
        value = entity.url or entity.language
        end = entity.offset + entity.length
        tags.append((entity.offset, 1, number, f"<{entity.type}{f' {value}' if value else ''}>"))
        tags.append((end, 0, -number, f"</{entity.type}>"))
    written, at = "", 0
    for place, _, _, tag in sorted(tags, key=lambda tag: tag[:3]):
        written += units[2 * at : 2 * place].decode("utf-16-le") + tag
        at = place
    return written + units[2 * at :].decode("utf-16-le")


TEXTS = {
    "styles": (
        "**b** *i* _j_ ~~s~~ `c`",
        "<bold>b</bold> <italic>i</italic> <italic>j</italic> <strikethrough>s</strikethrough> <code>c</code>",
    ),
    "styles in styles": ("**a *b* c**", "<bold>a <italic>b</italic> c</bold>"),
    "both styles": ("***a***", "<bold><italic>a</italic></bold>"),
    "styles side by side": ("**a**__.b__", "<bold>a.b</bold>"),
    "adjacent underscores": ("__a_👍(__", "<italic>a👍(</italic>_"),
    "a product": ("2*3*4 = 24, a*b", "2*3*4 = 24, a*b"),
    "emphasis in a word": ("сло*во*сло **a**b", "сло<italic>во</italic>сло <bold>a</bold>b"),
    "code in a style": ("**a `c` b**", "<bold>a</bold> <code>c</code> <bold>b</bold>"),
    "code in a link": ("[a `c`](http://a.b)", "<text_link http://a.b>a c</text_link>"),
    "backticks in code": ("`` a`b ``", "<code>a`b</code>"),
    "a link in a style": (
        "**a [l](https://e.test/x?a=1&b=2)**",
        "<bold>a <text_link https://e.test/x?a=1&b=2>l</text_link></bold>",
    ),
    "a link with brackets": ("[l](https://e.test/a_(b))", "<text_link https://e.test/a_(b)>l</text_link>"),
    "a link with a title": ('[l](https://e.test "why")', "<text_link https://e.test>l</text_link> (why)"),
    "a link without words": ("[](https://e.test)", "<text_link https://e.test>https://e.test</text_link>"),
    "links that Telegram refuses": (
        "[a](b.c) [d](http://localhost) [e](http://a.b:99999)",
        "a (b.c) d (http://localhost) e (http://a.b:99999)",
    ),
    "a link of a script": ("[a](javascript:b)", "[a](javascript:b)"),
    "addresses": (
        "<https://e.test/a_b> <a@b.test> [mail](mailto:a@b.test)",
        "<text_link https://e.test/a_b>https://e.test/a_b</text_link> a@b.test mail (mailto:a@b.test)",
    ),
    "an image": (
        "![alt](https://e.test/i.png) ![x](i.png)",
        "<text_link https://e.test/i.png>alt</text_link> x (i.png)",
    ),
    "an image in a link": ("[![alt](i.png)](https://e.test)", "<text_link https://e.test>alt (i.png)</text_link>"),
    "a definition": ("[a]\n\n[a]: http://a.b", "[a]\n\n[a]: http://a.b"),
    "code": ("Do:\n```python\ndef f():\n\treturn 1\n```\nThen", "Do:\n<pre python>def f():\n    return 1</pre>\nThen"),
    "words behind a fence": ("```js title=a.js\nx\n```", "title=a.js\n<pre js>x</pre>"),
    "an emoji behind a fence": ("```👍", "👍"),
    "a fence in a list": ("1. Do:\n   ```sh\n   rm -rf\n   ```\n2. Then", "1. Do:\n<pre sh>rm -rf</pre>\n2. Then"),
    "indented code": ("a\n\n    b\n      c", "a\n\n<pre>b\n  c</pre>"),
    "headings": ("# A **b** c\ntext\n\nd\n=\n#### `e`", "<bold>A b c</bold>\ntext\n\n<bold>d</bold>\n<code>e</code>"),
    "a quote": ("> a\nlazy\n> > b\n> > c\n\nd", "<blockquote>a\nlazy\n> b\n> c</blockquote>\n\nd"),
    "code in a quote": ("> a\n> ```py\n> b\n> ```\n\nc", "<blockquote>a\n<pre py>b</pre></blockquote>\n\nc"),
    "indented code in a quote": ("> ```\n>   b\n> ```", "<blockquote><pre>  b</pre></blockquote>"),
    "lists": ("- a\n- b\n  - c\n    more\n\n  para\n* d", "• a\n• b\n  • c\n    more\n\n  para\n• d"),
    "numbers": ("3. a\n4. b\n   1) c", "3. a\n4. b\n   1) c"),
    "numbers that are all one": ("1. a\n1. b\n1. c", "1. a\n2. b\n3. c"),
    "tasks": ("- [ ] a\n- [x] b\n1. [X] c\n- []", "☐ a\n☑ b\n1. ☑ c\n• []"),
    "a table": (
        "|a|b|\n|:-|-:|\n|日本|[l](http://a.b)|\n|long word|**2**|more|",
        "<pre>a         |              b\n----------+----------------+-----\n"
        "日本      | l (http://a.b)\nlong word |              2 | more</pre>",
    ),
    "a rule": ("a\n\n---\n\nb", "a\n\n———\n\nb"),
    "HTML": ("<b>a</b>\n<br>\n\n<think>hm</think>", "<b>a</b>\n<br>\n\n<think>hm</think>"),
    "breaks": ("a\nb  \nc\\\nd\n\n\n\ne", "a\nb\nc\nd\n\ne"),
    "escapes": ("\\*a\\* &lt; &copy; 1\\. b", "*a* < © 1. b"),
    "emoji": (f"{FAMILY} **{FAMILY}** `🇺🇦`", f"{FAMILY} <bold>{FAMILY}</bold> <code>🇺🇦</code>"),
    "characters that Telegram replaces": ("a\tb\u202ec a\u030a \x0b", "a bc å"),
    "a broken surrogate": ("a \ud83d b", "a \ufffd b"),
    "an open style": ("**a *b", "**a *b"),
    "an open fence": ("a\n```py\nx = 1\ny", "a\n<pre py>x = 1\ny</pre>"),
    "the beginning of a fence": ("a\n```py", "a\npy"),
    "an open link": ("see [a](https://e.te", "see [a](https://e.te"),
    "nothing but markup": ("**", "**"),
    "an empty heading": ("#", "#"),
    "an empty fence": ("```\n\n```", "```\n\n```"),
    "an empty quote": ("> ", ">"),
    "blanks": (" \n\t\n", ""),
    "nothing": ("", ""),
    "deep quotes": (">" * 18 + "a", f"<blockquote>{'> ' * 15}>>a</blockquote>"),
    "deep lists": ("- " * 10 + "a\n- b", "• " * 8 + "- - a\n• b"),
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_markdown_is_shown(name: str) -> None:
    source, expected = TEXTS[name]

    formatted = render(source)

    assert tagged(formatted) == expected
    assert refusal(formatted) is None


def test_offsets_are_counted_in_utf_16_units() -> None:
    assert render("😀 **b** ```\n") == FormattedText(
        text="😀 b ```", entities=(Entity(type="bold", offset=3, length=1),)
    )


def test_of_more_than_a_hundred_entities_links_stay_and_late_styles_go() -> None:
    formatted = render(" ".join(f"**b{n}** [l{n}](https://e.test/{n})" for n in range(60)))

    links = [entity.url for entity in formatted.entities if entity.type == "text_link"]
    bold = [entity for entity in formatted.entities if entity.type == "bold"]
    assert links == [f"https://e.test/{n}" for n in range(60)]
    assert [tagged(FormattedText(text=formatted.text, entities=(entity,))) for entity in bold] == [
        formatted.text.replace(f"b{n} ", f"<bold>b{n}</bold> ") for n in range(40)
    ]
    assert refusal(formatted) is None


def test_columns_are_given_up_where_they_would_be_mostly_blanks() -> None:
    wide = "|" + "a" * 40 + "|" * 40 + "\n" + "|-" * 40 + "|\n" + ("|" * 41 + "\n") * 400

    formatted = render(wide)

    assert len(formatted.text) < 4 * len(wide)


def test_no_word_is_lost_while_a_text_streams() -> None:
    text = (
        "# Title\n\nSome **bold _both_** and `code`, [a link](https://e.test/path) ~~gone~~.\n\n"
        "- item\n  1. inner\n\n> quote\n\n```python\nprint(1)\n```\n\n"
        "| head | more |\n|---|---|\n| cell | last |\n\n---\nend"
    )

    for length in range(len(text) + 1):
        check_rendering(text[:length], re.findall(r"\w+", text[:length].replace("_", " ")))


def check_rendering(source: str, words: list[str]) -> None:
    formatted = render(source)

    values = [value for entity in formatted.entities for value in (entity.url, entity.language) if value]
    shown = " ".join([formatted.text, *values])
    assert refusal(formatted) is None
    assert [word for word in words if word not in shown] == []
    assert formatted.text or not visible(source).strip()
    if not set(formatted.text) & set("*_~`|[") and "tg://user" not in source:
        judged = accepted(formatted)
        assert (judged.text, styles(judged)) == (formatted.text, styles(formatted))


@pytest.mark.torture
@settings(max_examples=max(EXAMPLES, 300))
@given(st.integers(min_value=0))
def test_tdlib_takes_every_text_and_no_word_is_lost(seed: int) -> None:
    check_rendering(*markdown_text(random.Random(seed)))  # noqa: S311 - texts, no secrets


@given(st.text())
def test_any_text_can_be_rendered(text: str) -> None:
    assert refusal(render(text)) is None
