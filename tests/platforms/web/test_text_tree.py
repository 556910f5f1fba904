"""The tree of a text: what is drawn of Markdown, and that no word of it is lost."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertulia.platforms.web.text_tree import Element, Inside, text_tree


def p(*inside: Inside) -> Element:
    return Element(tag="p", inside=inside)


def words(found: tuple[Inside, ...]) -> str:
    return "".join(one if isinstance(one, str) else one.language + words(one.inside) for one in found)


def hrefs(found: tuple[Inside, ...]) -> list[str]:
    return [
        href for one in found if isinstance(one, Element) for href in [*filter(None, [one.href]), *hrefs(one.inside)]
    ]


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("plain", (p("plain"),)),
        ("a **b** _c_ ~~d~~ `e`", (p(
            "a ", Element(tag="strong", inside=("b",)), " ", Element(tag="em", inside=("c",)), " ",
            Element(tag="s", inside=("d",)), " ", Element(tag="code", inside=("e",)),
        ),)),
        ("one\ntwo", (p("one", Element(tag="br"), "two"),)),
        ("# H\n\n> q", (Element(tag="heading", inside=("H",)), Element(tag="blockquote", inside=(p("q"),)))),
        ("- a\n- b", (Element(tag="ul", inside=(
            Element(tag="li", inside=("a",)), Element(tag="li", inside=("b",)),
        )),)),
        ("3. a", (Element(tag="ol", inside=(Element(tag="li", inside=("a",)),), start=3),)),
        ("```py\nx = 1\n```", (Element(tag="pre", inside=("x = 1",), language="py"),)),
        ("|a|b|\n|-|-|\n|1|2|", (Element(tag="table", inside=(
            Element(tag="tr", inside=(Element(tag="th", inside=("a",)), Element(tag="th", inside=("b",)))),
            Element(tag="tr", inside=(Element(tag="td", inside=("1",)), Element(tag="td", inside=("2",)))),
        )),)),
        ("[x](https://a.org)", (p(Element(tag="a", inside=("x",), href="https://a.org")),)),
        ("see https://a.org/b_c.", (p(
            "see ", Element(tag="a", inside=("https://a.org/b_c",), href="https://a.org/b_c"), ".",
        ),)),
        ("![x](https://a.org/b.png)", (p(Element(tag="a", inside=("x",), href="https://a.org/b.png")),)),
        ("[x](tg://user)", (p("x (tg://user)"),)),
        ("#", (p("#"),)),
        ("", (p(""),)),
    ],
)  # fmt: skip
def test_markdown_becomes_elements(text: str, tree: tuple[Inside, ...]) -> None:
    assert text_tree(text) == tree


@pytest.mark.parametrize(
    "text",
    [
        "[x](javascript:alert(1))",
        "[x](data:text/html,<script>)",
        "[x](JaVaScRiPt:alert%281%29)",
        "<javascript:alert(1)>",
        "[x](//a.org)",
        "[x](/api/home)",
        "![x](data:image/svg+xml,x)",
    ],
)
def test_an_address_that_is_none_of_the_web_or_of_mail_is_no_link(text: str) -> None:
    assert hrefs(text_tree(text)) == []


@given(st.text(alphabet="ab1 \n*_~`#>-[]()!|<&.:/\\" + "щ🙂", max_size=120))
def test_no_word_is_lost_and_every_link_can_be_followed(text: str) -> None:
    tree = text_tree(text)

    assert re.findall("[abщ🙂]", words(tree)) == re.findall("[abщ🙂]", text)
    assert all(re.match(r"https?://|mailto:", href) for href in hrefs(tree))
