"""Escaping of people's texts, so that they cannot pass for our own markup. Pure.

A text changes only where it holds our markup: a header, a marker in brackets, a task line, the delimiter. Names and
titles also become one line. Look-alikes count as what they look like: wide letters, other scripts, hidden characters.
"""

import re
import unicodedata
from functools import lru_cache
from hashlib import blake2b

from tertulia.characters import CLOSE as _CLOSE
from tertulia.characters import HIDING, INVISIBLE, SHAPING, visible
from tertulia.characters import OPEN as _OPEN

NAME_LENGTH = 64
REPLACEMENT = "······"  # for the delimiter in a text

_LONGEST = 1_000  # characters of a name that are read at all
_CHUNK = 256  # characters normalized at once: sorting the marks on one letter takes the square of their number
_DASH = "\u2012-\u2015\u2212\u23af\u2500\u2501\u2e3a\u2e3b\ufe31\ufe32\ufe58"

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_INVISIBLE = re.compile(  # what shapes letters and emoji stays among them, and goes beside our own characters
    f"[{HIDING}]|(?<=[!-~])[{SHAPING}]+(?!\u20e3)|(?<![{SHAPING}])[{SHAPING}]++(?=[ -~])"
)
_UNSEEN = re.compile(
    f"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f{INVISIBLE}\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
)
_HIDEABLE = re.compile(r"\*\*|```")
_DASHES = re.compile(f"[{_DASH}]|(?<!\\S)ー(?!\\S)")
_PARENTHESES = re.compile(r"[()（）﹙﹚⁽⁾₍₎❨❩❪❫⟮⟯⦅⦆｟｠]")
_SQUARE = re.compile(f"[{_OPEN}{_CLOSE}]")
_BRACKETED = re.compile(rf"[{_OPEN}]([^{_OPEN}{_CLOSE}\n]{{1,300}})[{_CLOSE}]")
_QUOTE = '["“”„‟″＂«]'
MEDIA_KINDS = (  # whose markers people cannot write
    "image photo picture sticker gif animation audio voice music video video_note youtube document file contact"
    " location attachment poll checklist story".split()
)
_MARKER = re.compile(
    r"(?:meta|speaker)(?:\s.*)?|respond|reply\s+to\s+this"
    rf"|(?:{'|'.join(MEDIA_KINDS)})(?:\s*x\s*\d+|\s+present|\s*{_QUOTE}.*|\s+of\s+\d.*)?"
    r"|(?:replied\s+to|forwarded\s+from)\s*:.*"
    rf"|[\w -]{{1,40}}(?:\s+described\s*:|{_QUOTE}.*\bdescribed\s*:|\s*,\s*the\s+same\s+as\b).*"
    r"|.*\bpresent\s+uid\s*=.*|[\w -]{1,40}\s+part|#\s*(?:[a-z0-9]{6,64}|·+)?|relevance\s*:.*",
    re.DOTALL,
)
_DESCRIPTION = re.compile(rf"[\w -]{{1,40}}(?:\s*{_QUOTE}.*|\s+of\s+\d.*)?\s*described\s*:.*", re.DOTALL)
_LABEL = re.compile(r"(?:replied\s+to|forwarded\s+from)\s*:|#\s*$")
_LEAD = re.compile(r"[\W_]*+")  # what may stand before a header's first word
_FROM = re.compile(r"from\s*+:")
_FIELD = re.compile(  # any of these after `from:` makes it a header
    rf"\bid\s*+:|\breply\s++to\s*+:|[-{_DASH}]\s*+\d{{4}}-\d\d-\d\d|\((?=[^()\s]*+\)\s*+\Z)[^()\s\d]*+\d"
)
_ID = re.compile(rf"id\s*+:\s*+\S++\s++[{_DASH}]\s")
_AFTER_DASH = re.compile(rf"(?:[^\w{_DASH}]*+[{_DASH}])++\s*+(?:id|reply\s++to)\s*+:")
_TASK = re.compile(r"^([^\w«《≪〈]*+)[«《≪〈]([^»》≫〉]*+)[»》≫〉]")
_TASK_LINE = re.compile(r"[\s>*_+-]*+#")
_HEADING = re.compile(r"(?:[>*+-]\s*+|\d++[.)]\s*+)*+#{1,6}+(?:\s|$)")
_BLOCK = re.compile(r"[#`~=>|]|-++$|-{3}|\*{3}|_{3}")
_SUSPECT = re.compile(rf"[{_OPEN}«《≪〈]|from\s*+:|\bid\s*+:|reply\s++to\s*+:")
_IDENTITY = re.compile(r"[^\w@.:+\-/=!$&,;]")
_LOOKALIKES = str.maketrans("авгезіїјкмнорстухѕьԁԛԝαβεικμνορτυχωː˸∶꞉ꓽ։׃", "abre3iijkmhopctyxsbdqwabeikuvoptuxw:::::::")
_LATIN = re.compile("[a-z]")
_PHRASES = {"\ufdfa": "\u0635", "\ufdfb": "\u062c"}  # single characters whose compatibility form is a sentence


