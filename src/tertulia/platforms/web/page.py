"""The table of the page: all its endpoints, and the application that answers them."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from tertulia.platforms.web.endpoints import Endpoint
from tertulia.platforms.web.guard import Guard
from tertulia.platforms.web.inspector_api import inspector_endpoints
from tertulia.platforms.web.operating_api import operating_endpoints
from tertulia.platforms.web.page_address import PageAddress
from tertulia.platforms.web.page_app import make_app
from tertulia.platforms.web.session_api import session_endpoints
from tertulia.platforms.web.sessions import Sessions
from tertulia.platforms.web.site import Site
from tertulia.platforms.web.tokens import TokenFile


def endpoints_of(site: Site, sessions: Sessions, address: PageAddress) -> tuple[Endpoint, ...]:
    """Return all endpoints of a page."""
    table = (*session_endpoints(site, sessions, address), *inspector_endpoints(site))
    return (*table, *operating_endpoints(site, address, table))


@asynccontextmanager
async def page_of(
    site: Site, tokens: TokenFile, address: PageAddress, *, clock: Callable[[], float]
) -> AsyncIterator[Guard]:
    """Yield the application of a site."""
    sessions = Sessions(tokens, clock)
    yield make_app(endpoints_of(site, sessions, address), sessions, address)
