"""Traces, as the SDK of OpenTelemetry exports them: a run, what was gathered, its calls and tools; no words unasked."""

import asyncio
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import msgspec
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.trace import SpanKind, StatusCode, Tracer

from engine.engines import GROUP, engine_with, said, talked
from inspector.evening import KEY, MODEL, an_evening
from tertulia.engine.agents.agent import Agent
from tertulia.inspector import runs
from tertulia.inspector.places import place_key
from tertulia.models import Scripted
from tertulia.store import Store
from tertulia.traces import names
from tertulia.traces.run_spans import run_spans
from tertulia.traces.tracing import emit, open_tracer, trace_runs


def a_tracer() -> tuple[Tracer, InMemorySpanExporter]:
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider.get_tracer(names.SCOPE), exporter


async def traced(store: Store, number: int, *, content: bool = False) -> tuple[ReadableSpan, ...]:
    """The spans of one of the newest runs, itself first."""
    shown = await runs.run(store, (await runs.runs(store))[number].run.id)
    tracer, exporter = a_tracer()
    emit(tracer, run_spans(shown, agent="Gryag", content=content))
    return exporter.get_finished_spans()


async def test_a_run_with_a_tool_is_a_trace() -> None:
    async with an_evening() as store:
        spans = await traced(store, 1)
        shown = await runs.run(store, (await runs.runs(store))[1].run.id)

    root, *children = spans
    assert [(one.name, one.kind) for one in spans] == [
        ("invoke_agent Gryag", SpanKind.INTERNAL),
        ("retrieval memory", SpanKind.INTERNAL),
        (f"chat {MODEL}", SpanKind.CLIENT),
        (f"chat {MODEL}", SpanKind.CLIENT),
        ("execute_tool look", SpanKind.INTERNAL),
        (f"chat {MODEL}", SpanKind.CLIENT),
    ]
    assert root.parent is None
    assert {one.parent.span_id for one in children if one.parent} == {root.context.span_id if root.context else 0}
    assert [one.status.status_code for one in spans] == [StatusCode.UNSET] * 2 + [StatusCode.ERROR] + [
        StatusCode.UNSET
    ] * 3
    call = shown.steps[1].calls[0].call
    assert children[-1].attributes == {
        names.OPERATION: "chat",
        names.PROVIDER: "gcp.gemini",
        names.REQUEST_MODEL: MODEL,
        names.RESPONSE_MODEL: call.answered_by,
        names.REQUEST_STREAM: False,
        names.FINISH_REASONS: ("stop",),
        names.INPUT_TOKENS: call.usage.input,
        names.OUTPUT_TOKENS: call.usage.output + call.usage.thought,
        names.CACHE_READ: call.usage.cached,
        names.CACHE_CREATION: 0,
        names.REASONING: call.usage.thought,
        names.STEP: 1,
        names.ATTEMPT: 1,
        names.DOLLARS: call.money,
    }
    assert dict(root.attributes or {}) == {
        names.OPERATION: "invoke_agent",
        names.PROVIDER: "gcp.gemini",
        names.AGENT: "Gryag",
        names.CONVERSATION: place_key(GROUP),
        names.REQUEST_MODEL: MODEL,
        names.INPUT_TOKENS: shown.row.spent.input,
        names.OUTPUT_TOKENS: shown.row.spent.output,
        names.CACHE_READ: shown.row.spent.cached,
        names.RUN: shown.row.run.id,
        names.DOLLARS: shown.row.spent.money,
    }
    assert root.start_time == round(shown.row.run.began_at.timestamp()) * 10**9


async def test_a_run_that_failed_names_the_class_of_its_error() -> None:
    async with an_evening() as store:
        root, *children = await traced(store, 0)

    assert (root.status.status_code, root.status.description) == (StatusCode.ERROR, None)
    assert [(one.attributes or {}).get(names.ERROR) for one in (root, children[-1])] == ["Overloaded"] * 2


