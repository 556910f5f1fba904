"""How people say things of themselves in Ukrainian, as patterns over one clause. Pure."""

from palaver.memory.patterns.rules import Rule
from palaver.memory.patterns.ukrainian_words import (
    CHILDREN,
    COUNT,
    FAVOURED,
    FROM_THERE,
    KIN,
    KIN_WHOM,
    MONTHS,
    PETS,
    PETS_WHOM,
    PLAYED,
)

_NOW = (
    r"(?:(?:зараз|тепер|вже|уже|сам|сама|самі|дуже|взагалі|загалом|просто|теж|також|досі|наразі|нині|тут|насправді|"
    r"реально|поки|шалено|страшенно|безмежно|так|ще|й|і)\s+)*"
)
_LONG = r"(?:(?:вже |уже )?(?:\S+ )?(?:рік|роки|років|місяць|місяці|місяців) (?:як )?)?"
_I = rf"(?:(?:сам\s+|сама\s+)?я\s+)?{_NOW}"
_ME = rf"(?:сам\s+|сама\s+)?я\s+{_NOW}"
_TAIL = (
    r"(?:\s+(?:зараз|тепер|вже|уже|теж|також|взагалі|до речі|якщо що|якщо шо|якшо шо|насправді|торік|цього року|"
    r"минулого року|недавно|нещодавно|постійно|спокійно|сьогодні|вчора|ще|досі|року|р\.|"
    r"(?:рік|\d+|другий|третій|кілька|пару|багато) .*|рік|"
    r"(?:з|із) (?:народження|дитинства|\d{4}\b.*|батьками|чоловіком|дружиною|сім'єю|родиною)|"
    r"(?:і|й|та|а|але|бо|тому|тож|де|який|яка|—) .*))*"
)
_SHORT_TAIL = (
    r"(?:\s+(?:зараз|тепер|більше|вже|уже|теж|також|до речі|якщо що|якщо шо|взагалі|насправді|(?:а|але|бо|тому|тож|"
    r"—) .*))*"
)


def _rule(key: str, pattern: str, text: str, *, tail: str = _TAIL, sure: float = 0.9, earnest: bool = False) -> Rule:
    return Rule(key=key, pattern=pattern + tail, text=text, sure=sure, earnest=earnest)


_YEARS = r"\s*(?:років|роки|рік|рочків|рочки|р\.?)"
_COUNTED = {"рік": r"\d{0,2}(?<!1)1", "роки": r"\d{0,2}(?<!1)[2-4]", "років": r"\d{0,2}(?:1\d|[05-9])"}
_SINCE_BORN = (
    rf"мені {_NOW}(?:(?:всього|лише|тільки|сьогодні|вчора|недавно|виповнилося|виповнилось|стукнуло|щойно)\s+)*"
)
_DATE = rf"(?P<date>\d{{1,2}}(?:-?го)? (?:{MONTHS})(?: \d{{4}})?|\d{{1,2}}\.\d{{1,2}}(?:\.\d{{2,4}})?)"
_BORN = "народився|народилася|народилась"
_MOVED = "переїхав|переїхала|переїхали|перебрався|перебралася|перебралась"
_PRONOUNS = r"(?P<pronouns>(?:вона|він|вони|воно)(?:\s*/\s*(?:її|неї|його|нього|їх|них|вони|вона|він|йому|їй)){1,2})"

_NO_LONGER = rf"{_I}(?:(?:більше|вже|уже) (?:тут )?не|не(?= .+ більше))"

