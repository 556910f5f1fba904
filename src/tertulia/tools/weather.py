"""The tool `weather`, and Open-Meteo as the service behind it."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta, timezone
from typing import Annotated, Protocol, Self

import msgspec

from tertulia import errors
from tertulia.tools.json_service import JsonService

WMO = {  # the codes of the World Meteorological Organization that Open-Meteo uses
    0: "clear sky",
    1: "mainly clear",
    2: "partly cloudy",
    3: "overcast",
    45: "fog",
    48: "freezing fog",
    51: "light drizzle",
    53: "drizzle",
    55: "dense drizzle",
    56: "light freezing drizzle",
    57: "freezing drizzle",
    61: "light rain",
    63: "rain",
    65: "heavy rain",
    66: "light freezing rain",
    67: "freezing rain",
    71: "light snow",
    73: "snow",
    75: "heavy snow",
    77: "snow grains",
    80: "light rain showers",
    81: "rain showers",
    82: "violent rain showers",
    85: "light snow showers",
    86: "heavy snow showers",
    95: "thunderstorm",
    96: "thunderstorm with light hail",
    99: "thunderstorm with heavy hail",
}
NAME = 100  # characters of a place, a region or a country
CURRENT = "temperature_2m,apparent_temperature,relative_humidity_2m,wind_speed_10m,weather_code"


class Report(msgspec.Struct, frozen=True, kw_only=True):
    place: str  # as the service understood it: there is more than one Paris
    temperature_c: float
    feels_like_c: float
    humidity_percent: float
    wind_kmh: float
    conditions: str
    observed_at: datetime  # in the zone of the place


class Weather(Protocol):
    async def at(self, place: str) -> Report:
        """Return the current weather at *place*; raise ValueError when there is no such place."""


def weather_tool(source: Weather) -> Callable[..., Awaitable[Report]]:
    """Make the tool `weather` over a weather service."""

    async def weather(
        city: Annotated[str, "The city or town; a country or region after a comma tells namesakes apart: Paris, Texas"],
    ) -> Report:
        """Tell the current weather at a place: temperature, wind and conditions, with the time of observation."""
        place = " ".join(city.split())
        if not place or len(place) > NAME:
            raise ValueError(f"name one city or town, in at most {NAME} characters")
        return await source.at(place)

    return weather


class OpenMeteo:
    """A client of open-meteo.com, which needs no key. Use it with `async with`, or close it."""

    def __init__(
        self,
        base_url: str = "https://api.open-meteo.com",
        geocoding_url: str = "https://geocoding-api.open-meteo.com",
        *,
        timeout: float = 10,
    ) -> None:
        self._forecasts = JsonService("the weather service", base_url, timeout=timeout)
        self._places = JsonService("the weather service's list of places", geocoding_url, timeout=timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._forecasts.aclose()
        await self._places.aclose()

    async def at(self, place: str) -> Report:
        found = await self._locate(place)
        params = {
            "latitude": str(found.latitude),
            "longitude": str(found.longitude),
            "current": CURRENT,
            "timezone": "auto",
        }
        forecast = await self._forecasts.get("/v1/forecast", params, _Forecast)
        return Report(
            place=found.label,
            temperature_c=forecast.current.temperature_2m,
            feels_like_c=forecast.current.apparent_temperature,
            humidity_percent=forecast.current.relative_humidity_2m,
            wind_kmh=forecast.current.wind_speed_10m,
            conditions=WMO.get(forecast.current.weather_code, "unknown"),
            observed_at=forecast.observed_at,
        )

    async def _locate(self, place: str) -> "_Place":
        params = {"name": place, "count": "1", "language": "en", "format": "json"}
        answer = await self._places.get("/v1/search", params, _Places)
        if not answer.results:
            raise errors.InvalidValue(f"no place called {place!r} is known: try another spelling, or the nearest city")
        return answer.results[0]


class _Place(msgspec.Struct):
    name: str
    latitude: float
    longitude: float
    admin1: str | None = None
    country: str | None = None

    @property
    def label(self) -> str:
        names = (" ".join(word.split())[:NAME] for word in (self.name, self.admin1, self.country) if word)
        return ", ".join(dict.fromkeys(filter(None, names)))


class _Places(msgspec.Struct):
    results: list[_Place] | None = None  # left out where nothing is found


class _Current(msgspec.Struct):
    time: str  # local, to the minute, without its offset
    temperature_2m: float
    apparent_temperature: float
    relative_humidity_2m: float
    wind_speed_10m: float
    weather_code: int


class _Forecast(msgspec.Struct):
    current: _Current
    utc_offset_seconds: Annotated[int, msgspec.Meta(gt=-86400, lt=86400)]

    def __post_init__(self) -> None:
        _ = self.observed_at  # an invalid time makes the answer unreadable

    @property
    def observed_at(self) -> datetime:
        offset = timezone(timedelta(seconds=self.utc_offset_seconds))
        return datetime.fromisoformat(self.current.time).replace(tzinfo=offset)
