"""What a service accepts, as data; finding what it would refuse, and making a history legal on a copy."""

from palaver.wire.lint import Violation, lint
from palaver.wire.repair import Receipt, repair

__all__ = ["Receipt", "Violation", "lint", "repair"]
