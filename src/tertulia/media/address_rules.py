"""Rules about addresses: which are public, which ports files are fetched from. Pure.

The tables follow IANA's registries of special-purpose addresses. `ipaddress.is_global` does not decide: it depends on
the version of Python, and takes multicast, 6to4, NAT64, IPv4-compatible and site-local addresses for global.
"""

import re
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import quote

from msgspec import Struct

from tertulia.errors import InvalidValue

_REFUSED_IPV4 = (
    "0.0.0.0/8",  # this network; Linux takes it for this machine
    "10.0.0.0/8",  # private
    "100.64.0.0/10",  # shared by the customers of a provider; 100.100.100.200 is Alibaba's metadata
    "127.0.0.0/8",  # loopback
    "168.63.129.16/32",  # Azure's platform service, in the middle of a public block
    "169.254.0.0/16",  # link-local; 169.254.169.254 is the metadata of most clouds
    "172.16.0.0/12",  # private
    "192.0.0.0/24",  # protocols; 192.0.0.192 is Oracle's metadata
    "192.0.2.0/24",  # documentation
    "192.31.196.0/24",  # AS112, which answers for private names
    "192.52.193.0/24",  # multicast tunnels
    "192.88.99.0/24",  # 6to4 relays, deprecated
    "192.168.0.0/16",  # private
    "192.175.48.0/24",  # AS112
    "198.18.0.0/15",  # benchmarks
    "198.51.100.0/24",  # documentation
    "203.0.113.0/24",  # documentation
    "224.0.0.0/4",  # multicast
    "240.0.0.0/4",  # reserved, with the broadcast address
)
# Outside of 2000::/3 no address is one of the public network: there are loopback, IPv4-mapped and IPv4-compatible
# addresses, local NAT64 (64:ff9b:1::/48), discarded ones (100::/64), segment routing (5f00::/16), unique local
# (fc00::/7, with the metadata of AWS and Google), link-local, site-local and multicast ones.
_GLOBAL_IPV6 = IPv6Network("2000::/3")
_REFUSED_IPV6 = (
    "2001::/23",  # protocols: Teredo, benchmarks, ORCHID, AS112
    "2001:db8::/32",  # documentation
    "2002::/16",  # 6to4: an IPv4 address is inside
    "2620:4f:8000::/48",  # AS112
    "3ffe::/16",  # 6bone, given back
    "3fff::/20",  # documentation
)
_NAT64 = IPv6Network("64:ff9b::/96")  # on a network with DNS64, every IPv4 host has such an address

_NETWORKS = (*map(ip_network, _REFUSED_IPV4), *map(ip_network, _REFUSED_IPV6))

# A public address need not be a public service: a firewall may let us in and nobody else. So no port of another
# protocol: below 1024 only the web's, none that browsers block, none of the usual databases and control planes.
_WEB_PORTS = {80, 443}
_OTHER_PROTOCOLS = frozenset(
    {1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, *range(6665, 6670), 6679, 6697, 10080}
    | {1433, 1521, 2181, 2375, 2376, 2379, 2380, 3306, 5432, 5672, 5984, 6379, 6443, 8500, 9042, 9200, 9300, 10250}
    | {11211, 27017}
)

_ALLOWED = re.compile(
    r"(?:(?P<scheme>https?)://)?(?:\[(?P<ipv6>[0-9a-f:.]+)\]|(?P<host>[a-z0-9_-][a-z0-9_.-]*?)\.?)(?::(?P<port>\d{1,5}))?"
    r"(?P<path>/[^?#\s]*)?"
)
_HIDDEN_PATH = re.compile(r"%2e|%2f|%5c|\\", re.IGNORECASE)  # a server may read it as another path than we do
_YOUTUBE = re.compile(r"https://(?:(?:(?:www|m|music)\.)?youtube\.com|youtu\.be)/[\w/?=&.-]*")


class AllowedAddress(Struct, frozen=True, kw_only=True):
    """An address that the owner configured: `nas`, `nas:8080` or `http://nas/photos`. None where it says nothing."""

    host: str
    scheme: str | None = None
    port: int | None = None
    path: str = "/"

    @classmethod
    def of(cls, text: str) -> "AllowedAddress":
        found = _ALLOWED.fullmatch(text.lower())
        if not found or (found["path"] not in (None, "/") and not found["scheme"]):
            raise InvalidValue(f"{text!r} is no host, host:port or http://host/path that can be allowed")
        scheme, path = found["scheme"], text[found.start("path") :] if found["path"] else "/"
        try:
            host = str(IPv6Address(found["ipv6"])) if found["ipv6"] else found["host"]
        except ValueError as error:
            raise InvalidValue(f"{text!r} is no IPv6 address that can be allowed") from error
        port = int(found["port"]) if found["port"] else {"http": 80, "https": 443}.get(scheme)
        if port is not None and not 1 <= port <= 65535:
            raise InvalidValue(f"{text!r} cannot be allowed: a port is a number from 1 to 65535")
        return cls(host=host, scheme=scheme, port=port, path=quote(path, safe="/%:@!$&'()*+,;=~"))

    def covers(self, scheme: str, host: str, port: int, path: str) -> bool:
        """Return whether the parts of a URL are at or below this address."""
        if (self.host, self.scheme or scheme, self.port or port) != (host, scheme, port):
            return False
        below = path == self.path or path.startswith(f"{self.path.rstrip('/')}/")
        return self.path == "/" or (below and not _HIDDEN_PATH.search(path))


def is_public(address: str) -> bool:
    """Return whether an IP address, as the system resolved it, is one of the public network."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, IPv6Address) and found in _NAT64:
        found = IPv4Address(int(found) & 0xFFFF_FFFF)
    if isinstance(found, IPv6Address) and found not in _GLOBAL_IPV6:
        return False
    return not any(found in network for network in _NETWORKS)


def is_web_port(port: int) -> bool:
    """Return whether files are fetched from a port."""
    return port in _WEB_PORTS or (1024 <= port <= 65535 and port not in _OTHER_PROTOCOLS)


def is_youtube(uri: str) -> bool:
    """Return whether a URI is that of a video of YouTube, which goes to services as it is."""
    return bool(_YOUTUBE.fullmatch(uri))
