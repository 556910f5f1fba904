"""The layers that profiles share: static, dynamic, and the trigger. Pure.

The order of layers keeps the prefix stable. The static layer is the same for every message of a place. The dynamic one
changes with each request, so `tail` puts it behind the history.
"""

import re
from collections.abc import Container, Iterable
from typing import Any

from msgspec.structs import replace

from palaver.characters import TURNING
from palaver.context.values import Context, with_albums
from palaver.jsonio import dumps, limit_depth, loads
from palaver.messages import Message, Quote
from palaver.prompt import escape, templates
from palaver.prompt.media_markers import marker_line
from palaver.prompt.render import (
    QUOTE_LENGTH,
    Style,
    author_label,
    local_time,
    quote_parts,
    quote_text,
    render_message,
    shorten,
    turns_of,
    turns_of_message,
)
from palaver.prompt.sections import relevance, task_blocks
from palaver.turns import Layer, Turn, user

_UNSEEN = re.compile(f"[\x7f-\x9f\u200b\u2028\u2029\ufeff{TURNING}]")  # JSON may hold them, a line may not


def static(context: Context) -> Layer:
    """Return the instruction: the same for every message of a place."""
    return Layer(
        name="static",
        instruction=templates.static(
            persona=context.persona,
            delimiter=context.delimiter,
            group=context.place.kind != "direct",
            task_blocks=task_blocks(context),
        ),
    )


def dynamic(context: Context) -> Layer:
    """Return as JSON what may have changed since the last message: time, author, quote, memory, workspace."""
    text = templates.dynamic(_with_delimiter(_dynamic_values(context), context.delimiter))
    return Layer(name="dynamic", turns=(user(_UNSEEN.sub(_json_escape, text)),))


def batch_turns(
    context: Context, style: Style, shown: Iterable[Message], *, told: Container[str] | None = None
) -> tuple[Turn, ...]:
    """Return the turns of the batch, each with its quote where the quoted message is not among those *shown*.

    *told*: ids of quotes whose text is in another layer, so only their media are added. By default that is the quote of
    the whole batch, unless the style is `worded`.
    """
    if told is None:
        told = (context.quote.message_id,) if context.quote and style != "worded" else ()
    replies = any(message.reply_to for message in context.batch)
    seen = {message.id: message for message in (*shown, *context.batch)} if replies else {}
    turns: list[Turn] = []
    for message in with_albums(context.batch):
        quote = message.reply_to
        added = quote_parts(quote, seen, style, without_text=quote is not None and quote.message_id in told)
        if not added or quote is None:
            turns += turns_of_message(message, context, style)
            continue
        turns += render_message(message, context, style, beside=added)
        seen[quote.message_id] = replace(message, parts=quote.parts)
    return tuple(turns)


def trigger_turns(context: Context, style: Style, shown: Iterable[Message]) -> tuple[Turn, ...]:
    """Return the late notices, then the turns of the batch."""
    return (*turns_of(context.late_notices, context, style), *batch_turns(context, style, shown))


def place_style(context: Context) -> Style:
    """Return the style of a place: messages have headers in groups and channels alone."""
    return "direct" if context.place.kind == "direct" else "headed"


def _dynamic_values(context: Context) -> dict[str, Any]:
    workspace, quote = context.workspace, context.quote
    always: dict[str, Any] = {
        "file_references": workspace.file_references,
        "artifacts": workspace.artifacts,
        "todos": workspace.todos,
        "current_datetime": local_time(context.now, context.zone).isoformat(timespec="seconds"),
    }
    sometimes: dict[str, Any] = {
        "current_author": _author(context),
        "quote": _quote(quote) if quote else None,
        "memories": [memory for memory in context.memories if escape.normalize(memory)],
        "profile": _visible_text(context.summary),
        "key_facts": {name: value for name, value in context.key_facts.items() if escape.normalize(name + value)},
        "relevant": [
            {"relevance": relevance(hit), "text": hit.text} for hit in context.relevant if escape.normalize(hit.text)
        ],
        "episodes": list(
            filter(
                None,
                (
                    _without_empty(topic=_visible_text(one.topic), summary=_visible_text(one.summary))
                    for one in context.episodes
                ),
            )
        ),
    }
    return always | {key: value for key, value in sometimes.items() if value}


def _with_delimiter(known: dict[str, Any], delimiter: str) -> dict[str, Any]:
    """Return the values with the delimiter as `mark`; it is removed from all other values."""
    if not delimiter:
        return known
    written = dumps(known).decode()
    safe = (
        known
        if escape.without_delimiter(written, delimiter) == written
        else _without(limit_depth(loads(written)), delimiter)
    )
    return {**safe, "mark": delimiter}


def _without(value: Any, delimiter: str) -> Any:
    match value:
        case str():
            return escape.without_delimiter(value, delimiter)
        case dict():
            return {
                escape.without_delimiter(str(key), delimiter): _without(item, delimiter) for key, item in value.items()
            }
        case list() | tuple():
            return [_without(item, delimiter) for item in value]
    return value


def _json_escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def _author(context: Context) -> dict[str, str]:
    author = context.target.author
    return _without_empty(name=escape.name(author.name), id=author.id, username=author.username or "")


def _quote(quote: Quote) -> dict[str, str]:
    text = quote_text(quote) or marker_line(quote.parts)
    short = shorten(text, QUOTE_LENGTH)
    return _without_empty(
        message_id=quote.message_id,
        author=author_label(quote.author) if quote.author else "",
        text=text if short == text else f"{short}…",
    )


def _without_empty(**fields: str) -> dict[str, str]:
    """Return the fields that are not empty."""
    return {key: value for key, value in fields.items() if value}


def _visible_text(text: str) -> str:
    """Return *text*, or nothing where it has no visible character."""
    return text if escape.normalize(text) else ""
