"""Commands that people give, as `/memory` and `/forget`."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial

from msgspec import Struct

from tertulia.engine.agent_commands import AgentCommands
from tertulia.engine.background import BackgroundTasks, log_text, retry_forever
from tertulia.engine.command_list import help_lines
from tertulia.engine.languages.lines import Lines
from tertulia.engine.memory import Memory
from tertulia.engine.outbox_sender import OutboxSender
from tertulia.engine.owner_commands import OwnerCommands
from tertulia.engine.place_worker import STOPPED, PlaceWorkers
from tertulia.engine.rate_limit import RateLimiter
from tertulia.engine.reply_parts import split_replies
from tertulia.engine.shared import Shared
from tertulia.engine.store_protocols import Command, OutboxItem
from tertulia.engine.task_worker import TaskWorker
from tertulia.errors import InvalidValue, TertuliaError
from tertulia.ids import abbreviate_ids, match_ids
from tertulia.memory.facts import NO_LIMIT, subject_of
from tertulia.memory.retrieval.terms import terms
from tertulia.memory.values import Fact
from tertulia.messages import Author, Message, Place, Reply
from tertulia.parts import Text
from tertulia.tasks.due_times import format_minute
from tertulia.tasks.recurrence import parse_when, split_when
from tertulia.tasks.reminders import MAX_REMINDER_TEXT, MOST, PREFIX, asked_by, refuse_too_many, reminder_task
from tertulia.tasks.task import FORGET_CONFIRMED, Task, public_id, tasks_named
from tertulia.timezones import zone_named

log = logging.getLogger(__name__)

UNLIMITED = frozenset({"forget", "stop"})  # carried out also for blocked authors and over the rate limit
MEMORY_TIMEOUT = 2.0  # seconds to wait until memory has learned from the last messages
MIN_ID = 6  # characters of an abbreviated id, where words could be meant as well
MAX_LISTED = 50  # facts or tasks
MAX_LINE = 200  # characters of one fact or task
CANCELLED = "cancelled by /tasks"


class CommandOutcome(Struct, frozen=True, kw_only=True):
    """The reply lines and tasks of a command."""

    lines: tuple[str, ...] = ()
    tasks: tuple[Task, ...] = ()


def reply_with(*lines: str) -> CommandOutcome:
    return CommandOutcome(lines=lines)


class Commands:
    """Runs stored commands in order. A command that a crash interrupted runs again."""

    def __init__(
        self,
        shared: Shared,
        owner_commands: OwnerCommands,
        agent_commands: AgentCommands,
        rate_limiter: RateLimiter,
        workers: PlaceWorkers,
        sender: OutboxSender,
        tasks: TaskWorker,
        memory: Memory | None,
    ) -> None:
        self._store = shared.store
        self._identity = shared.identity
        self._translator = shared.translator
        self._aliases, self._agent_places = shared.aliases, shared.agent_places
        self._zone = shared.zone
        self._now, self._sleep = shared.now, shared.sleep
        self._owner_commands = owner_commands
        self._agent_commands = agent_commands
        self._rate_limiter = rate_limiter
        self._workers = workers
        self._sender = sender
        self._task_worker = tasks
        self._memory_worker = memory
        self._background = BackgroundTasks()
        self._working: asyncio.Task[None] | None = None
        self._more = False
        self._handlers: Mapping[str, Callable[[Command, Lines], Awaitable[CommandOutcome]]] = {
            "help": self._help,
            "start": self._greet,
            "memory": self._memory,
            "forget": self._forget,
            "remind": self._remind,
            "tasks": self._tasks,
            "clear": self._clear,
            "stop": self._stop_run,
            "agents": self._about_agents,
            "agent": self._about_agents,
        }

    def wake(self) -> None:
        """Run stored commands in the background; return at once."""
        self._more = True
        if self._working is None or self._working.done():
            self._working = self._background.start(self._work())

    def stop_for(self, place: Place, author: Author | None) -> None:
        """Stop the answer of a place in the background, if an author may, or somebody unknown; return at once."""
        self._background.start(self.stop_answers(self._aliases.current(place), author, before=self._now()))

    @property
    def busy(self) -> bool:
        return self._background.busy

    async def done(self) -> None:
        await self._background.done()

    async def close(self) -> None:
        await self._background.stop()

    async def _work(self) -> None:
        while self._more:
            self._more = False
            for command in await retry_forever(self._store.updates.commands, sleep=self._sleep):
                if command.message.place.platform in self._identity.platforms:
                    await self._run_command(command)

    async def _run_command(self, command: Command) -> None:
        """Run one command; store its end and its reply in one transaction."""
        message = command.message
        agent = await retry_forever(lambda: self._agent_of(command), sleep=self._sleep)
        lines = await retry_forever(lambda: self._translator.lines_for(message, agent), sleep=self._sleep)
        try:
            outcome = await self._outcome(command, lines)
        except Exception as error:  # noqa: BLE001 (of a platform or the store; the person gets a reply)
            log.error("command /%s failed: %s", command.name, log_text(error))
            outcome = reply_with(lines.command_failed)
        notices = [self._notice(command, outcome.lines)] if outcome.lines else []
        replies = split_replies(notices, self._identity.platforms)
        try:
            await retry_forever(
                lambda: self._store.updates.end(command, replies=replies, tasks=outcome.tasks), sleep=self._sleep
            )
        except InvalidValue as error:  # its author was forgotten
            log.info("%s", error)
            return
        self._sender.enqueue(replies)
        self._task_worker.wake()

    async def _outcome(self, command: Command, lines: Lines) -> CommandOutcome:
        if by_owner := self._owner_commands.handler(command):
            return reply_with(*await by_owner(command, lines))
        handler, message = self._handlers.get(command.name), command.message
        if handler is None and message.place.kind != "direct":  # in a group it may be for another bot
            return CommandOutcome()
        author = (message.place.author_namespace, message.author.id)
        may_ask = command.name in UNLIMITED or author not in await self._store.place_settings.blocked()
        is_answered = may_ask and await self._rate_limiter.count_answer(message)
        if not is_answered and command.name not in UNLIMITED:
            is_told = may_ask and await self._rate_limiter.claim_notice(message)
            return reply_with(lines.too_many) if is_told else CommandOutcome()
        if handler is None:
            return reply_with(lines.unknown_command.format(name=_short(command.name)))
        outcome = await handler(command, lines)
        return outcome if is_answered else CommandOutcome(tasks=outcome.tasks)

    def _notice(self, command: Command, lines: Sequence[str]) -> OutboxItem:
        """Return a reply that does not enter the log."""
        message = command.message
        return OutboxItem(
            id=f"command-{command.id}",
            reply=Reply(place=message.place, text="\n".join(lines), reply_to=_quoted(message)),
            made_at=self._now(),
            kind="notice",
            agent=command.agent,
        )

    async def _agent_of(self, command: Command) -> str:
        """Return the agent whose account a command names, else the default one of its place, as it is stored."""
        cast = self._identity.cast
        if cast.is_single or command.agent:
            return command.agent
        return cast.stored_name((await self._agent_places.here(command.message.place)).default or cast.default)

    async def _greet(self, command: Command, lines: Lines) -> CommandOutcome:
        persona = self._identity.persona_on(command.message.place.platform, await self._agent_of(command))
        return reply_with(lines.greeting.format(name=persona.name))

    async def _help(self, command: Command, lines: Lines) -> CommandOutcome:
        place, author = command.message.place, command.message.author
        is_owner = place.kind == "direct" and self._identity.is_owner(place, author)
        return reply_with(*help_lines(lines, owner=is_owner, several=not self._identity.cast.is_single).values())

    async def _about_agents(self, command: Command, lines: Lines) -> CommandOutcome:
        return reply_with(await self._agent_commands.carry_out(command, lines))

    async def _memory(self, command: Command, lines: Lines) -> CommandOutcome:
        await self._wait_for_memory()
        known = await self._facts(command)
        how, _, given = command.argument.strip().partition(" ")
        if not how:
            return reply_with(*self._list(known[:MAX_LISTED], known, lines) or [lines.nothing_remembered])
        if how.casefold() != "why" or not given.strip():
            return reply_with(help_lines(lines)["memory"])
        found = _by_id(given.strip(), known)
        if len(found) != 1:
            return reply_with(lines.facts_with_id.format(count=len(found)))
        reasons = [self._reason(message) for message in await self._store.facts.why(found[0].id)]
        imported = lines.fact_imported.format(program=found[0].imported_from)
        no_reason = lines.sources_gone if found[0].sources else imported
        return reply_with(self._fact(found[0], lines), *(reasons or [no_reason]))

    async def _forget(self, command: Command, lines: Lines) -> CommandOutcome:
        """Forget by a task that is stored with the end of the command, so that it is done and confirmed once."""
        given = command.argument.strip()
        if not given:
            return reply_with(help_lines(lines)["forget"])
        await self._wait_for_memory()  # else the last messages would be learned afterwards
        message = command.message
        if given.casefold() == "all":
            await self._store.facts.forget_all(subject_of(message.author, message.place), at=self._now())
            return reply_with(lines.all_forgotten)
        known = await self._facts(command)
        named = [_by_id(word, known, least=MIN_ID) for word in given.split()]
        if any(len(found) != 1 for found in named):
            named = [_by_words(given, known)]
            if len(named[0]) > 1:
                return reply_with(lines.which_of_these, *self._list(named[0], known, lines))
        facts = list(dict.fromkeys(fact.id for found in named for fact in found))
        if not facts:
            return reply_with(lines.nothing_like_that)
        language = await self._translator.language_of(message.place, message.author)
        args = {"facts": facts, "reply_to": _quoted(message), "language": language}
        name = f"command-{command.id}-forget"
        task = Task(id=name, kind=FORGET_CONFIRMED, place=message.place, due_at=self._now(), args=args)
        return CommandOutcome(tasks=(task,))

    async def _remind(self, command: Command, lines: Lines) -> CommandOutcome:
        """Plan a reminder by a task that is stored with the end of the command."""
        message, now = command.message, self._now()
        words, text = split_when(command.argument) or ("", "")
        if not text or len(text) > MAX_REMINDER_TEXT:
            return reply_with(lines.remind_how)
        try:
            when = parse_when(words, now, self._zone)
        except InvalidValue:
            return reply_with(lines.remind_when.format(moment=format_minute(now, self._zone)))
        try:
            refuse_too_many(await self._store.tasks.listed(message.place))
        except InvalidValue:
            return reply_with(lines.remind_full.format(count=MOST))
        said = lines.reminder.format(text=text)
        name, agent = f"{PREFIX}command-{command.id}", await self._agent_of(command)
        task = reminder_task(name, message.place, said, when=when, asked=message, agent=agent)
        told = lines.reminder_set.format(moment=format_minute(task.due_at, self._zone))
        again = [lines.reminder_again.format(when=task.again.words)] if task.again else []
        return CommandOutcome(lines=(told, *again), tasks=(task,))

    async def _tasks(self, command: Command, lines: Lines) -> CommandOutcome:
        listed = await self._store.tasks.listed(command.message.place)
        planned = sorted((one for one in listed if one.status == "pending"), key=lambda one: one.due_at)
        how, _, given = command.argument.strip().partition(" ")
        if not how:
            names = abbreviate_ids(map(public_id, planned))
            shown = [f"{names[public_id(task)]}  {self._task(task)}" for task in planned[:MAX_LISTED]]
            return reply_with(*shown or [lines.nothing_planned])
        if how.casefold() != "cancel" or not given.strip():
            return reply_with(help_lines(lines)["tasks"])
        found = tasks_named(given.strip(), planned)
        if len(found) != 1:
            return reply_with(lines.tasks_with_id.format(count=len(found)))
        return reply_with(await self._cancel(found[0], command.message, lines))

    async def _cancel(self, task: Task, message: Message, lines: Lines) -> str:
        """Cancel a task for a person who asked for it, or administers its place."""
        place, author = message.place, message.author
        is_theirs = place.kind == "direct" or asked_by(task) == author.id
        if not is_theirs and not await self._identity.is_administrator(place, author):
            return lines.only_own_tasks
        cancelled = None
        with suppress(InvalidValue):  # it has begun meanwhile
            cancelled = await self._store.tasks.cancel(task.id, why=CANCELLED)
        if cancelled is None:
            return lines.tasks_with_id.format(count=0)
        return lines.task_cancelled.format(task=self._task(task))

    async def _clear(self, command: Command, lines: Lines) -> CommandOutcome:
        place, author = command.message.place, command.message.author
        if place.kind != "direct" and not await self._identity.is_administrator(place, author):
            return reply_with(lines.only_administrators)
        await self._store.place_settings.clear(place, command.horizon, at=self._now())
        return reply_with(lines.begun_anew)

    async def _stop_run(self, command: Command, lines: Lines) -> CommandOutcome:
        """Stop what a person may stop of the answers in a place."""
        place, author = command.message.place, command.message.author
        if not await self._store.runs.unfinished(place) and self._workers.answered(place) is None:
            return reply_with(lines.nothing_to_stop)
        is_stopped = await self.stop_answers(place, author, before=self._now())
        return reply_with(lines.stopped if is_stopped else lines.only_asker)

    async def stop_answers(self, place: Place, author: Author | None = None, *, before: datetime) -> bool:
        """Stop the answers of a place that had begun before a moment, each if an author may; return whether one was.

        Replies that wait to be sent are dropped. An administrator may stop all, and so may nobody in particular;
        others, what they asked for.
        """
        gathered = self._workers.answered(place)  # its run may not be stored yet; read before anything that comes later
        may_all = author is None or place.kind == "direct" or await self._identity.is_administrator(place, author)

        def may_stop(asked: Message | None) -> bool:
            return may_all or (asked is not None and author is not None and asked.author.id == author.id)

        runs = [run for run in await self._store.runs.unfinished(place) if run.began_at <= before]
        theirs = [run for run in runs if may_stop(await self._store.log.get(place, run.target))]
        opened = [run for run in runs if run.status == "open"]
        may_stop_run = all(run in theirs for run in opened) if opened else gathered is not None and may_stop(gathered)
        if may_stop_run:
            self._workers.stop(place)
        drop = partial(self._store.outbox.drop_answers, [run.id for run in theirs], why=STOPPED)
        await retry_forever(drop, sleep=self._sleep)
        return may_stop_run or bool(theirs)

    async def _facts(self, command: Command) -> Sequence[Fact]:
        """Return the facts about the person that prompts of any agent may show in the place, each text once."""
        place, about, now = command.message.place, self._store.facts.about, self._now()
        subject = subject_of(command.message.author, place)
        found: dict[str, Fact] = {}
        for seen_by in await self._agent_places.seen_by(place):
            for fact in await about(subject, place=place, asked_by=subject, limit=NO_LIMIT, at=now, seen_by=seen_by):
                found.setdefault(fact.text, fact)
        return list(found.values())

    async def _wait_for_memory(self) -> None:
        with suppress(TimeoutError, TertuliaError):
            async with asyncio.timeout(MEMORY_TIMEOUT):
                if self._memory_worker:
                    await self._memory_worker.done()

    def _list(self, facts: Iterable[Fact], known: Iterable[Fact], lines: Lines) -> list[str]:
        names = abbreviate_ids(fact.id for fact in known)
        return [f"{names[fact.id]}  {self._fact(fact, lines)}" for fact in facts]

    def _fact(self, fact: Fact, lines: Lines) -> str:
        """`Lives in Lviv. (since 2026-11-20 18:00)`"""
        moment = self._when(fact.held_from or fact.learned_at).strip()
        return lines.fact_since.format(fact=_short(fact.text), moment=moment)

    def _reason(self, message: Message) -> str:
        text = " ".join(part.text if isinstance(part, Text) else getattr(part, "words", "") for part in message.parts)
        return f"{self._when(message.sent_at)}{message.author.name}: {_short(text)}"

    def _task(self, task: Task) -> str:
        text = task.args.get("text") or task.args.get("body") or ""
        said = f": {text}" if isinstance(text, str) and text else ""
        return _short(f"{self._when(task.due_at)}{task.kind}{said}{f' ({task.again.words})' if task.again else ''}")

    def _when(self, moment: datetime | None) -> str:
        if moment is None:
            return ""
        try:
            return f"{moment.astimezone(zone_named(self._zone)):%Y-%m-%d %H:%M} "
        except (OverflowError, ValueError, OSError):  # at the ends of the calendar
            return f"{moment:%Y-%m-%d %H:%M}Z "


def _quoted(message: Message) -> str | None:
    """Return the id of the message that a reply quotes: in a group the command."""
    return None if message.place.kind == "direct" else message.id


def _by_id(prefix: str, facts: Sequence[Fact], *, least: int = 1) -> list[Fact]:
    """Return the fact with that id, or those whose ids begin with it."""
    found = match_ids(prefix, (fact.id for fact in facts), min_length=least)
    return [fact for fact in facts if fact.id in found]


def _by_words(text: str, facts: Sequence[Fact]) -> list[Fact]:
    """Return the fact with exactly this text, or those with all its terms."""
    exact = [fact for fact in facts if fact.text.casefold() == text.casefold()]
    wanted = set(terms(text))
    return exact or [fact for fact in facts if wanted and wanted <= set(terms(fact.text))]


def _short(text: str, longest: int = MAX_LINE) -> str:
    """Return *text* as one line of at most *longest* characters."""
    line = " ".join(text.split())
    return line if len(line) <= longest else f"{line[: longest - 1].rstrip()}…"
