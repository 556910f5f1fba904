"""`tertulia web` as a process: its links, its answer, its end; and the page in the process of a bot."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2

from cli.command import TERTULIA, tertulia
from tertulia.store import Store


@contextmanager
def started(*arguments: str, cwd: Path, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """Run the command as a process until the block ends."""
    env = {**os.environ, "TERTULIA_WEB_PORT": "0", **environment}
    process = subprocess.Popen(
        [*TERTULIA, *arguments], cwd=cwd, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def link_of(process: "subprocess.Popen[str]") -> tuple[str, str]:
    """The address of the page and the token of its owner, as the process prints them."""
    assert process.stdout is not None
    link = re.fullmatch(r"the page: (http://127\.0\.0\.1:\d+)/#token=(\S+)\n", process.stdout.readline())
    assert link is not None
    return link[1], link[2]


async def test_it_serves_the_page_of_a_store_until_it_is_stopped(tmp_path: Path) -> None:
    with Store.open(tmp_path / "bot.db"):
        pass
    with started("web", "bot.db", cwd=tmp_path) as process:
        url, token = link_of(process)
        shown = httpx2.get(f"{url}/api/session", headers={"authorization": f"Bearer {token}"}).json()
        process.send_signal(signal.SIGTERM)
        status = process.wait(30)
        errors = process.stderr.read() if process.stderr else ""

    assert (shown["role"], status, errors) == ("owner", 0, "")


def test_what_is_not_safe_is_one_line_and_a_status(tmp_path: Path) -> None:
    with Store.open(tmp_path / "bot.db"):
        pass
    ran = tertulia("web", str(tmp_path / "bot.db"), TERTULIA_WEB_HOST="0.0.0.0")  # noqa: S104 (it is refused)
    missing = tertulia("web", str(tmp_path / "none.db"))

    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == (
        "tertulia: host 0.0.0.0 can be reached by others: give certificate and key for TLS, or name in proxy the "
        "address of the proxy that speaks it\n"
    )
    assert missing.returncode == 2
    assert missing.stderr.endswith("none.db: it does not exist; `tertulia run` makes one, STORE names another\n")
