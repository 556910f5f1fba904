"""Recurrences: each day that they choose has one moment, whatever the clocks do."""

from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from itertools import islice, pairwise
from zoneinfo import available_timezones

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from people import GROUP
from tertulia.errors import InvalidValue
from tertulia.tasks.graph import begin, fail, finish
from tertulia.tasks.recurrence import Recurrence, parse_recurrence, parse_when, split_when
from tertulia.tasks.task import RETRY, Task
from tertulia.timezones import zone_named

KYIV = "Europe/Kyiv"
NOW = datetime(2026, 11, 15, 15, 26, 37, tzinfo=UTC)  # a Sunday, 17:26 in Kyiv
ZONES = (*sorted(available_timezones()), "UTC+05:45")
DAY = timedelta(days=1)

UNDERSTOOD = {  # the weekdays, the day of the month, how far apart, the time and the first two days
    "every day at 9:00|every day 9:00|daily at 9|each day at 9:00|9:00 every day|щодня о 9:00|о 9 щодня"
    "|кожен день о 9|кожного дня|щоденно о 9": ((), None, 1, "09:00", "11-16", "11-17"),
    "every weekday at 8|weekdays at 8:00|on weekdays 8:00|every workday 8:00|щобудня о 8:00|у будні о 8|в будні дні о 8"
    "|по буднях о 8:00|кожного будня о 8": ((0, 1, 2, 3, 4), None, 1, "08:00", "11-16", "11-17"),
    "on weekends 10:00|every weekend at 10|по вихідних о 10:00|у вихідні о 10": (
        (5, 6), None, 1, "10:00", "11-21", "11-22",
    ),
    "every monday at 18:30|mondays 18:30|on mondays at 18:30|every week on monday at 18:30|weekly on Monday 18:30"
    "|щопонеділка о 18:30|кожного понеділка о 18:30|кожен понеділок о 18:30|по понеділках о 18:30"
    "|щотижня в понеділок о 18:30": ((0,), None, 1, "18:30", "11-16", "11-23"),
    "every monday, wednesday and friday at 7|mondays, wednesdays and fridays at 7"
    "|щопонеділка, щосереди й щоп’ятниці о 7|по понеділках, середах та п'ятницях о 7": (
        (0, 2, 4), None, 1, "07:00", "11-16", "11-18",
    ),
    "every week|щотижня": ((6,), None, 1, "09:00", "11-22", "11-29"),
    "every 2 days at 9:00|every other day at 9|every two days 9:00|кожні 2 дні о 9:00|кожні два дні": (
        (), None, 2, "09:00", "11-16", "11-18",
    ),
    "every 2 weeks on monday|every second monday|кожні 2 тижні в понеділок": ((0,), None, 2, "09:00", "11-16", "11-30"),
    "the first of the month|on the 1st of every month at 9|every month on the first|every 1st at 9:00"
    "|monthly on the 1st|першого числа кожного місяця|щомісяця 1 числа|1-го числа щомісяця"
    "|кожного 1 числа|першого числа місяця": (
        (), 1, 1, "09:00", "12-01", "01-01",
    ),
    "the last day of the month 18:00|every month on the 31st at 18:00|останнього дня місяця о 18:00": (
        (), 31, 1, "18:00", "11-30", "12-31",
    ),
    "every 3 months on the 15th": ((), 15, 3, "09:00", "12-15", "03-15"),
}  # fmt: skip


@pytest.mark.parametrize(("words", "meant"), UNDERSTOOD.items())
def test_what_is_understood_in_kyiv(words: str, meant: tuple[tuple[int, ...], int | None, int, str, str, str]) -> None:
    found = {}
    for one in words.split("|"):
        again = parse_recurrence(one, NOW, KYIV)
        assert again is not None, one
        first, second = (f"{moment.astimezone(zone_named(KYIV)):%m-%d}" for moment in islice(again.moments(NOW), 2))
        found[one] = (again.weekdays, again.day, again.every, f"{again.at:%H:%M}", first, second)

    assert found == dict.fromkeys(words.split("|"), meant)


ENDS = {
    "until 2026-11-20|until friday|till friday|for 5 days|5 times|, 5 times|до 2026-11-20|до п'ятниці|протягом 5 днів"
    "|5 разів|until 20 November|until november 20th|until the 20th of november 2026|до 20 листопада|до 20.11"
    "|до 20.11.2026|до 20 листопада 2026 року": "2026-11-20",
    "until 1 march|до 1 березня": "2027-03-01",
    "for a week|протягом тижня": "2026-11-22",
    "for two weeks|впродовж 2 тижнів": "2026-11-29",
    "for a month|протягом 1 місяця|протягом місяця": "2026-12-15",
    "for a year|for 12 months|протягом року": "2027-11-15",
    "until tomorrow|один раз|до завтра": "2026-11-16",
}


