"""The `native` profile: a Markdown instruction, and a history of roles and parts alone. Pure."""

from palaver.context.values import Context
from palaver.prompt import escape, sections
from palaver.prompt.layers import batch_turns, trigger_turns
from palaver.prompt.render import turns_without_opening_call
from palaver.turns import Layer, Prompt

SECTIONS: tuple[sections.Section, ...] = (
    sections.persona,
    sections.role,
    sections.model_notes,
    sections.task_blocks,
    sections.current_time,
    sections.current_user,
    sections.reply_context,
    sections.recollections,
)


def native(context: Context) -> Prompt:
    """Lay out as a Markdown instruction and bare turns: this format has no authors and quotes in the history."""
    shown = context.history
    trigger = batch_turns if context.levels else trigger_turns
    layers = (
        Layer(
            name="static",
            instruction=escape.without_delimiter(sections.instruction(SECTIONS, context), context.delimiter),
        ),
        Layer(name="buffered", turns=turns_without_opening_call(shown, context, "verbatim")),
        Layer(name="trigger", turns=trigger(context, "verbatim", shown)),
    )
    return Prompt(layers=layers)
