"""JSON schemas: what checks whether a value fits one."""

import re
from collections.abc import Callable
from contextvars import ContextVar
from time import monotonic
from typing import Any, NoReturn

from tertulia.errors import InvalidValue
from tertulia.jsonio import lower_types

_PATTERN_TIME = 0.2  # seconds that all patterns of one check have; the event loop waits for them
_PATTERNS_END = ContextVar[float]("_PATTERNS_END")  # when those of the check under way are given up

_FETCHED_SCHEMES = (
    "http",
    "https",
    "ftp",
    "file",
    "data",
)  # the schemes that fastjsonschema would fetch references from


def validator(schema: dict[str, Any], *, of: str = "the answer") -> Callable[[Any], Any]:
    """Return a function that returns a value that fits *schema*, and raises ValueError for any other.

    It adds the defaults of the schema to the value. *of* is what an error calls the owner of the schema.

    References to other documents are not fetched. Raise InvalidValue for a schema that cannot be read.
    """
    import fastjsonschema  # late: only answers, and tools with a schema of their own, need it

    try:
        check = fastjsonschema.compile(lower_types(schema), handlers=dict.fromkeys(_FETCHED_SCHEMES, _refuse_fetch))
        patterns = check.__globals__["REGEX_PATTERNS"]
        patterns.update({name: _TimedPattern(made.pattern) for name, made in patterns.items()})
    except (ValueError, TypeError, AttributeError, RecursionError, SyntaxError, re.error) as error:
        # fastjsonschema writes a program: what is nested too deeply is no Python any more
        raise InvalidValue(f"the schema of {of} cannot be read: {error}") from error

    def validate(value: Any) -> Any:
        _PATTERNS_END.set(monotonic() + _PATTERN_TIME)
        try:
            return check(value)
        except fastjsonschema.JsonSchemaValueException as error:
            raise ValueError(error.message) from error
        except TimeoutError as error:
            raise ValueError("the patterns of the schema take too long to search") from error

    return validate


class _TimedPattern:
    """A pattern of a schema, in place of that of `re`, which may search for ever and cannot be stopped."""

    def __init__(self, pattern: str) -> None:
        import regex

        try:
            self._pattern = regex.compile(pattern)
        except regex.error as error:
            raise InvalidValue(str(error)) from error

    def search(self, text: str) -> object:
        return self._pattern.search(text, timeout=_time_left())

    def match(self, text: str) -> object:
        return self._pattern.match(text, timeout=_time_left())


def _time_left() -> float:
    return max(0.001, _PATTERNS_END.get() - monotonic())


def _refuse_fetch(address: str) -> NoReturn:
    raise ValueError(f"it refers to {address}, which is not fetched")
