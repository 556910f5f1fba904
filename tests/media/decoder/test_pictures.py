"""Pictures as they are shown: turned by their EXIF as Pillow itself turns them, of every mode, on a plain ground."""

from io import BytesIO

import pytest
from PIL import Image, ImageOps

from media import media_files as files
from tertulia.media.decoder.pictures import encoded, is_blank, scaled


def a_corner() -> Image.Image:
    picture = files.a_picture(60, 40)
    picture.paste((255, 255, 255), (0, 0, 12, 12))
    return picture


@pytest.mark.parametrize("turn", range(10))
def test_a_picture_is_turned_as_its_exif_says(turn: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = turn
    data = files.image("PNG", a_corner(), exif=exif)

    shown = scaled(Image.open(BytesIO(data)), 100)

    assert shown.tobytes() == ImageOps.exif_transpose(Image.open(BytesIO(data))).tobytes()


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "PA", "RGB", "RGBA", "CMYK", "YCbCr", "HSV", "I", "I;16", "F"])
@pytest.mark.parametrize("mime", ["image/jpeg", "image/png", "image/webp"])
def test_pictures_of_every_mode_are_encoded(mode: str, mime: str) -> None:
    made = Image.open(BytesIO(encoded(scaled(Image.new(mode, (30, 20)), 15), mime)))

    assert made.size == (15, 10)


def test_sixteen_bits_of_grey_become_eight() -> None:
    assert scaled(Image.new("I;16", (4, 4), 0x8000), 4).getpixel((0, 0)) == 0x80


def test_white_writing_on_nothing_is_put_on_a_dark_ground_and_other_things_on_white() -> None:
    writing, disc = Image.new("RGBA", (40, 40)), files.a_picture(40, 40, "RGBA")
    writing.paste((255, 255, 255, 255), (10, 10, 20, 20))

    grounds = [Image.open(BytesIO(encoded(one, "image/jpeg"))).getpixel((38, 38)) for one in (writing, disc)]

    assert grounds == [(48, 48, 48), (255, 255, 255)]


def test_what_shows_nothing_is_blank() -> None:
    assert is_blank(Image.new("RGBA", (40, 40)))
    assert is_blank(Image.new("RGB", (40, 40), "white"))
    assert not is_blank(files.a_picture(40, 40, "RGBA"))
    assert not is_blank(Image.new("RGBA", (40, 40), (255, 0, 0, 255)).rotate(45))
