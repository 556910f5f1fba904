"""Behaviours by name, and values that fit schemas."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from palaver.sim.choosing import chosen_behaviour
from palaver.sim.fitting import fitting
from palaver.sim.gemini import Actor, Echo, Script, behaviour_named
from palaver.sim.gemini.tokens import text_tokens


def test_behaviours_have_names(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text('["hello"]')

    assert isinstance(behaviour_named("actor"), Actor)
    assert isinstance(behaviour_named("echo"), Echo)
    assert isinstance(behaviour_named(f"script:{script}"), Script)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dance", "unknown behaviour 'dance': expected actor, echo or script:FILE"),
        ("script:", "unknown behaviour 'script:': expected actor, echo or script:FILE"),
        ("script:/nowhere", "cannot read the script /nowhere: No such file or directory"),
    ],
)
def test_an_unknown_behaviour_is_named_in_one_line(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as raised:
        behaviour_named(text)

    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "answers"),
    [
        ('["one", [{"text": "two"}]]', ["one", [{"text": "two"}]]),
        ('[\n  "one",\n  "two"\n]\n', ["one", "two"]),
        ('"one"\n\n{"candidates": []}\n', ["one", {"candidates": []}]),
        ('[{"functionCall": {"name": "now"}}]\r\n"two"', [[{"functionCall": {"name": "now"}}], "two"]),
        ('"one\u2028more"\n["two"]', ["one\u2028more", ["two"]]),
        ('{\n"candidates": []\n}', [{"candidates": []}]),
    ],
)
def test_a_script_is_one_list_or_has_an_answer_a_line(tmp_path: Path, text: str, answers: list[Any]) -> None:
    path = tmp_path / "script"
    path.write_text(text, encoding="utf-8")

    assert chosen_behaviour(f"script:{path}") == ("script", answers)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[5]", "is wrong at answer 1: expected a text, an object or a list"),
        ("[", "is neither a JSON list nor JSON lines: line 1: "),
        ('["one"]\n\n["two"', "is neither a JSON list nor JSON lines: line 3: "),
        ("", "holds no answer"),
        ("[]", "holds no answer"),
    ],
)
def test_a_script_that_is_none_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "script"
    path.write_text(text)

    with pytest.raises(ValueError, match=f"^the script {path} {complaint}"):
        chosen_behaviour(f"script:{path}")


def example(schema: dict[str, Any], seed: int = 0) -> Any:
    return fitting(schema, str(seed))


@pytest.mark.parametrize("seed", range(20))
def test_values_fit_their_schema(seed: int) -> None:
    schema = {
        "type": "OBJECT",
        "properties": {
            "name": {"type": "STRING", "min_length": 12, "maxLength": 20},
            "age": {"type": "INTEGER", "minimum": 18, "maximum": 19},
            "ratio": {"type": ["number", "null"], "exclusiveMinimum": 0, "maximum": 1},
            "even": {"type": "integer", "multipleOf": 2, "minimum": 3, "maximum": 9},
            "kind": {"anyOf": [{"const": "a"}, {"enum": ["b"]}]},
            "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}, "minItems": 1, "maxItems": 3},
            "when": {"type": "string", "format": "date"},
        },
        "required": ["name", "age", "ratio", "even", "kind", "tags", "when"],
        "$defs": {"tag": {"type": "boolean"}},
    }

    value = example(schema, seed)

    assert 12 <= len(value["name"]) <= 20
    assert value["age"] in (18, 19)
    assert 0 < value["ratio"] <= 1
    assert value["even"] in (4, 6, 8)
    assert value["kind"] in ("a", "b")
    assert 1 <= len(value["tags"]) <= 3
    assert all(isinstance(tag, bool) for tag in value["tags"])
    assert date.fromisoformat(value["when"])


@pytest.mark.parametrize("seed", range(20))
def test_a_schema_that_holds_itself_ends(seed: int) -> None:
    tree = {"type": "object", "properties": {"next": {"$ref": "#"}, "all": {"type": "array", "items": {"$ref": "#"}}}}

    assert isinstance(example(tree, seed), dict)


def test_tokens_weigh_alphabets_differently() -> None:
    assert [text_tokens(text) for text in ("", "a", "abcdefgh", "привет", "漢字", "漢字ab")] == [0, 1, 2, 3, 2, 3]
