"""Moments: what a model writes for a time to come, as the one moment it means there."""

import re
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from tertulia.errors import InvalidValue
from tertulia.tasks.due_times import (
    FORMATS,
    FURTHEST,
    LENGTH,
    WEEKDAYS,
    format_minute,
    format_moment,
    parse_moment,
    split_time,
)

KYIV, NEW_YORK, LORD_HOWE, APIA = "Europe/Kyiv", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia"
NOW = datetime(2026, 11, 15, 15, 26, 37, 500_000, tzinfo=UTC)  # a Sunday, 17:26 in Kyiv

ZONES = st.sampled_from([KYIV, NEW_YORK, LORD_HOWE, APIA, "UTC", "UTC-03:30", "Asia/Kathmandu", "America/St_Johns"])
NOWS = st.datetimes(datetime(2000, 1, 1), datetime(2060, 1, 1), timezones=st.just(UTC))
TIMES = st.times().map(lambda at: at.replace(microsecond=0))


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.mark.parametrize(
    ("when", "meant"),
    [
        ("2026-11-20T18:00:00+02:00", "2026-11-20T16:00Z"),
        ("2026-11-20T18:00Z", "2026-11-20T18:00Z"),
        ("2026-11-20t18:00z", "2026-11-20T18:00Z"),
        ("2026-11-20T18:00-0330", "2026-11-20T21:30Z"),
        ("2026-11-20 18:00 +05", "2026-11-20T13:00Z"),
        ("2026-11-20T18:00:05.25", "2026-11-20T16:00:05.250Z"),
        ("2026-11-20T18:00:05,123456789Z", "2026-11-20T18:00:05.123456Z"),
        ("2026-11-20T18:00", "2026-11-20T16:00Z"),
        ("2026-11-20 9:00", "2026-11-20T07:00Z"),
        ("2026-11-20 at 9:00", "2026-11-20T07:00Z"),
        ("20261120T180000Z", "2026-11-20T18:00Z"),
        ("20261120T1800", "2026-11-20T16:00Z"),
        ("2026-11-20", "2026-11-20T07:00Z"),
        ("on 2026-11-20", "2026-11-20T07:00Z"),
        ("2027-07-20", "2027-07-20T06:00Z"),
        ("18:00", "2026-11-15T16:00Z"),
        ("at 18:00", "2026-11-15T16:00Z"),
        ("17:26", "2026-11-16T15:26Z"),
        ("17:26:38", "2026-11-15T15:26:38Z"),
        ("9:05", "2026-11-16T07:05Z"),
        ("00:00", "2026-11-15T22:00Z"),
        ("today 23:59", "2026-11-15T21:59Z"),
        ("tomorrow", "2026-11-16T07:00Z"),
        ("tomorrow 9:00", "2026-11-16T07:00Z"),
        ("Tomorrow at 21:30", "2026-11-16T19:30Z"),
        ("  TOMORROW \n 21:30\t", "2026-11-16T19:30Z"),
        ("friday 18:00", "2026-11-20T16:00Z"),
        ("on Friday at 18:00", "2026-11-20T16:00Z"),
        ("monday", "2026-11-16T07:00Z"),
        ("sunday 18:00", "2026-11-15T16:00Z"),
        ("sunday", "2026-11-22T07:00Z"),
        ("in 20 minutes", "2026-11-15T15:46:37.5Z"),
        ("in 1 minute", "2026-11-15T15:27:37.5Z"),
        ("In 2 hours", "2026-11-15T17:26:37.5Z"),
        ("in 1.5 hours", "2026-11-15T16:56:37.5Z"),
        ("in 1 day", "2026-11-16T15:26:37.5Z"),
        ("in 2 weeks", "2026-11-29T15:26:37.5Z"),
        ("in 90 s", "2026-11-15T15:28:07.5Z"),
        ("in 90s", "2026-11-15T15:28:07.5Z"),
        ("in 5 min", "2026-11-15T15:31:37.5Z"),
        ("in 1 hour 30 minutes", "2026-11-15T16:56:37.5Z"),
        ("in 1 day, 2 hours and 3 secs", "2026-11-16T17:26:40.5Z"),
        ("in 2h30m", "2026-11-15T17:56:37.5Z"),
        ("1 minute from now", "2026-11-15T15:27:37.5Z"),
        ("In 1 minute from now", "2026-11-15T15:27:37.5Z"),
        ("5 minutes", "2026-11-15T15:31:37.5Z"),
        ("after 5 minutes", "2026-11-15T15:31:37.5Z"),
        ("in a minute", "2026-11-15T15:27:37.5Z"),
        ("in an hour", "2026-11-15T16:26:37.5Z"),
        ("in half an hour", "2026-11-15T15:56:37.5Z"),
        ("in two hours", "2026-11-15T17:26:37.5Z"),
        ("an hour and five minutes from now", "2026-11-15T16:31:37.5Z"),
        ("two days from now", "2026-11-17T15:26:37.5Z"),
        ("PT20M", "2026-11-15T15:46:37.5Z"),
        ("pt1h30m", "2026-11-15T16:56:37.5Z"),
        ("PT0.5H", "2026-11-15T15:56:37.5Z"),
        ("P1D", "2026-11-16T15:26:37.5Z"),
        ("P1DT12H", "2026-11-17T03:26:37.5Z"),
        ("P2W", "2026-11-29T15:26:37.5Z"),
        ("in 3653 days", "2036-11-15T15:26:37.5Z"),
        ("2036-11-15T17:26", "2036-11-15T15:26Z"),
    ],
)
def test_what_is_understood_in_kyiv(when: str, meant: str) -> None:
    assert parse_moment(when, NOW, KYIV) == at(meant)


