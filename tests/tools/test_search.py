"""Searching the web: SearxNG over a socket, its answers and its failures, and the tool on any search."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tertulia import errors
from tertulia.parts import ToolCall
from tertulia.toolbox.toolbox import Toolbox
from tertulia.tools.search import EXCERPT, TITLE, Hit, SearxNG, plain_text, search_tool
from tools.services import Canned, a_dead_url, serving

SEARCH = "/search"


def a_result(**changes: Any) -> dict[str, Any]:
    return {
        "url": "https://example.org/",
        "title": "Example",
        "content": "An example.",
        "thumbnail": None,
        "engine": "brave",
        "template": "default.html",
        "parsed_url": ["https", "example.org", "/", "", "", ""],
        "img_src": "",
        "priority": "",
        "engines": ["brave", "duckduckgo"],
        "positions": [1, 2],
        "score": 3.0,
        "category": "general",
        "publishedDate": None,
        **changes,
    }


def found(*results: Any, **changes: Any) -> Canned:
    return Canned(
        {
            "query": "example",
            "number_of_results": 0,
            "results": list(results),
            "answers": [],
            "corrections": [],
            "infoboxes": [],
            "suggestions": [],
            "unresponsive_engines": [],
            **changes,
        }
    )


async def hits(answer: Canned, *, limit: int = 5, timeout: float = 10) -> list[Hit]:
    async with serving({SEARCH: answer}) as service, SearxNG(service.url, timeout=timeout) as search:
        return await search.find("example", limit)


async def test_what_is_found() -> None:
    answer = found(a_result(), a_result(url="http://example.com/a?b=c#d", title="Other", content="More."))

    async with serving({SEARCH: answer}) as service, SearxNG(f"{service.url}/") as search:
        result = await search.find("погода & “Київ”?", 5)

    assert result == [
        Hit(title="Example", url="https://example.org/", excerpt="An example."),
        Hit(title="Other", url="http://example.com/a?b=c#d", excerpt="More."),
    ]
    assert service.asked == [(SEARCH, {"q": "погода & “Київ”?", "format": "json"})]


async def test_no_more_than_the_limit() -> None:
    result = await hits(found(*[a_result(title=str(number)) for number in range(20)]), limit=3)

    assert [hit.title for hit in result] == ["0", "1", "2"]


async def test_nothing_found_is_an_empty_list() -> None:
    assert await hits(found()) == []


async def test_nothing_found_because_nobody_looked_is_a_failure() -> None:
    answer = found(unresponsive_engines=[["brave", "Suspended: too many requests"], ["duckduckgo", "CAPTCHA"]])

    with pytest.raises(errors.ServiceFault, match="nothing was found, but not every search engine answered"):
        await hits(answer)


async def test_engines_that_failed_do_not_matter_where_others_found_something() -> None:
    result = await hits(found(a_result(), unresponsive_engines=[["brave", "timeout"]]))

    assert [hit.title for hit in result] == ["Example"]


@pytest.mark.parametrize(
    "odd",
    [
        None,
        "text",
        7,
        [],
        {},
        a_result(url=None),
        a_result(url=""),
        a_result(url="example.org"),
        a_result(url="/search?q=x"),
        a_result(url="javascript:alert(1)"),
        a_result(url="JAVASCRIPT:alert(1)"),
        a_result(url="data:text/html,x"),
        a_result(url="file:///etc/passwd"),
        a_result(url="magnet:?xt=urn:btih:0"),
        a_result(url="ftp://example.org/"),
        a_result(url="https://"),
        a_result(url="https:///path"),
        a_result(url="http://[::1"),
        a_result(url="https://example.org/\nhttps://evil.example/"),
        a_result(url="https://example.org/ a"),
        a_result(url="https://example.org/" + "x" * 2000),
        a_result(title=["x"]),
        a_result(content={"x": 1}),
    ],
)
async def test_an_odd_result_is_dropped_and_costs_no_other(odd: Any) -> None:
    result = await hits(found(odd, a_result(title="Good")))

    assert [hit.title for hit in result] == ["Good"]


@pytest.mark.parametrize(
    ("changes", "hit"),
    [
        ({"content": None}, Hit(title="Example", url="https://example.org/")),
        ({"title": None}, Hit(title="https://example.org/", url="https://example.org/", excerpt="An example.")),
        ({"title": " <b></b> "}, Hit(title="https://example.org/", url="https://example.org/", excerpt="An example.")),
        ({"url": "HTTPS://Example.org/"}, Hit(title="Example", url="HTTPS://Example.org/", excerpt="An example.")),
        (
            {"title": "a" * 5000, "content": "b" * 50_000},
            Hit(title="a" * (TITLE - 1) + "…", url="https://example.org/", excerpt="b" * (EXCERPT - 1) + "…"),
        ),
    ],
)
async def test_a_hit_is_whole_and_of_a_sane_size(changes: dict[str, Any], hit: Hit) -> None:
    assert await hits(found(a_result(**changes))) == [hit]


@pytest.mark.parametrize(
    ("markup", "said"),
    [
        ("plain", "plain"),
        ("a <b>bo</b>ld <em class='x'>word</em>", "a bold word"),
        ("one<br>two<br/>three", "one two three"),
        ("<p>one</p><p>two</p>", "one two"),
        ("<script>alert(1)</script>after<STYLE>p {}</style >", "after"),
        ("before<script>alert(1)", "before"),
        ("a<!-- <b>hidden</b> -->b<!-- open", "ab"),
        ("<!doctype html><?xml?>x", "x"),
        ("fish &amp; chips &#8212; &euro;5", "fish & chips — €5"),
        ("use &lt;b&gt; for bold", "use <b> for bold"),
        ("1 < 2 and x<y", "1 < 2 and x<y"),
        ("two\n\tlines\r\n\x00\x1b[31m", "two lines [31m"),
        ("<![foo[ x", "<![foo[ x"),
    ],
)
def test_the_words_of_markup(markup: str, said: str) -> None:
    assert plain_text(markup) == said


@given(st.one_of(st.text(), st.text(st.sampled_from(list("<>/!-[]?&#;ab \n\"'=")))))
@example("<" * 5000)
@example("<script " * 500)
@example("<!--" * 1000)
def test_any_markup_becomes_one_line(markup: str) -> None:
    said = plain_text(markup)

    assert said == " ".join(said.split())


UNREADABLE = "the search service sent an answer that cannot be read"
CLOSED = "the search service does not let us in at its address (HTTP 403): SearxNG needs json among its search.formats"
FAILURES = [
    (Canned(b"<h1>Forbidden</h1>", status=403), errors.OperatorMustAct, CLOSED),
    (
        Canned(b"Too Many Requests", status=429),
        errors.RateLimited,
        "the search service has had too many requests just now",
    ),
    (Canned(b"oops", status=500), errors.ServiceFault, "the search service failed (HTTP 500)"),
    (Canned(b"no query", status=400), errors.RequestRefused, "the search service refused the request (HTTP 400)"),
    (Canned(b" " * 2 * 2**20 + b"{}"), errors.ResponseUnreadable, "the search service sent more than can be read"),
    (Canned(b""), errors.ResponseUnreadable, UNREADABLE),
    (Canned(b"<html>"), errors.ResponseUnreadable, UNREADABLE),
    (Canned([]), errors.ResponseUnreadable, UNREADABLE),
    (Canned({}), errors.ResponseUnreadable, UNREADABLE),
    (Canned({"results": {}}), errors.ResponseUnreadable, UNREADABLE),
    (Canned({"results": "none"}), errors.ResponseUnreadable, UNREADABLE),
]


@pytest.mark.parametrize(("answer", "kind", "told"), FAILURES)
async def test_a_failure_is_told_without_the_address(
    answer: Canned, kind: type[errors.TertuliaError], told: str
) -> None:
    with pytest.raises(errors.TertuliaError) as caught:
        await hits(answer)

    assert (type(caught.value), str(caught.value)) == (kind, told)


async def test_broken_characters_cost_nothing_else() -> None:
    body = rb'{"results": [{"url": "https://example.org/", "title": "half \ud83d", "score": NaN}]}'

    assert await hits(Canned(body)) == [Hit(title="half �", url="https://example.org/")]


async def test_a_service_that_does_not_answer_is_given_up() -> None:
    with pytest.raises(errors.TimedOut, match=r"^the search service did not answer in time$"):
        await hits(Canned(stalls=True), timeout=0.2)


async def test_a_dead_service() -> None:
    async with SearxNG(a_dead_url()) as search:
        with pytest.raises(errors.ConnectionLost, match=r"^the search service cannot be reached$"):
            await search.find("example", 5)


class Endless:
    """A search in a test: it finds more than was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    async def find(self, query: str, limit: int) -> list[Hit]:
        self.asked.append((query, limit))
        return [Hit(title=str(number), url=f"https://example.org/{number}") for number in range(limit + 5)]


