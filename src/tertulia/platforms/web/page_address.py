"""The address of the page: where it listens, by which names it may be asked for, and who may forward to it. Pure."""

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from msgspec import Struct

from tertulia.config import WebConfig
from tertulia.errors import InvalidValue

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
ANY = ("0.0.0.0", "::")  # noqa: S104 (what is looked for, not what is bound)
_PATH = re.compile(r"(?:/[\w.~-]+)*")
_NAME = re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+)*", re.ASCII)


class PageAddress(Struct, frozen=True, kw_only=True):
    """Where the page is."""

    host: str  # where it listens
    port: int
    path: str  # before all its own; empty, or "/bot"
    names: frozenset[str]  # by which it may be asked for, without a port
    proxies: tuple[IPv4Network | IPv6Network, ...]  # who may ask at all; empty: everybody who reaches it
    tls: bool  # that it speaks itself

    @property
    def is_secure(self) -> bool:
        """Whether browsers reach it by https."""
        return self.tls or bool(self.proxies)

    @property
    def scheme(self) -> str:
        return "https" if self.is_secure else "http"

    @property
    def cookie(self) -> str:
        """The name of the cookie: browsers tell neither ports nor paths of a host apart by themselves."""
        return f"tertulia-{self.port}{self.path.replace('/', '-')}"

    @property
    def url(self) -> str:
        """What people open, without a slash at the end."""
        public = sorted(self.names.difference(LOOPBACK))
        if self.proxies and public:
            return f"https://{public[0]}{self.path}"
        host = _bracketed(self.host) if _is_loopback(self.host) or not public else public[0]
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}{self.path}"

    def forwards(self, client: str) -> bool:
        """Return whether a client may ask: with named proxies they alone."""
        found = _address(client)
        return not self.proxies or (found is not None and any(found in network for network in self.proxies))


def page_address(config: WebConfig) -> PageAddress:
    """Check the table `[web]`; raise `InvalidValue` with one line for what would not be safe."""
    if bool(config.certificate) != bool(config.key):
        raise InvalidValue("certificate and key go together: the files of a TLS certificate and of its private key")
    path = config.path.rstrip("/")
    if not _PATH.fullmatch(path):
        raise InvalidValue(f'path is where the page is at its host, as "/bot", not {config.path!r}')
    host = config.host.strip("[]").lower()
    tls, proxies = bool(config.certificate), tuple(map(_network, config.proxy))
    if not _is_loopback(host) and not tls and not proxies:
        raise InvalidValue(
            f"host {config.host} can be reached by others: give certificate and key for TLS, or name in proxy the "
            "address of the proxy that speaks it"
        )
    if faulty := [name for name in config.hosts if not _NAME.fullmatch(name.lower()) and not _is_address(name)]:
        raise InvalidValue(f'hosts are names without scheme and port, as "bot.example.org", not {faulty[0]!r}')
    names = {_bracketed(name.lower()) for name in config.hosts}
    if not _is_loopback(host) and host not in ANY:
        names.add(_bracketed(host))
    if not names and host in ANY:
        raise InvalidValue('hosts must name how people reach the page, as ["bot.example.org"]')
    return PageAddress(
        host="127.0.0.1" if host == "localhost" else host,
        port=config.port,
        path=path,
        names=frozenset({*names, *LOOPBACK}),  # a foreign name cannot pretend to be an address
        proxies=proxies,
        tls=tls,
    )


def _bracketed(name: str) -> str:
    """`[::1]`, as `Host` has it"""
    return f"[{name}]" if ":" in name and name[0] != "[" else name


def _network(given: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(given, strict=False)
    except ValueError:
        raise InvalidValue(f'proxy must be addresses such as "10.0.0.5" or "172.17.0.0/16", not {given!r}') from None


def _address(given: str) -> IPv4Address | IPv6Address | None:
    try:
        found = ip_address(given)
    except ValueError:
        return None
    return (found.ipv4_mapped if isinstance(found, IPv6Address) else None) or found


def _is_address(name: str) -> bool:
    return _address(name.strip("[]")) is not None


def _is_loopback(host: str) -> bool:
    found = _address(host)
    return host == "localhost" or (found is not None and found.is_loopback)