@pytest.mark.parametrize(
    ("when", "meant"),
    [
        ("через 20 хвилин", "2026-11-15T15:46:37.5Z"),
        ("Через 1 хвилину", "2026-11-15T15:27:37.5Z"),
        ("за 2 години", "2026-11-15T17:26:37.5Z"),
        ("через годину", "2026-11-15T16:26:37.5Z"),
        ("через півгодини", "2026-11-15T15:56:37.5Z"),
        ("за пів години", "2026-11-15T15:56:37.5Z"),
        ("через дві години і п’ять хвилин", "2026-11-15T17:31:37.5Z"),
        ("5 хв", "2026-11-15T15:31:37.5Z"),
        ("через тиждень", "2026-11-22T15:26:37.5Z"),
        ("через 3 дні", "2026-11-18T15:26:37.5Z"),
        ("сьогодні о 23:59", "2026-11-15T21:59Z"),
        ("завтра", "2026-11-16T07:00Z"),
        ("Завтра о 9:00", "2026-11-16T07:00Z"),
        ("завтра об 11", "2026-11-16T09:00Z"),
        ("о 18:00", "2026-11-15T16:00Z"),
        ("у п'ятницю о 18:00", "2026-11-20T16:00Z"),
        ("в неділю", "2026-11-22T07:00Z"),
        ("середа 7:30", "2026-11-18T05:30Z"),
        ("tomorrow at 9", "2026-11-16T07:00Z"),
    ],
)
def test_what_is_understood_in_ukrainian_and_of_whole_hours(when: str, meant: str) -> None:
    assert parse_moment(when, NOW, KYIV) == at(meant)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("31 December at 10|December 31 at 10:00|on the 31st of December 10:00|dec 31, 2026 at 10|31.12.2026 at 10"
         "|31 грудня о 10|31-го грудня об 10:00|31 грудня 2026 року о 10", "2026-12-31T08:00Z"),
        ("5 May|may 5th|5 травня", "2027-05-05T06:00Z"),
        ("29 February|29 лютого", "2028-02-29T07:00Z"),
        ("15 November 18:00|15 листопада о 18:00", "2026-11-15T16:00Z"),
    ],
)  # fmt: skip
def test_a_day_of_a_month_by_its_name_is_the_next_one(words: str, meant: str) -> None:
    assert {one: parse_moment(one, NOW, KYIV) for one in words.split("|")} == dict.fromkeys(words.split("|"), at(meant))


