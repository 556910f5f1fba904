"""What is remembered of people: each fact once, for the place it was learned in."""

from collections.abc import Sequence
from datetime import datetime

from palaver.context.values import Background
from palaver.messages import Author, Message, Place
from palaver.store.people import find_author, find_place, keep_author, keep_place
from palaver.store.sqlite import Database
from palaver.store.values import clean
from palaver.store.writer import Owner

MOST = 50  # facts that are recalled at once


class Memories:
    """`conversation.journal.Memories`, kept."""

    def __init__(self, writer: Owner, reader: Owner) -> None:
        self._writer = writer
        self._reader = reader

    async def remember(
        self, facts: Sequence[str], *, about: Author, place: Place, source: str, run: str | None, at: datetime
    ) -> None:
        texts = [text for text in (clean(fact).strip() for fact in facts) if text]
        learned = (clean(source), None if run is None else clean(run), at.isoformat())
        await self._writer.run(lambda database: _remember(database, texts, about, place, learned))

    async def background(self, target: Message) -> Background:
        return await self._reader.run(lambda database: _background(database, target))


def _remember(
    database: Database, texts: Sequence[str], about: Author, place: Place, learned: tuple[str, str | None, str]
) -> None:
    if not texts:
        return
    whom = (keep_place(database, place), keep_author(database, place.platform, about.id))
    insert = """INSERT INTO facts (place, about, text, source, run_id, learned_at) VALUES (?, ?, ?, ?, ?, ?)
        ON CONFLICT DO NOTHING"""
    database.executemany(insert, [(*whom, text, *learned) for text in texts])


def _background(database: Database, target: Message) -> Background:
    place = find_place(database, target.place)
    about = find_author(database, clean(target.place.platform), clean(target.author.id))
    select = "SELECT text FROM facts WHERE place = ? AND about = ? ORDER BY id DESC LIMIT ?"
    return Background(memories=tuple(text for (text,) in database.execute(select, (place, about, MOST))))
