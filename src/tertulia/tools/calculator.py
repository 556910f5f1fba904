"""A calculator over Python's own grammar. Pure.

Only numbers, operators and the names below reach `ast.parse`, and only five kinds of node are evaluated. Whole numbers
and decimals are exact fractions; what no fraction can hold, such as sqrt(2), is a float. What would run away is refused
before it is computed: each result is limited in its digits, and powers, factorials and combinations in their work.
"""

import ast
import math
import operator
import re
from collections.abc import Callable
from fractions import Fraction
from functools import partial, reduce
from typing import Annotated, Any

from msgspec import Meta

from tertulia.errors import InvalidValue

Number = int | Fraction | float

LENGTH = 2000  # characters of an expression
DIGITS = 1000  # of a whole number, and places of round()
WORK = 50_000  # bits that a power, a factorial, a combination or a permutation may multiply

TOO_LARGE = f"too large or too small: at most {LENGTH} characters, whole numbers of {DIGITS} digits, others up to 1e308"
SEPARATOR = "write numbers without thousands separators or leading zeros, 1000 and not 1,000; put a space after commas"

_SIGNS = str.maketrans("×·∙⋅÷∕−–", "****//--")
_DECIMAL = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_PERCENT = re.compile(rf"((?:^|[(,]|(?<![-+*/%])(?<![-+*/%] )[-+]) ?{_DECIMAL}) ?% ?of\b")  # not in 3 / -5% of 80
_TOKEN = re.compile(rf"(?:math\.(?=[a-z]))?({_DECIMAL}(?:e[+-]?[0-9]+)?|[a-z_]\w*\(?|\*\*|//|\S)", re.ASCII)
_MISTAKES = {
    r"^$": "the expression is empty",
    r"([^\w+\-*/%(),. ])": "unexpected {!r}",
    r"^(?=.*, ).*[0-9],[0-9]{3}(?![0-9])|(?<![\w.])0[0-9]": SEPARATOR,  # as in sum(1,500, 20) and max(1,000)
    r"% ?(?:[-+*/),]|of\b|$)": "% is the remainder: write x% of a number as x/100 * number",
    r"[0-9.]e[+-]?[0-9]{4}": TOO_LARGE,
}


def calculate(
    expression: Annotated[
        str,
        Meta(min_length=1),
        "The arithmetic to work out, such as (3 + 4) * 2 ** 10 or sqrt(2) * sin(radians(30)): numbers, never code. "
        "They are written without thousands separators: 1000, not 1,000.",
    ],
) -> float | int | str:
    """Work out arithmetic exactly: numbers only, never code.

    It knows + - * / // % (remainder) ** or ^ (power), parentheses, pi, e, tau, and functions such as sqrt, sin (in
    radians), log (natural), log10, exp, abs, round, floor, ceil, factorial, gcd, lcm, comb, perm, min, max and sum. A
    percentage is written like 15% of 80. Whole numbers of 17 digits and more come back as text.
    """
    try:
        text = _read(expression)
        return _present(_value(ast.parse(text, mode="eval").body, text))
    except SyntaxError:
        missing = "number" if text.count("(") == text.count(")") else "parenthesis"
        raise InvalidValue(f"a {missing} is missing, or there is one too many: {text[:60]!r}") from None
    except ZeroDivisionError:
        raise InvalidValue("division by zero") from None
    except (OverflowError, RecursionError, MemoryError):  # the last two where the stack of the parser ends
        raise InvalidValue(TOO_LARGE) from None


def _read(expression: str) -> str:
    """Return the tokens of an expression with a space between them; raise InvalidValue where one is not arithmetic."""
    if len(expression) > LENGTH:
        raise OverflowError
    line = " ".join(expression.rstrip(" \n,;=?").split())  # models end it as they end a sentence
    line = re.sub(r"\( ?\[([^][]*)\] ?\)", r"(\1)", line.replace(" (", "("))  # sum([1, 2]) is sum(1, 2)
    line = _PERCENT.sub(r"\1/100*", line.translate(_SIGNS).replace("^", "**").replace("π", " pi ").lower())
    for pattern, refusal in _MISTAKES.items():
        if found := re.search(pattern, line, re.ASCII):
            raise InvalidValue(refusal.format(*found.groups()))
    text = " ".join(_TOKEN.findall(line))
    for name, called in re.findall(r"(?<![\w.])([a-z_]\w*)(\(?)", text):
        if name not in (FUNCTIONS if called else CONSTANTS):
            known = ", ".join(sorted(FUNCTIONS)) if called else "pi, e, tau; functions need parentheses"
            raise InvalidValue(f"{name[:30]!r} is no {'function' if called else 'constant'}; there are {known}")
    if found := re.search(r"[\w.)] ([\w.(]\S*)", text):
        raise InvalidValue(f"an operator such as * is missing before {found[1][:30]!r}")
    return text


