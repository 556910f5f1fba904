import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from engine.engines import DIRECT, engine_with, said, talked
from fakes import Blind
from people import NOON, a_photo
from store.builders import PROMPT, a_run
from tertulia.engine.behavior import Behavior, error_text
from tertulia.engine.limits import Limits
from tertulia.engine.run_executor import as_models
from tertulia.errors import InvalidValue, QuotaExhausted, RunTimedOut, TimedOut
from tertulia.messages import Author, Place
from tertulia.models.base import Response
from tertulia.models.scripted import Scripted
from tertulia.parts import Media, Part, ToolCall
from tertulia.store import Store
from tertulia.testing import RecordedPlatform
from tertulia.turns import Prompt, model


class Hanging:
    """A model that answers whoever says so, and nobody else."""

    name = "hanging"

    async def respond(self, prompt: Prompt) -> Response:
        if "answer me" not in str(prompt.turns[-1]):
            await asyncio.Event().wait()
        return Response(turn=model("Here.", by=self.name))

    async def stream(self, prompt: Prompt) -> AsyncIterator[Part | Response]:
        yield await self.respond(prompt)


async def no_time(_: float) -> None:
    await asyncio.sleep(0)


async def test_requests_that_hang_keep_no_other_place_from_being_answered() -> None:
    platform = RecordedPlatform()
    behavior = Behavior(debounce=0.0, max_runs=32)
    places = [Place(platform="recorded", id=f"p{number}", kind="direct") for number in range(33)]

    async with engine_with(Hanging(), platform, behavior=behavior) as engine:
        for number, place in enumerate(places[:32]):
            await engine.receive(said("hang", number, place=place, author=Author(id=str(number), name="A")))
        await engine.receive(said("answer me", 99, place=places[32]))
        await platform.sent.wait()

    assert [(reply.place, reply.text) for reply in platform.shown.values()] == [(places[32], "Here.")]


@pytest.mark.parametrize("during", ["next_run", "next_step"])
async def test_a_description_that_hangs_keeps_no_other_place_from_being_answered(during: Any) -> None:
    platform, asked = RecordedPlatform(), asyncio.Event()
    photo, other = said("", 2, parts=(a_photo(),)), Place(platform="recorded", id="p1", kind="direct")

    async def look(_: Media) -> str:
        asked.set()
        await asyncio.Event().wait()
        return ""

    async def wait() -> str:
        """Wait for the photo."""
        await engine.receive(photo)
        return "it is there"

    steps = during == "next_step"  # the photo joins a run that is under way
    script = Blind(*([ToolCall(name="wait", args={})] if steps else []), "Here.")
    behavior = Behavior(debounce=0.0, max_runs=1, during_run=during)
    async with engine_with(script, platform, behavior=behavior, describe=look, tools=[wait]) as engine:
        await engine.receive(said("wait", 1) if steps else photo)
        await asked.wait()
        await engine.receive(said("hello", 3, place=other, author=Author(id="3", name="C")))
        await platform.sent.wait()

    assert [(reply.place, reply.text) for reply in platform.shown.values()] == [(other, "Here.")]


async def test_a_photo_nobody_can_describe_in_time_is_answered_without_words() -> None:
    platform = RecordedPlatform()

    async def look(_: Media) -> str:
        await asyncio.Event().wait()
        return ""

    limits = Limits(call_timeout=0.05)
    async with engine_with(Scripted("Here."), platform, limits=limits, describe=look) as engine:
        await talked(engine, said("", parts=(a_photo(),)))

    assert platform.texts == ["Here."]


LIMITS: list[tuple[dict[str, float], Exception]] = [
    ({"run_timeout": 0.01}, RunTimedOut("")),
    ({"call_timeout": 0.01}, TimedOut("")),
]


@pytest.mark.parametrize(("limits", "error"), LIMITS)
async def test_a_run_that_takes_too_long_ends_with_an_honest_line(limits: dict[str, Any], error: Any) -> None:
    platform = RecordedPlatform()

    async with engine_with(Hanging(), platform, limits=Limits(**limits), sleep=no_time) as engine:
        await talked(engine, said("hang"))

    assert platform.texts == [error_text(error)]


async def test_seconds_of_earlier_processes_count_and_those_between_them_do_not(store: Store) -> None:
    platform = RecordedPlatform()
    await store.inbox.receive(said("hang"), at=NOON)
    await store.runs.begin(a_run(place=DIRECT, target="1", taken=("1",), seconds=299.99), PROMPT, at=NOON)

    async with engine_with(Hanging(), platform, store=store) as engine:
        await engine.settled()

    assert platform.texts == [error_text(RunTimedOut(""))]


async def test_the_second_model_answers_where_the_first_is_out_of_quota(store: Store) -> None:
    platform = RecordedPlatform()
    models = [Scripted(QuotaExhausted("used up"), name="first"), Scripted("From the second.", name="second")]

    async with engine_with(models, platform, store=store) as engine:
        await talked(engine, said("hi"))

    assert platform.texts == ["From the second."]


@pytest.mark.parametrize("given", [[], "gpt-5.6", [Scripted(), Scripted()]])
def test_what_cannot_be_asked_is_refused(given: Any) -> None:
    with pytest.raises(InvalidValue):
        as_models(given)


class Slow(Scripted):
    """A model that thinks for a while, also about a refusal."""

    async def respond(self, prompt: Prompt) -> Response:
        await asyncio.sleep(0.03)
        return await super().respond(prompt)


async def test_a_run_has_the_seconds_of_all_its_work_until_its_end(store: Store) -> None:
    def look() -> str:
        """Look."""
        return "nothing"

    script = Slow(ToolCall(name="look", args={}), "Here.", QuotaExhausted("over"))
    async with engine_with(script, store=store, sleep=no_time, tools=[look]) as engine:
        await talked(engine, said("one", 1))
        await talked(engine, said("two", 2))

    found = [(one.run.status, one.run.seconds) for one in reversed(await store.inspection.runs(most=9))]
    assert [status for status, _ in found] == ["done", "failed"]
    assert [seconds >= least for (_, seconds), least in zip(found, (0.06, 0.03), strict=True)] == [True, True], found
