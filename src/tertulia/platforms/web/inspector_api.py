"""Endpoints of the inspector: what a bot did, why, and what it cost, as JSON. They read, and change nothing."""

from collections.abc import Awaitable, Callable
from datetime import date, timedelta
from typing import Any

from msgspec import Struct

from tertulia.inspector import agents, evidence, home, lists, people, places, requests, runs, search, strata
from tertulia.inspector.values import (
    AgentRow,
    DecisionPage,
    Delivered,
    Difference,
    ForgetPlan,
    Hit,
    Home,
    Known,
    MediaRow,
    MessagePage,
    PersonRow,
    PersonShown,
    PlaceMemory,
    PlaceRow,
    RequestShown,
    RunRow,
    RunShown,
    Strata,
    UsagePage,
)
from tertulia.platforms.web.endpoints import Asked, Endpoint, Id, Number
from tertulia.platforms.web.site import Site
from tertulia.run.journal import RunStatus
from tertulia.tasks.task import Task

USAGE_DAYS = 30  # of usage, where no day is asked for


class OfPlace(Struct, frozen=True, kw_only=True):
    place: Id


class Messages(OfPlace, frozen=True, kw_only=True):
    before: Number | None = None


class OfDay(OfPlace, frozen=True, kw_only=True):
    day: date | None = None


class Compared(OfPlace, frozen=True, kw_only=True):
    a: Id  # a request: RUN.STEP
    b: Id


class OfMessage(OfPlace, frozen=True, kw_only=True):
    message: Id


class Runs(Struct, frozen=True, kw_only=True):
    status: RunStatus | None = None
    place: Id | None = None
    before: Id | None = None
    fact: Id | None = None  # that they were shown


class OfRun(Struct, frozen=True, kw_only=True):
    run: Id


class OfStep(OfRun, frozen=True, kw_only=True):
    step: Number


class OfPerson(Struct, frozen=True, kw_only=True):
    person: Id


class OfFact(Struct, frozen=True, kw_only=True):
    fact: Id


class Since(Struct, frozen=True, kw_only=True):
    since: date | None = None


class Wanted(Struct, frozen=True, kw_only=True):
    q: str = ""


