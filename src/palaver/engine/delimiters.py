"""Delimiters of places, cached. A delimiter is the word that tells our own markup in a place from people's text."""

from palaver.engine.store_protocols import PlaceSettings
from palaver.messages import Place, PlaceKey

MAX_PLACES = 10_000  # whose delimiters are cached


class DelimiterCache:
    """Reads the delimiter of a place from the store once."""

    def __init__(self, place_settings: PlaceSettings, *, max_places: int = MAX_PLACES) -> None:
        self._place_settings = place_settings
        self._max_places = max_places
        self._delimiters: dict[PlaceKey, str] = {}

    async def get(self, place: Place) -> str:
        """Return the delimiter of a place."""
        if place.key not in self._delimiters:
            if len(self._delimiters) >= self._max_places:
                self._delimiters.clear()
            self._delimiters[place.key] = await self._place_settings.delimiter(place)
        return self._delimiters[place.key]

    def clear(self) -> None:
        """Empty the cache: a place has migrated."""
        self._delimiters.clear()
