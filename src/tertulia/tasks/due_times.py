"""Future times in the words of a model or a person, in English or Ukrainian, as moments in a time zone. Pure."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from msgspec import Struct

from tertulia.errors import InvalidValue
from tertulia.timezones import utc, zone_named

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")  # in no locale's words
LENGTH = 100  # characters of a time in words
FURTHEST = timedelta(days=3653)  # ten years, with as many leap days as they can have
FORMATS = (
    "what is understood: in 20 minutes, in 2 hours, in 1 day, 1 hour from now, 18:00, tomorrow at 9:00, friday 18:00, "
    "2026-11-20T18:00 (local time, or with an offset such as +02:00 or Z), 2026-11-20 (at 9:00), PT20M; and what comes "
    "again: every day at 9:00, every weekday 8:00, every monday 18:00, the first of the month, … until 2026-12-31"
)

MORNING = "09:00"  # the time of a day that is named without one
_DAY = timedelta(days=1)
_LONGEST_YEARS = 9  # in which each day of a month comes, also 29 February
_LONGEST_GAP = 24 * 60 * 60  # seconds; a country that crosses the date line skips a day
_EXCERPT = 40  # characters of the input that a refusal repeats

_UNITS = {
    word: length
    for words, length in (
        ("s sec secs second seconds с сек секунда секунду секунди секунд", timedelta(seconds=1)),
        ("півгодини", timedelta(minutes=30)),
        ("m min mins minute minutes хв хвилина хвилину хвилини хвилин", timedelta(minutes=1)),
        ("h hr hrs hour hours год година годину години годин", timedelta(hours=1)),
        ("d day days день дні днів", _DAY),
        ("w week weeks тиждень тижні тижнів", 7 * _DAY),
    )
    for word in words.split()
}
COUNTS = {
    **{word: number for number, word in enumerate("one two three four five six seven eight nine ten".split(), 1)},
    **{
        word: number
        for number, word in enumerate("один два три чотири п'ять шість сім вісім дев'ять десять".split(), 1)
    },
    "half an": 0.5,
    "a": 1,
    "an": 1,
    "eleven": 11,
    "twelve": 12,
    "пів": 0.5,
    "одну": 1,
    "дві": 2,
}
DAYS = {
    "today": "today",
    "tomorrow": "tomorrow",
    "сьогодні": "today",
    "завтра": "tomorrow",
    **{day.lower(): day for day in WEEKDAYS},
    **dict(zip("понеділок вівторок середу четвер п'ятницю суботу неділю".split(), WEEKDAYS, strict=True)),
    **dict(zip("понеділок вівторок середа четвер п'ятниця субота неділя".split(), WEEKDAYS, strict=True)),
}
_MONTHS = {
    word: number
    for words in (
        "january february march april may june july august september october november december",
        "jan feb mar apr may jun jul aug sep oct nov dec",
        "січня лютого березня квітня травня червня липня серпня вересня жовтня листопада грудня",
    )
    for number, word in enumerate(words.split(), 1)
}
AROUND = " \n\t,:;-–—"  # between a time and what follows it
_APOSTROPHES = str.maketrans("’ʼ`", "'''")


def parse_moment(when: str, now: datetime, zone: str) -> datetime:
    """Return the moment, in UTC, that *when* means in *zone*; raise InvalidValue where it means none in the future."""
    clock = _Clock.at(now, zone_named(zone))
    excerpt = repr(when) if len(when) <= _EXCERPT else f"{when[:_EXCERPT]!r}…"
    match = _match(when) if len(when) <= LENGTH else None
    try:
        found = clock.read(match) if match else None
    except OverflowError:
        found = datetime.max.replace(tzinfo=UTC)
    except ValueError:  # no such day or time
        found = None
    if found is None:
        raise InvalidValue(f"{excerpt} is no time that is understood; {FORMATS}")
    if found - clock.now > FURTHEST:
        raise InvalidValue(f"{excerpt} is not in the next 10 years: it is now {format_moment(now, zone)}")
    if found <= clock.now:
        raise InvalidValue(f"{excerpt} is not ahead: it is now {format_moment(now, zone)}")
    return found


def split_time(text: str) -> tuple[str, str] | None:
    """Split a text that begins with a time into that time and the rest; None where it begins with none.

    The longest time counts. A day that is followed by an hour in a form that is not understood is none, so that nobody
    is reminded at another hour.
    """
    return longest_time(
        text, lambda when: (found := _match(when)) and not (found.groupdict().get("day") and not found["time"])
    )


def longest_time(text: str, has_hour: Callable[[str], bool | None]) -> tuple[str, str] | None:
    """Split a text after the longest time at its start. *has_hour* says whether words name an hour; None: no time."""
    words = text[:_SPLIT].split()
    for count in range(min(len(words), _MOST_WORDS), 0, -1):
        when = " ".join(words[:count]).rstrip(AROUND)
        if (named := has_hour(when)) is not None:
            rest = "".join(text.split(maxsplit=count)[count:]).strip(AROUND)
            return None if not named and _HOUR.match(rest) else (when, rest)
    return None


def normalized(when: str) -> str:
    """Return a time in words in lower case, with one blank between words and one form of the apostrophe."""
    return " ".join(when.lower().translate(_APOSTROPHES).split())


def _match(when: str) -> re.Match[str] | None:
    words = normalized(when)
    return next(filter(None, (form.fullmatch(words) for form in _FORMS)), None)


def format_moment(at: datetime, zone: str) -> str:
    """Write a moment as the clocks of *zone* show it, with the name of the zone."""
    wall = at.astimezone(zone_named(zone)).replace(tzinfo=None)
    return f"{wall.isoformat(' ', 'seconds' if wall.second else 'minutes')} ({zone})"


def format_minute(at: datetime, zone: str) -> str:
    """Write a moment as `format_moment` does, without its seconds."""
    return format_moment(at.replace(second=0, microsecond=0), zone)


class _Clock(Struct, frozen=True, kw_only=True):
    """A time zone and its current time."""

    zone: tzinfo
    now: datetime  # in UTC
    wall: datetime  # what the clocks of the zone show, without an offset

    @classmethod
    def at(cls, now: datetime, zone: tzinfo) -> "_Clock":
        try:
            return cls(zone=zone, now=utc(now), wall=now.astimezone(zone).replace(tzinfo=None, fold=0))
        except OverflowError as error:
            raise InvalidValue(f"{now} is beyond the calendar in {zone}") from error

    def read(self, match: re.Match[str]) -> datetime:
        """Return the moment that one of the `_FORMS` means."""
        found = match.groupdict()
        if "amounts" in found:
            return self._after(found["amounts"])
        if "unit" in found:
            return self._after(f"1 {found['unit']}")
        day = DAYS.get(found.get("day") or "", found.get("day"))
        at = time_of(found.get("time") or found.get("hour") or MORNING, (found.get("offset") or "").upper())
        if not day:
            return self._next(datetime.combine(self.wall, at), _DAY)
        if day in ("today", "tomorrow"):
            return self._resolve(datetime.combine(self.wall + _DAY * (day == "tomorrow"), at))
        if day in WEEKDAYS:
            days = (WEEKDAYS.index(day) - self.wall.weekday()) % 7
            return self._next(datetime.combine(self.wall + days * _DAY, at), 7 * _DAY)
        return self._resolve(datetime.combine(day_named(day, self.wall.date()), at))

    def _after(self, amounts: str) -> datetime:
        """Add days and weeks by the calendar, then hours and less as time that passes."""
        days = duration = timedelta(0)
        for amount, unit in _AMOUNT.findall(amounts):
            length, count = _UNITS[unit], str(COUNTS.get(amount, amount))
            if length < _DAY:
                duration += float(count) * length
            else:
                days += int(count) * length  # 1.5 days raises ValueError: a day has no fixed length
        return (self._resolve(self.wall + days) if days else self.now) + duration

    def _next(self, wall: datetime, period: timedelta) -> datetime:
        """Return when the clocks show *wall*, or one period later where that is past."""
        first = self._resolve(wall)
        return first if first > self.now else self._resolve(wall + period)

    def _resolve(self, wall: datetime) -> datetime:
        """Return when the clocks show *wall*: where they show it twice, the first time unless it is past."""
        if wall.tzinfo is not None:
            return wall.astimezone(UTC)
        first = moment_of(wall, self.zone)
        return first if first > self.now else max(first, wall.replace(tzinfo=self.zone, fold=1).astimezone(UTC))


def day_named(words: str, today: date) -> date:
    """Return the day that a `DATE` means; without a year, the next one. Raise ValueError for one that never comes."""
    if re.fullmatch(r"\d{4}-?\d\d-?\d\d", words):
        return date.fromisoformat(words)
    named = next((_MONTHS[word] for word in re.findall(r"[^\W\d]+", words) if word in _MONTHS), None)
    day, *numbers = map(int, re.findall(r"\d+", words))
    month, *year = [named, *numbers] if named else numbers
    if year:
        return date(year[0], month, day)
    for number in range(today.year, today.year + _LONGEST_YEARS):
        with suppress(ValueError):  # a 29 February
            if (found := date(number, month, day)) >= today:
                return found
    raise ValueError(words)


def time_of(written: str, offset: str = "") -> time:
    """Return a time of day such as `9`, `9:00` or `09:00:30`."""
    return time.fromisoformat((f"0{written}" if written[1:2] in ("", ":") else written) + offset)


def moment_of(wall: datetime, zone: tzinfo) -> datetime:
    """Return when the clocks of a zone first show *wall*, in UTC.

    Where they skip it, that is the end of the gap: the first full second at which they show *wall* or later.
    """
    first, second = (wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    if second >= first:
        return first
    start = second.replace(microsecond=0)

    def wall_at(seconds: int) -> datetime:
        return (start + timedelta(seconds=seconds)).astimezone(zone).replace(tzinfo=None)

    return start + timedelta(seconds=bisect_left(range(_LONGEST_GAP), wall, key=wall_at))


def any_of(words: Iterable[str]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


def pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.ASCII)  # of text in lower case


_AT = "at |об? |на "
_CLOCK = r"(?P<time>(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:[.,]\d{1,9})?)?)"
TIME = rf"(?:(?:{_AT})?{_CLOCK}|(?:at |об? )(?P<hour>[01]?\d|2[0-3]))"
_OFFSET = r"(?: ?(?P<offset>z|[+-]\d\d(?::?\d\d)?))?"
_NUMBER, _COUNT, _UNIT = r"\d+(?:\.\d+)?", any_of(COUNTS), any_of(_UNITS)
_AMOUNT = pattern(rf"({_NUMBER}|(?:{_COUNT})(?= )) ?({_UNIT})")
_WORDS = rf"(?:{_NUMBER} ?|(?:{_COUNT}) )(?:{_UNIT})"  # an amount, without groups
_SPLIT, _MOST_WORDS = 300, 12  # characters and words at the beginning of a text that are looked at
_HOUR = re.compile(  # what a time of day may begin with
    r"(?:at|об?) |(?:(?:in the|на|в|у) )?(?:\d|morning|noon|afternoon|evening|night|вранці|зранку|вдень|опівдні|ввечері"
    r"|увечері|вночі)",
    re.IGNORECASE,
)

_NTH, _MONTH = r"\d{1,2}(?:st|nd|rd|th|-?го)?", any_of(_MONTHS)
_NAMED_DATE = (
    rf"(?:the )?{_NTH} (?:of )?(?:{_MONTH})(?:,? \d{{4}}(?: року)?)?|(?:{_MONTH}) (?:the )?{_NTH}(?:,? \d{{4}})?"
    r"|\d{1,2}\.\d{1,2}\.\d{4}"
)
DATE = rf"\d{{4}}-\d\d-\d\d|{_NAMED_DATE}|\d{{1,2}}\.\d{{1,2}}"  # of these forms only the last may be a time of day

_FORMS = (
    pattern(rf"(?:on )?(?P<day>{_NAMED_DATE})(?:,? {TIME})?"),
    pattern(rf"(?:on )?(?P<day>\d{{4}}-\d\d-\d\d)(?:(?:t| (?:{_AT})?){_CLOCK}{_OFFSET})?"),
    pattern(rf"(?P<day>\d{{8}})t(?P<time>(?:[01]\d|2[0-3])[0-5]\d(?:[0-5]\d)?){_OFFSET}"),
    pattern(TIME),
    pattern(rf"(?:on |[ву] )?(?P<day>{any_of(DAYS)})(?: {TIME})?"),
    pattern(
        rf"(?:in |after |через |за )?(?P<amounts>{_WORDS}(?:,? (?:and |і |й |та )?{_WORDS}|{_NUMBER} ?(?:{_UNIT}))*)"
        "(?: from now)?"
    ),
    pattern(rf"(?:через|за) (?P<unit>{_UNIT})"),
    pattern(rf"p(?=[t\d])(?P<amounts>\d+w|(?:\d+d)?(?:t(?=\d)(?:{_NUMBER}h)?(?:{_NUMBER}m)?(?:{_NUMBER}s)?)?)"),
)
