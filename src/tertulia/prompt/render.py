"""Messages rendered as turns: headers, texts, media or their markers, quotes and notices. Pure.

A message is rendered once: its turns are cached with it (`value_cache`), under a key of everything that decides them.
So the same history is the same turn objects in each request, and each of these is encoded once.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import chain, groupby, takewhile
from types import MappingProxyType
from typing import Literal

from msgspec.structs import replace

from tertulia.context.budget import BRIEF_LENGTH, media_in_brief
from tertulia.context.values import Album, Context, Notice, ReactionNotice, with_albums
from tertulia.messages import Author, Message, Quote
from tertulia.parts import DESCRIBED, EVENT, Media, Opaque, Part, Text, Thought, ToolCall, ToolResult, cut, cut_parts
from tertulia.prompt import escape, forms
from tertulia.timezones import zone_named
from tertulia.turns import Turn, cut_turn
from tertulia.value_cache import cached, cached_for

Style = Literal[
    "bare",  # what people wrote alone; as in all styles, without the delimiter
    "verbatim",  # the same, with quotes, forwards and events behind the delimiter mark
    "direct",  # the same without the mark: labels that people wrote are escaped
    "headed",  # with a header
    "worded",  # with a header, and markers for media
    "attached",  # the same, and behind each marker the media themselves, if they have content
]

Voice = Literal["author", "model", "results"]  # who speaks in a part of a message
Safe = Callable[[str], str]

EMPTY = "[empty message]"
NOTE = "A note, not a message: "
DOUBT = "perhaps not received: it is not known whether your message {which} reached people"
EMOJIS = 4  # of one reaction
EMOJI_LENGTH = 32  # characters: some services give names
QUOTE_LENGTH = 2_000  # characters of a quote
NO_QUOTES: Mapping[str, Quote] = MappingProxyType({})
KINDS = frozenset(
    "photo image sticker gif animation audio voice music video video_note youtube document file contact"
    " location".split()
)
_OPEN_LABEL = re.compile(r'\[[\w·-]{1,40} "[^"\[\]]*$')
_OPEN_MARK = re.compile(rf'\[[\w·-]{{1,40}}(?: "[^"\[\]]*"| of \d|{DESCRIBED})[^\[\]]*$')


def turns_of(
    messages: Iterable[Message], context: Context, style: Style, quotes: Mapping[str, Quote] = NO_QUOTES
) -> tuple[Turn, ...]:
    """Return the turns of messages in order, without deleted ones.

    *quotes*, by the ids of the messages that reply to them, are added in brief.
    """
    key, render, made = _key(context, style), partial(render_message, context=context, style=style), context.turns
    present = [message for message in with_albums(tuple(messages)) if not message.deleted]
    if not made and not quotes:
        return tuple(chain.from_iterable([one.__dict__.get(key) or cached(one, key, render) for one in present]))
    groups = [
        (_own_turns(own, message, context, style) if (own := made.get(message.id)) else None)
        or (_with_brief(message, quotes[message.id], key, context, style) if quotes and message.id in quotes else None)
        or message.__dict__.get(key)
        or cached(message, key, render)
        for message in present
    ]
    return tuple(chain.from_iterable(groups))


def turns_without_opening_call(
    messages: Sequence[Message], context: Context, style: Style, quotes: Mapping[str, Quote] = NO_QUOTES
) -> tuple[Turn, ...]:
    """Return the turns of a history that begins a prompt: without calls before the first user turn.

    Services refuse a call there. Own messages before it are rendered as their text.
    """
    turns = turns_of(messages, context, style, quotes)
    if not turns or turns[0].role == "user" or not context.turns:
        return turns

    def is_unasked(message: Message) -> bool:
        return message.deleted or context.is_own(message) or not turns_of((message,), context, style, quotes)

    alone = tuple(takewhile(is_unasked, messages))
    known = {message.id: context.turns.get(message.id, ()) for message in alone}
    quiet = {
        name: made
        for name, made in known.items()
        if not any(isinstance(part, ToolCall) for turn in made for part in turn.parts)
    }
    rest = turns_of(messages[len(alone) :], context, style, quotes)
    return turns_of(alone, replace(context, turns=quiet), style, quotes) + rest


def turns_of_message(message: Message, context: Context, style: Style) -> tuple[Turn, ...]:
    """Return the turns of one message, deleted or not; cached."""
    return cached(message, _key(context, style), lambda one: render_message(one, context, style))


def _key(context: Context, style: Style) -> str:
    """Return the cache key of rendered turns: everything that decides them besides the message."""
    return f"{style} {context.zone} {context.delimiter} {context.identity}"


def _own_turns(made: tuple[Turn, ...], message: Message, context: Context, style: Style) -> tuple[Turn, ...]:
    """Return the turns of the model that wrote a message."""
    return (*map(cut_turn, made), *_doubt(message, context, style))


def _doubt(message: Message, context: Context, style: Style) -> tuple[Turn, ...]:
    """Return the turn behind a doubtful message that says so; none behind others, and none in `bare`."""
    if not message.doubtful or style == "bare":
        return ()
    lead = NOTE if style == "verbatim" else ""
    return (Turn(role="user", parts=(Text(text=doubt_line(context, lead=lead)),)),)


def doubt_line(context: Context, *, lead: str = "", which: str = "before this line") -> str:
    """`[#7f3a9c2e] You — perhaps not received: it is not known whether your message before this line reached people`"""
    words = escape.without_delimiter(DOUBT.format(which=which), context.delimiter)
    return f"{delimiter_mark(context.delimiter)} {lead}You — {words}"


def doubt_lines(context: Context) -> str:
    """Return a line for each doubtful message, where these cannot stand beside the messages."""
    doubtful = (message for message in context.history if message.doubtful)
    return "\n".join(doubt_line(context, which=_beginning(message) or "of media") for message in doubtful)


def _with_brief(message: Message, quote: Quote, key: str, context: Context, style: Style) -> tuple[Turn, ...]:
    """Return the turns of a message with its quote in brief; cached."""
    return cached_for(
        message, f"{key} quoting", quote, lambda: render_message(message, context, style, beside=brief_quote(quote))
    )


def render_message(
    message: Message, context: Context, style: Style, *, beside: Sequence[Part] = ()
) -> tuple[Turn, ...]:
    """Render a message as turns: calls are model turns and results user turns, whoever its author is."""
    if isinstance(message, Notice):
        return (_notice_turn(message, context, style),)
    if not any(isinstance(part, ToolCall | ToolResult) for part in message.parts):
        turn = turn_of(message, context, style, beside=beside)
        return (turn, *_doubt(message, context, style)) if turn else ()
    voice = _voice_of_own if context.is_own(message) else _voice_of_others
    parts = (part for part in message.parts if part != Text(text=""))
    turns = [
        _turn_of_voice(speaks, replace(message, parts=tuple(found)), context, style)
        for speaks, found in groupby(parts, voice)
    ]
    if beside:
        turns.append(turn_of(replace(message, parts=()), context, style, beside=beside))
    return (*(turn for turn in turns if turn), *_doubt(message, context, style))


def _voice_of_own(part: Part) -> Voice:
    return "results" if isinstance(part, ToolResult) else "author"


def _voice_of_others(part: Part) -> Voice:
    return "model" if isinstance(part, ToolCall | Thought | Opaque) else _voice_of_own(part)


def _turn_of_voice(voice: Voice, message: Message, context: Context, style: Style) -> Turn | None:
    if voice == "author":
        return turn_of(message, context, style)
    return Turn(role="model" if voice == "model" else "user", parts=tuple(cut_parts(message.parts)))


def turn_of(message: Message, context: Context, style: Style, *, beside: Sequence[Part] = ()) -> Turn | None:
    """Return the turn of one message, with the parts *beside* it at its end; None where an own or bare one is empty."""
    if context.is_own(message):
        parts = [*_own_parts(message.parts, context.delimiter, style)]
        return Turn(role="model", parts=tuple(parts)) if parts else None
    if style == "bare":
        said = tuple(part for part in message.parts if not isinstance(part, Media) or part.media_kind != EVENT)
        parts = [*_escape_parts((*said, *beside), context, style)]
        return Turn(role="user", parts=tuple(parts)) if parts else None
    parts = [*_forward_parts(message, context, style), *_escape_parts(message.parts, context, style)]
    if style in ("headed", "worded", "attached") and (words := header(message, context.zone, context.delimiter)):
        parts.insert(0, Text(text=words))
    if beside and style != "verbatim":
        parts.append(Text(text=quote_label(message.reply_to, context.delimiter)))
    elif any(not _is_sendable(part) for part in beside):  # a quoted text: in this style only the mark tells it apart
        mark = delimiter_mark(context.delimiter)
        parts.append(Text(text=f"{mark} {quote_label(message.reply_to, context.delimiter)}"))
    parts += _escape_parts(beside, context, style)
    if not parts:
        parts.append(Text(text=EMPTY))
    return Turn(role="user", parts=tuple(parts))


def _forward_parts(message: Message, context: Context, style: Style) -> tuple[Text, ...]:
    """Return the label of a forwarded message, which stands before its parts; nothing for other messages."""
    if message.forwarded_from is None:
        return ()
    mark = f"{delimiter_mark(context.delimiter)} " if style == "verbatim" else ""
    return (Text(text=mark + forward_label(message.forwarded_from, context.delimiter)),)


def _notice_turn(notice: Notice, context: Context, style: Style) -> Turn:
    """Return the turn of a notice: a line behind the delimiter mark, then the new parts."""
    parts = tuple(_escape_parts(notice.parts, context, style)) or (Text(text=EMPTY),)
    rest = (*_forward_parts(notice.shown, context, style), *parts) if has_words(notice) else ()
    lead = NOTE if style == "verbatim" else ""  # no instruction explains it
    return Turn(role="user", parts=(Text(text=notice_line(notice, context, lead=lead)), *rest))


def has_words(notice: Notice) -> bool:
    """Return whether the parts of the message follow the line of a notice."""
    return not notice.is_deletion and not isinstance(notice, ReactionNotice)


def notice_line(notice: Notice, context: Context, *, lead: str = "") -> str:
    """`[#7f3a9c2e] From: Alice (u123) — id: m1 — 2025-01-15 14:27 — edited: "see you at 5" now says`.

    Of a reaction: `[#7f3a9c2e] From: Bob (u456) — reacted 👍 to id: m1`.
    """
    news = f"{speaker(notice_subject(notice), context)} — {notice_text(notice, context)}"
    return f"{delimiter_mark(context.delimiter)} {lead}{escape.without_delimiter(news, context.delimiter)}"


def notice_subject(notice: Notice) -> Message:
    """Return the message whose header begins a notice: the changed one; of a reaction the author alone."""
    if isinstance(notice, ReactionNotice):
        return Message(id="", place=notice.place, author=notice.author)
    return replace(notice.shown, sent_at=notice.sent_at, reply_to=None)


def notice_text(notice: Notice, context: Context) -> str:
    """Return the text of a notice, with the beginning of the message.

    A reaction names the message by its id where headers show ids.
    """
    if isinstance(notice, ReactionNotice) and not context.is_own(notice.shown) and context.place.kind != "direct":
        return _reaction_text(notice, f"id: {escape.header_id(notice.shown.id)}")
    target = _beginning(notice.shown) or "it"
    if isinstance(notice, ReactionNotice):
        return _reaction_text(notice, target)
    return f"deleted: {target} no longer counts" if notice.is_deletion else f"edited: {target} now says"


def _beginning(message: Message) -> str:
    """Return the beginning of a message in quotation marks; empty if it has no text."""
    text = text_with_markers(part for part in message.parts if isinstance(part, Text))
    beginning = escape.header_name(text).replace('"', "'")
    more = "…" if len(text) > escape.NAME_LENGTH else ""
    return f'"{beginning}{more}"' if beginning else ""


def _reaction_text(notice: ReactionNotice, target: str) -> str:
    if not notice.emojis:
        return f"took back the reaction to {target}"
    shown = (escape.marker_word(emoji)[:EMOJI_LENGTH].replace('"', "'") for emoji in notice.emojis[:EMOJIS])
    return " ".join(["reacted", *filter(None, shown), "to", target])


def delimiter_mark(delimiter: str) -> str:
    """Return `[#7f3a9c2e]`, the beginning of a line of ours."""
    return f"[#{delimiter}]"


def speaker(message: Message, context: Context) -> str:
    """Return who speaks: `You`, `Person` in a direct chat, or a header."""
    if context.is_own(message):
        return "You"
    return "Person" if context.place.kind == "direct" else header(message, context.zone, context.delimiter)


def quote_label(quote: Quote | None, delimiter: str = "") -> str:
    """Return `[replied to: Alice (987)]`, the author of the quoted parts that follow, and whose words these are."""
    replied = _label(forms.REPLIED, quote.author if quote else None, delimiter)
    origin = quote.forwarded_from if quote else None
    return f"{replied} {forward_label(origin, delimiter)}" if origin else replied


def forward_label(origin: Author, delimiter: str = "") -> str:
    """Return `[forwarded from: Olha (7)]`, whose words the forwarded parts are that follow."""
    return _label(forms.FORWARDED, origin, delimiter)


def _label(words: str, author: Author | None, delimiter: str) -> str:
    speaker = author_label(author) if author else ""
    return escape.without_delimiter(f"[{words}: {escape.without_brackets(speaker).strip() or 'Someone'}]", delimiter)


def header(message: Message, zone: str, delimiter: str = "") -> str:
    """`From: Alice (u123) — id: m1 — 2025-01-15 14:27`, and ` — reply to: m0`; unknown fields are left out."""
    fields = []
    if speaker := author_label(message.author):
        fields.append(f"{forms.FROM}{speaker}")
    if message.id:
        ids = message.ids if isinstance(message, Album) else (message.id,)
        fields.append(f"{forms.ID}{', '.join(map(escape.header_id, ids))}")
    if message.sent_at:
        there = local_time(message.sent_at, zone)
        fields.append(f"{there.year:04}-{there:%m-%d %H:%M}")  # %Y writes years before 1000 shorter
    if message.reply_to and message.reply_to.message_id:
        fields.append(f"{forms.REPLY_TO}{escape.header_id(message.reply_to.message_id)}")
    return escape.without_delimiter(forms.DASH.join(fields), delimiter)


def author_label(author: Author) -> str:
    """Return name and id, which tell people of one name apart."""
    name, identity = escape.header_name(author.name), escape.header_id(author.id)
    return f"{name} ({identity})".strip() if identity else name


def text_with_markers(parts: Iterable[Part], safe: Safe = escape.markup) -> str:
    """Return the texts of the parts, made *safe*, with the words for media."""
    pieces: list[str] = []
    texts: list[str] = []
    for part in cut_parts(tuple(parts)):
        match part:
            case Text(text=text) if escape.normalize(text):
                texts.append(text)
            case Media():
                pieces += [safe(" ".join(texts)), part.words]
                texts = []
    return " ".join(filter(None, [*pieces, safe(" ".join(texts))]))


def media_placeholder(media: Media) -> str:
    """Return the marker of media in the profile `headers`: their words, or `[audio present uid=a1]` without any."""
    if media.same_as or media.is_described:
        return media.words
    if media.media_kind in KINDS:
        return f"[{media.media_kind} present uid={escape.marker_word(media.unique_id)}]"
    return f"[{media.kind_word} part]"


def quote_text(quote: Quote, safe: Safe = escape.markup) -> str:
    """Return the text of a quote: the marked passage, or all; nothing for media without a description."""
    marked = cut(quote.excerpt or "")
    if escape.normalize(marked):
        return safe(marked)
    return text_with_markers((part for part in quote.parts if not isinstance(part, Media) or part.is_described), safe)


def shorten(text: str, most: int) -> str:
    """Return the beginning of *text*; a marker of media that is cut still ends with its bracket."""
    beginning = text[:most]
    if beginning != text and _OPEN_LABEL.search(beginning):
        return f'{beginning}"]'
    return f"{beginning}]" if beginning != text and _OPEN_MARK.search(beginning) else beginning


def quote_parts(
    quote: Quote | None, shown: Mapping[str, Message], style: Style, *, without_text: bool
) -> tuple[Part, ...]:
    """Return the text and media of a quote; where the quoted message is among those *shown*, only a marked passage.

    *without_text*: another layer has the text, so only the media are returned.
    """
    if quote is None:
        return ()
    seen = shown.get(quote.message_id)
    told = None if without_text or style == "bare" else quote.beside(deleted=seen.deleted if seen else None)
    words = tuple(_quoted_text(told, QUOTE_LENGTH)) if told else ()
    return (*words, *_quote_media(quote, seen, style))


def brief_quote(quote: Quote) -> tuple[Part, ...]:
    """Return the beginning of the quoted text, and markers for the quoted media."""
    return (*_quoted_text(quote, BRIEF_LENGTH), *media_in_brief(quote))


def _quoted_text(quote: Quote, most: int) -> Iterator[Text]:
    """Yield the text of a quote as one part of at most *most* characters; none without visible characters."""
    texts = (quote.excerpt or "", quote.inline_text)
    if quoted := next((text for text in texts if escape.normalize(text[:most])), ""):
        yield Text(text=quoted if len(quoted) <= most else f"{quoted[:most]}…")


def _quote_media(quote: Quote, seen: Message | None, style: Style) -> tuple[Media, ...]:
    media = tuple(part for part in quote.parts if isinstance(part, Media))
    if style == "bare":
        media = tuple(filter(_is_sendable, media))
    elif style == "verbatim" or (style == "attached" and seen):  # the words are the author's own, or shown already
        media = tuple(one for one in media if one.has_content or one.same_as)
    return tuple(part for part in media if seen is None or part not in seen.parts)  # older media are shown in words


def _is_sendable(part: Part) -> bool:
    return isinstance(part, Media) and part.has_content


def local_time(moment: datetime, zone: str) -> datetime:
    """Return the time in a zone; the given time if the result would be outside the calendar."""
    try:
        return moment.astimezone(zone_named(zone))
    except OverflowError:
        return moment


def _own_parts(parts: Iterable[Part], delimiter: str, style: Style) -> Iterator[Part]:
    """Yield the agent's own parts without the delimiter."""
    for part in parts:
        match part:
            case Text(text=text) if (safe := escape.without_delimiter(text, delimiter)) != text:
                yield replace(part, text=safe)
            case Media() if style == "worded":
                yield Text(text=escape.without_delimiter(media_placeholder(part), delimiter))
            case _:
                yield part


