"""The type of a file by its content: what encoders write, what only looks like it, two types in one file."""

import gzip
import json
import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from media import media_files as files
from tertulia.media.content_types import content_type, text_of

OFFICE = "application/vnd.openxmlformats-officedocument."
TYPES: dict[str, tuple[str, Callable[[], bytes]]] = {
    "jpeg": ("image/jpeg", lambda: files.image("JPEG")),
    "png": ("image/png", lambda: files.image("PNG")),
    "animated png": ("image/png", lambda: files.animation("PNG")),
    "gif": ("image/gif", lambda: files.animation("GIF")),
    "webp": ("image/webp", lambda: files.image("WEBP")),
    "animated webp": ("image/webp", lambda: files.animation("WEBP")),
    "avif": ("image/avif", lambda: files.image("AVIF")),
    "bmp": ("image/bmp", lambda: files.image("BMP")),
    "tiff": ("image/tiff", lambda: files.image("TIFF")),
    "heic": ("image/heic", lambda: b"\0\0\0\x18ftypheic\0\0\0\0mif1heic"),
    "heic by its second brand": ("image/heic", lambda: b"\0\0\0\x18ftypmif1\0\0\0\0mif1heic"),
    "heif": ("image/heif", lambda: b"\0\0\0\x14ftypmif1\0\0\0\0mif1"),
    "sticker": ("application/x-tgsticker", files.tgs),
    "voice": ("audio/ogg", lambda: files.sound("ogg", "libopus")),
    "flac in ogg": ("audio/ogg", lambda: files.sound("ogg", "flac")),
    "mp3": ("audio/mpeg", lambda: files.sound("mp3", "libmp3lame", rate=44_100)),
    "mp3 without a tag": ("audio/mpeg", lambda: without_tag(files.sound("mp3", "libmp3lame", rate=16_000))),
    "wav": ("audio/wav", files.wav),
    "flac": ("audio/flac", lambda: files.sound("flac", "flac")),
    "aac": ("audio/aac", lambda: files.sound("adts", "aac")),
    "m4a": ("audio/mp4", lambda: files.sound("ipod", "aac")),
    "sound in mp4": ("audio/mp4", lambda: files.sound("mp4", "aac")),
    "mp4": ("video/mp4", lambda: files.video("mp4", speech="aac")),
    "mp4 of the brand of sound": ("video/mp4", lambda: files.video("mp4").replace(b"ftypisom", b"ftypM4A ")),
    "mov": ("video/quicktime", lambda: files.video("mov")),
    "3gp": ("video/3gpp", lambda: files.video("3gp", "mpeg4")),
    "webm": ("video/webm", lambda: files.video("webm", "libvpx-vp9")),
    "sound in webm": ("audio/webm", lambda: files.sound("webm", "libopus")),
    "matroska": ("video/x-matroska", lambda: files.video("matroska")),
    "avi": ("video/x-msvideo", lambda: files.video("avi", "mpeg4")),
    "pdf": ("application/pdf", lambda: files.pdf("a")),
    "pdf behind other bytes": ("application/pdf", lambda: b"\x01\x02\x03" + files.pdf("a")),
    "zip": ("application/zip", lambda: files.zipped(a="b")),
    "docx": (f"{OFFICE}wordprocessingml.document", lambda: files.zipped(**{"word/document.xml": ""})),
    "xlsx": (f"{OFFICE}spreadsheetml.sheet", lambda: files.zipped(**{"xl/workbook.xml": ""})),
    "pptx": (f"{OFFICE}presentationml.presentation", lambda: files.zipped(**{"ppt/presentation.xml": ""})),
    "odt": (
        "application/vnd.oasis.opendocument.text",
        lambda: files.zipped(mimetype="application/vnd.oasis.opendocument.text", content=""),
    ),
    "gzip": ("application/gzip", lambda: gzip.compress(b"text")),
    "json": ("application/json", lambda: b' {"a": [1, 2, null]}\n'),
    "broken json": ("text/plain", lambda: b'{"a": '),
    "lottie, not packed": ("application/json", lambda: json.dumps(files.lottie()).encode()),
    "text": ("text/plain", lambda: "Привіт\r\n\tсвіте".encode()),
    "text with a byte order mark": ("text/plain", lambda: "Привіт".encode("utf-8-sig")),
    "utf-16": ("text/plain", lambda: "Привіт".encode("utf-16")),
    "html": ("text/html", lambda: b"\n<!-- a -->\n<!DOCTYPE html>\n<p>"),
    "svg": ("text/xml", lambda: b'<svg xmlns="http://www.w3.org/2000/svg"/>'),
    "xml": ("text/xml", lambda: b'<?xml version="1.0"?><a/>'),
}
UNKNOWN = {
    "nothing": b"",
    "spaces": b" \n ",
    "text with a null character": b"ab\0cd",
    "text in an old encoding": "Привіт".encode("cp1251"),
    "half a character": "ї".encode()[:1],
    "utf-16 that ends early": "Привіт".encode("utf-16")[:-1],
    "the beginning of a frame of sound": b"\xff\xfb\x90\x00" + bytes(1000),
    "other bytes": bytes(range(256)),
}


def without_tag(mp3: bytes) -> bytes:
    return mp3[mp3.index(b"\xff\xf3") :]


@pytest.mark.parametrize("name", TYPES)
def test_the_content_says_of_what_type_a_file_is(name: str) -> None:
    mime, make = TYPES[name]

    assert content_type(make()) == mime


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_of_no_known_type_has_none(name: str) -> None:
    assert content_type(UNKNOWN[name]) is None


