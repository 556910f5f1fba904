"""`tertulia import` reads what other programs kept, says what it took it for, and what it left out."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cli.command import tertulia, tertulia_process
from tertulia.turns import Turn, model, user

COMPACT = "Alice#987654: Хто тут?\nBob#111222 → Alice#987654: [Image] я\ngryag: І я.\nAlice#987654: Добре.\n[RESPOND]\n"
CONTENTS = [{"role": "user", "parts": [{"text": "hi"}]}, {"role": "model", "parts": [{"text": "yes"}]}]
CALL = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]}


def test_compact_lines_are_rendered(tmp_path: Path) -> None:
    file = tmp_path / "old.txt"
    file.write_text(COMPACT, encoding="utf-8")

    read = tertulia_process("import", str(file))
    rendered = tertulia("render", "native", given=read.stdout)

    assert (read.returncode, read.stderr) == (0, "tertulia: read as compact\ntertulia: the agent is gryag\n")
    assert json.loads(rendered.stdout)["contents"] == [
        {"role": "user", "parts": [{"text": "Хто тут?"}]},
        {"role": "user", "parts": [{"text": "[photo]"}, {"text": "я"}]},
        {"role": "model", "parts": [{"text": "І я."}]},
        {"role": "user", "parts": [{"text": "Добре."}]},
    ]


def test_contents_become_turns() -> None:
    done = tertulia("import", "-", given=json.dumps(CONTENTS))

    assert (done.returncode, done.stderr) == (0, "tertulia: read as genai\n")
    assert msgspec.json.decode(done.stdout, type=list[Turn]) == [user("hi"), model("yes")]


def test_standard_input_is_read_where_no_file_is_named() -> None:
    done = tertulia("import", given=json.dumps(CONTENTS))

    assert (done.returncode, done.stdout) == (0, tertulia("import", "-", given=json.dumps(CONTENTS)).stdout)


def test_the_instruction_stands_beside_the_turns() -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "name": "Al", "content": "hi"}]

    done = tertulia("import", "-", "--from", "openai", given=json.dumps(messages))

    assert json.loads(done.stdout) == {
        "system": "Be brief.",
        "turns": [{"role": "user", "parts": [{"kind": "text", "text": "hi"}]}],
    }
    assert done.stderr == "tertulia: left out the names of those who speak; --to messages keeps them\n"


def test_the_model_and_the_agent_can_be_said() -> None:
    turns = tertulia("import", "-", "--model", "gemini-3.8-flash", given=json.dumps(CONTENTS))
    messages = tertulia("import", "-", "--to", "messages", "--agent", "gryag", given=json.dumps([*CONTENTS, CALL]))

    assert msgspec.json.decode(turns.stdout, type=list[Turn])[1] == model("yes", by="gemini-3.8-flash")
    assert json.loads(messages.stdout)["messages"][1]["author"] == {"id": "gryag", "name": "gryag", "persona": "gryag"}
    assert messages.stderr == (
        "tertulia: read as genai\n"
        "tertulia: left out thoughts, tool calls and results (1), which are no messages; --to turns keeps them\n"
    )


def test_blocks_become_a_document_or_turns_that_say_who_speaks() -> None:
    block = {"role": "user", "parts": [{"text": '[meta] chat_id=-5 message_id=3 user_id=7 name="Al"'}, {"text": "hi"}]}

    document = tertulia("import", "-", given=json.dumps([block]))
    turns = tertulia("import", "-", "--to", "turns", given=json.dumps([block]))

    assert json.loads(document.stdout)["messages"] == [
        {"id": "3", "author": {"id": "7", "name": "Al"}, "parts": [{"kind": "text", "text": "hi"}]}
    ]
    assert msgspec.json.decode(turns.stdout, type=list[Turn]) == [user("From: Al (7) — id: 3", "hi")]


def test_what_is_left_out_is_said() -> None:
    body: dict[str, Any] = {"contents": CONTENTS, "tools": [], "generationConfig": {}}

    done = tertulia("import", "-", "--from", "genai", given=json.dumps(body))

    assert done.stderr == "tertulia: left out, being neither turns nor instruction: tools, generationConfig\n"


@pytest.mark.parametrize(
    ("given", "arguments", "why"),
    [
        ("", ("-",), "there is nothing to read: the input is empty"),
        ("hello", ("-",), "line 1: neither JSON nor lines such as `Name#number: text`"),
        ("", ("/no/such/file",), "cannot read /no/such/file: No such file or directory"),
        ("[" * 100_000, ("-",), "the JSON is nested too deeply"),
        ('[{"parts": [5]}]', ("-",), "contents[0].parts[0]: a number, not a part"),
        ("[]", ("-", "--from", "xml"), "'xml' is no format we read: genai, openai, compact, meta"),
        ("[]", ("-", "--to", "xml"), "--to is turns or messages, not 'xml'"),
    ],
)
def test_what_is_wrong_is_one_line_and_status_two(given: str, arguments: tuple[str, ...], why: str) -> None:
    done = tertulia("import", *arguments, given=given)

    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"tertulia: {why}\n")


def test_help_has_an_example() -> None:
    done = tertulia("import", "--help")

    assert "Example: tertulia import ChatExport_2026-11-16/result.json --bot 123456" in done.stdout
