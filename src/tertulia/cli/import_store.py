"""The store import of `tertulia import`: messages, then the index and the episodes, each with its progress."""

import asyncio
import os
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import typer

from tertulia.cli.import_sources import FORM_WORDS, ImportSource
from tertulia.cli.output import INTERRUPTED, ProgressBar, count_of, one_line, print_json, print_line
from tertulia.errors import InvalidValue
from tertulia.formats.imported import Imported, ImportedDescription, ImportedMessage, Remembered, Skipped
from tertulia.media.descriptions import IMPORT

if TYPE_CHECKING:
    from tertulia.messages import Place
    from tertulia.store import Store

BATCH = 2_000  # messages in one transaction
MAX_CHATS_SHOWN = 10
PROGRESS_INTERVAL = 0.5  # seconds between two updates of the bar
TOKEN_VARIABLE = "TERTULIA_TELEGRAM_TOKEN"  # noqa: S105 - the name of a variable


class ImportReport:
    """What an import has done so far."""

    def __init__(self) -> None:
        self.added = self.known = self.described = 0
        self.facts = self.episodes = self.bans = self.remembered = 0  # the last: facts, episodes and bans known before
        self.memory: list[Remembered] = []  # stored after the messages
        self.skipped: Counter[str] = Counter()
        self.chats: Counter[Place] = Counter()  # messages by chat, without threads
        self.places: dict[Place, None] = {}
        self.error: InvalidValue | None = None  # where the file cannot be read any further

    def count(self, batch: Sequence[Imported]) -> list[ImportedMessage]:
        """Count what was read; return the messages."""
        from msgspec.structs import replace

        messages = [item for item in batch if isinstance(item, ImportedMessage)]
        for item in batch:
            if isinstance(item, Skipped):
                self.skipped[item.reason] += item.count
            elif isinstance(item, Remembered):
                self.memory.append(item)
        for item in messages:
            self.places[item.message.place] = None
            self.chats[replace(item.message.place, thread=None)] += 1
        return messages


def find_bot(given: str | None) -> str:
    """Return the id of the bot's account: of a token or an id, or of the token that the bot runs with."""
    token = given or os.environ.get(TOKEN_VARIABLE) or _configured_token()
    bot_id = token.strip().removeprefix("telegram-").partition(":")[0]
    if not token:
        raise InvalidValue(
            "for which bot? --bot takes its token, or its id, which is the number before the colon of the token; "
            f"{TOKEN_VARIABLE} or `token` in [telegram] of tertulia.toml say it too"
        )
    if not (bot_id.isascii() and bot_id.isdecimal()):
        raise InvalidValue("the bot's id is the number before the colon of its token; what is given has none")
    return bot_id


def _configured_token() -> str:
    from tertulia.config import find_config, load_config

    path = find_config()
    return load_config(path).config.telegram.token if path else ""


