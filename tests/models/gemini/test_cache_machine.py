"""Conversations that grow, lose their caches, change tools and models: each time the model reads the plain prompt."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

import orjson
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from models.gemini.reading import Reader, exactly, plain
from models.talk import COUNT, LOOK, asked
from sizes import EXAMPLES, size
from tertulia import errors
from tertulia.models import Gemini
from tertulia.models.gemini.cache import CachedGemini
from tertulia.parts import ToolCall, ToolResult
from tertulia.sim import gemini as sims
from tertulia.sim.gemini import GeminiSim
from tertulia.turns import Layer, Prompt, Settings, Turn, model, user

T = TypeVar("T")

MODELS = ["gemini-2.5-flash", "gemini-3-flash-preview", "gemini-2.5-flash-lite", "gemini-4-argon"]
TOOLS = [(), (LOOK,), (LOOK, COUNT), (COUNT, LOOK)]
FAULTS = [
    sims.Overloaded(),
    sims.RateLimited(retry_after=1),
    sims.Internal(),
    sims.Deadline(),
    sims.RateLimited(daily=True),
]
RULES = ["Be kind. ", "Be kind. " * 500, "Be brief. " * 500]
PLACES = ["harbour", "galley"]
EARLY = 60.0
HIGH, LOW = 5, 2  # turns in the buffer, and after those before them went to the history


class Conversations(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.said: dict[str, list[Turn]] = {place: [] for place in PLACES}
        self.promoted = dict.fromkeys(PLACES, 0)
        self.faulted = False  # a deletion that failed leaves its cache to end by itself
        self.instruction, self.tools, self.settings = RULES[1], TOOLS[0], Settings()
        self.run(self.start())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    async def start(self) -> None:
        self.reader = Reader()
        self.sim = await GeminiSim(behaviour=self.reader).__aenter__()
        self.models = [self.cached(name) for name in MODELS]
        self.model = self.models[0]

    def cached(self, name: str) -> CachedGemini:
        return CachedGemini(
            Gemini(name, key="k", base_url=self.sim.url),
            count=lambda prompt: exactly(prompt, of=name),
            threshold=1024,
            early=EARLY,
            now=self.sim.clock,
        )

    def teardown(self) -> None:
        self.run(self.stop())
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()

    async def stop(self) -> None:
        for one in self.models:
            await one.aclose()
        await self.sim.__aexit__()
        now = self.sim.clock()
        left = [cache.name for cache in self.kept.values() if cache.expires - EARLY > now]
        assert left == [] or self.faulted

    @property
    def kept(self) -> dict[str, Any]:
        """What the service keeps."""
        return self.sim.caches

    def prompt(self, place: str) -> Prompt:
        """The four layers: what was promoted is told as words, a part each, and the rest are turns."""
        promoted = self.promoted[place]
        told = [f"{place} {number}: " + "this was said " * 20 for number in range(promoted)]
        layers = (
            Layer(name="static", instruction=self.instruction, turns=(user(*told),) if told else ()),
            Layer(name="dynamic", turns=(user(f'{{"at": {len(self.sim.requests)}}}'),)),
            Layer(name="buffered", turns=tuple(self.said[place][promoted:])),
            Layer(name="trigger", turns=(user(f"what now at the {place}?"),)),
        )
        return Prompt(layers=layers, tools=self.tools, settings=self.settings)

    @rule(place=st.sampled_from(PLACES), stream=st.booleans(), turn=st.sampled_from(["user", "model", "call"]))
    def talk(self, place: str, stream: bool, turn: str) -> None:
        self.run(self.read_as_plain([place], stream=stream))
        call = ToolCall(name="look", args={"place": place}, id="a")
        self.said[place] += {
            "user": [user("and then?")],
            "model": [model("then came rain")],
            "call": [user("look"), model(call), user(ToolResult(name="look", id="a", value={"saw": place}))],
        }[turn]
        if len(self.said[place]) - self.promoted[place] > HIGH:
            self.promoted[place] = len(self.said[place]) - LOW

    @rule(places=st.lists(st.sampled_from(PLACES), min_size=2, max_size=4), stream=st.booleans())
    def talk_at_once(self, places: list[str], stream: bool) -> None:
        self.run(self.read_as_plain(places, stream=stream))

    async def read_as_plain(self, places: list[str], *, stream: bool) -> None:
        prompts = [self.prompt(place) for place in places]
        before = len(self.reader.read)
        answered = await asyncio.gather(*(self.tried(prompt, stream=stream) for prompt in prompts))
        expected = [plain(prompt, self.model.name) for prompt, good in zip(prompts, answered, strict=True) if good]
        assert sorted(map(orjson.dumps, self.reader.read[before:])) == sorted(map(orjson.dumps, expected))

    async def tried(self, prompt: Prompt, *, stream: bool) -> bool:
        try:
            return bool((await asked(self.model, prompt, stream=stream)).text)
        except (errors.ModelUnavailable, errors.QuotaExhausted):
            return False

    @rule(seconds=st.sampled_from([1, 59, 60, 600, 3539, 3540, 3600, 7200]))
    def wait(self, seconds: int) -> None:
        self.sim.clock.advance(seconds)

    @rule(place=st.sampled_from(PLACES), stream=st.booleans())
    def lose(self, place: str, stream: bool) -> None:
        """The service deletes what it keeps, perhaps what was just made."""
        self.run(self.read_as_plain([place, place], stream=stream))
        self.kept.clear()
        self.run(self.read_as_plain([place, place], stream=stream))

    @rule(tools=st.sampled_from(TOOLS), instruction=st.sampled_from(RULES))
    def change(self, tools: Any, instruction: str) -> None:
        self.tools, self.instruction = tools, instruction

    @rule(choice=st.sampled_from([None, None, "auto", "any", "none"]))
    def choose(self, choice: Any) -> None:
        self.settings = Settings(tool_choice=choice)

    @rule(index=st.integers(0, len(MODELS) - 1))
    def switch(self, index: int) -> None:
        self.model = self.models[index]

    @rule(fault=st.sampled_from(FAULTS), times=st.integers(1, 3))
    def fault(self, fault: Any, times: int) -> None:
        self.faulted = True
        self.sim.fail(fault, times=times)

    @invariant()
    def no_request_was_refused(self) -> None:
        assert [(one.rule, one.body) for one in self.sim.requests if one.status == 400] == []


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Leave the warnings out: making a cache fails on purpose."""
    caplog.set_level(logging.ERROR, logger="tertulia.models.gemini.cache")


Conversations.TestCase.settings = settings(
    max_examples=size(8, full=max(15, EXAMPLES // 100)), stateful_step_count=20, deadline=None
)
TestConversations = pytest.mark.torture(Conversations.TestCase)
