"""Whether a text holds what a person said, also if it was cut or marked up on the way. Pure."""

import re
from collections.abc import Iterable

from palaver.store.values import dumps

RUN = 5  # so many words of theirs in a row are theirs wherever they stand

_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)")
_WORD = re.compile(r"\w+")
_TEXT = re.compile(r'"text":("(?:[^"\\]|\\.)*")')
_SHORTEST = 3  # letters of a name or of a single word that are looked for


class Words:
    """What a person said and is called, to be looked for in JSON."""

    def __init__(self, *, texts: Iterable[str], names: Iterable[str], media: Iterable[str]) -> None:
        said = [(text, _words(text)) for text in texts if text.strip()]
        self._long = {run for _, words in said for run in _runs(words, RUN)}
        self._short = {tuple(words) for _, words in said if words and len(words) < RUN}
        self._short |= {tuple(_words(name)) for name in names}
        self._short = {words for words in self._short if len("".join(words)) >= _SHORTEST}
        self._sizes = sorted({len(words) for words in self._short})
        self._whole = {dumps(text) for text, _ in said}
        self._media = tuple(f'"unique_id":{dumps(unique_id)}' for unique_id in media if unique_id)

    def end(self, json: str, *, near: bool) -> int | None:
        """Where the first of it ends in *json*; short words and names count only *near* where the person was."""
        ends = [self._of_runs(json, self._long, (RUN,)), self._of_media(json)]
        if near:
            ends += [self._of_runs(json, self._short, self._sizes), self._of_texts(json)]
        return min((end for end in ends if end is not None), default=None)

    def _of_runs(self, json: str, wanted: set[tuple[str, ...]], sizes: Iterable[int]) -> int | None:
        if not wanted:
            return None
        found = [(word.group().casefold(), word.end()) for word in _WORD.finditer(_unescaped(json))]
        words = [word for word, _ in found]
        ends = [
            found[start + size - 1][1]
            for size in sizes
            for start in range(len(words) - size + 1)
            if tuple(words[start : start + size]) in wanted
        ]
        return min(ends, default=None)

    def _of_texts(self, json: str) -> int | None:
        return next((found.end() for found in _TEXT.finditer(json) if found.group(1) in self._whole), None)

    def _of_media(self, json: str) -> int | None:
        ends = [json.find(wanted) + len(wanted) for wanted in self._media if wanted in json]
        return min(ends, default=None)


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]


def _runs(words: list[str], size: int) -> Iterable[tuple[str, ...]]:
    return (tuple(words[start : start + size]) for start in range(len(words) - size + 1))


def _unescaped(json: str) -> str:
    """*json* with blanks for what it escapes, of the same length, so that words end where they end."""
    return _ESCAPE.sub(lambda found: " " * len(found.group()), json) if "\\" in json else json
