"""The table of the page: all its endpoints, and the application that answers them."""

from collections.abc import Callable

from tertulia.platforms.web.endpoints import Endpoint
from tertulia.platforms.web.event_api import Streams, event_endpoints
from tertulia.platforms.web.guard import Guard
from tertulia.platforms.web.inspector_api import inspector_endpoints
from tertulia.platforms.web.operating_api import operating_endpoints
from tertulia.platforms.web.order_api import order_endpoints
from tertulia.platforms.web.page_address import PageAddress
from tertulia.platforms.web.page_app import make_app
from tertulia.platforms.web.replay_api import replay_endpoints
from tertulia.platforms.web.room_api import room_endpoints
from tertulia.platforms.web.room_files import file_endpoints
from tertulia.platforms.web.room_messages import message_endpoints
from tertulia.platforms.web.session_api import session_endpoints
from tertulia.platforms.web.sessions import Sessions
from tertulia.platforms.web.site import Site
from tertulia.platforms.web.text_api import text_endpoints
from tertulia.platforms.web.visitors import Visitors


def endpoints_of(
    site: Site, sessions: Sessions, visitors: Visitors, streams: Streams, address: PageAddress
) -> tuple[Endpoint, ...]:
    """Return all endpoints of a page."""
    table = (
        *session_endpoints(site, sessions, visitors, address.cookie),
        *inspector_endpoints(site),
        *order_endpoints(site),
        *replay_endpoints(site),
        *event_endpoints(site, streams),
        *room_endpoints(site, visitors, address, streams),
        *message_endpoints(site),
        *file_endpoints(site),
        *text_endpoints(site),
    )
    return (*table, *operating_endpoints(site, address, table))


def page_of(site: Site, sessions: Sessions, address: PageAddress) -> tuple[Guard, Callable[[], None]]:
    """Return the application of a site, and what ends its streams."""
    streams, visitors = Streams(), Visitors(site, sessions, address)
    return make_app(endpoints_of(site, sessions, visitors, streams, address), visitors, address), streams.end