def _pattern_of(word: str) -> str:
    """Return a pattern for *word*, also in wide letters and with invisible characters between them."""
    between = f"[{INVISIBLE}]{{0,4}}+"
    return between.join(f"[{letter}{chr(ord(letter) + 0xFEE0)}]" for letter in word)


_REPLIED = (
    rf"[{_OPEN}](?=[\W_]{{0,8}}+(?:{_pattern_of('replied')}[\s{INVISIBLE}]{{1,8}}+{_pattern_of('to')}"
    rf"|{_pattern_of('forwarded')}[\s{INVISIBLE}]{{1,8}}+{_pattern_of('from')})"
    rf"[\s{INVISIBLE}]{{0,8}}+[:：﹕︓ː˸∶꞉ꓽ։׃])"
)
_LABELLED = re.compile(_REPLIED, re.IGNORECASE)
_OPENED = re.compile(
    rf"[{_OPEN}](?=[\W_]{{0,8}}+(?:{_pattern_of('meta')}|{_pattern_of('speaker')})(?![\w-])"
    rf"|[\w·{INVISIBLE}-]{{1,40}}+\s{{1,8}}+(?:{_QUOTE}[^{_OPEN}{_CLOSE}\n]{{0,300}}?[\s{INVISIBLE}]{{1,8}})?"
    rf"{_pattern_of('described')}[\s{INVISIBLE}]{{0,8}}+[:：﹕︓ː˸∶꞉ꓽ։׃]"
    rf"|(?:{'|'.join(map(_pattern_of, MEDIA_KINDS))})[\s{INVISIBLE}]{{0,8}}+{_QUOTE})|{_REPLIED}",
    re.IGNORECASE,
)


def without_delimiter(text: str, delimiter: str) -> str:
    """Return *text* without the delimiter, should anybody have learned it."""
    if not delimiter:
        return text
    wanted = delimiter.casefold()
    if not text.isascii() or _CONTROL.search(text):
        return _replace_disguised(text, wanted) if wanted in _letters(text) else text
    return re.sub(re.escape(delimiter), REPLACEMENT, text, flags=re.IGNORECASE) if wanted in text.lower() else text


def markup(text: str, delimiter: str = "") -> str:
    """Return a person's text with everything changed in it that looks like our markup."""
    text = without_delimiter(_CONTROL.sub("", text), delimiter)
    if not _SUSPECT.search(text.lower() if text.isascii() else normalize(text)):
        return text
    text = _OPENED.sub("(", without_markers(text))
    return "".join(_escape_line(line) if len(line) > 4 else line for line in text.splitlines(keepends=True))


def without_markers(text: str) -> str:
    """Return *text* with round brackets for the square ones around what would be a marker."""
    return _BRACKETED.sub(_in_round, text)


def without_labels(text: str) -> str:
    """Return *text* with a round bracket before what would be a label of a quote or forward, or a delimiter mark."""
    return _LABELLED.sub("(", _BRACKETED.sub(_label_in_round, text))


def without_descriptions(text: str) -> str:
    """Return *text* with round brackets for the square ones around what would be a description of media."""
    return _OPENED.sub("(", _BRACKETED.sub(_description_in_round, text))


def without_brackets(text: str) -> str:
    """Return *text* without square brackets and what looks like them."""
    return _SQUARE.sub("", text)


def fold(text: str) -> str:
    """Return *text* on one line with single spaces, without characters that hide or reverse others."""
    shown = _CONTROL.sub(" ", text)
    return " ".join((shown if shown.isascii() else _INVISIBLE.sub("", shown)).split())


def single_line(text: str) -> str:
    """Return *text* on one line with single spaces; folded only where invisible characters hide Markdown."""
    shown = " ".join(_CONTROL.sub(" ", text).split())
    return fold(shown) if not shown.isascii() and _HIDEABLE.search(visible(shown)) else shown


def header_name(text: str) -> str:
    """Return a name for a header: one line, no dash that separates fields, no id in brackets, no marker."""
    return _header_name(text[:_LONGEST])


