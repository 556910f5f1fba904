import math
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct
from msgspec.structs import replace

from tertulia.config_reader import ConfigReader, Key, keys_of, line_of, parse_duration
from tertulia.errors import InvalidValue


class Cap(Struct, frozen=True, kw_only=True):
    tokens: int | None = None
    money: float | None = None


class Limits(Struct, frozen=True, kw_only=True):
    messages: Annotated[int, Meta(ge=1, le=1000)] = 20
    person: Cap = Cap()

    def __post_init__(self) -> None:
        if self.messages == 13:
            raise InvalidValue("Limits: 13 messages bring bad luck")


class Bot(Struct, frozen=True, kw_only=True):
    model: str | tuple[str, ...] = ()
    memory: bool = True
    pace: float = 1.5
    late: Literal["hold", "resend"] = "hold"
    tools: tuple[str, ...] = ()
    may: frozenset[str] = frozenset()
    keep: timedelta = timedelta(days=7)
    also: Callable[[str], bool] | None = None
    limits: Limits = Limits()
    prices: dict[str, Cap] = {}


EVERY_TYPE = Bot(
    model=("a", "b"),
    memory=False,
    pace=2.0,
    late="resend",
    tools=("clock",),
    may=frozenset({"forget"}),
    keep=timedelta(days=30),
    also=str.isupper,
    limits=Limits(messages=5, person=Cap(tokens=100)),
    prices={"my model": Cap(money=0.5)},
)


def load(name: str) -> object:
    if name != "rules:also":
        raise InvalidValue(f"there is no module of {name}")
    return str.isupper


def read(text: str, environment: dict[str, str] | None = None) -> Bot:
    reader = ConfigReader(
        text, file="bot.toml", environment=environment or {}, load=load, renamed={"HISTORY": "limits.messages"}
    )
    return reader.read(Bot, reader.tables)


def refusal(text: str, environment: dict[str, str] | None = None) -> str:
    with pytest.raises(InvalidValue) as refused:
        read(text, environment)
    return str(refused.value)


def test_an_empty_file_has_the_defaults() -> None:
    assert read("") == Bot()


def test_every_type_is_read_from_a_file() -> None:
    text = """
    model = ["a", "b"]
    memory = false
    pace = 2
    late = "resend"
    tools = ["clock"]
    may = ["forget"]
    keep = "30 days"
    also = "rules:also"
    [limits]
    messages = 5
    person.tokens = 100
    [prices."my model"]
    money = 0.5
    """
    assert read(text) == EVERY_TYPE


def test_every_type_is_read_from_variables_which_precede_the_file() -> None:
    environment = {
        "TERTULIA_MODEL": "a, b",
        "TERTULIA_MEMORY": "Off",
        "TERTULIA_PACE": "2",
        "TERTULIA_LATE": "resend",
        "TERTULIA_TOOLS": "clock,",
        "TERTULIA_MAY": "forget",
        "TERTULIA_KEEP": "12h",
        "TERTULIA_ALSO": "rules:also",
        "TERTULIA_LIMITS_MESSAGES": "5",
        "TERTULIA_LIMITS_PERSON_TOKENS": "100",
    }
    expected = replace(EVERY_TYPE, keep=timedelta(hours=12), prices={})
    assert read('model = "c"\n[limits]\nmessages = 9', environment) == expected


def test_an_old_name_of_a_variable_counts_after_the_new_one() -> None:
    assert read("", {"HISTORY": "7"}).limits.messages == 7
    assert read("", {"HISTORY": "7", "TERTULIA_LIMITS_MESSAGES": "8"}).limits.messages == 8


def test_an_empty_variable_is_not_set() -> None:
    assert read("pace = 3", {"TERTULIA_PACE": " "}).pace == 3.0


