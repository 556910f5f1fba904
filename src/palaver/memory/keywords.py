"""What a stretch of talk is about: its telling words and sentences, in any language. Pure."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from itertools import islice
from math import log

from palaver.characters import visible
from palaver.memory.retrieval.terms import UNINFORMATIVE, fold, is_unspaced, stem, words_with_spelling

_SENTENCE = re.compile(r"[^.!?…。！？\n]+[.!?…。！？]*")
_LINK = re.compile(r"\b(?:https?://|www\.)\S+", re.IGNORECASE)
_RUN = re.compile(  # of one script, where words are not parted; the kana between them only join
    "[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]{2,}|[\u30a1-\u30ff]{2,}|[\uac00-\ud7af]{2,}|"
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]{2,}"
)
_LONGEST_RUN = 8  # characters: a longer one is a sentence
_LONGEST = 4_000  # characters of a text that are read
_MOST = 40  # sentences of it
_SAYING_NOTHING = frozenset(map(fold, UNINFORMATIVE))


def terms(text: str) -> list[str]:
    """What *text* is about, in order: its words without endings, pairs of characters where words are not parted."""
    return [term for term, _ in _terms(text)]


@lru_cache(maxsize=8_192)
def term_set(text: str) -> frozenset[str]:
    return frozenset(terms(text))


def keywords(texts: Iterable[str], count: int, *, without: Collection[str] = ()) -> tuple[str, ...]:
    """The words that say most of what *texts* are about, as they were written, *without* some terms; the best first."""
    found: Counter[str] = Counter()
    written: dict[str, str] = {}
    for text in texts:
        once = dict(reversed(_words(text)))  # who repeats a word does not make it the topic
        found.update(once.keys())
        for term, word in once.items():
            written.setdefault(term, word)
    left = [term for term in found if not term_set(written[term]).issubset(without)]
    best = sorted(left, key=lambda term: (-found[term] * _weight(written[term]), term))
    return tuple(written[term] for term in best[:count])


def split_sentences(text: str) -> list[str]:
    """The first sentences of *text*, each on one line."""
    found = (" ".join(match.group().split()) for match in _SENTENCE.finditer(text[:_LONGEST]))
    return list(islice(filter(None, found), _MOST))


def key_sentences(said: Sequence[str], count: int) -> list[int]:
    """The indexes of the sentences that say most of what all are about, in order; none that says what another said."""
    frequent = Counter(term for sentence in said for term in term_set(sentence))
    left = {index: term_set(sentence) for index, sentence in enumerate(said) if term_set(sentence)}
    told: list[int] = []
    covered: set[str] = set()
    while left and len(told) < count:
        best = max(left, key=lambda index: (_worth(left[index] - covered, frequent), -index))
        if not left[best] - covered:
            break
        covered |= left.pop(best)
        told.append(best)
    return sorted(told)


def _worth(new: frozenset[str], frequent: Counter[str]) -> float:
    """What a sentence adds: frequent words count most, and a long sentence only with its best ones."""
    return sum(sorted((1 + log(frequent[term]) for term in new), reverse=True)[:8])


def shared_terms(one: frozenset[str], other: frozenset[str]) -> float:
    """How much of the smaller of two sets the other has too, from 0 to 1."""
    smaller = min(len(one), len(other))
    return len(one & other) / smaller if smaller else 0.0


def _terms(text: str) -> list[tuple[str, str]]:
    """Each term with the word as it was written."""
    return [(stem(word), token) for word, token in words_with_spelling(_LINK.sub(" ", text[:_LONGEST])) if _tells(word)]


def _words(text: str) -> list[tuple[str, str]]:
    """The same with short runs of characters in the place of their pairs."""
    runs = [run for run in _RUN.findall(visible(_LINK.sub(" ", text[:_LONGEST]))) if len(run) <= _LONGEST_RUN]
    return [*(pair for pair in _terms(text) if not is_unspaced(pair[1])), *((run, run) for run in runs)]


@lru_cache(maxsize=65_536)
def _tells(word: str) -> bool:
    least = 2 if word.isdigit() or is_unspaced(word) else 3
    return len(word) >= least and word not in _SAYING_NOTHING


def _weight(word: str) -> float:
    """Long words say more; so do names, which begin with a capital."""
    return min(len(word), 8) / 8 + (0.25 if word[:1].isupper() else 0.0) + (0.5 if is_unspaced(word) else 0.0)
