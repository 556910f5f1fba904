"""Words that would steer whoever reads them: what is told in them is no fact about anybody. Pure."""

import re

TITLES = frozenset(
    """
    system admin administrator root superuser sudo moderator developer assistant bot agent ai model user owner operator
    master override null undefined none legion anonymous anybody everybody
    система адмін адміністратор модератор розробник асистент бот агент модель користувач власник оператор легіон
    """.split()
)  # no names of people

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


def steers(text: str) -> bool:
    """Whether a sentence of *text* tells its reader what to do, or what somebody may do."""
    return any(_STEERING.search(one) or _AUTHORITY.search(one) for one in _SENTENCES.split(text))


def is_order(sentence: str) -> bool:
    """Whether somebody is told to do something: what else it says is only said to them."""
    return bool(_ORDER.search(sentence))


def gives_authority(sentence: str) -> bool:
    return bool(_AUTHORITY.search(sentence))
