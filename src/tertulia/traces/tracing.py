"""Tracing: each run that ends becomes a trace, read from the store, with the times at which all of it happened.

Nothing of this is in the way of an answer: a reader of the engine's events reads what a run left, as the page does.
So what a tool traces by itself is no part of the run's trace, and a run that a kill cut off is traced at its end.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from importlib.metadata import version

from opentelemetry.context import Context
from opentelemetry.trace import SpanKind, StatusCode, Tracer, set_span_in_context

from tertulia.engine.engine import Engine
from tertulia.errors import TertuliaError
from tertulia.events import RunEnded
from tertulia.inspector import runs
from tertulia.traces import names
from tertulia.traces.run_spans import SpanValue, run_spans

log = logging.getLogger(__name__)

TIMEOUT = 5  # seconds of one export
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


async def trace_runs(engine: Engine, tracer: Tracer, *, content: bool = False) -> None:
    """Trace each run that ends, until the engine is closed; with *content* also what people and models wrote."""
    async for event in engine.events():
        if not isinstance(event, RunEnded):
            continue
        try:
            shown = await runs.run(engine.store, event.run_id)
        except TertuliaError as error:  # it is forgotten, or the store is closed
            log.debug("run %s is not traced: %s", event.run_id, error)
        else:
            agent = shown.row.run.agent or engine.persona.name
            emit(tracer, run_spans(shown, agent=agent, content=content))


def emit(tracer: Tracer, spans: Sequence[SpanValue]) -> None:
    """Give spans to a tracer, the first as the parent of the others."""
    parent = Context()  # nobody's, whatever is traced here besides
    for value in spans:
        span = tracer.start_span(
            value.name,
            parent,
            SpanKind.CLIENT if value.operation == "chat" else SpanKind.INTERNAL,
            {names.OPERATION: value.operation, **value.attributes},
            start_time=_nanoseconds(value.begun_at),
        )
        if value.error:
            span.set_attribute(names.ERROR, value.error)
            span.set_status(StatusCode.ERROR)
        span.end(_nanoseconds(value.ended_at))
        if value is spans[0]:
            parent = set_span_in_context(span)


@asynccontextmanager
async def open_tracer(endpoint: str) -> AsyncIterator[Tracer]:
    """Open a tracer that exports to *endpoint*; to that of OTEL_EXPORTER_OTLP_ENDPOINT if it is empty."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=Resource.create({"service.name": names.SCOPE}), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint or None, timeout=TIMEOUT)))
    try:
        yield provider.get_tracer(names.SCOPE, version("tertulia"), schema_url=names.SCHEMA_URL)
    finally:
        await asyncio.to_thread(provider.shutdown)


def _nanoseconds(at: datetime) -> int:
    since = at - _EPOCH
    return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1_000
