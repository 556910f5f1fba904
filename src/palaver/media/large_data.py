"""Large data: media whose bytes are too large for a request are uploaded, for a `Chat`; handles live as long as it."""

from collections.abc import Callable, Iterator
from datetime import datetime
from hashlib import sha256

from msgspec.structs import replace

from palaver.errors import FileGone
from palaver.media.handles import Handles, InMemoryHandles
from palaver.media.values import StoredFile
from palaver.models.base import Model, UploadsFiles
from palaver.parts import Media, Part
from palaver.tokens import media_mime
from palaver.turns import Prompt
from palaver.wire.media_limits import PDF, MediaTaken, limits_of


class LargeData:
    """Uploads the large media of prompts that have too much for one request, where the model takes files."""

    def __init__(self, *, now: Callable[[], datetime]) -> None:
        self._handles = Handles(InMemoryHandles(), now=now)
        self._hashes: dict[int, tuple[bytes, str]] = {}  # of the bytes of the last prompt, by their identity

    async def attach(self, prompt: Prompt, model: Model) -> Prompt:
        """Return the prompt with URIs for its large media; itself if all its media fit into one request."""
        taken = limits_of(model.name)
        if taken.upload_from is None or not isinstance(model, UploadsFiles) or _fits(prompt, taken):
            return prompt
        large = {id(data): data for data in _data(prompt) if len(data) > taken.upload_from}
        known = self._hashes
        self._hashes = {name: known.get(name) or (data, sha256(data).hexdigest()) for name, data in large.items()}
        layers = []
        for layer in prompt.layers:
            turns = []
            for turn in layer.turns:
                parts = [await self._attached(part, model) for part in turn.parts]
                turns.append(turn if parts == list(turn.parts) else replace(turn, parts=tuple(parts)))
            layers.append(replace(layer, turns=tuple(turns)))
        return replace(prompt, layers=tuple(layers))

    async def renew(self, error: FileGone, prompt: Prompt, model: Model) -> bool:
        """Forget the handles of an attached *prompt* that the service lost; return whether any of them was ours."""
        return await self._handles.renew(error, prompt, model)

    async def _attached(self, part: Part, model: UploadsFiles) -> Part:
        if not isinstance(part, Media) or part.data is None or id(part.data) not in self._hashes:
            return part
        data, digest = self._hashes[id(part.data)]

        async def read() -> bytes:
            return data

        file = StoredFile(sha256=digest, size=len(data), mime=media_mime(part))
        handle = await self._handles.get(file, model, read=read)
        return part if handle is None else replace(part, data=None, uri=handle.uri, sha256=digest, raw=None)


def _fits(prompt: Prompt, taken: MediaTaken) -> bool:
    """Return whether the bytes of all media go in one request."""
    one = {PDF: taken.inline_document}
    media = [part for turn in prompt.turns for part in turn.parts if isinstance(part, Media) and part.data]
    if any(len(part.data or b"") > one.get(media_mime(part), taken.inline) for part in media):
        return False
    return sum(len(part.data or b"") for part in media) <= taken.inline_request


def _data(prompt: Prompt) -> Iterator[bytes]:
    return (part.data for turn in prompt.turns for part in turn.parts if isinstance(part, Media) and part.data)
