"""How deep a body may be. Pure."""

from typing import Any

DEEPEST = 100


def too_deep(body: Any) -> bool:
    """Whether objects and lists lie within each other more than a hundred deep."""
    waiting = [(body, 1)] if isinstance(body, dict | list) else []
    while waiting:
        value, level = waiting.pop()
        if level > DEEPEST:
            return True
        children = value.values() if isinstance(value, dict) else value
        waiting += [(child, level + 1) for child in children if isinstance(child, dict | list)]
    return False
