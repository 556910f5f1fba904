"""What looks like a key is not shown."""

import pytest

from tertulia.redaction import redact_keys


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("no connection: [Errno 111] Connect call failed", "no connection: [Errno 111] Connect call failed"),
        ("GET https://api.example/v1?limit=5&api_key=abc HTTP", "GET https://api.example/v1?limit=5&api_key=*** HTTP"),
        ("https://me:hunter2@example.org/x", "https://***@example.org/x"),
        ("http://bot:p@ss@proxy:81/bot1", "http://***@proxy:81/bot1"),
        ("GET https://example.org?to=a@b.c", "GET https://example.org?to=a@b.c"),
        ("its key is 9f86d081884c7d659a2feaa0c55ad015", "its key is ***"),
        ("sending 0123456789abcdef0123-draft-end is unknown", "sending 0123456789abcdef0123-draft-end is unknown"),
        (
            "reminder-0123456789abcdef0123-1-call_9qUw3KdLm2xYzAbC-0 failed",
            "reminder-0123456789abcdef0123-1-call_9qUw3KdLm2xYzAbC-0 failed",
        ),
        ("Bearer sk-abcdefabcdefabcdef", "Bearer ***"),
        ("/bot123456789:AAF0123456789abcdefghijklmnop/send", "/bot123456789:***/send"),
    ],
)
def test_keys_are_taken_out_and_nothing_else(text: str, shown: str) -> None:
    assert redact_keys(text) == shown
