"""Reads what forgetting a person removes, page by page on the reader, and makes a plan of it.

What shows the person for certain is found by references: their messages, names, quotes, forwards, reactions, facts
about them, direct chats; the runs that knew or were given one of these; the episodes and summaries made of them. But
their words are also where no reference leads: in answers to others, replies, tasks, facts about others, titles,
descriptions and chats with a name. These texts are searched for marks (words, names, numbers, sentences) that only this
person used; `memory.person_words` says which. The rows that belong to what was found so are those of the sections.
"""

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

from tertulia.media.values import file_key
from tertulia.memory.forget import Key, MessageKey, Plan, StoredRun, answers_person, first_numbers, showed_person
from tertulia.memory.person_words import PersonWords, Said, Vocabulary, strings_in, texts_of
from tertulia.messages import Author, Quote
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
from tertulia.store.forget.removal import COPIES_OF_TITLES, NOBODY, SECTIONS
from tertulia.store.identities import find_author, find_place
from tertulia.store.json_columns import JSON_COLUMNS
from tertulia.store.prompts import layer_contents
from tertulia.store.threads import ConnectionThread

PAGE = 500  # rows, or ids in one statement, that are looked through at once, so that others go on meanwhile
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
# Messages, in pages: the person's, those of others with a forward or a quote, all of others, the agent's.
_MESSAGES = """SELECT m.id, m.place, m.message_id, m.number, n.author, m.parts, m.reply_to, m.reply, m.reply_author,
    m.forwarded_from, m.forward_author, CASE WHEN t.message IS NULL THEN 0 ELSE 1 END
    FROM messages m JOIN names n ON n.id = m.name LEFT JOIN turns t ON t.message = m.id
    WHERE {} AND m.id > :after ORDER BY m.id LIMIT :most"""
