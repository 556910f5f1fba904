"""The page on Telegram has the keys, the config and the commands that the code has."""

import re
from pathlib import Path

from tertulia.config import TelegramConfig, read_config
from tertulia.engine.command_list import AUDIENCES

PAGE = (Path(__file__).parent.parent / "docs" / "telegram.md").read_text("utf-8")


def test_the_table_has_the_keys_of_the_config() -> None:
    table = PAGE.partition("| key of `[telegram]` |")[2].partition("\n\n")[0]

    assert re.findall(r"^\| `(\w+)` \|", table, flags=re.MULTILINE) == list(TelegramConfig.__struct_fields__)


def test_the_config_of_the_page_is_read(tmp_path: Path) -> None:
    text, _ = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)

    config = read_config(text, {}, path=tmp_path / "tertulia.toml").config

    assert (config.persona.name_pattern, config.behavior.language) == ("gryag|гряг*|гряже", "uk")
    assert config.behavior.owners == ("telegram:123456789",)
    assert config.behavior.allowed_places == ("telegram:-1001234567890", "direct")


def test_the_commands_of_the_page_are_those_that_there_are() -> None:
    table = PAGE.partition("| who | commands |")[2].partition("\n\n")[0]

    assert set(re.findall(r"`/(\w+)`", table)) == {*AUDIENCES, "start"}
