"""A line is a command or a message."""

import pytest

from tertulia.platforms.terminal.commands import MAX_WORDS, ChatCommand, parse_line, usage_error


@pytest.mark.parametrize(
    ("line", "meaning"),
    [
        ("hello", "hello"),
        ("  hello \n there ", "hello \n there"),
        ("", ""),
        ("/help", ChatCommand(name="help")),
        ("/help  ", ChatCommand(name="help")),
        ("/HELP", ChatCommand(name="help")),
        ("/Model Qwen", ChatCommand(name="model", rest="Qwen")),
        ("/model gemini-3.8-flash", ChatCommand(name="model", rest="gemini-3.8-flash")),
        ("/system Be kind.\nBe brief.", ChatCommand(name="system", rest="Be kind.\nBe brief.")),
        ("/system\nBe kind.", ChatCommand(name="system", rest="Be kind.")),
        ("/etc/hosts is a file", "/etc/hosts is a file"),
        (" /help", "/help"),
        ("/", "/"),
        ("// comment", "// comment"),
        ("what is /help?", "what is /help?"),
    ],
)
def test_a_line_is_understood(line: str, meaning: ChatCommand | str) -> None:
    assert parse_line(line) == meaning


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("/quit now", "/quit takes nothing after it; to send this as a message, put a space before it"),
        ("/exit 1", "/exit takes nothing after it; to send this as a message, put a space before it"),
        ("/help me", "/help takes nothing after it; to send this as a message, put a space before it"),
        ("/model a b c", "/model takes at most 2 words after it; to send this as a message, put a space before it"),
        ("/memory why a b", "/memory takes at most 2 words after it; to send this as a message, put a space before it"),
        ("/memory why a", None),
        ("/forget all that I said", None),
        ("/dance", "there is no /dance; /help shows what there is"),
        ("/model a b", None),
        ("/system Be kind, be brief.", None),
    ],
)
def test_what_a_command_does_not_take_is_said(line: str, complaint: str | None) -> None:
    command = parse_line(line)

    assert isinstance(command, ChatCommand)
    assert usage_error(command) == complaint


@pytest.mark.parametrize("name", MAX_WORDS)
def test_every_command_alone_is_right(name: str) -> None:
    assert usage_error(ChatCommand(name=name)) is None