def _escape_parts(parts: Iterable[Part], context: Context, style: Style) -> Iterator[Part]:
    def safe(text: str) -> str:
        if style in ("bare", "verbatim", "direct"):
            rest = escape.without_delimiter(text, context.delimiter)
            return escape.without_labels(rest) if style == "direct" else rest
        return escape.markup(text, context.delimiter)

    for part in cut_parts(tuple(parts)):
        match part:
            case Text(text=""):
                continue
            case Text(text=text):
                if words := safe(text):
                    yield part if words == text else replace(part, text=words)
            case Media():
                if style in ("worded", "attached"):
                    yield Text(text=escape.without_delimiter(media_placeholder(part), context.delimiter))
                if style != "worded" and (style != "attached" or part.has_content):
                    yield _safe_media(part, context.delimiter)
            case _:
                yield part


def _safe_media(media: Media, delimiter: str) -> Media:
    """Return media whose words do not hold the delimiter."""
    words = {name: text for name in ("rendered_text", "label", "same_as") if (text := getattr(media, name))}
    safe = {name: escape.without_delimiter(text, delimiter) for name, text in words.items()}
    kind = media.media_kind if media.media_kind in KINDS else escape.without_delimiter(media.kind_word, delimiter)
    shown = replace(media, media_kind=kind, **safe)
    return media if shown == media else shown