@pytest.mark.parametrize(
    "when", ["31 November at 9", "0 May", "30 лютого", "14 November 2026", "32.01.2027", "may", "31"]
)
def test_a_day_that_no_month_has_or_that_is_past_is_refused(when: str) -> None:
    with pytest.raises(InvalidValue):
        parse_moment(when, NOW, KYIV)


@pytest.mark.parametrize(
    ("text", "split"),
    [
        ("in 10 minutes call mum", ("in 10 minutes", "call mum")),
        ("in 10 minutes 5 push-ups", ("in 10 minutes", "5 push-ups")),
        ("in 1 hour and 5 minutes: tea", ("in 1 hour and 5 minutes", "tea")),
        ("tomorrow 9:00 — call\nmum and dad", ("tomorrow 9:00", "call\nmum and dad")),
        ("tomorrow, at home", None),
        ("tomorrow buy milk", ("tomorrow", "buy milk")),
        ("tomorrow", ("tomorrow", "")),
        ("tomorrow at 9pm call", None),
        ("tomorrow 9pm call", None),
        ("tomorrow evening call", None),
        ("завтра о дев’ятій подзвонити", None),
        ("завтра ввечері подзвонити", None),
        ("через 20 хвилин чай", ("через 20 хвилин", "чай")),
        ("у пʼятницю о 18:00 кіно", ("у пʼятницю о 18:00", "кіно")),
        ("18:00 tea", ("18:00", "tea")),
        ("call mum tomorrow", None),
        ("", None),
        ("today 9:00 x", ("today 9:00", "x")),
        ("2026-11-20T18:00 x", ("2026-11-20T18:00", "x")),
        ("5 травня о 10:00 день народження", ("5 травня о 10:00", "день народження")),
        ("May 5 at 10, cake", ("May 5 at 10", "cake")),
        ("5 may flowers", ("5 may", "flowers")),
        ("5 may in the evening flowers", None),
        ("may flowers bloom", None),
        ("10.12 lunch", None),
    ],
)
def test_a_text_that_begins_with_a_time_is_split_after_it(text: str, split: tuple[str, str] | None) -> None:
    assert split_time(text) == split