@pytest.mark.parametrize(
    ("first", "second", "mime"),
    [
        (files.image("JPEG"), files.zipped(a="b"), "image/jpeg"),
        (files.image("PNG"), files.pdf("a"), "image/png"),
        (b"GIF89a/*", b"*/=1;alert(1)//<html>", "image/gif"),
        (b"BMW is a maker of cars, ", b"and this is a text", "text/plain"),
        (b"The line %PDF-1.4 begins a PDF", b".", "text/plain"),
        (files.pdf("a"), b"<script>alert(1)</script>", "application/pdf"),
    ],
)
def test_of_two_types_in_a_file_the_one_that_its_decoder_reads_first_counts(
    first: bytes, second: bytes, mime: str
) -> None:
    assert content_type(first + second) == mime


def test_any_beginning_of_a_file_and_any_changed_byte_of_its_head_has_a_type_or_none() -> None:
    for _, make in TYPES.values():
        data = make()
        for size in range(64):
            content_type(data[:size])
            content_type(data[:size] + b"\xff" + data[size + 1 :])


def test_text_that_begins_with_much_space_or_many_comments_is_text() -> None:
    assert content_type(b" " * 100_000 + b"a") == "text/plain"
    assert content_type(b"<!-- -->" * 10_000 + b"a") == "text/plain"


def test_a_file_of_a_million_small_boxes_is_not_walked_to_its_end() -> None:
    data = b"\0\0\0\x10ftypisom\0\0\0\0" + b"\0\0\0\x08free" * 1_000_000 + files.video("mp4")[32:]

    assert content_type(data) == "video/mp4"


def test_text_is_read_by_its_byte_order_mark() -> None:
    assert text_of("Привіт".encode("utf-16")) == text_of("Привіт".encode("utf-8-sig")) == "Привіт"


CYRILLIC = {
    "Ukrainian": "Звіт за березень — Олена купила п'ять ґудзиків і їжу для кота, №5 «Весна»",
    "Russian": "Отчёт за март: Елена купила пять пуговиц и еду для кота",
    "Bulgarian": "Отчет за март: Елена купи пет копчета и храна за котката",
    "capitals": "ЗВІТ ЗА БЕРЕЗЕНЬ: ОЛЕНА ШЕВЧЕНКО, СУМА, ДАТА",
    "a spreadsheet": "Назва;Ціна;Кількість\r\nЯблука;12,50;3\r\nMicrosoft Office;100;1\r\n",
}
OTHER_ENCODINGS = {
    "koi8-r": CYRILLIC["Russian"],
    "cp866": CYRILLIC["Russian"],
    "iso8859-5": CYRILLIC["Russian"],
    "cp1250": "Zażółć gęślą jaźń, śnieg, źdźbło, łódź, ćma, żółty, każdy człowiek",
    "cp1252": "Élève à l'école, être où çà été déjà là-bas, forêt, gâteau, crème brûlée, Noël, naïve, hôpital",
    "cp1253": "Έκθεση για τον Μάρτιο. Η Ελένη αγόρασε πέντε κουμπιά και τροφή για τη γάτα",
    "cp1254": "Şişli'de öğüt veren çiğköfteci, ağaç, ığdır, üzüm, böğürtlen",
    "cp1255": "דוח לחודש מרץ, סכום, תאריך. הלנה קנתה חמישה כפתורים ואוכל לחתול",
    "cp1256": "تقرير شهر مارس المبلغ والتاريخ اشترت هيلين خمسة أزرار وطعاما للقط",
    "gbk": "三月份报告，金额，日期。海伦买了五个纽扣和猫粮，谢谢大家的帮助",
    "big5": "三月份報告，金額，日期。海倫買了五個鈕扣和貓糧，謝謝大家的幫助",
    "shift_jis": "三月の報告書、金額、日付。エレナはボタンを五つと猫の餌を買いました",
    "euc_kr": "삼월 보고서 금액 날짜 엘레나는 단추 다섯 개와 고양이 먹이를 샀습니다",
    "tis-620": "รายงานเดือนมีนาคม จำนวนเงิน วันที่ เฮเลนซื้อกระดุมห้าเม็ดและอาหารแมว",
}


@pytest.mark.parametrize("name", CYRILLIC)
def test_cyrillic_text_of_windows_is_read(name: str) -> None:
    data = CYRILLIC[name].encode("cp1251")

    assert (content_type(data), text_of(data)) == ("text/plain", CYRILLIC[name])


@pytest.mark.parametrize("encoding", OTHER_ENCODINGS)
def test_text_in_other_old_encodings_is_of_no_type(encoding: str) -> None:
    data = OTHER_ENCODINGS[encoding].encode(encoding)

    assert (content_type(data), text_of(data)) == (None, None)


@given(st.text(st.characters(min_codepoint=32, exclude_characters="\x7f\ufeff", codec="utf-8")), st.integers(0, 20))
def test_the_beginning_of_a_text_is_as_many_characters(text: str, most: int) -> None:
    for data in (text.encode(), text.encode("utf-8-sig"), text.encode("utf-16")):
        assert text_of(data, most) == text[:most]
        assert text_of(data) == text


def test_a_long_text_is_decoded_a_piece_at_a_time() -> None:
    data = b"a;b;c;" * 2_000_000
    tracemalloc.start()
    try:
        found = content_type(data), len(text_of(data, 20_000) or "")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert found == ("text/plain", 20_000)
    assert peak < len(data) / 2
