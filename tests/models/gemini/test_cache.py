"""The static layer in an explicit cache, against the simulator over a socket: what the model is told never differs."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import httpx2
import orjson
import pytest
from google import genai
from google.genai import types
from msgspec.structs import replace

from models.gemini.reading import FLASH, Reader, exactly, plain
from models.talk import COUNT, LOOK, asked
from tertulia import errors
from tertulia.models import Gemini, Response
from tertulia.models.gemini.cache import PAUSE, CachedGemini
from tertulia.parts import Media, Text, ToolCall, ToolResult
from tertulia.run.fallbacks import ExpiredFiles
from tertulia.sim import gemini as sims
from tertulia.sim.gemini import MODELS, GeminiSim, Received, resources
from tertulia.sim.gemini.catalogue import ALIASES
from tertulia.sim.gemini.errors import error
from tertulia.turns import Layer, Prompt, Settings, Turn, model, user
from tertulia.wire.generations import smallest_cache

RULES = "You keep the log of a ship. " * 700
BOTH = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
Caching = Callable[..., CachedGemini]


@pytest.fixture
def reader() -> Reader:
    return Reader()


@pytest.fixture
async def sim(reader: Reader) -> AsyncIterator[GeminiSim]:
    def told(received: Received) -> None:
        if _kind(received) in reader.then:
            running.fail(reader.then.pop(_kind(received)))

    async with GeminiSim(behaviour=reader, tell=told) as running:
        yield running


@pytest.fixture
async def gemini(sim: GeminiSim) -> AsyncIterator[Gemini]:
    async with Gemini(FLASH, key="k", base_url=sim.url) as connected:
        yield connected


@pytest.fixture
async def caching(sim: GeminiSim) -> AsyncIterator[Caching]:
    """Cached models of the simulator's, which are closed in the end."""
    async with AsyncExitStack() as stack:

        def opened(name: str = FLASH, *, client: Any = None, key: str | None = "k", **changes: Any) -> CachedGemini:
            given: dict[str, Any] = {"count": exactly, "now": sim.clock, **changes}
            cached = CachedGemini(Gemini(name, key=key, base_url=sim.url, client=client), **given)
            stack.push_async_callback(cached.aclose)
            return cached

        yield opened


@pytest.fixture
def cached(caching: Caching) -> CachedGemini:
    return caching()


def a_prompt(said: str = "hi", *, rules: str = RULES, told: tuple[Turn, ...] = (), **changes: Any) -> Prompt:
    """A prompt in four layers; *told* is the history in the static one."""
    layers = (
        Layer(name="static", instruction=rules, turns=told),
        Layer(name="dynamic", turns=(user('{"todos": []}'),)),
        Layer(name="buffered", turns=(user("hello"), model("welcome"))),
        Layer(name="trigger", turns=(user(said),)),
    )
    return Prompt(**{"layers": layers, "tools": (LOOK,), **changes})


def history(chunks: int) -> tuple[Turn, ...]:
    """A history as `layered` tells it: one turn of words, a part a chunk."""
    return (user(*(f"chunk {number}: " + "they said this and that; " * 40 for number in range(chunks))),)


def kinds(sim: GeminiSim) -> list[str]:
    """What was asked of the service: answers with and without a cache, and caches."""
    return [_kind(received) for received in sim.requests]


def _kind(received: Received) -> str:
    if "/files" in received.path:
        return "file"
    if "cachedContents" in received.path:
        return {"POST": "make", "DELETE": "delete", "GET": "list"}[received.method]
    return "use" if "cachedContent" in received.body else "plain"


async def said_twice(prompt: Prompt, cached: CachedGemini, sim: GeminiSim, reader: Reader) -> list[str]:
    """The kinds of requests that a prompt takes twice; the model reads all of it each time."""
    await keep_talking(cached, prompt, prompt)
    assert reader.read == [plain(prompt)] * 2
    return kinds(sim)


async def keep_talking(model: CachedGemini, *prompts: Prompt, stream: bool = False) -> list[Response]:
    return [await asked(model, prompt, stream=stream) for prompt in prompts]


