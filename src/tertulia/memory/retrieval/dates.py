"""Finds dates and relative times in texts, as spans of days, in six languages. Pure."""

import re
from collections.abc import Callable
from datetime import date, timedelta

from msgspec import Struct

from tertulia.characters import visible

_MONTHS = (
    "january february march april may june july august september october november december",
    "jan feb mar apr may jun jul aug sep oct nov dec",
    "januar februar märz april mai juni juli august september oktober november dezember",
    "січ?? лют??? берез?? квіт?? трав?? черв?? лип?? серп?? верес?? жовт?? листопад? груд??",
    "январ? феврал? март? апрел? мая июн? июл? август? сентябр? октябр? ноябр? декабр?",
    "stycz??? lut??? marc? kwie???? maj? czerw?? lip?? sierp??? wrze???? październik? listopad? grud???",
)  # a question mark is any letter, or none
_MONTH_OF = {name: index + 1 for names in _MONTHS for index, name in enumerate(names.split())}
_FORMS = {name.replace("?", r"[^\W\d_]?"): number for name, number in _MONTH_OF.items()}
_MONTH = "|".join(sorted(_FORMS, key=len, reverse=True))
_YEAR = r"(?:19|20)\d\d"
_DAY = r"(?:3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th|го|\.)?"
_PART = re.compile(
    rf"\b(?:(?P<day>{_DAY})(?:\s+of)?\s+)?(?P<month>{_MONTH})\b\.?(?:\s+(?P<day_after>{_DAY})(?!\d))?(?:,?\s*(?:of\s+)?(?P<year>{_YEAR}))?"
)
_NUMERIC = re.compile(
    rf"\b(?P<y>{_YEAR})[-/.](?P<m>1[0-2]|0?[1-9])[-/.](?P<d>3[01]|[12]\d|0?[1-9])\b"
    rf"|\b(?P<d2>3[01]|[12]\d|0?[1-9])\.(?P<m2>1[0-2]|0?[1-9])\.(?P<y2>{_YEAR})\b"
    rf"|(?P<y3>{_YEAR})年(?:(?P<m3>1[0-2]|0?[1-9])月)?(?:(?P<d3>3[01]|[12]\d|0?[1-9])日)?"
)
_SEASONS = {
    "spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12, "весн": 3, "літ": 6, "осін": 9, "осен": 9,
    "зим": 12,
    "лет": 6, "wiosn": 3, "latem": 6, "jesie": 9, "zim": 12, "frühling": 3, "sommer": 6, "herbst": 9,
}  # fmt: skip
_SEASON = re.compile(rf"\b(?P<season>{'|'.join(_SEASONS)})[^\W\d_]{{0,3}}\s+(?:of\s+)?(?P<year>{_YEAR})\b")
_YEAR_ALONE = re.compile(rf"(?<![\w.])(?P<year>{_YEAR})(?!\w)")
_OFFSETS = {
    "today": 0, "tonight": 0, "yesterday": -1, "last night": -1, "tomorrow": 1, "сьогодні": 0, "вчора": -1, "завтра": 1,
    "позавчора": -2, "сегодня": 0, "вчера": -1, "позавчера": -2, "dzisiaj": 0, "dziś": 0, "wczoraj": -1, "jutro": 1,
    "heute": 0,
    "gestern": -1, "vorgestern": -2, "今天": 0, "昨天": -1, "前天": -2, "明天": 1, "今日": 0, "昨日": -1, "明日": 1,
}  # fmt: skip
_NEAR = re.compile(
    "|".join(rf"\b{word}\b" if word.isascii() else word for word in sorted(_OFFSETS, key=len, reverse=True))
)
_UNITS = {
    "day": 1, "night": 1, "week": 7, "weekend": 7, "month": 30, "year": 365, "дні": 1, "день": 1, "дня": 1, "дней":
    1, "днів": 1,
    "тиж": 7, "недел": 7, "місяц": 30, "месяц": 30, "рік": 365, "роки": 365, "рок": 365, "год": 365, "лет": 365,
    "dni": 1, "dzień": 1,
    "tydzień": 7, "tygodni": 7, "miesiąc": 30, "miesiąca": 30, "rok": 365, "lat": 365, "tag": 1, "woche": 7,
    "monat": 30, "jahr": 365,
}  # fmt: skip
_UNIT = "|".join(sorted(_UNITS, key=len, reverse=True))
_COUNTS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "couple of": 2, "three": 3, "few": 3, "four": 4, "five": 5, "six": 6,
    "seven": 7, "ten": 10,
    "два": 2, "дві": 2, "две": 2, "три": 3, "кілька": 3, "несколько": 3, "dwa": 2, "trzy": 3, "kilka": 3, "zwei": 2,
    "drei": 3,
}  # fmt: skip
_COUNT = "|".join(sorted(_COUNTS, key=len, reverse=True))
_AGO = re.compile(
    rf"(?:\b(?P<count>\d{{1,3}}|{_COUNT})\s+)?\b(?P<unit>{_UNIT})[^\W\d_]{{0,2}}\s+(?:ago|тому|назад|temu)\b"
    rf"|\bvor\s+(?P<count2>\d{{1,3}}|{_COUNT}|einem|einer)\s+(?P<unit2>{_UNIT})"
)
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_LAST = re.compile(
    rf"\b(?P<which>last|past|this|next|минул\w+|прошл\w+|наступн\w+|следующ\w+|zeszł\w+|ostatni\w*|letzte\w*|nächste\w*)\s+"
    rf"(?P<what>{'|'.join(_WEEKDAYS)}|{_UNIT})"
)
_FORWARD = ("next", "наступн", "следующ", "nächste")
_HINT = re.compile(
    rf"\b(?:{_YEAR}|(?:{_MONTH})\b|ago|last|past|this|next|(?:to|yester)day|tomorrow|tonight|тому|назад|temu|vor"
    r"|минул|прошл|наступн|следующ"
    r"|zeszł|ostatni|letzte|nächste|сьогодні|вчора|завтра|позавч|сегодня|вчера|dzi[sś]|wczoraj|jutro|heute|gestern|vorgestern)"
    r"|年|[今昨前明][天日]"
)  # a quick test: most texts have no date


