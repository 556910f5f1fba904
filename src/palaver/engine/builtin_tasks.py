"""Handlers of the built-in task kinds: send, sticker, remember, forget, block, unblock, clear-conversation."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from msgspec import ValidationError, convert

from palaver.context.log import Log
from palaver.engine.behavior import Behavior, IsAdministrator, require_right_to_clear
from palaver.engine.memory.recall import evidence_messages
from palaver.engine.places import DelimiterCache
from palaver.engine.store_protocols import PlaceSettings
from palaver.engine.task_worker import TaskHandler
from palaver.errors import InvalidValue
from palaver.memory.facts import MAX_FACT_LENGTH, Fact, Facts, default_scope, subject_of
from palaver.memory.verify.clauses import supporting_messages
from palaver.memory.verify.guards import unfit_reason
from palaver.messages import Author, Reply
from palaver.run.outcome import make_reply
from palaver.tasks.task import FORGET_CONFIRMED, Send, Sticker, Task, block_of

log = logging.getLogger(__name__)

FORGOTTEN = "It is forgotten."


class BuiltinTasks:
    """Handlers of the task kinds that every agent has. `handlers` has them by kind."""

    def __init__(
        self,
        place_settings: PlaceSettings,
        facts: Facts,
        messages: Log,
        behavior: Behavior,
        *,
        delimiters: DelimiterCache,
        is_administrator: IsAdministrator,
        now: Callable[[], datetime],
    ) -> None:
        self._place_settings = place_settings
        self._facts = facts
        self._messages = messages
        self._now = now
        self._behavior = behavior
        self._administers = is_administrator
        self._delimiters = delimiters
        self.handlers: Mapping[str, TaskHandler] = {
            kind: TaskHandler(run=run, repeatable=True)
            for kind, run in (
                ("send", self._say),
                ("sticker", self._say),
                ("remember", self._remember),
                ("block", self._block),
                ("unblock", self._unblock),
                ("clear-conversation", self._clear),
                (FORGET_CONFIRMED, self._forget),
            )
        }

    async def _say(self, task: Task) -> Sequence[Reply]:
        step = block_of(task)
        if not isinstance(step, Send | Sticker):
            raise InvalidValue(f"task {task.id}: kind {task.kind} sends nothing")
        reply = make_reply(step, task.place, None, delimiter=await self._delimiters.get(task.place))
        return [reply] if reply else []

    async def _remember(self, task: Task) -> None:
        texts, source = task.args.get("facts"), task.args.get("source")
        if not isinstance(texts, list) or not isinstance(source, str):
            raise InvalidValue(f"task {task.id} has no facts to remember")
        author = _author(task)
        evidence = await evidence_messages(self._messages, author, place=task.place, target=source)
        found = [
            (number, text, await asyncio.to_thread(supporting_messages, text, author, evidence))
            for number, text in enumerate(map(str, texts))
        ]
        facts = [
            Fact(
                id=f"{task.id}-{number}",
                subject=subject_of(author, task.place),
                text=text[:MAX_FACT_LENGTH],
                place=task.place,
                sources=tuple(message.id for message in sources),
                learned_at=self._now(),
                scope=default_scope(task.place),
            )
            for number, text, sources in found
            if sources and not unfit_reason(text)  # rejects claims without support, instructions and secrets
        ]
        if len(facts) < len(found):
            log.info("task %s: %d of %d facts rejected", task.id, len(found) - len(facts), len(found))
        await self._facts.learn(facts)

    async def _forget(self, task: Task) -> Sequence[Reply]:
        facts, near = task.args.get("facts"), task.args.get("reply_to")
        if not isinstance(facts, list):
            raise InvalidValue(f"task {task.id} has no list of facts to forget")
        await self._facts.forget(list(map(str, facts)), at=self._now())
        return [Reply(place=task.place, text=FORGOTTEN, reply_to=near)]

    def _refuse_models(self, task: Task) -> None:
        """Raise `InvalidValue` for a destructive task of a model that `model_may` does not allow now."""
        if task.run is not None and task.kind not in self._behavior.model_may:
            raise InvalidValue(f"task {task.id}: Behavior.model_may does not allow {task.kind}")

    async def _block(self, task: Task) -> None:
        self._refuse_models(task)
        await self._place_settings.block(task.place.author_namespace, _author(task).id, at=self._now())

    async def _unblock(self, task: Task) -> None:
        await self._place_settings.unblock(task.place.author_namespace, _author(task).id)

    async def _clear(self, task: Task) -> None:
        self._refuse_models(task)
        beginning = task.args.get("beginning")
        if not isinstance(beginning, int):
            raise InvalidValue(f"task {task.id} has no number at which the conversation begins")
        if task.run is not None and task.place.kind != "direct":  # planned by a model, so its author needs the right
            await require_right_to_clear(task.place, _author(task), self._administers)
        await self._place_settings.clear(task.place, beginning, at=self._now())


def _author(task: Task) -> Author:
    """Return the author of the message that led to the task."""
    try:
        return convert(task.args.get("author"), Author)
    except ValidationError as error:
        raise InvalidValue(f"task {task.id} has no author") from error
