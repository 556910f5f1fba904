"""Runs the loop of the engine's runs, and reads what they come to."""

import asyncio
import secrets
from collections.abc import Callable, Sequence
from contextlib import aclosing
from datetime import datetime
from functools import partial
from typing import Protocol

from palaver.agent.files import GoneFiles
from palaver.agent.toolbox import Toolbox
from palaver.conversation.crew import Sleep, foreign
from palaver.conversation.ending import Ending, Endings
from palaver.conversation.journal import Runs
from palaver.messages import Message
from palaver.models.base import Model, Response
from palaver.parts import Part
from palaver.run.journal import Journal, Run, ToolRun
from palaver.run.loop import Answered, Join, RunLoop, run_context
from palaver.run.outcome import Kinds, Texts


class Watch(Protocol):
    def __call__(self, run: Run, piece: Part | Response) -> None:
        """See a piece of what a model says as it comes, then the whole response; and each tool's result."""


def new_run(messages: Sequence[Message], target: Message, *, at: datetime, model: str, profile: str) -> Run:
    """A run, not begun yet, that takes *messages* and answers *target*."""
    return Run(
        id=secrets.token_hex(10),
        place=target.place,
        target=target.id,
        taken=tuple(message.id for message in messages),
        began_at=at,
        horizon=0,
        model=model,
        profile=profile,
    )


class Answerer:
    """What runs need besides a model and its tools."""

    def __init__(
        self,
        runs: Runs,
        endings: Endings,
        *,
        kinds: Kinds,
        now: Callable[[], datetime],
        tool_ended: Callable[[], None],
        join: Join | None = None,
        watch: Watch | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.gone = GoneFiles()
        self._runs = runs
        self._endings = endings
        self._kinds = kinds
        self._now = now
        self._tool_ended = tool_ended
        self._join = join
        self._watch = watch
        self._sleep = sleep

    async def answer(
        self, journal: Journal, target: Message, *, model: Model, toolbox: Toolbox
    ) -> tuple[Run, Ending, Message]:
        """Run from where the journal ends to the model's answer, and read what it comes to."""
        texts = Texts(self._kinds)
        loop = RunLoop(
            journal,
            store=self._runs,
            model=model,
            toolbox=toolbox,
            now=self._now,
            sleep=self._sleep,
            streaming=self._watch is not None,
            join=self._join,
            objection=texts.objection,
            tool_ended=self._ended,
            gone=self.gone,
            context=partial(run_context, message=target),
        )
        with foreign(model.name):
            answered = await self._answered(loop)
        return answered.run, await self._endings.words_of(answered, target, texts), target

    async def _answered(self, loop: RunLoop) -> Answered:
        if self._watch is None:
            return await loop.answered()
        async with aclosing(loop.run()) as events:
            async for event in events:
                if isinstance(event, Part | Response):
                    self._watch(loop.journal.run, event)
                elif isinstance(event, Answered):
                    return event
        raise AssertionError  # a run ends with an answer, or raises

    def _ended(self, run: Run, tool: ToolRun) -> None:
        if self._watch and tool.result:
            self._watch(run, tool.result)
        self._tool_ended()
