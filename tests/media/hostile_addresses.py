"""Hostile addresses by the thousand: nothing is fetched that must not be. `make hostile-addresses` runs 10,000.

Each case is a URL, the answers of the name servers, the redirects of a public server, and whether the public file may
be fetched at all. The fetcher and its checks are the real ones; see `web.py` for what is moved to loopback. Every sixth
case or so is one that must succeed, so that a fetcher that refuses everything fails too.
"""

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_network
from random import Random

from msgspec import Struct

from media.web import FILE, NAME, PUBLIC, Web, redirect
from tertulia.errors import MediaUnavailable

IPV4 = [ip_network(net) for net in """
    0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 100.100.100.200/32 127.0.0.0/8 127.0.0.1/32 168.63.129.16/32 169.254.0.0/16
    169.254.169.254/32 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15
    198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 255.255.255.255/32
""".split()]  # fmt: skip
IPV6 = [IPv6Network(net) for net in """
    ::/128 ::1/128 64:ff9b:1::/48 100::/64 2001::/32 2001:2::/48 2001:10::/28 2001:db8::/32 2002::/16 3fff::/20
    5f00::/16 fc00::/7 fd00:ec2::254/128 fd20:ce::254/128 fe80::/10 fec0::/10 ff00::/8
""".split()]  # fmt: skip
BAD_PORTS = (
    0,
    -1,
    65536,
    10**9,
    1,
    21,
    22,
    23,
    25,
    53,
    110,
    111,
    143,
    389,
    445,
    465,
    587,
    993,
    2049,
    2375,
    3306,
    5432,
    6000,
    6379,
    9200,
    11211,
)
SCHEMES = ("file", "ftp", "gopher", "data", "javascript", "dict", "ldap", "unix", "http+unix", "ws", "jar:http")
CONTROLS = ("ordinary", "redirected", "rebinding")  # the kinds that must be fetched, and from the public server


class Case(Struct, frozen=True):
    kind: str
    url: str
    names: dict[str, Sequence[Sequence[str]]] = {}
    pages: dict[str, bytes] = {}


class Report(Struct, frozen=True):
    cases: Counter[str]
    failures: list[str]  # what must not have happened, with its case
    connections: int  # to public addresses
    seconds: float


def cases(chance: Random, number: int, port: int) -> Iterator[Case]:
    """Yield so many cases; *port* is that of the internal server."""
    makers = (
        _literal,
        _named,
        _mixed,
        _redirected_inside,
        _redirected_inside,
        _bad_port,
        _bad_scheme,
        _userinfo,
        _rebinding_redirect,
    )
    for index in range(number):
        if index % 6 == 0:
            yield _control(chance, index, port)
        else:
            yield chance.choice(makers)(chance, index, port)


def _literal(chance: Random, index: int, port: int) -> Case:
    return Case("literal", f"{_scheme(chance)}://{_hostile_host(chance)}:{_port(chance, port)}/{index}")


def _named(chance: Random, index: int, port: int) -> Case:
    host = f"h{index}.example"
    addresses = [_hostile_address(chance) for _ in range(chance.randint(0, 3))]
    return Case("named", f"http://{_spelled_name(chance, host)}:{_port(chance, port)}/", {host: [addresses]})


def _mixed(chance: Random, index: int, port: int) -> Case:
    host = f"h{index}.example"
    addresses = [*chance.sample(PUBLIC, chance.randint(1, 3)), _hostile_address(chance)]
    chance.shuffle(addresses)
    return Case("mixed", f"http://{host}:{_port(chance, port)}/", {host: [addresses]})


def _redirected_inside(chance: Random, index: int, port: int) -> Case:
    """One to five redirects of the public server, the last of which leads inside."""
    inner = chance.choice((_literal, _named, _mixed, _bad_port, _bad_scheme, _userinfo))(chance, index, port)
    last = inner.url.removeprefix("http:") if chance.random() < 0.2 else inner.url
    steps = chance.randint(1, 5)
    pages = {f"/{index}-{step}": redirect(f"/{index}-{step + 1}", _status(chance)) for step in range(steps - 1)}
    pages[f"/{index}-{steps - 1}"] = redirect(last.encode().decode("latin-1"), _status(chance))
    return Case(f"redirect to {inner.kind}", f"http://{NAME}/{index}-0", inner.names, pages)