@pytest.mark.parametrize(
    ("zone", "when", "now", "meant"),
    [
        # on 29 March 2026 at 3:00 the clocks of Kyiv go to 4:00, at 01:00 UTC
        (KYIV, "2026-03-29T03:30", "2026-03-28T10:00Z", "2026-03-29T01:00Z"),
        (KYIV, "2026-03-29T03:00", "2026-03-28T10:00Z", "2026-03-29T01:00Z"),
        (KYIV, "2026-03-29T03:59:59.9", "2026-03-28T10:00Z", "2026-03-29T01:00Z"),
        (KYIV, "2026-03-29T02:59:59", "2026-03-28T10:00Z", "2026-03-29T00:59:59Z"),
        (KYIV, "2026-03-29T04:00", "2026-03-28T10:00Z", "2026-03-29T01:00Z"),
        (KYIV, "3:30", "2026-03-28T22:00Z", "2026-03-29T01:00Z"),
        (KYIV, "3:30", "2026-03-29T01:10Z", "2026-03-30T00:30Z"),
        (KYIV, "tomorrow 9:00", "2026-03-28T10:00Z", "2026-03-29T06:00Z"),
        (KYIV, "in 1 day", "2026-03-28T10:00Z", "2026-03-29T09:00Z"),
        (KYIV, "in 1 day", "2026-03-28T01:30Z", "2026-03-29T01:00Z"),
        (KYIV, "in 24 hours", "2026-03-28T10:00Z", "2026-03-29T10:00Z"),
        (KYIV, "PT24H", "2026-03-28T10:00Z", "2026-03-29T10:00Z"),
        (KYIV, "P1DT1H", "2026-03-28T10:00Z", "2026-03-29T10:00Z"),
        (KYIV, "sunday", "2026-03-28T10:00Z", "2026-03-29T06:00Z"),
        # on 25 October at 4:00 they go back to 3:00, at 01:00 UTC
        (KYIV, "2026-10-25T03:30", "2026-10-24T10:00Z", "2026-10-25T00:30Z"),
        (KYIV, "2026-10-25T03:30", "2026-10-25T00:40Z", "2026-10-25T01:30Z"),
        (KYIV, "3:30", "2026-10-25T00:10Z", "2026-10-25T00:30Z"),
        (KYIV, "3:30", "2026-10-25T01:10Z", "2026-10-25T01:30Z"),
        (KYIV, "3:30", "2026-10-25T01:30Z", "2026-10-26T01:30Z"),
        (KYIV, "tomorrow at 9:00", "2026-10-24T10:00Z", "2026-10-25T07:00Z"),
        (KYIV, "in 1 day", "2026-10-24T10:00Z", "2026-10-25T11:00Z"),
        (KYIV, "in 24 hours", "2026-10-24T10:00Z", "2026-10-25T10:00Z"),
        # 8 March, 2:00 to 3:00 at 07:00 UTC; 1 November, 2:00 to 1:00 at 06:00 UTC
        (NEW_YORK, "2026-03-08T02:30", "2026-03-07T12:00Z", "2026-03-08T07:00Z"),
        (NEW_YORK, "sunday 2:30", "2026-03-07T12:00Z", "2026-03-08T07:00Z"),
        (NEW_YORK, "2026-03-08 02:30 -05:00", "2026-03-07T12:00Z", "2026-03-08T07:30Z"),
        (NEW_YORK, "2026-11-01T01:30", "2026-10-31T12:00Z", "2026-11-01T05:30Z"),
        (NEW_YORK, "2026-11-01T01:30-05:00", "2026-10-31T12:00Z", "2026-11-01T06:30Z"),
        (NEW_YORK, "tomorrow", "2026-10-31T12:00Z", "2026-11-01T14:00Z"),
        (NEW_YORK, "tomorrow", "2026-11-01T03:30Z", "2026-11-01T14:00Z"),
        # 4 October, 2:00 to 2:30 at 15:30 UTC of the day before; 5 April, 2:00 to 1:30 at 15:00 UTC of the day before
        (LORD_HOWE, "2026-10-04T02:10", "2026-10-03T00:00Z", "2026-10-03T15:30Z"),
        (LORD_HOWE, "2026-10-04T02:30", "2026-10-03T00:00Z", "2026-10-03T15:30Z"),
        (LORD_HOWE, "2026-10-04T01:59", "2026-10-03T00:00Z", "2026-10-03T15:29Z"),
        (LORD_HOWE, "2026-04-05T01:45", "2026-04-04T00:00Z", "2026-04-04T14:45Z"),
        (LORD_HOWE, "1:45", "2026-04-04T14:50Z", "2026-04-04T15:15Z"),
        (LORD_HOWE, "in 1 day", "2026-10-03T00:00Z", "2026-10-03T23:30Z"),
        # after Thursday 29 December 2011 came Saturday the 31st, at 10:00 UTC
        (APIA, "2011-12-30T12:00", "2011-12-29T20:00Z", "2011-12-30T10:00Z"),
        (APIA, "2011-12-30T23:59:59", "2011-12-29T20:00Z", "2011-12-30T10:00Z"),
        (APIA, "2011-12-30", "2011-12-29T20:00Z", "2011-12-30T10:00Z"),
        (APIA, "tomorrow 9:00", "2011-12-29T20:00Z", "2011-12-30T10:00Z"),
        (APIA, "in 1 day", "2011-12-29T20:00Z", "2011-12-30T10:00Z"),
        (APIA, "in 2 days", "2011-12-29T20:00Z", "2011-12-30T20:00Z"),
        (APIA, "saturday", "2011-12-29T20:00Z", "2011-12-30T19:00Z"),
        (APIA, "2011-12-29T23:59", "2011-12-29T20:00Z", "2011-12-30T09:59Z"),
        # at 0:01 of 7 November 2010 it was 23:01 of the 6th again, at 02:31 UTC
        ("America/St_Johns", "0:00", "2010-11-07T02:45Z", "2010-11-07T03:30Z"),
        ("America/St_Johns", "0:00", "2010-11-07T02:00Z", "2010-11-07T02:30Z"),
    ],
)
def test_where_clocks_change(zone: str, when: str, now: str, meant: str) -> None:
    assert parse_moment(when, at(now), zone) == at(meant)


