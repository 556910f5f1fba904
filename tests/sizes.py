"""How large the tests are: small by default, full when TERTULIA_EXAMPLES is set, as `make torture` does."""

import os
from typing import TypeVar

import pytest

T = TypeVar("T")

MOST_SECONDS = 120  # of processor time, for what must not take quadratic time
in_time = pytest.mark.usefixtures("processor_time")

FULL = "TERTULIA_EXAMPLES" in os.environ
EXAMPLES = int(os.environ.get("TERTULIA_EXAMPLES", "10"))  # of each property


def size(small: T, *, full: T) -> T:
    """Return the size of a test in this run: *small* by default, *full* under `make torture`."""
    return full if FULL else small
