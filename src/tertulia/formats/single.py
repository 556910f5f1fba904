"""The one message of OpenAI-compatible personality bots: a text, its quote in words, media. Profile `single`. Pure.

```
What do you think?
Alice said:
"Tea is better than coffee."
```

A forwarded text is quoted likewise, after `Forwarded from Alice:`. Quotation marks are escaped where a text or a name
could begin such a reference itself.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from tertulia.context.values import Context
from tertulia.messages import Author
from tertulia.parts import USUAL_MIME, Media, Part, Text, cut, cut_parts
from tertulia.prompt import sections
from tertulia.prompt.escape import NAME_LENGTH, normalize, without_descriptions
from tertulia.prompt.render import EMPTY
from tertulia.turns import Layer, Prompt, user

Voice = Literal["self", "own", "agent", "person"]  # the author of the message, this agent, another one, anybody else
Kind = Literal["image", "audio", "video", "other"]

SOMEONE = "Someone"

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_HALVES = re.compile(r"[\ud800-\udfff]")  # of characters: nothing that could be written as UTF-8
_MARKS = re.compile('["“”]')
_POSES = re.compile(  # a name that would read as words of ours
    r"(?:i|me|you)\W*|me\b\W*\..*|.*\bsaid\b[^:]{0,20}:.*|.*\bmessage referencing\b.*|.*\[\s*(?:image|audio)\b.*"
    r"|.*\bforwarded from\b.*",
    re.DOTALL,
)
_OPENING = re.compile(
    r"you\s+said\s+earlier\s*:|this\s+is\s+a\s+message\s+referencing\s+a\s+message\b|.*\)\s*said\s*:|.*\bsaid\s*:$"
    r"|.{0,160}?\bforwarded\s+from\b"
)
_SPEECH = re.compile(r".{0,160}?\b(?:said\b[^:]{0,20}:|forwarded\s+from\b)|this\s+is\s+a\s+message\s+referencing\b")
_ADDRESS = re.compile(r"https?://[^\s/?#]+[^\s]*|data:[^\s,]+,[^\s]+", re.IGNORECASE)
_MIME = re.compile(r"[a-z]+/[a-z0-9.+-]+")
_PHRASES: dict[Kind, tuple[str, str]] = {  # how media are announced, and what stands where there are no words
    "image": ("an image", "[Image]"),
    "audio": ("audio", "[Audio Message]"),
    "video": ("a video", "[Video]"),
    "other": ("an attachment", "[Attachment]"),
}


class QuoteWords(Struct, frozen=True, kw_only=True):
    """A quote, and what the sentence that introduces it needs."""

    voice: Voice
    name: str  # as it is shown
    text: str
    media: tuple[Media, ...] = ()  # those that are sent with it
    origin: str = ""  # whose words it is, where it was forwarded


def strip_controls(text: str) -> str:
    """Return *text* without control characters; newline, tab and carriage return stay."""
    return _HALVES.sub("\ufffd", _CONTROL.sub("", text))


def display_name(name: str | None) -> str:
    """Return a name on one line, in typographic quotes where it would read as our own words; empty without one."""
    lines = (line.strip() for line in strip_controls(name or "").splitlines())
    folded = without_descriptions(" ".join(filter(None, lines))[:NAME_LENGTH].strip())
    read = normalize(folded)
    if not read:
        return ""
    return "“" + _MARKS.sub("'", folded) + "”" if _POSES.fullmatch(read) else folded


def agent_name(display: str | None, persona: str | None) -> str:
    """`Albert Einstein (albert-einstein)`, or the one that is known; equal ones once."""
    names = list(dict.fromkeys(filter(None, (display_name(display), display_name(persona)))))
    return f"{names[0]} ({names[1]})" if len(names) == 2 else "".join(names)


def quote_media(media: Sequence[Media]) -> tuple[Media, ...]:
    """Return the media of a quote that are sent with it: the first audio alone, or all where there is none."""
    audio = next((one for one in media if kind_of(one) == "audio"), None)
    return (audio,) if audio else tuple(media)


def message_text(message: str, quoted: QuoteWords | None, kinds: Sequence[Kind]) -> str:
    """Return the text of the message: the author's own, escaped, beside media of these kinds, then the quote."""
    text = message if message.strip() else ""
    if quoted is None:
        return text or (media_placeholder(kinds) if kinds else EMPTY)
    return f"{text}\n{_reference(quoted)}" if text else _reference(quoted)