@pytest.mark.parametrize(
    "when",
    [
        "",
        "   ",
        "soon",
        "18",
        "1800",
        "6pm",
        "24:00",
        "12:60",
        "12:5",
        "18:00Z",
        "next friday",
        "fri",
        "friday 25:00",
        "tomorrow tomorrow",
        "tomorrow in 2 hours",
        "in",
        "in 5",
        "in 5 months",
        "in -5 minutes",
        "in 1,000 seconds",
        "in 1.5 days",
        "in 1e3 s",
        "in 1. s",
        "in nan s",
        "in 5 minutesand 3 seconds",
        "in 5 minutes,",
        "now",
        "from now",
        "1 minute from",
        "1 minute from now from now",
        "18:00 from now",
        "a minutes an hour from",
        "in a 5 minutes",
        "in half a day",
        "P",
        "PT",
        "P1DT",
        "P1Y",
        "P1M",
        "P0.5D",
        "P1WT",
        "PT1M1H",
        "-PT5M",
        "2026-02-30",
        "2026-13-01T10:00",
        "2026-11-20T24:00",
        "2026-11-20T18:00+24:00",
        "2026-11-20T18:00+2",
        "2026-11-20T",
        "2026-11-20x18:00",
        "2026-11-20 18:00 EET",
        "2026-11-20T18:00[Europe/Kyiv]",
        "0000-01-01",
        "2026-W47-5",
        "26-11-20",
        "١٨:٠٠",
        "in ２０ minutes",
        "in 20 minuteſ",
        "tomorrow 9\uff1a00",
        "\ud800",
        "in 20 minutes\x00",
        "'; DROP TABLE tasks; --",
        "in" + " " * LENGTH + "20 minutes",
        "9" * 100_000,
        "in " + "1 s " * 100_000,
    ],
)
def test_anything_else_is_refused_in_a_line_that_says_what_is_understood(when: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        parse_moment(when, NOW, KYIV)

    said = str(caught.value)
    assert said.endswith(FORMATS)
    assert len(said) < 450
    assert said.isprintable()


@pytest.mark.parametrize(
    "when",
    ["2026-11-15", "2026-11-15T17:26", "2026-11-15T15:26:37.5Z", "today 9:00", "today", "1970-01-01", "in 0 s", "PT0S"],
)
def test_what_is_not_ahead_is_refused_with_the_time_it_is(when: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        parse_moment(when, NOW, KYIV)

    assert str(caught.value) == f"{when!r} is not ahead: it is now 2026-11-15 17:26:37 (Europe/Kyiv)"


@pytest.mark.parametrize(
    "when",
    [
        "2036-11-20T00:00",
        "2036-11-20",
        "9999-12-31T23:59-14:00",
        "0001-01-01T00:00+14:00",
        "in 3654 days",
        "in 99999999999999999999999999999 weeks",
        f"in {'9' * 60} hours",
        f"P{'9' * 60}D",
        f"PT{'9' * 60}.5S",
    ],
)
def test_what_is_not_in_the_next_ten_years_is_refused(when: str) -> None:
    with pytest.raises(InvalidValue, match="is not in the next 10 years: it is now 2026-11-15 17:26:37"):
        parse_moment(when, NOW, KYIV)


def test_a_clock_without_a_zone_is_refused() -> None:
    with pytest.raises(InvalidValue, match="a time without a zone"):
        parse_moment("tomorrow", NOW.replace(tzinfo=None), KYIV)


def test_a_zone_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidValue, match="no time zone is called 'Mars/Olympus'"):
        parse_moment("tomorrow", NOW, "Mars/Olympus")


@pytest.mark.parametrize("now", [datetime.min, datetime.max])
@pytest.mark.parametrize("when", ["tomorrow", "18:00", "friday", "in 1 day", "in 1 s", "2026-11-20"])
@pytest.mark.parametrize("zone", [KYIV, NEW_YORK])
def test_the_ends_of_the_calendar_are_no_harm(now: datetime, when: str, zone: str) -> None:
    try:
        found = parse_moment(when, now.replace(tzinfo=UTC), zone)
    except InvalidValue:
        return

    assert found > now.replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("due", "zone", "words"),
    [
        ("2026-11-15T16:00Z", KYIV, "2026-11-15 18:00 (Europe/Kyiv)"),
        ("2026-11-15T16:00:05.25Z", KYIV, "2026-11-15 18:00:05 (Europe/Kyiv)"),
        ("2026-11-15T22:00Z", "UTC+05:30", "2026-11-16 03:30 (UTC+05:30)"),
    ],
)
def test_a_moment_in_words(due: str, zone: str, words: str) -> None:
    assert format_moment(at(due), zone) == words
    assert format_minute(at(due), zone) == words.replace(":05 ", " ")


