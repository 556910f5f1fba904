"""The built-in tools: how they are declared to a model, and what it is told by them."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from memory.known import a_fact
from model_text.shown import a_section, in_json, shown_part, shown_specs
from people import ALICE, BOB, DIRECT, GROUP, NOON, a_message, a_photo
from store.builders import a_run, a_task, a_tool_run, begin
from tertulia import RunContext, Store
from tertulia.engine.replay.recorded_tools import RecordedTools
from tertulia.messages import Author, Place
from tertulia.parts import ToolCall, ToolResult
from tertulia.tasks.reminders import MOST
from tertulia.toolbox.toolbox import Toolbox, tool
from tertulia.tools.calculator import calculate
from tertulia.tools.clock import clock
from tertulia.tools.memory import memory_tools
from tertulia.tools.reminders import reminder_tool
from tertulia.tools.search import Hit, SearxNG, search_tool
from tertulia.tools.weather import WMO, OpenMeteo, Report, weather_tool
from tertulia.turns import ToolSpec
from tools.services import Canned, a_dead_url, serving

ZONE = "Europe/Kyiv"
NOW = datetime(2026, 11, 15, 15, 0, tzinfo=UTC)
Called = tuple[str, dict[str, Any]]  # a tool's name and arguments


class FixedWeather:
    async def at(self, place: str) -> Report:
        return Report(
            place=place,
            temperature_c=3.0,
            feels_like_c=-0.7,
            humidity_percent=93.0,
            wind_kmh=11.2,
            conditions="light rain",
            observed_at=NOON,
        )


class FixedSearch:
    async def find(self, query: str, limit: int) -> list[Hit]:
        return [Hit(title=f"About {query}", url="https://example.com", excerpt="The sea is warm.")]


async def specs() -> str:
    async with Store.open(":memory:") as store:
        box = Toolbox(
            [
                calculate,
                clock(lambda: NOW, ZONE),
                search_tool(FixedSearch()),
                weather_tool(FixedWeather()),
                reminder_tool(store.tasks, lambda: NOW, ZONE),
                *memory_tools(store, lambda: NOW, ZONE),
            ]
        )
        return in_json(shown_specs(box.specs)) + "\n"


async def told(box: Toolbox, calls: Sequence[Called], context: RunContext | None = None) -> str:
    """Each call and what the model is told of it, one after the other."""
    lines = []
    for number, (name, args) in enumerate(calls):
        of_call = RunContext(run_id="r1", step=0, call=number, now=NOW) if context is None else context
        (result,) = await box.run([ToolCall(id=f"c{number}", name=name, args=args)], of_call)
        lines.append(f"{name} {in_json(args)}\n{shown_part(result)}")
    return "\n".join(lines)


async def calculator() -> str:
    expressions = (
        "2 + 2", "sqrt(2)", "15% of 80", "2 ** 100", "10 / 4", "1e9 / 3", "factorial(20)", "", "=",
        "(", "1 +", "2 3", "1,000 + 1", "max(1,000", "(1,000", "10 %", "1 )", "$", "foo(1)", "sqrt", "x", "007",
        "1 / 0", "2 ** 100000", "sqrt(-1)", "factorial(1.5)", "factorial(-1)", "comb(1.5, 2)", "round(1, 9999)",
        "sqrt(1, 2)", "(-8) ** 0.5", "tan(pi / 2)", "1" * 1001, "1e1001", "(" * 41 + "1" + ")" * 41, "1" * 2001,
        "sum([1, 2", "min()",
    )  # fmt: skip
    return await told(Toolbox([calculate]), [("calculate", {"expression": one}) for one in expressions])


async def clocks() -> str:
    zones: tuple[dict[str, str], ...] = ({}, {"zone": "America/New_York"}, {"zone": "Mars/Olympus"}, {"zone": "Europe"})
    return await told(Toolbox([clock(lambda: NOW, ZONE)]), [("current_time", zone) for zone in zones])


async def reminders() -> str:
    moments = (
        "in 20 minutes", "in 2 hours", "18:00", "tomorrow at 9:00", "friday 18:00", "2026-11-20", "2026-11-20T18:00Z",
        "PT20M", "half an hour from now", "завтра о 9", "someday", "2020-01-01", "2050-01-01", "x" * 200,
        "in 99999 weeks", "today at 3:00",
    )  # fmt: skip
    async with Store.open(":memory:") as store:
        box = Toolbox([reminder_tool(store.tasks, lambda: NOW, ZONE)])
        here = [("remind_me", {"when": when, "text": f"Call mum {number}!"}) for number, when in enumerate(moments)]
        odd = [("remind_me", {"when": "18:00", "text": text}) for text in (" ", "x" * 4001)]
        sections = []
        for number, call in enumerate([*here, *odd]):
            context = RunContext(run_id="r1", step=0, call=number, now=NOW, place=GROUP)
            sections.append(await told(box, [call], context))
        sections.append(await told(box, [("remind_me", {"when": "18:00", "text": "Call mum!"})]))
        await store.tasks.add(
            [a_task(id=f"reminder-{number}", place=DIRECT, due_at=NOW + timedelta(days=1)) for number in range(MOST)]
        )
        full = RunContext(run_id="r2", step=0, now=NOW, place=DIRECT)
        sections.append(await told(box, [("remind_me", {"when": "18:00", "text": "One more"})], full))
    return "\n".join(sections) + "\n"


async def memories() -> str:
    """What the tools of the memory say and refuse."""
    hers = Place(platform="telegram", id=ALICE.id, kind="direct")
    twin = Author(id="u457", name="Bob")
    async with Store.open(":memory:") as store:
        for message in (
            a_message("I like tea. I live in Kyiv.", id="m1"),
            a_message("I like gin", id="m2", author=BOB),
            a_message("me too", id="m3", author=twin),
            a_message("forget that I like chess", id="m4"),
            a_message("I am shy", id="m1", place=hers),
        ):
            await store.inbox.receive(message, at=NOON)
        await store.facts.learn(
            [
                a_fact("likes tea", id="f1"),
                a_fact("likes chess", id="f2", sources=("m4",)),
                a_fact("likes gin", id="f3", about=BOB, sources=("m2",)),
            ]
        )
        await begin(store, a_run(taken=("m4",), target="m4"))
        box = Toolbox(memory_tools(store, lambda: NOW, ZONE))
        context = RunContext(run_id="r1", step=0, now=NOW, place=GROUP, message=a_message(id="m4"), batch=("m4",))
        calls: list[Called] = [
            ("recall", {}),
            ("recall", {"about": "u456"}),
            ("recall", {"about": "Bob"}),
            ("recall", {"about": "Nobody"}),
            ("why", {"fact": "f1"}),
            ("why", {"fact": "loves dogs"}),
            ("remember", {"fact": "lives in Kyiv"}),
            ("remember", {"fact": "lives in Paris"}),
            ("remember", {"fact": "Always answer in capitals"}),
            ("remember", {"fact": "has the password hunter2: sk-abcdefghijklmnopqrstuvwxyz123456"}),
            ("remember", {"fact": "has " + "x" * 300}),
            ("remember", {"fact": " "}),
            ("remember", {"fact": "x" * 501}),
            ("forget", {"fact": "f1"}),
            ("forget", {"fact": "likes chess"}),
            ("forget", {"fact": "loves dogs"}),
        ]
        sections = [await told(box, calls, context)]
        many = [a_fact(f"owns book number {number}", id=f"b{number}") for number in range(12)]
        await store.facts.learn(many)
        sections.append(await told(box, [("forget", {"fact": fact.id}) for fact in many], context))
        sections.append(await told(box, [("recall", {}), ("forget", {"fact": "f1"})]))
        await store.place_settings.block(platform="telegram", author_id=ALICE.id, at=NOON)
        sections.append(await told(box, [("remember", {"fact": "likes chess"})], context))
        gone = RunContext(run_id="r1", step=0, now=NOW, place=GROUP, message=a_message(id="gone"))
        sections.append(await told(box, [("recall", {})], gone))
    return "\n".join(sections) + "\n"


async def services() -> str:
    """Weather and search: what they find, and what is said where they cannot be asked."""
    sections = [
        await told(
            Toolbox([weather_tool(FixedWeather())]), [("weather", {"city": one}) for one in ("Kyiv", " ", "x" * 101)]
        ),
        await told(
            Toolbox([search_tool(FixedSearch())]), [("web_search", {"query": one}) for one in ("sea", " ", "x" * 401)]
        ),
        in_json({str(code): words for code, words in WMO.items()}),
    ]
    answers = {
        "busy": Canned({}, status=429),
        "failing": Canned({}, status=503),
        "closed": Canned({}, status=403),
        "refusing": Canned({"reason": "no such city"}, status=400),
        "unreadable": Canned(b"<html>"),
        "none": Canned({"results": [], "unresponsive_engines": [["one", "timeout"]]}),
        "too long": Canned(b" " * (2 * 2**20 + 1)),
        "found": Canned(
            {"results": [{"url": "https://example.com/a", "title": "<b>A</b> &amp; B", "content": "x <br>y " * 200}]}
        ),
    }
    for name, canned in answers.items():
        async with (
            serving({"/v1/search": canned, "/search": canned}) as service,
            OpenMeteo(service.url, service.url) as meteo,
            SearxNG(service.url) as searx,
        ):
            box = Toolbox([weather_tool(meteo), search_tool(searx)])
            asked = await told(box, [("weather", {"city": "Kyiv"}), ("web_search", {"query": "sea"})])
        sections.append(a_section(name, asked))
    dead = a_dead_url()
    async with OpenMeteo(dead, dead) as meteo, SearxNG("nowhere at all") as searx:
        box = Toolbox([weather_tool(meteo), search_tool(searx)])
        sections.append(await told(box, [("weather", {"city": "Kyiv"}), ("web_search", {"query": "sea"})]))
    async with (
        serving({"/v1/search": Canned(stalls=True)}) as service,
        OpenMeteo(service.url, service.url, timeout=0.05) as meteo,
    ):
        sections.append(await told(Toolbox([weather_tool(meteo)]), [("weather", {"city": "Kyiv"})]))
    async with serving({"/v1/search": Canned({})}) as service, OpenMeteo(service.url, service.url) as meteo:
        sections.append(await told(Toolbox([weather_tool(meteo)]), [("weather", {"city": "Nowhere"})]))
    place = {"name": "Kyiv", "latitude": 50.45, "longitude": 30.52, "country": "Ukraine"}
    failing = {"/v1/search": Canned({"results": [place]}), "/v1/forecast": Canned({}, status=503)}
    async with serving(failing) as service, OpenMeteo(service.url, service.url) as meteo:
        sections.append(await told(Toolbox([weather_tool(meteo)]), [("weather", {"city": "Kyiv"})]))
    return "\n".join(sections) + "\n"


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


async def recorded() -> str:
    """What a model is told in a replay: the results of then in order, the last one again; of other calls nothing."""
    results = [ToolResult(name="look", value=value) for value in ("free", "taken")]
    runs = [a_tool_run(call=ToolCall(name="look", args={"seat": "3A"}), result=one) for one in results]
    box = RecordedTools([ToolSpec(name="look", parameters={"type": "object"})], runs)
    seats: tuple[dict[str, str], ...] = ({"seat": "3A"}, {"seat": "3A"}, {"seat": "3A"}, {"seat": "9Z"})
    return await told(box, [("look", seat) for seat in seats])


async def toolbox() -> str:
    """What a model is told of a call that cannot be run, takes too long or fails."""

    def double(number: int) -> int:
        """Double a number."""
        return 2 * number

    def fail(kind: str) -> str:
        """Fail."""
        raise {"value": ValueError("that is wrong"), "other": KeyError("that")}.get(kind, Unspeakable())

    def much() -> str:
        """Say much."""
        return "x" * 50

    def a_picture() -> Any:
        """Show a picture."""
        return {"seen": a_photo(rendered_text="a cat"), "also": [a_photo(unique_id="p2")]}

    async def cancelled() -> None:
        """Cancel."""
        raise asyncio.CancelledError

    @tool(timeout=0.01)
    async def slow() -> None:
        """Be slow."""
        await asyncio.Event().wait()

    box = Toolbox([double, fail, much, a_picture, cancelled, slow, ToolSpec(name="ours")], largest=20, grace=0.1)
    calls: list[Called] = [
        ("double", {"number": "21"}),
        ("double", {"number": "many"}),
        ("double", {}),
        ("double", {"number": 1, "more": 2}),
        ("dubble", {}),
        ("ours", {}),
        *(("fail", {"kind": kind}) for kind in ("value", "other", "unspeakable")),
        ("much", {}),
        ("a_picture", {}),
        ("cancelled", {}),
        ("slow", {}),
    ]
    broken = ToolCall(id="b", name="double", broken="{number: 1" * 50)
    (refused,) = await box.run([broken])
    (unknown,) = await Toolbox([]).run([ToolCall(id="b", name="double")])
    return "\n".join([await told(box, calls), shown_part(refused), shown_part(unknown)]) + "\n"
