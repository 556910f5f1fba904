"""`tertulia render` shows the exact request a profile makes of a conversation."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli.command import tertulia, tertulia_process
from prompt.scenarios import SCENARIOS, Scenario
from tertulia.wire import lint

DOCUMENT: dict[str, Any] = {
    "persona": "You are gryag.",
    "now": "2025-01-15T14:30:00+02:00",
    "timezone": "Europe/Kyiv",
    "chat": {"platform": "telegram", "id": "-100123", "kind": "group", "title": "Друзі"},
    "messages": [
        {
            "id": "1",
            "author": {"id": "987654321", "name": "Alice", "username": "alice_ua"},
            "sent_at": "2025-01-15T14:27:10+02:00",
            "parts": [{"kind": "text", "text": "Як справи, гряг?"}],
        },
        {
            "id": "2",
            "author": {"id": "42", "name": "gryag", "persona": "gryag"},
            "sent_at": "2025-01-15T14:27:15+02:00",
            "parts": [{"kind": "text", "text": "Не набридай."}],
        },
        {
            "id": "3",
            "author": {"id": "111222333", "name": "Bob"},
            "sent_at": "2025-01-15T14:28:40+02:00",
            "parts": [{"kind": "text", "text": "Привіт, як справи?"}],
        },
        {
            "id": "4",
            "author": {"id": "987654321", "name": "Alice", "username": "alice_ua"},
            "sent_at": "2025-01-15T14:29:58+02:00",
            "parts": [{"kind": "text", "text": "А що тут відбувається?"}],
            "reply_to": "3",
        },
    ],
    "target": "4",
    "memories": ["User is from Kyiv", "Works as a software developer", "Likes coffee"],
    "profile": "Software developer from Kyiv, drinks coffee.",
    "key_facts": {"Location": "Kyiv", "Occupation": "Software Developer"},
    "relevant": [
        {"text": "Previous conversation about coffee", "score": 0.82},
        {"text": "Mentioned that Kyiv is cold", "score": 0.75},
    ],
    "episodes": [{"topic": "First meeting", "summary": "User introduced themselves"}],
}
INSTRUCTION = """\
# Persona
You are gryag.

# Current Time
The current time is: Wednesday, January 15, 2025 at 14:30:00

## Current User
**Name**: Alice
**User ID**: 987654321
**Username**: @alice_ua

## Reply Context
**Replying to**: Bob (ID: 111222333)
**Original message**: Привіт, як справи?

# Memories about Alice (ID: 987654321)
- User is from Kyiv
- Works as a software developer
- Likes coffee

## User Profile
Software developer from Kyiv, drinks coffee.

## Key Facts
- Location: Kyiv
- Occupation: Software Developer

## Relevant Past Context
- [Relevance: 0.82] Previous conversation about coffee
- [Relevance: 0.75] Mentioned that Kyiv is cold