def _rebinding_redirect(chance: Random, index: int, port: int) -> Case:
    """A host that is public first, and redirects to itself when it no longer is."""
    host = f"h{index}.example"
    pages = {f"/{index}": redirect(f"http://{host}:{port}/{index}", _status(chance))}
    return Case(
        "rebinding after a redirect", f"http://{host}/{index}", {host: [PUBLIC[:1], [_hostile_address(chance)]]}, pages
    )


def _bad_port(chance: Random, index: int, port: int) -> Case:
    return Case("port", f"http://{NAME}:{chance.choice(BAD_PORTS)}/{index}")


def _bad_scheme(chance: Random, index: int, port: int) -> Case:
    separator = chance.choice(("://", ":", ":///", ":\\\\"))
    return Case("scheme", f"{chance.choice(SCHEMES)}{separator}127.0.0.1:{port}/{index}")


def _userinfo(chance: Random, index: int, port: int) -> Case:
    first, second = chance.sample((NAME, f"127.0.0.1:{port}"), 2)
    between = chance.choice(("@", ":x@", "%40@", "\\@", "#@", ":80@", "%00@", " @"))
    url = f"http://{first}{between}{second}/{index}"
    if between == "#@" and first == NAME:
        return _userinfo(chance, index, port)  # an ordinary address with a fragment
    return Case("userinfo", url)


def _control(chance: Random, index: int, port: int) -> Case:
    kind = chance.choice(CONTROLS)
    host = f"h{index}.example"
    addresses = chance.sample(PUBLIC, chance.randint(1, 3))
    url = f"http://{_spelled_name(chance, host)}:{chance.choice((80, 1024, 8080, 8443, port))}/{index}"
    if kind == "redirected":
        pages = {f"/{index}": redirect(f"http://{NAME}/{index}-end", _status(chance))}
        return Case(kind, url, {host: [addresses]}, pages)
    if kind == "rebinding":
        return Case(kind, url, {host: [addresses, [_hostile_address(chance)]]})
    return Case(kind, url, {host: [addresses]})


def _scheme(chance: Random) -> str:
    return chance.choice(("http", "http", "HTTP", "https", "hTTps"))


def _status(chance: Random) -> int:
    return chance.choice((301, 302, 303, 307, 308))


def _port(chance: Random, port: int) -> int:
    return port if chance.random() < 0.8 else chance.choice((80, 443, 8080))


def _spelled_name(chance: Random, host: str) -> str:
    return chance.choice((host, host.upper(), f"{host}.", host.replace(".", "。")))


def _hostile_address(chance: Random) -> str:
    """An address that must be refused, as a name server or the system writes it."""
    four = _hostile_ipv4(chance)
    if chance.random() < 0.5:
        return str(four)
    six = _hostile_ipv6(chance, four)
    return f"{six}%{chance.choice(('eth0', 'lo', '1'))}" if chance.random() < 0.2 else str(six)


def _hostile_host(chance: Random) -> str:
    """The same in a URL, in one of many spellings."""
    four = _hostile_ipv4(chance)
    if chance.random() < 0.6:
        return _spelled_ipv4(chance, four)
    return _spelled_ipv6(chance, _hostile_ipv6(chance, four), four)


def _hostile_ipv4(chance: Random) -> IPv4Address:
    network = chance.choice(IPV4)
    return IPv4Address(int(network.network_address) + chance.randrange(network.num_addresses))


