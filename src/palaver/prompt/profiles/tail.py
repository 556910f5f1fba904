"""The `tail` profile: the static layer first, then the long history, then what changes. Pure."""

from palaver.context.values import Context
from palaver.prompt.history import past_turns
from palaver.prompt.layers import dynamic, place_style, static, trigger_turns
from palaver.prompt.render import turns_without_opening_call
from palaver.turns import Layer, Prompt


def tail(context: Context) -> Prompt:
    """Lay out as static, buffered, dynamic, trigger: the longest stable prefix."""
    style = place_style(context)
    quotes = context.unshown_quotes(context.window)
    layers = (
        static(context),
        Layer(
            name="buffered",
            turns=past_turns(context)
            + turns_without_opening_call(context.window_with_notices(), context, style, quotes),
        ),
        dynamic(context),
        Layer(name="trigger", turns=trigger_turns(context, style, context.window)),
    )
    return Prompt(layers=layers)
