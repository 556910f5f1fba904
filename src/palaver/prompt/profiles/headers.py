"""The `headers` profile: each message of others has a header, media are markers, the trigger is last. Pure."""

from palaver.context.values import Context
from palaver.prompt import escape, sections
from palaver.prompt.history import past_turns
from palaver.prompt.layers import trigger_turns
from palaver.prompt.render import turns_without_opening_call
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
    sections.memory_sections,
)


def headers(context: Context) -> Prompt:
    instruction = escape.without_delimiter(sections.instruction(SECTIONS, context), context.delimiter)
    quotes = context.unshown_quotes(context.window)
    layers = (
        Layer(name="static", instruction=instruction),
        Layer(
            name="buffered",
            turns=past_turns(context)
            + turns_without_opening_call(context.window_with_notices(), context, "worded", quotes),
        ),
        Layer(name="trigger", turns=trigger_turns(context, "worded", context.window)),
    )
    return Prompt(layers=layers)
