"""The page over real sockets: its token, its session, what stands before every request, and its headers."""

import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from platforms.web.pages import SAME_ORIGIN, a_page
from tertulia.config import WebConfig
from tertulia.errors import InvalidValue
from tertulia.platforms.web.guard import HEADERS, POLICY
from tertulia.platforms.web.page_address import page_address

STRANGE = {"Origin": "https://evil.example"}


async def test_a_token_becomes_a_cookie_that_scripts_and_other_sites_never_have(tmp_path: Path) -> None:
    async with a_page(tmp_path) as served:
        before = await served.client.get("/api/session")
        wrong = await served.client.post("/api/session", json={"token": "x" * 43}, headers=SAME_ORIGIN)
        begun = await served.log_in()
        after = await served.client.get("/api/session")

    assert (before.status_code, wrong.status_code, begun.status_code) == (401, 401, 200)
    cookie = begun.headers["set-cookie"].split("; ")
    assert cookie[1:] == ["HttpOnly", "Max-Age=604800", "Path=/", "SameSite=strict"]
    shown = after.json()
    assert shown.pop("who").startswith("owner ")
    assert shown == {
        "role": "owner",
        "can_write": True,
        "agent": "Gryag",
        "version": shown["version"],
        "language": "en",
    }


async def test_a_logout_ends_the_session_of_its_cookie(tmp_path: Path) -> None:
    async with a_page(tmp_path) as served:
        begun = await served.log_in("reader")
        cookie = begun.headers["set-cookie"].partition(";")[0]
        ended = await served.client.delete("/api/session", headers=SAME_ORIGIN)
        again = await served.client.get("/api/session", headers={"cookie": cookie})

    assert (ended.status_code, again.status_code) == (204, 401)


async def test_who_removes_the_file_of_tokens_ends_all_sessions(tmp_path: Path) -> None:
    async with a_page(tmp_path) as served:
        await served.log_in()
        served.page.token_file.unlink()
        answered = await served.client.get("/api/session")
        with_old = await served.log_in()

        assert (answered.status_code, with_old.status_code) == (401, 401)
        assert served.page.token_file.is_file()


async def test_the_tokens_are_in_a_file_that_only_its_owner_may_read_and_stay_the_same(tmp_path: Path) -> None:
    async with a_page(tmp_path) as served:
        first, file = dict(served.page.links), served.page.token_file
    async with a_page(tmp_path) as served:
        second = dict(served.page.links)

    def tokens(links: dict[Any, str]) -> list[str]:
        return [link.partition("#")[2] for link in links.values()]

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.parent == tmp_path
    assert tokens(first) == tokens(second)
    assert len(set(tokens(first))) == 2


@pytest.mark.parametrize("spoiled", ["mode", "link", "content"])
async def test_tokens_that_others_could_read_or_choose_are_replaced(tmp_path: Path, spoiled: str) -> None:
    async with a_page(tmp_path) as served:
        known, file = served.page.links, served.page.token_file
    if spoiled == "mode":
        file.chmod(0o644)
    elif spoiled == "link":
        elsewhere = tmp_path / "elsewhere"
        file.rename(elsewhere)
        file.symlink_to(elsewhere)
    else:
        file.write_text("owner short\nreader short\n")
    async with a_page(tmp_path) as served:
        assert set(served.page.links.values()).isdisjoint(known.values())
        assert not file.is_symlink()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


async def test_a_token_is_taken_in_the_head_but_never_in_the_address(tmp_path: Path) -> None:
    async with a_page(tmp_path) as served:
        in_head = await served.client.get("/api/session", headers=served.bearer("reader"))
        in_query = await served.client.get("/api/session", params={"token": served.token()})

    assert in_head.json()["role"] == "reader"
    assert in_query.status_code == 401
    assert "#token=" in served.page.links["owner"]


