"""The `block` profile: `native` with the conversation as a fenced block of lines in the instruction. Pure."""

from palaver.context.values import Context
from palaver.errors import InvalidValue
from palaver.messages import Message, Quote
from palaver.prompt import escape, sections
from palaver.prompt.layers import batch_turns, run_layer
from palaver.prompt.meta import cast_of, line, quote_line
from palaver.prompt.profiles.native import SECTIONS
from palaver.turns import Layer, Prompt

MAX_MESSAGES = 60
SMALLEST, LARGEST = 10, 200


def block(context: Context, *, max_messages: int = MAX_MESSAGES, include_meta: bool = True) -> Prompt:
    """The history is empty: the block says it, and the trigger follows as it was sent."""
    if not SMALLEST <= max_messages <= LARGEST:
        raise InvalidValue(
            f"SYSTEM_CONTEXT_BLOCK_MAX_MESSAGES is a number from {SMALLEST} to {LARGEST}, not {max_messages}"
        )
    instruction = "\n\n".join(
        filter(
            None,
            (
                escape.without(sections.instruction(SECTIONS, context), context.delimiter),
                f"Here is the current conversation context (last up to {max_messages} messages):",
                "```\n" + "\n".join(_lines(context, max_messages, include_meta=include_meta)) + "\n```",
                "[RESPOND]",
            ),
        )
    )
    layers = (
        Layer(name="static", instruction=instruction),
        Layer(name="trigger", turns=batch_turns(context, "verbatim", (), told=_quoted_ids(context))),
    )
    return Prompt(layers=layers + run_layer(context))


def _lines(context: Context, max_messages: int, *, include_meta: bool) -> list[str]:
    quote = context.quote
    said = context.history if context.levels else (*context.history, *context.news)
    batch = _newest_of_batch(context, max_messages)
    room = max_messages - len(batch)
    shown = said[max(0, len(said) - room) :]
    outside = quote is not None and _is_known(quote) and all(message.id != quote.message_id for message in shown)
    if outside:
        shown = said[max(0, len(said) - room + 1) :]
    replied = quote.message_id if quote else None
    cast = cast_of(context, include_meta=include_meta)
    lines = [line(message, context, cast, marked=message.id == replied) for message in shown]
    if quote is not None and outside and room:
        lines.append(quote_line(quote, context, cast))
    for message in batch:
        cue = " [REPLY TO THIS]" if message is context.target else ""
        lines.append(f"{line(message, context, cast, marked=True)}{cue}")
    return lines


def _newest_of_batch(context: Context, most: int) -> tuple[Message, ...]:
    """The target and the newest of what is answered with it, *most* in all."""
    others = (*context.earlier, *context.later)
    left = {message.id for message in others[: max(0, len(others) - most + 1)]}
    return tuple(message for message in context.batch if message.id not in left)


def _quoted_ids(context: Context) -> frozenset[str]:
    """The ids of what the batch replies to: its lines tell the words."""
    return frozenset(message.reply_to.message_id for message in context.batch if message.reply_to)


def _is_known(quote: Quote) -> bool:
    return bool(quote.parts or quote.excerpt)
