"""Files by hash: whole or not at all, private, and never at a path that somebody else chose."""

import errno
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from threading import Barrier, BrokenBarrierError
from typing import Any

import pytest

from tertulia.errors import InvalidValue, StoreBusy, StoreFull, StoreRefused
from tertulia.media.file_folder import FileFolder, Owner

OTHER_DISK = Path("/dev/shm")  # noqa: S108 (a name of our own in it)
CAT, DOG = b"\xff\xd8 a cat", b"\xff\xd8 a dog"
ALICE = Owner("a" * 32, "/srv/a.db")
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


def test_files_of_one_inner_folder_are_written_by_two_threads_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, both = FileFolder(tmp_path / "media"), Barrier(2)
    folder.claim()
    files = [data for data in map(str.encode, map(str, range(1_000))) if sha256(data).hexdigest().startswith("ab")][:2]
    make = os.mkdir

    def make_when_both_would(*args: Any) -> None:
        with suppress(BrokenBarrierError):
            both.wait(timeout=0.2)
        make(*args)

    monkeypatch.setattr(os, "mkdir", make_when_both_would)
    with ThreadPoolExecutor(2) as threads:
        names = list(threads.map(folder.write, files))

    assert [folder.read(name) for name in names] == files


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
    other = OTHER_DISK / f"tertulia-{os.getpid()}-{tmp_path.name}"
    target = FileFolder(other)
    try:
        assert target.copy_from(source, [CAT_NAME]) == set()
        assert target.read(CAT_NAME) == CAT
    finally:
        target.discard()
    assert not other.exists()


FULL = """
import resource, sys
from pathlib import Path
from tertulia.errors import StoreFull
from tertulia.media.file_folder import FileFolder
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


def test_a_damaged_file_at_the_target_of_a_copy_is_replaced(tmp_path: Path) -> None:
    source, target = FileFolder(tmp_path / "a"), FileFolder(tmp_path / "b")
    for folder in (source, target):
        folder.write(CAT)
    (tmp_path / "b" / CAT_NAME[:2] / CAT_NAME).write_bytes(CAT[:3])

    assert target.copy_from(source, [CAT_NAME]) == set()

    assert target.read(CAT_NAME) == CAT


def test_a_folder_without_room_is_not_left_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    folder = FileFolder(tmp_path / "media", owner=ALICE)
    with monkeypatch.context() as full:
        full.setattr(os, "write", no_room)  # for the lock: it says nothing
        full.setattr(os, "fsync", no_room)
        with pytest.raises(StoreFull, match="there is no room left on the disk"):
            folder.write(CAT)

    assert FileFolder(tmp_path / "media", owner=ALICE).write(CAT) == CAT_NAME


def test_nothing_is_written_to_a_folder_that_was_closed(tmp_path: Path) -> None:
    folder = FileFolder(tmp_path)
    folder.close()

    with pytest.raises(StoreRefused, match="it was closed"):
        folder.write(CAT)
    assert not (tmp_path / ".lock").exists()


def test_a_folder_names_the_store_that_it_belongs_to(tmp_path: Path) -> None:
    folder = FileFolder(tmp_path, owner=ALICE)
    assert folder.owner is None

    folder.write(CAT)

    assert folder.owner == ALICE
    assert tree(tmp_path)[".store"] == "0o600"
    folder.close()
    other = FileFolder(tmp_path, owner=Owner("b" * 32, "/srv/b.db"))
    with pytest.raises(StoreRefused, match=r"it belongs to the store /srv/a\.db; name another folder"):
        other.write(DOG)
    assert FileFolder(tmp_path, owner=ALICE).write(DOG) == DOG_NAME  # it was not left locked


@pytest.mark.parametrize("damaged", [b"", b"aaaa", b"\xff\n/srv/b.db", b"b" * 32])
def test_a_folder_whose_owner_is_damaged_is_that_of_whoever_has_it(tmp_path: Path, damaged: bytes) -> None:
    (tmp_path / ".store").write_bytes(damaged)
    folder = FileFolder(tmp_path, owner=ALICE)

    folder.write(CAT)

    assert folder.owner == ALICE


def test_links_and_pipes_in_place_of_files_are_not_read_and_are_replaced(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(CAT)
    folder = FileFolder(tmp_path / "media")
    cat, dog = (tmp_path / "media" / name[:2] / name for name in (CAT_NAME, DOG_NAME))
    for path in (cat, dog):
        path.parent.mkdir(parents=True)
    cat.symlink_to(outside)
    os.mkfifo(dog)

    assert [folder.read(name) for name in (CAT_NAME, DOG_NAME)] == [None, None]
    assert [folder.size(name) for name in (CAT_NAME, DOG_NAME)] == [None, None]
    assert folder.names() == {CAT_NAME, DOG_NAME}
    other = FileFolder(tmp_path / "other")
    assert other.copy_from(folder, [CAT_NAME, DOG_NAME]) == {CAT_NAME, DOG_NAME}
    for data in (CAT, DOG):
        folder.write(data)
    assert [path.is_symlink() or path.is_fifo() for path in (cat, dog)] == [False, False]
    assert [folder.read(name) for name in (CAT_NAME, DOG_NAME)] == [CAT, DOG]
    cat.unlink()
    cat.symlink_to(outside)
    folder.remove([CAT_NAME])
    assert (os.path.lexists(cat), outside.read_bytes()) == (False, CAT)


def test_a_link_in_place_of_a_folder_of_files_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / CAT_NAME).write_bytes(CAT)
    (outside / ".part-1").write_bytes(CAT)
    media = tmp_path / "media"
    media.mkdir()
    (media / CAT_NAME[:2]).symlink_to(outside)
    folder = FileFolder(media)

    assert (folder.read(CAT_NAME), folder.size(CAT_NAME), folder.names()) == (None, None, set())
    folder.remove([CAT_NAME])
    assert folder.sweep_temporary() == 0
    with pytest.raises(StoreRefused, match=f"{CAT_NAME[:2]} in it is no folder; remove it"):
        folder.write(CAT)
    assert {path.name for path in outside.iterdir()} == {CAT_NAME, ".part-1"}


@pytest.mark.parametrize("name", [".lock", ".store"])
def test_a_link_in_place_of_our_own_files_is_not_followed(tmp_path: Path, name: str) -> None:
    outside = tmp_path / "outside"
    outside.write_text("mine")
    media = tmp_path / "media"
    media.mkdir()
    (media / name).symlink_to(outside)

    with suppress(StoreRefused):
        FileFolder(media, owner=ALICE).write(CAT)

    assert outside.read_text() == "mine"


def test_a_folder_with_the_name_of_a_file_is_no_file(tmp_path: Path) -> None:
    folder = FileFolder(tmp_path)
    (tmp_path / CAT_NAME[:2] / CAT_NAME).mkdir(parents=True)

    assert (folder.read(CAT_NAME), folder.size(CAT_NAME), folder.names()) == (None, None, set())
    with pytest.raises(StoreRefused):
        folder.write(CAT)
    assert folder.sweep_temporary() == 0
