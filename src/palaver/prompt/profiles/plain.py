"""The `plain` profile: the persona's text, and messages without any header. Pure."""

from palaver.context.values import Context, Persona
from palaver.messages import Quote
from palaver.prompt import escape, sections
from palaver.prompt.history import past_turns
from palaver.prompt.layers import trigger_turns
from palaver.prompt.render import delimiter_mark, turns_without_opening_call
from palaver.turns import Layer, Prompt, user


def plain(context: Context) -> Prompt:
    """Lay out for one person and any model, small ones too: no markup but a delimiter mark."""
    quotes = context.unshown_quotes(context.window)
    said = turns_without_opening_call(context.window_with_notices(), context, "verbatim", quotes)
    layers = (
        Layer(name="static", instruction=_instruction(context.persona)),
        Layer(name="buffered", turns=past_turns(context) + said),
        *_memory_layer(context),
        Layer(name="trigger", turns=trigger_turns(context, "verbatim", context.window)),
    )
    return Prompt(layers=layers)


def _memory_layer(context: Context) -> tuple[Layer, ...]:
    """Return a layer with quote and memory behind the history, so that they do not change the stable prefix."""
    quote = context.quote
    outside = quote is not None and bool(quote.parts or quote.excerpt) and not _shows(context, quote)
    replied = escape.without_delimiter(sections.reply_context(context), context.delimiter) if outside else ""
    words = "\n\n".join(filter(None, (replied, sections.memory_sections(context))))
    return (
        (Layer(name="dynamic", turns=(user(f"{delimiter_mark(context.delimiter)} {words}".lstrip()),)),)
        if words
        else ()
    )


def _shows(context: Context, quote: Quote) -> bool:
    return any(message.id == quote.message_id and not message.deleted for message in context.window)


def _instruction(persona: Persona) -> str:
    """Return all texts of the persona, without headings."""
    written = (persona.text, persona.role, persona.rules, persona.procedure, persona.notes)
    return "\n\n".join(filter(None, written))
