"""The context block of chat bots with `[meta]` metadata: the history as lines of the instruction. Profile `block`.

```
user [meta] chat_id=-123 message_id=4 user_id=987 name="Alice": Hi! [REPLY TO THIS]
```
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from tertulia.context.values import Context, Notice, ReactionNotice
from tertulia.errors import InvalidValue
from tertulia.messages import Author, Message, Quote
from tertulia.parts import Media, Part, Text, cut_text
from tertulia.prompt import escape, forms, sections
from tertulia.prompt.layers import batch_turns
from tertulia.prompt.media_markers import marker_line
from tertulia.prompt.render import (
    delimiter_mark,
    doubt_line,
    forward_label,
    has_words,
    notice_subject,
    notice_text,
    quote_text,
)
from tertulia.prompt.sections import SOMEONE
from tertulia.turns import Layer, Prompt

NAMES, OTHERS = 100, 120  # how long values may be

_READ = 1_000  # characters of a value from which it is cut
_NUMBER = re.compile(r"-?[0-9]+")
_COLONS = re.compile("[:：﹕︓ː˸∶꞉ꓽ]")
_ROLES = re.compile("bot|user|system|tool|model|assistant")


class Lookup(Struct, frozen=True, kw_only=True):
    """The people and messages of a block, looked up once for all its lines."""

    names: dict[Author, str] | None  # the name before each author's lines; None where metadata have it
    messages: dict[str, Message]  # the current ones, by id


def lookup_of(context: Context, *, include_meta: bool) -> Lookup:
    """Return the people and messages that the lines of a block can name."""
    changed = {
        one.shown.id for one in context.notices if not isinstance(one, ReactionNotice)
    }  # the block does not show their current text
    known = (*context.window, *context.history, *context.batch)
    messages = {message.id: message for message in known if message.id not in changed}
    return Lookup(names=None if include_meta else _names(_speakers(context)), messages=messages)


def meta_header(message: Message, messages: Mapping[str, Message] | None = None) -> str:
    """`[meta] chat_id=-123 message_id=4 user_id=987 name="Alice"`: the known fields of a message, in this order."""
    author, quote = message.author, message.reply_to
    current = _current(quote, messages or {}) if quote else None
    replied = quote.author if quote else None
    pairs = [
        ("chat_id", _identity(message.place.id)),
        ("thread_id", _identity(message.place.thread)),
        ("message_id", _identity(message.id)),
        ("user_id", _identity(author.id)),
        ("username", _text(author.username, NAMES)),
        ("name", _text(author.name, NAMES)),
        ("reply_to_message_id", _identity(quote.message_id if quote else None)),
        ("reply_to_user_id", _identity(replied.id if replied else None)),
        ("reply_to_username", _text(replied.username if replied else None, NAMES)),
        ("reply_to_name", _text(replied.name if replied else None, NAMES)),
        ("reply_excerpt", _text(quote_excerpt(current) if current else None, OTHERS)),
    ]
    return " ".join(["[meta]", *(f"{key}={value}" for key, value in pairs if value)])


def quote_excerpt(quote: Quote) -> str:
    """Return the text of a quote, or the kinds of its media where it has none; and whose words it is, if forwarded.

    Descriptions of media are left out: this format removes the brackets that would tell them from the author's words.
    """
    texts = tuple(part for part in quote.parts if isinstance(part, Text))
    words = quote_text(replace(quote, parts=texts)) or marker_line(quote.parts)
    return f"{forward_label(quote.forwarded_from)} {words}" if quote.forwarded_from else words


def message_line(message: Message, context: Context, lookup: Lookup, *, marked: bool) -> str:
    """Return a message as one line of the block; *marked* with the kinds of its media."""
    if isinstance(message, Notice):
        who = notice_subject(message) if isinstance(message, ReactionNotice) else message.shown
        return f"{_speaker(who, context, lookup)}: {_notice(message, context)}"
    words = " ".join([*_forward(message, context), _one_line(message.parts, context)]).strip()
    marks = marker_line(message.parts) if marked else ""
    text = " ".join(filter(None, (words, marks))) or "(no content)"
    doubt = f"\n{doubt_line(context)}" if message.doubtful else ""
    return f"{_speaker(message, context, lookup)}: {text}{doubt}"


def _notice(notice: Notice, context: Context) -> str:
    """Return the text of a notice behind the delimiter mark."""
    change = _one_line((Text(text=notice_text(notice, context)),), context)
    new_text = [*_forward(notice.shown, context), _one_line(notice.parts, context) or "(no content)"]
    shown = new_text if has_words(notice) else []
    return " ".join(filter(None, (delimiter_mark(context.delimiter), change, *shown)))


def _forward(message: Message, context: Context) -> list[str]:
    """Return the label before the text of a forwarded message; nothing for other messages."""
    origin = None if context.is_own(message) else message.forwarded_from
    return [forward_label(origin, context.delimiter).replace("```", "'''")] if origin else []


def quote_line(quote: Quote, context: Context, lookup: Lookup) -> str:
    """Return the line of a quoted message that is older than the block."""
    author = quote.author or SOMEONE
    marked: tuple[Part, ...] = (Text(text=quote.excerpt or ""), *_media(quote.parts))
    parts = marked if quote.excerpt else quote.parts
    origin = quote.forwarded_from
    message = Message(id=quote.message_id, place=context.place, author=author, parts=parts, forwarded_from=origin)
    return message_line(message, context, lookup, marked=True)


def _media(parts: Iterable[Part]) -> tuple[Media, ...]:
    return tuple(part for part in parts if isinstance(part, Media))


def _current(quote: Quote, messages: Mapping[str, Message]) -> Quote:
    """Return the quote in its current version, where it has content and that has changed."""
    message = messages.get(quote.message_id)
    if message is None or not (message.deleted or message.edited_at) or not (quote.parts or quote.excerpt):
        return quote
    return quote.update_from(message)


def _speaker(message: Message, context: Context, lookup: Lookup) -> str:
    own = context.is_own(message)
    if lookup.names is None:
        header = escape.without_delimiter(meta_header(message, lookup.messages), context.delimiter)
        return f"{'bot' if own else 'user'} {header}"
    return "bot" if own else escape.without_delimiter(lookup.names[message.author], context.delimiter)


def _names(speakers: Iterable[Author]) -> dict[Author, str]:
    """Return the name of each author; with the id where it looks like another's, or was another before."""
    shown = {author: _name(author) for author in speakers}
    looks = {name: escape.skeleton(name) for name in shown.values()}
    alike: dict[str, set[str]] = {}
    called: dict[str, set[str]] = {}
    for author, name in shown.items():
        alike.setdefault(looks[name], set()).add(author.id)
        called.setdefault(author.id, set()).add(name)
    identities = {name: found for name in called if len(found := escape.skeleton(escape.header_id(name))) > 2}
    named = {}
    for author, name in shown.items():
        renamed = bool(author.id) and len(called[author.id]) > 1
        posing = renamed or len(alike[looks[name]]) > 1 or _is_impersonation(looks[name], author, identities)
        named[author] = f"{name} ({escape.header_id(author.id) or 'unknown'})" if posing else name
    return named


