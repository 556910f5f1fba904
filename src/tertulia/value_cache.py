"""Results that are cached on the frozen value they are computed from. Pure.

A long chat is rendered, repaired, counted and encoded again for every request, and all but the newest message is as it
was. So each message is rendered once and each turn encoded once: the result is stored in the `__dict__` of the instance
(msgspec's `dict=True`: `Message`, `Turn`, `ToolSpec` and `Prompt` have one).

What may be cached: the result of a pure function of the value and of what the key says. The key is a text. It begins
with the name of the result and goes on with everything else the result depends on: `gemini gemini-3.8-flash`, `fit
openai gpt-5.6`, `headed UTC 7f3a9c2e account 42`. What does not fit in a key (a quote, the turns behind a message) is a
*basis*: the result is computed again when the basis is no longer equal.

Why it is safe: fields never change, so a result never goes stale. Equality, hashes, JSON and `replace` know the fields
alone; a changed copy begins with an empty cache. Threads may compute one result twice, and both are equal.

Why it pays: a result lives as long as its instance. `store.log` returns the same instance for a message as long as the
message is unchanged, and its turn lives with it. So a request costs what is new in it.

The hot loops that go over a whole history (`tokens`, `render`, `repair`, `encode`, those that look for media) read
`value.__dict__.get(key)` themselves and call `cached` for what is missing, since a call for each of 500 turns costs
more than the look. (`wire.repair` also stores the turns that a user turn was paired with.) No other module touches the
`__dict__` of a value.
"""

from collections.abc import Callable
from typing import Any, TypeVar

V = TypeVar("V")
T = TypeVar("T")


def cached(value: V, key: str, make: Callable[[V], T]) -> T:
    """Return what *make* computes from *value*, computed once."""
    results = value.__dict__
    if key not in results:
        results[key] = make(value)
    result: T = results[key]
    return result


def cached_for(value: object, key: str, basis: Any, make: Callable[[], T]) -> T:
    """Return what *make* computes, computed again when *basis* is not equal to the one of the last time."""
    entry: tuple[Any, T] | None = value.__dict__.get(key)
    if entry is None or (entry[0] is not basis and entry[0] != basis):
        entry = value.__dict__[key] = (basis, make())
    return entry[1]
