"""A calculator: reads an expression and works it out as it reads. Pure.

It has a grammar of its own instead of Python's, so that nothing but numbers, operators and the functions of
`arithmetic` can be said at all.
"""

import re
from fractions import Fraction
from typing import Annotated

from msgspec import Meta

from palaver.tools.arithmetic import CONSTANTS, DIGITS, FUNCTIONS, Number, bounded, call, operate

LENGTH = 2000  # characters of an expression
DEPTH = 40  # parentheses, signs and powers inside one another

_EXACT = 2**53  # beyond this a JSON number may lose digits on its way, so the result goes as text
_SURE = 10**15  # from here on a float is not known to its last whole digit
_POWER = re.compile(r"[eE]([+-]?[0-9]+)$")

_PERCENT = re.compile(r"((?:^|[-+(,])\s*)([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*%\s*of\b", re.IGNORECASE)
_SIGNS = str.maketrans(
    {"^": "**", "×": "*", "·": "*", "∙": "*", "⋅": "*", "÷": "/", "∕": "/", "−": "-", "–": "-", "π": " pi "}
)
_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?:math\.)?(?P<name>[A-Za-z_][A-Za-z_0-9]*)"
    r"|(?P<sign>\*\*|//|[-+*/%(),\[\]])"
    r"|(?P<other>\S))"
)
_END = ("end", "")
_NO_DIVISOR = ("", "+", "-", "*", "/", "//", ")", ",", "of")  # before these a % was meant as a percentage


def calculate(
    expression: Annotated[
        str,
        Meta(min_length=1),
        "The arithmetic to work out, such as (3 + 4) * 2 ** 10 or sqrt(2) * sin(radians(30)). Numbers are written "
        "without thousands separators: 1000, not 1,000.",
    ],
) -> float | int | str:
    """Work out arithmetic exactly: + - * / // % (remainder) ** or ^ (power), parentheses, pi, e, tau, and functions
    such as sqrt, sin (in radians), log (natural), log10, exp, abs, round, floor, ceil, factorial, gcd, lcm, comb, perm,
    min, max and sum. A percentage is written like 15% of 80. Whole numbers of 17 digits and more come back as text.
    """
    if len(expression) > LENGTH:
        raise ValueError(f"the expression is too long: at most {LENGTH} characters")
    return _presented(_Reading(expression.rstrip(" \n,;=?")).result())  # models end it as they end a sentence


def _presented(value: Number) -> float | int | str:
    """*value* without the noise of floating point; only what is surely whole looks so."""
    if isinstance(value, int):
        return value if abs(value) <= _EXACT else str(value)
    number = float(value)
    digits = 12 if abs(number) < 1e9 else 15  # cents survive in the billions
    rounded = float(f"{number:.{digits}g}")
    if isinstance(value, Fraction):
        return number if rounded.is_integer() else rounded
    return int(rounded) if rounded.is_integer() and abs(rounded) < _SURE else rounded


class _Reading:
    """One expression and how far it has been read; every rule returns the value of what it read."""

    def __init__(self, expression: str) -> None:
        text = " ".join(expression.split())  # long gaps are slow to match
        text = _PERCENT.sub(r"\1\2/100*", text).translate(_SIGNS)
        self._tokens = [(str(found.lastgroup), found[str(found.lastgroup)]) for found in _TOKEN.finditer(text)]
        self._at = 0
        self._depth = 0

    def result(self) -> Number:
        if not self._tokens:
            raise ValueError("the expression is empty")
        value = self._sum()
        if self._next == _END:
            return value
        if self._next[1] == ",":
            raise ValueError("unexpected ',': write numbers without thousands separators, 1000 and not 1,000")
        if self._next[0] in ("number", "name") or self._next[1] == "(":
            raise ValueError(f"an operator is missing before {self._found()}")
        raise ValueError(f"unexpected {self._found()}")

    @property
    def _next(self) -> tuple[str, str]:
        return self._tokens[self._at] if self._at < len(self._tokens) else _END

    def _found(self) -> str:
        return repr(self._next[1][:30]) if self._next != _END else "the end"

    def _take(self, *signs: str) -> str | None:
        """The next sign, if it is one of these."""
        kind, text = self._next
        if kind != "sign" or text not in signs:
            return None
        self._at += 1
        return text

    def _sum(self) -> Number:
        value = self._product()
        while sign := self._take("+", "-"):
            value = operate(sign, value, self._product())
        return value

    def _product(self) -> Number:
        value = self._signed()
        while sign := self._take("*", "/", "//", "%"):
            if sign == "%" and self._next[1].lower() in _NO_DIVISOR:
                raise ValueError("% is the remainder of a division: for a percentage write 15/100 or 15% of 80")
            value = operate(sign, value, self._signed())
        return value

    def _signed(self) -> Number:
        """A power with its sign; all nesting comes through here."""
        self._depth += 1
        if self._depth > DEPTH:
            raise ValueError(f"the expression is nested too deeply: at most {DEPTH} levels")
        sign = self._take("+", "-")
        value = self._signed() if sign else self._power()
        self._depth -= 1
        return -value if sign == "-" else value

    def _power(self) -> Number:
        base = self._atom()
        return operate("**", base, self._signed()) if self._take("**") else base

    def _atom(self) -> Number:
        if self._take("("):
            value = self._sum()
            self._expect(")")
            return value
        kind, text = self._next
        if kind == "number":
            self._at += 1
            return _number(text)
        if kind == "name":
            self._at += 1
            return self._named(text)
        raise ValueError(f"a number is missing before {self._found()}")

    def _named(self, written: str) -> Number:
        name = written.lower()
        if self._take("("):
            if name not in FUNCTIONS:
                raise ValueError(f"there is no function {written[:30]!r}; there are {', '.join(sorted(FUNCTIONS))}")
            values = self._values(")")
            return call(name, values)
        if name in FUNCTIONS:
            raise ValueError(f"{name} needs parentheses: {name}(…)")
        if name not in CONSTANTS:
            raise ValueError(f"{written[:30]!r} is not known; the constants are {', '.join(CONSTANTS)}")
        return CONSTANTS[name]

    def _values(self, end: str) -> list[Number]:
        """The values up to *end*; a list in brackets, as in sum([1, 2]), is as good as its values."""
        values: list[Number] = []
        if self._take(end):
            return values
        while True:
            if end == ")" and self._take("["):
                values += self._values("]")
            else:
                values.append(self._sum())
            if not self._take(","):
                break
        self._expect(end)
        return values

    def _expect(self, sign: str) -> None:
        if self._next[1] == "," and sign == ")":
            raise ValueError("unexpected ',': write numbers without thousands separators, 1000 and not 1,000")
        if not self._take(sign):
            raise ValueError(f"{sign!r} is missing before {self._found()}")


def _number(text: str) -> Number:
    if not text.isdigit():
        power = _POWER.search(text)
        if len(text) > DIGITS or (power and abs(int(power[1])) > DIGITS):
            raise ValueError(f"a number is too long: at most {DIGITS} digits")
        return bounded(Fraction(text))
    if len(text) > 1 and text.startswith("0"):  # the rest of 1,000 as a value of its own
        raise ValueError(f"write {text[:30]!r} without leading zeros or thousands separators")
    if len(text) > DIGITS:
        raise ValueError(f"a number is too long: at most {DIGITS} digits")
    return int(text)