def _name(author: Author) -> str:
    return _COLONS.sub("", escape.inline(escape.header_name(author.name))).strip() or SOMEONE.name


def _is_impersonation(looks: str, author: Author, identities: Mapping[str, str]) -> bool:
    """Return whether a name that *looks* so could pass for a role, for no name, or for another's by an id in it."""
    if _ROLES.match(looks) or (not looks and author.id):
        return True
    return any(found in looks and one != author.id for one, found in identities.items())


def _speakers(context: Context) -> Iterator[Author]:
    if quote := context.quote:
        yield quote.author or SOMEONE
    for message in (*context.history, *context.batch):
        yield message.author


def _one_line(parts: Iterable[Part], context: Context) -> str:
    escaped = escape.markup(escape.single_line(cut_text(tuple(parts))), context.delimiter)
    return " ".join(escaped.replace("```", "'''").split())


def _identity(value: str | None) -> str:
    """Return an id: unquoted where it is a number."""
    if not value:
        return ""
    return value if _NUMBER.fullmatch(value) else _text(escape.header_id(value), OTHERS)


def _text(value: str | None, limit: int) -> str:
    plain = escape.without_brackets(escape.fold((value or "")[:_READ])).replace("\\", "/").replace("```", "'''").strip()
    cut = plain if len(plain) <= limit else plain[: limit - 2] + ".."
    escaped = cut.replace('"', '\\"')
    return f'"{escaped}"' if cut else ""


MAX_MESSAGES = 60
SMALLEST, LARGEST = 10, 200


def block(context: Context, *, max_messages: int = MAX_MESSAGES, include_meta: bool = True) -> Prompt:
    """Lay out the history as a block in the instruction, and the batch as turns behind it."""
    if not SMALLEST <= max_messages <= LARGEST:
        raise InvalidValue(
            f"SYSTEM_CONTEXT_BLOCK_MAX_MESSAGES is a number from {SMALLEST} to {LARGEST}, not {max_messages}"
        )
    told = sections.BLOCK_SECTIONS if include_meta else sections.BARE_BLOCK_SECTIONS
    instruction = "\n\n".join(
        filter(
            None,
            (
                escape.without_delimiter(sections.instruction(told, context), context.delimiter),
                sections.changes(context) if context.notices else "",
                str(max_messages).join(forms.CONTEXT_LINE),
                "```\n" + "\n".join(_lines(context, max_messages, include_meta=include_meta)) + "\n```",
                forms.RESPOND,
            ),
        )
    )
    layers = (
        Layer(name="static", instruction=instruction),
        Layer(name="trigger", turns=batch_turns(context, "bare", ())),
    )
    return Prompt(layers=layers)


def _lines(context: Context, max_messages: int, *, include_meta: bool) -> list[str]:
    quote = context.quote
    history = context.history if context.levels else (*context.history, *context.late_notices)
    batch = _newest_of_batch(context, max_messages)
    remaining = max_messages - len(batch)
    shown = history[max(0, len(history) - remaining) :]
    known = quote if quote and (quote.parts or quote.excerpt) else None
    outside = known is not None and all(message.id != known.message_id for message in shown)
    if outside:
        shown = history[max(0, len(history) - remaining + 1) :]
    replied = quote.message_id if quote else None
    lookup = lookup_of(context, include_meta=include_meta)
    lines = [message_line(message, context, lookup, marked=message.id == replied) for message in shown]
    if quote is not None and outside and remaining:
        lines.append(quote_line(quote, context, lookup))
    for message in batch:
        cue = f" {forms.REPLY_TO_THIS}" if message is context.target else ""
        lines.append(f"{message_line(message, context, lookup, marked=True)}{cue}")
    return lines


def _newest_of_batch(context: Context, most: int) -> tuple[Message, ...]:
    """Return the target and the newest of its batch, *most* in all."""
    others = (*context.earlier, *context.later)
    left = {message.id for message in others[: max(0, len(others) - most + 1)]}
    return tuple(message for message in context.batch if message.id not in left)
