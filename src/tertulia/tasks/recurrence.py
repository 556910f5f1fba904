"""Recurrences: days that come again by the calendar, with a time of day, and the words that people have for them. Pure.

A recurrence chooses days of the calendar, and each of them has one moment: when the clocks of its zone first show the
time of day. Where they skip that time, it is the end of the gap, which may be the next midnight; a day that they skip
as a whole has none. So a change to or from summer time neither doubles a moment nor loses one. `next_after` looks at
the days one after another.

Words are read in three pieces: an end behind (`until friday`, `10 times`), a time of day before or behind the rest, and
the rest, which is one of `_RULES`.
"""

import re
from calendar import monthrange
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time, timedelta
from itertools import islice
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tertulia.errors import InvalidValue
from tertulia.tasks.due_times import (
    AROUND,
    COUNTS,
    DATE,
    DAYS,
    FURTHEST,
    LENGTH,
    MORNING,
    TIME,
    WEEKDAYS,
    any_of,
    day_named,
    format_moment,
    longest_time,
    moment_of,
    normalized,
    parse_moment,
    pattern,
    split_time,
    time_of,
)
from tertulia.timezones import utc, zone_named

LAST_DAY = 31  # of a month; in a shorter one its last
MOST_APART = 99  # days, weeks or months between two
MOST_TIMES = 999

_DAY = timedelta(days=1)