def header_id(text: str) -> str:
    """Return an id for a header. Ordinary ids stay as they are; two different ids never become the same."""
    shown = text[: NAME_LENGTH + 1]
    if _IDENTITY.search(shown) or (not shown.isascii() and unicodedata.normalize("NFKC", shown) != shown):
        shown = re.sub(r"[^A-Za-z0-9@._:+-]", _percent, shown)
    if len(shown) <= NAME_LENGTH:
        return shown
    return f"{shown[: NAME_LENGTH - 17]}~{blake2b(text.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"


def marker_word(text: str) -> str:
    """Return a word for a marker: no blank, no bracket, no dash that separates fields of a header."""
    return _DASHES.sub("-", re.sub(rf"[\s()（）{_OPEN}{_CLOSE}]", "", fold(text[:_LONGEST])))[:NAME_LENGTH]


def inline(text: str) -> str:
    """Return a value after a Markdown label: one line that opens no emphasis, fence, heading or marker."""
    shown = single_line(text).replace("**", "").replace("```", "'''")
    shown = _OPENED.sub("(", without_markers(shown))
    return f"\\{shown}" if _HEADING.match(normalize(shown)) else shown


def paragraph(text: str) -> str:
    """Return lines for below a heading: none is a heading or a fence itself."""
    return "\n".join(_below_heading(inline(line)) if line else "" for line in text.splitlines()).strip()


def normalize(text: str) -> str:
    """Return *text* for comparison: compatibility forms resolved, no invisible characters, lower case."""
    if text.isascii():
        return _CONTROL.sub("", text.lower()).strip()
    read = _decompose(text).strip()
    return read.translate(_LOOKALIKES) if _LATIN.search(read) else read


def skeleton(text: str) -> str:
    """Return a key that is equal for names that look alike: letters and digits alone, look-alikes as Latin letters."""
    return re.sub(r"[\W_]", "", normalize(text).translate(_LOOKALIKES))


@lru_cache(maxsize=4096)
def _header_name(text: str) -> str:
    shown = _PARENTHESES.sub("", _DASHES.sub("-", fold(text)))
    if without_markers(shown) != shown or _OPENED.search(shown):
        shown = without_brackets(shown)
    return " ".join(shown.split())[:NAME_LENGTH].strip()


def _in_round(found: re.Match[str]) -> str:
    return f"({found[1]})" if _MARKER.fullmatch(normalize(found[1])) else found[0]


def _description_in_round(found: re.Match[str]) -> str:
    return f"({found[1]})" if _DESCRIPTION.fullmatch(normalize(found[1])) else found[0]


def _label_in_round(found: re.Match[str]) -> str:
    return f"({found[1]})" if _LABEL.match(normalize(found[1])) else found[0]


def _escape_line(line: str) -> str:
    read = normalize(line)
    if _is_header(read):
        return ("" if line.lstrip().startswith(">") else "> ") + _DASHES.sub("-", line)
    if _TASK_LINE.match(read):
        return _TASK.sub(r'\1"\2"', line, count=1)
    return line


def _is_header(read: str) -> bool:
    """Return whether a line reads as one of our headers; in linear time."""
    lead = _LEAD.match(read)
    start = lead.end() if lead else 0
    begun = _FROM.match(read, start)
    return bool((begun and _FIELD.search(read, begun.end())) or _ID.match(read, start) or _AFTER_DASH.match(read))


def _below_heading(line: str) -> str:
    return f"\\{line}" if _BLOCK.match(normalize(line)) and not line.startswith("\\") else line


def _percent(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "surrogatepass"))


def _replace_disguised(text: str, delimiter: str) -> str:
    """Return *text* without the delimiter, written in it with look-alikes or invisible characters."""
    read = [(letter, place) for place, shown in enumerate(text) for letter in _letters(shown)]
    letters = "".join(letter for letter, _ in read)
    pieces, done = [], 0
    at = letters.find(delimiter)
    while at >= 0:
        pieces += [text[done : read[at][1]], REPLACEMENT]
        done = read[at + len(delimiter) - 1][1] + 1
        at = letters.find(delimiter, at + len(delimiter))
    return "".join([*pieces, text[done:]])


def _letters(text: str) -> str:
    return _decompose(text).translate(_LOOKALIKES)


def _decompose(text: str) -> str:
    for phrase, letter in _PHRASES.items():  # a table of translation takes ten times as long
        text = text.replace(phrase, letter)
    chunks = (text[start : start + _CHUNK] for start in range(0, len(text), _CHUNK))
    return _UNSEEN.sub("", "".join(unicodedata.normalize("NFKD", chunk) for chunk in chunks)).casefold()
