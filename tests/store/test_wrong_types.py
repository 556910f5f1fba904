"""A caller's mistake is told as one: never as damage of the file, and never by an error from deep inside."""

import inspect
from collections.abc import Collection, Iterable, Iterator
from contextvars import copy_context
from datetime import date, datetime
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from msgspec import NODEFAULT, Struct
from msgspec.structs import fields

from people import NOON
from tertulia.errors import InvalidValue, TertuliaError
from tertulia.messages import Place
from tertulia.store import Store
from tertulia.store.threads import CheckedCalls
from tertulia.type_checks import argument_fault

PLACE = Place(platform="telegram", id="7", kind="direct")
NOT_BY_USERS = {"in_snapshot"}  # takes a function of a log


class Wrong:
    """A value of a type that nothing takes."""


def sample(kind: Any) -> Any:
    """A value of a type."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return sample(inner[0])
    if origin is Literal:
        return inner[0]
    if origin is tuple and inner[-1:] != (...,):
        return tuple(map(sample, inner))
    if isinstance(origin, type) and issubclass(origin, Iterable):
        return {} if len(inner) == 2 and issubclass(origin, dict | type(Any)) else ()
    if kind is Place:
        return PLACE
    if isinstance(kind, type) and issubclass(kind, Struct):
        hints = get_type_hints(kind)
        required = [one.name for one in fields(kind) if one.default is NODEFAULT and one.default_factory is NODEFAULT]
        return kind(**{name: sample(hints[name]) for name in required})
    values = {str: "1", int: 1, float: 1.0, bool: True, bytes: b"1", datetime: NOON, date: NOON.date()}
    return values.get(kind)


def methods(owner: Any) -> Iterator[tuple[str, Any]]:
    for name, method in inspect.getmembers(owner, inspect.iscoroutinefunction):
        if not name.startswith("_") and name not in NOT_BY_USERS:
            yield name, method


def calls(method: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """A call of a method with each of its parameters wrong, and the others right."""
    kinds = get_type_hints(method)
    parameters = [one for one in inspect.signature(method).parameters.values() if kinds.get(one.name) is not Any]
    right = {one.name: sample(kinds[one.name]) for one in parameters if one.default is one.empty}
    for one in parameters:
        if argument_fault(method, (), {**right, one.name: Wrong()} if one.kind is not one.VAR_POSITIONAL else {}):
            yield one.name, {**right, one.name: Wrong()}


async def test_a_wrong_argument_of_the_store_is_the_callers_mistake(store: Store) -> None:
    members = {"store": store} | {name: one for name, one in vars(store).items() if isinstance(one, CheckedCalls)}
    tried, found = 0, []
    for member, owner in members.items():
        for name, method in methods(owner):
            for parameter, named in calls(method):
                tried += 1
                try:
                    await method(**named)
                except InvalidValue:
                    continue
                except (TertuliaError, Exception) as error:  # noqa: BLE001 (this is what is looked for)
                    found.append((f"{member}.{name}", parameter, repr(error)))

    assert found == []
    assert tried > 100


async def test_what_is_wrong_is_said(store: Store) -> None:
    with pytest.raises(InvalidValue) as caught:
        await store.log.read("telegram:7", 0, 9)  # type: ignore[arg-type]

    assert str(caught.value) == "read: place cannot be a str, it is of type Place"


async def test_a_call_that_does_not_fit_the_parameters_is_the_callers_mistake_too(store: Store) -> None:
    with pytest.raises(InvalidValue, match=r"forget: too many positional arguments"):
        await store.forget("telegram", "7")  # type: ignore[call-arg]
    with pytest.raises(InvalidValue, match=r"block: missing a required .*argument: 'author_id'"):
        await store.place_settings.block(platform="telegram", person="7", at=NOON)  # type: ignore[call-arg]


async def test_a_mistake_is_not_published_as_damage(store: Store) -> None:
    told: list[TertuliaError] = []
    store.events.subscribe(lambda _: None, told.append)

    with pytest.raises(InvalidValue):
        await store.outbox.draft(Wrong())  # type: ignore[arg-type]

    assert told == []


async def test_a_call_that_nobody_awaits_any_more_may_end_in_another_context(store: Store) -> None:
    """As when a task is destroyed while it is pending."""
    call = store.outbox.listed()
    copy_context().run(call.send, None)

    call.close()


def test_a_mapping_may_be_given_where_a_collection_is_wanted() -> None:
    def listed(names: Collection[str]) -> None: ...

    assert argument_fault(listed, ({"a": 1},), {}) is None
    assert argument_fault(listed, ({1: "a"},), {}) is not None
