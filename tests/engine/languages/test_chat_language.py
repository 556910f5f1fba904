import pytest

from people import GRYAG, a_message
from tertulia.context.log import InMemoryLog
from tertulia.engine.languages.chat_language import ChatLanguage, written_language
from tertulia.messages import Message


@pytest.mark.parametrize(
    ("texts", "client", "language"),
    [
        (["Хто показував велосипед? Він її."], "en", "uk"),
        (["Хто показував велосипед? Він її."], "uk-UA", "uk-UA"),
        (["Это мы уже видели"], "en", "ru"),
        (["Это мы уже видели"], "uk", "ru"),
        (["Добре"], "uk", "uk"),
        (["Добър ден, как сте"], "bg", "bg"),
        (["Πού είναι;"], "en", "el"),
        (["これは猫です", "写真"], "en", "ja"),
        (["这是一只猫"], "en", "zh"),
        (["이것은 고양이"], "en", "ko"),
        (["who showed the bicycle?"], "uk", "uk"),
        (["ok 👍 123"], "uk", "uk"),
        (["ok", "Він прийшов і ліг"], "en", "uk"),
        ([], "de", "de"),
        (["Він"], "", "uk"),
    ],
)
def test_the_script_of_a_chat_says_more_than_a_client(texts: list[str], client: str, language: str) -> None:
    assert written_language(texts, client) == language


async def test_what_people_of_the_place_wrote_last_counts() -> None:
    old = [a_message("Старі слова ні про що", id=str(number)) for number in range(3)]
    talk = [a_message("Nothing but English words here", id=str(number)) for number in range(3, 30)]

    async def english(_: Message) -> str:
        return "en"

    mixed = InMemoryLog([*old, *talk])
    ours = InMemoryLog([a_message("Він їй", id="1", author=GRYAG), a_message("what?", id="2")])
    theirs = InMemoryLog(old)

    assert [await ChatLanguage(log, english).language_for(a_message()) for log in (mixed, ours, theirs)] == [
        "en",
        "en",
        "uk",
    ]
