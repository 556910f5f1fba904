"""The weather: Open-Meteo over a socket, its answers and its failures, and the tool on any source."""

import gzip
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from tertulia import errors
from tertulia.parts import ToolCall
from tertulia.toolbox.toolbox import Toolbox
from tertulia.tools.weather import OpenMeteo, Report, weather_tool
from tools.services import Canned, a_dead_url, serving

SEARCH = "/v1/search"
FORECAST = "/v1/forecast"
KYIV: dict[str, Any] = {
    "id": 703448,
    "name": "Kyiv",
    "latitude": 50.45466,
    "longitude": 30.5238,
    "elevation": 187.0,
    "feature_code": "PPLC",
    "country_code": "UA",
    "admin1_id": 703447,
    "timezone": "Europe/Kyiv",
    "population": 2797553,
    "country_id": 690791,
    "country": "Ukraine",
    "admin1": "Kyiv City",
}
CURRENT: dict[str, Any] = {
    "time": "2026-11-20T23:15",
    "interval": 900,
    "temperature_2m": 3,
    "apparent_temperature": -0.7,
    "relative_humidity_2m": 93,
    "wind_speed_10m": 11.2,
    "weather_code": 61,
}
REPORT = Report(
    place="Kyiv, Kyiv City, Ukraine",
    temperature_c=3.0,
    feels_like_c=-0.7,
    humidity_percent=93.0,
    wind_kmh=11.2,
    conditions="light rain",
    observed_at=datetime(2026, 11, 20, 23, 15, tzinfo=timezone(timedelta(hours=2))),
)


def places(*found: dict[str, Any]) -> Canned:
    return Canned({"results": list(found), "generationtime_ms": 0.61})


def a_forecast(**changes: Any) -> dict[str, Any]:
    return {
        "latitude": 50.4375,
        "longitude": 30.5,
        "generationtime_ms": 0.07,
        "utc_offset_seconds": 7200,
        "timezone": "Europe/Kyiv",
        "timezone_abbreviation": "GMT+2",
        "elevation": 187.0,
        "current_units": {"time": "iso8601", "interval": "seconds", "temperature_2m": "°C", "weather_code": "wmo code"},
        "current": CURRENT,
        **changes,
    }


async def told(search: Canned, forecast: Canned, *, place: str = "Kyiv", timeout: float = 10) -> Report:
    async with (
        serving({SEARCH: search, FORECAST: forecast}) as service,
        OpenMeteo(service.url, service.url, timeout=timeout) as weather,
    ):
        return await weather.at(place)


async def test_the_weather_at_a_place() -> None:
    async with (
        serving({SEARCH: places(KYIV), FORECAST: Canned(a_forecast())}) as service,
        OpenMeteo(service.url, service.url) as weather,
    ):
        report = await weather.at("Київ & co, Україна")

    assert report == REPORT
    assert service.asked == [
        (SEARCH, {"name": "Київ & co, Україна", "count": "1", "language": "en", "format": "json"}),
        (
            FORECAST,
            {
                "latitude": "50.45466",
                "longitude": "30.5238",
                "current": "temperature_2m,apparent_temperature,relative_humidity_2m,wind_speed_10m,weather_code",
                "timezone": "auto",
            },
        ),
    ]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"admin1": None, "country": None}, "Kyiv"),
        ({"admin1": "Kyiv"}, "Kyiv, Ukraine"),
        ({"name": "Paris", "admin1": "Texas", "country": "United States"}, "Paris, Texas, United States"),
        ({"name": " New\nYork ", "admin1": " \t"}, "New York, Ukraine"),
        ({"name": "x" * 10**6, "admin1": "y" * 101, "country": "z" * 101}, f"{'x' * 100}, {'y' * 100}, {'z' * 100}"),
    ],
)
async def test_a_place_is_named_so_that_namesakes_differ(changes: dict[str, Any], words: str) -> None:
    report = await told(places({**KYIV, **changes}), Canned(a_forecast()))

    assert report.place == words


@pytest.mark.parametrize(("code", "words"), [(0, "clear sky"), (45, "fog"), (95, "thunderstorm"), (42, "unknown")])
async def test_a_code_becomes_words(code: int, words: str) -> None:
    report = await told(places(KYIV), Canned(a_forecast(current={**CURRENT, "weather_code": code})))

    assert report.conditions == words


@pytest.mark.parametrize("answer", [{"generationtime_ms": 0.2}, {"results": []}, {"results": None}])
async def test_an_unknown_place_is_a_value_error_that_names_it(answer: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="no place called 'Xyzzy' is known"):
        await told(Canned(answer), Canned(a_forecast()), place="Xyzzy")


