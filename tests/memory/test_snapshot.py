"""Which facts patterns find, which claims are refused and why, and what search finds in which order.

A line in `snapshot.txt` changes only on purpose; TERTULIA_RENEW_SNAPSHOTS=1 writes the file anew.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory.claims import DAVE, FALSELY, OLENA, TRULY, refusal_reason
from memory.labelled import DEV, HELD_BACK
from memory.searching import FILL, Letters, a_search, a_store, hear, index, no_embedder, talk
from memory.talks import GARDEN, TRIP, UKRAINIAN
from people import ALICE, BOB, GROUP, NOON, a_message
from tertulia.memory.extract import facts_by_patterns
from tertulia.memory.verify.claims import Claim, Evidence

SNAPSHOT = Path(__file__).with_name("snapshot.txt")
PEOPLE = {one.id: one for one in (ALICE, BOB, OLENA, DAVE)}


def facts() -> Iterator[str]:
    for labelled in (*DEV, *HELD_BACK):
        found = facts_by_patterns([a_message(labelled.text)], now=NOON)
        yield "  ".join([labelled.text, *(f"{fact.key} | {fact.text} | {fact.confidence:g}" for fact in found)])


def claims() -> Iterator[str]:
    for text, about, told in (*FALSELY, *TRULY):
        key = "name" if "called" in told or "Звати" in told else "other"
        claim = Claim(sources=(1,), about=about.id, key=key, text=told, confidence=0.9)
        reason = refusal_reason(claim, Evidence(messages={1: a_message(text)}, people=PEOPLE))
        yield f"{text}  {about.name}: {told}  {reason or 'is learned'}"


async def ranks() -> list[str]:
    lines = []
    texts = (*FILL, *TRIP, *GARDEN, *UKRAINIAN, *(one.text for one in DEV))
    questions = ("when does the train leave?", "slugs in the garden", "який велосипед?", "where does Bob live?", *TRIP)
    async with a_store() as store:
        await hear(store, *talk(*texts))
        letters = Letters()
        for embedders in (no_embedder, lambda _: letters):
            await index(store, embedders)
            for question in questions:
                hits = await a_search(store, embedders=embedders).find(question, place=GROUP, author=ALICE)
                lines.append(f"{question}  {' '.join(hit.message.id for hit in hits)}")
    return lines


async def test_what_is_learned_refused_and_found_is_what_the_snapshot_holds() -> None:
    sections = (("facts", facts()), ("claims", claims()), ("search", await ranks()))
    text = "\n".join(f"# {name}\n" + "\n".join(lines) + "\n" for name, lines in sections)
    if os.environ.get("TERTULIA_RENEW_SNAPSHOTS"):
        SNAPSHOT.write_text(text, encoding="utf-8")
        pytest.skip("the snapshot was written anew")

    assert text.splitlines() == SNAPSHOT.read_text(encoding="utf-8").splitlines()
