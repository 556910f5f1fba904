"""The wire under the models: the framing of streams, failures as our errors, and where requests go."""

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

import orjson
import pytest

from models.stub import Stub, answer, answering
from tertulia import errors
from tertulia.models.http import DONE, MAX_BODY_BYTES, MAX_REFUSAL_BYTES, Http, ResponseTooLarge, read_events

EVENTS = "content-type: text/event-stream\r\n"
A, B = {"text": "a\u2028\u0085b\n"}, {"text": "ї"}
JSON_A, JSON_B = (orjson.dumps(value) for value in (A, B))


def decode_error(status: int, body: bytes, headers: Mapping[str, str], about: str) -> errors.TertuliaError:
    return errors.RequestRefused(f"{status} {body.decode()} {headers.get('x-why')} {about}")


def an_http(url: str, *, key: str = "k", timeout: float | None = None, limit: int = MAX_BODY_BYTES) -> Http:
    return Http(url, headers=lambda: {"x-key": key}, decode_error=decode_error, timeout=timeout, limit=limit)


async def events_of(http: Http) -> list[dict[str, Any]]:
    try:
        return [event async for event in http.events("/stream", body=b"{}", about="m")]
    finally:
        await http.aclose()


@pytest.mark.parametrize("framed", [True, False], ids=["length", "close"])
@pytest.mark.parametrize(
    ("body", "events"),
    [
        (b"data: %b\n\ndata: %b\n\n" % (JSON_A, JSON_B), [A, B]),
        (b"data: %b\r\n\r\ndata: %b\r\n\r\n" % (JSON_A, JSON_B), [A, B]),
        (b"data:%b\n\ndata:%b\n\n" % (JSON_A, JSON_B), [A, B]),
        (b"data: %b\n\ndata: %b" % (JSON_A, JSON_B), [A, B]),
        (b"data: %b\n\ndata: %b\n" % (JSON_A, JSON_B), [A, B]),
        (b"data: %b\r\n\r\ndata: %b\r" % (JSON_A, JSON_B), [A, B]),
        (b"data: %b\n\ndata: [DONE]\n\ndata: %b\n\n" % (JSON_A, JSON_B), [A, DONE]),
        (b": hello\n\n: ping\ndata: %b\n\n: ping\n\ndata: %b\n\n: bye\n" % (JSON_A, JSON_B), [A, B]),
        (b"data: %b\n\n: the last comment" % JSON_A, [A]),
        (b"event: message\nid: 1\nretry: 5\ndata: %b\n\n" % JSON_A, [A]),
        (b"data: %b\n\nevent: end" % JSON_A, [A]),
        (b'data: {"text":\ndata: "x"}\n\n', [{"text": "x"}]),
        (b"\n\n\ndata: %b\n\n\n\n" % JSON_A, [A]),
        (b"data:\n\ndata: %b\n\ndata: \n\n" % JSON_A, [A]),
        (b"\xef\xbb\xbfdata: %b\n\n" % JSON_A, [A]),
        (JSON_A, [A]),
        (orjson.dumps(A, option=orjson.OPT_INDENT_2), [A]),
        (b"[%b,\r\n%b]" % (JSON_A, JSON_B), [A, B]),
        (orjson.dumps([A, B], option=orjson.OPT_INDENT_2) + b"\n", [A, B]),
        (b"data: [%b,%b]\n\n" % (JSON_A, JSON_B), [A, B]),
        (b"", []),
        (b": nothing\n\n", []),
    ],
)
async def test_the_events_of_a_stream(body: bytes, events: list[Any], framed: bool) -> None:
    async with answering(answer(body, headers=EVENTS, framed=framed)) as stub:
        assert await events_of(an_http(stub.url)) == events


@pytest.mark.parametrize("size", [1, 2, 7])
async def test_events_are_the_same_however_they_are_cut_into_pieces(size: int) -> None:
    body = b": hi\r\ndata: %b\r\n\r\ndata: %b" % (JSON_A, JSON_B)
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    chunked = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    headers = EVENTS + "transfer-encoding: chunked\r\n"

    async with answering(answer(chunked, headers=headers, framed=False)) as stub:
        assert await events_of(an_http(stub.url)) == [A, B]


@pytest.mark.parametrize("body", [b"data: {\n\n", b"<html>", b"data: 5\n\n", b"data: null\n\n", b'data: ["x"]\n\n'])
async def test_an_event_that_is_no_object_is_unreadable(body: bytes) -> None:
    async with answering(answer(body, headers=EVENTS)) as stub:
        with pytest.raises(errors.ResponseUnreadable):
            await events_of(an_http(stub.url))


