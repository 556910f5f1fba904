"""Commands that people give, as `/memory` and `/forget`, and the plain yes that confirms forgetting."""

import asyncio
import logging
import re
import unicodedata
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from zoneinfo import ZoneInfo

from msgspec import Struct

from palaver.characters import visible
from palaver.engine.background import BackgroundTasks, Sleep, log_text, retry_forever
from palaver.engine.behavior import TOO_MANY, Behavior
from palaver.engine.identity import Identity
from palaver.engine.outbox_sender import split_replies
from palaver.engine.rate_limit import RateLimiter
from palaver.engine.store_protocols import Command, OutboxItem, ProposalStore, StoreProtocol
from palaver.engine.triggers import name_pattern
from palaver.errors import InvalidValue, NotAllowed, PalaverError
from palaver.ids import abbreviate_ids, match_ids
from palaver.memory.facts import Fact, is_current, subject_of
from palaver.memory.retrieval.terms import terms
from palaver.messages import Author, Message, Place, Reply
from palaver.parts import Text, joined_text
from palaver.platform import Platform
from palaver.run.journal import Run
from palaver.tasks.task import FORGET_CONFIRMED, Task

log = logging.getLogger(__name__)

HELP = {
    "help": "/help: this list",
    "memory": "/memory: what I remember of you; /memory why ID: the messages that say so",
    "forget": "/forget ID or words of it: remove it, and hide the messages it came from; /forget all: everything",
    "tasks": "/tasks: what is planned here",
    "clear": "/clear: begin anew; I no longer see what has been said here",
    "stop": "/stop: stop the answer that is being written",
}
UNLIMITED = frozenset({"forget", "stop"})  # carried out also for blocked authors and over the rate limit
NOTHING = "Nothing is remembered of you."
BEGUN_ANEW = "Begun anew: I no longer see what was said here before."
LIKE_THAT = "Nothing like that is remembered of you."
MEMORY_TIMEOUT = 2.0  # seconds to wait until memory has learned from the last messages
MIN_ID = 6  # characters of an abbreviated id, where words could be meant as well
MAX_LISTED = 50  # facts or tasks
MAX_LINE = 200  # characters of one fact or task

_WORDS = """
    yes|yep|yeah|yup|y|sure|ok|okay|okey|k|confirm|confirmed|i confirm|go ahead|do it|yes do it|ok do it|of course
    так|ага|угу|добре|гаразд|звісно|авжеж|підтверджую|ок|окей|да|конечно|хорошо|ладно|подтверждаю|давай
    tak|dobrze|jasne|ja|jawohl|oui|d'accord|sí|si|claro|vale|sim|sì|evet|はい|好|好的|是|是的|네|예
    👍|✅|👌|+
    """
YES = frozenset(word.strip() for line in _WORDS.strip().splitlines() for word in line.split("|"))
_PLEASE = re.compile(r"\b(?:please|pls|будь ласка|пожалуйста|proszę|bitte|por favor|s'il te plaît)\b")
_SKIN = re.compile("[\U0001f3fb-\U0001f3ff]")  # the colour of a hand
_AROUND = " \t\r\n.,!;:…\"'«»“”()"
_LONGEST = 80  # characters; a plain yes has fewer


