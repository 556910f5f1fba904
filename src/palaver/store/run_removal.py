"""Removes what was asked and answered in the runs that showed a person's words: prompts, records and tool runs."""

from collections import OrderedDict
from collections.abc import Collection, Iterable

from msgspec import Struct

from palaver.store.person_words import PersonWords
from palaver.store.prompts import content_of
from palaver.store.sqlite import Database
from palaver.store.values import WORDS
from palaver.store.vocabulary import Vocabulary

_OVERLAP = 4096  # bytes before a layer's own beginning that may hold the first of words which end in it
_AT_HAND = 64
_AT_ONCE = 500  # ids in one statement


class Removed(Struct, frozen=True, kw_only=True):
    prompts: int
    records: int
    tool_runs: int


class PersonRuns(Struct, frozen=True, kw_only=True):
    """Runs by what they have to do with a person."""

    answering: frozenset[str]  # their target is a message of the person
    showing: frozenset[str]  # these, and all that showed the person's words or were given them


def find(database: Database, words: Vocabulary, theirs: Collection[tuple[int, str]]) -> PersonRuns:
    """The runs that answered one of *theirs*, places and ids of messages, or showed the person's words."""
    answering: set[str] = set()
    showing: set[str] = set()
    places: dict[int, None] = {}
    for run, place, target, taken, why in database.execute("SELECT run_id, place, target, taken, why FROM runs"):
        places[place] = None
        if (place, target) in theirs:
            answering.add(run)
        if any((place, message) in theirs for message in WORDS.loads(taken)) or words.at(place).is_in(why):
            showing.add(run)
    for place in places:
        if words.at(place):
            showing |= _showing(database, place, words.at(place))
    return PersonRuns(answering=frozenset(answering), showing=frozenset(answering | showing))


def remove(database: Database, runs: Collection[str]) -> Removed:
    """Remove what is kept of these runs but that there were such, and the layers that no other prompt has."""
    counts = {"prompts": 0, "records": 0, "tool_runs": 0}
    for some, marks in _some(runs):
        prompts = f"SELECT id FROM prompts WHERE run_id IN ({marks})"  # noqa: S608
        database.execute(f"DELETE FROM prompt_layers WHERE prompt IN ({prompts})", some)  # noqa: S608
        for table in counts:
            counts[table] += database.execute(f"DELETE FROM {table} WHERE run_id IN ({marks})", some).rowcount  # noqa: S608
        database.execute(f"UPDATE runs SET why = '' WHERE run_id IN ({marks})", some)  # noqa: S608
    remove_unused_layers(database)
    return Removed(**counts)


def remove_unused_layers(database: Database) -> None:
    """Remove the layers that no prompt has; those that begin like one of them are kept whole from now on."""
    select = "SELECT id FROM layers WHERE id NOT IN (SELECT layer FROM prompt_layers)"
    gone = {row for (row,) in database.execute(select)}
    select = "SELECT id, base FROM layers WHERE base IS NOT NULL ORDER BY id"
    for row, base in database.execute(select).fetchall():
        if base in gone and row not in gone:
            content = content_of(database, row) or b""
            update = "UPDATE layers SET base = NULL, shared = 0, depth = 0, rest = ? WHERE id = ?"
            database.execute(update, (content.decode(), row))
    database.executemany("UPDATE layers SET base = NULL WHERE id = ?", [(row,) for row in gone])
    database.executemany("DELETE FROM layers WHERE id = ?", [(row,) for row in gone])


def _showing(database: Database, place: int, words: PersonWords) -> set[str]:
    found = _by_layers(database, place, _layers_holding(database, place, words))
    of_place = "JOIN runs r ON r.run_id = c.run_id WHERE r.place = ?"
    for select in (
        f"SELECT c.run_id, c.turn, c.raw FROM records c {of_place}",  # noqa: S608
        f"SELECT c.run_id, c.call, c.result FROM tool_runs c {of_place}",  # noqa: S608
    ):
        found |= {run for run, *texts in database.execute(select, (place,)) if words.is_in(*texts)}
    return found


def _by_layers(database: Database, place: int, layers: Collection[int]) -> set[str]:
    """The runs of a place with a prompt that has one of these layers."""
    found: set[str] = set()
    for some, marks in _some(layers):
        select = f"""SELECT DISTINCT p.run_id FROM prompt_layers l JOIN prompts p ON p.id = l.prompt
            JOIN runs r ON r.run_id = p.run_id WHERE r.place = ? AND l.layer IN ({marks})"""  # noqa: S608
        found |= {run for (run,) in database.execute(select, (place, *some))}
    return found


def _layers_holding(database: Database, place: int, words: PersonWords) -> set[int]:
    """The layers of a place that hold *words*; of a layer that grew only what it adds is read.

    Layers come in the order in which they were kept, so the one that a layer begins like was read before it. Where
    the first words in that one end within what both share, the layer holds them; where they end later or nowhere,
    there are none within it, and reading begins shortly before its own part.
    """
    held: dict[int, int | None] = {}
    contents: OrderedDict[int, bytes] = OrderedDict()
    select = """SELECT id, base, shared, rest FROM layers WHERE removed = 0 AND id IN (
        SELECT l.layer FROM prompt_layers l JOIN prompts p ON p.id = l.prompt JOIN runs r ON r.run_id = p.run_id
        WHERE r.place = ?) ORDER BY id"""
    for row, base, shared, rest in database.execute(select, (place,)).fetchall():
        before = held.get(base)
        if before is not None and before <= shared:
            held[row] = before
            continue
        content = _content(database, contents, row, base, shared, rest)
        start = max(0, shared - _OVERLAP) if base in held else 0
        text = content[start:].decode("utf-8", "ignore")
        end = words.end(text)
        held[row] = None if end is None else start + len(text[:end].encode()) + 4  # a character may be cut at start
    return {row for row, end in held.items() if end is not None}


def _content(
    database: Database, contents: OrderedDict[int, bytes], row: int, base: int | None, shared: int, rest: str
) -> bytes:
    if base is None:
        content = rest.encode()
    elif base in contents:
        content = contents[base][:shared] + rest.encode()
    else:
        content = content_of(database, row) or b""
    contents[row] = content
    if len(contents) > _AT_HAND:
        contents.popitem(last=False)
    return content


def _some(values: Iterable[int | str]) -> Iterable[tuple[list[int | str], str]]:
    """The values a few at a time, with as many marks for a statement."""
    left = list(values)
    for start in range(0, len(left), _AT_ONCE):
        some = left[start : start + _AT_ONCE]
        yield some, ", ".join("?" * len(some))