async def test_every_answer_has_the_headers_that_keep_it_from_doing_anything(tmp_path: Path) -> None:
    paths = ("/", "/p/KEY/strata", "/static/app.js", "/static/none.js", "/api/session", "/api/nothing", "/health")
    async with a_page(tmp_path) as served:
        answers = {path: await served.client.get(path) for path in paths}
        refused = await served.client.get("/", headers={"host": "evil.example"})

    for answered in (*answers.values(), refused):
        named = {name: answered.headers.get(name) for name in HEADERS}
        cached = named.pop("cache-control")
        assert named == {name: value for name, value in HEADERS.items() if name != "cache-control"}, answered.url
        assert cached in ("no-store", "no-cache")
        assert "server" not in answered.headers
    assert {path: one.status_code for path, one in answers.items()} == {
        "/": 200,
        "/p/KEY/strata": 200,
        "/static/app.js": 200,
        "/static/none.js": 404,
        "/api/session": 401,
        "/api/nothing": 404,
        "/health": 200,
    }
    assert answers["/health"].text == "ok"


async def test_metrics_need_the_token(tmp_path: Path) -> None:
    async with a_page(tmp_path) as served:
        without = await served.client.get("/metrics")
        measured = await served.client.get("/metrics", headers=served.bearer("reader"))

    assert (without.status_code, measured.status_code) == (401, 200)
    assert measured.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert "tertulia_messages_waiting 0\n" in measured.text


def test_the_policy_lets_no_text_become_a_script() -> None:
    assert POLICY == (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )


HOSTS = {
    "evil.example": 421,
    "evil.example:80": 421,
    "127.0.0.1.evil.example": 421,
    "localhost:1": 200,
    "[::1]:8765": 200,
    "bot.example.org": 200,
    "BOT.example.org:443": 200,
}


async def test_only_our_own_names_are_answered(tmp_path: Path) -> None:
    async with a_page(tmp_path, hosts=("bot.example.org",)) as served:
        statuses = {host: (await served.client.get("/", headers={"host": host})).status_code for host in HOSTS}

    assert statuses == HOSTS


async def test_a_write_comes_from_our_own_page_or_does_nothing(tmp_path: Path) -> None:
    async with a_page(tmp_path) as served:
        await served.log_in()
        own = served.page.url
        sent: dict[str, tuple[dict[str, str], int]] = {
            "nothing said": ({}, 403),
            "another site": ({"sec-fetch-site": "cross-site"}, 403),
            "another name of this site": ({"sec-fetch-site": "same-site"}, 403),
            "an address typed in": ({"sec-fetch-site": "none"}, 403),
            "another origin": (STRANGE, 403),
            "another origin that claims to be ours": ({**STRANGE, **SAME_ORIGIN}, 403),
            "another port": ({"origin": "http://127.0.0.1:1"}, 403),
            "another scheme": ({"origin": own.replace("http", "https")}, 403),
            "an opaque origin": ({"origin": "null"}, 403),
            "ours": ({"origin": own}, 204),
        }
        found = {
            name: (await served.client.delete("/api/session", headers=headers)).status_code
            for name, (headers, _) in sent.items()
        }

    assert found == {name: status for name, (_, status) in sent.items()}


async def test_a_foreign_page_reads_nothing(tmp_path: Path) -> None:
    async with a_page(tmp_path) as served:
        await served.log_in()
        found = {
            site: (await served.client.get("/api/session", headers={"sec-fetch-site": site})).status_code
            for site in ("cross-site", "same-site", "same-origin", "none")
        }

    assert found == {"cross-site": 403, "same-site": 403, "same-origin": 200, "none": 200}


BODIES: dict[str, tuple[dict[str, Any], int]] = {
    "no JSON": ({"content": b"{"}, 400),
    "a form": ({"data": {"token": "x"}}, 415),
    "a text": ({"content": b'{"token": "x"}', "headers": {"content-type": "text/plain"}}, 415),
    "too large": ({"content": b'{"token": "' + b"x" * 70_000 + b'"}'}, 413),
    "another field": ({"json": {"key": "x"}}, 400),
    "another type": ({"json": {"token": 7}}, 400),
}


@pytest.mark.parametrize(("request_", "status"), BODIES.values(), ids=BODIES)
async def test_a_body_that_is_none_is_refused(tmp_path: Path, request_: dict[str, Any], status: int) -> None:
    headers = {"content-type": "application/json"} if "content" in request_ else {}
    headers = {**SAME_ORIGIN, **headers, **request_.pop("headers", {})}
    async with a_page(tmp_path) as served:
        answered = await served.client.post("/api/session", headers=headers, **request_)

    assert answered.status_code == status
    assert list(answered.json()) == ["error"]


