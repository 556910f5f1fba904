"""Terms by which a text is found: stems of words, pairs of characters in scripts without spaces; stop words. Pure.

Keywords and key sentences are chosen by the informative terms of a text.

Invisible characters are removed first, in messages and in queries: they divide no words.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from math import log

from tertulia.characters import visible

_ENGLISH = """
go goes gone went
a about above after again all also am an and any anything are aren as at be because been before being but by can
cannot could couldn did didn do does doesn doing don down during each etc ever every few for from further get gets
getting got had hadn has hasn have haven having he her here hers herself him himself his how however i if in into is
isn it its itself just let ll lot lots may me might mine more most much must my myself no nor not now of off on once
one only or other our ours out over own quite rather re really s same shall she should shouldn so some something such
t than that the their theirs them themselves then there these they thing things this those through to too under until
up upon us ve very was wasn we well were weren what when where whether which while who whom whose why will with won
would wouldn yet you your yours yourself d m doesnt dont didnt isnt wasnt im ive youre thats whats many going gonna
thanks thank hey hi hello wow yeah yes
"""

_UKRAINIAN = """
або але б без більш би бо був була були було бути в вам вас ваш ваша ваше ваші вже ви від він вона вони воно все всі
всіх всього втім де для до дуже є її їй їм їх ж за з зі й його йому із і інших як яка яке який які якого якщо ще що
щоб це цей ця ці цього цьому цю цим чи чого чому через коли кого ким кому хто куди лише мене мені ми мій моя моє мої
на над нам нами нас наш наша не нема ним них ні ніж о об один одна одне от ось по поки під при про саме сам свій своя
своє свої себе собі та так така таке такий такі там те ти тим то тобі того тоді той тому теж також тут у усе усі хоча
чим майже може можна треба
"""

_RUSSIAN = """
а без более бы был была были было быть в вам вас весь во вот все всего всех вы где да даже для до его ее если есть еще
же за здесь и из или им их к как какая какие какой когда кто куда ли либо меня мне можно мой моя мы на надо наш не
него нее нет ни них но ну о об однако он она они оно от очень по под при про с сам свой себя со так также такой там те
тем то того тоже той только том ты у уже хотя чего чей чем что чтобы чье чья эта эти это этот я
"""

_POLISH = """
a aby ale am bardzo bez bo był była było były być by ci cię co czy czyli dla do gdy gdzie go i ich ile im ja jak jaka
jaki jakie je jego jej jest jestem jeszcze jeśli już kiedy kto która które który lub ma mam mi mnie może mu my na nad
nas nie nim niż o od on ona one oni ono oraz po pod przez przy są się tak także tam te tego tej ten to tu ty tylko tym
w we więc wszystko z za ze że
"""

_GERMAN = """
aber alle als also am an auch auf aus bei bin bis bist da damit dann das dass daß dein deine dem den der des dich die
dies diese dieser dieses dir doch dort du ein eine einem einen einer eines er es euch euer für hab habe haben hat
hatte hatten hier ich ihm ihn ihr ihre im in ist ja jede jeder jedes kann kein keine mal man mein meine mich mir mit
nach nicht noch nun nur ob oder ohne schon sehr sein seine sich sie sind so über um und uns unser unter vom von vor
wann war waren warum was weil welche welcher wenn wer werde werden wie wieder wir wird wo wurde zu zum zur
"""

AMBIGUOUS_WORDS = frozenset(
    "ale am bin die fur hat man may pod ten war".split()
)  # stop words in one language, words in another
STOPWORDS = frozenset(" ".join((_ENGLISH, _UKRAINIAN, _RUSSIAN, _POLISH, _GERMAN)).split()) - AMBIGUOUS_WORDS

_FILLERS = """
may onto between both okay lol like know think want see say said tell make two still even never back good please sure
right maybe done need небудь щось хтось добре дякую привіт ага звісно знаю думаю буде маю спасибо привет хорошо будет
ale pod ten bin hat war que los las una por con para pero como más les est pas une dans pour avec sur vous nous mais
everyone everybody everything anyone anybody someone somebody nothing nobody around away always often today tomorrow
yesterday
"""

UNINFORMATIVE = STOPWORDS | frozenset(_FILLERS.split())  # about the topic; a search still finds them


_SCRIPTS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"
TOKEN = re.compile(rf"[{_SCRIPTS}]+|[^\W_{_SCRIPTS}]+(?:['’][^\W\d_{_SCRIPTS}]+)*")
_UNPARTED = re.compile(f"[{_SCRIPTS}]")
_CYRILLIC = re.compile("[\u0400-\u04ff]")
_PARTICLE = re.compile("[\u3041-\u309f]{1,2}")  # kana that only join words
_FOLDED = str.maketrans(
    {"ł": "l", "ß": "ss", "ø": "o", "æ": "ae", "œ": "oe", "đ": "d", "ё": "е", "ґ": "г", "’": "'", "ʼ": "'"}
)

_MAX_WORD = 40  # characters

_IRREGULAR = dict(
    pair.split("=")
    for pair in """
        ate=eat eaten=eat became=become began=begin begun=begin bought=buy broke=break broken=break
        brought=bring built=build came=come caught=catch chose=choose chosen=choose drank=drink drove=drive
        driven=drive fell=fall fallen=fall felt=feel flew=fly flown=fly forgot=forget forgotten=forget
        fought=fight found=find gave=give given=give gone=go grew=grow grown=grow heard=hear held=hold kept=keep
        knew=know known=know learnt=learn led=lead left=leave lost=lose made=make meant=mean met=meet paid=pay
        ran=run rode=ride ridden=ride said=say sang=sing sat=sit saw=see seen=see sent=send shown=show
        slept=sleep sold=sell spent=spend spoke=speak spoken=speak stood=stand swam=swim swum=swim taken=take
        taught=teach thought=think threw=throw told=tell took=take understood=understand went=go won=win
        wore=wear worn=wear wrote=write written=write children=child kids=kid men=man women=woman people=person
        mice=mouse feet=foot teeth=tooth lives=life wives=wife knives=knife leaves=leaf better=good best=good
        """.split()
)

_LATIN_ENDINGS = tuple(
    "fulness ations ation ments ment ness ings ing edly ies ied ed ly es s e y".split()
)  # longest first
_CYRILLIC_ENDINGS = tuple(
    sorted(
        """
        ями ами ові еві ого ому ими ею ою ість ості істю ете ете ить ать ять ють уть еть ємо имо емо ємо ший ша
        ше ші ться тися лася лося лись вся ся сь ала ило али або ила или ала ало яла яли ати яти ити іти ути
        овий ова ове ові ий ій ая яя ое ее ые ие ых их им ем ом ам ям ах ях ою ею ой ей ую юю ев ів ї є ю я а о
        у и і е ь й ы в л ла ло ли ти ть ние ния нию ением ание ости ость
        """.split(),
        key=lambda ending: (-len(ending), ending),
    )
)

_SENTENCE = re.compile(
    r"(?:[^.!?…。！？\n]|(?<=\w)\.(?=\w))+[.!?…。！？]*"
)  # a point within a number or a name ends none
_LINK = re.compile(r"\b(?:https?://|www\.)\S+", re.IGNORECASE)
_RUN = re.compile(  # of one script, where words are not parted; the kana between them only join
    "[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]{2,}|[\u30a1-\u30ff]{2,}|[\uac00-\ud7af]{2,}|"
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]{2,}"
)
_LONGEST_RUN = 8  # characters: a longer one is a sentence
_MAX_TEXT = 4_000  # characters; the rest is not read
_MAX_SENTENCES = 40


def terms(text: str) -> list[str]:
    """Return the terms of *text*, in order, without stop words."""
    return [stem(word) for word in words(text) if word not in _STOP]


def terms_with_words(text: str) -> dict[str, str]:
    """Return the terms of *text*, in order, each with its first word."""
    found: dict[str, str] = {}
    for word in words(text):
        if word not in _STOP:
            found.setdefault(stem(word), word)
    return found


def words(text: str) -> Iterator[str]:
    """Return the folded words of *text*; runs of Chinese, Japanese, Thai and the like as pairs of characters."""
    return (word for word, _ in words_with_spelling(text))


def words_with_spelling(text: str) -> Iterator[tuple[str, str]]:
    """Yield each word of `words` with its spelling, without invisible characters."""
    for found in TOKEN.finditer(visible(text)):
        token = found.group()
        if is_unspaced(token):
            yield from ((pair, pair) for pair in _pairs(token))
            continue
        for word in fold(token).split("'"):
            if len(word) > 1 or word.isdigit():
                yield word[:_MAX_WORD], token


def is_unspaced(word: str) -> bool:
    """Return whether its script has no spaces between words."""
    return _UNPARTED.match(word) is not None


@lru_cache(maxsize=65_536)
def fold(word: str) -> str:
    """Lower case without accents, unless the accent makes another letter (й, ї)."""
    lowered = unicodedata.normalize("NFKC", word).casefold().translate(_FOLDED)
    if lowered.isascii() or _CYRILLIC.search(lowered):
        return lowered.replace("'", "") if _CYRILLIC.search(lowered) else lowered
    return "".join(mark for mark in unicodedata.normalize("NFKD", lowered) if not unicodedata.combining(mark))


_STOP = frozenset(map(fold, STOPWORDS)) - AMBIGUOUS_WORDS


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Cut the ending of a word; most of its forms have the same stem."""
    if word in _IRREGULAR:
        return stem(_IRREGULAR[word])
    if _CYRILLIC.search(word):
        return _cut(word, _CYRILLIC_ENDINGS, least=3)
    if is_unspaced(word) or not word.isalpha():
        return word
    cut = _cut(word, _LATIN_ENDINGS, least=3)
    if len(cut) > 3 and cut[-1] == cut[-2] and cut[-1] not in "aeiouls" and cut != word:
        return cut[:-1]  # stopped, running
    return cut[:-1] + "i" if len(cut) > 3 and cut[-1] == "y" else cut