async def test_a_request_says_who_asks_and_that_it_is_json() -> None:
    async with answering(answer(b'{"ok":true}')) as stub:
        http = an_http(f"{stub.url}/sub/path/")
        found = await http.json("POST", "/v1/things?x=1", body=b'{"a":1}')
        await http.aclose()

    assert found == {"ok": True}
    assert stub.heads[0].startswith("POST /sub/path/v1/things?x=1 HTTP/1.1\r\n")
    assert {"x-key: k", "content-type: application/json"} <= set(stub.heads[0].lower().split("\r\n"))
    assert stub.bodies == [b'{"a":1}']


async def test_an_empty_answer_is_an_empty_object() -> None:
    async with answering(answer(b"")) as stub:
        http = an_http(stub.url)
        assert await http.json("DELETE", "/v1/things/1") == {}
        await http.aclose()


@pytest.mark.parametrize("status", ["302 Found", "400 Bad Request", "404 Not Found", "500 Oops"])
async def test_a_bad_status_is_read_by_the_service(status: str) -> None:
    refusal = answer(b"why", status=status, headers="x-why: because\r\nlocation: /\r\n")
    async with answering(refusal, refusal) as stub:
        http = an_http(stub.url)
        said = f"^{status[:3]} why because m$"

        with pytest.raises(errors.RequestRefused, match=said):
            await http.json("POST", "/x", about="m")
        with pytest.raises(errors.RequestRefused, match=said):
            await events_of(http)


async def test_no_server_is_no_connection() -> None:
    async with answering() as stub:
        url = stub.url

    with pytest.raises(errors.ConnectionLost, match="no connection to http://127") as caught:
        await events_of(an_http(url))

    assert caught.value.retry_after is None


async def test_half_an_answer_is_a_lost_connection() -> None:
    half = answer(b'{"ok":true}')[:-3]
    async with answering(half, half) as stub:
        http = an_http(stub.url)

        with pytest.raises(errors.ConnectionLost, match="broke off"):
            await http.json("GET", "/x")
        with pytest.raises(errors.ConnectionLost, match="broke off"):
            await events_of(http)


async def test_an_answer_in_a_broken_encoding_is_unreadable() -> None:
    async with answering(answer(b"not gzip", headers="content-encoding: gzip\r\n")) as stub:
        http = an_http(stub.url)
        with pytest.raises(errors.ResponseUnreadable):
            await http.json("GET", "/x")
        await http.aclose()


async def test_a_compressed_stream_is_read() -> None:
    packed = gzip.compress(b"data: %b\n\n" % JSON_A)
    async with answering(answer(packed, headers=EVENTS + "content-encoding: gzip\r\n")) as stub:
        assert await events_of(an_http(stub.url)) == [A]


async def test_a_server_that_says_nothing_is_not_waited_for() -> None:
    left = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()  # until the caller has gone
        left.set()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()
        with pytest.raises(errors.TimedOut, match="no answer in time"):
            await events_of(an_http(f"http://{host}:{port}", timeout=0.05))
        await left.wait()


@pytest.mark.parametrize("url", ["ftp://e.test", "e.test/v1", "http://", "http://e.test:notaport", "http://\x00"])
async def test_an_address_that_cannot_be_called_is_an_invalid_value(url: str) -> None:
    with pytest.raises(errors.InvalidValue, match="base URL"):
        await events_of(an_http(url))


@pytest.mark.parametrize("key", ["ключ", "sec\nret", "secret\r\nx: y"])
async def test_a_key_that_no_header_can_carry_is_an_invalid_value_and_not_shown(key: str) -> None:
    async with answering() as stub:
        with pytest.raises(errors.InvalidValue) as caught:
            await events_of(an_http(stub.url, key=key))

    assert str(caught.value) == "the header x-key holds characters that no header can carry"


def test_a_client_goes_on_in_another_event_loop() -> None:
    async def ask(http: list[Http]) -> Any:
        async with answering(answer(b'{"ok":1}')) as stub:
            http[0].base_url = stub.url
            found = await http[0].json("GET", "/x")
            await http[0].aclose()
            return found

    kept = [an_http("http://127.0.0.1")]

    assert [asyncio.run(ask(kept)) for _ in range(2)] == [{"ok": 1}, {"ok": 1}]