## Memorable Events
- **Topic**: First meeting
- **Summary**: User introduced themselves"""
NATIVE = {
    "systemInstruction": {"parts": [{"text": INSTRUCTION}]},
    "contents": [
        {"role": "user", "parts": [{"text": "Як справи, гряг?"}]},
        {"role": "model", "parts": [{"text": "Не набридай."}]},
        {"role": "user", "parts": [{"text": "Привіт, як справи?"}]},
        {"role": "user", "parts": [{"text": "А що тут відбувається?"}]},
    ],
}


def rendered(profile: str, *options: str, document: Any = None, **environment: str) -> Any:
    done = tertulia("render", profile, *options, given=json.dumps(document or DOCUMENT), **environment)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_native_is_exact() -> None:
    assert rendered("native") == NATIVE


def test_native_to_openai() -> None:
    assert rendered("native", "--to", "openai", "--model", "gpt-4o") == {
        "model": "gpt-4o",
        "messages": [
            {"role": "system", "content": INSTRUCTION},
            {"role": "user", "content": "Як справи, гряг?"},
            {"role": "assistant", "content": "Не набридай."},
            {"role": "user", "content": "Привіт, як справи?"},
            {"role": "user", "content": "А що тут відбувається?"},
        ],
    }


@pytest.mark.parametrize("profile", ["layered", "tail", "native", "block", "headers", "single"])
@pytest.mark.parametrize("model", ["gemini-2.0-flash", "gemini-3.8-flash", "gemini-4-argon"])
def test_every_profile_renders_a_legal_request(profile: str, model: str) -> None:
    request = rendered(profile, "--to", "gemini", "--model", model)

    assert lint(json.dumps(request).encode(), model=model, strict=True) == []


@pytest.mark.parametrize("scenario", SCENARIOS[::4], ids=lambda scenario: scenario.number)
def test_single_writes_what_the_scenarios_say(scenario: Scenario) -> None:
    written = rendered("single", "--personality", scenario.personality, document=scenario.content)

    assert written == {"model": "any-model", "messages": [{"role": "user", "content": scenario.said}]}


def test_single_of_a_conversation_is_the_whole_request() -> None:
    request = rendered("single", "--model", "their-model")

    [instruction, message] = request.pop("messages")
    assert request == {"model": "their-model"}
    assert instruction["role"] == "system"
    assert instruction["content"].startswith("You are gryag.")
    words = 'А що тут відбувається?\nBob said:\n"Привіт, як справи?"'
    assert message == {"role": "user", "content": [{"type": "text", "text": words}]}


def test_single_shows_the_words_that_a_service_gets_for_audio_it_refuses() -> None:
    [told] = [scenario for scenario in SCENARIOS if scenario.number == "1.3"]

    done = tertulia_process("render", "single", "--model", "gpt-5.6", given=json.dumps(told.content))

    words = [{"type": "text", "text": "Please transcribe this audio"}, {"type": "text", "text": "[audio]"}]
    assert json.loads(done.stdout) == {"model": "gpt-5.6", "messages": [{"role": "user", "content": words}]}
    assert "turns[0].parts[1]: audio became words: the service takes none" in done.stderr


def test_the_environment_turns_native_into_block() -> None:
    request = rendered(
        "native", ENABLE_SYSTEM_CONTEXT_BLOCK="true", SYSTEM_CONTEXT_BLOCK_MAX_MESSAGES="10",
        SYSTEM_CONTEXT_BLOCK_INCLUDE_META="false",
    )  # fmt: skip

    instruction = request["systemInstruction"]["parts"][0]["text"]
    assert instruction == (
        f"{INSTRUCTION}\n\nHere is the current conversation context (last up to 10 messages):\n\n```\n"
        "Alice: Як справи, гряг?\nbot: Не набридай.\nBob: Привіт, як справи?\n"
        "Alice: А що тут відбувається? [REPLY TO THIS]\n```\n\n[RESPOND]"
    )
    assert request["contents"] == [{"role": "user", "parts": [{"text": "А що тут відбувається?"}]}]


def test_the_environment_turns_the_levels_off() -> None:
    instruction = rendered("native", ENABLE_MULTI_LEVEL_CONTEXT="false")["systemInstruction"]["parts"][0]["text"]

    assert instruction == INSTRUCTION.partition("\n\n## User Profile")[0]


def test_a_file_is_read_too(tmp_path: Path) -> None:
    file = tmp_path / "conversation.json"
    file.write_text(json.dumps(DOCUMENT))

    assert json.loads(tertulia("render", "native", str(file)).stdout) == NATIVE


@pytest.mark.parametrize(
    ("arguments", "given", "complaint"),
    [
        (["nope"], "{}", "no profile is called 'nope'; there are layered, tail, native, block, headers, single"),
        (["talk.json"], "", "no profile is called 'talk.json'; there are layered"),
        (["native", "--to", "x"], "{}", "--to is gemini or openai, not 'x'"),
        (["native"], "", "the input is no JSON: Input data was truncated"),
        (["native"], "{}", "the conversation cannot be read: Object missing required field `messages`"),
        (["native", "no.json"], "", "cannot read no.json: No such file or directory"),
        (["single"], "7", "content is a number; it should be text or a list of elements"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], given: str, complaint: str) -> None:
    done = tertulia("render", *arguments, given=given)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"tertulia: {complaint}")
    assert done.stderr.count("\n") == 1


def test_the_log_is_shown_where_it_is_asked_for() -> None:
    done = tertulia_process("render", "native", given=json.dumps(DOCUMENT), LOGLEVEL="debug")

    told = f"history_length=3 system_context_length={len(INSTRUCTION)}"
    assert (done.returncode, done.stderr) == (0, f"DEBUG tertulia: Using multi-level context for Gemini {told}\n")


def test_a_log_level_that_is_none_is_one_line() -> None:
    done = tertulia("render", "native", given="{}", LOGLEVEL="loud")

    expected = "tertulia: LOGLEVEL is DEBUG, INFO, WARNING or ERROR, not 'loud'\n"
    assert (done.returncode, done.stderr) == (2, expected)


def test_a_bad_setting_is_one_line() -> None:
    done = tertulia("render", "native", given=json.dumps(DOCUMENT), SYSTEM_CONTEXT_BLOCK_MAX_MESSAGES="5")

    expected = "tertulia: SYSTEM_CONTEXT_BLOCK_MAX_MESSAGES must be a whole number from 10 to 200, not '5'\n"
    assert (done.returncode, done.stderr) == (2, expected)
