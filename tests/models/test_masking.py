"""A key that a service repeats is hidden, in whatever form."""

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.models.base import Finish, Response
from palaver.models.masking import IN_ANSWER, IN_REFUSAL, Mask, secrets_in
from palaver.parts import Text, ToolCall
from palaver.turns import model

KEY = 'AIza-Sy"9/x_Q.7+k=='
KEYS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=IN_ANSWER, max_size=60)
FORMS: dict[str, Callable[[str], str]] = {
    "as it is": lambda key: key,
    "in JSON": lambda key: json.dumps(key)[1:-1],
    "in JSON, all escaped": lambda key: "".join(f"\\u{ord(char):04X}" for char in key),
    "in JSON with escaped slashes": lambda key: json.dumps(key)[1:-1].replace("/", "\\/"),
    "in JSON within JSON": lambda key: json.dumps(json.dumps(key)[1:-1])[1:-1],
    "in an address": lambda key: quote(key, safe=""),
    "in an address, all escaped": lambda key: "".join(f"%{ord(char):02x}" for char in key),
    "over two lines": lambda key: f"{key[:7]}\n{key[7:]}",
    "over two lines in JSON": lambda key: f"{json.dumps(key[:7])[1:-1]}\\n{json.dumps(key[7:])[1:-1]}",
}


@pytest.mark.parametrize("form", FORMS)
@given(key=KEYS)
def test_every_form_of_a_key_is_hidden(form: str, key: str) -> None:
    written = FORMS[form](key).encode()

    assert Mask([key], shortest=IN_ANSWER)(b'{"said":"' + written + b'"}') == b'{"said":"***"}'


@given(key=KEYS, before=st.text(max_size=5))
def test_base64_of_a_key_is_hidden_wherever_it_begins(key: str, before: str) -> None:
    for encode in (b64encode, urlsafe_b64encode):
        masked = Mask([key], shortest=IN_ANSWER)(encode(f"{before}{key}".encode()))

        assert b"***" in masked


@given(st.binary(max_size=200))
def test_what_holds_no_key_stays_as_it_is(data: bytes) -> None:
    assert Mask([KEY], shortest=IN_ANSWER)(data) == data


def test_short_keys_are_hidden_in_refusals_alone() -> None:
    answer = b"ollama runs here"

    assert Mask(["ollama"], shortest=IN_ANSWER)(answer) == answer
    assert Mask(["ollama"], shortest=IN_REFUSAL)(answer) == b"*** runs here"


def test_a_key_spread_over_pieces_is_hidden_in_the_whole() -> None:
    call = ToolCall(name="f", args={"key": KEY}, id="c")
    response = Response(
        turn=model(f"it is {KEY}.", call), finish=Finish(outcome="complete"), raw={"text": KEY, "other": 1}
    )

    assert Mask([KEY], shortest=IN_ANSWER).response(response) == Response(
        turn=model(Text(text="it is ***."), ToolCall(name="f", args={"key": "***"}, id="c")),
        finish=Finish(outcome="complete"),
        raw={"text": "***", "other": 1},
    )


def test_an_error_shown_as_a_cause_has_its_words_masked() -> None:
    error = Mask([KEY], shortest=IN_ANSWER).error(ValueError(f"no such key: {KEY}", 3))

    assert error.args == ("no such key: ***", 3)


def test_what_is_secret_in_a_request() -> None:
    headers = {"Authorization": "Bearer abc", "x-goog-api-key": " def ", "accept": "application/json"}

    assert secrets_in(headers, "https://u:pass@e.test/v1?api_key=ghi&alt=sse") == ("abc", "def", "ghi", "pass")
