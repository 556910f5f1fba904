"""How people say things of themselves in English, as patterns over one clause. Pure."""

from palaver.memory.patterns.english_words import CHILDREN, KIN, MONTHS, PET_LOOKS, PETS
from palaver.memory.patterns.rules import Rule

_NOW = (
    r"(?:(?:just|currently|actually|really|still|also|now|mostly|presently|already|kinda|totally|absolutely|do|so)\s+)*"
)
_IM = rf"(?:i'm|im|i am)\s+{_NOW}"
_I = rf"i\s+{_NOW}"
_AN_ALLERGY = rf"{_I}have an? (?:(?:severe|bad|serious|mild) )?"
_ALLERGIC_TO = (rf"{_IM}(?:(?:very|severely|deathly) )?allergic to", f"{_AN_ALLERGY}allergy to")
_TOWN = (
    r"(?:an? (?:small |tiny |little |quiet )?(?:town|village|city|suburb|place) (?:near|in|outside|close to|called) )?"
)
_COUNT = r"(?:a|an|one|two|three|four|five|six|seven|\d{1,2})"

_TAIL = (
    r"(?:\s+(?:now|btw|tbh|atm|right now|at the moment|currently|these days|nowadays|actually|too|also|as well|myself|"
    r"lol|haha+|though|tho|fyi|already|still|again|thanks|today|originally|"
    r"(?:back )?in \d{4}|(?:last|this) (?:year|month|week|summer|spring|autumn|fall|winter)|"
    r"(?:since|for|with (?:my|our|a|the|two|three)|and|but|so|because|cuz|where|which|if|while|—) .*))*"
)
_SHORT_TAIL = r"(?:\s+(?:now|btw|tbh|too|also|as well|myself|fyi|though|tho|actually|today|so .*|but .*|— .*))*"
_LIKED_TAIL = (
    r"(?:\s+(?:now|any ?more|these days|so much|sm|a lot|the most|very much|btw|tbh|too|also|as well|though|tho|"
    r"actually|honestly|personally|"
    r"lol|haha+|more than .*|(?:but|so|because|cuz|which|since|—) .*))*"
)


def _rule(key: str, pattern: str, text: str, *, tail: str = _TAIL, sure: float = 0.9, earnest: bool = False) -> Rule:
    return Rule(key=key, pattern=pattern + tail, text=text, sure=sure, earnest=earnest)


_PRONOUNS = (
    r"(?P<pronouns>(?:she|he|they|xe|ze|it|any)"
    r"(?:\s*/\s*(?:her|hers|him|his|them|theirs|they|she|he|xem|zir|it|its|any)){1,2})"
)
_NTH = r"\d{1,2}(?:st|nd|rd|th)?"
_YEAR = r"(?:\s+\d{4})?"
_DATE = (
    rf"(?P<date>(?:the )?{_NTH}(?: of)? (?:{MONTHS}){_YEAR}|(?:{MONTHS}) {_NTH}{_YEAR}|"
    r"\d{1,2}[./]\d{1,2}(?:[./]\d{2,4})?)"
)

_NO_LONGER = rf"(?:{_I}|we )?(?:no longer|don't|dont|do not)"
_NOT_ANY_MORE = r"(?:i'm|im|i am)(?: no longer| not(?= .+ any ?more))"

