"""The calculator: what it works out, what it refuses, and that nothing else can happen."""

import math
import re
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tertulia.parts import ToolCall
from tertulia.toolbox.toolbox import Toolbox
from tertulia.tools.calculator import CONSTANTS, FUNCTIONS, LENGTH, SEPARATOR, TOO_LARGE, calculate

RESULTS = {
    "7 / 2": 3.5,
    "-7 // 2": -4,
    "-7 % 3": 2,
    "2 ** 3 ** 2": 512,
    "-2 ** 2": -4,
    "2 ** -1": 0.5,
    "0 ** 0": 1,
    "1 ** (10 ** 900)": 1,
    # as people and models write
    "2 * 3 ^ 2": 18,
    "6 × 7 · 2 ÷ 4": 21,
    "2 * π − 1": 5.28318530718,
    "Sqrt (16) + PI - pi": 4,
    "math.sqrt(16) + math.pi - pi": 4,
    ".5 + 5. + 1.5E-3": 5.5015,
    "\t1 +\n1 ": 2,
    "15 * 23 =?,;": 345,
    "15% of 80": 12,
    "-15% of 80 + 2": -10,
    "100 - 12.5 % OF (80)": 90,
    "max(5% of 100, 4)": 5,
    # whole numbers, exact
    "2 ** 53": 2**53,
    "-(2 ** 64)": str(-(2**64)),
    "10 ** 999": "1" + "0" * 999,
    "factorial(200)": str(math.factorial(200)),
    "comb(3320, 1660)": str(math.comb(3320, 1660)),
    "floor(10 ** 17 / 3)": str(10**17 // 3),
    "round(123456789012345678, -2)": "123456789012345700",
    "sqrt(10 ** 32)": str(10**16),
    "15% of 99999999999999980": "14999999999999997",
    # decimals, exact
    "0.1 + 0.2 - 0.3": 0,
    "5 % 0.1": 0,
    "1 // 0.1": 10,
    "1e16 + 1": str(10**16 + 1),
    "123456789012345678.5 * 2": "246913578024691357",
    "round(2.675, 2)": 2.68,
    "10 ** 400 + 0.5 - 10 ** 400": 0.5,
    "0." + "3" * 1900: 0.333333333333,
    # without the noise of floats
    "1 / 3": 0.333333333333,
    "123456789012.35 + 0": 123456789012.35,
    "sin(pi)": 0,
    "cos(pi / 2)": 0,
    "sin(100 * pi)": 0,
    "sin(1e17)": -0.464530104835,
    "sin(radians(30))": 0.5,
    "2 ** 0.5 * 2 ** 0.5": 2,
    "1.0001 ** 100000": 22015.4560485,
    # what is not whole does not look it
    "9999999999999999 / 10": 999999999999999.9,
    "(10 ** 14 + 1) / 10 ** 14": 1.00000000000001,
    "10 ** 17 / 3": 3.3333333333333332e16,
    "sqrt(10 ** 30 + 1)": 1e15,
    "exp(log(10 ** 16))": 1e16,
    # functions
    "sqrt(2) ** 2 + cbrt(27)": 5,
    "tan(pi / 4)": 1,
    "asin(1) - acos(0) + atan(1) - atan2(2, 2)": 0,
    "sinh(0) + cosh(0) + tanh(0)": 1,
    "log(e) + ln(e) + log(8, 2) + log10(1000)": 8,
    "log2(10 ** 400)": 1328.77123795,
    "abs(-3) + floor(-2.5) + ceil(2.1)": 3,
    "round(sqrt(10))": 3,
    "factorial(6 / 2) + gcd(12, 18) + lcm(4, 6, 10)": 72,
    "hypot(3, 4) + degrees(pi) + pow(2, 10) + tau / pi": 1211,
    "comb(5, 2) + perm(5, 2) + comb(5, 10 ** 900)": 30,
    "max([3, 1, 2]) + max(3) - min(3, 1, 2)": 5,
    "sum(1, 2, 3) + sum( [1, 2] ) + sum([])": 9,
    "max(100,200)": 200,
}

OPERATOR = "an operator such as * is missing before {!r}"
NUMBER = "a number is missing, or there is one too many: {!r}"
PARENTHESIS = "a parenthesis is missing, or there is one too many: {!r}"
NAME = "{!r} is no constant; there are pi, e, tau; functions need parentheses"
FUNCTION = f"{{!r}} is no function; there are {', '.join(sorted(FUNCTIONS))}"
PERCENT = "% is the remainder: write x% of a number as x/100 * number"
VALUES = "{} does not take {} values, or it needs whole numbers"
UNDEFINED = "{} is not defined for that value"

REFUSALS = {
    "the expression is empty": ["", " \n", "=", " " * LENGTH],
    NUMBER.format("2 +"): ["2 +"],
    NUMBER.format("* 2"): ["* 2"],
    PARENTHESIS.format("( 2 + 3"): ["(2 + 3"],
    PARENTHESIS.format("2 + 3 )"): ["2 + 3)"],
    OPERATOR.format("3"): ["2 3"],
    OPERATOR.format("("): ["3(4)", "sqrt(1)(2)", "(1) (2)"],
    OPERATOR.format("pi"): ["2pi", "(1)pi"],
    OPERATOR.format("."): ["1 . 5", "pi.e"],
    "division by zero": ["1 / 0", "1 // 0.0", "1 % 0", "0 ** -1", "log(5, 1)"],
    "the result is not a real number": ["(-8) ** (1 / 3)"],
    UNDEFINED.format("sqrt"): ["sqrt(-1)"],
    UNDEFINED.format("log"): ["log(0)"],
    UNDEFINED.format("tan"): ["tan(pi / 2)"],
    UNDEFINED.format("factorial"): ["factorial(-1)"],
    UNDEFINED.format("round"): ["round(5, -10**9)", "round(round(5, 10**9), -10**9)"],
    VALUES.format("factorial", 1): ["factorial(2.5)", "factorial(pi)"],
    VALUES.format("comb", 2): ["comb(1.5, 1)", "comb(5, 1.5)"],
    VALUES.format("round", 2): ["round(9.99, 0.5)", "round(pi, 0.5)"],
    VALUES.format("sqrt", 2): ["sqrt(1, 2)"],
    VALUES.format("min", 0): ["min()"],
    NAME.format("sqrt"): ["sqrt", "sqrt 16"],
    NAME.format("x"): ["x + 1", "2x"],
    NAME.format("if"): ["1 if 1 else 2"],
    NAME.format("x7fffffff"): ["0x7fffffff"],
    NAME.format("_000"): ["1_000"],
    NAME.format("__class__"): ["(1).__class__", "pi.__class__.__mro__"],
    FUNCTION.format("not"): ["not(1)"],
    FUNCTION.format("eval"): ["eval(1)"],
    FUNCTION.format("__import__"): ["__import__(os).system(true)"],
    SEPARATOR: ["max(1,000, 5)", "max(1,000.5)", "007", "sum(1,500, 2,500)", "1,050 + 1"],
    f"'1 , 500 + 5' is no number: {SEPARATOR}": ["1,500 + 5"],
    f"'( 3 , 5 )' is no number: {SEPARATOR}": ["(3,5) * 2"],
    f"'* 2' is no number: {SEPARATOR}": ["max(*2)"],
    PERCENT: [
        *("50%", "200 * 10% + 5", "10% * 5", "(10%)", "max(10%, 5)", "(1 + 2)% of 80", "3 / 5% of 80"),
        *("3 / -5% of 80", "3 / - 5% of 80", "3/--5% of 80", "2 ^ -5% of 80", "10% of 20% of 80"),
    ],
    "unexpected '['": ["[1, 2]", "sum([1, [2]])", "[0] * 10**9", "sum([" * 300],
    "unexpected '='": ["1 == 1"],
    "unexpected ':'": ["lambda: 1", "(x := 1)"],
    'unexpected "\'"': ["'9' * 10**9"],
    "unexpected '٣'": ["٣ + 1"],
    "unexpected 'ｓ'": ["ｓｉｎ(1)"],
    "unexpected '\\x00'": ["1\x00"],
    "unexpected '\\ud800'": ["\ud800"],
    TOO_LARGE: [
        *("9**9**9", "9^9^9^9^9", "(-9)**9**9", "2**2**2**2**2**2", "10**1000", "10**999 * 10", "2.0**(10**999)"),
        *("(10**999)**(10**999)", "2**-(10**999)", "pow(10, 10**9)", "1.5 ** 10 ** 9", "10**400 + 0.5", "exp(1000)"),
        *("1e1000", "-1e1000", "1e999 * 10 - 1e999 * 10", "1e999999999", "1e-999999999", "1e" + "9" * 1900, "9" * 1001),
        *("10 ** -400", "0.1 ** 10 ** 9", "(1e-200 ** 4) ** 999", "exp(-1000)", "sqrt(10**999)", "sin(10**999)"),
        *(
            "factorial(10**9)",
            "factorial(factorial(10))",
            "factorial(999)",
            "comb(10**6, 5*10**5)",
            "comb(10**900, 10**899)",
        ),
        *("perm(10**6, 10**6)", "lcm(" + ",".join(f"10**{n}+1" for n in range(800, 950)) + ")"),
        *("sum(" + ",".join(f"1/(9**998+{n})" for n in range(70)) + ")", "-" * 1900 + "1"),
        *("1+" * 5_000_000 + "1", "9" * 10_000_000, "(" * 10_000_000),
    ],
}


def outcome(expression: str) -> float | int | str:
    """Return the result, or the words of the ValueError; any other error is a failure of the test."""
    try:
        return calculate(expression)
    except ValueError as error:
        return f"refused: {error}"


@pytest.mark.parametrize(("expression", "value"), RESULTS.items(), ids=[text[:20] for text in RESULTS])
def test_worked_out(expression: str, value: float | int | str) -> None:
    result = calculate(expression)

    assert (result, type(result)) == (value, type(value))


@pytest.mark.parametrize(("words", "expressions"), REFUSALS.items(), ids=[words[:30] for words in REFUSALS])
def test_a_mistake_is_named_in_one_line(words: str, expressions: list[str]) -> None:
    assert {outcome(expression) for expression in expressions} == {f"refused: {words}"}


@pytest.mark.parametrize("opened", ["(", "abs(", "-(", "2**(", "2**", "-", "max(1, ", "1+(", "1+", "sum(["])
def test_any_nesting_is_a_number_or_a_value_error(opened: str) -> None:
    for depth, inner, closed in product((50, 199, 200, 900), ("1", "", "1 1", "+"), ("", ")", "])")):
        expression = (opened * depth + inner + closed * depth)[:LENGTH]
        assert str(outcome(expression)).isprintable(), (depth, inner, closed)


@pytest.mark.parametrize("term", ["comb(10**17, 900)", "9**999", "lcm(10**999, 3**999)", "perm(10**9, 99)"])
def test_as_much_work_as_fits_into_an_expression_is_done_at_once(term: str) -> None:
    text = " - ".join([f"min({term}, 1)"] * (LENGTH // len(f"min({term}, 1) - ")))

    assert outcome(text) in (2 - text.count("min"), f"refused: {TOO_LARGE}")


atoms = st.one_of(
    st.integers(0, 99).map(str),
    st.tuples(st.integers(0, 99), st.integers(0, 99)).map(lambda pair: f"{pair[0]}.{pair[1]}"),
)


def _combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "//", "%"]), inner).map(" ".join),
        st.tuples(inner, st.integers(0, 3)).map(lambda pair: f"(({pair[0]}) ** {pair[1]})"),
        inner.map(lambda text: f"({text})"),
        inner.map(lambda text: f"(-{text})"),
        st.tuples(st.sampled_from("+-"), inner).map("".join),
    ).filter(lambda text: "% +" not in text and "% -" not in text)


