"""Patterns that show how a sentence is meant: a wish, a denial, the past, hearsay, a question, an instruction. Pure."""

import re


def any_word(words: str) -> re.Pattern[str]:
    """Compile a pattern for any of these words; `_` stands for a space."""
    alternatives = "|".join(word.replace("_", " ") for word in words.split())
    return re.compile(rf"(?<![\w'])(?:{alternatives})(?![\w'])", re.IGNORECASE)


PASSING = any_word(
    """
    today tonight tomorrow yesterday this_morning this_evening this_afternoon сьогодні завтра вчора щойно сегодня вчера
    heute morgen dzisiaj jutro
    """
)
MOMENTARY = any_word("right_now at_the_moment зараз сейчас")
DENIED = any_word(
    r"""
    not never neither none nothing hardly \w+n't dont cant isnt nobody no_(?!i\b)\w+ hates? hated dislike\w* despise\w*
    loathe\w* except\w* не ні немає нема ніколи нічого жодного ненавид\w+ крім окрім нет никогда nie nicht keine?
    """
)
OVER = any_word(
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
SAYS_NO = any_word(
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
WISHED = any_word(
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
SAYS_WISH = any_word(
    r"""
    want\w* wish\w* would could hope\w* plan\w* dream\w* may might will probably almost nearly pretends? fail\w*
    refus\w+ tr(?:ies|ied|ying) too intends? going thinking
    considering хоче хотів хотіла мрі\w+ планує збирається може майже
    """
)
HEARSAY = any_word(
    r"""
    (?:is|was)_it_true is_that_true rumou?rs? apparently supposedly allegedly presumably afaik iirc as_far_as seems?
    looks_like sounds_like likely heard wonder\w* guess bet any_(?:idea|chance) anyone_know\w* must_(?:be|have)
    (?:not|pretty|quite|fairly)_sure or_(?:what|not) здається напевно наче ніби нібито начебто схоже певно чув чула
    чули кажуть
    правда,?_що цікаво,?_чи не_впевнен\w+
    """
)
FIRST = any_word("i i'm im i've i'd i'll me we я мені мене ми ich ja")
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
    """Return whether a text is about the past, or about something that has ended."""
    return bool(LONG_AGO.search(text) or (OVER.search(text) and not STILL.search(text)))


def tells_past(told: str) -> bool:
    return bool(SAYS_NO.search(told) or SAYS_PAST.search(told))


_SENTENCES = re.compile(r"(?<=[.!?…;])\s+|\s[–—]\s")
_AGENT = r"(?:assistant|chatbot|bot|model|ai|agent)"
_REPLIES = r"(?:answer(?:s|ed|ing)?|repl(?:y|ies|ied|ying)|respon(?:d|ds|ses?|ded|ding)|messages)"
_ALL = (
    r"(?:all|any|every\w*|anything|whatever|(?:the|your|other|others') (?:\w+ )?(?:data|logs?|prompt|system|messages|"
    r"chats?))"
)
_STEERING = re.compile(
    r"^\W*(?:please|from now on|(?:always|never)(?! \w+s\b)|ignore|disregard|forget|respond|reply|answer|speak|act|"
    r"pretend|obey|"
    r"remember to|do not|don't|you|say|write|call me|use|stop|make sure|завжди|"
    r"ніколи(?! не \w+(?:є|е|ить|сть)\b)|ігноруй|відповідай|відповідайте|"
    r"пиши|говори|забудь|не кажи|не пиши|ти|ви|всегда|никогда|игнорируй|отвечай|immer|zawsze)\b|"
    r"\b(?:system prompt|previous instructions|your instructions|as an ai|developer mode|jailbreak\w*|has admin|"
    r"from now on|henceforth|no matter what|попередні інструкції|системн\w+ (?:промпт|інструкці\w+)|"
    r"від(?:тепер|нині)|надалі|"
    rf"(?:the|this|our) {_AGENT}|{_AGENT} (?:must|should|shall|has to|is to)|"
    r"(?:must|should|shall|has to|have to|needs? to|wants? to|is to) (?:always |never )?be (?:obeyed|trusted|believed|"
    r"answered|addressed|replied|treated|told|given|served)|be (?:answered|addressed|replied to)|"
    r"(?:wants?|needs?|expects?|asks?|tells?|prefers?|orders?|requires?|demands?) (?:that )?you\b|"
    r"you (?:to|must|should|can|may|will|are|have|need|shall|always|never)\b|"
    rf"(?:each|every|all) (?:message|repl|answer|response)\w*|{_REPLIES} (?:must|should|to be|in|only|always|"
    rf"without)\b|(?:only|always|never) {_REPLIES}|"
    r"(?:бот|асистент|модель|агент)\w* (?:має|повинен|повинна|мусить)|"
    r"(?:щоб|лише|тільки|завжди) (?:\w+ )?(?:йому |їй |мені |їм )?(?:відповіда|зверта|пиш|писа|слуха|викону)\w+|"
    r"(?:відповіда|зверта)\w+ (?:\w+ )?(?:лише|тільки|завжди))",
    re.IGNORECASE,
)
_AUTHORITY = re.compile(
    r"\b(?:administrator|admins?|confidential|classified|permissions?|permitted|authori[sz]ed|authori[sz]ation|"
    r"privileg\w+|clearance|superuser|"
    r"root (?:access|on)|super ?admin\w*|overrid\w+|(?:full|unlimited|unrestricted|admin\w*|special) (?:access|"
    r"rights|powers?)|exempt from|"
    rf"access to {_ALL}|(?:owner|creator|developer|maker|admin) of (?:this|the) (?:{_AGENT}|chat|group|system)|"
    r"cleared for|(?:bypass|skip|ignor|break)\w* (?:\w+ )?rules|rules (?:are|is) (?:\w+ )?(?:bypass|skip|ignor)\w+|"
    r"(?:allowed|entitled|cleared) to (?:see|read|know|ask|access|view|do|use|bypass|skip|hear|order|decide)|"
    rf"(?:can|may|could) (?:see|read|access|know|view|override|bypass|change|do|ask|get) (?:for )?{_ALL}|"
    r"(?:повн\w+|необмежен\w+) доступ\w*|дозвіл|дозволено|повноважен\w+|уповноважен\w+|адмін(?:істратор\w*|ськ\w+)?|"
    r"доступ\w* до (?:всіх|усіх|всього|усього|всієї|даних|системи|чужих|логів)|прав[оа] (?:доступу|бачити|читати|"
    r"знати)|"
    r"мо(?:же|жу) (?:бачити|читати|знати|змінювати) (?:всі|усі|все|усе|чужі)|власни\w+ (?:цього )?(?:бота|чату|"
    r"системи))\b",
    re.IGNORECASE,
)
_ORDER = re.compile(
    r"(?:^|[,:;—]\s)\W{0,3}(?:(?:please|pls|from now on|always|never|just|hey|ok|будь ласка|відтепер|віднині|надалі|"
    r"завжди|ніколи|не)(?:\s+|,))*"
    r"(?:answer|respond|reply|speak|talk|ignore|disregard|forget|act|behave|obey|say|tell|remember|note|write|give|"
    r"show|"
    r"send|treat|trust|believe|remind|keep in mind|make sure|make a note|take note|don't (?:ever|you|forget|mention|"
    r"tell|say|call|answer)|do not|ask|let|imagine|end|add|include|mention|save|write down|memori[sz]e|"
    r"відповідай\w*|пиши|пишіть|говори|говоріть|кажи|кажіть|скажи|скажіть|забудь|забудьте|ігноруй\w*|запам'ятай\w*|"
    r"запиши|запишіть|збережи|додай|май(?:те)? на увазі|нагадай\w*|передай\w*|слухай\w*|вір|вірте|зви|вважай\w*|"
    r"пам'ятай\w*)\b",
    re.IGNORECASE,
)


def is_instruction(text: str) -> bool:
    """Return whether a sentence of *text* tells its reader what to do, or claims authority."""
    return any(_STEERING.search(one) or _AUTHORITY.search(one) for one in _SENTENCES.split(text))


def is_order(sentence: str) -> bool:
    """Return whether a sentence is an order; only its clauses in the first person are statements."""
    return bool(_ORDER.search(sentence))


def claims_authority(sentence: str) -> bool:
    return bool(_AUTHORITY.search(sentence))
