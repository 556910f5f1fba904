"""Files of every type that is decoded, made by code: no file of unknown origin."""

import gzip
import json
import wave
from fractions import Fraction
from io import BytesIO
from math import pi, sin
from struct import pack
from typing import Any
from zipfile import ZipFile

import av
from PIL import Image, ImageDraw


def a_picture(width: int = 64, height: int = 48, mode: str = "RGB") -> Image.Image:
    """A red disc on green; on nothing, where the mode has transparency."""
    picture = Image.new(mode, (width, height), (0, 0, 0, 0) if mode == "RGBA" else (0, 128, 0))
    ImageDraw.Draw(picture).ellipse((width // 4, height // 4, width * 3 // 4, height * 3 // 4), fill=(200, 0, 0))
    return picture


def image(kind: str, picture: Image.Image | None = None, **options: Any) -> bytes:
    output = BytesIO()
    (picture or a_picture()).save(output, format=kind, **options)
    return output.getvalue()


def animation(kind: str, *, frames: int = 6, blank: int = 0) -> bytes:
    """Frames of which the first *blank* show nothing."""
    pictures = [Image.new("RGB", (64, 48), "white") for _ in range(blank)]
    pictures += [a_picture() for _ in range(frames - blank)]
    for number, picture in enumerate(pictures[blank:]):
        ImageDraw.Draw(picture).rectangle((number, 0, number + 2, 3), fill="blue")
    return image(kind, pictures[0], save_all=True, append_images=pictures[1:], duration=100)


def turned_jpeg() -> bytes:
    """A JPEG of 64 x 48 pixels that is shown as 48 x 64, and says where it was taken."""
    exif = Image.Exif()
    exif[0x0112] = 6
    exif[0x010F] = "Maker of the camera"
    exif.get_ifd(0x8825)[1] = "N"
    return image("JPEG", exif=exif, comment=b"a comment")


XMP = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><at>at home</at></x:xmpmeta>'


def taken_at_home(kind: str = "JPEG", **options: Any) -> bytes:
    """An image of 64 x 48 pixels that is shown as 48 x 64, and says in EXIF where and by whom it was taken."""
    exif = Image.Exif()
    exif[0x0112] = 6
    exif[0x013B] = "Ann of the photo"
    exif.get_ifd(0x8825).update({1: "N", 2: (50.0, 27.0, 1.0), 29: "2026:01:01"})
    return image(kind, **{"exif": exif} | options)


def lottie(**changes: Any) -> dict[str, Any]:
    """An animation of one layer: a disc, 512 x 512 pixels, 60 frames in a second."""
    disc = [
        {"ty": "el", "p": {"a": 0, "k": [0, 0]}, "s": {"a": 0, "k": [300, 300]}},
        {"ty": "fl", "c": {"a": 0, "k": [1, 0, 0, 1]}, "o": {"a": 0, "k": 100}},
        {
            "ty": "tr",
            "p": {"a": 0, "k": [0, 0]},
            "a": {"a": 0, "k": [0, 0]},
            "s": {"a": 0, "k": [100, 100]},
            "r": {"a": 0, "k": 0},
            "o": {"a": 0, "k": 100},
        },
    ]
    placed = {
        "o": {"a": 0, "k": 100},
        "r": {"a": 0, "k": 0},
        "p": {"a": 0, "k": [256, 256, 0]},
        "a": {"a": 0, "k": [0, 0, 0]},
        "s": {"a": 0, "k": [100, 100, 100]},
    }
    layer = {"ty": 4, "ind": 1, "ks": placed, "ip": 0, "op": 60, "st": 0, "shapes": [{"ty": "gr", "it": disc}]}
    whole = {"tgs": 1, "v": "5.5.2", "fr": 60, "ip": 0, "op": 60, "w": 512, "h": 512, "assets": [], "layers": [layer]}
    return whole | changes


def tgs(**changes: Any) -> bytes:
    return gzip.compress(json.dumps(lottie(**changes)).encode(), mtime=0)


def wav(seconds: float = 1.0, *, rate: int = 44_100) -> bytes:
    output = BytesIO()
    with wave.open(output, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(b"".join(pack("<h", int(9000 * sin(i * 880 * pi / rate))) for i in range(int(rate * seconds))))
    return output.getvalue()


def sound(container: str, codec: str, *, seconds: float = 1.0, rate: int = 48_000) -> bytes:
    """A tone as a file of FFmpeg's kind."""
    output = BytesIO()
    with av.open(output, "w", format=container) as file, av.open(BytesIO(wav(seconds, rate=rate))) as source:
        _add_sound(file, source, codec, rate)
    return output.getvalue()


def video(
    container: str = "mp4", codec: str = "libx264", *, size: tuple[int, int] = (64, 48), frames: int = 20,
    pixels: str = "yuv420p", blank: int = 0, speech: str | None = None,
) -> bytes:  # fmt: skip
    """Ten frames a second, the first *blank* of them black, with a tone if *speech* names a codec."""
    output = BytesIO()
    with av.open(output, "w", format=container) as file:
        stream: Any = file.add_stream(codec, rate=10)
        stream.width, stream.height, stream.pix_fmt = *size, pixels
        if "a" in pixels:
            stream.metadata["alpha_mode"] = "1"
        sounds = file.add_stream(speech, rate=48_000, layout="mono") if speech else None
        for number in range(frames):
            mode = "RGBA" if "a" in pixels else "RGB"
            picture = Image.new(mode, size) if number < blank else a_picture(*size, mode)
            frame = av.VideoFrame(*size, "rgba" if mode == "RGBA" else "rgb24")
            frame.planes[0].update(rows(picture, frame.planes[0].line_size))
            frame = frame.reformat(format=pixels)
            frame.pts, frame.time_base = number, Fraction(1, 10)
            file.mux(stream.encode(frame))
        file.mux(stream.encode(None))
        if sounds is not None:
            with av.open(BytesIO(wav(frames / 10, rate=48_000))) as source:
                _encode_sound(file, sounds, source)
    return output.getvalue()


def rows(picture: Image.Image, width: int) -> bytes:
    """The bytes of a picture, each row filled up to a width."""
    row = picture.width * len(picture.getbands())
    data = picture.tobytes()
    return b"".join(data[at : at + row] + bytes(width - row) for at in range(0, len(data), row))


def _add_sound(file: Any, source: Any, codec: str, rate: int) -> None:
    _encode_sound(file, file.add_stream(codec, rate=rate, layout="mono"), source)


def _encode_sound(file: Any, stream: Any, source: Any) -> None:
    resampler = av.AudioResampler(format=stream.format, layout="mono", rate=stream.rate)
    for frame in source.decode(audio=0):
        for piece in resampler.resample(frame):
            file.mux(stream.encode(piece))
    file.mux(stream.encode(None))


TOLD = {"title": "at home", "artist": "Ann of the film", "location": "+50.4500+030.5230/", "comment": "a comment"}


def telling(data: bytes, container: str) -> bytes:
    """The same streams in a file that tells things of itself."""
    output = BytesIO()
    options: Any = {"movflags": "use_metadata_tags"} if container == "mov" else {}
    with av.open(BytesIO(data), "r") as source, av.open(output, "w", format=container, options=options) as target:
        target.metadata.update(TOLD)
        streams = {stream.index: target.add_stream_from_template(stream) for stream in source.streams}
        for packet in source.demux():
            if packet.dts is not None:
                packet.stream = streams[packet.stream.index]
                target.mux(packet)
    return output.getvalue()


def pdf(*texts: str, size: tuple[int, int] = (300, 200), encrypt: bool = False) -> bytes:
    """A PDF with a page for each text."""
    count = len(texts)
    kids = " ".join(f"{3 + 2 * i} 0 R" for i in range(count))
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", f"<< /Type /Pages /Kids [{kids}] /Count {count} >>".encode()]
    font = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
    for number, text in enumerate(texts):
        page = f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {size[0]} {size[1]}] /Contents {4 + 2 * number} 0 R"
        objects.append(f"{page} /Resources << /Font << /F1 {font} >> >> >>".encode())
        drawn = f"BT /F1 12 Tf 20 100 Td ({text}) Tj ET".encode("latin-1")
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawn), drawn))
    trailer = b""
    if encrypt:
        secret = b"<" + b"00" * 32 + b">"
        objects.append(b"<< /Filter /Standard /V 1 /R 2 /Length 40 /P -4 /O %s /U %s >>" % (secret, secret))
        trailer = b" /Encrypt %d 0 R /ID [<00> <00>]" % len(objects)
    return pdf_file(objects, trailer)


def pdf_file(objects: list[bytes], trailer: bytes = b"") -> bytes:
    """A PDF of these objects, the first of which is the catalog."""
    output, places = bytearray(b"%PDF-1.4\n"), []
    for number, one in enumerate(objects, 1):
        places.append(len(output))
        output += b"%d 0 obj\n%s\nendobj\n" % (number, one)
    start = len(output)
    output += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    output += b"".join(b"%010d 00000 n \n" % place for place in places)
    output += b"trailer\n<< /Size %d /Root 1 0 R%s >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, trailer, start)
    return bytes(output)


def zipped(**files: str) -> bytes:
    output = BytesIO()
    with ZipFile(output, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return output.getvalue()
