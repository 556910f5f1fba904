"""Finds in any text what only one person said: words, names, numbers, runs of characters, sentences.

A text is taken apart into marks: `("word", "flowerpot")`, `("stem", "flowerpot")`, `("number", "380671234567")`,
`("run", "朝阳区")`, `("words", ("the", "blue", "key"))`, `("text", '"👍"')`. What only one person said is then a
difference of sets: their marks without those of everybody else. A text with one of these marks has their words.
Invisible characters are removed first, so they split no words.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from msgspec import Struct

from tertulia.characters import INVISIBLE, visible
from tertulia.memory.retrieval.terms import STOPWORDS, TOKEN, fold, is_unspaced, stem
from tertulia.messages import Quote
from tertulia.parts import Media, Part, Text
from tertulia.store.encoding import LAYER, MESSAGE, PARTS, QUOTE, dumps
from tertulia.store.fact_rows import SOURCES
from tertulia.store.prompts import layer_content
from tertulia.store.sqlite.connection import Database

Mark = tuple[str, Any]  # its kind, and what it is

# SQL with the row of a person twice: their names, where they wrote and where others forwarded them
NAMES = """SELECT name, username FROM names WHERE author = ? UNION
    SELECT json_extract(forwarded_from, '$.name'), json_extract(forwarded_from, '$.username') FROM messages
    WHERE forward_author = ?"""

SENTENCE = 5  # words of a sequence that identifies a person in any place
LONGEST_RUN = 6  # characters of a run in a script without blanks
_FEWEST_DIGITS = 4
_LEAST_STEMMED = 5  # letters; the stem of a shorter word is that of too many others
_STOP = frozenset(map(fold, STOPWORDS))
_NUMBER = re.compile(r"\d(?:[ \u00a0().-]{0,2}\d)+")
_CALENDAR = re.compile(r"(?:19|20)\d\d(?:(?:0[1-9]|1[0-2])(?:[0-3]\d)?)?")  # a year or a date is not personal
_TEXT = re.compile(r'"text":("(?:[^"\\]|\\.)*")')
_ESCAPE = re.compile(r"\\+(?:u[0-9a-fA-F]{4}|.)")
_INVISIBLE = re.compile(f"[{INVISIBLE}]")
_CODED = re.compile(r"(?<!\\)\\++u([0-9a-fA-F]{4})")


class PersonWords:
    """The marks and media of a person, searched for in other texts."""

    def __init__(self, marks: Iterable[Mark], media: Iterable[str] = ()) -> None:
        self._marks = frozenset(marks)
        self._sizes = sizes(self._marks)
        self._media = tuple(f'"unique_id":{dumps(unique_id)}' for unique_id in media if unique_id)

    def __bool__(self) -> bool:
        return bool(self._marks or self._media)

    def end(self, text: str) -> int | None:
        """Return the end of the first mark in *text*, which may be JSON; None if there is none."""
        found = self._first(_plain(text))
        if found is None and _CODED.search(text):  # characters that somebody else's JSON has as numbers
            decoded = _CODED.sub(lambda code: chr(int(code.group(1), 16)), text)
            found = len(text) if self._first(_plain(decoded)) is not None else None
        ends = [text.find(wanted) + len(wanted) for wanted in self._media if wanted in text]
        whole = (at.end() for at in _TEXT.finditer(text) if ("text", at.group(1)) in self._marks)
        return min((end for end in (found, *ends, next(whole, None)) if end is not None), default=None)

    def is_in(self, *texts: str | None) -> bool:
        return bool(self) and any(text is not None and self.end(text) is not None for text in texts)

    def _first(self, text: str) -> int | None:
        if not self._marks:
            return None
        found = min((end for mark, end in marks_of(text, self._sizes) if mark in self._marks), default=None)
        return None if found is None else _visible_to_index(text, found)


def sizes(marks: Iterable[Mark]) -> frozenset[int]:
    """Return the lengths of the word sequences among *marks*."""
    return frozenset(len(what) for kind, what in marks if kind == "words")


def said_marks(text: str, sequences: Collection[int] = (SENTENCE,)) -> set[Mark]:
    """Return the marks of a written text: its words, word sequences, and a short text as a whole."""
    found = {mark for mark, _ in marks_of(text, sequences)}
    words = _words(text)
    if 1 < len(words) < SENTENCE:
        found.add(("words", tuple(words)))
    if not any(kind in ("word", "number", "run") for kind, _ in found) and text.strip():
        found.add(("text", dumps(text)))
    return found


def name_marks(name: str) -> set[Mark]:
    """Return the marks of a name: each word, and all words as a sequence."""
    words = _words(name)
    whole: set[Mark] = {("words", tuple(words))} if len(words) > 1 else set()
    return {mark for mark, _ in marks_of(name)} | whole


def marks_of(text: str, sequences: Collection[int] = ()) -> Iterator[tuple[Mark, int]]:
    """Yield the marks of *text* with their ends in its visible characters; word sequences of these sizes only."""
    text = visible(text)
    words: list[tuple[str, int]] = []
    for found in TOKEN.finditer(text):
        token, end = found.group(), found.end()
        if is_unspaced(token):
            yield from _runs(token, found.start())
            continue
        for word in fold(token).split("'"):
            words.append((word, end))
            yield from ((mark, end) for mark in _of_word(word))
    for found in _NUMBER.finditer(text):
        digits = "".join(filter(str.isdigit, found.group()))
        yield from ((mark, found.end()) for mark in _of_number(digits))
    for size in sequences:
        for start in range(len(words) - size + 1):
            some = words[start : start + size]
            yield ("words", tuple(word for word, _ in some)), some[-1][1]


def _of_word(word: str) -> Iterator[Mark]:
    if word.isdigit():
        yield from _of_number(word)
        return
    if len(word) < 2 or word in _STOP:
        return
    yield "word", word
    if len(word) >= _LEAST_STEMMED:
        yield "stem", stem(word)


def _of_number(digits: str) -> Iterator[Mark]:
    if len(digits) >= _FEWEST_DIGITS and not _CALENDAR.fullmatch(digits):
        yield "number", digits
        if len(digits) > 9:
            yield "number", digits[-9:]  # of a telephone, with the prefix of its country or without


def _runs(token: str, at: int) -> Iterator[tuple[Mark, int]]:
    for size in range(2, LONGEST_RUN + 1):
        for start in range(len(token) - size + 1):
            yield ("run", token[start : start + size]), at + start + size


def _words(text: str) -> list[str]:
    return [
        word
        for found in TOKEN.findall(visible(text))
        if not is_unspaced(found)
        for word in fold(found).split("'")
        if word
    ]


def _visible_to_index(text: str, end: int) -> int:
    """Return the index in *text* after its first *end* visible characters."""
    for hidden in _INVISIBLE.finditer(text):
        if hidden.start() >= end:
            break
        end += 1
    return end


def _plain(json: str) -> str:
    """Return *json* with escapes replaced by blanks, of the same length."""
    return _ESCAPE.sub(lambda found: " " * len(found.group()), json) if "\\" in json else json


ORDINARY = 3  # users that make a word ordinary
_ONLY_WORDS = ("word", "stem", "run")  # marks that may as well be anybody's; a number, a name or a sentence is not
_FAR_DIGITS, _FAR_LETTERS, _FAR_RUN = 5, 6, 5  # what a mark needs to be theirs where they never were
_PLACES = 200  # places whose instructions are read
_JSON_WORDS = """user model system assistant tool text thought media opaque tool_call tool_result role parts kind name
    args value failed raw turns turn layers layer static dynamic buffered trigger instruction tools settings signature
    mime data uri unique id rendered reply place title platform group direct channel send wait sticker remember think
    block clear conversation custom body photo voice video document content candidates index usage finish reason stop
    choices message object created type function calls call arguments reasoning refusal category probability total
    prompt completion tokens count details version service tier error null true false image jpeg png audio"""


class Vocabulary(Struct, frozen=True, kw_only=True):
    """The words to search for in each place."""

    near: dict[int, PersonWords]  # where the person was
    far: PersonWords  # everywhere else
    media: frozenset[str] = frozenset()  # the ids of the person's media

    def at(self, place: int) -> PersonWords:
        return self.near.get(place, self.far)


def read_vocabulary(database: Database, author: int, author_id: str, near: Iterable[int]) -> Vocabulary:
    """Return the marks that only the person used, for each place.

    A mark that anybody else wrote in the same place is excluded there. Ordinary words are excluded everywhere: those
    that three others use, that the agent used before the person, or that its instructions and tools contain.
    """
    first, media = _marks_of_person(database, author)
    called = _name_marks_of(database, author, author_id)
    derived = _derived_marks(database, author)
    marks = {*first, *called, *derived}
    used, users = _marks_of_others(database, author, marks)
    anywhere = set().union(*used.values())
    ordinary = {*_agent_marks_before(database, first), *_configured_marks(database, author)}
    ordinary |= {mark for mark, people in users.items() if len(people) >= ORDINARY}
    near_words: dict[int, PersonWords] = {}
    for place in near:
        weak = {mark for mark in ordinary | _title_marks(database, place) if mark[0] in _ONLY_WORDS} - called
        near_words[place] = PersonWords(marks - used[place] - weak, media)
    distinct = {mark for mark in marks if _is_distinct(mark, called)}
    return Vocabulary(near=near_words, far=PersonWords(distinct - anywhere, media), media=frozenset(media))


def _marks_of_person(database: Database, author: int) -> tuple[dict[Mark, int], set[str]]:
    """Return the marks of all messages of the person, each with its first message; and the ids of their media."""
    first: dict[Mark, int] = {}
    media: set[str] = set()
    for row, parts in _parts_of_person(database, author):
        media |= {part.unique_id for part in parts if isinstance(part, Media)}
        for text in _texts(parts):
            for mark in said_marks(text):
                first[mark] = min(row, first.get(mark, row))
    return first, media


def _parts_of_person(database: Database, author: int) -> Iterator[tuple[int, tuple[Part, ...]]]:
    """Yield the parts of all messages of the person, with earlier versions, and of quotes and forwards of them."""
    select = "SELECT m.id, m.parts FROM messages m JOIN names n ON n.id = m.name WHERE n.author = ?"
    for row, parts in database.execute(select, (author,)).fetchall():
        yield row, PARTS.loads(parts)
        events = "SELECT before FROM message_changes WHERE message = ? AND before IS NOT NULL"
        yield from ((row, MESSAGE.loads(before).parts) for (before,) in database.execute(events, (row,)).fetchall())
    select = """SELECT id, reply FROM messages WHERE reply_author = ? AND reply IS NOT NULL UNION
        SELECT m.id, m.reply FROM names n JOIN messages q ON q.name = n.id
        JOIN messages m ON m.place = q.place AND m.reply_to = q.message_id WHERE n.author = ? AND m.reply IS NOT NULL"""
    for row, reply in database.execute(select, (author, author)).fetchall():
        yield row, _quote_parts(QUOTE.loads(reply))
    select = "SELECT id, parts FROM messages WHERE forward_author = ?"
    for row, parts in database.execute(select, (author,)).fetchall():
        yield row, PARTS.loads(parts)


def _name_marks_of(database: Database, author: int, author_id: str) -> set[Mark]:
    select = f"{NAMES} UNION SELECT name, NULL FROM facts WHERE about = ?"
    names = {name for row in database.execute(select, (author,) * 3) for name in row if name}
    return {mark for name in (*names, author_id) for mark in name_marks(name)}


def _derived_marks(database: Database, author: int) -> set[Mark]:
    """Return the marks of facts, summaries and descriptions made from their messages, without single words."""
    remembered = f"""SELECT text FROM facts WHERE about = ? UNION SELECT text FROM summaries WHERE about = ?
        UNION SELECT f.text FROM {SOURCES} JOIN facts f ON f.id = c.fact GROUP BY f.text HAVING min(n.author = ?) = 1
        UNION SELECT d.text FROM descriptions d JOIN media a ON a.unique_id = d.unique_id
            JOIN messages m ON m.id = a.message JOIN names n ON n.id = m.name
            GROUP BY d.id HAVING min(n.author = ?) = 1"""
    texts = [text for (text,) in database.execute(remembered, (author,) * 4)]
    found = {mark for text in texts for mark in said_marks(text) if mark[0] not in ("word", "stem")}
    return {mark for mark in found if mark[0] != "run" or len(mark[1]) >= _FAR_RUN}


def _marks_of_others(
    database: Database, author: int, wanted: set[Mark]
) -> tuple[defaultdict[int, set[Mark]], defaultdict[Mark, set[int]]]:
    """Return the marks among *wanted* that others used, by place, and their users."""
    used: defaultdict[int, set[Mark]] = defaultdict(set)
    users: defaultdict[Mark, set[int]] = defaultdict(set)
    lengths = sizes(wanted)
    for place, other, text in _texts_of_others(database, author):
        for mark in said_marks(text, lengths) & wanted:
            used[place].add(mark)
            if len(users[mark]) < ORDINARY:
                users[mark].add(other)
    return used, users


def _texts_of_others(database: Database, author: int) -> Iterator[tuple[int, int, str]]:
    """Yield the texts and names of other people, with place and author."""
    theirs = "JOIN names n ON n.id = m.name WHERE n.author <> ? AND m.role = 'user'"
    writer = """CASE WHEN m.forwarded_from IS NULL THEN n.author
        WHEN json_extract(m.forwarded_from, '$.persona') IS NULL THEN m.forward_author END"""
    select = f"SELECT m.place, {writer}, m.parts, m.reply FROM messages m {theirs}"
    for place, other, parts, reply in database.execute(select, (author,)):
        if other not in (author, None):  # None: forwarded from an unknown account or an agent
            yield from ((place, other, text) for text in _texts(PARTS.loads(parts)))
        quote = None if reply is None else QUOTE.loads(reply)
        if quote and quote.author and quote.author.persona is None and quote.forwarded_from is None:
            whom = _quoted_author(database, author, place, quote)
            if whom != author:
                yield from ((place, whom, text) for text in _texts(_quote_parts(quote)))
    select = f"SELECT e.place, n.author, e.before FROM message_changes e JOIN messages m ON m.id = e.message {theirs}"
    for place, other, before in database.execute(f"{select} AND e.before IS NOT NULL", (author,)):
        message = MESSAGE.loads(before)
        yield from ((place, other, text) for text in _texts(() if message.forwarded_from else message.parts))
    select = f"SELECT DISTINCT m.place, n.author, n.name, n.username FROM messages m {theirs}"
    for place, other, *names in database.execute(select, (author,)):
        yield from ((place, other, name) for name in names if name)


def _quoted_author(database: Database, author: int, place: int, quote: Quote) -> int:
    """Return the author of a quote; the person, if it is unknown."""
    select = """SELECT n.author FROM messages m JOIN names n ON n.id = m.name WHERE m.place = ? AND m.message_id = ?
        UNION ALL SELECT a.id FROM authors a JOIN places p ON p.service = a.platform
        WHERE p.id = ? AND a.author_id = ? LIMIT 1"""
    who = quote.author.id if quote.author else ""
    found = database.execute(select, (place, quote.message_id, place, who)).fetchone()
    return found[0] if found else author


def _agent_marks_before(database: Database, first: dict[Mark, int]) -> set[Mark]:
    """Return the marks that the agent used before the person."""
    before: set[Mark] = set()
    for row, parts in database.execute("SELECT id, parts FROM messages WHERE role = 'model' ORDER BY id"):
        for text in _texts(PARTS.loads(parts)):
            before |= {mark for mark, _ in marks_of(text) if first.get(mark, 0) > row}
    return before


def _title_marks(database: Database, place: int) -> set[Mark]:
    titles = database.execute("SELECT title FROM titles WHERE place = ?", (place,))
    return {mark for (title,) in titles for mark, _ in marks_of(title)}


def _configured_marks(database: Database, author: int) -> set[Mark]:
    """Return the marks of the agent's tools, and of its instructions from before the person came."""
    texts = [_JSON_WORDS, *(tools for (tools,) in database.execute("SELECT tools FROM toolsets"))]
    wrote = "SELECT m.place, min(m.number) FROM messages m JOIN names n ON n.id = m.name WHERE n.author = ? GROUP BY 1"
    came = dict(database.execute(wrote, (author,)).fetchall())
    select = "SELECT r.place, r.horizon, max(p.id) FROM prompts p JOIN runs r ON r.run_id = p.run_id GROUP BY 1, 2"
    asked = {
        where: prompt
        for where, horizon, prompt in database.execute(f"{select} ORDER BY 3")
        if where not in came or 0 < horizon <= came[where]
    }
    layers = "SELECT layer FROM prompt_layers WHERE prompt = ?"
    for prompt in list(asked.values())[-_PLACES:]:
        for (layer,) in database.execute(layers, (prompt,)).fetchall():
            content = layer_content(database, layer)
            texts += [] if content is None else [LAYER.loads(content.decode()).instruction or ""]
    return {mark for text in texts for mark, _ in marks_of(text)}


def _is_distinct(mark: Mark, called: set[Mark]) -> bool:
    """Return whether a mark identifies the person even in places where they never were."""
    kind, what = mark
    if kind == "words":
        return len(what) >= SENTENCE or (mark in called)
    if kind == "number":
        return len(what) >= _FAR_DIGITS
    if kind == "run":
        return len(what) >= _FAR_RUN
    return kind == "word" and mark in called and len(what) >= _FAR_LETTERS and not what.isalpha()


def _texts(parts: Iterable[Part]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, Text):
            yield part.text
        elif isinstance(part, Media):
            yield from filter(None, (part.label, part.rendered_text))


def _quote_parts(quote: Quote) -> tuple[Part, ...]:
    return (*quote.parts, *([Text(text=quote.excerpt)] if quote.excerpt else []))
