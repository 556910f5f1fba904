"""The calculator: what it works out, what it refuses, and that nothing else can happen."""

import math
import re
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from palaver.parts import ToolCall
from palaver.toolbox.toolbox import Toolbox
from palaver.tools.calculator import CONSTANTS, DEPTH, FUNCTIONS, LENGTH, calculate

RIGHT = [
    ("2 + 2", 4),
    ("2 + 3 * 4", 14),
    ("(2 + 3) * 4", 20),
    ("7 - 2 - 1", 4),
    ("7 / 2", 3.5),
    ("6 / 3", 2),
    ("7 // 2", 3),
    ("-7 // 2", -4),
    ("-7 % 3", 2),
    ("7 % (-3)", -2),
    ("2 ** 3 ** 2", 512),
    ("-2 ** 2", -4),
    ("2 ** -1", 0.5),
    ("--3", 3),
    ("+3", 3),
    ("0 ** 0", 1),
    ("1 ** (10 ** 900)", 1),
    # as people write
    ("2 * 3 ^ 2", 18),
    ("6 × 7", 42),
    ("6 · 7", 42),
    ("84 ÷ 2", 42),
    ("5 − 7", -2),
    ("2 * π", 6.28318530718),
    ("PI", 3.14159265359),
    ("Sqrt(16)", 4),
    ("math.sqrt(16) + math.pi - pi", 4),
    (".5 + 5.", 5.5),
    ("1e3", 1000),
    ("1.5E-3", 0.0015),
    ("\t1 +\n1 ", 2),
    ("15% of 80", 12),
    ("12.5 % of 80 + 1", 11),
    ("100 - 15% OF 80", 88),
    ("max(5% of 100, 4)", 5),
    # floating point without its noise
    ("0.1 + 0.2", 0.3),
    ("1.1 * 3", 3.3),
    ("1 / 3", 0.333333333333),
    ("2 / 3 * 3", 2),
    ("123456789012.35 + 0", 123456789012.35),
    ("1e-20 / 3", 3.33333333333e-21),
    ("sin(pi)", 0),
    ("cos(pi / 2)", 0),
    ("sin(100 * pi)", 0),
    ("sin(1e17)", -0.464530104835),
    ("sin(1e-20)", 1e-20),
    ("sin(radians(30))", 0.5),
    ("-0.0", 0),
    # whole numbers, exact
    ("2 ** 53", 2**53),
    ("2 ** 64", str(2**64)),
    ("-(2 ** 64)", str(-(2**64))),
    ("10 ** 999", "1" + "0" * 999),
    ("factorial(200)", str(math.factorial(200))),
    ("comb(1000, 500)", str(math.comb(1000, 500))),
    ("10 ** 400 / 10 ** 399", 10),
    ("floor(1e308)", str(10**308)),
    ("9999999999999998 / 2", 4999999999999999),
    ("7777777777777777 / 1", 7777777777777777),
    ("-7777777777777777 / 1", -7777777777777777),
    ("10 ** 30 / 10 ** 10", str(10**20)),
    ("comb(60, 30) / 2", str(math.comb(60, 30) // 2)),
    ("(10 ** 17 + 1) // 10", str(10**16)),
    ("(10 ** 17 + 1) % 10", 1),
    ("floor(10 ** 17 / 3)", str(10**17 // 3)),
    ("ceil(10 ** 17 / 3)", str(10**17 // 3 + 1)),
    ("round(10 ** 17 / 3)", str(10**17 // 3)),
    ("round(123456789012345678, -2)", "123456789012345700"),
    ("sqrt(10 ** 32)", str(10**16)),
    ("15% of 99999999999999980", str(14999999999999997)),
    # decimals, exact
    ("1e20", str(10**20)),
    ("1e15 + 1", 10**15 + 1),
    ("1e16 + 1", str(10**16 + 1)),
    ("1e17 % 10", 0),
    ("1e308 * 10", str(10**309)),
    ("9999999999999999 * 1.0", "9999999999999999"),
    ("5 % 0.1", 0),
    ("1 // 0.1", 10),
    ("0.1 + 0.2 - 0.3", 0),
    ("1 / 3 * 3 * 10 ** 16", str(10**16)),
    ("round(2.675, 2)", 2.68),
    ("10 ** -2 * 100", 1),
    ("10 ** 400 + 0.5 - 10 ** 400", 0.5),
    # what is not whole does not look it
    ("9999999999999999 / 10", 999999999999999.9),
    ("(10 ** 12 + 1) / 10 ** 12", 1.000000000001),
    ("(10 ** 14 + 1) / 10 ** 14", 1.00000000000001),
    ("(10 ** 30 + 1) / 10 ** 10", 1e20),
    ("10 ** 17 / 3", 3.3333333333333332e16),
    ("sqrt(10 ** 30 + 1)", 1e15),
    ("2 ** 0.5 * 10 ** 20", 1.41421356237310e20),
    ("exp(log(10 ** 16))", 1e16),
    ("2 ** 0.5 * 2 ** 0.5", 2),
    ("1.0001 ** 100000", 22015.4560485),
    # functions
    ("sqrt(2) ** 2", 2),
    ("cbrt(27)", 3),
    ("tan(pi / 4)", 1),
    ("asin(1) - acos(0)", 0),
    ("atan(1) - atan2(2, 2)", 0),
    ("sinh(0) + cosh(0) + tanh(0)", 1),
    ("log(e)", 1),
    ("ln(e)", 1),
    ("log(8, 2)", 3),
    ("log10(1000)", 3),
    ("log2(10 ** 400)", 1328.77123795),
    ("exp(1) - e", 0),
    ("abs(-3)", 3),
    ("round(2.567, 1)", 2.6),
    ("round(1234, -2)", 1200),
    ("round(2.4)", 2),
    ("floor(-2.5)", -3),
    ("ceil(2.1)", 3),
    ("factorial(6 / 2)", 6),
    ("gcd(12, 18)", 6),
    ("lcm(4, 6, 10)", 60),
    ("comb(5, 2)", 10),
    ("comb(5, 10 ** 900)", 0),
    ("perm(5, 2)", 20),
    ("hypot(3, 4)", 5),
    ("degrees(pi)", 180),
    ("pow(2, 10)", 1024),
    ("min(3, 1, 2)", 1),
    ("max([3, 1, 2])", 3),
    ("max(3)", 3),
    ("sum(1, 2, 3)", 6),
    ("sum([1, 2], 3)", 6),
    ("sum([])", 0),
    ("tau / pi", 2),
]

WRONG = [
    ("", "the expression is empty"),
    (" \n", "the expression is empty"),
    ("2 +", "a number is missing before the end"),
    ("* 2", "a number is missing before '*'"),
    ("(2 + 3", "')' is missing before the end"),
    ("2 + 3)", "unexpected ')'"),
    ("()", "a number is missing before ')'"),
    ("2 3", "an operator is missing before '3'"),
    ("3(4)", "an operator is missing before '('"),
    ("2pi", "an operator is missing before 'pi'"),
    ("1 / 0", "division by zero"),
    ("1 // 0.0", "division by zero"),
    ("1 % 0", "division by zero"),
    ("0 ** -1", "division by zero"),
    ("(-8) ** (1 / 3)", "the result is not a real number"),
    ("sqrt(-1)", "sqrt is not defined for that value"),
    ("log(0)", "log is not defined for that value"),
    ("log(5, 1)", "log is not defined for that value"),
    ("tan(pi / 2)", "tan is not defined for that value"),
    ("factorial(-1)", "factorial is not defined for that value"),
    ("comb(-1, 2)", "comb is not defined for that value"),
    ("factorial(2.5)", "whole numbers are needed here, such as in factorial(5)"),
    ("gcd(1.5)", "whole numbers are needed here, such as in factorial(5)"),
    ("sin()", "sin does not take 0 values"),
    ("abs(1, 2)", "abs does not take 2 values"),
    ("sqrt([1])([2])", "an operator is missing before '('"),
    ("min()", "min does not take 0 values"),
    ("sqrt", "sqrt needs parentheses: sqrt(…)"),
    ("x + 1", "'x' is not known; the constants are pi, e, tau"),
    ("1 == 1", "unexpected '='"),
    ("[1, 2]", "a number is missing before '['"),
    ("sum([1, [2]])", "a number is missing before '['"),
    ("sum([1, 2)", "']' is missing before ')'"),
    ("1,000 + 5", "unexpected ',': write numbers without thousands separators, 1000 and not 1,000"),
    ("(1,500) * 2", "unexpected ',': write numbers without thousands separators, 1000 and not 1,000"),
    ("max(1,000, 5)", "write '000' without leading zeros or thousands separators"),
    *(
        (text, "% is the remainder of a division: for a percentage write 15/100 or 15% of 80")
        for text in ("50%", "200 * 10% + 5", "10% * 5", "(10%)", "max(10%, 5)", "(1 + 2)% of 80", "3 / 5% of 80")
    ),
]

TOO_LARGE = "the result is too large: whole numbers end at 1000 digits, others at about 1e308"
NO_FUNCTION = f"there is no function '{{}}'; there are {', '.join(sorted(FUNCTIONS))}"
TOO_DEEP = f"the expression is nested too deeply: at most {DEPTH} levels"
TOO_LONG = f"the expression is too long: at most {LENGTH} characters"

ATTACKS = [
    ("9**9**9", TOO_LARGE),
    ("9^9^9^9^9", TOO_LARGE),
    ("(-9)**9**9", TOO_LARGE),
    ("2**2**2**2**2**2", TOO_LARGE),
    ("10**1000", TOO_LARGE),
    ("10**999 * 10", TOO_LARGE),
    ("(10**999)**(10**999)", TOO_LARGE),
    ("2.0**(10**999)", TOO_LARGE),
    ("2**-(10**999)", TOO_LARGE),
    ("pow(10, 10**9)", TOO_LARGE),
    ("1e1000", TOO_LARGE),
    ("-1e1000", TOO_LARGE),
    ("1e999 * 10 - 1e999 * 10", TOO_LARGE),
    ("1e999999999", "a number is too long: at most 1000 digits"),
    ("1e-999999999", "a number is too long: at most 1000 digits"),
    ("1e" + "9" * 1900, "a number is too long: at most 1000 digits"),
    ("0." + "3" * 1900, "a number is too long: at most 1000 digits"),
    ("1.5 ** 10 ** 9", TOO_LARGE),
    ("10**400 + 0.5", TOO_LARGE),
    ("sqrt(10**999)", TOO_LARGE),
    ("exp(1000)", TOO_LARGE),
    ("sin(10**999)", TOO_LARGE),
    ("factorial(10**9)", TOO_LARGE),
    ("factorial(factorial(10))", TOO_LARGE),
    ("factorial(999)", TOO_LARGE),
    ("comb(10**6, 5*10**5)", TOO_LARGE),
    ("comb(10**900, 17)", TOO_LARGE),
    ("comb(10**900, 10**899)", TOO_LARGE),
    ("perm(10**6, 10**6)", TOO_LARGE),
    ("perm(10**9, 10**8)", TOO_LARGE),
    ("lcm(" + ",".join(f"10**{n}+1" for n in range(800, 950)) + ")", TOO_LARGE),
    ("round(5, -10**9)", "round takes at most 400 places"),
    ("round(round(5, 10**9), -10**9)", "round takes at most 400 places"),
    ("1<<10**9", "unexpected '<'"),
    ("str(9**999)", NO_FUNCTION.format("str")),
    ("'9' * 10**9", 'a number is missing before "\'"'),
    ("[0] * 10**9", "a number is missing before '['"),
    ("(" * 900 + "1" + ")" * 900, TOO_DEEP),
    ("-" * 1900 + "1", TOO_DEEP),
    ("2**" * 600 + "1", TOO_DEEP),
    ("abs(" * 390 + "1" + ")" * 390, TOO_DEEP),
    ("sum([" * 300, TOO_DEEP),
    ("1+" * 5_000_000 + "1", TOO_LONG),
    ("9" * 1001, "a number is too long: at most 1000 digits"),
    ("9" * 10_000_000, TOO_LONG),
    (" " * LENGTH, "the expression is empty"),
    ("__import__('os').system('true')", NO_FUNCTION.format("__import__")),
    ("(1).__class__", "unexpected '.'"),
    ("pi.__class__.__mro__", "unexpected '.'"),
    ("math.__dict__", "'__dict__' is not known; the constants are pi, e, tau"),
    ("eval(1)", NO_FUNCTION.format("eval")),
    ("lambda: 1", "'lambda' is not known; the constants are pi, e, tau"),
    ("(x := 1)", "'x' is not known; the constants are pi, e, tau"),
    ("1 if 1 else 2", "an operator is missing before 'if'"),
    ("0x7fffffff", "an operator is missing before 'x7fffffff'"),
    ("1j", "an operator is missing before 'j'"),
    ("ｓｉｎ(1)", "a number is missing before 'ｓ'"),
    ("٣ + 1", "a number is missing before '٣'"),
    ("1\x00", "unexpected '\\x00'"),
    ("\ud800", "a number is missing before '\\ud800'"),
]


def outcome(expression: str) -> float | int | str:
    """The result, or the words of the ValueError; any other error is a failure of the test."""
    try:
        return calculate(expression)
    except ValueError as error:
        return f"refused: {error}"


@pytest.mark.parametrize(("expression", "value"), RIGHT)
def test_worked_out(expression: str, value: float | int | str) -> None:
    result = calculate(expression)

    assert (result, type(result)) == (value, type(value))


@pytest.mark.parametrize(("expression", "words"), WRONG)
def test_a_mistake_is_named_in_one_line(expression: str, words: str) -> None:
    assert outcome(expression) == f"refused: {words}"


@pytest.mark.parametrize(("expression", "words"), ATTACKS, ids=[text[:20] for text, _ in ATTACKS])
def test_what_would_be_costly_or_is_no_arithmetic_is_refused(expression: str, words: str) -> None:
    assert outcome(expression) == f"refused: {words}"


@pytest.mark.parametrize("term", ["comb(10**17, 900)", "9**999", "lcm(10**999, 3**999)", "perm(10**9, 99)"])
def test_as_much_work_as_fits_into_an_expression_is_done_at_once(term: str) -> None:
    text = " - ".join([f"min({term}, 1)"] * (LENGTH // len(f"min({term}, 1) - ")))

    assert outcome(text) in (2 - text.count("min"), f"refused: {TOO_LARGE}")


def test_an_unknown_function_is_answered_with_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"there is no function 'sine'; there are abs, acos, .*, sum, tan, tanh$"):
        calculate("sine(1)")


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
@example("0.1 + 0.2 - 0.3")
def test_agrees_with_fractions(text: str) -> None:
    exactly = re.sub(r"[0-9]+(?:\.[0-9]+)?", lambda number: f"Fraction('{number[0]}')", text)
    try:
        expected = float(eval(exactly, {"Fraction": Fraction}))  # noqa: S307 made of digits and signs, above
    except (ZeroDivisionError, OverflowError):
        with pytest.raises(ValueError, match=r"division by zero|too large"):
            calculate(text)
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
    [*FUNCTIONS, *CONSTANTS, *"+-*/%()[],.^×÷− e_;'", "**", "//", "(", ")", "9", "10", "1e300", "%of"]
)


@given(st.one_of(st.text(), st.text(st.characters()), st.lists(pieces, max_size=40).map("".join)))
@example("\ud800(")
def test_any_text_is_a_number_or_a_value_error(text: str) -> None:
    assert str(outcome(text)).isprintable()


@given(
    st.sampled_from(sorted(FUNCTIONS)),
    st.lists(st.sampled_from(["0", "1", "-1", "2.5", "10**9", "10**999", "-(10**999)", "1e308", "1e-308"]), max_size=3),
)
def test_every_function_takes_or_refuses_any_values(name: str, values: list[str]) -> None:
    assert str(outcome(f"{name}({', '.join(values)})")).isprintable()


async def test_as_a_tool() -> None:
    (result,) = await Toolbox([calculate]).run([ToolCall(id="1", name="calculate", args={"expression": "6 * 7"})])

    assert (result.value, result.failed) == (42, False)


def test_a_model_held_to_the_schema_cannot_leave_the_expression_empty() -> None:
    (spec,) = Toolbox([calculate]).specs

    assert spec.parameters["properties"]["expression"]["minLength"] == 1


@pytest.mark.parametrize("expression", ["15 * 23,", "15 * 23 = ", "15 * 23 =?", "15 * 23;"])
def test_what_ends_a_sentence_is_no_part_of_the_sum(expression: str) -> None:
    assert calculate(expression) == 345
