"""A time to come in a model's words as the moment it means in a zone. Pure."""

import re
from bisect import bisect_left
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from msgspec import Struct

from palaver.context.zones import zone_named
from palaver.errors import InvalidValue
from palaver.tasks.values import utc
from palaver.tools.clock import WEEKDAYS

LENGTH = 100  # characters of a time in words
FURTHEST = timedelta(days=3653)  # ten years, with as many leap days as they can have
UNDERSTOOD = (
    "what is understood: in 20 minutes, in 2 hours, in 1 day, 1 hour from now, 18:00, tomorrow at 9:00, friday 18:00, "
    "2026-11-20T18:00 (local time, or with an offset such as +02:00 or Z), 2026-11-20 (at 9:00), PT20M"
)

_MORNING = time(9)  # of a day that is named without a time
_DAY, _WEEK = timedelta(days=1), timedelta(days=7)
_LONGEST_GAP = 24 * 60 * 60  # seconds; a country that crosses the date line skips a day
_SHOWN = 40  # characters of what was written that are repeated

_UNITS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), timedelta(seconds=1)),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), timedelta(minutes=1)),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), timedelta(hours=1)),
    **dict.fromkeys(("d", "day", "days"), _DAY),
    **dict.fromkeys(("w", "week", "weeks"), _WEEK),
}
_COUNTS = {
    word: str(number)
    for number, words in enumerate("a|an|one two three four five six seven eight nine ten eleven twelve".split(), 1)
    for word in words.split("|")
} | {"half an": "0.5"}


class _There(Struct, frozen=True, kw_only=True):
    """The zone, and what time it is."""

    zone: tzinfo
    now: datetime  # in UTC
    wall: datetime  # what the clocks there show


def moment(when: str, now: datetime, zone: str) -> datetime:
    """The moment that *when* means to somebody in *zone*, in UTC; InvalidValue where it means none to come."""
    there = _there(now, zone_named(zone))
    try:
        found = _found(when, there)
    except OverflowError:
        found = datetime.max.replace(tzinfo=UTC)
    if found is None:
        raise InvalidValue(f"{_short(when)} is no time that is understood; {UNDERSTOOD}")
    if found - there.now > FURTHEST:
        raise InvalidValue(f"{_short(when)} is not in the next 10 years: it is now {told(now, zone)}")
    if found <= there.now:
        raise InvalidValue(f"{_short(when)} is not ahead: it is now {told(now, zone)}")
    return found


def told(at: datetime, zone: str) -> str:
    """A moment as people in *zone* would write it down."""
    wall = at.astimezone(zone_named(zone)).replace(tzinfo=None)
    return f"{wall.isoformat(' ', 'seconds' if wall.second else 'minutes')} ({zone})"


def _there(now: datetime, zone: tzinfo) -> _There:
    try:
        return _There(zone=zone, now=utc(now), wall=now.astimezone(zone).replace(tzinfo=None, fold=0))
    except OverflowError as error:
        raise InvalidValue(f"{now} is beyond the calendar in {zone}") from error


def _found(when: str, there: _There) -> datetime | None:
    """What *when* means, ahead or not; None where it is of no form that is known, or no such day is in the calendar."""
    if len(when) > LENGTH:
        return None
    words = " ".join(when.split())
    for form, read in _FORMS:
        if match := form.fullmatch(words):
            try:
                return read(match, there)
            except ValueError:
                return None
    return None


def _stamp(match: re.Match[str], there: _There) -> datetime:
    at = datetime.fromisoformat(f"{match['day']}T{_padded(match['time'])}{(match['offset'] or '').upper()}")
    return _local(at, there) if at.tzinfo is None else at.astimezone(UTC)


def _date(match: re.Match[str], there: _There) -> datetime:
    return _local(datetime.combine(date.fromisoformat(match["day"]), _MORNING), there)


def _time(match: re.Match[str], there: _There) -> datetime:
    return _next(datetime.combine(there.wall, _clock(match)), there, _DAY)


def _near(match: re.Match[str], there: _There) -> datetime:
    day = there.wall + (_DAY if match["day"].lower() == "tomorrow" else timedelta(0))
    return _local(datetime.combine(day, _clock(match)), there)