def _hostile_ipv6(chance: Random, four: IPv4Address) -> IPv6Address:
    number, rest = int(four), chance.getrandbits(64)
    public = int(IPv4Address(PUBLIC[0]))
    forms: tuple[Callable[[], int], ...] = (
        lambda: 0xFFFF << 32 | chance.choice((number, public)),  # mapped
        lambda: chance.choice((number, public)),  # compatible
        lambda: 0xFFFF << 48 | number,  # translated
        lambda: 0x64FF9B << 96 | number,  # NAT64
        lambda: 0x64FF9B0001 << 80 | number,  # local NAT64
        lambda: 0x2002 << 112 | chance.choice((number, public)) << 80 | rest,  # 6to4
        lambda: 0x20010000 << 96 | number << 64 | rest,  # Teredo
    )
    if chance.random() < 0.5:
        return IPv6Address(chance.choice(forms)())
    network = chance.choice(IPV6)
    return IPv6Address(int(network.network_address) + chance.randrange(network.num_addresses))


def _spelled_ipv4(chance: Random, address: IPv4Address) -> str:
    number, (a, b, c, d) = int(address), address.packed
    wide = str.maketrans("0123456789.", "０１２３４５６７８９．")
    digits = [chance.choice((str(part), hex(part), f"0{part:o}", f"0x{part:08X}")) for part in (a, b, c, d)]
    return chance.choice(
        (
            str(address),
            f"{address}.",
            str(number),
            hex(number),
            f"0{number:o}",
            f"{a}.{number & 0xFFFFFF}",
            f"{a}.{b}.{number & 0xFFFF}",
            f"{hex(a)}.{b}.{hex(number & 0xFFFF)}",
            ".".join(digits),
            str(address).replace(".", chance.choice("。．｡")),
            str(address).translate(wide),
            str(address).replace("1", "①"),
            str(address).replace(".", "%2e"),
            f"%{ord(str(address)[0]):02x}{str(address)[1:]}",
            f"{address}\t",
        )
    )


def _spelled_ipv6(chance: Random, address: IPv6Address, four: IPv4Address) -> str:
    return chance.choice(
        (
            f"[{address}]",
            f"[{address.exploded}]",
            f"[{address}]".upper(),
            f"[{address}%25eth0]",
            f"[{address}%lo]",
            f"[::ffff:{four}]",
            f"[::{four}]",
            f"[64:ff9b::{four}]",
            f"[{address}",
            str(address),
        )
    )


async def run(number: int, seed: int) -> Report:
    """Fetch all the cases, and report what must not have happened."""
    chance = Random(seed)  # noqa: S311 (nobody has to guess it)
    done: Counter[str] = Counter()
    failures: list[str] = []
    began = time.monotonic()
    async with Web() as web:
        for case in cases(chance, number, web.internal.port):
            done[case.kind] += 1
            failures += [f"{what}: {case}" for what in await _problems(web, case)]
        return Report(done, failures, len(web.public.requests), time.monotonic() - began)


async def _problems(web: Web, case: Case) -> list[str]:
    before, connected = web.internal.connections, len(web.connected)
    web.names = {NAME: [PUBLIC[:1]], **case.names}
    web.public.answers = {**case.pages}
    web.resolved.clear()
    problems = []
    try:
        fetched = await web.fetcher(timeout=20).fetch(case.url, limit=1_000)
        if case.kind not in CONTROLS:
            problems.append("something was fetched")
        elif fetched.data != FILE:
            problems.append("something else was fetched")
    except MediaUnavailable as error:
        if case.kind in CONTROLS:
            problems.append(f"a public file was refused ({error})")
        secrets = [one.partition("%")[0] for answers in case.names.values() for some in answers for one in some]
        if "\n" in str(error) or any(one in str(error) for one in secrets):
            problems.append(f"the error says too much ({error})")
    if any(one not in PUBLIC for one in web.connected[connected:]):
        problems.append(f"connected to {web.connected[connected:]}")
    if web.internal.connections != before:
        problems.append("the internal server was reached")
    return problems


def main(number: int, seed: int = 1) -> int:
    report = asyncio.run(run(number, seed))
    for kind, count in sorted(report.cases.items()):
        print(f"{count:>6,}  {kind}{' (fetched, as it should be)' if kind in CONTROLS else ''}")
    print(f"{number:>6,}  addresses in {report.seconds:.0f} s, {report.connections:,} connections to the public server")
    print(f"{len(report.failures):>6,}  of them fetched, reached or told what must not be")
    for failure in report.failures[:20]:
        print(f"  {failure}")
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
