"""Hints say what can be typed where the person is."""

from pathlib import Path

import pytest

from tertulia.model_choice import program_command


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a .venv of its own, in which the person is; only what is in path/ is found by its name."""
    for folder in (".venv/bin", "path"):
        (tmp_path / folder).mkdir(parents=True)
        for name in ("tertulia", "python"):
            (tmp_path / folder / name).touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    return tmp_path


@pytest.mark.parametrize(
    ("script", "python", "typed"),
    [
        (".venv/bin/tertulia", "", ".venv/bin/tertulia"),
        ("{here}/.venv/bin/tertulia", "", ".venv/bin/tertulia"),
        ("{here}/path/tertulia", "", "tertulia"),
        ("/somewhere/else/tertulia", "", "/somewhere/else/tertulia"),
        ("/some where/tertulia", "", "'/some where/tertulia'"),
        ("/x/tertulia/__main__.py", "{here}/path/python", "python -m tertulia"),
        ("/x/tertulia/__main__.py", "{here}/.venv/bin/python", ".venv/bin/python -m tertulia"),
        ("-c", "", "tertulia"),
    ],
)
def test_the_program_is_called_as_it_can_be_typed(script: str, python: str, typed: str, here: Path) -> None:
    assert program_command(script.format(here=here), python=python.format(here=here)) == typed


def test_what_lies_in_the_folder_itself_is_not_taken_for_what_the_shell_finds(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(here / ".venv" / "bin")

    assert program_command("./tertulia") == "./tertulia"
