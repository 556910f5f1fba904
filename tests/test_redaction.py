"""What looks like a key is not shown."""

import pytest

from tertulia.redaction import redact_keys


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("no connection: [Errno 111] Connect call failed", "no connection: [Errno 111] Connect call failed"),
        ("GET https://api.example/v1?limit=5&api_key=abc HTTP", "GET https://api.example/v1?limit=5&api_key=*** HTTP"),
        ("https://me:hunter2@example.org/x", "https://***@example.org/x"),
        ("Bearer sk-abcdefabcdefabcdef", "Bearer ***"),
        ("/bot123456789:AAF0123456789abcdefghijklmnop/send", "/bot123456789:***/send"),
    ],
)
def test_keys_are_taken_out_and_nothing_else(text: str, shown: str) -> None:
    assert redact_keys(text) == shown