class Recurrence(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Every day, or some weekdays, or a day of each month, at a time of day."""

    words: str  # as they were given
    zone: str
    at: time  # of day, in the zone
    first: date  # the first day that it may come on; `every` counts from it
    weekdays: tuple[int, ...] = ()  # Monday is 0
    day: int | None = None  # of the month
    every: int = 1  # only each so many days, weeks (with `weekdays`) or months (with `day`)
    until: date | None = None  # the last day that it may come on

    def next_after(self, moment: datetime) -> datetime | None:
        """Return the first of its moments after *moment*, in UTC; None after its end."""
        return next(self.moments(moment), None)

    def moments(self, after: datetime) -> Iterator[datetime]:
        """Yield its moments after a moment, in UTC, for ten years or until its end."""
        return (moment for _, moment in self.days(after))

    def days(self, after: datetime) -> Iterator[tuple[date, datetime]]:
        """Yield its days, each with its moment; like `moments`."""
        after, zone = utc(after), zone_named(self.zone)
        first = max(self.first, after.astimezone(zone).date() - _DAY)
        last = min(self.until or date.max, first + min(FURTHEST, date.max - first))
        for day in (first + number * _DAY for number in range((last - first).days + 1)):
            found = moment_of(datetime.combine(day, self.at), zone) if self._has(day) else after
            if found > after and moment_of(datetime.combine(day, time(0)), zone).astimezone(zone).date() == day:
                yield day, found

    def _has(self, day: date) -> bool:
        """Return whether it comes on *day*."""
        if self.day is not None:
            months = (day.year - self.first.year) * 12 + day.month - self.first.month
            return months % self.every == 0 and day.day == min(self.day, monthrange(day.year, day.month)[1])
        if not self.weekdays:
            return (day - self.first).days % self.every == 0
        weeks = (day - (self.first - self.first.weekday() * _DAY)).days // 7
        return day.weekday() in self.weekdays and weeks % self.every == 0


def parse_when(when: str, now: datetime, zone: str) -> tuple[datetime, Recurrence | None]:
    """Return the moment that *when* means in *zone*, in UTC, and how it comes again, if it does."""
    again = parse_recurrence(when, now, zone)
    if again is None:
        return parse_moment(when, now, zone), None
    due_at = again.next_after(now)
    if due_at is None:
        raise InvalidValue(f"{when!r} never comes: it is now {format_moment(now, zone)}")
    return due_at, again


def parse_recurrence(when: str, now: datetime, zone: str) -> Recurrence | None:
    """Return the recurrence that *when* means in *zone*; None where it means none."""
    found = _match(when) if len(when) <= LENGTH else None
    if found is None:
        return None
    rule, at, end = found
    today = utc(now).astimezone(zone_named(zone)).date()
    given = Recurrence(words=" ".join(when.split()), zone=zone, at=time_of(at or MORNING), first=today)
    made = replace(given, **_days(rule, today))
    first, _ = next(made.days(now), (today, now))
    made = replace(made, first=first, every=_apart(rule))
    return replace(made, until=_last_day(end, made, now)) if end else made


def split_when(text: str) -> tuple[str, str] | None:
    """Split a text that begins with a time, also one that comes again, into that time and the rest.

    One that comes again has an hour or an end, or is set off by a mark: `every day is a gift` begins with no time. Nor
    does a text with an end that is not understood, so that nobody is reminded for ever.
    """
    found = longest_time(text, lambda words: (again := _match(words)) and bool(again[1]))
    if found is None:
        return split_time(text)
    when, rest = found
    _, at, end = _match(when) or ({}, "", {})
    before = text.rstrip(AROUND).removesuffix(rest)
    is_set_off = bool(before[len(before.rstrip(AROUND)) :].strip(" "))
    return found if is_set_off or end or (at and not _OTHER_END.match(rest)) else None


_Groups = Mapping[str, str]
_Found = tuple[_Groups, str, _Groups]  # the groups of the rule, the time of day, the groups of the end


def _match(when: str) -> _Found | None:
    words = normalized(when)
    end = _END.search(words)
    words = words[: end.start()] if end else words
    at = _TIME_BEHIND.search(words) or _TIME_BEFORE.match(words)
    rest = f"{words[: at.start()]}{words[at.end() :]}".strip(" ,") if at else words
    rule = next(filter(None, (form.fullmatch(rest) for form in _RULES)), None)
    if rule is None or (at is None and "bare" in _groups(rule)):
        return None
    return _groups(rule) | {"rule": rest}, (at["time"] or at["hour"]) if at else "", _groups(end) if end else {}


def _groups(found: re.Match[str]) -> dict[str, str]:
    return {name: value for name, value in found.groupdict().items() if value is not None}


def _days(rule: _Groups, today: date) -> dict[str, Any]:
    """Return the fields of a recurrence that say on which days it comes."""
    if "work" in rule or "free" in rule:
        return {"weekdays": (0, 1, 2, 3, 4) if "work" in rule else (5, 6)}
    if "week" in rule or "days" in rule:
        named = {_WEEKDAYS[word.removeprefix("що")] for word in _WORD.findall(rule.get("days", "")) if word in _NAMES}
        return {"weekdays": tuple(sorted(named)) or (today.weekday(),)}
    if "month" not in rule and "nth" not in rule:
        return {}
    nth = rule.get("nth", "")
    digits = re.match(r"\d+", nth)
    day = int(digits[0]) if digits else _ORDINALS.get(nth.partition(" ")[0], today.day)
    if not 1 <= day <= LAST_DAY:
        raise InvalidValue(f"a month has no day {day}")
    return {"day": day}


def _apart(rule: _Groups) -> int:
    every = _number(rule.get("count", "1"))
    if not 1 <= every <= MOST_APART:
        raise InvalidValue(f"it comes again after 1 to {MOST_APART} days, weeks or months, not {every}")
    return every


def _last_day(end: _Groups, made: Recurrence, now: datetime) -> date:
    """Return the last day of a recurrence that ends on a day, after a while, or after so many times."""
    if "until" in end:
        return _named_day(end["until"], utc(now).astimezone(zone_named(made.zone)).date())
    if "times" in end:
        times = _number(end["times"])
        if times < 1:
            raise InvalidValue(f"it comes at least once, not {times} times")
        *_, (last, _) = [(made.first, now), *islice(made.days(now), min(times, MOST_TIMES))]
        return last
    number = _number(end.get("number", "1")) * (12 if "years" in end else 1)
    if not {"months", "years"} & end.keys():
        return made.first + (number * (7 if "weeks" in end else 1) - 1) * _DAY
    year, month = divmod(made.first.month - 1 + number, 12)
    year, month = made.first.year + year, month + 1
    return date(year, month, min(made.first.day, monthrange(year, month)[1])) - _DAY


def _named_day(day: str, today: date) -> date:
    """Return the day that `2026-12-31`, `31 december`, `tomorrow` or `friday` means; a weekday is one to come."""
    if day in _WEEKDAYS:
        return today + ((_WEEKDAYS[day] - today.weekday() - 1) % 7 + 1) * _DAY
    if day in DAYS:
        return today + _DAY * (DAYS[day] == "tomorrow")
    try:
        return day_named(day, today)
    except ValueError as error:
        raise InvalidValue(f"there is no day {day!r}") from error


def _number(word: str) -> int:
    """Return a number in digits or in words; `other` is each second one."""
    return int(word) if word.isdecimal() else int(_OTHER.get(word) or COUNTS[word])


_OTHER = dict.fromkeys(("other", "second", "другий", "другого"), 2)
_ORDINALS = {
    word: number
    for words in ("first second third fourth fifth", "першого другого третього четвертого п'ятого")
    for number, word in enumerate(words.split(), 1)
} | {"last": LAST_DAY, "останнього": LAST_DAY}
_CASES = (
    "понеділка вівторка середи четверга п'ятниці суботи неділі",
    "понеділках вівторках середах четвергах п'ятницях суботах неділях",
    "mondays tuesdays wednesdays thursdays fridays saturdays sundays",
)
_WEEKDAYS = {word: WEEKDAYS.index(day) for word, day in DAYS.items() if day in WEEKDAYS} | {
    word: number for words in _CASES for number, word in enumerate(words.split())
}
_GENITIVES, _PLURALS, _ENGLISH_PLURALS = (words.split() for words in _CASES)
_NAMES = _WEEKDAYS.keys() | {f"що{word}" for word in _GENITIVES}
_WORD = re.compile(r"[\w']+")

_NUMBER = rf"\d{{1,3}}|{any_of(word for word, count in COUNTS.items() if count >= 1)}"
_COUNT = rf"(?:(?P<count>{_NUMBER}|{any_of(_OTHER)}) )"
_AND = r"(?:,? (?:and|і|й|та) |, ?)"
_BARE = "(?P<bare>)"  # no word before it says that it comes again; then it has an hour
_EACH = "every|each|кожен|кожний|кожного|кожної|кожну|кожні"


def _list_of(day: str) -> str:
    """Return a pattern of one or more days."""
    return rf"(?P<days>(?:{day})(?:{_AND}(?:on |в |у |по )?(?:{day}))*)"


_ANY_DAY = any_of(_WEEKDAYS)
_NTH = rf"(?P<nth>last day|\d{{1,2}}(?:st|nd|rd|th)?|{any_of(word for word in _ORDINALS if word.isascii())})(?: day)?"
_UK_NTH = (
    rf"(?P<nth>(?:\d{{1,2}}(?:-?го)?|{any_of(word for word in _ORDINALS if not word.isascii())}) (?:числа|дня|день))"
)
_UK_MONTH = r"(?P<month>щомісяця|кожного місяця|місяця)"

_RULES = tuple(
    map(
        pattern,
        (
            rf"(?:{_EACH}) {_COUNT}?(?:days?|день|дня|дні|днів)|daily|щодня|щоденно",
            rf"(?:every |each |on |{_BARE})(?:(?P<work>weekdays?|work(?:ing )?days?)|(?P<free>weekends?))",
            rf"(?:кожного |кожен |кожні |що|у |в |по |{_BARE})(?:(?P<work>буд(?:ня|ень|ні|нях|ням)|робочі)(?: дні)?"
            r"|(?P<free>вихідн(?:их|і|ого)))",
            rf"(?:{_EACH}) {_COUNT}?{_list_of(_ANY_DAY)}",
            rf"(?:on |{_BARE}){_list_of(any_of(_ENGLISH_PLURALS))}",
            rf"по {_list_of(any_of(_PLURALS))}",
            _list_of(rf"що(?:{any_of(_GENITIVES)})|{any_of(_GENITIVES)}").replace("(?:що", "(?=що)(?:що", 1),
            rf"(?P<week>weekly|щотижня|(?:{_EACH}) {_COUNT}?(?:weeks?|тиждень|тижня|тижні|тижнів))"
            rf"(?: (?:on |в |у |по )?{_list_of(_ANY_DAY)})?",
            rf"(?:on )?the {_NTH} of (?:the|each|every) (?P<month>month)",
            rf"(?P<month>monthly|(?:{_EACH}) {_COUNT}?months?)(?: on the {_NTH})?",
            r"(?:every|each) (?P<nth>\d{1,2}(?:st|nd|rd|th))(?: of the month)?",
            rf"(?P<month>щомісяця|кожного місяця|кожні {_COUNT}місяц(?:і|ів))(?: {_UK_NTH})?",
            rf"(?:кожного )?{_UK_NTH} {_UK_MONTH}",
            rf"кожного {_UK_NTH}",
        ),
    )
)
_END = pattern(
    rf",? (?:(?:until|till|до) (?P<until>{DATE}|{any_of((*_WEEKDAYS, *DAYS))})"
    rf"|(?:(?:for |протягом |впродовж )(?P<number>{_NUMBER}) |протягом |впродовж )"
    r"(?:(?P<weeks>weeks?|тиждень|тижня|тижні|тижнів)|(?P<months>months?|місяць|місяця|місяці|місяців)"
    r"|(?P<years>years?|рік|року|роки|років)|days?|день|дня|дні|днів)"
    rf"|(?P<times>{_NUMBER}) (?:times?|раз(?:и|ів)?))$"
)
_OTHER_END = re.compile(r"(?:until|till) |до (?:\d|кінця )", re.IGNORECASE)  # what one may begin with
_TIME_BEHIND, _TIME_BEFORE = pattern(rf"(?:^| ){TIME}$"), pattern(rf"{TIME}(?: |$)")
