"""Splits Markdown into pieces that each fit into one message. Pure."""

from palaver.platform import split_text
from palaver.platforms.telegram.markdown import render


def split_markdown(text: str, limit: int = 4096) -> list[str]:
    """Return pieces of *text* that are shown with at most *limit* code points each."""
    if len(render(text).text) <= limit:
        return [text]
    return [part for piece in split_text(text, max(1, len(text) // 2)) for part in split_markdown(piece, limit)]
