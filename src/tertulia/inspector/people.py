"""People and what is known of them: facts with sources, summaries, episodes; the memory of a place; forget plans."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from tertulia.engine.inspection import PersonSummary
from tertulia.engine.store_protocols import StoreProtocol
from tertulia.errors import InvalidValue
from tertulia.inspector.places import person_key, person_of_key, place_key, place_row, place_rows
from tertulia.inspector.shown import Blocked, brief
from tertulia.inspector.values import EpisodeShown, FactShown, ForgetPlan, PersonRow, PersonShown, PlaceMemory
from tertulia.memory.values import Episode, Fact
from tertulia.messages import Place

MOST_PEOPLE = 200  # of a list
MOST_THERE = 60  # of a place
MOST_EPISODES = 100  # of a person or a place


async def people(store: StoreProtocol) -> tuple[PersonRow, ...]:
    """Return the people who wrote last, or are known otherwise."""
    return tuple(map(_row, await store.inspection.people(most=MOST_PEOPLE)))


async def person(store: StoreProtocol, key: str) -> PersonShown:
    """Return what is known of the person with this name in addresses; of a blocked one nothing but names."""
    found = await _find(store, key)
    inspection, blocked = store.inspection, await store.inspection.blocked()
    where = {place.key for place in await inspection.places_of(found.person)}
    rows = place_rows([one for one in await inspection.places() if one.place.key in where], (), blocked)
    if found.blocked:
        return PersonShown(row=_row(found), names=found.names, facts=(), summaries=(), episodes=(), places=rows)
    return PersonShown(
        row=_row(found),
        names=found.names,
        facts=await facts_shown(store, await store.facts.listed(found.person), blocked),
        summaries=tuple(await inspection.summaries(found.person)),
        episodes=await _episodes(store, await inspection.newest_episodes(person=found.person, most=MOST_EPISODES)),
        places=rows,
    )


async def place_memory(store: StoreProtocol, place: Place, *, now: datetime) -> PlaceMemory:
    """Return what is known in a place: of the people who wrote there last, and what was talked about."""
    inspection, blocked = store.inspection, await store.inspection.blocked()
    facts = await store.facts.listed(place=place)
    return PlaceMemory(
        row=await place_row(store, place, now=now),
        people=tuple(map(_row, await inspection.people(place=place, most=MOST_THERE))),
        facts=await facts_shown(store, facts, blocked),
        episodes=await _episodes(store, await inspection.newest_episodes(place=place, most=MOST_EPISODES)),
    )


async def facts_shown(store: StoreProtocol, facts: Iterable[Fact], blocked: Blocked) -> tuple[FactShown, ...]:
    """Return facts with the messages that say so; none about blocked people, or that only these say."""
    known = [fact for fact in facts if (fact.subject.platform, fact.subject.id) not in blocked]
    uses = await store.inspection.fact_uses([fact.id for fact in known])
    shown = []
    for fact in known:
        use = uses[fact.id]
        said = [one for one in use.sources if _namespaced(one.message.place, one.message.author.id) not in blocked]
        if said or not use.sources:
            sources = tuple(brief(one, blocked) for one in said)
            shown.append(FactShown(fact=fact, place_key=place_key(fact.place), sources=sources, prompts=use.runs))
    return tuple(shown)


def _namespaced(place: Place, author_id: str) -> tuple[str, str]:
    return place.author_namespace, author_id


async def _episodes(store: StoreProtocol, found: Sequence[Episode]) -> tuple[EpisodeShown, ...]:
    names = await store.inspection.names(list({person for one in found for person in one.people}))
    return tuple(
        EpisodeShown(
            id=one.id,
            place_key=place_key(one.place),
            topic=one.topic,
            summary=one.summary,
            start=one.start,
            stop=one.stop,
            importance=one.importance,
            started_at=one.began_at,
            people=tuple(names.get(_namespaced(one.place, person), person) for person in one.people),
        )
        for one in found
    )


async def plan_person(store: StoreProtocol, key: str) -> ForgetPlan:
    """Return what forgetting a person would remove."""
    person = person_of_key(key)
    report = (await store.plan_forget(platform=person.platform, author_id=person.id)).report()
    if not report.known:
        raise InvalidValue(f"there is no person {key:.100}")
    counts = {name: int(getattr(report, name)) for name in report.__struct_fields__ if name not in ("known", "files")}
    return ForgetPlan(rows={name: count for name, count in counts.items() if count}, files=report.files)


async def plan_fact(store: StoreProtocol, fact_id: str) -> ForgetPlan:
    """Return what forgetting a fact would remove or hide at least."""
    counts = await store.inspection.plan_forget_facts([fact_id])
    if not counts["facts"]:
        raise InvalidValue(f"there is no fact {fact_id:.100}")
    note = "answers and other messages that state it are hidden too; they are found when it is forgotten"
    return ForgetPlan(rows={name: count for name, count in counts.items() if count}, files=0, note=note)


async def export_person(store: StoreProtocol, key: str) -> dict[str, object]:
    """Return everything that is stored of a person."""
    found = await _find(store, key)
    return await store.export_person(platform=found.person.platform, author_id=found.person.id)


async def _find(store: StoreProtocol, key: str) -> PersonSummary:
    found = await store.inspection.people(person=person_of_key(key), most=1)
    if not found:
        raise InvalidValue(f"there is no person {key:.100}")
    return found[0]


def _row(found: PersonSummary) -> PersonRow:
    return PersonRow(
        key=person_key(found.person),
        person=found.person,
        messages=found.messages,
        facts=found.facts,
        last_at=found.last_at,
        blocked=found.blocked,
    )