@BOTH
async def test_a_cache_that_holds_a_dead_file_is_given_up_and_the_rest_is_kept_anew(
    sim: GeminiSim, gemini: Gemini, caching: Caching, stream: bool
) -> None:
    file = await gemini.upload(b"\x89PNG", mime="image/png")
    photo = Media(media_kind="photo", unique_id="u", mime="image/png", uri=file.uri, rendered_text="A cat.")
    cached, gone = caching(), ExpiredFiles()
    prompt = a_prompt(told=(user(photo, "they said this and that; " * 40),))
    await keep_talking(cached, prompt, prompt, prompt, stream=stream)
    await gemini.delete_file(file.name)
    before = len(sim.requests)

    with pytest.raises(errors.FileGone) as lost:
        await asked(cached, prompt, stream=stream)
    assert gone.add(lost.value, prompt)
    answers = await keep_talking(cached, *[gone.without(prompt)] * 3, stream=stream)
    await cached.aclose()

    assert [one.text for one in answers] == ["hi"] * 3
    talked = [(_kind(one), one.status) for one in sim.requests[before:] if one.method == "POST"]
    assert talked == [("use", 403), ("plain", 200), ("make", 200), ("use", 200), ("use", 200)]


async def stored_caches(sim: GeminiSim, key: str = "k") -> list[dict[str, Any]]:
    """The caches that the service stores for a key."""
    async with httpx2.AsyncClient(headers={"x-goog-api-key": key}) as client:
        answer = await client.get(f"{sim.url}/v1beta/cachedContents?pageSize=100")
    listed: list[dict[str, Any]] = answer.json().get("cachedContents", [])
    return listed


async def lose_all(gemini: Gemini, sim: GeminiSim) -> None:
    """Let the service delete every cache."""
    for cache in await stored_caches(sim):
        await gemini.delete_cache(cache["name"])
    sim.requests.clear()


# Made and used


@BOTH
async def test_what_comes_again_is_cached_and_the_model_reads_the_same(
    sim: GeminiSim, reader: Reader, cached: CachedGemini, stream: bool
) -> None:
    prompts = [a_prompt(said, told=history(2)) for said in ("one", "two", "three")]

    responses = await keep_talking(cached, *prompts, stream=stream)

    assert kinds(sim) == ["plain", "make", "use", "use"]
    assert reader.read == [plain(prompt) for prompt in prompts]
    assert [response.text for response in responses] == ["one", "two", "three"]
    held = exactly(Prompt(layers=prompts[0].layers[:1], tools=(LOOK,)))
    assert [response.usage.cached for response in responses] == [0, held, held]


async def test_the_request_and_the_cache_hold_each_their_part(sim: GeminiSim, cached: CachedGemini) -> None:
    prompt = a_prompt("two", told=history(1), settings=Settings(temperature=0.5, tool_choice="auto"))

    await keep_talking(cached, prompt, prompt)

    whole = plain(prompt)
    _, make, use = sim.requests
    assert make.body == {
        "model": f"models/{FLASH}",
        "ttl": "3600s",
        "displayName": make.body["displayName"],
        "systemInstruction": whole["systemInstruction"],
        "tools": whole["tools"],
        "contents": whole["contents"][:1],
    }
    assert re.fullmatch(r"tertulia [0-9a-f]{32} [0-9a-f]{16}", make.body["displayName"])
    assert use.body == {
        "contents": whole["contents"][1:],
        "cachedContent": use.body["cachedContent"],
        "generationConfig": {"temperature": 0.5},
    }


@pytest.mark.parametrize(("short", "expected"), [(0, ["plain", "make", "use"]), (1, ["plain", "plain"])])
async def test_the_threshold_is_reached_exactly(
    sim: GeminiSim, caching: Caching, short: int, expected: list[str]
) -> None:
    prompt = a_prompt()
    threshold = exactly(Prompt(layers=prompt.layers[:1], tools=prompt.tools)) + short

    await keep_talking(caching(threshold=threshold), prompt, prompt)

    assert kinds(sim) == expected


