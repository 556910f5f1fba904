"""The `headers` profile: every message of others behind a header, media in words, the target last. Pure."""

from palaver.context.values import Context
from palaver.prompt import escape, sections
from palaver.prompt.history import recollection
from palaver.prompt.layers import run_layer, with_news
from palaver.prompt.render import turns_from_the_start
from palaver.turns import Layer, Prompt

SECTIONS: tuple[sections.Section, ...] = (
    sections.persona,
    sections.role,
    sections.model_notes,
    sections.task_blocks,
    sections.current_time,
    sections.chat_type,
    sections.who_speaks,
    sections.stickers,
    sections.remembered,
)


def headers(context: Context) -> Prompt:
    instruction = escape.without(sections.instruction(SECTIONS, context), context.delimiter)
    quotes = context.unshown_quotes(context.window)
    layers = (
        Layer(name="static", instruction=instruction),
        Layer(
            name="buffered",
            turns=recollection(context)
            + turns_from_the_start(context.window_with_notices(), context, "worded", quotes),
        ),
        Layer(name="trigger", turns=with_news(context, "worded", context.window)),
    )
    return Prompt(layers=layers + run_layer(context))
