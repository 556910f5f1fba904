"""Removing layers of past prompts that hold a person's words, and those that no prompt has any more."""

from collections import OrderedDict

from palaver.store.prompts import content_of, digest_of_removed
from palaver.store.sqlite import Database
from palaver.store.words import Words

_OVERLAP = 4096  # bytes before a layer's own beginning that may hold the first of words which end in it
_AT_HAND = 64


def remove(database: Database, words: Words, near: set[int]) -> int:
    """Mark the layers that hold *words* as removed; how many, with those that went with their prompts."""
    orphans = _orphans(database)
    held = {*orphans, *_holding(database, words, _near(database, near), set(orphans))}
    _stand_alone(database, held)
    update = "UPDATE layers SET base = NULL, shared = 0, depth = 0, rest = '', removed = 1, hash = ? WHERE id = ?"
    for row in held:
        database.execute(update, (digest_of_removed(), row))
    database.executemany("DELETE FROM layers WHERE id = ?", [(row,) for row in orphans])
    return len(held)


def _orphans(database: Database) -> list[int]:
    select = "SELECT id FROM layers WHERE id NOT IN (SELECT layer FROM prompt_layers)"
    return [row for (row,) in database.execute(select)]


def _near(database: Database, places: set[int]) -> set[int]:
    """The layers of prompts that were sent about these places."""
    select = """SELECT DISTINCT r.place, l.layer FROM prompt_layers l JOIN prompts p ON p.id = l.prompt
        JOIN runs r ON r.run_id = p.run_id"""
    return {layer for place, layer in database.execute(select) if place in places}


def _holding(database: Database, words: Words, near: set[int], skipped: set[int]) -> dict[int, int]:
    """The layers that hold *words*, and where the first of them end; of a layer that grew only the rest is read."""
    held: dict[int, int] = {}
    contents: OrderedDict[int, bytes] = OrderedDict()
    select = "SELECT id, base, shared, rest FROM layers WHERE removed = 0 ORDER BY id"
    for row, base, shared, rest in database.execute(select):
        content = _content(database, contents, row, base, shared, rest)
        if row in skipped:
            continue
        if base in held and held[base] <= shared:
            held[row] = held[base]
            continue
        is_known = base is not None and base not in held and base not in skipped and (row in near) <= (base in near)
        start = max(0, shared - _OVERLAP) if is_known else 0
        text = content[start:].decode("utf-8", "ignore")
        end = words.end(text, near=row in near)
        if end is not None:
            held[row] = start + len(text[:end].encode()) + 4  # a character may have been cut where reading began
    return held


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


def _stand_alone(database: Database, gone: set[int]) -> None:
    """Keep whole what is built on a layer that goes, and does not go itself."""
    select = "SELECT id, base FROM layers WHERE base IS NOT NULL AND removed = 0 ORDER BY id"
    for row, base in database.execute(select).fetchall():
        if base in gone and row not in gone:
            content = content_of(database, row) or b""
            update = "UPDATE layers SET base = NULL, shared = 0, depth = 0, rest = ? WHERE id = ?"
            database.execute(update, (content.decode(), row))