@given(st.recursive(atoms, _combined, max_leaves=8))
@example("2 * 3 % 4 // 5 - 6")
def test_agrees_with_fractions(text: str) -> None:
    exactly = re.sub(r"[0-9]+(?:\.[0-9]+)?", lambda number: f"Fraction('{number[0]}')", text)
    try:
        expected = float(eval(exactly, {"Fraction": Fraction}))  # noqa: S307 made of digits and signs, above
    except (ZeroDivisionError, OverflowError):
        assert outcome(text) in ("refused: division by zero", f"refused: {TOO_LARGE}")
        return

    assert math.isclose(float(calculate(text)), expected, rel_tol=1e-11)


@given(st.integers(-(10**40), 10**40), st.integers(-(10**20), 10**20).filter(bool))
@example(9999999999999998, 2)
def test_a_quotient_of_whole_numbers_is_whole_where_it_divides_evenly_and_nowhere_else(left: int, right: int) -> None:
    even = calculate(f"{left * right} / {right}")
    odd = calculate(f"({left * right * 3} + 1) / ({right} * 3)")

    assert not isinstance(even, float)
    assert (int(even), type(odd)) == (left, float)


pieces = st.sampled_from(
    [*FUNCTIONS, *CONSTANTS, *"+-*/%()[],.^×÷− e_;'", "**", "//", "(", ")", "9", "10", "1e300", "%of", "if", "0x", "1_"]
)


@given(st.one_of(st.text(), st.text(st.characters()), st.lists(pieces, max_size=40).map("".join)))
def test_any_text_is_a_number_or_a_value_error(text: str) -> None:
    assert str(outcome(text)).isprintable()


@given(
    st.sampled_from(sorted(FUNCTIONS)),
    st.lists(st.sampled_from(["0", "1", "-1", "2.5", "pi", "10**9", "10**999", "-(10**999)", "1e-308"]), max_size=3),
)
def test_every_function_takes_or_refuses_any_values(name: str, values: list[str]) -> None:
    assert str(outcome(f"{name}({', '.join(values)})")).isprintable()


async def test_as_a_tool() -> None:
    (result,) = await Toolbox([calculate]).run([ToolCall(id="1", name="calculate", args={"expression": "6 * 7"})])

    assert (result.value, result.failed) == (42, False)


def test_a_model_held_to_the_schema_cannot_leave_the_expression_empty() -> None:
    (spec,) = Toolbox([calculate]).specs

    assert spec.parameters["properties"]["expression"]["minLength"] == 1