class DateSpan(Struct, frozen=True):
    """The days from *first* to *last*, both included."""

    first: date
    last: date


def find_dates(text: str, now: date) -> list[DateSpan]:
    """Find the dates in a text that was written on the day *now*."""
    lowered = visible(text).lower()
    found: list[DateSpan] = []
    if not _HINT.search(lowered):
        return found
    for pattern, read in _READERS:
        for match in pattern.finditer(lowered):
            try:
                span = read(match, now)
            except (OverflowError, ValueError):  # it is not in the calendar
                continue
            if span is not None:
                found.append(span)
                lowered = lowered[: match.start()] + " " * (match.end() - match.start()) + lowered[match.end() :]
    return found


def _month(match: re.Match[str], now: date) -> DateSpan | None:
    word = match["month"]
    month = next(number for form, number in _FORMS.items() if re.fullmatch(form, word))
    digits = re.sub(r"\D", "", match["day"] or match["day_after"] or "")
    if not digits and not match["year"] and (len(word) < 4 or word == "march"):
        return None  # a verb or a name as often as a month
    year = int(match["year"]) if match["year"] else now.year - ((month, int(digits or 1)) > (now.month, now.day))
    return _span(year, month, int(digits or 0))


def _numeric(match: re.Match[str], now: date) -> DateSpan | None:
    year, month, day = (match[name] or match[f"{name}2"] or match[f"{name}3"] or 0 for name in "ymd")
    return _span(int(year), int(month), int(day))


def _season(match: re.Match[str], now: date) -> DateSpan | None:
    first = date(int(match["year"]), _SEASONS[match["season"]], 1)
    return DateSpan(first, first + timedelta(days=90))


def _near(match: re.Match[str], now: date) -> DateSpan | None:
    day = now + timedelta(days=_OFFSETS[match.group()])
    return DateSpan(day, day)


def _ago(match: re.Match[str], now: date) -> DateSpan | None:
    word, unit = match["count"] or match["count2"] or "a", _UNITS[match["unit"] or match["unit2"]]
    back = unit * (int(word) if word.isdigit() else _COUNTS.get(word, 1))
    return _around(now, -back, unit) if back < 36_500 else None


def _last(match: re.Match[str], now: date) -> DateSpan | None:
    forward = match["which"].startswith(_FORWARD)
    if match["what"] in _WEEKDAYS:
        back = (now.weekday() - _WEEKDAYS.index(match["what"])) % 7 or 7
        day = now + timedelta(days=7 - back if forward else -back)
        return DateSpan(day, day)
    unit = _UNITS[match["what"]]
    if match["which"] == "this":
        return DateSpan(now - timedelta(days=unit), now)
    return _around(now, unit if forward else -unit, unit)


def _around(now: date, offset: int, unit: int) -> DateSpan:
    middle, slack = now + timedelta(days=offset), timedelta(days=unit // 2)
    return DateSpan(middle - slack, middle + slack)


def _span(year: int, month: int, day: int) -> DateSpan:
    first = date(year, month or 1, day or 1)
    if day:
        return DateSpan(first, first)
    if month:
        return DateSpan(first, (first + timedelta(days=31)).replace(day=1) - timedelta(days=1))
    return DateSpan(first, date(year, 12, 31))


_READERS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], date], DateSpan | None]], ...] = (
    (_NUMERIC, _numeric),
    (_SEASON, _season),
    (_AGO, _ago),
    (_LAST, _last),
    (_PART, _month),
    (_YEAR_ALONE, lambda match, now: _span(int(match["year"]), 0, 0)),
    (_NEAR, _near),
)
