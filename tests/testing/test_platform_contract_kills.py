"""Nothing is lost or doubled on either platform when its process is killed; what is doubtful is listed."""

from pathlib import Path
from typing import Any

import pytest

from people import NOON
from tertulia.engine.store_protocols import OutboxItem
from tertulia.messages import Place, Reply
from tertulia.platform import split_reply
from testing.killed_platforms import PLATFORMS, Fate, fate_of, killed, killed_at
from testing.platform_child import answer_to

KILLS = 8  # `killed_platforms.py 500` kills more often


@pytest.mark.parametrize("platform", PLATFORMS)
async def test_every_message_is_answered_once_or_its_answer_is_listed(tmp_path: Path, platform: str) -> None:
    result = await killed(tmp_path, platform, kills=KILLS, seed=7)

    assert (result.kills, result.faults) == (KILLS, ())
    assert result.answered + result.doubtful == result.messages > 0
    assert result.doubtful == 0 or platform == "keyless"


PARTS = [
    part.text for part in split_reply(Reply(place=Place(platform="x", id="p2", kind="direct"), text=answer_to(2)), 300)
]

# With keys, and with edits, what was cut off is done again. A new message without a key is doubtful: it is listed, and
# the rest follows. A draft that was cut off is doubtful too, and what people see of it stays.
UNHARMED = [
    ("corner", "before answer 1"),
    ("corner", "after answer 1"),
    ("corner", "before answer 2"),
    ("corner", "after answer 2"),
    ("corner", "after answer 3"),
    ("keyless", "before draft edit 1"),
    ("keyless", "after draft edit 2"),
    ("keyless", "before answer edit 1"),
    ("keyless", "after answer edit 1"),
]


async def test_a_kill_leaves_every_part_once_where_it_can_be_sent_again(tmp_path: Path) -> None:
    assert await killed_at(tmp_path, UNHARMED) == {point: (PARTS, []) for point in UNHARMED}


async def test_a_part_without_a_key_is_listed_and_the_rest_follows(tmp_path: Path) -> None:
    unseen, is_seen = ("keyless", "before answer 1"), ("keyless", "after answer 2")

    assert await killed_at(tmp_path, [unseen, is_seen]) == {
        unseen: ([PARTS[0], PARTS[2]], [("answer", PARTS[1])]),
        is_seen: (PARTS, [("answer", PARTS[2])]),
    }


async def test_a_draft_that_was_cut_off_is_listed_and_the_answer_sent_anew(tmp_path: Path) -> None:
    before, after = ("keyless", "before draft 1"), ("keyless", "after draft 1")

    found = await killed_at(tmp_path, [before, after])

    drafts = {point: doubtful for point, (_, doubtful) in found.items()}
    assert {point: [kind for kind, _ in doubtful] for point, doubtful in drafts.items()} == {
        before: ["draft"],
        after: ["draft"],
    }
    assert found[before][0] == PARTS
    assert found[after][0] == [drafts[after][0][1], *PARTS]


def a_row(text: str, message_id: str | None = None, **changes: Any) -> OutboxItem:
    """A row of the outbox: sent if it has a receipt, else doubtful."""
    fields: dict[str, Any] = {
        "id": text,
        "reply": Reply(place=Place(platform="x", id="p2", kind="direct"), text=text),
        "made_at": NOON,
        "status": "sent" if message_id else "doubtful",
        "message_id": message_id,
    }
    return OutboxItem(**fields | changes)


ONE, TWO = a_row("one", "b1"), a_row("two", "b2", part=1)
DOUBTED = a_row("two", part=1)
DRAFT = a_row("on", "b1", kind="draft")
FATES: list[tuple[Fate, list[OutboxItem], list[tuple[str, str]]]] = [
    ("answered", [ONE, TWO], [("b1", "one"), ("b2", "two")]),
    ("answered", [DRAFT, ONE, TWO], [("b1", "one"), ("b2", "two")]),
    ("doubtful", [ONE, DOUBTED], [("b1", "one")]),
    ("doubtful", [ONE, DOUBTED], [("b1", "one"), ("b2", "two")]),
    ("doubtful", [a_row("one", kind="draft"), ONE, TWO], [("b0", "one"), ("b1", "one"), ("b2", "two")]),
    ("doubtful", [a_row("one", kind="draft"), ONE, TWO], [("b1", "one"), ("b2", "two")]),
    ("waiting", [ONE, a_row("two", status="waiting", part=1)], [("b1", "one")]),
    ("lost", [], []),
    ("lost", [ONE], [("b1", "one")]),
    ("lost", [ONE, TWO], [("b1", "one")]),
    ("lost", [ONE, TWO], [("b2", "two"), ("b1", "one")]),
    ("lost", [ONE, a_row("two", status="dropped", part=1)], [("b1", "one")]),
    ("lost", [DRAFT, ONE, DOUBTED], [("b1", "on"), ("b2", "two")]),
    ("doubled", [ONE, TWO], [("b1", "one"), ("b2", "two"), ("b3", "two")]),
    ("doubled", [ONE, DOUBTED], [("b1", "one"), ("b2", "two"), ("b3", "two")]),
    ("doubled", [a_row("on", "b0", kind="draft"), ONE, TWO], [("b1", "one"), ("b2", "two"), ("b0", "on")]),
]


@pytest.mark.parametrize(("fate", "rows", "shown"), FATES)
def test_every_message_has_one_fate(fate: Fate, rows: list[OutboxItem], shown: list[tuple[str, str]]) -> None:
    assert fate_of(["one", "two"], rows, shown) == fate
