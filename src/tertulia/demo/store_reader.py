"""StoreReader: reads from the bot's store what its engine did and what its model was sent, while the bot runs."""

import asyncio
from collections.abc import Iterator

from tertulia import events
from tertulia.demo.timeline import Learned, Observation, PromptShown, TaskStored, Timeline, ToolRan
from tertulia.parts import Text, ToolResult
from tertulia.run.journal import SentPrompt
from tertulia.store import Store
from tertulia.turns import Prompt

INTERVAL = 0.05  # seconds between two reads


class StoreReader:
    def __init__(self, store: Store, timeline: Timeline) -> None:
        self._store = store
        self._timeline = timeline
        self._cursor = ""
        self._one_by_one = asyncio.Lock()

    async def run(self) -> None:
        """Read new events until cancelled."""
        while True:
            await self.read()
            await asyncio.sleep(INTERVAL)

    async def read(self) -> None:
        """Add what the events since the last read tell to the timeline."""
        async with self._one_by_one:
            for event in await self._store.events.read(after=self._cursor):
                self._cursor = event.cursor
                for observation in await self._observe(event):
                    self._timeline.add(observation)

    async def _observe(self, event: events.DurableEvent) -> list[Observation]:
        match event:
            case events.FactsLearned(fact_ids=fact_ids):
                return [await self._learned(fact_id) for fact_id in fact_ids]
            case events.PromptSent(run_id=run_id, step=step):
                sent = await self._store.prompts.sent(run_id, step)
                return [await self._prompt(sent)] if sent else []
            case events.ToolFinished(run_id=run_id, step=step, call=call):
                journal = await self._store.runs.journal(run_id)
                runs = journal.tools if journal else ()
                return [
                    ToolRan(name=run.call.name, args=run.call.args, result=run.result.value if run.result else None)
                    for run in runs
                    if (run.step, run.number) == (step, call)
                ]
            case events.TaskPlanned(task_id=task_id):
                return [
                    TaskStored(task_id=task.id, what=str(task.args.get("text", task.kind)), due_at=task.due_at)
                    for task in await self._store.tasks.listed()
                    if task.id == task_id
                ]
        return []

    async def _learned(self, fact_id: str) -> Learned:
        fact = await self._store.facts.get(fact_id)
        sources = {message.id: message.text for message in await self._store.facts.why(fact_id)}
        about, text = (fact.subject.name, fact.text) if fact else ("", "")
        return Learned(fact_id=fact_id, about=about, text=text, sources=sources)

    async def _prompt(self, sent: SentPrompt) -> PromptShown:
        text = prompt_text(sent.prompt)
        facts = await self._store.facts.listed()
        return PromptShown(
            run_id=sent.run_id,
            step=sent.step,
            layers=dict(_tokens(sent)),
            remembered=tuple(f"{fact.subject.name}: {fact.text}" for fact in facts if fact.text in text),
            end=_end(sent.prompt),
        )


def _tokens(sent: SentPrompt) -> Iterator[tuple[str, int]]:
    """Yield the tokens of the tools and of each layer, by its name."""
    if sent.prompt.tools:
        yield "tools", sent.size.tools
    yield from zip((layer.name for layer in sent.prompt.layers), sent.size.layers, strict=True)


def prompt_text(prompt: Prompt) -> str:
    """Return all that a prompt says in words, without calls and results of tools."""
    return "\n".join([prompt.instruction, *(turn.text for turn in prompt.turns)])


def _end(prompt: Prompt) -> str:
    """Return the last part of a prompt: what somebody said, or which tool gave a result."""
    match prompt.turns[-1].parts[-1]:
        case Text(text=text):
            return text
        case ToolResult(name=name):
            return f"(the result of {name})"
    return ""
