"""The `layered` profile: static, dynamic, buffered, trigger, in this order always. Pure."""

from msgspec.structs import replace

from palaver.context.stable_prefix import BUFFER, Marks, keep_results_with_calls
from palaver.context.values import Context
from palaver.prompt.history import history_turns, past_turns
from palaver.prompt.layers import dynamic, place_style, static, trigger_turns
from palaver.prompt.render import turns_of
from palaver.turns import Layer, Prompt


def layered(context: Context, *, buffer: Marks = BUFFER) -> Prompt:
    """Move old messages from the buffer to the static layer in chunks, each once, so that the prefix stays stable.

    The chunks are those of `Marks`: a function of message numbers alone.
    """
    style = place_style(context)
    window = context.window
    promoted = max(0, buffer.start(context.window_start + len(window)) - context.window_start)
    promoted = keep_results_with_calls(window, min(promoted, len(window)))
    instructed = static(context)
    quotes = context.unshown_quotes(window)
    old = history_turns(context.window_with_notices(0, promoted), context, quotes)
    trigger = trigger_turns(context, style, window)
    recent = turns_of(context.window_with_notices(promoted), context, style, quotes)
    layers = (
        replace(instructed, turns=past_turns(context) + old),
        dynamic(context),
        Layer(name="buffered", turns=recent),
        Layer(name="trigger", turns=trigger),
    )
    return Prompt(layers=layers)
