"""Addresses of links as TDLib checks and stores them. Pure."""

import re
from ipaddress import IPv6Address

_SCHEME = re.compile(r"([^:/?#@\[\]]*)://")
_OWN = re.compile(r"(?i)(tonsite|ton|tg):(//)?")
_USER = re.compile(r"(?i)tg:(?://)?user(?:/)?\?(?:.*&)?id=(\d+)(?=[&#]|$)")
_EMOJI = re.compile(r"(?i)tg:(?://)?emoji/?\?(?:.*&)?id=(\d+)")
_TIME = re.compile(r"(?i)tg:(?://)?time/?\?(?:.*&)?unix=(\d+)(?:&(?:.*&)?format=([^&#]*))?")
_ALLOWED = re.compile(r"(?:[a-z0-9.\-_!$,~*'();&+=]|%[0-9a-f]{2}|[^\x00-\x7f])*")
_PERCENT = re.compile(r"%(?![0-9a-f]{2})")
_FORMAT = re.compile(r"r|w?[dD]?[tT]?")
_LARGEST = 2**31 - 1


def checked_url(url: str) -> str:
    """Return the address of a link as it is stored; raise ValueError with TDLib's words."""
    own = _OWN.match(url)
    scheme = own.group(1).lower() if own else ""
    protocol, userinfo, host, port, query = _parts(url[own.end() :] if own else url)
    if own:
        if protocol or userinfo or port or host.startswith("["):
            raise ValueError("Wrong tg URL" if scheme == "tg" else "Wrong ton URL")
        if not re.fullmatch(r"[A-Za-z0-9_.-]*" if scheme == "tonsite" else r"[A-Za-z0-9_-]*", host):
            raise ValueError("Unallowed characters in URL host")
        return f"{scheme}://{host}{query[1:] if query.startswith('/?') else query}"
    if "." not in host and not host.startswith("["):
        raise ValueError("Wrong HTTP URL")
    return f"{protocol or 'http'}://{userinfo}{host}{port}{query}"


def linked_user(url: str) -> int | None:
    """Return the person whom a link means."""
    found = _USER.match(url)
    return int(found.group(1)) or None if found else None


def emoji_or_time(url: str) -> tuple[str | None, int | None, str | None]:
    """Return the custom emoji, or the time and its format, that a link means; raise ValueError for other links."""
    emoji, time = _EMOJI.fullmatch(url), _TIME.fullmatch(url)
    if emoji and int(emoji.group(1)):
        return emoji.group(1), None, None
    if time and int(time.group(1)) <= _LARGEST:
        return None, int(time.group(1)), checked_format(time.group(2) or "")
    raise ValueError("Invalid tg://emoji or tg://time URL specified")


def checked_format(given: str) -> str:
    """Return the format of a time; raise ValueError for one that is not known."""
    if not _FORMAT.fullmatch(given):
        raise ValueError("Invalid date format used")
    return given


def _parts(url: str) -> tuple[str, str, str, str, str]:
    """Return the protocol, `user@`, the host, `:port` and the rest of an address."""
    scheme = _SCHEME.match(url)
    if scheme and scheme.group(1).lower() not in ("http", "https"):
        raise ValueError("Unsupported URL protocol")
    rest = url[scheme.end() :] if scheme else url
    place = re.match(r"[^/?#]*", rest)
    address = place.group() if place else ""
    query = rest[len(address) :]
    colon = max(address.rfind(character) for character in ":]@")
    port = ""
    if colon > 0 and address[colon] == ":":
        port, address = address[colon + 1 :], address[:colon]
        if not re.fullmatch(r"[0-9]+", port) or not 0 < int(port) <= 65535:
            raise ValueError("Wrong port number specified in the URL")
        port = f":{int(port)}"
    userinfo, at, host = address.rpartition("@")
    _check_host(host.lower(), userinfo)
    query = query.rstrip(" \t\r\n\v\0")
    query = query if query.startswith("/") else f"/{query}"
    query = re.sub(r"[\x00-\x20]", lambda found: f"%{ord(found.group()):02X}", query)
    return scheme.group(1).lower() if scheme else "", userinfo and userinfo + at, host.lower(), port, query


def _check_host(host: str, userinfo: str) -> None:
    if not host:
        raise ValueError("URL host is empty")
    if host == ".":
        raise ValueError("Host is invalid")
    if host.startswith("[") and host.endswith("]"):
        try:
            IPv6Address(host[1:-1])
        except ValueError:
            raise ValueError("Wrong IPv6 address specified in the URL") from None
    else:
        _check_characters(host, "host")
    _check_characters(userinfo.lower().replace(":", ""), "userinfo")


def _check_characters(text: str, where: str) -> None:
    found = _ALLOWED.match(text)
    if found is not None and found.end() < len(text):
        broken = _PERCENT.match(text, found.end())
        words = "Wrong percent-encoded symbol in" if broken else "Disallowed character in"
        raise ValueError(f"{words} URL {where}")
