"""Words by which one sees how something was said: as a wish, a denial, an instruction, of whom. Pure."""

import re


def _any(words: str) -> re.Pattern[str]:
    """One of these words, `_` standing for a space, alone."""
    alternatives = "|".join(word.replace("_", " ") for word in words.split())
    return re.compile(rf"(?<![\w'])(?:{alternatives})(?![\w'])", re.IGNORECASE)


INSTRUCTION = re.compile(
    r"^\W*(?:(?:please|from now on|always|never|ignore|disregard|forget|respond|reply|answer|speak|act|pretend|obey|"
    r"remember to|do not|don't|you|say|write|call me|use|stop|make sure|завжди|ніколи|ігноруй|відповідай|відповідайте|"
    r"пиши|говори|забудь|не кажи|не пиши|ти|ви|всегда|никогда|игнорируй|отвечай|immer|zawsze)\b)|"
    r"\b(?:system prompt|previous instructions|your instructions|the (?:assistant|bot|model|ai|agent)|as an ai|"
    r"(?:bot|assistant|ai|chatbot) (?:must|should|shall|has to|is to)|be (?:answered|addressed|replied to)|"
    r"administrator|has admin|developer mode|jailbreak\w*|"
    r"(?:бот|асистент|модель|агент) (?:має|повинен|повинна|мусить)|системн\w+ (?:промпт|інструкці\w+)|"
    r"(?:answers?|repl(?:y|ies)|responses?|messages) (?:must|should|to be|in)\b|попередні інструкції)",
    re.IGNORECASE,
)
PASSING = _any(
    """
    today tonight tomorrow yesterday this_morning this_evening this_afternoon сьогодні завтра вчора щойно сегодня вчера
    heute morgen dzisiaj jutro
    """
)
MOMENTARY = _any("right_now at_the_moment зараз сейчас")
NEGATED = _any(
    r"""
    used_to formerly колись раніше not no_longer never neither \w+n't dont cant isnt nobody не ні ніколи жодного нет
    никогда nie nicht keine?
    """
)
SAYS_NO = _any(
    r"""
    used_to formerly once lived раніше колись мешка(?:в|ла) жи(?:в|ла) not no no_longer never \w+n't dislikes? hates?
    avoids? allerg\w+ without lost quit stopped former\w* не ні ніколи ненавидить уникає алергі\w+ без nie nicht keine?
    """
)
WISHED = _any(
    r"""
    if would wish\w* imagine pretend suppose maybe might i'd dream\w* want\w* hope hoping plan\w* going_to якби якщо б
    би уяви\w* хочу хотів хотіла мрію може мабуть планую если бы wenn gdyby
    """
)
SAYS_WISH = _any(
    r"""
    want\w* wish\w* would hope\w* plan\w* dream\w* may might intends? going хоче хотів хотіла мріє планує збирається
    може
    """
)
FIRST = _any("i i'm im i've i'd i'll me we я мені мене ми ich ja")
SECOND = _any("you you're your u ur ти тебе тобі твій твоя твоє твої твою ви вас вам ваш ваша du dein ty")
THIRD = re.compile(
    r"\W*(?:and |but |а |і |але )?(?:he|she|they|it|he's|she's|they're|his|her|their|він|вона|вони|його|її|їх|он|она|"
    r"(?:my|our|мій|моя|моє|мої|наш|наша) "
    r"(?!(?:(?:first|full|real) )?(?:name|birthday|bday|b-day|pronouns|favou?rite|fave|job|work|hobby|hobbies|age|home|"
    r"hometown|city|native|mother tongue|ім'я|день|др|займенники|улюблен|робот|вік|хобі|місто|рідн))"
    r"(?P<kin>[^\W\d_]+))(?![\w'/])",
    re.IGNORECASE,
)
OWN_REPORT = re.compile(
    r"\b(?:i|i've|я)\s+(?:\w+\s+){0,2}?(?:said|told|saying|wrote|казав|казала|сказав|сказала|писав|писала)\b",
    re.IGNORECASE,
)
SENTENCES = re.compile(r"(?<=[.!?…;])\s+|\s[–—]\s")
CLAUSES = re.compile(r"\s*[,:()—\ufffc]+\s*|\s+(?:but|and|so|because|however|але|проте|і|й|та|бо)\s+", re.IGNORECASE)
