"""What each model takes of media: types, bytes, pixels and tokens, by its id. Pure.

The figures are those that the services document, but where a comment says that they are measured, or our choice. A
model that is not known is one of an OpenAI-compatible service which takes images and sound.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from math import ceil, floor, sqrt

from msgspec import Struct
from msgspec.structs import replace

from tertulia.parts import Media
from tertulia.tokens import RATES, MediaRates
from tertulia.wire.generations import FROM_3, GEMMA, bare, family, generation, is_gemini
from tertulia.wire.rules import MIME_TYPES

_MB = 1_000_000
SPELLINGS = {
    "image/jpg": "image/jpeg",
    "audio/wave": "audio/wav",
    "audio/x-m4a": "audio/m4a",
    "audio/mp4": "audio/m4a",
    "audio/x-flac": "audio/flac",
}
PDF = "application/pdf"
_IMAGES = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})
_GEMINI_IMAGES = frozenset(kind for kind in MIME_TYPES if kind.startswith("image/"))
_SOUNDS = frozenset({"audio/wav", "audio/x-wav", "audio/mpeg", "audio/mp3"})
_TILE_SIDE = 768  # pixels, of Gemini 2
_SMALL_SIDE = 384  # an image within it is one tile


class MediaTaken(Struct, frozen=True, kw_only=True):
    """What a model takes of media. Bytes are those of the files, before base64."""

    types: frozenset[str] = frozenset()
    texts: bool = False  # any `text/…` as a file
    inline: int = 20 * _MB  # of one file in a request
    inline_request: int = 36 * _MB  # of all files in a request
    inline_document: int = 20 * _MB  # of one PDF
    upload_from: int | None = None  # a file that is larger is uploaded; None: the service takes no files. Our choice
    upload: int = 0  # of one uploaded file
    scale: Callable[[int, int], float] | None = None  # the factor by which the service itself makes an image smaller
    rates: MediaRates = RATES
    own: bool = False  # what a model made goes back to it
    video_seconds: int = 0  # of one video, from its beginning; the rest is not shown. Our choice

    def takes(self, mime: str) -> bool:
        """Return whether a file of this type is taken."""
        kind = spelled(mime)
        return kind in self.types or (self.texts and kind.startswith("text/"))

    @property
    def sees(self) -> bool:
        return any(kind.startswith("image/") for kind in self.types)

    @property
    def hears(self) -> bool:
        return any(kind.startswith("audio/") for kind in self.types)

    @property
    def sees_video(self) -> bool:
        return any(kind.startswith("video/") for kind in self.types)

    def cuts(self, media: Media) -> bool:
        """Return whether a video is shown up to `video_seconds` alone: it is longer, or may be, as those of YouTube.

        What a caller of `Chat` gives, and says nothing of, is shown as it is.
        """
        if media.length is None:
            return media.media_kind == "youtube" or bool(media.sha256)
        return media.length > self.video_seconds

    def seen_side(self, width: int, height: int) -> int:
        """Return the longest side of an image, in pixels, after the service made it smaller."""
        factor = self.scale(width, height) if self.scale and width and height else 1.0
        return max(1, ceil(max(width, height) * factor))


def spelled(mime: str) -> str:
    """Return a MIME type without its parameters, as services spell it."""
    kind = mime.partition(";")[0].strip().lower()
    return SPELLINGS.get(kind, kind)


def fit_scale(width: int, height: int, *, longest: int, shortest: int | None = None) -> float:
    """Return the factor that fits an image into a square, and its shorter side to a length; never above 1."""
    factor = min(1.0, longest / max(width, height))
    return factor if shortest is None else min(factor, shortest / min(width, height))


def patch_scale(width: int, height: int, *, most: int, longest: int | None = None, side: int = 32) -> float:
    """Return the factor after which an image needs at most so many patches."""
    factor = 1.0 if longest is None else fit_scale(width, height, longest=longest)
    columns, rows = width * factor / side, height * factor / side
    if ceil(columns) * ceil(rows) <= most:
        return factor
    shrink = sqrt(most / (columns * rows))
    columns, rows = columns * shrink, rows * shrink
    whole = min(max(1, floor(columns)) / columns, max(1, floor(rows)) / rows)
    return factor * shrink * whole


def _tile_tokens(width: int, height: int, *, base: int, tile: int) -> int:
    """OpenAI: scaled into 2048 pixels, then the shorter side to 768; a price for each square of 512."""
    factor = fit_scale(width, height, longest=2048, shortest=768)
    return base + tile * ceil(width * factor / 512) * ceil(height * factor / 512)


def _patch_tokens(width: int, height: int, *, most: int, times: float, longest: int | None = None) -> int:
    """OpenAI: squares of 32 pixels, scaled down to at most so many; each counts *times* a token."""
    factor = patch_scale(width, height, most=most, longest=longest)
    patches = ceil(round(width * factor / 32, 6)) * ceil(round(height * factor / 32, 6))
    return ceil(min(patches, most) * times)


def _gemini_2_tokens(width: int, height: int) -> int:
    """Gemini 2: 258 for a small image, else for each square of 768 pixels."""
    if max(width, height) <= _SMALL_SIDE:
        return 258
    factor = fit_scale(width, height, longest=3072)
    return 258 * ceil(width * factor / _TILE_SIDE) * ceil(height * factor / _TILE_SIDE)


def _tiles(base: int, tile: int) -> MediaTaken:
    rates = MediaRates(image=base + 4 * tile, image_of=partial(_tile_tokens, base=base, tile=tile))
    return _openai(rates, partial(fit_scale, longest=2048, shortest=768))


def _patches(times: float, *, most: int = 1536, longest: int | None = None) -> MediaTaken:
    rates = MediaRates(
        image=ceil(1024 * times), image_of=partial(_patch_tokens, most=most, times=times, longest=longest)
    )
    return _openai(rates, partial(patch_scale, most=most, longest=longest))


def _openai(rates: MediaRates, scale: Callable[[int, int], float]) -> MediaTaken:
    page = (rates.image or 0) + 500  # OpenAI reads a page as its image and its text; the sum is an estimate
    rates = replace(rates, page=page, audio_second=None, video_second=None)
    return MediaTaken(types=_IMAGES | {PDF}, scale=scale, rates=rates)


_NOTHING = MediaRates(image=None, page=None, audio_second=None, video_second=None)
_OPENAI: Mapping[str, MediaTaken] = {  # by how the id begins, first match
    "gpt-3.5": MediaTaken(rates=_NOTHING),
    "gpt-4o-mini": _tiles(2833, 5667),
    "gpt-4.1-mini": _patches(1.62),
    "gpt-4.1-nano": _patches(2.46),
    **dict.fromkeys(("gpt-4", "chatgpt-4o"), _tiles(85, 170)),
    "computer-use": _tiles(65, 129),
    **dict.fromkeys(("o4-mini", "codex-mini"), _patches(1.72)),
    **dict.fromkeys(("o1", "o3"), _tiles(75, 150)),
    "gpt-5-mini": _patches(1.62),  # documented; users measured 1.2
    "gpt-5-nano": _patches(2.46),  # documented; users measured 1.5
    **dict.fromkeys(("gpt-5-", "gpt-5.1"), _tiles(70, 140)),
    **dict.fromkeys(("gpt-5.2", "gpt-5.3"), _patches(1.2)),  # measured by users
    "": _patches(1.2, most=2500, longest=2048),  # gpt-5.4 and later; the multiplier was measured by users
}
_GPT_5 = _tiles(70, 140)
_OPENAI_AUDIO = MediaTaken(types=_SOUNDS, rates=replace(_NOTHING, audio_second=10))  # they hear and do not see
_COMPATIBLE = MediaTaken(
    types=_IMAGES | _SOUNDS,
    inline=10 * _MB,
    inline_request=14 * _MB,  # 20 MB with base64, the least that such services document
    rates=MediaRates(page=None, video_second=None),
)

_GEMINI_3 = MediaTaken(
    types=MIME_TYPES,
    texts=True,
    inline=50 * _MB,
    inline_document=37 * _MB,
    inline_request=60 * _MB,  # 100 MB with base64, and what is said beside
    upload_from=_MB,
    upload=2_000 * _MB,
    scale=partial(fit_scale, longest=3072),  # documented for Gemini 2; nothing is for later ones
    rates=MediaRates(video_second=70 + 32),
    own=True,
    video_seconds=300,
)
_GEMINI_2 = replace(
    _GEMINI_3,
    rates=MediaRates(image=258, image_of=_gemini_2_tokens, page=258, video_second=263 + 32),
    video_seconds=120,
)
ANY_MODEL = replace(_GEMINI_3, rates=RATES)  # where the model is not known yet
_GEMINI_IMAGE = replace(_GEMINI_3, types=_GEMINI_IMAGES, texts=False, rates=replace(_NOTHING, image=1120))
_GEMMA_3 = replace(_GEMINI_IMAGE, rates=replace(_NOTHING, image=256))
_GEMMA_4 = replace(_GEMINI_IMAGE, rates=replace(_NOTHING, image=280))


@lru_cache(maxsize=1024)
def limits_of(model: str) -> MediaTaken:
    """Return what *model* takes of media, by its id alone; the service at its address may take less."""
    name = bare(model)
    if is_gemini(model):
        return _of_gemini(name)
    if family(name) != "openai":
        return _COMPATIBLE
    if "audio" in name:
        return _OPENAI_AUDIO
    found = _GPT_5 if name == "gpt-5" else next(taken for begins, taken in _OPENAI.items() if name.startswith(begins))
    return found if family(model) == "openai" else replace(found, types=found.types - {PDF})


def _of_gemini(name: str) -> MediaTaken:
    if "-tts" in name:
        return MediaTaken(rates=_NOTHING)
    if "-image" in name:
        return _GEMINI_IMAGE
    version = generation(name)
    if version in GEMMA:
        return _GEMMA_3 if version == "gemma-3" else _GEMMA_4
    return _GEMINI_3 if version in FROM_3 else _GEMINI_2
