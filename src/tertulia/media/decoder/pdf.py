"""PDF, by PDFium: the number of pages, and the text of the first ones."""

import re
from typing import Any

import pypdfium2

from tertulia.media.decoder.job import Answer, Job, Unreadable

SAMPLE = (  # a page with a word; its table of contents is left to be found
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj "
    b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>endobj "
    b"4 0 obj<</Length 31>>stream\nBT /F 9 Tf 1 1 Td (word) Tj ET\nendstream endobj "
    b"5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj trailer<</Root 1 0 R>>\n%%EOF"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ufffe\uffff]")


def warm_up(job: Job) -> None:
    answer(job, SAMPLE)


def answer(job: Job, data: bytes) -> Answer:
    if job.name == "facts":
        return facts(data), b""
    return {}, pages(data, job.most, job.characters).encode("utf-8", "replace")


def open_pdf(data: bytes) -> Any:
    try:
        pdf = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        is_locked = re.search("password|security", str(error), re.IGNORECASE)
        raise Unreadable("it is encrypted" if is_locked else "it is damaged") from error
    if not len(pdf):
        raise Unreadable("it has no pages")
    return pdf


def facts(data: bytes) -> dict[str, Any]:
    pdf = open_pdf(data)
    try:
        pdf[0].close()
    except pypdfium2.PdfiumError as error:
        raise Unreadable("it is damaged") from error
    return {"pages": len(pdf)}


def pages(data: bytes, most: int, characters: int) -> str:
    """Return the text of the first pages, each under its number. Raise `Unreadable` if they are pictures alone."""
    pdf = open_pdf(data)
    text, left = "", characters
    for number in range(min(most, len(pdf))):
        if left <= 0:
            break
        if found := page_text(pdf, number, left):
            text += f"\n\nPage {number + 1} of {len(pdf)}:\n{found}"
            left = characters - len(text)
    if not text:
        raise Unreadable("it has no text")
    return text.strip()[:characters]


def page_text(pdf: Any, number: int, characters: int) -> str:
    """Return the beginning of the text of a page; nothing where it cannot be read."""
    try:
        page = pdf[number].get_textpage()
        text = page.get_text_range(0, min(characters, page.count_chars()))
    except pypdfium2.PdfiumError:
        return ""
    return _CONTROL.sub("", text.replace("\r\n", "\n")).strip()
