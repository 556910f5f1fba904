"""Images that have more than what shows them: every place in which formats hold something else."""

from collections.abc import Callable
from functools import partial
from struct import pack
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageCms
from PIL.PngImagePlugin import PngInfo

from media import media_files as files
from sizes import in_time
from tertulia.media.content_types import content_type
from tertulia.media.image_metadata import has_metadata

JPEG, PNG, GIF, WEBP = (files.image(kind) for kind in ("JPEG", "PNG", "GIF", "WEBP"))
SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def profile(name: str, *, kind: bytes = b"desc", behind: bytes = b"") -> bytes:
    """A colour profile with one text."""
    text = name.encode()
    tag = kind + bytes(4) + (pack(">I", len(text)) if kind == b"desc" else b"") + text
    return bytes(128) + pack(">I4sII", 1, b"desc", 144, len(tag)) + tag + behind


def segment(code: int, body: bytes) -> bytes:
    """A JPEG with one more segment, behind its first."""
    return JPEG[:20] + b"\xff%c" % code + pack(">H", len(body) + 2) + body + JPEG[20:]


def chunk(kind: bytes, body: bytes) -> bytes:
    """A PNG with one more chunk, behind its first."""
    return PNG[:33] + pack(">I", len(body)) + kind + body + bytes(4) + PNG[33:]


def riff(kind: bytes, body: bytes) -> bytes:
    """A WebP with one more chunk at its end."""
    data = WEBP[12:] + kind + pack("<I", len(body)) + body
    return b"RIFF" + pack("<I", len(data) + 4) + b"WEBP" + data


def png_text(key: str) -> PngInfo:
    info = PngInfo()
    info.add_itxt(key, "at home")
    return info


def with_preview() -> bytes:
    return JPEG[:4] + pack(">H", 19) + JPEG[6:18] + b"\1\1abc" + JPEG[20:]


BARE: dict[str, Callable[[], bytes]] = {
    "jpeg": lambda: JPEG,
    "progressive jpeg": lambda: files.image("JPEG", progressive=True),
    "jpeg with restarts": lambda: files.image("JPEG", restart_marker_rows=1),
    "grey jpeg": lambda: files.image("JPEG", files.a_picture().convert("L")),
    "jpeg of four colours": lambda: files.image("JPEG", files.a_picture().convert("CMYK")),
    "png": lambda: PNG,
    "png with transparency": lambda: files.image("PNG", files.a_picture(mode="RGBA")),
    "png with a table of colours": lambda: files.image("PNG", files.a_picture().quantize(), transparency=0, dpi=(9, 9)),
    "animated png": lambda: files.animation("PNG"),
    "gif": lambda: GIF,
    "animated gif": lambda: files.image(
        "GIF", save_all=True, append_images=[Image.new("RGB", (64, 48))], loop=0, duration=50
    ),
    "webp": lambda: WEBP,
    "lossless webp": lambda: files.image("WEBP", lossless=True),
    "webp with transparency": lambda: files.image("WEBP", files.a_picture(mode="RGBA")),
    "animated webp": lambda: files.animation("WEBP"),
    **{f"sRGB of {kind}": partial(files.image, kind, icc_profile=SRGB) for kind in ("JPEG", "PNG", "WEBP")},
    "profile of android": lambda: files.image("JPEG", icc_profile=profile(f"Google/Skia/{'E3CADAB7' * 4}")),
    "profile of apple": lambda: files.image("JPEG", icc_profile=profile("Copyright Apple Inc., 2022", kind=b"text")),
}
NOT_BARE: dict[str, Callable[[], bytes]] = {
    **{f"exif of {kind}": partial(files.taken_at_home, kind) for kind in ("JPEG", "PNG", "WEBP", "AVIF", "TIFF")},
    "xmp of jpeg": lambda: files.image("JPEG", xmp=files.XMP),
    "xmp of webp": lambda: files.image("WEBP", xmp=files.XMP),
    "xmp of png": lambda: files.image("PNG", pnginfo=png_text("XML:com.adobe.xmp")),
    "xmp of gif": lambda: GIF[:-1] + b"!\xff\x0bXMP DataXMP\1a\0;",
    "exif of png, by ImageMagick": lambda: files.image("PNG", pnginfo=png_text("Raw profile type exif")),
    **{f"segment {code:x} of jpeg": partial(segment, code, b"at home") for code in (*range(0xE0, 0xF0), 0xFE)},
    "second picture of jpeg": lambda: files.image("MPO", save_all=True, append_images=[files.a_picture()]),
    "preview of jpeg": with_preview,
    **{
        f"chunk {kind!r} of png": partial(chunk, kind, b"a\0b")
        for kind in (b"tEXt", b"zTXt", b"iTXt", b"tIME", b"abCd")
    },
    "comment of gif": lambda: files.image("GIF", comment=b"at home"),
    "chunk of webp": lambda: riff(b"abcd", b"at home!"),
    "half a chunk of webp": lambda: riff(b"ALPH", b"")[:-4],
    **{f"bytes behind {content_type(data)}": partial(bytes.__add__, data, b"x") for data in (JPEG, PNG, GIF, WEBP)},
    **{f"no end of {content_type(data)}": partial(data.removesuffix, data[-1:]) for data in (JPEG, PNG, GIF, WEBP)},
    **{
        f"profile of a screen in {kind}": partial(files.image, kind, icc_profile=profile("Ann's screen"))
        for kind in ("JPEG", "PNG", "WEBP")
    },
    "text of another kind in a profile": lambda: files.image("JPEG", icc_profile=profile("sRGB", kind=b"mmod")),
    "bytes behind a profile": lambda: files.image("JPEG", icc_profile=profile("sRGB", behind=b"at home")),
    "broken profile of png": lambda: chunk(b"iCCP", b"icc\0\0abc"),
    "avif": lambda: files.image("AVIF"),
    "tiff": lambda: files.image("TIFF"),
    "bmp": lambda: files.image("BMP"),
    "heic": lambda: b"\0\0\0\x18ftypheic\0\0\0\0mif1heic",
}


