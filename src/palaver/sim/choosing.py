"""Choosing a simulator's behaviour by name, as on the command line."""

from pathlib import Path
from typing import Any, Literal

import orjson

Kind = Literal["actor", "echo", "script"]


def chosen_behaviour(text: str) -> tuple[Kind, list[Any]]:
    """What *text* names, and the answers of a script: `actor`, `echo`, or `script:FILE` of JSON or JSON Lines."""
    kind, _, path = text.partition(":")
    match text, kind, path:
        case "actor", _, _:
            return "actor", []
        case "echo", _, _:
            return "echo", []
        case _, "script", str() if path:
            return "script", _answers_in(Path(path))
        case _:
            raise ValueError(f"unknown behaviour {text!r}: expected actor, echo or script:FILE")


def _answers_in(path: Path) -> list[Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ValueError(f"cannot read the script {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"the script {path} is not text: {error}") from error
    try:
        answers = _list_or_lines(text)
    except ValueError as error:
        raise ValueError(f"the script {path} is neither a JSON list nor JSON lines: {error}") from error
    if not answers:
        raise ValueError(f"the script {path} holds no answer")
    for number, answer in enumerate(answers, start=1):
        if not isinstance(answer, str | dict | list):
            raise ValueError(f"the script {path} is wrong at answer {number}: expected a text, an object or a list")
    return answers


def _list_or_lines(text: str) -> list[Any]:
    """The answers of a text that is one list of them, or has one a line, each of which may be a list."""
    try:
        whole = orjson.loads(text)
    except ValueError:
        return [_answer_at(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    return whole if isinstance(whole, list) else [whole]


def _answer_at(number: int, line: str) -> Any:
    try:
        return orjson.loads(line)
    except ValueError as error:
        raise ValueError(f"line {number}: {str(error).partition(': line')[0]}") from error
