"""The tool `remind_me`: a text that is sent to the place of a conversation when it is due."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Annotated

from msgspec import Struct

from tertulia.engine.store_protocols import TaskStore
from tertulia.errors import InvalidValue
from tertulia.messages import Place
from tertulia.tasks.due_times import format_moment
from tertulia.tasks.recurrence import parse_when
from tertulia.tasks.reminders import MAX_REMINDER_TEXT, PREFIX, refuse_too_many, reminder_task
from tertulia.tasks.task import Task
from tertulia.timezones import zone_named
from tertulia.toolbox.run_context import RunContext
from tertulia.toolbox.toolbox import Tool, tool

SAME = timedelta(minutes=5)  # two reminders of a run with the same text this close are one


class Reminder(Struct, frozen=True, kw_only=True, omit_defaults=True):
    due: str  # in the zone of the people
    again: str = ""  # when it comes again
    id: str


def reminder_tool(tasks: TaskStore, now: Callable[[], datetime], zone: str) -> Tool:
    """Return the tool `remind_me`, with the clock *now*, for people in *zone*. Running a call twice is one reminder."""
    zone_named(zone)
    if now().tzinfo is None:
        raise InvalidValue("the clock of reminders gives times without a zone; use lambda: datetime.now(UTC)")
    one_by_one = asyncio.Lock()  # concurrent calls must count each other's reminders

    @tool(repeatable=True)
    async def remind_me(
        context: RunContext,
        when: Annotated[
            str,
            f"When, in the time zone {zone}: in 20 minutes, in 2 hours, in 1 day, 18:00, tomorrow 9:00, friday 18:00, "
            "2026-11-20 (at 9:00), 2026-11-20T18:00 (or with an offset such as +02:00); again and again: every day "
            "9:00, every weekday 8:00, every monday 18:00, the first of the month, and until 2026-12-31 if it ends",
        ],
        text: Annotated[str, "What to say then, word for word as people will read it"],
    ) -> Reminder:
        """Set a reminder: the text is sent to this conversation at that time. Returns when that will be."""
        text, place, task_id = _checked_text(text), _place(context), f"{PREFIX}{context.idempotency_key}"
        async with one_by_one:
            existing = await tasks.listed(place)
            task = next((known for known in existing if known.id == task_id), None)  # from before a crash
            if task is None:
                moment = parse_when(when, now(), zone)
                by, agent = context.run_id, context.agent
                new = reminder_task(task_id, place, text, when=moment, asked=context.message, made_by=by, agent=agent)
                task = next((known for known in existing if _is_same(known, new)), None)
            if task is None:
                refuse_too_many(existing)
                await tasks.add([new])
                task = new
        again = task.again.words if task.again else ""
        return Reminder(due=format_moment(task.due_at, zone), again=again, id=task.id)

    return remind_me


def _checked_text(text: str) -> str:
    text = text.strip()
    if not text or len(text) > MAX_REMINDER_TEXT:
        raise InvalidValue(f"say what to remind of, in at most {MAX_REMINDER_TEXT:,} characters")
    return text


def _place(context: RunContext) -> Place:
    if context.place is None:
        raise InvalidValue("a reminder needs a conversation to be sent to, and this call comes from none")
    return context.place


def _is_same(known: Task, new: Task) -> bool:
    """Whether both are the same reminder of a run. A relative time, such as "in 1 hour", may differ a little."""
    same = (known.made_by, known.kind, known.args, known.again) == (new.made_by, new.kind, new.args, new.again)
    return same and abs(known.due_at - new.due_at) <= SAME
