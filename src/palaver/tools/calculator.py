"""A calculator: a parser of arithmetic that evaluates as it reads. Pure.

Its grammar has numbers, operators and the functions below, and nothing else. Whole numbers, decimals and fractions are
exact; only what no fraction can hold, such as sqrt(2), is a float. What would run away is refused before it is
computed: every result is limited in its digits, a power or a combination also in the work on the way to it.
"""

import math
import operator
import re
from collections.abc import Callable
from fractions import Fraction
from functools import partial, reduce
from typing import Annotated, Any, NoReturn

from msgspec import Meta

from palaver.errors import InvalidValue

Number = Fraction | float

LENGTH = 2000  # characters of an expression
DEPTH = 40  # parentheses, signs and powers inside one another
DIGITS = 1000  # of the longest whole number; a product or quotient of two such takes microseconds
WORK = 50_000  # bits that one power, factorial, combination or permutation may multiply
PLACES = 400  # of round(), beyond the reach of any float
_LIMIT = 10**DIGITS

TOO_LARGE = f"the result is too large: whole numbers end at {DIGITS} digits, others at about 1e308"
SEPARATOR = "unexpected ',': write numbers without thousands separators, 1000 and not 1,000"

_SIGNS = str.maketrans(
    {"^": "**", "×": "*", "·": "*", "∙": "*", "⋅": "*", "÷": "/", "∕": "/", "−": "-", "–": "-", "π": " pi "}
)
_NO_DIVISOR = ("", "+", "-", "*", "/", "//", ")", ",", "of")  # before these a % was meant as a percentage
_DECIMAL = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_PERCENT = re.compile(rf"((?:^|[-+(,])\s*)({_DECIMAL})\s*%\s*of\b", re.IGNORECASE)
_NUMBER = re.compile(rf"{_DECIMAL}(?:[eE][+-]?[0-9]+)?")
_TOKEN = re.compile(rf"\s*(?:math\.(?=[A-Za-z_]))?({_NUMBER.pattern}|[A-Za-z_][A-Za-z_0-9]*|\*\*|//|\S)")


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
        raise InvalidValue(f"the expression is too long: at most {LENGTH} characters")
    try:
        return _present(_Parser(expression.rstrip(" \n,;=?")).result())  # models end it as they end a sentence
    except ZeroDivisionError:
        raise InvalidValue("division by zero") from None
    except OverflowError:
        raise InvalidValue(TOO_LARGE) from None


def _present(value: Number) -> float | int | str:
    """Return a number for JSON, without the noise of floats; only a number that is surely whole becomes an int."""
    if isinstance(value, Fraction) and value.denominator == 1:
        return int(value) if abs(value) <= 2**53 else str(value)  # JSON may lose the digits of a larger one
    number = float(value)
    rounded = float(f"{number:.{12 if abs(number) < 1e9 else 15}g}")  # cents survive in the billions
    if not rounded.is_integer():
        return rounded
    if isinstance(value, Fraction):
        return number
    return int(rounded) if abs(rounded) < 1e15 else rounded  # from there on a float has no digit behind the point


class _Parser:
    """Recursive descent over the tokens of an expression; each method returns the value of what it has read."""

    def __init__(self, expression: str) -> None:
        text = " ".join(expression.split())  # long gaps are slow to match
        self._tokens: list[str] = [*_TOKEN.findall(_PERCENT.sub(r"\1\2/100*", text).translate(_SIGNS)), ""]
        self._at = 0
        self._depth = 0

    def result(self) -> Number:
        if not self._next:
            raise InvalidValue("the expression is empty")
        value = self._sum()
        if re.match(rf"[A-Za-z_(]|{_DECIMAL}", self._next):
            self._refuse("an operator is missing before {}")
        if self._next:
            self._refuse(SEPARATOR if self._next == "," else "unexpected {}")
        return value

    @property
    def _next(self) -> str:
        return self._tokens[self._at]

    def _refuse(self, text: str) -> NoReturn:
        raise InvalidValue(text.format(repr(self._next[:30]) if self._next else "the end"))

    def _take(self, *signs: str) -> str:
        """Consume the next token if it is one of these."""
        token = self._next
        self._at += token in signs
        return token if token in signs else ""

    def _expect(self, sign: str) -> None:
        if not self._take(sign):
            self._refuse(SEPARATOR if (self._next, sign) == (",", ")") else f"{sign!r} is missing before {{}}")

    def _sum(self) -> Number:
        value = self._product()
        while sign := self._take("+", "-"):
            other = self._product()
            value = _bounded(value + other if sign == "+" else value - other)
        return value

    def _product(self) -> Number:
        value = self._signed()
        while sign := self._take(*_PRODUCTS):
            if sign == "%" and self._next.lower() in _NO_DIVISOR:
                raise InvalidValue("% is the remainder of a division: for a percentage write 15/100 or 15% of 80")
            value = _bounded(_PRODUCTS[sign](value, self._signed()))
        return value

    def _signed(self) -> Number:
        """A number with its sign or its power; all nesting comes through here."""
        self._depth += 1
        if self._depth > DEPTH:
            raise InvalidValue(f"the expression is nested too deeply: at most {DEPTH} levels")
        if sign := self._take("+", "-"):
            value = self._signed()
            value = -value if sign == "-" else value
        else:
            value = self._operand()
            if self._take("**"):
                value = _bounded(_power(value, self._signed()))
        self._depth -= 1
        return value

    def _operand(self) -> Number:
        if self._take("("):
            value = self._sum()
            self._expect(")")
            return value
        token = self._next
        if not re.match(rf"[A-Za-z_]|{_DECIMAL}", token):
            self._refuse("a number is missing before {}")
        self._at += 1
        return _number(token) if _NUMBER.match(token) else self._named(token)

    def _named(self, written: str) -> Number:
        name = written.lower()
        if self._take("("):
            if name not in FUNCTIONS:
                raise InvalidValue(f"there is no function {written[:30]!r}; there are {', '.join(sorted(FUNCTIONS))}")
            return _call(name, self._values(")"))
        if name in FUNCTIONS:
            raise InvalidValue(f"{name} needs parentheses: {name}(…)")
        if name not in CONSTANTS:
            raise InvalidValue(f"{written[:30]!r} is not known; the constants are {', '.join(CONSTANTS)}")
        return CONSTANTS[name]

    def _values(self, end: str) -> list[Number]:
        """The values up to *end*; a list among them, as in sum([1, 2]), counts as its values."""
        values: list[Number] = []
        if self._take(end):
            return values
        while True:
            values += self._values("]") if end == ")" and self._take("[") else [self._sum()]
            if not self._take(","):
                break
        self._expect(end)
        return values