@pytest.mark.parametrize(
    ("name", "smallest"),
    [
        ("gemini-2.5-flash", 1024),
        ("gemini-2.5-pro", 2048),
        ("gemini-3-flash-preview", 1024),
        ("gemini-3.1-pro-preview", 4096),
        (FLASH, 4096),
    ],
)
@pytest.mark.parametrize("short", [0, 1])
async def test_the_least_a_model_keeps_is_known(
    sim: GeminiSim, caching: Caching, name: str, smallest: int, short: int
) -> None:
    prompt = a_prompt(rules="abcd" * (smallest - short), tools=())
    cached = caching(name, threshold=0, count=lambda prompt: exactly(prompt, of=name))

    await keep_talking(cached, prompt, prompt)

    assert kinds(sim) == (["plain", "plain"] if short else ["plain", "make", "use"])


def test_the_least_each_model_keeps_is_the_services() -> None:
    models = [one for one in MODELS if not one.embeds]

    assert {one.name: smallest_cache(one.name) for one in models} == {
        one.name: one.smallest_cache if one.caches else None for one in models
    }


@pytest.mark.parametrize("name", ["gemini-4-argon", "gemma-4-31b-it"])
async def test_a_model_without_explicit_caches_is_left_alone(
    sim: GeminiSim, reader: Reader, caching: Caching, name: str
) -> None:
    prompt = a_prompt(tools=())

    await keep_talking(caching(name), prompt, prompt, prompt)

    assert kinds(sim) == ["plain"] * 3
    assert reader.read == [plain(prompt, name)] * 3


def elsewhere(prompt: Prompt) -> Prompt:
    return replace(prompt, layers=(*prompt.layers[1:], prompt.layers[0]))


def with_words(prompt: Prompt) -> Prompt:
    return replace(
        prompt, layers=(*prompt.layers[:1], replace(prompt.layers[1], instruction="Now."), *prompt.layers[2:])
    )


def with_static(*turns: Turn) -> Callable[[Prompt], Prompt]:
    return lambda prompt: replace(prompt, layers=(replace(prompt.layers[0], turns=turns), *prompt.layers[1:]))


def beginning_with(*turns: Turn) -> Callable[[Prompt], Prompt]:
    return lambda prompt: replace(prompt, layers=(prompt.layers[0], Layer(name="buffered", turns=turns)))


CALL = ToolCall(name="look", args={"place": "sea"}, id="a", signature="skip_thought_signature_validator")
RESULT = ToolResult(name="look", id="a", value={"saw": "water"})


@pytest.mark.parametrize(
    "change",
    [
        elsewhere,
        with_words,
        lambda prompt: replace(prompt, settings=Settings(tool_choice="none")),
        lambda prompt: replace(prompt, settings=Settings(tool_choice="any")),
        beginning_with(model(CALL), user(RESULT)),
        with_static(user()),
        with_static(user("hi"), user(RESULT)),
    ],
    ids="static-elsewhere instruction-elsewhere no-tools any-tool call-first no-parts orphan-in-static".split(),
)
async def test_what_cannot_go_beside_a_cache_goes_plainly(
    sim: GeminiSim, reader: Reader, cached: CachedGemini, change: Callable[[Prompt], Prompt]
) -> None:
    assert await said_twice(change(a_prompt(told=history(1))), cached, sim, reader) == ["plain", "plain"]


@pytest.mark.parametrize(
    "change",
    [
        beginning_with(model("welcome"), user("hi")),
        beginning_with(user("hi"), model(replace(CALL, signature=None)), user(RESULT)),
        beginning_with(user("hi"), model(CALL)),
        beginning_with(user("hi"), user(RESULT), model("so")),
        lambda prompt: replace(prompt, settings=Settings(tool_choice="any"), tools=()),
        with_static(user("a"), model("b")),
        with_static(user("a"), user()),
        with_static(user("a"), model(CALL), user(RESULT)),
    ],
    ids="model-first unsigned unanswered orphan nothing-to-choose model-last no-parts calls-in-static".split(),
)
async def test_what_had_to_be_repaired_is_repaired_beside_a_cache_too(
    sim: GeminiSim, reader: Reader, cached: CachedGemini, change: Callable[[Prompt], Prompt]
) -> None:
    assert await said_twice(change(a_prompt(told=history(1))), cached, sim, reader) == ["plain", "make", "use"]


