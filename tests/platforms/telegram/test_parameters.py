"""The parameters of calls."""

from palaver.platform import CommandInfo
from palaver.platforms.telegram.parameters import command_menus


def test_a_menu_has_the_languages_that_telegram_knows_by_two_letters() -> None:
    texts = {"": "this list", "pt-br": "esta lista", "uk": "цей список", "uk-ua": "перелік", "yue": "呢個列表"}

    menus = list(command_menus([CommandInfo(name="help", who="everyone", descriptions=texts)], owners=()))

    shown = [(menu["language_code"], menu["commands"][0]["description"]) for menu in menus[:3]]
    assert shown == [("", "this list"), ("uk", "цей список"), ("pt", "esta lista")]
    assert len(menus) == 9
