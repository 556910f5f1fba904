"""How many function calls the cleaner makes: the same on every machine."""

import gc
import sys

from run.own_markup import DELIMITER
from tertulia.run.cleaner import clean


def calls_of(text: str) -> int:
    """Count the calls of Python functions that cleaning *text* takes."""
    clean(text, delimiter=DELIMITER)  # patterns are compiled once in a process
    count = 0

    def called(_: object, event: str, __: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    gc.disable()  # its callbacks would count
    sys.setprofile(called)
    try:
        clean(text, delimiter=DELIMITER)
    finally:
        sys.setprofile(before)
        gc.enable()
    return count