BOMB = gzip.compress(b'{"current":"' + b" " * 20_000_000 + b'"}', compresslevel=1)
LIMIT = {"error": True, "reason": "Minutely API request limit exceeded. Please try again in one minute."}
REFUSED = {"error": True, "reason": "Latitude must be in range of -90 to 90°.\nGiven: 91.0."}
FAILURES = [
    (Canned(LIMIT, status=429), errors.RateLimited, "the weather service has had too many requests just now"),
    (
        Canned(b" " * 2 * 2**20 + b"{}"),
        errors.ResponseUnreadable,
        "the weather service sent more than can be read",
    ),
    (
        Canned(BOMB, headers={"content-encoding": "gzip"}),
        errors.ResponseUnreadable,
        "the weather service sent more than can be read",
    ),
    (Canned(b"<h1>Bad gateway</h1>", status=502), errors.ServiceFault, "the weather service failed (HTTP 502)"),
    (
        Canned(REFUSED, status=400),
        errors.RequestRefused,
        "the weather service refused the request (HTTP 400): Latitude must be in range of -90 to 90°. Given: 91.0.",
    ),
    (Canned(b"no", status=418), errors.RequestRefused, "the weather service refused the request (HTTP 418)"),
    (
        Canned(status=301, headers={"location": "http://127.0.0.1/"}),
        errors.OperatorMustAct,
        "the weather service does not let us in at its address (HTTP 301)",
    ),
    *(
        (Canned(body), errors.ResponseUnreadable, "the weather service sent an answer that cannot be read")
        for body in (
            b"",
            b"<html>",
            b"[]",
            b"null",
            b"\xff\xfe",
            b"[" * 100_000,
            {"current": None},
            a_forecast(current={}),
            a_forecast(current={**CURRENT, "temperature_2m": None}),
            a_forecast(current={**CURRENT, "temperature_2m": "warm"}),
            a_forecast(current={**CURRENT, "time": "yesterday"}),
            a_forecast(utc_offset_seconds=10**9),
        )
    ),
]


@pytest.mark.parametrize(("answer", "kind", "words"), FAILURES)
async def test_a_failure_is_told_without_the_address(
    answer: Canned, kind: type[errors.TertuliaError], words: str
) -> None:
    with pytest.raises(errors.TertuliaError) as caught:
        await told(places(KYIV), answer)

    assert (type(caught.value), str(caught.value)) == (kind, words)


@pytest.mark.parametrize(("stated", "known"), [("60", 60.0), ("9" * 400, None), ("-5", None), ("soon", None)])
async def test_a_wait_that_is_asked_for_is_kept_if_it_can_be_waited(stated: str, known: float | None) -> None:
    with pytest.raises(errors.RateLimited) as caught:
        await told(Canned(LIMIT, status=429, headers={"retry-after": stated}), Canned())

    assert caught.value.retry_after == known


async def test_a_service_that_does_not_answer_is_given_up() -> None:
    with pytest.raises(errors.TimedOut, match=r"^the weather service did not answer in time$"):
        await told(places(KYIV), Canned(stalls=True), timeout=1)


async def test_a_dead_service() -> None:
    async with OpenMeteo(geocoding_url=a_dead_url()) as weather:
        with pytest.raises(errors.ConnectionLost, match=r"^the weather service's list of places cannot be reached$"):
            await weather.at("Kyiv")


@pytest.mark.parametrize("url", ["", "nowhere", "ftp://127.0.0.1", "http://", "http://a b"])
async def test_an_address_that_is_none(url: str) -> None:
    async with OpenMeteo(geocoding_url=url) as weather:
        with pytest.raises(errors.TertuliaError, match=r"places (is not one that can be called|cannot be reached)$"):
            await weather.at("Kyiv")


class Sunny:
    """Weather in a test: the same everywhere."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def at(self, place: str) -> Report:
        self.asked.append(place)
        return REPORT


async def test_as_a_tool() -> None:
    sunny = Sunny()
    toolbox = Toolbox([weather_tool(sunny)])

    (result,) = await toolbox.run([ToolCall(id="1", name="weather", args={"city": "  New \n York "})])

    assert sunny.asked == ["New York"]
    assert result.value == {
        "place": "Kyiv, Kyiv City, Ukraine",
        "temperature_c": 3.0,
        "feels_like_c": -0.7,
        "humidity_percent": 93.0,
        "wind_kmh": 11.2,
        "conditions": "light rain",
        "observed_at": "2026-11-20T23:15:00+02:00",
    }
    assert toolbox.specs[0].description.startswith("Tell the current weather at a place")


@pytest.mark.parametrize("city", ["", "  ", "x" * 101])
async def test_a_city_must_be_named(city: str) -> None:
    weather = weather_tool(Sunny())

    with pytest.raises(ValueError, match="name one city or town"):
        await weather(city)
