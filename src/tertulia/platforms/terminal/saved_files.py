"""Saved files: what a model or a tool made is a file in a folder, and its path on the screen."""

import os
import re
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from tempfile import mkdtemp

from msgspec.structs import replace

from tertulia.media.file_names import name_of
from tertulia.messages import Reply
from tertulia.parts import Media

_SAVED = re.compile(r"[0-9a-f]{8}-")


def folder_of(store: str | os.PathLike[str]) -> Path:
    """Return the folder of the files that were saved for the person at the terminal of a store."""
    return Path(f"{os.fspath(store)}-files")


def remove_saved(store: str | os.PathLike[str]) -> int:
    """Remove the files that were saved for the person at the terminal; return their number. All else stays."""
    folder = folder_of(store)
    found = [one for one in folder.iterdir() if _SAVED.match(one.name)] if folder.is_dir() else []
    for path in found:
        path.unlink(missing_ok=True)
    with suppress(OSError):  # something else is in it
        folder.rmdir()
    return len(found)


class SavedFiles:
    """Files in a folder, which is made for the first of them; without a folder it is a temporary one.

    No name from outside is a path: `media.file_names` makes them safe, and a digest stands before them.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def save_media(self, reply: Reply) -> Reply:
        """Save the media of a reply that have bytes; return it with their paths, or links, as captions."""
        return replace(reply, media=tuple(self._saved(media) for media in reply.media))

    def _saved(self, media: Media) -> Media:
        if media.data is None:
            return replace(media, rendered_text=media.link) if media.link else media
        try:
            told = f"{media.kind_word}: {self._write(media, media.data)}"
        except OSError as error:
            told = f"{media.kind_word}, which cannot be saved: {error.strerror or error}"
        return replace(media, data=None, rendered_text=told)

    def _write(self, media: Media, data: bytes) -> Path:
        if self._folder is None:
            self._folder = Path(mkdtemp(prefix="tertulia-files-"))
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._folder / f"{sha256(data).hexdigest()[:8]}-{name_of(media)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
        with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
            file.write(data)
        return path.resolve()
