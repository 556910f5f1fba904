"""The story of the demo, scene by scene, and what is checked at its end."""

import asyncio
import signal
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from msgspec import Struct

from tertulia.demo import script
from tertulia.demo.group import Group
from tertulia.demo.pipe_platform import BOT, GROUP
from tertulia.demo.store_reader import INTERVAL, StoreReader, prompt_text
from tertulia.demo.timeline import (
    PATIENCE,
    Check,
    DemoFailed,
    Drafted,
    Killed,
    Learned,
    Observation,
    PromptShown,
    Resumed,
    Said,
    Scene,
    Timeline,
)
from tertulia.messages import Author
from tertulia.store import Store

KILL_AT = 14  # words of the long answer that people see when the bot is killed


class Tempo(Struct, frozen=True, kw_only=True):
    """Seconds, so that people can follow."""

    word: float = 0.08  # between two words of the bot
    message: float = 1.0  # after each message of a person
    scene: float = 1.3  # after each scene


FAST = Tempo(word=0.04, message=0, scene=0)


async def play(show: Callable[[Observation], None], tempo: Tempo | None = None) -> bool:
    """Play the demo; return whether all checks held. Neither files nor processes are left behind."""
    tempo = tempo or Tempo()
    with tempfile.TemporaryDirectory(prefix="tertulia-demo-") as folder:
        timeline = Timeline(show)
        async with Group(Path(folder), timeline, pace=tempo.word) as group:
            timeline.add(Scene(title="Three people and a bot"))
            await group.start()
            async with Store.open(group.store, beside=True) as store:
                reader = StoreReader(store, timeline)
                group.before_showing = reader.read
                reading = timeline.start(reader.run())
                try:
                    return await Story(group, store, timeline, tempo).tell()
                finally:
                    reading.cancel()
                    await asyncio.wait([reading])