async def test_a_prompt_with_a_cache_of_its_own_is_sent_as_it_is(
    sim: GeminiSim, gemini: Gemini, cached: CachedGemini
) -> None:
    made = await gemini.create_cache(a_prompt())

    responses = await keep_talking(cached, *[replace(a_prompt(), cached=made.name)] * 2)

    assert [response.usage.cached for response in responses] == [made.tokens, made.tokens]
    assert kinds(sim) == ["make", "use", "use"]


async def test_a_prompt_without_anything_to_answer_is_an_error_as_ever(cached: CachedGemini) -> None:
    prompt = Prompt(layers=(Layer(name="static", instruction=RULES),))

    for _ in range(2):
        with pytest.raises(errors.NothingToSend):
            await cached.respond(prompt)
    with pytest.raises(errors.NothingToSend):
        await cached.respond(Prompt(layers=()))


# What ends


@BOTH
@pytest.mark.parametrize(
    ("after", "expected"), [(3539, ["use"]), (3540, ["make", "use"]), (3600, ["make", "use"]), (7201, ["plain"])]
)
async def test_a_cache_is_taken_for_gone_before_its_end(
    sim: GeminiSim, reader: Reader, cached: CachedGemini, after: float, expected: list[str], stream: bool
) -> None:
    prompt = a_prompt(told=history(1))
    await keep_talking(cached, prompt, prompt)
    sim.clock.advance(after / 2)
    await keep_talking(cached, *([prompt] if after < 7200 else []))
    sim.clock.advance(after / 2)
    sim.requests.clear()

    await keep_talking(cached, prompt, stream=stream)

    assert kinds(sim) == expected
    assert reader.read == [plain(prompt)] * len(reader.read)


@BOTH
@pytest.mark.parametrize(
    ("status", "message"),
    [
        (403, "CachedContent not found (or permission denied)"),
        (403, "The caller does not have permission"),
        (404, "Requested entity was not found."),
    ],
)
async def test_a_cache_the_service_deleted_is_made_anew_unnoticed(
    sim: GeminiSim, reader: Reader, gemini: Gemini, cached: CachedGemini, stream: bool, status: int, message: str
) -> None:
    prompt = a_prompt(told=history(1))
    await keep_talking(cached, prompt, prompt)
    await lose_all(gemini, sim)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resources, "no_cache", lambda: error(status, message, rule="cache"))
        responses = await keep_talking(cached, prompt, prompt, stream=stream)

    assert kinds(sim) == ["use", "make", "use", "use"]
    assert sim.requests[0].status == status
    assert [response.text for response in responses] == ["hi", "hi"]
    assert reader.read == [plain(prompt)] * 4


@BOTH
@pytest.mark.parametrize("fault", [sims.Overloaded(), sims.RateLimited(retry_after=90), sims.RateLimited(daily=True)])
async def test_a_cache_that_cannot_be_made_anew_is_done_without(
    sim: GeminiSim, reader: Reader, gemini: Gemini, cached: CachedGemini, fault: Any, stream: bool
) -> None:
    prompt = a_prompt()
    await keep_talking(cached, prompt, prompt)
    await lose_all(gemini, sim)
    reader.then = {"use": fault}

    await keep_talking(cached, prompt, prompt, stream=stream)

    assert kinds(sim) == ["use", "make", "plain", "plain"]
    assert reader.read == [plain(prompt)] * 4


