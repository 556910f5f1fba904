"""Large data: media whose bytes are too large for a request are uploaded, for a `Chat`; handles live as long as it.

What a tool or a model returns is not the caller's: its addresses reach no service. Those of tools are fetched by us,
under the rules for addresses, or are words.
"""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from hashlib import sha256

from msgspec.structs import replace

from tertulia.errors import FileGone, MediaUnavailable, RequestRefused
from tertulia.media.address_rules import is_youtube
from tertulia.media.addresses import AddressFetcher
from tertulia.media.content_types import content_type
from tertulia.media.handles import TIMEOUT, Handles, InMemoryHandles
from tertulia.media.prompt_media import is_foreign, media_in_turn, turns_with_media, with_each_part
from tertulia.media.values import MediaOptions, StoredFile
from tertulia.models.base import Model, UploadsFiles, media_taken
from tertulia.parts import Media, Part, ToolResult, media_in
from tertulia.tokens import media_mime
from tertulia.turns import Prompt, Role
from tertulia.wire.media_limits import PDF, MediaTaken

log = logging.getLogger(__name__)


class LargeData:
    """Uploads the large media of prompts that have too much for one request, where the model takes files.

    *runs* says whether the tool of a name is one that the chat runs: the results of others are the caller's.
    """

    def __init__(self, *, now: Callable[[], datetime], runs: Callable[[str], bool] = lambda _: True) -> None:
        self._runs = runs
        self._handles = Handles(InMemoryHandles(), now=now, patience=TIMEOUT)  # there is no other form for them
        self._addresses = AddressFetcher()
        self._hashes: dict[int, tuple[bytes, str]] = {}  # of the bytes of the last prompt, by their identity

    async def attach(self, prompt: Prompt, model: Model) -> Prompt:
        """Return the prompt with URIs for its large media; itself if all its media fit into one request.

        What a model or a tool returned loses an address that is none of the model's own service.
        """
        found = turns_with_media(prompt)
        if any(one.uri for turn in found for one in media_in_turn(turn)):
            prompt = with_each_part(prompt, lambda part, role: self._without_foreign_uris(part, role, model))
            found = turns_with_media(prompt)
        taken = media_taken(model)
        if taken.upload_from is None or not isinstance(model, UploadsFiles):
            return prompt
        media = [part for turn in found for part in turn.parts if isinstance(part, Media)]
        if _fit(media, taken):
            return prompt
        large = {id(one.data): one.data for one in media if one.data and len(one.data) > taken.upload_from}
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

    def leave_out(self, error: RequestRefused, prompt: Prompt, sent: Prompt, model: Model, *, attempt: int) -> bool:
        """Return that nothing is left out: what the caller gives is sent, or refused."""
        return False

    def accept(self, prompt: Prompt, sent: Prompt, model: Model) -> None: ...

    async def fetch_result(self, result: ToolResult) -> ToolResult:
        """Return the result of a tool with bytes in place of addresses; what cannot be fetched is words."""
        if result.raw is not None:
            return result
        return replace(result, media=tuple([await self._fetched(one) for one in result.media]))

    async def close(self) -> None:
        """Stop the uploads that are under way."""
        await self._handles.close()

    def _without_foreign_uris(self, part: Part, role: Role, model: Model) -> Part:
        returned = role == "model" or (isinstance(part, ToolResult) and self._runs(part.name))
        if not returned or not any(is_foreign(one, role, model) for one in media_in(part)):
            return part
        media = tuple(_hidden(one) if is_foreign(one, role, model) else one for one in media_in(part))
        return replace(part, media=media) if isinstance(part, ToolResult) else media[0]

    async def _fetched(self, media: Media) -> Media:
        if not media.uri or is_youtube(media.uri):
            return media
        if media.data:
            return _hidden(media)
        try:
            data = (await self._addresses.fetch(media.uri, limit=MediaOptions().largest)).data
        except MediaUnavailable as error:
            log.info("%s of a tool goes in words: %s", media.kind_word, error)
            return _hidden(replace(media, label=media.label or media.link or None))
        return replace(_hidden(media), data=data, mime=content_type(data) or media.mime)

    async def _attached(self, part: Part, model: UploadsFiles) -> Part:
        if not isinstance(part, Media) or part.data is None or id(part.data) not in self._hashes:
            return part
        data, digest = self._hashes[id(part.data)]

        async def read() -> bytes:
            return data

        file = StoredFile(sha256=digest, size=len(data), mime=media_mime(part))
        handle = await self._handles.get(file, model, read=read)
        return part if handle is None else replace(part, data=None, uri=handle.uri, sha256=digest, raw=None)


def _hidden(media: Media) -> Media:
    return replace(media, uri=None, raw=None)


def _fit(media: Sequence[Media], taken: MediaTaken) -> bool:
    """Return whether the bytes of all media go in one request."""
    one = {PDF: taken.inline_document}
    if any(len(part.data) > one.get(media_mime(part), taken.inline) for part in media if part.data):
        return False
    return sum(len(part.data or b"") for part in media) <= taken.inline_request
