"""What a text is found by: its words without endings, pairs of characters where words are not parted. Pure.

Characters that nobody sees are left out first, in what was said and in what is asked: they part no words.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from palaver.characters import visible
from palaver.memory.finding.stopwords import OF_WEIGHT, STOPWORDS

_SCRIPTS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"
TOKEN = re.compile(rf"[{_SCRIPTS}]+|[^\W_{_SCRIPTS}]+(?:['’][^\W\d_{_SCRIPTS}]+)*")
_UNPARTED = re.compile(f"[{_SCRIPTS}]")
_CYRILLIC = re.compile("[\u0400-\u04ff]")
_PARTICLE = re.compile("[\u3041-\u309f]{1,2}")  # kana that only joins words
_FOLDED = str.maketrans(
    {"ł": "l", "ß": "ss", "ø": "o", "æ": "ae", "œ": "oe", "đ": "d", "ё": "е", "ґ": "г", "’": "'", "ʼ": "'"}
)

_LONGEST = 40  # characters of a word that are looked at

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


def terms(text: str) -> list[str]:
    """What *text* is indexed under, in order, without stop words."""
    return [stem(word) for word in words(text) if word not in _STOP]


def written(text: str) -> dict[str, str]:
    """The terms of *text*, in order, each with the word it was first written as."""
    found: dict[str, str] = {}
    for word in words(text):
        if word not in _STOP:
            found.setdefault(stem(word), word)
    return found


def words(text: str) -> Iterator[str]:
    """The words of *text*, folded; runs of Chinese, Japanese, Thai and the like as pairs of characters."""
    return (word for word, _ in spelled(text))


def spelled(text: str) -> Iterator[tuple[str, str]]:
    """The same, each with what it was written as, but for what nobody sees."""
    for found in TOKEN.finditer(visible(text)):
        token = found.group()
        if is_unparted(token):
            yield from ((pair, pair) for pair in _pairs(token))
            continue
        for word in folded(token).split("'"):
            if len(word) > 1 or word.isdigit():
                yield word[:_LONGEST], token


def is_unparted(word: str) -> bool:
    """Whether it is of a script that has no spaces between words."""
    return _UNPARTED.match(word) is not None


@lru_cache(maxsize=65_536)
def folded(word: str) -> str:
    """Lower case without accents, except where the mark makes another letter (й, ї)."""
    lowered = unicodedata.normalize("NFKC", word).casefold().translate(_FOLDED)
    if lowered.isascii() or _CYRILLIC.search(lowered):
        return lowered.replace("'", "") if _CYRILLIC.search(lowered) else lowered
    return "".join(mark for mark in unicodedata.normalize("NFKD", lowered) if not unicodedata.combining(mark))


_STOP = frozenset(map(folded, STOPWORDS)) - OF_WEIGHT


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """*word* without its ending; the same for most forms of a word."""
    if word in _IRREGULAR:
        return stem(_IRREGULAR[word])
    if _CYRILLIC.search(word):
        return _cut(word, _CYRILLIC_ENDINGS, least=3)
    if is_unparted(word) or not word.isalpha():
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
    yield run[-1]  # so that every character begins something


def beginning(term: str) -> tuple[str, bool]:
    """What words like *term* begin with, and whether only the term itself is meant."""
    if len(term) == 1 and is_unparted(term):
        return term, False
    least = 3 if _CYRILLIC.match(term) else 4  # Cyrillic words are declined more: less of them stays
    if len(term) < least or not term.isalpha() or is_unparted(term):
        return term, True
    return term[: max(least, len(term) - 2)], False
