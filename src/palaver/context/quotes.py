"""What messages of the history reply to: as it stands now, and how much it takes where it is told with them. Pure."""

from msgspec.structs import replace

from palaver.messages import Message, Quote
from palaver.parts import Media, Text
from palaver.tokens import Counter, parts_tokens

BRIEF = 300  # characters of a quote that is told with a message of the history, and of what each of its media shows

_CURRENT = "with current quote"  # where a message keeps itself with its quote as that stands now
_TOKENS = "tokens of quote"  # where it keeps the tokens of its quote in brief


def with_quote(message: Message, quote: Quote) -> Message:
    """The message with *quote* as what it replies to; made once for as long as the quote stays the same."""
    if quote == message.reply_to:
        return message
    kept: Message | None = message.__dict__.get(_CURRENT)
    if kept is None or kept.reply_to != quote:
        kept = message.__dict__[_CURRENT] = replace(message, reply_to=quote)
    return kept


def media_in_brief(quote: Quote) -> tuple[Media, ...]:
    """The quoted media without their content."""
    return tuple(_in_brief(part) for part in quote.parts if isinstance(part, Media))


def quote_tokens(message: Message, counter: Counter) -> int:
    """The tokens of what a message replies to in brief; counted once."""
    if message.reply_to is None:
        return 0
    kept = message.__dict__.get(_TOKENS)
    if kept is None or kept[0] is not counter:
        kept = message.__dict__[_TOKENS] = (counter, _tokens(message.reply_to, counter))
    tokens: int = kept[1]
    return tokens


def _tokens(quote: Quote, counter: Counter) -> int:
    words = max((quote.excerpt or "")[:BRIEF], quote.inline_text[:BRIEF], key=len)
    return parts_tokens((Text(text=words), *media_in_brief(quote)), counter)


def _in_brief(media: Media) -> Media:
    told = media.rendered_text
    brief = told if told is None or len(told) <= BRIEF else f"{told[:BRIEF]}…"
    return replace(media, data=None, uri=None, raw=None, signature=None, rendered_text=brief)
