"""What people say of themselves in English, and what may stand in the gaps of the patterns. Pure."""

from palaver.memory.patterns.english_rules import RULES
from palaver.memory.patterns.english_words import (
    ALLERGENS,
    FIELDS,
    FOODS,
    JOBS,
    LANGUAGES,
    NAMES,
    NATIONS,
    NOT_JOBLIKE,
    NOT_NAMES,
    NOT_PLACES,
    NOT_THINGS,
    PLACES,
    PLAYED,
    SUBJECTS,
    WORKPLACES,
)
from palaver.memory.patterns.rules import Language, is_capital, listed, slot_of_names, slot_of_places, words_of
from palaver.memory.verify.markers import TITLES


def _is_thing(said: str) -> bool:
    """Whether it can be liked by itself: no pronoun, no clause, nothing that is only at hand."""
    words = words_of(said)
    if not 1 <= len(words) <= 6 or any(word in NOT_THINGS for word in words):
        return False
    if words[0] in ("a", "an") or (len(words) == 1 and words[0] in NAMES):
        return False
    if words[0] == "the":
        return len(words) <= 3 and any(map(is_capital, said.split()[1:2]))
    return words[0] != "to" or 2 <= len(words) <= 4


def _is_job(said: str) -> bool:
    words = words_of(said)
    if not 1 <= len(words) <= 4 or any(word in NOT_JOBLIKE for word in words):
        return False
    return words[-1] in JOBS


def _is_any_job(said: str) -> bool:
    words = words_of(said)
    return 1 <= len(words) <= 4 and not any(word in NOT_JOBLIKE | NOT_THINGS for word in words) and words[0] != "team"


def _is_workplace(said: str) -> bool:
    words = words_of(said)
    if not 1 <= len(words) <= 5 or any(word in NOT_THINGS or word in ("home", "night", "nights") for word in words):
        return False
    own = said.split()
    return words[-1] in WORKPLACES or words[-1] in FIELDS or all(is_capital(word) for word in own)


def _is_studied(said: str) -> bool:
    words = words_of(said)
    return 1 <= len(words) <= 5 and all(word in SUBJECTS for word in words)


def _are_languages(said: str) -> bool:
    words = [
        word for word in words_of(said) if word not in ("and", "a", "bit", "of", "little", "some", "also", "fluent")
    ]
    return bool(words) and all(word in LANGUAGES for word in words)


def _is_called(said: str) -> bool:
    return len(said.split()) <= 2 and all(is_capital(word) for word in said.split())


ALONE = r"love|adore|enjoy|prefer|dislike|hate|despise|loathe|(?:don't|dont|do not) like|(?:can't|cant|cannot) stand"

_is_name = slot_of_names(NAMES, NOT_NAMES | TITLES, most=3)
_is_place = slot_of_places(PLACES, NOT_PLACES)

FITS = {
    "name": _is_name,
    "given": lambda said: said.casefold() in NAMES,
    "fullname": lambda said: is_capital(said) and _is_name(said),
    "place": _is_place,
    "thing": _is_thing,
    "favourite": lambda said: len(words_of(said)) <= 6 and not any(word in NOT_THINGS for word in words_of(said)),
    "kind": lambda said: 1 <= len(words_of(said)) <= 3 and not any(word in NOT_THINGS for word in words_of(said)),
    "job": _is_job,
    "anyjob": _is_any_job,
    "workplace": _is_workplace,
    "role": lambda said: _is_any_job(said.split(maxsplit=2)[-1]),
    "company": lambda said: all(is_capital(word) for word in said.split()) and _is_workplace(said),
    "studied": _is_studied,
    "tongues": _are_languages,
    "nation": lambda said: said.casefold() in NATIONS,
    "course": lambda said: 1 <= len(words_of(said)) <= 4 and not any(word in NOT_THINGS for word in words_of(said)),
    "business": lambda said: (
        not WORKPLACES.isdisjoint(words_of(said)[-1:]) and not any(word in NOT_THINGS for word in words_of(said))
    ),
    "petname": _is_called,
    "rest": str.islower,
    "kinname": _is_name,
    "allergen": listed(ALLERGENS, besides=("and", "or", "most", "all", "cow's", "tree", "brazil", "pine")),
    "food": listed(FOODS, besides=("and", "or", "any", "much", "red")),
    "played": listed(PLAYED, besides=("the", "and", "electric", "acoustic", "bass")),
    "age": lambda said: 10 <= int(said) <= 110,
}


ENGLISH = Language(
    rules=RULES,
    fits=FITS,
    said={
        "love": "loves", "like": "likes", "adore": "adores", "enjoy": "enjoys", "prefer": "prefers",
        "dislike": "dislikes", "hate": "hates", "despise": "despises", "loathe": "loathes", "run": "runs",
        "own": "owns",
    },
    dated="{} (as of {}).",
    times=(
        r"(?:now|right now|nowadays|these days|currently|presently|at (?:the moment|present)|recently|lately)|"
        r"(?:since )?(?:last|this) (?:year|month|week|summer|spring|autumn|fall|winter)|since (?:19|20)\d\d|"
        r"for (?:\w{1,8} )?(?:years|months|weeks)"
    ),
    fillers=(
        r"hi|hello|hey|hiya|heya|greetings|everyone|everybody|all|guys|folks|there|well|so|ok|okay|yeah|yes|yep|yup|no|"
        r"nope|nah|oh|ah|um|uh|hmm|btw|by the way|fyi|actually|honestly|frankly|tbh|and|but|because|cuz|"
        r"cause|since|also|"
        r"as for me|personally|lol|haha+|anyway|basically|for me|me|plus|fun fact|ps|p\.s\.?|sorry|thanks|same|"
        r"ugh|argh|damn|god|man|dude|bro|ngl|imo|nice to meet you|to be honest|in fact|as i said|like i "
        r"said|see|look|true|cool|good|wow|omg|that's why"
    ),
    starters=rf"everyone|friends|people|i|i'm|im|i've|my|we|also|live|work|am|{ALONE}",
    joints=r"and|but|so|because|cuz|though|while|although|since",
    doubtful=(
        r"if|would|wish|could|might|maybe|perhaps|probably|imagine|suppose|unless|as though|dreamt|dreamed|"
        r"when i was|unlike|what if|whether|feel like|looks like|almost|not that|isn't that"
    ),
    reported=(
        r"said|says|saying|told|tells|claims|claimed|thinks|(?:sang|sings)(?! in )|lyrics?|according to|joking|jk|"
        r"kidding|sarcasm|"
        r"/s|quote|quoting|replied|answered|wrote|writes|in (?:this|the|my|a) "
        r"(?:game|movie|film|book|show|story|song|dream|novel|roleplay|rp|sims)|"
        r"\((?:not|no)\)|yeah right|not really\)|lied|lying|a lie|"
        r"(?:they|people|you|others|folks|some|everyone|friends) (?:all )?(?:say|think|believe|claim|assume)"
    ),
    requests=(
        r"translate|rewrite|rephrase|paraphrase|proofread|roleplay|role-play|act as|pretend|imagine|repeat after|"
        r"write (?:me |us )?(?:a|an|the|some|my)|say that|how (?:do|would) (?:you|i|we) say|in the style of|"
        r"ignore (?:all|the|any|your|previous)|complete the|fill in"
    ),
    echoes=(
        r"(?:and|but|so|u|you|wbu|hbu|what|how|where|which|who|when|can|could|should|would|do|does|did|is|"
        r"are|any|anyone)"
        r"(?![\w'])"
    ),
)  # fmt: skip