async def test_it_works_below_a_path(tmp_path: Path) -> None:
    async with a_page(tmp_path, path="/bot/") as served:
        shell = await served.client.get("/p/KEY")
        script = await served.client.get("/static/app.js")
        begun = await served.log_in()
        outside = await served.client.get(f"{served.page.url.removesuffix('/bot')}/api/session")

    assert served.page.url.endswith("/bot")
    assert "/bot/#token=" in served.page.links["owner"]
    assert ('src="/bot/static/app.js"' in shell.text, script.status_code) == (True, 200)
    assert "Path=/bot;" in begun.headers["set-cookie"]
    assert outside.status_code == 404


async def test_tls_makes_its_cookie_secure(tmp_path: Path) -> None:
    certificate, key = a_certificate(tmp_path)
    async with a_page(tmp_path, certificate=certificate, key=key) as served:
        begun = await served.log_in()

    assert served.page.url.startswith("https://127.0.0.1:")
    assert begun.status_code == 200
    assert "; Secure" in begun.headers["set-cookie"]


async def test_with_a_named_proxy_nobody_else_may_ask(tmp_path: Path) -> None:
    async with a_page(tmp_path, proxy=("10.0.0.5",), hosts=("bot.example.org",)) as served:
        foreign = await served.client.get("/api/session", headers={"x-forwarded-for": "10.0.0.5"})
        health = await served.client.get("/health")

    assert (foreign.status_code, health.status_code) == (403, 200)
    assert served.page.url == "https://bot.example.org"


async def test_behind_a_proxy_the_page_is_asked_for_by_https(tmp_path: Path) -> None:
    async with a_page(tmp_path, proxy=("127.0.0.0/8",), hosts=("bot.example.org",)) as served:
        host = {"host": "bot.example.org", "origin": "https://bot.example.org"}
        begun = await served.client.post("/api/session", json={"token": served.token()}, headers=host)
        plain = await served.client.post(
            "/api/session", json={"token": served.token()}, headers={**host, "origin": "http://bot.example.org"}
        )

    assert (begun.status_code, plain.status_code) == (200, 403)
    assert "; Secure" in begun.headers["set-cookie"]


ANYWHERE = "0.0.0.0"  # noqa: S104 (it is refused)
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "all addresses, in plain": ({"host": ANYWHERE}, "can be reached by others"),
    "all addresses of IPv6": ({"host": "::"}, "can be reached by others"),
    "a name": ({"host": "bot.example.org"}, "can be reached by others"),
    "no key": ({"certificate": "a.pem"}, "go together"),
    "no name": ({"host": ANYWHERE, "proxy": ("10.0.0.5",)}, "hosts must name"),
    "a name with a scheme": ({"hosts": ("https://bot.example.org",)}, "not 'https://bot.example.org'"),
    "a proxy by name": ({"proxy": ("nginx",)}, "proxy must be addresses"),
    "a path that leaves": ({"path": "/a b"}, "path is where"),
}


@pytest.mark.parametrize(("config", "why"), REFUSED.values(), ids=REFUSED)
def test_what_would_not_be_safe_is_refused_in_one_line(config: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidValue, match=why) as refused:
        page_address(WebConfig(**config))

    assert "\n" not in str(refused.value)


async def test_a_port_that_is_taken_and_a_certificate_that_is_missing_are_one_line(tmp_path: Path) -> None:
    async with a_page(tmp_path) as served:
        taken = int(served.page.url.rpartition(":")[2])
        with pytest.raises(
            InvalidValue, match=f"the page cannot listen at 127.0.0.1:{taken}: the port is in use; name another"
        ):
            async with a_page(tmp_path, store=served.store, port=taken):
                pass
        (tmp_path / "odd.pem").write_text("odd")
        for name in ("none.pem", "odd.pem"):
            with pytest.raises(InvalidValue, match=f"certificate .*{name} with key"):
                async with a_page(tmp_path, store=served.store, certificate=name, key=name):
                    pass


def a_certificate(folder: Path) -> tuple[str, str]:
    """Make a certificate for 127.0.0.1 and its key."""
    made = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "certificate.pem"), "-days", "1", "-nodes"]
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-subj",
            "/CN=page",
            *made,
        ],
        check=True,
        capture_output=True,
    )
    return "certificate.pem", "key.pem"
