"""The page on tertulia.toml has the keys, values, defaults, variables and errors that the code has."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from reference_page import duration
from tertulia.bot_check import OTHER_VARIABLES, unknown_variables
from tertulia.config import RENAMED, AgentConfig, AgentOptions, Config, read_config
from tertulia.config_reader import keys_of
from tertulia.errors import InvalidValue
from tertulia.models.openai.vendors import VENDORS
from tertulia.tools import NAMES

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "config.md").read_text("utf-8")
NOT_FOR_USERS = {"TERTULIA_EXAMPLES"}


def tables(*heads: str) -> list[list[str]]:
    """The rows of all tables with these heads; a row without a first cell continues the last cell of the one before."""
    rows: list[list[str]] = []
    for table in re.findall(rf"^\| {re.escape(' | '.join(heads))} \|\n\|[-|]+\n((?:\|.*\n)+)", PAGE, re.MULTILINE):
        for line in table.splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if cells[0]:
                rows.append(cells)
            else:
                rows[-1][-1] += " " + cells[-1]
    return rows


def shown(default: Any) -> str:
    """Return a default as the page has it: as it is written in the file, without quotes around it in words."""
    match default:
        case None | "" | () | msgspec.NODEFAULT:
            return "none"
        case frozenset() if not default:
            return "none"
        case bool():
            return f"`{str(default).lower()}`"
        case int() | float():
            return f"`{default:g}`" if isinstance(default, float) else f"`{default}`"
        case timedelta():
            return f'`"{duration(default)}"`'
        case str():
            return f'`"{default}"`'
        case tuple():
            return "`[" + ", ".join(f'"{one}"' for one in default) + "]`"
        case _:
            return "built in"


def test_every_key_is_there_with_what_it_may_be_and_its_default() -> None:
    listed = [tuple(row[:3]) for row in tables("key", "value", "default", "meaning")]
    keys = [key for key in keys_of(Config) if key.name not in ("platforms", "agents")]

    assert {row for row in listed if row[0] not in ("`use`", "anything else")} == {
        (f"`{key.name}`", key.allowed, shown(key.default)) for key in keys
    }
    assert len(listed) == len(keys) + 2


def test_every_key_of_an_agent_is_there() -> None:
    heads = {"key of `[agents]`": AgentOptions, "key of `[agents.NAME]`": AgentConfig}
    listed = {head: [name for row in tables(head, "value", "meaning") for name in row[0].split(", ")] for head in heads}

    assert listed == {head: [f"`{name}`" for name in kind.__struct_fields__] for head, kind in heads.items()}


def test_every_key_has_a_meaning() -> None:
    assert [row[0] for row in tables("key", "value", "default", "meaning") if len(row) != 4 or not row[3]] == []


def test_the_old_names_of_variables_are_those_of_the_code() -> None:
    assert {variable.strip("`"): key.strip("`") for variable, key in tables("variable", "key")} == RENAMED


def test_the_other_variables_are_those_of_the_code() -> None:
    listed = {name for row in tables("variable", "meaning") for name in re.findall(r"`([A-Z_]+)`", row[0])}
    keys = {name for vendor in VENDORS.values() for name in vendor.key_names}
    source = "".join(file.read_text("utf-8") for file in (ROOT / "src").rglob("*.py"))
    read = set(re.findall(r'environ(?:ment)?(?:\.get\(|\[)"([A-Z_]+)"', source))

    ours = OTHER_VARIABLES - NOT_FOR_USERS - set(RENAMED)
    assert listed >= ours | keys
    assert read - {"TERM", "TMPDIR"} <= listed | set(RENAMED) | {key.variable for key in keys_of(Config)}
    assert {name for name in listed if name.startswith("TERTULIA_")} == ours


def test_every_variable_that_the_page_names_means_something() -> None:
    named = set(re.findall(r"\bTERTULIA_[A-Z_]+[A-Z]\b", PAGE)) - {"TERTULIA_PLATFORMS_NAME_TOKEN"}

    assert unknown_variables(dict.fromkeys(named, "1")) == []


def test_the_tools_are_those_of_the_code() -> None:
    listed = [name for row in tables("tool", "what the model can do") for name in re.findall(r"`(\w+)`", row[0])]

    assert tuple(listed) == NAMES


def test_the_file_of_the_page_can_be_read(tmp_path: Path) -> None:
    [text] = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)
    (tmp_path / "persona.md").write_text("You are Gryag.")

    read = read_config(text, {}, path=tmp_path / "tertulia.toml")

    assert (read.config.limits.person.money, read.config.persona.text) == (0.5, "You are Gryag.")
    assert read.platforms["mine"].options == {"room": 7}


@pytest.mark.parametrize(("written", "error"), tables("written", "error"))
def test_an_error_is_the_line_of_the_page(written: str, error: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        read_config(written.strip("`"), {})

    assert str(refused.value) == error