_PIECES = st.sampled_from(
    "in at on today tomorrow friday sunday 20 1.5 0 99999999999 minutes hours days weeks s and , P PT T 1D 20M 18:00 "
    "9:00 2026-11-20 2011-12-30 9999-12-31 0001-01-01 +02:00 Z -14:00 24:00".split(" ")
)
_LIKELY = st.lists(_PIECES, max_size=6).flatmap(lambda pieces: st.sampled_from([" ".join(pieces), "".join(pieces)]))


@given(when=_LIKELY | st.text(), now=NOWS, zone=ZONES)
@example(when="9999-12-31T23:59", now=NOW, zone=NEW_YORK)
def test_any_text_means_a_moment_ahead_in_utc_or_is_refused(when: str, now: datetime, zone: str) -> None:
    try:
        found = parse_moment(when, now, zone)
    except InvalidValue:
        return

    assert found.tzinfo is UTC
    assert now < found <= now + FURTHEST


@given(ahead=st.timedeltas(timedelta(microseconds=1), FURTHEST), now=NOWS, zone=ZONES)
def test_a_moment_with_its_offset_means_itself(ahead: timedelta, now: datetime, zone: str) -> None:
    due = now + ahead

    assert parse_moment(due.isoformat(), now, zone) == due
    assert parse_moment(due.astimezone(ZoneInfo(KYIV)).isoformat(" "), now, zone) == due


@given(amount=st.integers(1, 100_000), unit=st.sampled_from(["second", "minute", "hour"]), now=NOWS, zone=ZONES)
def test_hours_and_less_are_time_that_passes(amount: int, unit: str, now: datetime, zone: str) -> None:
    passed = timedelta(**{f"{unit}s": amount})
    assume(passed <= FURTHEST)

    assert parse_moment(f"in {amount} {unit}s", now, zone) == now + passed
    assert parse_moment(f"PT{amount}{unit[0].upper()}", now, zone) == now + passed


@given(ahead=st.integers(1, 3000), clock=TIMES, now=NOWS, zone=st.sampled_from([KYIV, NEW_YORK, LORD_HOWE, APIA]))
def test_a_local_time_is_what_the_clocks_show_then_or_the_end_of_a_gap(
    ahead: int, clock: time, now: datetime, zone: str
) -> None:
    there = ZoneInfo(zone)
    wall = datetime.combine(now.astimezone(there).date() + timedelta(days=ahead), clock)

    found = parse_moment(wall.isoformat(), now, zone)

    shown = found.astimezone(there).replace(tzinfo=None, fold=0)
    before = (found - timedelta(seconds=1)).astimezone(there).replace(tzinfo=None)
    assert shown == wall or before < wall < shown


@given(clock=TIMES, now=NOWS, zone=ZONES)
def test_a_time_of_day_comes_within_a_day_and_a_change_of_clocks(clock: time, now: datetime, zone: str) -> None:
    assume(zone != APIA or not date(2011, 12, 28) < now.date() < date(2012, 1, 1))

    found = parse_moment(clock.isoformat(), now, zone)

    assert now < found <= now + timedelta(hours=25)


@given(day=st.sampled_from(WEEKDAYS), now=NOWS, zone=ZONES)
def test_a_weekday_comes_within_a_week_at_nine(day: str, now: datetime, zone: str) -> None:
    assume(zone != APIA or now.year != 2011)

    due = format_moment(parse_moment(day, now, zone), zone)

    found = re.fullmatch(r"(\S+) 09:00 \(.+\)", due)
    assert found is not None
    assert WEEKDAYS[date.fromisoformat(found[1]).weekday()] == day
