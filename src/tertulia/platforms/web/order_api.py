"""Endpoints of orders: what the owner changes by the page, and who has changed what."""

from typing import Annotated

from msgspec import Meta, Struct
from starlette.responses import Response

from tertulia.engine.order_worker import give_beside, make_order
from tertulia.engine.orders import Order, OrderKind
from tertulia.errors import InvalidValue
from tertulia.inspector import lists, people
from tertulia.inspector.places import find_place, person_key, person_of_key
from tertulia.inspector.values import ForgetPlan, OrderShown
from tertulia.messages import Place
from tertulia.platforms.web.endpoints import JSON, Asked, Endpoint, Id, write
from tertulia.platforms.web.page_app import encode
from tertulia.platforms.web.roles import OWNERS
from tertulia.platforms.web.site import Site

PLACED: frozenset[OrderKind] = frozenset({"stop place", "hide message"})  # the others name no place
STALE = "what would be forgotten is not any more what was shown: look at it again"


class Asking(Struct, frozen=True, kw_only=True):
    """What the owner asks for."""

    kind: OrderKind
    subject: Annotated[str, Meta(max_length=400)] = ""  # the id of what it is about; a person as in addresses
    place: Id | None = None  # of a message, or that is stopped, as in addresses
    plan: ForgetPlan | None = None  # that was shown before something is forgotten; None: none was


class OfOrder(Struct, frozen=True, kw_only=True):
    order: Id


class OfPerson(Struct, frozen=True, kw_only=True):
    person: Id


def order_endpoints(site: Site) -> tuple[Endpoint, ...]:
    """Return the endpoints of orders, and the export of a person."""
    store = site.store

    async def give(asked: Asked) -> OrderShown:
        given: Asking = asked.body
        place = await _place(given)
        if given.kind in ("forget person", "forget fact"):
            await _check_plan(given)
        subject, service = given.subject, ""
        if given.kind == "forget person":
            person = person_of_key(given.subject)
            subject, service = person.id, person.platform
        assert asked.access is not None  # noqa: S101 (its roles)
        return lists.shown_order(await _give(given.kind, subject, place, service, asked.access.who))

    async def _place(given: Asking) -> Place | None:
        if (given.place is None) != (given.kind not in PLACED):
            raise InvalidValue(f"{given.kind}: {'give its place' if given.place is None else 'it names no place'}")
        return None if given.place is None else await find_place(store, given.place)

    async def _check_plan(given: Asking) -> None:
        """Raise `InvalidValue` for who is not known, and for a plan that has changed since it was shown."""
        is_person = given.kind == "forget person"
        plan = await (people.plan_person if is_person else people.plan_fact)(store, given.subject)
        if given.plan not in (None, plan):
            raise InvalidValue(STALE)

    async def _give(kind: OrderKind, subject: str, place: Place | None, service: str, who: str) -> Order:
        if site.engine:
            return await site.engine.give_order(kind, subject, who=who, place=place, service=service)
        order = make_order(kind, subject, who=who, at=site.now(), place=place, service=service)
        return await give_beside(store.orders, order, is_held=(await store.state()).is_held)

    async def listed(asked: Asked) -> tuple[OrderShown, ...]:
        return await lists.orders(store)

    async def one(asked: Asked) -> OrderShown:
        return await lists.order(store, asked.arguments.order)

    async def export(asked: Asked) -> Response:
        found = await people.export_person(store, asked.arguments.person)
        name = person_key(person_of_key(asked.arguments.person))
        headers = {"content-disposition": f'attachment; filename="{name}.json"'}
        return Response(encode(found), media_type=JSON, headers=headers)

    return (
        Endpoint(path="/api/orders", summary="Who asked for what", handle=listed, answers=tuple[OrderShown, ...]),
        write(
            "POST",
            "/api/orders",
            "Give an order; the answer is the order as it stands, done, refused with the reason, or waiting",
            handle=give,
            body=Asking,
            answers=OrderShown,
        ),
        Endpoint(
            path="/api/orders/{order}",
            summary="An order as it stands",
            handle=one,
            arguments=OfOrder,
            answers=OrderShown,
        ),
        Endpoint(
            path="/api/people/{person}/export",
            summary="Everything that is stored of a person, as a download",
            handle=export,
            roles=OWNERS,
            arguments=OfPerson,
        ),
    )
