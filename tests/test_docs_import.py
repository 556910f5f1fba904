"""What docs/import.md shows is what the command prints, and its options are those of the command."""

import re
from pathlib import Path

from cli.command import tertulia
from telegram_exports import chat, message, service, value

PAGE = (Path(__file__).parent.parent / "docs" / "import.md").read_text("utf-8")


def test_the_page_shows_what_the_command_prints(tmp_path: Path) -> None:
    (command,) = re.findall(r"```sh\ntertulia import (.*?)\n```", PAGE)
    (printed,) = re.findall(r"```\n(Read as .*?)```", PAGE, flags=re.DOTALL)
    folder, *options = command.split()
    export = chat([service(1, "create_group"), *(message(number, "hi") for number in (2, 3, 4))])
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "result.json").write_text(value(export), encoding="utf-8")

    done = tertulia("import", str(tmp_path / folder), *options, "--db", str(tmp_path / "bot.db"))

    assert (done.returncode, done.stdout) == (0, printed)


def test_the_options_of_the_page_are_those_of_the_command() -> None:
    told = set(re.findall(r"^\| `(--\w+)", PAGE, flags=re.MULTILINE))
    known = set(re.findall(r"^  (--\w+)", tertulia("import", "--help").stdout, flags=re.MULTILINE))

    assert told == known - {"--from", "--to", "--model", "--help"}
