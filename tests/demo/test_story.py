"""The whole demo, as a user runs it: what people saw, what the store had, and that nothing is left behind."""

import json
import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from cli.command import TERTULIA, tertulia_process
from tertulia.demo import script

Observations = Sequence[dict[str, Any]]


def of_kind(observations: Observations, kind: str) -> list[dict[str, Any]]:
    return [one for one in observations if one["kind"] == kind]


def living(observations: Observations) -> list[int]:
    """The processes of bots that still exist."""
    found = []
    for started in of_kind(observations, "started"):
        with suppress(ProcessLookupError):
            os.kill(started["pid"], 0)
            found.append(started["pid"])
    return found


def test_a_fact_is_recalled_a_reminder_comes_once_and_a_killed_bot_resumes_its_answer(tmp_path: Path) -> None:
    ran = tertulia_process("demo", "--json", TMPDIR=str(tmp_path))

    seen = [json.loads(line) for line in ran.stdout.splitlines()]
    said = [(one["author"], one["text"], one["reply_to"]) for one in of_kind(seen, "said")]
    [learned], [killed], [resumed] = (of_kind(seen, kind) for kind in ("learned", "killed", "resumed"))
    tools = [(one["name"], one["result"]) for one in of_kind(seen, "tool")]
    first, second = of_kind(seen, "started")
    assert (ran.returncode, ran.stderr, seen[-1]) == (0, "", {"kind": "end", "held": True})
    assert [check["held"] for check in of_kind(seen, "check")] == [True] * 7
    assert (learned["about"], learned["text"]) == ("Ann", "Is allergic to peanuts.")
    assert learned["sources"] == {"m1": script.FACT}
    assert said[:9] == [
        ("Ann", script.FACT, None),
        *((author.name, text, None) for author, text in script.SMALL_TALK),
        ("Ann", script.RECALL, None),
        (
            "Gryag",
            "Better not: satay is made of peanuts, and I remember that Ann is allergic to peanuts.",
            "m6",
        ),
        ("Ann", script.EXPLAIN, None),
        ("Gryag", said[8][1], "m7"),
    ]
    assert said[8][1].endswith(f"“{script.FACT}”")
    assert [name for name, _ in tools] == ["recall", "why", "remind_me"]
    assert tools[1][1][0]["said"] == script.FACT
    assert [said[9], *sorted(said[10:12]), *said[12:]] == [
        ("Cy", script.REMIND, None),
        ("Gryag", script.REMINDER, "m8"),
        ("Gryag", f"I will, at {tools[2][1]['due']}.", "m8"),
        ("Bo", script.LONG, None),
        ("Gryag", script.MENU, "m9"),
    ]
    assert (killed["pid"], killed["status"]) == (first["pid"], -signal.SIGKILL)
    assert (killed["open_runs"], killed["answers"]) == (1, 0)
    assert script.MENU.startswith(of_kind(seen, "drafted")[-1]["text"])
    assert resumed["pid"] == second["pid"] != first["pid"]
    assert living(seen) == []
    assert list(tmp_path.glob("tertulia-*")) == []


def test_ctrl_c_ends_the_bot_and_leaves_nothing_behind(tmp_path: Path) -> None:
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([*TERTULIA, "demo", "--json"], stdout=-1, stderr=-1, text=True, env=env) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline(), process.stdout.readline()]

        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)

    seen = [json.loads(line) for line in lines]
    assert [one["kind"] for one in seen] == ["scene", "started"]
    assert (process.returncode, errors) == (130, "")
    assert living(seen) == []
    assert list(tmp_path.glob("tertulia-*")) == []
