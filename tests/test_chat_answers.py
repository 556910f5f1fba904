"""Answers of a type."""

from typing import Any, assert_type

import msgspec
import pydantic
import pytest

from tertulia.chat import Chat
from tertulia.errors import AnswerUnfit, InvalidValue
from tertulia.models import Response, Scripted


class City(msgspec.Struct):
    name: str
    people: int


class Town(pydantic.BaseModel):
    name: str
    people: int


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (City, City("Kyiv", 3)),
        (Town, Town(name="Kyiv", people=3)),
        (
            {"type": "object", "required": ["name"], "properties": {"people": {"type": "integer"}}},
            {"name": "Kyiv", "people": 3},
        ),
        (dict[str, Any], {"name": "Kyiv", "people": 3}),
    ],
)
async def test_an_answer_of_a_type_comes_back_as_that_type(wanted: Any, expected: Any) -> None:
    scripted = Scripted('{"name": "Kyiv", "people": 3}')

    answer = await Chat(scripted).send_message("Which city?", answer=wanted)

    assert answer == expected
    assert scripted.prompts[0].settings.answer is not None


async def test_the_type_of_the_answer_is_known_to_a_type_checker() -> None:
    chat = Chat(Scripted("Kyiv.", '{"name": "Kyiv", "people": 3}', "[1]", "4"))

    assert_type(await chat.send_message("Which city?"), Response)
    assert_type(await chat.send_message("Which city?", answer=City), City)
    assert_type(await chat.send_message("Which numbers?", answer=list[int]), list[int])
    assert_type(await chat.send_message("How many?", answer=int | None), Any)


async def test_an_answer_that_does_not_fit_is_asked_for_once_more() -> None:
    scripted = Scripted('{"name": "Kyiv"}', '```json\n{"name": "Kyiv", "people": 3}\n```')

    answer = await Chat(scripted).send_message("Which city?", answer=City)

    assert answer == City("Kyiv", 3)
    assert "missing required field `people`" in scripted.prompts[1].turns[-1].parts[0].text  # type: ignore[union-attr]


async def test_an_answer_that_does_not_fit_twice_is_an_error() -> None:
    with pytest.raises(AnswerUnfit, match="scripted gave no answer that fits, twice"):
        await Chat(Scripted("no", "no")).send_message("Which city?", answer=City)


@pytest.mark.parametrize("schema", [{"type": "nope"}, {"pattern": "("}])
async def test_a_schema_that_is_none_is_said_before_anything_is_asked(schema: dict[str, Any]) -> None:
    scripted = Scripted("x")

    with pytest.raises(InvalidValue, match="the schema of the answer cannot be read"):
        await Chat(scripted).send_message("Hi", answer=schema)

    assert scripted.prompts == []


@pytest.mark.parametrize("address", ["file:///etc/passwd", "http://127.0.0.1:9/schema.json"])
async def test_what_a_schema_refers_to_is_not_fetched(address: str) -> None:
    with pytest.raises(InvalidValue, match=f"it refers to {address}, which is not fetched"):
        await Chat(Scripted("{}")).send_message("hi", answer={"$ref": address})
