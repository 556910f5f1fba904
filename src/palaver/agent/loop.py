"""One run: ask the model, run the tools it calls, ask again, until it answers."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import count
from secrets import token_hex

from msgspec import Struct
from msgspec.structs import replace

from palaver.agent.calling import failure
from palaver.agent.files import GoneFiles
from palaver.agent.run_context import RunContext
from palaver.agent.toolbox import KNOWN, Known, Toolbox
from palaver.errors import FileGone, ResponseUnreadable
from palaver.models.base import Model, Response
from palaver.parts import Part, ToolCall, ToolResult
from palaver.turns import Layer, Prompt, Turn, shown, user

STEPS = 10


class BrokenOff(Struct, frozen=True, kw_only=True):
    """A step with which the run ends, and how its calls are to be answered: it was cancelled, or they came cut."""

    results: Turn


async def run_agent(
    prompt: Prompt,
    model: Model,
    toolbox: Toolbox,
    *,
    steps: int = STEPS,
    streaming: bool = False,
    gone: GoneFiles | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> AsyncGenerator[Part | Response | Turn | BrokenOff, None]:
    """Yield each response as it comes, each turn of tool results as it is known; when streaming, also the pieces.

    After *steps* rounds of tools the model is asked once more, without them. A response that calls a tool which the
    caller is to answer, or that is not valid, ends the run. So does one that reached the limit of tokens: its calls
    may be cut, and are not run. When the run is cancelled among its tools, the step is yielded before the error. Files
    that are *gone* are not asked about; those the service no longer has are noted there.
    """
    gone = gone or GoneFiles()
    run_id = token_hex(10)
    for step in count():
        asked = prompt if step < steps else replace(prompt, tools=())
        response = None
        async with closing(_answer(model, asked, gone, streaming=streaming)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Response):
                    response = piece = _telling_what_is_cut(piece, toolbox)
                yield piece
        if response is None:
            raise ResponseUnreadable(f"{model.name} ended its stream without a response")
        calls = response.function_calls
        run = [call for call in calls if not toolbox.leaves(call)]
        if not run or not response.valid or step >= steps:
            return
        if response.finish.outcome == "cut":
            yield BrokenOff(results=user(*map(_not_run, run)))
            return
        known: Known = []
        try:
            results = user(*await _run(toolbox, run, RunContext(run_id=run_id, step=step, now=now()), known))
        except asyncio.CancelledError:
            yield BrokenOff(results=user(*_with_what_is_known(run, known)))
            raise
        yield results
        if len(run) < len(calls):
            return
        prompt = after(prompt, response.turn, results)


async def _answer(model: Model, prompt: Prompt, gone: GoneFiles, *, streaming: bool) -> AsyncIterator[Part | Response]:
    """The pieces of the answer; where files turn out to be gone, of that to the prompt without them."""
    while True:
        sent, begun = gone.without(prompt), False
        try:
            async with closing(model.stream(sent) if streaming else _whole(model, sent)) as pieces:
                async for piece in pieces:
                    begun = True
                    yield piece
            return
        except FileGone as error:
            if begun or not gone.note(error, sent):
                raise


async def _run(toolbox: Toolbox, calls: Sequence[ToolCall], context: RunContext, known: Known) -> list[ToolResult]:
    """The results of *calls*, each noted in *known* at once."""
    token = KNOWN.set(known)
    try:
        return await toolbox.run(calls, context)
    finally:
        KNOWN.reset(token)


def _with_what_is_known(calls: Sequence[ToolCall], known: Known) -> Iterator[ToolResult]:
    for call in calls:
        stopped = failure(call, f"{call.name} was stopped before it finished; what it has done is not known.")
        yield next((result for one, result in known if one is call), stopped)


def _telling_what_is_cut(response: Response, toolbox: Toolbox) -> Response:
    """The response; where its calls may be cut, its finish says which tools are therefore not run."""
    names = ", ".join(call.name for call in response.function_calls if not toolbox.leaves(call))
    if response.finish.outcome != "cut" or not names:
        return response
    said = f"{response.finish.message} " if response.finish.message else ""
    message = f"{said}Not run, because the call may be cut: {names}."
    return replace(response, finish=replace(response.finish, message=message))


def _not_run(call: ToolCall) -> ToolResult:
    return failure(call, f"{call.name} was not run: the limit of tokens was reached, and the call may be cut.")


@asynccontextmanager
async def closing(pieces: AsyncIterator[Part | Response]) -> AsyncIterator[AsyncIterator[Part | Response]]:
    """The pieces, let go of at once when nobody wants more of them."""
    try:
        yield pieces
    finally:
        if isinstance(pieces, AsyncGenerator):
            await pieces.aclose()


async def _whole(model: Model, prompt: Prompt) -> AsyncIterator[Part | Response]:
    yield await model.respond(prompt)


def after(prompt: Prompt, *turns: Turn) -> Prompt:
    """The prompt with more turns at its end, as a model is shown them."""
    return replace(prompt, layers=(*prompt.layers, Layer(name="run", turns=tuple(map(shown, turns)))))