@pytest.mark.parametrize(("words", "last"), ENDS.items())
def test_it_ends_on_a_day_after_a_while_or_after_so_many_times(words: str, last: str) -> None:
    found = {}
    for one in words.split("|"):
        again = parse_recurrence(f"every day at 9:00{'' if one[0] == ',' else ' '}{one}", NOW, KYIV)
        assert again is not None, one
        found[one] = str([*again.moments(NOW)][-1].date())

    assert found == dict.fromkeys(words.split("|"), last)


@pytest.mark.parametrize(
    "words",
    "every|every hour|tomorrow 9:00|monday|on monday|щось|day|weekday morning|every day at 25:00|first|weekend|weekdays"
    "|mondays|робочі|вихідні|".split("|"),
)
def test_other_words_are_none(words: str) -> None:
    assert parse_recurrence(words, NOW, KYIV) is None


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("every day at 9:00 until 2026-11-14", "never comes: it is now 2026-11-15 17:26:37"),
        ("every day until 2026-02-30", "there is no day '2026-02-30'"),
        ("every day until 30 February", "there is no day '30 february'"),
        ("every 100 days", "after 1 to 99 days, weeks or months, not 100"),
        ("every 32nd", "a month has no day 32"),
        ("every day 23:59 0 times", "it comes at least once"),
        ("soon", "every day at 9:00, every weekday 8:00"),
    ],
)
def test_what_can_never_come_is_refused(words: str, why: str) -> None:
    with pytest.raises(InvalidValue, match=why):
        parse_when(words, NOW, KYIV)


@pytest.mark.parametrize(
    ("text", "split"),
    [
        ("щодня о 9:00 випити води", ("щодня о 9:00", "випити води")),
        ("every weekday at 8 until 2026-12-31: stand up", ("every weekday at 8 until 2026-12-31", "stand up")),
        ("every monday and friday at 18:00 for 3 weeks gym", ("every monday and friday at 18:00 for 3 weeks", "gym")),
        ("tomorrow 9:00 call mum", ("tomorrow 9:00", "call mum")),
        ("the first of the month: rent", ("the first of the month", "rent")),
        ("щодня – чай", ("щодня", "чай")),
        ("every day\ntea", ("every day", "tea")),
        ("every day until friday tea", ("every day until friday", "tea")),
        ("weekdays at 8 stand up", ("weekdays at 8", "stand up")),
        ("у вихідні о 10 базар", ("у вихідні о 10", "базар")),
        ("every day is a gift", None),  # without an hour or a mark it may belong to the text
        ("щодня нове життя", None),
        ("weekend plans with Ann", None),
        ("weekend: plans with Ann", None),
        ("робочі документи взяти", None),
        ("mondays are hard", None),
        ("daily standup in 10 minutes", None),  # a word of the text
        ("every day in the morning tea", None),  # an hour that is not understood
        ("щодня ввечері чай", None),
        ("щодня о 9 до 31 грудня вітаміни", ("щодня о 9 до 31 грудня", "вітаміни")),
        ("every day at 9 until December 31 pills", ("every day at 9 until December 31", "pills")),
        ("every day at 9 until the end of the year pills", None),  # an end that is not understood
        ("щодня о 9 до кінця року вітаміни", None),
        ("щодня о 9 до 7 ранку спати", None),
        ("щодня о 9 до лікаря", ("щодня о 9", "до лікаря")),
        ("every day at 9: until noon", ("every day at 9", "until noon")),
    ],
)
def test_a_text_may_begin_with_it(text: str, split: tuple[str, str] | None) -> None:
    assert split_when(text) == split


@cache
def days_of_change(zone: str) -> list[date]:
    """Return the days before and after which the clocks of a zone differ."""
    noons = [datetime(2005, 1, 1, 12, tzinfo=UTC) + number * DAY for number in range(31 * 365)]
    offsets = [noon.astimezone(zone_named(zone)).utcoffset() for noon in noons]
    pairs = zip(noons, pairwise(offsets), strict=False)
    return [noon.date() for noon, (before, after) in pairs if before != after] or [date(2026, 1, 1)]


def recurrences(zone: str) -> st.SearchStrategy[Recurrence]:
    near = st.builds(lambda day, days: day - days * DAY, st.sampled_from(days_of_change(zone)), st.integers(0, 3))
    return st.builds(
        Recurrence,
        words=st.just("x"),
        zone=st.just(zone),
        at=st.times().map(lambda at: at.replace(microsecond=0))
        | st.sampled_from([time(0), time(0, 30), time(2, 30), time(3), time(23), time(23, 30), time(23, 59)]),
        first=near | st.dates(date(2005, 1, 1), date(2035, 1, 1)),
        weekdays=st.lists(st.integers(0, 6), unique=True, max_size=3).map(lambda days: tuple(sorted(days))),
        day=st.none() | st.integers(1, 31),
        every=st.integers(1, 3),
        until=st.none(),
    )


