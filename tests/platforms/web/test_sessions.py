"""Sessions: how long they last, and how many there are."""

from pathlib import Path

from tertulia.platforms.web.sessions import LIFE, Sessions
from tertulia.platforms.web.tokens import TokenFile


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def begun(folder: Path, clock: Time, *, most: int = 10) -> tuple[Sessions, str]:
    tokens = TokenFile(folder / "tokens")
    tokens.open()
    return Sessions(tokens, clock, most=most), tokens.tokens["owner"]


def test_a_session_ends_by_itself(tmp_path: Path) -> None:
    clock = Time()
    sessions, token = begun(tmp_path, clock)
    started = sessions.begin(token)
    assert started is not None
    cookie, access = started

    clock.now = LIFE - 1
    assert sessions.access(cookie) == access
    clock.now = LIFE
    assert sessions.access(cookie) is None
    clock.now = 0.0
    assert sessions.access(cookie) is None


def test_of_too_many_sessions_the_oldest_ends(tmp_path: Path) -> None:
    sessions, token = begun(tmp_path, Time(), most=2)
    cookies = [found[0] for found in (sessions.begin(token) for _ in range(3)) if found]

    assert [sessions.access(cookie) is not None for cookie in cookies] == [False, True, True]
