"""The `plain` profile: the persona's own words, and what was said as nothing but its words. Pure."""

from palaver.context.values import Context, Persona
from palaver.prompt.layers import run_layer, with_news
from palaver.prompt.render import turns_from_the_start
from palaver.turns import Layer, Prompt


def plain(context: Context) -> Prompt:
    """For one person and one model, small ones too: nothing is said that was not said by somebody."""
    layers = (
        Layer(name="static", instruction=_instruction(context.persona)),
        Layer(name="buffered", turns=turns_from_the_start(context.told(), context, "verbatim")),
        Layer(name="trigger", turns=with_news(context, "verbatim", context.window)),
    )
    return Prompt(layers=layers + run_layer(context))


def _instruction(persona: Persona) -> str:
    """All that the operator wrote, without headings."""
    written = (persona.text, persona.role, persona.rules, persona.procedure, persona.notes)
    return "\n\n".join(filter(None, written))
