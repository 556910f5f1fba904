"""Expired files: uploads that a service no longer has, so that no request names them again."""

from msgspec.structs import replace

from palaver.errors import FileGone
from palaver.turns import Prompt
from palaver.wire.part_forms import file_uris, is_file, without_expired_files


class ExpiredFiles:
    """The URIs of expired files, remembered by a chat or an engine until its process ends.

    Media with such a URI are sent as bytes, or as words if there are none.
    """

    def __init__(self) -> None:
        self._uris: set[str] = set()

    def add(self, error: FileGone, prompt: Prompt) -> bool:
        """Add the files of *prompt* that *error* names; return whether any is new.

        A file that is not ready yet has not expired. If the service names none, all files of
        *prompt* count as expired.
        """
        if error.for_now:
            return False
        uris = file_uris(prompt.turns)
        new = set([uri for uri in uris if is_file(uri, error.file)] or uris) - self._uris
        self._uris |= new
        return bool(new)

    def without(self, prompt: Prompt) -> Prompt:
        """Return the prompt without expired files; itself if it holds none."""
        if not self._uris or self._uris.isdisjoint(file_uris(prompt.turns)):
            return prompt
        layers = (
            replace(layer, turns=tuple(without_expired_files(turn, self._uris) for turn in layer.turns))
            for layer in prompt.layers
        )
        return replace(prompt, layers=tuple(layers))
