"""Arithmetic and maths functions that cannot run away: what would be costly is refused before it is computed. Pure.

Whole numbers and fractions are exact, decimals among them; only what no fraction can hold, such as sqrt(2), is a float.
"""

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from functools import reduce

Number = int | Fraction | float

DIGITS = 1000  # the longest whole number; a product or quotient of two such takes microseconds
WORK = 50_000  # what one power, combination or permutation may take on the way to its result, in bits
_BEYOND = 10**DIGITS
PLACES = 400  # beyond the reach of any float

TOO_LARGE = f"the result is too large: whole numbers end at {DIGITS} digits, others at about 1e308"

CONSTANTS: dict[str, Number] = {"pi": math.pi, "e": math.e, "tau": math.tau}


def bounded(value: object) -> Number:
    """*value* if it is a real number of reasonable size; a fraction in its simplest form."""
    match value:
        case Fraction(denominator=1):
            return bounded(value.numerator)
        case Fraction(denominator=denominator):
            inexact = bounded(_float(value))
            return value if max(abs(value.numerator), denominator) < _BEYOND else inexact
        case int() if abs(value) < _BEYOND:
            return value
        case float() if math.isfinite(value):
            return value
        case complex():
            raise ValueError("the result is not a real number")
        case _:
            raise ValueError(TOO_LARGE)


def _float(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def operate(sign: str, left: Number, right: Number) -> Number:
    try:
        return bounded(OPERATORS[sign](left, right))
    except ZeroDivisionError:
        raise ValueError("division by zero") from None
    except OverflowError:
        raise ValueError(TOO_LARGE) from None


def call(name: str, values: list[Number]) -> Number:
    try:
        return bounded(FUNCTIONS[name](*values))
    except TypeError:
        raise ValueError(f"{name} does not take {len(values)} value{'s' * (len(values) != 1)}") from None
    except OverflowError:
        raise ValueError(TOO_LARGE) from None
    except (_Undefined, ZeroDivisionError):
        raise ValueError(f"{name} is not defined for that value") from None


class _Undefined(Exception):
    """A function was asked outside its domain."""


def _power(base: Number, exponent: Number) -> object:
    if isinstance(base, float) or not isinstance(exponent, int):
        return float(base) ** float(exponent)
    bits = base.numerator.bit_length() + base.denominator.bit_length() - 1
    if abs(base) in (0, 1) or bits * abs(exponent) <= WORK:
        return Fraction(base) ** exponent
    if isinstance(base, int) and exponent > 0:
        raise ValueError(TOO_LARGE)
    return float(base) ** exponent


def _quotient(left: Number, right: Number) -> object:
    return left / right if isinstance(left, float) or isinstance(right, float) else Fraction(left) / right


OPERATORS: dict[str, Callable[[Number, Number], object]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _quotient,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": _power,
}


def _real(function: Callable[..., object]) -> Callable[..., object]:
    """A function of the maths library, which says ValueError where it is not defined."""

    def asked(*values: Number) -> object:
        try:
            return function(*values)
        except ValueError:
            raise _Undefined from None

    return asked


def _turning(function: Callable[[float], float]) -> Callable[..., object]:
    """A function of an angle, exact again at multiples of pi, which no float can hold."""

    def asked(angle: Number) -> float:
        value, size = function(float(angle)), abs(float(angle))
        noise = min(size, 1e4) * 2.0**-52
        if size > 1 and abs(value) < noise:
            return 0.0
        if size > 1 and abs(value) > 1 / noise:
            raise _Undefined
        return value

    return asked


def _root(value: Number) -> Number:
    """The square root, exact where it is whole."""
    root = math.isqrt(value) if isinstance(value, int) else 0
    return root if root * root == value else math.sqrt(value)


def _whole(value: Number) -> int:
    if value != int(value):
        raise ValueError("whole numbers are needed here, such as in factorial(5)")
    return int(value)


def _factorial(value: Number) -> int:
    count = _whole(value)
    if count < 0:
        raise _Undefined
    if count > DIGITS:
        raise ValueError(TOO_LARGE)
    return math.factorial(count)


def _choices(function: Callable[[int, int], int]) -> Callable[..., object]:
    def asked(of: Number, chosen: Number) -> int:
        n, k = _whole(of), _whole(chosen)
        if n < 0 or k < 0:
            raise _Undefined
        steps = min(k, n - k) if function is math.comb else k
        if k <= n and steps * n.bit_length() > WORK:
            raise ValueError(TOO_LARGE)
        return function(n, k)

    return asked


def _multiple(*values: Number) -> int:
    return reduce(lambda one, other: int(bounded(math.lcm(one, _whole(other)))), values, 1)


def _round(value: Number, places: Number = 0) -> object:
    digits = _whole(places)
    if abs(digits) > PLACES:
        raise ValueError(f"round takes at most {PLACES} places")
    return round(value, digits) if digits else round(value)


FUNCTIONS: dict[str, Callable[..., object]] = {
    "sin": _turning(math.sin),
    "cos": _turning(math.cos),
    "tan": _turning(math.tan),
    **{
        name: _real(getattr(math, name))
        for name in (
            "cbrt asin acos atan atan2 sinh cosh tanh log log10 log2 exp hypot degrees radians floor ceil"
        ).split()
    },
    "sqrt": _real(_root),
    "ln": lambda value: FUNCTIONS["log"](value),
    "abs": abs,
    "round": _round,
    "pow": _power,
    "factorial": _factorial,
    "gcd": lambda *values: math.gcd(*map(_whole, values)),
    "lcm": _multiple,
    "comb": _choices(math.comb),
    "perm": _choices(math.perm),
    "min": lambda first, *rest: min(first, *rest) if rest else first,
    "max": lambda first, *rest: max(first, *rest) if rest else first,
    "sum": lambda *values: sum(values),
}
