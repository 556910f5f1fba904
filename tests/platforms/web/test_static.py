"""The files of the page: its texts are complete in both languages, it is small, and it needs nothing from elsewhere."""

import gzip
import json
import re
from pathlib import Path

from tertulia.platforms.web import page_app

STATIC = page_app.STATIC
LIMIT = 48_000  # bytes of the scripts and styles of a view and of all that it stands on, as gzip makes of them
_KEY = re.compile(r"\bt\(\s*\"([^\"]+)\"")
_CHOSEN = re.compile(r"\bt\(([^()\"]*\? \"[^()]*)")
_GROUP = re.compile(r"\b(?:t\(`|named\(\")([^`\"$]+)")
_FORMS = {"en": {"one", "other"}, "uk": {"one", "few", "other"}}


def texts(language: str) -> dict[str, str | dict[str, str]]:
    found: dict[str, str | dict[str, str]] = json.loads((STATIC / f"{language}.json").read_text(encoding="utf-8"))
    return found


def scripts() -> dict[str, str]:
    """Our own scripts."""
    files = [path for path in STATIC.rglob("*.js") if "vendor" not in path.parts]
    return {str(path.relative_to(STATIC)): path.read_text(encoding="utf-8") for path in files}


def gaps(text: str | dict[str, str]) -> set[str]:
    """The gaps that a text has, in any of its forms."""
    forms = [text] if isinstance(text, str) else text.values()
    return {gap for form in forms for gap in re.findall(r"\{(\w+)\}", form)}


def test_every_text_is_in_both_languages_with_the_same_gaps_and_all_forms_of_numbers() -> None:
    english, ukrainian = texts("en"), texts("uk")

    assert list(english) == list(ukrainian)
    counted = {key for key, text in english.items() if isinstance(text, dict)}
    assert {key for key, text in ukrainian.items() if isinstance(text, dict)} == counted
    for language, found in (("en", english), ("uk", ukrainian)):
        assert {key: set(found[key]) for key in counted} == dict.fromkeys(counted, _FORMS[language])
    differing = {key for key in english if gaps(english[key]) - {"n"} != gaps(ukrainian[key]) - {"n"}}
    assert differing == set()


def test_every_text_that_is_asked_for_is_there_and_none_is_left_over() -> None:
    code = "\n".join(scripts().values())
    chosen = {key for part in _CHOSEN.findall(code) for key in re.findall(r"\"([^\"]+)\"", part)}
    asked = set(_KEY.findall(code)) | {key for key in chosen if "." in key or key in texts("en")}
    groups = tuple(set(_GROUP.findall(code)))
    named = set(re.findall(r"\"([a-z_.]+)\"", code))

    known = set(texts("en"))
    assert asked - known == set()
    assert {key for key in known - asked - named if not key.startswith(groups)} == set()


def loaded_with(path: Path, known: set[Path] | None = None) -> set[Path]:
    """The scripts that a browser loads for one: those it imports, and so on."""
    known = set() if known is None else known
    if path not in known:
        known.add(path)
        for name in re.findall(r"""from\s*["'](\.[^"']+)["']""", path.read_text(encoding="utf-8")):
            loaded_with((path.parent / name).resolve(), known)
    return known


def test_what_a_view_loads_is_small() -> None:
    always = loaded_with(STATIC / "app.js") | {STATIC / "app.css"}

    sizes = {
        view.name: len(gzip.compress(b"".join(path.read_bytes() for path in sorted(always | loaded_with(view))), 9))
        for view in (STATIC / "views").glob("*.js")
    }
    assert {name: size for name, size in sizes.items() if size > LIMIT} == {}
    assert len(sizes) > 10


def test_nothing_is_asked_of_another_host_and_no_text_becomes_markup() -> None:
    own = {**scripts(), "app.css": (STATIC / "app.css").read_text(encoding="utf-8")}

    found = {
        (name, word)
        for name, text in own.items()
        for word in re.findall(
            r"https?://[\w.]+|innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|url\(", text
        )
    }
    assert found == set()
    assert re.findall(r'(?:src|href)="(?!\{\{base\}\}/static/)', (STATIC / "index.html").read_text()) == []


def test_vendored_scripts_import_by_address_and_have_their_licences() -> None:
    vendor = STATIC / "vendor"
    files = list(vendor.rglob("*.js"))

    bare = {
        (path.name, name)
        for path in files
        for name in re.findall(r"""from\s*["']([^."'][^"']*)["']""", path.read_text(encoding="utf-8"))
    }
    assert bare == set()
    assert {path.name for path in vendor.glob("*.LICENSE")} == {
        "htm.LICENSE",
        "jsdiff.LICENSE",
        "preact.LICENSE",
        "signals-core.LICENSE",
    }