async def test_growth_takes_the_place_of_what_it_grew_from(
    sim: GeminiSim, reader: Reader, gemini: Gemini, cached: CachedGemini
) -> None:
    prompts = [a_prompt(str(turn), told=history(1 + turn // 3)) for turn in range(9)]

    await keep_talking(cached, *prompts)
    await sim.until(lambda received: [one.status for one in received if one.method == "DELETE"] == [200, 200])

    without_ends = [kind for kind in kinds(sim) if kind != "delete"]
    assert without_ends == ["plain", "make", "use", "use", *["make", "use", "use", "use"] * 2]
    assert reader.read == [plain(prompt) for prompt in prompts]
    assert [cache["usageMetadata"]["totalTokenCount"] for cache in await stored_caches(sim)] == [
        exactly(Prompt(layers=prompts[8].layers[:1], tools=(LOOK,)))
    ]


async def test_the_old_cache_goes_only_once_the_new_one_is_in_use(
    sim: GeminiSim, reader: Reader, gemini: Gemini, cached: CachedGemini
) -> None:
    await keep_talking(cached, *[a_prompt(told=history(1))] * 3)
    grown = a_prompt(told=history(2))
    reader.then = {"make": sims.Overloaded()}
    with pytest.raises(errors.Overloaded):
        await cached.respond(grown)
    assert len(await stored_caches(sim)) == 2

    await cached.respond(grown)
    await sim.until(lambda received: any(one.method == "DELETE" and one.status == 200 for one in received))

    assert len(await stored_caches(sim)) == 1


async def test_what_grows_at_every_request_is_not_cached_at_every_request(sim: GeminiSim, cached: CachedGemini) -> None:
    await keep_talking(cached, *[a_prompt(told=history(1))] * 3)
    sim.requests.clear()

    await keep_talking(cached, *(a_prompt(told=history(chunks)) for chunks in range(2, 8)))

    assert [kind for kind in kinds(sim) if kind != "delete"] == ["make", "use", *["plain"] * 5]


async def test_a_deletion_that_fails_is_nobodys_business(sim: GeminiSim, reader: Reader, cached: CachedGemini) -> None:
    await keep_talking(cached, *[a_prompt(told=history(1))] * 3)
    grown = a_prompt(told=history(2))
    await cached.respond(grown)
    sim.fail(sims.Internal())
    await sim.until(lambda received: any(one.method == "DELETE" and one.status == 500 for one in received))

    await keep_talking(cached, grown)

    assert reader.read[-1] == plain(grown)


async def test_conversations_side_by_side_keep_each_its_cache(
    sim: GeminiSim, reader: Reader, gemini: Gemini, cached: CachedGemini
) -> None:
    places = [(user(f"{place}: " + "they said this and that; " * 40),) for place in ("harbour", "galley", "bridge")]
    prompts = [a_prompt(told=told) for told in places] * 3

    await keep_talking(cached, *prompts)

    assert kinds(sim) == ["plain"] * 3 + ["make", "use"] * 3 + ["use"] * 3
    assert reader.read == [plain(prompt) for prompt in prompts]
    assert len(await stored_caches(sim)) == 3


async def test_two_lengths_of_one_history_settle_down(sim: GeminiSim, gemini: Gemini, cached: CachedGemini) -> None:
    long, short = a_prompt(told=history(3)), a_prompt(told=history(2))

    await keep_talking(cached, *[long, short] * 10)

    assert kinds(sim)[-8:] == ["use"] * 8
    assert kinds(sim).count("make") <= 3


@pytest.mark.parametrize(
    "change",
    [
        lambda prompt: replace(prompt, tools=(LOOK, COUNT)),
        lambda prompt: replace(prompt, tools=()),
        lambda prompt: replace(prompt, layers=(replace(prompt.layers[0], instruction=RULES + "!"), *prompt.layers[1:])),
        with_static(),
    ],
    ids=["a tool more", "no tools", "the instruction", "the history"],
)
async def test_another_static_layer_is_another_cache(
    sim: GeminiSim, reader: Reader, cached: CachedGemini, change: Callable[[Prompt], Prompt]
) -> None:
    prompt = a_prompt(told=history(1))
    prompts = [prompt, prompt, change(prompt), change(prompt), change(prompt), prompt]

    await keep_talking(cached, *prompts)

    assert kinds(sim) == ["plain", "make", "use", "plain", "make", "use", "use", "use"]
    assert reader.read == [plain(one) for one in prompts]


async def test_another_model_has_its_own(
    sim: GeminiSim, reader: Reader, cached: CachedGemini, caching: Caching
) -> None:
    prompt = a_prompt(told=history(1))
    other = caching("gemini-3.6-flash")

    for one in (cached, other, cached, other, cached):
        await one.respond(prompt)

    assert kinds(sim) == ["plain", "plain", "make", "use", "make", "use", "use"]
    assert [received.status for received in sim.requests] == [200] * 7
    assert reader.read == [plain(prompt)] * 5


async def test_ours_are_deleted_when_we_close(sim: GeminiSim, caching: Caching, gemini: Gemini) -> None:
    kept = await gemini.create_cache(a_prompt())
    async with caching() as cached:
        for told in (history(1), (user("elsewhere"),)):
            await keep_talking(cached, *[a_prompt(told=told)] * 2)
        assert len(await stored_caches(sim)) == 3

    assert [cache["name"] for cache in await stored_caches(sim)] == [kept.name]


async def test_closing_is_not_held_up(sim: GeminiSim, caching: Caching) -> None:
    cached = caching(patience=1.0)
    await keep_talking(cached, *[a_prompt()] * 2)
    sim.fail(sims.Hang())

    await cached.aclose()

    assert kinds(sim)[-1] == "delete"


# What goes wrong


@BOTH
@pytest.mark.parametrize(
    "fault",
    [sims.RateLimited(), sims.RateLimited(retry_after=5), sims.RateLimited(daily=True), sims.Internal(),
     sims.Overloaded(), sims.Deadline(), sims.Hang()],
)  # fmt: skip
async def test_a_cache_that_cannot_be_made_is_tried_again_after_a_pause(
    sim: GeminiSim, reader: Reader, caching: Caching, fault: Any, stream: bool
) -> None:
    cached = caching(patience=1.0 if isinstance(fault, sims.Hang) else 30.0)
    prompt = a_prompt()
    await keep_talking(cached, prompt, stream=stream)
    sim.fail(fault)

    await keep_talking(cached, prompt, prompt, stream=stream)
    sim.clock.advance(PAUSE - 1)
    await keep_talking(cached, prompt, stream=stream)
    sim.clock.advance(1)
    await keep_talking(cached, prompt, stream=stream)

    assert kinds(sim) == ["plain", "make", "plain", "plain", "plain", "make", "use"]
    assert reader.read == [plain(prompt)] * 5


class Cacheless(sims.Model, frozen=True, kw_only=True):
    """A model that keeps nothing on purpose, though its name does not say so."""

    @property
    def caches(self) -> bool:
        return False


async def test_a_service_that_makes_no_caches_is_asked_more_and_more_rarely(reader: Reader) -> None:
    async with (
        GeminiSim(behaviour=reader, models=[Cacheless(name=FLASH)]) as sim,
        CachedGemini(Gemini(FLASH, key="k", base_url=sim.url), count=exactly, now=sim.clock, ttl=5000) as cached,
    ):
        await keep_talking(cached, a_prompt(), a_prompt())
        for pause in (60, 120, 240, 480, 960, 1920, 3600, 3600):
            sim.requests.clear()
            sim.clock.advance(pause - 1)
            await keep_talking(cached, a_prompt())
            sim.clock.advance(1)
            await keep_talking(cached, a_prompt())

            assert kinds(sim) == ["plain", "make", "plain"]

    assert reader.read == [plain(a_prompt())] * 18


async def test_a_service_that_asks_for_more_time_gets_it(sim: GeminiSim, caching: Caching) -> None:
    cached = caching()
    prompt = a_prompt()
    await cached.respond(prompt)
    sim.fail(sims.RateLimited(retry_after=500))
    await cached.respond(prompt)

    sim.clock.advance(499)
    await cached.respond(prompt)
    sim.clock.advance(1)
    await cached.respond(prompt)

    assert kinds(sim) == ["plain", "make", "plain", "plain", "make", "use"]


async def test_what_is_too_small_after_all_is_not_tried_again(sim: GeminiSim, reader: Reader, caching: Caching) -> None:
    cached = caching(count=lambda _: 1_000_000)
    small, large = a_prompt(rules="Be kind."), a_prompt()

    await keep_talking(cached, *[small] * 3)
    sim.clock.advance(3000)
    await keep_talking(cached, small, large, large)

    assert kinds(sim) == ["plain", "make", "plain", "plain", "plain", "plain", "make", "use"]
    assert sim.requests[1].status == 400
    assert reader.read == [plain(small)] * 4 + [plain(large)] * 2


@BOTH
async def test_a_request_refused_for_its_cache_goes_plainly(
    sim: GeminiSim, reader: Reader, caching: Caching, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    cached = caching("gemini-flash-latest")
    prompt = a_prompt()
    await keep_talking(cached, prompt, prompt)
    monkeypatch.setitem(ALIASES, "gemini-flash-latest", "gemini-3.7-flash")

    await keep_talking(cached, prompt, prompt, stream=stream)

    assert [kind for kind in kinds(sim) if kind != "delete"] == ["plain", "make", "use", "use", "plain", "plain"]
    assert [received.status for received in sim.requests if _kind(received) == "use"] == [200, 400]
    assert reader.read == [plain(prompt)] * 4


@BOTH
async def test_a_request_refused_for_other_reasons_is_an_error_and_keeps_its_cache(
    sim: GeminiSim, cached: CachedGemini, stream: bool
) -> None:
    prompt = a_prompt()
    corrupt = beginning_with(user("hi"), model(replace(CALL, signature="bm90IG91cnM=")), user(RESULT))(prompt)
    await keep_talking(cached, prompt, prompt)

    with pytest.raises(errors.RequestRefused, match="Corrupted"):
        await asked(cached, corrupt, stream=stream)
    await keep_talking(cached, prompt)

    assert kinds(sim) == ["plain", "make", "use", "use", "plain", "use"]


@BOTH
@pytest.mark.parametrize(
    ("fault", "kind"), [(sims.Overloaded(), errors.Overloaded), (sims.RateLimited(), errors.RateLimited)]
)
async def test_other_failures_are_the_callers_as_ever(
    sim: GeminiSim, cached: CachedGemini, fault: Any, kind: type[Exception], stream: bool
) -> None:
    prompt = a_prompt()
    await keep_talking(cached, prompt, prompt)
    sim.fail(fault)

    with pytest.raises(kind):
        await asked(cached, prompt, stream=stream)

    assert kinds(sim) == ["plain", "make", "use", "use"]


async def test_a_stream_that_breaks_is_incomplete_as_ever(sim: GeminiSim, cached: CachedGemini) -> None:
    prompt = a_prompt("one two three four five six seven eight nine ten")
    await keep_talking(cached, prompt, prompt)
    sim.fail(sims.CutStream(after=1))

    response = await asked(cached, prompt, stream=True)

    assert response.finish.outcome == "incomplete"


async def test_a_stream_left_early_is_closed(cached: CachedGemini) -> None:
    prompt = a_prompt("one two three four five six seven eight nine ten")
    await keep_talking(cached, prompt, prompt)

    stream = cached.stream(prompt)
    first = await anext(stream)
    await stream.aclose()

    assert isinstance(first, Text)
    assert (await cached.respond(a_prompt())).text == "hi"


async def test_a_rotated_key_finds_its_cache_gone(
    sim: GeminiSim, reader: Reader, caching: Caching, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "old")
    cached = caching(key=None)
    prompt = a_prompt()
    await keep_talking(cached, prompt, prompt)
    monkeypatch.setenv("GEMINI_API_KEY", "new")

    await keep_talking(cached, prompt)

    assert kinds(sim) == ["plain", "make", "use", "use", "make", "use"]
    assert reader.read == [plain(prompt)] * 3


# Side by side


async def test_requests_at_once_make_one_cache(sim: GeminiSim, reader: Reader, cached: CachedGemini) -> None:
    await cached.respond(a_prompt())
    prompts = [a_prompt(str(number)) for number in range(8)]

    responses = await asyncio.gather(
        *(asked(cached, prompt, stream=bool(index % 2)) for index, prompt in enumerate(prompts))
    )

    assert [response.text for response in responses] == [str(number) for number in range(8)]
    assert sorted(kinds(sim)) == ["make", "plain", *["use"] * 8]
    assert sorted(map(orjson.dumps, reader.read[1:])) == sorted(orjson.dumps(plain(prompt)) for prompt in prompts)


async def test_requests_at_once_that_find_it_gone_all_get_their_answer(
    sim: GeminiSim, gemini: Gemini, cached: CachedGemini
) -> None:
    await keep_talking(cached, a_prompt(), a_prompt())
    await lose_all(gemini, sim)

    responses = await asyncio.gather(*(cached.respond(a_prompt(str(number))) for number in range(8)))

    assert [response.text for response in responses] == [str(number) for number in range(8)]
    assert kinds(sim).count("plain") == 0
    assert len(await stored_caches(sim)) == kinds(sim).count("make") == 1


async def test_one_who_leaves_while_a_cache_is_made_spoils_it_for_nobody(sim: GeminiSim, cached: CachedGemini) -> None:
    await cached.respond(a_prompt())
    sim.fail(sims.Hang(seconds=0.1))
    leaving, staying = (asyncio.create_task(cached.respond(a_prompt(said))) for said in ("bye", "hi"))
    await sim.until(lambda received: len(received) == 2)

    leaving.cancel()

    assert (await staying).text == "hi"
    assert leaving.cancelled()
    assert kinds(sim) == ["plain", "make", "use"]


async def test_closing_waits_for_a_cache_under_way(sim: GeminiSim, gemini: Gemini, caching: Caching) -> None:
    async with caching() as cached:
        await cached.respond(a_prompt())
        sim.fail(sims.Hang(seconds=0.1))
        leaving = asyncio.create_task(cached.respond(a_prompt()))
        await sim.until(lambda received: len(received) == 2)
        leaving.cancel()

    assert await stored_caches(sim) == []


# Through the user's own client


@pytest.fixture
async def client(sim: GeminiSim) -> AsyncIterator[genai.Client]:
    client = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=sim.url))
    yield client
    await client.aio.aclose()
    client.close()


@BOTH
async def test_a_client_of_the_users_works_with_caches_where_there_is_a_key(
    sim: GeminiSim, reader: Reader, caching: Caching, client: genai.Client, stream: bool
) -> None:
    prompt = a_prompt(told=history(1))
    async with caching(client=client) as cached:
        responses = await keep_talking(cached, prompt, prompt, stream=stream)

    assert kinds(sim) == ["plain", "make", "use", "delete"]
    assert responses[1].usage.cached > 4096
    assert [read["contents"] for read in reader.read] == [plain(prompt)["contents"]] * 2


@BOTH
async def test_without_a_key_a_client_of_the_users_is_asked_plainly(
    sim: GeminiSim, caching: Caching, client: genai.Client, stream: bool
) -> None:
    cached = caching(client=client, key=None)

    responses = await keep_talking(cached, *[a_prompt()] * 3, stream=stream)

    assert [response.text for response in responses] == ["hi"] * 3
    assert kinds(sim) == ["plain"] * 3


@BOTH
async def test_a_key_of_another_account_than_the_clients_is_found_out(
    sim: GeminiSim, caching: Caching, client: genai.Client, stream: bool
) -> None:
    cached = caching(client=client, key="another")

    responses = await keep_talking(cached, *[a_prompt()] * 3, stream=stream)
    await cached.aclose()

    assert [response.text for response in responses] == ["hi"] * 3
    assert [kind for kind in kinds(sim) if kind != "delete"] == [
        "plain",
        "make",
        "use",
        "make",
        "use",
        "plain",
        "plain",
    ]
    assert await stored_caches(sim, key="another") == []


# How it is set up


async def test_without_settings_it_counts_and_looks_at_the_clock_by_itself(sim: GeminiSim, gemini: Gemini) -> None:
    async with CachedGemini(gemini) as cached:
        await keep_talking(cached, *[a_prompt(rules="Be kind.")] * 2, *[a_prompt(rules=RULES * 2)] * 3)

    assert kinds(sim) == ["plain", "plain", "plain", "make", "use", "use", "delete"]


@pytest.mark.parametrize(("ttl", "early"), [(60, 60), (60, 61), (0, 0), (-1, 0), (60, -1)])
async def test_a_cache_that_would_never_live_is_refused(ttl: int, early: float) -> None:
    with pytest.raises(errors.InvalidValue, match="must be at least 0 and less than ttl"):
        CachedGemini(Gemini(FLASH, key="k"), count=exactly, ttl=ttl, early=early)
