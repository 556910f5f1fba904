"""Refusals: media because of which a service refused a request; they go in words for a while, and all others as before.

How they are found. What the error names, by address or type, goes in words at once. Else the suspects are the media
that the model has not accepted before, or all if there are none such: the newest three go in words one after the other,
then all suspects. A request that is accepted ends the search, so it takes at most four.
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta

from tertulia.parts import Media
from tertulia.wire.part_forms import gemini_mime

HOW_LONG = timedelta(hours=1)  # media that were refused go in words
SINGLES = 3  # suspects that go in words one by one
ACCEPTED = 10_000  # media that are remembered as accepted

_TYPE = re.compile(r"\b(?:image|audio|video|application|text)/[\w.+-]*\w")

Sent = tuple[Media, Media]  # media of a prompt, and as they were sent


class Refusals:
    """Which media the models of an engine accepted and refused, as long as the process lives."""

    def __init__(self, *, now: Callable[[], datetime]) -> None:
        self._now = now
        self._refused: dict[tuple[str, str], datetime] = {}  # by model and media, until when
        self._accepted: OrderedDict[tuple[str, str], None] = OrderedDict()

    def of(self, model: str) -> set[str]:
        """Return the keys of the media that go in words to a model."""
        now = self._now()
        self._refused = {key: until for key, until in self._refused.items() if now < until}
        return {key for name, key in self._refused if name == model}

    def add(self, keys: Iterable[str], model: str) -> None:
        until = self._now() + HOW_LONG
        self._refused |= {(model, key): until for key in keys}

    def accept(self, keys: Iterable[str], model: str) -> None:
        for key in keys:
            self._accepted[model, key] = None
            self._accepted.move_to_end((model, key))
        while len(self._accepted) > ACCEPTED:
            self._accepted.popitem(last=False)

    def attempt(self, number: int, error: str, media: Sequence[Sent], model: str) -> frozenset[str]:
        """Return the keys of the media that go in words in an attempt, from 0 on; none if there is nothing to try.

        *media* are those of the first refused request, the newest last.
        """
        keys = [*dict.fromkeys(media_key(one) for one, _ in reversed(media))]
        suspects = [key for key in keys if (model, key) not in self._accepted] or keys
        attempts = attempts_for(named_media(error, media), suspects)
        return attempts[number] if number < len(attempts) else frozenset()


def attempts_for(named: frozenset[str], suspects: Sequence[str]) -> list[frozenset[str]]:
    """Return the sets of media that go in words one after the other, until the service accepts the request."""
    first = [named] if named else [frozenset({one}) for one in suspects[:SINGLES]]
    return [*first, frozenset(suspects)] if frozenset(suspects) not in first else first


def named_media(error: str, media: Iterable[Sent]) -> frozenset[str]:
    """Return the keys of the media that an error names, by their address, or else by their type."""
    sent = [(media_key(one), shown) for one, shown in media]
    types = set(_TYPE.findall(error.lower()))
    by_address = frozenset(key for key, shown in sent if shown.uri and _names(error, shown.uri))
    return by_address or frozenset(key for key, shown in sent if types & {shown.mime, gemini_mime(shown)})


def _names(error: str, uri: str) -> bool:
    """Return whether an error has the address of a file, or the last piece of it."""
    last = uri.rstrip("/").rpartition("/")[2]
    return uri in error or (len(last) > 4 and re.search(rf"(?<![\w-]){re.escape(last)}(?![\w-])", error) is not None)


def media_key(media: Media) -> str:
    """Return what media are remembered by: their file, their address, or their id."""
    return media.sha256 or media.uri or media.unique_id
