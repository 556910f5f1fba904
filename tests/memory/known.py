"""Facts about people: a builder, and a store that has heard what they come from."""

from collections.abc import Sequence
from typing import Any

from people import ALICE, GROUP, NOON, a_message
from tertulia.memory.values import Fact, Subject
from tertulia.messages import Author, Place
from tertulia.store import Store


def a_subject(author: Author = ALICE, platform: str = "telegram") -> Subject:
    return Subject(platform=platform, id=author.id, name=author.name)


def a_fact(text: str = "likes tea", *, about: Author = ALICE, place: Place = GROUP, **changes: Any) -> Fact:
    fields: dict[str, Any] = {
        "id": f"{about.id} {place.id} {text}",
        "subject": a_subject(about, place.platform),
        "text": text,
        "place": place,
        "sources": ("m1",),
        "learned_at": NOON,
        "scope": "direct" if place.kind == "direct" else "chat",
    }
    return Fact(**fields | changes)


async def taught(store: Store, facts: Sequence[Fact]) -> Sequence[Fact]:
    """Learn facts, after those they are about have said so."""
    for fact in facts:
        author = Author(id=fact.subject.id, name=fact.subject.name)
        for source in fact.sources:
            await store.inbox.receive(a_message("so", id=source, place=fact.place, author=author), at=NOON)
    return await store.facts.learn(facts)
