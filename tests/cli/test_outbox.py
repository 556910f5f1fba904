"""`tertulia outbox` shows what is not sent, and lets somebody decide."""

from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from cli.command import Here, tertulia
from cli.stores import a_store, held, replies_in
from people import DIRECT, GROUP, NOON, a_photo
from store.builders import an_outgoing
from tertulia import Reply
from tertulia.cli.outbox import WHY
from tertulia.engine.store_protocols import OutboxItem

DOUBTFUL = an_outgoing("Так,\n\nавжеж", id="d1", status="doubtful", attempts=1, why="it stopped while sending")
WAITING = an_outgoing(
    id="w1", made_at=NOON + timedelta(minutes=5), reply=Reply(place=DIRECT, text="look", media=(a_photo(),))
)
SENDING = an_outgoing("…", id="w2", status="sending", attempts=1, edits="m8", reply_id="w2", part=1)
SENT = an_outgoing("hi", id="s1", status="sent", attempts=1, message_id="m9", sent_at=NOON)
DROPPED = an_outgoing("no", id="x1", status="dropped", why="refused for good")
ALL = (DOUBTFUL, WAITING, SENDING, SENT, DROPPED)


@pytest.fixture
def db(tmp_path: Path) -> str:
    return str(a_store(tmp_path / "s.db", replies=ALL))


def shown(*arguments: str) -> str:
    done = tertulia("outbox", *arguments, TZ="Europe/Kyiv")
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def without_the_clock(table: str) -> list[list[str]]:
    """The cells, but for how long ago a reply was made."""
    rows = [line.split("  ") for line in table.splitlines()]
    return [[cell.strip() for cell in row if cell.strip() and not cell.strip().endswith(" ago")] for row in rows]


def test_what_is_not_sent_is_a_table(db: str) -> None:
    why = "it stopped while sending"
    assert without_the_clock(shown("--db", db)) == [
        ["id", "made", "place", "status", "attempts", "text", "why"],
        ["d1", "2025-01-15 14:00", "Friends (telegram)", "doubtful", "1", "Так, авжеж", why],
        ["w1", "2025-01-15 14:05", "7 (telegram)", "waiting", "0", "look [photo]"],
        ["w2", "2025-01-15 14:00", "Friends (telegram)", "sending", "1", "(edit) (part 2) …"],
    ]


def test_where_there_are_several_agents_each_reply_names_who_says_it(tmp_path: Path) -> None:
    db = str(a_store(tmp_path / "s.db", replies=[an_outgoing("hi", id="r1", agent="Ada")]))

    assert [row[3] for row in without_the_clock(shown("--db", db))] == ["agent", "Ada"]
    assert '"agent":"Ada"' in shown("--db", db, "--json")


def test_all_of_them_are_shown_when_asked_for(db: str) -> None:
    rows = without_the_clock(shown("--all", "--db", db))

    assert [(row[0], row[3]) for row in rows[1:]] == [(reply.id, reply.status) for reply in ALL]


def test_machines_get_the_replies_themselves(db: str) -> None:
    some, every = (
        msgspec.json.decode(shown("--json", "--db", db, *more), type=list[OutboxItem]) for more in ((), ("--all",))
    )

    assert some == [DOUBTFUL, WAITING, SENDING]
    assert every == list(ALL)


@pytest.mark.parametrize(
    ("asked", "said"), [((), "everything is sent\n"), (("--all",), "there are no replies\n"), (("--json",), "[]\n")]
)
def test_everything_may_be_sent(here: Here, tmp_path: Path, asked: tuple[str, ...], said: str) -> None:
    empty = str(a_store(tmp_path / "s.db"))

    assert here("outbox", *asked, "--db", empty) == (0, said, "")


def test_a_decision_is_taken_beside_a_running_bot(db: str) -> None:
    with held(Path(db)):
        sent = shown("--send", "d", "--db", db)
        again = shown("--send", "x1", "--db", db)
        dropped = shown("--drop", "w1", "--db", db)

    assert (
        sent == "d1 to Friends (telegram), Так, авжеж: it is sent when the bot has next answered something, or starts\n"
    )
    assert again == "x1 to Friends (telegram), no: it is sent when the bot has next answered something, or starts\n"
    assert dropped == "w1 to 7 (telegram), look [photo]: dropped; it is not sent\n"
    assert replies_in(Path(db)) == {
        "d1": replace(DOUBTFUL, status="waiting", why=WHY),
        "w1": replace(WAITING, status="dropped", why=WHY),
        "w2": SENDING,
        "s1": SENT,
        "x1": replace(DROPPED, status="waiting", why=WHY),
    }


def test_machines_are_told_what_was_decided(db: str) -> None:
    said = msgspec.json.decode(shown("--drop", "d1", "--json", "--db", db), type=OutboxItem)

    assert said == replace(DOUBTFUL, status="dropped", why=WHY)
    assert msgspec.json.decode(shown("--send", "d1", "--json", "--db", db))["status"] == "waiting"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--send", "s1"), "reply 's1' is sent; only one that is doubtful or dropped can be sent again"),
        (("--send", "w1"), "reply 'w1' is waiting; only one that is doubtful or dropped can be sent again"),
        (("--drop", "s1"), "reply 's1' is sent; only one that is doubtful or waiting can be dropped"),
        (("--drop", "x1"), "reply 'x1' is dropped; only one that is doubtful or waiting can be dropped"),
        (("--drop", "w"), "2 ids begin with w: w1, w2"),
        (("--send", "zz"), "there is no reply zz"),
        (("--send", ""), "there is no reply "),
        (("--send", "d1", "--drop", "d1"), "--send and --drop are one decision each; give one of them"),
    ],
)
def test_what_cannot_be_decided_is_one_line(here: Here, db: str, arguments: tuple[str, ...], why: str) -> None:
    assert here("outbox", *arguments, "--db", db) == (2, "", f"tertulia: {why}\n")
    assert replies_in(Path(db)) == {reply.id: reply for reply in ALL}


def test_what_a_model_wrote_does_not_steer_the_terminal(tmp_path: Path) -> None:
    reply = Reply(place=GROUP, text="\x1b[2J\x9b1m\u202e\x07" * 20)
    db = str(a_store(tmp_path / "s.db", replies=[an_outgoing(id="h", reply=reply, why="\x1bc")]))

    for arguments in ((), ("--json",), ("--drop", "h")):
        said = shown("--db", db, *arguments)
        assert not {character for character in said if not character.isprintable() and character != "\n"}, said
        assert len(said.splitlines()) <= 2


def test_help_has_an_example(here: Here) -> None:
    assert "Example: tertulia outbox --send" in here("outbox", "--help")[1]
