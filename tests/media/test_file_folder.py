"""Files by hash: whole or not at all, private, and never at a path that somebody else chose."""

import errno
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from palaver.errors import InvalidValue, StoreBusy, StoreRefused
from palaver.media.file_folder import FileFolder

OTHER_DISK = Path("/dev/shm")  # noqa: S108 (a name of our own in it)
CAT, DOG = b"\xff\xd8 a cat", b"\xff\xd8 a dog"
CAT_NAME, DOG_NAME = sha256(CAT).hexdigest(), sha256(DOG).hexdigest()


def tree(folder: Path) -> dict[str, str]:
    """All below the folder but its lock, with modes."""
    found = (path for path in folder.rglob("*") if path.name != ".lock")
    return {str(path.relative_to(folder)): oct(path.stat().st_mode & 0o777) for path in found}


def test_a_file_is_stored_under_its_hash_for_its_owner_only(tmp_path: Path) -> None:
    folder = FileFolder(tmp_path / "media")

    assert folder.write(CAT) == CAT_NAME
    assert folder.read(CAT_NAME) == CAT
    assert folder.size(CAT_NAME) == len(CAT)
    assert tree(tmp_path) == {
        "media": "0o700",
        f"media/{CAT_NAME[:2]}": "0o700",
        f"media/{CAT_NAME[:2]}/{CAT_NAME}": "0o600",
    }


def test_the_folder_is_made_when_it_is_first_needed(tmp_path: Path) -> None:
    folder = FileFolder(tmp_path / "media")

    assert (folder.read(CAT_NAME), folder.size(CAT_NAME), folder.names()) == (None, None, set())
    assert folder.sweep_temporary() == 0
    folder.remove([CAT_NAME])
    assert not (tmp_path / "media").exists()


def test_a_whole_file_is_not_written_again_and_a_damaged_one_is(tmp_path: Path) -> None:
    folder = FileFolder(tmp_path)
    folder.write(CAT)
    path = tmp_path / CAT_NAME[:2] / CAT_NAME
    number = path.stat().st_ino

    folder.write(CAT)
    assert path.stat().st_ino == number
    path.write_bytes(CAT[:3])
    folder.write(CAT)
    assert path.read_bytes() == CAT


def test_a_damaged_file_is_not_read_and_goes(tmp_path: Path) -> None:
    folder = FileFolder(tmp_path)
    folder.write(CAT)
    path = tmp_path / CAT_NAME[:2] / CAT_NAME
    path.write_bytes(CAT.replace(b"cat", b"hat"))

    assert folder.read(CAT_NAME, clean=False) is None
    assert path.exists()
    assert folder.read(CAT_NAME) is None
    assert not path.exists()


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "A" * 64, CAT_NAME[:63], f"{CAT_NAME}\n", "٠" * 64])
def test_only_a_hash_becomes_a_path(tmp_path: Path, name: str) -> None:
    folder = FileFolder(tmp_path)

    for attempt in (folder.read, folder.size, folder.locate, lambda name: folder.remove([name])):
        with pytest.raises(InvalidValue, match="is no hash of a file"):
            attempt(name)


def test_temporary_files_and_foreign_ones_have_no_name(tmp_path: Path) -> None:
    folder = FileFolder(tmp_path)
    folder.write(CAT)
    inside = tmp_path / CAT_NAME[:2]
    (inside / ".part-abc").write_bytes(b"half")
    (inside / DOG_NAME).write_bytes(DOG)  # not in its own folder
    (tmp_path / "notes.txt").write_text("mine")

    assert folder.names() == {CAT_NAME}
    assert folder.sweep_temporary() == 1
    assert {path.name for path in inside.iterdir()} == {CAT_NAME, DOG_NAME}
    assert (tmp_path / "notes.txt").exists()


def test_a_removed_file_is_gone(tmp_path: Path) -> None:
    folder = FileFolder(tmp_path)
    folder.write(CAT)

    folder.remove([CAT_NAME, DOG_NAME])

    assert folder.names() == set()


def test_a_folder_is_for_one_process(tmp_path: Path) -> None:
    first, second = FileFolder(tmp_path), FileFolder(tmp_path)
    first.write(CAT)

    with pytest.raises(StoreBusy, match="another process has it open"):
        second.write(DOG)
    first.close()
    assert second.write(DOG) == DOG_NAME


def test_a_folder_without_a_path_goes_when_it_is_closed() -> None:
    folder = FileFolder()
    folder.write(CAT)
    path = folder.path
    assert path
    assert path.is_dir()

    folder.close()

    assert not path.exists()


def test_files_are_copied_by_links_and_the_missing_are_named(tmp_path: Path) -> None:
    source, target = FileFolder(tmp_path / "a"), FileFolder(tmp_path / "b")
    source.write(CAT)

    assert target.copy_from(source, [CAT_NAME, DOG_NAME]) == {DOG_NAME}
    assert target.read(CAT_NAME) == CAT
    there = (tmp_path / "b" / CAT_NAME[:2] / CAT_NAME).stat()
    assert there.st_nlink == 2


@pytest.mark.skipif(not OTHER_DISK.is_dir(), reason="needs a second disk")
def test_files_are_copied_to_another_disk(tmp_path: Path) -> None:
    source = FileFolder(tmp_path)
    source.write(CAT)
    other = OTHER_DISK / f"palaver-{os.getpid()}-{tmp_path.name}"
    target = FileFolder(other)
    try:
        assert target.copy_from(source, [CAT_NAME]) == set()
        assert target.read(CAT_NAME) == CAT
    finally:
        target.remove([CAT_NAME])
        target.close()
        target.remove_empty()


FULL = """
import resource, sys
from pathlib import Path
from palaver.errors import StoreFull
from palaver.media.file_folder import FileFolder
folder = FileFolder(Path(sys.argv[1]))
folder.write(b"small")
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
try:
    folder.write(b"x" * 5000)
except StoreFull as error:
    print(error)
"""


def test_a_full_disk_is_one_clear_line_and_leaves_nothing(tmp_path: Path) -> None:
    ran = subprocess.run([sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, check=True)

    full = os.strerror(errno.EFBIG)
    assert ran.stdout == f"the folder of media {tmp_path}: there is no room left on the disk ({full})\n"
    small = sha256(b"small").hexdigest()
    assert {name for name in tree(tmp_path) if "/" in name} == {f"{small[:2]}/{small}"}


def test_a_folder_that_may_not_be_written_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")

    with pytest.raises(StoreRefused, match=r"media .*/file/media: it may not be read or written \(Not a directory\)"):
        FileFolder(tmp_path / "file" / "media").write(CAT)


def test_a_folder_that_somebody_removed_is_made_again_and_locked(tmp_path: Path) -> None:
    folder = FileFolder(tmp_path / "media")
    folder.write(CAT)
    (tmp_path / "media").rename(tmp_path / "away")

    folder.write(DOG)

    assert folder.names() == {DOG_NAME}
    assert (tmp_path / "media").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "media" / ".lock").exists()


def test_a_folder_that_became_a_file_is_refused_and_closed(tmp_path: Path) -> None:
    folder = FileFolder(tmp_path / "media")
    folder.write(CAT)
    (tmp_path / "media").rename(tmp_path / "away")
    (tmp_path / "media").write_text("")

    with pytest.raises(StoreRefused):
        folder.write(DOG)
    with pytest.raises(StoreRefused):
        folder.read(CAT_NAME)
    folder.close()
