"""What a chat gives its model suits the model, and asks no network unless somebody wants that."""

import os
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from people import NOON
from tertulia.config import local_zone, read_persona
from tertulia.errors import InvalidValue
from tertulia.model_choice import ModelChoice
from tertulia.models import Local, Scripted
from tertulia.platforms.terminal.setup import PLACE, memory_model_for, place_for, system_for, tool_names, toolbox_for
from tertulia.store import Store
from tertulia.tools.calculator import calculate
from tertulia.tools.memory import memory_tools

READERS = {
    "smollm2": False, "qwen": False, "./model.gguf": False, "gemma-4-31b-it": False, "models/gemma-3-27b-it": False,
    "gemini-3.1-flash-image": False, "gemini-3.8-flash": True, "openai:gpt-5.6": True, "ollama:llama3": True,
}  # fmt: skip
SMALL = ModelChoice(model=Scripted(), name="smollm2")
LARGE = ModelChoice(model=Scripted(), name="gemini-3.8-flash")
MODELS = {name: ModelChoice(model=Scripted(), name=name) for name in ("openai:gpt-5.6", "qwen")}


@pytest.mark.parametrize(
    ("environment", "wanted", "names"),
    [
        ({}, {"weather": False, "memory": True}, ["calculator", "clock", "reminders", "memory"]),
        (
            {"TERTULIA_SEARXNG_URL": "http://127.0.0.1:1"},
            {"weather": False, "memory": False},
            ["calculator", "clock", "search", "reminders"],
        ),
        ({}, {"weather": True, "memory": False}, ["calculator", "clock", "weather", "reminders"]),
    ],
)
def test_tools_that_ask_the_network_are_there_when_wanted(
    environment: dict[str, str], wanted: dict[str, bool], names: list[str]
) -> None:
    assert tool_names(environment, **wanted) == names


def test_the_small_model_gets_a_short_instruction_and_no_tools() -> None:
    assert toolbox_for(SMALL, [calculate]).specs == ()
    assert len(system_for(SMALL)) < 80 < len(system_for(LARGE))


@pytest.mark.parametrize(("zone", "name"), [("Europe/Kyiv", "Europe/Kyiv"), (":Asia/Tokyo", "Asia/Tokyo")])
def test_the_zone_is_what_the_environment_says(zone: str, name: str) -> None:
    assert local_zone({"TZ": zone}) == name


def test_a_zone_that_is_none_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "realpath", lambda _: "/etc/localtime")

    assert local_zone({"TZ": "EET-2EEST,M3.5.0/3"}) == "UTC"


def test_a_persona_is_read(tmp_path: Path) -> None:
    file = tmp_path / "persona.md"
    file.write_text("You are Їжак.\n", encoding="utf-8")

    assert read_persona(file) == "You are Їжак."


@pytest.mark.parametrize(("content", "words"), [(b" \n", "is empty"), (b"\xff\xfe\xff", "no text in UTF-8")])
def test_a_persona_that_says_nothing_is_refused(content: bytes, words: str, tmp_path: Path) -> None:
    file = tmp_path / "persona.md"
    file.write_bytes(content)

    with pytest.raises(InvalidValue, match=words):
        read_persona(file)


def test_a_persona_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match=r"cannot read the persona .*: No such file"):
        read_persona(tmp_path / "none")


@pytest.mark.parametrize(("name", "reads"), READERS.items())
def test_services_read_what_was_said_themselves(name: str, reads: bool) -> None:
    model = Scripted()

    assert memory_model_for(ModelChoice(model=model, name=name)) is (model if reads else None)


async def test_qwen_is_not_offered_what_it_calls_wrongly() -> None:
    async with Store.open(":memory:") as store:
        tools: list[Any] = [calculate, *memory_tools(store, lambda: NOON, "UTC")]
        offered = {name: [spec.name for spec in toolbox_for(choice, tools).specs] for name, choice in MODELS.items()}

    assert offered == {
        "openai:gpt-5.6": ["calculate", "remember", "recall", "why", "forget"],
        "qwen": ["calculate", "recall", "why", "forget"],
    }


@pytest.mark.parametrize(
    ("name", "conversation", "place"),
    [
        ("openai:gpt-5.6", None, "terminal"),
        ("qwen", None, "qwen"),
        ("smollm2", None, "smollm2"),
        ("qwen", "terminal", "terminal"),
        ("openai:gpt-5.6", "work", "work"),
    ],
)
def test_a_local_model_has_a_conversation_of_its_own_unless_asked_otherwise(
    name: str, conversation: str | None, place: str
) -> None:
    choice = ModelChoice(model=Scripted() if ":" in name else Local(name), name=name)

    assert place_for(choice, conversation) == replace(PLACE, id=place)
