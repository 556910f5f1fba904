"""Notes about what a client does not send as it was given, in the log, each once."""

import logging
from collections.abc import Iterable

log = logging.getLogger(__name__)


class Notes:
    """The notes of one client; *about* is the model, and where it is asked."""

    def __init__(self, about: str) -> None:
        self._about = about
        self._told: set[str] = set()

    def tell(self, notes: Iterable[str]) -> None:
        for note in notes:
            if note not in self._told:
                self._told.add(note)
                log.warning("%s: %s", self._about, note)
