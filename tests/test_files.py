import os
from pathlib import Path

import pytest

from tertulia.files import create_atomically, temporary_path, unfinished_parts


def test_a_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "new"

    with create_atomically(path) as temporary:
        temporary.write_text("all of it")
        seen_meanwhile = os.listdir(tmp_path)

    assert seen_meanwhile == [temporary_path(path).name]
    assert os.listdir(tmp_path) == ["new"]
    assert path.read_text() == "all of it"
    assert path.stat().st_mode & 0o777 == 0o600


def test_an_error_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="half"), create_atomically(tmp_path / "new"):
        raise ValueError("half")

    assert os.listdir(tmp_path) == []


def test_a_file_that_another_process_makes_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "new"

    with pytest.raises(FileExistsError), create_atomically(path):
        path.write_text("theirs")

    assert os.listdir(tmp_path) == ["new"]
    assert path.read_text() == "theirs"


@pytest.mark.skipif(os.name != "posix", reason="files are not locked while they are written")
def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    for name in (".new.1.part", ".new.1.part-journal", ".new.x.part", ".newer.1.part"):
        (tmp_path / name).write_text("half")

    with create_atomically(tmp_path / "new"):
        assert unfinished_parts(tmp_path / "new") == []

    assert sorted(os.listdir(tmp_path)) == [".new.x.part", ".newer.1.part", "new"]
