"""The layers that profiles share: static, the old history, dynamic, and the trigger; and calls as sentences. Pure.

The order of layers keeps the prefix stable. The static layer is the same for every message of a place. The dynamic one
changes with each request, so `tail` puts it behind the history. The texts of both are in `templates/`.
"""

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from tertulia.characters import TURNING
from tertulia.context.values import Context, Notice, Persona, with_albums
from tertulia.jsonio import dumps, limit_depth, loads
from tertulia.messages import Message, Quote
from tertulia.parts import Part, ToolCall, ToolResult
from tertulia.prompt import escape, forms
from tertulia.prompt.media_markers import marker_line
from tertulia.prompt.render import (
    EMPTY,
    NO_QUOTES,
    QUOTE_LENGTH,
    Style,
    author_label,
    brief_quote,
    delimiter_mark,
    doubt_line,
    forward_label,
    has_words,
    local_time,
    notice_line,
    quote_label,
    quote_parts,
    quote_text,
    render_message,
    shorten,
    speaker,
    text_with_markers,
    turns_of,
    turns_of_message,
)
from tertulia.prompt.sections import NOTICES, relevance, stickers, task_blocks
from tertulia.turns import Layer, Turn, user
from tertulia.value_cache import cached_for

if TYPE_CHECKING:
    from jinja2 import Environment

TOOL_LENGTH = 300  # characters of a call or a result

_UNSEEN = re.compile(f"[\x7f-\x9f\u200b\u2028\u2029\ufeff{TURNING}]")  # JSON may hold them, a line may not


def static(context: Context) -> Layer:
    """Return the instruction: the same for every message of a place."""
    is_group = context.place.kind != "direct"
    listed = escape.without_delimiter(stickers(context), context.delimiter)
    blocks = "\n\n".join(filter(None, (task_blocks(context, ids=is_group), listed)))
    return Layer(
        name="static",
        instruction=_static_text(
            persona=context.persona, delimiter=context.delimiter, group=is_group, task_blocks=blocks
        ),
    )


def dynamic(context: Context) -> Layer:
    """Return as JSON what may have changed since the last message: time, author, quote, memory, workspace."""
    known = _with_delimiter(_dynamic_values(context), context.delimiter)
    text = _json_environment().get_template("dynamic.j2").render(known=known)
    return Layer(name="dynamic", turns=(user(_UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)),))


def batch_turns(
    context: Context, style: Style, shown: Iterable[Message], *, told: Container[str] | None = None
) -> tuple[Turn, ...]:
    """Return the turns of the batch, each with its quote where the quoted message is not among those *shown*.

    A message whose turns the context has goes as these.

    *told*: ids of quotes whose text is in another layer, so only their media are added. By default that is the quote of
    the whole batch, unless the style is `attached`.
    """
    if told is None:
        told = (context.quote.message_id,) if context.quote and style != "attached" else ()
    replies = any(message.reply_to for message in context.batch)
    seen = {message.id: message for message in (*shown, *context.batch)} if replies else {}
    turns: list[Turn] = []
    for message in with_albums(context.batch):
        if given := context.turns.get(message.id):
            turns += given
            continue
        quote = message.reply_to
        written = context.written(quote) if quote else None
        added = quote_parts(written, seen, style, without_text=quote is not None and quote.message_id in told)
        if not added or quote is None:
            turns += turns_of_message(message, context, style)
            continue
        turns += render_message(message, context, style, beside=added)
        seen[quote.message_id] = replace(message, parts=quote.parts)
    if style == "bare" and not turns:  # nobody wrote anything, but a prompt ends with a turn
        return batch_turns(context, "verbatim", shown, told=told)
    return tuple(turns)


def trigger_turns(context: Context, style: Style, shown: Iterable[Message]) -> tuple[Turn, ...]:
    """Return the late notices, then the turns of the batch."""
    return (*turns_of(context.late_notices, context, style), *batch_turns(context, style, shown))


