"""Reads what forgetting a person removes, page by page on the reader, and makes a plan of it.

What shows the person for certain is found by references: their messages, names, quotes, forwards, reactions, facts
about them, direct chats; the runs that knew or were given one of these; the episodes and summaries made of them. But
their words are also where no reference leads: in answers to others, replies, tasks, facts about others, titles,
descriptions and chats with a name. These texts are searched for marks (words, names, numbers, sentences) that only this
person used; `memory.person_words` says which.
"""

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterable, Iterator
from functools import partial
from typing import Any

from tertulia.media.values import file_key
from tertulia.memory.forget import (
    Key,
    MessageKey,
    Plan,
    StoredRun,
    answers_person,
    first_numbers,
    showed_person,
    spans_any,
)
from tertulia.memory.person_words import PersonWords, Said, Vocabulary, strings_in, texts_of
from tertulia.messages import Quote
from tertulia.parts import Media, Part, Text
from tertulia.run.chat_values import SERVICE, place_of_chat
from tertulia.store.chats import read_chats
from tertulia.store.database import Database, Row
from tertulia.store.encoding import (
    AUTHOR,
    LAYER,
    LEFT_OUT,
    MESSAGE,
    PARTS,
    PLACE,
    QUOTE,
    REPLY,
    STRINGS,
    TASK,
    TOOLS,
    clean,
    dumps,
)
from tertulia.store.file_garbage import files_of
from tertulia.store.forget.removal import COPIES_OF_TITLES, DERIVED, NOBODY, OWN
from tertulia.store.identities import find_author, find_place
from tertulia.store.json_columns import JSON_COLUMNS
from tertulia.store.prompts import layer_contents
from tertulia.store.threads import ConnectionThread

PAGE = 500  # rows that are read and looked through at once, so that others go on meanwhile
_MAX_IDS = 500  # ids in one statement
_EXCHANGES = ("exchanges", "exchanges_of_others")
_CONFIGURED = 50  # places whose instructions are read

# The places where the person wrote, reacted, was quoted, forwarded or has facts, and their direct chats.
_NEAR = """SELECT m.place FROM messages m JOIN names n ON n.id = m.name WHERE n.author = :author
    UNION SELECT place FROM messages WHERE reply_author = :author
    UNION SELECT place FROM messages WHERE forward_author = :author
    UNION SELECT r.place FROM reactions r JOIN names n ON n.id = r.name WHERE n.author = :author
    UNION SELECT place FROM facts WHERE about = :author UNION SELECT place FROM summaries WHERE about = :author
    UNION SELECT p.id FROM places p JOIN authors a ON a.platform = p.service AND a.author_id = p.place_id
    WHERE a.id = :author"""
# Somebody else who wrote in a place.
_OTHERS_THERE = """SELECT 1 FROM messages m JOIN names n ON n.id = m.name
    WHERE m.place = :place AND m.role = 'user' AND n.author <> :author AND n.body <> :nobody LIMIT 1"""
# The messages of the person, in pages.
_MESSAGES = """SELECT m.id, m.place, m.message_id, m.number, m.parts FROM messages m JOIN names n ON n.id = m.name
    WHERE n.author = :author AND m.id > :after ORDER BY m.id LIMIT :most"""
# Messages of others that have forwarded something, in pages.
_FORWARDS = """SELECT m.id, m.place, m.message_id, m.number, m.forward_author, m.forwarded_from, m.parts
    FROM messages m JOIN names n ON n.id = m.name
    WHERE m.forwarded_from IS NOT NULL AND n.author <> :author AND m.id > :after ORDER BY m.id LIMIT :most"""
# Messages of others that quote something, in pages.
_QUOTES = """SELECT m.id, m.place, m.message_id, m.number, m.reply, m.reply_author FROM messages m
    JOIN names n ON n.id = m.name
    WHERE m.reply IS NOT NULL AND n.author <> :author AND m.id > :after ORDER BY m.id LIMIT :most"""
