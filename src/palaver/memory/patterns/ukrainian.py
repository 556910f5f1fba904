"""What people say of themselves in Ukrainian, and what may stand in the gaps of the patterns. Pure."""

from collections.abc import Sequence

from palaver.memory.patterns.rules import Fits, Language, begins, is_capital, slot_of_names, slot_of_places, words_of
from palaver.memory.patterns.ukrainian_rules import RULES
from palaver.memory.patterns.ukrainian_words import (
    ALLERGENS,
    FOODS,
    JOBS,
    LANGUAGES,
    NAMES,
    NOT_INSTRUMENTAL,
    NOT_NAMES,
    NOT_PLACES,
    NOT_THINGS,
    NOT_WHERE,
    PLACES,
    SHORT_PLACES,
    WORKPLACES,
)
from palaver.memory.verify.markers import TITLES

_AS = ("ом", "ем", "єм", "им", "ою", "ею", "єю")
_INSTRUMENTAL = (*_AS, "ами", "ями")


def _is_thing(said: str) -> bool:
    words = words_of(said)
    return 1 <= len(words) <= 6 and not any(word in NOT_THINGS for word in words)


def _is_job(said: str) -> bool:
    """A profession by its name, with one or two words before it, or its field after it."""
    words = words_of(said)
    if not 1 <= len(words) <= 4 or any(word in NOT_THINGS for word in words):
        return False
    at = next((number for number, word in enumerate(words) if word in JOBS), None)
    return at is not None and at <= 2 and all(word[-1] in "иіїуаяв" for word in words[at + 1 :])


def _is_instrumental(said: str) -> bool:
    words = words_of(said)
    if not 1 <= len(words) <= 3 or any(word in NOT_THINGS | NOT_INSTRUMENTAL for word in words):
        return False
    return any(len(word) > 4 and word.endswith(_AS) for word in words)


def _is_workplace(said: str) -> bool:
    words = words_of(said)
    if not 1 <= len(words) <= 5 or any(word in NOT_THINGS for word in words):
        return False
    if any(begins(word, NOT_WHERE) for word in words):
        return False
    return any(begins(word, WORKPLACES) for word in words) or all(is_capital(word) for word in said.split())


_AT_SCHOOL = "університет інститут школ коледж факультет курс клас ліце гімназі академі політех магістратур бакалаврат"


def _is_studied(said: str) -> bool:
    words = words_of(said)
    if not 1 <= len(words) <= 7 or any(word in NOT_THINGS for word in words):
        return False
    return any(begins(word, _AT_SCHOOL.split()) for word in words) or is_capital(said.split()[0])


_is_place = slot_of_places(SHORT_PLACES, NOT_PLACES, stems=PLACES, not_stems=NOT_WHERE)
_is_name = slot_of_names(NAMES, NOT_NAMES | TITLES, most=3)


def _is_place_from(said: str) -> bool:
    """A place after *з*, which also means *with*: then a name stands in another case."""
    return _is_place(said) and not words_of(said)[-1].endswith(_INSTRUMENTAL)


def _of(stems: Sequence[str], *besides: str) -> Fits:
    def fits(said: str) -> bool:
        words = [word for word in words_of(said) if word not in ("і", "й", "та", "або", *besides)]
        return 1 <= len(words) <= 5 and all(begins(word, stems) for word in words)

    return fits


FITS = {
    "name": _is_name,
    "given": lambda said: said.casefold() in NAMES,
    "kinname": _is_name,
    "petname": lambda said: all(is_capital(word) for word in said.split()) and len(said.split()) <= 2,
    "place": _is_place,
    "from": _is_place_from,
    "thing": _is_thing,
    "favourite": lambda said: len(words_of(said)) <= 6 and not any(word in NOT_THINGS for word in words_of(said)),
    "kind": lambda said: 1 <= len(words_of(said)) <= 3 and not any(word in NOT_THINGS for word in words_of(said)),
    "job": _is_job,
    "doing": _is_instrumental,
    "workplace": _is_workplace,
    "studied": _is_studied,
    "tongues": _of(LANGUAGES, "мовою", "мовами", "мову", "трохи", "трошки", "вільно"),
    "food": _of(FOODS, "взагалі", "ніяке", "жодного"),
    "allergen": _of(ALLERGENS),
    "age": lambda said: 3 <= int(said) <= 110,
    "bare": lambda said: 10 <= int(said) <= 110,
}


