"""The site: what the endpoints of one page share."""

from collections.abc import Callable
from datetime import datetime

from msgspec import Struct

from tertulia.engine.engine import Engine
from tertulia.engine.store_protocols import StoreProtocol


class Site(Struct, frozen=True, kw_only=True):
    """A store, and in the bot's own process its engine."""

    store: StoreProtocol
    now: Callable[[], datetime]
    engine: Engine | None = None  # None: a bot may be running in another process
    agent: str = ""  # its name, as far as it is known here
    language: str = "en"  # of the bot's own lines, which the page takes too
