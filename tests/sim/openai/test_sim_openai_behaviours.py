"""Behaviours can be named on the command line."""

import json
from pathlib import Path

import pytest

from palaver.sim.openai import Actor, Echo, Script, behaviour_named
from palaver.sim.openai.answers import Answer

REQUEST = {"model": "gpt-4o", "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]}


def test_the_actor_and_the_echo_have_names() -> None:
    assert isinstance(behaviour_named("actor"), Actor)
    assert isinstance(behaviour_named("echo"), Echo)
    assert Echo().answer(REQUEST, seed="") == Answer(message={"content": "hi"})


@pytest.mark.parametrize("text", [json.dumps(["one", "two"]), json.dumps(["one", "two"], indent=2), '"one"\n"two"\n'])
def test_a_script_is_read_from_json_or_json_lines(tmp_path: Path, text: str) -> None:
    path = tmp_path / "script.json"
    path.write_text(text)

    script = behaviour_named(f"script:{path}")

    assert isinstance(script, Script)
    answers = [script.answer(REQUEST, seed="") for _ in range(2)]
    assert answers == [Answer(message={"content": "one"}), Answer(message={"content": "two"})]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "unknown behaviour ''"),
        ("parrot", "unknown behaviour 'parrot': expected actor, echo or script:FILE"),
        ("script:", "unknown behaviour 'script:'"),
        ("script:/no/such/file", "cannot read the script /no/such/file: No such file or directory"),
    ],
)
def test_other_names_are_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(ValueError, match="^" + message) as caught:
        behaviour_named(text)

    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", ["{", "[1]", "7", '"one"\n[', '["one",\n"two"'])
def test_a_bad_script_is_refused_in_one_line(tmp_path: Path, content: str) -> None:
    path = tmp_path / "script.json"
    path.write_text(content)

    with pytest.raises(ValueError, match=r"^the script .*script\.json is ") as caught:
        behaviour_named(f"script:{path}")

    assert "\n" not in str(caught.value)