async def test_no_words_and_no_keys_are_in_a_span_unless_they_are_asked_for() -> None:
    words = ("3A", "Hello", "free", "Alice", "Look at", "Friends")
    async with an_evening() as store:
        bare = "".join([one.to_json() for number in range(3) for one in await traced(store, number)])
        full = await traced(store, 1, content=True)

    assert [word for word in (*words, KEY) if word in bare] == []
    attributes = dict(full[-1].attributes or {})
    sent, answered = (
        msgspec.json.decode(str(attributes[one])) for one in (names.INPUT_MESSAGES, names.OUTPUT_MESSAGES)
    )
    assert answered == [{"role": "assistant", "parts": [{"type": "text", "content": "Seat 3A is free. Take it."}]}]
    assert [one["role"] for one in sent[-2:]] == ["assistant", "tool"]
    assert sent[-1]["parts"][0]["response"] == "3A is free"
    tool = dict(full[-2].attributes or {})
    assert (tool[names.TOOL_ARGUMENTS], tool[names.TOOL_RESULT]) == ('{"seat":"3A"}', '"3A is free"')
    retrieval = dict(full[1].attributes or {})
    assert (retrieval[names.QUERY], retrieval[names.DOCUMENTS]) == ("Gryag, is 3A free?", "[]")
    assert KEY not in "".join(one.to_json() for one in full)


def test_names_are_those_of_the_conventions() -> None:
    ours = {value for name, value in vars(names).items() if name.isupper() and str(value).startswith("gen_ai.")}
    known = {value for name, value in vars(gen_ai_attributes).items() if name.startswith("GEN_AI_")}

    assert ours <= known


async def test_each_run_of_an_engine_is_traced_until_it_is_closed() -> None:
    tracer, exporter = a_tracer()
    async with engine_with(Scripted("One.", "Two.")) as engine:
        tracing = asyncio.create_task(trace_runs(engine, tracer))
        await asyncio.sleep(0)
        await talked(engine, said("first", 1), said("second", 2))
        # the events of an engine end with it, and what was read of it is traced before
        while len(exporter.get_finished_spans()) < 6:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    await tracing

    assert [one.name for one in exporter.get_finished_spans()].count("chat scripted") == 2


async def test_the_span_of_a_run_names_the_agent_that_answered() -> None:
    tracer, exporter = a_tracer()
    agents = (Agent(name="Ada"), Agent(name="Bob"))
    async with engine_with(Scripted("Hi.", "Hello."), agents=agents) as engine:
        tracing = asyncio.create_task(trace_runs(engine, tracer))
        await asyncio.sleep(0)
        await talked(engine, said("Ada?", 1, place=GROUP), said("Bob?", 2, place=GROUP))
        while len([one for one in exporter.get_finished_spans() if not one.parent]) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    await tracing

    roots = [span for span in exporter.get_finished_spans() if span.parent is None]
    assert [(span.name, (span.attributes or {})[names.AGENT]) for span in roots] == [
        ("invoke_agent Ada", "Ada"), ("invoke_agent Bob", "Bob"),
    ]  # fmt: skip


async def test_spans_arrive_where_the_config_says() -> None:
    got: list[Any] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                import gzip

                body = gzip.decompress(body)
            got.append((self.path, ExportTraceServiceRequest.FromString(body)))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Collector)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        async with open_tracer(f"http://127.0.0.1:{server.server_port}/v1/traces") as tracer, an_evening() as store:
            shown = await runs.run(store, (await runs.runs(store))[0].run.id)
            emit(tracer, run_spans(shown, agent="Gryag", content=False))
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

    [(path, request)] = got
    scope = request.resource_spans[0].scope_spans[0]
    assert path == "/v1/traces"
    assert (scope.scope.name, scope.schema_url) == ("tertulia", "https://opentelemetry.io/schemas/1.41.0")
    assert "invoke_agent Gryag" in [span.name for span in scope.spans]
