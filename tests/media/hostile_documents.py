"""Hostile PDF, made by code."""

import zlib
from collections.abc import Callable

from media import media_files as files
from media.media_files import pdf_file

Maker = Callable[[], bytes]
CATALOG = b"<< /Type /Catalog /Pages 2 0 R >>"
PAGES = b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>"
DRAWN = b"/Type /XObject "
FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"


def page(extra: bytes = b"", resources: bytes = b"/Font << /F1 5 0 R >>") -> bytes:
    return b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 200] /Contents 4 0 R /Resources << %s >> %s >>" % (
        resources,
        extra,
    )


def stream(data: bytes, extra: bytes = b"") -> bytes:
    return b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(data), extra, data)


def one_page(content: bytes, *more: bytes, resources: bytes = b"/Font << /F1 5 0 R >>") -> bytes:
    return pdf_file([CATALOG, PAGES, page(resources=resources), content, FONT, *more])


def packed(data: bytes, times: int) -> bytes:
    for _ in range(times):
        data = zlib.compress(data, 9)
    return stream(data, b"/Filter [%s]" % (b"/FlateDecode " * times))


def gigabytes(count: int) -> bytes:
    """So many gigabytes of spaces, compressed: each megabyte is the same block."""
    packer = zlib.compressobj(9, wbits=-15)
    block = packer.compress(b" " * (1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return b"\x78\xda" + block * (count << 10) + packer.flush()


def text(count: int) -> bytes:
    return b"BT /F1 1 Tf 1 1 Td " + b"(word ) Tj " * count + b"ET"


def tree(depth: int) -> bytes:
    """Pages in nodes in nodes."""
    nodes = [b"<< /Type /Pages /Kids [%d 0 R] /Count 1 /Parent %d 0 R >>" % (n + 3, n + 1) for n in range(depth)]
    return pdf_file([CATALOG, *nodes, b"<< /Type /Page /Parent %d 0 R /MediaBox [0 0 9 9] >>" % (depth + 1)])


DOCUMENTS: dict[str, Maker] = {
    "pdf with a page of 10^9 points": lambda: files.pdf("a", size=(10**9, 10**9)),
    "pdf with a page of no size": lambda: files.pdf("a", size=(0, 0)),
    "pdf of 5,000 pages": lambda: files.pdf(*["word"] * 5000),
    "pdf that says it has 2 billion pages": lambda: files.pdf("a").replace(b"/Count 1", b"/Count 2000000000"),
    "pdf with less than no pages": lambda: files.pdf("a").replace(b"/Count 1", b"/Count -5"),
    "pdf whose pages are their own parents": lambda: pdf_file([CATALOG, PAGES.replace(b"3 0", b"2 0")]),
    "pdf of 2,000 nodes in nodes": lambda: tree(2000),
    "pdf whose content is 10 GB": lambda: one_page(stream(gigabytes(10), b"/Filter /FlateDecode")),
    "pdf whose content is packed three times": lambda: one_page(packed(gigabytes(10), 2)),
    "pdf with 20 filters": lambda: one_page(packed(b"BT ET", 20)),
    "pdf of 3 million words": lambda: one_page(stream(zlib.compress(text(3_000_000)), b"/Filter /FlateDecode")),
    "pdf of 10 million states": lambda: one_page(stream(zlib.compress(b"q " * 10_000_000), b"/Filter /FlateDecode")),
    "pdf of nested arrays": lambda: one_page(stream(b"[" * 1_000_000)),
    "pdf of nested dictionaries": lambda: pdf_file([b"<< /A " * 100_000 + b">> " * 100_000]),
    "pdf with a form that draws itself": lambda: one_page(
        stream(b"/X Do"),
        stream(b"/X Do /X Do", DRAWN + b"/Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X 6 0 R >> >>"),
        resources=b"/XObject << /X 6 0 R >>",
    ),
    "pdf with a picture of 10^9 pixels": lambda: one_page(
        stream(b"q 9 0 0 9 0 0 cm /X Do Q"),
        stream(b"a", DRAWN + b"/Subtype /Image /Width 65000 /Height 65000 /BitsPerComponent 8 /ColorSpace /DeviceRGB"),
        resources=b"/XObject << /X 6 0 R >>",
    ),
    "pdf with a font of nothing": lambda: one_page(stream(text(10))).replace(b"/Helvetica", b"/\0\0\0\0\0\0\0\0\0"),
    "pdf with names for letters": lambda: one_page(
        stream(b"BT /F1 9 Tf (aaa) Tj ET"),
        b"<< /Type /Font /Subtype /Type0 /BaseFont /A /Encoding /Identity-H /ToUnicode 7 0 R "
        b"/DescendantFonts [5 0 R] >>",
        stream(b"1 beginbfrange <0000> <ffff> <0000> endbfrange " * 50_000),
        resources=b"/Font << /F1 6 0 R >>",
    ),
    "pdf whose length is itself": lambda: one_page(b"<< /Length 4 0 R >>\nstream\nBT ET\nendstream"),
    "pdf whose table is a loop": lambda: files.pdf("a").replace(b"/Root 1 0 R", b"/Root 1 0 R /Prev 9"),
    "pdf without a table": lambda: files.pdf("a").split(b"xref")[0],
    "pdf without anything": lambda: b"%PDF-1.7\n%%EOF",
    "pdf with a table of billions": lambda: files.pdf("a").replace(b"xref\n0 5", b"xref\n0 4294967295"),
    "pdf that is encrypted": lambda: files.pdf("a", encrypt=True),
    "pdf that opens an address": lambda: pdf_file(
        [CATALOG[:-2] + b"/OpenAction << /S /URI /URI (http://127.0.0.1:9/) >> >>", PAGES, page(), stream(b""), FONT]
    ),
    "pdf with a file in it": lambda: pdf_file(
        [CATALOG[:-2] + b"/Names << /EmbeddedFiles << /Names [(../../x) 6 0 R] >> >> >>", PAGES, page(), stream(b""),
         FONT, b"<< /Type /Filespec /F (../../../tmp/x) /EF << /F 4 0 R >> >>"]
    ),
}  # fmt: skip
