"""A picture of a tool goes out once, whenever the process is killed; where nobody knows, it is listed."""

from pathlib import Path

from engine.picture_child import PictureLife
from lives import TESTS, lives
from sizes import size
from tertulia.sim.telegram import image
from tertulia.store import Store

ALL_POINTS = [
    f"{when} {name}"
    for name in (
        "media.add 1",
        "runs.end_tool 1",
        "runs.end 1",
        "outbox.change 1",
        "outbox.change 2",
        "platform.send 1",
    )
    for when in ("before", "after")
]
POINTS = ALL_POINTS[:: size(2, full=1)]
IN_DOUBT = ["after outbox.change 1", "before platform.send 1", "after platform.send 1", "before outbox.change 2"]


async def test_a_picture_goes_out_once_or_is_in_doubt_and_listed(tmp_path: Path) -> None:
    seen: dict[str, tuple[list[str], list[str]]] = {}
    async with lives(TESTS / "engine" / "picture_child.py", tmp_path / "log") as forked:
        for point in POINTS:
            path = tmp_path / point.replace(" ", "-") / "bot.db"
            path.parent.mkdir()
            killed = PictureLife(path=str(path), point=point)
            assert await forked.end(await forked.begin(killed), timeout=60) == -9, point
            again = PictureLife(path=str(path))
            assert await forked.end(await forked.begin(again), timeout=60) == 0, forked.log()
            screen = path.with_name("screen")
            async with Store.open(path) as store:
                statuses = [str(one.status) for one in await store.outbox.listed()]
            lines = screen.read_text().splitlines() if screen.exists() else []
            seen[point] = statuses, [line.partition(" ")[2] for line in lines]

    picture = str([len(image(8, 8))])
    expected = {point: (["doubtful"], [picture] if point in IN_DOUBT[2:] else []) for point in IN_DOUBT}
    assert seen == {point: expected.get(point, (["sent"], [picture])) for point in POINTS}