_THEIRS = _MESSAGES.format("n.author = :author")
_FORWARDS = _MESSAGES.format("m.forwarded_from IS NOT NULL AND n.author <> :author")
_QUOTES = _MESSAGES.format("m.reply IS NOT NULL AND n.author <> :author")
_OTHERS = _MESSAGES.format("m.role = 'user' AND n.author <> :author")
_OURS = _MESSAGES.format("m.role = 'model'")
# Earlier versions of messages, in pages.
_VERSIONS = """SELECT e.id, e.message, e.place, n.author, m.role, e.before
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
_RUNS = """SELECT r.id, r.run_id, r.place, r.target, r.message_ids, r.horizon FROM runs r
    WHERE r.id > :after ORDER BY r.id LIMIT :most"""
# What was left out of prompts in the places of the person.
_LEFT_OUT = """SELECT p.id, p.run_id, p.left_out FROM prompts p JOIN runs r ON r.run_id = p.run_id
    WHERE r.place IN (:near) AND p.left_out IS NOT NULL"""
# All tasks, in pages.
_TASKS = """SELECT t.id, t.place, t.body, p.service FROM tasks t JOIN places p ON p.id = t.place
    WHERE t.id > :after ORDER BY t.id LIMIT :most"""
# Replies with what can have words of a person, in pages.
_REPLIES = """SELECT o.id, coalesce(o.reply_id, o.outgoing_id), o.place, o.run_id, o.task_id, o.message_id, o.reply,
    o.why, o.separator, CASE WHEN o.turns = '[]' THEN 0 ELSE 1 END FROM outbox o
    WHERE o.id > :after ORDER BY o.id LIMIT :most"""
# The errors of attempts to send some replies.
_ATTEMPTS = """SELECT o.id, a.why FROM delivery_attempts a JOIN outbox o ON o.outgoing_id = a.outgoing_id
    WHERE o.id IN (:some) AND a.why <> ''"""
# The sources of all facts.
_SOURCES = """SELECT s.id, s.fact, s.place, s.message_id, m.id, m.number, f.about FROM fact_sources s
    JOIN messages m ON m.place = s.place AND m.message_id = s.message_id JOIN facts f ON f.id = s.fact"""
# The reactions of the person that prompts show.
_REACTIONS = """SELECT r.place, r.position FROM reactions r JOIN names n ON n.id = r.name
    WHERE n.author = :author AND r.position IS NOT NULL"""
# Descriptions with a place where their media were sent.
_DESCRIPTIONS = """SELECT d.unique_id, d.made_by, d.text, m.place, m.id FROM descriptions d
    JOIN media a ON a.unique_id = d.unique_id JOIN messages m ON m.id = a.message ORDER BY d.unique_id, d.made_by"""
# Where media were sent.
_SENT = (
    "SELECT a.unique_id, m.id, m.place FROM media a JOIN messages m ON m.id = a.message WHERE a.unique_id IN (:some)"
)
# Raw updates, in pages.
_UPDATES = "SELECT u.id, u.raw FROM updates u WHERE u.raw IS NOT NULL AND u.id > :after ORDER BY u.id LIMIT :most"


class _Message(NamedTuple):
    """A row of `_MESSAGES`."""

    row: int
    place: int
    message_id: str
    number: int
    author: int
    body: str
    reply_to: str | None
    reply: str | None
    whom: int | None  # the author of the quote
    forwarded_from: str | None
    whose: int | None  # the author of what is forwarded
    has_turns: int

    @property
    def key(self) -> MessageKey:
        return self.place, self.message_id

    @property
    def parts(self) -> tuple[Part, ...]:
        return PARTS.loads(self.body)

    @property
    def quote(self) -> Quote | None:
        return None if self.reply is None else QUOTE.loads(self.reply)

    @property
    def origin(self) -> Author | None:
        return None if self.forwarded_from is None else AUTHOR.loads(self.forwarded_from)


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
        self._touched: dict[int, tuple[int, int]] = {}  # messages that show the person, with places and numbers
        self._media: set[str] = set()  # that the person sent
        self._sent: set[MessageKey] = set()  # the messages of replies that are removed
        self._rows: defaultdict[str, dict[Key, None]] = defaultdict(dict)
        self._chats: set[int] = set()  # the places of chats with a name that showed the person
        lists = ("runs", "facts", "changed_facts", "media", "files", "messages", "touched")
        self._of: dict[str, Collection[Any]] = dict.fromkeys(lists, ())  # what sections find their rows by

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
            answering = await self._read_runs()
            tasks = await self._read_tasks(words, answering)
            await self._read_replies(words, answering, tasks)
            await self._read_answers(words)
            await self._read_quotes(words)
            await self._read_facts(words)
            await self._read_titles(words)
            await self._read_media(words)
            await self._read_sections()
        elif self._direct:
            await self._read_runs()
            await self._read_sections()
        await self._read_updates()
        return Plan(
            platform=self._platform,
            author_id=self._author_id,
            author=self._author,
            direct=tuple(sorted(self._direct)),
            media=frozenset(self._of["media"]),
            last_event=last_event,
            rows={section: tuple(keys) for section, keys in self._rows.items() if keys},
        )

    async def _all(self, statement: str, **values: Any) -> list[Row]:
        known = {"author": self._author, "direct": sorted(self._direct), "near": sorted(self._near)}
        named = {name: value for name, value in known.items() if f":{name}" in statement}
        return await self._reader.run(lambda database: database.all(statement, **named, **values))

    async def _pages(self, statement: str) -> AsyncIterator[list[Row]]:
        """Yield pages of a statement whose first column is the id that it is ordered by."""
        after = 0
        while rows := await self._all(statement, after=after, most=PAGE):
            yield rows
            after = rows[-1][0]

    async def _each(self, statement: str) -> AsyncIterator[Row]:
        """Yield the rows of such a statement."""
        async for page in self._pages(statement):
            for row in page:
                yield row

    async def _messages(self, statement: str) -> AsyncIterator[_Message]:
        async for row in self._each(statement):
            yield _Message(*row)

    async def _by(self, statement: str, values: Iterable[Any], name: str = "some") -> AsyncIterator[Row]:
        """Yield the rows of a statement for some values at a time; without any it is read once."""
        left = list(values)
        for start in range(0, len(left) or 1, PAGE):
            for row in await self._all(statement, **{name: left[start : start + PAGE]}):
                yield row

    def _add(self, section: str, *key: int | str) -> None:
        self._rows[section][key] = None

    def _touch(self, message: _Message) -> None:
        self._touched[message.row] = message.place, message.number

    async def _read_sections(self) -> None:
        """Find the rows of sections: by columns that name the person, or by what was found before."""
        self._of |= {"messages": self._whole.values(), "touched": self._touched}
        for name, section in SECTIONS.items():
            if section.by:
                of = next((one for one in self._of if f":{one})" in section.by), "none")
                async for key in self._by(section.find, self._of.get(of, ()), of):
                    self._add(name, *key)

    async def _read_chat(self) -> None:
        """Plan a whole chat with a name: its place and its exchanges."""
        chat = place_of_chat(self._author_id)
        place = await self._reader.run(lambda database: find_place(database, chat))
        if place is not None:
            self._direct.add(place)
        await self._read_exchanges(Vocabulary(near={}, far=PersonWords(())))

    async def _read_direct(self) -> None:
        """Find the direct chats of the person, without messages of others."""
        titles = await self._all("SELECT place, body FROM titles WHERE place IN (:near)")
        for place in {place for place, body in titles if PLACE.loads(body).kind == "direct"}:
            if not await self._all(_OTHERS_THERE, place=place, nobody=dumps(NOBODY)):
                self._direct.add(place)

    async def _read_said(self) -> Said:
        """Read what the person is called, and all that they said, also where others quote or forward it."""
        names = await self._all("SELECT name, username FROM names WHERE author = :author")
        forwards = [one async for one in self._messages(_FORWARDS) if one.whose == self._author]
        names += [(one.origin.name, one.origin.username) for one in forwards if one.origin]
        self._names = {name for both in names for name in both if name}
        called = await self._all("SELECT name FROM facts WHERE about = :author")
        said = Said({*self._names, self._author_id, *(name for (name,) in called)})
        async for one in self._messages(_THEIRS):
            self._theirs[one.key] = one.row
            self._add_said(said, one, one.parts)
        async for _, row, _, author, _, before in self._each(_VERSIONS):
            if author == self._author:
                said.add(row, MESSAGE.loads(before).parts)
        async for one in self._messages(_QUOTES):
            quote = one.quote
            if quote and (one.whom == self._author or (one.place, quote.message_id) in self._theirs):
                self._add_said(said, one, _quote_parts(quote))
        for one in forwards:
            self._add_said(said, one, one.parts)
        return said

    def _add_said(self, said: Said, message: _Message, parts: Iterable[Part]) -> None:
        self._touch(message)
        said.add(message.row, parts)
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
            await asyncio.to_thread(said.subtract, [one for row in page for one in self._texts_of(_Message(*row))])
        async for _, _, place, by, role, before in self._each(_VERSIONS):
            message = MESSAGE.loads(before)
            if role == "user" and by != self._author and not message.forwarded_from:
                said.subtract((place, by, text) for text in texts_of(message.parts))
        others = await self._all(_NAMES_OF_OTHERS)
        said.subtract((place, by, name) for place, by, *names in others for name in names if name)
        async for one in self._messages(_OURS):
            said.subtract_ours((one.row, text) for text in texts_of(one.parts))
        said.subtract_configured(await self._reader.run(self._configured))
        titles: defaultdict[int, list[str]] = defaultdict(list)
        for place, title in await self._all("SELECT place, title FROM titles"):
            titles[place].append(title)
        return said.vocabulary(self._near, titles.__getitem__)

    def _texts_of(self, message: _Message) -> Iterator[tuple[int, Any, str]]:
        """Yield the texts of a message of somebody else, also what it quotes of people but this one."""
        origin, quote, place = message.origin, message.quote, message.place
        author = message.author if origin is None else None if origin.persona else message.whose
        if author not in (self._author, None):  # None: forwarded from an unknown account or an agent
            yield from ((place, author, text) for text in texts_of(message.parts))
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
        for _, fact, *key, _, _, _ in await self._all(_SOURCES):
            by_fact[fact] &= tuple(key) in self._whole or tuple(key) in self._theirs
        return {fact for fact, is_theirs in by_fact.items() if is_theirs}

    async def _read_forwards(self, words: Vocabulary) -> None:
        """Find what others forwarded of the person; where the author is unknown or the agent, their words decide."""
        self._whole |= self._theirs
        async for one in self._messages(_FORWARDS):
            origin = one.origin
            if one.whose == self._author or (
                origin and not origin.is_person and words.at(one.place).is_in(*texts_of(one.parts), origin.name)
            ):
                self._whole[one.key] = one.row
                self._touch(one)
                self._add("forwards", one.row)

    async def _read_runs(self) -> set[str]:
        """Find all runs that showed the person; return those that answered them."""
        for _, _, place, _, message, number, _ in await self._all(f"{_SOURCES} WHERE f.about = :author"):
            self._touched[message] = place, number
        reactions = ((place, at - 1) for place, at in await self._all(_REACTIONS))
        shown = first_numbers([*self._touched.values(), *reactions])
        answering, showing = set[str](), set[str]()
        async for _, run_id, place, target, given, horizon in self._each(_RUNS):
            run = StoredRun(run_id, place, target, STRINGS.loads(given), horizon)
            if answers_person(run, self._theirs):
                answering.add(run_id)
            if showed_person(run, self._whole, shown, self._direct | self._chats):
                showing.add(run_id)
        for row, run_id, reports in await self._all(_LEFT_OUT):
            left = (one for one in LEFT_OUT.loads(reports) if one.source == "background")
            if run_id not in showing and any(one.ids or one.text for one in left):
                self._add("left_out", row)
        self._of["runs"] = showing
        return answering

    async def _read_tasks(self, words: Vocabulary, answering: Collection[str]) -> set[str]:
        """Find the tasks for the person or with their words."""
        found: set[str] = set()
        async for row, place, body, service in self._each(_TASKS):
            task = TASK.loads(body)
            asked = service == self._platform and _author_in(task.args) == self._author_id
            is_theirs = task.run in answering or task.made_by in answering or asked
            if place in self._direct or (
                task.args and (is_theirs or words.at(place).is_in(*strings_in(task.args), task.why))
            ):
                found.add(task.id)
                self._add("tasks", row)
        return found

    async def _read_replies(self, words: Vocabulary, answering: Collection[str], tasks: Collection[str]) -> None:
        """Find the replies, with all parts, for the person or with their words."""
        rows: defaultdict[str, list[tuple[int, MessageKey | None]]] = defaultdict(list)
        said: defaultdict[str, str] = defaultdict(str)
        found: set[str] = set()
        async for page in self._pages(_REPLIES):
            errors = defaultdict[int, list[str]](list)
            for row, error in await self._all(_ATTEMPTS, some=[row for row, *_ in page]):
                errors[row].append(error)
            for row, reply_id, place, run, task, message_id, body, why, separator, has_turns in page:
                reply = REPLY.loads(body)
                is_theirs = run in answering or task in tasks or (place, reply.reply_to) in self._theirs
                if place not in self._direct and not (reply.text or reply.media or has_turns):
                    continue  # it was emptied
                said[reply_id] += f"{separator}{reply.text}"
                rows[reply_id].append((row, (place, message_id) if message_id else None))
                texts = said[reply_id], why, *errors[row], *strings_in(json.loads(dumps(reply.media)))
                if place in self._direct or is_theirs or words.at(place).is_in(*texts):
                    found.add(reply_id)
        for row, message in (part for reply_id, parts in rows.items() if reply_id in found for part in parts):
            self._add("replies", row)
            if message is not None:
                self._sent.add(message)

    async def _read_answers(self, words: Vocabulary) -> None:
        """Find the agent's messages that reply to the person, or have or had their words."""
        had = set[int]()
        async for _, message, place, _, role, before in self._each(_VERSIONS):
            if role == "model" and words.at(place).is_in(*texts_of(MESSAGE.loads(before).parts)):
                had.add(message)
        first = first_numbers(self._touched.values())
        async for one in self._messages(_OURS):
            parts, place = one.parts, one.place
            is_theirs = one.key in self._sent or (place, one.reply_to) in self._theirs or place in self._direct
            texts = *texts_of(parts), *(part.unique_id for part in parts if isinstance(part, Media))
            if (is_theirs and (parts or one.reply_to)) or one.row in had or words.at(place).is_in(*texts):
                self._whole[one.key] = one.row
                self._touch(one)
                self._add("answers", one.row)
            elif one.has_turns and one.number > first.get(place, one.number):
                self._add("turns", one.row)

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
        gone, forwards = set(self._whole.values()), self._rows["forwards"]
        async for one in self._messages(_QUOTES):
            if one.row in gone and (one.row,) not in forwards:
                continue
            if one.quote and (one.whom == self._author or is_theirs(one.place, one.quote)):
                self._touch(one)
                self._add("quotes", one.row)
        async for change, row, place, _, _, before in self._each(_VERSIONS):
            quote = MESSAGE.loads(before).reply_to
            if row not in gone and quote is not None and is_theirs(place, quote):
                self._add("quotes_in_versions", change)

    async def _read_facts(self, words: Vocabulary) -> None:
        """Find the facts about the person, of their direct chats, learned from them alone, or with their words."""
        learned, gone, changed = await self._learned(), set[int](), set[int]()
        facts = "SELECT id, place, about, text, key, name FROM facts ORDER BY id"
        for row, place, about, *texts in await self._all(facts):
            is_theirs = about == self._author or place in self._direct or row in learned
            if is_theirs or words.at(place).is_in(*texts):
                gone.add(row)
                self._add("facts" if is_theirs else "facts_about_others", row)
        for row, fact, *key, _, _, _ in await self._all(_SOURCES):
            if fact not in gone and tuple(key) in self._whole:
                changed.add(fact)
                self._add("sources", row)
        self._of |= {"facts": gone, "changed_facts": gone | changed}

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
            removed = [
                (start, stop)
                for start, stop, text in exchanges
                if is_theirs or words.at(place).is_in_json(*text.split("\n"))
            ]
            for start, stop in removed:
                self._add("exchanges" if is_theirs else "exchanges_of_others", name, start, stop)
            is_open = exchange is not None and (is_theirs or bool(removed) or words.at(place).is_in_json(exchange))
            if is_open:
                self._add("open_exchanges", name)
            if (removed or is_open) and place is not None:
                self._chats.add(place)
            if is_theirs:
                self._add("chats", name)

    async def _read_media(self, words: Vocabulary) -> None:
        """Find what is stored of media that only the person sent: files, their forms, descriptions, failures.

        A file that somebody else sent too stays. Of it, it is no longer stored when a place without it got to know its
        description. A description with words of the person is removed, whosever the media are.
        """
        in_direct = await self._all("SELECT id FROM messages WHERE place IN (:direct)")
        gone = {*self._whole.values(), *(row for (row,) in in_direct)}
        sent = "SELECT unique_id FROM media WHERE message IN (:some)"
        had = self._media | {unique_id async for (unique_id,) in self._by(sent, gone)}
        left: defaultdict[str, set[int]] = defaultdict(set)
        async for unique_id, message, place in self._by(_SENT, had):
            if message not in gone:
                left[unique_id].add(place)
        lost = had - left.keys()
        for unique_id, made_by, text, place, message in await self._all(_DESCRIPTIONS):
            if message not in gone and words.at(place).is_in(text):
                self._add("descriptions", unique_id, made_by)
        known = "SELECT unique_id, made_by, place FROM description_positions WHERE unique_id IN (:some)"
        async for unique_id, made_by, place in self._by(known, self._media):
            if place not in left[unique_id]:
                self._add("description_positions", unique_id, made_by, place)
        self._of |= {"media": lost, "files": await self._reader.run(partial(files_of, media=lost))}

    async def _read_updates(self) -> None:
        """Find the raw updates with one of the person's names."""
        names = filter(None, (self._author_id, *self._names))
        forms = {form.encode("utf-8", "replace") for name in names for form in (name, json.dumps(name)[1:-1])}
        async for row, raw in self._each(_UPDATES):
            if any(form in raw for form in forms):
                self._add("updates", row)


def _quote_parts(quote: Quote) -> tuple[Part, ...]:
    return (*quote.parts, *([Text(text=quote.excerpt)] if quote.excerpt else []))


def _author_in(args: dict[str, Any]) -> Any:
    """Return the id of the author that the arguments of a command name."""
    author = args.get("author")
    return author.get("id") if isinstance(author, dict) else None
