"""Past runs: what each was asked and said, with the log and the memory of its moment; from a store or a document."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from tertulia.context.log import Log
from tertulia.context.sources import Knowledge, MessageSearch
from tertulia.context.values import RecalledThing, RelevantMessage
from tertulia.engine.log_views import VisibleLog
from tertulia.engine.memory.recall import hit_of
from tertulia.engine.replay.past import PastFacts, PastLog, PastMemory
from tertulia.engine.replay.values import Answered, ReplayedTool, spent_by
from tertulia.engine.store_protocols import OutboxItem, StoreProtocol
from tertulia.errors import InvalidValue
from tertulia.formats.document import Conversation
from tertulia.messages import Author, Message, Place
from tertulia.parts import Media, Text
from tertulia.run.journal import Journal, Run, SentPrompt

REPLAYED = 40  # runs, where no number is said
MOST_CALLS = 1_000  # of one run
_UNKNOWN = Author(id="agent", name="the agent")  # an account that never wrote
NO_PROMPT = "no model was asked in run {id}"


class PastRun(NamedTuple):
    """A run that ended, and what could be known when it began."""

    run: Run
    journal: Journal
    sent: SentPrompt | None  # its first prompt; None: there was no request, or it is not known
    taken: tuple[Message, ...]  # that it answered from the beginning, its target among them
    target: Message
    me: Author  # our account
    before: Answered
    log: Log
    knowledge: Knowledge
    beginning: int  # the number of the first message of the conversation
    delimiter: str
    charged: Place | None  # the place that calls are counted for

    @property
    def asked(self) -> tuple[str, ...]:
        """The messages that it answered, as lines."""
        return tuple(f"{one.author.name or one.author.id}: {_words(one)}" for one in self.taken)


async def past_run(store: StoreProtocol, run_id: str, *, search: MessageSearch) -> PastRun:
    """Return a run of a store; raise `InvalidValue` or `PromptRemoved` where it, or its prompts, are gone."""
    journal = await store.runs.journal(run_id)
    if journal is None:
        raise InvalidValue(f"there is no run {run_id:.100}")
    run = journal.run
    if run.status == "open":
        raise InvalidValue(f"run {run_id} has not ended")
    sent = await store.prompts.sent(run_id, 0)
    if sent is None:
        raise InvalidValue(NO_PROMPT.format(id=run_id))
    visible = VisibleLog(store.log, store.place_settings.blocked)
    log, at = PastLog(visible, run.horizon), run.began_at
    found = sorted(await log.find(run.place, run.taken), key=lambda one: one[0])
    target = next((one for _, one in found if one.id == run.target), None)
    if target is None or not target.author.id:
        raise InvalidValue(f"the message that run {run_id} answered was removed")
    beginning = await store.place_settings.beginning(run.place)
    beginning = beginning if beginning <= found[0][0] else 0  # the place was cleared later
    recalled = await store.runs.recalled(run_id)
    facts = [one.id for one in recalled if one.kind == "fact"]
    hits = [hit for one in recalled if one.kind == "message" and (hit := await _hit(one, run.place, log, visible))]

    return PastRun(
        run=run,
        journal=journal,
        sent=sent,
        taken=tuple(one for _, one in found),
        target=target,
        me=await _account(store, run),
        before=await _before(store, journal),
        log=log,
        knowledge=PastMemory(
            store, PastFacts(store.facts, facts, at), search=search, recalled=hits, beginning=beginning, at=at
        ),
        beginning=beginning,
        delimiter=await store.place_settings.delimiter(run.place),
        charged=run.place,
    )


async def _hit(thing: RecalledThing, place: Place, log: Log, visible: Log) -> RelevantMessage | None:
    """Return a message that was recalled, as it was shown; None where it is gone."""
    where = thing.place or place
    is_here = where.key == place.key
    message = await (log if is_here else visible).get(where, thing.id)
    if message is None or message.deleted:
        return None
    return hit_of(message, place, score=thing.score or 0.0, why=thing.why, in_group=not is_here)


async def _account(store: StoreProtocol, run: Run) -> Author:
    """Return the account that wrote the replies of a run, or the newest reply of all."""
    wrote = next((item.author for item in await store.inspection.replies([run.id]) if item.author), None)
    return wrote or (await store.inspection.day(run.began_at.astimezone(UTC).date())).agent or _UNKNOWN


async def _before(store: StoreProtocol, journal: Journal) -> Answered:
    run = journal.run
    calls = [one.call for one in await store.usage.calls(run=run.id, most=MOST_CALLS)]
    return Answered(
        texts=said_texts(await store.inspection.replies([run.id])),
        tools=tuple(
            ReplayedTool(name=one.call.name, args=one.call.args, result=one.result.value)
            for one in journal.tools
            if one.result
        ),
        tasks=tuple(task.kind for task in await store.inspection.tasks([run.id])),
        model=run.model,
        profile=run.profile,
        spent=spent_by(calls),
        error=run.why,
    )


def said_texts(items: Sequence[OutboxItem]) -> tuple[str, ...]:
    """Return the texts of the answers among replies; the parts of a split one are one text."""
    texts: dict[str, str] = {}
    for item in items:
        if item.kind == "answer":
            name = item.reply_id or item.id
            texts[name] = f"{texts[name]}{item.separator}{item.reply.text}" if name in texts else item.reply.text
    return tuple(texts.values())


async def told_runs(talk: Conversation) -> list[PastRun]:
    """Return the answers of the agent in a conversation as runs: each to the messages of others before it."""
    place = talk.target.place
    messages = await talk.log.read(place, 0, await talk.log.count(place))
    found: list[PastRun] = []
    waiting: list[Message] = []
    for number, message in enumerate(messages):
        if message.author.persona is None or message.author.persona != talk.persona.name:
            waiting += [] if message.deleted else [message]
            continue
        if waiting:
            found.append(_told_run(talk, tuple(waiting), message, number))
        waiting = []
    return found


def _told_run(talk: Conversation, taken: tuple[Message, ...], answer: Message, number: int) -> PastRun:
    target = taken[-1]
    run = Run(
        id=answer.id,
        place=target.place,
        target=target.id,
        taken=tuple(one.id for one in taken),
        began_at=answer.sent_at or talk.now,
        horizon=number,
        status="done",
    )
    return PastRun(
        run=run,
        journal=Journal(run=run, prompt=None),
        sent=None,
        taken=taken,
        target=target,
        me=answer.author,
        before=Answered(texts=(_words(answer),)),
        log=PastLog(talk.log, number),
        knowledge=talk.remembered,
        beginning=0,
        delimiter=talk.delimiter,
        charged=None,
    )


async def runs_to_replay(store: StoreProtocol, place: Place, *, most: int, since: datetime | None = None) -> list[str]:
    """Return the newest runs of a place that began and ended, the oldest first."""
    found = [one.run for one in reversed(await store.inspection.runs(place=place, most=most))]
    return [run.id for run in found if run.status != "open" and run.horizon and (not since or run.began_at >= since)]


def _words(message: Message) -> str:
    said = (part for part in message.parts if isinstance(part, Text | Media))
    return " ".join(part.text if isinstance(part, Text) else part.words for part in said)
