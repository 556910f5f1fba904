"""Search over all messages: by the engine's index, and by text where messages are not indexed yet."""

from tertulia.engine.store_protocols import StoreProtocol
from tertulia.inspector.places import place_key
from tertulia.inspector.shown import brief
from tertulia.inspector.values import Hit
from tertulia.memory.retrieval.terms import term_prefix, terms, terms_with_words

MOST = 50  # hits
_LONGEST = 200  # characters of a query


async def search(store: StoreProtocol, query: str) -> tuple[Hit, ...]:
    """Return the messages that have most of the words of a query, of equal ones the newest first."""
    query = query.strip()[:_LONGEST]
    words = terms_with_words(query)
    found = list(await store.inspection.search([term_prefix(term) for term in words], most=MOST))
    spelled = dict.fromkeys((query, query.lower(), query.upper(), query.capitalize())) if query else {}
    found += await store.inspection.containing(list(spelled), most=MOST)
    blocked = await store.inspection.blocked()
    hits: dict[tuple[str, str], Hit] = {}
    for one in found:
        key, shown = place_key(one.message.place), brief(one, blocked)
        said = set(terms(one.message.text))
        why = ", ".join(word for term, word in words.items() if term in said) or query
        hit = Hit(place_key=key, place=one.message.place, message=shown, why=f"it says {why}")
        hits.setdefault((key, shown.id), hit)
    return tuple(hits.values())[:MOST]
