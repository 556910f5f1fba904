"""The travel conversation of the specification: parallel calls, a batch of results, a result and words in one turn."""

from typing import Any

import pytest

from tertulia import Settings, Text, ToolResult, ToolSpec
from tertulia.chat import Chat
from tertulia.models import Gemini
from tertulia.sim.gemini import GeminiSim, Script
from tertulia.wire import lint

Wire = dict[str, Any]

ASKED = "I'm planning a trip. What's the weather in Tokyo and Paris? Also search for flights."
CONFIRMED = "Yes, book the JAL flight and Hotel Paris please."
WEATHER = ToolSpec(
    name="get_weather",
    description="Get current weather for a city",
    parameters={
        "type": "OBJECT",
        "properties": {"city": {"type": "STRING", "description": "City name"}},
        "required": ["city"],
    },
)
FLIGHTS = ToolSpec(
    name="search_flights",
    description="Search available flights",
    parameters={
        "type": "OBJECT",
        "properties": {"from": {"type": "STRING"}, "to": {"type": "STRING"}, "date": {"type": "STRING"}},
        "required": ["from", "to"],
    },
)
FIRST_REQUEST: Wire = {
    "contents": [{"role": "user", "parts": [{"text": ASKED}]}],
    "systemInstruction": {"parts": [{"text": "You are a helpful travel assistant."}]},
    "tools": [
        {
            "functionDeclarations": [
                {
                    "name": "get_weather",
                    "description": "Get current weather for a city",
                    "parameters": {
                        "type": "OBJECT",
                        "properties": {"city": {"type": "STRING", "description": "City name"}},
                        "required": ["city"],
                    },
                },
                {
                    "name": "search_flights",
                    "description": "Search available flights",
                    "parameters": {
                        "type": "OBJECT",
                        "properties": {
                            "from": {"type": "STRING"},
                            "to": {"type": "STRING"},
                            "date": {"type": "STRING"},
                        },
                        "required": ["from", "to"],
                    },
                },
            ]
        }
    ],
    "generationConfig": {"temperature": 0.7},
}


def call(call_id: str, name: str, **args: Any) -> Wire:
    return {"functionCall": {"id": call_id, "name": name, "args": args}}


def result(call_id: str, name: str, response: Wire) -> Wire:
    return {"functionResponse": {"id": call_id, "name": name, "response": response}}


FIRST_PARTS: list[Wire] = [
    {
        "thought": True,
        "text": "User wants weather for two cities and flight info. I need to call get_weather twice and "
        "search_flights once.",
        "thoughtSignature": "sig_abc123_thought1",
    },
    call("call_weather_tokyo", "get_weather", city="Tokyo"),
    call("call_weather_paris", "get_weather", city="Paris"),
    call("call_flight_1", "search_flights", **{"from": "Tokyo", "to": "Paris", "date": "2024-01-15"}),
]
SECOND_PARTS: list[Wire] = [
    {
        "thought": True,
        "text": "Got weather data and flights. Let me summarize and check hotels.",
        "thoughtSignature": "sig_def456_thought2",
    },
    {
        "text": "Tokyo is 12°C and cloudy. Paris is 8°C and rainy. Found 2 flights - JAL at $850 (10:00) or AirFrance "
        "at $920 (14:30). Would you like me to book one?"
    },
    call("call_hotel_1", "search_hotels", city="Paris", checkin="2024-01-15", nights=3),
]
THIRD_PARTS = [
    call("call_book_flight", "book_flight", flight_id="JAL_10:00", passenger="user"),
    call("call_book_hotel", "book_hotel", hotel="Hotel Paris", nights=3),
]
USAGE = {"promptTokenCount": 150, "candidatesTokenCount": 80, "thoughtsTokenCount": 30, "totalTokenCount": 260}
RESPONSES: list[Wire] = [
    {
        "candidates": [{"content": {"role": "model", "parts": FIRST_PARTS}, "finishReason": "STOP"}],
        "usageMetadata": USAGE,
    },
    {"candidates": [{"content": {"role": "model", "parts": SECOND_PARTS}, "finishReason": "STOP"}]},
    {"candidates": [{"content": {"role": "model", "parts": THIRD_PARTS}}]},
]
TOKYO = {"temperature": 12, "unit": "C", "conditions": "cloudy"}
PARIS = {"temperature": 8, "unit": "C", "conditions": "rainy"}
FOUND = {
    "flights": [
        {"airline": "JAL", "price": 850, "departure": "10:00"},
        {"airline": "AirFrance", "price": 920, "departure": "14:30"},
    ]
}
HOTELS = {
    "hotels": [
        {"name": "Hotel Paris", "price": 150, "rating": 4.5},
        {"name": "Le Marais Inn", "price": 200, "rating": 4.8},
    ]
}
RESULTS = [
    result("call_weather_tokyo", "get_weather", TOKYO),
    result("call_weather_paris", "get_weather", PARIS),
    result("call_flight_1", "search_flights", FOUND),
]
HOTEL_RESULT = result("call_hotel_1", "search_hotels", HOTELS)