def _number(text: str) -> Number:
    power = text.lower().partition("e")[2]
    if len(text) > DIGITS or abs(int(power or 0)) > DIGITS:
        raise InvalidValue(f"a number is too long: at most {DIGITS} digits")
    if text.isdigit() and text != "0" and text.startswith("0"):  # the rest of 1,000 as a value of its own
        raise InvalidValue(f"write {text[:30]!r} without leading zeros or thousands separators")
    return _bounded(Fraction(text))


def _call(name: str, values: list[Number]) -> Number:
    whole = [value.numerator if isinstance(value, Fraction) and value.denominator == 1 else value for value in values]
    try:
        return _bounded(FUNCTIONS[name](*whole))
    except InvalidValue:
        raise
    except TypeError:
        raise InvalidValue(f"{name} does not take {len(values)} value{'s' * (len(values) != 1)}") from None
    except (ValueError, ZeroDivisionError):
        raise InvalidValue(f"{name} is not defined for that value") from None


def _bounded(value: Any) -> Number:
    """Return a fraction, a float where that would be too long; raise OverflowError where neither can hold the value."""
    if isinstance(value, complex):
        raise InvalidValue("the result is not a real number")
    if not isinstance(value, float) and max(abs(value.numerator), value.denominator) < _LIMIT:
        return Fraction(value)
    if not isinstance(value, float) and value.denominator == 1:
        raise OverflowError
    inexact = float(value)
    if not math.isfinite(inexact):
        raise OverflowError
    return inexact


def _power(base: Number, exponent: Number) -> Any:
    if isinstance(base, float) or isinstance(exponent, float) or exponent.denominator > 1:
        return float(base) ** float(exponent)
    bits = base.numerator.bit_length() + base.denominator.bit_length() - 1
    if abs(base) in (0, 1) or bits * abs(exponent) <= WORK:
        return Fraction(base) ** int(exponent)
    if base.denominator == 1 and exponent > 0:
        raise OverflowError
    return float(base) ** int(exponent)


def _trigonometric(function: Callable[[float], float], angle: float) -> float:
    """Remove the noise at multiples of pi, which no float can hold: sin(pi) is 0, tan(pi / 2) is not defined."""
    value, size = function(angle), abs(float(angle))
    noise = min(size, 1e4) * 2.0**-52
    if size > 1 and abs(value) > 1 / noise:
        raise ValueError
    return 0.0 if size > 1 and abs(value) < noise else value


def _root(value: float) -> float:
    """Return the square root, exact where it is whole."""
    root = math.isqrt(value) if isinstance(value, int) else 0
    return root if root * root == value else math.sqrt(value)


def _whole(value: float) -> int:
    if value != int(value):
        raise InvalidValue("whole numbers are needed here, such as in factorial(5)")
    return int(value)


def _choices(function: Callable[[int, int], int], of: float, chosen: float) -> int:
    n, k = _whole(of), _whole(chosen)
    factors = min(k, n - k) if function is math.comb else k
    if 0 <= k <= n and factors * n.bit_length() > WORK:
        raise OverflowError
    return function(n, k)


def _round(value: Any, places: float = 0) -> Any:
    if abs(_whole(places)) > PLACES:
        raise InvalidValue(f"round takes at most {PLACES} places")
    return round(value, int(places)) if places else round(value)


_PRODUCTS: dict[str, Callable[[Any, Any], Any]] = {
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
}
_OF_MATH = "cbrt asin acos atan atan2 sinh cosh tanh log log10 log2 exp hypot degrees radians floor ceil".split()
CONSTANTS = {"pi": math.pi, "e": math.e, "tau": math.tau}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(math, name) for name in _OF_MATH},
    **{name: partial(_trigonometric, getattr(math, name)) for name in ("sin", "cos", "tan")},
    "ln": lambda value: math.log(value),
    "sqrt": _root,
    "abs": abs,
    "round": _round,
    "pow": _power,
    "factorial": lambda value: _choices(math.perm, value, value),
    "gcd": lambda *values: math.gcd(*map(_whole, values)),
    "lcm": lambda *values: reduce(lambda one, other: int(_bounded(math.lcm(one, _whole(other)))), values, 1),
    "comb": partial(_choices, math.comb),
    "perm": partial(_choices, math.perm),
    "min": lambda first, *rest: min((first, *rest)),
    "max": lambda first, *rest: max((first, *rest)),
    "sum": lambda *values: sum(values),
}
