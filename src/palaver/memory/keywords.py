"""Keywords and key sentences of texts, in any language. Pure."""

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
_MAX_TEXT = 4_000  # characters; the rest is not read
_MAX_SENTENCES = 40
_SAYING_NOTHING = frozenset(map(fold, UNINFORMATIVE))


def terms(text: str) -> list[str]:
    """Return the terms of a text without uninformative words, in order: stems, or pairs of characters in unspaced
    scripts.
    """
    return [term for term, _ in _terms(text)]


@lru_cache(maxsize=8_192)
def term_set(text: str) -> frozenset[str]:
    return frozenset(terms(text))


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


def _terms(text: str) -> list[tuple[str, str]]:
    """Return each term with the word as written."""
    return [
        (stem(word), token)
        for word, token in words_with_spelling(_LINK.sub(" ", text[:_MAX_TEXT]))
        if _is_informative(word)
    ]


def _words(text: str) -> list[tuple[str, str]]:
    """Return each term with the word as written; for scripts without spaces, short runs of characters."""
    runs = [run for run in _RUN.findall(visible(_LINK.sub(" ", text[:_MAX_TEXT]))) if len(run) <= _LONGEST_RUN]
    return [*(pair for pair in _terms(text) if not is_unspaced(pair[1])), *((run, run) for run in runs)]


@lru_cache(maxsize=65_536)
def _is_informative(word: str) -> bool:
    least = 2 if word.isdigit() or is_unspaced(word) else 3
    return len(word) >= least and word not in _SAYING_NOTHING


def _weight(word: str) -> float:
    """Return the weight of a word: more for long ones and those with a capital."""
    return min(len(word), 8) / 8 + (0.25 if word[:1].isupper() else 0.0) + (0.5 if is_unspaced(word) else 0.0)
