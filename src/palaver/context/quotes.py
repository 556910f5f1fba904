"""Quotes in the history: their current version, their brief form and its tokens. Pure."""

from msgspec.structs import replace

from palaver.messages import Message, Quote
from palaver.parts import Media, Text
from palaver.tokens import Counter, parts_tokens
from palaver.value_cache import cached_for

BRIEF_LENGTH = 300  # characters of a quote beside a message of the history, and of what each of its media shows


def with_quote(message: Message, quote: Quote) -> Message:
    """Return the message with *quote* as its quote; cached while the quote stays the same."""
    if quote == message.reply_to:
        return message
    return cached_for(message, "with quote", quote, lambda: replace(message, reply_to=quote))


def media_in_brief(quote: Quote) -> tuple[Media, ...]:
    """Return the quoted media without their content."""
    return tuple(_in_brief(part) for part in quote.parts if isinstance(part, Media))


def quote_tokens(message: Message, counter: Counter) -> int:
    """Return the tokens of the quote of a message in brief; cached."""
    quote = message.reply_to
    return 0 if quote is None else cached_for(message, "tokens of quote", counter, lambda: _tokens(quote, counter))


def _tokens(quote: Quote, counter: Counter) -> int:
    words = max((quote.excerpt or "")[:BRIEF_LENGTH], quote.inline_text[:BRIEF_LENGTH], key=len)
    return parts_tokens((Text(text=words), *media_in_brief(quote)), counter)


def _in_brief(media: Media) -> Media:
    text = media.rendered_text
    brief = text if text is None or len(text) <= BRIEF_LENGTH else f"{text[:BRIEF_LENGTH]}…"
    return replace(media, data=None, uri=None, raw=None, signature=None, rendered_text=brief)
