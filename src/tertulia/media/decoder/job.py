"""Jobs of the decoder, their answers, and the failure of a file that cannot be decoded. Pure."""

from typing import Any, NamedTuple

Answer = tuple[dict[str, Any], bytes]  # facts, or the bytes that were asked for


class Job(NamedTuple):
    """What is done with a file, and the limits."""

    name: str  # facts, image, still, pages, sound
    mime: str  # of the file, by its content
    cpu: int  # seconds of computing
    memory: int  # bytes, beside what the libraries take
    pixels: int  # of one picture
    output: str = ""  # the type of what is made
    longest: int = 0  # pixels of the longest side of a picture that is made
    most: int = 0  # pages of which the text is read
    characters: int = 0  # of these
    seconds: int = 0  # of sound


class Unreadable(Exception):
    """The file cannot be decoded; the text says why, of `it`."""


def require_pixels(width: int, height: int, most: int) -> None:
    """Raise `Unreadable` where a picture of such a size has more pixels than are decoded."""
    if width < 1 or height < 1:
        raise Unreadable("it has no pixels")
    if width * height > most:
        raise Unreadable(f"it has {width} x {height} pixels, more than {most:,}")
