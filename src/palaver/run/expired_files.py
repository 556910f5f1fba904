"""Uploaded files that a service no longer has: remembered, so that no request names them again."""

from msgspec.structs import replace

from palaver.errors import FileGone
from palaver.turns import Prompt
from palaver.wire.media_support import file_uris, is_file, without_expired_files


class ExpiredFiles:
    """The addresses of dead files, for a chat or an engine as long as it lives.

    Media at such an address go from their bytes, or as words where we have none.
    """

    def __init__(self) -> None:
        self._uris: set[str] = set()

    def add(self, error: FileGone, prompt: Prompt) -> bool:
        """Remember what *error* says of the files in *prompt*; False where it says nothing new.

        A file that is only not ready yet is not dead. Where the service does not say which one is, all of them are.
        """
        if error.for_now:
            return False
        uris = file_uris(prompt.turns)
        new = set([uri for uri in uris if is_file(uri, error.file)] or uris) - self._uris
        self._uris |= new
        return bool(new)

    def without(self, prompt: Prompt) -> Prompt:
        """The prompt without the files that are dead; itself where it holds none."""
        if not self._uris or self._uris.isdisjoint(file_uris(prompt.turns)):
            return prompt
        layers = (
            replace(layer, turns=tuple(without_expired_files(turn, self._uris) for turn in layer.turns))
            for layer in prompt.layers
        )
        return replace(prompt, layers=tuple(layers))