def inspector_endpoints(site: Site) -> tuple[Endpoint, ...]:
    """Return the endpoints of the inspector."""
    store, now = site.store, site.now

    def read(path: str, summary: str, answers: Any, handle: Callable[[Any], Awaitable[Any]], **fields: Any) -> Endpoint:
        """Return an endpoint whose handler needs nothing but the values of the address."""

        async def answer(asked: Asked) -> Any:
            return await handle(asked.arguments)

        return Endpoint(path=path, summary=summary, handle=answer, answers=answers, **fields)

    async def shown_home(_: Any) -> Home:
        known = agents.briefs(await site.agents())
        return await home.home(store, now=now(), agents=known, cap=site.cap, health=site.health)

    async def shown_agents(_: Any) -> tuple[AgentRow, ...]:
        return await agents.agents(store, await site.agents(), now=now())

    async def shown_places(_: Any) -> tuple[PlaceRow, ...]:
        return await places.places(store, now=now())

    async def messages(given: Messages) -> MessagePage:
        place = await places.find_place(store, given.place)
        there = await agents.present(store, await site.agents(), place)
        return await places.messages(store, place, before=given.before, now=now(), agents=there)

    async def decisions(given: Messages) -> DecisionPage:
        place = await places.find_place(store, given.place)
        there = await agents.present(store, await site.agents(), place)
        return await places.decisions(store, place, before=given.before, now=now(), agents=there)

    async def shown_strata(given: OfDay) -> Strata:
        place = await places.find_place(store, given.place)
        return await strata.strata(store, place, given.day, now=now())

    async def difference(given: Compared) -> Difference:
        return await strata.difference(store, given.a, given.b)

    async def memory(given: OfPlace) -> PlaceMemory:
        return await people.place_memory(store, await places.find_place(store, given.place), now=now())

    async def known(given: OfMessage) -> Known:
        return await evidence.known(store, await places.find_place(store, given.place), given.message)

    async def listed_runs(given: Runs) -> tuple[RunRow, ...]:
        place = await places.find_place(store, given.place) if given.place else None
        return await runs.runs(store, status=given.status, place=place, before=given.before, fact=given.fact)

    async def run(given: OfRun) -> RunShown:
        return await runs.run(store, given.run)

    async def sent(given: OfStep) -> tuple[RequestShown, ...]:
        return await requests.requests(store, given.run, given.step)

    async def listed_people(_: Any) -> tuple[PersonRow, ...]:
        return await people.people(store)

    async def person(given: OfPerson) -> PersonShown:
        return await people.person(store, given.person)

    async def plan_person(given: OfPerson) -> ForgetPlan:
        return await people.plan_person(store, given.person)

    async def plan_fact(given: OfFact) -> ForgetPlan:
        return await people.plan_fact(store, given.fact)

    async def outbox(_: Any) -> tuple[Delivered, ...]:
        return await lists.outbox(store)

    async def tasks(_: Any) -> tuple[Task, ...]:
        return await lists.tasks(store)

    async def media(_: Any) -> tuple[MediaRow, ...]:
        return await lists.media(store)

    async def usage(given: Since) -> UsagePage:
        return await lists.usage(store, given.since or now().date() - timedelta(days=USAGE_DAYS - 1))

    async def found(given: Wanted) -> tuple[Hit, ...]:
        return await search.search(store, given.q)

    place = "/api/places/{place}"
    return (
        read("/api/home", "Whether the bot is well, and what waits for a decision", Home, shown_home),
        read("/api/agents", "The agents, with what each has spent today", tuple[AgentRow, ...], shown_agents),
        read("/api/places", "Places, that with the newest message first", tuple[PlaceRow, ...], shown_places),
        read(place, "Messages of a place, each with what became of it", MessagePage, messages, arguments=Messages),
        read(f"{place}/decisions", "Why messages were answered or not", DecisionPage, decisions, arguments=Messages),
        read(f"{place}/strata", "The requests of a day, to scale", Strata, shown_strata, arguments=OfDay),
        read(f"{place}/difference", "Two requests, layer by layer", Difference, difference, arguments=Compared),
        read(f"{place}/memory", "What is known in a place", PlaceMemory, memory, arguments=OfPlace),
        read(
            f"{place}/messages/{{message:path}}/known",
            "What was in the prompt of a message of the bot",
            Known,
            known,
            arguments=OfMessage,
        ),
        read("/api/runs", "Runs, the newest first", tuple[RunRow, ...], listed_runs, arguments=Runs),
        read("/api/runs/{run}", "A run from its message to its reply", RunShown, run, arguments=OfRun),
        read(
            "/api/runs/{run}/steps/{step}/requests",
            "The requests of a step as they were sent",
            tuple[RequestShown, ...],
            sent,
            arguments=OfStep,
        ),
        read("/api/people", "People, those who wrote last first", tuple[PersonRow, ...], listed_people),
        read("/api/people/{person}", "What is known of a person", PersonShown, person, arguments=OfPerson),
        read(
            "/api/people/{person}/plan",
            "What forgetting a person would remove",
            ForgetPlan,
            plan_person,
            arguments=OfPerson,
        ),
        read("/api/facts/{fact}/plan", "What forgetting a fact would remove", ForgetPlan, plan_fact, arguments=OfFact),
        read("/api/outbox", "Replies with their attempts, those not settled first", tuple[Delivered, ...], outbox),
        read("/api/tasks", "Tasks, the newest first", tuple[Task, ...], tasks),
        read("/api/media", "Media of the newest messages", tuple[MediaRow, ...], media),
        read("/api/usage", "What was spent, by day, place, person and model", UsagePage, usage, arguments=Since),
        read("/api/search", "Messages that say something", tuple[Hit, ...], found, arguments=Wanted),
    )