RULES = (
    _rule("past:home", rf"{_NO_LONGER} live in {_TOWN}(?P<place>.+?)(?: any ?more)?", "No longer lives in {place}."),
    _rule("past:home", r"i(?:'ve| have)? (?:just )?moved (?:out of|away from) (?P<place>.+?)", "Moved out of {place}."),
    _rule(
        "past:work",
        rf"{_NO_LONGER} work (?P<where>at|for|in) (?:an? |the )?(?P<workplace>.+?)(?: any ?more)?",
        "No longer works {where} {workplace}.",
    ),
    _rule(
        "past:work",
        r"i(?:'ve| have)? (?:just |recently )?(?:quit|left|lost) my job (?P<where>at|in) (?:an? |"
        r"the )?(?P<workplace>.+?)",
        "No longer works {where} {workplace}.",
    ),
    _rule("past:work", rf"{_NOT_ANY_MORE} an? (?P<job>.+?)(?: any ?more)?", "Is no longer a {job}."),
    _rule(
        "past:diet",
        rf"{_NOT_ANY_MORE} (?:an? )?(?P<diet>vegan|vegetarian|pescatarian)(?: any ?more)?",
        "Is no longer {diet}.",
    ),
    _rule("family:marriage", rf"{_NOT_ANY_MORE} (?P<state>married|engaged)(?: any ?more)?", "Is no longer {state}."),
    _rule("name", r"my (?:first |full |real |actual )?name(?:'s|s| is) (?P<name>.+?)", "Name is {name}."),
    _rule(
        "name",
        r"(?:(?:you|u) can (?:just )?|please |pls |just |friends |everyone |people |they )?calls? me (?P<name>.+?)",
        "Name is {name}.",
        tail=_SHORT_TAIL,
    ),
    _rule("name", rf"{_I}go by (?P<name>.+?)", "Goes by {name}.", tail=_SHORT_TAIL),
    _rule("name", rf"{_IM}(?P<given>[^\W\d_]+)(?: here)?(?: from .+?)?", "Name is {given}.", sure=0.8, earnest=True),
    _rule("name", r"(?:this is|it's) (?P<given>[^\W\d_]+) here", "Name is {given}.", sure=0.8, earnest=True),
    _rule(
        "home",
        rf"(?:{_I}|we\s+{_NOW})?live (?:in|near|close to|(?:just )?outside|around|not far from) {_TOWN}(?P<place>.+?)",
        "Lives in {place}.",
    ),
    _rule(
        "home",
        rf"(?:{_IM}|we(?:'re| are) |(?:i've |i have )?been )?living (?:in|near|outside) {_TOWN}(?P<place>.+?)",
        "Lives in {place}.",
    ),
    _rule("home", rf"(?:{_IM})?based in (?P<place>.+?)", "Lives in {place}."),
    _rule(
        "home",
        rf"(?:(?:i|i've|we|we've)\s+{_NOW}|just )(?:recently )?moved (?:back )?to (?P<place>.+?)",
        "Moved to {place}.",
    ),
    _rule(
        "origin",
        rf"(?:{_IM}|{_I}come |i come |originally )(?:originally )?from {_TOWN}(?P<place>.+?)",
        "Is from {place}.",
    ),
    _rule("origin", rf"{_IM}(?P<given>[^\W\d_]+) from (?P<place>.+?)", "Is from {place}."),
    _rule("origin", r"i was born (?:and raised )?in (?P<place>.+?)", "Was born in {place}."),
    _rule("origin", r"i grew up in (?P<place>.+?)", "Grew up in {place}."),
    _rule(
        "work",
        rf"(?:{_I})?work (?:(?:nights|days|shifts|part-time|full-time|remotely) )?as an? "
        rf"(?P<anyjob>.+?)(?: (?:at|for|in) .+)?",
        "Works as a {anyjob}.",
    ),
    _rule("work", rf"{_IM}working as an? (?P<anyjob>.+?)(?: (?:at|for|in) .+)?", "Works as a {anyjob}."),
    _rule(
        "work",
        rf"(?:{_I})?work (?P<where>at|for|in) (?:an? |the )?(?P<workplace>.+?)(?P<role> as an? .+?)?",
        "Works {where} {workplace} {role}.",
    ),
    _rule("work", rf"(?:{_I})?work (?P<where>in) (?P<place>.+?)", "Works {where} {place}.", sure=0.8),
    _rule(
        "work",
        rf"{_IM}an? (?P<job>.+?)(?: (?:at|for) (?P<company>.+?)| by (?:trade|profession|training))?",
        "Is a {job}.",
        tail=_SHORT_TAIL,
        sure=0.8,
        earnest=True,
    ),
    _rule(
        "studies",
        rf"(?:{_I}|{_IM})(?:study|studying|majoring in|major in) (?P<studied>.+?)(?: (?:at|in) .+)?",
        "Studies {studied}.",
    ),
    _rule(
        "taste:{thing}",
        rf"{_I}(?P<verb>love|like|adore|enjoy|dislike|hate|despise|loathe) (?:also )?(?P<thing>.+?)",
        "{verb} {thing}.",
        tail=_LIKED_TAIL,
    ),
    _rule(
        "taste:{thing}",
        rf"{_I}(?P<verb>prefer) (?P<thing>.+?)(?: (?:to|over) .+)?",
        "{verb} {thing}.",
        tail=_LIKED_TAIL,
    ),
    _rule(
        "taste:{thing}",
        rf"{_I}(?:don't|dont|do not) (?:really )?(?:like|enjoy) (?P<thing>.+?)",
        "Doesn't like {thing}.",
        tail=_LIKED_TAIL,
    ),
    _rule(
        "taste:{thing}", rf"{_I}(?:can't|cant|cannot) stand (?P<thing>.+?)", "Can't stand {thing}.", tail=_LIKED_TAIL
    ),
    _rule(
        "taste:{thing}",
        rf"{_IM}(?:a )?(?:(?:big|huge|massive|real) )?fan of (?P<thing>.+?)",
        "Is a fan of {thing}.",
        tail=_LIKED_TAIL,
    ),
    _rule("taste:{thing}", rf"{_IM}(?:really )?into (?P<thing>.+?)", "Is into {thing}.", tail=_LIKED_TAIL),
    _rule(
        "favourite:{kind}",
        r"my (?:all[- ]time )?(?:favou?rite|fave?) (?P<kind>.+?) (?:is|are|was|—|-) (?P<favourite>.+?)",
        "Favourite {kind}: {favourite}.",
        tail=_LIKED_TAIL,
    ),
    _rule(
        "pronouns",
        rf"(?:(?:my )?pronouns(?: are| is|:)?|i use|i go by|i'm|im|i am|use) {_PRONOUNS}(?: pronouns)?",
        "Pronouns: {pronouns}.",
    ),
    _rule(
        "age",
        rf"{_IM}(?P<age>\d{{2,3}})(?:\s*(?:years? old|y/?o|yrs?(?: old)?|years young))?",
        "Is {age} years old.",
        tail=r"(?:\s+(?:now|btw|and [^\d].*|but .*|so .*))?",
        earnest=False,
    ),
    _rule(
        "age",
        rf"(?:{_I}|i )turned (?P<age>\d{{2,3}})(?:\s+(?:today|yesterday|last .+|this .+|recently))?",
        "Is {age} years old.",
    ),
    _rule("birthday", rf"my (?:birthday|bday|b-day)(?:'s| is| —)?(?: on)? {_DATE}", "Birthday: {date}."),
    _rule("birthday", r"i was born (?:on|in) (?P<date>(?:19|20)\d\d)", "Born in {date}."),
    _rule("birthday", rf"i was born on {_DATE}", "Born on {date}."),
    _rule(
        "pet:{petname}",
        rf"my (?P<pet>{PETS})(?:'s name(?: is|'s)|s name is| is (?:called|named)) (?P<petname>.+?)",
        "Has a {pet} called {petname}.",
    ),
    _rule(
        "pet:{petname}",
        rf"(?:i have|i've got|we have|we've got|i got) (?:an? )?(?P<pet>{PETS}) (?:named|called) (?P<petname>.+?)",
        "Has a {pet} called {petname}.",
    ),
    _rule(
        "pet:{pet}",
        rf"(?:i have|i've got|we have|we've got) (?P<pet>{_COUNT} {PET_LOOKS}(?:{PETS}))(?: at home)?",
        "Has {pet}.",
        tail=_SHORT_TAIL + r"(?:\s+(?:and (?!mouse)|named |called ).*)?",
    ),
    _rule(
        "family:{kin}",
        rf"my (?P<kin>(?:older |younger |little |big )?(?:{KIN}))(?:'s name(?: is|'s)|s name is| is "
        rf"(?:called|named)) (?P<kinname>.+?)",
        "{kin} is called {kinname}.",
    ),
    _rule(
        "family:{kin}",
        rf"(?:i have|i've got|we have|we've got) (?P<kin>{_COUNT} (?:\d+[- ]years?[- ]old |(?:older|"
        rf"younger|little|big|twin|adult|small|grown|step) )?(?:{CHILDREN}))",
        "Has {kin}.",
        tail=_SHORT_TAIL + r"(?:\s+and .*)?",
    ),
    _rule(
        "family:marriage",
        rf"{_IM}(?P<state>married|divorced|engaged)(?: to (?!my|the|this|it|a)\w.*)?",
        "Is {state}.",
        tail=_SHORT_TAIL,
    ),
    _rule(
        "diet",
        rf"{_IM}(?:a )?(?P<diet>vegan|vegetarian|pescatarian|lactose intolerant|coeliac|celiac|diabetic)",
        "Is {diet}.",
        tail=_SHORT_TAIL + r"(?:\s+and .*)?",
        earnest=True,
    ),
    _rule(
        "diet:{food}", rf"{_I}(?:don't|dont|do not|never) (?P<verb>eat|drink) (?P<food>.+?)", "Doesn't {verb} {food}."
    ),
    *[
        _rule("allergy:{allergen}", rf"{said} (?P<allergen>.+?)", "Is allergic to {allergen}.", tail=tail)
        for said in _ALLERGIC_TO
        for tail in (_LIKED_TAIL, _TAIL)  # all that is listed first
    ],
    _rule(
        "allergy:{allergen}",
        rf"{_AN_ALLERGY}(?P<allergen>.+?) allergy",
        "Has a {allergen} allergy.",
    ),
    _rule("languages", rf"{_I}speak (?P<tongues>.+?)", "Speaks {tongues}.", tail=_SHORT_TAIL),
    _rule("learning:{tongues}", rf"(?:{_IM}learning|{_I}learn) (?P<tongues>.+?)", "Is learning {tongues}."),
    _rule("plays:{played}", rf"{_I}play (?P<played>.+?)", "Plays {played}."),
    _rule("name", r"(?:name's|names|name is) (?P<given>[^\W\d_]+)", "Name is {given}.", tail=_SHORT_TAIL),
    _rule("name", r"(?P<given>[^\W\d_]+) here", "Name is {given}.", tail="", sure=0.8, earnest=True),
    _rule("home", r"i(?:'ve| have) lived in (?P<place>.+?) (?:since|for) .+", "Lives in {place}.", tail=""),
    _rule("home", rf"(?:{_I}|we )reside in (?P<place>.+?)", "Lives in {place}."),
    _rule(
        "home",
        rf"(?:{_IM})?living in (?:sunny|rainy|beautiful|cold|lovely|good old) (?P<place>.+?)",
        "Lives in {place}.",
    ),
    _rule("origin", r"(?:i was )?born and raised in (?P<place>.+?)", "Was born in {place}."),
    _rule("origin", rf"{_IM}an? (?P<job>.+?) from (?P<place>.+?)", "Is from {place}.", sure=0.8, earnest=True),
    _rule("nationality", rf"{_IM}(?P<nation>[^\W\d_]+)", "Is {nation}.", tail=_SHORT_TAIL, sure=0.8, earnest=True),
    _rule("work", rf"{_IM}an? (?P<job>.+?) from (?P<place>.+?)", "Is a {job}.", sure=0.8, earnest=True),
    _rule(
        "work",
        rf"{_IM}an? (?P<job>.+?) (?P<where>at|in|for) an? (?P<workplace>.+?)",
        "Is a {job} {where} a {workplace}.",
        earnest=True,
    ),
    _rule("work", rf"{_I}teach (?P<studied>.+?)(?: (?:at|in|to) .+)?", "Teaches {studied}."),
    _rule(
        "work",
        rf"{_IM}(?P<state>retired|unemployed|self-employed|between jobs|on maternity leave)(?: rn)?",
        "Is {state}.",
        tail=_SHORT_TAIL,
    ),
    _rule("work", rf"{_I}(?P<verb>run|own) (?:an?|my own) (?P<business>.+?)", "{verb} a {business}.", tail=_SHORT_TAIL),
    _rule(
        "studies",
        rf"{_IM}(?:doing|pursuing) (?:an? |my )?(?P<degree>phd|master's|masters|bachelor's) in (?P<course>.+?)",
        "Studies for a {degree} in {course}.",
    ),
    _rule(
        "taste:{thing}", rf"{_IM}a (?:(?:big|huge|massive) )?(?P<thing>.+?) fan", "Is a {thing} fan.", tail=_LIKED_TAIL
    ),
    _rule(
        "taste:{thing}",
        rf"(?:{_IM})?(?:a )?(?:big|huge|massive) fan of (?P<thing>.+?)",
        "Is a fan of {thing}.",
        tail=_LIKED_TAIL,
    ),
    _rule("taste:{thing}", rf"{_IM}obsessed with (?P<thing>.+?)", "Is obsessed with {thing}.", tail=_LIKED_TAIL),
    _rule(
        "favourite:{kind}",
        r"(?P<favourite>.+?) (?:is|are) my (?:all[- ]time )?favou?rite (?P<kind>.+?)",
        "Favourite {kind}: {favourite}.",
        tail=_LIKED_TAIL,
    ),
    _rule(
        "pronouns",
        r"(?P<pronouns>(?:she/her|he/him|they/them|xe/xem|ze/zir)(?:/\w+)?)(?: pronouns)?",
        "Pronouns: {pronouns}.",
        tail=_SHORT_TAIL,
        sure=0.7,
        earnest=True,
    ),
    _rule("birthday", rf"(?:it's )?my (?:birthday|bday) (?:is )?on {_DATE}", "Birthday: {date}."),
    _rule(
        "family:children",
        rf"{_IM}a (?:single |proud )?(?P<parent>mom|mum|mother|dad|father) (?:of|to) (?P<many>two|three|four|five|\d)",
        "Is a {parent} of {many}.",
    ),
    _rule("diet:{food}", rf"{_I}(?:can't|cant|cannot) (?P<verb>eat|drink) (?P<food>.+?)", "Can't {verb} {food}."),
    _rule("languages", rf"{_IM}fluent in (?P<tongues>.+?)", "Speaks {tongues}.", tail=_SHORT_TAIL),
    _rule(
        "taste:{thing}",
        rf"(?:{_IM})?not (?:really )?(?:a )?(?:big |huge )?fan of (?P<thing>.+?)",
        "Isn't a fan of {thing}.",
        tail=_LIKED_TAIL,
    ),
    _rule(
        "pet:{petname}",
        rf"my (?P<pet>{PETS}) (?P<petname>\w+)(?: (?P<rest>.+))?",
        "Has a {pet} called {petname}.",
        tail="",
        sure=0.8,
    ),
)
