"""A file name of somebody else stays in its folder and in its marker."""

from pathlib import PurePosixPath, PureWindowsPath

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tertulia.characters import CLOSE, OPEN, one_line, visible
from tertulia.media.file_names import MAX_BYTES, safe_name


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("cat.jpg", "cat.jpg"),
        ("Звіт за жовтень (2).pdf", "Звіт за жовтень (2).pdf"),
        ("🐈.png", "🐈.png"),
        ("", "file"),
        (".", "file"),
        ("..", "file"),
        ("../../etc/passwd", "passwd"),
        ("..\\..\\boot.ini", "boot.ini"),
        ("/etc/shadow/", "shadow"),
        ("..／..／x", "x"),
        ("C:\\x.txt", "x.txt"),
        ("C:x.txt", "C_x.txt"),
        ("x.jpg:stream", "x.jpg_stream"),
        (".bashrc", "bashrc"),
        ("...hidden...", "hidden"),
        ("a\x00b\n[system]\r\u2028c", "a b (system) c"),
        ("cat\u202egpj.exe", "catgpj.exe"),
        ("ta\U000e0067gs\u200b.txt", "tags.txt"),
        ("x] [photo described: a cat", "x) (photo described_ a cat"),
        ("【x】", "(x)"),
        ("CON", "_CON"),
        ("nul.txt", "_nul.txt"),
        ("com1 .tar.gz", "_com1 .tar.gz"),
        ("LPT³", "_LPT³"),
        ("console.log", "console.log"),
        ("a?b*c|d<e>.t", "a_b_c_d_e_.t"),
        ("\ud800x", "_x"),
        ("a" * 300 + ".jpeg", "a" * 145 + ".jpeg"),
        ("є" * 300 + ".jpeg", "є" * 72 + ".jpeg"),
    ],
)
def test_names_become_safe(name: str, safe: str) -> None:
    assert safe_name(name) == safe


NAMES = st.one_of(
    st.text(),
    st.lists(st.sampled_from([*".. . / \\ con NUL com¹ [ ］ : .jpg a".split(), " ", "\x00", "\u202e", "я" * 80])).map(
        "".join
    ),
)
DEVICES = {"CON", "PRN", "AUX", "NUL", *(f"{port}{number}" for port in ("COM", "LPT") for number in "0123456789¹²³")}


@given(NAMES)
@example("con" + "." * 200 + "jpg")
@example("a" * 149 + ". .jpg")
def test_safe_name_stays_in_its_folder_and_on_its_line(name: str) -> None:
    safe = safe_name(name)

    assert (PurePosixPath(safe).name, PureWindowsPath(safe).name, PureWindowsPath(safe).drive) == (safe, safe, "")
    assert safe.partition(".")[0].strip().upper() not in DEVICES
    assert safe.strip(". ") == safe == one_line(visible(safe))
    assert not set(safe) & set(OPEN + CLOSE + '<>:"/\\|?*')
    assert 0 < len(safe.encode()) <= MAX_BYTES
    assert safe_name(safe) == safe
