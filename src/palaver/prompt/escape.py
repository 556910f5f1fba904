"""What people wrote, made unable to pass for what we write around it. Pure.

Texts change only where they hold our own markup; names and titles are folded to one line.
"""

import re
import unicodedata

NAME_LENGTH = 64

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_INVISIBLE = re.compile(
    r"[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb]"
)
_UNSEEN = re.compile(
    r"[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb]"
)
_DASHES = re.compile(r"[\u2012-\u2015\u2e3a\u2e3b\ufe58\ufe31]")
_BRACKETED = re.compile(r"[\[［【〔⟦]([^\[\]［］【】〔〕⟦⟧\n]{1,300})[\]］】〕⟧]")
_OPENED = re.compile(r"[\[［【〔⟦](?=\W{0,8}(?:meta|speaker|#)\b)", re.IGNORECASE)
_MARKER = re.compile(
    r"(?:meta|speaker)\b.*|respond|reply to this|(?:image|video|audio|youtube|document|attachment)(?:\s*x\s*\d+)?"
    r"|.*\bpresent uid=.*|[\w -]{1,40} part|#.*|relevance:.*",
    re.DOTALL,
)
_TASK = re.compile(r"^(\W*)[«《≪〈](.*?)[»》≫〉]")
_HEADER = re.compile(r"\W*from\s*:(?=.*(?:\bid\s*:|\breply to\s*:|\d{4}-\d\d-\d\d))", re.IGNORECASE)
_SUSPECT = re.compile(
    r"[\[［【〔⟦«《≪〈]|f\W?r\W?o\W?m\W?\s*[:：]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", re.IGNORECASE
)
_IDENTITY = re.compile(r"[(（]([^()（）]*\d[^()（）]*)[)）]")


def without(text: str, delimiter: str) -> str:
    """*text* without the delimiter, should anybody have learned it."""
    if not delimiter or delimiter.casefold() not in text.casefold():
        return text
    return re.sub(re.escape(delimiter), "·" * 6, text, flags=re.IGNORECASE)


def said(text: str) -> str:
    """A person's text beside our markup: what looks like ours in it no longer does."""
    if not _SUSPECT.search(text):
        return text
    text = _CONTROL.sub("", text)
    text = _BRACKETED.sub(_unbracketed, text)
    text = _OPENED.sub("(", text)
    return "".join(_harmless(line) for line in text.splitlines(keepends=True))


def folded(text: str) -> str:
    """*text* on one line, single spaces, without characters that hide or turn what stands beside them."""
    shown = _INVISIBLE.sub("", _CONTROL.sub(" ", text))
    return " ".join(shown.split())


def name(text: str) -> str:
    """A name that can stand in a header: one line, no dash that parts its fields, no second id in brackets."""
    shown = _IDENTITY.sub(r"\1", _DASHES.sub("-", folded(text)))
    return shown[:NAME_LENGTH].strip()


def token(text: str) -> str:
    """An id that can stand in a header: no blank, no bracket, no dash that parts its fields."""
    return _DASHES.sub("-", re.sub(r"[\s()\[\]（）［］]", "", folded(text)))[:NAME_LENGTH]


def inline(text: str) -> str:
    """A value after a label of Markdown: one line that opens no emphasis, fence or marker of its own."""
    shown = folded(text).replace("**", "").replace("```", "'''")
    return _OPENED.sub("(", _BRACKETED.sub(_unbracketed, shown))


def paragraph(text: str) -> str:
    """Lines below a heading of ours that are no headings and no fences themselves."""
    lines = (folded(line) for line in text.splitlines())
    return "\n".join(re.sub(r"^([#`~=]|-{3})", r"\\\1", line) for line in lines).strip()


def _unbracketed(found: re.Match[str]) -> str:
    return f"({found[1]})" if _MARKER.fullmatch(plain(found[1])) else found[0]


def _harmless(line: str) -> str:
    read = plain(line)
    if _HEADER.match(read):
        return "> " + _DASHES.sub("-", line)
    if read.startswith("#"):
        return _TASK.sub(r'\1"\2"', line)
    return line


def plain(text: str) -> str:
    """What a reader takes *text* for: compatibility forms resolved, the unseen left out, in lower case."""
    return _UNSEEN.sub("", unicodedata.normalize("NFKC", text)).casefold().strip()