class Story:
    def __init__(self, group: Group, store: Store, timeline: Timeline, tempo: Tempo) -> None:
        self._group = group
        self._store = store
        self._timeline = timeline
        self._tempo = tempo
        self._answers: dict[str, Said] = {}  # to questions, by the text of these

    async def tell(self) -> bool:
        """Play all scenes; return whether all checks held."""
        await self._learn()
        await self._scene("Memory: her message has left the history, the fact has not")
        await self._ask(script.ANN, script.RECALL)
        await self._scene("Why? The tools name the message that says so")
        await self._ask(script.ANN, script.EXPLAIN)
        await self._scene("A reminder, in two seconds")
        await self._remind()
        await self._scene("kill -9 in mid-answer, and the resume")
        await self._kill_and_resume()
        await self._scene("What is true now, by the store and by what people see")
        await self._until_stored("everything to be sent", self._is_settled)
        checks = [*await self._check_memory(), *await self._check_delivery()]
        for check in checks:
            self._timeline.add(check)
        return all(check.held for check in checks)

    async def _scene(self, title: str) -> None:
        await self._timeline.pause(self._tempo.scene)
        self._timeline.add(Scene(title=title))

    async def _say(self, author: Author, text: str) -> str:
        message_id = self._group.post(author, text)
        await self._timeline.pause(self._tempo.message)
        return message_id

    async def _ask(self, author: Author, question: str) -> None:
        message_id = await self._say(author, question)
        await self._answered(question, message_id)

    async def _answered(self, question: str, message_id: str) -> None:
        """Wait for the answer to a message."""

        def answers() -> list[Said]:
            return [said for said in self._timeline.of(Said) if said.reply_to == message_id]

        await self._timeline.until(f"the answer to “{question}”", lambda: bool(answers()))
        self._answers[question] = answers()[0]

    async def _learn(self) -> None:
        await self._say(script.ANN, script.FACT)
        await self._timeline.until("a fact to be learned", lambda: bool(self._timeline.of(Learned)))
        for author, text in script.SMALL_TALK:
            await self._say(author, text)

    async def _remind(self) -> None:
        await self._ask(script.CY, script.REMIND)
        await self._timeline.until(
            "the reminder", lambda: any(said.text == script.REMINDER for said in self._timeline.of(Said))
        )

    async def _kill_and_resume(self) -> None:
        """Kill the bot when people have seen the beginning of its answer; start it again, and wait for the answer."""
        killing = asyncio.ensure_future(self._group.kill_at_word(KILL_AT))
        try:
            message_id = await self._say(script.BO, script.LONG)
            pid, status = await killing
        finally:
            killing.cancel()
        runs = await self._store.runs.open()
        rows = [row for row in await self._store.outbox.listed() if row.run in {run.id for run in runs}]
        answers = sum(row.kind == "answer" for row in rows)
        words = _words(self._timeline.of(Drafted)[-1].text)
        self._timeline.add(Killed(pid=pid, status=status, words=words, open_runs=len(runs), answers=answers))
        await self._timeline.pause(self._tempo.scene)
        pid = await self._group.start()
        for run in runs:
            await self._until_stored("the run to be resumed", partial(self._is_resumed, run.id))
            self._timeline.add(Resumed(run_id=run.id, pid=pid))
        await self._answered(script.LONG, message_id)

    async def _is_resumed(self, run_id: str) -> bool:
        journal = await self._store.runs.journal(run_id)
        return journal is not None and journal.run.resumed > 0

    async def _is_settled(self) -> bool:
        """Return whether nothing in the store waits to be answered or sent."""
        return not (await self._store.runs.open() or await self._store.outbox.unsent())

    async def _until_stored(self, what: str, is_so: Callable[[], Awaitable[bool]]) -> None:
        """Wait until *is_so* of the store; raise `DemoFailed` if that takes too long."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not await is_so():
                    await self._timeline.pause(INTERVAL)
        except TimeoutError as error:
            raise DemoFailed(f"waited {PATIENCE:g} seconds for {what}") from error

    async def _check_memory(self) -> list[Check]:
        facts = await self._store.facts.listed()
        source = next(iter(self._group.posted))
        asked = [prompt for prompt in self._timeline.of(PromptShown) if prompt.end == script.RECALL]
        sent = [await self._store.prompts.sent(prompt.run_id, prompt.step) for prompt in asked]
        texts = [prompt_text(one.prompt) for one in sent if one]
        return [
            Check(
                text="learned once, by patterns, from the message that says so",
                held=[fact.sources for fact in facts] == [(source,)],
            ),
            Check(
                text="recalled: the prompt had the fact, and no longer the message",
                held=[(facts[0].text in text, script.FACT in text) for text in texts] == [(True, False)],
            ),
            Check(
                text="explained: the answer quotes that message, from the store",
                held=script.FACT in self._answers[script.EXPLAIN].text,
            ),
        ]

    async def _check_delivery(self) -> list[Check]:
        group, timeline = self._group, self._timeline
        [killed], answer = timeline.of(Killed), self._answers[script.LONG]
        words = f"{killed.words} of {_words(answer.text)} words"
        log = await self._store.log.read(GROUP, 0, await self._store.log.count(GROUP))
        rows = [row for row in await self._store.outbox.listed() if row.kind != "draft"]
        said = Counter(one.text for one in timeline.of(Said) if one.author == BOT.name)
        replies = [one for one in timeline.of(Said) if one.reply_to and one.text != script.REMINDER]
        answers = Counter(one.reply_to for one in replies)
        return [
            Check(
                text=f"the reminder came once, {await self._lateness():.1f} s after it was due",
                held=said[script.REMINDER] == 1,
            ),
            Check(
                text=f"killed by signal {-killed.status} after {words}; resumed, in the same message",
                held=killed.status == -signal.SIGKILL
                and 0 < killed.words < _words(answer.text)
                and killed.answers == 0
                and len(timeline.of(Resumed)) == 1
                and answer.text == script.MENU
                and answer.message_id == timeline.of(Drafted)[-1].message_id,
            ),
            Check(
                text=f"nothing lost: {len(log)} messages are in the store, {len(answers)} questions have an answer",
                held={one.id: one.text for one in log} == group.posted | group.shown
                and len(answers) == len(self._answers),
            ),
            Check(
                text=f"nothing doubled: {len(group.shown)} messages of the bot, each sent once",
                held={row.message_id: row.reply.text for row in rows if row.status == "sent"} == group.shown
                and len(rows) == len(group.shown)
                and {*said.values(), *answers.values()} == {1},
            ),
        ]

    async def _lateness(self) -> float:
        """Return how many seconds after its time the reminder was sent."""
        due = {task.id: task.due_at for task in await self._store.tasks.listed()}
        for row in await self._store.outbox.listed():
            if row.task in due and row.sent_at:
                return (row.sent_at - due[row.task]).total_seconds()
        return float("nan")


def _words(text: str) -> int:
    return len(text.split())
