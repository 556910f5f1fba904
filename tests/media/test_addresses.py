"""Files are fetched from checked addresses only, without anything of ours, and within limits."""

import asyncio
import gzip
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from media.web import FILE, NAME, PUBLIC, SECRET, UNREACHABLE, Web, answer, redirect
from tertulia.errors import InvalidValue, MediaUnavailable
from tertulia.media.addresses import AddressFetcher, Fetched, is_own_address, resolve_host
from tertulia.media.values import MediaOptions

LIMIT = 1_000
PRIVATE_TEXT = f"{NAME} is not the name of a public host"


@pytest.fixture
async def web() -> AsyncIterator[Web]:
    async with Web() as opened:
        yield opened


async def refusal(web: Web, url: str, *, timeout: float = 30, allowed: tuple[str, ...] = ()) -> tuple[str, bool]:
    """The text of a refusal, and whether it may succeed later."""
    with pytest.raises(MediaUnavailable) as caught:
        await web.fetcher(timeout=timeout, allowed=allowed).fetch(url, limit=LIMIT)
    return str(caught.value), caught.value.for_now


async def test_file_comes_with_its_type_and_name(web: Web) -> None:
    web.public.answers["/a/cat%20one.png?x=1"] = answer(content_type="Image/PNG; charset=x")

    fetched = await web.fetcher().fetch(f"http://{NAME}/a/cat one.png?x=1", limit=LIMIT)

    assert fetched == Fetched(data=FILE, mime="image/png", name="cat one.png")


async def test_request_holds_nothing_of_ours_and_goes_to_the_resolved_address(web: Web) -> None:
    await web.fetcher().fetch(f"http://{NAME}:8080/cat.png#part", limit=LIMIT)

    assert web.public.requests == [
        [
            "GET /cat.png HTTP/1.1",
            f"host: {NAME}:8080",
            "user-agent: Mozilla/5.0 (compatible; Tertulia)",
            "accept: */*",
            "accept-encoding: identity",
            "connection: close",
        ]
    ]
    assert (web.resolved, web.connected) == ([NAME], [PUBLIC[0]])


async def test_proxies_and_passwords_of_the_environment_are_not_used(
    web: Web, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password secret")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{web.internal.port}")
    monkeypatch.delenv("NO_PROXY", raising=False)

    fetched = await AddressFetcher(allowed=["127.0.0.1"]).fetch(f"http://127.0.0.1:{web.public.port}/", limit=LIMIT)

    assert (fetched, web.internal.connections) == (Fetched(data=FILE), 0)
    assert not any(line.startswith("authorization") for line in web.public.requests[0])


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ('attachment; filename="../../etc/passwd"', "passwd"),
        ("attachment; filename=cat.jpg", "cat.jpg"),
        ("inline; filename=\"x.txt\"; filename*=UTF-8''%D0%BA%D1%96%D1%82.jpg", "кіт.jpg"),
        ('attachment; filename=".."', "file"),
        ("attachment", "f"),
    ],
)
async def test_name_of_a_file_is_as_the_server_says_and_safe(web: Web, header: str, name: str) -> None:
    web.public.answers["/f"] = answer(content_disposition=header)

    fetched = await web.fetcher().fetch(f"http://{NAME}/f", limit=LIMIT)

    assert fetched == Fetched(data=FILE, name=name)


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        ["10.1.2.3"],
        ["::1"],
        ["fe80::1%eth0"],
        [PUBLIC[0], "127.0.0.1"],
        ["169.254.169.254", PUBLIC[0]],
        [PUBLIC[0], PUBLIC[1], "fd00:ec2::254"],
        [],
    ],
)
async def test_host_with_one_address_that_is_not_public_is_refused_as_if_it_did_not_exist(
    web: Web, addresses: list[str]
) -> None:
    web.names[NAME] = [addresses]

    assert await refusal(web, f"http://{NAME}:{web.internal.port}/") == (PRIVATE_TEXT, False)
    assert await refusal(web, "http://nobody.example/") == ("nobody.example is not the name of a public host", False)
    assert (web.connected, web.internal.connections) == ([], 0)