@pytest.mark.parametrize(("limit", "wanted"), [(1, 1), (7, 7), (0, 1), (-3, 1), (1000, 10)])
async def test_a_limit_is_brought_within_bounds(limit: int, wanted: int) -> None:
    search = Endless()

    result = await search_tool(search)(" two \n words ", limit)

    assert search.asked == [("two words", wanted)]
    assert len(result) == wanted


@pytest.mark.parametrize("query", ["", " \n", "x" * 401])
async def test_a_query_must_say_something(query: str) -> None:
    with pytest.raises(ValueError, match="say what to search for, in at most 400 characters"):
        await search_tool(Endless())(query)


async def test_as_a_tool() -> None:
    toolbox = Toolbox([search_tool(Endless())])

    (result,) = await toolbox.run([ToolCall(id="1", name="web_search", args={"query": "x", "limit": 1})])

    assert result.value == [{"title": "0", "url": "https://example.org/0", "excerpt": ""}]
    assert toolbox.specs[0].parameters["properties"]["limit"] == {
        "type": "integer",
        "description": "How many results to return, 1 to 10",
        "default": 5,
    }


async def test_half_a_character_in_a_query_is_sent_as_something() -> None:
    async with serving({SEARCH: found()}) as service, SearxNG(service.url) as search:
        await search.find("a\ud800b", 5)

    assert service.asked == [(SEARCH, {"q": "a?b", "format": "json"})]
