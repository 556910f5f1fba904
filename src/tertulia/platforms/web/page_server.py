"""The page as a server: its socket, its tokens, its application. In the bot's process, or beside it."""

import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from tertulia.config import WebConfig
from tertulia.errors import InvalidValue, NotInstalled
from tertulia.platforms.http_listener import listening, serving
from tertulia.platforms.web.page_address import PageAddress, page_address
from tertulia.platforms.web.roles import Role
from tertulia.platforms.web.sessions import Sessions
from tertulia.platforms.web.site import Site
from tertulia.platforms.web.tokens import TokenFile, token_path

MAX_CONNECTIONS = 200
HEAD_DEADLINE, GRACE = 10.0, 2.0  # seconds


class Page(Struct, frozen=True, kw_only=True):
    """A page that is served."""

    url: str  # as people open it
    port: int  # where it listens
    links: dict[Role, str]  # with the token behind #, so that no server and no log is told it
    token_file: Path

    @property
    def lines(self) -> tuple[str, str]:
        """What whoever started it is told."""
        return f"the page: {self.links['owner']}", f"for those who only read: {self.links['reader']}"


@asynccontextmanager
async def serve_page(site: Site, config: WebConfig, *, store: str, folder: Path = Path()) -> AsyncIterator[Page]:
    """Serve the page of a site until the block ends; its tokens are beside the *store*, its certificate in *folder*."""
    address = checked_address(config, folder)
    from tertulia.platforms.web.page import page_of

    tls = {"ssl_certfile": str(folder / config.certificate), "ssl_keyfile": str(folder / config.key)}
    tokens = TokenFile(token_path(store))
    tokens.open()
    with listening(address.host, address.port, "the page") as listener:
        address = replace(address, port=listener.getsockname()[1])
        app, end_streams = page_of(site, Sessions(tokens, time.monotonic), address)
        async with serving(
            app,
            listener,
            connections=MAX_CONNECTIONS,
            head_deadline=HEAD_DEADLINE,
            grace=GRACE,
            **(tls if address.tls else {}),
        ):
            links = {role: f"{address.url}/#token={token}" for role, token in tokens.tokens.items()}
            try:
                yield Page(url=address.url, port=address.port, links=links, token_file=tokens.path)
            finally:
                end_streams()


def checked_address(config: WebConfig, folder: Path) -> PageAddress:
    """Return where a page would be; raise if that is not safe, its certificate is none, or a package is missing."""
    address = page_address(config)
    try:
        import tertulia.platforms.web.page  # noqa: F401
    except ModuleNotFoundError as error:
        raise NotInstalled("the page needs a web server: pip install 'tertulia[web]'") from error
    if address.tls:
        _require_pair(str(folder / config.certificate), str(folder / config.key))
    return address


def _require_pair(certificate: str, key: str) -> None:
    """Raise `InvalidValue` for what is no certificate with its key; a key with a password is refused, not asked for."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
    except (OSError, ValueError) as error:  # SSLError is an OSError
        raise InvalidValue(
            f"certificate {certificate} with key {key}: {getattr(error, 'strerror', '') or error}"
        ) from error
