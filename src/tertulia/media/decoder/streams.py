"""Sound and video, by FFmpeg through PyAV: their facts, and sound as WAV or MP3."""

import wave
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import av

from tertulia.media.decoder.job import Answer, Job, Unreadable, require_pixels

DEMUXERS = {  # named, so that none is tried that opens other files or addresses, as those of playlists do
    "audio/ogg": "ogg",
    "video/ogg": "ogg",
    "audio/mpeg": "mp3",
    "audio/wav": "wav",
    "audio/flac": "flac",
    "audio/aac": "aac",
    "audio/aiff": "aiff",
    "audio/amr": "amr",
    "audio/mp4": "mp4",
    "audio/3gpp": "mp4",
    "audio/webm": "matroska",
    "audio/x-matroska": "matroska",
    "video/mp4": "mp4",
    "video/3gpp": "mp4",
    "video/quicktime": "mov",
    "video/webm": "matroska",
    "video/x-matroska": "matroska",
    "video/x-msvideo": "avi",
}
SOUNDS = {"audio/wav": ("wav", "pcm_s16le"), "audio/mpeg": ("mp3", "libmp3lame")}
RATE = 16_000  # samples a second; services hear speech at that rate
TITLES: Any = {"metadata_errors": "replace"} if av.__version__.startswith("18.") else {}  # later: by itself
LONGEST = 1_000_000  # seconds; what says that it is longer is wrong


def warm_up(job: Job) -> None:
    sample = BytesIO()
    with wave.open(sample, "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        file.writeframes(bytes(2000))
    answer(job._replace(mime="audio/wav"), sample.getvalue())


def answer(job: Job, data: bytes) -> Answer:
    if job.name == "facts":
        return facts(data, job.mime, job.pixels), b""
    return {}, sound(data, job.mime, job.seconds, job.output)


def open_streams(data: bytes, mime: str, pixels: int) -> Any:
    options = {"max_pixels": str(pixels)}
    return av.open(BytesIO(data), format=DEMUXERS[mime], options=options, io_open=_refuse, **TITLES)


def _refuse(url: str, flags: int, options: dict[str, str]) -> Any:
    raise Unreadable("it names another file")


def facts(data: bytes, mime: str, pixels: int) -> dict[str, Any]:
    with open_streams(data, mime, pixels) as container:
        found: dict[str, Any] = {"seconds": seconds_of(container)}
        if container.streams.video and mime.startswith("video/"):
            stream = container.streams.video[0]
            frame = next(frames(container, stream, pixels), None)
            if frame is None:
                raise Unreadable("it has no picture that can be decoded")
            turned = frame.rotation % 180 == 90
            found["width"], found["height"] = (frame.height, frame.width) if turned else (frame.width, frame.height)
            found["frames"] = stream.frames or None
        elif next(frames(container, sound_stream(container), pixels), None) is None:
            raise Unreadable("it has no sound that can be decoded")
    if found["seconds"] is None:
        found["seconds"] = seconds_by_packets(data, mime, pixels)
    return found


def seconds_of(container: Any) -> float | None:
    seconds = (container.duration or 0) / av.time_base
    return round(seconds, 3) if 0 < seconds < LONGEST else None


def seconds_by_packets(data: bytes, mime: str, pixels: int) -> float | None:
    """Return the length of a file whose head does not say it: the end of its last packet."""
    last = 0.0
    with open_streams(data, mime, pixels) as container:
        for packet in container.demux():
            if packet.pts is not None and packet.time_base is not None:
                last = max(last, float((packet.pts + (packet.duration or 0)) * packet.time_base))
    return round(last, 3) if 0 < last < LONGEST else None


def sound_stream(container: Any) -> Any:
    if not container.streams.audio:
        raise Unreadable("it has no sound")
    return container.streams.audio[0]


def frames(container: Any, stream: Any, pixels: int) -> Iterator[Any]:
    """Decode a stream from where the container stands; a WebM that has transparency keeps it."""
    context = stream.codec_context
    if stream.type == "video":
        require_pixels(context.width, context.height, pixels)
        if context.name == "vp9" and ("alpha_mode", "1") in {
            (key.lower(), value) for key, value in stream.metadata.items()
        }:
            context = av.CodecContext.create("libvpx-vp9", "r")
    if not context.is_open:
        context.thread_count = 1
        context.options = {"max_pixels": str(pixels)}
    for packet in container.demux(stream):
        for frame in context.decode(packet):
            if stream.type == "video":
                require_pixels(frame.width, frame.height, pixels)
            yield frame


def sound(data: bytes, mime: str, seconds: int, output: str) -> bytes:
    """Return the sound as WAV or MP3, with one channel; where the file is damaged, the sound ends."""
    result, written = BytesIO(), 0
    kind, codec = SOUNDS[output]
    with open_streams(data, mime, 1) as container, av.open(result, "w", format=kind) as target:
        encoder: Any = target.add_stream(codec, rate=RATE)
        encoder.layout = "mono"
        encoder.options = {"compression_level": "7"} if kind == "mp3" else {}  # half the time, and as good for speech
        resampler = av.AudioResampler(format=encoder.format, layout="mono", rate=RATE)
        try:
            for frame in frames(container, sound_stream(container), 1):
                for piece in resampler.resample(frame):
                    target.mux(encoder.encode(piece))
                    written += piece.samples
                if written >= seconds * RATE:
                    break
        except av.FFmpegError:
            if not written:
                raise
        target.mux(encoder.encode(None))
    if not written:
        raise Unreadable("it has no sound that can be decoded")
    return result.getvalue()
