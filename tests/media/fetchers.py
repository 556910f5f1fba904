"""Fetchers for tests."""

from datetime import UTC, datetime

from tertulia.engine.store_protocols import StoreProtocol
from tertulia.media.addresses import AddressFetcher
from tertulia.media.decoding import Decoder
from tertulia.media.fetcher import MediaFetcher
from tertulia.platform import Platform


def a_fetcher(store: StoreProtocol, *platforms: Platform) -> MediaFetcher:
    """A fetcher of these platforms; its time stands still."""
    return MediaFetcher(
        store.media,
        {one.name: one for one in platforms},
        addresses=AddressFetcher(),
        decoder=Decoder(),
        now=lambda: datetime(2026, 1, 1, 12, tzinfo=UTC),
    )