def import_into_store(path: str, source: ImportSource, form: str, *, bot_id: str, learn: bool, as_json: bool) -> None:
    """Import a source, and say what was done."""
    report = ImportReport()
    try:
        notes = asyncio.run(_import(path, source, report, learn=learn))
    except KeyboardInterrupt:
        print("tertulia: interrupted; the same command does the rest", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        print_json(_as_json(report, form, bot_id))
    else:
        for line in (*_summary(report, form, bot_id, learn=learn), *notes):
            print_line(line)
    if report.error:
        done = report.added + report.known
        is_done = f"; the {count_of(done, 'messages')} before that {'is' if done == 1 else 'are'} imported"
        raise InvalidValue(f"{report.error}{is_done if done else ''}")


async def _import(path: str, source: ImportSource, report: ImportReport, *, learn: bool) -> list[str]:
    from tertulia.store import Store

    async with Store.open(path) as store:
        with _bar() as bar:
            await _add_messages(store, source, report, bar)
        for place in report.places:
            await store.imports.finish(place, learn=learn)
        await _add_memory(store, report)
        await _index(store, list(report.places))
        await _divide(store, list(report.places))
        return await _notes(store)


@contextmanager
def _bar() -> Iterator[ProgressBar]:
    """Show the progress of one part of the work."""
    bar = ProgressBar(sys.stderr, width=20)
    try:
        yield bar
    finally:
        bar.end()


async def _add_messages(store: "Store", source: ImportSource, report: ImportReport, bar: ProgressBar) -> None:
    """Read a batch while the one before is written."""
    writing: asyncio.Task[Any] | None = None
    for batch in _batches(source, report):
        messages = report.count(batch)
        if writing:
            await writing
        writing = asyncio.create_task(_add(store, messages, report))
        await _describe(store, [item for item in batch if isinstance(item, ImportedDescription)], report)
        await asyncio.sleep(0)  # so that it begins
        bar.show(source.share, f"{sum(report.chats.values()):,} messages")
    if writing:
        await writing


async def _add(store: "Store", messages: Sequence[ImportedMessage], report: ImportReport) -> None:
    counts = await store.imports.add(messages)
    report.added += counts.added
    report.known += counts.known


async def _add_memory(store: "Store", report: ImportReport) -> None:
    """Store what the program remembers."""
    counts = await store.imports.add_memory(report.memory, at=datetime.now(UTC))
    report.facts, report.episodes, report.bans = counts.facts, counts.episodes, counts.bans
    report.remembered = counts.known
    report.skipped.update(counts.skipped)


async def _describe(store: "Store", found: Sequence[ImportedDescription], report: ImportReport) -> None:
    """Store descriptions of media; those that the bot has are left as they are."""
    known = await store.descriptions.find([one.unique_id for one in found])
    for one in found:
        if one.unique_id not in known:
            await store.descriptions.describe(one.unique_id, one.words, by=IMPORT, at=datetime.now(UTC))
            report.described += 1


def _batches(source: ImportSource, report: ImportReport) -> Iterator[list[Imported]]:
    """Yield what can be read of a source; an error ends it and goes into the report."""
    batch: list[Imported] = []
    try:
        for item in source:
            batch.append(item)
            if len(batch) == BATCH:
                yield batch
                batch = []
    except InvalidValue as error:
        report.error = error
    if batch:
        yield batch


async def _index(store: "Store", places: "Sequence[Place]") -> None:
    """Index the words of places."""
    from tertulia.engine.memory.indexer import Indexer

    indexer = Indexer(store.index_writer)
    with _bar() as bar:

        async def show() -> None:
            now = await store.index_writer.progress(None)
            bar.show(now.indexed / max(1, now.messages), f"{now.indexed:,} of {now.messages:,} messages indexed")

        for place in places:
            await _with_progress(indexer.index_words(place), show)


async def _divide(store: "Store", places: "Sequence[Place]") -> None:
    """Divide places into episodes, without a model."""
    from tertulia.engine.memory.learner import EpisodeWriter

    writer = EpisodeWriter(store.episodes, store.log)
    with _bar() as bar:
        for number, place in enumerate(places):

            async def show(number: int = number, place: "Place" = place) -> None:
                now = await store.episodes.cursor(place)
                share = now.read / max(1, now.count) if now else 0.0
                bar.show((number + share) / len(places), f"{number} of {count_of(len(places), 'places')} have episodes")

            await _with_progress(writer.write(place), show)


async def _with_progress(work: Coroutine[Any, Any, Any], show: Callable[[], Awaitable[None]]) -> None:
    task = asyncio.ensure_future(work)
    try:
        while not (await asyncio.wait({task}, timeout=PROGRESS_INTERVAL))[0]:
            await show()
        await task
    finally:
        task.cancel()
        await asyncio.wait({task})


async def _notes(store: "Store") -> list[str]:
    """Say what the bot will pay for without being asked again."""
    chosen = await store.index_writer.embedder()
    if ":" not in chosen:
        return []
    return [f"A bot that runs will embed them with {chosen}, which costs; tertulia index --embedder minilm does not."]


def _summary(report: ImportReport, form: str, bot_id: str, *, learn: bool) -> Iterator[str]:
    yield f"Read as {FORM_WORDS[form]}{f', for the bot telegram-{bot_id}' if bot_id else ''}."
    for place, count in report.chats.most_common(MAX_CHATS_SHOWN):
        yield f"  {one_line(place.title or place.id)}: {count_of(count, 'messages')}"
    if len(report.chats) > MAX_CHATS_SHOWN:
        yield f"  and {len(report.chats) - MAX_CHATS_SHOWN} more chats"
    if bot_id:
        yield f"{count_of(report.added, 'messages')} added, {report.known} known before."
    if report.described or not bot_id:
        yield f"{count_of(report.described, 'descriptions')} of media added."
    if report.memory:
        yield (
            f"{count_of(report.facts, 'facts')}, {count_of(report.episodes, 'episodes')} and "
            f"{count_of(report.bans, 'bans')} taken over, {report.remembered} known before."
        )
    for reason, count in report.skipped.most_common():
        yield f"Skipped: {count} {reason}."
    if report.added or report.known:
        yield (
            "The bot will learn facts from them in the background."
            if learn
            else "They can be searched and shown to the model. No facts are learned from them: that takes --learn."
        )


def _as_json(report: ImportReport, form: str, bot_id: str) -> dict[str, Any]:
    return {
        "form": form,
        "platform": f"telegram-{bot_id}" if bot_id else None,
        "added": report.added,
        "known": report.known,
        "descriptions": report.described,
        "facts": report.facts,
        "episodes": report.episodes,
        "bans": report.bans,
        "remembered": report.remembered,
        "skipped": dict(report.skipped),
        "chats": [{"id": place.id, "title": place.title, "messages": count} for place, count in report.chats.items()],
        "error": str(report.error) if report.error else None,
    }
