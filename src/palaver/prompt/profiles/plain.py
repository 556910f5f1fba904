"""The `plain` profile: the persona's own words, and what was said as nothing but its words. Pure."""

from palaver.context.values import Context, Persona
from palaver.prompt import sections
from palaver.prompt.history import recollection
from palaver.prompt.layers import run_layer, with_news
from palaver.prompt.render import mark, turns_from_the_start
from palaver.turns import Layer, Prompt, user


def plain(context: Context) -> Prompt:
    """For one person and one model, small ones too: nothing is said that was not said, or remembered, by somebody."""
    said = turns_from_the_start(context.told(), context, "verbatim")
    layers = (
        Layer(name="static", instruction=_instruction(context.persona)),
        Layer(name="buffered", turns=recollection(context) + said),
        *_remembered(context),
        Layer(name="trigger", turns=with_news(context, "verbatim", context.window)),
    )
    return Prompt(layers=layers + run_layer(context))


def _remembered(context: Context) -> tuple[Layer, ...]:
    """A turn of our own behind everything that was said, so that what comes to mind does not change the beginning."""
    words = sections.remembered(context)
    return (Layer(name="dynamic", turns=(user(f"{mark(context.delimiter)} {words}".lstrip()),)),) if words else ()


def _instruction(persona: Persona) -> str:
    """All that the operator wrote, without headings."""
    written = (persona.text, persona.role, persona.rules, persona.procedure, persona.notes)
    return "\n\n".join(filter(None, written))
