"""The language of a chat: that of the clients of its people, unless they write in another script."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from itertools import islice
from unicodedata import name

from tertulia.context.log import Log
from tertulia.messages import Message

RECENT = 20  # messages of the chat that are read
LETTERS = 2_000  # of these
_SCRIPTS = {  # languages by the script of their letters; where the clients have none of them, the first is meant
    "CYRILLIC": "uk ru be bg sr mk kk ky mn tg",
    "GREEK": "el",
    "HEBREW": "he iw yi",
    "ARABIC": "ar fa ur ps ckb",
    "DEVANAGARI": "hi mr ne",
    "HANGUL": "ko",
    "HIRAGANA": "ja",
    "KATAKANA": "ja",
    "CJK": "zh ja",
    "THAI": "th",
    "GEORGIAN": "ka",
    "ARMENIAN": "hy",
}
_UKRAINIAN, _RUSSIAN = frozenset("іїєґ"), frozenset("ыэъё")


class ChatLanguage:
    """Tells in which language the people of a message's place write; *client* says that of the client of its author."""

    def __init__(self, log: Log, client: Callable[[Message], Awaitable[str]]) -> None:
        self._log = log
        self._client = client

    async def language_for(self, message: Message) -> str:
        """Return the tag of the language."""
        count = await self._log.count(message.place)
        recent = await self._log.read(message.place, max(0, count - RECENT), count)
        texts = [one.text for one in reversed(recent) if not one.deleted and one.author.persona is None]
        return written_language(texts, await self._client(message))


def written_language(texts: Iterable[str], client: str) -> str:
    """Return the language of texts, as far as their script tells it; else that of a client.

    Two languages of one script are told apart for Ukrainian and Russian alone. Latin letters tell nothing.
    """
    letters = list(islice((letter for text in texts for letter in text.lower() if letter.isalpha()), LETTERS))
    scripts = Counter(name(letter, "").split("-")[0].split(" ")[0] for letter in letters)
    if scripts["HIRAGANA"] + scripts["KATAKANA"]:  # Japanese has letters of Chinese too
        scripts["HIRAGANA"] += scripts.pop("CJK", 0)
    languages = _SCRIPTS.get(max(scripts, key=scripts.__getitem__), "").split() if scripts else []
    if not languages:
        return client
    tag = client.lower().partition("-")[0]
    if tag in languages and tag not in ("uk", "ru"):
        return client
    ukrainian, russian = (sum(letter in some for letter in letters) for some in (_UKRAINIAN, _RUSSIAN))
    if ukrainian != russian:
        found = "uk" if ukrainian > russian else "ru"
        return client if tag == found else found
    return client if tag in languages else languages[0]
