"""Files that a person attaches to a message: by a command, by an option, or by a pasted path."""

import shlex
from collections.abc import Sequence
from contextlib import suppress
from mimetypes import guess_type
from pathlib import Path
from urllib.parse import unquote, urlsplit

from msgspec.structs import replace

from tertulia.media.prompt_media import with_each_part
from tertulia.media.sent_forms import sent_as
from tertulia.models.base import Model, media_taken
from tertulia.parts import Media, Part, Text
from tertulia.platforms.terminal.input import InputReader
from tertulia.platforms.terminal.output import Display
from tertulia.turns import Prompt, Role

NO = ("n", "н")


class Attachments:
    """The files that go with the next message."""

    def __init__(self, media: Sequence[Media] = (), *, reader: InputReader, display: Display) -> None:
        self._media = tuple(media)
        self._reader = reader
        self._display = display

    def add(self, path: str) -> None:
        """Attach a file, and say so; without a path, attach nothing."""
        self._media = (*self._media, read_attachment(named_path(path))) if path else ()
        files = ", ".join(f"{one.label} ({max(1, len(one.data or b'') // 1000):,} kB)" for one in self._media)
        self._display.note(f"({files}: goes with your next message)" if files else "(nothing is attached)")

    async def offer(self, line: str) -> str | None:
        """Offer to attach the images whose paths a message has; return what is left to say, None if it is not sent."""
        images, rest = pasted_images(line)
        if not images:
            return line
        names = ", ".join(path.name for path in images)
        self._display.note(f"(Enter sends {names} as a picture, n the line as it is, Ctrl-C nothing)")
        try:
            answer = await self._reader.read()
        except (EOFError, KeyboardInterrupt):
            return None
        if answer.strip().lower().startswith(NO):
            return line
        self._media += tuple(map(read_attachment, images))
        return rest

    def take(self) -> tuple[Media, ...]:
        """Return the files, once."""
        media, self._media = self._media, ()
        return media


def prompt_as_sent(prompt: Prompt, model: Model) -> tuple[Prompt, tuple[str, ...]]:
    """Return a prompt with the words that go for media which its model does not take, and these words."""
    taken = media_taken(model)
    words: dict[str, None] = {}

    def change(part: Part, role: Role) -> Part:
        if not isinstance(part, Media) or sent_as(part, taken, role) != "words":
            return part
        words[part.words] = None
        return Text(text=part.words)

    return with_each_part(prompt, change), tuple(words)


def unseen_lines(media: Sequence[Media], model: Model) -> list[str]:
    """Return a line for each file of a message that its model does not take."""
    taken = media_taken(model)
    return [
        f"({model.name} does not take {one.label}: only these words go: {one.words})"
        for one in media
        if sent_as(one, taken) == "words"
    ]


def read_attachment(path: Path) -> Media:
    """Read a file as media with its name. Raise `InvalidValue` if it cannot be read."""
    return replace(Media.of(path), label=path.name)


def named_path(text: str) -> Path:
    """Return the path that a person wrote: in quotes, with escaped blanks, as `~/…`, `@path` or a `file:` address."""
    words = _words(text)
    return _path(words[0] if len(words) == 1 else text.strip())


def pasted_images(line: str) -> tuple[list[Path], str]:
    """Return the images whose paths are among the words of a line, and the other words."""
    words = _words(line)
    images = [path for word in words if _is_image(path := _path(word))]
    return images, " ".join(word for word in words if not _is_image(_path(word)))


def _words(text: str) -> list[str]:
    with suppress(ValueError):  # a quotation mark without its other half, as in: don't
        return shlex.split(text)
    return text.split()


def _path(word: str) -> Path:
    with suppress(ValueError):  # file://[
        word = unquote(urlsplit(word).path) if word.startswith("file:") else word.removeprefix("@")
    with suppress(RuntimeError):  # ~nobody
        return Path(word).expanduser()
    return Path(word)


def _is_image(path: Path) -> bool:
    with suppress(OSError, ValueError):  # too long for a name, or a null character
        return (guess_type(path.name)[0] or "").startswith("image/") and path.is_file()
    return False
