"""What a rule says about a request it refuses. Pure."""

from msgspec import Struct

from palaver.sim.gemini.rules.generations import Generation


class Violation(Struct, frozen=True):
    """One thing wrong with a request; *always* is false for what is refused in strict mode only."""

    rule: str
    message: str
    where: str = ""
    always: bool = True


class Subject(Struct, frozen=True):
    """Whose rules a request is judged by."""

    model: str
    generation: Generation
