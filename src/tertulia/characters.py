"""Classes of characters: those that nobody sees, and those that pass for a square bracket. Pure.

What nobody sees is left out where texts are compared, and kept where they are shown. That is all of Unicode's category
Cf (format characters), and the default-ignorable code points of other categories: fillers of Korean, variation
selectors, tags. Emoji, Persian and Arabic are written with some of them.
"""

import re

TURNING = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # change the direction of what follows
HIDING = TURNING + "\u00ad\u200b\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb"  # and those that change nothing
SHAPING = (  # change how the letters and emoji around them are drawn
    "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200c\u200d\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff"
)
SIGNS = (  # category Cf too, though drawn by some fonts: signs before Arabic numbers, of hieroglyphs, of music
    "\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\ufff0-\ufff8\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
)
INVISIBLE = HIDING + SHAPING + SIGNS  # all of these are for a character class
OPEN = r"\[［【〔⟦〚❲⁅﹝⟬⦋⦍⦏⦗⹕⹗〖〘︗︹︻﹇"  # square brackets and what looks like them
CLOSE = r"\]］】〕⟧〛❳⁆﹞⟭⦌⦎⦐⦘⹖⹘〗〙︘︺︼﹈"

_INVISIBLE = re.compile(f"[{INVISIBLE}]")
_OPEN, _CLOSE = re.compile(f"[{OPEN}]"), re.compile(f"[{CLOSE}]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_NOTHING = re.compile(rf"[\s\x00-\x1f\x7f-\x9f\u2800{INVISIBLE}]*")


def visible(text: str) -> str:
    """Return *text* without what nobody sees, for comparing."""
    return text if text.isascii() else _INVISIBLE.sub("", text)


def one_line(text: str) -> str:
    """Return *text* on one line and with round brackets for square ones, so that it can stand between square ones."""
    return " ".join(_CLOSE.sub(")", _OPEN.sub("(", _CONTROL.sub(" ", text))).split())


def is_blank(text: str) -> bool:
    """Return whether there is nothing to be seen in *text*."""
    return _NOTHING.fullmatch(text) is not None
