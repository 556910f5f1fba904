import pytest

from palaver.config import Config, ContextBlock, from_environment
from palaver.errors import InvalidValue


def test_without_an_environment_things_are_as_they_come() -> None:
    assert from_environment({}) == Config()


def test_what_the_environment_names() -> None:
    environment = {
        "ENABLE_SYSTEM_CONTEXT_BLOCK": "true",
        "SYSTEM_CONTEXT_BLOCK_MAX_MESSAGES": "200",
        "SYSTEM_CONTEXT_BLOCK_INCLUDE_META": "false",
        "ENABLE_MULTI_LEVEL_CONTEXT": "0",
        "HISTORY_SIZE": "0",
        "PALAVER_PROFILE": "tail",
        "PALAVER_MEMORY": "off",
    }

    assert from_environment(environment) == Config(
        profile="tail",
        block=ContextBlock(enabled=True, max_messages=200, include_meta=False),
        levels=False,
        history_size=0,
        memory=False,
    )


@pytest.mark.parametrize(
    ("word", "on"), [("TRUE", True), (" yes ", True), ("On", True), ("No", False), ("", False), ("0", False)]
)
def test_words_for_yes_and_no(word: str, on: bool) -> None:
    assert from_environment({"ENABLE_SYSTEM_CONTEXT_BLOCK": word}).block.enabled is on


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("ENABLE_MULTI_LEVEL_CONTEXT", "maybe", "ENABLE_MULTI_LEVEL_CONTEXT must be on or off, not 'maybe'"),
        ("SYSTEM_CONTEXT_BLOCK_MAX_MESSAGES", "9", "must be a number from 10 to 200, not '9'"),
        ("SYSTEM_CONTEXT_BLOCK_MAX_MESSAGES", "many", "must be a number from 10 to 200, not 'many'"),
        ("SYSTEM_CONTEXT_BLOCK_MAX_MESSAGES", "²0", "must be a number from 10 to 200, not '²0'"),
        ("PALAVER_MEMORY", "none", "PALAVER_MEMORY must be on or off, not 'none'"),
        ("HISTORY_SIZE", "-1", "HISTORY_SIZE must be a number from 0 to 100000, not '-1'"),
    ],
)
def test_a_bad_value_is_named(name: str, value: str, complaint: str) -> None:
    with pytest.raises(InvalidValue, match=complaint):
        from_environment({name: value})
