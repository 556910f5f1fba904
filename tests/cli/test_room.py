"""`tertulia room`: a room is opened, listed and revoked; its link is printed once and stored nowhere."""

import json
import re
from pathlib import Path

from cli.command import tertulia
from tertulia.store import Store


def a_store(folder: Path) -> str:
    path = folder / "bot.db"
    with Store.open(path):
        pass
    return str(path)


def test_a_room_is_opened_listed_and_revoked(tmp_path: Path) -> None:
    store = a_store(tmp_path)

    opened = tertulia("room", "new", "Dinner  plans", "--people", "4", "--days", "2", "--db", store)
    found = re.fullmatch(r"http://127\.0\.0\.1:8765/r/([0-9a-f]{10})#([\w-]{22})\n", opened.stdout)
    assert found, opened
    assert (
        opened.stderr
        == "tertulia: rooms are entered by the page that the bot serves itself: [web] in its tertulia.toml, "
        "and `tertulia run`\n"
    )
    room, key = found.groups()
    listed = tertulia("room", "list", "--db", store)
    (as_json,) = json.loads(tertulia("room", "list", "--json", "--db", store).stdout)
    revoked = tertulia("room", "revoke", room[:4], "--db", store)
    again = tertulia("room", "revoke", room, "--db", store)
    after = tertulia("room", "list", "--db", store)

    assert re.search(rf"{room} +Dinner plans +0 of 4 .* 500,000 tokens +open", listed.stdout)
    assert (as_json["id"], as_json["people"], as_json["cap"]) == (room, 4, {"tokens": 500_000})
    assert (revoked.stdout, again.stdout) == (f"{room} has ended\n", f"{room} had ended already\n")
    assert "revoked" in after.stdout
    assert key.encode() not in Path(store).read_bytes()


def test_what_is_no_room_is_one_line(tmp_path: Path) -> None:
    store = a_store(tmp_path)

    none = tertulia("room", "list", "--db", store)
    crowd = tertulia("room", "new", "--people", "51", "--db", store)
    unknown = tertulia("room", "revoke", "3f9a", "--db", store)

    assert none.stdout == "there are no rooms; `tertulia room new` opens one\n"
    assert (crowd.returncode, unknown.returncode) == (2, 2)
    assert "Expected `int` <= 50" in crowd.stderr
    assert "there is no room 3f9a" in unknown.stderr
    assert crowd.stderr.count("\n") == unknown.stderr.count("\n") == 1