def _cut(word: str, endings: tuple[str, ...], *, least: int) -> str:
    for ending in endings:
        if word.endswith(ending) and len(word) - len(ending) >= least:
            return word[: -len(ending)]
    return word


def _pairs(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
        return
    for start in range(len(run) - 1):
        pair = run[start : start + 2]
        if not _PARTICLE.fullmatch(pair):
            yield pair
    yield run[-1]  # every character begins a term


def term_prefix(term: str) -> tuple[str, bool]:
    """Return the prefix of words like *term*, and whether it is the whole word."""
    if len(term) == 1 and is_unspaced(term):
        return term, False
    least = 3 if _CYRILLIC.match(term) else 4  # Cyrillic words have longer endings
    if len(term) < least or not term.isalpha() or is_unspaced(term):
        return term, True
    return term[: max(least, len(term) - 2)], False


_UNINFORMATIVE = frozenset(map(fold, UNINFORMATIVE))


def term_set(text: str) -> frozenset[str]:
    """Return the informative terms of a text."""
    return _term_set(text[:_MAX_TEXT])


@lru_cache(maxsize=2_048)
def _term_set(text: str) -> frozenset[str]:
    return frozenset(term for term, _ in _informative_terms(text))


def keywords(texts: Iterable[str], count: int, *, without: Collection[str] = ()) -> tuple[str, ...]:
    """Return the most informative words of *texts*, as written, best first; *without* are terms to leave out."""
    found: Counter[str] = Counter()
    written: dict[str, str] = {}
    for text in texts:
        once = dict(reversed(_words(text)))  # a word counts once for each text
        found.update(once.keys())
        for term, word in once.items():
            written.setdefault(term, word)
    left = [term for term in found if not term_set(written[term]).issubset(without)]
    best = sorted(left, key=lambda term: (-found[term] * _weight(written[term]), term))
    return tuple(written[term] for term in best[:count])


def split_sentences(text: str) -> list[str]:
    """Split *text* into sentences, each on one line."""
    found = (" ".join(match.group().split()) for match in _SENTENCE.finditer(text[:_MAX_TEXT]))
    return list(islice(filter(None, found), _MAX_SENTENCES))


def key_sentences(sentences: Sequence[str], count: int) -> list[int]:
    """Return the indexes of the most informative sentences, in order.

    Chosen one by one: each is the sentence with the most weight in terms that those before it do not have.
    """
    frequent = Counter(term for sentence in sentences for term in term_set(sentence))
    left = {index: term_set(sentence) for index, sentence in enumerate(sentences) if term_set(sentence)}
    chosen: list[int] = []
    covered: set[str] = set()
    while left and len(chosen) < count:
        best = max(left, key=lambda index: (_worth(left[index] - covered, frequent), -index))
        if not left[best] - covered:
            break
        covered |= left.pop(best)
        chosen.append(best)
    return sorted(chosen)


def _worth(new: frozenset[str], frequent: Counter[str]) -> float:
    """Return the weight of the new terms of a sentence: of the eight most frequent ones."""
    return sum(sorted((1 + log(frequent[term]) for term in new), reverse=True)[:8])


def shared_terms(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the share of the smaller of two sets that the other contains."""
    smaller = min(len(one), len(other))
    return len(one & other) / smaller if smaller else 0.0


def _informative_terms(text: str) -> list[tuple[str, str]]:
    """Return each informative term with the word as written."""
    return [
        (stem(word), token)
        for word, token in words_with_spelling(_LINK.sub(" ", text[:_MAX_TEXT]))
        if _is_informative(word)
    ]


def _words(text: str) -> list[tuple[str, str]]:
    """Return each term with the word as written; for scripts without spaces, short runs of characters."""
    runs = [run for run in _RUN.findall(visible(_LINK.sub(" ", text[:_MAX_TEXT]))) if len(run) <= _LONGEST_RUN]
    return [*(pair for pair in _informative_terms(text) if not is_unspaced(pair[1])), *((run, run) for run in runs)]


@lru_cache(maxsize=65_536)
def _is_informative(word: str) -> bool:
    least = 2 if word.isdigit() or is_unspaced(word) else 3
    return len(word) >= least and word not in _UNINFORMATIVE


def _weight(word: str) -> float:
    """Return the weight of a word: more for long ones and those with a capital."""
    return min(len(word), 8) / 8 + (0.25 if word[:1].isupper() else 0.0) + (0.5 if is_unspaced(word) else 0.0)