def _value(node: ast.expr, text: str) -> Number:
    """Evaluate a node of the syntax tree of *text*."""
    source = text[node.col_offset : node.end_col_offset]
    match node:
        case ast.Constant():
            return _bounded(Fraction(source))
        case ast.Name(id=name):
            return CONSTANTS[name]
        case ast.UnaryOp(op=sign, operand=operand):
            value = _value(operand, text)
            return -value if isinstance(sign, ast.USub) else value
        case ast.BinOp(left=left, op=sign, right=right):
            return _bounded(OPERATORS[type(sign)](_value(left, text), _value(right, text)))
        case ast.Call(func=ast.Name(id=name), args=args):
            values = [_value(arg, text) for arg in args]
            try:
                return _bounded(FUNCTIONS[name](*values))
            except TypeError:
                raise InvalidValue(f"{name} does not take {len(values)} values, or it needs whole numbers") from None
            except ValueError:
                raise InvalidValue(f"{name} is not defined for that value") from None
    raise InvalidValue(f"{source[:60]!r} is no number: {SEPARATOR}")


def _bounded(value: Any) -> Number:
    """Return an exact number, or a float where that would be too long; raise OverflowError where neither can be."""
    if isinstance(value, complex):
        raise InvalidValue("the result is not a real number")
    if not isinstance(value, float) and max(abs(value.numerator), value.denominator) < 10**DIGITS:
        return value.numerator if value.denominator == 1 else Fraction(value)
    number = float(value)
    if not math.isfinite(number) or (value and not number):
        raise OverflowError
    return number


def _present(value: Number) -> float | int | str:
    """Return a number for JSON, without the noise of floats; only a number that is surely whole becomes an int."""
    if isinstance(value, int):
        return value if abs(value) <= 2**53 else str(value)  # JSON may lose the digits of a larger one
    number = float(value)
    if value and not number:
        raise OverflowError
    rounded = float(f"{number:.{12 if abs(number) < 1e9 else 15}g}")  # cents survive in the billions
    if isinstance(value, Fraction) and rounded.is_integer():
        return number
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded  # from there on it has no decimals


def _power(base: Any, exponent: Any) -> Any:
    """Return an exact power where it is not too long, else a float."""
    bits = math.inf if isinstance(base, float) else max(abs(base.numerator), base.denominator).bit_length() - 1
    power = (Fraction(base) if bits * abs(exponent) <= WORK else float(base)) ** exponent
    if base and not power:
        raise OverflowError
    return power


def _choices(function: Callable[[int, int], int], n: int, k: int) -> int:
    factors = min(k, n - k if function is math.comb else n)
    if factors * operator.index(n).bit_length() > WORK:
        raise OverflowError
    return function(n, k)


def _round(value: Any, places: int = 0) -> Any:
    if abs(operator.index(places)) > DIGITS:
        raise ValueError
    return round(value, places or None)


def _root(value: float) -> float:
    root = math.isqrt(value) if isinstance(value, int) else 0
    return root if root * root == value else math.sqrt(value)


def _trigonometric(function: Callable[[float], float], angle: float) -> float:
    """Remove the noise at multiples of pi, which no float can hold: sin(pi) is 0, tan(pi / 2) is not defined."""
    value, noise = function(angle), min(abs(angle), 10_000) / 2**52
    if abs(value) * noise > 1:
        raise ValueError
    return value if abs(value) > noise else 0.0


OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda left, right: Fraction(1) * left / right,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}
CONSTANTS = {"pi": math.pi, "e": math.e, "tau": math.tau}
_OF_MATH = "cbrt asin acos atan atan2 sinh cosh tanh log log10 log2 hypot degrees radians floor ceil gcd".split()
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(math, name) for name in _OF_MATH},
    **{name: partial(_trigonometric, getattr(math, name)) for name in ("sin", "cos", "tan")},
    "ln": lambda value: math.log(value),
    "exp": lambda value: math.exp(value) or math.exp(-value),  # of what is too small to hold, the inverse overflows
    "sqrt": _root,
    "abs": abs,
    "round": _round,
    "pow": _power,
    "factorial": lambda value: _choices(math.perm, value, value),
    "comb": partial(_choices, math.comb),
    "perm": partial(_choices, math.perm),
    "lcm": lambda *values: reduce(lambda left, right: _bounded(math.lcm(left, right)), (1, *values)),
    "min": lambda first, *rest: min((first, *rest)),
    "max": lambda first, *rest: max((first, *rest)),
    "sum": lambda *values: reduce(lambda left, right: _bounded(left + right), (0, *values)),
}
