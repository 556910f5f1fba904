"""Words by which one sees how something was said: as a wish, a doubt, a denial, of what is over. Pure."""

import re


def any_of(words: str) -> re.Pattern[str]:
    """One of these words, `_` standing for a space, alone."""
    alternatives = "|".join(word.replace("_", " ") for word in words.split())
    return re.compile(rf"(?<![\w'])(?:{alternatives})(?![\w'])", re.IGNORECASE)


PASSING = any_of(
    """
    today tonight tomorrow yesterday this_morning this_evening this_afternoon сьогодні завтра вчора щойно сегодня вчера
    heute morgen dzisiaj jutro
    """
)
MOMENTARY = any_of("right_now at_the_moment зараз сейчас")
DENIED = any_of(
    r"""
    not never neither none nothing hardly \w+n't dont cant isnt nobody no_(?!i\b)\w+ hates? hated dislike\w* despise\w*
    loathe\w* except\w* не ні немає нема ніколи нічого жодного ненавид\w+ крім окрім нет никогда nie nicht keine?
    """
)
OVER = any_of(
    r"""
    used_to formerly previously in_the_past (?:until|till)_(?:\d+|last|then) колись раніше (?:до|по)_(?:19|20)\d\d
    quit quitting stop stopped ga?ve_up given_up left lost ended sold fired laid_off dropped_out broke_up died
    retired_from
    done_with got_(?:rid_of|over) spent moved_(?:out|away|from)
    (?:lived|worked|studied|resided|taught|owned|smoked|drank|played|spoke|loved|liked|adored|enjoyed|preferred|attended)
    (?:wanted|wished|hoped|dreamed|dreamt|had|grew_up(?!_in)|(?:was|were)(?!_(?:born|raised|named|diagnosed)))
    (?:(?:жи|мешка|прожива|працюва|бу|ма|люби|пали|кури|гра|володі|служи|обожнюва|хоті|мрія)(?:в|ла|ли)(?!_би?\b))
    (?:вчи|учи|навча)(?:вся|лася|лась|лися) ки(?:нув|нула|даю) переста(?:в|ла) поки(?:нув|нула) прода(?:в|ла|ли)
    звільни(?:вся|лася|лась|ли) розлучи(?:вся|лася|лась|лися) помер(?:ла|ли)? (?:переїха|виїха)(?:в|ла|ли)_(?:з|із|зі)
    """
)
STILL = re.compile(
    r"^(?>.*?(?:\bhave|'ve|\bhas)\s+(?:\w+\s+){0,2}\w+ed\b).*\b(?:since|for|always|all my life)\b|\b(?:since|for) \d",
    re.IGNORECASE,
)
LONG_AGO = re.compile(
    r"\b(?:when (?:i|we) (?:was|were)|back (?:then|when|in)|in those days|in my (?:childhood|youth|teens|twenties)|"
    r"as an? (?:kid|child|boy|girl|teen\w*|student)|коли (?:я |ми )?(?:ще )?бу(?:в|ла|ли)|(?:в|у) (?:дитинстві|юності|"
    r"молодості|школі)|малою|малим|замолоду)\b",
    re.IGNORECASE,
)
SAYS_NO = any_of(
    r"""
    used_to formerly once lived previously раніше колись мешка(?:в|ла) жи(?:в|ла) not no never \w+n't dislikes? hates?
    despises loathes avoids? allerg\w+ without except\w* lost quit stopped left gave_up given_up former\w* anymore
    не ні немає нема ніколи ненавидить уникає алергі\w+ без крім окрім nie nicht keine?
    """
)
SAYS_PAST = re.compile(
    r"^\W*(?:got|went|became|bought|ran|\w+(?:ed|ла|ли|в|вся|лася|лась))\b|"
    r"\b(?:was|were|had|until|till|ago|previously|gave|moved|grew|sold|lost|died|spent|до (?:19|20)\d\d)\b",
    re.IGNORECASE,
)
WISHED = any_of(
    r"""
    if whether would could wish\w* imagine pretend\w* failed_to refus\w+_to tr(?:y|ied|ying)_to too_\w+_to suppose
    maybe perhaps probably possibly might almost nearly hopefully
    someday i'd i'll will gonna about_to (?:thinking|dreaming)_(?:of|about) considering dream\w* want\w* hope hoping
    plan\w*
    going_to let's_say якби якщо б би уяви\w* хочу хоче хочуть хотів хотіла мрі\w+ може можливо мабуть планую планує
    ледь
    ледве майже мало_не збираюся збираюсь збирається скажімо если бы wenn gdyby
    """
)
SAYS_WISH = any_of(
    r"""
    want\w* wish\w* would could hope\w* plan\w* dream\w* may might will probably almost nearly pretends? fail\w*
    refus\w+ tr(?:ies|ied|ying) too intends? going thinking
    considering хоче хотів хотіла мрі\w+ планує збирається може майже
    """
)
HEARSAY = any_of(
    r"""
    (?:is|was)_it_true is_that_true rumou?rs? apparently supposedly allegedly presumably afaik iirc as_far_as seems?
    looks_like sounds_like likely heard wonder\w* guess bet any_(?:idea|chance) anyone_know\w* must_(?:be|have)
    (?:not|pretty|quite|fairly)_sure or_(?:what|not) здається напевно наче ніби нібито начебто схоже певно чув чула
    чули кажуть
    правда,?_що цікаво,?_чи не_впевнен\w+
    """
)
FIRST = any_of("i i'm im i've i'd i'll me we я мені мене ми ich ja")
OWN_REPORT = re.compile(
    r"\b(?:i|i've|я)\s+(?:\w+\s+){0,2}?(?:said|told|saying|wrote|казав|казала|сказав|сказала|писав|писала)\b",
    re.IGNORECASE,
)
ASKS = re.compile(
    r"\W*(?:(?:so|and|but|well|hey|ok|а|і|ну)\s+)?(?:"
    r"(?:is|are|was|were|do|does|did|has|have|can|could|will|would|should|am|isn't|aren't|don't|doesn't|didn't)\s+"
    r"(?:i|it|he|she|they|you|we|there|this|that|anyone|anybody|someone|(?-i:[A-Z])\w*)\b|"
    r"(?:who|what|where|why|how|which|whose|when)(?:'s|\s+(?:is|are|was|were|do|does|did|has|lives?|works?|old|long|"
    r"many|"
    r"much|come|about))\b|(?:чи|хіба|невже|хто|де|звідки|чому|скільки|навіщо|правда,? що|коли (?!я|ми))\b)",
    re.IGNORECASE,
)


def is_over(text: str) -> bool:
    """Whether it is said of what was, or came to an end."""
    return bool(LONG_AGO.search(text) or (OVER.search(text) and not STILL.search(text)))


def is_told_as_over(told: str) -> bool:
    return bool(SAYS_NO.search(told) or SAYS_PAST.search(told))
