"""Checks of types at run time: of a value, and of the arguments of a call. Pure.

Python checks neither, so a wrong argument mostly ends in an error deep inside that says nothing of the caller.
"""

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from msgspec import Struct, ValidationError, convert, to_builtins

from tertulia.errors import InvalidValue


def type_fault(value: object, kind: Any) -> str | None:
    """Return what is wrong with the types of *value*, which should be a *kind*; None if nothing is.

    Python does not check the fields of a struct, and a value with other types cannot be decoded from the store.
    """
    if not isinstance(value, kind):
        return f"a value of the type {type(value).__name__} cannot be there"  # its text may be private
    try:
        convert(to_builtins(value, builtin_types=(bytes, datetime)), type(value))
    except (ValidationError, ValueError, TypeError, RecursionError) as error:
        return f"{type(value).__name__}: {error}"
    return None


def require_options(what: str, *options: tuple[object, type]) -> None:
    """Raise `InvalidValue` where an option of *what* is not of its type, and is given."""
    for given, kind in options:
        if not isinstance(given, kind | None):
            raise InvalidValue(f"{what} takes a {kind.__name__}, not {given!r}")


def argument_fault(function: Callable[..., Any], args: Collection[Any], named: Mapping[str, Any]) -> str | None:
    """Return how a call does not fit the parameters, or which argument has a wrong type; None if nothing is wrong."""
    try:
        bound = inspect.signature(function).bind(*args, **named).arguments
    except TypeError as error:
        return f"{function.__name__}: {error}"
    try:
        kinds = get_type_hints(function)
    except (TypeError, NameError):
        return None
    for name, value in bound.items():
        parameter = inspect.signature(function).parameters[name]
        given = value if parameter.kind is parameter.VAR_POSITIONAL else (value,)
        for one in given:
            if name in kinds and not _fits(one, kinds[name]):
                return (
                    f"{function.__name__}: {name} cannot be a {type(one).__name__}, it is of type {_words(kinds[name])}"
                )
    return None


def _fits(value: object, kind: Any) -> bool:
    """Return whether *value* is of the type *kind*, as far as that can be told."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind in (None, NoneType):
        return value is None
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in inner)
    if origin is Literal:
        return value in inner
    if origin is tuple and inner[-1:] != (...,):
        return isinstance(value, tuple) and len(value) == len(inner) and all(map(_fits, value, inner))
    if isinstance(origin, type) and issubclass(origin, Iterable):
        return isinstance(value, origin) and not isinstance(value, str) and _holds(value, inner)
    if origin is Callable or kind is Callable:
        return callable(value)
    if isinstance(kind, type) and issubclass(kind, Struct):
        return type_fault(value, kind) is None
    if kind is float:
        return isinstance(value, int | float)
    with suppress(TypeError):  # a protocol, a type variable
        return isinstance(value, kind)
    return True


def _holds(values: Iterable[object], inner: tuple[Any, ...]) -> bool:
    """Return whether what a collection holds has the types of its parameters; an iterator is not read."""
    if isinstance(values, Mapping) and len(inner) == 2:
        return all(_fits(key, inner[0]) and _fits(value, inner[1]) for key, value in values.items())
    return not isinstance(values, Collection) or not inner or all(_fits(one, inner[0]) for one in values)


def _words(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) and not get_args(kind) else str(kind).replace("tertulia.", "")
