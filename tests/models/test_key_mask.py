"""A key that a service repeats is hidden, in whatever form."""

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from itertools import pairwise
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sizes import in_time
from tertulia.models.base import Finish, Response
from tertulia.models.key_mask import MIN_BASE64, MIN_KEY_IN_WORD, PLACEHOLDERS, Mask, StreamMask, secrets_in
from tertulia.parts import Text, ToolCall
from tertulia.turns import model

KEY = 'AIza-Sy"9/x_Q.7+k=='
CHARACTERS = st.characters(min_codepoint=33, max_codepoint=126)
LONG_KEYS = st.text(CHARACTERS, min_size=MIN_BASE64, max_size=60)
KEYS = st.text(CHARACTERS, min_size=MIN_KEY_IN_WORD, max_size=60).filter(
    lambda key: key.casefold() not in PLACEHOLDERS and not (key.isdigit() and len(key) < MIN_BASE64)
)
FORMS: dict[str, Callable[[str], str]] = {
    "as it is": lambda key: key,
    "in JSON": lambda key: json.dumps(key)[1:-1],
    "in JSON, all escaped": lambda key: "".join(f"\\u{ord(char):04X}" for char in key),
    "in JSON with escaped slashes": lambda key: json.dumps(key)[1:-1].replace("/", "\\/"),
    "in JSON within JSON": lambda key: json.dumps(json.dumps(key)[1:-1])[1:-1],
    "in an address": lambda key: quote(key, safe=""),
    "in an address, all escaped": lambda key: "".join(f"%{ord(char):02x}" for char in key),
    "over two lines": lambda key: f"{key[:2]}\n{key[2:]}",
    "over two lines in JSON": lambda key: json.dumps(f"{key[:2]}\n{key[2:]}")[1:-1],
}


@pytest.mark.parametrize("form", FORMS)
@given(key=KEYS)
def test_every_form_of_a_key_is_hidden(form: str, key: str) -> None:
    written = FORMS[form](key).encode()

    assert Mask([key])(b'{"said":"' + written + b'"}') == b'{"said":"***"}'


@given(key=LONG_KEYS, before=st.text(max_size=5))
def test_base64_of_a_key_is_hidden_wherever_it_begins(key: str, before: str) -> None:
    for encode in (b64encode, urlsafe_b64encode):
        masked = Mask([key])(encode(f"{before}{key}".encode()))

        assert b"***" in masked


@given(st.binary(max_size=200))
def test_what_holds_no_key_stays_as_it_is(data: bytes) -> None:
    assert Mask([KEY])(data) == data


@pytest.mark.parametrize(
    ("key", "said", "shown"),
    [
        ("shortkey77", b'{"said":"it is shortkey77."}', b'{"said":"it is ***."}'),
        ("hunt", b"ghunter", b"g***er"),
        ("k7", b"the key k7, not k77 or ok7", b"the key ***, not k77 or ok7"),
        ("any", b"any company", b"any company"),  # of the simulators
        ("Ollama", b"Ollama runs here", b"Ollama runs here"),  # no secret: the server needs no key
    ],
)
def test_a_key_is_hidden_however_short_unless_it_only_stands_for_one(key: str, said: bytes, shown: bytes) -> None:
    assert Mask([key])(said) == shown


def test_a_key_spread_over_pieces_is_hidden_in_the_whole() -> None:
    call = ToolCall(name="f", args={"key": KEY}, id="c")
    response = Response(
        turn=model(f"it is {KEY}.", call), finish=Finish(outcome="complete"), raw={"text": KEY, "other": 1}
    )

    assert Mask([KEY]).response(response) == Response(
        turn=model(Text(text="it is ***."), ToolCall(name="f", args={"key": "***"}, id="c")),
        finish=Finish(outcome="complete"),
        raw={"text": "***", "other": 1},
    )


@st.composite
def spread(draw: st.DrawFn) -> tuple[str, str, list[str]]:
    """A key, a text that holds forms of it, and that text in pieces."""
    key = draw(KEYS)
    forms = st.sampled_from([*FORMS.values(), lambda key: b64encode(key.encode()).decode()])
    pieces = st.one_of(
        st.text(max_size=6), forms.map(lambda form: form(key)), st.sampled_from([key[:5], key[1:], "\\"])
    )
    text = "".join(draw(st.lists(pieces, max_size=5)))
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=8)))
    return key, text, [text[start:end] for start, end in pairwise([0, *cuts, len(text)])]


@given(spread())
def test_a_key_spread_over_pieces_is_hidden_as_they_come(given: tuple[str, str, list[str]]) -> None:
    key, text, pieces = given
    mask = Mask([key])
    stream = StreamMask(mask)

    shown = [*map(stream.feed, pieces), stream.flush()]

    assert "".join(shown) == mask.text(text)


def test_only_what_may_become_a_key_is_held_back() -> None:
    stream = StreamMask(Mask(["sk-abcdefghijkl"]))

    shown = [stream.feed(piece) for piece in ("No", "; it is s", "k-abc", "def! s", "k-abcdefgh", "ijkl.", " 5 %")]

    assert shown == ["No", "; it is ", "", "sk-abcdef! ", "", "***.", " 5 "]
    assert stream.flush() == "%"


def test_an_error_shown_as_a_cause_has_its_words_masked() -> None:
    error = Mask([KEY]).error(ValueError(f"no such key: {KEY}", 3))

    assert error.args == ("no such key: ***", 3)


def test_what_is_secret_in_a_request() -> None:
    headers = {"Authorization": "Bearer abc", "x-goog-api-key": " def ", "accept": "application/json"}

    assert secrets_in(headers, "https://u:pass@e.test/v1?api_key=ghi&alt=sse") == ("abc", "def", "ghi", "pass")


@in_time
def test_hostile_answers_are_looked_through_in_time() -> None:
    units = ["\\", "\\u00", "%25", "\\n", "\n", KEY[0], f"{KEY[0]}\n", f"{KEY[0]}\\n", f"{KEY[:7]}\\n", KEY[:-1]]
    mask = Mask([KEY])
    for unit in units:
        data = unit.encode() * (1_000_000 // len(unit))

        assert mask(data) == data
        assert mask.open_key_start(data) <= len(data)


@pytest.mark.parametrize("key", ["1234", "1", "0", "content", "choices"])
def test_a_short_key_leaves_the_numbers_and_fields_of_an_answer(key: str) -> None:
    body = b'{"created":1712345678,"index": 0,"n":[1,1234],"choices":[{"message":{"content":"hi"}}]}'

    assert Mask([key])(body) == body
    assert Mask([key])(f'{{"error":"bad key {key} given"}}'.encode()) == b'{"error":"bad key *** given"}'