# What other people wrote, in pages.
_OTHERS = """SELECT m.id, m.place, n.author, m.parts, m.reply, m.forwarded_from, m.forward_author FROM messages m
    JOIN names n ON n.id = m.name
    WHERE m.role = 'user' AND n.author <> :author AND m.id > :after ORDER BY m.id LIMIT :most"""
# What the agent wrote, in pages; the last column says whether turns are stored with it.
_OURS = """SELECT m.id, m.place, m.message_id, m.number, m.reply_to, m.parts,
    CASE WHEN t.message IS NULL THEN 0 ELSE 1 END FROM messages m LEFT JOIN turns t ON t.message = m.id
    WHERE m.role = 'model' AND m.id > :after ORDER BY m.id LIMIT :most"""
# Earlier versions of messages, in pages.
_VERSIONS = """SELECT e.id, e.message, e.place, e.number, n.author, m.role, m.message_id, e.before
    FROM message_changes e JOIN messages m ON m.id = e.message JOIN names n ON n.id = m.name
    WHERE e.before IS NOT NULL AND e.id > :after ORDER BY e.id LIMIT :most"""
# What other people are called, by place.
_NAMES_OF_OTHERS = """SELECT DISTINCT m.place, n.author, n.name, n.username FROM messages m
    JOIN names n ON n.id = m.name WHERE m.role = 'user' AND n.author <> :author"""
# The last prompt of each place from before the first messages of the person, or where they never were.
_EARLIER_PROMPTS = """SELECT max(p.id) FROM prompts p JOIN runs r ON r.run_id = p.run_id
    WHERE r.place NOT IN (:near) OR (r.horizon > 0 AND r.horizon <= (SELECT min(m.number) FROM messages m
        JOIN names n ON n.id = m.name WHERE n.author = :author AND m.place = r.place))
    GROUP BY r.place ORDER BY 1 DESC LIMIT :most"""
# All runs, in pages.
_RUNS = """SELECT r.id, r.run_id, r.place, r.target, r.message_ids, r.horizon, r.forgotten FROM runs r
    WHERE r.id > :after ORDER BY r.id LIMIT :most"""
# Replies with what can have words of a person, in pages.
_REPLIES = """SELECT o.id, coalesce(o.reply_id, o.outgoing_id), o.place, o.run_id, o.task_id, o.message_id, o.reply,
    o.why, o.separator, CASE WHEN o.turns = '[]' THEN 0 ELSE 1 END FROM outbox o
    WHERE o.id > :after ORDER BY o.id LIMIT :most"""
# The errors of attempts to send some replies.
_ATTEMPTS = """SELECT o.id, a.why FROM delivery_attempts a JOIN outbox o ON o.outgoing_id = a.outgoing_id
    WHERE o.id IN (:some) AND a.why <> ''"""
# The sources of all facts.
_SOURCES = """SELECT s.id, s.fact, s.place, s.message_id, m.number, f.about FROM fact_sources s
    JOIN messages m ON m.place = s.place AND m.message_id = s.message_id JOIN facts f ON f.id = s.fact"""
# Descriptions with a place where their media were sent.
_DESCRIPTIONS = """SELECT d.unique_id, d.made_by, d.text, m.place, m.id FROM descriptions d
    JOIN media a ON a.unique_id = d.unique_id JOIN messages m ON m.id = a.message ORDER BY d.unique_id, d.made_by"""
# Raw updates, in pages.
_UPDATES = "SELECT u.id, u.raw FROM updates u WHERE u.raw IS NOT NULL AND u.id > :after ORDER BY u.id LIMIT :most"