def place_style(context: Context) -> Style:
    """Return the style of a place: messages have headers in groups and channels alone."""
    return "direct" if context.place.kind == "direct" else "headed"


@lru_cache(maxsize=256)
def _static_text(*, persona: Persona, delimiter: str, group: bool, task_blocks: str) -> str:
    """Return the instruction: texts of the operator and ours, none of people."""
    template = _environment().get_template("conversation.j2")
    written = (
        forms.PERSONA.write(persona.text),
        forms.ROLE.write(persona.role),
        forms.RULES.write(persona.rules),
        forms.PROCEDURE.write(persona.procedure),
        forms.NOTES.write(persona.notes),
        forms.CONVERSATION.write(template.render(delimiter=delimiter, group=group, notices=NOTICES).strip()),
        task_blocks,
    )
    return "\n\n".join(filter(None, written)).strip()


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined  # late: few of those who import us build a prompt

    return Environment(  # noqa: S701 (instructions are no HTML)
        loader=PackageLoader("tertulia.prompt"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )


@cache
def _json_environment() -> "Environment":
    """Return the environment in which every value is encoded as JSON."""
    return _environment().overlay(finalize=lambda value: dumps(value).decode())


def _dynamic_values(context: Context) -> dict[str, Any]:
    workspace, quote, author = context.workspace, context.quote, context.target.author
    always: dict[str, Any] = {
        "file_references": workspace.file_references,
        "artifacts": workspace.artifacts,
        "todos": workspace.todos,
        "current_datetime": local_time(context.now, context.zone).isoformat(timespec="seconds"),
    }
    sometimes: dict[str, Any] = {
        "current_author": _without_empty(
            name=escape.header_name(author.name), id=author.id, username=author.username or ""
        ),
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


def _quote(quote: Quote) -> dict[str, str]:
    text = quote_text(quote) or marker_line(quote.parts)
    short = shorten(text, QUOTE_LENGTH)
    return _without_empty(
        message_id=quote.message_id,
        author=author_label(quote.author) if quote.author else "",
        forwarded_from=author_label(quote.forwarded_from) if quote.forwarded_from else "",
        text=text if short == text else f"{short}…",
    )


def _without_empty(**fields: str) -> dict[str, str]:
    """Return the fields that are not empty."""
    return {key: value for key, value in fields.items() if value}


def _visible_text(text: str) -> str:
    """Return *text*, or nothing where it has no visible character."""
    return text if escape.normalize(text) else ""


# `layered` shows the old history as one user turn of text. Each message is a part of it. New parts come at its end
# alone, so the turn keeps its prefix stable until the window is cut.


def past_turns(context: Context) -> tuple[Turn, ...]:
    """Return a turn with the summary of what was said before the window, or none without one."""
    lines = [line for line in map(escape.single_line, context.past.splitlines()) if escape.normalize(line)]
    if not lines:
        return ()
    bullets = (
        f"- {escape.without_delimiter(escape.markup(line, context.delimiter), context.delimiter)}" for line in lines
    )
    return (user("\n".join([f"{delimiter_mark(context.delimiter)} {forms.PAST}".lstrip(), *bullets])),)


def history_turns(
    messages: tuple[Message, ...], context: Context, quotes: Mapping[str, Quote] = NO_QUOTES
) -> tuple[Turn, ...]:
    """Return the messages as one user turn: people's words must not be in the system instruction.

    The turn is cached on the first message, so that it is encoded once for as long as nothing is added to it.
    """
    if not messages:
        return ()
    first, key = messages[0], _cache_key(context)
    done = [context.turns.get(message.id, ()) for message in messages] if context.turns else []
    entries = cached_for(
        first, f"entries {key}", (messages, done, quotes), lambda: tuple(_entries(messages, context, quotes))
    )
    return cached_for(first, f"history {key}", entries, lambda: (user(*entries),)) if entries else ()


def _entries(messages: tuple[Message, ...], context: Context, quotes: Mapping[str, Quote]) -> Iterator[str]:
    key = f"entry {_cache_key(context)}"
    for message in with_albums(messages):
        if message.deleted:
            continue
        done, quote = context.turns.get(message.id, ()), quotes.get(message.id)
        yield cached_for(message, key, (done, quote), partial(_entry, message, context, quote))


def _cache_key(context: Context) -> str:
    """Return the cache key of an entry: everything that affects it besides the message, its turns and its quote."""
    return f"{context.zone} {context.place.kind} {context.delimiter} {context.identity}"


def _entry(message: Message, context: Context, quote: Quote | None) -> str:
    parts = _own_parts(message, context) if context.is_own(message) else message.parts
    words = text_with_markers(parts, lambda text: escape.markup(text, context.delimiter))
    content = " ".join(filter(None, (*map(_tool_sentence, parts), words))) or EMPTY
    safe = escape.without_delimiter(content, context.delimiter)
    if isinstance(message, Notice):
        new_text = [_forward(message.shown, context) + safe] if has_words(message) else []
        return "\n".join([notice_line(message, context), *new_text])
    if context.is_own(message):
        doubt = f"\n{doubt_line(context)}" if message.doubtful else ""
        return f"{delimiter_mark(context.delimiter)} {speaker(message, context)}\n{safe}{doubt}"
    replied = _quote_line(quote, context) if quote else ""
    safe = _forward(message, context) + safe
    return f"{delimiter_mark(context.delimiter)} {speaker(message, context)}\n{safe}{replied}"


def _forward(message: Message, context: Context) -> str:
    """Return the label before the text of a forwarded message."""
    return f"{forward_label(message.forwarded_from, context.delimiter)} " if message.forwarded_from else ""


def _quote_line(quote: Quote, context: Context) -> str:
    """Return a line with the label and the text of a quote, or nothing where its text is unknown."""
    text_of_quote = text_with_markers(brief_quote(quote), lambda text: escape.markup(text, context.delimiter))
    return (
        f"\n{quote_label(quote, context.delimiter)} {escape.without_delimiter(text_of_quote, context.delimiter)}"
        if text_of_quote
        else ""
    )


def _own_parts(message: Message, context: Context) -> tuple[Part, ...]:
    """Return the calls and results behind an own message, then its parts."""
    done = tuple(part for turn in context.turns.get(message.id, ()) for part in turn.parts)
    return tuple(part for part in done if isinstance(part, ToolCall | ToolResult)) + message.parts


# A model that sees no calls and results reads them as sentences. The values in them are shortened and escaped, so that
# nothing that a tool returned passes for a line of ours. `models.local.encode` words a result for the embedded model
# itself, which takes all of it.


def exchange_sentence(call: ToolCall | None, result: ToolResult) -> str:
    """`(You called search with {"query":"tea"}; it answered: "3 shops" [photo])`: a call and its result, as JSON."""
    arguments = f" with {_shorten(dumps(call.args).decode())}" if call else ""
    media = "".join(f" {escape.fold(one.words)}" for one in result.media)
    value = _shorten(dumps(result.value).decode())
    return f"(You called {escape.fold(result.name)}{arguments}; it {result.outcome}: {value}{media})"


def _tool_sentence(part: Part) -> str:
    """`(called search with {"query":"tea"})`, `(search answered: 3 shops)`; nothing for other parts."""
    match part:
        case ToolCall(name=name, args=value):
            words = f"called {escape.fold(name)} with"
        case ToolResult(name=name, value=value):
            words = f"{escape.fold(name)} {part.outcome}:"
        case _:
            return ""
    return f"({words} {_shorten(value if isinstance(value, str) else dumps(value).decode())})"


def _shorten(text: str) -> str:
    """Return the first `TOOL_LENGTH` characters of *text*, on one line and escaped."""
    line = escape.markup(escape.fold(text[: 2 * TOOL_LENGTH]))
    return line if len(line) <= TOOL_LENGTH else line[:TOOL_LENGTH] + "…"
