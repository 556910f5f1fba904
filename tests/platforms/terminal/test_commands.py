"""A line is a command or a message."""

import pytest

from palaver.platforms.terminal.commands import Command, understand


@pytest.mark.parametrize(
    ("line", "meaning"),
    [
        ("hello", "hello"),
        ("  hello \n there ", "hello \n there"),
        ("", ""),
        ("/help", Command(name="help")),
        ("/help  ", Command(name="help")),
        ("/model gemini-3.8-flash", Command(name="model", rest="gemini-3.8-flash")),
        ("/system Be kind.\nBe brief.", Command(name="system", rest="Be kind.\nBe brief.")),
        ("/system\nBe kind.", Command(name="system", rest="Be kind.")),
        ("/etc/hosts is a file", "/etc/hosts is a file"),
        (" /help", "/help"),
        ("/", "/"),
        ("// comment", "// comment"),
        ("what is /help?", "what is /help?"),
    ],
)
def test_a_line_is_understood(line: str, meaning: Command | str) -> None:
    assert understand(line) == meaning