@pytest.mark.parametrize("name", BARE)
def test_an_image_of_nothing_but_what_shows_it_goes_as_it_is(name: str) -> None:
    data = BARE[name]()

    assert not has_metadata(data, content_type(data) or "")


@pytest.mark.parametrize("name", NOT_BARE)
def test_an_image_with_anything_else_does_not(name: str) -> None:
    data = NOT_BARE[name]()

    assert has_metadata(data, content_type(data) or "")


def test_files_that_are_no_images_are_not_looked_at() -> None:
    assert not has_metadata(files.pdf("a"), "application/pdf")


HEADS = {"image/jpeg": JPEG[:20], "image/png": PNG[:33], "image/gif": GIF[:13], "image/webp": WEBP[:12]}


@given(st.sampled_from(sorted(HEADS)), st.integers(0, 40), st.binary(max_size=300))
def test_any_bytes_have_an_answer(mime: str, size: int, data: bytes) -> None:
    assert has_metadata(HEADS[mime][:size] + data + b"\x01", mime)


@given(st.sampled_from(sorted(BARE)), st.data())
def test_an_image_with_any_byte_added_behind_it_is_not_bare(name: str, data: Any) -> None:
    image = BARE[name]()

    assert has_metadata(image + data.draw(st.binary(min_size=1, max_size=9)), content_type(image) or "")


@in_time
@pytest.mark.parametrize(
    "data",
    [
        JPEG[:2] + b"\xff" * 10_000_000,
        JPEG[:2] + b"\xff\xda\0\2" + b"\xff\xff\0" * 3_000_000,
        JPEG[:2] + b"\xff\xda\0\2\0" * 2_000_000,
        JPEG[:2] + (b"\xff\xe2\0\x1aICC_PROFILE\0\1\1" + bytes(10)) * 400_000 + b"\xff\xd9",
        JPEG[:2] + b"\xff\xdb\0\2" * 3_000_000,
        PNG[:8] + b"\0\0\0\0IDATabcd" * 1_000_000,
        GIF[:13] + b",12345678\0\2" + b"\1a" * 5_000_000,
        GIF[:13] + b",12345678\0\2\0" * 1_000_000,
        b"RIFF" + pack("<I", 8_000_004) + b"WEBP" + b"ALPH\0\0\0\0" * 1_000_000,
        b"RIFF" + pack("<I", 8_000_028) + b"WEBPANMF" + pack("<I", 8_000_016) + bytes(16) + b"ALPH\0\0\0\0" * 1_000_000,
    ],
    ids=range(10),
)
def test_long_files_take_no_quadratic_time(data: bytes) -> None:
    assert has_metadata(data, content_type(data) or "")


@in_time
def test_a_profile_of_many_texts_that_overlap_takes_no_quadratic_time() -> None:
    text = b"mluc" + bytes(4) + pack(">II", 100, 12) + (b"enUS" + pack(">II", 400_000, 0)) * 100 + bytes(400_000)
    tags = b"".join(pack(">4sII", b"desc", 2000, len(text)) for _ in range(100))
    data = bytes(128) + pack(">I", 100) + tags

    assert has_metadata(files.image("JPEG", icc_profile=data.ljust(2000, b"\0") + text), "image/jpeg")
