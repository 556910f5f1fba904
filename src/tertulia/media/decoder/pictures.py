"""Pictures, by Pillow: their facts, scaled copies without EXIF, stills of animated ones."""

import warnings
from collections.abc import Callable
from io import BytesIO
from typing import Any

from PIL import AvifImagePlugin, Image, ImageStat, TiffImagePlugin, WebPImagePlugin

from tertulia.media.decoder.job import Answer, Job, Unreadable, require_pixels

PLUGINS = (AvifImagePlugin, TiffImagePlugin, WebPImagePlugin)  # beside those of `preinit`; no file can be opened later
FORMATS = {
    "image/jpeg": "JPEG",
    "image/png": "PNG",
    "image/gif": "GIF",
    "image/webp": "WEBP",
    "image/avif": "AVIF",
    "image/bmp": "BMP",
    "image/tiff": "TIFF",
}
ANIMATED = ("image/gif", "image/webp", "image/png", "image/avif")
POSITIONS = (0.5, 0.75, 0.25, 0.0, 0.95)  # of a still in an animation: the first of these that is not blank
MOST_FRAMES = 600  # decoded on the way to a still
ANIMATION_PIXELS = 500_000_000  # of all frames that are decoded on the way to a still
MOST_SCANS = 500  # of a JPEG; encoders make about ten, and each costs as much as decoding a whole picture
ORIENTATION = 0x0112  # a tag of EXIF
TURNS = {  # by its value
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}

Image.preinit()


def warm_up(job: Job) -> None:
    sample = BytesIO()
    Image.new("RGB", (2, 2)).save(sample, format=FORMATS[job.mime])
    answer(job, sample.getvalue())


def answer(job: Job, data: bytes) -> Answer:
    try:
        return _answer(job, open_picture(data, job.mime, job.pixels))
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        raise Unreadable(f"it has more than {job.pixels:,} pixels") from error


def _answer(job: Job, picture: Image.Image) -> Answer:
    match job.name:
        case "facts":
            return facts(picture, job.mime), b""
        case "image":
            return {}, encoded(scaled(picture, job.longest), job.output)
        case _:
            return {}, encoded(still(picture, job.mime, job.longest), job.output)


def open_picture(data: bytes, mime: str, pixels: int) -> Image.Image:
    Image.MAX_IMAGE_PIXELS = pixels
    warnings.simplefilter("error", Image.DecompressionBombWarning)
    if mime == "image/jpeg" and data.count(b"\xff\xda") > MOST_SCANS:
        raise Unreadable(f"it has more than {MOST_SCANS} scans")
    picture = Image.open(BytesIO(data), formats=(FORMATS[mime],))
    require_pixels(picture.width, picture.height, pixels)
    return picture


def orientation(picture: Image.Image) -> int:
    """Return how the picture is turned, by its EXIF; 1 where that cannot be read."""
    try:
        found = picture.getexif().get(ORIENTATION, 1)
    except Exception:  # noqa: BLE001 (a picture is no worse for broken EXIF)
        return 1
    return found if found in TURNS else 1


def facts(picture: Image.Image, mime: str) -> dict[str, Any]:
    width, height = picture.size
    turned = orientation(picture) >= 5
    frames = frame_count(picture, mime)
    picture.seek(0)
    picture.draft("RGB", (1, 1))  # a JPEG is decoded to an eighth: as good a proof, for a sixtieth of the memory
    picture.load()
    return {"width": height if turned else width, "height": width if turned else height, "frames": frames}


def frame_count(picture: Image.Image, mime: str) -> int:
    return int(getattr(picture, "n_frames", 1)) if mime in ANIMATED else 1


def scaled(picture: Image.Image, longest: int) -> Image.Image:
    """Return a picture at most so large, turned as its EXIF says, in grey, RGB or RGBA, with nothing attached."""
    turn = orientation(picture)
    if picture.mode.startswith("I"):
        picture = picture.point(lambda value: value * (1 / 256)).convert("L")  # 16 bits
    if picture.mode in ("P", "PA", "1", "LA") or "transparency" in picture.info:
        picture = picture.convert("RGBA" if picture.has_transparency_data else "RGB")
    picture.thumbnail((longest, longest), Image.Resampling.LANCZOS, reducing_gap=2.0)
    if turn in TURNS:
        picture = picture.transpose(TURNS[turn])
    if picture.mode not in ("L", "RGB", "RGBA"):
        picture = picture.convert("RGB")
    picture.info = {}
    return picture


def on_ground(picture: Image.Image) -> Image.Image:
    """Return a picture without transparency: on white, or on dark grey if what is visible is nearly white."""
    if picture.mode != "RGBA":
        return picture
    alpha = picture.getchannel("A")
    visible = alpha.point(lambda value: 255 if value > 127 else 0)
    is_bright = visible.getbbox() is not None and ImageStat.Stat(picture.convert("L"), visible).mean[0] > 220
    is_open = visible.getextrema()[0] == 0
    ground = Image.new("RGB", picture.size, (48, 48, 48) if is_bright and is_open else (255, 255, 255))
    ground.paste(picture, mask=alpha)
    return ground


def encoded(picture: Image.Image, mime: str) -> bytes:
    output = BytesIO()
    match mime:
        case "image/png":
            picture.save(output, format="PNG")
        case "image/webp":
            picture.save(output, format="WEBP", quality=88, method=2)
        case _:
            on_ground(picture).save(output, format="JPEG", quality=88)
    return output.getvalue()


def is_blank(picture: Image.Image) -> bool:
    """Return whether nothing is visible: all transparent, or all of one colour."""
    *colours, alpha = ImageStat.Stat(picture.convert("RGBA").resize((48, 48))).extrema
    return alpha[1] < 16 or (alpha[0] > 239 and all(high - low < 8 for low, high in colours))


def representative(frame_at: Callable[[float], Image.Image]) -> Image.Image:
    """Return the frame that shows an animation: about its middle, unless that is blank or cannot be decoded."""
    blank: Image.Image | None = None
    trouble: Exception | None = None
    for position in POSITIONS:
        try:
            frame = frame_at(position)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 (a library's; another frame may be whole)
            trouble = trouble or error
            continue
        if not is_blank(frame):
            return frame
        blank = blank or frame
    if blank is None:
        raise trouble or Unreadable("it has no frames")
    return blank


def still(picture: Image.Image, mime: str, longest: int) -> Image.Image:
    last = min(frame_count(picture, mime) - 1, MOST_FRAMES, ANIMATION_PIXELS // (picture.width * picture.height))
    if last < 1:
        return scaled(picture, longest)

    def frame_at(position: float) -> Image.Image:
        picture.seek(round(position * last))
        return scaled(picture.copy(), longest)

    return representative(frame_at)
