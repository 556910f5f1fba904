"""Only addresses of the public network are public, in every form and by every version of Python."""

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertulia.media.address_rules import is_public, is_web_port, is_youtube

REFUSED = """
0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 100.127.255.255 127.0.0.1 127.255.255.254
168.63.129.16 169.254.169.254 169.254.170.2 172.16.0.1 172.31.255.255 192.0.0.1 192.0.0.9 192.0.0.192 192.0.2.1
192.31.196.1 192.52.193.1 192.88.99.1 192.168.0.1 192.175.48.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1
224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255
:: ::1 ::127.0.0.1 ::8.8.8.8 ::ffff:127.0.0.1 ::ffff:8.8.8.8 ::ffff:0:7f00:1 64:ff9b::127.0.0.1 64:ff9b::a9fe:a9fe
64:ff9b:0:0:0:1:808:808 64:ff9b:1::808:808 100::1 100:0:0:1::1 2001::1 2001:0:808:808:: 2001:2::1 2001:10::1 2001:20::1
2001:30::1 2001:1ff::1 2001:db8::1 2002:7f00:1:: 2002:808:808:: 2620:4f:8000::1 3ffe::1 3fff::1 3fff:fff::1 4000::1
5f00::1 8000::1 fc00::1 fd00:ec2::254 fd20:ce::254 fe80::1 fe80::1%eth0 fe80::a9fe:a9fe%2 fec0::1 ff02::1 ff0e::1
::1%lo 2001:db8::1%1
""".split()
PUBLIC = """
1.1.1.1 8.8.8.8 93.184.216.34 100.63.255.255 100.128.0.1 168.63.129.15 168.63.129.17 172.15.255.255 172.32.0.1
192.0.1.1 192.167.255.255 192.169.0.1 198.17.255.255 198.20.0.1 223.255.255.255
2001:200::1 2001:4860:4860::8888 2400:cb00::1 2606:4700::1111 2a00:1450::1 2c0f:f248::1 64:ff9b::8.8.8.8
""".split()


@pytest.mark.parametrize("address", REFUSED)
def test_special_addresses_are_refused(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_ordinary_addresses_are_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("text", ["", "localhost", "127.1", "0x7f000001", "1.1.1.1 ", "1.1.1.1/32", "[::1]"])
def test_what_is_no_address_is_not_public(text: str) -> None:
    assert not is_public(text)


@given(st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6), st.sampled_from([*REFUSED, *PUBLIC]).map(ip_address)))
def test_what_python_knows_as_special_is_refused(address: IPv4Address | IPv6Address) -> None:
    special = (
        address.is_private
        or address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address.is_unspecified
        or (address.is_reserved and not str(address).startswith("64:ff9b::"))
    )

    assert not (special and is_public(str(address)))


@given(st.ip_addresses(v=4))
def test_ipv6_form_of_an_address_is_at_most_as_public_as_the_address(address: IPv4Address) -> None:
    number = int(address)
    forms = [number, 0xFFFF << 32 | number, 0x64FF9B0001 << 88 | number, 0x2002 << 112 | number << 80]

    assert not any(is_public(str(IPv6Address(form))) for form in forms)
    assert is_public(str(IPv6Address(0x64FF9B << 96 | number))) is is_public(str(address))


def test_ports_of_the_web_are_open_and_those_of_other_protocols_are_not() -> None:
    assert [port for port in (0, 22, 25, 80, 443, 445, 1023, 1024, 3306, 6379, 8080, 8443, 11211, 65535, 65536)
            if is_web_port(port)] == [80, 443, 1024, 8080, 8443, 65535]  # fmt: skip


@pytest.mark.parametrize(
    ("uri", "passes"),
    [
        ("https://www.youtube.com/watch?v=dQw4w9WgXcQ&t=1", True),
        ("https://youtu.be/dQw4w9WgXcQ", True),
        ("https://example.com/cat.png", False),
        ("http://127.0.0.1/https://youtu.be/x", False),
        ("https://youtu.be@127.0.0.1/", False),
        ("https://youtu.be.evil.example/", False),
        ("https://youtu.be/x\n", False),
        ("https://generativelanguage.googleapis.com/v1beta/files/abc", False),
        ("http://10.0.0.1/v1/files/x", False),
        ("gs://bucket/object", False),
        ("", False),
    ],
)
def test_only_videos_of_youtube_pass_as_they_are(uri: str, passes: bool) -> None:
    assert is_youtube(uri) == passes