def test_a_client_that_was_not_closed_goes_on_in_another_event_loop() -> None:
    kept = an_http("http://127.0.0.1")

    async def ask() -> Any:
        async with answering(answer(b'{"ok":1}')) as stub:
            kept.base_url = stub.url
            return await kept.json("GET", "/x")

    assert [asyncio.run(ask()) for _ in range(2)] == [{"ok": 1}, {"ok": 1}]


@pytest.fixture
def without_proxies(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    return monkeypatch


async def first_line_at(proxy: Stub, url: str) -> str:
    http = an_http(url)
    try:
        await http.json("GET", "/v1/x")
    except errors.ConnectionLost:
        pass  # the proxy lets nothing through
    finally:
        await http.aclose()
    return proxy.heads[0].partition("\r\n")[0]


async def test_plain_requests_go_through_the_proxy_of_the_environment(without_proxies: pytest.MonkeyPatch) -> None:
    async with answering(answer(b"{}")) as proxy:
        without_proxies.setenv("HTTP_PROXY", proxy.url)

        assert await first_line_at(proxy, "http://models.test") == "GET http://models.test/v1/x HTTP/1.1"


async def test_secure_requests_ask_the_proxy_of_the_environment_for_a_tunnel(
    without_proxies: pytest.MonkeyPatch,
) -> None:
    async with answering(answer(b"", status="403 Forbidden")) as proxy:
        without_proxies.setenv("HTTPS_PROXY", proxy.url)

        assert await first_line_at(proxy, "https://models.test") == "CONNECT models.test:443 HTTP/1.1"


async def test_hosts_that_need_no_proxy_are_called_directly(without_proxies: pytest.MonkeyPatch) -> None:
    async with answering() as proxy, answering(answer(b"{}")) as stub:
        without_proxies.setenv("HTTP_PROXY", proxy.url)
        without_proxies.setenv("NO_PROXY", "127.0.0.1")

        assert await first_line_at(stub, stub.url) == "GET /v1/x HTTP/1.1"
        assert proxy.heads == []


async def test_spaces_around_a_key_are_not_part_of_it() -> None:
    async with answering(answer(b'{"ok":1}')) as stub:
        http = an_http(stub.url, key=" secret ")
        await http.json("GET", "/x")
        await http.aclose()

        assert "x-key: secret\r\n" in stub.heads[0]


async def test_a_key_that_the_service_repeats_in_its_error_is_not_shown() -> None:
    async with answering(answer(b"you sent secret-key-1", status="400 Bad Request")) as stub:
        with pytest.raises(errors.RequestRefused) as caught:
            await events_of(an_http(stub.url, key="secret-key-1"))

    assert "secret-key-1" not in str(caught.value)
    assert "you sent ***" in str(caught.value)


async def test_what_may_be_secret_in_an_address_is_not_shown() -> None:
    http = an_http("http://user:password@127.0.0.1:9/path?key=secret")

    with pytest.raises(errors.ConnectionLost) as caught:
        await http.json("GET", "/x")

    assert "http://127.0.0.1:9/path" in str(caught.value)
    assert "password" not in str(caught.value)
    assert "secret" not in str(caught.value)


async def test_another_host_is_not_told_the_key() -> None:
    async with answering(answer(b"{}")) as stub:
        http = an_http("http://127.0.0.1:1", key="secret")
        await http.send("POST", f"{stub.url}/upload", body=b"data")
        await http.aclose()

        assert "secret" not in stub.heads[0]


@pytest.mark.parametrize("url", ["http://127.0.0.1:99999", "http://["])
def test_an_address_that_is_none_is_said_at_once(url: str) -> None:
    with pytest.raises(errors.InvalidValue, match="the base URL is not one that can be called"):
        an_http(url)


async def test_a_line_of_megabytes_is_read_in_good_time() -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield b'data: {"text":"'
        for _ in range(2_000):
            yield b"x" * 10_000
        yield b'"}\n\n'

    [event] = [data async for data in read_events(chunks())]

    assert len(event) == 20_000_011


def a_body(size: int) -> bytes:
    return orjson.dumps({"text": "x" * (size - len('{"text":""}'))})


def packed(body: bytes, encoding: str) -> bytes:
    """An answer whose body is unpacked by what *encoding* says."""
    for layer in filter(None, encoding.split(", ")):
        body = gzip.compress(body) if layer == "gzip" else zlib.compress(body)
    return answer(body, headers=f"content-encoding: {encoding}\r\n" if encoding else "")


@pytest.mark.parametrize("encoding", ["", "gzip", "deflate", "gzip, gzip", "deflate, gzip"])
async def test_an_answer_is_read_up_to_a_limit_of_what_it_unpacks_to(encoding: str) -> None:
    fits, bomb = packed(a_body(5000), encoding), packed(a_body(20_000_000), encoding)
    async with answering(fits, bomb, bomb) as stub:
        http = an_http(stub.url, limit=5000)
        found = await http.json("GET", "/x")
        with pytest.raises(ResponseTooLarge) as whole:
            await http.json("GET", "/x")
        with pytest.raises(ResponseTooLarge) as stream:
            await events_of(http)

    assert found == orjson.loads(a_body(5000))
    assert str(whole.value) == str(stream.value) == f"{stub.url} sent more than the 5000 bytes that are read"


async def test_an_answer_as_long_as_it_likes_is_left_in_the_middle() -> None:
    left = asyncio.Event()

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        try:
            while True:
                writer.write(b"x" * 100_000)
                await writer.drain()
        except ConnectionError:
            left.set()
        finally:
            writer.close()

    async with await asyncio.start_server(endless, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        http = an_http(f"http://{host}:{port}", limit=1_000_000)
        with pytest.raises(ResponseTooLarge):
            await http.send("GET", "/x")
        await left.wait()
        await http.aclose()


async def test_of_a_long_refusal_the_beginning_is_read() -> None:
    long = gzip.compress(b"no" + b"!" * 20_000_000)
    async with answering(answer(long, status="400 Bad Request", headers="content-encoding: gzip\r\n")) as stub:
        with pytest.raises(errors.RequestRefused) as caught:
            await events_of(an_http(stub.url))

    assert str(caught.value) == f"400 no{'!' * (MAX_REFUSAL_BYTES - 2)} None m"


async def test_what_was_read_keeps_its_headers() -> None:
    headers = "content-encoding: gzip\r\nx-goog-upload-url: /there\r\n"
    async with answering(answer(gzip.compress(b'{"ok":1}'), headers=headers)) as stub:
        http = an_http(stub.url)
        response = await http.send("GET", "/x")
        await http.aclose()

    assert (response.status_code, response.json(), response.headers["x-goog-upload-url"]) == (200, {"ok": 1}, "/there")


@pytest.mark.parametrize(
    ("stated", "known"),
    [
        ("60", 60.0),
        ("86400", errors.LONGEST_WAIT),
        ("86401", None),
        ("9" * 400, None),
        ("inf", None),
        ("nan", None),
        ("-1", None),
    ],
)
async def test_a_wait_that_nobody_would_wait_is_an_unknown_one(stated: str, known: float | None) -> None:
    def limited(_: int, __: bytes, headers: Mapping[str, str], ___: str) -> errors.TertuliaError:
        return errors.RateLimited("slow down", retry_after=float(headers["retry-after"]))

    refusal = answer(b"", status="429 Too Many Requests", headers=f"retry-after: {stated}\r\n")
    async with answering(refusal) as stub:
        http = Http(stub.url, headers=dict, decode_error=limited)
        with pytest.raises(errors.RateLimited) as caught:
            await http.send("GET", "/x")
        await http.aclose()

    assert caught.value.retry_after == known


async def test_a_key_that_the_service_repeats_in_a_good_answer_is_hidden() -> None:
    async with answering(answer(b'{"text": "your key is secret-key-\\u0031\\u0032"}')) as stub:
        http = an_http(stub.url, key="secret-key-12")

        assert await http.json("GET", "/x") == {"text": "your key is ***"}
        await http.aclose()


async def test_a_key_that_the_service_repeats_in_a_stream_is_hidden() -> None:
    async with answering(answer(b'data: {"text": "secret-key-12"}\n\n')) as stub:
        assert await events_of(an_http(stub.url, key="secret-key-12")) == [{"text": "***"}]


async def test_a_key_escaped_in_an_error_is_hidden() -> None:
    async with answering(answer(b'{"error": "bad key secret\\/key-12, secret%2Fkey-12"}', status="400 Bad")) as stub:
        with pytest.raises(errors.RequestRefused) as caught:
            await events_of(an_http(stub.url, key="secret/key-12"))

    assert "bad key ***, ***" in str(caught.value)
