"""Animated stickers of Telegram (TGS), by rlottie: their facts and frames."""

import gzip
import json
import zlib
from typing import Any

from PIL import Image
from rlottie_python.rlottie_wrapper import LottieAnimation

from tertulia.media.decoder.job import Answer, Job, Unreadable, require_pixels
from tertulia.media.decoder.pictures import encoded, representative

MOST_UNPACKED = 8 * 1024 * 1024  # bytes; Telegram's have at most some hundred thousand
MOST_FRAMES = 100_000
LONGEST = 1_000_000  # seconds; what says that it is longer is wrong


def warm_up(job: Job) -> None:
    sample = {"v": "5.5.2", "fr": 1, "ip": 0, "op": 1, "w": 1, "h": 1, "assets": [], "layers": []}
    answer(job, gzip.compress(json.dumps(sample).encode()))


def answer(job: Job, data: bytes) -> Answer:
    animation = Animation(data, job.pixels)
    if job.name == "facts":
        return animation.facts(), b""
    return {}, encoded(animation.still(job.longest), job.output)


class Animation:
    """An animation and its facts. Raise `Unreadable` if it is none, or too large."""

    def __init__(self, data: bytes, pixels: int) -> None:
        unpacked = zlib.decompressobj(wbits=31).decompress(data, MOST_UNPACKED + 1)
        if len(unpacked) > MOST_UNPACKED:
            raise Unreadable(f"it is larger than {MOST_UNPACKED:,} bytes when unpacked")
        found = json.loads(unpacked)
        if not isinstance(found, dict) or not isinstance(found.get("layers"), list):
            raise Unreadable("it is no animation")
        self._animation = LottieAnimation.from_data(unpacked.decode("utf-8"))
        self._width, self._height = self._animation.lottie_animation_get_size()
        require_pixels(self._width, self._height, pixels)
        self._frames = self._animation.lottie_animation_get_totalframe()
        if not 1 <= self._frames <= MOST_FRAMES:
            raise Unreadable(f"it has {self._frames:,} frames")

    def facts(self) -> dict[str, Any]:
        self.frame(64, 0.0)
        seconds = float(self._animation.lottie_animation_get_duration())
        facts = {"width": self._width, "height": self._height, "frames": self._frames}
        return {**facts, "seconds": seconds if 0 < seconds < LONGEST else None}

    def still(self, longest: int) -> Image.Image:
        return representative(lambda position: self.frame(longest, position))

    def frame(self, longest: int, position: float) -> Image.Image:
        scale = min(1.0, longest / max(self._width, self._height))
        size = max(1, round(self._width * scale)), max(1, round(self._height * scale))
        number = round(position * (self._frames - 1))
        drawn = self._animation.lottie_animation_render(frame_num=number, width=size[0], height=size[1])
        return Image.frombytes("RGBa", size, drawn, "raw", "BGRa").convert("RGBA")