def media_placeholder(kinds: Sequence[Kind]) -> str:
    """Return the text of a message that has only media."""
    return _PHRASES["audio" if "audio" in kinds else kinds[0]][1]


def join_texts(texts: Iterable[str]) -> str:
    """Join the texts of one message."""
    return " ".join(filter(None, map(strip_controls, texts)))


def _reference(quoted: QuoteWords) -> str:
    kinds = [kind_of(one) for one in quoted.media]
    text = quoted.text if quoted.text.strip() or not kinds else media_placeholder(kinds)
    quote = f'"{_escape_quote(text)}"'
    verb = f"forwarded from {quoted.origin}" if quoted.origin else "said"
    match quoted.voice:
        case "own":
            return f"You {verb} earlier: {quote}"
        case "agent":
            return f"{quoted.name or SOMEONE} {verb}: {quote}"
        case "self":
            whom, who = "me", "I"
        case "person":
            whom = who = quoted.name or SOMEONE
    announced = f"This is a message referencing a message with {_PHRASES[kinds[0]][0]} from {whom}. " if kinds else ""
    return f"{announced}{who} {verb}:\n{quote}"


def escape_speech(text: str, *, inside: bool = False) -> str:
    """Return *text* with typographic quotation marks in lines that would begin a reference.

    Text *inside* a quote begins in the middle of a line.
    """
    if '"' not in text:
        return text
    lines = text.splitlines(keepends=True)
    opened = False  # by a line before whose mark is still to come
    for number, line in enumerate(lines):
        read = normalize(line)
        opens = bool(_OPENING.match(read)) and (number > 0 or not inside)
        if opens or (opened and read.startswith('"')):
            lines[number] = line.replace('"', "“", 1).replace('"', "”")
        if read:
            opened = opens and read.endswith(":")
    return "".join(lines)


def _escape_quote(text: str) -> str:
    """Return a quoted text that neither ends its quote and begins another, nor describes media."""
    text = without_descriptions(text)
    if '"' not in text:
        return text
    lines = text.splitlines(keepends=True)
    speech = False  # whether the next line that is not blank reads as one
    for number in range(len(lines) - 1, -1, -1):
        read = normalize(lines[number])
        if speech and read.endswith('"'):
            lines[number] = "”".join(lines[number].rsplit('"', 1))
        if read:
            speech = bool(_SPEECH.match(read))
    return escape_speech("".join(lines), inside=True)


def kind_of(media: Media) -> Kind:
    """Return image, audio, video or other: by the MIME type, else by the kind."""
    match mime_of(media).partition("/")[0]:
        case "image" | "audio" | "video" as kind:
            return kind
    return "other"


def is_address(url: str) -> bool:
    """Return whether a service could fetch *url*: a web address with a host, or a data URL."""
    return bool(_ADDRESS.fullmatch(url))


def mime_of(media: Media) -> str:
    """Return the MIME type, or the usual one of the kind; empty when neither is known."""
    mime = (media.mime or "").partition(";")[0].strip().lower()
    known = _MIME.fullmatch(mime) and mime != "application/octet-stream"
    return mime if known else USUAL_MIME.get(media.media_kind, "")