UKRAINIAN = Language(
    rules=RULES,
    fits=FITS,
    said={
        "живу": "живе", "живемо": "живе", "мешкаю": "мешкає", "мешкаємо": "мешкає", "проживаю": "проживає",
        "вчуся": "вчиться", "вчусь": "вчиться", "учуся": "вчиться", "учусь": "вчиться", "навчаюся": "навчається",
        "навчаюсь": "навчається", "люблю": "любить", "не люблю": "не любить", "обожнюю": "обожнює",
        "полюбляю": "полюбляє", "ненавиджу": "ненавидить", "терпіти не можу": "терпіти не може",
        "не терплю": "не терпить", "не переношу": "не переносить", "їм": "їсть", "п'ю": "п'є", "вживаю": "вживає",
        "розмовляю": "розмовляє", "володію": "володіє", "спілкуюся": "спілкується", "говорю": "говорить",
        "служу": "служить", "вчу": "вчить", "вивчаю": "вивчає",
    },
    dated="{} (станом на {}).",
    times=(
        r"(?:тепер|зараз|нині|наразі|нещодавно|недавно|відтепер|торік|донині)|"
        r"(?:цього|минулого) (?:року|місяця|тижня|літа)|(?:з|із|від) (?:(?:19|20)\d\d(?: року)?|минулого року)|"
        r"(?:(?:вже|уже) )?(?:\w{1,12} )?(?:рік|роки|років|місяць|місяці|місяців)(?: тому| як)?"
    ),
    fillers=(
        r"привіт|всім привіт|привітик|вітаю|хай|доброго дня|добрий день|добрий вечір|доброго ранку|всім|друзі|народ|"
        r"ну|та|а|і|й|але|бо|так|ні|нє|ага|до речі|взагалі|насправді|чесно|якщо чесно|чесно кажучи|особисто|ой|ох|о|"
        r"тому що|оскільки|от|ось|тож|отже|короче|коротше|знаєш|знаєте|блін|кстаті|по секрету|ахах\w*|хаха\w*|дякую|"
        r"якщо шо|якщо що|до слова|плюс|ще|зате|тому"
    ),
    starters=r"я|мене|мені|мій|моя|живу|працюю|(?:не )?люблю|обожнюю|полюбляю|ненавиджу|терпіти не можу|вчуся|навчаюся",
    joints=r"і|й|та|а|але|бо|тому|тож",
    doubtful=(
        r"якби|якщо б|якщо|уяви|уявіть|уявімо|припустимо|може|мабуть|можливо|напевно|наче|ніби|немов|б|би|хотів|хотіла|"
        r"мрію|коли б|чи|невже|колись|раніше|ніхто не|навряд"
    ),
    reported=(
        r"каже|кажуть|казав|казала|казали|сказав|сказала|сказали|говорить|говорять|питає|пише|пишуть|писав|писала|"
        r"вважає|вважають|думає|думають|співа(?:є|ють)(?! [ву] хор)|брешу|збреха(?:в|ла)|цитую|цитата|жартую|жарт|"
        r"сарказм|відповів|відповіла|"
        r"(?:в|у|уві) (?:цій |моїй |моєму |цьому )?(?:грі|книзі|книжці|сні|фільмі|пісні|історії|казці|романі)|"
        r"\((?:ні|нє)\)"
    ),
    requests=(
        r"переклади|перекладіть|напиши|напишіть|склади|складіть|придумай|придумайте|повтори|перепиши|перефразуй|"
        r"зіграй|зіграймо|від імені|від особи|як сказати|у стилі|в стилі|ігноруй|уяви|уявіть|продовж"
    ),
    echoes=(
        r"(?:а|і|й|що|шо|як|де|чи|який|яка|яке|які|яку|куди|звідки|коли|скільки|хто|порадь|порадьте|"
        r"підкажіть)(?!\w)"
    ),
)  # fmt: skip
