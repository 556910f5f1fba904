"""The parameters of calls."""

import pytest

from tertulia.errors import InvalidValue
from tertulia.platform import CommandInfo
from tertulia.platforms.telegram import Telegram
from tertulia.platforms.telegram.parameters import command_menus


def test_a_menu_has_the_languages_that_telegram_knows_by_two_letters() -> None:
    texts = {"": "this list", "pt-br": "esta lista", "uk": "цей список", "uk-ua": "перелік", "yue": "呢個列表"}

    menus = list(command_menus([CommandInfo(name="help", who="everyone", descriptions=texts)], owners=()))

    shown = [(menu["language_code"], menu["commands"][0]["description"]) for menu in menus[:3]]
    assert shown == [("", "this list"), ("uk", "цей список"), ("pt", "esta lista")]
    assert len(menus) == 9


@pytest.mark.parametrize("address", ["127.0.0.1:8912", "localhost:8912", "ftp://127.0.0.1", "http://"])
def test_an_address_of_a_server_that_is_none_is_refused_at_once(address: str) -> None:
    with pytest.raises(InvalidValue) as raised:
        Telegram("1:TEST", base_url=address)

    assert str(raised.value) == f"base_url is no address such as https://api.telegram.org: {address}"
