"""Behaviours answer what a service asks them, and have names on the command line."""

from pathlib import Path
from typing import Any

import pytest

from tertulia.sim.behaviours import (
    Actor,
    Answer,
    Ask,
    Call,
    Echo,
    Function,
    FunctionResult,
    Raw,
    Script,
    ScriptExhausted,
    behaviour_named,
    script_answers,
)


def test_behaviours_have_names(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text('["hello"]')

    assert isinstance(behaviour_named("actor"), Actor)
    assert isinstance(behaviour_named("echo"), Echo)
    assert isinstance(behaviour_named(f"script:{script}"), Script)
    assert isinstance(behaviour_named(f"repeat:{script}"), Script)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "unknown behaviour '': expected actor, echo, script:FILE or repeat:FILE"),
        ("dance", "unknown behaviour 'dance': expected actor, echo, script:FILE or repeat:FILE"),
        ("script:", "unknown behaviour 'script:': expected actor, echo, script:FILE or repeat:FILE"),
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

    assert script_answers(path) == answers


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[5]", "is wrong at answer 1: expected a text, an object or a list"),
        ("7", "is wrong at answer 1: expected a text, an object or a list"),
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
        script_answers(path)


def an_ask(**changes: Any) -> Ask:
    return Ask(**({"model": "m", "request": {}, "last_text": "hi"} | changes))


LOOK, BOOK, NOOP = (Function(name=name) for name in ("look", "book", "noop"))


def test_a_script_gives_texts_and_the_json_of_the_service_in_order() -> None:
    script = Script(["one", {"candidates": []}, [{"text": "two"}]])

    answers = [script.answer(an_ask()) for _ in range(3)]

    assert answers == [Answer(text="one"), Raw({"candidates": []}), Raw([{"text": "two"}])]
    with pytest.raises(ScriptExhausted, match="The script has ended after 3 answers"):
        script.answer(an_ask())


def test_a_script_may_begin_again() -> None:
    script = Script(["one", "two"], repeat=True)

    assert [script.answer(an_ask()) for _ in range(5)] == [
        Answer(text=text) for text in ("one", "two", "one", "two", "one")
    ]
    with pytest.raises(ScriptExhausted):
        Script([], repeat=True).answer(an_ask())


def test_an_echo_gives_the_last_text_back() -> None:
    assert Echo().answer(an_ask(last_text="hello")) == Answer(text="hello")


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"steps": 0}, ["look", "book"]),
        ({"steps": 1}, ["noop", "look"]),
        ({"steps": 2}, []),
        ({"steps": 2, "must_call": True}, ["book", "noop"]),
        ({"steps": 1, "may_call_many": False}, ["book"]),
        ({"functions": []}, []),
    ],
)
def test_an_actor_calls_the_functions_in_turn(changes: dict[str, Any], names: list[str]) -> None:
    answer = Actor(steps=2, parallel=2).answer(an_ask(**({"functions": [LOOK, BOOK, NOOP]} | changes)))

    assert isinstance(answer, Answer)
    assert [call.name for call in answer.calls] == names
    assert bool(answer.text) == (not names)


POUR = Function(name="pour", description="Pours a drink into a cup.", schema={"properties": {"drink": {}}})
CALCULATE = Function(name="calculate", description="Evaluates an arithmetic expression.")
CLOCK = Function(name="current_time", description="Tells what time it is.")


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"last_text": "Pour me some tea, please."}, ["pour"]),
        ({"last_text": "I would like a drink"}, ["pour"]),
        ({"last_text": "Calculating is fun"}, ["calculate"]),
        ({"last_text": "What is 6 * 7?"}, ["calculate"]),
        ({"last_text": "What is the time?"}, ["current_time"]),
        ({"last_text": "From: Ann — 2026-11-18 16:40: @some_bot, tell me"}, []),
        ({"last_text": "What are you?"}, []),
        ({"last_text": "What are you?", "must_call": True}, ["calculate"]),
        ({"last_text": "Pour me some tea", "steps": 1}, []),
    ],
)
def test_an_actor_calls_the_function_that_fits_the_words_once(changes: dict[str, Any], names: list[str]) -> None:
    answer = Actor().answer(an_ask(functions=[CALCULATE, CLOCK, POUR], **changes))

    assert isinstance(answer, Answer)
    assert [call.name for call in answer.calls] == names


def test_the_arguments_of_an_actor_fit_their_schema() -> None:
    schema = {"properties": {"city": {"enum": ["Oslo"]}}, "required": ["city"]}
    ask = an_ask(functions=[Function(name="weather", schema=schema)])

    assert Actor(steps=1).answer(ask) == Answer(calls=[Call(name="weather", args={"city": "Oslo"})])


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"results": [FunctionResult(name="look", text="a cat"), FunctionResult(name="look", text="a dog")]},
         "Here is what I found: look gave a cat; look gave a dog."),
        ({"output": "json", "schema": {"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]}},
         '{"a":1}'),
        ({"output": "json"}, '{"answer":"hi"}'),
        ({"output": "enum", "schema": {"enum": ["yes"]}}, "yes"),
    ],
)  # fmt: skip
def test_an_actor_answers_in_the_form_that_is_asked_for(changes: dict[str, Any], text: str) -> None:
    assert Actor().answer(an_ask(**changes)) == Answer(text=text)