def _weekday(match: re.Match[str], there: _There) -> datetime:
    today = there.wall
    ahead = (WEEKDAYS.index(match["day"].capitalize()) - today.weekday()) % 7
    return _next(datetime.combine(today + ahead * _DAY, _clock(match)), there, _WEEK)


def _passed(match: re.Match[str], there: _There) -> datetime:
    """Days as the calendar counts them, and then hours and less as they pass."""
    days = passed = timedelta(0)
    for said, name in _AMOUNT.findall(match["amounts"]):
        amount, unit = _COUNTS.get(said.lower(), said), _UNITS[name.lower()]
        if unit < _DAY:
            passed += float(amount) * unit
        else:
            days += int(amount) * unit  # half a day is as long as its clocks make it: no such thing
    return (_local(there.wall + days, there) if days else there.now) + passed


def _local(wall: datetime, there: _There) -> datetime:
    """When the clocks show *wall*: the first time unless that is past; where they skip it, the end of the gap."""
    first, second = (wall.replace(tzinfo=there.zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    if second < first:
        return _after_gap(wall, there.zone, second.replace(microsecond=0))
    return second if first <= there.now else first


def _after_gap(wall: datetime, zone: tzinfo, start: datetime) -> datetime:
    """The first full second from *start* at which the clocks show *wall* or later."""

    def shown(seconds: int) -> datetime:
        return (start + timedelta(seconds=seconds)).astimezone(zone).replace(tzinfo=None)

    return start + timedelta(seconds=bisect_left(range(_LONGEST_GAP), wall, key=shown))


def _next(wall: datetime, there: _There, every: timedelta) -> datetime:
    """*wall*, or the one after it where it is past."""
    first = _local(wall, there)
    return first if first > there.now else _local(wall + every, there)


def _clock(match: re.Match[str]) -> time:
    return time.fromisoformat(_padded(match["time"])) if match["time"] else _MORNING


def _padded(clock: str) -> str:
    return f"0{clock}" if clock[1] == ":" else clock


def _short(when: str) -> str:
    return repr(when) if len(when) <= _SHOWN else f"{when[:_SHOWN]!r}…"


def _form(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII | re.IGNORECASE)


_CLOCK = r"(?P<time>(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:[.,]\d{1,9})?)?)"
_OFFSET = r"(?: ?(?P<offset>Z|[+-]\d\d(?::?\d\d)?))?"
_AT = rf"(?: (?:at )?{_CLOCK})?"
_UNIT = "|".join(sorted(_UNITS, key=len, reverse=True))
_NUMBER = r"\d+(?:\.\d+)?"
_COUNT = "|".join(sorted(_COUNTS, key=len, reverse=True))
_AMOUNT = _form(rf"({_NUMBER}|\b(?:{_COUNT})(?= )) ?({_UNIT})")
_AMOUNTS = rf"(?:(?:{_NUMBER} ?|(?:{_COUNT}) )(?:{_UNIT})(?:,? (?:and )?(?=\d|(?:{_COUNT}) )|(?=\d)|(?= from now$)|$))+"

_FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], _There], datetime]], ...] = (
    (_form(rf"(?:on )?(?P<day>\d{{4}}-\d\d-\d\d)(?:T| (?:at )?){_CLOCK}{_OFFSET}"), _stamp),
    (_form(rf"(?P<day>\d{{8}})T(?P<time>(?:[01]\d|2[0-3])[0-5]\d(?:[0-5]\d)?){_OFFSET}"), _stamp),
    (_form(r"(?:on )?(?P<day>\d{4}-\d\d-\d\d)"), _date),
    (_form(rf"(?:at )?{_CLOCK}"), _time),
    (_form(rf"(?P<day>today|tomorrow){_AT}"), _near),
    (_form(rf"(?:on )?(?P<day>{'|'.join(WEEKDAYS)}){_AT}"), _weekday),
    (_form(rf"(?:in |after )?(?P<amounts>{_AMOUNTS})(?: from now)?"), _passed),
    (
        _form(rf"P(?=[T\d])(?P<amounts>\d+W|(?:\d+D)?(?:T(?=\d)(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?)"),
        _passed,
    ),
)
