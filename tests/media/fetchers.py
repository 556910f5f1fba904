"""Fetchers for tests."""

from datetime import UTC, datetime

from palaver.media.addresses import AddressFetcher
from palaver.media.decoding import Decoder
from palaver.media.fetcher import MediaFetcher
from palaver.platform import Platform
from palaver.store import Store


def a_fetcher(store: Store, *platforms: Platform) -> MediaFetcher:
    """A fetcher of these platforms; its time stands still."""
    return MediaFetcher(
        store.media,
        {one.name: one for one in platforms},
        addresses=AddressFetcher(),
        decoder=Decoder(),
        now=lambda: datetime(2026, 1, 1, 12, tzinfo=UTC),
    )
