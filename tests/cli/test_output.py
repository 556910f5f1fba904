from io import StringIO

import pytest

from tertulia.cli.output import ProgressBar


class Tty(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("out", "seen"),
    [
        (StringIO(), "50 %: 5 of 10 MB\n100 %: 10 of 10 MB\n"),
        (Tty(), f"\r[{'█' * 15}{'·' * 15}] 5 of 10 MB\r[{'█' * 16}{'·' * 14}] 5 of 10 MB\r[{'█' * 30}] 10 of 10 MB\n"),
    ],
)
def test_people_see_a_bar_and_logs_a_line_now_and_then(out: StringIO, seen: str) -> None:
    bar = ProgressBar(out)

    for done in (5 << 20, (5 << 20) + (1 << 19), 10 << 20):
        bar.show_bytes(done, 10 << 20)

    assert out.getvalue() == seen


def test_a_note_stands_below_the_bar() -> None:
    out = Tty()
    bar = ProgressBar(out, width=4)

    bar.show(0.5, "half")
    bar.note("waiting")
    bar.end()

    assert out.getvalue() == "\r[██··] half\ntertulia: waiting\n"
