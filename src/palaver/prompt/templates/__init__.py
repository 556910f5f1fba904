"""The texts of the static and dynamic layers, as Jinja2 templates. Pure."""

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from palaver.context.values import Persona
from palaver.jsonio import dumps

if TYPE_CHECKING:
    from jinja2 import Environment


@lru_cache(maxsize=256)
def static(*, persona: Persona, delimiter: str, group: bool, task_blocks: str = "") -> str:
    """Return the instruction: texts of the operator and ours, none of people."""
    template = _environment().get_template("static.j2")
    return template.render(persona=persona, delimiter=delimiter, group=group, task_blocks=task_blocks).strip()


def dynamic(known: dict[str, Any]) -> str:
    """Return the current values as a JSON object: every value is encoded as JSON."""
    return _json_environment().get_template("dynamic.j2").render(known=known)


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined  # late: few of those who import us build a prompt

    loader = PackageLoader("palaver.prompt")
    return Environment(  # noqa: S701 (instructions are no HTML)
        loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, auto_reload=False
    )


@cache
def _json_environment() -> "Environment":
    return _environment().overlay(finalize=lambda value: dumps(value).decode())
