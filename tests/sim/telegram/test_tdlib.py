"""The simulator reads random texts as TDLib does: parse modes, entities, addresses, and what is found in a text."""

import os
import random
import re
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from sim.telegram.tdlib import Read, find, fix, parse
from tertulia.sim.telegram.detection import detected
from tertulia.sim.telegram.domains import DOMAINS
from tertulia.sim.telegram.entities import Entity, fixed
from tertulia.sim.telegram.html import parse_html
from tertulia.sim.telegram.links import checked_url
from tertulia.sim.telegram.markdown import parse_markdown, parse_markdown_v2
from tertulia.sim.telegram.markup import MarkupError
from tertulia.sim.telegram.refusals import Refused

pytestmark = pytest.mark.torture

COUNT = int(os.environ.get("TERTULIA_EXAMPLES", "1500"))
PARSERS = {"html": parse_html, "markdown": parse_markdown, "markdownv2": parse_markdown_v2}
MARKDOWN = [
    *"* _ __ ~ || | ` ``` [ ] ( ) ! ![ > \\ # . **> ](http://x.y) http://a.b tg://user?id=5 tg://emoji?id=7".split(),
    *("\n", "\r", " ", "a", "b ", "👍", "ї", "py\n", "(tg://time?unix=5)"),
]
HTML = [
    *"<b> </b> <i> </i> <u> </u> <pre> </pre> <code> </code> <a> </a> <blockquote> </blockquote> <tg-spoiler>".split(),
    *"</tg-spoiler> </span> &lt; &amp &#65; &#x41 &nbsp; & < </ /> > x 👍 ї </tg-emoji> </> = ' \" href".split(),
    *('<code class="language-py">', '<a href="http://a.b">', "<blockquote expandable>", "<b ", " ", "\n"),
    *('<span class="tg-spoiler">', '<tg-emoji emoji-id="5">', "<tg-time unix=1>", "</tg-time>"),
]
WORDS = [
    *"@ user name_1 ab / start @bot # tag ї 1 $ USD 1INCH http:// https:// a.com b.укр . /x ( ) ?q=1 :80 :".split(),
    *"mail@x.com + , ! tg:// ton:// 👍 _ - < > 192.168.0.1 Com ' ftp:// mailto: ~ xn--p1ai « » ·".split(),
    *(" ", "\n", "4111 1111 1111 1111"),
]
ADDRESSES = [
    *"http:// https:// a . b / ? # : 8 @ %41 % tg: // ї [ ] _ - ton:// ftp:// \\ ~ 0 X tonsite://".split(),
    " ",
]
ENDS_TDLIB = re.compile(r"\[[^\]]*[^\x00-\x7f][^\]]*\](?!\()")  # `[ї]`: it cuts the letter in two and aborts
ENTITIES = [
    *(Entity(type=kind, offset=0, length=0) for kind in "bold italic underline strikethrough spoiler code pre".split()),
    *(Entity(type=kind, offset=0, length=0) for kind in ("blockquote", "expandable_blockquote")),
    Entity(type="pre", offset=0, length=0, language="py"),
    Entity(type="text_link", offset=0, length=0, url="http://a.b/"),
    Entity(type="text_mention", offset=0, length=0, user=7),
    Entity(type="custom_emoji", offset=0, length=0, custom_emoji_id="5"),
    Entity(type="date_time", offset=0, length=0, unix_time=5),
]


def texts(pieces: list[str], longest: int) -> Iterator[str]:
    draw = random.Random(longest)  # noqa: S311 (the same texts each time)
    for _ in range(COUNT):
        yield "".join(draw.choice(pieces) for _ in range(draw.randint(1, longest)))


@pytest.mark.parametrize(("mode", "pieces"), [("html", HTML), ("markdown", MARKDOWN), ("markdownv2", MARKDOWN)])
def test_parse_modes(mode: str, pieces: list[str]) -> None:
    def read(text: str) -> Read:
        try:
            found, entities = PARSERS[mode](text)
        except MarkupError as error:
            return f"Can't parse entities: {error}"
        return found, [replace(entity, date_time_format=None) for entity in entities]

    judged = (text for text in texts(pieces, 9) if mode != "markdown" or not ENDS_TDLIB.search(text))
    different = [(text, read(text)) for text in judged if read(text) != parse(text, mode)]

    assert different == []


def test_entities_that_cross_and_overlap() -> None:
    draw = random.Random(1)  # noqa: S311
    different = []
    for text in texts(["a", "b", "👍", "ї", "\r", "\u0333"], 10):
        text += "."  # so that nothing is trimmed
        wanted = [
            replace(draw.choice(ENTITIES), offset=draw.randint(0, 9), length=draw.randint(0, 6))
            for _ in range(draw.randint(1, 5))
        ]
        try:
            ours: Read = fixed(text, wanted, find=False)
        except Refused as error:
            words = error.description.removeprefix("Bad Request: ")
            ours = words[0].upper() + words[1:]
        if ours != fix(text, wanted):
            different.append((text, wanted, ours))

    assert different == []


def test_addresses_of_links() -> None:
    def checked(url: str) -> Read:
        try:
            return "abc", [Entity(type="text_link", offset=0, length=3, url=checked_url(url))]
        except ValueError as error:
            return f"Entity URL '{url}' is invalid: {error}"

    def judged(url: str) -> Read:
        return fix("abc", [Entity(type="text_link", offset=0, length=3, url=url)])

    assert [url for url in texts(ADDRESSES, 7) if checked(url) != judged(url)] == []


def test_mentions_commands_tags_cards_addresses_and_mail() -> None:
    assert [(text, detected(text)) for text in texts(WORDS, 8) if detected(text) != find(text)] == []


def test_bare_addresses_are_known_by_their_domain() -> None:
    assert [name for name in DOMAINS if find(f"a.{name}") != [("url", 0, len(name) + 2)]] == []