@pytest.mark.parametrize(
    "host",
    "127.0.0.1 127.1 0 0x7f.1 0x7f000001 2130706433 0177.1 127.0.0.1. localhost localhost. LOCALHOST 127。0。0。1 "
    "[::1] [::ffff:127.0.0.1] [::127.0.0.1] [64:ff9b::7f00:1] [2002:7f00:1::] [0:0:0:0:0:FFFF:7F00:0001] [::] "
    "169.254.169.254 100.100.100.200 [fd00:ec2::254]".split(),
)
async def test_spellings_are_judged_by_what_they_resolve_to(web: Web, host: str) -> None:
    text, _ = await refusal(web, f"http://{host}:{web.internal.port}/")

    assert text.endswith(" is not the name of a public host")
    assert (web.connected, web.internal.connections) == ([], 0)


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("file:///etc/passwd", "this is no http or https address"),
        ("ftp://photos.example/", "this is no http or https address"),
        ("photos.example/cat.png", "this is no http or https address"),
        ("http://", "this is no http or https address"),
        ("http://１２７.0.0.1/", "this is no http or https address"),
        ("http://[fe80::1%25eth0]/", "this is no http or https address"),
        ("http://photos%2eexample/", "this is no http or https address"),
        ("http://photos.example\\.evil/", "this is no http or https address"),
        ("http://photos.example\n/", "this is no http or https address"),
        (f"http://photos.example/{'a' * 4_000}", "this is no http or https address"),
        ("http://me:secret@photos.example/", "an address with a user name or a password is not fetched"),
        ("http://photos.example\\@127.0.0.1/", "an address with a user name or a password is not fetched"),
        ("http://photos.example:22/", "files are not fetched from port 22"),
        ("http://photos.example:6379/", "files are not fetched from port 6379"),
        ("http://photos.example:99999/", "files are not fetched from port 99999"),
    ],
)
async def test_what_is_no_address_of_a_file_is_refused_before_anything_is_resolved(
    web: Web, url: str, text: str
) -> None:
    assert await refusal(web, url) == (text, False)
    assert (web.resolved, web.connected) == ([], [])


async def test_second_answer_of_a_name_server_does_not_matter(web: Web) -> None:
    web.names[NAME] = [PUBLIC[:1], ["127.0.0.1"]]

    fetched = await web.fetcher().fetch(f"http://{NAME}:{web.internal.port}/cat.png", limit=LIMIT)

    assert (fetched.data, web.resolved, web.connected) == (FILE, [NAME], [PUBLIC[0]])


async def test_host_is_resolved_and_checked_again_after_a_redirect(web: Web) -> None:
    web.names[NAME] = [PUBLIC[:1], ["127.0.0.1"]]
    web.public.answers["/"] = redirect(f"http://{NAME}:{web.internal.port}/secret")

    assert await refusal(web, f"http://{NAME}/") == (PRIVATE_TEXT, False)
    assert (web.connected, web.internal.connections) == ([PUBLIC[0]], 0)


async def test_five_redirects_are_followed_and_no_more(web: Web) -> None:
    for number in range(7):
        web.public.answers[f"/{number}"] = redirect(f"../{number + 1}", status=(301, 302, 303, 307, 308)[number % 5])
    web.public.answers["/7"] = answer(b"the end")

    fetched = await web.fetcher().fetch(f"http://{NAME}/2", limit=LIMIT)

    assert fetched == Fetched(data=b"the end", name="7")
    assert await refusal(web, f"http://{NAME}/1") == (f"{NAME} redirects more than 5 times", False)


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.1:{port}/",
        "//127.1:{port}/",
        "http://[::ffff:7f00:1]:{port}/",
        "http://me@photos.example/",
        "file:///etc/passwd",
        "http://photos.example:25/",
        "http://[",
    ],
)
async def test_redirects_are_checked_as_the_first_address_is(web: Web, location: str) -> None:
    web.public.answers["/"] = redirect(location.format(port=web.internal.port))

    await refusal(web, f"http://{NAME}/")

    assert (set(web.connected), web.internal.connections) == ({PUBLIC[0]}, 0)