RULES = (
    _rule(
        "past:home",
        rf"{_NO_LONGER} (?P<verb>живу|мешкаю|проживаю) (?P<prep>в|у|на|під) (?P<place>.+?)(?: більше)?",
        "Більше не {verb} {prep} {place}.",
    ),
    _rule(
        "past:work",
        rf"{_NO_LONGER} працюю (?P<prep>в|у|на) (?P<workplace>.+?)(?: більше)?",
        "Більше не працює {prep} {workplace}.",
    ),
    _rule("past:work", rf"{_NO_LONGER} працюю (?P<doing>.+?)(?: більше)?", "Більше не працює {doing}."),
    _rule("past:work", rf"{_ME}(?:більше|вже|уже) не (?P<job>.+?)", "Більше не {job}."),
    _rule(
        "past:work",
        rf"{_I}(?P<verb>звільнився|звільнилася|звільнилась) (?P<prep>з|із|зі) (?P<workplace>.+?)",
        "{verb} {prep} {workplace}.",
    ),
    _rule("name", r"мене (?:звати|звуть|кличуть) (?:— )?(?P<name>.+?)", "Звати {name}."),
    _rule("name", r"мо[єе] ім'я(?: —|:)? (?P<name>.+?)", "Звати {name}."),
    _rule(
        "name",
        r"(?:можеш |можете |можна )?(?:звіть|зви|називай|називайте|кличте|клич|звати) мене (?:просто )?(?P<name>.+?)",
        "Звати {name}.",
        tail=_SHORT_TAIL,
    ),
    _rule(
        "name",
        r"я (?:— |- )?(?P<given>[^\W\d_]+(?:'[^\W\d_]+)?)(?: (?:з|із|зі) .+?)?",
        "Звати {given}.",
        tail=_SHORT_TAIL,
        sure=0.8,
        earnest=True,
    ),
    _rule(
        "home",
        rf"(?:ми\s+)?{_I}{_LONG}(?P<verb>живу|мешкаю|проживаю|живемо|мешкаємо)\s+{_NOW}(?P<prep>в|у|на|під|біля|"
        rf"коло) (?:місті )?(?P<place>.+?)",
        "{verb} {prep} {place}.",
    ),
    _rule(
        "home",
        rf"(?:ми\s+)?{_I}(?:недавно |нещодавно |торік )?(?P<verb>{_MOVED})\s+(?:жити )?(?P<prep>до|в|у|на) "
        rf"(?P<place>.+?)",
        "{verb} {prep} {place}.",
    ),
    _rule("origin", rf"(?:{_ME}(?:родом )?|родом )(?P<prep>з|із|зі) (?:міста )?(?P<from>.+?)", "Родом {prep} {from}."),
    _rule("origin", r"я (?:— |- )?(?P<given>[^\W\d_]+) (?P<prep>з|із|зі) (?P<from>.+?)", "Родом {prep} {from}."),
    _rule(
        "origin",
        rf"{_I}(?P<verb>{_BORN}|виріс|виросла)(?: (?:і|й|та) (?:виріс|виросла))? (?P<prep>в|у|на) (?P<place>.+?)",
        "{verb} {prep} {place}.",
    ),
    _rule("work", rf"{_I}працюю {_NOW}(?P<doing>.+?)(?: (?:в|у|на) .+)?", "Працює {doing}."),
    _rule("work", rf"{_I}працюю {_NOW}(?P<prep>в|у|на) (?P<workplace>.+?)", "Працює {prep} {workplace}."),
    _rule("work", rf"{_I}працюю {_NOW}(?P<prep>в|у) (?P<place>.+?)", "Працює {prep} {place}.", sure=0.8),
    _rule("work", rf"{_I}за (?:фахом|професією|освітою)(?: я)? (?:— )?(?P<job>.+?)", "За фахом {job}."),
    _rule(
        "work",
        rf"{_ME}(?:— |- )?(?P<job>.+?)(?: (?:в|у|на) (?P<workplace>.+?)| (?:з|зі|із) (?P<from>.+?))?",
        "{job}.",
        tail=_SHORT_TAIL,
        sure=0.8,
        earnest=True,
    ),
    _rule(
        "studies",
        rf"{_I}(?P<verb>вчуся|вчусь|учуся|учусь|навчаюся|навчаюсь) {_NOW}(?P<prep>в|у|на) (?P<studied>.+?)",
        "{verb} {prep} {studied}.",
    ),
    _rule(
        "taste:{thing}",
        rf"{_I}(?:більше )?(?P<verb>люблю|обожнюю|полюбляю|ненавиджу|не люблю|терпіти не можу|не терплю|не переношу) "
        rf"(?P<thing>.+?)",
        "{verb} {thing}.",
        tail=_SHORT_TAIL,
    ),
    _rule(
        "taste:{thing}",
        rf"мені {_NOW}(?P<verb>(?:не )?подоба(?:ється|ються)) (?P<thing>.+?)",
        "{verb} {thing}.",
        tail=_SHORT_TAIL,
    ),
    _rule(
        "taste:{thing}",
        rf"{_ME}(?:велик\w+ )?(?P<verb>фанат|фанатка|прихильник|прихильниця|шанувальник|шанувальниця) (?P<thing>.+?)",
        "{verb} {thing}.",
        tail=_SHORT_TAIL,
    ),
    _rule(
        "favourite:{kind}",
        r"(?:мій|моя|моє|мої) (?P<fav>улюблен\w+) (?P<kind>.+?) (?:—|-|це|— це) (?P<favourite>.+?)",
        "{fav} {kind} — {favourite}.",
        tail=_SHORT_TAIL,
    ),
    _rule("pronouns", rf"(?:(?:мої )?займенники(?: —|:)?|використовую) {_PRONOUNS}", "Займенники: {pronouns}."),
    *(
        _rule("age", rf"{_SINCE_BORN}(?P<age>{count}){_YEARS}", f"{{age}} {years}.")
        for years, count in _COUNTED.items()
    ),
    *(_rule("age", rf"{_SINCE_BORN}(?P<bare>{count})", f"{{bare}} {years}.") for years, count in _COUNTED.items()),
    _rule(
        "birthday",
        rf"(?:мій |у мене |в мене |моє )?(?:день народження|днюха|др|дн)(?: у мене| в мене)?(?: —)? {_DATE}",
        "День народження {date}.",
    ),
    _rule("birthday", rf"{_I}(?P<verb>{_BORN}) {_DATE}", "{verb} {date}."),
    _rule("birthday", rf"{_I}(?P<verb>{_BORN}) (?P<prep>в|у) (?P<date>(?:19|20)\d\d)", "{verb} {prep} {date} році."),
    _rule(
        "pet:{petname}",
        rf"(?:мого|мою|моє) (?P<pet>{PETS_WHOM}) (?:звати|звуть) (?P<petname>.+?)",
        "{pet} звати {petname}.",
    ),
    _rule(
        "pet:{petname}",
        rf"(?:у|в) (?:мене|нас) (?:є |вдома |живе )*(?P<pet>{PETS}) (?:на ім'я |— )?(?P<petname>.+?)",
        "Є {pet} {petname}.",
    ),
    _rule(
        "pet:{pet}",
        rf"(?:у|в) (?:мене|нас) (?:є |вдома |живе |живуть )*(?P<pet>(?:(?:{COUNT}|\w+(?:ий|а|і|их)) "
        rf")?(?:{PETS}))(?: вдома)?",
        "Є {pet}.",
        tail=r"(?:\s+(?:(?:і|й|та|але|бо) .*))?",
    ),
    _rule(
        "family:{kin}",
        rf"(?:мого|мою|моє) (?P<kin>{KIN_WHOM}) (?:звати|звуть) (?P<kinname>.+?)",
        "{kin} звати {kinname}.",
    ),
    _rule(
        "family:{kin}",
        rf"(?:у|в) (?:мене|нас) (?:є )?(?P<kin>(?:{COUNT}) (?:\w+ )?(?:{CHILDREN}|{KIN}))",
        "Є {kin}.",
        tail=_SHORT_TAIL + r"(?:\s+(?:і|й|та) .*)?",
    ),
    _rule(
        "family:{kin}",
        rf"(?:у|в) (?:мене|нас) є (?P<kin>(?:(?:старш|молодш|менш|маленьк|двоюрідн|доросл)\w+ )?(?:{KIN}|{CHILDREN}))",
        "Є {kin}.",
        tail=_SHORT_TAIL + r"(?:\s+(?:і|й|та) .*)?",
    ),
    _rule(
        "family:marriage",
        rf"{_ME}(?P<state>одружений|одружена|заміжня|розлучений|розлучена)",
        "{state}.",
        tail=_SHORT_TAIL,
    ),
    _rule(
        "diet",
        rf"{_ME}(?P<diet>веган|веганка|вегетаріанець|вегетаріанка|діабетик)",
        "{diet}.",
        tail=_SHORT_TAIL + r"(?:\s+(?:і|й|та) .*)?",
        earnest=True,
    ),
    _rule("diet:{food}", rf"{_I}не (?P<verb>їм|п'ю|вживаю) (?P<food>.+?)", "Не {verb} {food}."),
    _rule("allergy:{allergen}", r"(?:у|в) мене (?:є |сильна )*алергія на (?P<allergen>.+?)", "Алергія на {allergen}."),
    _rule(
        "languages",
        rf"{_I}(?P<verb>розмовляю|володію|спілкуюся|говорю) (?P<tongues>.+?)",
        "{verb} {tongues}.",
        tail=_SHORT_TAIL,
    ),
    _rule("learning:{tongues}", rf"{_I}(?P<verb>вчу|вивчаю) (?P<tongues>.+?)", "{verb} {tongues}."),
    _rule("name", r"звати (?P<given>[^\W\d_]+)", "Звати {given}.", tail=_SHORT_TAIL),
    _rule("home", rf"{_ME}(?P<prep>в|у) (?P<place>.+?) (?P<verb>живу|мешкаю)", "{verb} {prep} {place}."),
    _rule(
        "home",
        rf"ми (?:з|із) \w+ {_NOW}(?P<verb>живемо|мешкаємо) (?P<prep>в|у|на|під) (?P<place>.+?)",
        "{verb} {prep} {place}.",
    ),
    _rule("nationality", rf"{_ME}(?P<there>{FROM_THERE})", "{there}.", tail=_SHORT_TAIL, earnest=True),
    _rule("work", rf"{_ME}на пенсії", "На пенсії.", tail=_SHORT_TAIL),
    _rule("work", rf"{_I}(?P<verb>служу) (?P<prep>в|у) (?P<workplace>.+?)", "{verb} {prep} {workplace}."),
    _rule(
        "studies",
        rf"{_I}(?P<who>студент|студентка) (?P<course>(?:\d|перш|друг|трет|четверт|п'ят|шост)\S* курсу)",
        "{who} {course}.",
    ),
    _rule("birthday", rf"{_I}(?P<verb>{_BORN}) (?P<date>(?:19|20)\d\d) року", "{verb} {date} року."),
    _rule(
        "family:children",
        rf"{_ME}(?P<parent>мама|мати|тато|батько) (?P<many>двох|трьох|чотирьох) (?P<whom>дітей|синів|"
        rf"доньок|дочок|хлопчиків|дівчаток)",
        "{parent} {many} {whom}.",
    ),
    _rule(
        "family:{whom}",
        rf"{_I}маю (?P<whom>(?:(?:двох|трьох|двоє|троє|старш\w+|молодш\w+) )?(?:синів|доньок|дочок|дітей|"
        rf"братів|сестер|сина|доньку|дочку|брата|сестру))",
        "Має {whom}.",
        tail=_SHORT_TAIL,
    ),
    _rule(
        "pet:{whom}",
        rf"{_I}маю (?P<whom>(?:(?:двох|трьох|дві|три) )?(?:{PETS_WHOM}|котів|собак|кішок|кішки))",
        "Має {whom}.",
        tail=_SHORT_TAIL,
    ),
    _rule(
        "pet:{petname}",
        rf"(?:мій|моя|моє) (?P<pet>{PETS}) (?:— )?(?P<petname>.+?)",
        "Є {pet} {petname}.",
        tail=_SHORT_TAIL,
    ),
    _rule("plays:{played}", rf"{_I}граю на (?P<played>{PLAYED})", "Грає на {played}."),
    _rule(
        "favourite:{kind}",
        rf"(?:мій |моя |моє )?(?P<fav>улюблен\w+) (?P<kind>{FAVOURED}) (?:— |- |це )?(?P<favourite>.+?)",
        "{fav} {kind} — {favourite}.",
        tail=_SHORT_TAIL,
    ),
    _rule(
        "home",
        rf"(?:ми\s+)?{_I}(?P<verb>живу|мешкаю|живемо) (?:в|у) (?:\w+ )?(?:місті|містечку|селі|селищі) "
        rf"(?P<prep>під|біля|коло|в|у|на) (?P<place>.+?)",
        "{verb} {prep} {place}.",
    ),
    _rule("origin", r"(?P<prep>з|із|зі) (?P<from>.+?) я(?: родом)?", "Родом {prep} {from}.", tail=_SHORT_TAIL),
)