REFUSED = {
    "memory = 1": "bot.toml:1: memory must be true or false, not 1",
    'pace = "x"': "bot.toml:1: pace must be a number, not 'x'",
    'late = "never"': "bot.toml:1: late must be one of hold, resend, not 'never'",
    "\n\ntools = [1]": "bot.toml:3: tools must be a list of texts, not [1]",
    "model = 5": "bot.toml:1: model must be a text or a list of texts, not 5",
    'keep = "long"': 'bot.toml:1: keep must be a time such as "30 days" or "12h", not \'long\'',
    'also = "x"': "bot.toml:1: also must be a function, as \"module:name\", not 'x'",
    'also = "x:y"': "bot.toml:1: also: there is no module of x:y",
    "[limits]\nmessages = 0": "bot.toml:2: limits.messages must be a whole number from 1 to 1000, not 0",
    "[limits]\nmessages = 13": "bot.toml:2: Limits: 13 messages bring bad luck",
    "limits = 3": "bot.toml:1: limits must be a table: [limits], not 3",
    "[limits.person]\ntokens = true": "bot.toml:2: limits.person.tokens must be a whole number, not true",
    "pase = 2": (
        "bot.toml:1: there is no key pase, did you mean pace? "
        "Allowed are: model, memory, pace, late, tools, may, keep, also, limits, prices"
    ),
    "[limits]\n# x\nzzz = 2": "bot.toml:3: there is no key limits.zzz. Allowed are: messages, person",
    "pace = ": "bot.toml:1: Invalid value",
    "\nmodel = gemini-3.8-flash  # it": ('bot.toml:2: Invalid value; a text needs quotes: model = "gemini-3.8-flash"'),
    "model = 3.8-flash": (
        'bot.toml:1: Expected newline or end of document after a statement; a text needs quotes: model = "3.8-flash"'
    ),
    "my_token = t0p": 'bot.toml:1: Invalid value; a text needs quotes: my_token = "…"',
    "[platforms.mine]\nroom = t0p": 'bot.toml:2: Invalid value; a text needs quotes: room = "…"',
    "platforms.mine.room = t0p": 'bot.toml:1: Invalid value; a text needs quotes: platforms.mine.room = "…"',
    "[limits]\ntools = []": (
        "bot.toml:2: there is no key limits.tools; tools belongs above the first table. Allowed are: messages, person"
    ),
    "messages = 3": (
        "bot.toml:1: there is no key messages; messages belongs in [limits]. "
        "Allowed are: model, memory, pace, late, tools, may, keep, also, limits, prices"
    ),
    'pace = "x"\nlate = 1\nzzz = 2\n[limits]\nmessages = 0': (
        "bot.toml:3: there is no key zzz. "
        "Allowed are: model, memory, pace, late, tools, may, keep, also, limits, prices\n"
        "bot.toml:1: pace must be a number, not 'x'\n"
        "bot.toml:2: late must be one of hold, resend, not 1\n"
        "bot.toml:5: limits.messages must be a whole number from 1 to 1000, not 0"
    ),
    "pace = nan": "bot.toml:1: pace must be a number, not nan",
    "keep = inf": 'bot.toml:1: keep must be a time such as "30 days" or "12h", not inf',
    "\npace = " + "9" * 5000: "bot.toml:2: a value is too long or nested too deeply",
    "pace = 1\ntools = " + "[" * 5000 + "]" * 5000: "bot.toml:2: a value is too long or nested too deeply",
    '"a\\n\\u001b[31m" = 1': (
        'bot.toml:1: there is no key "a\\n\\u001b[31m". '
        "Allowed are: model, memory, pace, late, tools, may, keep, also, limits, prices"
    ),
    '[[limits]]\nkey = "of mine"': "bot.toml:1: limits must be a table: [limits], not a list of tables",
    "pace = 1\npace = 2": "bot.toml:2: Cannot overwrite a value",
    'model = "': "bot.toml:1: Unterminated string",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_wrong_in_a_file_is_one_line_with_its_place(text: str) -> None:
    assert refusal(text) == REFUSED[text]


@pytest.mark.parametrize(
    ("variable", "value", "line"),
    [
        ("TERTULIA_PACE", "fast", "TERTULIA_PACE must be a number, not 'fast'"),
        ("TERTULIA_MEMORY", "perhaps", "TERTULIA_MEMORY must be true or false, not 'perhaps'"),
        ("HISTORY", "x", "HISTORY must be a whole number from 1 to 1000, not 'x'"),
        (
            "TERTULIA_LIMITS_MESSAGES",
            "9" * 30,
            f"TERTULIA_LIMITS_MESSAGES must be a whole number from 1 to 1000, not '{'9' * 30}'",
        ),
        (
            "TERTULIA_ALSO",
            "x:y",
            "TERTULIA_ALSO must be a function, as \"module:name\", not 'x:y' (there is no module of x:y)",
        ),
    ],
)
def test_what_is_wrong_in_a_variable_names_it(variable: str, value: str, line: str) -> None:
    assert refusal("", {variable: value}) == line


def test_the_keys_have_names_variables_and_words_for_what_is_allowed() -> None:
    keys = list(keys_of(Bot))
    assert [key.name for key in keys] == [
        *"model memory pace late tools may keep also limits.messages".split(),
        *"limits.person.tokens limits.person.money prices".split(),
    ]
    tokens = keys[9]
    assert isinstance(tokens, Key)
    assert (tokens.variable, tokens.allowed, tokens.default) == (
        "TERTULIA_LIMITS_PERSON_TOKENS",
        "a whole number",
        None,
    )


LINES = '''model = "a"
text = """
[limits]
pace = 1
"""
[limits]  # [pace]
"messages" = 3
person.tokens = 4

[ prices . "my model" ]
money = 1
# """ is no beginning of a text, and \u2028 no end of a line
other = [
["limits"],
"third = 3",
]
quoted = "\'\'\'"
"l\\u0061te" = 2
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("model",), 1),
        (("text",), 2),
        (("pace",), None),
        (("limits",), 6),
        (("limits", "messages"), 7),
        (("limits", "person", "tokens"), 8),
        (("limits", "person"), 8),
        (("prices",), 10),
        (("prices", "my model"), 10),
        (("prices", "my model", "money"), 11),
        (("prices", "my model", "other"), 13),
        (("prices", "my model", "third"), None),
        (("prices", "my model", "quoted"), 17),
        (("prices", "my model", "late"), 18),
    ],
)
def test_a_key_is_found_in_the_text(path: tuple[str, ...], line: int | None) -> None:
    assert line_of(LINES, path) == line


@pytest.mark.parametrize(
    ("written", "time"),
    [
        ("30 days", timedelta(days=30)),
        ("1 day", timedelta(days=1)),
        ("12h", timedelta(hours=12)),
        ("90 s", timedelta(seconds=90)),
        ("1.5 weeks", timedelta(weeks=1.5)),
        (3600, timedelta(hours=1)),
        ("0 days", timedelta(0)),
    ],
)
def test_a_duration_is_read(written: object, time: timedelta) -> None:
    assert parse_duration(written) == time


@pytest.mark.parametrize(
    "written", ["", "days", "3 months", "-1 day", True, -1, None, "9" * 400 + " days", [], math.inf]
)
def test_what_is_no_duration_is_refused(written: object) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (no text of its own: who asks writes it)
        parse_duration(written)


def refusal_or_none(text: str, environment: dict[str, str]) -> str | None:
    try:
        read(text, environment)
    except InvalidValue as error:
        return str(error)
    return None


@given(st.text())
def test_any_text_is_read_or_refused_in_a_line_for_each_mistake(text: str) -> None:
    lines = (refusal_or_none(text, {}) or "bot.toml:1: none").split("\n")

    assert all(re.fullmatch(r"bot\.toml:\d+: .+", line) for line in lines)


def test_of_many_mistakes_ten_are_shown() -> None:
    assert len(refusal("".join(f"key{number} = 1\n" for number in range(50))).split("\n")) == 10


@given(st.sampled_from([key.variable for key in keys_of(Bot)]), st.text())
def test_any_variable_is_read_or_refused_in_one_line(variable: str, value: str) -> None:
    assert re.fullmatch(rf"{variable} must be .+", refusal_or_none("", {variable: value}) or f"{variable} must be set")


def test_a_secret_is_not_shown() -> None:
    reader = ConfigReader("token = 1234", file="bot.toml", environment={}, load=load)
    with pytest.raises(InvalidValue) as refused:
        reader.refuse(("platforms", "mine", "token"), 1234, "a text")
    assert str(refused.value) == "bot.toml:1: platforms.mine.token must be a text, not what is there"