async def no_memory() -> None:
    """Return at once: there is no memory to wait for."""


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
        store: StoreProtocol,
        identity: Identity,
        *,
        platforms: Mapping[str, Platform],
        zone: str,
        rate_limiter: RateLimiter,
        learned: Callable[[], Awaitable[None]],
        stop: Callable[[Place], None],
        sent: Callable[[Iterable[OutboxItem]], None],
        planned: Callable[[], None],
        now: Callable[[], datetime],
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._store = store
        self._identity = identity
        self._platforms = platforms
        self._zone = ZoneInfo(zone)
        self._rate_limiter = rate_limiter
        self._learned = learned  # waits until memory has learned from all messages
        self._stop = stop
        self._sent = sent
        self._planned = planned
        self._now = now
        self._sleep = sleep
        self._background = BackgroundTasks()
        self._working: asyncio.Task[None] | None = None
        self._more = False
        self._handlers: Mapping[str, Callable[[Command], Awaitable[CommandOutcome]]] = {
            "help": self._help,
            "start": self._help,
            "memory": self._memory,
            "forget": self._forget,
            "tasks": self._tasks,
            "clear": self._clear,
            "stop": self._stop_run,
        }

    def wake(self) -> None:
        """Run stored commands in the background; return at once."""
        self._more = True
        if self._working is None or self._working.done():
            self._working = self._background.start(self._work())

    def stop_for(self, place: Place, author: Author) -> None:
        """Stop the run of a place in the background, if an author may; return at once."""
        self._background.start(self._stop_for(place, author))

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
                if self._identity.has_platform(command.message.place.platform):
                    await self._run_command(command)

    async def _run_command(self, command: Command) -> None:
        """Run one command; store its end and its reply in one transaction."""
        try:
            outcome = await self._outcome(command)
        except NotAllowed as error:
            outcome = reply_with(f"{error}.")
        except Exception as error:  # noqa: BLE001 (of a platform or the store; the person gets a reply)
            log.error("command /%s failed: %s", command.name, log_text(error))
            outcome = reply_with("Something went wrong on my side, and this was not done. Please try again.")
        notices = [self._notice(command, outcome.lines)] if outcome.lines else []
        replies = split_replies(notices, self._platforms)
        try:
            await retry_forever(
                lambda: self._store.updates.end(command, replies=replies, tasks=outcome.tasks), sleep=self._sleep
            )
        except InvalidValue as error:  # its author was forgotten
            log.info("%s", error)
            return
        self._sent(replies)
        self._planned()

    async def _outcome(self, command: Command) -> CommandOutcome:
        handler, message = self._handlers.get(command.name), command.message
        if handler is None and message.place.kind != "direct":  # in a group it may be for another bot
            return CommandOutcome()
        author = (message.place.author_namespace, message.author.id)
        may_ask = command.name in UNLIMITED or author not in await self._store.place_settings.blocked()
        is_answered = may_ask and await self._rate_limiter.count_answer(message)
        if not is_answered and command.name not in UNLIMITED:
            return (
                reply_with(TOO_MANY) if may_ask and await self._rate_limiter.claim_notice(message) else CommandOutcome()
            )
        if handler is None:
            return reply_with(f"There is no /{_short(command.name)}; /help lists what there is.")
        outcome = await handler(command)
        return outcome if is_answered else CommandOutcome(tasks=outcome.tasks)

    def _notice(self, command: Command, lines: Sequence[str]) -> OutboxItem:
        """Return a reply that does not enter the log."""
        message = command.message
        near = None if message.place.kind == "direct" else message.id
        return OutboxItem(
            id=f"command-{command.id}",
            reply=Reply(place=message.place, text="\n".join(lines), reply_to=near),
            made_at=self._now(),
            kind="notice",
        )

    async def _help(self, _: Command) -> CommandOutcome:
        return reply_with(*HELP.values())

    async def _memory(self, command: Command) -> CommandOutcome:
        await self._wait_for_memory()
        known = await self._facts(command)
        how, _, given = command.argument.strip().partition(" ")
        if not how:
            return reply_with(*self._lines(known[:MAX_LISTED], known) or [NOTHING])
        if how.casefold() != "why" or not given.strip():
            return reply_with(HELP["memory"])
        found = _by_id(given.strip(), known)
        if len(found) != 1:
            return reply_with(f"{len(found) or 'No'} facts have an id that begins so.")
        reasons = [self._reason(message) for message in await self._store.facts.why(found[0].id)]
        return reply_with(self._fact(found[0]), *(reasons or ["The messages it was learned from are hidden, or gone."]))

    async def _forget(self, command: Command) -> CommandOutcome:
        """Forget by a task that is stored with the end of the command, so that it is done and confirmed once."""
        given = command.argument.strip()
        if not given:
            return reply_with(HELP["forget"])
        await self._wait_for_memory()  # else the last messages would be learned afterwards
        message = command.message
        if given.casefold() == "all":
            await self._store.facts.forget_all(subject_of(message.author, message.place), at=self._now())
            return reply_with("Nothing is remembered of you any more.")
        known = await self._facts(command)
        named = [_by_id(word, known, least=MIN_ID) for word in given.split()]
        if any(len(found) != 1 for found in named):
            named = [_by_words(given, known)]
            if len(named[0]) > 1:
                return reply_with("Which of these? /forget ID", *self._lines(named[0], known))
        facts = list(dict.fromkeys(fact.id for found in named for fact in found))
        if not facts:
            return reply_with(LIKE_THAT)
        args = {"facts": facts, "reply_to": None if message.place.kind == "direct" else message.id}
        name = f"command-{command.id}-forget"
        task = Task(id=name, kind=FORGET_CONFIRMED, place=message.place, due_at=self._now(), args=args)
        return CommandOutcome(tasks=(task,))

    async def _tasks(self, command: Command) -> CommandOutcome:
        listed = await self._store.tasks.listed(command.message.place)
        planned = sorted((one for one in listed if one.status in ("pending", "running")), key=lambda one: one.due_at)
        return reply_with(*map(self._task, planned[:MAX_LISTED])) if planned else reply_with("Nothing is planned here.")

    async def _clear(self, command: Command) -> CommandOutcome:
        place, author = command.message.place, command.message.author
        if place.kind != "direct" and not await self._identity.is_administrator(place, author):
            raise NotAllowed("Only an administrator can let this conversation begin anew")
        await self._store.place_settings.clear(place, command.horizon, at=self._now())
        return reply_with(BEGUN_ANEW)

    async def _stop_run(self, command: Command) -> CommandOutcome:
        """Stop the run of the place."""
        place, author = command.message.place, command.message.author
        runs = await self._open_runs(place)
        if not runs:
            return reply_with("Nothing is being written.")
        if not await self._may_stop(place, author, runs):
            raise NotAllowed("Only whoever asked, or an administrator, can stop this answer")
        self._stop(place)
        return reply_with("Stopped.")

    async def _stop_for(self, place: Place, author: Author) -> None:
        if await self._may_stop(place, author, await self._open_runs(place)):
            self._stop(place)

    async def _may_stop(self, place: Place, author: Author, runs: Sequence[Run]) -> bool:
        """Return whether a person may stop the run of a place: they asked, or they administer the place."""
        if place.kind == "direct" or await self._identity.is_administrator(place, author):
            return True
        asked = await self._store.log.get(place, runs[0].target) if runs else None
        return asked is not None and asked.author.id == author.id

    async def _open_runs(self, place: Place) -> list[Run]:
        return [run for run in await self._store.runs.open() if run.place.key == place.key]

    async def _facts(self, command: Command) -> Sequence[Fact]:
        """Return the facts about the person that are visible in the place; in a direct chat all of them."""
        place = command.message.place
        subject = subject_of(command.message.author, place)
        if place.kind == "direct":
            return [fact for fact in await self._store.facts.listed(subject) if is_current(fact, self._now())]
        return await self._store.facts.about(subject, place=place, asked_by=subject, at=self._now())

    async def _wait_for_memory(self) -> None:
        with suppress(TimeoutError, PalaverError):
            async with asyncio.timeout(MEMORY_TIMEOUT):
                await self._learned()

    def _lines(self, facts: Iterable[Fact], known: Iterable[Fact]) -> list[str]:
        names = abbreviate_ids(fact.id for fact in known)
        return [f"{names[fact.id]}  {self._fact(fact)}" for fact in facts]

    def _fact(self, fact: Fact) -> str:
        """`Lives in Lviv. (since 2026-11-20 18:00)`"""
        return f"{_short(fact.text)} (since {self._when(fact.held_from or fact.learned_at).strip()})"

    def _reason(self, message: Message) -> str:
        text = " ".join(part.text if isinstance(part, Text) else getattr(part, "words", "") for part in message.parts)
        return f"{self._when(message.sent_at)}{message.author.name}: {_short(text)}"

    def _task(self, task: Task) -> str:
        text = task.args.get("text") or task.args.get("body") or ""
        return _short(f"{self._when(task.due_at)}{task.kind}{f': {text}' if isinstance(text, str) and text else ''}")

    def _when(self, moment: datetime | None) -> str:
        if moment is None:
            return ""
        try:
            return f"{moment.astimezone(self._zone):%Y-%m-%d %H:%M} "
        except (OverflowError, ValueError, OSError):  # at the ends of the calendar
            return f"{moment:%Y-%m-%d %H:%M}Z "


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


