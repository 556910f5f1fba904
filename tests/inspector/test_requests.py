"""A request is shown as it went over the wire, with its checks, its response, and as a command and a test."""

import json
import shlex
from typing import Any

import pytest

from engine.engines import engine_with, said
from inspector.evening import KEY, MODEL, NOW, an_evening
from tertulia.errors import InvalidValue
from tertulia.inspector import runs
from tertulia.inspector.requests import requests
from tertulia.inspector.shown import MASK
from tertulia.models import OpenAI
from tertulia.sim import OpenAISim
from tertulia.sim.behaviours import Script
from tertulia.store import Store


async def test_each_try_of_a_step_has_its_body_and_its_checks() -> None:
    async with an_evening() as store:
        _, row, _ = await runs.runs(store)
        refused, answered = await requests(store, row.run.id[:8], 0)
        (second,) = await requests(store, row.run.id, 1)

    assert [one.call.status for one in (refused, answered, second)] == ["failed", "answered", "answered"]
    size = len(refused.body)
    assert refused.body == answered.body
    assert [check.ok for check in answered.checks] == [True, True, True]
    assert answered.checks[0].what.startswith("rebuilt from the store, as it was sent, ")
    assert [check.what for check in answered.checks[1:]] == ["lint: nothing to refuse", "repair: nothing changed"]
    assert size > 1000
    assert refused.response == ""
    assert json.loads(answered.response)["candidates"][0]["content"]["parts"][-1]["functionCall"]["name"] == "look"


async def test_neither_keys_nor_signatures_nor_the_mark_are_in_it() -> None:
    async with an_evening() as store:
        mark = await store.place_settings.delimiter((await runs.runs(store))[0].run.place)
        _, row, _ = await runs.runs(store)
        (answered,) = await requests(store, row.run.id, 1)
        (asked,) = await requests(store, row.run.id, 1, unmasked=True)
        first = (await requests(store, row.run.id, 0))[-1]

    shown = "".join((answered.body, answered.response, answered.curl, answered.pytest, first.response))
    assert mark not in shown
    assert KEY not in shown
    assert mark in asked.body
    signatures = [part["thoughtSignature"] for part in parts_of(first.response) if "thoughtSignature" in part]
    assert set(signatures) == {MASK}


def parts_of(response: str) -> list[dict[str, Any]]:
    return [part for one in json.loads(response)["candidates"] for part in one["content"]["parts"]]


async def test_a_request_is_a_command_and_a_test() -> None:
    async with an_evening() as store:
        _, row, _ = await runs.runs(store)
        (shown,) = await requests(store, row.run.id, 1)

    words = shlex.split(shown.curl)
    assert words[:2] == ["curl", "-sS"]
    assert words[2] == f"https://generativelanguage.googleapis.com/v1beta/models/{MODEL}:generateContent"
    assert "x-goog-api-key: $GEMINI_API_KEY" in words
    assert words[-1] == shown.body
    made: dict[str, Any] = {}
    exec(shown.pytest, made)  # noqa: S102 (what people copy runs)
    assert made["REQUEST"] == json.loads(shown.body)
    made["test_the_service_takes_the_request"]()


async def test_a_request_in_the_format_of_openai(store: Store) -> None:
    async with (
        OpenAISim(behaviour=Script(["Hi."])) as sim,
        OpenAI("gpt-5.6", key="k", base_url=sim.url) as model,
        engine_with(model, store=store, now=lambda: NOW) as engine,
    ):
        await engine.receive(said("Hello!"))
        await engine.settled()

    (row,) = await runs.runs(store)
    (shown,) = await requests(store, row.run.id, 0)

    assert (shown.checks[0].ok, shown.url.endswith("/chat/completions")) == (True, True)
    assert '"authorization: Bearer $OPENAI_API_KEY"' in shown.curl
    with pytest.raises(InvalidValue, match="has no step 5"):
        await requests(store, row.run.id, 5)