class Planner:
    """Reads the rows of one person; `plan` makes a plan of them."""

    def __init__(
        self, reader: ConnectionThread, platform: str, author_id: str, words: Vocabulary | None = None
    ) -> None:
        self._reader = reader
        self.words = words  # of an earlier plan: to find them takes longer than all the rest
        self._platform = platform
        self._author_id = author_id
        self._author: int | None = None
        self._names: set[str] = set()
        self._near: set[int] = set()
        self._direct: set[int] = set()
        self._theirs: dict[MessageKey, int] = {}  # their messages, and the rows of these
        self._whole: dict[MessageKey, int] = {}  # these, forwards and answers: what is removed as a whole
        self._touched: set[tuple[int, int]] = set()  # places and numbers of messages that show the person
        self._media: set[str] = set()  # that the person sent
        self._sent: set[MessageKey] = set()  # the messages of replies that are removed
        self._rows: defaultdict[str, dict[Key, None]] = defaultdict(dict)
        self._chats: set[int] = set()  # the places of chats with a name that showed the person
        self._lost: set[str] = set()  # media that nobody else has

    async def plan(self) -> Plan:
        """Return what is to be removed at this moment."""
        ((last_event,),) = await self._all("SELECT coalesce(max(id), 0) FROM place_events")
        author = clean(self._platform), clean(self._author_id)
        self._author = await self._reader.run(lambda database: find_author(database, *author))
        if self._platform == SERVICE:
            await self._read_chat()
        if self._author is not None:
            self._near = {place for (place,) in await self._all(_NEAR)}
            await self._read_direct()
            said = await self._read_said()
            words = self.words = self.words or await self._read_words(said)
            await self._read_forwards(words)
            await self._read_exchanges(words)
            answering, showing = await self._read_runs()
            tasks = await self._read_tasks(words, answering)
            await self._read_replies(words, answering, showing, tasks)
            await self._read_answers(words)
            await self._read_quotes(words)
            await self._read_facts(words)
            await self._read_episodes()
            await self._read_titles(words)
            await self._read_media(words)
            await self._read_rest()
        elif self._direct:
            await self._read_runs()
        await self._read_updates()
        return Plan(
            platform=self._platform,
            author_id=self._author_id,
            author=self._author,
            direct=tuple(sorted(self._direct)),
            media=frozenset(self._lost),
            last_event=last_event,
            rows={section: tuple(keys) for section, keys in self._rows.items() if keys},
        )

    async def _all(self, statement: str, **values: Any) -> list[Row]:
        named = {"author": self._author} if ":author" in statement else {}
        return await self._reader.run(lambda database: database.all(statement, **named, **values))

    async def _pages(self, statement: str) -> AsyncIterator[list[Row]]:
        """Yield pages of a statement whose first column is the id that it is ordered by."""
        after = 0
        while rows := await self._all(statement, after=after, most=PAGE):
            yield rows
            after = rows[-1][0]

    async def _of(self, statement: str, ids: Iterable[int | str]) -> AsyncIterator[Row]:
        """Yield the rows of a statement for `:some` of the ids at a time."""
        left = list(ids)
        for start in range(0, len(left), _MAX_IDS):
            for row in await self._all(statement, some=left[start : start + _MAX_IDS]):
                yield row

    def _add(self, section: str, *key: int | str) -> None:
        self._rows[section][key] = None

    async def _add_of(self, section: str, statement: str, ids: Iterable[int | str]) -> None:
        """Add the keys that a statement selects."""
        async for key in self._of(statement, ids):
            self._add(section, *key)

    async def _read_chat(self) -> None:
        """Plan a whole chat with a name: its place and its exchanges."""
        chat = place_of_chat(self._author_id)
        place = await self._reader.run(lambda database: find_place(database, chat))
        if place is not None:
            self._direct.add(place)
            self._add("places", place)
        await self._read_exchanges(Vocabulary(near={}, far=PersonWords(())))

    async def _read_direct(self) -> None:
        """Find the direct chats of the person, without messages of others."""
        titles = await self._all("SELECT place, body FROM titles WHERE place IN (:near)", near=sorted(self._near))
        for place in {place for place, body in titles if PLACE.loads(body).kind == "direct"}:
            if not await self._all(_OTHERS_THERE, place=place, nobody=dumps(NOBODY)):
                self._direct.add(place)
                self._add("places", place)

    async def _read_said(self) -> Said:
        """Read what the person is called, and all that they said, also where others quote or forward it."""
        names = await self._all("SELECT name, username FROM names WHERE author = :author")
        self._names = {name for both in names for name in both if name}
        forwards = [row async for page in self._pages(_FORWARDS) for row in page if row[4] == self._author]
        for *_, body, _parts in forwards:
            origin = AUTHOR.loads(body)
            self._names |= {name for name in (origin.name, origin.username) if name}
        called = await self._all("SELECT name FROM facts WHERE about = :author")
        said = Said({*self._names, self._author_id, *(name for (name,) in called)})
        async for page in self._pages(_MESSAGES):
            for row, place, message_id, number, parts in page:
                self._theirs[place, message_id] = row
                self._touched.add((place, number))
                self._add_said(said, row, PARTS.loads(parts))
        async for page in self._pages(_VERSIONS):
            for _, row, _, _, author, _, _, before in page:
                if author == self._author:
                    said.add(row, MESSAGE.loads(before).parts)
        async for page in self._pages(_QUOTES):
            for row, place, _, number, body, author in page:
                quote = QUOTE.loads(body)
                if author == self._author or (place, quote.message_id) in self._theirs:
                    self._touched.add((place, number))
                    self._add_said(said, row, _quote_parts(quote))
        for row, place, _, number, _, _, parts in forwards:
            self._touched.add((place, number))
            self._add_said(said, row, PARTS.loads(parts))
        return said

    def _add_said(self, said: Said, row: int, parts: Iterable[Part]) -> None:
        said.add(row, parts)
        media = [part for part in parts if isinstance(part, Media)]
        self._media |= {clean(one) for part in media for one in (part.unique_id, file_key(part)) if one}

    async def _read_words(self, said: Said) -> Vocabulary:
        """Read what others and the agent said, and return the words that only this person used."""
        learned = await self._learned()
        facts = await self._all("SELECT id, about, text FROM facts")
        also = {text for row, about, text in facts if about != self._author and row not in learned}
        for row, about, text in facts:
            if about == self._author or (row in learned and text not in also):
                said.add_derived(text)
        for (text,) in await self._all("SELECT text FROM summaries WHERE about = :author"):
            said.add_derived(text)
        rows, senders = await self._all(_DESCRIPTIONS), set(self._theirs.values())
        of_others = {unique_id for unique_id, *_, message in rows if message not in senders}
        for unique_id, _, text, _, _ in rows:
            if unique_id not in of_others:
                said.add_derived(text)
        async for page in self._pages(_OTHERS):
            await asyncio.to_thread(said.subtract, [one for row in page for one in self._texts_of_others(row)])
        async for page in self._pages(_VERSIONS):
            messages = [
                (place, by, MESSAGE.loads(text)) for _, _, place, _, by, role, _, text in page if role == "user"
            ]
            said.subtract(
                (place, by, text)
                for place, by, message in messages
                if by != self._author and not message.forwarded_from
                for text in texts_of(message.parts)
            )
        others = await self._all(_NAMES_OF_OTHERS)
        said.subtract((place, by, name) for place, by, *names in others for name in names if name)
        async for page in self._pages(_OURS):
            said.subtract_ours((row, text) for row, *_, parts, _ in page for text in texts_of(PARTS.loads(parts)))
        said.subtract_configured(await self._reader.run(self._configured))
        titles: defaultdict[int, list[str]] = defaultdict(list)
        for place, title in await self._all("SELECT place, title FROM titles"):
            titles[place].append(title)
        return said.vocabulary(self._near, titles.__getitem__)

    def _texts_of_others(self, row: Row) -> Iterator[tuple[int, Any, str]]:
        """Yield the texts of a message of somebody else, also what it quotes of people but this one."""
        _, place, author, parts, reply, forwarded, whose = row
        if forwarded is not None:
            author = None if AUTHOR.loads(forwarded).persona else whose
        if author not in (self._author, None):  # None: forwarded from an unknown account or an agent
            yield from ((place, author, text) for text in texts_of(PARTS.loads(parts)))
        quote = None if reply is None else QUOTE.loads(reply)
        whom = quote and quote.forwarded_from is None and quote.author
        if not quote or not whom or not whom.is_person or (place, quote.message_id) in self._theirs:
            return
        if whom.id != self._author_id:
            yield from ((place, whom.id, text) for text in texts_of(_quote_parts(quote)))

    def _configured(self, database: Database) -> list[str]:
        """Return the texts of tools, and of instructions that cannot have words of the person."""
        texts = [dumps(TOOLS.loads(tools)) for (tools,) in database.all("SELECT tools FROM toolsets")]
        values = {"near": sorted(self._near), "author": self._author, "most": _CONFIGURED}
        prompts = [prompt for (prompt,) in database.all(_EARLIER_PROMPTS, **values)]
        layers = database.all("SELECT DISTINCT layer FROM prompt_layers WHERE prompt IN (:prompts)", prompts=prompts)
        contents = layer_contents(database, [layer for (layer,) in layers]).values()
        return texts + [LAYER.loads(content.decode()).instruction for content in contents]

    async def _learned(self) -> set[int]:
        """Return the facts that were learned from the person alone, or from forwards of them."""
        by_fact: defaultdict[int, bool] = defaultdict(lambda: True)
        for _, fact, place, message_id, *_ in await self._all(_SOURCES):
            by_fact[fact] &= (place, message_id) in self._whole or (place, message_id) in self._theirs
        return {fact for fact, is_theirs in by_fact.items() if is_theirs}

    async def _read_forwards(self, words: Vocabulary) -> None:
        """Find what others forwarded of the person; where the author is unknown or the agent, their words decide."""
        self._whole |= self._theirs
        async for page in self._pages(_FORWARDS):
            for row, place, message_id, number, whose, body, parts in page:
                origin = AUTHOR.loads(body)
                texts = (*texts_of(PARTS.loads(parts)), origin.name)
                if whose == self._author or (not origin.is_person and words.at(place).is_in(*texts)):
                    self._whole[place, message_id] = row
                    self._touched.add((place, number))
                    self._add("forwards", row)

    async def _read_runs(self) -> tuple[set[str], set[str]]:
        """Find the runs that answered the person, and all that showed them."""
        for _, _, place, _, number, _ in await self._all(f"{_SOURCES} WHERE f.about = :author"):
            self._touched.add((place, number))
        reactions = """SELECT r.place, r.position FROM reactions r JOIN names n ON n.id = r.name
            WHERE n.author = :author AND r.position IS NOT NULL"""
        shown = first_numbers([*self._touched, *((place, at - 1) for place, at in await self._all(reactions))])
        answering, showing = set[str](), set[str]()
        async for page in self._pages(_RUNS):
            for row, run_id, place, target, given, horizon, forgotten in page:
                run = StoredRun(run_id, place, target, STRINGS.loads(given), horizon)
                if answers_person(run, self._theirs):
                    answering.add(run_id)
                if showed_person(run, self._whole, shown, self._direct | self._chats):
                    showing.add(run_id)
                    if not forgotten:
                        self._add("runs", row)
        for section in ("prompts", "records", "tool_runs", "calls"):
            await self._add_of(section, f"SELECT id FROM {section} WHERE run_id IN (:some) ORDER BY id", showing)
        left_out = """SELECT p.id, p.run_id, p.left_out FROM prompts p JOIN runs r ON r.run_id = p.run_id
            WHERE r.place IN (:near) AND p.left_out IS NOT NULL"""
        for row, run_id, reports in await self._all(left_out, near=sorted(self._near)):
            left = [one for one in LEFT_OUT.loads(reports) if one.source == "background"]
            if run_id not in showing and any(one.ids or one.text for one in left):
                self._add("left_out", row)
        return answering, showing

    async def _read_tasks(self, words: Vocabulary, answering: Collection[str]) -> set[str]:
        """Find the tasks for the person or with their words."""
        found: set[str] = set()
        select = "SELECT t.id, t.place, t.body, p.service FROM tasks t JOIN places p ON p.id = t.place"
        async for page in self._pages(f"{select} WHERE t.id > :after ORDER BY t.id LIMIT :most"):
            for row, place, body, service in page:
                task = TASK.loads(body)
                asked = service == self._platform and _author_in(task.args) == self._author_id
                is_theirs = task.run in answering or task.made_by in answering or asked
                if place in self._direct or (
                    task.args and (is_theirs or words.at(place).is_in(*strings_in(task.args), task.why))
                ):
                    found.add(task.id)
                    self._add("tasks", row)
        return found

    async def _read_replies(
        self, words: Vocabulary, answering: Collection[str], showing: Collection[str], tasks: Collection[str]
    ) -> None:
        """Find the replies, with all parts, for the person or with their words; others only lose their turns."""
        rows: defaultdict[str, list[tuple[int, MessageKey | None]]] = defaultdict(list)
        said: dict[str, tuple[int, str]] = {}
        found: set[str] = set()
        turns: list[tuple[str, int]] = []
        async for page in self._pages(_REPLIES):
            errors = defaultdict[int, list[str]](list)
            for row, error in await self._all(_ATTEMPTS, some=[row for row, *_ in page]):
                errors[row].append(error)
            for row, reply_id, place, run, task, message_id, body, why, separator, has_turns in page:
                reply = REPLY.loads(body)
                is_theirs = run in answering or task in tasks or (place, reply.reply_to) in self._theirs
                if place not in self._direct and not (reply.text or reply.media or has_turns):
                    continue  # it was emptied
                text = f"{said.get(reply_id, (place, ''))[1]}{separator}{reply.text}"
                said[reply_id] = place, text
                rows[reply_id].append((row, (place, message_id) if message_id else None))
                media = strings_in(json.loads(dumps(reply.media))) if reply.media else ()
                if place in self._direct or is_theirs or words.at(place).is_in(text, why, *errors[row], *media):
                    found.add(reply_id)
                if run in showing and has_turns:
                    turns.append((reply_id, row))
        for row, message in (part for reply_id, parts in rows.items() if reply_id in found for part in parts):
            self._add("replies", row)
            if message is not None:
                self._sent.add(message)
        for reply_id, row in turns:
            if reply_id not in found:
                self._add("turns_of_replies", row)

    async def _read_answers(self, words: Vocabulary) -> None:
        """Find the agent's messages that reply to the person, or have or had their words."""
        had = set[int]()
        async for page in self._pages(_VERSIONS):
            for _, message, place, _, _, role, _, before in page:
                if role == "model" and words.at(place).is_in(*texts_of(MESSAGE.loads(before).parts)):
                    had.add(message)
        first = first_numbers(self._touched)
        async for page in self._pages(_OURS):
            for row, place, message_id, number, reply_to, body, has_turns in page:
                parts, key = PARTS.loads(body), (place, message_id)
                is_theirs = key in self._sent or (place, reply_to) in self._theirs or place in self._direct
                files = (part.unique_id for part in parts if isinstance(part, Media))
                if (is_theirs and (parts or reply_to)) or row in had or words.at(place).is_in(*texts_of(parts), *files):
                    self._whole[key] = row
                    self._touched.add((place, number))
                    self._add("answers", row)
                elif has_turns and number > first.get(place, number):
                    self._add("turns", row)

    async def _read_quotes(self, words: Vocabulary) -> None:
        """Find the quotes of the person, of messages that are removed, and those with their words."""

        def is_theirs(place: int, quote: Quote) -> bool:
            if quote == Quote(message_id=quote.message_id):
                return False  # nothing is left of it
            ids = {one.id for one in (quote.author, quote.forwarded_from) if one}
            if (place, quote.message_id) in self._whole or (self._author_id in ids and place in of_platform):
                return True
            speaker = quote.forwarded_from or quote.author
            is_known = speaker is not None and speaker.persona is None and not speaker.unknown
            return not is_known and words.at(place).is_in(*texts_of(_quote_parts(quote)))

        places = await self._all("SELECT id FROM places WHERE service = :platform", platform=clean(self._platform))
        of_platform = {place for (place,) in places}
        gone, forwards = set(self._whole.values()), {row for (row,) in self._rows["forwards"]}
        async for page in self._pages(_QUOTES):
            for row, place, _, number, body, author in page:
                if (row not in gone or row in forwards) and (
                    author == self._author or is_theirs(place, QUOTE.loads(body))
                ):
                    self._touched.add((place, number))
                    self._add("quotes", row)
        async for page in self._pages(_VERSIONS):
            for change, row, place, _, _, _, _, before in page:
                quote = None if row in gone else MESSAGE.loads(before).reply_to
                if row in gone:
                    self._add("earlier_versions", change)
                elif quote is not None and is_theirs(place, quote):
                    self._add("quotes_in_versions", change)

    async def _read_facts(self, words: Vocabulary) -> None:
        """Find the facts about the person, of their direct chats, learned from them alone, or with their words."""
        learned, gone, people = await self._learned(), set[int](), {self._author}
        for row, place, about, *texts in await self._all(
            "SELECT id, place, about, text, key, name FROM facts ORDER BY id"
        ):
            is_theirs = about == self._author or place in self._direct or row in learned
            if is_theirs or words.at(place).is_in(*texts):
                gone.add(row)
                people.add(about)
                self._add("facts" if is_theirs else "facts_about_others", row)
        for row, fact, place, message_id, _, about in await self._all(_SOURCES):
            if fact not in gone and (place, message_id) in self._whole:
                people.add(about)
                self._add("sources", row)
        for row, fact in await self._all("SELECT id, fact FROM proposals ORDER BY id"):
            if fact in gone:
                self._add("proposals", row)
        near = sorted(self._near)
        select = "SELECT id, about, place FROM summaries WHERE about IN (:people) OR place IN (:near) ORDER BY id"
        for row, about, place in await self._all(select, near=near, people=list(people)):
            is_theirs = about == self._author or place in self._direct
            self._add("summaries" if is_theirs else "summaries_of_others", row)

    async def _read_episodes(self) -> None:
        """Find the episodes and window summaries that the person took part in, or that show what is removed."""
        numbers: defaultdict[int, list[int]] = defaultdict(list)
        for place, number in sorted(self._touched):
            numbers[place].append(number)
        select = """SELECT e.id, e.place, e.start, e.stop, e.people, p.service FROM episodes e
            JOIN places p ON p.id = e.place ORDER BY e.id"""
        for row, place, start, stop, people, service in await self._all(select):
            if place in self._direct or (service == self._platform and self._author_id in STRINGS.loads(people)):
                self._add("episodes", row)
            elif spans_any(start, stop, numbers[place]):
                self._add("episodes_of_others", row)
        for row, place, start in await self._all("SELECT id, place, start FROM window_pasts ORDER BY id"):
            if place in self._direct or spans_any(0, start, numbers[place]):
                self._add("window_summaries", row)

    async def _read_titles(self, words: Vocabulary) -> None:
        """Find the titles of groups with the person's words, and the values that repeat them."""
        places: defaultdict[int, set[str]] = defaultdict(set)
        for row, place, title in await self._all("SELECT id, place, title FROM titles WHERE title <> '' ORDER BY id"):
            if place not in self._direct and words.at(place).is_in(title):
                places[place].add(title)
                self._add("titles", row)
        for section, (table, column) in COPIES_OF_TITLES.items():
            select = f"SELECT id, place, {column} FROM {table} WHERE place IN (:places) AND {column} IS NOT NULL"
            for row, place, text in await self._all(f"{select} ORDER BY id", places=sorted(places)):
                if JSON_COLUMNS[table][column](text).place.title in places[place]:
                    self._add(section, row)

    async def _read_exchanges(self, words: Vocabulary) -> None:
        """Find the exchanges of chats with the person's words; of their own chat, all. Its prompts repeat them."""
        for name, exchange, exchanges in await self._reader.run(read_chats):
            is_theirs = self._platform == SERVICE and name == self._author_id
            place = await self._reader.run(partial(find_place, place=place_of_chat(name)))
            section = "exchanges" if is_theirs else "exchanges_of_others"
            for start, stop, text in exchanges:
                if is_theirs or words.at(place).is_in_json(*text.split("\n")):
                    self._add(section, name, start, stop)
            removed = any(chat == name for section in _EXCHANGES for chat, *_ in self._rows.get(section, ()))
            if exchange is not None and (is_theirs or removed or words.at(place).is_in_json(exchange)):
                self._add("open_exchanges", name)
                removed = True
            if removed and place is not None:
                self._chats.add(place)
            if is_theirs:
                self._add("chats", name)

    async def _read_media(self, words: Vocabulary) -> None:
        """Find what is stored of media that only the person sent: files, their forms, descriptions, failures.

        A file that somebody else sent too stays. Of it, it is no longer stored when a place without it got to know its
        description. A description with words of the person is removed, whosever the media are.
        """
        gone = set(self._whole.values())
        if self._direct:
            select = "SELECT id FROM messages WHERE place IN (:places)"
            gone |= {row for (row,) in await self._all(select, places=sorted(self._direct))}
        had = self._media | {
            unique_id async for (unique_id,) in self._of("SELECT unique_id FROM media WHERE message IN (:some)", gone)
        }
        left: defaultdict[str, set[int]] = defaultdict(set)
        sent = """SELECT a.unique_id, m.id, m.place FROM media a JOIN messages m ON m.id = a.message
            WHERE a.unique_id IN (:some)"""
        async for unique_id, message, place in self._of(sent, had):
            if message not in gone:
                left[unique_id].add(place)
        lost = self._lost = had - left.keys()
        for unique_id, made_by, text, place, message in await self._all(_DESCRIPTIONS):
            if unique_id in lost or (message not in gone and words.at(place).is_in(text)):
                self._add("descriptions", unique_id, made_by)
        for section, table in (("descriptions", "descriptions"), ("media_without_description", "description_failures")):
            await self._add_of(section, f"SELECT unique_id, made_by FROM {table} WHERE unique_id IN (:some)", lost)
        known = "SELECT unique_id, made_by, place FROM description_positions WHERE unique_id IN (:some)"
        async for unique_id, made_by, place in self._of(known, self._media):
            if place not in left[unique_id]:
                self._add("description_positions", unique_id, made_by, place)
        await self._read_files(lost)

    async def _read_files(self, lost: Collection[str]) -> None:
        """Find the files of media that nobody else has, with the forms that only these have."""
        known = "SELECT unique_id, sha256 FROM media_files WHERE unique_id IN (:some)"
        async for unique_id, sha256 in self._of(known, lost):
            self._add("media_files", unique_id)
            if sha256 is None:
                self._add("media_without_file", unique_id)
        files = await self._reader.run(partial(files_of, media=lost))
        for sha256 in sorted(files):
            self._add("files", sha256)
        texts = "SELECT source, form FROM file_forms WHERE source IN (:some) AND text <> ''"
        await self._add_of("texts_of_files", texts, files)
        handles = "SELECT account, name FROM handles WHERE sha256 IN (:some) AND unwanted = 0"
        await self._add_of("files_at_services", handles, files)

    async def _read_rest(self) -> None:
        """Find the rows that belong to the person, and those of their direct chats that nothing else found."""
        places = {"direct": sorted(self._direct), "near": sorted(self._near)}
        for name, section in (DERIVED | OWN).items():
            for key in await self._all(section.find, **places) if section.find else ():
                self._add(name, *key)

    async def _read_updates(self) -> None:
        """Find the raw updates of places where the person was, and those with one of their names."""
        select = """SELECT u.id FROM updates u JOIN update_places p ON p.update_row = u.id
            WHERE u.raw IS NOT NULL AND p.place IN (:near)"""
        found = {row for (row,) in await self._all(select, near=sorted(self._near))}
        names = filter(None, (self._author_id, *self._names))
        forms = {form.encode("utf-8", "replace") for name in names for form in (name, json.dumps(name)[1:-1])}
        async for page in self._pages(_UPDATES):
            found |= {row for row, raw in page if any(form in raw for form in forms)}
        for row in sorted(found):
            self._add("updates", row)


def _quote_parts(quote: Quote) -> tuple[Part, ...]:
    return (*quote.parts, *([Text(text=quote.excerpt)] if quote.excerpt else []))


def _author_in(args: dict[str, Any]) -> Any:
    """Return the id of the author that the arguments of a command name."""
    author = args.get("author")
    return author.get("id") if isinstance(author, dict) else None
