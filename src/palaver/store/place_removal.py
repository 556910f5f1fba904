"""Removes places with everything in them: direct chats with a person, and chats with a name."""

from collections.abc import Iterable

from palaver.run.stored_chat import place_of_chat
from palaver.store.people import find_place
from palaver.store.run_removal import remove_unused_layers
from palaver.store.sqlite import Database, unlearn

_OF_A_PLACE = (
    "search_words search_vectors search_said search_embedded search_places "
    "runs outbox tasks fact_sources facts summaries episodes window_pasts learned events message_parts messages titles"
).split()  # in an order in which nothing refers to what is gone


def remove_places(database: Database, places: Iterable[int]) -> int:
    """Remove places; the layers of their prompts are removed by themselves."""
    runs = "SELECT run_id FROM runs WHERE place = ?"
    messages = "SELECT id FROM messages WHERE place = ?"
    statements = (
        f"DELETE FROM prompt_layers WHERE prompt IN (SELECT id FROM prompts WHERE run_id IN ({runs}))",  # noqa: S608
        *[f"DELETE FROM {table} WHERE run_id IN ({runs})" for table in ("prompts", "records", "tool_runs")],  # noqa: S608
        *[f"DELETE FROM {table} WHERE message IN ({messages})" for table in ("turns", "media")],  # noqa: S608
        *[f"DELETE FROM {table} WHERE place = ?" for table in _OF_A_PLACE],  # noqa: S608
        "UPDATE usage SET place = NULL WHERE place = ?",
        "DELETE FROM places WHERE id = ?",
    )
    count = 0
    for place in places:
        count += 1
        for statement in statements:
            database.execute(statement, (place,))
    return count


def remove_chat(database: Database, name: str) -> bool:
    """Remove a chat with all that was asked and answered in it; whether there was one."""
    place = find_place(database, place_of_chat(name))
    if place is not None:
        remove_places(database, [place])
        remove_unused_layers(database)
        unlearn(database)
    database.execute("DELETE FROM chat_entries WHERE chat = ?", (name,))
    return bool(database.execute("DELETE FROM chats WHERE name = ?", (name,)).rowcount)
