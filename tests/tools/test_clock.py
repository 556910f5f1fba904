"""The clock: one instant, told in the zone that is asked for."""

from datetime import UTC, datetime

import pytest

from tertulia.parts import ToolCall
from tertulia.toolbox.toolbox import Toolbox
from tertulia.tools.clock import clock

NOW = datetime(2026, 11, 20, 22, 30, 15, 987654, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "told"),
    [
        ("UTC", "2026-11-20T22:30:15+00:00, Friday"),
        ("Europe/Kyiv", "2026-11-21T00:30:15+02:00, Saturday"),
        ("America/New_York", "2026-11-20T17:30:15-05:00, Friday"),
        ("Asia/Kathmandu", "2026-11-21T04:15:15+05:45, Saturday"),
    ],
)
def test_the_time_in_a_zone(zone: str, told: str) -> None:
    current_time = clock(lambda: NOW)

    assert current_time(zone) == told


def test_without_a_zone_the_configured_one_is_used() -> None:
    current_time = clock(lambda: NOW, default_zone="Europe/Kyiv")

    assert current_time() == "2026-11-21T00:30:15+02:00, Saturday"


def test_every_call_looks_at_the_clock_again() -> None:
    times = iter([NOW, NOW.replace(hour=23)])
    current_time = clock(lambda: next(times))

    assert [current_time(), current_time()] == [
        "2026-11-20T22:30:15+00:00, Friday",
        "2026-11-20T23:30:15+00:00, Friday",
    ]


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "Europe", "../../etc/passwd", "/etc/passwd", "a\x00b", "\ud800"])
def test_a_zone_that_is_none_is_named(zone: str) -> None:
    current_time = clock(lambda: NOW)

    with pytest.raises(ValueError, match="there is no time zone") as caught:
        current_time(zone)

    assert repr(zone) in str(caught.value)


def test_a_wrong_zone_in_the_configuration_is_found_at_once() -> None:
    with pytest.raises(ValueError, match="there is no time zone 'Kiev'"):
        clock(lambda: NOW, default_zone="Kiev")


async def test_as_a_tool() -> None:
    toolbox = Toolbox([clock(lambda: NOW, default_zone="Asia/Tokyo")])

    (result,) = await toolbox.run([ToolCall(id="1", name="current_time", args={})])

    assert result.value == "2026-11-21T07:30:15+09:00, Saturday"
    assert toolbox.specs[0].parameters == {
        "type": "object",
        "properties": {
            "zone": {"type": "string", "description": "IANA name such as Europe/Kyiv", "default": "Asia/Tokyo"}
        },
        "required": [],
        "additionalProperties": False,
    }
