"""The `tail` profile: what never changes first, the long history next, what changes at the end. Pure."""

from palaver.context.values import Context
from palaver.prompt.history import recollection
from palaver.prompt.layers import dynamic, run_layer, spoken_style, static, with_news
from palaver.prompt.render import turns_from_the_start
from palaver.turns import Layer, Prompt


def tail(context: Context) -> Prompt:
    """Static, buffered, dynamic, trigger: the longest beginning that stays the same."""
    style = spoken_style(context)
    quotes = context.unshown_quotes(context.window)
    layers = (
        static(context),
        Layer(
            name="buffered",
            turns=recollection(context) + turns_from_the_start(context.window_with_notices(), context, style, quotes),
        ),
        dynamic(context),
        Layer(name="trigger", turns=with_news(context, style, context.window)),
    )
    return Prompt(layers=layers + run_layer(context))