RECURRENCES = st.sampled_from(ZONES).flatmap(recurrences)
SAMOA = Recurrence(words="x", zone="Pacific/Apia", at=time(9), first=date(2011, 12, 28))  # it skipped December 30
KYIV_GAP = Recurrence(words="x", zone=KYIV, at=time(3, 30), first=date(2026, 3, 27))
NUUK_GAP = Recurrence(words="x", zone="America/Nuuk", at=time(23, 30), first=date(2026, 3, 27))  # ends at midnight


@given(RECURRENCES, st.integers(0, 20_000))
@example(SAMOA, 0)
@example(KYIV_GAP, 0)
@example(NUUK_GAP, 0)
def test_every_day_that_it_chooses_has_one_moment_whatever_the_clocks_do(again: Recurrence, hours: int) -> None:
    zone = zone_named(again.zone)
    start = datetime.combine(again.first, time(0), UTC) - DAY + timedelta(hours=hours)

    found = list(islice(again.moments(start), 40))

    assert all(one < other for one, other in pairwise(found))
    days = []
    for moment in found:
        late = moment - timedelta(seconds=1)
        wall, before = (one.astimezone(zone).replace(tzinfo=None) for one in (moment, late))
        meant = datetime.combine(before if before.date() < wall.date() and again.at > before.time() else wall, again.at)
        assert wall == meant or before < meant < wall  # then the clocks skip it
        assert again.next_after(late) == moment
        days.append(meant.date())
    assert all(one < other for one, other in pairwise(days))  # never twice on a day
    if again.every == 1:  # none is left out
        whole = [days[0] + number * DAY for number in range((days[-1] - days[0]).days)]
        assert [day for day in whole if day not in days and chosen(day, again) and exists(day, again.zone)] == []


def test_a_moment_at_the_next_midnight_is_of_its_own_day() -> None:
    """In Nuuk the clocks skip the last hour of 28 March 2026."""
    now = datetime(2026, 3, 28, 12, tzinfo=UTC)

    again = parse_recurrence("every day at 23:30 2 times", now, "America/Nuuk")

    assert again is not None
    walls = [f"{moment.astimezone(zone_named(again.zone)):%m-%d %H:%M}" for moment in again.moments(now)]
    assert (again.first, again.until, walls) == (date(2026, 3, 28), date(2026, 3, 29), ["03-29 00:00", "03-29 23:30"])


def chosen(day: date, again: Recurrence) -> bool:
    if again.day is not None:
        return day.day == again.day or (day.day < again.day and (day + DAY).day == 1)
    return not again.weekdays or day.weekday() in again.weekdays


def exists(day: date, zone: str) -> bool:
    noon = datetime.combine(day, time(12), zone_named(zone)).astimezone(UTC)
    return noon.astimezone(zone_named(zone)).date() == day


@given(RECURRENCES, st.lists(st.integers(0, 400), min_size=1, max_size=30))
@example(KYIV_GAP, [24, 1, 1, 22, 24])
def test_a_task_comes_once_for_each_time_and_once_for_all_that_were_missed(again: Recurrence, steps: list[int]) -> None:
    now = datetime.combine(again.first, time(0), UTC) - DAY
    due = again.next_after(now)
    assert due is not None
    task = Task(id="t", kind="send", place=GROUP, due_at=due, again=again)
    ran: list[tuple[datetime, datetime]] = []  # when it was due, and when it ran
    for hours in steps:
        now += timedelta(hours=hours)
        while task.status == "pending" and task.due_at <= now:
            ran.append((task.due_at, now))
            task = finish(begin(task), now=now)
            assert task.due_at > now

    assert len({due_at for due_at, _ in ran}) == len(ran)
    assert all(now_of_one < due_of_other for (_, now_of_one), (due_of_other, _) in pairwise(ran))


def test_it_is_done_after_its_end_and_one_time_that_fails_is_not_the_last() -> None:
    again = Recurrence(words="x", zone=KYIV, at=time(9), first=date(2026, 11, 16), until=date(2026, 11, 17))
    task = Task(id="t", kind="send", place=GROUP, due_at=datetime(2026, 11, 16, 7, tzinfo=UTC), again=again, attempts=4)

    failed = fail(begin(task), now=task.due_at, why="no room", retry=RETRY)

    tomorrow = task.due_at + DAY
    assert (failed.status, failed.due_at, failed.attempts, failed.why) == ("pending", tomorrow, 0, "no room")
    assert fail(begin(task), now=task.due_at, why="no handler", permanent=True).status == "failed"
    assert finish(begin(failed), now=tomorrow).status == "done"
