"""The rules of services as data, lint of requests, and repair of histories on a copy."""

from tertulia.wire.lint import Violation, lint
from tertulia.wire.repair import Receipt, repair

__all__ = ["Receipt", "Violation", "lint", "repair"]
