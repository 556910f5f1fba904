"""The `layered` profile: static, dynamic, buffered, trigger, in this order always. Pure."""

from msgspec.structs import replace

from palaver.context.values import Context
from palaver.context.window import BUFFER, Marks, whole_from
from palaver.prompt.history import cached_history, recollection
from palaver.prompt.layers import dynamic, spoken_style, static, with_news
from palaver.prompt.render import turns_of
from palaver.turns import Layer, Prompt


def layered(context: Context, *, buffer: Marks = BUFFER) -> Prompt:
    """Old turns go from the buffer to the static layer in whole chunks, each once, so that its beginning stays."""
    style = spoken_style(context)
    window = context.window
    promoted = max(0, buffer.start(context.window_start + len(window)) - context.window_start)
    promoted = whole_from(window, min(promoted, len(window)))
    instructed = static(context)
    quotes = context.unshown_quotes(window)
    old = cached_history(context.told(0, promoted), context, quotes)
    trigger = with_news(context, style, window)
    recent = turns_of(context.told(promoted), context, style, quotes)
    if context.steps:  # the results that were asked for are in the buffer, and nothing is left to trigger
        recent, trigger = (*recent, *trigger, *context.steps), ()
    layers = (
        replace(instructed, turns=recollection(context) + old),
        dynamic(context),
        Layer(name="buffered", turns=recent),
        Layer(name="trigger", turns=trigger),
    )
    return Prompt(layers=layers)
