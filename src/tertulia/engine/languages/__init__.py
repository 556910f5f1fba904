"""Languages of the bot's own lines: those that are built in, and those that a config adds or changes. Pure."""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from string import Formatter

from msgspec.structs import asdict, replace

from tertulia.engine.languages.lines import ENGLISH, Lines
from tertulia.engine.languages.ukrainian import UKRAINIAN
from tertulia.errors import InvalidValue

Tables = Mapping[str, Mapping[str, str]]  # lines by language and name

BUILT_IN: Mapping[str, Lines] = {"en": ENGLISH, "uk": UKRAINIAN}

_TAG = re.compile(r"[a-z]{2,8}(?:-[a-z0-9]{1,8})*", re.IGNORECASE | re.ASCII)


def languages_with(tables: Tables) -> dict[str, Lines]:
    """Return the lines of each language: the built-in ones, with those of *tables* in place of them.

    What a new language lacks is in English. Raise `InvalidValue` for a line that does not exist, or fills in other
    things than the English one.
    """
    made = dict(BUILT_IN)
    for tag, table in tables.items():
        if not _TAG.fullmatch(tag):
            raise InvalidValue(f"lines: {tag!r} is no tag of a language, such as uk or pt-br")
        for name, text in table.items():
            _require_line(f"lines.{tag}.{name}", name, text)
        made[tag.lower()] = replace(lines_in(tag, made) or ENGLISH, **table)
    return made


def lines_in(tag: str, languages: Mapping[str, Lines]) -> Lines | None:
    """Return the lines of a language by its tag: `pt-BR` is `pt` where there is no `pt-br`. None if there are none."""
    tag = tag.lower().replace("_", "-")
    while tag:
        if tag in languages:
            return languages[tag]
        tag = tag.rpartition("-")[0]
    return None


def fields_of(text: str) -> frozenset[str]:
    """Return the names of what is filled in into a line."""
    return frozenset(name for _, name, _, _ in Formatter().parse(text) if name is not None)


def _require_line(where: str, name: str, text: str) -> None:
    english: dict[str, str] = asdict(ENGLISH)
    if name not in english:
        near = get_close_matches(name, english, n=1)
        meant = f", did you mean {near[0]}?" if near else "; tertulia/engine/languages/lines.py has them all"
        raise InvalidValue(f"{where}: there is no such line{meant}")
    try:
        filled = fields_of(text)
        text.format(**dict.fromkeys(filled, ""))
    except (ValueError, KeyError, IndexError, AttributeError) as error:
        raise InvalidValue(f"{where}: {error}; write {{{{ and }}}} for braces") from error
    if not text.strip() or not filled <= fields_of(english[name]):
        allowed = ", ".join(f"{{{field}}}" for field in sorted(fields_of(english[name]))) or "nothing"
        raise InvalidValue(f"{where} must have a text that fills in {allowed} alone")