def clean_media(media: Media) -> Media:
    """Return *media* with description and address cleaned, and without an address that is none."""
    words = strip_controls(media.rendered_text) if media.rendered_text else media.rendered_text
    uri = strip_controls(media.uri).strip() if media.uri else media.uri
    uri = uri if uri and is_address(uri) else None
    kind, mime = strip_controls(media.media_kind), (mime_of(media) or None) if media.mime else None
    tidied = replace(media, media_kind=kind, mime=mime, uri=uri, rendered_text=words)
    return media if tidied == media else tidied


def single(context: Context) -> Prompt:
    """Lay out as one turn: the text of the target and its quote, then the media of both."""
    text, media, quoted = _message(context)
    words = Text(text=text) if quoted is None else as_list_text(text)
    turn = user(words, *media, *(quoted.media if quoted else ()))
    layers = (
        Layer(name="static", instruction=_instruction(context)),
        Layer(name="trigger", turns=(turn,)),
    )
    return Prompt(layers=layers)


def as_list_text(text: str) -> Text:
    """Return a text that is sent as a list of one element, as this format has it for references."""
    return Text(text=text, raw={"type": "text", "text": text})


def _message(context: Context) -> tuple[str, tuple[Media, ...], QuoteWords | None]:
    """Return the text of the whole batch, its media, and its quote."""
    text = "\n".join(filter(None, _texts(context)))
    media = tuple(one for message in context.batch for one in _media(message.parts))
    quoted = _quote(context)
    return message_text(text, quoted, [kind_of(one) for one in media]), media, quoted


def _texts(context: Context) -> Iterator[str]:
    """Yield the texts of the batch, escaped; each forwarded one as a quote."""
    for origin, messages in groupby(context.batch, key=lambda message: message.forwarded_from):
        found = list(messages)
        text = "\n".join(filter(None, (_text(message.parts) for message in found)))
        if origin is None:
            yield escape_speech(text)
            continue
        kinds = [kind_of(one) for message in found for one in _media(message.parts)]
        shown = text if text.strip() or not kinds else media_placeholder(kinds)
        yield f'Forwarded from {_origin(origin, context)}:\n"{_escape_quote(shown)}"'


def _origin(author: Author, context: Context) -> str:
    """Return who is meant after `forwarded from`."""
    voice = _voice(author, context)
    return {"self": "me", "own": "you"}.get(voice) or _name(author, voice) or SOMEONE


def _quote(context: Context) -> QuoteWords | None:
    """Return the quote of the batch, or None where nothing is known of it."""
    quote = context.quote
    if quote is None:
        return None
    text = strip_controls(cut(quote.excerpt)) if quote.excerpt else _text(quote.parts)
    media = quote_media(_media(context.written(quote).parts))
    if quote.author is None and not text and not media:
        return None
    voice = _voice(quote.author, context)
    origin = _origin(quote.forwarded_from, context) if quote.forwarded_from else ""
    return QuoteWords(voice=voice, name=_name(quote.author, voice), text=text, media=media, origin=origin)


def _voice(author: Author | None, context: Context) -> Voice:
    if author is None:
        return "person"
    if author.id and author.id == context.target.author.id:
        return "self"
    if context.is_me(author):
        return "own"
    return "person" if author.persona is None else "agent"


def _name(author: Author | None, voice: Voice) -> str:
    if author is None:
        return ""
    return agent_name(author.name, author.persona) if voice == "agent" else display_name(author.name)


def _text(parts: Iterable[Part]) -> str:
    return join_texts(part.text for part in cut_parts(tuple(parts)) if isinstance(part, Text))


def _media(parts: Iterable[Part]) -> tuple[Media, ...]:
    return tuple(clean_media(part) for part in cut_parts(tuple(parts)) if isinstance(part, Media))


def _instruction(context: Context) -> str:
    persona = context.persona
    words = (persona.text, persona.role, persona.rules, persona.procedure, persona.notes)
    remembered = escape_speech(strip_controls(sections.memory_sections(context)))
    return "\n\n".join([*(strip_controls(word) for word in words if word), *([remembered] if remembered else [])])