class Confirmations:
    """Finds the facts that a message confirms. No model takes part in that."""

    def __init__(
        self, proposals: ProposalStore, identity: Identity, behavior: Behavior, *, now: Callable[[], datetime]
    ) -> None:
        self._proposals = proposals
        self._identity = identity
        self._behavior = behavior
        self._now = now

    async def find_facts(self, message: Message) -> Sequence[Fact]:
        """Return the facts that *message* confirms by a yes; in a group it must be addressed to us."""
        me = self._identity.author_on(message.place.platform)
        mention = f"@{me.username.lstrip('@')}" if me.username else ""
        names = [name for name in (mention, me.name, *self._behavior.names) if name]
        if not is_yes(message, names):
            return ()
        if message.place.kind != "direct" and message.reply_to is None:
            text = _normalized_text(message)
            if not any(name_pattern(name).search(text) for name in names):
                return ()
        return await self._proposals.confirmed_by(message, now=self._now())


def is_yes(message: Message, names: Iterable[str] = ()) -> bool:
    """Return whether a message says only yes, with or without one of *names* and a please."""
    if len(message.parts) != 1 or len(joined_text(message.parts, "")) > _LONGEST:
        return False
    text = _normalized_text(message)
    for name in names:
        text = name_pattern(name).sub(" ", text)
    words = _SKIN.sub("", _PLEASE.sub(" ", text)).strip(_AROUND)
    return " ".join(words.replace(",", " ").split()) in YES


def _normalized_text(message: Message) -> str:
    """Return the text of a message, normalized for comparison."""
    return unicodedata.normalize("NFC", visible(joined_text(message.parts, ""))).casefold()
