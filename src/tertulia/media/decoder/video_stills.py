"""Stills of videos: a frame as a picture."""

from typing import Any

import av
from PIL import Image

from tertulia.media.decoder import streams
from tertulia.media.decoder.job import Answer, Job, Unreadable
from tertulia.media.decoder.pictures import ANIMATION_PIXELS, encoded, representative
from tertulia.media.decoder.streams import frames, open_streams, seconds_of

MOST_FRAMES = 300  # decoded on the way to a still


def warm_up(job: Job) -> None:
    streams.warm_up(job._replace(name="facts"))
    encoded(picture_of(av.VideoFrame(16, 16, "yuv420p"), 8), job.output)


def answer(job: Job, data: bytes) -> Answer:
    return {}, encoded(still(data, job.mime, job.pixels, job.longest), job.output)


def still(data: bytes, mime: str, pixels: int, longest: int) -> Image.Image:
    with open_streams(data, mime, pixels) as container:
        if not container.streams.video:
            raise Unreadable("it has no picture")
        stream = container.streams.video[0]
        seconds = seconds_of(container) or 0.0
        area = max(1, stream.codec_context.width * stream.codec_context.height)
        most = max(1, min(MOST_FRAMES, ANIMATION_PIXELS // area))

        def frame_at(position: float) -> Image.Image:
            container.seek(int(seconds * position * av.time_base))
            found = None
            for count, frame in enumerate(frames(container, stream, pixels), 1):
                found = frame
                if count >= most or (frame.time or 0.0) >= seconds * position:
                    break
            if found is None:
                raise Unreadable("it has no picture that can be decoded")
            return picture_of(found, longest)

        return representative(frame_at)


def picture_of(frame: Any, longest: int) -> Image.Image:
    """Return a frame as a picture, scaled, turned as the video says, with its transparency."""
    scale = min(1.0, longest / max(frame.width, frame.height))
    size = max(1, round(frame.width * scale)), max(1, round(frame.height * scale))
    mode = "RGBA" if any(part.is_alpha for part in frame.format.components) else "RGB"
    plane = frame.reformat(width=size[0], height=size[1], format="rgba" if mode == "RGBA" else "rgb24").planes[0]
    picture = Image.frombytes(mode, size, bytes(plane), "raw", mode, plane.line_size, 1)
    return picture.rotate(frame.rotation, expand=True) if frame.rotation else picture
