"""`tertulia lint` names what is wrong, for people and for machines."""

import json
from pathlib import Path

from cli.command import tertulia, tertulia_process

LEGAL = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
EMPTY: dict[str, object] = {"contents": []}


def test_a_legal_request_is_called_legal() -> None:
    done = tertulia_process("lint", "-", given=json.dumps(LEGAL))

    assert (done.returncode, done.stdout, done.stderr) == (0, "legal\n", "")


def test_violations_are_named_and_the_exit_status_is_one() -> None:
    done = tertulia("lint", "-", given=json.dumps(EMPTY))

    expected = "contents: no-contents: * GenerateContentRequest.contents: contents is not specified\n"
    assert (done.returncode, done.stdout) == (1, expected)


def test_json_for_machines() -> None:
    done = tertulia("lint", "-", "--json", given=json.dumps(EMPTY))

    message = "* GenerateContentRequest.contents: contents is not specified"
    assert json.loads(done.stdout) == [{"rule": "no-contents", "where": "contents", "message": message}]
    assert done.returncode == 1


def test_json_of_a_legal_request_is_an_empty_list(tmp_path: Path) -> None:
    file = tmp_path / "request.json"
    file.write_text(json.dumps(LEGAL))

    done = tertulia("lint", str(file), "--json")

    assert (done.returncode, done.stdout) == (0, "[]\n")


def test_the_request_itself_says_whose_rules() -> None:
    request = {"model": "o1-mini", "messages": [{"role": "system", "content": "x"}]}

    done = tertulia("lint", "-", given=json.dumps(request))

    assert "does not support 'system' with this model" in done.stdout


def test_model_and_strict_choose_the_rules() -> None:
    call = {"functionCall": {"name": "f", "args": {}}}
    result = {"functionResponse": {"name": "f", "response": {}}}
    request = {
        "contents": [*LEGAL["contents"], {"role": "model", "parts": [call]}, {"role": "user", "parts": [result]}]
    }

    found = {
        (model, strict): tertulia("lint", "-", "--model", model, *strict, given=json.dumps(request)).returncode
        for model in ("gemini-2.0-flash", "gemini-2.5-flash", "gemini-3.8-flash")
        for strict in ((), ("--strict",))
    }

    assert found == {
        ("gemini-2.0-flash", ()): 0,
        ("gemini-2.0-flash", ("--strict",)): 0,
        ("gemini-2.5-flash", ()): 0,
        ("gemini-2.5-flash", ("--strict",)): 1,
        ("gemini-3.8-flash", ()): 1,
        ("gemini-3.8-flash", ("--strict",)): 1,
    }