@pytest.mark.parametrize(
    ("status", "for_now"),
    [
        ("404 Not Found", False),
        ("403 Forbidden", False),
        ("206 Partial Content", False),
        ("302 Found", False),
        ("429 Too Many", True),
        ("500 Oops", True),
        ("503 Busy", True),
    ],
)
async def test_another_status_is_a_failure_and_says_whether_it_may_succeed_later(
    web: Web, status: str, for_now: bool
) -> None:
    web.public.answers["/"] = answer(status=status)

    assert await refusal(web, f"http://{NAME}/") == (f"{NAME} answered {status[:3]}", for_now)


async def endless(writer: asyncio.StreamWriter) -> None:
    writer.write(answer(b"", length=False))
    while True:
        writer.write(b"x" * 100)
        await writer.drain()


async def endless_header(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nx: ")
    while True:
        writer.write(b"x" * 10_000)
        await writer.drain()


async def silent(writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def stuck(writer: asyncio.StreamWriter) -> None:
    writer.write(answer(b"a beginning", length=False))
    await asyncio.Event().wait()


async def test_body_beyond_the_limit_is_not_read(web: Web) -> None:
    web.public.answers["/endless"] = endless
    web.public.answers["/told"] = answer(b"", length=False, content_length="1001")
    web.public.answers["/fits"] = answer(b"x" * LIMIT)

    fetched = await web.fetcher().fetch(f"http://{NAME}/fits", limit=LIMIT)

    assert fetched.data == b"x" * LIMIT
    for path in ("endless", "told"):
        assert await refusal(web, f"http://{NAME}/{path}") == (f"the file at {NAME} has more than 1,000 bytes", False)


async def test_headers_beyond_the_limit_are_refused(web: Web) -> None:
    web.public.answers["/endless"] = endless_header
    web.public.answers["/long"] = answer(x="x" * 40_000)

    assert await refusal(web, f"http://{NAME}/endless") == (f"{NAME} cannot be reached, or broke off", True)
    assert await refusal(web, f"http://{NAME}/long") == (f"{NAME} sent headers of more than 32,768 bytes", False)


@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd", "deflate", "gzip, gzip", "x-unknown"])
async def test_compressed_body_is_refused_because_none_was_asked_for(web: Web, encoding: str) -> None:
    web.public.answers["/bomb"] = answer(gzip.compress(bytes(10_000)), content_encoding=encoding)

    text = f"{NAME} sent a compressed file, which was not asked for"
    assert await refusal(web, f"http://{NAME}/bomb") == (text, False)


@pytest.mark.parametrize("page", [silent, stuck])
async def test_slow_server_ends_with_the_time_for_everything(web: Web, page: object) -> None:
    web.public.answers["/"] = page  # type: ignore[assignment]

    assert await refusal(web, f"http://{NAME}/", timeout=0.05) == (f"{NAME} did not send the file in time", True)


async def test_slow_name_server_ends_with_the_time_for_everything(web: Web) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        await asyncio.Event().wait()
        return []

    with pytest.raises(MediaUnavailable, match="in time"):
        await AddressFetcher(timeout=0.05, resolve=resolve).fetch(f"http://{NAME}/", limit=LIMIT)


async def test_connection_that_breaks_off_may_succeed_later(web: Web) -> None:
    web.public.answers["/"] = answer(b"half", length=False, content_length="100")

    assert await refusal(web, f"http://{NAME}/") == (f"{NAME} cannot be reached, or broke off", True)


async def test_other_addresses_are_tried_where_the_first_cannot_be_reached(web: Web) -> None:
    web.names[NAME] = [[UNREACHABLE, PUBLIC[1]]]

    fetched = await web.fetcher().fetch(f"http://{NAME}/", limit=LIMIT)

    assert (fetched.data, web.connected) == (FILE, [UNREACHABLE, PUBLIC[1]])


async def test_address_of_a_network_with_dns64_is_judged_by_the_one_inside(web: Web) -> None:
    web.names[NAME] = [[PUBLIC[2], PUBLIC[0]]]

    assert (await web.fetcher().fetch(f"http://{NAME}/", limit=LIMIT)).data == FILE


@pytest.mark.parametrize(
    ("allowed", "url"),
    [
        ("nas", "http://NAS.:{port}/any"),
        ("nas:{port}", "http://nas:{port}/"),
        ("http://nas:{port}", "http://nas:{port}/deep/er"),
        ("http://nas:{port}/photos", "http://nas:{port}/photos/cat.png"),
        ("HTTP://Nas.:{port}/фото/", "http://nas:{port}/%D1%84%D0%BE%D1%82%D0%BE/cat.png"),
        ("http://nas:{port}/photos/", "http://nas:{port}/photos/cat.png?x=/../"),
        ("127.0.0.1", "http://127.0.0.1:{port}/"),
    ],
)
async def test_addresses_of_the_owner_may_be_private(web: Web, allowed: str, url: str) -> None:
    web.names["nas"] = [["127.0.0.1"]]
    port = web.internal.port

    fetched = await web.fetcher(allowed=[allowed.format(port=port)]).fetch(url.format(port=port), limit=LIMIT)

    assert fetched.data == SECRET


@pytest.mark.parametrize(
    ("allowed", "url"),
    [
        ("nas", "http://other.nas:{port}/"),
        ("nas:1", "http://nas:{port}/"),
        ("https://nas:{port}", "http://nas:{port}/"),
        ("http://nas:{port}/photos", "http://nas:{port}/photos2/cat.png"),
        ("http://nas:{port}/photos", "http://nas:{port}/photos/../secret"),
        ("http://nas:{port}/photos", "http://nas:{port}/photos/%2E%2e/secret"),
        ("http://nas:{port}/photos", "http://nas:{port}/photos/..%5csecret"),
        ("nas", "http://127.0.0.1:{port}/"),
    ],
)
async def test_only_these_addresses_may_be_private(web: Web, allowed: str, url: str) -> None:
    web.names |= {"nas": [["127.0.0.1"]], "other.nas": [["127.0.0.1"]]}
    port = web.internal.port

    await refusal(web, url.format(port=port), allowed=(allowed.format(port=port),))

    assert (web.connected, web.internal.connections) == ([], 0)


async def test_redirect_from_an_address_of_the_owner_is_checked(web: Web) -> None:
    web.names["nas"] = [["127.0.0.1"]]
    web.internal.answers["/"] = redirect(f"http://127.0.0.1:{web.internal.port}/secret")

    text, _ = await refusal(web, f"http://nas:{web.internal.port}/", allowed=("nas",))

    assert (text, web.internal.connections) == ("127.0.0.1 is not the name of a public host", 1)


async def test_size_is_limited_for_an_address_of_the_owner_too(web: Web) -> None:
    web.internal.answers["/"] = endless
    url = f"http://127.0.0.1:{web.internal.port}/"

    text, _ = await refusal(web, url, allowed=("127.0.0.1",))

    assert text == "the file at 127.0.0.1 has more than 1,000 bytes"


@pytest.mark.parametrize(
    "allowed", ["", "nas/photos", "ftp://nas", "me@nas", "10.0.0.0/8", "fd00::1", "nas:port", "[1]"]
)
def test_what_cannot_be_allowed_is_an_error(allowed: str) -> None:
    with pytest.raises(InvalidValue, match="that can be allowed"):
        AddressFetcher(allowed=[allowed])
    with pytest.raises(InvalidValue, match="that can be allowed"):
        MediaOptions(allowed_addresses=(allowed,))


async def test_system_resolves_all_spellings_of_an_address() -> None:
    assert [await resolve_host(host, 80) for host in ("127.1", "0x7f.1", "2130706433", "::1")] == [
        ["127.0.0.1"],
        ["127.0.0.1"],
        ["127.0.0.1"],
        ["::1"],
    ]


def test_address_of_this_machine_is_recognised() -> None:
    assert (is_own_address("127.0.0.1"), is_own_address("192.0.2.1")) == (True, False)