async def travel(model: str) -> tuple[list[Wire], Chat]:
    """The bodies of the three requests, and the chat they made."""
    async with (
        GeminiSim(behaviour=Script(RESPONSES), strict=model != "gemini-2.0-flash") as sim,
        Gemini(model, key="any", base_url=sim.url) as gemini,
    ):
        system = "You are a helpful travel assistant."
        chat = Chat(gemini, system=system, tools=[WEATHER, FLIGHTS], settings=Settings(temperature=0.7))
        first = await chat.send_message(ASKED)
        values = [TOKYO, PARIS, FOUND]
        answers = [
            ToolResult(id=one.id, name=one.name, value=value)
            for one, value in zip(first.function_calls, values, strict=True)
        ]
        second = await chat.send_function_responses(answers)
        [hotel] = second.function_calls
        booked = await chat.send_message([ToolResult(id=hotel.id, name=hotel.name, value=HOTELS), Text(text=CONFIRMED)])

        assert (first.text, first.thought_text, first.thought_signatures) == (
            "",
            FIRST_PARTS[0]["text"],
            ("sig_abc123_thought1",),
        )
        assert second.text == SECOND_PARTS[1]["text"]
        assert [one.name for one in booked.function_calls] == ["book_flight", "book_hotel"]
        return [request.body for request in sim.requests], chat


async def test_for_a_model_of_its_time_the_wire_is_the_documents() -> None:
    requests, chat = await travel("gemini-2.0-flash")

    contents = [
        *FIRST_REQUEST["contents"],
        {"role": "model", "parts": FIRST_PARTS},
        {"role": "user", "parts": RESULTS},
        {"role": "model", "parts": SECOND_PARTS},
        {"role": "user", "parts": [HOTEL_RESULT, {"text": CONFIRMED}]},
    ]
    assert requests[0] == FIRST_REQUEST
    assert requests[1] == {**FIRST_REQUEST, "contents": contents[:3]}
    assert requests[2] == {**FIRST_REQUEST, "contents": contents}
    assert chat.history == chat.get_history()
    assert len(chat.history) == 6


@pytest.mark.parametrize("model", ["gemini-3.8-flash", "gemini-3.5-flash-lite", "gemini-4-argon"])
async def test_for_a_current_model_it_is_the_legal_variant_of_the_same(model: str) -> None:
    requests, _ = await travel(model)

    placeholder = {"thoughtSignature": "skip_thought_signature_validator"}
    signed = [FIRST_PARTS[0], {**FIRST_PARTS[1], **placeholder}, *FIRST_PARTS[2:]]
    assert requests[1]["contents"][1]["parts"] == signed
    assert requests[2]["contents"][-2:] == [
        {"role": "user", "parts": [HOTEL_RESULT]},
        {"role": "user", "parts": [{"text": CONFIRMED}]},
    ]
    assert [lint(request, model=model, strict=True) for request in requests] == [[], [], []]
